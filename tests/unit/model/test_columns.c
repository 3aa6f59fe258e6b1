/* test_columns.c -- sample columns: merging restores the encoded values, and damage is reported. */
#include "hearth/model/columns.h"

#include "rounds.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_ACC 100000u

static struct hearth_columns encode(struct hearth_arena *arena, const uint32_t *ids,
                                    const int64_t *values, uint32_t n, uint32_t n_types)
{
    struct hearth_columns columns;
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_columns_encode(ids, values, n, n_types, arena, &columns, &err);
    if (status != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
    return columns;
}

/* The same in the byte form, or in whichever takes fewer bytes. */
static struct hearth_columns encode_in(bool bytes, struct hearth_arena *arena, const uint32_t *ids,
                                       const int64_t *values, uint32_t n, uint32_t n_types)
{
    struct hearth_columns columns;
    struct hearth_err err = HEARTH_ERR_INIT;
    if (!bytes) {
        return encode(arena, ids, values, n, n_types);
    }
    assert_int_equal(hearth_columns_encode_bytes(ids, values, n, n_types, arena, &columns, &err),
                     HEARTH_OK);
    return columns;
}

static size_t count_bytes(const struct hearth_columns *c)
{
    size_t n = c->ids.n;
    for (uint32_t k = 0; k < c->n_types; k++) {
        n += c->vals[k].n;
    }
    return n;
}

static void assert_bytes(struct hearth_str s, const char *bytes, size_t n)
{
    assert_int_equal(s.n, n);
    assert_memory_equal(s.p, bytes, n);
}

static void has_the_documented_layout(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const uint32_t ids[] = {3, 4, 200};
    const int64_t values[] = {1, 10, 7, 300, 3000, 0, 0, 0, 9};
    struct hearth_columns c = encode(&arena, ids, values, 3, 3);
    assert_bytes(c.ids, "\xc9\x01\x07\x02\x88\x03", 6); /* 201, then the deltas and flags */
    assert_bytes(c.vals[0], "\x00\xac\x02\x00", 4);
    assert_bytes(c.vals[1], "\x01\x0a", 2);
    assert_bytes(c.vals[2], "\x00\x07\x00\x09", 4);
    assert_true(hearth_columns_is_multiple(c.vals[1]));
    assert_false(hearth_columns_is_multiple(c.vals[2]));
    assert_int_equal(c.totals[0], 301);
    assert_int_equal(c.totals[1], 3010);
    assert_int_equal(c.totals[2], 16);
    uint32_t bound = 0;
    assert_true(hearth_columns_id_bound(c.ids, &bound));
    assert_int_equal(bound, 201);
    hearth_arena_release(&arena);
}

static void has_the_documented_layout_in_bits(void **state)
{
    (void)state;
    enum {
        N = 40
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    uint32_t ids[N];
    int64_t values[N * 4];
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = i + 1;
        values[4 * i] = i == 9 ? 300 : 1;
        values[4 * i + 1] = values[4 * i] * 10;
        values[4 * i + 2] = i == 11 ? 9 : 0;
        values[4 * i + 3] = 4 + i % 2;
    }
    struct hearth_columns c = encode(&arena, ids, values, N, 4);
    /* The mark, 41, 40; distances of 0, but for the first: k 0, 0 1, then ones. */
    assert_bytes(c.ids, "\x00\x29\x28\x00\xfe\xff\xff\xff\xff\x01", 10);
    /* One value above 1, that of sample 9, 298 more than 2: k 8, 42 and a quotient of 1. */
    assert_bytes(c.vals[0], "\x03\x01\x00\x02\x00\x00\x00\x08\x2a\x02", 10);
    assert_bytes(c.vals[1], "\x01\x0a", 2);
    /* One value above 0, that of sample 11, 8 more than 1: k 3, 0 and a quotient of 1. */
    assert_bytes(c.vals[2], "\x04\x01\x00\x08\x00\x00\x00\x03\x00\x02", 10);
    /* All values: k 2, remainders 0 1 0 1, quotients of 1. */
    assert_int_equal(c.vals[3].n, 1 + 1 + 10 + 10);
    assert_memory_equal(c.vals[3].p, "\x02\x02\x44\x44", 4);
    assert_memory_equal(c.vals[3].p + 12, "\xaa\xaa", 2);
    uint32_t bound = 0;
    assert_true(hearth_columns_id_bound(c.ids, &bound));
    assert_int_equal(bound, 41);
    hearth_arena_release(&arena);
}

static void values_too_large_for_bits_are_bytes_beside_ids_in_bits(void **state)
{
    (void)state;
    enum {
        N = 100
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    uint32_t ids[N];
    int64_t values[N * 2], acc[N] = {0};
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = i;
        values[2 * i] = i == 3 ? INT64_C(1) << 60 : i % 5;
        values[2 * i + 1] = i == 4 ? INT64_C(1) << 60 : 1;
    }
    struct hearth_columns c = encode(&arena, ids, values, N, 2);
    assert_int_equal(c.ids.p[0], 0);
    for (uint32_t k = 0; k < 2; k++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(c.vals[k].p[0], 0);
        memset(acc, 0, sizeof acc);
        assert_int_equal(hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, acc, N, &err),
                         HEARTH_OK);
        for (uint32_t i = 0; i < N; i++) {
            assert_true(acc[i] == values[2 * i + k]);
        }
    }
    hearth_arena_release(&arena);
}

/* A random value of one of several magnitudes. */
static int64_t draw_value(uint64_t *rng, int shape)
{
    switch (shape) {
    case 0:
        return 1;
    case 1:
        return synth_below(rng, 4) > 0 ? 1 : synth_below(rng, 60);
    case 2:
        return (int64_t)(synth_next(rng) >> (24 + synth_below(rng, 40)));
    case 3:
        return 0;
    default:
        return (int64_t)(synth_next(rng) >> (2 + synth_below(rng, 62)));
    }
}

static uint32_t draw_ids(uint64_t *rng, uint32_t *ids, uint32_t most)
{
    uint32_t n = synth_below(rng, most), id = synth_below(rng, 100);
    uint32_t spread = 1u << synth_below(rng, 15);
    uint32_t kept = 0;
    for (; kept < n && id < N_ACC; kept++) {
        ids[kept] = id;
        id += 1 + synth_below(rng, spread);
    }
    return kept;
}

static void merging_equals_summing_directly(void **state)
{
    (void)state;
    enum {
        MOST = 400,
        MOST_TYPES = 8
    };
    uint64_t rng = 42;
    int64_t *acc = calloc(N_ACC, sizeof *acc), *want = calloc(N_ACC, sizeof *want);
    for (int round = 0; round < test_rounds(6000); round++) {
        struct hearth_arena arena;
        hearth_arena_init(&arena, 0);
        uint32_t ids[MOST], n_types = 1 + synth_below(&rng, MOST_TYPES);
        uint32_t n = draw_ids(&rng, ids, MOST);
        int64_t values[MOST * MOST_TYPES];
        for (uint32_t k = 0; k < n_types; k++) {
            int shape = (int)synth_below(&rng, 6);
            for (uint32_t i = 0; i < n; i++) {
                int64_t first = values[i * n_types];
                bool scaled = k > 0 && shape == 5 && first < (INT64_MAX >> 40);
                values[i * n_types + k] = scaled ? first * 10000 : draw_value(&rng, shape) >> 9;
                if (shape < 2) {
                    values[i * n_types + k] = draw_value(&rng, shape);
                }
            }
        }
        struct hearth_columns c = encode_in(round % 2 == 0, &arena, ids, values, n, n_types);
        struct hearth_columns smallest = encode(&arena, ids, values, n, n_types);
        assert_true(count_bytes(&smallest) <= count_bytes(&c));
        uint32_t bound = 0;
        assert_true(hearth_columns_id_bound(c.ids, &bound));
        assert_int_equal(bound, n == 0 ? 0 : ids[n - 1] + 1);
        for (uint32_t k = 0; k < n_types; k++) {
            int64_t start = (int64_t)synth_below(&rng, 1000), total = 0;
            for (uint32_t i = 0; i < bound; i++) {
                acc[i] = want[i] = start;
            }
            for (uint32_t i = 0; i < n; i++) {
                want[ids[i]] += values[i * n_types + k];
                total += values[i * n_types + k];
            }
            struct hearth_err err = HEARTH_ERR_INIT;
            enum hearth_status status =
                hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, acc, bound, &err);
            if (status != HEARTH_OK) {
                fail_msg("round %d column %u: %s", round, k, err.msg);
            }
            assert_memory_equal(acc, want, bound * sizeof *acc);
            assert_int_equal(c.totals[k], total);
            if (bound > 0) {
                assert_int_equal(
                    hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, acc, bound - 1, &err),
                    HEARTH_CORRUPT);
            }
        }
        hearth_arena_release(&arena);
    }
    free(acc);
    free(want);
}

static void keeps_the_largest_value_and_refuses_a_larger_sum(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    const uint32_t ids[] = {0, 5};
    const int64_t values[] = {INT64_MAX - 1, INT64_MAX, 1, 0};
    struct hearth_columns c = encode(&arena, ids, values, 2, 2);
    int64_t acc[6] = {0};
    assert_int_equal(hearth_columns_merge(c.ids, c.vals[0], c.vals[0], true, acc, 6, &err),
                     HEARTH_OK);
    assert_true(acc[0] == INT64_MAX - 1 && acc[5] == 1);
    assert_int_equal(hearth_columns_merge(c.ids, c.vals[0], c.vals[0], true, acc, 6, &err),
                     HEARTH_OUT_OF_RANGE);
    const int64_t too_much[] = {1, INT64_MAX, 1, 1};
    struct hearth_columns unused;
    assert_int_equal(hearth_columns_encode(ids, too_much, 2, 2, &arena, &unused, &err),
                     HEARTH_OUT_OF_RANGE);
    assert_non_null(strstr(err.msg, "column 1"));
    hearth_arena_release(&arena);
}

static void find_overflow_at_any_position(bool bytes)
{
    enum {
        N = 40
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    uint32_t ids[N];
    int64_t values[N * 2], acc[N * 70];
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = i * 69;
        values[2 * i] = i % 3 == 0 ? 1 : 5;
        values[2 * i + 1] = values[2 * i] * 3;
    }
    struct hearth_columns c = encode_in(bytes, &arena, ids, values, N, 2);
    assert_int_equal(c.ids.p[0] == 0, !bytes);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            struct hearth_err err = HEARTH_ERR_INIT;
            memset(acc, 0, sizeof acc);
            acc[ids[i]] = INT64_MAX - values[2 * i + k];
            assert_int_equal(hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, acc,
                                                  HEARTH_ARRAY_LEN(acc), &err),
                             HEARTH_OK);
            assert_int_equal(hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, acc,
                                                  HEARTH_ARRAY_LEN(acc), &err),
                             HEARTH_OUT_OF_RANGE);
        }
    }
    hearth_arena_release(&arena);
}

static void every_overflowing_sum_is_found_at_any_position(void **state)
{
    (void)state;
    find_overflow_at_any_position(true);
    find_overflow_at_any_position(false);
}

static void finds_factors_only_where_they_hold_for_every_sample(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const uint32_t ids[] = {1, 2, 3};
    const int64_t values[] = {
        /* counts, times 7, zeros, breaks at the zero count, breaks at the last, not whole */
        0, 0, 0, 1, 0, 0, 2, 14, 0, 14, 14, 5, 3, 21, 0, 21, 22, 7};
    struct hearth_columns c = encode(&arena, ids, values, 3, 6);
    assert_bytes(c.vals[1], "\x01\x07", 2);
    assert_bytes(c.vals[2], "\x01\x00", 2);
    for (int k = 3; k < 6; k++) {
        assert_false(hearth_columns_is_multiple(c.vals[k]));
    }
    hearth_arena_release(&arena);
}

static void an_empty_profile_has_empty_columns(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    struct hearth_columns c = encode(&arena, NULL, NULL, 0, 2);
    uint32_t bound = 9;
    assert_true(hearth_columns_id_bound(c.ids, &bound));
    assert_int_equal(bound, 0);
    assert_int_equal(c.totals[1], 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, NULL, 0, &err),
                         HEARTH_OK);
    }
    hearth_arena_release(&arena);
}

/* A heap copy of exactly the right size, so that a sanitizer sees a read after the end. */
static struct hearth_str exact_copy(struct hearth_str s)
{
    char *p = malloc(s.n == 0 ? 1 : s.n);
    if (s.n > 0) {
        memcpy(p, s.p, s.n);
    }
    return hearth_str_n(p, s.n);
}

static enum hearth_status merge_copies(struct hearth_str ids, struct hearth_str val,
                                       struct hearth_str val0, bool is_column0, int64_t *acc,
                                       size_t n_acc)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str a = exact_copy(ids), b = exact_copy(val), c = exact_copy(val0);
    enum hearth_status status = hearth_columns_merge(a, b, c, is_column0, acc, n_acc, &err);
    free((void *)(uintptr_t)a.p);
    free((void *)(uintptr_t)b.p);
    free((void *)(uintptr_t)c.p);
    return status;
}

static void cut_columns(bool bytes)
{
    enum {
        N = 60
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    uint64_t rng = 7;
    uint32_t ids[N];
    int64_t values[N * 3], acc[N * 200];
    memset(acc, 0, sizeof acc);
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = i * 150 + synth_below(&rng, 100);
        values[3 * i] = i % 4 == 0 ? 1 : 2 + synth_below(&rng, 1000);
        values[3 * i + 1] = values[3 * i] * 5;
        values[3 * i + 2] = (int64_t)synth_below(&rng, 1u << 20);
    }
    struct hearth_columns c = encode_in(bytes, &arena, ids, values, N, 3);
    assert_int_equal(c.ids.p[0] == 0, !bytes);
    for (uint32_t k = 0; k < 3; k++) {
        for (size_t cut = 0; cut < c.vals[k].n; cut++) {
            struct hearth_str val = {c.vals[k].p, cut};
            assert_int_equal(
                merge_copies(c.ids, val, c.vals[0], k == 0, acc, HEARTH_ARRAY_LEN(acc)),
                HEARTH_CORRUPT);
        }
        for (size_t cut = 0; cut < c.ids.n; cut++) {
            struct hearth_str cut_ids = {c.ids.p, cut};
            assert_int_equal(
                merge_copies(cut_ids, c.vals[k], c.vals[0], k == 0, acc, HEARTH_ARRAY_LEN(acc)),
                HEARTH_CORRUPT);
        }
    }
    for (size_t cut = 0; cut < c.vals[0].n; cut++) {
        struct hearth_str val0 = {c.vals[0].p, cut};
        assert_int_equal(merge_copies(c.ids, c.vals[1], val0, false, acc, HEARTH_ARRAY_LEN(acc)),
                         HEARTH_CORRUPT);
    }
    hearth_arena_release(&arena);
}

static void the_walk_over_ids_names_each_in_both_forms(void **state)
{
    (void)state;
    const uint32_t counts[] = {1, 127, 128, 129, 700};
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    for (size_t c = 0; c < HEARTH_ARRAY_LEN(counts); c++) {
        uint32_t n = counts[c], ids[700], id = 0;
        int64_t values[700];
        for (uint32_t i = 0; i < n; i++) {
            id += 1 + i * i % 29;
            ids[i] = id;
            values[i] = 1 + i % 3;
        }
        for (int bytes = 0; bytes < 2; bytes++) {
            struct hearth_columns columns = encode_in(bytes == 1, &arena, ids, values, n, 1);
            struct hearth_ids_walk walk;
            uint32_t found, n_found = 0;
            hearth_ids_walk_begin(&walk, columns.ids);
            while (hearth_ids_walk_next(&walk, &found)) {
                assert_true(n_found < n);
                assert_int_equal(found, ids[n_found++]);
            }
            assert_int_equal(n_found, n);
        }
    }

    /* Of columns that end too early, as much as there is. */
    struct hearth_ids_walk walk;
    uint32_t found;
    const struct hearth_str damaged[] = {hearth_str_n("", 0), hearth_str_n("\0", 1),
                                         hearth_str_n("\0\x05", 2), hearth_str_n("\0\x05\x02", 3),
                                         hearth_str_n("\x05", 1)};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(damaged); i++) {
        hearth_ids_walk_begin(&walk, damaged[i]);
        assert_false(hearth_ids_walk_next(&walk, &found));
    }
    hearth_arena_release(&arena);
}

static void truncated_columns_are_corrupt(void **state)
{
    (void)state;
    cut_columns(true);
    cut_columns(false);
}

static void impossible_forms_in_bits_are_corrupt(void **state)
{
    (void)state;
    int64_t acc[64] = {0};
    /* Ids 1 and 2, of 3; values 1 and 6. */
    struct hearth_str ids = HEARTH_STR("\x00\x03\x02\x00\x06");
    struct hearth_str val = HEARTH_STR("\x03\x01\x02\x02\x00\x02");
    assert_int_equal(merge_copies(ids, val, val, true, acc, 64), HEARTH_OK);
    assert_true(acc[0] == 0 && acc[1] == 1 && acc[2] == 6 && acc[3] == 0);
    assert_int_equal(merge_copies(ids, HEARTH_STR("\x01\x05"), val, false, acc, 64), HEARTH_OK);
    assert_true(acc[1] == 6 && acc[2] == 36);
    const struct hearth_str bad_ids[] = {
        HEARTH_STR("\x00"),
        HEARTH_STR("\x00\x03"),
        HEARTH_STR("\x00\x00\x02\x00\x06"),                 /* no bound */
        HEARTH_STR("\x00\x80\x80\x80\x80\x10\x02\x00\x06"), /* 2^32 */
        HEARTH_STR("\x00\x41\x02\x00\x06"),                 /* more than there are sums */
        HEARTH_STR("\x00\x03\x00\x00\x06"),                 /* no samples */
        HEARTH_STR("\x00\x03\x04\x00\x06"),                 /* more samples than ids */
        HEARTH_STR("\x00\x03\x03\x00\x06"),                 /* a sample without an id */
        HEARTH_STR("\x00\x02\x02\x00\x06"),                 /* an id beyond the bound */
        HEARTH_STR("\x00\x04\x02\x00\x06"),                 /* none below the bound */
        HEARTH_STR("\x00\x03\x02\x00\x06\x00"),             /* a byte too many */
        HEARTH_STR("\x00\x03\x02\x39\x06"),                 /* k 57 */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad_ids); i++) {
        assert_int_equal(merge_copies(bad_ids[i], val, val, true, acc, 64), HEARTH_CORRUPT);
    }
    const struct hearth_str bad_vals[] = {
        HEARTH_STR(""),
        HEARTH_STR("\x05\x01\x02\x02\x00\x02"),     /* an unknown form */
        HEARTH_STR("\x03"),                         /* no number of flags */
        HEARTH_STR("\x03\x03\x02\x02\x00\x02"),     /* more flags than samples */
        HEARTH_STR("\x03\x01"),                     /* no flags */
        HEARTH_STR("\x03\x01\x03\x02\x00\x02"),     /* two flags, one value */
        HEARTH_STR("\x03\x01\x00\x02\x00\x02"),     /* no flag, one value */
        HEARTH_STR("\x03\x01\x02\x02\x00\x02\x00"), /* a byte too many */
        HEARTH_STR("\x03\x01\x02\x02\x00\x00"),     /* a quotient without an end */
        HEARTH_STR("\x02\x02\x00\x02"),             /* one value for two samples */
        HEARTH_STR("\x00\x05"),
        HEARTH_STR("\x00\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* above int64 */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad_vals); i++) {
        assert_int_equal(merge_copies(ids, bad_vals[i], bad_vals[i], true, acc, 64),
                         HEARTH_CORRUPT);
    }
    /* Ids in bytes have no values in bits; a multiple of a multiple; factors that are too large. */
    assert_int_equal(merge_copies(HEARTH_STR("\x03\x02\x02"), val, val, true, acc, 64),
                     HEARTH_CORRUPT);
    assert_int_equal(
        merge_copies(ids, HEARTH_STR("\x01\x05"), HEARTH_STR("\x01\x05"), false, acc, 64),
        HEARTH_CORRUPT);
    assert_int_equal(merge_copies(ids, HEARTH_STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                                  val, false, acc, 64),
                     HEARTH_CORRUPT);
    assert_int_equal(merge_copies(ids, HEARTH_STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                                  HEARTH_STR("\x04\x01\x02\x02\x00\x02"), false, acc, 64),
                     HEARTH_CORRUPT);
}

static void impossible_forms_are_corrupt(void **state)
{
    (void)state;
    int64_t acc[64] = {0};
    struct hearth_str ids = HEARTH_STR("\x02\x02"), one = HEARTH_STR("\x00\x05");
    const struct hearth_str bad[] = {
        HEARTH_STR(""),                                                 /* no form */
        HEARTH_STR("\x02\x05"),                                         /* an unknown one */
        HEARTH_STR("\x00\x05\x05"),                                     /* one value too many */
        HEARTH_STR("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),     /* beyond int64 */
        HEARTH_STR("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* beyond 64 bits */
        HEARTH_STR("\x01\x05"),                                         /* a multiple of itself */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_int_equal(merge_copies(ids, bad[i], bad[i], true, acc, 64), HEARTH_CORRUPT);
    }
    const struct hearth_str bad_multiple[] = {
        HEARTH_STR("\x01"),
        HEARTH_STR("\x01\x05\x05"),
        HEARTH_STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* 5 times it overflows */
        HEARTH_STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad_multiple); i++) {
        assert_int_equal(merge_copies(ids, bad_multiple[i], one, false, acc, 64), HEARTH_CORRUPT);
    }
    assert_int_equal(
        merge_copies(ids, HEARTH_STR("\x01\x05"), HEARTH_STR("\x01\x05"), false, acc, 64),
        HEARTH_CORRUPT);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(
            acc[i],
            i == 1 ? 5 : 0); /* from the intact start of the column with one value too many */
    }
    uint32_t bound;
    assert_false(hearth_columns_id_bound(HEARTH_STR("\x80"), &bound));
    assert_false(hearth_columns_id_bound(HEARTH_STR("\x00"), &bound));     /* no bound */
    assert_false(hearth_columns_id_bound(HEARTH_STR("\x00\x00"), &bound)); /* samples, but no ids */
    assert_false(hearth_columns_id_bound(HEARTH_STR("\x80\x80\x80\x80\x10"), &bound)); /* 2^32 */
    assert_true(hearth_columns_id_bound(HEARTH_STR("\xff\xff\xff\xff\x0f"), &bound));
    assert_int_equal(bound, UINT32_MAX);
    /* The bound differs from the last sample's id. */
    assert_int_equal(merge_copies(HEARTH_STR("\x03\x02"), one, one, true, acc, 64), HEARTH_CORRUPT);
    assert_int_equal(merge_copies(HEARTH_STR("\x01\x02"), one, one, true, acc, 64), HEARTH_CORRUPT);
}

static void refused_memory_is_reported(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    const uint32_t ids[] = {1, 2};
    const int64_t values[] = {1, 2, 3, 4};
    for (size_t limit = 16; limit < 96; limit += 16) {
        struct hearth_columns columns;
        hearth_arena_init(&arena, limit);
        assert_int_equal(hearth_columns_encode_bytes(ids, values, 2, 2, &arena, &columns, &err),
                         HEARTH_NO_MEMORY);
        hearth_arena_release(&arena);
    }
    uint32_t many[60];
    int64_t large[60 * 2];
    for (uint32_t i = 0; i < 60; i++) {
        many[i] = i;
        large[2 * i] = 5 + i % 3;
        large[2 * i + 1] = i % 7;
    }
    enum hearth_status status = HEARTH_NO_MEMORY;
    size_t n_refused = 0;
    for (size_t limit = 16; status == HEARTH_NO_MEMORY; limit += 16, n_refused++) {
        struct hearth_columns columns;
        hearth_arena_init(&arena, limit);
        status = hearth_columns_encode(many, large, 60, 2, &arena, &columns, &err);
        hearth_arena_release(&arena);
    }
    assert_int_equal(status, HEARTH_OK);
    assert_true(n_refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_documented_layout),
        cmocka_unit_test(has_the_documented_layout_in_bits),
        cmocka_unit_test(values_too_large_for_bits_are_bytes_beside_ids_in_bits),
        cmocka_unit_test(merging_equals_summing_directly),
        cmocka_unit_test(keeps_the_largest_value_and_refuses_a_larger_sum),
        cmocka_unit_test(every_overflowing_sum_is_found_at_any_position),
        cmocka_unit_test(finds_factors_only_where_they_hold_for_every_sample),
        cmocka_unit_test(an_empty_profile_has_empty_columns),
        cmocka_unit_test(the_walk_over_ids_names_each_in_both_forms),
        cmocka_unit_test(truncated_columns_are_corrupt),
        cmocka_unit_test(impossible_forms_in_bits_are_corrupt),
        cmocka_unit_test(impossible_forms_are_corrupt),
        cmocka_unit_test(refused_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
