/* fuzz_network_metrics.c -- hostile flushes: merged without a crash, in bounded memory; what is merged is packed again. */
#include "hearth/model/network_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
            }
        }
        hearth_buf_release(&bytes);
    }
    hearth_arena_release(&arena);
    return 0;
}
