/*
 * test_selector_golden.c -- tests/golden/selector/: groups of three lines: input, result, blank
 * line.
 *
 * The result is the canonical text, or "OFFSET message" in errors.sel, or the caret's line in
 * caret.sel. With the argument --record the program writes the results instead of checking
 * them.
 */
#include "hearth/base/mem.h"
#include "hearth/selector/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool g_record;

/* The result of one input, as it is in the file. */
static void outcome_of(const char *file, struct hearth_str input, struct hearth_buf *out)
{
    struct hearth_arena arena;
    struct hearth_selector selector;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t offset = 0;
    hearth_arena_init(&arena, 0);
    hearth_selector_init(&selector);
    if (hearth_selector_parse(&selector, input, &arena, &offset, &err) == HEARTH_OK) {
        hearth_selector_format(&selector, out);
    } else if (strcmp(file, "caret.sel") == 0) {
        struct hearth_buf both;
        hearth_buf_init(&both, 0);
        hearth_selector_caret(input, offset, &both);
        struct hearth_str lines = hearth_buf_view(&both);
        size_t first = hearth_str_find(lines, '\n', 0);
        assert_int_equal(first, input.n); /* one line, with blanks for tabs */
        assert_int_equal(lines.p[lines.n - 1], '\n');
        hearth_buf_append(out, lines.p + first + 1, lines.n - first - 2);
        hearth_buf_release(&both);
    } else {
        hearth_buf_printf(out, "%zu %s", offset, err.msg);
    }
    hearth_selector_release(&selector);
    hearth_arena_release(&arena);
}

static struct hearth_str next_line(struct hearth_str text, size_t *at)
{
    size_t end = hearth_str_find(text, '\n', *at);
    struct hearth_str line = hearth_str_n(text.p + *at, end - *at);
    *at = end + 1;
    return line;
}

static void run(const char *name, size_t at_least)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/golden/selector/%s", HEARTH_TEST_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = hearth_mem_alloc(1 << 20);
    struct hearth_str text = hearth_str_n(bytes, fread(bytes, 1, 1 << 20, file));
    (void)fclose(file);
    struct hearth_buf recorded, outcome;
    hearth_buf_init(&recorded, 0);
    hearth_buf_init(&outcome, 0);
    size_t n = 0, wrong = 0;
    for (size_t at = 0; at < text.n; n++) {
        struct hearth_str input = next_line(text, &at);
        struct hearth_str want = next_line(text, &at);
        struct hearth_str blank = next_line(text, &at);
        assert_int_equal(blank.n, 0);
        hearth_buf_reset(&outcome);
        outcome_of(name, input, &outcome);
        struct hearth_str got = hearth_buf_view(&outcome);
        if (!g_record && !hearth_str_eq(got, want)) {
            print_error("%.*s\n  want %.*s\n  got  %.*s\n", (int)input.n, input.p, (int)want.n,
                        want.p, (int)got.n, got.p);
            wrong++;
        }
        hearth_buf_str(&recorded, input);
        hearth_buf_byte(&recorded, '\n');
        hearth_buf_str(&recorded, got);
        hearth_buf_cstr(&recorded, "\n\n");
    }
    if (g_record) {
        file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(recorded.p, 1, recorded.n, file), recorded.n);
        assert_int_equal(fclose(file), 0);
    }
    hearth_buf_release(&recorded);
    hearth_buf_release(&outcome);
    hearth_mem_free(bytes);
    assert_int_equal(wrong, 0);
    assert_true(n >= at_least);
}

static void valid_selectors_have_their_canonical_text(void **state)
{
    (void)state;
    run("valid.sel", 25);
}

static void every_error_has_its_offset_and_the_expected_tokens(void **state)
{
    (void)state;
    run("errors.sel", 55);
}

static void the_caret_is_under_the_wrong_character(void **state)
{
    (void)state;
    run("caret.sel", 5);
}

int main(int argc, char **argv)
{
    g_record = argc > 1 && strcmp(argv[1], "--record") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_selectors_have_their_canonical_text),
        cmocka_unit_test(every_error_has_its_offset_and_the_expected_tokens),
        cmocka_unit_test(the_caret_is_under_the_wrong_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
