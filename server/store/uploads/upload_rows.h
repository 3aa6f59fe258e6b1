/*
 * upload_rows.h -- uploads as rows of statements (private to the room).
 *
 * Threads: pure.
 */
#ifndef HEARTH_STORE_UPLOAD_ROWS_H
#define HEARTH_STORE_UPLOAD_ROWS_H

#include "hearth/store/store_uploads.h"

#include "session/statements.h"

/* Columns of the table, or of a row of it, that is named u. */
#define HEARTH_UPLOAD_COLUMNS                                                            \
    "u.tenant, u.upload_id, u.file_name, u.format, u.label_names, u.label_values,"       \
    " u.from_at, u.until_at, u.sample_rate, u.n_bytes, u.part_bytes, u.sha256, u.state," \
    " u.created_at, u.queued_at, u.ended_at, CASE WHEN u.state > 0 THEN u.n_bytes ELSE"  \
    " (SELECT coalesce(sum(p.n_bytes), 0)::int8 FROM hearth_data.profile_upload_part p"  \
    " WHERE p.upload_no = u.upload_no) END, u.n_profiles, u.n_samples, u.n_settled,"     \
    " u.n_stored, u.n_refused, u.dropped, u.reason, u.upload_no, u.claim, u.n_lost,"     \
    " u.storing_at"

extern const struct hearth_row_type hearth_upload_rows;
/* Columns of hearth_data.profile_upload_result, in the order of the struct. */
extern const struct hearth_row_type hearth_upload_result_rows;

/* $1 tenant of the scope, $2 id of an upload. */
void hearth_upload_id_params(const struct hearth_scope *scope, struct hearth_str upload_id,
                             struct hearth_arena *arena, struct hearth_pg_params *params);
/* True for texts that may be ids; others, which the database may not accept, are unknown. */
bool hearth_upload_id_is_valid(struct hearth_str upload_id);
/* The error NOT_FOUND of an unknown id. */
enum hearth_status hearth_upload_fail_unknown(struct hearth_str upload_id, struct hearth_err *err);

#endif
