/*
 * svc_otlp_profiles.c -- profiles by OpenTelemetry's protocol: ProfilesService/Export, and POST
 * /v1development/profiles.
 *
 * The export is read in its wire form; JSON is translated to it first. The profiles that can be
 * read are a push. Profiles and samples that are left out do not refuse the others: the answer
 * counts and explains them. A profile that cannot be stored for now refuses the export, so that the
 * client repeats it.
 */
#include "hearth/base/limit.h"
#include "hearth/codec/pb.h"
#include "hearth/engine/exported_profiles.h"
#include "hearth/pb/opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#include "handlers.h"
#include "http/http_call.h"
#include "http/otlp_headers.h"
#include "rpc/push_call.h"
#include "rpc/request_log.h"

/* A name that is generated for a message of the service. */
#define MESSAGE(name) opentelemetry__proto__collector__profiles__v1development__##name

/* What the answer is made from; lives in the arena of the rpc, as the answer does. */
struct export_session {
    enum hearth_rpc_codec codec;
    struct hearth_profiles_outcome outcome;
    struct answer {
        Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse
            response;
        Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesPartialSuccess
            partial;
    } answer;
};

/* ---- the answer ---- */

/* "2 of 10 profiles and 3 samples of others are not stored; the first: ..."; NULL: no memory. */
static char *explain_left_out(struct hearth_push_call *call, const struct export_session *session,
                              size_t n_rejected)
{
    const struct hearth_profiles_outcome *outcome = &session->outcome;
    const struct hearth_err *why =
        outcome->first.status != HEARTH_OK ? &outcome->first : &call->request.err;

    return hearth_arena_printf(&call->rpc->arena,
                               "%zu of %zu profiles and %llu samples of others are not stored; the "
                               "first: %s",
                               n_rejected, outcome->n_received,
                               (unsigned long long)outcome->n_bad_samples, why->msg);
}

static enum hearth_status make_export_answer(struct hearth_push_call *call)
{
    struct hearth_rpc *rpc = call->rpc;
    struct export_session *session = call->session;
    struct answer *answer = &session->answer;

    MESSAGE(export_profiles_service_response__init)(&answer->response);
    MESSAGE(export_profiles_partial_success__init)(&answer->partial);

    /* A profile that was divided by service may have failed several times. */
    size_t n = session->outcome.n_rejected + call->request.n_failed;
    n = n > session->outcome.n_received ? session->outcome.n_received : n;
    if (n > 0 || session->outcome.n_bad_samples > 0) {
        answer->partial.rejected_profiles = (int64_t)n;
        answer->partial.error_message = explain_left_out(call, session, n);
        answer->response.partial_success = &answer->partial;
        if (answer->partial.error_message == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }
    if (n > 0) {
        hearth_request_note_refusal(rpc, hearth_status_name(HEARTH_INVALID_ARGUMENT),
                                    answer->partial.error_message);
    }

    /* Answer in the codec of the request. */
    if (rpc->http != NULL && session->codec == HEARTH_RPC_JSON) {
        hearth_pb_to_json(&answer->response.base, &rpc->packed);
        rpc->http->answer_type = HEARTH_OTLP_JSON;
        return HEARTH_OK;
    }

    rpc->answer = &answer->response.base;
    if (rpc->http != NULL) {
        rpc->http->answer_type = HEARTH_OTLP_PROTO;
    }

    return HEARTH_OK;
}

/*
 * Exporters repeat 429 over HTTP, but its status of gRPC only with details that say when. So a
 * limit that passes is UNAVAILABLE there.
 */
static enum hearth_status allow_retry(const struct hearth_push_call *call,
                                      enum hearth_status status)
{
    bool is_passing = status == HEARTH_RESOURCE_EXHAUSTED || status == HEARTH_NO_MEMORY;
    return is_passing && call->rpc->http == NULL ? HEARTH_UNAVAILABLE : status;
}

/* Profiles that are refused for good are part of the answer; other failures refuse the export. */
static enum hearth_status conclude_export(struct hearth_push_call *call, enum hearth_status status)
{
    const struct hearth_push_request *request = &call->request;

    if (status != HEARTH_OK && request->n_failed == 0) {
        return allow_retry(call, status); /* nothing was tried */
    }
    if (request->n_failed == request->n_refused) {
        return make_export_answer(call);
    }
    if (status != HEARTH_INVALID_ARGUMENT && status != HEARTH_OUT_OF_RANGE) {
        return allow_retry(call, status);
    }

    return HEARTH_FAIL(&call->rpc->err, HEARTH_UNAVAILABLE,
                       "%u of %u profiles could not be stored for now: retry",
                       request->n_failed - request->n_refused, request->n_profiles);
}

/* ---- the request ---- */

/* Makes the wire form the body of the call; the request's own body is freed. */
static enum hearth_status take_wire(struct hearth_push_call *call, enum hearth_rpc_codec codec,
                                    enum hearth_compression compression)
{
    struct hearth_rpc *rpc = call->rpc;
    struct hearth_inflater *inflater = hearth_rpc_inflater();
    struct hearth_arena scratch;

    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    const struct hearth_rpc_body body = {rpc->body, codec, compression,
                                         (size_t)rpc->front->options.max_request_bytes, inflater};
    hearth_arena_init_like(&scratch, &call->arena);
    enum hearth_status status =
        hearth_body_wire(&MESSAGE(export_profiles_service_request__descriptor), &body, &scratch,
                         &call->body, &rpc->err);
    call->arena.over_limit = scratch.over_limit && status == HEARTH_NO_MEMORY;
    hearth_arena_release(&scratch);
    if (status == HEARTH_OK) {
        rpc->drop_body(rpc);
        rpc->drop_body = NULL;
    }

    return status;
}

/*
 * The status of a failed export. One that exceeds the limit of its arena is TOO_LARGE, so that the
 * client does not repeat it; one that finds the shared memory in use may be repeated.
 */
static enum hearth_status judge_export_failure(struct hearth_push_call *call,
                                               enum hearth_status status)
{
    if (status != HEARTH_NO_MEMORY || !call->arena.over_limit) {
        return status;
    }

    return HEARTH_FAIL(
        &call->rpc->err, HEARTH_TOO_LARGE,
        "the profiles of this request need more than %zu bytes of memory; send fewer "
        "at once" HEARTH_RAISE_OPTION("max-request-bytes"),
        call->arena.limit_bytes);
}

/* Fills the push; n_series is 0 if no profile is left. */
static enum hearth_status read_profiles(struct hearth_push_call *call,
                                        struct export_session *session,
                                        enum hearth_compression compression)
{
    struct hearth_rpc *rpc = call->rpc;

    HEARTH_TRY(take_wire(call, session->codec, compression));
    const struct hearth_profiles_export in = {
        .tenant = hearth_rpc_tenant(rpc),
        .wire = hearth_buf_view(&call->body),
        .n_bytes = rpc->body_bytes,
        .client = rpc->client,
    };

    return hearth_ingest_read_export(rpc->front->ingest, &in, &call->arena, call->dropped,
                                     &call->request, &session->outcome, &rpc->err);
}

/* The handler of the method and of the plain route, whose headers are read here. */
void hearth_otlp_profiles(struct hearth_rpc *rpc)
{
    struct export_session *session = hearth_arena_zalloc(&rpc->arena, sizeof *session);
    struct hearth_push_call *call = session == NULL ? NULL : hearth_push_call_new(rpc);
    enum hearth_compression compression = rpc->compression;

    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an export"));
        return;
    }

    call->session = session;
    session->codec = rpc->codec;
    enum hearth_status status = rpc->http == NULL
                                    ? HEARTH_OK
                                    : hearth_otlp_headers_read(rpc, &session->codec, &compression);
    if (status == HEARTH_OK) {
        status = read_profiles(call, session, compression);
    }
    if (status != HEARTH_OK) {
        hearth_push_call_end(call, judge_export_failure(call, status));
        return;
    }

    call->conclude = conclude_export;
    if (call->request.n_series == 0) {
        hearth_push_call_end(call, HEARTH_OK);
        return;
    }

    hearth_push_call_run(call);
}
