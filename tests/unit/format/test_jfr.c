/* test_jfr.c -- recognition of JFR recordings. */
#include "hearth/format/jfr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A chunk of version `major` with n bytes that declares `size` bytes. */
static size_t put_chunk(char *to, size_t n, unsigned char major, uint64_t size)
{
    memset(to, 0, n);
    memcpy(to, "FLR", 4);
    to[5] = (char)major;
    for (size_t i = 0; i < 8; i++) {
        to[15 - i] = (char)(size >> 8 * i);
    }

    return n;
}

static void expect(const char *bytes, size_t n, const char *part)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = hearth_jfr_check(hearth_str_n(bytes, n), &err);

    assert_int_equal(status, part == NULL ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
    if (part != NULL && strstr(err.msg, part) == NULL) {
        fail_msg("%s", err.msg);
    }
}

static void accepts_consecutive_chunks_up_to_the_end(void **state)
{
    (void)state;
    char bytes[300];
    size_t n = put_chunk(bytes, 68, 2, 68);
    expect(bytes, n, NULL);
    n += put_chunk(bytes + n, 100, 1, 100);
    expect(bytes, n, NULL);
    expect(bytes, n - 1, "the JFR chunk at byte 68 declares 100 bytes; 99 are left");
    expect(bytes, n + 3, "3 bytes at byte 168 are not a chunk");
}

static void refuses_bytes_that_are_not_a_recording_and_names_their_offset(void **state)
{
    (void)state;
    char bytes[68];
    expect("11 arbitrar", 11, "not a JFR recording: 11 bytes at byte 0 are not a chunk");
    expect("", 0, "0 bytes at byte 0");
    (void)put_chunk(bytes, 68, 2, 68);
    bytes[3] = 1;
    expect(bytes, 68, "no chunk begins at byte 0");
    (void)put_chunk(bytes, 68, 3, 68);
    expect(bytes, 68, "version 3");
    static const uint64_t sizes[] = {0, 67, 69, UINT64_MAX};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sizes); i++) {
        (void)put_chunk(bytes, 68, 2, sizes[i]);
        expect(bytes, 68, "68 are left");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_consecutive_chunks_up_to_the_end),
        cmocka_unit_test(refuses_bytes_that_are_not_a_recording_and_names_their_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
