/* node_shards.c -- what Citus' catalogues say about shards and nodes (contract: node_shards.h). */
#include "pg/node_shards.h"

#include "pg/pg_rows.h"

#define N_SAMPLES "64" /* services whose place is compared */

#define SHARD(kind, member) HEARTH_COLUMN(kind, struct hearth_node_shard, member)
static const struct hearth_column shard_columns[] = {SHARD(I32, first_hash), SHARD(I32, group),
                                                     SHARD(TEXT, host),      SHARD(I32, port),
                                                     SHARD(BOOL, is_usable), SHARD(I64, n_copies)};
static const struct hearth_row_type shard_rows =
    HEARTH_ROW_TYPE(shard_columns, struct hearth_node_shard);

enum hearth_status hearth_node_shards_read(struct hearth_pg *pg, struct hearth_arena *arena,
                                           struct hearth_node_shard **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    /* A shard with several copies is written through the coordinator, which writes all of them. */
    const struct hearth_pg_query query = {
        .sql = "SELECT s.shardminvalue::int4, coalesce(min(n.groupid), 0)::int4,"
               " coalesce(min(n.nodename), '')::text, coalesce(min(n.nodeport), 0)::int4,"
               " coalesce(bool_and(n.isactive AND n.hasmetadata AND n.metadatasynced),"
               " false)::int4, count(*) FROM pg_catalog.pg_dist_shard s JOIN "
               "pg_catalog.pg_dist_placement p"
               " USING (shardid) LEFT JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND"
               " n.groupid <> 0 AND n.noderole = 'primary' WHERE s.logicalrelid = "
               "'hearth_data.roll_state'::regclass"
               " GROUP BY 1 ORDER BY 1",
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
