/*
 * fuzz_collapsed.c -- collapsed text in, and out again: what was read and written once reads back
 * as the same text. The same bytes as stacks without values: each line counts 1.
 */
#include "hearth/format/collapsed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool round_trip(struct hearth_str text, struct hearth_arena *arena, struct hearth_buf *out)
{
    struct hearth_profile profile;
    if (hearth_collapsed_decode(text, HEARTH_STR("samples"), HEARTH_STR("count"), 1, arena,
                                &profile, NULL) != HEARTH_OK) {
        return false;
    }
    for (uint32_t i = 0; i < profile.n_stack_locs; i++) {
        HEARTH_ASSERT(profile.stack_locs[i] < profile.n_locations);
    }
    for (uint32_t i = 0; i < profile.n_strings; i++) {
        HEARTH_ASSERT(hearth_str_utf8_valid(profile.strings[i]));
    }
    hearth_collapsed_encode(&profile, 0, out);
    HEARTH_ASSERT(!hearth_buf_failed(out));
    return true;
}

static void count_lines(struct hearth_str text, struct hearth_arena *arena)
{
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n_lines = 1;

    if (hearth_lines_decode(text, HEARTH_STR("samples"), HEARTH_STR("count"), arena, &profile,
                            &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0');
        return;
    }
    for (size_t i = 0; i < text.n; i++) {
        n_lines += text.p[i] == '\n' ? 1 : 0;
    }
    HEARTH_ASSERT(profile.n_samples > 0 && profile.n_samples <= n_lines);
}

/* More than one if the only frame of a stack is written like a stack without frames, since breaks of
 * lines in names are written as blanks: read again, both are one, or too large a sum. */
static size_t count_empty_stacks(struct hearth_str text)
{
    const struct hearth_str name = HEARTH_STR("[no stack] ");
    size_t n = 0;

    while (text.n > 0) {
        n += hearth_str_starts(text, name) ? 1 : 0;
        size_t line = hearth_str_find(text, '\n', 0);
        line = line < text.n ? line + 1 : text.n;
        text = hearth_str_n(text.p + line, text.n - line);
    }

    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_buf once, twice;
    hearth_arena_init(&arena, (size_t)64 << 20);
    hearth_buf_init(&once, 0);
    hearth_buf_init(&twice, 0);
    if (round_trip(hearth_str_n((const char *)data, size), &arena, &once) && once.n > 0 &&
        count_empty_stacks(hearth_buf_view(&once)) <= 1) {
        HEARTH_ASSERT(round_trip(hearth_buf_view(&once), &arena, &twice));
        HEARTH_ASSERT(hearth_str_eq(hearth_buf_view(&once), hearth_buf_view(&twice)));
    }
    count_lines(hearth_str_n((const char *)data, size), &arena);
    hearth_buf_release(&once);
    hearth_buf_release(&twice);
    hearth_arena_release(&arena);
    return 0;
}
