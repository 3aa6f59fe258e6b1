/*
 * pprof_decode.c -- decodes profile.proto bytes into flat arrays.
 *
 * A first pass over the top-level fields records the offset of each message by kind (four bytes per
 * message) and reads the single numbers. Then all counts are known, and the kinds are decoded in
 * the order of their references: strings, types, mappings, functions, locations, samples. So a
 * reference is resolved when it is read, for any order of fields in the input (Go's runtime mixes
 * samples, locations and functions), and the tables get their exact size. Only arrays of items
 * inside messages, which are not counted yet (lines, stack entries, sample labels), grow, by
 * extrapolation.
 */
#include "hearth/base/limit.h"
#include "hearth/format/pprof.h"

#include "pprof/pprof_scan.h"
#include "pprof/pprof_text.h"

#include <assert.h>

/* ---- the top level ---- */

/* Messages of a kind, of which further ones are only counted: the profile will be refused. */
static uint32_t find_kept_messages(const struct pprof_scan *s, const struct pprof_offsets *of)
{
    uint32_t max = of == &s->of[KIND_SAMPLE] ? s->limits->max_samples : s->limits->max_entries;

    return max == 0 ? UINT32_MAX : max;
}

static enum hearth_status note_offset(struct pprof_scan *s, struct pprof_offsets *of,
                                      const uint8_t *at)
{
    if (HEARTH_UNLIKELY(of->n >= of->cap)) {
        if (of->n > find_kept_messages(s, of)) {
            of->n++;
            return HEARTH_OK;
        }
        /* Every message has at least two bytes, so twice their number does not overflow. */
        uint32_t cap = of->cap == 0 ? (uint32_t)(s->n_bytes / 128) + 16 : of->cap * 2;
        uint32_t *grown = hearth_arena_array(s->arena, cap, sizeof *grown);
        if (grown == NULL) {
            return HEARTH_FAIL_ARENA(s->err, s->arena);
        }
        if (of->n > 0) {
            memcpy(grown, of->at, of->n * sizeof *grown);
        }
        of->at = grown;
        of->cap = cap;
    }

    of->at[of->n++] = (uint32_t)(at - s->base);

    return HEARTH_OK;
}

/*
 * Note the messages of one kind that follow each other, as those of a table do. Keeps the counts in
 * registers; stops before whatever the general reader must handle: another tag, a length of more
 * than two bytes, the end, a full array.
 */
static const uint8_t *note_run(const struct pprof_scan *s, struct pprof_offsets *of,
                               const uint8_t *p, uint8_t tag)
{
    const uint8_t *before = s->base - 1, *end = s->base + s->n_bytes;
    uint32_t *at = of->at + of->n;
    const uint32_t *at_end = of->at + of->cap;
    size_t n_bytes = 0;

    while (at < at_end && end - p >= 3 && *p == tag) {
        const uint8_t *payload = p + 2;
        size_t length = p[1];
        if (length >= 0x80) {
            length += ((size_t)p[2] << 7) - 0x80;
            payload++;
        }
        if (HEARTH_UNLIKELY(length >= 0x4000 || length > (size_t)(end - payload))) {
            break;
        }

        *at++ = (uint32_t)(p - before);
        n_bytes += length;
        p = payload + length;
    }

    of->n = (uint32_t)(at - of->at);
    of->n_bytes += n_bytes;

    return p;
}

static bool read_value_type(struct pprof_cursor *c, struct hearth_value_type *type)
{
    uint64_t tag;
    while (pprof_next(c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_string_index(c, &type->type);
            break;
        case PPROF_INT(2):
            (void)pprof_string_index(c, &type->unit);
            break;
        default:
            *c = hearth_pprof_skip(*c, tag, 2);
            break;
        }
        if (c->why != NULL) {
            break;
        }
    }

    return c->why == NULL;
}

/* Comments are few: their array is doubled whenever its length is a power of two. */
static enum hearth_status add_comment(struct pprof_scan *s, uint32_t string)
{
    struct hearth_profile *out = s->out;
    if ((out->n_comments & (out->n_comments - 1)) == 0) {
        size_t cap = out->n_comments == 0 ? 1 : (size_t)out->n_comments * 2;
        uint32_t *grown = hearth_arena_array(s->arena, cap, sizeof *grown);
        if (grown == NULL) {
            return HEARTH_FAIL_ARENA(s->err, s->arena);
        }
        if (out->n_comments > 0) {
            memcpy(grown, out->comments, out->n_comments * sizeof *grown);
        }
        out->comments = grown;
    }

    out->comments[out->n_comments++] = string;

    return HEARTH_OK;
}

/* Read a field that is not of one of the kinds. Its faults are reported in c->why. */
static enum hearth_status read_top_level_field(struct pprof_scan *s, struct pprof_cursor *c,
                                               uint64_t tag)
{
    struct hearth_profile *out = s->out;
    struct pprof_cursor payload;
    uint64_t ignored;
    uint32_t string;

    switch (tag) {
    case PPROF_INT(7): /* drop_frames, keep_frames: not applied by a server */
    case PPROF_INT(8):
        (void)pprof_int(c, &ignored);
        break;
    case PPROF_INT(9):
        (void)pprof_int64(c, &out->time_ns);
        break;
    case PPROF_INT(10):
        (void)pprof_int64(c, &out->duration_ns);
        break;
    case PPROF_LEN(11):
        if (pprof_payload(c, &payload) && !read_value_type(&payload, &out->period_type)) {
            *c = payload;
        }
        break;
    case PPROF_INT(12):
        (void)pprof_int64(c, &out->period);
        break;
    case PPROF_INT(13):
        return pprof_string_index(c, &string) ? add_comment(s, string) : HEARTH_OK;
    case PPROF_LEN(13):
        if (pprof_payload(c, &payload)) {
            while (payload.p < payload.end && pprof_string_index(&payload, &string)) {
                HEARTH_TRY(add_comment(s, string));
            }
            *c = payload.why != NULL ? payload : *c;
        }
        break;
    case PPROF_INT(14):
        (void)pprof_string_index(c, &out->default_type);
        break;
    case PPROF_INT(15):
        (void)pprof_string_index(c, &out->doc_url);
        break;
    default:
        *c = hearth_pprof_skip(*c, tag, 15);
        break;
    }

    return HEARTH_OK;
}

static enum hearth_status read_top_level(struct pprof_scan *s)
{
    struct pprof_cursor c = {s->base, s->base + s->n_bytes, NULL};
    struct pprof_cursor payload;
    uint64_t tag;
    while (pprof_next(&c, &tag)) {
        uint64_t kind = tag >> 3;

        if (HEARTH_LIKELY((tag & 7) == 2 && kind >= KIND_TYPE && kind < N_KINDS)) {
            const uint8_t *at = c.p;
            if (pprof_payload(&c, &payload)) {
                s->of[kind].n_bytes += (size_t)(payload.end - payload.p);
                HEARTH_TRY(note_offset(s, &s->of[kind], at));
                c.p = note_run(s, &s->of[kind], c.p, (uint8_t)tag);
            }
        } else {
            HEARTH_TRY(read_top_level_field(s, &c, tag));
        }

        if (HEARTH_UNLIKELY(c.why != NULL)) {
            break;
        }
    }

    if (c.why != NULL) {
        return HEARTH_FAIL(
            s->err, HEARTH_INVALID_ARGUMENT, "not a pprof profile%s: %s, at byte %zu of %zu",
            hearth_pprof_looks_like_text(hearth_str_n((const char *)s->base, s->n_bytes))
                ? " but text"
                : "",
            c.why, (size_t)(c.p - s->base), s->n_bytes);
    }

    return HEARTH_OK;
}

static enum hearth_status check_counts(const struct pprof_scan *s)
{
    uint32_t n_types = s->of[KIND_TYPE].n, n_samples = s->of[KIND_SAMPLE].n;
    if (n_types == 0) {
        return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT, "the profile has no sample type");
    }

    if (s->limits->max_types != 0 && n_types > s->limits->max_types) {
        return HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED,
                           "the profile has %u sample types; the limit is %u" HEARTH_RAISE_LIMIT(
                               "max-sample-types"),
                           n_types, s->limits->max_types);
    }

    if (s->limits->max_samples != 0 && n_samples > s->limits->max_samples) {
        /* Pyroscope's clients match the beginning of this text. */
        return HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED,
                           "the profile exceeds the samples count limit "
                           "(max-samples, actual: %u, limit: %u)" HEARTH_RAISE_LIMIT("max-samples"),
                           n_samples, s->limits->max_samples);
    }

    uint64_t n_entries = (uint64_t)s->of[KIND_STRING].n + s->of[KIND_FUNCTION].n +
                         s->of[KIND_LOCATION].n + s->of[KIND_MAPPING].n;
    if (s->limits->max_entries != 0 && n_entries > s->limits->max_entries) {
        return HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED,
                           "the profile has %llu strings, functions, locations and mappings; the "
                           "limit is %u" HEARTH_RAISE_LIMIT("max-table-entries"),
                           (unsigned long long)n_entries, s->limits->max_entries);
    }

    return HEARTH_OK;
}

/* ---- strings and types ---- */

typedef int8_t sixteen_bytes HEARTH_VECTOR(16);

/* In each of 16 bytes from p on, all ones if it is 01 to 7f. */
HEARTH_ALWAYS_INLINE sixteen_bytes find_plain(const uint8_t *p)
{
    sixteen_bytes bytes;
    memcpy(&bytes, p, sizeof bytes);
    return bytes > 0;
}

/*
 * True if all bytes are 01 to 7f, as in nearly every string. 17 to 64 bytes are always four
 * vectors, which overlap, so that no branch depends on n.
 */
HEARTH_ALWAYS_INLINE bool is_plain_ascii(const uint8_t *p, size_t n)
{
    if (HEARTH_UNLIKELY(n <= 16)) {
        bool plain = true;
        for (size_t i = 0; i < n; i++) {
            plain &= (int8_t)p[i] > 0;
        }
        return plain;
    }

    sixteen_bytes plain = find_plain(p + n - 16);
    for (; n > 64; n -= 48, p += 48) {
        plain &= find_plain(p) & find_plain(p + 16) & find_plain(p + 32);
    }
    const uint8_t *last = p + n - 16;
    plain &= find_plain(p) & find_plain(p + 16 < last ? p + 16 : last) &
             find_plain(p + 32 < last ? p + 32 : last);

    uint64_t halves[2];
    memcpy(halves, &plain, sizeof halves);

    return (halves[0] & halves[1]) == UINT64_MAX;
}

static enum hearth_status read_strings(struct pprof_scan *s)
{
    struct hearth_profile *out = s->out;
    uint32_t n = s->of[KIND_STRING].n;
    uint32_t max_bytes = s->limits->max_string_bytes;

    out->n_strings = n == 0 ? 1 : n; /* a profile without any text may omit the table */
    out->strings = hearth_arena_array(s->arena, out->n_strings, sizeof *out->strings);
    if (out->strings == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    out->strings[0] = HEARTH_STR("");
    for (uint32_t i = 0; i < n; i++) {
        struct pprof_cursor c = pprof_message(s, KIND_STRING, i);
        struct hearth_str text = {(const char *)c.p, (size_t)(c.end - c.p)};
        bool too_long = max_bytes != 0 && text.n > max_bytes;
        if (HEARTH_UNLIKELY(too_long || !is_plain_ascii(c.p, text.n)) &&
            !hearth_pprof_mend_text(&text, max_bytes, s->arena, s->notes)) {
            return HEARTH_FAIL_ARENA(s->err, s->arena);
        }
        out->strings[i] = text;
    }

    if (out->strings[0].n != 0) {
        return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                           "string 0 should be empty string, not \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(out->strings[0]));
    }

    return HEARTH_OK;
}

static enum hearth_status check_value_type(const struct pprof_scan *s, const char *what, uint32_t i,
                                           struct hearth_value_type type)
{
    HEARTH_TRY(pprof_check_string(s, what, i, "type", type.type));
    return pprof_check_string(s, what, i, "unit", type.unit);
}

static enum hearth_status read_types(struct pprof_scan *s)
{
    struct hearth_profile *out = s->out;

    out->n_types = s->of[KIND_TYPE].n;
    out->types = hearth_arena_calloc(s->arena, out->n_types, sizeof *out->types);
    if (out->types == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    for (uint32_t i = 0; i < out->n_types; i++) {
        struct pprof_cursor c = pprof_message(s, KIND_TYPE, i);
        if (!read_value_type(&c, &out->types[i])) {
            return hearth_pprof_damaged(s, "sample type", i, c);
        }
        HEARTH_TRY(check_value_type(s, "sample type", i, out->types[i]));
    }

    HEARTH_TRY(check_value_type(s, "period type", HEARTH_NO_INDEX, out->period_type));
    for (uint32_t i = 0; i < out->n_comments; i++) {
        HEARTH_TRY(pprof_check_string(s, "comment", i, "text", out->comments[i]));
    }

    HEARTH_TRY(pprof_check_string(s, "profile", HEARTH_NO_INDEX, "default sample type",
                                  out->default_type));

    return pprof_check_string(s, "profile", HEARTH_NO_INDEX, "doc url", out->doc_url);
}

/* ---- the whole profile ---- */

static enum hearth_status check_input(struct hearth_str bytes, struct hearth_err *err)
{
    const char *other = hearth_pprof_recognise(bytes);
    if (other != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "not a pprof profile but %s", other);
    }

    if (bytes.n >= UINT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the profile has %zu bytes; the limit is %u", bytes.n, UINT32_MAX - 1);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_pprof_decode(struct hearth_str bytes,
                                       const struct hearth_pprof_limits *limits,
                                       struct hearth_arena *arena,
                                       struct hearth_profile *ret_profile,
                                       struct hearth_pprof_notes *ret_notes, struct hearth_err *err)
{
    assert(limits != NULL && arena != NULL);

    *ret_profile = (struct hearth_profile){0};
    *ret_notes = (struct hearth_pprof_notes){0};
    HEARTH_TRY(check_input(bytes, err));
    struct pprof_scan s = {
        .base = (const uint8_t *)bytes.p,
        .n_bytes = bytes.n,
        .limits = limits,
        .arena = arena,
        .out = ret_profile,
        .notes = ret_notes,
        .err = err,
    };

    /* The order of references: each step needs the tables before it. */
    HEARTH_TRY(read_top_level(&s));
    HEARTH_TRY(check_counts(&s));
    HEARTH_TRY(read_strings(&s));
    HEARTH_TRY(read_types(&s));
    HEARTH_TRY(hearth_pprof_read_mappings(&s));
    HEARTH_TRY(hearth_pprof_read_functions(&s));
    HEARTH_TRY(hearth_pprof_read_locations(&s));

    return hearth_pprof_read_samples(&s);
}
