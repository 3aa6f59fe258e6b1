/* fuzz_http_args.c -- query strings of plain routes, compared with a decoder of single bytes. */
#include "http/http_call.h"

#include <stdlib.h>

#define MAX_ARENA_BYTES (8u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Checks the decoded text against the sent one, byte by byte. */
static void check_text(struct hearth_str sent, struct hearth_str got)
{
    size_t n = 0;
    for (size_t i = 0; i < sent.n; i++) {
        char expected = sent.p[i] == '+' ? ' ' : sent.p[i];
        if (sent.p[i] == '%') {
            if (i + 2 >= sent.n || hex_value(sent.p[i + 1]) < 0 || hex_value(sent.p[i + 2]) < 0) {
                abort();
            }
            expected = (char)(hex_value(sent.p[i + 1]) * 16 + hex_value(sent.p[i + 2]));
            i += 2;
        }
        if (n >= got.n || got.p[n++] != expected || expected == '\0') {
            abort();
        }
    }
    if (n != got.n || got.p[n] != '\0') {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct hearth_str query = {(const char *)bytes, size};
    struct hearth_arena arena;
    struct hearth_http_arg *args = NULL;
    size_t n = 0, i = 0;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, MAX_ARENA_BYTES);
    if (hearth_http_args_parse(query, &arena, &args, &n, &err) == HEARTH_OK) {
        for (size_t from = 0; from < query.n;) {
            size_t to = hearth_str_find(query, '&', from);
            struct hearth_str pair = {query.p + from, to - from};
            from = to + 1;
            if (pair.n == 0) {
                continue;
            }
            size_t eq = hearth_str_find(pair, '=', 0);
            if (i >= n) {
                abort();
            }
            check_text(hearth_str_n(pair.p, eq), args[i].name);
            check_text(eq < pair.n ? hearth_str_n(pair.p + eq + 1, pair.n - eq - 1)
                                   : hearth_str_n(pair.p, 0),
                       args[i].value);
            i++;
        }
        if (i != n || n > HEARTH_HTTP_MAX_ARGS) {
            abort();
        }
    }
    hearth_arena_release(&arena);
    return 0;
}
