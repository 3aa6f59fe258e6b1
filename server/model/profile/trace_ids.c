/* trace_ids.c -- spellings of span and trace ids (contract: hearth/model/trace_ids.h). */
#include "hearth/model/trace_ids.h"

#include "hearth/base/hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static uint64_t hash_id_text(struct hearth_str text)
{
    uint64_t hash = hearth_hash64(text.p, text.n, 0);
    return hash == 0 ? 1 : hash; /* 0 means no id */
}

static bool read_hex_span(struct hearth_str text, uint64_t *ret)
{
    return text.n == HEARTH_SPAN_ID_TEXT && hearth_str_hex_to_u64(text, ret);
}

static bool read_hex_trace(struct hearth_str text, struct hearth_trace_id *ret)
{
    size_t n_hi = text.n > 16 ? text.n - 16 : 0;
    *ret = (struct hearth_trace_id){0};
    return text.n > 0 && text.n <= HEARTH_TRACE_ID_TEXT &&
           (n_hi == 0 || hearth_str_hex_to_u64(hearth_str_n(text.p, n_hi), &ret->hi)) &&
           hearth_str_hex_to_u64(hearth_str_n(text.p + n_hi, text.n - n_hi), &ret->lo);
}

uint64_t hearth_span_id_of_text(struct hearth_str text, enum hearth_id_spelling spelling)
{
    uint64_t id = 0;
    if (text.n == 0 || (spelling == HEARTH_ID_HEX && read_hex_span(text, &id)) ||
        hearth_str_to_u64(text, &id)) {
        return id;
    }
    return hash_id_text(text);
}

struct hearth_trace_id hearth_trace_id_of_text(struct hearth_str text,
                                               enum hearth_id_spelling spelling)
{
    struct hearth_trace_id id = {0};

    /* dd-trace-go writes a 64-bit "trace id" as 32 hexadecimal digits, the first sixteen 0. */
    bool is_decimal = spelling == HEARTH_ID_DECIMAL && text.n < HEARTH_TRACE_ID_TEXT &&
                      hearth_str_to_u64(text, &id.lo);
    if (text.n == 0 || is_decimal || read_hex_trace(text, &id)) {
        return id;
    }

    return (struct hearth_trace_id){0, hash_id_text(text)};
}

static uint64_t load_id(const char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | (uint8_t)bytes[i];
    }
    return value;
}

uint64_t hearth_span_id_of_bytes(struct hearth_str bytes)
{
    return bytes.n == 8 ? load_id(bytes.p) : 0;
}

struct hearth_trace_id hearth_trace_id_of_bytes(struct hearth_str bytes)
{
    if (bytes.n == 16) {
        return (struct hearth_trace_id){load_id(bytes.p), load_id(bytes.p + 8)};
    }
    return (struct hearth_trace_id){0, hearth_span_id_of_bytes(bytes)};
}

/* ---- meanings of a query's text ---- */

/* Append an id that is neither 0 nor present already. */
static size_t add_span_meaning(uint64_t *ret, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (ret[i] == id) {
            return n;
        }
    }

    assert(n < HEARTH_SPAN_ID_MEANINGS);

    if (id != 0) {
        ret[n++] = id;
    }

    return n;
}

size_t hearth_span_id_meanings(struct hearth_str text, uint64_t ret[HEARTH_SPAN_ID_MEANINGS])
{
    uint64_t id;
    size_t n = 0;
    bool is_number = false;

    if (text.n == 0) {
        return 0;
    }

    /* The text as hexadecimal, as decimal, or as anything else. */
    if (read_hex_span(text, &id)) {
        is_number = true;
        n = add_span_meaning(ret, n, id);
    }

    if (hearth_str_to_u64(text, &id)) {
        is_number = true;
        n = add_span_meaning(ret, n, id);
    }

    return is_number ? n : add_span_meaning(ret, n, hash_id_text(text));
}

static size_t add_trace_meaning(struct hearth_trace_id *ret, size_t n, struct hearth_trace_id id)
{
    for (size_t i = 0; i < n; i++) {
        if (ret[i].hi == id.hi && ret[i].lo == id.lo) {
            return n;
        }
    }

    assert(n < HEARTH_TRACE_ID_MEANINGS);

    if (!hearth_trace_id_is_none(id)) {
        ret[n++] = id;
    }

    return n;
}

size_t hearth_trace_id_meanings(struct hearth_str text,
                                struct hearth_trace_id ret[HEARTH_TRACE_ID_MEANINGS])
{
    struct hearth_trace_id id;
    size_t n = 0;
    bool is_number = false;

    if (text.n == 0) {
        return 0;
    }

    /* The text as hexadecimal, as decimal, or as anything else. */
    if (read_hex_trace(text, &id)) {
        is_number = true;
        n = add_trace_meaning(ret, n, id);
        n = add_trace_meaning(ret, n, (struct hearth_trace_id){0, id.lo});
    }

    id.hi = 0;
    if (hearth_str_to_u64(text, &id.lo)) {
        is_number = true;
        n = add_trace_meaning(ret, n, id);
    }

    return is_number ? n
                     : add_trace_meaning(ret, n, (struct hearth_trace_id){0, hash_id_text(text)});
}

void hearth_span_id_format(uint64_t id, char out[HEARTH_SPAN_ID_TEXT + 1])
{
    (void)snprintf(out, HEARTH_SPAN_ID_TEXT + 1, "%016" PRIx64, id);
}

void hearth_trace_id_format(struct hearth_trace_id id, char out[HEARTH_TRACE_ID_TEXT + 1])
{
    (void)snprintf(out, HEARTH_TRACE_ID_TEXT + 1, "%016" PRIx64 "%016" PRIx64, id.hi, id.lo);
}
