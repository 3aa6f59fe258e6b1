/* test_segment.c -- stored rows are restored byte for byte; damaged segments are refused. */
#include "hearth/model/columns.h"
#include "hearth/model/profile_id.h"
#include "hearth/model/segment.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_err g_err;

static void assert_same_text(struct hearth_str a, struct hearth_str b)
{
    assert_int_equal(a.n, b.n);
    assert_true(a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static void assert_same_rows(const struct hearth_stored_row *a, const struct hearth_stored_row *b,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].series_id, b[i].series_id);
        assert_int_equal(a[i].writer_id, b[i].writer_id);
        assert_int_equal(a[i].ts_ns, b[i].ts_ns);
        assert_int_equal(a[i].duration_ns, b[i].duration_ns);
        assert_int_equal(a[i].period, b[i].period);
        assert_int_equal(a[i].profile_no, b[i].profile_no);
        assert_int_equal(a[i].n_samples, b[i].n_samples);
        assert_int_equal(a[i].n_types, b[i].n_types);
        for (uint32_t k = 0; k < a[i].n_types; k++) {
            assert_int_equal(a[i].totals[k], b[i].totals[k]);
            assert_same_text(a[i].vals[k], b[i].vals[k]);
        }
        assert_same_text(a[i].ids, b[i].ids);
        assert_true((a[i].attrs.p == NULL) == (b[i].attrs.p == NULL));
        assert_same_text(a[i].attrs, b[i].attrs);
    }
}

static struct hearth_buf encode(const struct hearth_stored_row *rows, size_t n)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_buf_cstr(&out, "before");
    assert_int_equal(hearth_segment_encode(rows, n, &out, &g_err), HEARTH_OK);
    return out;
}

static void assert_round_trip(const struct hearth_stored_row *rows, size_t n)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_buf bytes = encode(rows, n);
    struct hearth_stored_row *got = NULL;
    size_t n_got = 0;
    enum hearth_status status =
        hearth_segment_decode(hearth_str_n(bytes.p + 6, bytes.n - 6), &arena, &got, &n_got, &g_err);
    if (status != HEARTH_OK) {
        fail_msg("%zu rows: %s", n, g_err.msg);
    }
    assert_int_equal(n_got, n);
    assert_same_rows(rows, got, n);
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

/* Heads of any rows are not longer than the rows, which bounds them when they are unpacked. */
static void assert_short_heads(const struct hearth_stored_row *rows, size_t n)
{
    struct hearth_arena arena;
    struct hearth_buf heads, bytes = encode(rows, n);
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&heads, 0);
    assert_int_equal(hearth_segment_encode_heads(rows, n, &arena, &heads, &g_err), HEARTH_OK);
    assert_true(heads.n <= bytes.n - 6);
    hearth_buf_release(&heads);
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

static struct hearth_str draw_bytes(uint64_t *rng, uint32_t most, struct hearth_arena *arena)
{
    uint32_t n = synth_below(rng, most + 1);
    char *p = hearth_arena_alloc(arena, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = (char)synth_next(rng);
    }
    return hearth_str_n(p, n);
}

/* A value of any size and sign; mostly one of those returned before. */
static int64_t draw_number(uint64_t *rng, int64_t usual)
{
    return synth_below(rng, 3) > 0 ? usual : (int64_t)synth_next(rng) >> synth_below(rng, 64);
}

static void rows_of_any_content_are_restored(void **state)
{
    (void)state;
    uint64_t rng = 21;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (int round = 0; round < 1000; round++) {
        static struct hearth_stored_row rows[60];
        uint32_t n = synth_below(&rng, round < 50 ? 3 : 60);
        for (uint32_t i = 0; i < n; i++) {
            struct hearth_stored_row *row = &rows[i];
            uint32_t n_types = synth_below(&rng, 5);
            int64_t *totals = synth_array(&arena, n_types, sizeof *totals);
            struct hearth_str *vals = synth_array(&arena, n_types, sizeof *vals);
            for (uint32_t k = 0; k < n_types; k++) {
                totals[k] = draw_number(&rng, 660);
                vals[k] = draw_bytes(&rng, 20, &arena);
                if (synth_below(&rng, 3) == 0) {
                    vals[k] = HEARTH_STR("\x01\x80\xad\xe2\x04");
                }
            }
            *row = (struct hearth_stored_row){
                .series_id = (int32_t)draw_number(&rng, 77),
                .writer_id = (int32_t)draw_number(&rng, 3),
                .ts_ns = draw_number(&rng, 1700000000000000000 + i * INT64_C(15000000000)),
                .duration_ns = draw_number(&rng, 10000000000),
                .period = draw_number(&rng, 10000000),
                .profile_no = draw_number(&rng, 1000 + i),
                .n_samples = (uint32_t)draw_number(&rng, 660),
                .n_types = n_types,
                .totals = totals,
                .ids = draw_bytes(&rng, 30, &arena),
                .vals = vals,
            };
            if (synth_below(&rng, 3) == 0) {
                row->attrs = draw_bytes(&rng, 10, &arena);
            }
        }
        assert_round_trip(rows, n);
        assert_short_heads(rows, n);
        hearth_arena_reset(&arena);
    }
    hearth_arena_release(&arena);
}

static void the_smallest_and_largest_numbers_are_restored(void **state)
{
    (void)state;
    const int64_t totals[] = {INT64_MAX, INT64_MIN};
    const struct hearth_str vals[] = {{"\x00", 1},
                                      {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10}};
    struct hearth_stored_row rows[3];
    for (int i = 0; i < 3; i++) {
        int64_t end = i == 1 ? INT64_MAX : INT64_MIN;
        rows[i] = (struct hearth_stored_row){
            .series_id = i == 1 ? INT32_MAX : INT32_MIN,
            .writer_id = i == 1 ? INT32_MIN : INT32_MAX,
            .ts_ns = end,
            .duration_ns = end,
            .period = end,
            .profile_no = end,
            .n_samples = i == 1 ? UINT32_MAX : 0,
            .n_types = 2,
            .totals = totals,
            .vals = vals,
            .ids = {"", 0},
        };
    }
    assert_round_trip(rows, 3);
}

/* Typical rows: two columns, the second a multiple of the first. */
static size_t usual_rows(struct hearth_stored_row *rows, size_t n, struct hearth_arena *arena)
{
    uint64_t rng = 5;
    size_t n_payload = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t ids[700], n_ids = 0, id = 0;
        int64_t values[1400];
        for (; n_ids < 660; n_ids++) {
            ids[n_ids] = id;
            id += 1 + synth_below(&rng, 1 + n_ids / 8);
            values[2 * n_ids] = synth_below(&rng, 4) > 0 ? 1 : 1 + synth_below(&rng, 40);
            values[2 * n_ids + 1] = values[2 * n_ids] * 10000000;
        }
        struct hearth_columns c;
        assert_int_equal(hearth_columns_encode(ids, values, n_ids, 2, arena, &c, &g_err),
                         HEARTH_OK);
        rows[i] = (struct hearth_stored_row){
            .series_id = 77,
            .writer_id = 3,
            .ts_ns = 1700000000000000000 + (int64_t)i * INT64_C(15000000000),
            .duration_ns = 10000000000,
            .period = 10000000,
            .profile_no = hearth_profile_no_make(
                7, 1700000000000000000 + (int64_t)i * INT64_C(15000000000), 1000 + (int64_t)i),
            .n_samples = c.n,
            .n_types = 2,
            .totals = c.totals,
            .ids = c.ids,
            .vals = c.vals,
        };
        n_payload += c.ids.n + c.vals[0].n + c.vals[1].n;
    }
    return n_payload;
}

static void values_shared_by_all_rows_take_few_bytes(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    static struct hearth_stored_row rows[100];
    size_t n_payload = usual_rows(rows, 100, &arena);
    assert_round_trip(rows, 100);
    struct hearth_buf bytes = encode(rows, 100);
    assert_true(bytes.n > n_payload);
    assert_true(bytes.n <
                n_payload + 100 * 14); /* lengths, totals, time and number of the profile */
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

static void heads_have_all_but_the_samples(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    static struct hearth_stored_row rows[100], expected[100];
    (void)usual_rows(rows, 100, &arena);
    rows[7].attrs = HEARTH_STR("attributes");

    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    assert_int_equal(hearth_segment_encode_heads(rows, 100, &arena, &bytes, &g_err), HEARTH_OK);
    assert_true(bytes.n < 100 * 20);
    struct hearth_stored_row *got = NULL;
    size_t n_got = 0;
    assert_int_equal(hearth_segment_decode(hearth_buf_view(&bytes), &arena, &got, &n_got, &g_err),
                     HEARTH_OK);
    assert_int_equal(n_got, 100);
    for (size_t i = 0; i < 100; i++) {
        struct hearth_str vals[2] = {{0}, rows[i].vals[1]};
        expected[i] = rows[i];
        expected[i].ids = expected[i].attrs = (struct hearth_str){0};
        expected[i].vals = vals;
        assert_same_rows(&expected[i], &got[i], 1);
    }
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

static void numbers_without_a_minute_are_stored_as_by_older_servers(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    static struct hearth_stored_row rows[10];
    (void)usual_rows(rows, 10, &arena);
    struct hearth_buf bytes = encode(rows, 10);
    assert_int_equal(bytes.p[6], 2);
    hearth_buf_release(&bytes);

    /* One number without the minute of its time is enough. */
    rows[3].profile_no = 1003;
    assert_round_trip(rows, 10);
    bytes = encode(rows, 10);
    assert_int_equal(bytes.p[6], 1);

    /* No later format is guessed. */
    struct hearth_stored_row *got = NULL;
    size_t n_got = 0;
    bytes.p[6] = 3;
    assert_int_equal(
        hearth_segment_decode(hearth_str_n(bytes.p + 6, bytes.n - 6), &arena, &got, &n_got, &g_err),
        HEARTH_CORRUPT);
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

static void truncated_and_changed_bytes_do_no_harm(void **state)
{
    (void)state;
    struct hearth_arena arena, got_arena;
    hearth_arena_init(&arena, 0);
    hearth_arena_init(&got_arena, 1u << 20);
    static struct hearth_stored_row rows[4];
    (void)usual_rows(rows, 4, &arena);
    rows[2].attrs = HEARTH_STR("attrs");
    struct hearth_buf bytes = encode(rows, 4);
    struct hearth_stored_row *got = NULL;
    size_t n_got = 0;
    for (size_t n = 0; n < bytes.n - 6; n++) {
        assert_int_equal(
            hearth_segment_decode(hearth_str_n(bytes.p + 6, n), &got_arena, &got, &n_got, &g_err),
            HEARTH_CORRUPT);
        hearth_arena_reset(&got_arena);
    }
    for (size_t i = 6; i < 200; i++) {
        for (int value = 0; value < 256; value++) {
            char kept = bytes.p[i];
            bytes.p[i] = (char)value;
            enum hearth_status status = hearth_segment_decode(
                hearth_str_n(bytes.p + 6, bytes.n - 6), &got_arena, &got, &n_got, &g_err);
            assert_true(status == HEARTH_OK || status == HEARTH_CORRUPT);
            bytes.p[i] = kept;
            hearth_arena_reset(&got_arena);
        }
    }
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
    hearth_arena_release(&got_arena);
}

static void few_bytes_that_claim_many_rows_or_columns_are_refused_without_much_memory(void **state)
{
    (void)state;
    static const struct hearth_str bad[] = {
        {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 rows */
        {"\x01\x80\x80\x04\x03\x00", 6},                      /* 65,536 rows */
        /* One row of 1,000 columns; the same of 2^32 - 1. */
        {"\x01\x01\x03\0\x03\0\x03\0\x03\0\x03\0\x03\0\x03\0\x03\xd0\x0f\0\0\0\0", 23},
        {"\x01\x01\x03\0\x03\0\x03\0\x03\0\x03\0\x03\0\x03\0\x03\xfe\xff\xff\xff\x1f\0\0\0", 26},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_arena arena;
        hearth_arena_init(&arena, 4096);
        struct hearth_stored_row *got = NULL;
        size_t n_got = 0;
        assert_int_equal(hearth_segment_decode(bad[i], &arena, &got, &n_got, &g_err),
                         HEARTH_CORRUPT);
        hearth_arena_release(&arena);
    }
}

static void refused_memory_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    static struct hearth_stored_row rows[4];
    (void)usual_rows(rows, 4, &arena);
    struct hearth_buf out;
    hearth_buf_init(&out, 1000);
    hearth_buf_cstr(&out, "before");
    assert_int_equal(hearth_segment_encode(rows, 4, &out, &g_err), HEARTH_NO_MEMORY);
    assert_int_equal(out.n, 6);
    rows[3].n_types = HEARTH_SEGMENT_MAX_TYPES + 1;
    hearth_buf_reset(&out);
    assert_int_equal(hearth_segment_encode(rows, 4, &out, &g_err), HEARTH_OUT_OF_RANGE);
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_any_content_are_restored),
        cmocka_unit_test(the_smallest_and_largest_numbers_are_restored),
        cmocka_unit_test(values_shared_by_all_rows_take_few_bytes),
        cmocka_unit_test(heads_have_all_but_the_samples),
        cmocka_unit_test(numbers_without_a_minute_are_stored_as_by_older_servers),
        cmocka_unit_test(truncated_and_changed_bytes_do_no_harm),
        cmocka_unit_test(few_bytes_that_claim_many_rows_or_columns_are_refused_without_much_memory),
        cmocka_unit_test(refused_memory_leaves_the_buffer_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
