/*
 * sample_attrs.c -- the column with the attributes of single samples (spellings of labels:
 * attr_keys.c).
 *
 * Few samples have few distinct ids, names and threads, so each attribute is a table of its
 * distinct values and an index for each sample with the attribute. Ids in tables are 8 big-endian
 * bytes, so that PostgreSQL finds a span by position(int8send(id) in attrs).
 *
 * Numbers are varints (unsigned LEB128); "signed" ones are zigzag-coded first.
 *
 * OFFSET  SIZE         MEANING
 *   0     1            version: 1
 *   1     varint       n: number of samples, not 0
 *   ..    varint       number of sample types
 *   ..    n signed     stack id minus that of the previous sample (the first: minus 0)
 *   ..    n varints    for each sample type: the values, two's complement
 *   ..    varint       which attributes follow: bit (enum hearth_attr - 1)
 * for each of these, in the order of enum hearth_attr:
 *   ..    1            0: every sample has it; 1: a bitmap follows
 *   ..    (n + 7) / 8  the bitmap, lowest bit first, unused bits 0
 * then, for a timestamp:
 *   ..    signed       for each sample with it: nanoseconds minus those of the previous one
 * or for any other attribute:
 *   ..    varint       number of distinct values
 *   ..    8 / 16 / varint and bytes   each of them: an id; a trace id; a text
 *   ..    varint       for each sample with it: index of its value
 */
#include "hearth/model/sample_attrs.h"

#include "hearth/base/buf.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"

#include <assert.h>

#define VERSION 1
#define N_ATTRS HEARTH_ATTR_TIMESTAMP /* attributes count from 1 */

/* ---- one attribute of a sample ---- */

/* The value of any attribute: an id or a time in lo, a trace id in hi and lo, or a text. */
struct attr_value {
    uint64_t hi, lo;
    struct hearth_str text;
};

enum attr_kind {
    KIND_ID,
    KIND_TRACE_ID,
    KIND_TEXT,
    KIND_TIME,
};

static enum attr_kind choose_kind(enum hearth_attr attr)
{
    switch (attr) {
    case HEARTH_ATTR_TRACE_ID:
        return KIND_TRACE_ID;
    case HEARTH_ATTR_SPAN_NAME:
    case HEARTH_ATTR_ENDPOINT:
    case HEARTH_ATTR_THREAD_NAME:
        return KIND_TEXT;
    case HEARTH_ATTR_TIMESTAMP:
        return KIND_TIME;
    case HEARTH_ATTR_SPAN_ID:
    case HEARTH_ATTR_LOCAL_ROOT_SPAN_ID:
    case HEARTH_ATTR_THREAD_ID:
    case HEARTH_ATTR_THREAD_NATIVE_ID:
    case HEARTH_ATTR_NONE:
        break;
    }

    return KIND_ID;
}

static struct attr_value get_attr(const struct hearth_sample_attrs *a, enum hearth_attr attr)
{
    struct attr_value value = {0};

    switch (attr) {
    case HEARTH_ATTR_SPAN_ID:
        value.lo = a->span_id;
        break;
    case HEARTH_ATTR_LOCAL_ROOT_SPAN_ID:
        value.lo = a->local_root_span_id;
        break;
    case HEARTH_ATTR_TRACE_ID:
        value.hi = a->trace_id_hi;
        value.lo = a->trace_id_lo;
        break;
    case HEARTH_ATTR_SPAN_NAME:
        value.text = a->span_name;
        break;
    case HEARTH_ATTR_ENDPOINT:
        value.text = a->endpoint;
        break;
    case HEARTH_ATTR_THREAD_ID:
        value.lo = a->thread_id;
        break;
    case HEARTH_ATTR_THREAD_NATIVE_ID:
        value.lo = a->thread_native_id;
        break;
    case HEARTH_ATTR_THREAD_NAME:
        value.text = a->thread_name;
        break;
    case HEARTH_ATTR_TIMESTAMP:
        value.lo = (uint64_t)a->timestamp_ns;
        break;
    case HEARTH_ATTR_NONE:
        break;
    }

    return value;
}

static void set_attr(struct hearth_sample_attrs *a, enum hearth_attr attr,
                     const struct attr_value *value)
{
    assert(attr != HEARTH_ATTR_NONE);

    switch (attr) {
    case HEARTH_ATTR_SPAN_ID:
        a->span_id = value->lo;
        break;
    case HEARTH_ATTR_LOCAL_ROOT_SPAN_ID:
        a->local_root_span_id = value->lo;
        break;
    case HEARTH_ATTR_TRACE_ID:
        a->trace_id_hi = value->hi;
        a->trace_id_lo = value->lo;
        break;
    case HEARTH_ATTR_SPAN_NAME:
        a->span_name = value->text;
        break;
    case HEARTH_ATTR_ENDPOINT:
        a->endpoint = value->text;
        break;
    case HEARTH_ATTR_THREAD_ID:
        a->thread_id = value->lo;
        break;
    case HEARTH_ATTR_THREAD_NATIVE_ID:
        a->thread_native_id = value->lo;
        break;
    case HEARTH_ATTR_THREAD_NAME:
        a->thread_name = value->text;
        break;
    case HEARTH_ATTR_TIMESTAMP:
        a->timestamp_ns = (int64_t)value->lo;
        break;
    case HEARTH_ATTR_NONE:
        break;
    }
}

static bool is_absent(const struct attr_value *value)
{
    return (value->hi | value->lo) == 0 && value->text.n == 0;
}

/* The set of present attributes: bit (enum hearth_attr - 1). */
static unsigned collect_present(const struct hearth_sample_attrs *a)
{
    return (unsigned)(a->span_id != 0) << (HEARTH_ATTR_SPAN_ID - 1) |
           (unsigned)(a->local_root_span_id != 0) << (HEARTH_ATTR_LOCAL_ROOT_SPAN_ID - 1) |
           (unsigned)((a->trace_id_hi | a->trace_id_lo) != 0) << (HEARTH_ATTR_TRACE_ID - 1) |
           (unsigned)(a->span_name.n > 0) << (HEARTH_ATTR_SPAN_NAME - 1) |
           (unsigned)(a->endpoint.n > 0) << (HEARTH_ATTR_ENDPOINT - 1) |
           (unsigned)(a->thread_id != 0) << (HEARTH_ATTR_THREAD_ID - 1) |
           (unsigned)(a->thread_native_id != 0) << (HEARTH_ATTR_THREAD_NATIVE_ID - 1) |
           (unsigned)(a->thread_name.n > 0) << (HEARTH_ATTR_THREAD_NAME - 1) |
           (unsigned)(a->timestamp_ns != 0) << (HEARTH_ATTR_TIMESTAMP - 1);
}

bool hearth_sample_attrs_empty(const struct hearth_sample_attrs *attrs)
{
    return collect_present(attrs) == 0;
}

bool hearth_sample_attrs_eq(const struct hearth_sample_attrs *a,
                            const struct hearth_sample_attrs *b)
{
    for (int attr = 1; attr <= N_ATTRS; attr++) {
        struct attr_value x = get_attr(a, (enum hearth_attr)attr);
        struct attr_value y = get_attr(b, (enum hearth_attr)attr);
        if (x.hi != y.hi || x.lo != y.lo || !hearth_str_eq(x.text, y.text)) {
            return false;
        }
    }

    return true;
}

/* ---- encode ---- */

static void append_be64(struct hearth_buf *out, uint64_t value)
{
    char *to = hearth_buf_reserve(out, 8);
    if (to != NULL) {
        for (int i = 0; i < 8; i++) {
            to[i] = (char)(value >> (56 - 8 * i));
        }
        out->n += 8;
    }
}

static void append_value(struct hearth_buf *out, enum attr_kind kind,
                         const struct attr_value *value)
{
    switch (kind) {
    case KIND_TRACE_ID:
        append_be64(out, value->hi);
        append_be64(out, value->lo);
        break;
    case KIND_TEXT:
        hearth_buf_varint(out, value->text.n);
        hearth_buf_str(out, value->text);
        break;
    case KIND_ID:
    case KIND_TIME:
        append_be64(out, value->lo);
        break;
    }
}

/*
 * A slot of the hash table of distinct values: the first sample with the value, counted from 1 (0:
 * an empty slot), and the index of the value in its table.
 */
struct value_slot {
    uint32_t sample, index;
};

struct attr_encoder {
    const struct hearth_attr_sample *samples;
    size_t n;
    struct hearth_buf out, table, indices;
    uint16_t *present;        /* [n] attributes of a sample: bit (enum hearth_attr - 1) */
    struct value_slot *slots; /* [mask + 1], at most half of them in use */
    size_t mask;
    uint64_t seed;
};

static void encoder_release(struct attr_encoder *e)
{
    hearth_buf_release(&e->out);
    hearth_buf_release(&e->table);
    hearth_buf_release(&e->indices);
    hearth_mem_free(e->present);
    hearth_mem_free(e->slots);
}

/* n is not 0. False if memory was refused. */
static bool encoder_init(struct attr_encoder *e, const struct hearth_attr_sample *samples, size_t n)
{
    assert(n > 0);

    *e = (struct attr_encoder){.samples = samples, .n = n, .seed = hearth_hash_process_seed()};
    hearth_buf_init(&e->out, 0);
    hearth_buf_init(&e->table, 0);
    hearth_buf_init(&e->indices, 0);
    if (n >= UINT32_MAX) {
        return false;
    }

    e->mask = ((size_t)4 << (63 - __builtin_clzll(n))) - 1;
    e->slots = hearth_mem_reallocarray(NULL, e->mask + 1, sizeof e->slots[0]);
    e->present = hearth_mem_reallocarray(NULL, n, sizeof e->present[0]);

    return e->slots != NULL && e->present != NULL;
}

static uint64_t hash_value(enum attr_kind kind, const struct attr_value *value, uint64_t seed)
{
    if (kind == KIND_TEXT) {
        return hearth_hash64(value->text.p, value->text.n, seed);
    }
    uint64_t words[2] = {value->hi, value->lo};
    return hearth_hash64(words, sizeof words, seed);
}

/* The index of a sample's value in the table; a new value is appended. */
static uint32_t intern_value(struct attr_encoder *e, enum hearth_attr attr, size_t sample,
                             uint32_t *n_distinct)
{
    enum attr_kind kind = choose_kind(attr);
    struct attr_value value = get_attr(&e->samples[sample].attrs, attr);
    size_t at = (size_t)hash_value(kind, &value, e->seed) & e->mask;

    /* Find a sample with the same value. */
    for (; e->slots[at].sample != 0; at = (at + 1) & e->mask) {
        struct attr_value other = get_attr(&e->samples[e->slots[at].sample - 1].attrs, attr);
        if (value.lo == other.lo && value.hi == other.hi &&
            (kind != KIND_TEXT || hearth_str_eq(value.text, other.text))) {
            return e->slots[at].index;
        }
    }

    /* The value is new. */
    e->slots[at] = (struct value_slot){(uint32_t)sample + 1, *n_distinct};
    append_value(&e->table, kind, &value);

    return (*n_distinct)++;
}

static bool has_attr(const struct attr_encoder *e, size_t sample, enum hearth_attr attr)
{
    return (e->present[sample] >> (attr - 1) & 1) != 0;
}

static void append_presence(struct attr_encoder *e, enum hearth_attr attr, size_t n_present)
{
    hearth_buf_byte(&e->out, n_present < e->n);
    if (n_present == e->n) {
        return;
    }

    for (size_t from = 0; from < e->n; from += 8) {
        unsigned bits = 0;
        for (size_t i = from; i < e->n && i < from + 8; i++) {
            bits |= (has_attr(e, i, attr) ? 1u : 0u) << (i - from);
        }
        hearth_buf_byte(&e->out, (unsigned char)bits);
    }
}

static void append_times(struct attr_encoder *e)
{
    uint64_t previous = 0;

    for (size_t i = 0; i < e->n; i++) {
        uint64_t time = (uint64_t)e->samples[i].attrs.timestamp_ns;
        if (time != 0) {
            hearth_buf_varint(&e->out, hearth_zigzag((int64_t)(time - previous)));
            previous = time;
        }
    }
}

/* The table follows its size, which is known last: collect values and indices, then append all. */
static void append_table(struct attr_encoder *e, enum hearth_attr attr)
{
    hearth_buf_reset(&e->table);
    hearth_buf_reset(&e->indices);
    memset(e->slots, 0, (e->mask + 1) * sizeof e->slots[0]);

    uint32_t n_distinct = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (has_attr(e, i, attr)) {
            hearth_buf_varint(&e->indices, intern_value(e, attr, i, &n_distinct));
        }
    }

    hearth_buf_varint(&e->out, n_distinct);
    hearth_buf_str(&e->out, hearth_buf_view(&e->table));
    hearth_buf_str(&e->out, hearth_buf_view(&e->indices));
    e->out.failed = e->out.failed || hearth_buf_failed(&e->table) || hearth_buf_failed(&e->indices);
}

static void append_attrs(struct attr_encoder *e)
{
    size_t n_present[N_ATTRS + 1] = {0};
    unsigned mask = 0;

    /* Find the present attributes and how many samples have each. */
    for (size_t i = 0; i < e->n; i++) {
        e->present[i] = (uint16_t)collect_present(&e->samples[i].attrs);
        mask |= e->present[i];
        for (unsigned bits = e->present[i]; bits != 0; bits &= bits - 1) {
            n_present[1 + __builtin_ctz(bits)]++;
        }
    }

    /* Append them. */
    hearth_buf_varint(&e->out, mask);
    for (int attr = 1; attr <= N_ATTRS; attr++) {
        if (n_present[attr] == 0) {
            continue;
        }
        append_presence(e, (enum hearth_attr)attr, n_present[attr]);
        if (choose_kind((enum hearth_attr)attr) == KIND_TIME) {
            append_times(e);
        } else {
            append_table(e, (enum hearth_attr)attr);
        }
    }
}

enum hearth_status hearth_sample_attrs_encode(const struct hearth_attr_sample *samples, size_t n,
                                              uint32_t n_types, struct hearth_arena *arena,
                                              struct hearth_str *ret, struct hearth_err *err)
{
    assert(samples != NULL || n == 0);
    assert(arena != NULL && ret != NULL);

    if (n == 0) {
        *ret = hearth_str_n(NULL, 0);
        return HEARTH_OK;
    }

    HEARTH_CLEANUP(encoder_release)
    struct attr_encoder e;
    if (!encoder_init(&e, samples, n)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the attributes of %zu samples", n);
    }

    /* Stack ids and values. */
    hearth_buf_byte(&e.out, VERSION);
    hearth_buf_varint(&e.out, n);
    hearth_buf_varint(&e.out, n_types);
    uint32_t previous = 0;
    for (size_t i = 0; i < n; i++) {
        hearth_buf_varint(&e.out, hearth_zigzag((int64_t)samples[i].stack_id - (int64_t)previous));
        previous = samples[i].stack_id;
    }

    for (uint32_t k = 0; k < n_types; k++) {
        for (size_t i = 0; i < n; i++) {
            hearth_buf_varint(&e.out, (uint64_t)samples[i].values[k]);
        }
    }

    /* Attributes. */
    append_attrs(&e);
    if (hearth_buf_failed(&e.out)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the attributes of %zu samples", n);
    }

    /* The result lives in the arena. */
    struct hearth_str made = hearth_arena_str(arena, hearth_buf_view(&e.out));
    if (made.p == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret = made;

    return HEARTH_OK;
}

/* ---- decode ---- */

struct attr_decoder {
    const uint8_t *at, *end;
    struct hearth_attr_sample *samples;
    size_t n;
    struct hearth_arena *arena;
};

static enum hearth_status fail_sample_attrs(const char *what, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes are damaged: %s", what);
}

static size_t count_attr_bytes_left(const struct attr_decoder *d)
{
    return (size_t)(d->end - d->at);
}

static uint64_t take_be64(struct attr_decoder *d)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | *d->at++;
    }
    return value;
}

static bool take_attr_value(struct attr_decoder *d, enum attr_kind kind, struct attr_value *ret)
{
    struct attr_value value = {0};

    if (kind == KIND_TEXT) {
        uint64_t n;
        if (!hearth_varint_read(&d->at, d->end, &n) || n > count_attr_bytes_left(d)) {
            return false;
        }
        value.text = hearth_str_n((const char *)d->at, (size_t)n);
        d->at += n;
    } else {
        if (count_attr_bytes_left(d) < (kind == KIND_TRACE_ID ? 16u : 8u)) {
            return false;
        }
        value.hi = kind == KIND_TRACE_ID ? take_be64(d) : 0;
        value.lo = take_be64(d);
    }

    *ret = value;

    return !is_absent(&value);
}

/* Read which samples have the attribute: *ret_bitmap, NULL if all have it. */
static bool take_presence(struct attr_decoder *d, const uint8_t **ret_bitmap)
{
    if (count_attr_bytes_left(d) == 0 || *d->at > 1) {
        return false;
    }

    bool some = *d->at++ == 1;
    *ret_bitmap = some ? d->at : NULL;
    if (some) {
        size_t n_bytes = d->n / 8 + (d->n % 8 != 0);
        if (count_attr_bytes_left(d) < n_bytes) {
            return false;
        }
        d->at += n_bytes;
    }

    return true;
}

static bool is_present(const uint8_t *bitmap, size_t i)
{
    return bitmap == NULL || (bitmap[i / 8] >> (i % 8) & 1) != 0;
}

static bool take_times(struct attr_decoder *d, const uint8_t *bitmap)
{
    uint64_t time = 0;

    for (size_t i = 0; i < d->n; i++) {
        uint64_t delta;
        if (!is_present(bitmap, i)) {
            continue;
        }
        if (!hearth_varint_read(&d->at, d->end, &delta)) {
            return false;
        }
        time += (uint64_t)hearth_unzigzag(delta);
        d->samples[i].attrs.timestamp_ns = (int64_t)time;
    }

    return true;
}

static enum hearth_status take_table(struct attr_decoder *d, enum hearth_attr attr,
                                     const uint8_t *bitmap, struct hearth_err *err)
{
    enum attr_kind kind = choose_kind(attr);
    uint64_t n_distinct;

    if (!hearth_varint_read(&d->at, d->end, &n_distinct) ||
        n_distinct > count_attr_bytes_left(d) / 2) {
        return fail_sample_attrs("size of a table", err);
    }

    struct attr_value *table = hearth_arena_array(d->arena, (size_t)n_distinct, sizeof table[0]);
    if (table == NULL) {
        return HEARTH_FAIL_ARENA(err, d->arena);
    }

    /* Read the distinct values. */
    for (uint64_t i = 0; i < n_distinct; i++) {
        if (!take_attr_value(d, kind, &table[i])) {
            return fail_sample_attrs("a distinct value", err);
        }
    }

    /* Give each sample its value. */
    for (size_t i = 0; i < d->n; i++) {
        uint64_t index;
        if (!is_present(bitmap, i)) {
            continue;
        }
        if (!hearth_varint_read(&d->at, d->end, &index) || index >= n_distinct) {
            return fail_sample_attrs("index of a value", err);
        }
        set_attr(&d->samples[i].attrs, attr, &table[index]);
    }

    return HEARTH_OK;
}

static enum hearth_status take_attrs(struct attr_decoder *d, struct hearth_err *err)
{
    uint64_t mask;

    if (!hearth_varint_read(&d->at, d->end, &mask) || mask >> N_ATTRS != 0) {
        return fail_sample_attrs("unknown attributes", err);
    }

    for (int attr = 1; attr <= N_ATTRS; attr++) {
        const uint8_t *bitmap;
        if ((mask >> (attr - 1) & 1) == 0) {
            continue;
        }
        if (!take_presence(d, &bitmap)) {
            return fail_sample_attrs("which samples have an attribute", err);
        }
        if (choose_kind((enum hearth_attr)attr) != KIND_TIME) {
            HEARTH_TRY(take_table(d, (enum hearth_attr)attr, bitmap, err));
        } else if (!take_times(d, bitmap)) {
            return fail_sample_attrs("timestamps", err);
        }
    }

    return d->at == d->end ? HEARTH_OK : fail_sample_attrs("bytes are left over", err);
}

static bool take_stacks_and_values(struct attr_decoder *d, int64_t *values, uint32_t n_types)
{
    int64_t stack_id = 0;

    for (size_t i = 0; i < d->n; i++) {
        uint64_t delta;
        if (!hearth_varint_read(&d->at, d->end, &delta) ||
            __builtin_add_overflow(stack_id, hearth_unzigzag(delta), &stack_id) || stack_id < 0 ||
            stack_id > UINT32_MAX) {
            return false;
        }
        d->samples[i].stack_id = (uint32_t)stack_id;
        d->samples[i].values = values + i * n_types;
    }

    for (uint32_t k = 0; k < n_types; k++) {
        for (size_t i = 0; i < d->n; i++) {
            uint64_t value;
            if (!hearth_varint_read(&d->at, d->end, &value)) {
                return false;
            }
            values[i * n_types + k] = (int64_t)value;
        }
    }

    return true;
}

enum hearth_status hearth_sample_attrs_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                              struct hearth_attr_sample **ret_samples,
                                              size_t *ret_n, uint32_t *ret_n_types,
                                              struct hearth_err *err)
{
    assert(arena != NULL && ret_samples != NULL && ret_n != NULL && ret_n_types != NULL);

    if (bytes.n == 0) {
        *ret_samples = NULL;
        *ret_n = 0;
        *ret_n_types = 0;
        return HEARTH_OK;
    }

    struct attr_decoder d = {.arena = arena};
    d.at = (const uint8_t *)bytes.p;
    d.end = d.at + bytes.n;
    if (*d.at++ != VERSION) {
        return fail_sample_attrs("unknown version", err);
    }

    /* Every sample takes at least one byte for its stack and one for each value. */
    uint64_t n, n_types;
    if (!hearth_varint_read(&d.at, d.end, &n) || n == 0 ||
        !hearth_varint_read(&d.at, d.end, &n_types) || n > count_attr_bytes_left(&d) ||
        n_types > count_attr_bytes_left(&d) / n || n_types > UINT32_MAX) {
        return fail_sample_attrs("number of samples", err);
    }

    /* Stack ids and values, then attributes. */
    d.n = (size_t)n;
    d.samples = hearth_arena_calloc(arena, d.n, sizeof d.samples[0]);
    int64_t *values = hearth_arena_array(arena, d.n * (size_t)n_types, sizeof values[0]);
    if (d.samples == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (!take_stacks_and_values(&d, values, (uint32_t)n_types)) {
        return fail_sample_attrs("stack traces or values", err);
    }

    HEARTH_TRY(take_attrs(&d, err));
    *ret_samples = d.samples;
    *ret_n = d.n;
    *ret_n_types = (uint32_t)n_types;

    return HEARTH_OK;
}
