/*
 * json_reader.c -- a reader of JSON whose position is all its state: two bits for each open level
 * say whether it is an object, and whether a comma comes next.
 */
#include "hearth/codec/json_reader.h"

#include "json_number.h"
#include "json_unescape.h"

#include <assert.h>
#include <stdio.h>

/* ---- faults ---- */

void hearth_json_reader_fail(struct hearth_json_reader *r, const char *fmt, ...)
{
    va_list args;
    char why[256];

    if (hearth_json_reader_failed(r)) {
        return;
    }

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    (void)HEARTH_FAIL(&r->fault, HEARTH_INVALID_ARGUMENT, "at byte %zu: %s", r->at, why);
}

void hearth_json_reader_fail_arena(struct hearth_json_reader *r, const struct hearth_arena *arena)
{
    if (!hearth_json_reader_failed(r)) {
        (void)HEARTH_FAIL_ARENA(&r->fault, arena);
    }
}

enum hearth_status hearth_json_reader_status(const struct hearth_json_reader *r,
                                             struct hearth_err *err)
{
    if (hearth_json_reader_failed(r) && err != NULL) {
        *err = r->fault;
    }

    return r->fault.status;
}

/* ---- bytes ---- */

static void skip_blanks(struct hearth_json_reader *r)
{
    while (r->at < r->text.n && (r->text.p[r->at] == ' ' || r->text.p[r->at] == '\n' ||
                                 r->text.p[r->at] == '\r' || r->text.p[r->at] == '\t')) {
        r->at++;
    }
}

/* The next byte that is not blank; 0 at the end. */
HEARTH_ALWAYS_INLINE char peek_byte(struct hearth_json_reader *r)
{
    if (HEARTH_UNLIKELY(r->at >= r->text.n || (unsigned char)r->text.p[r->at] <= ' ')) {
        skip_blanks(r);
    }

    return r->at < r->text.n ? r->text.p[r->at] : '\0';
}

static void fail_expected(struct hearth_json_reader *r, const char *what)
{
    if (r->at >= r->text.n) {
        hearth_json_reader_fail(r, "the JSON text ends where %s is expected", what);
        return;
    }

    unsigned char c = (unsigned char)r->text.p[r->at];
    if (c >= ' ' && c < 0x7f) {
        hearth_json_reader_fail(r, "'%c' where %s is expected", c, what);
    } else {
        hearth_json_reader_fail(r, "the byte 0x%02x where %s is expected", c, what);
    }
}

HEARTH_ALWAYS_INLINE bool take_byte(struct hearth_json_reader *r, char wanted, const char *what)
{
    if (hearth_json_reader_failed(r)) {
        return false;
    }
    if (peek_byte(r) != wanted || r->at >= r->text.n) {
        fail_expected(r, what);
        return false;
    }

    r->at++;

    return true;
}

void hearth_json_reader_init(struct hearth_json_reader *r, struct hearth_str text)
{
    *r = (struct hearth_json_reader){.text = text, .fault = HEARTH_ERR_INIT};
}

void hearth_json_reader_init_at(struct hearth_json_reader *r, struct hearth_str text, size_t at)
{
    assert(at <= text.n);
    hearth_json_reader_init(r, text);
    r->at = at;
}

char hearth_json_reader_peek(struct hearth_json_reader *r)
{
    char c = hearth_json_reader_failed(r) ? '\0' : peek_byte(r);

    switch (c) {
    case '{':
    case '[':
    case '"':
    case 'n':
        return c;
    case 't':
    case 'f':
        return 'b';
    default:
        return c == '-' || (c >= '0' && c <= '9') ? '0' : '\0';
    }
}

/* ---- levels ---- */

HEARTH_ALWAYS_INLINE uint64_t get_level_bit(const struct hearth_json_reader *r, size_t *ret_word)
{
    assert(r->depth > 0 && r->depth <= HEARTH_JSON_READER_MAX_DEPTH);

    *ret_word = (r->depth - 1) / 64;

    return UINT64_C(1) << ((r->depth - 1) % 64);
}

bool hearth_json_reader_is_in_object(const struct hearth_json_reader *r)
{
    size_t word;

    if (r->depth == 0) {
        return false;
    }

    uint64_t bit = get_level_bit(r, &word);

    return (r->is_object[word] & bit) != 0;
}

static void open_reader_level(struct hearth_json_reader *r, bool is_object)
{
    size_t word;

    if (!take_byte(r, is_object ? '{' : '[', is_object ? "an object" : "an array")) {
        return;
    }
    if (r->depth == HEARTH_JSON_READER_MAX_DEPTH) {
        hearth_json_reader_fail(r, "nested deeper than %u levels", HEARTH_JSON_READER_MAX_DEPTH);
        return;
    }

    r->depth++;
    uint64_t bit = get_level_bit(r, &word);
    r->is_object[word] = is_object ? r->is_object[word] | bit : r->is_object[word] & ~bit;
    r->is_started[word] &= ~bit;
}

/* True before an element of the innermost level; false if the level has ended. */
HEARTH_ALWAYS_INLINE bool enter_element(struct hearth_json_reader *r, char close)
{
    size_t word;

    if (hearth_json_reader_failed(r)) {
        return false;
    }

    assert((close == '}') == hearth_json_reader_is_in_object(r));
    char next = peek_byte(r);
    if (next == close) {
        r->at++;
        r->depth--;
        return false;
    }

    uint64_t bit = get_level_bit(r, &word);
    if ((r->is_started[word] & bit) == 0) {
        r->is_started[word] |= bit;
    } else if (HEARTH_LIKELY(next == ',')) {
        r->at++;
    } else {
        fail_expected(r, close == '}' ? "',' or '}'" : "',' or ']'");
        return false;
    }

    return true;
}

void hearth_json_reader_object(struct hearth_json_reader *r)
{
    open_reader_level(r, true);
}

void hearth_json_reader_array(struct hearth_json_reader *r)
{
    open_reader_level(r, false);
}

bool hearth_json_reader_element(struct hearth_json_reader *r)
{
    return enter_element(r, ']');
}

/* ---- strings ---- */

/* True for a byte that neither ends a string nor begins an escape. */
HEARTH_ALWAYS_INLINE bool is_text_byte(char c)
{
    return (unsigned char)c >= ' ' && c != '"' && c != '\\';
}

/* The bytes between the quotes, with escapes. */
static struct hearth_str take_quoted(struct hearth_json_reader *r, const char *what)
{
    if (!take_byte(r, '"', what)) {
        return HEARTH_STR("");
    }

    size_t from = r->at;
    while (r->at < r->text.n && r->text.p[r->at] != '"') {
        if (HEARTH_LIKELY(is_text_byte(r->text.p[r->at]))) {
            r->at++;
            continue;
        }
        if ((unsigned char)r->text.p[r->at] < ' ') {
            fail_expected(r, "the end of a string");
            return HEARTH_STR("");
        }
        r->at += r->text.p[r->at] == '\\' && r->at + 1 < r->text.n ? 2 : 1;
    }

    if (r->at >= r->text.n) {
        hearth_json_reader_fail(r, "the JSON text ends within a string");
        return HEARTH_STR("");
    }

    return hearth_str_n(r->text.p + from, r->at++ - from);
}

bool hearth_json_reader_member(struct hearth_json_reader *r, struct hearth_str *ret_key)
{
    if (!enter_element(r, '}')) {
        return false;
    }

    *ret_key = take_quoted(r, "a key");

    return take_byte(r, ':', "':'");
}

struct hearth_str hearth_json_reader_text(struct hearth_json_reader *r, struct hearth_arena *arena)
{
    struct hearth_str raw = take_quoted(r, "a string");

    if (hearth_json_reader_failed(r) || memchr(raw.p, '\\', raw.n) == NULL) {
        return raw;
    }

    char *text = hearth_arena_alloc(arena, raw.n);
    if (text == NULL) {
        hearth_json_reader_fail_arena(r, arena);
        return HEARTH_STR("");
    }

    size_t n = json_unescape(raw, text);
    if (n == SIZE_MAX) {
        hearth_json_reader_fail(r, "the string that ends here has an unknown escape");
        return HEARTH_STR("");
    }

    return hearth_str_n(text, n);
}

/* ---- numbers ---- */

/* A number as it is written. */
static struct hearth_str read_number_text(struct hearth_json_reader *r)
{
    if (hearth_json_reader_peek(r) != '0') {
        if (!hearth_json_reader_failed(r)) {
            fail_expected(r, "a number");
        }
        return HEARTH_STR("");
    }

    size_t n = json_number_measure(hearth_str_n(r->text.p + r->at, r->text.n - r->at));
    if (n == 0) {
        hearth_json_reader_fail(r, "not a number of JSON");
        return HEARTH_STR("");
    }

    r->at += n;

    return hearth_str_n(r->text.p + r->at - n, n);
}

/* Reads a short integer without sign or fraction; false: another value, and nothing was read. */
HEARTH_ALWAYS_INLINE bool take_short_integer(struct hearth_json_reader *r, int64_t factor,
                                             int64_t *ret)
{
    if (hearth_json_reader_failed(r) || peek_byte(r) == '\0') {
        return false;
    }

    const char *from = r->text.p + r->at, *end = r->text.p + r->text.n, *at = from;
    int64_t value = 0;
    while (at < end && at - from < 18 && *at >= '0' && *at <= '9') {
        value = value * 10 + (*at++ - '0');
    }

    bool is_long = at == end || at - from == 18 || *at == '.' || *at == 'e' || *at == 'E';
    if (at == from || is_long || (*from == '0' && at - from > 1) ||
        __builtin_mul_overflow(value, factor, &value)) {
        return false;
    }

    r->at += (size_t)(at - from);
    *ret = value;

    return true;
}

int64_t hearth_json_reader_scaled(struct hearth_json_reader *r, int64_t factor)
{
    int64_t value;

    if (take_short_integer(r, factor, &value)) {
        return value;
    }

    struct hearth_str text = read_number_text(r);
    if (hearth_json_reader_failed(r)) {
        return 0;
    }
    if (!json_number_scale(text, factor, &value, NULL)) {
        hearth_json_reader_fail(r, "the number that ends here exceeds 64 bits");
        return 0;
    }

    return value;
}

int64_t hearth_json_reader_i64(struct hearth_json_reader *r)
{
    bool is_exact = true;
    int64_t value;

    if (take_short_integer(r, 1, &value)) {
        return value;
    }

    struct hearth_str text = read_number_text(r);
    if (hearth_json_reader_failed(r)) {
        return 0;
    }
    if (!json_number_scale(text, 1, &value, &is_exact) || !is_exact) {
        hearth_json_reader_fail(r, "the number that ends here is no integer of 64 bits");
        return 0;
    }

    return value;
}

/* ---- values of any type ---- */

static void take_literal(struct hearth_json_reader *r)
{
    static const struct hearth_str literals[] = {{"true", 4}, {"false", 5}, {"null", 4}};
    struct hearth_str rest = hearth_str_n(r->text.p + r->at, r->text.n - r->at);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(literals); i++) {
        if (hearth_str_starts(rest, literals[i])) {
            r->at += literals[i].n;
            return;
        }
    }

    fail_expected(r, "a value");
}

/* Reads a scalar, or the first byte of a container. */
static void begin_any_value(struct hearth_json_reader *r)
{
    switch (hearth_json_reader_peek(r)) {
    case '{':
        hearth_json_reader_object(r);
        break;
    case '[':
        hearth_json_reader_array(r);
        break;
    case '"':
        (void)take_quoted(r, "a string");
        break;
    case '0':
        (void)read_number_text(r);
        break;
    case 'b':
    case 'n':
        take_literal(r);
        break;
    default:
        fail_expected(r, "a value");
        break;
    }
}

void hearth_json_reader_skip(struct hearth_json_reader *r)
{
    unsigned depth = r->depth;
    struct hearth_str key;
    int64_t ignored;

    begin_any_value(r);
    while (!hearth_json_reader_failed(r) && r->depth > depth) {
        bool has_value = hearth_json_reader_is_in_object(r) ? hearth_json_reader_member(r, &key)
                                                            : enter_element(r, ']');
        if (has_value && !take_short_integer(r, 1, &ignored)) {
            begin_any_value(r);
        }
    }
}

enum hearth_status hearth_json_reader_end(struct hearth_json_reader *r, struct hearth_err *err)
{
    skip_blanks(r);
    if (r->depth == 0 && r->at < r->text.n && !hearth_json_reader_failed(r)) {
        fail_expected(r, "the end of the JSON text");
    }

    return hearth_json_reader_status(r, err);
}
