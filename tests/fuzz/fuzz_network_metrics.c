/*
 * fuzz_network_metrics.c -- hostile flushes must be merged without a crash and in bounded memory, and
 * the merged sums must be packable again. The same bytes also serve as values that an agent sends: one
 * byte for the meter, one for the length of a code, then the code and the value. A refused value must
 * leave sums that can be packed.
 */
#include "hearth/model/network_metrics.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_values(const uint8_t *data, size_t size)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_network_sums sums, again;
    struct hearth_buf bytes;

    hearth_arena_init(&arena, 1u << 20);
    hearth_network_sums_init(&sums, &arena);
    hearth_network_sums_init(&again, &arena);
    for (size_t at = 0; size - at >= 10;) {
        unsigned meter = data[at] % HEARTH_NETWORK_METERS;
        size_t n = data[at + 1] % 8u;
        struct hearth_str code = {(const char *)data + at + 2, n};
        double value;
        if (size - at < 10 + n) {
            break;
        }
        memcpy(&value, data + at + 2 + n, sizeof value);
        enum hearth_status status;
        if (hearth_network_meters[meter].kind == HEARTH_NETWORK_HISTOGRAM) {
            const struct hearth_network_bucket bucket = {value, (int8_t)data[at]};
            status = hearth_network_add_bucket(&sums, meter, bucket, &err);
        } else {
            status = hearth_network_add_value(&sums, meter, code, value, &err);
        }
        HEARTH_ASSERT(status == HEARTH_OK || err.msg[0] != '\0');
        at += 10 + n;
    }
    HEARTH_ASSERT(hearth_network_meter_find(hearth_str_n((const char *)data, size), true) <=
                  HEARTH_NETWORK_METERS);
    hearth_buf_init(&bytes, 0);
    hearth_network_encode(&sums, &bytes);
    enum hearth_status status = hearth_network_merge(&again, hearth_buf_view(&bytes), &err);
    HEARTH_ASSERT(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_network_sums sums, again;
    hearth_arena_init(&arena, 64u << 20);
    hearth_network_sums_init(&sums, &arena);
    hearth_network_sums_init(&again, &arena);
    enum hearth_status status =
        hearth_network_merge(&sums, hearth_str_n((const char *)data, size), &err);
    HEARTH_ASSERT(status == HEARTH_OK || status == HEARTH_CORRUPT);
    if (status == HEARTH_OK) {
        struct hearth_buf bytes;
        hearth_buf_init(&bytes, 0);
        hearth_network_encode(&sums, &bytes);
        HEARTH_ASSERT(hearth_network_merge(&again, hearth_buf_view(&bytes), &err) == HEARTH_OK);
        for (unsigned i = 0; i < HEARTH_NETWORK_METERS; i++) {
            HEARTH_ASSERT(again.cells[i].n_items == sums.cells[i].n_items);
            HEARTH_ASSERT((again.cells[i].n > 0) == (sums.cells[i].n > 0));
            if (hearth_network_meters[i].kind == HEARTH_NETWORK_HISTOGRAM) {
                (void)hearth_network_percentile(&again.cells[i], 99);
            } else if (again.cells[i].n > 0) {
                double value = hearth_network_value(i, &sums.cells[i]);
                double same = hearth_network_value(i, &again.cells[i]);
                HEARTH_ASSERT(value == same || (isnan(value) && isnan(same)));
            }
        }
        hearth_buf_release(&bytes);
    }
    hearth_arena_release(&arena);
    add_values(data, size);
    return 0;
}
