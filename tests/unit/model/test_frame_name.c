/* test_frame_name.c -- names of locations that have only an address. */
#include "hearth/model/frame_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    EMPTY,
    LIBC,
    KERNEL,
    BARE,
    N_STRINGS
};

static const struct hearth_str g_strings[N_STRINGS] = {
    [EMPTY] = {"", 0},
    [LIBC] = {"/lib/libc.so.6", 14},
    [KERNEL] = {"[kernel.kallsyms]", 17},
    [BARE] = {"C:\\a\\app.exe", 12},
};

static void expect(uint64_t address, const struct hearth_mapping *mapping, const char *name)
{
    char out[HEARTH_FRAME_NAME_BYTES];
    struct hearth_str got = {out, hearth_frame_name(address, mapping, g_strings, out)};

    if (!hearth_str_eq_c(got, name)) {
        fail_msg("got " HEARTH_STR_FMT ", expected %s", HEARTH_STR_ARG(got), name);
    }
    assert_true(hearth_frame_name_is_address(got));
}

static void an_address_is_an_offset_in_the_file_of_its_mapping(void **state)
{
    struct hearth_mapping libc = {
        .start = 0x7f0000001000, .limit = 0x7f0000005000, .offset = 0x26000, .filename = LIBC};
    const struct hearth_mapping nameless = {.start = 0x1000, .limit = 0x2000, .offset = 0x10};

    (void)state;
    expect(0x7f0000001000, &libc, "libc.so.6+0x26000");
    expect(0x7f0000004fff, &libc, "libc.so.6+0x29fff");
    expect(0x1234, &nameless, "0x244");
    expect(0x1234, NULL, "0x1234");
    expect(UINT64_MAX, NULL, "0xffffffffffffffff");

    /* Outside of the range, or without one, the address is all that is known. */
    expect(0x7f0000005000, &libc, "libc.so.6+0x7f0000005000");
    libc.start = libc.limit = libc.offset = 0;
    expect(0x4f2a, &libc, "libc.so.6+0x4f2a");
}

static void the_file_is_its_last_part_and_at_most_256_bytes(void **state)
{
    char path[1000], out[HEARTH_FRAME_NAME_BYTES];
    struct hearth_mapping mapping = {.filename = KERNEL};

    (void)state;
    expect(1, &mapping, "[kernel.kallsyms]+0x1");
    mapping.filename = BARE;
    expect(1, &mapping, "app.exe+0x1");

    /* Two bytes a character: the cut is before a whole one. */
    for (size_t i = 0; i + 1 < sizeof path; i += 2) {
        memcpy(path + i, "\xc3\xa4", 2);
    }
    const struct hearth_str strings[] = {{path, 999}};
    mapping.filename = 0;
    size_t n = hearth_frame_name(UINT64_MAX, &mapping, strings, out);
    assert_int_equal(n, 255 + 1 + 18);
}

static void other_names_are_no_addresses(void **state)
{
    static const char *const names[] = {"",      "0x",   "main",      "0xg",   "lib+0x",
                                        "f0x12", "a+12", "[unknown]", "+ 0x1", "a+0x12 [b]"};

    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_false(hearth_frame_name_is_address(hearth_str_c(names[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_an_offset_in_the_file_of_its_mapping),
        cmocka_unit_test(the_file_is_its_last_part_and_at_most_256_bytes),
        cmocka_unit_test(other_names_are_no_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
