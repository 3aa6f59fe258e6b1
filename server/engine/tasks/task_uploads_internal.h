/*
 * task_uploads_internal.h -- declarations shared by the files about uploads (private to the
 * engine). Threads: pure.
 */
#ifndef HEARTH_ENGINE_TASK_UPLOADS_INTERNAL_H
#define HEARTH_ENGINE_TASK_UPLOADS_INTERNAL_H

#include "hearth/engine/ingest.h"
#include "hearth/engine/query.h"
#include "hearth/format/jfr.h"
#include "hearth/format/pprof.h"
#include "hearth/store/task_results.h"

/*
 * Decode a pprof within the limits of the tenant, in the call's arena. INVALID_ARGUMENT, NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_decode(const struct hearth_call *call, struct hearth_str content,
                                        struct hearth_profile *ret,
                                        struct hearth_pprof_notes *notes, struct hearth_err *err);

/* Decode a JFR recording likewise. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_decode_recording(const struct hearth_call *call,
                                                  struct hearth_str content,
                                                  struct hearth_jfr_recording *ret,
                                                  struct hearth_err *err);

/* List the traced requests that have samples in a pprof. Errors as of _decode. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_segments(const struct hearth_call *call, struct hearth_str content,
                                          struct hearth_go_segment **ret, size_t *ret_n,
                                          struct hearth_err *err);

/* ---- upload_events.c: `event` is the event of the pprof task; empty: unknown ---- */

/* Whether, in files of the event, Go counts the sample type from the start of the process. */
bool hearth_upload_is_cumulative(struct hearth_str event, struct hearth_str type);
/* The __name__ of the ordinary profile. */
struct hearth_str hearth_upload_name(const struct hearth_profile *profile, struct hearth_str event);
/*
 * Keep only the types of the event, because each file has both kinds: memory in use for heap,
 * allocations for allocs.
 */
void hearth_upload_keep_types(struct hearth_profile *profile, struct hearth_str event);

/* ---- upload_values.c ---- */

/*
 * Subtract from the cumulative values of `profile` those of `before`, an earlier file of the event.
 * *ret_contains false, and nothing subtracted: some sample of `before` has a larger value, so it is
 * from another process.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_subtract(struct hearth_profile *profile,
                                          const struct hearth_profile *before,
                                          struct hearth_str event, struct hearth_arena *arena,
                                          bool *ret_contains, struct hearth_err *err);

struct hearth_upload_values {
    struct hearth_str event;
    /* Time of the file that was subtracted; 0: values count from the start of the process. */
    int64_t before_ms;
};

/* Likewise, with the previous file of the stored upload that `profile` was decoded from. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_values(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_profile *profile,
                                        struct hearth_upload_values *ret, struct hearth_err *err);

/* Push a stored file as ordinary profiles, unless that was done. Also NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_push_left(const struct hearth_call *call,
                                           struct hearth_ingest *ingest,
                                           struct hearth_str upload_id, struct hearth_err *err);

#endif
