/*
 * batch_spans.c -- the ids of spans and traces in a batch, for hearth_data.span_fresh: one row per
 * service.
 *
 * They are encoded while they are sent, because only then repeated profiles, which store nothing,
 * are known.
 */
#include "commit/batch.h"
#include "pg/pg.h"

#include <assert.h>
#include <stdlib.h>

static int compare_spans(const void *left, const void *right)
{
    const struct hearth_batch_spans *a = left, *b = right;
    int c = (a->service_id > b->service_id) - (a->service_id < b->service_id);
    return c != 0 ? c : (a->item > b->item) - (a->item < b->item);
}

void hearth_batch_collect_spans(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_push_item *item = batch->items[i].item;
        bool has_any = false;
        for (size_t k = 0; k < item->n_rows && !has_any; k++) {
            has_any = item->rows[k].n_associations > 0;
        }
        if (has_any && !batch->items[i].twin) {
            batch->spans[batch->n_spans++] = (struct hearth_batch_spans){item->service_id, i};
        }
    }

    qsort(batch->spans, batch->n_spans, sizeof batch->spans[0], compare_spans);
}

static size_t count_item_associations(const struct hearth_push_item *item)
{
    size_t n = 0;
    for (size_t i = 0; i < item->n_rows; i++) {
        n += item->rows[i].n_associations;
    }
    return n;
}

/*
 * Encode the row of one service: spans[from] to spans[to - 1]. No row if all profiles are repeated.
 */
static void encode_service_spans(const struct hearth_batch *batch, size_t from, size_t to,
                                 struct hearth_buf *scratch, struct hearth_buf *out)
{
    assert(from < to && to <= batch->n_spans);

    size_t n = 0;
    hearth_buf_reset(scratch);
    for (size_t i = from; i < to; i++) {
        const struct hearth_batch_item *entry = &batch->items[batch->spans[i].item];
        for (size_t k = 0; k < entry->item->n_rows && !entry->repeated; k++) {
            const struct hearth_push_row *row = &entry->item->rows[k];
            hearth_associations_put_fresh(row->associations, row->n_associations, row->series_id,
                                          entry->item->ts_ns, scratch);
        }
        n += entry->repeated ? 0 : count_item_associations(entry->item);
    }

    if (n > 0) {
        hearth_copy_row(out, HEARTH_N_SPAN_FRESH_COLUMNS);
        hearth_copy_i32(out, batch->spans[from].service_id);
        hearth_copy_i32(out, (int32_t)n);
        hearth_copy_bytes(out, hearth_buf_view(scratch));
    }

    out->failed = out->failed || scratch->failed;
}

enum hearth_status hearth_batch_put_spans(const struct hearth_batch *batch, struct hearth_pg *pg,
                                          enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_buf scratch, out;
    hearth_buf_init(&scratch, 0);
    hearth_buf_init(&out, 0);
    for (size_t from = 0, to; from < batch->n_spans; from = to) {
        for (to = from + 1;
             to < batch->n_spans && batch->spans[to].service_id == batch->spans[from].service_id;) {
            to++;
        }
        encode_service_spans(batch, from, to, &scratch, &out);
    }

    enum hearth_status status;
    if (hearth_buf_failed(&out)) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the span ids of a batch");
    } else {
        status = hearth_pg_copy_put(pg, hearth_buf_view(&out), ret_fault, err);
    }

    hearth_buf_release(&scratch);
    hearth_buf_release(&out);

    return status;
}

int64_t hearth_batch_associations(const struct hearth_batch *batch)
{
    int64_t n = 0;
    for (size_t i = 0; i < batch->n_spans; i++) {
        const struct hearth_batch_item *entry = &batch->items[batch->spans[i].item];
        n += entry->repeated ? 0 : (int64_t)count_item_associations(entry->item);
    }
    return n;
}
