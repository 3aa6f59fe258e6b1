/*
 * snapshots_expire.c -- deletes old thread snapshots, and old segments of imported tasks, in
 * slices. Every server may run it at any time.
 */
#include "spans/snapshots_expire.h"

#include "hearth/base/clock.h"

#include "pg/pg_slices.h"

#include <assert.h>

#define SLICE_ROWS 2000
#define MAX_SLICES 50

/* No task exists that ended, or was imported, at or after $1. */
#define NO_TASK_IS_LEFT                                                      \
    "NOT EXISTS (SELECT FROM hearth_data.task t WHERE t.task_id = o.task_id" \
    " AND greatest(t.start_at + t.duration, t.created_at) >= $1)"

/* $1 time in milliseconds, $2 maximum number of rows. By the index on received_at. */
static const char *const slice_statements[] = {
    "DELETE FROM hearth_data.task_snapshot r USING"
    " (SELECT o.service_id, o.task_id, o.segment_key, o.first_sequence, o.content"
    "  FROM hearth_data.task_snapshot o WHERE o.received_at < $1 AND " NO_TASK_IS_LEFT
    "  ORDER BY o.received_at LIMIT $2 FOR UPDATE SKIP LOCKED) d"
    " WHERE r.service_id = d.service_id AND r.task_id = d.task_id"
    " AND r.segment_key = d.segment_key AND r.first_sequence = d.first_sequence"
    " AND r.content = d.content",
    "DELETE FROM hearth_data.task_segment r USING"
    " (SELECT o.service_id, o.task_id, o.segment_key, o.start_at"
    "  FROM hearth_data.task_segment o WHERE o.received_at < $1 AND " NO_TASK_IS_LEFT
    "  ORDER BY o.received_at LIMIT $2 FOR UPDATE SKIP LOCKED) d"
    " WHERE r.service_id = d.service_id AND r.task_id = d.task_id"
    " AND r.segment_key = d.segment_key AND r.start_at = d.start_at",
};

enum hearth_status hearth_snapshots_expire(struct hearth_pg *pg, int64_t retain_ns,
                                           struct hearth_err *err)
{
    if (retain_ns <= 0) {
        return HEARTH_OK;
    }

    assert(pg != NULL);
    int64_t before_ms = (hearth_clock_wall_ns() - retain_ns) / HEARTH_NS_PER_MS;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(slice_statements); i++) {
        HEARTH_TRY(hearth_pg_delete_slices(pg, slice_statements[i], before_ms, SLICE_ROWS,
                                           MAX_SLICES, err));
    }

    return HEARTH_OK;
}
