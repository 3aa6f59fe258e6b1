/*
 * jfr_names.c -- names without the numbers of one run.
 *
 * The virtual machine and libraries generate classes at run time, whose names have a counter, an
 * address or a hash, and extract libraries to files with a random number. Each process would have
 * functions of its own.
 */
#include "jfr/jfr_frames.h"

#include <assert.h>

#define MIN_RANDOM_DIGITS 8 /* of a number in a file name that is no version */

/* What follows a marker and is replaced by "_". */
enum suffix {
    SUFFIX_DIGITS,  /* 123 */
    SUFFIX_LAMBDA,  /* $14, $14/0x0000000800c3d000, $14+0x.../123456, /0x... */
    SUFFIX_HEX,     /* 1a2b3c4d */
    SUFFIX_ADDRESS, /* .0x..., /0x..., +0x... */
};

static const struct {
    const char *marker;
    enum suffix suffix;
} g_markers[] = {
    {"$$Lambda", SUFFIX_LAMBDA},
    {"GeneratedMethodAccessor", SUFFIX_DIGITS},
    {"GeneratedConstructorAccessor", SUFFIX_DIGITS},
    {"$Proxy", SUFFIX_DIGITS},
    {"ByCGLIB$$", SUFFIX_HEX},
    {"SpringCGLIB$$", SUFFIX_DIGITS},
    {"LambdaForm$DMH", SUFFIX_ADDRESS},
    {"LambdaForm$MH", SUFFIX_ADDRESS},
};

static bool is_decimal_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_decimal_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static size_t skip_digits(struct hearth_str name, size_t at)
{
    while (at < name.n && is_decimal_digit(name.p[at])) {
        at++;
    }
    return at;
}

static size_t skip_hex(struct hearth_str name, size_t at)
{
    while (at < name.n && is_hex(name.p[at])) {
        at++;
    }
    return at;
}

/* After one "/0x...", "+0x...", ".0x..." or "/123" at `at`; otherwise `at`. */
static size_t skip_one_address(struct hearth_str name, size_t at)
{
    if (at + 1 >= name.n || (name.p[at] != '/' && name.p[at] != '+' && name.p[at] != '.')) {
        return at;
    }
    if (at + 2 < name.n && name.p[at + 1] == '0' && name.p[at + 2] == 'x') {
        return skip_hex(name, at + 3);
    }
    size_t end = skip_digits(name, at + 1);
    return end > at + 1 ? end : at;
}

/* After all of them: "+0x00007f0c34007a08/1790421142". */
static size_t skip_address(struct hearth_str name, size_t at)
{
    size_t end = skip_one_address(name, at);
    while (end > at) {
        at = end;
        end = skip_one_address(name, at);
    }
    return at;
}

/* The end of the suffix that begins at `at`; `at` if there is none. */
static size_t find_suffix_end(struct hearth_str name, size_t at, enum suffix suffix)
{
    size_t end;

    switch (suffix) {
    case SUFFIX_DIGITS:
        return skip_digits(name, at);
    case SUFFIX_HEX:
        return skip_hex(name, at);
    case SUFFIX_LAMBDA:
        end = at < name.n && name.p[at] == '$' ? skip_digits(name, at + 1) : at;
        end = end == at + 1 ? at : end;
        return skip_address(name, end);
    default:
        return skip_address(name, at);
    }
}

/* The random number before ".so" in the name of a library; false if there is none. */
static bool find_random_number(struct hearth_str name, size_t *ret_at, size_t *ret_end)
{
    if (!hearth_str_ends(name, HEARTH_STR(".so"))) {
        return false;
    }

    size_t end = name.n - 3, at = end;
    while (at > 0 && is_hex(name.p[at - 1])) {
        at--;
    }

    *ret_at = at;
    *ret_end = end;

    return end - at >= MIN_RANDOM_DIGITS;
}

static bool find_number(struct hearth_str name, size_t *ret_at, size_t *ret_end)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_markers); i++) {
        struct hearth_str marker = hearth_str_c(g_markers[i].marker);
        for (size_t at = 0; at + marker.n <= name.n; at++) {
            const char *first = memchr(name.p + at, marker.p[0], name.n - marker.n + 1 - at);
            if (first == NULL) {
                break;
            }
            at = (size_t)(first - name.p);
            if (memcmp(first, marker.p, marker.n) != 0) {
                continue;
            }
            *ret_at = at + marker.n;
            *ret_end = find_suffix_end(name, *ret_at, g_markers[i].suffix);
            if (*ret_end > *ret_at) {
                return true;
            }
        }
    }

    return find_random_number(name, ret_at, ret_end);
}

struct hearth_str hearth_jfr_plain_name(struct hearth_str name, struct hearth_arena *arena)
{
    size_t at, end;

    if (!find_number(name, &at, &end)) {
        return name;
    }

    assert(at < end && end <= name.n);
    char *text = hearth_arena_array(arena, name.n + 1, 1);
    if (text == NULL) {
        return HEARTH_STR("");
    }

    memcpy(text, name.p, at);
    text[at] = '_';
    memcpy(text + at + 1, name.p + end, name.n - end);

    return hearth_str_n(text, at + 1 + name.n - end);
}
