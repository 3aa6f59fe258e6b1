/*
 * fuzz_segment.c -- hostile segments: decoded without a crash, for memory in proportion; what comes
 * out goes in again and comes out the same.
 */
#include "hearth/model/segment.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void require_same(struct hearth_str a, struct hearth_str b)
{
    require(a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
}

static void require_same_row(const struct hearth_stored_row *a, const struct hearth_stored_row *b)
{
    require(a->series_id == b->series_id && a->writer_id == b->writer_id && a->ts_ns == b->ts_ns);
    require(a->duration_ns == b->duration_ns && a->period == b->period);
    require(a->profile_no == b->profile_no && a->n_samples == b->n_samples);
    require(a->n_types == b->n_types && (a->attrs.p == NULL) == (b->attrs.p == NULL));
    for (uint32_t k = 0; k < a->n_types; k++) {
        require(a->totals[k] == b->totals[k]);
        require_same(a->vals[k], b->vals[k]);
    }
    require_same(a->ids, b->ids);
    require_same(a->attrs, b->attrs);
}

/* Heads have the numbers and totals of the rows, and are not longer. */
static void require_heads(const struct hearth_stored_row *rows, size_t n, size_t n_bytes,
                          struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stored_row *heads = NULL;
    struct hearth_buf bytes;
    size_t n_heads = 0;

    hearth_buf_init(&bytes, 0);
    require(hearth_segment_encode_heads(rows, n, arena, &bytes, &err) == HEARTH_OK);
    require(bytes.n <= n_bytes);
    require(hearth_segment_decode(hearth_buf_view(&bytes), arena, &heads, &n_heads, &err) ==
            HEARTH_OK);
    require(n_heads == n);
    for (size_t i = 0; i < n; i++) {
        struct hearth_stored_row want = rows[i];
        want.ids = want.attrs = (struct hearth_str){0};
        want.vals = heads[i].vals;
        require_same_row(&want, &heads[i]);
    }
    hearth_buf_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena, more;
    struct hearth_stored_row *rows = NULL, *again = NULL;
    size_t n = 0, n_again = 0;
    hearth_arena_init(&arena, (size + 64) * 256);
    hearth_arena_init(&more, 0);
    enum hearth_status status =
        hearth_segment_decode(hearth_str_n((const char *)data, size), &arena, &rows, &n, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT);
    if (status == HEARTH_OK) {
        struct hearth_buf bytes;
        hearth_buf_init(&bytes, 0);
        require(hearth_segment_encode(rows, n, &bytes, &err) == HEARTH_OK);
        require(hearth_segment_decode(hearth_buf_view(&bytes), &more, &again, &n_again, &err) ==
                HEARTH_OK);
        require(n_again == n);
        for (size_t i = 0; i < n; i++) {
            require_same_row(&rows[i], &again[i]);
        }
        require_heads(rows, n, bytes.n, &more);
        hearth_buf_release(&bytes);
    }
    hearth_arena_release(&arena);
    hearth_arena_release(&more);
    return 0;
}
