/*
 * pprof_encode.c -- encodes flat arrays as profile.proto bytes, in one pass.
 *
 * Each message is written after one byte that is reserved for its length; only a message of 128
 * bytes or more is moved to make room for a longer length. Computing the sizes of samples first
 * took 1.35 to 1.6 times as long on real profiles, because few messages are that long.
 */
#include "hearth/base/varint.h"
#include "hearth/format/pprof.h"

#include "pprof/pprof_wire.h"

#include <assert.h>

#define MAX_VARINT 10u

/* Write a varint at `at`, where room for the worst case is reserved; returns the end. */
static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    return at + hearth_varint_write(at, value);
}

/* Write an integer field unless it is 0, the default. All our tags of integers are below 128. */
static inline uint8_t *put_int(uint8_t *at, uint32_t field, uint64_t value)
{
    if (value == 0) {
        return at;
    }
    *at++ = (uint8_t)PPROF_INT(field);
    return put_varint(at, value);
}

/* Begin a message field; returns the start of its payload. */
static inline uint8_t *open_message(uint8_t *at, uint32_t field)
{
    *at = (uint8_t)PPROF_LEN(field);
    return at + 2;
}

/*
 * Set the length of the message that open_message began; `start` is its result. Returns the new
 * end.
 */
static inline uint8_t *close_message(uint8_t *start, uint8_t *at)
{
    size_t n = (size_t)(at - start);
    if (HEARTH_LIKELY(n < 0x80)) {
        start[-1] = (uint8_t)n;
        return at;
    }

    size_t n_more = hearth_varint_size(n) - 1;
    memmove(start + n_more, start, n);
    (void)hearth_varint_write(start - 1, n);

    return at + n_more;
}

static uint8_t *reserve_bytes(struct hearth_buf *out, size_t n)
{
    return (uint8_t *)hearth_buf_reserve(out, n);
}

/* Set the end of the buffer to `at`. */
static void commit_bytes(struct hearth_buf *out, const uint8_t *at)
{
    assert(at >= (const uint8_t *)out->p + out->n && at <= (const uint8_t *)out->p + out->cap);

    out->n = (size_t)(at - (const uint8_t *)out->p);
}

static uint64_t make_id(uint32_t index)
{
    return index == HEARTH_NO_INDEX ? 0 : (uint64_t)index + 1;
}

static void put_value_type(struct hearth_buf *out, uint32_t field, struct hearth_value_type type)
{
    uint8_t *at = reserve_bytes(out, 2 + 2 * (1 + MAX_VARINT));
    if (at == NULL) {
        return;
    }

    uint8_t *start = at = open_message(at, field);
    at = put_int(at, 1, type.type);
    at = put_int(at, 2, type.unit);
    commit_bytes(out, close_message(start, at));
}

static void put_sample(struct hearth_buf *out, const struct hearth_profile *profile,
                       uint32_t sample)
{
    uint32_t loc = profile->stack_first[sample], loc_end = profile->stack_first[sample + 1];
    uint32_t label = profile->label_first[sample], label_end = profile->label_first[sample + 1];
    const int64_t *values = profile->values + (size_t)sample * profile->n_types;

    /*
     * Ids have at most five bytes; each of three lengths may need nine bytes more than the reserved
     * one.
     */
    size_t worst = 32 + (size_t)(loc_end - loc) * 5 + (size_t)profile->n_types * MAX_VARINT +
                   (size_t)(label_end - label) * (2 + 4 * (1 + MAX_VARINT));
    uint8_t *at = reserve_bytes(out, worst);
    if (at == NULL) {
        return;
    }

    /* The location ids, packed. */
    uint8_t *start = at = open_message(at, 2);
    if (loc < loc_end) {
        uint8_t *packed = at = open_message(at, 1);
        for (; loc < loc_end; loc++) {
            at = put_varint(at, make_id(profile->stack_locs[loc]));
        }
        at = close_message(packed, at);
    }

    /* The values, packed. */
    uint8_t *packed = at = open_message(at, 2);
    for (uint32_t i = 0; i < profile->n_types; i++) {
        at = put_varint(at, (uint64_t)values[i]);
    }

    at = close_message(packed, at);

    /* The labels, a message each. */
    for (; label < label_end; label++) {
        const struct hearth_sample_label *l = &profile->sample_labels[label];
        uint8_t *inner = at = open_message(at, 3);
        at = put_int(at, 1, l->key);
        at = put_int(at, 2, l->str);
        at = put_int(at, 3, (uint64_t)l->num);
        at = put_int(at, 4, l->num_unit);
        at = close_message(inner, at);
    }

    commit_bytes(out, close_message(start, at));
}

static void put_mapping(struct hearth_buf *out, const struct hearth_mapping *m, uint32_t index)
{
    uint8_t *at = reserve_bytes(out, 2 + 10 * (1 + MAX_VARINT));
    if (at == NULL) {
        return;
    }

    uint8_t *start = at = open_message(at, 3);
    at = put_int(at, 1, make_id(index));
    at = put_int(at, 2, m->start);
    at = put_int(at, 3, m->limit);
    at = put_int(at, 4, m->offset);
    at = put_int(at, 5, m->filename);
    at = put_int(at, 6, m->build_id);
    at = put_int(at, 7, m->has_functions);
    at = put_int(at, 8, m->has_filenames);
    at = put_int(at, 9, m->has_line_numbers);
    at = put_int(at, 10, m->has_inline_frames);
    commit_bytes(out, close_message(start, at));
}

static void put_location(struct hearth_buf *out, const struct hearth_profile *profile,
                         uint32_t index)
{
    const struct hearth_location *l = &profile->locations[index];
    uint8_t *at = reserve_bytes(out, 16 + 4 * (1 + MAX_VARINT) +
                                         (size_t)l->n_lines * (2 + 2 * (1 + MAX_VARINT)));
    if (at == NULL) {
        return;
    }

    uint8_t *start = at = open_message(at, 4);
    at = put_int(at, 1, make_id(index));
    at = put_int(at, 2, make_id(l->mapping));
    at = put_int(at, 3, l->address);
    for (uint32_t i = 0; i < l->n_lines; i++) {
        const struct hearth_line *line = &profile->lines[l->first_line + i];
        uint8_t *inner = at = open_message(at, 4);
        at = put_int(at, 1, make_id(line->function));
        at = put_int(at, 2, (uint64_t)line->line);
        at = close_message(inner, at);
    }

    at = put_int(at, 5, l->is_folded);
    commit_bytes(out, close_message(start, at));
}

static void put_function(struct hearth_buf *out, const struct hearth_function *f, uint32_t index)
{
    uint8_t *at = reserve_bytes(out, 2 + 5 * (1 + MAX_VARINT));
    if (at == NULL) {
        return;
    }

    uint8_t *start = at = open_message(at, 5);
    at = put_int(at, 1, make_id(index));
    at = put_int(at, 2, f->name);
    at = put_int(at, 3, f->system_name);
    at = put_int(at, 4, f->filename);
    at = put_int(at, 5, (uint64_t)f->start_line);
    commit_bytes(out, close_message(start, at));
}

static void put_string(struct hearth_buf *out, struct hearth_str text)
{
    uint8_t *at = reserve_bytes(out, 1 + MAX_VARINT + text.n);
    if (at == NULL) {
        return;
    }

    *at++ = (uint8_t)PPROF_LEN(6);
    at = put_varint(at, text.n);
    if (text.n > 0) {
        memcpy(at, text.p, text.n);
    }

    commit_bytes(out, at + text.n);
}

/* The fields after the tables. */
static void put_single_fields(struct hearth_buf *out, const struct hearth_profile *profile)
{
    uint8_t *at = reserve_bytes(out, 32 + 5 * (1 + MAX_VARINT) + (size_t)profile->n_comments * 5);
    if (at == NULL) {
        return;
    }

    at = put_int(at, 9, (uint64_t)profile->time_ns);
    at = put_int(at, 10, (uint64_t)profile->duration_ns);
    at = put_int(at, 12, (uint64_t)profile->period);
    if (profile->n_comments > 0) {
        uint8_t *packed = at = open_message(at, 13);
        for (uint32_t i = 0; i < profile->n_comments; i++) {
            at = put_varint(at, profile->comments[i]);
        }
        at = close_message(packed, at);
    }

    at = put_int(at, 14, profile->default_type);
    at = put_int(at, 15, profile->doc_url);
    commit_bytes(out, at);
    if (profile->period_type.type != 0 || profile->period_type.unit != 0) {
        put_value_type(out, 11, profile->period_type);
    }
}

void hearth_pprof_encode(const struct hearth_profile *profile, struct hearth_buf *out)
{
    for (uint32_t i = 0; i < profile->n_types; i++) {
        put_value_type(out, 1, profile->types[i]);
    }

    for (uint32_t i = 0; i < profile->n_samples; i++) {
        put_sample(out, profile, i);
    }

    for (uint32_t i = 0; i < profile->n_mappings; i++) {
        put_mapping(out, &profile->mappings[i], i);
    }

    for (uint32_t i = 0; i < profile->n_locations; i++) {
        put_location(out, profile, i);
    }

    for (uint32_t i = 0; i < profile->n_functions; i++) {
        put_function(out, &profile->functions[i], i);
    }

    put_string(out, HEARTH_STR(""));
    for (uint32_t i = 1; i < profile->n_strings; i++) {
        put_string(out, profile->strings[i]);
    }

    put_single_fields(out, profile);
}
