/*
 * traces.c -- spans and thread snapshots from agents, prepared for the store (contract:
 * hearth/engine/traces.h).
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"
#include "hearth/store/background.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"

#include "common/shown.h"
#include "common/task_refusals.h"
#include "spans/traces_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_ID_BYTES 512
#define MAX_TIME_MS  (INT64_MAX / HEARTH_NS_PER_MS)
/* Small first chunk, because most segments are small and many wait at once. */
#define FIRST_CHUNK_BYTES 512u

bool hearth_segments_keep_parse(struct hearth_str text, enum hearth_segments_keep *ret)
{
    static const char *const names[] = {"all", "profiled", "none"};

    assert(ret != NULL);

    for (unsigned i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (hearth_str_eq_c(text, names[i])) {
            *ret = (enum hearth_segments_keep)i;
            return true;
        }
    }

    return false;
}

/* ---- items ---- */

void hearth_taken_free(struct hearth_taken *taken)
{
    assert(taken != NULL);

    hearth_arena_release(&taken->arena);
    hearth_mem_free(taken);
}

static void finish_taken(struct hearth_trace_item *item, enum hearth_status status,
                         const struct hearth_err *err)
{
    struct hearth_taken *taken = HEARTH_CONTAINER_OF(item, struct hearth_taken, item);
    taken->done(taken->context, status, err);
    hearth_taken_free(taken);
}

struct hearth_taken *hearth_taken_new(const struct hearth_call *call,
                                      const struct hearth_limits *limits,
                                      const struct hearth_traces_waiter *waiter)
{
    struct hearth_taken *taken = hearth_mem_zalloc(sizeof *taken);

    if (taken == NULL) {
        return NULL;
    }

    /* Everything is copied into an arena of its own. */
    hearth_arena_init(&taken->arena, 0);
    taken->arena.next_chunk_bytes = FIRST_CHUNK_BYTES;
    taken->done = waiter->done;
    taken->context = waiter->context;

    /* Limits go with the item, because the committer applies them. */
    taken->item.tenant = hearth_arena_str(&taken->arena, call->tenant);
    taken->item.done = finish_taken;
    taken->item.max_snapshots = limits->max_segment_snapshots;
    taken->item.max_instances = limits->max_agent_instances;
    taken->item.max_processes = limits->max_agent_processes;

    return taken;
}

enum hearth_status hearth_taken_submit(const struct hearth_call *call, struct hearth_taken *taken,
                                       struct hearth_traces_waiter *waiter, struct hearth_err *err)
{
    enum hearth_status status;

    assert(call != NULL && waiter != NULL);

    if (taken->arena.refused) {
        status = HEARTH_FAIL_ARENA(err, &taken->arena);
    } else {
        status = hearth_store_submit_traces(call->engine->store, &taken->item, err);
    }

    waiter->waits = status == HEARTH_OK;
    if (status != HEARTH_OK) {
        hearth_taken_free(taken);
    }

    return status;
}

/* ---- rate ---- */

/* Find the tenant's slot, with the tokens it has earned until now. The caller holds rates_lock. */
static struct hearth_segment_rate *
refill_rate_slot(const struct hearth_query_engine *engine,
                 struct hearth_segment_rate slots[HEARTH_RATE_SLOTS], struct hearth_str tenant,
                 int64_t rate)
{
    hearth_mutex_assert_held(&engine->rates_lock);
    assert(rate > 0);

    struct hearth_segment_rate *slot =
        &slots[hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed()) % HEARTH_RATE_SLOTS];
    int64_t now_ns = hearth_clock_mono_ns();

    /* Tokens of one second at most. */
    double earned = (double)(now_ns - slot->at_mono_ns) * (double)rate / 1e9;

    slot->tokens = slot->at_mono_ns == 0 || slot->tokens + earned > (double)rate
                       ? (double)rate
                       : slot->tokens + earned;
    slot->at_mono_ns = now_ns;

    return slot;
}

/*
 * The number of n items that the tenant may have now, at `rate` per second; a rate of 0 allows all.
 * slots belong to the engine.
 */
static size_t allow_some_items(struct hearth_query_engine *engine,
                               struct hearth_segment_rate slots[HEARTH_RATE_SLOTS],
                               struct hearth_str tenant, int64_t rate, size_t n)
{
    if (rate <= 0) {
        return n;
    }

    hearth_mutex_lock(&engine->rates_lock);
    struct hearth_segment_rate *slot = refill_rate_slot(engine, slots, tenant, rate);
    size_t n_allowed = slot->tokens < (double)n ? (size_t)slot->tokens : n;
    slot->tokens -= (double)n_allowed;
    hearth_mutex_unlock(&engine->rates_lock);

    return n_allowed;
}

bool hearth_rate_all(struct hearth_query_engine *engine,
                     struct hearth_segment_rate slots[HEARTH_RATE_SLOTS], struct hearth_str tenant,
                     int64_t rate, size_t n)
{
    if (rate <= 0) {
        return true;
    }

    hearth_mutex_lock(&engine->rates_lock);
    struct hearth_segment_rate *slot = refill_rate_slot(engine, slots, tenant, rate);
    bool is_allowed = slot->tokens >= (double)(n < (uint64_t)rate ? n : (uint64_t)rate);
    slot->tokens -= is_allowed ? (double)n : 0;
    hearth_mutex_unlock(&engine->rates_lock);

    return is_allowed;
}

static void count_dropped_segments(const char *reason, size_t n)
{
    if (n > 0) {
        hearth_metric_add_label(HEARTH_M_SEGMENTS_DROPPED, hearth_str_c(reason), (int64_t)n);
    }
}

/* ---- segments ---- */

static enum hearth_status check_segment_id(struct hearth_str id, const char *what,
                                           struct hearth_err *err)
{
    if (id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a segment has no %s", what);
    }
    if (id.n > MAX_ID_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a %s has %zu bytes: %d are allowed", what,
                           id.n, MAX_ID_BYTES);
    }

    return HEARTH_OK;
}

static enum hearth_status check_taken_segment(const struct hearth_segment *segment,
                                              struct hearth_err *err)
{
    HEARTH_TRY(check_segment_id(segment->trace_id, "trace id", err));
    HEARTH_TRY(check_segment_id(segment->segment_id, "segment id", err));

    /* Service and spans are required. */
    if (segment->service.n == 0 || segment->n_spans == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "segment \"" HEARTH_STR_FMT "\" has no %s",
                           HEARTH_STR_ARG(segment->segment_id),
                           segment->service.n == 0 ? "service" : "spans");
    }

    if (segment->service.n > HEARTH_AGENT_NAME_BYTES ||
        segment->instance.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "segment \"" HEARTH_STR_FMT
                           "\": the names of services and instances have at most %d bytes",
                           HEARTH_STR_ARG(segment->segment_id), HEARTH_AGENT_NAME_BYTES);
    }

    return HEARTH_OK;
}

static int compare_by_span_id(const void *left, const void *right)
{
    const struct hearth_span *a = left, *b = right;
    return (a->span_id > b->span_id) - (a->span_id < b->span_id);
}

void hearth_span_text_cut(struct hearth_str *text, size_t max, bool *is_cut)
{
    if (text->n <= max) {
        return;
    }

    text->n = max;
    while (text->n > 0 && ((unsigned char)text->p[text->n] & 0xc0) == 0x80) {
        text->n--;
    }
    *is_cut = true;
}

static void truncate_tags(struct hearth_span_tag *tags, size_t n, size_t max, bool *is_cut)
{
    for (size_t i = 0; i < n; i++) {
        hearth_span_text_cut(&tags[i].key, max, is_cut);
        hearth_span_text_cut(&tags[i].value, max, is_cut);
    }
}

void hearth_span_cut(struct hearth_span *span, const struct hearth_limits *limits, bool *is_cut)
{
    size_t max = limits->max_span_text_bytes > 0 ? (size_t)limits->max_span_text_bytes : SIZE_MAX;

    /* Texts of the span and its references. */
    hearth_span_text_cut(&span->name, max, is_cut);
    hearth_span_text_cut(&span->peer, max, is_cut);
    for (size_t i = 0; i < span->n_refs; i++) {
        struct hearth_span_ref *ref = &span->refs[i];
        hearth_span_text_cut(&ref->service, max, is_cut);
        hearth_span_text_cut(&ref->instance, max, is_cut);
        hearth_span_text_cut(&ref->endpoint, max, is_cut);
        hearth_span_text_cut(&ref->address, max, is_cut);
    }

    /* Tags and logs. */
    truncate_tags(span->tags, span->n_tags, max, is_cut);
    for (size_t i = 0; i < span->n_logs; i++) {
        truncate_tags(span->logs[i].tags, span->logs[i].n_tags, max, is_cut);
    }
}

static void truncate_segment(struct hearth_segment *segment, const struct hearth_limits *limits)
{
    /* Sort the spans, and apply the limit. */
    if (!segment->is_raw) {
        qsort(segment->spans, segment->n_spans, sizeof segment->spans[0], compare_by_span_id);
    }

    if (limits->max_segment_spans > 0 && segment->n_spans > (uint64_t)limits->max_segment_spans) {
        segment->n_spans = (size_t)limits->max_segment_spans;
        segment->is_cut = true;
    }

    /* Truncate their texts. */
    for (size_t i = 0; i < segment->n_spans; i++) {
        hearth_span_cut(&segment->spans[i], limits, &segment->is_cut);
    }
}

/* Make a segment smaller: drop tags and logs, then the later half of the spans. */
static void shrink_segment(struct hearth_segment *segment)
{
    bool any = false;

    for (size_t i = 0; i < segment->n_spans; i++) {
        any = any || segment->spans[i].n_tags > 0 || segment->spans[i].n_logs > 0;
        segment->spans[i].n_tags = segment->spans[i].n_logs = 0;
    }

    if (!any) {
        segment->n_spans = (segment->n_spans + 1) / 2;
    }

    segment->is_cut = true;
}

static enum hearth_status pack_segment_spans(struct hearth_segment *segment, int64_t origin_ns,
                                             const struct hearth_limits *limits,
                                             struct hearth_arena *arena, struct hearth_str *ret,
                                             struct hearth_err *err)
{
    struct hearth_buf plain, packed;

    hearth_buf_init(&plain, 0);
    hearth_buf_init(&packed, 0);
    uint64_t max = limits->max_segment_bytes > 0 ? (uint64_t)limits->max_segment_bytes : UINT64_MAX;

    /* Encode, and shrink until it fits. */
    hearth_spans_encode(segment->spans, segment->n_spans, origin_ns, &plain);
    for (int i = 0; plain.n > max && segment->n_spans > 0 && i < 64; i++) {
        shrink_segment(segment);
        hearth_buf_reset(&plain);
        hearth_spans_encode(segment->spans, segment->n_spans, origin_ns, &plain);

        if (segment->n_spans == 1 && plain.n > max) {
            segment->spans[0].n_refs = 0;
        }
    }

    /* Pack. */
    enum hearth_status status;
    if (hearth_buf_failed(&plain)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to pack a segment");
    } else {
        status = hearth_pack_text(hearth_buf_view(&plain), &packed, err);
    }

    if (status == HEARTH_OK) {
        *ret = hearth_arena_str(arena, hearth_buf_view(&packed));
        status = ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }

    hearth_buf_release(&plain);
    hearth_buf_release(&packed);

    return status;
}

/* List the ids of the remaining spans. */
static enum hearth_status list_span_ids(const struct hearth_segment *segment,
                                        struct hearth_arena *arena, struct hearth_span_group *ret,
                                        struct hearth_err *err)
{
    uint64_t *ids = hearth_arena_array(arena, segment->n_spans, sizeof *ids);

    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < segment->n_spans; i++) {
        ids[i] = (uint64_t)segment->spans[i].span_id;
    }

    ret->span_ids = ids;
    ret->n_span_ids = segment->n_spans;

    return HEARTH_OK;
}

enum hearth_status hearth_span_group_make(struct hearth_segment *segment,
                                          const struct hearth_limits *limits,
                                          struct hearth_arena *arena, struct hearth_span_group *ret,
                                          struct hearth_err *err)
{
    assert(ret != NULL);

    /* Apply the limits. */
    assert(segment->n_spans > 0);

    truncate_segment(segment, limits);

    /* Find the segment's times and status. */
    const struct hearth_span *first = &segment->spans[0];
    int64_t start_ns = first->start_ns, end_ns = first->end_ns;
    bool has_error = false;
    for (size_t i = 0; i < segment->n_spans; i++) {
        const struct hearth_span *span = &segment->spans[i];
        start_ns = span->start_ns < start_ns ? span->start_ns : start_ns;
        end_ns = span->end_ns > end_ns ? span->end_ns : end_ns;
        has_error = has_error || span->status == HEARTH_SPAN_ERROR;
    }

    /* Make the row. */
    *ret = (struct hearth_span_group){
        .service = hearth_arena_str(arena, segment->service),
        .instance = hearth_arena_str(arena, segment->instance),
        .trace_id = hearth_arena_str(arena, segment->trace_id),
        .segment_id = hearth_arena_str(arena, segment->segment_id),
        .is_raw = segment->is_raw,
        .start_ns = start_ns,
        .end_ns = end_ns < start_ns ? start_ns : end_ns,
        .endpoint = hearth_arena_str(arena, first->name),
        .kind = first->kind,
        .has_error = has_error,
    };
    HEARTH_TRY(pack_segment_spans(segment, start_ns, limits, arena, &ret->spans, err));
    ret->is_cut = segment->is_cut;
    ret->n_spans = (int32_t)segment->n_spans;

    return segment->is_raw ? list_span_ids(segment, arena, ret, err) : HEARTH_OK;
}

void hearth_span_times(const struct hearth_call *call, const struct hearth_limits *limits,
                       int64_t *ret_oldest_ns, int64_t *ret_newest_ns)
{
    struct hearth_retention retention;

    assert(call != NULL && ret_oldest_ns != NULL && ret_newest_ns != NULL);

    /* Spans are kept for retain-spans, otherwise within the ingestion window. */
    hearth_store_retention(call->engine->store, call->tenant, &retention);
    int64_t kept_ns = retention.spans_ns > 0 ? retention.spans_ns : limits->reject_older_than_ns;
    int64_t now_ns = hearth_clock_wall_ns(), newest_ns = INT64_MAX;

    /* They may not lie too far in the future. */
    if (limits->reject_newer_than_ns > 0 &&
        __builtin_add_overflow(now_ns, limits->reject_newer_than_ns, &newest_ns)) {
        newest_ns = INT64_MAX;
    }

    *ret_oldest_ns = kept_ns > 0 && kept_ns < now_ns ? now_ns - kept_ns : 0;
    *ret_newest_ns = newest_ns;
}

/*
 * Whether all spans of a segment began in time; otherwise *ret_start_ns is the start of one that
 * did not.
 */
static bool is_segment_in_time(const struct hearth_call *call, const struct hearth_limits *limits,
                               const struct hearth_segment *segment, int64_t *ret_start_ns)
{
    int64_t oldest_ns, newest_ns;

    hearth_span_times(call, limits, &oldest_ns, &newest_ns);
    for (size_t i = 0; i < segment->n_spans; i++) {
        const struct hearth_span *span = &segment->spans[i];
        if (span->start_ns < oldest_ns || span->start_ns > newest_ns) {
            *ret_start_ns = span->start_ns;
            return false;
        }
    }

    return true;
}

/*
 * Log a wrong clock with the trace tasks of the instance, which would otherwise look idle. Once a
 * second is enough.
 */
static void log_untimely_segment(const struct hearth_call *call,
                                 const struct hearth_segment *segment, int64_t start_ns)
{
    if (segment->is_raw || segment->instance.n == 0 ||
        allow_some_items(call->engine, call->engine->refusal_rates, segment->instance, 1, 1) == 0) {
        return;
    }

    /* Compose the message. */
    struct hearth_err why = {0}, err = {0};
    char clock[96];
    int64_t now_ns = hearth_clock_wall_ns();
    hearth_task_clock_text((double)start_ns - (double)now_ns, clock);
    (void)HEARTH_FAIL(&why, HEARTH_INVALID_ARGUMENT,
                      "%s: spans are kept when they began within retain-spans and at most "
                      "reject-newer-than in the future",
                      clock);

    /* Log it. */
    const struct hearth_task_refusal refusal = {
        .service = segment->service,
        .instance = segment->instance,
        .at_ms = now_ns / HEARTH_NS_PER_MS,
        .message = hearth_task_refusal_text(&why, call->arena),
    };
    if (refusal.message.p != NULL &&
        hearth_store_task_log_refusal(HEARTH_CALL_SCOPE(call), &refusal, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "tasks", "could not log a refusal with its trace tasks",
                   "error", err.msg, NULL);
    }
}

static enum hearth_status fill_taken_segments(const struct hearth_call *call,
                                              const struct hearth_limits *limits,
                                              struct hearth_segment *segments, size_t n,
                                              struct hearth_taken *taken, struct hearth_err *err)
{
    struct hearth_span_group *groups = hearth_arena_calloc(&taken->arena, n, sizeof *groups);

    if (groups == NULL) {
        return HEARTH_FAIL_ARENA(err, &taken->arena);
    }

    /* Make a row for each segment that began in time. */
    size_t n_groups = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t start_ns;
        if (is_segment_in_time(call, limits, &segments[i], &start_ns)) {
            HEARTH_TRY(hearth_span_group_make(&segments[i], limits, &taken->arena,
                                              &groups[n_groups++], err));
        } else {
            log_untimely_segment(call, &segments[i], start_ns);
        }
    }

    /* Count the others. */
    taken->item.groups = groups;
    taken->item.n_groups = n_groups;
    count_dropped_segments("time", n - n_groups);

    return HEARTH_OK;
}

/* A narrowed call may send segments of services that it sees wholly. */
static enum hearth_status check_segment_services(const struct hearth_call *call,
                                                 const struct hearth_segment *segments, size_t n,
                                                 struct hearth_err *err)
{
    for (size_t i = 0; hearth_call_is_narrow(call) && i < n; i++) {
        if (i == 0 || !hearth_str_eq(segments[i].service, segments[i - 1].service)) {
            HEARTH_TRY(hearth_call_check_service(call, segments[i].service, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_traces_take_segments(const struct hearth_call *call,
                                               enum hearth_segments_keep keep,
                                               struct hearth_segment *segments, size_t n,
                                               struct hearth_traces_waiter *waiter,
                                               struct hearth_err *err)
{
    assert(call != NULL && waiter != NULL);

    waiter->waits = false;

    /* Check all segments before any is taken. */
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(check_taken_segment(&segments[i], err));
    }
    HEARTH_TRY(check_segment_services(call, segments, n, err));

    if (keep == HEARTH_KEEP_NONE) {
        count_dropped_segments("keep", n);
        return HEARTH_OK;
    }

    /* Apply the rate limit. */
    struct hearth_limits limits;
    hearth_call_limits(call, &limits);
    size_t n_allowed = allow_some_items(call->engine, call->engine->segment_rates, call->tenant,
                                        limits.max_segment_rate, n);
    count_dropped_segments("rate", n - n_allowed);
    if (n_allowed == 0) {
        return HEARTH_OK;
    }

    /* Make the rows, and submit them. */
    struct hearth_taken *taken = hearth_taken_new(call, &limits, waiter);
    if (taken == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a segment");
    }

    taken->item.only_profiled = keep == HEARTH_KEEP_PROFILED;
    enum hearth_status status = fill_taken_segments(call, &limits, segments, n_allowed, taken, err);
    if (status != HEARTH_OK || taken->item.n_groups == 0) {
        hearth_taken_free(taken);
        return status;
    }

    return hearth_taken_submit(call, taken, waiter, err);
}

/* ---- snapshots ---- */

static enum hearth_status check_snapshot(struct hearth_str task_id, struct hearth_str segment_id,
                                         const struct hearth_snapshot *snapshot,
                                         struct hearth_err *err)
{
    if (task_id.n == 0 || task_id.n > MAX_ID_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a thread snapshot's task id has %zu bytes: 1 to %d are allowed",
                           task_id.n, MAX_ID_BYTES);
    }

    /* The ids must fit their columns. */
    if (segment_id.n == 0 || segment_id.n > MAX_ID_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a thread snapshot's segment id has %zu bytes: 1 to %d are allowed",
                           segment_id.n, MAX_ID_BYTES);
    }

    if (snapshot->sequence < 0 || snapshot->at_ms <= 0 || snapshot->at_ms > MAX_TIME_MS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a thread snapshot of segment \"" HEARTH_STR_FMT "\" has number %" PRId32
                           " and time %" PRId64
                           ": numbers begin at 0, times lie between 1970 and 2262",
                           HEARTH_STR_ARG(segment_id), snapshot->sequence, snapshot->at_ms);
    }

    return HEARTH_OK;
}

/*
 * Truncate a long signature at its start, as symbols are, because the method's name is at the end.
 */
static struct hearth_str truncate_signature(struct hearth_str text, int64_t max)
{
    if (max <= 0 || text.n <= (uint64_t)max) {
        return text;
    }

    size_t from = text.n - (size_t)max;
    while (from < text.n && ((unsigned char)text.p[from] & 0xc0) == 0x80) {
        from++;
    }

    return hearth_str_n(text.p + from, text.n - from);
}

static void copy_snapshot(const struct hearth_limits *limits, const struct hearth_snapshot *from,
                          struct hearth_arena *arena, struct hearth_snapshot *ret)
{
    uint32_t n = from->n_frames;

    if (limits->max_snapshot_frames > 0 && n > limits->max_snapshot_frames) {
        n = (uint32_t)limits->max_snapshot_frames;
    }

    /* Copy the frames within their limits. */
    struct hearth_str *frames = hearth_arena_array(arena, n, sizeof *frames);
    bool is_cut = n < from->n_frames;
    for (uint32_t i = 0; i < n && frames != NULL; i++) {
        struct hearth_str kept = truncate_signature(from->frames[i], limits->max_symbol_bytes);
        is_cut = is_cut || kept.n < from->frames[i].n;
        frames[i] = hearth_arena_str(arena, kept);
    }

    /* Set the copy. */
    *ret = *from;
    ret->is_cut = is_cut;
    ret->frames = frames;
    ret->n_frames = frames == NULL ? 0 : n;
}

enum hearth_status
hearth_traces_take_snapshot(const struct hearth_call *call, struct hearth_str task_id,
                            struct hearth_str segment_id, const struct hearth_snapshot *snapshot,
                            struct hearth_traces_waiter *waiter, struct hearth_err *err)
{
    assert(call != NULL && waiter != NULL);

    waiter->waits = false;

    /* Check the snapshot. */
    HEARTH_TRY(check_snapshot(task_id, segment_id, snapshot, err));
    bool shows;
    HEARTH_TRY(hearth_call_shows_task(call, task_id, &shows, err));
    if (!shows) { /* as one that does not exist */
        return HEARTH_OK;
    }

    struct hearth_limits limits;
    hearth_call_limits(call, &limits);

    /* Copy it, and submit it. */
    struct hearth_taken *taken = hearth_taken_new(call, &limits, waiter);
    if (taken == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a thread snapshot");
    }

    struct hearth_task_snapshot *one = hearth_arena_calloc(&taken->arena, 1, sizeof *one);
    if (one != NULL) {
        one->task_id = hearth_arena_str(&taken->arena, task_id);
        one->segment_id = hearth_arena_str(&taken->arena, segment_id);
        copy_snapshot(&limits, snapshot, &taken->arena, &one->snapshot);
        taken->item.snapshots = one;
        taken->item.n_snapshots = 1;
    }

    return hearth_taken_submit(call, taken, waiter, err);
}
