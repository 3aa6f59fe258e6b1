/*
 * fuzz_span_index.c -- hostile rows of the span index, fresh and packed: decoded without a crash, for memory in proportion; what
 * comes out goes in again and comes out the same.
 */
#include "hearth/model/span_index.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static bool same(const struct hearth_association *a, const struct hearth_association *b)
{
    return a->key == b->key && a->of == b->of && a->service_id == b->service_id &&
           a->series_id == b->series_id && a->ts_ns == b->ts_ns;
}

static void check_fresh(struct hearth_str bytes, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_association *all = NULL, *again = NULL;
    size_t n = 0, n_again = 0;
    enum hearth_status status = hearth_associations_read_fresh(bytes, 1, arena, &all, &n, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT);
    if (status != HEARTH_OK) {
        return;
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_associations_put_fresh(&all[i], 1, all[i].series_id, all[i].ts_ns, &out);
    }
    require(hearth_associations_read_fresh(hearth_buf_view(&out), 1, arena, &again, &n_again,
                                           &err) == HEARTH_OK);
    require(n_again == n);
    for (size_t i = 0; i < n; i++) {
        require(same(&all[i], &again[i]));
    }
    hearth_buf_release(&out);
}

/* The first bytes choose day and bucket. */
static void check_packed(struct hearth_str bytes, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_association *all = NULL, *again = NULL;
    size_t n = 0, n_again = 0;
    unsigned bits = (uint8_t)bytes.p[0], known = 0;
    uint32_t bucket = (uint8_t)bytes.p[1];
    int32_t day = 20000 + (int8_t)bytes.p[2];
    bytes = hearth_str_n(bytes.p + 3, bytes.n - 3);
    enum hearth_status status = hearth_associations_unpack(
        &(struct hearth_association_row){bytes, day, bits, bucket}, arena, &all, &n, &known, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT);
    if (status != HEARTH_OK) {
        return;
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < n; i++) {
        require(hearth_span_bucket(all[i].key, bits) == bucket);
        require(i == 0 || all[i - 1].key <= all[i].key);
    }
    hearth_associations_pack(all, n, day, bits, &out);
    require(hearth_associations_unpack(
                &(struct hearth_association_row){hearth_buf_view(&out), day, bits, bucket}, arena,
                &again, &n_again, &known, &err) == HEARTH_OK);
    require(n_again == n && known <= 64);
    for (size_t i = 0; i < n; i++) {
        all[i].key = all[i].key >> (64 - known) << (64 - known);
        require(same(&all[i], &again[i]));
    }
    hearth_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, (size + 64) * 64);
    struct hearth_str bytes = hearth_str_n((const char *)data, size);
    check_fresh(bytes, &arena);
    if (size > 3) {
        check_packed(bytes, &arena);
    }
    hearth_arena_release(&arena);
    return 0;
}
