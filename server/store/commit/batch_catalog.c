/*
 * batch_catalog.c -- the rows of a batch that belong to the catalogue, if its data goes to a node:
 * ids of spans, and original files.
 *
 * The catalogue commits first, then the data, and the data decides
 * (docs/decisions/0043-distributed-tables.md). The transaction of the data is open meanwhile: it
 * has found out which profiles are repeated, and that no earlier attempt was committed. If it fails
 * afterwards, the next attempt, perhaps of a part of the batch, writes the rows again. It removes
 * the originals of the earlier one; the lock makes it wait for that one, whose connection may be
 * lost. Rows of span_fresh may be repeated: the merge of the span index drops repetitions.
 */
#include "commit/batch.h"
#include "commit/ingest_dict.h"

#include <assert.h>
#include <inttypes.h>

/* Seed of the keys of committers' locks: random, so that no other program uses these keys. */
#define LOCK_SEED "4721170935208671312"

/* The text contains only numbers of our own. */
static void write_removal(const struct hearth_batch *batch, struct hearth_buf *out)
{
    hearth_buf_printf(out,
                      "SELECT pg_advisory_xact_lock(hashtextextended('%" PRId32 "/%" PRIu32
                      "', " LOCK_SEED "));DELETE FROM " HEARTH_ORIGINAL_TABLE
                      " WHERE (service_id, writer_id, profile_no, part) IN (",
                      batch->writer_id, batch->catalog_key);

    bool any = false;
    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_push_item *item = batch->items[i].item;
        if (hearth_batch_stores_original(&batch->items[i])) {
            hearth_buf_printf(out, "%s(%" PRId32 ",%" PRId32 ",%" PRId64 ",%" PRId32 ")",
                              any ? "," : "", item->service_id, item->dict->writer_id,
                              item->profile_no, (int32_t)item->original.part);
            any = true;
        }
    }
    hearth_buf_cstr(out, ");");
}

/* What the transaction stores. */
struct parts {
    bool spans, originals;
};

static struct parts find_parts(const struct hearth_batch *batch)
{
    struct parts parts = {.spans = hearth_batch_associations(batch) > 0};
    for (size_t i = 0; i < batch->n_items && !parts.originals; i++) {
        parts.originals = hearth_batch_stores_original(&batch->items[i]);
    }
    return parts;
}

static void write_catalog_script(const struct hearth_batch *batch, struct parts parts,
                                 struct hearth_buf *out)
{
    hearth_buf_cstr(out, "BEGIN;");
    if (parts.originals) {
        write_removal(batch, out);
    }

    if (parts.spans) {
        hearth_buf_cstr(out, "COPY " HEARTH_SPAN_FRESH_TABLE " (" HEARTH_SPAN_FRESH_COLUMNS
                             ") FROM STDIN (FORMAT binary);");
    }

    if (parts.originals) {
        hearth_buf_cstr(out, "COPY " HEARTH_ORIGINAL_TABLE " (" HEARTH_ORIGINAL_COLUMNS
                             ") FROM STDIN (FORMAT binary);");
    }

    hearth_buf_append(out, "COMMIT", sizeof "COMMIT");
}

static enum hearth_status feed_catalog_copy(const struct hearth_batch *batch, bool spans,
                                            enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_copy_start(batch->catalog, ret_fault, err));
    HEARTH_TRY(spans ? hearth_batch_put_spans(batch, batch->catalog, ret_fault, err)
                     : hearth_batch_put_originals(batch, batch->catalog, ret_fault, err));

    return hearth_pg_copy_finish(batch->catalog, ret_fault, err);
}

static enum hearth_status run_script(const struct hearth_batch *batch, const char *sql,
                                     struct parts parts, enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
{
    bool is_first = true;
    HEARTH_TRY(hearth_pg_script_send(batch->catalog, sql, ret_fault, err));
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(batch->catalog, &result, ret_fault, err));
        if (result == NULL) {
            return HEARTH_OK;
        }

        bool is_copy = PQresultStatus(result) == PGRES_COPY_IN;
        PQclear(result);
        if (is_copy) {
            HEARTH_TRY(feed_catalog_copy(batch, is_first && parts.spans, ret_fault, err));
            is_first = false;
        }
    }
}

/* Connect if needed, and store the rows. */
static enum hearth_status write_parts(struct hearth_batch *batch, struct parts parts,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg *pg = batch->catalog;
    if (!hearth_pg_alive(pg)) {
        *ret_fault = HEARTH_PG_FAULT_CONNECTION;
        HEARTH_TRY(hearth_pg_connect(pg, HEARTH_CATALOG_CONNECT_MS, err));
    }

    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    write_catalog_script(batch, parts, &sql);
    enum hearth_status status;
    if (hearth_buf_failed(&sql)) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the statements of a batch");
    } else {
        status = run_script(batch, sql.p, parts, ret_fault, err);
        if (status != HEARTH_OK) {
            hearth_pg_rollback(pg);
            batch->catalog_lost = pg->conn == NULL && !pg->lacks_standby;
        }
    }
    hearth_buf_release(&sql);

    return status;
}

bool hearth_batch_write_catalog(struct hearth_batch *batch)
{
    if (batch->catalog == NULL || batch->n_spans + batch->n_originals == 0) {
        return true;
    }

    struct parts parts = find_parts(batch);
    if (!parts.spans && !parts.originals) {
        return true; /* all of these profiles are repeated */
    }

    batch->catalog_err = (struct hearth_err)HEARTH_ERR_INIT;
    batch->catalog_status = write_parts(batch, parts, &batch->catalog_fault, &batch->catalog_err);

    return batch->catalog_status == HEARTH_OK;
}
