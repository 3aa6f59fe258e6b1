/*
 * exported_spans.c -- spans of OpenTelemetry as groups (contract: hearth/engine/exported_spans.h).
 */
#include "hearth/engine/exported_spans.h"

#include "hearth/base/hash.h"
#include "hearth/base/metrics.h"
#include "hearth/store/store_agents.h"

#include "common/shown.h"
#include "spans/traces_internal.h"

#include <assert.h>
#include <stdlib.h>

#define TRACE_BYTES   16
#define SEGMENT_BYTES (TRACE_BYTES + 8)
#define SAMPLING_SEED 1
/* Packed bytes of the numbers of a span, and of a tag whose texts occurred before. */
#define SPAN_BYTES 80u
#define TAG_BYTES  4u

static void write_number(char to[8], uint64_t number)
{
    for (unsigned i = 0; i < 8; i++) {
        to[i] = (char)(unsigned char)(number >> (56 - 8 * i));
    }
}

/*
 * A hash of its own, so that the decision is independent of SDKs that sample by the bits of the id.
 */
bool hearth_trace_is_kept(struct hearth_trace_id trace, double ratio)
{
    char id[TRACE_BYTES];
    write_number(id, trace.hi);
    write_number(id + 8, trace.lo);
    return (double)(hearth_hash64(id, sizeof id, SAMPLING_SEED) >> 11) * 0x1p-53 < ratio;
}

/* A span that was not dropped so far. */
struct picked_span {
    size_t resource;
    struct hearth_trace_id trace;
    const struct hearth_span *span;
    /* For the first span of a row, number of the row's spans; 0: the row exceeds the rate. */
    size_t n_row;
};

struct export
{
    const struct hearth_call *call;
    struct hearth_limits limits;
    const struct hearth_export_resource *resources;
    double ratio;                 /* fraction of traces that is kept */
    int64_t oldest_ns, newest_ns; /* range in which kept spans begin */
    struct picked_span *picks;
    size_t n_picks;
    struct hearth_span *spans; /* the spans of the picks, in their order */
    struct hearth_taken *taken;
    struct hearth_span_group *groups;
    size_t n_groups;
    struct hearth_export_outcome outcome;
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Sorted by resource and trace, then by start. */
static int compare_picks(const void *left, const void *right)
{
    const struct picked_span *a = left, *b = right;
    int order = compare_u64(a->resource, b->resource);

    order = order != 0 ? order : compare_u64(a->trace.hi, b->trace.hi);
    order = order != 0 ? order : compare_u64(a->trace.lo, b->trace.lo);
    if (order != 0) {
        return order;
    }

    if (a->span->start_ns != b->span->start_ns) {
        return a->span->start_ns < b->span->start_ns ? -1 : 1;
    }

    return compare_u64((uint64_t)a->span->span_id, (uint64_t)b->span->span_id);
}

static void pick_span(struct export *export, size_t resource, struct hearth_exported_span *it)
{
    int64_t newest_ns = export->newest_ns;

    if (!hearth_trace_is_kept(it->trace, export->ratio)) {
        export->outcome.n_sampled++;
        return;
    }

    struct hearth_span *span = &it->span;
    if (span->start_ns < export->oldest_ns || span->start_ns > newest_ns) {
        export->outcome.n_untimely++;
        return;
    }

    /* Correct the end of spans that are still open, or whose clock was set while they ran. */
    span->end_ns = span->end_ns > newest_ns ? newest_ns : span->end_ns;
    span->end_ns = span->end_ns < span->start_ns ? span->start_ns : span->end_ns;
    export->picks[export->n_picks++] = (struct picked_span){resource, it->trace, span, 0};
}

static enum hearth_status pick_spans(struct export *export,
                                     struct hearth_export_resource *resources, size_t n,
                                     struct hearth_err *err)
{
    struct hearth_arena *arena = export->call->arena;
    size_t n_spans = 0;

    /* Count and reserve. */
    hearth_span_times(export->call, &export->limits, &export->oldest_ns, &export->newest_ns);
    for (size_t i = 0; i < n; i++) {
        n_spans += resources[i].n_spans;
    }

    hearth_metric_add(HEARTH_M_OTLP_SPANS, (int64_t)n_spans);
    export->picks = hearth_arena_array(arena, n_spans, sizeof *export->picks);
    export->spans = hearth_arena_array(arena, n_spans, sizeof *export->spans);
    if (export->picks == NULL || export->spans == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Pick the spans that are kept. */
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < resources[i].n_spans; k++) {
            pick_span(export, i, &resources[i].spans[k]);
        }
    }

    /* Sort them into traces, and truncate their texts. */
    qsort(export->picks, export->n_picks, sizeof export->picks[0], compare_picks);
    bool is_cut = false;
    for (size_t i = 0; i < export->n_picks; i++) {
        export->spans[i] = *export->picks[i].span;
        hearth_span_cut(&export->spans[i], &export->limits, &is_cut);
    }

    return HEARTH_OK;
}

/* ---- groups ---- */

/* An upper bound of a span's packed bytes. before: the previous span of its row; NULL: none. */
static size_t bound_span_bytes(const struct hearth_span *span, const struct hearth_span *before)
{
    size_t n = SPAN_BYTES + span->name.n + TAG_BYTES * span->n_tags;
    bool has_same = before != NULL && before->tags == span->tags;

    for (size_t i = 0; i < span->n_tags && !has_same; i++) {
        n += span->tags[i].key.n + span->tags[i].value.n;
    }

    return n;
}

static bool has_same_trace(const struct picked_span *a, const struct picked_span *b)
{
    return a->resource == b->resource && a->trace.hi == b->trace.hi && a->trace.lo == b->trace.lo;
}

/* The end of the row that begins at `from`. */
static size_t find_row_end(const struct export *export, size_t from)
{
    assert(from < export->n_picks);

    const struct hearth_limits *limits = &export->limits;
    size_t max_spans = limits->max_segment_spans > 0 ? (size_t)limits->max_segment_spans : SIZE_MAX;
    size_t max_bytes = limits->max_segment_bytes > 0 ? (size_t)limits->max_segment_bytes : SIZE_MAX;
    size_t n_bytes = bound_span_bytes(&export->spans[from], NULL), to = from + 1;

    while (to < export->n_picks && to - from < max_spans &&
           has_same_trace(&export->picks[from], &export->picks[to])) {
        n_bytes += bound_span_bytes(&export->spans[to], &export->spans[to - 1]);
        if (n_bytes > max_bytes) {
            break;
        }
        to++;
    }

    return to;
}

static struct hearth_str truncate_name(struct hearth_str name)
{
    bool is_cut = false;
    hearth_span_text_cut(&name, HEARTH_AGENT_NAME_BYTES, &is_cut);
    return name;
}

static enum hearth_status make_span_row(struct export *export, size_t from, size_t n,
                                        struct hearth_err *err)
{
    const struct picked_span *first = &export->picks[from];
    const struct hearth_export_resource *resource = &export->resources[first->resource];
    char id[SEGMENT_BYTES];
    uint64_t hash = 0;

    /* The segment id: the trace id and a hash of the span ids. */
    write_number(id, first->trace.hi);
    write_number(id + 8, first->trace.lo);
    for (size_t i = from; i < from + n; i++) {
        char span_id[8];
        write_number(span_id, (uint64_t) export->spans[i].span_id);
        hash = hearth_hash64(span_id, sizeof span_id, hash);
    }

    write_number(id + TRACE_BYTES, hash);

    /* Make the row. */
    struct hearth_segment segment = {
        .trace_id = hearth_str_n(id, TRACE_BYTES),
        .segment_id = hearth_str_n(id, SEGMENT_BYTES),
        .service = truncate_name(resource->service),
        .instance = truncate_name(resource->instance),
        .spans = &export->spans[from],
        .n_spans = n,
        .is_raw = true,
    };

    return hearth_span_group_make(&segment, &export->limits, &export->taken->arena,
                                  &export->groups[export->n_groups++], err);
}

/*
 * Divide the spans into rows, and mark the rows within the rate limit. Returns their number. This
 * precedes all other work on the rows.
 */
static size_t choose_span_rows(struct export *export)
{
    const struct hearth_call *call = export->call;
    size_t n_rows = 0;

    for (size_t from = 0, to; from < export->n_picks; from = to) {
        to = find_row_end(export, from);
        if (hearth_rate_all(call->engine, call->engine->otlp_rates, call->tenant,
                            export->limits.max_otlp_span_rate, to - from)) {
            export->picks[from].n_row = to - from;
            n_rows++;
        } else {
            export->outcome.n_too_many += to - from;
        }
    }

    return n_rows;
}

static enum hearth_status make_span_rows(struct export *export, size_t n_rows,
                                         struct hearth_err *err)
{
    assert(n_rows > 0);

    struct hearth_arena *arena = &export->taken->arena;

    export->groups = hearth_arena_calloc(arena, n_rows, sizeof *export->groups);
    if (export->groups == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Make a row at each marked span. */
    for (size_t i = 0; i < export->n_picks; i++) {
        if (export->picks[i].n_row > 0) {
            HEARTH_TRY(make_span_row(export, i, export->picks[i].n_row, err));
        }
    }

    export->taken->item.groups = export->groups;
    export->taken->item.n_groups = export->n_groups;

    return HEARTH_OK;
}

static void count_dropped_exported(const char *reason, size_t n)
{
    if (n > 0) {
        hearth_metric_add_label(HEARTH_M_OTLP_SPANS_DROPPED, hearth_str_c(reason), (int64_t)n);
    }
}

static enum hearth_status submit_span_rows(struct export *export, size_t n_rows,
                                           struct hearth_traces_waiter *waiter,
                                           struct hearth_err *err)
{
    /* The rows are copied, because they outlive the request. */
    export->taken = hearth_taken_new(export->call, &export->limits, waiter);
    if (export->taken == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu rows of spans", n_rows);
    }

    export->taken->arena.limit_bytes = export->call->arena->limit_bytes;
    enum hearth_status status = make_span_rows(export, n_rows, err);
    if (status != HEARTH_OK) {
        hearth_taken_free(export->taken);
        return status;
    }

    return hearth_taken_submit(export->call, export->taken, waiter, err);
}

/* A narrowed call may send spans of services that it sees wholly. */
static enum hearth_status check_export_services(const struct hearth_call *call,
                                                const struct hearth_export_resource *resources,
                                                size_t n, struct hearth_err *err)
{
    for (size_t i = 0; hearth_call_is_narrow(call) && i < n; i++) {
        HEARTH_TRY(hearth_call_check_service(call, truncate_name(resources[i].service), err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_traces_take_export(const struct hearth_call *call, double ratio,
                                             struct hearth_export_resource *resources, size_t n,
                                             struct hearth_traces_waiter *waiter,
                                             struct hearth_export_outcome *ret,
                                             struct hearth_err *err)
{
    struct export export = {.call = call, .resources = resources, .ratio = ratio};

    assert(call != NULL && waiter != NULL && ret != NULL);

    waiter->waits = false;

    /* Pick spans, and divide them into rows. */
    hearth_call_limits(call, &export.limits);
    HEARTH_TRY(check_export_services(call, resources, n, err));
    HEARTH_TRY(pick_spans(&export, resources, n, err));
    size_t n_rows = choose_span_rows(&export);

    /* Submit the rows. */
    if (n_rows > 0) {
        HEARTH_TRY(submit_span_rows(&export, n_rows, waiter, err));
    }

    /* Report what was dropped. */
    count_dropped_exported("sampling", export.outcome.n_sampled);
    count_dropped_exported("time", export.outcome.n_untimely);
    count_dropped_exported("rate", export.outcome.n_too_many);
    *ret = export.outcome;

    return HEARTH_OK;
}
