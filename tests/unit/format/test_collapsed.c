/*
 * test_collapsed.c -- reading and writing of collapsed stacks, from texts of tests and real files.
 */
#include "hearth/base/mem.h"
#include "hearth/format/collapsed.h"
#include "hearth/format/profile_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct decoded {
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, struct hearth_str text)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 0);
    d->status = hearth_collapsed_decode(text, HEARTH_STR("samples"), HEARTH_STR("count"), 1,
                                        &d->arena, &d->profile, &d->err);
}

static int64_t total(const struct hearth_profile *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->n_samples; i++) {
        sum += p->values[i];
    }
    return sum;
}

/* Decode, encode, compare. */
static void assert_rewritten(struct hearth_str text, const char *want)
{
    struct decoded d;
    struct hearth_buf out;

    decode(&d, text);
    assert_int_equal(d.status, HEARTH_OK);
    hearth_buf_init(&out, 0);
    hearth_collapsed_encode(&d.profile, 0, &out);
    hearth_buf_byte(&out, 0);
    assert_false(hearth_buf_failed(&out));
    assert_string_equal(out.p, want);
    hearth_buf_release(&out);
    hearth_arena_release(&d.arena);
}

#define assert_text(text, want) assert_rewritten(HEARTH_STR(text), want)

static void reads_stacks_root_first_and_sums_equal_ones(void **state)
{
    (void)state;
    struct decoded d;
    decode(&d, HEARTH_STR("main;work;hot 5\nmain;idle 2\nmain;work;hot 3\n"));
    assert_int_equal(d.status, HEARTH_OK);
    const struct hearth_profile *p = &d.profile;
    assert_int_equal(p->n_samples, 2);
    assert_int_equal(p->n_types, 1);
    assert_true(hearth_str_eq_c(p->strings[p->types[0].type], "samples"));
    assert_true(hearth_str_eq_c(p->strings[p->types[0].unit], "count"));
    assert_int_equal(p->values[0], 8);
    const char *leaf_first[] = {"hot", "work", "main"};
    assert_int_equal(p->stack_first[1], 3);
    for (size_t i = 0; i < 3; i++) {
        const struct hearth_location *l = &p->locations[p->stack_locs[i]];
        assert_int_equal(l->n_lines, 1);
        assert_int_equal(l->mapping, HEARTH_NO_INDEX);
        assert_true(hearth_str_eq_c(p->strings[p->functions[p->lines[l->first_line].function].name],
                                    leaf_first[i]));
    }

    hearth_arena_release(&d.arena);
}

static void the_value_is_the_number_after_the_last_space(void **state)
{
    (void)state;
    assert_text("a b;operator new(int, int) 7\n", "a b;operator new(int, int) 7\n");
    assert_text("a;b 1 2", "a;b 1 2\n");
    assert_text("  a;b   3  \n", "a;b 3\n");
}

static void rounds_fractions_to_the_nearest(void **state)
{
    (void)state;
    assert_text("a 1.5\nb 1.49\nc .5\nd 2.\ne 9007199254740993.4",
                "a 2\nb 1\nc 1\nd 2\ne 9007199254740993\n");
}

static void assert_refused(const char *text, const char *message)
{
    struct decoded d;
    decode(&d, hearth_str_c(text));
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_string_equal(d.err.msg, message);
    hearth_arena_release(&d.arena);
}

static void refuses_any_line_without_a_value(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "no number", "a;b -3",     "a 99999999999999999999", "5", "a .",
        "a 1e3",     "// comment", "a 9223372036854775807.5"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(lines); i++) {
        char text[128], message[256];

        (void)snprintf(text, sizeof text, "\na;b 1\na;c 2\n# \n%s\na;d 3\n", lines[i]);
        (void)snprintf(message, sizeof message,
                       "line 5 is not of the form \"frame;frame value\": \"%s\"", lines[i]);
        assert_refused(text, message);
    }
}

static void comments_are_ignored(void **state)
{
    (void)state;
    assert_text("# captured on: Sun Oct 25 23:31:43 2015\n#\n#comment 7\n  # of mode 3; note 4\n"
                "\xEF\xBB\xBF# 5\na;b 1\n",
                "a;b 1\n");
    assert_text("#<Class:0x01>#call;b 1\n", "#<Class:0x01>#call;b 1\n");
}

static void a_line_without_a_frame_is_the_frame_no_stack(void **state)
{
    (void)state;
    assert_text("a;b 1\n 5\n;; 4\na;c 1\n[no stack] 2\n", "a;b 1\n[no stack] 11\na;c 1\n");
    assert_text("; 4\n", "[no stack] 4\n");
}

static void ignores_empty_frames_and_names_blank_ones(void **state)
{
    (void)state;
    assert_text(";a;; b ;c; 2\na;b;c 1\n", "a;b;c 3\n");
    assert_text("a;b;  3\na;b 1\na; ;b 1\n", "a;b 1\na;b;[unknown] 3\na;[unknown];b 1\n");
}

static void reads_windows_line_ends_and_byte_order_marks(void **state)
{
    (void)state;
    assert_text("a;b 1\r\na;c 2\r\n", "a;b 1\na;c 2\n");
    assert_text("\xEF\xBB\xBF"
                "a;b 1",
                "a;b 1\n");
    assert_text("a 1\n\xEF\xBB\xBF\xEF\xBB\xBF"
                "a;b 1",
                "a 1\na;b 1\n");
    static const char utf16[] = "\xff\xfe"
                                "a\0;\0\xe4\0;\0\x3d\xd8\x25\xdd \0001\0\r\0\n\0" /* a;ä;🔥 1 */
                                "\x3d\xd8 \0002\0" /* an unpaired surrogate */
                                "x";               /* half a code unit */
    assert_rewritten(hearth_str_n(utf16, sizeof utf16 - 1),
                     "a;\xc3\xa4;\xf0\x9f\x94\xa5 1\n\xef\xbf\xbd 2\n");
    static const char big_endian[] = "\xfe\xff"
                                     "\0a\0;\0\xe4\0;\xd8\x3d\xdd\x25\0 \0001\0\r\0\n";
    assert_rewritten(hearth_str_n(big_endian, sizeof big_endian - 1),
                     "a;\xc3\xa4;\xf0\x9f\x94\xa5 1\n");
}

static void repairs_text_that_is_not_utf8(void **state)
{
    (void)state;
    assert_rewritten(hearth_str_n("a\xff;b\0c 1\n", 9), "a\xef\xbf\xbd;b\xef\xbf\xbd"
                                                        "c 1\n");
}

static void refuses_text_without_any_stack(void **state)
{
    (void)state;
    const char *texts[] = {"",         "\n\n",    "# 5\n", "hello\nworld\n", "{\"a\": 1}\n",
                           "\xff\xfe", " 5\n 6\n"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        struct decoded d;
        decode(&d, hearth_str_c(texts[i]));
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        assert_non_null(strstr(d.err.msg, "frame;frame value"));
        hearth_arena_release(&d.arena);
    }
}

static void refuses_text_whose_lines_are_mostly_prose_or_settings(void **state)
{
    (void)state;
    assert_refused("# Hearth\n\nIt stores profiles of running programs, in version 1\nand more 2\n",
                   "2 of 2 lines are not of the form \"frame;frame value\"; the first is line 3, "
                   "\"It stores profiles of running programs, in version 1\"");

    /* Lines of several words, or that look like settings, are stacks only among other stacks. */
    const char *doubtful[] = {
        "INFO request took 35", "INFO: a;b 35",      "replicas: 3",   "rate = 5", "1, 2, 3",
        "WARN x; y 3",          "Compiler Thread 7", "[ERROR] a;b 3", " 12"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(doubtful); i++) {
        char text[128];
        struct decoded d;

        (void)snprintf(text, sizeof text, "%s\n%s\nmain;f 2\n", doubtful[i], doubtful[i]);
        decode(&d, hearth_str_c(text));
        if (d.status != HEARTH_INVALID_ARGUMENT ||
            strstr(d.err.msg, "the first is line 1") == NULL) {
            fail_msg("\"%s\" is taken: %s", doubtful[i], d.err.msg);
        }

        hearth_arena_release(&d.arena);
        (void)snprintf(text, sizeof text, "main;f 2\n%s\n", doubtful[i]);
        decode(&d, hearth_str_c(text));
        if (d.status != HEARTH_OK) {
            fail_msg("\"%s\" is no stack among stacks: %s", doubtful[i], d.err.msg);
        }

        hearth_arena_release(&d.arena);
    }
}

static void refuses_stacks_that_begin_like_structured_text(void **state)
{
    (void)state;
    assert_refused("main;f 1\nmain;g 1\n  \"count\": 3\n",
                   "line 3 is JSON, not a stack trace (\"frame;frame value\"): \"\"count\": 3\"");
    const char *foreign[] = {
        "{\"a\": 1 2",
        "{} 2",
        "[{\"a\" 2",
        "[\"a\", 2",
        "<?xml version 1",
        "<!-- a 1",
        "</a> 1",
        "--- 1",
        "--- contention 1",
        "2026-11-23 01:53:26 took 35",
        "2026-11-23T01:53:26Z took 35",
        "[2026-11-23 01:53:26] took 35",
        "2026/11/23 took; then 35",
        "01:53:26.123 took 35",
        "[   12.345678] usb 1",
        "<34>1 host 5",
        "Nov  3 01:53:26 host sshd[1]: port 22",
        "I1123 01:53:26.123456 1 main.cc:12] took 35",
        "127.0.0.1 - - [23/Nov/2026:01:53:26 +0000] \"GET / HTTP/1.1\" 200 \"X (a; b)\" 35",
        "a 12 1.5: 250000 cycles:u: 1f f (x)",
        "# HELP go_goroutines Number of goroutines.",
        "# TYPE go_goroutines gauge",
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(foreign); i++) {
        char text[256];
        struct decoded d;
        (void)snprintf(text, sizeof text, "main;f 1\nmain;g 1\n%s\n", foreign[i]);
        decode(&d, hearth_str_c(text));
        if (d.status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, "line 3 is ") == NULL) {
            fail_msg("\"%s\" is taken: %s", foreign[i], d.err.msg);
        }
        hearth_arena_release(&d.arena);
    }
}

/* As async-profiler, py-spy, rbspy, FlameGraph, PHP and Objective-C name roots. */
static void frames_of_real_tools_are_not_structured_text(void **state)
{
    (void)state;
    const char *stacks[] = {"{main};f",
                            "[unknown];f",
                            "[tid=12];f",
                            "<module> (a.py:1);f",
                            "[no stack]",
                            "<main> - a.rb:1;f",
                            "(anonymous);f",
                            "-[Foo bar:baz:];f",
                            "main",
                            "std::map<int, int>::find",
                            "process 12:\"python a.py\";f",
                            "10.0.0.1;f",
                            "kworker/0:1;f",
                            "Marker Thread;f",
                            "Jan;f",
                            "INFO;f",
                            "{closure:/a.php:3}",
                            "--;f",
                            "[0x12];f",
                            "\"quoted\";f",
                            "1.5:;f",
                            "2026;f"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(stacks); i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s 3\n", stacks[i]);
        assert_rewritten(hearth_str_c(text), text);
    }
}

static void refuses_sums_beyond_64_bits(void **state)
{
    (void)state;
    struct decoded d;
    decode(&d, HEARTH_STR("a 9223372036854775807\nb 1\na 1\n"));
    assert_int_equal(d.status, HEARTH_OUT_OF_RANGE);
    hearth_arena_release(&d.arena);
}

static void writes_inlined_lines_as_frames_and_addresses_without_a_name(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_profile_builder *b = hearth_profile_builder_new(&arena);
    assert_int_equal(hearth_profile_builder_type(b, HEARTH_STR("t"), HEARTH_STR("u")), 0);
    assert_int_equal(hearth_profile_builder_type(b, HEARTH_STR("t2"), HEARTH_STR("u")), 1);
    struct hearth_function in = {.name = hearth_profile_builder_string(b, HEARTH_STR("in;ner\n"))};
    struct hearth_function out = {.name = hearth_profile_builder_string(b, HEARTH_STR("outer"))};
    struct hearth_line lines[] = {{hearth_profile_builder_function(b, &in), 1},
                                  {hearth_profile_builder_function(b, &out), 2}};
    struct hearth_location with = {.mapping = HEARTH_NO_INDEX},
                           without = {.mapping = HEARTH_NO_INDEX, .address = 0xbeef};
    const uint32_t stack[] = {hearth_profile_builder_location(b, &without, NULL, 0),
                              hearth_profile_builder_location(b, &with, lines, 2), HEARTH_NO_INDEX};
    lines[0].line = 9; /* another location with the same names */
    const uint32_t same[] = {stack[0], hearth_profile_builder_location(b, &with, lines, 2),
                             HEARTH_NO_INDEX};
    const int64_t v[] = {1, 0}, w[] = {2, 5};
    assert_int_equal(hearth_profile_builder_sample(b, stack, 3, v, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(b, same, 3, w, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(b, NULL, 0, w, NULL), HEARTH_OK);
    struct hearth_profile p;
    assert_int_equal(hearth_profile_builder_finish(b, &p, NULL), HEARTH_OK);
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_collapsed_encode(&p, 0, &text);
    hearth_collapsed_encode(&p, 1, &text);
    hearth_buf_byte(&text, 0);
    assert_string_equal(text.p, "[no stack] 2\n[unknown];outer;in:ner ;0xbeef 3\n"
                                "[no stack] 5\n[unknown];outer;in:ner ;0xbeef 5\n");
    hearth_buf_release(&text);
    hearth_profile_builder_free(b);
    hearth_arena_release(&arena);
}

/* The text is read as stacks of one frame each, in this order. */
static void assert_text_of(const char *text, const char *const *roots, size_t n)
{
    struct decoded d;

    decode(&d, hearth_str_c(text));
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.profile.n_samples, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(d.profile.stack_first[i + 1], i + 1);
        const struct hearth_location *l = &d.profile.locations[d.profile.stack_locs[i]];
        uint32_t name = d.profile.functions[d.profile.lines[l->first_line].function].name;
        assert_true(hearth_str_eq_c(d.profile.strings[name], roots[i]));
    }

    hearth_arena_release(&d.arena);
}

/* Stacks with the given frames, root first, and value 1 each, written and read again. */
static void assert_survives(const char *const *roots, size_t n, const char *want)
{
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_buf text;
    const int64_t one = 1;

    hearth_arena_init(&arena, 0);
    hearth_buf_init(&text, 0);
    struct hearth_profile_builder *b = hearth_profile_builder_new(&arena);
    assert_int_equal(hearth_profile_builder_type(b, HEARTH_STR("t"), HEARTH_STR("u")), 0);
    for (size_t i = 0; i < n; i++) {
        struct hearth_function f = {.name =
                                        hearth_profile_builder_string(b, hearth_str_c(roots[i]))};
        struct hearth_line line = {hearth_profile_builder_function(b, &f), 0};
        struct hearth_location l = {.mapping = HEARTH_NO_INDEX};
        uint32_t location = hearth_profile_builder_location(b, &l, &line, 1);
        assert_int_equal(hearth_profile_builder_sample(b, &location, 1, &one, NULL), HEARTH_OK);
    }

    assert_int_equal(hearth_profile_builder_finish(b, &p, NULL), HEARTH_OK);
    hearth_collapsed_encode(&p, 0, &text);
    hearth_buf_byte(&text, 0);
    assert_string_equal(text.p, want);
    assert_text_of(text.p, roots, n);
    hearth_buf_release(&text);
    hearth_profile_builder_free(b);
    hearth_arena_release(&arena);
}

static void stacks_that_look_like_other_text_are_written_so_that_they_are_read_back(void **state)
{
    (void)state;
    const char *odd[] = {"# a", "{\"a", "main", "2026-11-23 x"};
    assert_survives(odd, 4, ";# a 1\n;{\"a 1\nmain 1\n;2026-11-23 x 1\n");
    const char *few[] = {"GC Thread", "main"};
    assert_survives(few, 2, "GC Thread 1\nmain 1\n");
    const char *many[] = {"GC Thread", "VM Thread", "main"};
    assert_survives(many, 3, ";GC Thread 1\n;VM Thread 1\nmain 1\n");
}

static void omits_stacks_with_value_0(void **state)
{
    (void)state;
    assert_text("a;b 0\na 1\n", "a 1\n");
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    enum hearth_status status = HEARTH_NO_MEMORY;
    for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
        struct decoded d;

        hearth_mem_fail_after(nth);
        decode(&d, HEARTH_STR("\xff\xfe"
                              "a\0;\0b\0;\0c\0 \0001\0\n\0d\0;\0e\0 \0002\0"));
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        if (d.status == HEARTH_OK) {
            hearth_collapsed_encode(&d.profile, 0, &out);
        }

        hearth_mem_fail_after(0);
        status = d.status != HEARTH_OK || hearth_buf_failed(&out) ? HEARTH_NO_MEMORY : HEARTH_OK;
        assert_true(d.status == HEARTH_OK || d.status == HEARTH_NO_MEMORY);
        hearth_buf_release(&out);
        hearth_arena_release(&d.arena);
        assert_true(nth < 200);
    }
}

/* ---- real files ---- */

/* 0: the file does not exist. */
static size_t read_shared(const char *name, char *bytes, size_t cap)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", HEARTH_SHARED_DATA, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return 0;
    }

    size_t n = fread(bytes, 1, cap, file);
    assert_true(n > 0 && n < cap);
    (void)fclose(file);

    return n;
}

/*
 * Totals and distinct stacks, as an independent reader found them.
 */
static void reads_real_files_with_their_totals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t total;
        uint32_t n_stacks;
    } files[] = {{"collapsed/asprof-sample1.collapsed", 185, 17},
                 {"collapsed/asprof-sample2.collapsed", 188, 17},
                 {"collapsed/diff-after.txt", 80, 8},
                 {"collapsed/diff-before.txt", 65, 8},
                 {"collapsed/diff-expected.txt", 80, 9},
                 {"collapsed/odd-crlf.txt", 14, 3},
                 {"collapsed/odd-recursion.txt", 10, 7},
                 {"collapsed/odd-utf16-le.txt", 14, 3},
                 {"collapsed/perf-iperf-tid.txt", 200, 134},
                 {"collapsed/perf-java-all.txt", 45, 33},
                 {"collapsed/perf-vertx-kernel-java-all.txt", 285, 199}};
    static char bytes[1 << 21];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(files); i++) {
        size_t n = read_shared(files[i].name, bytes, sizeof bytes);
        if (n == 0) {
            print_message("no shared data at %s: real collapsed files not read\n",
                          HEARTH_SHARED_DATA);
            skip();
        }

        struct decoded d;
        decode(&d, hearth_str_n(bytes, n));
        assert_int_equal(d.status, HEARTH_OK);
        if (total(&d.profile) != files[i].total || d.profile.n_samples != files[i].n_stacks) {
            fail_msg("%s: total %lld, %u stacks", files[i].name, (long long)total(&d.profile),
                     d.profile.n_samples);
        }

        hearth_arena_release(&d.arena);
    }
}

static void refuses_a_real_file_with_lines_of_no_known_form(void **state)
{
    (void)state;
    static char bytes[1 << 12];
    struct decoded d;

    size_t n = read_shared("collapsed/odd-invalid-lines.txt", bytes, sizeof bytes);
    if (n == 0) {
        skip();
    }

    decode(&d, hearth_str_n(bytes, n));
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_string_equal(d.err.msg, "line 2 is not of the form \"frame;frame value\": \"// some "
                                   "other comment\"");
    hearth_arena_release(&d.arena);
}

static void reads_lines_without_values_as_one_sample_each(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf out;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_lines_decode(HEARTH_STR("a;b 7\n\na;c\r\na;c"), HEARTH_STR("t"),
                                         HEARTH_STR("u"), &arena, &profile, &err),
                     HEARTH_OK);
    hearth_collapsed_encode(&profile, 0, &out);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, "a;b 7 1\na;c 2\n");
    assert_int_equal(hearth_lines_decode(HEARTH_STR("a\n;\n \n"), HEARTH_STR("t"), HEARTH_STR("u"),
                                         &arena, &profile, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "line 2 is not of the form \"frame;frame\": \";\"");
    assert_int_equal(hearth_lines_decode(HEARTH_STR("a 1 1.5: 1 cycles: \n\t1 f (x)\n"),
                                         HEARTH_STR("t"), HEARTH_STR("u"), &arena, &profile, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, "line 1 is a record of perf script"));
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stacks_root_first_and_sums_equal_ones),
        cmocka_unit_test(the_value_is_the_number_after_the_last_space),
        cmocka_unit_test(rounds_fractions_to_the_nearest),
        cmocka_unit_test(refuses_any_line_without_a_value),
        cmocka_unit_test(comments_are_ignored),
        cmocka_unit_test(a_line_without_a_frame_is_the_frame_no_stack),
        cmocka_unit_test(ignores_empty_frames_and_names_blank_ones),
        cmocka_unit_test(reads_windows_line_ends_and_byte_order_marks),
        cmocka_unit_test(repairs_text_that_is_not_utf8),
        cmocka_unit_test(refuses_text_without_any_stack),
        cmocka_unit_test(refuses_text_whose_lines_are_mostly_prose_or_settings),
        cmocka_unit_test(refuses_stacks_that_begin_like_structured_text),
        cmocka_unit_test(frames_of_real_tools_are_not_structured_text),
        cmocka_unit_test(refuses_sums_beyond_64_bits),
        cmocka_unit_test(writes_inlined_lines_as_frames_and_addresses_without_a_name),
        cmocka_unit_test(stacks_that_look_like_other_text_are_written_so_that_they_are_read_back),
        cmocka_unit_test(omits_stacks_with_value_0),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(refuses_a_real_file_with_lines_of_no_known_form),
        cmocka_unit_test(reads_lines_without_values_as_one_sample_each),
        cmocka_unit_test(reads_real_files_with_their_totals),
    };

    return cmocka_run_group_tests_name("collapsed", tests, NULL, NULL);
}
