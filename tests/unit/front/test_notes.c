/* test_notes.c -- from lines of notes to values of a header. */
#include "rpc/notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct encoded {
    struct hearth_arena arena;
    const char *values[HEARTH_MAX_NOTES];
    size_t n;
};

static void encode(struct encoded *e, const char *lines)
{
    hearth_arena_init(&e->arena, 0);
    e->n = hearth_notes_encode(hearth_str_c(lines), &e->arena, e->values);
}

static void each_line_is_a_value_and_empty_lines_are_ignored(void **state)
{
    struct encoded e;
    (void)state;
    encode(&e, "the range begins at 12:00\n\n  \n second, without an end");
    assert_int_equal(e.n, 2);
    assert_string_equal(e.values[0], "the range begins at 12:00");
    assert_string_equal(e.values[1], "second, without an end");
    hearth_arena_release(&e.arena);
    encode(&e, "");
    assert_int_equal(e.n, 0);
    hearth_arena_release(&e.arena);
}

static void bytes_that_are_not_printable_are_percent_encoded(void **state)
{
    struct encoded e;
    (void)state;
    encode(&e, "100% of \xc3\xbc\t\x1b[1m~\xff");
    assert_int_equal(e.n, 1);
    assert_string_equal(e.values[0], "100%25 of %C3%BC%09%1B[1m~%FF");
    hearth_arena_release(&e.arena);
}

static void a_long_line_is_cut_between_characters_and_ends_with_dots(void **state)
{
    struct encoded e;
    char line[2 * HEARTH_MAX_NOTE_BYTES];
    (void)state;
    for (size_t i = 0; i + 2 < sizeof line; i += 2) {
        memcpy(line + i, "\xc3\xbc", 3);
    }
    encode(&e, line);
    assert_int_equal(e.n, 1);
    size_t n = strlen(e.values[0]);
    assert_true(n <= HEARTH_MAX_NOTE_BYTES && n > HEARTH_MAX_NOTE_BYTES - 6);
    assert_string_equal(e.values[0] + n - 9, "%C3%BC...");
    hearth_arena_release(&e.arena);

    memset(line, 'x', HEARTH_MAX_NOTE_BYTES);
    line[HEARTH_MAX_NOTE_BYTES] = '\0';
    encode(&e, line);
    assert_string_equal(e.values[0], line);
    hearth_arena_release(&e.arena);
}

static void too_many_notes_are_counted(void **state)
{
    struct encoded e;
    (void)state;
    encode(&e, "1\n2\n3\n4\n5\n6\n7\n8\n");
    assert_int_equal(e.n, 8);
    assert_string_equal(e.values[7], "8");
    hearth_arena_release(&e.arena);
    encode(&e, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_int_equal(e.n, 8);
    assert_string_equal(e.values[6], "7");
    assert_string_equal(e.values[7], "and 2 more notes");
    hearth_arena_release(&e.arena);
}

static void a_full_arena_leaves_notes_out(void **state)
{
    struct encoded e;
    (void)state;
    hearth_arena_init(&e.arena, 1);
    e.n = hearth_notes_encode(hearth_str_c("one\ntwo"), &e.arena, e.values);
    assert_int_equal(e.n, 0);
    hearth_arena_release(&e.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_value_and_empty_lines_are_ignored),
        cmocka_unit_test(bytes_that_are_not_printable_are_percent_encoded),
        cmocka_unit_test(a_long_line_is_cut_between_characters_and_ends_with_dots),
        cmocka_unit_test(too_many_notes_are_counted),
        cmocka_unit_test(a_full_arena_leaves_notes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
