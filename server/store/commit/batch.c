/* batch.c -- encode a group of profiles: the rows of the COPYs, and the script. See batch.h. */
#include "commit/batch.h"

#include "hearth/codec/compress.h"

#include "commit/ingest_dict.h"
#include "nodes/layout.h"
#include "pg/store_state.h"
#include "read/stored_rows.h"
#include "session/partitions.h"

#include <assert.h>
#include <stdlib.h>

#define CHUNK_ZSTD_LEVEL 3

/* ---- dictionaries, ids and days ---- */

static int order_i32(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int hearth_batch_compare_ids(const struct hearth_batch_id *a, const struct hearth_batch_id *b)
{
    int c = order_i32(a->service_id, b->service_id);
    c = c != 0 ? c : order_u64(a->hash.hi, b->hash.hi);
    return c != 0 ? c : order_u64(a->hash.lo, b->hash.lo);
}

static int compare_push_ids(const void *left, const void *right)
{
    const struct hearth_batch_id *a = left, *b = right;
    int c = hearth_batch_compare_ids(a, b);
    return c != 0 ? c : order_u64(a->item, b->item); /* the first item is the one stored */
}

/* The distinct dictionaries, sorted: services have the same order in all transactions. */
static void collect_batch_dicts(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_push_item *item = batch->items[i].item;
        batch->dicts[i] =
            (struct hearth_batch_dict){.service_id = item->service_id, .dict = item->dict};
    }

    qsort(batch->dicts, batch->n_items, sizeof batch->dicts[0], hearth_batch_compare_dicts);
    size_t n = 0;
    for (size_t i = 0; i < batch->n_items; i++) {
        if (n == 0 || hearth_batch_compare_dicts(&batch->dicts[n - 1], &batch->dicts[i]) != 0) {
            batch->dicts[n++] = batch->dicts[i];
        }
    }

    batch->n_dicts = n;
}

/* The distinct push ids, sorted. Items that repeat the id of an earlier item become twins. */
static void collect_push_ids(struct hearth_batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_push_item *item = batch->items[i].item;
        if (item->has_id) {
            batch->ids[n++] = (struct hearth_batch_id){item->service_id, item->id_hash, i};
        }
    }

    qsort(batch->ids, n, sizeof batch->ids[0], compare_push_ids);
    size_t n_distinct = 0;
    for (size_t i = 0; i < n; i++) {
        if (n_distinct > 0 &&
            hearth_batch_compare_ids(&batch->ids[n_distinct - 1], &batch->ids[i]) == 0) {
            batch->items[batch->ids[i].item].twin = true;
        } else {
            batch->ids[n_distinct++] = batch->ids[i];
        }
    }

    batch->n_ids = n_distinct;
}

static size_t find_or_add_day(struct hearth_batch *batch, int32_t day)
{
    size_t i = 0;
    while (i < batch->n_days && batch->days[i].day != day) {
        i++;
    }

    if (i == batch->n_days) {
        assert(batch->n_days < 2 * batch->n_items);
        batch->days[batch->n_days++] = (struct hearth_batch_day){.day = day};
    }

    return i;
}

/* ---- rows ---- */

static void encode_profile_row(const struct hearth_push_item *item,
                               const struct hearth_push_row *row, struct hearth_buf *out)
{
    const struct hearth_stored_row stored = {
        .series_id = row->series_id,
        .writer_id = item->dict->writer_id,
        .ts_ns = item->ts_ns,
        .duration_ns = row->duration_ns,
        .period = row->period,
        .profile_no = item->profile_no,
        .n_samples = row->columns.n,
        .n_types = row->columns.n_types,
        .totals = row->columns.totals,
        .ids = row->columns.ids,
        .vals = row->columns.vals,
        .attrs = row->attrs.n == 0 ? hearth_str_n(NULL, 0) : row->attrs,
    };

    hearth_copy_stored_row(out, item->service_id, &stored);
}

static bool encode_profile_rows(struct hearth_batch *batch)
{
    bool failed = false;
    for (size_t i = 0; i < batch->n_items; i++) {
        struct hearth_batch_item *entry = &batch->items[i];
        const struct hearth_push_item *item = entry->item;
        entry->day = find_or_add_day(batch, hearth_day_of(item->ts_ns));
        struct hearth_buf *out = &batch->days[entry->day].rows;
        entry->rows_from = out->n;
        for (size_t k = 0; k < item->n_rows && !entry->twin; k++) {
            encode_profile_row(item, &item->rows[k], out);
        }
        entry->rows_to = out->n;
        failed = failed || hearth_buf_failed(out);
    }

    return !failed;
}

static bool encode_chunks(struct hearth_batch *batch, struct hearth_zstd_tables *tables,
                          struct hearth_err *err)
{
    struct hearth_buf raw, packed;
    hearth_buf_init(&raw, 0);
    hearth_buf_init(&packed, 0);
    bool ok = true;
    for (size_t i = 0; ok && i < batch->n_dicts; i++) {
        struct hearth_batch_dict *entry = &batch->dicts[i];
        const struct hearth_ingest_dict *dict = entry->dict;
        struct hearth_dict_mark from;
        hearth_buf_reset(&raw);
        hearth_buf_reset(&packed);
        entry->cut = hearth_ingest_dict_cut(entry->dict, &raw, &from, &entry->upto);
        if (!entry->cut) {
            continue;
        }
        ok = !hearth_buf_failed(&raw) &&
             hearth_zstd_by(tables, hearth_buf_view(&raw), CHUNK_ZSTD_LEVEL, &packed, err) ==
                 HEARTH_OK;
        entry->day = find_or_add_day(batch, dict->day);
        struct hearth_buf *out = &batch->days[entry->day].chunks;
        entry->chunk_from = out->n;
        hearth_copy_row(out, HEARTH_N_CHUNK_COLUMNS);
        hearth_copy_i32(out, dict->service_id);
        hearth_copy_i32(out, dict->day);
        hearth_copy_i32(out, dict->writer_id);
        hearth_copy_i32(out, (int32_t)from.n_stacks);
        hearth_copy_i32(out, (int32_t)from.n_strings);
        hearth_copy_i32(out, (int32_t)(entry->upto.n_stacks - from.n_stacks));
        hearth_copy_bytes(out, hearth_buf_view(&packed));
        entry->chunk_to = out->n;
        ok = ok && !hearth_buf_failed(out);
    }

    hearth_buf_release(&raw);
    hearth_buf_release(&packed);

    return ok;
}

unsigned hearth_batch_leaves(const struct hearth_batch *batch, size_t day)
{
    assert(day < batch->n_days);

    return (hearth_batch_fills_leaf(&batch->days[day]) ? HEARTH_LEAF_PROFILE : 0u) |
           (batch->days[day].chunks.n > 0 ? HEARTH_LEAF_DICT_CHUNK : 0u);
}

enum hearth_status hearth_batch_avoid_leaf(struct hearth_batch *batch, size_t day, bool avoid,
                                           struct hearth_err *err)
{
    assert(day < batch->n_days);

    if (batch->days[day].avoids_leaf == avoid) {
        return HEARTH_OK;
    }
    batch->days[day].avoids_leaf = avoid;
    batch->n_avoided += avoid ? 1 : -(size_t)1;
    return hearth_batch_add_late_copy(batch, err);
}

enum hearth_status hearth_batch_encode(struct hearth_batch *batch,
                                       const struct hearth_batch_input *input,
                                       struct hearth_err *err)
{
    struct hearth_push_item *const *items = input->items;
    size_t n_items = input->n_items;
    assert(n_items > 0 && items != NULL);

    /* Allocate. */
    *batch = (struct hearth_batch){.writer_id = input->store->batch_writer_id,
                                   .seq = input->seq,
                                   .catalog = input->catalog,
                                   .catalog_key = input->committer,
                                   .statements = input->statements,
                                   .max_small_rows = input->store->options.commit_prepared_rows,
                                   .n_items = n_items,
                                   .nodes = input->nodes,
                                   .at_ns = input->at_ns,
                                   .is_distributed = hearth_layout_is_distributed(input->store)};
    hearth_arena_init(&batch->arena, 0);
    hearth_buf_init(&batch->script, 0);
    batch->items = hearth_arena_calloc(&batch->arena, n_items, sizeof batch->items[0]);
    batch->dicts = hearth_arena_calloc(&batch->arena, n_items, sizeof batch->dicts[0]);
    batch->ids = hearth_arena_calloc(&batch->arena, n_items, sizeof batch->ids[0]);
    batch->spans = hearth_arena_calloc(&batch->arena, n_items, sizeof batch->spans[0]);

    /* Days of the items, and of dictionaries acquired for another time than the item's. */
    batch->days = hearth_arena_calloc(&batch->arena, 2 * n_items, sizeof batch->days[0]);
    batch->marks = hearth_arena_array(&batch->arena, n_items, sizeof batch->marks[0]);
    batch->copies = hearth_arena_array(&batch->arena, 3 * n_items + 2, sizeof batch->copies[0]);
    if (batch->items == NULL || batch->dicts == NULL || batch->ids == NULL || batch->days == NULL ||
        batch->marks == NULL || batch->spans == NULL || batch->copies == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    for (size_t i = 0; i < n_items; i++) {
        assert(items[i]->n_rows > 0 && items[i]->dict != NULL);
        batch->items[i].item = items[i];
        batch->with_late = batch->with_late || items[i]->ts_ns < input->late_below_ns;
    }

    /* Encode the rows. */
    collect_batch_dicts(batch);
    collect_push_ids(batch);
    hearth_batch_collect_spans(batch);
    batch->n_originals = hearth_batch_count_originals(batch);
    if (!encode_profile_rows(batch) || !encode_chunks(batch, input->tables, err)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to encode a batch of %zu profiles",
                           n_items);
    }

    HEARTH_TRY(hearth_batch_find_shards(batch, input->node, err));

    return hearth_batch_write_script(batch, err);
}

void hearth_batch_release(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_days; i++) {
        hearth_buf_release(&batch->days[i].chunks);
        hearth_buf_release(&batch->days[i].rows);
    }
    hearth_buf_release(&batch->script);
    hearth_arena_release(&batch->arena);
}
