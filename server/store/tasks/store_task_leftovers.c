/*
 * store_task_leftovers.c -- reads stored results of tasks that have not become profiles (contract:
 * hearth/store/task_results.h).
 *
 * Their server was lost in between, or its push failed. Agents do not send acknowledged data again.
 * The key of a part's profile follows from the part's row, so every server that finds the part
 * makes the same push.
 */
#include "hearth/store/task_results.h"

#include "pg/queries.h"
#include "session/statements.h"
#include "tasks/task_chunks.h"

#include <assert.h>

/* ---- stack traces ---- */

/* A flush, and the columns of its one part. */
struct left_flush {
    struct hearth_task_flush flush;
    int32_t part;
    struct hearth_str payload;
};

#define LEFT_FLUSH(kind, member) HEARTH_COLUMN(kind, struct left_flush, member)
static const struct hearth_column left_flush_columns[] = {
    LEFT_FLUSH(I32, flush.service_id),    LEFT_FLUSH(I64, flush.schedule_no),
    LEFT_FLUSH(I64, flush.at_ms),         LEFT_FLUSH(I32, part),
    LEFT_FLUSH(BYTES, payload),           LEFT_FLUSH(TEXT, flush.schedule_id),
    LEFT_FLUSH(TEXT, flush.task_id),      LEFT_FLUSH(TEXT, flush.process_id),
    LEFT_FLUSH(I64, flush.start_ms),      LEFT_FLUSH(TEXT, flush.service),
    LEFT_FLUSH(TEXT, flush.instance),     LEFT_FLUSH(TEXT, flush.process),
    LEFT_FLUSH(TEXT, flush.task_service), LEFT_FLUSH(I64, flush.previous_ms),
};
static const struct hearth_row_type left_flush_rows =
    HEARTH_ROW_TYPE(left_flush_columns, struct left_flush);

/* Makes a flush of a row, with its one part, in the arena; without the part if that is damaged. */
static enum hearth_status unpack_left_flush(const struct left_flush *left,
                                            struct hearth_inflater *inflater,
                                            struct hearth_arena *arena,
                                            struct hearth_task_flush *ret, struct hearth_err *err)
{
    struct hearth_task_part *part = hearth_arena_calloc(arena, 1, sizeof *part);
    if (part == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Unpack the part. */
    *ret = left->flush;
    part->part = left->part;
    enum hearth_status status =
        hearth_task_chunk_unpack(inflater, left->payload, arena, &part->chunk, err);
    if (status != HEARTH_OK) {
        return status == HEARTH_CORRUPT ? HEARTH_OK : status;
    }

    /* Add it to the flush. */
    part->hash = hearth_task_chunk_hash(&part->chunk);
    ret->parts = part;
    ret->n_parts = 1;
    ret->chunk = &part->chunk;

    return HEARTH_OK;
}

enum hearth_status hearth_store_task_flushes_left(const struct hearth_scope *scope,
                                                  const struct hearth_task_range *range,
                                                  size_t limit, struct hearth_task_flush **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    assert(scope->arena != NULL && limit > 0);

    /* Read the rows. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, range->from_ms);
    hearth_pg_param_i64(&params, range->to_ms);
    hearth_pg_param_i64(&params, (int64_t)limit);

    struct left_flush *left;
    size_t n;
    HEARTH_TRY(hearth_store_select(scope, hearth_sql_select_left_task_flushes, &params,
                                   &left_flush_rows, &left, &n, err));
    struct hearth_task_flush *flushes = hearth_arena_array(scope->arena, n, sizeof *flushes);
    if (flushes == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    /* Unpack them. */
    struct hearth_inflater *inflater = hearth_inflater_new();
    if (inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read stack traces");
    }

    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        status = unpack_left_flush(&left[i], inflater, scope->arena, &flushes[i], err);
    }

    hearth_inflater_free(inflater);
    HEARTH_TRY(status);

    *ret = flushes;
    *ret_n = n;

    return HEARTH_OK;
}

/* ---- tenants and files ---- */

/*
 * Tenants with parts that are not pushed, and files that are not pushed. If there are more than 20
 * files, these are chosen at random: files whose push fails each time must not hold up the others.
 * $1 from, $2 to. By the partial indexes on such rows.
 */
static const char SQL_LEFT[] =
    "(SELECT DISTINCT t.name, '' FROM hearth_data.task_stack_chunk c"
    "  JOIN hearth_data.task_schedule d USING (schedule_no)"
    "  JOIN hearth_data.tenant t USING (tenant_id)"
    "  WHERE NOT c.is_pushed AND c.at BETWEEN $1 AND $2)"
    " UNION ALL (SELECT t.name, u.upload_id FROM hearth_data.task_upload u"
    "  JOIN hearth_data.tenant t USING (tenant_id)"
    "  WHERE NOT u.is_pushed AND u.received_at BETWEEN $1 AND $2 ORDER BY random() LIMIT 20)";

static const struct hearth_column left_columns[] = {
    HEARTH_COLUMN(TEXT, struct hearth_task_left, tenant),
    HEARTH_COLUMN(TEXT, struct hearth_task_left, upload_id),
};
static const struct hearth_row_type left_rows =
    HEARTH_ROW_TYPE(left_columns, struct hearth_task_left);

enum hearth_status hearth_store_task_left(const struct hearth_scope *scope,
                                          const struct hearth_task_range *range,
                                          struct hearth_task_left **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, range->from_ms);
    hearth_pg_param_i64(&params, range->to_ms);

    const struct hearth_scope own = hearth_scope_of_owner(scope); /* results of all tenants */

    return hearth_store_select(&own, SQL_LEFT, &params, &left_rows, ret, ret_n, err);
}
