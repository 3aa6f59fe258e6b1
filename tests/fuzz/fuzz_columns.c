/*
 * fuzz_columns.c -- hostile sample columns: merged without a crash; and encode, in either form, then
 * merge gives back the sums.
 *
 * Input: first byte even: three lengths (ids, value column, column 0), then their bytes. Odd:
 * samples of up to four types to encode.
 */
#include "hearth/base/mem.h"
#include "hearth/model/block.h"
#include "hearth/model/columns.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    N_ACC = 5000,
    MOST = 500,
    MOST_TYPES = 4
};

static int64_t g_acc[N_ACC]; /* zero, unless something is summed */

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* A heap copy of the exact size, so that a sanitizer sees a read behind the end. */
static struct hearth_str take(const uint8_t **data, size_t *size, size_t n)
{
    n = n < *size ? n : *size;
    char *copy = malloc(n == 0 ? 1 : n);
    require(copy != NULL);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (char)(*data)[i];
    }
    *data += n;
    *size -= n;
    return hearth_str_n(copy, n);
}

/* A walk of a damaged column ends; the ids of one that was merged ascend below its bound. */
static void walk_hostile(struct hearth_str ids, bool is_merged, uint32_t bound)
{
    struct hearth_ids_walk walk;
    uint32_t id, least = 0;

    hearth_ids_walk_begin(&walk, ids);
    while (hearth_ids_walk_next(&walk, &id)) {
        require(!is_merged || (id >= least && id < bound));
        least = id;
    }
}

/* The columns as a part of a block: as hostile as for a query. */
static void sum_hostile(struct hearth_str ids, struct hearth_str val0, struct hearth_str val)
{
    const struct hearth_str vals[2] = {val0, val};
    const int64_t totals[2] = {7, 9};
    struct hearth_block_sums sums;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_mem_fail_after(2);
    require(hearth_block_sums_init(&sums, 2, 1u << 20, &err) == HEARTH_NO_MEMORY);
    hearth_mem_fail_after(0);
    require(hearth_block_sums_init(&sums, 2, 1u << 20, &err) == HEARTH_OK);
    for (int i = 0; i < 2; i++) {
        if (hearth_block_sums_add(&sums, ids, vals, totals, 1, &err) != HEARTH_OK) {
            require(err.msg[0] != '\0');
            break;
        }
    }

    /* Sums of another number of columns never mix. */
    struct hearth_block_sums other;
    require(hearth_block_sums_init(&other, 1, 1u << 20, &err) == HEARTH_OK);
    require(hearth_block_sums_add_sums(&other, &sums, &err) == HEARTH_CORRUPT);
    hearth_block_sums_release(&other);
    hearth_block_sums_release(&sums);
}

static void merge_hostile(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return;
    }
    const uint8_t *lengths = data;
    data += 3;
    size -= 3;
    struct hearth_str ids = take(&data, &size, lengths[0]);
    struct hearth_str val = take(&data, &size, lengths[1]);
    struct hearth_str val0 = take(&data, &size, lengths[2]);
    struct hearth_err err = HEARTH_ERR_INIT;
    for (int is_column0 = 0; is_column0 < 2; is_column0++) {
        enum hearth_status status =
            hearth_columns_merge(ids, val, val0, is_column0 != 0, g_acc, N_ACC, &err);
        require(status == HEARTH_OK || status == HEARTH_CORRUPT || status == HEARTH_OUT_OF_RANGE);
        uint32_t bound = 0;
        if (status == HEARTH_OK) {
            require(hearth_columns_id_bound(ids, &bound) && bound <= N_ACC);
            for (size_t i = bound; i < N_ACC; i++) {
                require(g_acc[i] == 0);
            }
        }
        memset(g_acc, 0, sizeof g_acc);
        walk_hostile(ids, status == HEARTH_OK, bound);
    }
    sum_hostile(ids, val0, val);
    free((void *)(uintptr_t)ids.p);
    free((void *)(uintptr_t)val.p);
    free((void *)(uintptr_t)val0.p);
}

/* A block of two equal profiles, read by way of another instance, has twice their totals. */
static void sum_twice(const struct hearth_columns *c, uint32_t n_types, struct hearth_arena *arena)
{
    struct hearth_block_sums sums, others;
    struct hearth_columns twice;
    struct hearth_err err = HEARTH_ERR_INIT;

    require(hearth_block_sums_init(&sums, n_types, 64u << 20, &err) == HEARTH_OK);
    require(hearth_block_sums_init(&others, n_types, 64u << 20, &err) == HEARTH_OK);
    require(hearth_block_sums_add(&sums, c->ids, c->vals, c->totals, 1, &err) == HEARTH_OK);
    require(hearth_block_sums_add(&others, c->ids, c->vals, c->totals, 1, &err) == HEARTH_OK);
    hearth_block_sums_list(&others);
    enum hearth_status status = hearth_block_sums_add_sums(&sums, &others, &err);
    require(status == HEARTH_OK || status == HEARTH_OUT_OF_RANGE);
    if (status == HEARTH_OK) {
        status = hearth_block_sums_encode(&sums, arena, &twice, &err);
        require(status == HEARTH_OK || status == HEARTH_OUT_OF_RANGE);
    }
    for (uint32_t k = 0; status == HEARTH_OK && k < n_types; k++) {
        require(twice.totals[k] == 2 * c->totals[k]);
    }
    hearth_block_sums_list(&sums);
    hearth_block_sums_reset(&sums);
    require(sums.bound == 0);
    for (uint32_t i = 0; i < sums.cap; i++) {
        require(sums.acc[0][i] == 0);
    }
    hearth_block_sums_release(&sums);
    hearth_block_sums_release(&others);
}

/* To zero all sums would take longer than what is tested here. */
static void clear_sums(const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        g_acc[ids[i]] = 0;
    }
}

/* A sum that does not fit is refused, whichever sample it is of. */
static void overflow_each(const struct hearth_columns *c, uint32_t k, const uint32_t *ids,
                          const int64_t *values, uint32_t n, uint32_t n_types)
{
    struct hearth_err err = HEARTH_ERR_INIT;

    for (uint32_t i = 0; i < n; i += 1 + n / 8) {
        clear_sums(ids, n);
        g_acc[ids[i]] = INT64_MAX;
        enum hearth_status status =
            hearth_columns_merge(c->ids, c->vals[k], c->vals[0], k == 0, g_acc, N_ACC, &err);
        require(status == (values[i * n_types + k] > 0 ? HEARTH_OUT_OF_RANGE : HEARTH_OK));
    }
}

static void walk_each(struct hearth_str column, const uint32_t *ids, uint32_t n)
{
    struct hearth_ids_walk walk;
    uint32_t id;

    hearth_ids_walk_begin(&walk, column);
    for (uint32_t i = 0; i < n; i++) {
        require(hearth_ids_walk_next(&walk, &id) && id == ids[i]);
    }
    require(!hearth_ids_walk_next(&walk, &id));
}

typedef enum hearth_status encode_fn(const uint32_t *ids, const int64_t *values, uint32_t n,
                                     uint32_t n_types, struct hearth_arena *arena,
                                     struct hearth_columns *ret, struct hearth_err *err);

static void encode_in_form(encode_fn *encode, const uint32_t *ids, const int64_t *values,
                           uint32_t n, uint32_t n_types)
{
    struct hearth_arena arena;
    struct hearth_columns c;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    enum hearth_status status = encode(ids, values, n, n_types, &arena, &c, &err);
    require(status == HEARTH_OK || status == HEARTH_OUT_OF_RANGE);
    for (uint32_t k = 0; status == HEARTH_OK && k < n_types; k++) {
        clear_sums(ids, n);
        require(hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, g_acc, N_ACC, &err) ==
                HEARTH_OK);
        int64_t total = 0;
        for (uint32_t i = 0; i < n; i++) {
            require(g_acc[ids[i]] == values[i * n_types + k]);
            total += values[i * n_types + k];
        }
        require(total == c.totals[k]);
        overflow_each(&c, k, ids, values, n, n_types);
    }
    clear_sums(ids, n);
    if (status == HEARTH_OK) {
        walk_each(c.ids, ids, n);
        sum_twice(&c, n_types, &arena);
    }
    hearth_arena_release(&arena);
}

/* Each sample: a byte of distance, then for each type a byte of size and that many bytes of value.
 */
static void encode_and_merge(uint32_t n_types, const uint8_t *data, size_t size)
{
    static uint32_t ids[MOST];
    static int64_t values[MOST * MOST_TYPES];
    uint32_t n = 0, id = 0;
    while (size > 0 && n < MOST && id + 256 < N_ACC) {
        id += n == 0 ? *data : 1u + *data;
        data++;
        size--;
        ids[n] = id;
        for (uint32_t k = 0; k < n_types; k++) {
            uint64_t value = 0;
            size_t n_bytes = size > 0 ? *data % 9u : 0;
            for (; n_bytes > 0 && size > 0; n_bytes--, data++, size--) {
                value = value << 8 | *data;
            }
            values[n * n_types + k] = (int64_t)(value >> 1);
        }
        n++;
    }
    encode_in_form(hearth_columns_encode_bytes, ids, values, n, n_types);
    encode_in_form(hearth_columns_encode, ids, values, n, n_types);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        merge_hostile(data + 1, size - 1);
    } else {
        encode_and_merge(1 + data[0] / 2 % MOST_TYPES, data + 1, size - 1);
    }
    return 0;
}
