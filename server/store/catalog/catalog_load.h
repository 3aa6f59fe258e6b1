/*
 * catalog_load.h -- what loading the label indexes is made of (private to the store).
 *
 * catalog_load.c refreshes all tenants; catalog_join.c loads one that was asked, and hands it over.
 * Threads: a load belongs to one thread.
 */
#ifndef HEARTH_STORE_CATALOG_LOAD_H
#define HEARTH_STORE_CATALOG_LOAD_H

#include "catalog/catalog.h"
#include "pg/pg.h"

struct hearth_load;

/* Apply one row to the indexes; the write lock is held. */
typedef enum hearth_status hearth_apply_row_fn(struct hearth_load *load, const PGresult *rows,
                                               int row, struct hearth_err *err);

struct hearth_load {
    struct hearth_catalog *catalog;
    struct hearth_cancel *cancel;
    struct hearth_pg *pg;
    int64_t from, upto; /* versions above from, up to upto */
    int64_t epoch;
    struct hearth_arena arena;       /* of one row */
    struct hearth_arena params;      /* of the statement */
    struct hearth_label_index *into; /* of a join: takes all rows, without a lock */
    const int32_t *tenant_ids;       /* whose rows; none: everyone's */
    size_t n_tenant_ids;
    hearth_apply_row_fn *visit; /* of the statement that streams */
    bool changed;
    bool lacks_series; /* an hour came of one that the index does not have (any more) */
};

/* upto and epoch from the clock. */
HEARTH_MUST_CHECK enum hearth_status hearth_load_clock(struct hearth_load *load,
                                                       enum hearth_pg_fault *ret_fault,
                                                       struct hearth_err *err);
/* The rows of those versions and tenants, all tables but that of the tenants themselves. */
HEARTH_MUST_CHECK enum hearth_status hearth_load_tables(struct hearth_load *load,
                                                        enum hearth_pg_fault *ret_fault,
                                                        struct hearth_err *err);
/* The refreshing thread, after the clock: give tenants the indexes that were loaded for them. */
HEARTH_MUST_CHECK enum hearth_status hearth_load_adopt(struct hearth_load *load,
                                                       enum hearth_pg_fault *ret_fault,
                                                       struct hearth_err *err);

#endif
