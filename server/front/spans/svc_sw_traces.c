/*
 * svc_sw_traces.c -- segments and thread snapshots of SkyWalking's agents.
 *
 * The answers have no commands for the agents. Messages of a stream are passed on one by one.
 */
#include "hearth/pb/skywalking/v3/profile.pb-c.h"
#include "hearth/pb/skywalking/v3/trace.pb-c.h"

#include "handlers.h"
#include "rpc/messages.h"
#include "rpc/trace_call.h"

#include <assert.h>

/* Milliseconds as nanoseconds; INT64_MIN if they overflow: the engine leaves out such times. */
static int64_t convert_ms_to_ns(int64_t ms)
{
    int64_t ns;
    return __builtin_mul_overflow(ms, INT64_C(1000000), &ns) ? INT64_MIN : ns;
}

static enum hearth_segments_keep get_segments_keep(const struct hearth_rpc *rpc)
{
    enum hearth_segments_keep keep = HEARTH_KEEP_ALL;
    const char *text = rpc->front->options.agents.segments_keep;
    return text != NULL && hearth_segments_keep_parse(hearth_str_c(text), &keep) ? keep
                                                                                 : HEARTH_KEEP_ALL;
}

/* ---- segments ---- */

static struct hearth_span_tag *read_sw_tags(struct hearth_arena *arena,
                                            Skywalking__V3__KeyStringValuePair *const *in, size_t n)
{
    struct hearth_span_tag *tags = hearth_arena_array(arena, n, sizeof *tags);
    for (size_t i = 0; i < n && tags != NULL; i++) {
        tags[i] = (struct hearth_span_tag){hearth_str_c(in[i]->key), hearth_str_c(in[i]->value)};
    }

    return tags;
}

static void read_sw_refs(struct hearth_arena *arena, const Skywalking__V3__SpanObject *in,
                         struct hearth_span *out)
{
    out->refs = hearth_arena_array(arena, in->n_refs, sizeof *out->refs);
    out->n_refs = out->refs == NULL ? 0 : in->n_refs;

    for (size_t i = 0; i < out->n_refs; i++) {
        const Skywalking__V3__SegmentReference *ref = in->refs[i];
        out->refs[i] = (struct hearth_span_ref){
            .across_threads = ref->reftype == SKYWALKING__V3__REF_TYPE__CrossThread,
            .trace_id = hearth_str_c(ref->traceid),
            .segment_id = hearth_str_c(ref->parenttracesegmentid),
            .span_id = ref->parentspanid,
            .service = hearth_str_c(ref->parentservice),
            .instance = hearth_str_c(ref->parentserviceinstance),
            .endpoint = hearth_str_c(ref->parentendpoint),
            .address = hearth_str_c(ref->networkaddressusedatpeer),
        };
    }
}

static void read_sw_logs(struct hearth_arena *arena, const Skywalking__V3__SpanObject *in,
                         struct hearth_span *out)
{
    out->logs = hearth_arena_array(arena, in->n_logs, sizeof *out->logs);
    out->n_logs = out->logs == NULL ? 0 : in->n_logs;
    for (size_t i = 0; i < out->n_logs; i++) {
        const Skywalking__V3__Log *log = in->logs[i];
        out->logs[i] = (struct hearth_span_log){
            convert_ms_to_ns(log->time), read_sw_tags(arena, log->data, log->n_data), log->n_data};
    }
}

static enum hearth_span_kind map_sw_kind(Skywalking__V3__SpanType type)
{
    switch (type) {
    case SKYWALKING__V3__SPAN_TYPE__Entry:
        return HEARTH_SPAN_ENTRY;
    case SKYWALKING__V3__SPAN_TYPE__Exit:
        return HEARTH_SPAN_EXIT;
    default:
        return HEARTH_SPAN_LOCAL;
    }
}

static void read_sw_span(struct hearth_arena *arena, const Skywalking__V3__SpanObject *in,
                         struct hearth_span *out)
{
    *out = (struct hearth_span){
        .span_id = in->spanid,
        .parent_id = in->parentspanid,
        .has_parent = in->parentspanid >= 0,
        .skip_analysis = in->skipanalysis,
        .kind = map_sw_kind(in->spantype),
        .status = in->iserror ? HEARTH_SPAN_ERROR : HEARTH_SPAN_UNSET,
        .start_ns = convert_ms_to_ns(in->starttime),
        .end_ns = convert_ms_to_ns(in->endtime),
        .name = hearth_str_c(in->operationname),
        .peer = hearth_str_c(in->peer),
        .layer = (int32_t)in->spanlayer,
        .component = in->componentid,
        .tags = read_sw_tags(arena, in->tags, in->n_tags),
        .n_tags = in->n_tags,
    };

    read_sw_refs(arena, in, out);
    read_sw_logs(arena, in, out);
}

/* Reads a segment; texts borrow from the message. False: the arena is full. */
static bool read_sw_segment(struct hearth_arena *arena, const Skywalking__V3__SegmentObject *in,
                            struct hearth_segment *out)
{
    *out = (struct hearth_segment){
        .trace_id = hearth_str_c(in->traceid),
        .segment_id = hearth_str_c(in->tracesegmentid),
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->serviceinstance),
        .spans = hearth_arena_array(arena, in->n_spans, sizeof *out->spans),
        .n_spans = in->n_spans,
        .is_cut = in->issizelimited,
    };
    for (size_t i = 0; i < in->n_spans && out->spans != NULL; i++) {
        read_sw_span(arena, in->spans[i], &out->spans[i]);
    }

    return !arena->refused;
}

static enum hearth_status take_segments(struct hearth_rpc *rpc, struct hearth_trace_call *call,
                                        const Skywalking__V3__SegmentObject *const *in, size_t n)
{
    struct hearth_call context = hearth_rpc_call(rpc);
    struct hearth_segment *segments = hearth_arena_array(&rpc->arena, n, sizeof *segments);

    assert(call != NULL && (n == 0 || in != NULL));

    /* Read the segments. */
    for (size_t i = 0; i < n; i++) {
        if (segments == NULL || !read_sw_segment(&rpc->arena, in[i], &segments[i])) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    /* The call waits for the commit if the engine has accepted data. */
    struct hearth_traces_waiter waiter = {hearth_trace_call_done, call, false};
    hearth_trace_call_expect(call);
    enum hearth_status status = hearth_traces_take_segments(&context, get_segments_keep(rpc),
                                                            segments, n, &waiter, &rpc->err);
    if (!waiter.waits) {
        hearth_trace_call_forget(call);
    }

    return status;
}

/* ---- snapshots ---- */

static enum hearth_status take_snapshot(struct hearth_rpc *rpc, struct hearth_trace_call *call,
                                        const Skywalking__V3__ThreadSnapshot *in)
{
    struct hearth_call context = hearth_rpc_call(rpc);
    struct hearth_snapshot snapshot = {.sequence = in->sequence, .at_ms = in->time};

    /* Frames borrow from the message. */
    if (in->stack != NULL) {
        snapshot.frames =
            hearth_rpc_strs(rpc, in->stack->codesignatures, in->stack->n_codesignatures);
        snapshot.n_frames = (uint32_t)in->stack->n_codesignatures;
        if (snapshot.frames == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    /* The call waits for the commit if the engine has accepted data. */
    struct hearth_traces_waiter waiter = {hearth_trace_call_done, call, false};
    hearth_trace_call_expect(call);
    enum hearth_status status = hearth_traces_take_snapshot(&context, hearth_str_c(in->taskid),
                                                            hearth_str_c(in->tracesegmentid),
                                                            &snapshot, &waiter, &rpc->err);
    if (!waiter.waits) {
        hearth_trace_call_forget(call);
    }

    return status;
}

/* ---- methods ---- */

/* Handles one message or the end of a stream. */
static void collect_message(struct hearth_rpc *rpc,
                            enum hearth_status (*take)(struct hearth_rpc *rpc,
                                                       struct hearth_trace_call *call))
{
    assert(hearth_rpc_is_collecting(rpc));

    struct hearth_trace_call *call = hearth_trace_call_of(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a stream"));
        return;
    }

    /* The end of the stream is answered when all messages are committed. */
    if (rpc->request == NULL) {
        hearth_trace_call_end(rpc, call);
        return;
    }

    /* A failure of an earlier message ends the stream. */
    enum hearth_status status = hearth_trace_call_check(call, &rpc->err);
    if (status == HEARTH_OK) {
        status = take(rpc, call);
    }

    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    hearth_rpc_next(rpc);
}

static enum hearth_status take_one_segment(struct hearth_rpc *rpc, struct hearth_trace_call *call)
{
    const Skywalking__V3__SegmentObject *segment =
        (const Skywalking__V3__SegmentObject *)rpc->request;
    return take_segments(rpc, call, &segment, 1);
}

static enum hearth_status take_one_snapshot(struct hearth_rpc *rpc, struct hearth_trace_call *call)
{
    return take_snapshot(rpc, call, (const Skywalking__V3__ThreadSnapshot *)rpc->request);
}

void hearth_svc_sw_segments(struct hearth_rpc *rpc)
{
    collect_message(rpc, take_one_segment);
}

void hearth_svc_sw_snapshots(struct hearth_rpc *rpc)
{
    collect_message(rpc, take_one_snapshot);
}

void hearth_svc_sw_segments_in_sync(struct hearth_rpc *rpc)
{
    const Skywalking__V3__SegmentCollection *in =
        (const Skywalking__V3__SegmentCollection *)rpc->request;
    struct hearth_trace_call *call = hearth_trace_call_of(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for segments"));
        return;
    }

    /* Read and take the segments. */
    const Skywalking__V3__SegmentObject **all =
        hearth_arena_array(&rpc->arena, in->n_segments, sizeof *all);
    for (size_t i = 0; i < in->n_segments && all != NULL; i++) {
        all[i] = in->segments[i];
    }

    enum hearth_status status = all == NULL ? HEARTH_NO_MEMORY : HEARTH_OK;
    if (status == HEARTH_OK) {
        status = take_segments(rpc, call, all, in->n_segments);
    } else {
        (void)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* The call ends when the segments are committed. */
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    hearth_trace_call_end(rpc, call);
}
