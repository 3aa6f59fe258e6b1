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
 *
 * The INSERT through Citus is half of a small script. On a direct connection, Citus' own function
 * for moves takes the locks in its place, if it takes all that the INSERT takes: each connection
 * finds that out. PostgreSQL alone then inserts one row into a shard of ingest_batch.
 *
 * To plan the count and the watermarks costs more than to run them. So, on a direct connection,
 * there is a prepared statement for each shard, with both. It is planned again, and finds its table
 * by the name, when that table is another one: a shard may move away and come back.
 */
#include "hearth/base/metrics.h"

#include "commit/batch.h"
#include "commit/commit_statements.h"
#include "nodes/nodes.h"
#include "read/node_parts.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- finding ---- */

int hearth_batch_compare_dicts(const void *left, const void *right)
{
    const struct hearth_batch_dict *a = left, *b = right;
    uintptr_t first = (uintptr_t)a->dict, second = (uintptr_t)b->dict;

    return a->service_id != b->service_id ? (a->service_id > b->service_id ? 1 : -1)
                                          : (first > second) - (first < second);
}

static int compare_shards(const void *left, const void *right)
{
    int64_t a = hearth_shard_id(left), b = hearth_shard_id(right);

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
        if (n == 0 ||
            hearth_shard_id(&batch->shards[n - 1]) != hearth_shard_id(&batch->shards[i])) {
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
        batch->is_prepared = batch->statements != NULL && batch->statements->n_shards > 0;
        batch->locks_shards =
            batch->is_prepared && batch->statements->locks == HEARTH_LOCKS_BY_FUNCTION;
    }

    return HEARTH_OK;
}

/* ---- prepared statements ---- */

static bool has_statement(const struct hearth_commit_statements *statements, int64_t shard)
{
    bool has = false;
    for (size_t i = 0; i < statements->n_shards && !has; i++) {
        has = statements->shards[i] == shard;
    }
    return has;
}

static size_t count_missing(const struct hearth_batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_shards; i++) {
        n += !has_statement(batch->statements, hearth_shard_id(&batch->shards[i]));
    }
    return n;
}

static void write_prepare(struct hearth_buf *out, const struct hearth_shard *shard)
{
    hearth_buf_printf(
        out, "PREPARE hearth_shard_%" PRId64 " (int4[]) AS " HEARTH_SELECT_PLACED "%" PRId64,
        hearth_shard_id(shard), hearth_shard_id(shard));
    hearth_batch_select_watermarks(out, shard);
    hearth_buf_cstr(out, "$1);");
}

/* Prepare the statements that are missing, at least one. What was prepared outlasts a ROLLBACK. */
static enum hearth_status prepare_missing(struct hearth_batch *batch, struct hearth_pg *pg,
                                          enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_commit_statements *statements = batch->statements;
    size_t n = statements->n_shards;
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf sql;

    hearth_buf_init(&sql, 0);
    hearth_buf_cstr(&sql, n == 0 ? "DEALLOCATE ALL;" : "");
    for (size_t i = 0; i < batch->n_shards; i++) {
        if (!has_statement(statements, hearth_shard_id(&batch->shards[i]))) {
            write_prepare(&sql, &batch->shards[i]);
            statements->shards[n++] = hearth_shard_id(&batch->shards[i]);
        }
    }
    hearth_buf_byte(&sql, '\0');
    if (hearth_buf_failed(&sql)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the statements of shards");
    }

    statements->n_shards = 0; /* if it fails, some are there */
    HEARTH_TRY(hearth_pg_script(pg, sql.p, ret_fault, err));
    statements->n_shards = n;

    return HEARTH_OK;
}

/* ---- locks ---- */

#define OWN_LOCKS                                                       \
    " FROM pg_catalog.pg_locks WHERE pid = pg_catalog.pg_backend_pid()" \
    " AND locktype NOT IN ('relation', 'transactionid', 'virtualxid');"
#define KEEP_NUMBER_OF_LOCKS \
    "SELECT pg_catalog.set_config('hearth.n_locks', count(*)::text, true)" OWN_LOCKS
#define COMPARE_NUMBER_OF_LOCKS                                                             \
    "SELECT CASE WHEN pg_catalog.current_setting('hearth.n_locks') = count(*)::text THEN 0" \
    " ELSE CAST('hearthd locks shards by an INSERT, which takes another number of locks: '" \
    " || count(*) AS integer) END" OWN_LOCKS

/*
 * Append a transaction that takes the locks by the function, then by an INSERT through Citus, and
 * fails if there are more then, by a cast of a text.
 */
static void write_try_locks(const struct hearth_batch *batch, struct hearth_buf *out)
{
    hearth_buf_cstr(out, "BEGIN;SELECT pg_catalog.lock_shard_metadata(" HEARTH_SHARE_LOCK ",");
    hearth_batch_write_shard_ids(batch, out);
    hearth_buf_cstr(out, ");" KEEP_NUMBER_OF_LOCKS);

    /* The row of each shard is rolled back. */
    hearth_buf_cstr(out,
                    "INSERT INTO hearth_data.ingest_batch (service_id, writer_id, seq) VALUES ");
    for (size_t i = 0; i < batch->n_shards; i++) {
        hearth_buf_printf(out, "%s(%" PRId32 ",%" PRId32 ",-1)", i == 0 ? "" : ",",
                          batch->dicts[batch->first_of_shard[i]].service_id, batch->writer_id);
    }
    hearth_buf_cstr(out, ";" COMPARE_NUMBER_OF_LOCKS "ROLLBACK");
    hearth_buf_byte(out, '\0');
}

/* Only a lost connection is a failure. */
static enum hearth_status try_locks(struct hearth_batch *batch, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf sql;

    hearth_buf_init(&sql, 0);
    write_try_locks(batch, &sql);
    enum hearth_status status = HEARTH_NO_MEMORY;
    if (!hearth_buf_failed(&sql)) {
        status = hearth_pg_script(pg, sql.p, ret_fault, err);
    }

    if (status != HEARTH_OK) {
        hearth_pg_rollback(pg);
    }

    batch->statements->locks =
        status == HEARTH_OK ? HEARTH_LOCKS_BY_FUNCTION : HEARTH_LOCKS_BY_INSERT;

    return pg->conn == NULL ? status : HEARTH_OK;
}

/* ---- before a send ---- */

/* Whether statements are used. Those of another connection, and too many, are forgotten. */
static bool may_prepare(const struct hearth_batch *batch, const struct hearth_pg *pg)
{
    struct hearth_commit_statements *statements = batch->statements;

    if (statements == NULL || batch->max_small_rows == 0 || !pg->is_direct ||
        batch->n_shards == 0 || batch->n_shards > HEARTH_MAX_PREPARED_SHARDS) {
        return false;
    }

    if (statements->n_connects != pg->n_connects ||
        statements->n_shards + count_missing(batch) > HEARTH_MAX_PREPARED_SHARDS) {
        statements->n_connects = pg->n_connects;
        statements->prepared = 0;
        statements->n_shards = 0;
        statements->locks = HEARTH_LOCKS_NOT_TRIED;
    }

    return true;
}

enum hearth_status hearth_batch_prepare_shards(struct hearth_batch *batch, struct hearth_pg *pg,
                                               enum hearth_pg_fault *ret_fault,
                                               struct hearth_err *err)
{
    bool is_prepared = may_prepare(batch, pg);
    if (is_prepared && count_missing(batch) > 0) {
        enum hearth_status status = prepare_missing(batch, pg, ret_fault, err);
        if (pg->conn == NULL) {
            return status;
        }
        is_prepared = status == HEARTH_OK; /* a table that is missing: the script finds out */
    }

    if (is_prepared && batch->statements->locks == HEARTH_LOCKS_NOT_TRIED) {
        HEARTH_TRY(try_locks(batch, pg, ret_fault, err));
    }

    bool locks = is_prepared && batch->statements->locks == HEARTH_LOCKS_BY_FUNCTION;
    if (is_prepared == batch->is_prepared && locks == batch->locks_shards) {
        return HEARTH_OK;
    }

    batch->is_prepared = is_prepared;
    batch->locks_shards = locks;
    *ret_fault = HEARTH_PG_FAULT_RETRY; /* of a failure */

    return hearth_batch_write_script(batch, err);
}

/* ---- attempts ---- */

bool hearth_batch_blames_shards(const struct hearth_batch *batch, enum hearth_pg_fault fault)
{
    bool is_refused = (batch->n_results >= HEARTH_BATCH_CLAIMED || batch->locks_shards) &&
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
    batch->is_prepared = batch->locks_shards = false;
    if (batch->statements != NULL) {
        batch->statements->n_shards = 0; /* they may be the reason */
        batch->statements->locks = HEARTH_LOCKS_NOT_TRIED;
    }
    hearth_nodes_suspect(batch->nodes);
    hearth_metric_add(HEARTH_M_BATCHES_SHARDS_LEFT, 1);

    return hearth_batch_write_script(batch, err);
}
