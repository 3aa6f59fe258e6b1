/*
 * batch_originals.c -- the files that profiles of a batch were made of, for hearth_data.original.
 *
 * They are sent one by one, because a file may have megabytes. Profiles that are repeated store
 * nothing.
 */
#include "hearth/base/metrics.h"

#include "commit/batch.h"
#include "commit/ingest_dict.h"

#include <assert.h>

static bool has_original(const struct hearth_batch_item *entry)
{
    return entry->item->original.bytes.n > 0 && !entry->twin;
}

bool hearth_batch_stores_original(const struct hearth_batch_item *entry)
{
    return has_original(entry) && !entry->repeated;
}

size_t hearth_batch_count_originals(const struct hearth_batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_items; i++) {
        n += has_original(&batch->items[i]);
    }
    return n;
}

static void encode_original(const struct hearth_push_item *item, struct hearth_buf *out)
{
    const struct hearth_push_original *original = &item->original;

    hearth_copy_row(out, HEARTH_N_ORIGINAL_COLUMNS);
    hearth_copy_i32(out, item->service_id);
    hearth_copy_i32(out, item->dict->writer_id);
    hearth_copy_i64(out, item->profile_no);
    hearth_copy_i32(out, original->part);
    hearth_copy_i64(out, item->ts_ns);
    hearth_copy_bytes(out, original->name);
    hearth_copy_i64(out, (int64_t)original->bytes.n);
    hearth_copy_bytes(out, original->bytes);
    hearth_copy_bytes(out, original->client_tags);
}

enum hearth_status hearth_batch_put_originals(const struct hearth_batch *batch,
                                              struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                              struct hearth_err *err)
{
    struct hearth_buf row;
    enum hearth_status status = HEARTH_OK;

    assert(batch->n_originals > 0);
    hearth_buf_init(&row, 0);
    for (size_t i = 0; i < batch->n_items && status == HEARTH_OK; i++) {
        const struct hearth_batch_item *entry = &batch->items[i];
        if (!hearth_batch_stores_original(entry)) {
            continue;
        }
        hearth_buf_reset(&row);
        encode_original(entry->item, &row);
        if (hearth_buf_failed(&row)) {
            *ret_fault = HEARTH_PG_FAULT_RETRY;
            status = HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                                 "no memory to store an original of %zu "
                                 "bytes",
                                 entry->item->original.bytes.n);
        } else {
            status = hearth_pg_copy_put(pg, hearth_buf_view(&row), ret_fault, err);
        }
    }
    hearth_buf_release(&row);

    return status;
}

void hearth_batch_meter_originals(const struct hearth_batch *batch)
{
    int64_t n = 0, n_bytes = 0;

    for (size_t i = 0; i < batch->n_items && batch->n_originals > 0; i++) {
        const struct hearth_batch_item *entry = &batch->items[i];
        if (hearth_batch_stores_original(entry)) {
            n++;
            n_bytes += (int64_t)entry->item->original.bytes.n;
        }
    }

    hearth_metric_add(HEARTH_M_ORIGINALS_STORED, n);
    hearth_metric_add(HEARTH_M_ORIGINAL_BYTES, n_bytes);
}
