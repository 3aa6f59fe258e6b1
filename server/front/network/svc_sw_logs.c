/*
 * svc_sw_logs.c -- skywalking.v3.LogReportService and SpanAttachedEventReportService: requests that
 * network tasks sampled, and their captured events.
 *
 * Other logs are accepted and counted, not stored: agents stop when they get errors.
 *
 * A log without a service belongs to the service of the log before it in the same stream; the same
 * for the instance, as long as the service stays the same.
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/engine/network.h"
#include "hearth/pb/skywalking/v3/logging.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define KIND_TAG     "LOG_KIND"
#define KIND_SAMPLED "NET_PROFILING_SAMPLED_TRACE"

/* ---- logs ---- */

/* Service and instance of the last log of a stream: names of n bytes, without a final NUL. */
struct log_names {
    size_t n_service, n_instance;
    char service[HEARTH_AGENT_NAME_BYTES], instance[HEARTH_AGENT_NAME_BYTES];
};

static enum hearth_status keep_log_name(struct hearth_rpc *rpc, const char *what,
                                        struct hearth_str name, char *to, size_t *ret_n)
{
    if (name.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "the %s of a log has %zu bytes; names may have %d", what, name.n,
                           HEARTH_AGENT_NAME_BYTES);
    }

    memcpy(to, name.p, name.n);
    *ret_n = name.n;

    return HEARTH_OK;
}

static enum hearth_status keep_log_names(struct hearth_rpc *rpc, const Skywalking__V3__LogData *in,
                                         struct log_names **ret)
{
    /* The session lives as long as the stream. */
    if (rpc->session == NULL) {
        rpc->session = hearth_mem_zalloc(sizeof(struct log_names));
        rpc->free_session = hearth_mem_free;
    }

    struct log_names *names = rpc->session;
    if (names == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a stream of logs");
    }

    assert(names->n_service <= HEARTH_AGENT_NAME_BYTES);
    assert(names->n_instance <= HEARTH_AGENT_NAME_BYTES);

    /* Another service has other instances. */
    struct hearth_str service = hearth_str_c(in->service);
    struct hearth_str instance = hearth_str_c(in->serviceinstance);
    if (service.n > 0 && !hearth_str_eq(service, hearth_str_n(names->service, names->n_service))) {
        HEARTH_TRY(keep_log_name(rpc, "service", service, names->service, &names->n_service));
        names->n_instance = 0;
    }

    if (instance.n > 0) {
        HEARTH_TRY(keep_log_name(rpc, "instance", instance, names->instance, &names->n_instance));
    }

    *ret = names;

    return HEARTH_OK;
}

static bool is_sampled_request(const Skywalking__V3__LogData *in)
{
    for (size_t i = 0; in->tags != NULL && i < in->tags->n_data; i++) {
        if (strcmp(in->tags->data[i]->key, KIND_TAG) == 0 &&
            strcmp(in->tags->data[i]->value, KIND_SAMPLED) == 0) {
            return true;
        }
    }

    return false;
}

static enum hearth_status take_log(struct hearth_rpc *rpc, const Skywalking__V3__LogData *in)
{
    struct log_names *names;

    /* Logs of other kinds still name service and instance. */
    HEARTH_TRY(keep_log_names(rpc, in, &names));
    if (!is_sampled_request(in)) {
        hearth_metric_add_label(HEARTH_M_AGENT_LOGS, HEARTH_STR("dropped"), 1);
        return HEARTH_OK;
    }

    /* Read the sampled request. */
    if (in->body == NULL || in->body->content_case != SKYWALKING__V3__LOG_DATA_BODY__CONTENT_JSON) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "a log of kind " KIND_SAMPLED " has no JSON body");
    }

    const Skywalking__V3__TraceContext *context = in->tracecontext;
    bool has_segment = context != NULL && context->tracesegmentid[0] != '\0';
    char span_id[16] = "";
    if (has_segment) {
        (void)snprintf(span_id, sizeof span_id, "%" PRId32, context->spanid);
    }

    const struct hearth_sampled_log log = {
        .service = hearth_str_n(names->service, names->n_service),
        .instance = hearth_str_n(names->instance, names->n_instance),
        .at_ms = in->timestamp,
        .trace_id = hearth_str_c(context == NULL ? "" : context->traceid),
        .segment_id = hearth_str_c(has_segment ? context->tracesegmentid : ""),
        .span_id = hearth_str_c(span_id),
        .json = hearth_str_c(in->body->json->json),
    };

    /* Store it. */
    struct hearth_call call = hearth_rpc_call(rpc);
    HEARTH_TRY(hearth_network_take_sampled(&call, &log, &rpc->err));
    hearth_metric_add_label(HEARTH_M_AGENT_LOGS, HEARTH_STR("sampled"), 1);

    return HEARTH_OK;
}

void hearth_svc_sw_logs(struct hearth_rpc *rpc)
{
    const Skywalking__V3__LogData *in = (const Skywalking__V3__LogData *)rpc->request;

    hearth_rpc_finish_run(rpc, in == NULL ? HEARTH_OK : take_log(rpc, in));
}

/* ---- events ---- */

static enum hearth_status read_instant(struct hearth_rpc *rpc,
                                       const Skywalking__V3__Instant *instant, int64_t *ret_ns)
{
    *ret_ns = 0;

    if (instant != NULL && (instant->seconds < 0 || instant->nanos < 0 ||
                            __builtin_mul_overflow(instant->seconds, INT64_C(1000000000), ret_ns) ||
                            __builtin_add_overflow(*ret_ns, (int64_t)instant->nanos, ret_ns))) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "the time of an event is %lld s and %d ns", (long long)instant->seconds,
                           (int)instant->nanos);
    }

    return HEARTH_OK;
}

static enum hearth_status take_event(struct hearth_rpc *rpc,
                                     const Skywalking__V3__SpanAttachedEvent *in)
{
    const Skywalking__V3__SpanAttachedEvent__SpanReference *context = in->tracecontext;

    if (context == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "an event belongs to no span");
    }

    /* Read the event. */
    bool is_zipkin =
        context->type == SKYWALKING__V3__SPAN_ATTACHED_EVENT__SPAN_REFERENCE_TYPE__ZIPKIN;
    struct hearth_captured_event event = {
        .provider = is_zipkin ? HEARTH_TRACE_ZIPKIN : HEARTH_TRACE_SKYWALKING,
        .trace_id = hearth_str_c(context->traceid),
        .segment_id = hearth_str_c(context->tracesegmentid),
        .span_id = hearth_str_c(context->spanid),
        .event = hearth_str_c(in->event),
        .n_tags = in->n_tags,
    };
    HEARTH_TRY(read_instant(rpc, in->starttime, &event.start_ns));
    HEARTH_TRY(read_instant(rpc, in->endtime, &event.end_ns));

    /* Tags borrow from the message. */
    event.tags = hearth_arena_array(&rpc->arena, in->n_tags, sizeof *event.tags);
    if (event.tags == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_tags; i++) {
        event.tags[i] = (struct hearth_property){hearth_str_c(in->tags[i]->key),
                                                 hearth_str_c(in->tags[i]->value)};
    }

    /* Store it, unless the engine drops it. */
    struct hearth_call call = hearth_rpc_call(rpc);
    bool is_kept = false;
    HEARTH_TRY(hearth_network_take_event(&call, &event, &is_kept, &rpc->err));
    hearth_metric_add_label(HEARTH_M_CAPTURED_EVENTS,
                            is_kept ? HEARTH_STR("kept") : HEARTH_STR("dropped"), 1);

    return HEARTH_OK;
}

void hearth_svc_sw_span_events(struct hearth_rpc *rpc)
{
    const Skywalking__V3__SpanAttachedEvent *in =
        (const Skywalking__V3__SpanAttachedEvent *)rpc->request;

    hearth_rpc_finish_run(rpc, in == NULL ? HEARTH_OK : take_event(rpc, in));
}
