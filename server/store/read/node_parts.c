/* node_parts.c -- the services of a read, divided by nodes (contract: node_parts.h). */
#include "read/node_parts.h"

#include "pg/node_reads.h"
#include "pg/nodes.h"
#include "pg/store_state.h"

#include <assert.h>

/* ---- dividing ---- */

/* Return the index of the shard in the part, which has it afterwards. */
static size_t add_shard(struct hearth_node_part *part, const struct hearth_shard *shard)
{
    size_t i = 0;
    while (i < part->n_shards && part->shards[i].ids[0] != shard->ids[0]) {
        i++;
    }

    if (i == part->n_shards) {
        part->shards[part->n_shards++] = *shard;
    }

    return i;
}

/* Make the part of a node, which has n_own of the services; `places` are those of all. */
static bool make_part(struct hearth_node_part *part, size_t n_own, const int32_t *services,
                      const struct hearth_node_place *places, size_t n, struct hearth_arena *arena)
{
    int32_t *own = hearth_arena_array(arena, n_own, sizeof own[0]);
    size_t *shard_of = hearth_arena_array(arena, n_own, sizeof shard_of[0]);
    part->shards = hearth_arena_array(arena, n_own, sizeof part->shards[0]);
    if (own == NULL || shard_of == NULL || part->shards == NULL) {
        return false;
    }

    bool has_shards = true;
    for (size_t i = 0; i < n; i++) {
        if (places[i].node == part->node) {
            has_shards = has_shards && places[i].has_shard;
            own[part->n_services] = services[i];
            shard_of[part->n_services++] = has_shards ? add_shard(part, &places[i].shard) : 0;
        }
    }

    part->services = own;
    part->shard_of = has_shards ? shard_of : NULL;
    part->n_shards = has_shards ? part->n_shards : 0;

    return true;
}

enum hearth_status hearth_node_parts(struct hearth_store *store, const int32_t *services, size_t n,
                                     struct hearth_arena *arena, struct hearth_node_part **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    *ret = NULL;
    *ret_n = 0;
    if (store->nodes == NULL || n == 0) {
        return HEARTH_OK;
    }

    struct hearth_node_place *places = hearth_arena_array(arena, n, sizeof places[0]);
    *ret = hearth_arena_calloc(arena, HEARTH_MAX_NODES + 1, sizeof(*ret)[0]);
    if (places == NULL || *ret == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_of[HEARTH_MAX_NODES + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        hearth_nodes_find_place(store->nodes, services[i], &places[i]);
        n_of[places[i].node]++;
    }

    for (unsigned node = 0; node <= HEARTH_MAX_NODES; node++) {
        if (n_of[node] > 0) {
            struct hearth_node_part *part = &(*ret)[(*ret_n)++];
            part->node = node;
            if (!make_part(part, n_of[node], services, places, n, arena)) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }

    return HEARTH_OK;
}

/* ---- text ---- */

void hearth_node_part_count(struct hearth_buf *sql, const struct hearth_node_part *part)
{
    assert(part->n_shards > 0);

    /* All tables of a shard move together; those of one table stand for all. */
    hearth_buf_printf(sql,
                      " FROM pg_catalog.pg_dist_placement WHERE groupid = %d AND shardid = ANY ('{",
                      (int)part->shards[0].group);
    for (size_t i = 0; i < part->n_shards; i++) {
        hearth_buf_printf(sql, "%s%lld", i == 0 ? "" : ",",
                          (long long)part->shards[i].ids[HEARTH_SHARD_ROLL_STATE]);
    }
    hearth_buf_cstr(sql, "}'::int8[])");
}

void hearth_shard_name(struct hearth_buf *sql, unsigned table, const struct hearth_shard *shard)
{
    hearth_buf_printf(sql, "hearth_data.%s", hearth_shard_table(table));
    if (shard != NULL) {
        hearth_buf_printf(sql, "_%lld", (long long)shard->ids[table]);
    }
}

/* ---- reading ---- */

enum hearth_status hearth_node_part_read(const struct hearth_store_reader *reader,
                                         const struct hearth_node_part *part, const bool *is_stale,
                                         bool *ret_done, struct hearth_err *err)
{
    struct hearth_err failure = HEARTH_ERR_INIT;
    enum hearth_status status = hearth_node_read(reader, part->node, NULL, ret_done, &failure);

    if (*is_stale) {
        *ret_done = false;
        hearth_nodes_suspect(reader->scope->store->nodes);
        return hearth_cancel_check(reader->scope->cancel, err);
    }

    if (status != HEARTH_OK && err != NULL) {
        *err = failure;
    }

    return status;
}
