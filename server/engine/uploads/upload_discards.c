/*
 * upload_discards.c -- numbers of discards as text, as the header hearth-dropped has them
 * (contract: uploads/upload_parse.h). A parser that takes over continues the numbers of its
 * predecessor.
 */
#include "uploads/upload_parse.h"

#include <assert.h>

static void add_discard(struct hearth_str name, struct hearth_str number, uint64_t *discards)
{
    int64_t n;

    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        if (hearth_str_eq_c(name, hearth_discard_name((enum hearth_discard)i)) &&
            hearth_str_to_i64(number, &n) && n > 0) {
            discards[i] += (uint64_t)n;
        }
    }
}

void hearth_upload_read_discards(struct hearth_str text, uint64_t discards[HEARTH_N_DISCARDS])
{
    assert(discards != NULL);

    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, ',', from);
        struct hearth_str pair = hearth_str_trim(hearth_str_n(text.p + from, to - from));
        size_t eq = hearth_str_find(pair, '=', 0);
        if (eq < pair.n) {
            add_discard(hearth_str_n(pair.p, eq), hearth_str_n(pair.p + eq + 1, pair.n - eq - 1),
                        discards);
        }
        from = to + 1;
    }
}

struct hearth_str hearth_upload_write_discards(const uint64_t discards[HEARTH_N_DISCARDS],
                                               struct hearth_arena *arena)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        if (discards[i] > 0) {
            hearth_buf_printf(&text, "%s%s=%llu", text.n > 0 ? ", " : "",
                              hearth_discard_name((enum hearth_discard)i),
                              (unsigned long long)discards[i]);
        }
    }

    struct hearth_str copy = hearth_buf_failed(&text)
                                 ? hearth_str_n(NULL, 0)
                                 : hearth_arena_str(arena, hearth_buf_view(&text));
    hearth_buf_release(&text);

    return copy;
}
