/* test_flame_screen.c -- the interactive flame graph without its terminal: any keys, any size. */
#include "flame_terminal.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static int64_t g_level0[] = {0, 1000, 0, 0};
static int64_t g_level1[] = {0, 100, 100, 4, 0, 890, 50, 1, 0, 10, 10, 5};
static int64_t g_level2[] = {100, 450, 150, 2, 0, 390, 390, 3};
static int64_t g_level3[] = {100, 300, 100, 1};
static int64_t g_level4[] = {100, 200, 199, 2};
static int64_t g_level5[] = {100, 1, 1, 6};
#define LEVEL(values)                                              \
    {                                                              \
        values, HEARTH_ARRAY_LEN(values), HEARTH_ARRAY_LEN(values) \
    }
static struct hearth_flame_level g_levels[] = {LEVEL(g_level0), LEVEL(g_level1), LEVEL(g_level2),
                                               LEVEL(g_level3), LEVEL(g_level4), LEVEL(g_level5)};

static void open_screen(struct flame_screen *screen, enum flame_colors colors)
{
    static struct hearth_str names[7];
    const char *const texts[] = {"total",
                                 "main.run",
                                 "java.util.HashMap.put",
                                 "ns::write<int>",
                                 "日本語の関数",
                                 "\x1b[2J\xff\t\x7f\xc2\x9b",
                                 "github.com/a/b.(*T).f"};
    struct hearth_err err = HEARTH_ERR_INIT;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        names[i] = hearth_str_c(texts[i]);
    }
    const struct hearth_flamegraph graph = {.names = names,
                                            .n_names = HEARTH_ARRAY_LEN(names),
                                            .levels = g_levels,
                                            .n_levels = HEARTH_ARRAY_LEN(g_levels),
                                            .total = 1000};
    const struct flame_facts facts = {"{a=\"\x1b]0;b\a\"}",
                                      "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                                      "11-20 10:36:00 to 11-20 11:36:00 UTC",
                                      "http://127.0.0.1:4040/profile?from=1&to=2&q=a", NULL};
    const struct flame_ink ink = {
        .colors = colors, .is_utf8 = true, .unit = HEARTH_STR("nanoseconds")};
    assert_int_equal(flame_screen_init(screen, &graph, &facts, &ink, &err), HEARTH_OK);
}

/* The cells of a row without its colours; fails on other control characters. */
static int count_row(const char *row, size_t n)
{
    int cells = 0;

    for (size_t i = 0; i < n;) {
        mbstate_t state = {0};
        wchar_t wide;
        if (row[i] == '\033') {
            assert_true(i + 1 < n && row[i + 1] == '[');
            i += 2 + strspn(row + i + 2, "0123456789;");
            assert_int_equal(row[i++], 'm');
            continue;
        }
        size_t bytes = mbrtowc(&wide, row + i, n - i, &state);
        assert_true(bytes > 0 && bytes < 8);
        assert_true(wcwidth(wide) > 0);
        cells += wcwidth(wide);
        i += bytes;
    }

    return cells;
}

static void assert_frame(struct flame_screen *screen, int width, int height)
{
    struct hearth_buf frame;
    int rows = 0;

    hearth_buf_init(&frame, 0);
    flame_screen_paint(screen, width, height, &frame);
    hearth_buf_byte(&frame, '\0');
    assert_false(hearth_buf_failed(&frame));
    for (const char *row = frame.p; *row != '\0'; rows++) {
        const char *end = strchr(row, '\n');
        assert_non_null(end);
        assert_int_equal(count_row(row, (size_t)(end - row)), width);
        row = end + 1;
    }
    assert_int_equal(rows, height);
    hearth_buf_release(&frame);
}

static void microseconds_are_written_in_ascii_without_utf8(void **state)
{
    struct flame_ink ink = {.is_utf8 = true, .unit = HEARTH_STR("nanoseconds")};
    char text[48];

    (void)state;
    flame_value(1500, &ink, text);
    assert_string_equal(text, "1.50 µs");
    ink.is_utf8 = false;
    flame_value(1500, &ink, text);
    assert_string_equal(text, "1.50 us");
    flame_value(15, &ink, text);
    assert_string_equal(text, "15 ns");
}

static void random_keys_leave_valid_frames(void **state)
{
    static const int keys[] = {FLAME_KEY_UP,
                               FLAME_KEY_DOWN,
                               FLAME_KEY_LEFT,
                               FLAME_KEY_RIGHT,
                               FLAME_KEY_PAGE_UP,
                               FLAME_KEY_PAGE_DOWN,
                               FLAME_KEY_HOME,
                               FLAME_KEY_END,
                               FLAME_KEY_ENTER,
                               FLAME_KEY_ESCAPE,
                               FLAME_KEY_BACKSPACE,
                               FLAME_KEY_UNKNOWN,
                               '\t',
                               'u',
                               '0',
                               '/',
                               'n',
                               'N',
                               's',
                               'i',
                               't',
                               'o',
                               '?',
                               'y',
                               'm',
                               'a',
                               '(',
                               0xe6,
                               '.',
                               '*'};
    static const int sizes[][2] = {{60, 20}, {100, 30}, {220, 60}, {30, 8},
                                   {3, 2},   {61, 9},   {1, 1}};
    unsigned seed = (unsigned)hearth_hash_process_seed();
    struct flame_screen screen;
    (void)state;
    print_message("seed %u\n", seed);

    for (int colors = FLAME_MONOCHROME; colors <= FLAME_TRUE_COLOR; colors++) {
        open_screen(&screen, (enum flame_colors)colors);
        for (int i = 0; i < 3000; i++) {
            seed = seed * 1664525u + 1013904223u;
            const int *size = sizes[(seed >> 20) % HEARTH_ARRAY_LEN(sizes)];
            assert_frame(&screen, size[0], size[1]);
            flame_screen_key(&screen, keys[(seed >> 8) % HEARTH_ARRAY_LEN(keys)]);
            assert_false(screen.is_done);
        }
        flame_screen_release(&screen);
    }
}

static void an_address_has_the_state_of_the_view(void **state)
{
    struct flame_screen screen;
    struct hearth_buf address;
    (void)state;
    open_screen(&screen, FLAME_MONOCHROME);
    hearth_buf_init(&address, 0);
    for (const char *p = "/a&b=c\r"; *p != '\0'; p++) {
        flame_screen_key(&screen, *p);
    }
    flame_screen_sandwich(&screen, 3);
    flame_screen_address(&screen, &address);
    hearth_buf_byte(&address, '\0');
    assert_string_equal(address.p,
                        "http://127.0.0.1:4040/profile?from=1&to=2&q=a"
                        "&function=ns%3A%3Awrite%3Cint%3E&view=sandwich&search=a%26b%3Dc");
    hearth_buf_release(&address);
    flame_screen_release(&screen);
}

static void keys_are_recognised_in_pieces(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool is_all;
        size_t taken;
        int key;
    } cases[] = {
        {"x", 1, false, 1, 'x'},
        {"\033", 1, false, 0, 0},
        {"\033", 1, true, 1, FLAME_KEY_ESCAPE},
        {"\033[", 2, false, 0, 0},
        {"\033[Aq", 4, false, 3, FLAME_KEY_UP},
        {"\033OB", 3, false, 3, FLAME_KEY_DOWN},
        {"\033[5~", 4, false, 4, FLAME_KEY_PAGE_UP},
        {"\033[1;5C", 6, false, 6, FLAME_KEY_RIGHT},
        {"\033[99999999999~", 14, false, 14, FLAME_KEY_UNKNOWN},
        {"\033q", 2, false, 1, FLAME_KEY_ESCAPE},
        {"\033[0000000000000000000000000000000000000000", 42, false, 32, FLAME_KEY_UNKNOWN},
        {"\xc3", 1, false, 1, 0xc3},
    };
    (void)state;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        int key = 0;
        assert_int_equal(flame_take_key((const unsigned char *)cases[i].bytes, cases[i].n,
                                        cases[i].is_all, &key),
                         cases[i].taken);
        assert_int_equal(key, cases[i].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(microseconds_are_written_in_ascii_without_utf8),
        cmocka_unit_test(random_keys_leave_valid_frames),
        cmocka_unit_test(an_address_has_the_state_of_the_view),
        cmocka_unit_test(keys_are_recognised_in_pieces),
    };
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
