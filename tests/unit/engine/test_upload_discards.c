/* test_upload_discards.c -- numbers of discards as the text that a parser continues. */
#include "uploads/upload_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_text_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct hearth_arena arena;
    uint64_t discards[HEARTH_N_DISCARDS] = {0}, read[HEARTH_N_DISCARDS] = {0};
    hearth_arena_init(&arena, 0);

    discards[HEARTH_DISCARD_CUT_STACKS] = 3;
    discards[HEARTH_DISCARD_SKIPPED_LINES] = INT64_MAX;
    struct hearth_str text = hearth_upload_write_discards(discards, &arena);
    assert_string_equal(text.p, "cut_stacks=3, skipped_lines=9223372036854775807");
    hearth_upload_read_discards(text, read);
    assert_memory_equal(read, discards, sizeof read);

    hearth_arena_release(&arena);
}

static void no_discards_are_an_empty_text(void **state)
{
    (void)state;
    struct hearth_arena arena;
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    hearth_arena_init(&arena, 0);
    struct hearth_str text = hearth_upload_write_discards(discards, &arena);
    assert_string_equal(text.p, "");
    hearth_upload_read_discards(text, discards);
    assert_int_equal(discards[HEARTH_DISCARD_CUT_STACKS], 0);
    hearth_arena_release(&arena);
}

static void texts_of_another_version_lose_their_unknown_reasons(void **state)
{
    (void)state;
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    hearth_upload_read_discards(
        HEARTH_STR("new_reason=7, cut_stacks=2,cut_frames=-1, zero_types, =4, ,cut_stacks=5"),
        discards);
    assert_int_equal(discards[HEARTH_DISCARD_CUT_STACKS], 7);
    assert_int_equal(discards[HEARTH_DISCARD_CUT_FRAMES], 0);
    assert_int_equal(discards[HEARTH_DISCARD_ZERO_TYPES], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_read_as_it_was_written),
        cmocka_unit_test(no_discards_are_an_empty_text),
        cmocka_unit_test(texts_of_another_version_lose_their_unknown_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
