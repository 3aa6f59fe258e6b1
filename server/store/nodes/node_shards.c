/* node_shards.c -- what Citus' catalogues say about shards and nodes (contract: node_shards.h). */
#include "nodes/node_shards.h"

#include "pg/pg_rows.h"

#include <assert.h>

/* ---- the place of a service ---- */

static uint32_t rotate(uint32_t value, int n)
{
    return value << n | value >> (32 - n);
}

/*
 * Citus places a row by PostgreSQL's hash of its service_id, which is the same in all versions,
 * because hash partitions on disk depend on it: the final mix of Bob Jenkins' lookup3 (public
 * domain). Computed here, so that no push of a service needs a statement to be placed.
 */
static int32_t hash_service(int32_t service_id)
{
    uint32_t a = 0x9e3779b9u + 4 + 3923095, b = a, c = a;

    a += (uint32_t)service_id;
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    c = (c ^ b) - rotate(b, 24);

    return (int32_t)c;
}

const struct hearth_node_range *hearth_node_find_range(const struct hearth_node_range *ranges,
                                                       size_t n, int32_t service_id)
{
    int32_t hash = hash_service(service_id);
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ranges[mid].first_hash <= hash) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low == 0 ? NULL : &ranges[low - 1];
}

unsigned hearth_node_in_ranges(const struct hearth_node_range *ranges, size_t n, int32_t service_id)
{
    const struct hearth_node_range *range = hearth_node_find_range(ranges, n, service_id);

    return range == NULL ? 0 : range->node;
}

/* ---- shards ---- */

#define N_SAMPLES "64" /* services whose place is compared */

static const char *const TABLES[HEARTH_N_SHARD_TABLES] = {
    [HEARTH_SOURCE_PROFILE] = "profile",    [HEARTH_SOURCE_LATE] = "profile_late",
    [HEARTH_SOURCE_SEGMENT] = "segment",    [HEARTH_SOURCE_TOTALS] = "hour_totals",
    [HEARTH_SOURCE_ROLL_10M] = "roll_10m",  [HEARTH_SOURCE_ROLL_1H] = "roll_1h",
    [HEARTH_SOURCE_ROLL_1D] = "roll_1d",    [HEARTH_SHARD_ROLL_STATE] = "roll_state",
    [HEARTH_SHARD_TOMBSTONE] = "tombstone", [HEARTH_SHARD_DICT_CHUNK] = "dict_chunk",
    [HEARTH_SHARD_PUSH_ID] = "push_id",     [HEARTH_SHARD_INGEST_BATCH] = "ingest_batch",
};

const char *hearth_shard_table(unsigned table)
{
    assert(table < HEARTH_N_SHARD_TABLES);
    return TABLES[table];
}

#define SHARD(kind, member) HEARTH_COLUMN(kind, struct hearth_node_shard, member)
static const struct hearth_column shard_columns[] = {
    SHARD(I32, first_hash),
    SHARD(I32, group),
    SHARD(TEXT, host),
    SHARD(I32, port),
    SHARD(BOOL, is_usable),
    SHARD(I64, n_copies),
    HEARTH_COLUMN_LIST(I64S, struct hearth_node_shard, ids, n_ids)};
static const struct hearth_row_type shard_rows =
    HEARTH_ROW_TYPE(shard_columns, struct hearth_node_shard);

enum hearth_status hearth_node_shards_read(struct hearth_pg *pg, struct hearth_arena *arena,
                                           struct hearth_node_shard **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct hearth_str names[HEARTH_N_SHARD_TABLES];
    for (unsigned i = 0; i < HEARTH_N_SHARD_TABLES; i++) {
        names[i] = hearth_str_c(TABLES[i]);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_text_array(&params, names, HEARTH_N_SHARD_TABLES);

    /* A shard with several copies is written through the coordinator, which writes all of them. */
    const struct hearth_pg_query query = {
        .sql = "SELECT q.*, ARRAY(SELECT x.shardid FROM unnest($1::text[]) WITH ORDINALITY t (name,"
               " at) JOIN pg_catalog.pg_class c ON c.relname = t.name AND c.relnamespace ="
               " 'hearth_data'::regnamespace JOIN pg_catalog.pg_dist_shard x ON x.logicalrelid ="
               " c.oid AND x.shardminvalue::int4 = q.first_hash ORDER BY t.at) FROM (SELECT"
               " s.shardminvalue::int4 AS first_hash, coalesce(min(n.groupid), 0)::int4,"
               " coalesce(min(n.nodename), '')::text, coalesce(min(n.nodeport), 0)::int4,"
               " coalesce(bool_and(n.isactive AND n.hasmetadata AND n.metadatasynced),"
               " false)::int4, count(*) FROM pg_catalog.pg_dist_shard s JOIN "
               "pg_catalog.pg_dist_placement p"
               " USING (shardid) LEFT JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND"
               " n.groupid <> 0 AND n.noderole = 'primary' WHERE s.logicalrelid ="
               " 'hearth_data.roll_state'::regclass GROUP BY 1) q ORDER BY 1",
        .params = &params,
        .type = &shard_rows,
        .arena = arena};

    return hearth_pg_select(pg, &query, ret, ret_n, NULL, err);
}

/* A service and the first hash of the shard that Citus chose for it. */
struct sample {
    int32_t service_id, first_hash;
};

#define SAMPLE(kind, member) HEARTH_COLUMN(kind, struct sample, member)
static const struct hearth_column sample_columns[] = {SAMPLE(I32, service_id),
                                                      SAMPLE(I32, first_hash)};
static const struct hearth_row_type sample_rows = HEARTH_ROW_TYPE(sample_columns, struct sample);

enum hearth_status hearth_node_shards_check(struct hearth_pg *pg, struct hearth_arena *arena,
                                            const struct hearth_node_range *ranges, size_t n_ranges,
                                            struct hearth_err *err)
{
    const struct hearth_pg_query query = {
        .sql = "SELECT g::int4, s.shardminvalue::int4 FROM generate_series(1, " N_SAMPLES ") g"
               " JOIN pg_catalog.pg_dist_shard s ON s.shardid ="
               " get_shard_id_for_distribution_column('hearth_data.roll_state', g)",
        .type = &sample_rows,
        .arena = arena};
    struct sample *samples = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &samples, &n, NULL, err));

    for (size_t i = 0; i < n; i++) {
        const struct hearth_node_range *range =
            hearth_node_find_range(ranges, n_ranges, samples[i].service_id);
        if (range == NULL || range->first_hash != samples[i].first_hash) {
            return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                               "Citus places service %d otherwise than hearthd expects: all "
                               "statements go through the coordinator",
                               (int)samples[i].service_id);
        }
    }

    return HEARTH_OK;
}
