/* test_pprof_decode.c -- the pprof scanner on golden files, on damage, at its limits. */
#include "hearth/base/mem.h"
#include "hearth/format/pprof.h"

#include "profile_text.h"
#include "test_files.h"
#include "wire_text.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN HEARTH_TEST_DIR "/golden/pprof/"

static const struct hearth_pprof_limits NO_LIMITS;

struct decoded {
    struct hearth_arena arena;
    uint8_t *bytes; /* as long as the input, so that ASan detects a read past its end */
    struct hearth_profile profile;
    struct hearth_pprof_notes notes;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode_bytes(struct decoded *d, struct hearth_str in,
                         const struct hearth_pprof_limits *limits, size_t arena_bytes)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT, .bytes = malloc(in.n == 0 ? 1 : in.n)};
    assert_non_null(d->bytes);
    if (in.n > 0) {
        memcpy(d->bytes, in.p, in.n);
    }

    hearth_arena_init(&d->arena, arena_bytes);
    d->status = hearth_pprof_decode(hearth_str_n((const char *)d->bytes, in.n), limits, &d->arena,
                                    &d->profile, &d->notes, &d->err);
    assert_int_equal(d->status, d->err.status);
}

static void decode(struct decoded *d, const char *wire, const struct hearth_pprof_limits *limits)
{
    struct hearth_buf in;
    hearth_buf_init(&in, 0);
    wire_text(wire, &in);
    decode_bytes(d, hearth_buf_view(&in), limits, 0);
    hearth_buf_release(&in);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
    free(d->bytes);
}

static void assert_ok(const struct decoded *d)
{
    if (d->status != HEARTH_OK) {
        fail_msg("%s: %s", hearth_status_name(d->status), d->err.msg);
    }
}

static void assert_refused(const char *wire, const struct hearth_pprof_limits *limits,
                           enum hearth_status status, const char *message)
{
    struct decoded d;

    decode(&d, wire, limits);
    if (d.status != status || strcmp(d.err.msg, message) != 0) {
        fail_msg("%s\n  got  %s: %s\n  want %s: %s", wire, hearth_status_name(d.status), d.err.msg,
                 hearth_status_name(status), message);
    }

    release(&d);
}

static void assert_string(const struct decoded *d, uint32_t i, const char *want)
{
    if (i >= d->profile.n_strings || !hearth_str_eq_c(d->profile.strings[i], want)) {
        fail_msg("string %u is not \"%s\"", i, want);
    }
}

/* ---- golden files ---- */

/* The bytes of a golden input; false for other files. */
static bool golden_input(const char *name, struct hearth_buf *in)
{
    char path[512];
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str file = hearth_str_c(name);

    (void)snprintf(path, sizeof path, GOLDEN "%s", name);
    if (hearth_str_ends(file, HEARTH_STR(".pb.gz"))) {
        return read_inflated(path, in, &err);
    }
    if (!hearth_str_ends(file, HEARTH_STR(".wire"))) {
        return false;
    }

    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    assert_true(read_file(path, &text));
    hearth_buf_byte(&text, '\0');
    wire_text(text.p, in);
    hearth_buf_release(&text);

    return true;
}

static void compare_with_golden_text(const char *name, const struct decoded *d)
{
    char path[512];
    struct hearth_buf got, want;

    hearth_buf_init(&got, 0);
    hearth_buf_init(&want, 0);
    profile_text(&d->profile, &got);
    hearth_buf_printf(&got, "repaired strings: %" PRIu64 "\n", d->notes.strings_repaired);
    (void)snprintf(path, sizeof path, GOLDEN "%.*s.txt", (int)strcspn(name, "."), name);
    if (getenv("HEARTH_RECORD") != NULL) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(got.p, 1, got.n, file), got.n);
        assert_int_equal(fclose(file), 0);
    }

    assert_true(read_file(path, &want));
    if (!hearth_str_eq(hearth_buf_view(&got), hearth_buf_view(&want))) {
        fail_msg("%s decodes to:\n%.*s", name, (int)got.n, got.p);
    }

    hearth_buf_release(&got);
    hearth_buf_release(&want);
}

static void for_each_golden(void (*check)(const char *name, struct hearth_str in))
{
    DIR *dir = opendir(GOLDEN);

    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct hearth_buf in;
        hearth_buf_init(&in, 0);
        if (golden_input(entry->d_name, &in)) {
            check(entry->d_name, hearth_buf_view(&in));
            n++;
        }
        hearth_buf_release(&in);
    }

    (void)closedir(dir);
    assert_true(n >= 12);
}

static void check_golden(const char *name, struct hearth_str in)
{
    struct decoded d;
    decode_bytes(&d, in, &NO_LIMITS, 0);
    assert_ok(&d);
    compare_with_golden_text(name, &d);
    release(&d);
}

static void decodes_the_golden_files(void **state)
{
    (void)state;
    for_each_golden(check_golden);
}

/*
 * A truncated profile is refused or, if it ends between two fields, is another profile; never a
 * crash.
 */
static void check_truncations(const char *name, struct hearth_str in)
{
    size_t n_refused = 0;
    for (size_t n = 0; n < in.n; n++) {
        struct decoded d;
        decode_bytes(&d, hearth_str_n(in.p, n), &NO_LIMITS, 0);
        n_refused += d.status != HEARTH_OK;
        assert_true(d.status == HEARTH_OK || d.status == HEARTH_INVALID_ARGUMENT);
        release(&d);
    }

    if (n_refused < in.n / 2) {
        fail_msg("%s: only %zu of %zu truncations are refused", name, n_refused, in.n);
    }
}

static void survives_every_truncation(void **state)
{
    (void)state;
    for_each_golden(check_truncations);
}

static void check_byte_changes(const char *name, struct hearth_str in)
{
    (void)name;
    uint8_t *bytes = malloc(in.n);
    assert_non_null(bytes);
    memcpy(bytes, in.p, in.n);
    for (size_t i = 0; i < in.n; i++) {
        uint8_t was = bytes[i];
        const uint8_t changes[] = {
            0, 1, 0x7f, 0x80, 0xff, (uint8_t)(was + 1), (uint8_t)(was ^ 0x10)};
        for (size_t k = 0; k < sizeof changes; k++) {
            struct decoded d;
            bytes[i] = changes[k];
            decode_bytes(&d, hearth_str_n((const char *)bytes, in.n), &NO_LIMITS, 0);
            assert_true(d.status == HEARTH_OK || d.status == HEARTH_INVALID_ARGUMENT);
            release(&d);
        }
        bytes[i] = was;
    }

    free(bytes);
}

static void survives_every_changed_byte(void **state)
{
    (void)state;
    for_each_golden(check_byte_changes);
}

static void check_memory_refusals(const char *name, struct hearth_str in)
{
    struct decoded d;

    decode_bytes(&d, in, &NO_LIMITS, 0);
    size_t need = d.arena.used_bytes;
    release(&d);
    for (size_t limit = 1; limit < need; limit += 1 + need / 200) {
        decode_bytes(&d, in, &NO_LIMITS, limit);
        if (d.status != HEARTH_NO_MEMORY) {
            fail_msg("%s with %zu of %zu bytes: %s", name, limit, need, d.err.msg);
        }
        release(&d);
    }

    decode_bytes(&d, in, &NO_LIMITS, need);
    assert_ok(&d);
    release(&d);
    for (uint64_t n = 1;; n++) {
        hearth_mem_fail_after(n);
        decode_bytes(&d, in, &NO_LIMITS, 0);
        hearth_mem_fail_after(0);
        enum hearth_status status = d.status;
        release(&d);
        if (status == HEARTH_OK) {
            assert_true(n > 1);
            break;
        }
        assert_int_equal(status, HEARTH_NO_MEMORY);
    }
}

static void reports_every_refused_allocation(void **state)
{
    (void)state;
    for_each_golden(check_memory_refusals);
}

/* ---- refused input ---- */

#define TYPE   "1{ 1:1 2:1 } "
#define TEXT   " 6'' 6'x' "
#define REFUSE "not a pprof profile: "

static void refuses_damaged_wire_forms(void **state)
{
    (void)state;
    static const struct {
        const char *wire, *message;
    } cases[] = {
        {TYPE "!0b08010c", REFUSE "group, which is not used, at byte 7 of 10"},
        {TYPE "100:1 !a406", REFUSE "group, which is not used, at byte 11 of 11"},
        {"!0e", REFUSE "tag with an unknown wire type, at byte 1 of 1"},
        {"!00", REFUSE "tag with an impossible field number, at byte 1 of 1"},
        {"!8080808080808080808001",
         REFUSE "varint is cut off or longer than 64 bits, at byte 0 of 11"},
        {"9:1 !48ffffffffffffffffff02",
         REFUSE "varint is cut off or longer than 64 bits, at byte 3 of 13"},
        {"!48ff", REFUSE "varint is cut off or longer than 64 bits, at byte 1 of 2"},
        {"!1205", REFUSE "field reaches beyond the end of its message, at byte 2 of 2"},
        {"!12ffffffffffffffffff01 !00",
         REFUSE "field reaches beyond the end of its message, at byte 11 of 12"},
        {"!a206057878", REFUSE "field reaches beyond the end of its message, at byte 3 of 5"},
        {"!a1060102", REFUSE "field reaches beyond the end of its message, at byte 2 of 4"},
        {"!a5060102", REFUSE "field reaches beyond the end of its message, at byte 2 of 4"},
        {"2:1", REFUSE "known field with the wrong wire type, at byte 1 of 2"},
        {"9'x'", REFUSE "known field with the wrong wire type, at byte 1 of 3"},
        {"1{ 1'x' }", "sample type 0: known field with the wrong wire type, at byte 3 of 5"},
        {"1{ !08ff }", "sample type 0: varint is cut off or longer than 64 bits, at byte 3 of 4"},
        {TYPE "2{ 1{ !ff } }" TEXT,
         "sample 0: varint is cut off or longer than 64 bits, at byte 10 of 16"},
        {TYPE "2{ 2[1] 1{ !ff } }" TEXT,
         "sample 0: varint is cut off or longer than 64 bits, at byte 13 of 19"},
        {TYPE "2{ 2{ !01ff } }" TEXT,
         "sample 0: varint is cut off or longer than 64 bits, at byte 11 of 17"},
        {TYPE "2{ 2{ !01ff } }" TEXT " 6'so far from the end that values are read by words, and "
              "found to be cut off all the same, as they are near it'",
         "sample 0: varint is cut off or longer than 64 bits, at byte 11 of 127"},
        {TYPE "2{ 1{ !01 } 9'x' !1a05 }" TEXT,
         "sample 0: field reaches beyond the end of its message, at byte 16 of 21"},
        {TYPE "2{ 3{ 1'x' } }" TEXT,
         "sample 0: known field with the wrong wire type, at byte 11 of 18"},
        {TYPE "3{ 10'x' }" TEXT,
         "mapping 0: known field with the wrong wire type, at byte 9 of 16"},
        {TYPE "4{ 1:1 4{ 2'x' } }" TEXT,
         "location 0: known field with the wrong wire type, at byte 13 of 20"},
        {TYPE "5{ 1:1 5'x' }" TEXT,
         "function 0: known field with the wrong wire type, at byte 11 of 18"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_refused(cases[i].wire, &NO_LIMITS, HEARTH_INVALID_ARGUMENT, cases[i].message);
    }
}

static void refuses_input_that_breaks_a_rule_of_the_format(void **state)
{
    (void)state;
    static const struct {
        const char *wire, *message;
    } cases[] = {
        {"", "the profile has no sample type"},
        {TEXT "9:1", "the profile has no sample type"},
        {TYPE "6'cpu' 6'x'", "string 0 should be empty string, not \"cpu\""},
        {TYPE, "sample type 0: type: string index out of range of the 1 strings"},
        {"1{ 1:1 2:2 }" TEXT, "sample type 0: unit: string index out of range of the 2 strings"},
        {"1{ 1:-1 }" TEXT, "sample type 0: type: string index out of range of the 2 strings"},
        {"1{ 1:4294967296 }" TEXT,
         "sample type 0: type: string index out of range of the 2 strings"},
        {TYPE "11{ 2:9 }" TEXT, "period type: unit: string index out of range of the 2 strings"},
        {TYPE "13[1 2]" TEXT, "comment 1: text: string index out of range of the 2 strings"},
        {TYPE "14:2" TEXT,
         "profile: default sample type: string index out of range of the 2 strings"},
        {TYPE "15:2" TEXT, "profile: doc url: string index out of range of the 2 strings"},
        {TYPE "3{ 5:2 }" TEXT, "mapping 0: file name: string index out of range of the 2 strings"},
        {TYPE "3{ 6:2 }" TEXT, "mapping 0: build id: string index out of range of the 2 strings"},
        {TYPE "5{ 1:1 2:2 }" TEXT, "function 0: name: string index out of range of the 2 strings"},
        {TYPE "5{ 1:1 3:2 }" TEXT,
         "function 0: system name: string index out of range of the 2 strings"},
        {TYPE "5{ 1:1 } 5{ 1:2 4:2 }" TEXT,
         "function 1: file name: string index out of range of the 2 strings"},
        {TYPE "2{ 2[1] 3{ 1:2 } }" TEXT,
         "sample 0: label key: string index out of range of the 2 strings"},
        {TYPE "2{ 2[1] 3{ 2:2 } }" TEXT,
         "sample 0: label value: string index out of range of the 2 strings"},
        {TYPE "2{ 2[1] 3{ 4:2 } }" TEXT,
         "sample 0: label unit: string index out of range of the 2 strings"},
        {TYPE "5{ 2:1 }" TEXT, "function 0: function id is 0, at byte 10 of 15"},
        {TYPE "4{ 3:1 }" TEXT, "location 0: location id is 0, at byte 10 of 15"},
        {TYPE "4{ 1:1 4{ 2:5 } }" TEXT, "location 0: function id is 0, at byte 14 of 19"},
        {TYPE "5{ 1:1 } 4{ 1:1 4{ 1:2 } }" TEXT,
         "location 0: line has a function id that no function has, at byte 18 of 23"},
        {TYPE "5{ 1:7 } 4{ 1:1 4{ 1:1 } }" TEXT,
         "location 0: line has a function id that no function has, at byte 18 of 23"},
        {TYPE "4{ 1:1 } 2{ 1[1 0] 2[1] }" TEXT, "sample 0: location id is 0, at byte 16 of 24"},
        {TYPE "4{ 1:1 } 2{ 1:0 2[1] }" TEXT, "sample 0: location id is 0, at byte 14 of 22"},
        {TYPE "4{ 1:3 } 2{ 1[3 0] 2[1] }" TEXT, "sample 0: location id is 0, at byte 16 of 24"},
        {TYPE "4{ 1:2 } 4{ 1:2 }" TEXT, "location 1 has the id of location 0 (2)"},
        {TYPE "5{ 1:1 } 5{ 1:1 }" TEXT, "function 1 has the id of function 0 (1)"},
        {TYPE "3{ 1:1 } 3{ 1:2 } 3{ 1:1 }" TEXT, "mapping 2 has the id of mapping 0 (1)"},
        {TYPE "2{ 2[1] } 2{ }" TEXT,
         "sample 1: sample value length mismatch: 0 values for 1 sample types"},
        {TYPE TYPE "2{ 2[1 2 3] }" TEXT,
         "sample 0: sample value length mismatch: 3 values for 2 sample types"},
        {TYPE TYPE "2{ 2:1 }" TEXT,
         "sample 0: sample value length mismatch: 1 values for 2 sample types"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_refused(cases[i].wire, &NO_LIMITS, HEARTH_INVALID_ARGUMENT, cases[i].message);
    }
}

static void names_the_format_of_input_that_is_not_a_profile(void **state)
{
    (void)state;
#define NOT(input, is)                                              \
    {                                                               \
        {(input), sizeof(input) - 1}, "not a pprof profile but " is \
    }
    static const struct {
        struct hearth_str in;
        const char *message;
    } cases[] = {
        NOT("\x1f\x8b\x08\0", "still compressed (gzip)"),
        NOT("\x28\xb5\x2f\xfd\0", "still compressed (zstd)"),
        NOT("FLR\0\0\2", "a JFR recording"),
        NOT("PERFILE2\x68", "a perf.data file"),
        NOT("{\"profiles\":[]}", "JSON"),
        NOT("<html>", "HTML or XML"),
        NOT("heap profile:  144:  8498176 [", "a legacy text heap profile of gperftools"),
        NOT("--- contentionz 1 ---\n", "a legacy text contention profile"),
        NOT("--- mutex:\ncycles/second=", "a legacy text mutex profile"),
        NOT("goroutine profile: total 5",
            "a goroutine profile in text form (request it with debug=0)"),
        NOT("goroutine 18 [select, 2 minutes]:\r\nmain.main()\n",
            "a dump of goroutines (debug=2), which is no profile (request it with debug=0)"),
        NOT("heap_v2/524288\n  t*: 1: 2 [0: 0]\n",
            "a heap profile of jemalloc (jeprof --collapsed prints its stacks)"),
        NOT("\0\0\0\0\3\0\0\0\0\0\0\0\x10\x27\0\0", "a legacy binary CPU profile of gperftools"),
        NOT("\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", "a legacy binary CPU profile of gperftools"),
        NOT("main;work;spin 17\n", "text: known field with the wrong wire type, at byte 1 of 18"),
    };
#undef NOT
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct decoded d;
        decode_bytes(&d, cases[i].in, &NO_LIMITS, 0);
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        assert_string_equal(d.err.msg, cases[i].message);
        release(&d);
    }
}

/* ---- limits ---- */

static void refuses_at_a_limit_with_actual_and_limit(void **state)
{
    (void)state;
    const char *wire =
        TYPE TYPE "2{ 2[1 2] } 2{ 2[1 2] 3{ 1:1 2:1 } 3{ 1:1 2:1 } } 2{ 2[1 2] }" TEXT;
    struct hearth_pprof_limits at = {.max_samples = 3, .max_sample_labels = 2, .max_types = 2};
    struct decoded d;
    decode(&d, wire, &at);
    assert_ok(&d);
    release(&d);
    assert_refused(
        wire, &(struct hearth_pprof_limits){.max_samples = 2}, HEARTH_RESOURCE_EXHAUSTED,
        "the profile exceeds the samples count limit (max-samples, actual: 3, limit: 2); raise it "
        "with --max-samples, or for one tenant with hearth admin limits");
    assert_refused(
        wire, &(struct hearth_pprof_limits){.max_sample_labels = 1}, HEARTH_RESOURCE_EXHAUSTED,
        "sample 1 of the profile exceeds the sample labels limit "
        "(max-sample-labels, actual: 2, limit: 1); raise it with --max-sample-labels, or "
        "for one tenant with hearth admin limits");
    assert_refused(wire, &(struct hearth_pprof_limits){.max_types = 1}, HEARTH_RESOURCE_EXHAUSTED,
                   "the profile has 2 sample types; the limit is 1; raise it with "
                   "--max-sample-types, or for one tenant with hearth admin limits");
}

static void cuts_deep_stacks_at_the_leaf_end(void **state)
{
    (void)state;
    const char *wire = TYPE "4{ 1:1 } 4{ 1:2 } 4{ 1:3 } 4{ 1:4 }"
                            "2{ 1[1 2 3 4] 2[1] } 2{ 1[3 4] 2[2] } 2{ 1:4 1[3] 1:2 2[3] }" TEXT;
    struct decoded d;
    decode(&d, wire, &(struct hearth_pprof_limits){.max_depth = 2});
    assert_ok(&d);
    assert_int_equal(d.notes.stacks_cut, 2);
    assert_int_equal(d.notes.frames_cut, 3);
    const uint32_t want_first[] = {0, 2, 4, 6}, want_locs[] = {2, 3, 2, 3, 2, 1};
    assert_memory_equal(d.profile.stack_first, want_first, sizeof want_first);
    assert_memory_equal(d.profile.stack_locs, want_locs, sizeof want_locs);
    assert_int_equal(d.profile.n_stack_locs, 6);
    release(&d);
}

static void cuts_long_strings_at_a_character_and_keeps_the_tail(void **state)
{
    (void)state;
    struct decoded d;
    decode(&d,
           TYPE "6'' 6'exactly8' 6'more than 8' 6'\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac'"
                "6'broken\xff' 6'\xff\xff\xff\xff\xff\xff\xff\xffz'",
           &(struct hearth_pprof_limits){.max_string_bytes = 8});
    assert_ok(&d);
    assert_string(&d, 1, "exactly8");
    assert_string(&d, 2, "e than 8");
    assert_string(&d, 3, "\xe2\x82\xac\xe2\x82\xac");
    assert_string(&d, 4, "roken\xef\xbf\xbd");
    assert_string(&d, 5, "\xef\xbf\xbdz");
    assert_int_equal(d.notes.strings_cut, 4);
    assert_int_equal(d.notes.strings_repaired, 2);
    release(&d);
}

/* In the middle of the input and at its end, where nothing after the string may be read. */
static void finds_an_invalid_byte_at_every_place_of_a_string(void **state)
{
    (void)state;
    static const unsigned char odd[] = {0x00, 0x01, 0x7f, 0x80, 0xc3, 0xff};
    for (size_t n = 1; n < 128; n += n < 36 || n % 16 < 2 || n % 16 > 13 ? 1 : 3) {
        for (size_t at = 0; at < n; at++) {
            for (size_t k = 0; k < sizeof odd; k++) {
                struct hearth_buf in;
                struct decoded d;

                hearth_buf_init(&in, 0);
                wire_text("1{} 6''", &in);
                for (int copy = 0; copy < 2; copy++) {
                    hearth_buf_byte(&in, 0x32);
                    hearth_buf_byte(&in, (unsigned char)n);
                    for (size_t i = 0; i < n; i++) {
                        hearth_buf_byte(&in, i == at ? odd[k] : 'a');
                    }
                }

                decode_bytes(&d, hearth_buf_view(&in), &NO_LIMITS, 0);
                assert_ok(&d);
                bool plain = odd[k] == 0x01 || odd[k] == 0x7f;
                assert_int_equal(d.notes.strings_repaired, plain ? 0 : 2);
                assert_int_equal(d.profile.strings[2].n, plain ? n : n + 2);
                release(&d);
                hearth_buf_release(&in);
            }
        }
    }
}

/* Numbers of every length, in messages at every distance from the end of the bytes. */
static void reads_fields_in_their_usual_order_as_in_any_other(void **state)
{
    (void)state;
    static const char *const orders[] = {
        "5{ 1:1 2:1 3:1 4:1 5:%llu } 4{ 1:1 2:1 3:%llu 4{ 1:1 2:%llu } } 2{ 2[%llu] }",
        "5{ 5:%llu 4:1 3:1 2:1 1:1 } 4{ 4{ 2:%llu 1:1 } 3:%llu 2:1 1:1 } 2{ 2:%llu }",
        "5{ 1:1 2:1 3:1 5:%llu 4:1 } 4{ 1:1 3:%llu 2:1 4{ 1:1 3:7 2:%llu } } 2{ 2[%llu] }",
        "5{ 9:5 1:1 2:1 3:1 4:1 5:%llu } 4{ 1:1 2:1 3:%llu 4{ 1:1 2:%llu } 5:0 } 2{ 2[%llu] }",
    };

    for (uint32_t i = 0; i < 64 * 80 * HEARTH_ARRAY_LEN(orders); i++) {
        const char *order = orders[i / 64 % HEARTH_ARRAY_LEN(orders)];
        unsigned long long n = (unsigned long long)1 << i % 64 | 1;
        int n_behind = (int)(i / 64 / HEARTH_ARRAY_LEN(orders));
        struct hearth_buf text, in;
        struct decoded d;

        hearth_buf_init(&text, 0);
        hearth_buf_init(&in, 0);
        wire_text(TYPE "3{ 1:1 } " TEXT, &in);
        hearth_buf_printf(&text, order, n, n, n, n);
        hearth_buf_printf(&text, " 6'%.*s'", n_behind,
                          "long enough to end anywhere; long "
                          "enough to end anywhere; long enough");
        hearth_buf_byte(&text, '\0');
        wire_text(text.p, &in);
        decode_bytes(&d, hearth_buf_view(&in), &NO_LIMITS, 0);
        assert_ok(&d);
        assert_int_equal(d.profile.functions[0].name, 1);
        assert_int_equal(d.profile.functions[0].filename, 1);
        assert_int_equal(d.profile.functions[0].start_line, (int64_t)n);
        assert_int_equal(d.profile.locations[0].mapping, 0);
        assert_int_equal(d.profile.locations[0].address, n);
        assert_int_equal(d.profile.n_lines, 1);
        assert_int_equal(d.profile.lines[0].line, (int64_t)n);
        assert_int_equal(d.profile.values[0], (int64_t)n);
        release(&d);
        hearth_buf_release(&text);
        hearth_buf_release(&in);
    }
}

/* Counts that are larger than the bytes can contain must not be trusted. */
static void hostile_counts_allocate_no_memory(void **state)
{
    (void)state;
    struct hearth_buf in;
    hearth_buf_init(&in, 0);
    for (int i = 0; i < 20000; i++) { /* 20,000 types times 20,000 samples: 3.2 GB of values */
        wire_text("1{} 2{}", &in);
    }

    struct decoded d;
    decode_bytes(&d, hearth_buf_view(&in), &NO_LIMITS, 64 * in.n);
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_string_equal(d.err.msg,
                        "sample 0: sample value length mismatch: 0 values for 20000 sample types");
    release(&d);
    hearth_buf_release(&in);
}

static void grows_for_more_stacks_lines_and_labels_than_extrapolated(void **state)
{
    (void)state;
    struct hearth_buf in;
    hearth_buf_init(&in, 0);
    wire_text(TYPE TEXT "5{ 1:1 }", &in);
    uint32_t n_lines = 0, n_locs = 0, n_labels = 0;
    for (uint32_t i = 0; i < 300; i++) { /* small messages first, larger and larger ones later */
        struct hearth_buf line;

        hearth_buf_init(&line, 0);
        hearth_buf_printf(&line, "4{ 1:%u ", i + 1);
        for (uint32_t k = 0; k < i * i / 500; k++, n_lines++) {
            hearth_buf_printf(&line, "4{ 1:1 2:%u }", n_lines);
        }

        hearth_buf_cstr(&line, "} 2{ 2[1] ");
        for (uint32_t k = 0; k < i * i / 400; k++, n_locs++) {
            hearth_buf_printf(&line, "1:%u ", n_locs % 300 + 1);
        }

        for (uint32_t k = 0; k < i * i / 600; k++, n_labels++) {
            hearth_buf_printf(&line, "3{ 1:1 3:%u }", n_labels);
        }

        hearth_buf_cstr(&line, "}");
        hearth_buf_byte(&line, '\0');
        wire_text(line.p, &in);
        hearth_buf_release(&line);
    }

    struct decoded d;
    decode_bytes(&d, hearth_buf_view(&in), &NO_LIMITS, 0);
    assert_ok(&d);
    assert_int_equal(d.profile.n_lines, n_lines);
    assert_int_equal(d.profile.n_stack_locs, n_locs);
    assert_int_equal(d.profile.n_sample_labels, n_labels);
    for (uint32_t i = 0; i < n_lines; i++) {
        assert_int_equal(d.profile.lines[i].line, i);
    }

    for (uint32_t i = 0; i < n_locs; i++) {
        assert_int_equal(d.profile.stack_locs[i], i % 300);
    }

    for (uint32_t i = 0; i < n_labels; i++) {
        assert_int_equal(d.profile.sample_labels[i].num, i);
    }

    release(&d);
    hearth_buf_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_the_golden_files),
        cmocka_unit_test(survives_every_truncation),
        cmocka_unit_test(survives_every_changed_byte),
        cmocka_unit_test(reports_every_refused_allocation),
        cmocka_unit_test(refuses_damaged_wire_forms),
        cmocka_unit_test(refuses_input_that_breaks_a_rule_of_the_format),
        cmocka_unit_test(names_the_format_of_input_that_is_not_a_profile),
        cmocka_unit_test(refuses_at_a_limit_with_actual_and_limit),
        cmocka_unit_test(cuts_deep_stacks_at_the_leaf_end),
        cmocka_unit_test(cuts_long_strings_at_a_character_and_keeps_the_tail),
        cmocka_unit_test(finds_an_invalid_byte_at_every_place_of_a_string),
        cmocka_unit_test(reads_fields_in_their_usual_order_as_in_any_other),
        cmocka_unit_test(hostile_counts_allocate_no_memory),
        cmocka_unit_test(grows_for_more_stacks_lines_and_labels_than_extrapolated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
