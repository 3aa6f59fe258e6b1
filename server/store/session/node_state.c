/* node_state.c -- what the nodes of Citus say about themselves (contract: node_state.h). */
#include "session/node_state.h"

#include "hearth/store/background.h"

#include "pg/pg_rows.h"
#include "pg/pool.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>

static const char *const NAMES[] = {
#define OF_DATA(table) #table,
#define OF_CATALOGUE(table)
#define HEARTH_PLACED(table, set) OF_##set(table)
#include "placement.def"
#undef HEARTH_PLACED
};

/* ---- nodes ---- */

/* What a node says: one text, because Citus passes one value from each. */
#define SQL_OF_NODE                                                                         \
    "SELECT concat_ws('|', split_part(current_setting('server_version'), ' ', 1),"          \
    " coalesce((SELECT extversion FROM pg_extension WHERE extname = 'citus'), ''),"         \
    " (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database() AND gid"  \
    " LIKE 'citus\\_%'), (SELECT coalesce(extract(epoch FROM now() - min(prepared)),"       \
    " 0)::int8 FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE"     \
    " 'citus\\_%'), current_setting('max_prepared_transactions'),"                          \
    " current_setting('max_connections'), (SELECT setting FROM pg_settings WHERE name ="    \
    " 'citus.recover_2pc_interval'), current_setting('citus.max_cached_conns_per_worker')," \
    " current_setting('citus.multi_shard_modify_mode'), current_setting('wal_level'))"

/* Placements of the shards of data tables. */
#define SQL_PLACED                                                                        \
    "citus_shards c WHERE c.table_name IN (SELECT oid FROM pg_class WHERE relnamespace =" \
    " 'hearth_data'::regnamespace)"

#define NODE(kind, member) HEARTH_COLUMN(kind, struct hearth_node, member)
static const struct hearth_column node_columns[] = {
    NODE(TEXT, name),          NODE(BOOL, is_coordinator),
    NODE(BOOL, holds_data),    NODE(TEXT, failure),
    NODE(I64, n_shards),       NODE(I64, n_bytes),
    NODE(TEXT, postgres),      NODE(TEXT, citus),
    NODE(I64, n_prepared),     NODE(I64, oldest_prepared_s),
    NODE(I64, max_prepared),   NODE(I64, max_connections),
    NODE(I64, recover_2pc_ms), NODE(I64, cached_connections),
    NODE(TEXT, modify_mode),   NODE(TEXT, wal_level),
};
static const struct hearth_row_type node_rows = HEARTH_ROW_TYPE(node_columns, struct hearth_node);

static const char SQL_NODES[] =
    "WITH answer AS MATERIALIZED (SELECT nodename, nodeport, success, result FROM"
    " run_command_on_workers($q$" SQL_OF_NODE "$q$) UNION ALL SELECT nodename, nodeport, true,"
    " (" SQL_OF_NODE ") FROM pg_catalog.pg_dist_node WHERE groupid = 0),"
    " placed AS (SELECT nodename, nodeport, count(*) AS n, sum(shard_size) AS bytes"
    " FROM " SQL_PLACED " GROUP BY 1, 2),"
    " told AS (SELECT n.*, p.n, p.bytes, CASE WHEN a.success THEN '' WHEN a.success IS NULL THEN"
    " 'it is disabled' ELSE coalesce(nullif(a.result, ''), 'no answer') END AS failure,"
    " CASE WHEN a.success THEN string_to_array(a.result, '|') END AS t FROM"
    " pg_catalog.pg_dist_node n LEFT JOIN answer a USING (nodename, nodeport) LEFT JOIN placed p"
    " USING (nodename, nodeport) WHERE n.noderole = 'primary')"
    " SELECT nodename || ':' || nodeport, (groupid = 0)::int4, shouldhaveshards::int4, failure,"
    " coalesce(n, 0)::int8, coalesce(bytes, 0)::int8, t[1], t[2], t[3]::int8, t[4]::int8,"
    " t[5]::int8, t[6]::int8, t[7]::int8, t[8]::int8, t[9], t[10] FROM told ORDER BY groupid";

static enum hearth_status read_nodes(struct hearth_pg *pg, struct hearth_arena *arena,
                                     struct hearth_node_layout *ret, struct hearth_err *err)
{
    const struct hearth_pg_query query = {.sql = SQL_NODES, .type = &node_rows, .arena = arena};

    return hearth_pg_select(pg, &query, &ret->nodes, &ret->n_nodes, NULL, err);
}

#define LARGEST(kind, member) HEARTH_COLUMN(kind, struct hearth_node_layout, member)
static const struct hearth_column largest_columns[] = {
    LARGEST(I64, n_unidentified),
    LARGEST(I64, n_largest_bytes),
    LARGEST(TEXT, largest_node),
    LARGEST(TEXT, largest_services),
};
static const struct hearth_row_type largest_rows =
    HEARTH_ROW_TYPE(largest_columns, struct hearth_node_layout);

/* Read the largest group of shards: shards of all data tables for one range of hashes. */
static enum hearth_status read_largest(struct hearth_pg *pg, struct hearth_arena *arena,
                                       struct hearth_node_layout *ret, struct hearth_err *err)
{
    const struct hearth_pg_query query = {
        .sql = "WITH g AS (SELECT d.shardminvalue, sum(c.shard_size)::int8 AS bytes,"
               " min(c.nodename || ':' || c.nodeport) AS node, max(c.shardid) FILTER (WHERE"
               " c.table_name = 'hearth_data.roll_state'::regclass) AS shard FROM"
               " pg_catalog.pg_dist_shard d JOIN (SELECT * FROM " SQL_PLACED ") c USING (shardid)"
               " GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 1)"
               " SELECT (SELECT count(*) FROM pg_catalog.pg_dist_partition p JOIN pg_class t ON"
               " t.oid = p.logicalrelid WHERE relreplident <> 'f' AND NOT EXISTS (SELECT 1 FROM"
               " pg_index WHERE indrelid = t.oid AND indisprimary) AND t.relnamespace ="
               " 'hearth_data'::regnamespace), bytes, node, (SELECT string_agg(name, ', ') FROM"
               " (SELECT name FROM hearth_data.service WHERE"
               " get_shard_id_for_distribution_column('hearth_data.roll_state', service_id) ="
               " g.shard ORDER BY name LIMIT 5) s) FROM g",
        .type = &largest_rows,
        .arena = arena};
    struct hearth_node_layout *found = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &found, &n, NULL, err));
    if (n > 0) {
        ret->n_unidentified = found->n_unidentified;
        ret->n_largest_bytes = found->n_largest_bytes;
        ret->largest_node = found->largest_node;
        ret->largest_services = found->largest_services;
    }

    return HEARTH_OK;
}

/* ---- tables ---- */

#define TABLE(kind, member) HEARTH_COLUMN(kind, struct hearth_data_table, member)
static const struct hearth_column table_columns[] = {
    TABLE(TEXT, table), TABLE(BOOL, is_distributed), TABLE(I64, n_bytes)};
static const struct hearth_row_type table_rows =
    HEARTH_ROW_TYPE(table_columns, struct hearth_data_table);

#define SQL_TABLES(is_distributed, bytes, from)                                                 \
    "SELECT whole.relname::text, " is_distributed ", coalesce(sum(" bytes "), 0)::int8 FROM"    \
    " pg_class part JOIN pg_class whole ON whole.oid = coalesce(pg_partition_root(part.oid),"   \
    " part.oid)" from " WHERE part.relnamespace = 'hearth_data'::regnamespace AND part.relkind" \
    " IN ('r', 'p') AND whole.relname = ANY ($1) GROUP BY 1 ORDER BY min(whole.relname::text) " \
    "COLLATE \"C\""

static const char SQL_TABLES_HERE[] = SQL_TABLES("0", "pg_total_relation_size(part.oid)", "");

static const char SQL_TABLES_ON_NODES[] = SQL_TABLES(
    "bool_or(d.logicalrelid IS NOT NULL)::int4",
    "CASE WHEN d.logicalrelid IS NULL THEN pg_total_relation_size(part.oid) ELSE s.bytes END",
    " LEFT JOIN pg_catalog.pg_dist_partition d ON d.logicalrelid = part.oid AND d.partmethod ="
    " 'h' LEFT JOIN (SELECT logicalrelid, sum(size) AS bytes FROM citus_shard_sizes() z JOIN"
    " pg_catalog.pg_dist_shard ON shardid = z.shard_id GROUP BY 1) s ON s.logicalrelid = part.oid");

static enum hearth_status read_data_tables(struct hearth_pg *pg, struct hearth_arena *arena,
                                           struct hearth_node_layout *ret, struct hearth_err *err)
{
    struct hearth_str names[HEARTH_ARRAY_LEN(NAMES)];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(NAMES); i++) {
        names[i] = hearth_str_c(NAMES[i]);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_text_array(&params, names, HEARTH_ARRAY_LEN(NAMES));
    const struct hearth_pg_query query = {.sql = ret->citus.n > 0 ? SQL_TABLES_ON_NODES
                                                                  : SQL_TABLES_HERE,
                                          .params = &params,
                                          .type = &table_rows,
                                          .arena = arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &ret->tables, &ret->n_tables, NULL, err));
    for (size_t i = 0; i < ret->n_tables; i++) {
        struct hearth_data_table *table = &ret->tables[i];
        ret->n_distributed += table->is_distributed;
        table->move_s =
            table->is_distributed ? 0 : table->n_bytes / HEARTH_MOVED_BYTES_PER_SECOND + 1;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_node_layout_read(struct hearth_pg *pg, struct hearth_arena *arena,
                                           struct hearth_node_layout *ret, struct hearth_err *err)
{
    *ret = (struct hearth_node_layout){0};
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname"
                              " = 'citus'), '')",
                              NULL, NULL, &result, NULL, err));
    ret->citus = hearth_arena_str(arena, hearth_pg_str(result, 0, 0));
    PQclear(result);
    if (ret->citus.p == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(read_data_tables(pg, arena, ret, err));
    if (ret->citus.n == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(read_nodes(pg, arena, ret, err));

    return ret->n_distributed > 0 ? read_largest(pg, arena, ret, err) : HEARTH_OK;
}

enum hearth_status hearth_store_node_layout(struct hearth_store *store, struct hearth_arena *arena,
                                            struct hearth_node_layout *ret, struct hearth_err *err)
{
    struct hearth_pg *pg = NULL;
    assert(store != NULL && arena != NULL && ret != NULL);

    HEARTH_TRY(hearth_store_check_open(store, err));
    HEARTH_TRY(hearth_pool_take(store->pool, NULL, &pg, err));
    enum hearth_status status = hearth_node_layout_read(pg, arena, ret, err);
    hearth_pool_give(store->pool, pg);

    return status;
}
