/* layout.c -- finds out whether Citus distributes the data tables (contract: layout.h). */
#include "nodes/layout.h"

#include "pg/pg_rows.h"

enum placed_set {
    CATALOGUE,
    DATA,
};

static const struct placed {
    const char *table;
    enum placed_set set;
} PLACED[] = {
#define HEARTH_PLACED(table, set) {#table, set},
#include "placement.def"
#undef HEARTH_PLACED
};

/* A table that Citus knows. */
struct known_table {
    struct hearth_str name;
    bool is_by_service; /* its rows are distributed by the hash of service_id */
    int32_t group;      /* of shards that lie together */
};

#define KNOWN(kind, member) HEARTH_COLUMN(kind, struct known_table, member)
static const struct hearth_column known_columns[] = {KNOWN(TEXT, name), KNOWN(BOOL, is_by_service),
                                                     KNOWN(I32, group)};
static const struct hearth_row_type known_rows = HEARTH_ROW_TYPE(known_columns, struct known_table);

static const struct known_table *find_known(const struct known_table *known, size_t n,
                                            const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq_c(known[i].name, name)) {
            return &known[i];
        }
    }

    return NULL;
}

static enum hearth_status refuse(const char *table, const char *what, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                       "table hearth_data.%s %s; see docs/how-to/scale-out.md", table, what);
}

/* Compare what Citus knows with the sets. Its own local tables are as good as plain ones. */
static enum hearth_status judge(const struct known_table *known, size_t n, bool *ret_distributed,
                                struct hearth_err *err)
{
    size_t n_data = 0, n_distributed = 0;
    const char *missing = NULL;
    const struct known_table *first = NULL;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(PLACED); i++) {
        const char *table = PLACED[i].table;
        const struct known_table *found = find_known(known, n, table);
        if (PLACED[i].set == CATALOGUE && found != NULL) {
            return refuse(table, "is distributed, but belongs to the catalogue, which is not", err);
        }
        if (PLACED[i].set == CATALOGUE) {
            continue;
        }

        n_data++;
        n_distributed += found != NULL;
        missing = found == NULL ? table : missing;
        first = first == NULL ? found : first;
        if (found != NULL && (!found->is_by_service || found->group != first->group)) {
            return refuse(table, "is distributed otherwise than the other data tables", err);
        }
    }

    if (n_distributed > 0 && n_distributed < n_data) {
        return refuse(missing, "is not distributed, but other data tables are", err);
    }

    *ret_distributed = n_distributed > 0;

    return HEARTH_OK;
}

enum hearth_status hearth_layout_read(struct hearth_pg *pg, bool *ret_distributed,
                                      struct hearth_err *err)
{
    PGresult *result = NULL;
    *ret_distributed = false;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT (to_regclass('pg_catalog.pg_dist_partition') IS NOT"
                              " NULL)::int4",
                              NULL, NULL, &result, NULL, err));
    bool has_citus = hearth_pg_i32(result, 0, 0) != 0;
    PQclear(result);
    if (!has_citus) {
        return HEARTH_OK;
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const struct hearth_pg_query query = {
        .sql =
            "SELECT c.relname::text, coalesce(p.partmethod = 'h' AND"
            " column_to_column_name(p.logicalrelid, p.partkey) = 'service_id', false)::int4,"
            " p.colocationid::int4 FROM pg_catalog.pg_dist_partition p JOIN pg_class c ON c.oid ="
            " p.logicalrelid WHERE c.relnamespace = 'hearth_data'::regnamespace AND NOT"
            " (p.partmethod = 'n' AND p.repmodel = 's')",
        .type = &known_rows,
        .arena = &arena};
    struct known_table *known = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &known, &n, NULL, err));

    return judge(known, n, ret_distributed, err);
}
