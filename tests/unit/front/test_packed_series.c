/* test_packed_series.c -- label sets and series without messages, beside the same by protobuf-c. */
#include "hearth/codec/pb.h"
#include "hearth/engine/query.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "query/packed_series.h"
#include "query/query_maps.h"
#include "rpc/message_map.h"
#include "rpc/rpc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_rpc g_rpc;

static int set_up(void **state)
{
    (void)state;
    g_rpc = (struct hearth_rpc){0};
    hearth_arena_init(&g_rpc.arena, 4u << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hearth_arena_release(&g_rpc.arena);
    return 0;
}

static char g_long[400];

static struct hearth_label g_labels[] = {
    {HEARTH_STR("__name__"), HEARTH_STR("process_cpu")},
    {HEARTH_STR("empty"), HEARTH_STR("")},
    {HEARTH_STR("long"), {g_long, sizeof g_long}},
    {HEARTH_STR("pod"), HEARTH_STR("p\xc3\xa4")},
};

static void assert_same_bytes(struct hearth_buf *packed, const void *message)
{
    struct hearth_buf expected;
    hearth_buf_init(&expected, 0);
    hearth_pb_pack(message, &expected);
    assert_false(hearth_buf_failed(packed));
    assert_int_equal(packed->n, expected.n);
    if (expected.n > 0) {
        assert_memory_equal(packed->p, expected.p, expected.n);
    }
    hearth_buf_release(&expected);
    hearth_buf_release(packed);
}

static void label_sets_are_the_bytes_of_protobuf_c(void **state)
{
    (void)state;
    memset(g_long, 'x', sizeof g_long);
    struct hearth_labels sets[] = {{g_labels, 4}, {NULL, 0}, {g_labels + 1, 1}, {g_labels + 2, 2}};

    for (size_t n = 0; n <= HEARTH_ARRAY_LEN(sets); n++) {
        Querier__V1__SeriesResponse out = QUERIER__V1__SERIES_RESPONSE__INIT;
        struct hearth_rpc *rpc = &g_rpc;
        struct hearth_buf packed;
        HEARTH_RPC_LIST(rpc, &hearth_labels_map, sets, n, &out, labels_set);
        hearth_buf_init(&packed, 0);
        hearth_pack_label_sets(&packed, sets, n);
        assert_same_bytes(&packed, &out.base);
    }
}

static void label_sets_fit_into_exactly_their_own_size(void **state)
{
    (void)state;
    enum {
        LARGE = 256,
        ALL = 3000
    };
    static struct hearth_labels sets[ALL];
    size_t n_bytes[2];

    memset(g_long, 'z', sizeof g_long);
    for (size_t i = 0; i < ALL; i++) {
        sets[i] = i < LARGE ? (struct hearth_labels){g_labels, 4}
                            : (struct hearth_labels){g_labels + 3, 1};
    }

    /* Once without a limit, then with one that fits exactly. */
    for (int i = 0; i < 2; i++) {
        struct hearth_buf packed;
        hearth_buf_init(&packed, i == 0 ? 0 : n_bytes[0]);
        hearth_pack_label_sets(&packed, sets, ALL);
        assert_false(hearth_buf_failed(&packed));
        n_bytes[i] = packed.n;
        hearth_buf_release(&packed);
    }
    assert_int_equal(n_bytes[0], n_bytes[1]);
}

static void series_are_the_bytes_of_protobuf_c(void **state)
{
    (void)state;
    memset(g_long, 'y', sizeof g_long);
    struct hearth_point points[] = {
        {0, 0}, {-1, 1.5}, {1, -0.0}, {1764374400000, 1e300}, {INT64_MAX, -2}, {128, (double)NAN}};
    struct hearth_timeseries series[] = {
        {.labels = {g_labels, 4}, .points = points, .n_points = 6},
        {.labels = {NULL, 0}, .points = points, .n_points = 1},
        {.labels = {g_labels + 2, 1}},
    };

    for (size_t n = 0; n <= HEARTH_ARRAY_LEN(series); n++) {
        Querier__V1__SelectSeriesResponse out = QUERIER__V1__SELECT_SERIES_RESPONSE__INIT;
        struct hearth_rpc *rpc = &g_rpc;
        struct hearth_buf packed;
        HEARTH_RPC_LIST(rpc, &hearth_timeseries_map, series, n, &out, series);
        hearth_buf_init(&packed, 0);
        hearth_pack_timeseries(&packed, series, n);
        assert_same_bytes(&packed, &out.base);
    }
}

/* Points whose varint of the time has each length, with each group of seven bits in turn. */
static void points_of_all_times_are_the_bytes_of_protobuf_c(void **state)
{
    (void)state;
    struct hearth_point points[64 * 5];
    size_t n = 0;

    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t power = 1ull << bit, mixed = 0xb5c2d9e4a7f1683dull >> bit;
        const uint64_t times[] = {power - 1, power, power + 1, mixed, ~mixed};
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(times); i++) {
            points[n] = (struct hearth_point){(int64_t)times[i], n % 7 == 0 ? 0 : 1.0 / (double)n};
            n++;
        }
    }

    struct hearth_timeseries series[] = {{.points = points, .n_points = n}};
    struct hearth_rpc *rpc = &g_rpc;
    Querier__V1__SelectSeriesResponse out = QUERIER__V1__SELECT_SERIES_RESPONSE__INIT;
    HEARTH_RPC_LIST(rpc, &hearth_timeseries_map, series, 1, &out, series);
    struct hearth_buf packed;
    hearth_buf_init(&packed, 0);
    hearth_pack_timeseries(&packed, series, 1);
    assert_same_bytes(&packed, &out.base);
}

static void an_answer_beyond_its_memory_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct hearth_labels set = {g_labels, 2};
    struct hearth_buf packed;

    hearth_buf_init(&packed, 8);
    hearth_pack_label_sets(&packed, &set, 1);
    assert_true(hearth_buf_failed(&packed));
    assert_int_equal(packed.n, 0);
    hearth_buf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(label_sets_are_the_bytes_of_protobuf_c, set_up, tear_down),
        cmocka_unit_test(label_sets_fit_into_exactly_their_own_size),
        cmocka_unit_test_setup_teardown(series_are_the_bytes_of_protobuf_c, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_of_all_times_are_the_bytes_of_protobuf_c, set_up,
                                        tear_down),
        cmocka_unit_test(an_answer_beyond_its_memory_is_refused_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
