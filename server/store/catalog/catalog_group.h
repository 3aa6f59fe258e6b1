/*
 * catalog_group.h -- a group of series to be created: its distinct rows, table by table (private to
 * the store).
 *
 * catalog_insert.c walks the items and runs the transaction; catalog_tables.c knows the tables.
 *
 * Threads: confined to the thread that leads the catalogue write.
 */
#ifndef HEARTH_STORE_CATALOG_GROUP_H
#define HEARTH_STORE_CATALOG_GROUP_H

#include "catalog/catalog.h"
#include "pg/pg.h"

/* A distinct row of a table. */
struct hearth_group_row {
    struct hearth_hash128 fingerprint;
    int32_t parent; /* tenant id; of a series, service id */
    int32_t id;     /* 0: not known yet */
    union {
        struct hearth_str name;                 /* service */
        const struct hearth_label *pair;        /* pair */
        const struct hearth_series_key *series; /* shape: its types */
        struct {
            int32_t tenant_id, shape_id;
            size_t first_pair, n_pairs; /* in group.pair_ids */
        } s;
    } u;
};

struct hearth_group_rows {
    struct hearth_idmap map; /* (parent, fingerprint) -> index */
    struct hearth_group_row *v;
    size_t n, cap;
};

/* The rows of one item, as indexes into the tables of the group. */
struct hearth_group_links {
    uint32_t service, shape, series;
    uint32_t *pairs; /* [labels.n] */
};

/* In the order in which they are settled. The statements contain the numbers. */
enum hearth_group_table {
    HEARTH_GROUP_SERVICES,
    HEARTH_GROUP_SHAPES,
    HEARTH_GROUP_PAIRS,
    HEARTH_GROUP_SERIES,
    HEARTH_GROUP_N_TABLES
};

struct hearth_group {
    struct hearth_catalog *catalog;
    struct hearth_catalog_item *const *items;
    size_t n; /* >= 1 */
    struct hearth_pg *pg;
    enum hearth_pg_fault *ret_fault;
    struct hearth_err *err;
    struct hearth_arena arena;        /* of one attempt */
    int64_t version, epoch;           /* of the transaction; version 0: not read */
    struct hearth_group_links *links; /* [n] */
    struct hearth_group_rows tables[HEARTH_GROUP_N_TABLES];
    int32_t *pair_ids; /* of all series of the group, one series after the other */
    size_t n_pair_ids; /* their number, or an upper bound before they are gathered */
};

/*
 * Return the index of the row (parent, fingerprint), which is added if it is new;
 * HEARTH_IDMAP_NONE: no memory.
 */
uint32_t hearth_group_intern(struct hearth_group_rows *rows, int32_t parent,
                             struct hearth_hash128 fingerprint, bool *ret_new);

/*
 * Set the ids of all rows in the tables first to last: services to pairs, or only series. Missing
 * rows are created.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_group_settle(struct hearth_group *group,
                                                         enum hearth_group_table first,
                                                         enum hearth_group_table last);

/* Run one statement of the transaction. */
HEARTH_MUST_CHECK enum hearth_status hearth_group_run(struct hearth_group *group, const char *sql,
                                                      struct hearth_pg_params *params,
                                                      PGresult **ret_result);

/* Set the error, and return NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_group_no_memory(const struct hearth_group *group);

/* Empty the group for another attempt, or for ever. The arena keeps its memory. */
void hearth_group_reset(struct hearth_group *group);

#endif
