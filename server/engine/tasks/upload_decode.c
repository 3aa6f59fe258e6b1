/* upload_decode.c -- decodes files of agents, within the limits of the tenant. */
#include "hearth/codec/compress.h"
#include "hearth/format/jfr.h"

#include "ingest/ingest_internal.h"
#include "select/query_internal.h"
#include "tasks/task_uploads_internal.h"

#include <assert.h>

static enum hearth_status inflate_upload(const struct hearth_call *call, struct hearth_str bytes,
                                         int64_t max_bytes, struct hearth_str *ret,
                                         struct hearth_err *err)
{
    struct hearth_inflater *inflater = hearth_inflater_new();
    enum hearth_status status = hearth_inflate_in_arena(
        inflater, hearth_compression_detect(bytes), bytes,
        max_bytes > 0 ? (size_t)max_bytes : SIZE_MAX, call->arena, ret, err);
    hearth_inflater_free(inflater);

    /* Turn the size limit into an error that names its option. */
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the profile inflates to more than %lld bytes (max-profile-bytes)",
                             (long long)max_bytes);
    }

    return status;
}

enum hearth_status hearth_upload_decode(const struct hearth_call *call, struct hearth_str content,
                                        struct hearth_profile *ret,
                                        struct hearth_pprof_notes *notes, struct hearth_err *err)
{
    struct hearth_limits limits;
    struct hearth_str bytes;

    assert(call != NULL && ret != NULL);

    /* Decompress the file. */
    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    HEARTH_TRY(inflate_upload(call, content, limits.max_profile_bytes, &bytes, err));

    /* Decode it within the limits of pushed profiles. */
    const struct hearth_pprof_limits of_pprof = hearth_ingest_pprof_limits(&limits);
    *notes = (struct hearth_pprof_notes){0};
    enum hearth_status status = hearth_pprof_decode(bytes, &of_pprof, call->arena, ret, notes, err);

    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}

enum hearth_status hearth_upload_decode_recording(const struct hearth_call *call,
                                                  struct hearth_str content,
                                                  struct hearth_jfr_recording *ret,
                                                  struct hearth_err *err)
{
    struct hearth_limits limits;
    struct hearth_str bytes;

    assert(call != NULL && ret != NULL);
    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    HEARTH_TRY(inflate_upload(call, content, limits.max_task_upload_bytes, &bytes, err));

    const struct hearth_jfr_options options = {.limits = hearth_ingest_pprof_limits(&limits)};
    enum hearth_status status = hearth_jfr_decode(bytes, &options, call->arena, ret, err);

    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}
