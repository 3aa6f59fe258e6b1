/* batch_prepared.c -- the pipeline of a small batch (contract: batch_prepared.h). */
#include "commit/batch_prepared.h"

#include "hearth/base/metrics.h"

#include "pg/store_state.h"
#include "read/stored_rows.h"

#include <assert.h>

/* A larger pipeline would fill the buffers of both sides; COPY is made for that. */
#define MAX_PIPELINE_BYTES ((size_t)1 << 20)
/* After a refusal: most batches that follow soon would be refused, too. */
#define SCRIPTS_AFTER_REFUSAL 100

#define CLAIM_SQL                                                                      \
    "INSERT INTO hearth_data.ingest_batch (service_id, writer_id, seq)"                \
    " SELECT service_id, $2::int4, $3::int8 FROM unnest($1::int4[]) AS s (service_id)" \
    " RETURNING pg_advisory_xact_lock_shared(" HEARTH_LOCK_INGEST ")"

/*
 * A refusal is a cast that fails, because that needs no function in the database. The text is what
 * PostgreSQL writes to its log.
 */

/* The snapshot is younger than the ingest lock. $2: the earliest profile of each service. */
#define WATERMARKS_SQL                                                                \
    "SELECT r.service_id, r.watermark, (CASE WHEN s.earliest >= r.watermark THEN '1'" \
    " ELSE 'hearthd sends this batch again: profiles are late' END)::int4"            \
    " FROM unnest($1::int4[], $2::int8[]) AS s (service_id, earliest)"                \
    " JOIN hearth_data.roll_state AS r USING (service_id) ORDER BY r.service_id"

/* An id of the last hour is left out, and then fewer are returned than there are. */
#define PUSH_IDS_SQL                                                                        \
    "WITH new AS (INSERT INTO hearth_data.push_id AS p (service_id, id_hash, at)"           \
    " SELECT service_id, id_hash, $3::int8 FROM unnest($1::int4[], $2::uuid[])"             \
    " AS s (service_id, id_hash) ON CONFLICT (service_id, id_hash)"                         \
    " DO UPDATE SET at = excluded.at WHERE p.at < excluded.at - 3600000000000 RETURNING 1)" \
    " SELECT (CASE WHEN count(*) = cardinality($1) THEN '1'"                                \
    " ELSE 'hearthd sends this batch again: ids of pushes repeat' END)::int4 FROM new"

/* ---- which batches ---- */

static size_t count_rows(const struct hearth_batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_items; i++) {
        n += batch->items[i].twin ? 0 : batch->items[i].item->n_rows;
    }
    return n;
}

static size_t count_copy_bytes(const struct hearth_batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_days; i++) {
        n += batch->days[i].rows.n + batch->days[i].chunks.n;
    }
    return n;
}

bool hearth_batch_is_small(const struct hearth_batch *batch, const struct hearth_pg *pg)
{
    bool is_plain = !batch->is_distributed && batch->catalog == NULL && !batch->with_late &&
                    batch->n_avoided == 0 && batch->n_spans == 0 && batch->n_originals == 0;

    return batch->statements != NULL && is_plain && pg->is_direct && !batch->in_doubt &&
           batch->statements->n_scripts == 0 && count_rows(batch) <= batch->max_small_rows &&
           count_copy_bytes(batch) <= MAX_PIPELINE_BYTES && batch->n_days == 1 &&
           hearth_statements_take_day(batch->statements, batch->days[0].day);
}

/* ---- claim, watermarks, push ids ---- */

/* The services, ascending, and the time of the earliest profile of each. Returns their number. */
static size_t list_services(const struct hearth_batch *batch, int32_t *services, int64_t *earliest)
{
    size_t n = 0;

    for (size_t i = 0; i < batch->n_dicts; i++) {
        if (n == 0 || services[n - 1] != batch->dicts[i].service_id) {
            services[n] = batch->dicts[i].service_id;
            earliest[n++] = INT64_MAX;
        }
    }

    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_push_item *item = batch->items[i].item;
        size_t at = 0;
        while (services[at] != item->service_id) {
            at++;
        }
        earliest[at] = item->ts_ns < earliest[at] ? item->ts_ns : earliest[at];
    }

    return n;
}

static enum hearth_status send_claim(struct hearth_batch *batch, struct hearth_statement_run *run)
{
    struct hearth_arena *arena = &batch->arena;
    int32_t *services = hearth_arena_array(arena, batch->n_dicts, sizeof services[0]);
    int64_t *earliest = hearth_arena_array(arena, batch->n_dicts, sizeof earliest[0]);
    struct hearth_pg_params params;
    if (services == NULL || earliest == NULL) {
        return HEARTH_FAIL_ARENA(run->err, arena);
    }

    size_t n = list_services(batch, services, earliest);
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, services, n);
    hearth_pg_param_i32(&params, batch->writer_id);
    hearth_pg_param_i64(&params, batch->seq);
    HEARTH_TRY(hearth_statements_run(run, HEARTH_STATEMENT_CLAIM, CLAIM_SQL, &params));

    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, services, n);
    hearth_pg_param_i64_array(&params, earliest, n);

    return hearth_statements_run(run, HEARTH_STATEMENT_WATERMARKS, WATERMARKS_SQL, &params);
}

static enum hearth_status send_push_ids(struct hearth_batch *batch,
                                        struct hearth_statement_run *run)
{
    struct hearth_arena *arena = &batch->arena;
    int32_t *services = hearth_arena_array(arena, batch->n_ids, sizeof services[0]);
    struct hearth_hash128 *hashes = hearth_arena_array(arena, batch->n_ids, sizeof hashes[0]);
    struct hearth_pg_params params;
    if (services == NULL || hashes == NULL) {
        return HEARTH_FAIL_ARENA(run->err, arena);
    }

    for (size_t i = 0; i < batch->n_ids; i++) {
        services[i] = batch->ids[i].service_id;
        hashes[i] = batch->ids[i].hash;
    }

    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, services, batch->n_ids);
    hearth_pg_param_uuid_array(&params, hashes, batch->n_ids);
    hearth_pg_param_i64(&params, batch->at_ns);

    return hearth_statements_run(run, HEARTH_STATEMENT_PUSH_IDS, PUSH_IDS_SQL, &params);
}

static enum hearth_status send_leaves(const struct hearth_batch *batch,
                                      struct hearth_statement_run *run)
{
    const struct hearth_batch_day *day = &batch->days[0];
    struct hearth_leaf_rows chunks = {
        .parent = "dict_chunk",
        .columns = HEARTH_CHUNK_COLUMNS,
        .n_columns = HEARTH_N_CHUNK_COLUMNS,
        .statement = HEARTH_STATEMENT_CHUNK,
        .most = 1,
        .bytes = hearth_buf_view(&day->chunks),
    };
    const struct hearth_leaf_rows profiles = {
        .parent = "profile",
        .columns = HEARTH_PROFILE_COLUMNS,
        .n_columns = HEARTH_N_PROFILE_COLUMNS,
        .statement = HEARTH_STATEMENT_ROWS,
        .most = HEARTH_MAX_INSERT_ROWS,
        .bytes = hearth_buf_view(&day->rows),
        .n = count_rows(batch),
    };

    for (size_t i = 0; i < batch->n_dicts; i++) {
        chunks.n += batch->dicts[i].cut ? 1 : 0;
    }
    HEARTH_TRY(hearth_statements_insert(run, &chunks));

    return hearth_statements_insert(run, &profiles);
}

/* ---- attempts ---- */

static enum hearth_status send_statements(struct hearth_batch *batch,
                                          struct hearth_statement_run *run)
{
    HEARTH_TRY(hearth_pg_pipeline_begin(run->pg, run->ret_fault, run->err));
    HEARTH_TRY(send_claim(batch, run));
    if (batch->n_ids > 0) {
        HEARTH_TRY(send_push_ids(batch, run));
    }
    HEARTH_TRY(send_leaves(batch, run));
    batch->in_doubt = true; /* it can be committed as soon as the end is sent */

    return hearth_pg_pipeline_end(run->pg, run->ret_fault, run->err);
}

static void take_binary_watermarks(struct hearth_batch *batch, const PGresult *result)
{
    batch->n_marks = 0;
    for (int row = 0; row < PQntuples(result) && batch->n_marks < batch->n_dicts; row++) {
        batch->marks[batch->n_marks++] = (struct hearth_batch_mark){
            .service_id = hearth_pg_i32(result, row, 0),
            .watermark_ns = hearth_pg_i64(result, row, 1),
        };
    }
}

static enum hearth_status take_results(struct hearth_batch *batch, struct hearth_statement_run *run)
{
    unsigned n_answers = 0; /* those of the claim and of the watermarks are the first two */

    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_pipeline_next(run->pg, &result, run->ret_fault, run->err));
        if (result == NULL) {
            return HEARTH_OK;
        }
        n_answers += PQresultStatus(result) == PGRES_TUPLES_OK;
        if (n_answers == 2 && PQnfields(result) > 1) {
            take_binary_watermarks(batch, result);
        }
        PQclear(result);
    }
}

enum hearth_status hearth_batch_send_small(struct hearth_batch *batch, struct hearth_pg *pg,
                                           bool *ret_refused, enum hearth_pg_fault *ret_fault,
                                           struct hearth_err *err)
{
    assert(hearth_batch_is_small(batch, pg));

    struct hearth_statement_run run = {.statements = batch->statements,
                                       .pg = pg,
                                       .day = batch->days[0].day,
                                       .ret_fault = ret_fault,
                                       .err = err};

    *ret_refused = false;
    HEARTH_TRY(hearth_statements_choose(&run));
    enum hearth_status status = send_statements(batch, &run);

    /* What was sent cannot be taken back, except by closing the connection. */
    if (status != HEARTH_OK) {
        *ret_fault = HEARTH_PG_FAULT_CONNECTION;
        hearth_pg_close(pg);
        return status;
    }

    status = take_results(batch, &run);
    if (status == HEARTH_OK) {
        hearth_metric_add(HEARTH_M_BATCHES_PREPARED, 1);
        hearth_statements_keep(&run);
        for (size_t i = 0; i < batch->n_items; i++) {
            batch->items[i].repeated = false;
        }
        return HEARTH_OK;
    }

    if (pg->conn == NULL) {
        return status;
    }

    /* PostgreSQL has answered: nothing is stored. */
    hearth_metric_add(HEARTH_M_BATCHES_REFUSED, 1);
    batch->in_doubt = false;
    batch->statements->n_scripts = SCRIPTS_AFTER_REFUSAL;
    HEARTH_TRY(hearth_statements_drop(&run));
    *ret_refused = true;

    return status;
}
