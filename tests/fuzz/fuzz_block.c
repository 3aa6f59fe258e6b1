/*
 * fuzz_block.c -- hostile packed totals, of one or of several series, and sets of series: read
 * without a crash; what is read and packed again reads the same.
 *
 * Input: first byte odd: a set of series. Even: a length, packed times of it, then packed values,
 * of one series and of several.
 */
#include "hearth/model/block.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MOST = 300
};

struct points {
    int64_t ts[MOST], values[MOST];
    size_t n;
};

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static enum hearth_status collect(void *context, const int64_t *ts_ns, const int64_t *values,
                                  size_t n, struct hearth_err *err)
{
    (void)err;
    struct points *points = context;
    if (points->n + n > MOST) { /* runs have many times in few bytes */
        return HEARTH_CANCELLED;
    }
    for (size_t i = 0; i < n; i++) {
        require(values[i] >= 0);
        require(points->n == 0 || ts_ns[i] >= points->ts[points->n - 1]);
        points->ts[points->n] = ts_ns[i];
        points->values[points->n++] = values[i];
    }
    return HEARTH_OK;
}

static void totals(const uint8_t *data, size_t size)
{
    static struct points points, again;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n_ts = size == 0 ? 0 : data[0];
    if (n_ts + 1 > size) {
        return;
    }
    struct hearth_str ts = hearth_str_n((const char *)data + 1, n_ts);
    struct hearth_str val = hearth_str_n((const char *)data + 1 + n_ts, size - 1 - n_ts);
    points.n = again.n = 0;
    enum hearth_status status = hearth_totals_read(ts, val, 77, collect, &points, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT || status == HEARTH_CANCELLED);
    if (status != HEARTH_OK) {
        return;
    }
    struct hearth_arena arena;
    struct hearth_totals packed;
    hearth_arena_init(&arena, 0);
    /* Distances that were read one by one may be too wide together. */
    status = hearth_totals_encode(points.ts, points.values, points.n, 1, 77, &arena, &packed, &err);
    require(status == HEARTH_OK || status == HEARTH_OUT_OF_RANGE);
    if (status == HEARTH_OK) {
        require(hearth_totals_read(packed.ts, packed.vals[0], 77, collect, &again, &err) ==
                HEARTH_OK);
        require(again.n == points.n);
        for (size_t i = 0; i < again.n; i++) {
            require(again.ts[i] == points.ts[i] && again.values[i] == points.values[i]);
        }
    }
    hearth_arena_release(&arena);
}

static void totals_of_several(const uint8_t *data, size_t size)
{
    size_t n_ts = size == 0 ? 0 : data[0];
    if (n_ts + 1 > size) {
        return;
    }
    struct hearth_totals_group group = {
        .ts = hearth_str_n((const char *)data + 1, n_ts),
        .val = hearth_str_n((const char *)data + 1 + n_ts, size - 1 - n_ts)};
    struct hearth_str all_ts = group.ts, all_val = group.val;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf ts, val;
    hearth_buf_init(&ts, 0);
    hearth_buf_init(&val, 0);
    bool has = true;
    enum hearth_status status = HEARTH_OK;
    while (has && status == HEARTH_OK) {
        int32_t before = group.series_id;
        status = hearth_totals_group_next(&group, &has, &err);
        require(status == HEARTH_OK || status == HEARTH_CORRUPT);
        if (status == HEARTH_OK && has) {
            const struct hearth_totals one = {group.series_ts, &group.series_val};
            require(group.series_id > before);
            hearth_totals_group_add(before, group.series_id, &one, 1, &ts, &val);
        }
    }
    /* Numbers of more bytes than they need become shorter. */
    require(status != HEARTH_OK || (ts.n <= all_ts.n && val.n <= all_val.n));
    /* Times alone have the same series. */
    if (status == HEARTH_OK) {
        int32_t last = group.series_id;
        group = (struct hearth_totals_group){.ts = all_ts};
        for (has = true; has;) {
            require(hearth_totals_group_next(&group, &has, &err) == HEARTH_OK);
        }
        require(group.series_id == last);
    }
    hearth_buf_release(&ts);
    hearth_buf_release(&val);
}

static void members(const uint8_t *data, size_t size)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_str bytes = hearth_str_n((const char *)data, size);
    int32_t *ids = NULL;
    size_t n = 0;
    hearth_arena_init(&arena, 0);
    enum hearth_status status = hearth_members_decode(bytes, &arena, &ids, &n, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT);
    if (status == HEARTH_OK) {
        struct hearth_buf again;
        int32_t *same = NULL;
        size_t n_same = 0;
        hearth_buf_init(&again, 0);
        hearth_members_encode(ids, n, &again);
        require(hearth_members_decode(hearth_buf_view(&again), &arena, &same, &n_same, &err) ==
                HEARTH_OK);
        require(n_same == n && (n == 0 || memcmp(same, ids, n * sizeof *ids) == 0));
        require(hearth_members_within(bytes, ids, n));
        require(n == 0 || !hearth_members_within(bytes, ids, n - 1));
        hearth_buf_release(&again);
    } else {
        static const int32_t none[1] = {1};
        (void)hearth_members_within(bytes, none, 1);
    }
    hearth_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        totals(data + 1, size - 1);
        totals_of_several(data + 1, size - 1);
    } else {
        members(data + 1, size - 1);
    }
    return 0;
}
