/* task_uploads_internal.h -- what the files of uploads share (private to the engine). Threads: pure. */
#ifndef HEARTH_ENGINE_TASK_UPLOADS_INTERNAL_H
#define HEARTH_ENGINE_TASK_UPLOADS_INTERNAL_H

#include "hearth/engine/ingest.h"
#include "hearth/engine/query.h"
#include "hearth/format/pprof.h"
#include "hearth/store/task_results.h"

/* A pprof within the limits of the tenant, in the call's arena. INVALID_ARGUMENT, NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_decode(const struct hearth_call *call, struct hearth_str content,
                                        struct hearth_profile *ret,
                                        struct hearth_pprof_notes *notes, struct hearth_err *err);

/* The traced requests that have samples in a pprof. As _decode. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_segments(const struct hearth_call *call, struct hearth_str content,
                                          struct hearth_go_segment **ret, size_t *ret_n,
                                          struct hearth_err *err);

/* ---- upload_events.c: `event` is that of the pprof task, empty if it is not known ---- */

/* Go counts the sample type of files of the event from the start of the process. */
bool hearth_upload_is_cumulative(struct hearth_str event, struct hearth_str type);
/* __name__ of the ordinary profile. */
struct hearth_str hearth_upload_name(const struct hearth_profile *profile, struct hearth_str event);
/* Of heap only what is in use stays, of allocs only what was allocated: each file has both. */
void hearth_upload_keep_types(struct hearth_profile *profile, struct hearth_str event);

/* ---- upload_values.c ---- */

/*
 * Take off the cumulative values of `profile` those that an earlier one of the event has. *ret_contains: false, and
 * nothing is taken off, when it does not have at least as much of each sample: another process.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_subtract(struct hearth_profile *profile,
                                          const struct hearth_profile *before,
                                          struct hearth_str event, struct hearth_arena *arena,
                                          bool *ret_contains, struct hearth_err *err);

struct hearth_upload_values {
    struct hearth_str event;
    int64_t
        before_ms; /* cumulative values are what came since the file received then; 0: since the process started */
};

/* The same with the file that came before the stored upload, of which `profile` was decoded. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_values(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_profile *profile,
                                        struct hearth_upload_values *ret, struct hearth_err *err);

/* Make a stored pprof a profile, unless it is one. As _decode; NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_push_left(const struct hearth_call *call,
                                           struct hearth_ingest *ingest,
                                           struct hearth_str upload_id, struct hearth_err *err);

#endif
