/* test_sample_attrs.c -- span, trace and thread labels: spellings, values, and the stored column.
 */
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/model/sample_attrs.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void knows_every_spelling_of_a_key(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        enum hearth_attr attr;
    } cases[] = {
        {"span id", HEARTH_ATTR_SPAN_ID},
        {"span_id", HEARTH_ATTR_SPAN_ID},
        {"spanId", HEARTH_ATTR_SPAN_ID},
        {"spanID", HEARTH_ATTR_SPAN_ID},
        {"profile_id", HEARTH_ATTR_SPAN_ID},
        {"local root span id", HEARTH_ATTR_LOCAL_ROOT_SPAN_ID},
        {"local_root_span_id", HEARTH_ATTR_LOCAL_ROOT_SPAN_ID},
        {"trace_id", HEARTH_ATTR_TRACE_ID},
        {"traceID", HEARTH_ATTR_TRACE_ID},
        {"span_name", HEARTH_ATTR_SPAN_NAME},
        {"trace endpoint", HEARTH_ATTR_ENDPOINT},
        {"thread id", HEARTH_ATTR_THREAD_ID},
        {"thread.id", HEARTH_ATTR_THREAD_ID},
        {"thread native id", HEARTH_ATTR_THREAD_NATIVE_ID},
        {"os thread id", HEARTH_ATTR_THREAD_NATIVE_ID},
        {"thread name", HEARTH_ATTR_THREAD_NAME},
        {"THREAD-NAME", HEARTH_ATTR_THREAD_NAME},
        {"end_timestamp_ns", HEARTH_ATTR_TIMESTAMP},
        {"", HEARTH_ATTR_NONE},
        {"span", HEARTH_ATTR_NONE},
        {"span ids", HEARTH_ATTR_NONE},
        {"my span id", HEARTH_ATTR_NONE},
        {"endpoint", HEARTH_ATTR_NONE},
        {"local root span id and more", HEARTH_ATTR_NONE},
        {"trace type", HEARTH_ATTR_NONE},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        if (hearth_attr_of_key(hearth_str_c(cases[i].key)) != cases[i].attr) {
            fail_msg("\"%s\"", cases[i].key);
        }
    }
}

static struct hearth_sample_attrs set(const char *key, const char *text, int64_t num)
{
    struct hearth_sample_attrs attrs = {0};
    struct hearth_str k = hearth_str_c(key);
    hearth_sample_attrs_set(&attrs, hearth_attr_of_key(k), k, hearth_str_c(text), num);
    return attrs;
}

static void reads_ids_in_the_forms_that_clients_send(void **state)
{
    (void)state;
    assert_true(set("span_id", "00000000000000ff", 0).span_id == 0xff);
    assert_true(set("profile_id", "1234567890123456", 0).span_id == 0x1234567890123456);
    assert_true(set("span id", "1234567890123456", 0).span_id == 1234567890123456u);
    assert_true(set("span id", "18446744073709551615", 0).span_id == UINT64_MAX);
    assert_true(set("span_id", "77", 0).span_id == 77);
    assert_true(set("span id", "", -1).span_id == UINT64_MAX);
    uint64_t hash = hearth_hash64("not-a-number", 12, 0);
    assert_true(set("span id", "not-a-number", 0).span_id == hash);
    assert_true(set("thread id", "not-a-number", 0).thread_id == hash);
    assert_true(set("local root span id", "12", 0).local_root_span_id == 12);
    assert_true(set("thread id", "", 7).thread_id == 7);
    assert_true(set("thread id", "8", 0).thread_id == 8);
    assert_true(set("os thread id", "9", 0).thread_native_id == 9);
    assert_true(set("end_timestamp_ns", "", 1700000000000000000).timestamp_ns ==
                1700000000000000000);
    assert_true(set("end_timestamp_ns", "1700000000000000001", 0).timestamp_ns ==
                1700000000000000001);
    assert_true(set("end_timestamp_ns", "noon", 0).timestamp_ns == 0);
    assert_true(hearth_str_eq_c(set("thread name", "main", 0).thread_name, "main"));
    assert_true(hearth_str_eq_c(set("trace endpoint", "GET /", 0).endpoint, "GET /"));
    assert_true(hearth_str_eq_c(set("span name", "query", 0).span_name, "query"));
}

static void reads_trace_ids_of_up_to_32_digits(void **state)
{
    (void)state;
    struct hearth_sample_attrs a = set("trace_id", "0123456789abcdef0011223344556677", 0);
    assert_true(a.trace_id_hi == 0x0123456789abcdef && a.trace_id_lo == 0x0011223344556677);
    a = set("trace_id", "10011223344556677", 0);
    assert_true(a.trace_id_hi == 1 && a.trace_id_lo == 0x0011223344556677);
    a = set("trace id", "ff", 0);
    assert_true(a.trace_id_hi == 0 && a.trace_id_lo == 0xff);
    const char *longer = "0123456789abcdef00112233445566778";
    a = set("trace_id", longer, 0);
    assert_true(a.trace_id_hi == 0 && a.trace_id_lo == hearth_hash64(longer, 33, 0));
    const char *not_hex = "0123456789abcdeg0011223344556677";
    a = set("trace_id", not_hex, 0);
    assert_true(a.trace_id_hi == 0 && a.trace_id_lo == hearth_hash64(not_hex, 32, 0));
    a = set("trace_id", "", -2);
    assert_true(a.trace_id_hi == 0 && a.trace_id_lo == UINT64_MAX - 1);
}

static void an_ordinary_label_sets_no_attribute(void **state)
{
    (void)state;
    struct hearth_sample_attrs a = set("region", "eu", 0);
    assert_true(hearth_sample_attrs_empty(&a));
    const char *keys[] = {"span id",   "local root span id", "trace id",
                          "thread id", "os thread id",       "end_timestamp_ns"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(keys); i++) {
        struct hearth_sample_attrs b = set(keys[i], "", 5);
        assert_false(hearth_sample_attrs_empty(&b));
        assert_false(hearth_sample_attrs_eq(&a, &b));
        assert_true(hearth_sample_attrs_eq(&b, &b));
    }
    struct hearth_sample_attrs x = set("thread name", "x", 0), y = set("thread name", "y", 0);
    assert_false(hearth_sample_attrs_eq(&x, &y));
}

static const struct hearth_str names[] = {{"", 0},
                                          {"main", 4},
                                          {"GET /cart", 9},
                                          {"\xc3\xa4 long name with \"quotes\"", 26},
                                          {"worker", 6}};

static struct hearth_str draw_name(uint64_t *rng, bool always)
{
    return names[always ? 1 + synth_below(rng, 4) : synth_below(rng, 5)];
}

/* Samples of one profile; which attributes occur, and whether in every sample, differs from call to
 * call. */
static struct hearth_attr_sample *draw_samples(uint64_t *rng, size_t n, uint32_t n_types,
                                               struct hearth_arena *arena)
{
    struct hearth_attr_sample *samples = synth_array(arena, n, sizeof *samples);
    uint32_t some = synth_below(rng, 512), all = synth_below(rng, 512) & some;
#define HAVE(bit) ((some >> (bit)&1) != 0 && ((all >> (bit)&1) != 0 || synth_below(rng, 3) == 0))
    for (size_t i = 0; i < n; i++) {
        int64_t *values = synth_array(arena, n_types, sizeof *values);
        for (uint32_t k = 0; k < n_types; k++) {
            values[k] = synth_below(rng, 9) == 0 ? (int64_t)synth_next(rng) : synth_below(rng, 3);
        }
        samples[i].stack_id =
            synth_below(rng, 8) == 0 ? (uint32_t)synth_next(rng) : synth_below(rng, 900);
        samples[i].values = values;
        struct hearth_sample_attrs *a = &samples[i].attrs;
        a->span_id = HAVE(0) ? 1 + synth_below(rng, 5) * 0x1111111111111111u : 0;
        a->local_root_span_id = HAVE(1) ? synth_next(rng) : 0;
        a->trace_id_hi = HAVE(2) ? synth_below(rng, 3) : 0;
        a->trace_id_lo = HAVE(3) ? synth_next(rng) : 0;
        a->span_name = HAVE(4) ? draw_name(rng, true) : names[0];
        a->endpoint = HAVE(5) ? draw_name(rng, false) : names[0];
        a->thread_id = HAVE(6) ? 1 + synth_below(rng, 9) : 0;
        a->thread_native_id = HAVE(7) ? UINT64_MAX - synth_below(rng, 2) : 0;
        a->thread_name = HAVE(6) ? draw_name(rng, true) : names[0];
        a->timestamp_ns = HAVE(8) ? (int64_t)synth_next(rng) >> synth_below(rng, 40) : 0;
    }
#undef HAVE
    return samples;
}

static struct hearth_str encode(const struct hearth_attr_sample *samples, size_t n,
                                uint32_t n_types, struct hearth_arena *arena)
{
    struct hearth_str bytes = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_sample_attrs_encode(samples, n, n_types, arena, &bytes, &err),
                     HEARTH_OK);
    return bytes;
}

/* Reading by column gives the same, whatever is requested; samples: the decoded bytes. */
static void columns_agree(struct hearth_str bytes, const struct hearth_attr_sample *samples,
                          size_t n, uint32_t n_types, uint32_t attrs, bool stacks)
{
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 1 << 20);
    for (uint32_t k = 0; k < n_types; k++) {
        const struct hearth_attr_wish wish = {.attrs = attrs, .column = k, .stacks = stacks};
        struct hearth_attr_columns columns;
        if (hearth_sample_attrs_columns(bytes, &wish, &arena, &columns, &err) != HEARTH_OK) {
            fail_msg("%s", err.msg);
        }
        assert_int_equal(columns.n, n);
        assert_int_equal(columns.stack_ids != NULL, stacks);
        for (size_t i = 0; i < n; i++) {
            const struct hearth_sample_attrs *a = &samples[i].attrs;
            const struct hearth_attr_value expected[HEARTH_ATTR_TIMESTAMP] = {
                [HEARTH_ATTR_SPAN_ID] = {.lo = a->span_id},
                [HEARTH_ATTR_LOCAL_ROOT_SPAN_ID] = {.lo = a->local_root_span_id},
                [HEARTH_ATTR_TRACE_ID] = {.hi = a->trace_id_hi, .lo = a->trace_id_lo},
                [HEARTH_ATTR_SPAN_NAME] = {.text = a->span_name},
                [HEARTH_ATTR_ENDPOINT] = {.text = a->endpoint},
                [HEARTH_ATTR_THREAD_ID] = {.lo = a->thread_id},
                [HEARTH_ATTR_THREAD_NATIVE_ID] = {.lo = a->thread_native_id},
                [HEARTH_ATTR_THREAD_NAME] = {.text = a->thread_name},
            };
            assert_int_equal(columns.values[i], samples[i].values[k]);
            assert_true(!stacks || columns.stack_ids[i] == samples[i].stack_id);
            for (uint32_t attr = 1; attr < HEARTH_ATTR_TIMESTAMP; attr++) {
                const struct hearth_attr_column *of = &columns.of[attr];
                struct hearth_attr_value got = {0};
                if (of->values != NULL && of->index[i] != 0) {
                    got = of->values[of->index[i] - 1];
                }
                bool wanted = (attrs >> attr & 1) != 0;
                assert_int_equal(got.hi, wanted ? expected[attr].hi : 0);
                assert_int_equal(got.lo, wanted ? expected[attr].lo : 0);
                assert_true(hearth_str_eq(got.text, wanted ? expected[attr].text : names[0]));
            }
        }
    }
    hearth_arena_release(&arena);
}

static void decoding_restores_the_encoded_samples(void **state)
{
    (void)state;
    uint64_t rng = 5;
    for (int round = 0; round < 1500; round++) {
        struct hearth_arena arena;
        struct hearth_err err = HEARTH_ERR_INIT;
        hearth_arena_init(&arena, 0);
        size_t n = 1 + synth_below(&rng, 70), n_got = 0;
        uint32_t n_types = synth_below(&rng, 4), n_types_got = 9;
        struct hearth_attr_sample *samples = draw_samples(&rng, n, n_types, &arena), *got = NULL;
        struct hearth_str bytes = encode(samples, n, n_types, &arena);
        enum hearth_status status =
            hearth_sample_attrs_decode(bytes, &arena, &got, &n_got, &n_types_got, &err);
        if (status != HEARTH_OK) {
            fail_msg("%s", err.msg);
        }
        assert_int_equal(n_got, n);
        assert_int_equal(n_types_got, n_types);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(got[i].stack_id, samples[i].stack_id);
            assert_memory_equal(got[i].values, samples[i].values, n_types * sizeof(int64_t));
            assert_true(hearth_sample_attrs_eq(&got[i].attrs, &samples[i].attrs));
        }
        columns_agree(bytes, got, n, n_types, (uint32_t)synth_next(&rng),
                      synth_below(&rng, 2) == 0);
        hearth_arena_release(&arena);
    }
}

static void no_samples_take_no_bytes(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    assert_int_equal(encode(NULL, 0, 3, &arena).n, 0);
    struct hearth_attr_sample *got = (void *)&arena;
    size_t n = 1;
    uint32_t n_types = 1;
    assert_int_equal(hearth_sample_attrs_decode(HEARTH_STR(""), &arena, &got, &n, &n_types, &err),
                     HEARTH_OK);
    assert_null(got);
    assert_int_equal(n + n_types, 0);
    hearth_arena_release(&arena);
}

static void a_span_takes_few_bytes_and_its_id_is_big_endian(void **state)
{
    (void)state;
    enum {
        N = 200
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_attr_sample samples[N];
    const int64_t one = 1;
    for (uint32_t i = 0; i < N; i++) {
        samples[i] = (struct hearth_attr_sample){.stack_id = i * 20, .values = &one};
        samples[i].attrs.span_id = 0x0102030405060700u + i / 50;
        samples[i].attrs.thread_name = names[1 + i % 2];
    }
    struct hearth_str bytes = encode(samples, N, 1, &arena);
    assert_true(bytes.n < N * 4 + 80);
    assert_non_null(memmem(bytes.p, bytes.n, "\1\2\3\4\5\6\7\3", 8));
    hearth_arena_release(&arena);
}

static enum hearth_status decode_copy(struct hearth_str bytes)
{
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_attr_sample *got;
    size_t n;
    uint32_t n_types;
    hearth_arena_init(&arena, 1 << 20);
    char *copy = malloc(bytes.n == 0 ? 1 : bytes.n);
    if (bytes.n > 0) {
        memcpy(copy, bytes.p, bytes.n);
    }
    enum hearth_status status =
        hearth_sample_attrs_decode(hearth_str_n(copy, bytes.n), &arena, &got, &n, &n_types, &err);
    if (status == HEARTH_OK) {
        uint64_t sum = 0; /* read everything */
        for (size_t i = 0; i < n; i++) {
            sum += got[i].stack_id + (n_types > 0 ? (uint64_t)got[i].values[n_types - 1] : 0);
            sum +=
                got[i].attrs.thread_name.n > 0 ? (unsigned char)got[i].attrs.thread_name.p[0] : 0;
        }
        assert_true(sum != 12345);
    }
    const struct hearth_attr_wish wish = {.attrs = UINT32_MAX, .column = 0, .stacks = true};
    struct hearth_attr_columns columns;
    enum hearth_status by_column =
        hearth_sample_attrs_columns(hearth_str_n(copy, bytes.n), &wish, &arena, &columns, &err);
    assert_true(by_column == HEARTH_OK || by_column == HEARTH_CORRUPT);
    bool is_last = false;
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        is_last = is_last || got[i].stack_id == UINT32_MAX; /* the one id that no stack has */
    }
    if (status == HEARTH_OK && n_types > 0 && !is_last) {
        columns_agree(hearth_str_n(copy, bytes.n), got, n, n_types, UINT32_MAX, true);
        columns_agree(hearth_str_n(copy, bytes.n), got, n, n_types, 0, false);
    }
    free(copy);
    hearth_arena_release(&arena);
    return status;
}

static void damaged_bytes_are_corrupt(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    uint64_t rng = 77;
    for (int round = 0; round < 30; round++) {
        struct hearth_attr_sample *samples = draw_samples(&rng, 20, 2, &arena);
        struct hearth_str bytes = encode(samples, 20, 2, &arena);
        for (size_t n = 1; n < bytes.n; n++) {
            assert_int_equal(decode_copy(hearth_str_n(bytes.p, n)), HEARTH_CORRUPT);
        }
        char *longer = hearth_arena_strndup(&arena, bytes.p, bytes.n);
        assert_int_equal(decode_copy(hearth_str_n(longer, bytes.n + 1)), HEARTH_CORRUPT);
        for (size_t i = 0; i < bytes.n; i++) {
            char was = longer[i];
            longer[i] = (char)(unsigned char)synth_next(&rng);
            enum hearth_status status = decode_copy(hearth_str_n(longer, bytes.n));
            assert_true(status == HEARTH_OK || status == HEARTH_CORRUPT);
            longer[i] = was;
        }
    }
    const struct hearth_str bad[] = {
        HEARTH_STR("\x02\x01\x00\x00\x00"),                                 /* version */
        HEARTH_STR("\x01\x00\x00\x00"),                                     /* no samples */
        HEARTH_STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x00"), /* 2^64 - 1 of them */
        HEARTH_STR("\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"), /* of types */
        HEARTH_STR("\x01\x01\x00\x01\x00"),                                     /* stack -1 */
        HEARTH_STR("\x01\x01\x00\x00\x80\x04"), /* a tenth attribute */
        HEARTH_STR("\x01\x01\x00\x00\x01\x02"), /* unknown presence */
        HEARTH_STR(
            "\x01\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"), /* an absent id */
        HEARTH_STR(
            "\x01\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01"), /* index 1 of 1 */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        if (decode_copy(bad[i]) != HEARTH_CORRUPT) {
            fail_msg("bad bytes %zu are accepted", i);
        }
    }
    assert_int_equal(
        decode_copy(HEARTH_STR("\x01\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00")),
        HEARTH_OK);
    hearth_arena_release(&arena);
}

static void refused_memory_is_reported_without_a_leak(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    uint64_t rng = 3;
    struct hearth_attr_sample *samples = draw_samples(&rng, 400, 2, &arena);
    for (int i = 0; i < 400; i++) {
        samples[i].attrs.span_id = synth_next(&rng) | 1;
        samples[i].attrs.thread_name = names[1];
    }
    enum hearth_status status = HEARTH_NO_MEMORY;
    uint64_t n = 1;
    for (; status != HEARTH_OK; n++) {
        struct hearth_arena scratch;
        struct hearth_err err = HEARTH_ERR_INIT;
        struct hearth_str bytes;
        hearth_arena_init(&scratch, 0);
        hearth_mem_fail_after(n);
        status = hearth_sample_attrs_encode(samples, 400, 2, &scratch, &bytes, &err);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        hearth_arena_release(&scratch);
    }
    assert_true(n > 10);
    struct hearth_str bytes = encode(samples, 400, 2, &arena);
    struct hearth_arena small;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_attr_sample *got;
    size_t n_got;
    uint32_t n_types;
    hearth_arena_init(&small, 4096);
    assert_int_equal(hearth_sample_attrs_decode(bytes, &small, &got, &n_got, &n_types, &err),
                     HEARTH_NO_MEMORY);
    hearth_arena_release(&small);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_every_spelling_of_a_key),
        cmocka_unit_test(reads_ids_in_the_forms_that_clients_send),
        cmocka_unit_test(reads_trace_ids_of_up_to_32_digits),
        cmocka_unit_test(an_ordinary_label_sets_no_attribute),
        cmocka_unit_test(decoding_restores_the_encoded_samples),
        cmocka_unit_test(no_samples_take_no_bytes),
        cmocka_unit_test(a_span_takes_few_bytes_and_its_id_is_big_endian),
        cmocka_unit_test(damaged_bytes_are_corrupt),
        cmocka_unit_test(refused_memory_is_reported_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
