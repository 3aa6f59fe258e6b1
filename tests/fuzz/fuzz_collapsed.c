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

/* A carriage return within a name is written as a blank, so that two names may be written as one:
 * read again, their stacks are one stack, or have too large a sum. */
static bool has_return_in_name(struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\r' && (i + 1 == text.n || text.p[i + 1] != '\n')) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_buf once, twice;
    hearth_arena_init(&arena, (size_t)64 << 20);
    hearth_buf_init(&once, 0);
    hearth_buf_init(&twice, 0);
    struct hearth_str text = hearth_str_n((const char *)data, size);
    if (round_trip(text, &arena, &once) && once.n > 0 && !has_return_in_name(text)) {
        HEARTH_ASSERT(round_trip(hearth_buf_view(&once), &arena, &twice));
        HEARTH_ASSERT(hearth_str_eq(hearth_buf_view(&once), hearth_buf_view(&twice)));
    }
    count_lines(text, &arena);
    hearth_buf_release(&once);
    hearth_buf_release(&twice);
    hearth_arena_release(&arena);
    return 0;
}
