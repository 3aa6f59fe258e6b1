/*
 * batch_shards.c -- the shards whose tables a batch for a node names.
 *
 * On its node, a shard is an ordinary table, which PostgreSQL plans and copies to alone; Citus
 * takes much longer. But Citus moves a shard to another node while writers go on, and holds only
 * those up at the end that have a lock of its own. So the first statement inserts a row into each
 * shard through Citus, which locks it until the end of the transaction. The next one, whose
 * snapshot is younger than the locks, counts the shards that the node still has by Citus'
 * catalogues. A move that ended before is seen by it; one that ends later waits for the
 * transaction. All data tables of a shard move together, and share the lock.
 *
 * If shards are missing, or a statement is refused, nothing is stored, and the batch is sent again
 * with the names of the data tables (docs/decisions/0044-connections-to-nodes.md).
 */
#include "hearth/base/metrics.h"

#include "commit/batch.h"
#include "pg/nodes.h"
#include "read/node_parts.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- finding ---- */

static int64_t id_of(const struct hearth_shard *shard)
{
    return shard->ids[HEARTH_SHARD_ROLL_STATE];
}

static int compare_shards(const void *left, const void *right)
{
    int64_t a = id_of(left), b = id_of(right);

    return (a > b) - (a < b);
}

/* Read the shard of each dictionary. Returns whether all are known and lie on the node. */
static bool look_up_shards(const struct hearth_batch *batch, unsigned node,
                           struct hearth_shard *shard_of)
{
    for (size_t i = 0; i < batch->n_dicts; i++) {
        struct hearth_node_place place;
        if (i > 0 && batch->dicts[i].service_id == batch->dicts[i - 1].service_id) {
            shard_of[i] = shard_of[i - 1];
            continue;
        }
        hearth_nodes_find_place(batch->nodes, batch->dicts[i].service_id, &place);
        if (place.node != node || !place.has_shard) {
            return false;
        }
        shard_of[i] = place.shard;
    }

    return true;
}

/* Take over the distinct shards, sorted. */
static void collect_shards(struct hearth_batch *batch, const struct hearth_shard *shard_of)
{
    memcpy(batch->shards, shard_of, batch->n_dicts * sizeof shard_of[0]);
    qsort(batch->shards, batch->n_dicts, sizeof shard_of[0], compare_shards);
    for (size_t i = 0; i < batch->n_dicts; i++) {
        size_t n = batch->n_shards;
        if (n == 0 || id_of(&batch->shards[n - 1]) != id_of(&batch->shards[i])) {
            batch->shards[batch->n_shards++] = batch->shards[i];
        }
    }

    for (size_t i = batch->n_dicts; i-- > 0;) {
        const struct hearth_shard *found = bsearch(&shard_of[i], batch->shards, batch->n_shards,
                                                   sizeof shard_of[0], compare_shards);
        HEARTH_ASSERT(found != NULL);
        batch->dicts[i].shard = (size_t)(found - batch->shards);
        batch->first_of_shard[batch->dicts[i].shard] = i;
    }
}

static void place_items(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_push_item *item = batch->items[i].item;
        const struct hearth_batch_dict key = {.service_id = item->service_id, .dict = item->dict};
        const struct hearth_batch_dict *found =
            bsearch(&key, batch->dicts, batch->n_dicts, sizeof key, hearth_batch_compare_dicts);
        HEARTH_ASSERT(found != NULL);
        batch->items[i].shard = found->shard;
    }
}

enum hearth_status hearth_batch_find_shards(struct hearth_batch *batch, unsigned node,
                                            struct hearth_err *err)
{
    if (batch->nodes == NULL || !batch->is_distributed) {
        return HEARTH_OK;
    }

    struct hearth_arena *arena = &batch->arena;
    struct hearth_shard *shard_of = hearth_arena_array(arena, batch->n_dicts, sizeof shard_of[0]);
    batch->shards = hearth_arena_array(arena, batch->n_dicts, sizeof batch->shards[0]);
    batch->first_of_shard = hearth_arena_array(arena, batch->n_dicts, sizeof(size_t));
    if (shard_of == NULL || batch->shards == NULL || batch->first_of_shard == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (look_up_shards(batch, node, shard_of)) {
        collect_shards(batch, shard_of);
        place_items(batch);
    }

    return HEARTH_OK;
}

/* ---- script ---- */

static void select_watermarks(struct hearth_batch *batch, size_t shard)
{
    struct hearth_buf *out = &batch->script;
    int32_t last = 0; /* no service */

    hearth_buf_cstr(out, " UNION ALL SELECT service_id, watermark FROM ");
    hearth_shard_name(out, HEARTH_SHARD_ROLL_STATE, &batch->shards[shard]);
    hearth_buf_cstr(out, " WHERE service_id = ANY ('{");
    for (size_t i = batch->first_of_shard[shard]; i < batch->n_dicts; i++) {
        const struct hearth_batch_dict *dict = &batch->dicts[i];
        if (dict->shard == shard && dict->service_id != last) {
            hearth_buf_printf(out, "%s%" PRId32, last == 0 ? "" : ",", dict->service_id);
            last = dict->service_id;
        }
    }
    hearth_buf_cstr(out, "}')");
}

/* The coordinator, which may take over from a node, is a group without these shards. */
void hearth_batch_select_from_shards(struct hearth_batch *batch)
{
    struct hearth_buf *out = &batch->script;

    hearth_buf_cstr(out, "SELECT 0 AS service_id, count(*) AS watermark FROM"
                         " pg_catalog.pg_dist_placement WHERE groupid = (SELECT groupid FROM"
                         " pg_catalog.pg_dist_local_group) AND shardid = ANY ('{");
    for (size_t i = 0; i < batch->n_shards; i++) {
        hearth_buf_printf(out, "%s%" PRId64, i == 0 ? "" : ",", id_of(&batch->shards[i]));
    }
    hearth_buf_cstr(out, "}')");
    for (size_t i = 0; i < batch->n_shards; i++) {
        select_watermarks(batch, i);
    }
    hearth_buf_cstr(out, " ORDER BY service_id;");
}

/* ---- attempts ---- */

bool hearth_batch_blames_shards(const struct hearth_batch *batch, enum hearth_pg_fault fault)
{
    bool is_refused = batch->n_results >= HEARTH_BATCH_CLAIMED &&
                      batch->catalog_status == HEARTH_OK &&
                      (fault == HEARTH_PG_FAULT_MISSING_TABLE || fault == HEARTH_PG_FAULT_OTHER);

    return batch->n_shards > 0 && (batch->has_moved || is_refused);
}

enum hearth_status hearth_batch_leave_shards(struct hearth_batch *batch, struct hearth_err *err)
{
    for (size_t i = 0; i < batch->n_dicts; i++) {
        batch->dicts[i].shard = 0;
    }
    for (size_t i = 0; i < batch->n_items; i++) {
        batch->items[i].shard = 0;
    }
    batch->n_shards = 0;
    hearth_nodes_suspect(batch->nodes);
    hearth_metric_add(HEARTH_M_BATCHES_SHARDS_LEFT, 1);

    return hearth_batch_write_script(batch, err);
}
