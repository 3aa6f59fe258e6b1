/* request_log.c -- chooses level and fields of the log line of a request that has ended. */
#include "rpc/request_log.h"

#include "hearth/base/log.h"
#include "hearth/base/log_rate.h"
#include "hearth/base/metrics.h"

#include "own_traces/own_traces.h"
#include "rpc/front_internal.h"

#define LINES_PER_SECOND 10
#define SLOW_NS          (INT64_C(5) * HEARTH_NS_PER_SEC)

/* For collecting methods: the deadline of the client and the stop of the server are not faults. */
static bool is_stream_fault(const struct hearth_rpc *rpc)
{
    return rpc->status == HEARTH_INTERNAL || rpc->status == HEARTH_CORRUPT ||
           rpc->status == HEARTH_NO_MEMORY ||
           (rpc->status == HEARTH_UNAVAILABLE && !atomic_load(&rpc->front->is_stopping));
}

static bool is_server_fault(enum hearth_status status)
{
    return status == HEARTH_INTERNAL || status == HEARTH_CORRUPT || status == HEARTH_UNAVAILABLE ||
           status == HEARTH_NO_MEMORY || status == HEARTH_DEADLINE_EXCEEDED;
}

/* Returns the trace that the request belongs to, or an empty text without a trace. */
static struct hearth_str get_trace_id(const struct hearth_rpc *rpc,
                                      char text[HEARTH_TRACE_ID_TEXT + 1])
{
    text[0] = '\0';
    if (!hearth_trace_id_is_none(rpc->ids.trace)) {
        hearth_trace_id_format(rpc->ids.trace, text);
    }

    return hearth_str_c(text);
}

static void write_request_line(struct hearth_rpc *rpc, enum hearth_log_level level,
                               const char *what, int64_t took_ns, int missed)
{
    char tenant[HEARTH_TENANT_MAX_BYTES + 1];

    memcpy(tenant, rpc->caller.tenants.first.text, rpc->caller.tenants.first.n);
    tenant[rpc->caller.tenants.first.n] = '\0';
    char peer[HEARTH_PEER_TEXT_BYTES], trace_id[HEARTH_TRACE_ID_TEXT + 1];
    rpc->peer_text(rpc, peer);
    (void)get_trace_id(rpc, trace_id);
    hearth_log_write(
        level, "front", what, "method", rpc->method->path + 1, "transport", rpc->transport, "peer",
        peer, "tenant", rpc->caller.tenants.text != NULL ? rpc->caller.tenants.text : tenant,
        "code", hearth_status_name(rpc->status), "duration_us", hearth_log_i64(took_ns / 1000),
        "in_bytes", hearth_log_i64((int64_t)rpc->body_bytes), "out_bytes",
        rpc->pieces.more != NULL ? "in pieces" : hearth_log_i64((int64_t)rpc->packed.n), "messages",
        hearth_log_i64(rpc->n_messages), "error", rpc->status == HEARTH_OK ? "" : rpc->err.msg,
        "request_id", rpc->ids.request_id, "trace_id", trace_id, "missed", hearth_log_i64(missed),
        NULL);
}

/* Counts an upload that was refused before the engine, which counts its own refusals. */
static void count_refusal(const struct hearth_rpc *rpc)
{
    if (rpc->status != HEARTH_OK && (rpc->method->flags & HEARTH_METHOD_UPLOAD) != 0 &&
        !rpc->counts_refusals) {
        const char *reason = rpc->refusal != NULL ? rpc->refusal : hearth_status_name(rpc->status);
        hearth_metric_add_labels(HEARTH_M_REJECTED, reason, rpc->client, 1);
    }
}

/* True if the upload would fail again, or was damaged: a client that retries loses nothing. */
static bool is_lost_upload(const struct hearth_rpc *rpc)
{
    const unsigned uploads = HEARTH_METHOD_UPLOAD | HEARTH_METHOD_OTLP | HEARTH_METHOD_COLLECT;

    return rpc->status != HEARTH_OK && rpc->status != HEARTH_UNAVAILABLE &&
           rpc->status != HEARTH_CANCELLED && rpc->status != HEARTH_DEADLINE_EXCEEDED &&
           (rpc->method->flags & uploads) != 0;
}

void hearth_request_note_refusal(const struct hearth_rpc *rpc, const char *code,
                                 const char *message)
{
    struct hearth_ingest_errors *errors = rpc->front->options.ingest_errors;
    if (errors == NULL) {
        return;
    }

    hearth_ingest_errors_note(
        errors, &(const struct hearth_ingest_error){.tenant = hearth_rpc_tenant(rpc),
                                                    .client = hearth_str_c(rpc->client),
                                                    .route = hearth_str_c(rpc->method->path),
                                                    .code = hearth_str_c(code),
                                                    .message = hearth_str_c(message),
                                                    .body_hash = (int64_t)rpc->body_hash,
                                                    .n_bytes = (int64_t)rpc->body_bytes});
}

static void note_lost_upload(const struct hearth_rpc *rpc)
{
    if (is_lost_upload(rpc)) {
        const char *code = rpc->refusal != NULL ? rpc->refusal : hearth_status_name(rpc->status);
        hearth_request_note_refusal(rpc, code,
                                    rpc->long_message != NULL ? rpc->long_message : rpc->err.msg);
    }
}

static void copy_text(struct hearth_str text, char out[HEARTH_OWN_SPAN_TEXT])
{
    size_t n = text.n < HEARTH_OWN_SPAN_TEXT ? text.n : HEARTH_OWN_SPAN_TEXT - 1;

    memcpy(out, text.p, n);
    hearth_str_utf8_mend(out, n);
    out[n] = '\0';
}

/* Steps are known if the request ends on the thread that worked on it: not those of pushes. */
static void record_own_span(const struct hearth_rpc *rpc, int64_t now_mono_ns)
{
    const struct hearth_work_steps *steps = hearth_work_steps_of(rpc);
    struct hearth_own_span span = {
        .trace = rpc->ids.trace,
        .span = rpc->ids.span,
        .parent = rpc->ids.parent_span,
        .name = rpc->method->path + 1,
        .transport = rpc->transport,
        .code = hearth_status_name(rpc->status),
        .is_fault = is_server_fault(rpc->status),
        .began_mono_ns = rpc->started_mono_ns,
        .ended_mono_ns = now_mono_ns,
    };

    copy_text(hearth_rpc_tenant(rpc), span.tenant);
    copy_text(hearth_str_c(rpc->ids.request_id), span.request_id);
    if (steps != NULL) {
        span.steps = *steps;
    }
    hearth_own_traces_record(rpc->front->own_traces, &span);
}

void hearth_request_log(struct hearth_rpc *rpc, int64_t now_mono_ns)
{
    static struct hearth_log_rate fault_rate, slow_rate;
    bool is_collected = hearth_rpc_is_collecting(rpc);
    bool is_stream = (rpc->method->flags & HEARTH_METHOD_STREAM) != 0 || is_collected;
    int64_t took_ns =
        is_stream ? now_mono_ns - rpc->started_mono_ns : hearth_rpc_took_ns(rpc, now_mono_ns);

    if (!is_stream) { /* a stream lasts as long as its client wants */
        char trace_id[HEARTH_TRACE_ID_TEXT + 1];
        struct hearth_str trace =
            rpc->ids.is_sampled ? get_trace_id(rpc, trace_id) : hearth_str_n(NULL, 0);
        hearth_metric_observe_traced_ns(HEARTH_M_RPC_SECONDS, hearth_str_c(rpc->method->path + 1),
                                        took_ns, trace);
    }

    if (rpc->status != HEARTH_OK) {
        const char *code = hearth_status_name(rpc->status);
        hearth_metric_add_label(HEARTH_M_RPC_ERRORS, hearth_str_c(code), 1);
        hearth_metric_add_labels(HEARTH_M_METHOD_ERRORS, rpc->method->path + 1, code, 1);
    }

    if (rpc->ids.span != 0) {
        record_own_span(rpc, now_mono_ns);
    }

    count_refusal(rpc);
    note_lost_upload(rpc);
    int missed = 0;
    if (is_collected ? is_stream_fault(rpc) : !is_stream && is_server_fault(rpc->status)) {
        if (hearth_log_rate_take(&fault_rate, LINES_PER_SECOND, now_mono_ns, &missed)) {
            write_request_line(rpc, HEARTH_LOG_WARN, "request failed", took_ns, missed);
        }
    } else if (!is_stream && took_ns > SLOW_NS) {
        if (hearth_log_rate_take(&slow_rate, LINES_PER_SECOND, now_mono_ns, &missed)) {
            write_request_line(rpc, HEARTH_LOG_INFO, "slow request", took_ns, missed);
        }
    } else if (hearth_log_enabled(HEARTH_LOG_DEBUG)) {
        write_request_line(rpc, HEARTH_LOG_DEBUG, "request", took_ns, 0);
    }
}

void hearth_request_log_cut(const struct hearth_rpc *rpc)
{
    static struct hearth_log_rate rate;
    int missed = 0;
    if (hearth_log_rate_take(&rate, LINES_PER_SECOND, hearth_clock_mono_ns(), &missed)) {
        HEARTH_LOG(HEARTH_LOG_WARN, "front", "an answer was cut off: no memory for the rest",
                   "method", rpc->method->path + 1, "missed", hearth_log_i64(missed), NULL);
    }
}
