/*
 * uploads_expire.c -- deletes old uploads, in slices (contract: uploads/uploads_expire.h). Every
 * server may run it at any time. Queued uploads and those that are being parsed stay.
 */
#include "uploads/uploads_expire.h"

#include "hearth/base/clock.h"

#include "pg/pg_slices.h"

/* Few at a time: each may have gigabytes of parts. */
#define SLICE_ROWS 5
#define MAX_SLICES 20

/* Ended before $1. An upload ends after it was created: by the index on created_at. */
static const char ENDED[] =
    "DELETE FROM hearth_data.profile_upload r USING (SELECT upload_no FROM"
    " hearth_data.profile_upload WHERE created_at < $1 AND state >= 3 AND ended_at < $1"
    " ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) d WHERE r.upload_no = d.upload_no";

/* Created, and received their latest part, before $1. */
static const char IDLE[] =
    "DELETE FROM hearth_data.profile_upload r USING (SELECT u.upload_no FROM"
    " hearth_data.profile_upload u WHERE u.created_at < $1 AND u.state = 0 AND NOT EXISTS"
    " (SELECT FROM hearth_data.profile_upload_part p WHERE p.upload_no = u.upload_no"
    " AND p.received_at >= $1) ORDER BY u.created_at LIMIT $2 FOR UPDATE OF u SKIP LOCKED) d"
    " WHERE r.upload_no = d.upload_no";

static enum hearth_status delete_older(struct hearth_pg *pg, const char *sql, int64_t keep_ns,
                                       struct hearth_err *err)
{
    if (keep_ns <= 0) {
        return HEARTH_OK;
    }

    int64_t before_ms = (hearth_clock_wall_ns() - keep_ns) / HEARTH_NS_PER_MS;

    return hearth_pg_delete_slices(pg, sql, before_ms, SLICE_ROWS, MAX_SLICES, err);
}

enum hearth_status hearth_uploads_expire(struct hearth_pg *pg, int64_t retain_ns, int64_t idle_ns,
                                         struct hearth_err *err)
{
    HEARTH_TRY(delete_older(pg, ENDED, retain_ns, err));

    return delete_older(pg, IDLE, idle_ns, err);
}
