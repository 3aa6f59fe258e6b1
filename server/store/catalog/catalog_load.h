/*
 * catalog_load.h -- the state and the steps of loading label indexes (private to the store).
 *
 * catalog_load.c refreshes all tenants; catalog_join.c loads one tenant for a query and hands its
 * index over; catalog_rows.c has the statements for both.
 *
 * Threads: a load is confined to one thread.
 */
#ifndef HEARTH_STORE_CATALOG_LOAD_H
#define HEARTH_STORE_CATALOG_LOAD_H

#include "catalog/catalog.h"
#include "pg/pg.h"

struct hearth_load;

/*
 * Apply row number `row` to the index of its tenant. The caller holds catalog->rw for writing,
 * unless load->into is set.
 */
typedef enum hearth_status hearth_apply_row_fn(struct hearth_load *load, const PGresult *rows,
                                               int row, struct hearth_err *err);

struct hearth_load {
    struct hearth_catalog *catalog;
    struct hearth_cancel *cancel;
    struct hearth_pg *pg;
    int64_t from, upto;              /* versions of the rows: above from, up to upto */
    int64_t epoch;                   /* the clock's */
    struct hearth_arena arena;       /* scratch for one row */
    struct hearth_arena params;      /* parameters of the statement */
    struct hearth_label_index *into; /* index of a join, for all rows, without a lock; or NULL */
    const int32_t *tenant_ids;       /* tenants of the rows */
    size_t n_tenant_ids;             /* 0: all tenants */
    hearth_apply_row_fn *visit;      /* of the statement whose rows are streamed */
    bool changed;                    /* an index may have changed */
    bool lacks_series; /* an index has no series for an hour that was read: load all tables */
};

/* ---- catalog_rows.c ---- */

/* Read upto and epoch from the clock. */
HEARTH_MUST_CHECK enum hearth_status hearth_load_clock(struct hearth_load *load,
                                                       enum hearth_pg_fault *ret_fault,
                                                       struct hearth_err *err);

/*
 * Add the tenants of the load's versions to the catalogue: each with an empty index, or with the
 * number of its series and without an index.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_load_tenants(struct hearth_load *load, bool with_counts,
                                                         enum hearth_pg_fault *ret_fault,
                                                         struct hearth_err *err);

/*
 * Apply the rows of the load's versions and tenants, from all tables but that of the tenants
 * themselves.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_load_tables(struct hearth_load *load,
                                                        enum hearth_pg_fault *ret_fault,
                                                        struct hearth_err *err);

/* ---- catalog_adopt.c ---- */

/* For the refreshing thread, after hearth_load_clock: give tenants the indexes of their joins. */
HEARTH_MUST_CHECK enum hearth_status hearth_load_adopt(struct hearth_load *load,
                                                       enum hearth_pg_fault *ret_fault,
                                                       struct hearth_err *err);

#endif
