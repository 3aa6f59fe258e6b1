/*
 * batch_send.c -- attempts to commit a batch: feed the COPYs of its script, and take the results.
 *
 * See batch.h, "Late" and "Outcome".
 */
#include "hearth/base/metrics.h"

#include "commit/batch.h"
#include "commit/batch_prepared.h"
#include "commit/ingest_dict.h"

#include <assert.h>
#include <stdlib.h>

/* ---- results ---- */

/* Parse "01234567-89ab-...". */
static bool parse_uuid(const char *text, struct hearth_hash128 *ret)
{
    char hex[33];
    size_t n = 0;

    for (; *text != '\0' && n < 32; text++) {
        if (*text != '-') {
            hex[n++] = *text;
        }
    }

    return n == 32 && hearth_str_hex_to_u64(hearth_str_n(hex, 16), &ret->hi) &&
           hearth_str_hex_to_u64(hearth_str_n(hex + 16, 16), &ret->lo);
}

static int compare_searched_ids(const void *left, const void *right)
{
    return hearth_batch_compare_ids(left, right);
}

/* An upsert returns the new ids; the others were stored within the hour. Text format. */
static void take_new_ids(struct hearth_batch *batch, const PGresult *result)
{
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t service_id = 0;
        struct hearth_batch_id key = {0};
        bool is_parsed = hearth_str_to_i64(hearth_str_c(PQgetvalue(result, row, 0)), &service_id) &&
                         parse_uuid(PQgetvalue(result, row, 1), &key.hash);
        HEARTH_ASSERT(is_parsed);
        key.service_id = (int32_t)service_id;
        const struct hearth_batch_id *found =
            bsearch(&key, batch->ids, batch->n_ids, sizeof key, compare_searched_ids);
        HEARTH_ASSERT(found != NULL);
        batch->items[found->item].repeated = false;
    }
}

/* Until they are returned as new; several statements may return them. */
static void expect_no_new_ids(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_ids; i++) {
        batch->items[batch->ids[i].item].repeated = true;
    }
}

static int compare_marks(const void *left, const void *right)
{
    const struct hearth_batch_mark *a = left, *b = right;

    return (a->service_id > b->service_id) - (a->service_id < b->service_id);
}

/* Take watermarks, and the number of placements, as of service 0 (batch_shards.c). Text format. */
static void take_watermarks(struct hearth_batch *batch, const PGresult *result)
{
    for (int row = 0; row < PQntuples(result) && batch->n_marks < batch->n_dicts; row++) {
        int64_t service_id = 0, watermark_ns = 0;
        bool is_parsed = hearth_str_to_i64(hearth_str_c(PQgetvalue(result, row, 0)), &service_id) &&
                         hearth_str_to_i64(hearth_str_c(PQgetvalue(result, row, 1)), &watermark_ns);
        HEARTH_ASSERT(is_parsed);
        if (service_id == 0) {
            batch->n_placed += watermark_ns;
            continue;
        }
        batch->marks[batch->n_marks++] =
            (struct hearth_batch_mark){(int32_t)service_id, watermark_ns};
    }
}

/* All watermarks are there: find out whether shards have moved, and which items are late. */
static void end_watermarks(struct hearth_batch *batch)
{
    batch->has_moved = batch->n_placed != (int64_t)batch->n_shards;
    qsort(batch->marks, batch->n_marks, sizeof batch->marks[0], compare_marks);
    for (size_t i = 0; i < batch->n_items; i++) {
        struct hearth_batch_item *entry = &batch->items[i];
        struct hearth_batch_mark key = {.service_id = entry->item->service_id};
        const struct hearth_batch_mark *mark =
            batch->n_marks == 0
                ? NULL
                : bsearch(&key, batch->marks, batch->n_marks, sizeof key, compare_marks);
        entry->late = mark != NULL && entry->item->ts_ns < mark->watermark_ns;
    }
}

/* ---- COPYs ---- */

/* Put the rows of a day for its leaf, or those for profile_late, in as few pieces as possible. */
static enum hearth_status put_profile_rows(const struct hearth_batch *batch, size_t day,
                                           size_t shard, bool late, struct hearth_pg *pg,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const char *base = batch->days[day].rows.p;
    size_t from = 0, to = 0;

    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_batch_item *entry = &batch->items[i];
        if (entry->day != day || entry->shard != shard || entry->repeated || entry->late != late ||
            entry->rows_from == entry->rows_to) {
            continue;
        }
        if (entry->rows_from != to) {
            HEARTH_TRY(
                hearth_pg_copy_put(pg, hearth_str_n(base + from, to - from), ret_fault, err));
            from = entry->rows_from;
        }
        to = entry->rows_to;
    }

    return hearth_pg_copy_put(pg, hearth_str_n(base + from, to - from), ret_fault, err);
}

/* Put the late rows of all days. */
static enum hearth_status put_late_rows(const struct hearth_batch *batch, size_t shard,
                                        struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    for (size_t day = 0; day < batch->n_days; day++) {
        HEARTH_TRY(put_profile_rows(batch, day, shard, true, pg, ret_fault, err));
    }
    return HEARTH_OK;
}

static enum hearth_status put_chunks(const struct hearth_batch *batch,
                                     const struct hearth_batch_copy *copy, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const char *base = batch->days[copy->day].chunks.p;

    for (size_t i = 0; i < batch->n_dicts; i++) {
        const struct hearth_batch_dict *dict = &batch->dicts[i];
        if (dict->cut && dict->day == copy->day && dict->shard == copy->shard) {
            struct hearth_str row =
                hearth_str_n(base + dict->chunk_from, dict->chunk_to - dict->chunk_from);
            HEARTH_TRY(hearth_pg_copy_put(pg, row, ret_fault, err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status put_copy(const struct hearth_batch *batch, size_t n, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct hearth_batch_copy *copy = &batch->copies[n];

    switch (copy->kind) {
    case HEARTH_COPY_CHUNKS:
        return put_chunks(batch, copy, pg, ret_fault, err);
    case HEARTH_COPY_SPANS:
        return hearth_batch_put_spans(batch, pg, ret_fault, err);
    case HEARTH_COPY_ORIGINALS:
        return hearth_batch_put_originals(batch, pg, ret_fault, err);
    case HEARTH_COPY_PROFILES:
        return put_profile_rows(batch, copy->day, copy->shard, false, pg, ret_fault, err);
    case HEARTH_COPY_LATE:
        break;
    }

    return put_late_rows(batch, copy->shard, pg, ret_fault, err);
}

static bool is_stored_late(const struct hearth_batch_item *entry)
{
    return entry->late && !entry->repeated && entry->rows_from != entry->rows_to;
}

/* The batch has late rows to store, but the script has no COPY for them. */
static bool lacks_late_copy(const struct hearth_batch *batch)
{
    bool any = false;
    for (size_t i = 0; i < batch->n_items && !batch->with_late; i++) {
        any = any || is_stored_late(&batch->items[i]);
    }
    return any;
}

size_t hearth_batch_blocked(const struct hearth_batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_items; i++) {
        n += batch->items[i].blocked;
    }
    return n;
}

static bool lacks_leaves(const struct hearth_batch *batch, int32_t day)
{
    bool lacks = false;
    for (size_t i = 0; i < batch->n_days && !lacks; i++) {
        lacks = batch->days[i].day == day && batch->days[i].lacks_leaves;
    }
    return lacks;
}

bool hearth_batch_mark_lacking(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        struct hearth_batch_item *entry = &batch->items[i];
        entry->blocked = batch->days[entry->day].lacks_leaves;
        for (size_t k = 0; k < batch->n_dicts && !entry->blocked; k++) {
            const struct hearth_batch_dict *dict = &batch->dicts[k];
            entry->blocked = dict->dict == entry->item->dict && dict->cut &&
                             lacks_leaves(batch, dict->dict->day);
        }
    }

    return hearth_batch_blocked(batch) > 0;
}

/* Mark the items that need a leaf which is missing. Returns whether there are any. */
static bool mark_blocked(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        struct hearth_batch_item *entry = &batch->items[i];
        entry->blocked = batch->days[entry->day].avoids_leaf && !entry->late && !entry->repeated &&
                         entry->rows_from != entry->rows_to;
    }
    return hearth_batch_blocked(batch) > 0;
}

static enum hearth_status feed_copy(struct hearth_batch *batch, size_t n, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    if (lacks_late_copy(batch)) {
        return hearth_pg_copy_refuse(pg, "the batch has late profiles", ret_fault, err);
    }

    if (batch->has_moved) {
        return hearth_pg_copy_refuse(pg, "shards of the batch have moved", ret_fault, err);
    }

    if (n == 0 && batch->n_avoided > 0 && mark_blocked(batch)) {
        return hearth_pg_copy_refuse(pg, "a partition is being dropped", ret_fault, err);
    }

    if (n == 0 && !hearth_batch_write_catalog(batch)) {
        return hearth_pg_copy_refuse(pg, "the catalogue was not written", ret_fault, err);
    }

    assert(n < batch->n_copies);
    HEARTH_TRY(hearth_pg_copy_start(pg, ret_fault, err));
    HEARTH_TRY(put_copy(batch, n, pg, ret_fault, err));
    batch->in_doubt = n + 1 == batch->n_copies; /* COMMIT follows the last one */

    return hearth_pg_copy_finish(pg, ret_fault, err);
}

/* ---- attempts ---- */

/*
 * Our batch rows were inserted, so no earlier attempt was committed. A row in the table of a shard
 * says that only if the node has the shard.
 */
static bool is_claimed(const struct hearth_batch *batch)
{
    size_t n_before_copies = HEARTH_BATCH_CLAIMED + hearth_batch_mark_results(batch);

    return batch->locks_shards ? batch->n_results >= n_before_copies && !batch->has_moved
                               : batch->n_results >= HEARTH_BATCH_CLAIMED;
}

/* Take a result of the script, of another statement than a COPY. */
static void take_result(struct hearth_batch *batch, const PGresult *result)
{
    unsigned n = ++batch->n_results;
    size_t first = HEARTH_BATCH_WATERMARKS, end = first + hearth_batch_mark_results(batch);

    if (n == HEARTH_BATCH_CLAIMED) {
        batch->in_doubt = batch->in_doubt && !is_claimed(batch);
    } else if (n >= first && n < end) {
        take_watermarks(batch, result);
    } else if (n >= end && PQresultStatus(result) == PGRES_TUPLES_OK) {
        take_new_ids(batch, result);
    }

    if (n + 1 == end) {
        end_watermarks(batch);
        batch->in_doubt = batch->in_doubt && !is_claimed(batch);
        expect_no_new_ids(batch);
    }
}

/* Take the results until the end of the script. *ret_committed: COMMIT was acknowledged. */
static enum hearth_status run_batch_script(struct hearth_batch *batch, struct hearth_pg *pg,
                                           bool *ret_committed, enum hearth_pg_fault *ret_fault,
                                           struct hearth_err *err)
{
    size_t n_fed = 0;
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(pg, &result, ret_fault, err));
        if (result == NULL) {
            return HEARTH_OK;
        }
        bool is_copy = PQresultStatus(result) == PGRES_COPY_IN;
        if (!is_copy) {
            take_result(batch, result);
        }
        *ret_committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
        PQclear(result);

        if (is_copy) {
            HEARTH_ASSERT(n_fed < batch->n_copies);
            HEARTH_TRY(feed_copy(batch, n_fed++, pg, ret_fault, err));
        }
    }
}

static enum hearth_status send_script_once(struct hearth_batch *batch, struct hearth_pg *pg,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    bool committed = false;
    batch->n_results = hearth_batch_first_result(batch);
    batch->catalog_status = HEARTH_OK;
    batch->catalog_lost = batch->has_moved = false;
    batch->n_marks = 0;
    batch->n_placed = 0;
    enum hearth_status status = hearth_pg_script_send(pg, batch->script.p, ret_fault, err);
    if (status == HEARTH_OK) {
        status = run_batch_script(batch, pg, &committed, ret_fault, err);
    }

    if (status == HEARTH_OK && !committed) {
        *ret_fault = HEARTH_PG_FAULT_OTHER;
        status = HEARTH_FAIL(err, HEARTH_INTERNAL, "a batch ended without its COMMIT");
    }

    if (status == HEARTH_OK && batch->n_shards > 0) {
        hearth_metric_add(HEARTH_M_BATCHES_SHARDS, 1);
    }

    /* If the connection is still open, PostgreSQL has answered: an error rolled back. */
    if (pg->conn != NULL && is_claimed(batch)) {
        batch->in_doubt = false;
    }

    /* The attempt was given up because of the catalogue. */
    if (pg->conn != NULL && batch->catalog_status != HEARTH_OK) {
        *ret_fault = batch->catalog_fault;
        *err = batch->catalog_err;
        return batch->catalog_status;
    }

    return status;
}

/* Roll back an attempt that failed with `status`, let the script be written again, and send it. */
static enum hearth_status
send_again(struct hearth_batch *batch, struct hearth_pg *pg, enum hearth_status status,
           enum hearth_status (*rewrite)(struct hearth_batch *batch, struct hearth_err *err),
           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    hearth_pg_rollback(pg);
    if (pg->conn == NULL) {
        return status;
    }

    status = rewrite(batch, err);
    if (status != HEARTH_OK) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        return status;
    }

    return send_script_once(batch, pg, ret_fault, err);
}

enum hearth_status hearth_batch_send(struct hearth_batch *batch, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(pg != NULL && ret_fault != NULL && batch->n_copies > 0);

    /* Send the script. */
    for (size_t i = 0; i < batch->n_items; i++) {
        batch->items[i].late = batch->items[i].blocked = false;
    }

    if (hearth_batch_is_small(batch, pg)) {
        bool is_refused = false;
        enum hearth_status sent = hearth_batch_send_small(batch, pg, &is_refused, ret_fault, err);
        if (!is_refused) {
            return sent;
        }
    } else if (batch->statements != NULL && batch->statements->n_scripts > 0) {
        batch->statements->n_scripts--;
    }

    HEARTH_TRY(hearth_batch_prepare_shards(batch, pg, ret_fault, err));
    enum hearth_status status = send_script_once(batch, pg, ret_fault, err);
    if (status != HEARTH_OK && pg->conn != NULL && hearth_batch_blames_shards(batch, *ret_fault)) {
        status = send_again(batch, pg, status, hearth_batch_leave_shards, ret_fault, err);
    }

    if (status != HEARTH_OK && pg->conn != NULL && hearth_batch_blocked(batch) > 0) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the partition of the profile's day is being dropped; retry");
    }

    /* The batch has late profiles, and the script no COPY for them. */
    if (status != HEARTH_OK && pg->conn != NULL && lacks_late_copy(batch)) {
        status = send_again(batch, pg, status, hearth_batch_add_late_copy, ret_fault, err);
    }

    return status;
}

int64_t hearth_batch_late_rows(const struct hearth_batch *batch)
{
    int64_t n = 0;
    for (size_t i = 0; i < batch->n_items; i++) {
        n += is_stored_late(&batch->items[i]) ? (int64_t)batch->items[i].item->n_rows : 0;
    }
    return n;
}

int64_t hearth_batch_watermark(const struct hearth_batch *batch)
{
    int64_t highest_ns = INT64_MIN;
    for (size_t i = 0; i < batch->n_marks; i++) {
        int64_t watermark_ns = batch->marks[i].watermark_ns;
        highest_ns = watermark_ns > highest_ns ? watermark_ns : highest_ns;
    }
    return highest_ns;
}

enum hearth_status hearth_batch_probe(struct hearth_batch *batch, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    hearth_batch_write_claim(batch, &sql);
    hearth_buf_append(&sql, "ROLLBACK", sizeof "ROLLBACK");
    batch->n_results = hearth_batch_first_result(batch);
    bool committed = false;
    enum hearth_status status;
    if (hearth_buf_failed(&sql)) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        status =
            HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to find out whether a batch is stored");
    } else {
        status = hearth_pg_script_send(pg, sql.p, ret_fault, err);
    }

    if (status == HEARTH_OK) {
        status = run_batch_script(batch, pg, &committed, ret_fault, err);
    }

    hearth_buf_release(&sql);

    return status;
}
