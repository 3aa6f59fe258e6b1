/*
 * spans.c -- spans as stored bytes (contract: hearth/model/spans.h).
 *
 *   version 1, table of texts, unit of times (0: ns, 1: ms), number of spans; then for each span:
 *   flags; id minus the previous one; parent minus id, if it has a parent; start minus origin;
 *   length; name, peer; layer, component; with HAS_MORE: references, tags, logs, each preceded by
 *   their number
 *
 * SkyWalking's times are whole milliseconds; stored as such they take a third of the bytes.
 */
#include "hearth/model/spans.h"

#include "hearth/base/hash.h"

#include "profile/text_table.h"

#include <assert.h>

#define VERSION   1
#define NS_PER_MS 1000000

enum {
    HAS_PARENT = 1u << 0,
    SKIPS = 1u << 1,
    HAS_MORE = 1u << 2,
    KIND_SHIFT = 3,
    STATUS_SHIFT = 6,
    MAX_FLAGS = 255,
};

/* The fewest bytes that an item takes. */
enum {
    MIN_SPAN_BYTES = 8,
    MIN_REF_BYTES = 8,
    MIN_TAG_BYTES = 2,
    MIN_LOG_BYTES = 2,
};

/* Differences and sums that wrap around, so that decoding restores any value. */
static int64_t subtract_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* ---- writing ---- */

/* True if all times of a span are whole milliseconds from the origin. */
static bool is_whole_ms(const struct hearth_span *span, int64_t origin_ns)
{
    bool whole = subtract_wrapping(span->start_ns, origin_ns) % NS_PER_MS == 0 &&
                 subtract_wrapping(span->end_ns, span->start_ns) % NS_PER_MS == 0;
    for (size_t i = 0; i < span->n_logs && whole; i++) {
        whole = subtract_wrapping(span->logs[i].at_ns, span->start_ns) % NS_PER_MS == 0;
    }
    return whole;
}

static void put_tags(struct hearth_text_writer *to, const struct hearth_span_tag *tags, size_t n)
{
    hearth_number_put(to, n);
    for (size_t i = 0; i < n; i++) {
        hearth_text_put(to, tags[i].key);
        hearth_text_put(to, tags[i].value);
    }
}

static void put_more(struct hearth_text_writer *to, const struct hearth_span *span, int64_t unit_ns)
{
    hearth_number_put(to, span->n_refs);
    for (size_t i = 0; i < span->n_refs; i++) {
        const struct hearth_span_ref *ref = &span->refs[i];
        hearth_number_put(to, ref->across_threads);
        hearth_text_put(to, ref->trace_id);
        hearth_text_put(to, ref->segment_id);
        hearth_signed_put(to, ref->span_id);
        hearth_text_put(to, ref->service);
        hearth_text_put(to, ref->instance);
        hearth_text_put(to, ref->endpoint);
        hearth_text_put(to, ref->address);
    }

    put_tags(to, span->tags, span->n_tags);
    hearth_number_put(to, span->n_logs);
    for (size_t i = 0; i < span->n_logs; i++) {
        hearth_signed_put(to, subtract_wrapping(span->logs[i].at_ns, span->start_ns) / unit_ns);
        put_tags(to, span->logs[i].tags, span->logs[i].n_tags);
    }
}

static void put_span(struct hearth_text_writer *to, const struct hearth_span *span,
                     int64_t previous_id, int64_t origin_ns, int64_t unit_ns)
{
    assert(unit_ns > 0);

    bool has_more = span->n_refs > 0 || span->n_tags > 0 || span->n_logs > 0;

    hearth_number_put(to, (span->has_parent ? HAS_PARENT : 0u) |
                              (span->skip_analysis ? SKIPS : 0u) | (has_more ? HAS_MORE : 0u) |
                              (unsigned)span->kind << KIND_SHIFT |
                              (unsigned)span->status << STATUS_SHIFT);
    hearth_signed_put(to, subtract_wrapping(span->span_id, previous_id));
    if (span->has_parent) {
        hearth_signed_put(to, subtract_wrapping(span->parent_id, span->span_id));
    }

    hearth_signed_put(to, subtract_wrapping(span->start_ns, origin_ns) / unit_ns);
    hearth_signed_put(to, subtract_wrapping(span->end_ns, span->start_ns) / unit_ns);
    hearth_text_put(to, span->name);
    hearth_text_put(to, span->peer);
    hearth_signed_put(to, span->layer);
    hearth_signed_put(to, span->component);
    if (has_more) {
        put_more(to, span, unit_ns);
    }
}

void hearth_spans_encode(const struct hearth_span *spans, size_t n, int64_t origin_ns,
                         struct hearth_buf *out)
{
    assert((spans != NULL || n == 0) && out != NULL);

    /* Choose the unit for all spans. */
    bool whole = true;

    for (size_t i = 0; i < n && whole; i++) {
        whole = is_whole_ms(&spans[i], origin_ns);
    }

    struct hearth_text_writer to;
    hearth_text_writer_init(&to);
    hearth_number_put(&to, whole);
    hearth_number_put(&to, n);
    for (size_t i = 0; i < n; i++) {
        put_span(&to, &spans[i], i == 0 ? 0 : spans[i - 1].span_id, origin_ns,
                 whole ? NS_PER_MS : 1);
    }

    hearth_text_writer_finish(&to, VERSION, out);
}

/* ---- reading ---- */

struct span_reader {
    struct hearth_text_reader from;
    struct hearth_arena *arena;
    int64_t origin_ns, unit_ns;
};

static int64_t get_time(struct span_reader *reading, int64_t base_ns)
{
    int64_t ns;
    if (__builtin_mul_overflow(hearth_signed_get(&reading->from), reading->unit_ns, &ns)) {
        reading->from.failed = true;
        ns = 0;
    }
    return add_wrapping(base_ns, ns);
}

/*
 * Allocate an array of as many items as the bytes tell. NULL, with reading->arena->refused, if
 * memory was refused.
 */
static void *get_array(struct span_reader *reading, size_t min_bytes, size_t size, size_t *ret_n)
{
    assert(min_bytes > 0);

    *ret_n = hearth_count_get(&reading->from, min_bytes);
    void *all = hearth_arena_calloc(reading->arena, *ret_n, size);
    *ret_n = all == NULL ? 0 : *ret_n;
    return all;
}

static struct hearth_span_tag *get_tags(struct span_reader *reading, size_t *ret_n)
{
    struct hearth_span_tag *tags = get_array(reading, MIN_TAG_BYTES, sizeof *tags, ret_n);
    for (size_t i = 0; i < *ret_n; i++) {
        tags[i].key = hearth_text_get(&reading->from);
        tags[i].value = hearth_text_get(&reading->from);
    }
    return tags;
}

static void get_ref(struct hearth_text_reader *from, struct hearth_span_ref *ref)
{
    ref->across_threads = hearth_below_get(from, 1) == 1;
    ref->trace_id = hearth_text_get(from);
    ref->segment_id = hearth_text_get(from);
    ref->span_id = hearth_signed_get(from);
    ref->service = hearth_text_get(from);
    ref->instance = hearth_text_get(from);
    ref->endpoint = hearth_text_get(from);
    ref->address = hearth_text_get(from);
}

static void get_more(struct span_reader *reading, struct hearth_span *span)
{
    span->refs = get_array(reading, MIN_REF_BYTES, sizeof *span->refs, &span->n_refs);
    for (size_t i = 0; i < span->n_refs; i++) {
        get_ref(&reading->from, &span->refs[i]);
    }

    span->tags = get_tags(reading, &span->n_tags);
    span->logs = get_array(reading, MIN_LOG_BYTES, sizeof *span->logs, &span->n_logs);
    for (size_t i = 0; i < span->n_logs; i++) {
        span->logs[i].at_ns = get_time(reading, span->start_ns);
        span->logs[i].tags = get_tags(reading, &span->logs[i].n_tags);
    }
}

/* A number of 32 bits. */
static int32_t get_small(struct hearth_text_reader *from)
{
    int64_t value = hearth_signed_get(from);
    from->failed = from->failed || value < INT32_MIN || value > INT32_MAX;
    return from->failed ? 0 : (int32_t)value;
}

static void get_span(struct span_reader *reading, int64_t previous_id, struct hearth_span *span)
{
    struct hearth_text_reader *from = &reading->from;
    unsigned flags = (unsigned)hearth_below_get(from, MAX_FLAGS);
    unsigned kind = flags >> KIND_SHIFT & 7u, status = flags >> STATUS_SHIFT;

    /* Flags. */
    from->failed = from->failed || kind >= HEARTH_N_SPAN_KINDS || status >= HEARTH_N_SPAN_STATUSES;
    span->kind = from->failed ? HEARTH_SPAN_LOCAL : (enum hearth_span_kind)kind;
    span->status = from->failed ? HEARTH_SPAN_UNSET : (enum hearth_span_status)status;
    span->has_parent = (flags & HAS_PARENT) != 0;
    span->skip_analysis = (flags & SKIPS) != 0;

    /* Ids, times, texts. */
    span->span_id = add_wrapping(previous_id, hearth_signed_get(from));
    span->parent_id = span->has_parent ? add_wrapping(span->span_id, hearth_signed_get(from)) : -1;
    span->start_ns = get_time(reading, reading->origin_ns);
    span->end_ns = get_time(reading, span->start_ns);
    span->name = hearth_text_get(from);
    span->peer = hearth_text_get(from);
    span->layer = get_small(from);
    span->component = get_small(from);
    if ((flags & HAS_MORE) != 0) {
        get_more(reading, span);
    }
}

enum hearth_status hearth_spans_decode(struct hearth_str bytes, int64_t origin_ns,
                                       struct hearth_arena *arena, struct hearth_span **ret,
                                       size_t *ret_n, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL && ret_n != NULL);

    struct span_reader reading = {.arena = arena, .origin_ns = origin_ns};

    if (!hearth_text_reader_init(&reading.from, bytes, VERSION, arena)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* The head, then the spans. */
    reading.unit_ns = hearth_below_get(&reading.from, 1) == 1 ? NS_PER_MS : 1;
    size_t n = hearth_count_get(&reading.from, MIN_SPAN_BYTES);
    struct hearth_span *spans = hearth_arena_calloc(arena, n, sizeof *spans);
    if (spans == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n && !reading.from.failed && !arena->refused; i++) {
        get_span(&reading, i == 0 ? 0 : spans[i - 1].span_id, &spans[i]);
    }

    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (reading.from.failed || reading.from.at != reading.from.end) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "stored spans are damaged (%zu bytes)", bytes.n);
    }

    *ret = spans;
    *ret_n = n;

    return HEARTH_OK;
}

/* ---- keys ---- */

int64_t hearth_trace_key(struct hearth_str id, bool is_raw)
{
    uint64_t words[2];

    /* 32 hexadecimal digits are hashed as the 16 bytes that they mean. */
    if (!is_raw && id.n == 32 && hearth_str_hex_to_u64(hearth_str_n(id.p, 16), &words[0]) &&
        hearth_str_hex_to_u64(hearth_str_n(id.p + 16, 16), &words[1])) {
        char bytes[16];
        for (unsigned i = 0; i < sizeof bytes; i++) {
            bytes[i] = (char)(unsigned char)(words[i / 8] >> (56 - 8 * (i % 8)));
        }
        return (int64_t)hearth_hash64(bytes, sizeof bytes, 0);
    }

    return (int64_t)hearth_hash64(id.p, id.n, 0);
}
