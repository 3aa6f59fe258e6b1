/*
 * fuzz_span_index.c -- hostile rows of the span index, fresh and packed: decoded without a crash, for memory in proportion; what
 * comes out goes in again and comes out the same, as does what a writer makes.
 */
#include "hearth/model/span_index.h"

#include <stdlib.h>

#define MOST_SAMPLE_BYTES ((size_t)4096) /* each sample is looked up among all */

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

/* As a writer makes a row: associations of one day, from 16 bytes each, sorted. */
static void check_written(const uint8_t *data, size_t size, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_association *again = NULL;
    const int32_t day = 20000;
    size_t n = 0, n_again = 0, cap = size / 16;
    unsigned known = 0;
    struct hearth_association *all = hearth_arena_calloc(arena, cap, sizeof all[0]);
    struct hearth_association *scratch = hearth_arena_calloc(arena, cap, sizeof all[0]);

    for (; all != NULL && scratch != NULL && n < cap; n++) {
        uint64_t id;
        memcpy(&id, data + n * 16, sizeof id);
        const uint8_t *rest = data + n * 16 + 8;
        all[n] = (struct hearth_association){.key = hearth_span_key(id),
                                             .of = 1u + rest[0] % 7u,
                                             .service_id = 1 + rest[1] % 4,
                                             .series_id = 1 + rest[2] + rest[3] * 256,
                                             .ts_ns = day * INT64_C(86400000000000) +
                                                      rest[4] * INT64_C(300000000001)};
    }
    n = hearth_associations_sort(all, scratch, n);
    for (size_t i = 1; i < n; i++) {
        require(all[i - 1].key <= all[i].key && !same(&all[i - 1], &all[i]));
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_associations_pack(all, n, day, 0, &out);
    const struct hearth_association_row row = {hearth_buf_view(&out), day, 0, 0};
    enum hearth_status status =
        hearth_associations_unpack(&row, arena, &again, &n_again, &known, &err);
    require(status == HEARTH_NO_MEMORY || (status == HEARTH_OK && n_again == n));
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        require(all[i].series_id == again[i].series_id && all[i].ts_ns == again[i].ts_ns);
    }
    hearth_buf_release(&out);
}

/* Samples of 24 bytes each: every id is found once, with the kinds that it has anywhere. */
static void check_samples(const uint8_t *data, size_t size, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_association *found = NULL;
    size_t n = size / 24, n_found = 0;
    struct hearth_attr_sample *samples = hearth_arena_calloc(arena, n, sizeof samples[0]);

    if (samples == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t ids[3];
        memcpy(ids, data + i * 24, sizeof ids);
        samples[i].attrs.span_id = ids[0];
        samples[i].attrs.local_root_span_id = ids[1];
        samples[i].attrs.trace_id_lo = ids[2];
    }

    enum hearth_status status =
        hearth_associations_of_samples(samples, n, arena, arena, &found, &n_found, &err);
    require(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
    require(n_found <= 3 * n);
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        unsigned of = samples[i].attrs.span_id == 0 ? HEARTH_OF_SPAN : 0;
        for (size_t k = 0; k < n_found; k++) {
            if (found[k].key == hearth_span_key(samples[i].attrs.span_id)) {
                of |= found[k].of;
            }
        }
        require((of & HEARTH_OF_SPAN) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, (size + 64) * 64);
    struct hearth_str bytes = hearth_str_n((const char *)data, size);
    check_fresh(bytes, &arena);
    if (size > 3) {
        check_packed(bytes, &arena);
        check_written(data, size, &arena);
        check_samples(data, size < MOST_SAMPLE_BYTES ? size : MOST_SAMPLE_BYTES, &arena);
    }
    hearth_arena_release(&arena);
    return 0;
}
