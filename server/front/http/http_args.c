/* http_args.c -- parses the arguments of a query string. */
#include "http/http_call.h"

/* Decodes a name or a value. The result is never longer than the input. */
static enum hearth_status decode_url_text(struct hearth_str in, struct hearth_arena *arena,
                                          struct hearth_str *ret, struct hearth_err *err)
{
    char *out = hearth_arena_alloc(arena, in.n + 1);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        uint64_t byte = (unsigned char)in.p[i];
        if (in.p[i] == '+') {
            byte = ' ';
        } else if (in.p[i] == '%') {
            if (in.n - i < 3 || !hearth_str_hex_to_u64(hearth_str_n(in.p + i + 1, 2), &byte)) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                   "invalid URL escape \"" HEARTH_STR_FMT "\"",
                                   in.n - i < 3 ? (int)(in.n - i) : 3, in.p + i);
            }
            i += 2;
        }
        if (byte == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a URL argument contains a zero byte");
        }
        out[n++] = (char)(unsigned char)byte;
    }

    out[n] = '\0';
    *ret = hearth_str_n(out, n);

    return HEARTH_OK;
}

static size_t count_pairs(struct hearth_str query)
{
    size_t n = 0;
    for (size_t from = 0; from < query.n;) {
        size_t to = hearth_str_find(query, '&', from);
        n += to > from;
        from = to + 1;
    }
    return n;
}

enum hearth_status hearth_http_args_parse(struct hearth_str query, struct hearth_arena *arena,
                                          struct hearth_http_arg **ret_args, size_t *ret_n,
                                          struct hearth_err *err)
{
    size_t n_pairs = count_pairs(query);
    if (n_pairs > HEARTH_HTTP_MAX_ARGS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "more than %u arguments in the URL",
                           HEARTH_HTTP_MAX_ARGS);
    }

    struct hearth_http_arg *args = hearth_arena_array(arena, n_pairs, sizeof *args);
    if (args == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t from = 0; from < query.n;) {
        size_t to = hearth_str_find(query, '&', from);
        struct hearth_str pair = hearth_str_n(query.p + from, to - from);
        from = to + 1;
        if (pair.n == 0) {
            continue;
        }
        size_t eq = hearth_str_find(pair, '=', 0);
        size_t value = eq < pair.n ? eq + 1 : pair.n;
        HEARTH_TRY(decode_url_text(hearth_str_n(pair.p, eq), arena, &args[n].name, err));
        HEARTH_TRY(decode_url_text(hearth_str_n(pair.p + value, pair.n - value), arena,
                                   &args[n].value, err));
        n++;
    }

    *ret_args = args;
    *ret_n = n;

    return HEARTH_OK;
}
