/* batch_script.c -- the statements of a batch. See batch.h. */
#include "hearth/base/clock.h"

#include "commit/batch.h"
#include "pg/store_state.h"
#include "read/node_parts.h"
#include "read/stored_rows.h"
#include "session/partitions.h"

#include <inttypes.h>

/* ---- shards ---- */

void hearth_batch_select_watermarks(struct hearth_buf *out, const struct hearth_shard *shard)
{
    hearth_buf_cstr(out, " UNION ALL SELECT service_id, watermark FROM ");
    hearth_shard_name(out, HEARTH_SHARD_ROLL_STATE, shard);
    hearth_buf_cstr(out, " WHERE service_id = ANY (");
}

/* The distinct services of a shard, as the text of an array. */
static void write_services(struct hearth_batch *batch, size_t shard)
{
    struct hearth_buf *out = &batch->script;
    int32_t last = 0; /* no service */

    hearth_buf_cstr(out, "'{");
    for (size_t i = batch->first_of_shard[shard]; i < batch->n_dicts; i++) {
        const struct hearth_batch_dict *dict = &batch->dicts[i];
        if (dict->shard == shard && dict->service_id != last) {
            hearth_buf_printf(out, "%s%" PRId32, last == 0 ? "" : ",", dict->service_id);
            last = dict->service_id;
        }
    }
    hearth_buf_cstr(out, "}'");
}

static void execute_shards(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_shards; i++) {
        hearth_buf_printf(&batch->script, "EXECUTE hearth_shard_%" PRId64 "(",
                          hearth_shard_id(&batch->shards[i]));
        write_services(batch, i);
        hearth_buf_cstr(&batch->script, ");");
    }
}

void hearth_batch_write_shard_ids(const struct hearth_batch *batch, struct hearth_buf *out)
{
    hearth_buf_cstr(out, "'{");
    for (size_t i = 0; i < batch->n_shards; i++) {
        hearth_buf_printf(out, "%s%" PRId64, i == 0 ? "" : ",", hearth_shard_id(&batch->shards[i]));
    }
    hearth_buf_cstr(out, "}'");
}

/*
 * Appends statements that return the number of shards that the node has, as of service 0, and
 * watermarks: one SELECT, or a prepared statement for each shard.
 */
static void select_from_shards(struct hearth_batch *batch)
{
    struct hearth_buf *out = &batch->script;

    if (batch->is_prepared) {
        execute_shards(batch);
        return;
    }

    hearth_buf_cstr(out, HEARTH_SELECT_PLACED "ANY (");
    hearth_batch_write_shard_ids(batch, out);
    hearth_buf_byte(out, ')');
    for (size_t i = 0; i < batch->n_shards; i++) {
        hearth_batch_select_watermarks(out, &batch->shards[i]);
        write_services(batch, i);
        hearth_buf_byte(out, ')');
    }
    hearth_buf_byte(out, ';');
}

/* ---- the script ---- */

/* A shard, or a day: rows of a shard go to its parent table, which has a leaf for each day. */
static void write_table(struct hearth_batch *batch, unsigned table, size_t day, size_t shard)
{
    char leaf[64];

    if (batch->n_shards > 0) {
        hearth_shard_name(&batch->script, table, &batch->shards[shard]);
    } else {
        hearth_partition_name(hearth_shard_table(table), batch->days[day].day, leaf);
        hearth_buf_cstr(&batch->script, leaf);
    }
}

static void write_copy(struct hearth_batch *batch, enum hearth_batch_copy_kind kind, size_t day,
                       size_t shard)
{
    struct hearth_buf *out = &batch->script;
    const char *columns = HEARTH_PROFILE_COLUMNS;

    hearth_buf_cstr(out, "COPY ");
    switch (kind) {
    case HEARTH_COPY_CHUNKS:
        write_table(batch, HEARTH_SHARD_DICT_CHUNK, day, shard);
        columns = HEARTH_CHUNK_COLUMNS;
        break;
    case HEARTH_COPY_SPANS:
        hearth_buf_cstr(out, HEARTH_SPAN_FRESH_TABLE);
        columns = HEARTH_SPAN_FRESH_COLUMNS;
        break;
    case HEARTH_COPY_ORIGINALS:
        hearth_buf_cstr(out, HEARTH_ORIGINAL_TABLE);
        columns = HEARTH_ORIGINAL_COLUMNS;
        break;
    case HEARTH_COPY_PROFILES:
        write_table(batch, HEARTH_SOURCE_PROFILE, day, shard);
        break;
    case HEARTH_COPY_LATE:
        hearth_shard_name(out, HEARTH_SOURCE_LATE,
                          batch->n_shards == 0 ? NULL : &batch->shards[shard]);
        break;
    }

    hearth_buf_printf(out, " (%s) FROM STDIN (FORMAT binary);", columns);
    batch->copies[batch->n_copies++] = (struct hearth_batch_copy){kind, day, shard};
}

static bool starts_service(const struct hearth_batch *batch, size_t i)
{
    return i == 0 || batch->dicts[i].service_id != batch->dicts[i - 1].service_id;
}

/*
 * Distributed tables allow no volatile call in RETURNING: there, the lock is a statement of its
 * own. It would cost one PostgreSQL some 25 us of each commit.
 */
#define SQL_INGEST_LOCK "pg_advisory_xact_lock_shared(" HEARTH_LOCK_INGEST ");"

static void write_claim_row(const struct hearth_batch *batch, size_t i, struct hearth_buf *out)
{
    hearth_buf_printf(out, "%s(%" PRId32 ",%" PRId32 ",%" PRId64 ")", i == 0 ? "" : ",",
                      batch->dicts[i].service_id, batch->writer_id, batch->seq);
}

/*
 * One row would do, because the batch is one transaction. On one PostgreSQL each service has a row,
 * which costs little there; on nodes it is the first one's, because each more is planned and sent
 * on its own: ten cost some 270 us more. A script that names tables of shards needs a row in each
 * shard, by which Citus locks it. That of the first service settles all attempts: it is in each.
 */
void hearth_batch_write_claim(const struct hearth_batch *batch, struct hearth_buf *out)
{
    hearth_buf_cstr(out, batch->is_distributed ? "BEGIN;SELECT " SQL_INGEST_LOCK : "BEGIN;");
    hearth_buf_cstr(out,
                    "INSERT INTO hearth_data.ingest_batch (service_id, writer_id, seq) VALUES ");
    for (size_t i = 0; i < (batch->is_distributed ? 1 : batch->n_dicts); i++) {
        if (starts_service(batch, i)) {
            write_claim_row(batch, i, out);
        }
    }

    for (size_t i = 0; i < batch->n_shards; i++) {
        if (batch->first_of_shard[i] != 0) { /* that row is there */
            write_claim_row(batch, batch->first_of_shard[i], out);
        }
    }

    hearth_buf_cstr(out, batch->is_distributed ? ";" : " RETURNING " SQL_INGEST_LOCK);
}

/*
 * The same where a function of Citus locks the shards: PostgreSQL alone plans the INSERT. If the
 * shard has moved, the row says nothing; the count of placements finds out.
 */
static void write_locked_claim(struct hearth_batch *batch)
{
    struct hearth_buf *out = &batch->script;

    hearth_buf_cstr(out, "BEGIN;SELECT pg_catalog.lock_shard_metadata(" HEARTH_SHARE_LOCK ",");
    hearth_batch_write_shard_ids(batch, out);
    hearth_buf_cstr(out, ")," SQL_INGEST_LOCK "INSERT INTO ");
    hearth_shard_name(out, HEARTH_SHARD_INGEST_BATCH, &batch->shards[batch->dicts[0].shard]);
    hearth_buf_cstr(out, " (service_id, writer_id, seq) VALUES ");
    write_claim_row(batch, 0, out);
    hearth_buf_byte(out, ';');
}

/*
 * A statement of its own, because its snapshot must be younger than the ingest lock. An array is
 * parsed, and deparsed for each shard, at once; a list took 130 us more on nodes.
 */
static void write_watermarks(struct hearth_batch *batch)
{
    struct hearth_buf *out = &batch->script;
    if (batch->n_shards > 0) {
        select_from_shards(batch);
        return;
    }

    hearth_buf_cstr(
        out, "SELECT service_id, watermark FROM hearth_data.roll_state WHERE service_id = ANY ('{");
    for (size_t i = 0; i < batch->n_dicts; i++) {
        if (starts_service(batch, i)) {
            hearth_buf_printf(out, "%s%" PRId32, i == 0 ? "" : ",", batch->dicts[i].service_id);
        }
    }

    hearth_buf_cstr(out, "}') ORDER BY service_id;");
}

/* Push ids: returned are those that are new, or were stored more than an hour ago. */
static void write_push_ids(struct hearth_batch *batch, size_t shard)
{
    struct hearth_buf *out = &batch->script;
    bool any = false;

    for (size_t i = 0; i < batch->n_ids; i++) {
        const struct hearth_batch_id *id = &batch->ids[i];
        if (batch->items[id->item].shard != shard) {
            continue;
        }
        if (!any) {
            hearth_buf_cstr(out, "INSERT INTO ");
            hearth_shard_name(out, HEARTH_SHARD_PUSH_ID,
                              batch->n_shards == 0 ? NULL : &batch->shards[shard]);
            hearth_buf_cstr(out, " AS p (service_id, id_hash, at) VALUES ");
        }
        hearth_buf_printf(out, "%s(%" PRId32 ",'%016" PRIx64 "%016" PRIx64 "',%" PRId64 ")",
                          any ? "," : "", id->service_id, id->hash.hi, id->hash.lo, batch->at_ns);
        any = true;
    }

    if (any) {
        hearth_buf_printf(out,
                          " ON CONFLICT (service_id, id_hash) DO UPDATE SET at = excluded.at"
                          " WHERE p.at < excluded.at - %" PRId64 " RETURNING service_id, id_hash;",
                          HEARTH_NS_PER_HOUR);
    }
}

static bool has_day_chunks(const struct hearth_batch *batch, size_t day, size_t shard)
{
    bool has = false;
    for (size_t i = 0; i < batch->n_dicts && batch->days[day].chunks.n > 0 && !has; i++) {
        const struct hearth_batch_dict *dict = &batch->dicts[i];
        has = dict->cut && dict->day == day && dict->shard == shard;
    }
    return has;
}

static bool has_day_rows(const struct hearth_batch *batch, size_t day, size_t shard)
{
    bool has = false;
    for (size_t i = 0; i < batch->n_items && hearth_batch_fills_leaf(&batch->days[day]) && !has;
         i++) {
        const struct hearth_batch_item *entry = &batch->items[i];
        has = entry->day == day && entry->shard == shard && entry->rows_from != entry->rows_to;
    }
    return has;
}

/* In the order of shards within a table, so that two batches lock tables in the same order. */
static void write_copies(struct hearth_batch *batch, size_t n_shards)
{
    batch->n_copies = 0;
    for (size_t day = 0; day < batch->n_days; day++) {
        for (size_t shard = 0; shard < n_shards; shard++) {
            if (has_day_chunks(batch, day, shard)) {
                write_copy(batch, HEARTH_COPY_CHUNKS, day, shard);
            }
        }
    }

    if (batch->n_spans > 0 && batch->catalog == NULL) {
        write_copy(batch, HEARTH_COPY_SPANS, 0, 0);
    }

    if (batch->n_originals > 0 && batch->catalog == NULL) {
        write_copy(batch, HEARTH_COPY_ORIGINALS, 0, 0);
    }

    for (size_t day = 0; day < batch->n_days; day++) {
        for (size_t shard = 0; shard < n_shards; shard++) {
            if (has_day_rows(batch, day, shard)) {
                write_copy(batch, HEARTH_COPY_PROFILES, day, shard);
            }
        }
    }

    for (size_t shard = 0; shard < n_shards && batch->with_late; shard++) {
        write_copy(batch, HEARTH_COPY_LATE, 0, shard);
    }
}

/* The text contains only numbers of our own, nothing from outside. */
enum hearth_status hearth_batch_write_script(struct hearth_batch *batch, struct hearth_err *err)
{
    struct hearth_buf *out = &batch->script;
    size_t n_shards = batch->n_shards == 0 ? 1 : batch->n_shards;

    hearth_buf_reset(out);
    if (batch->locks_shards) {
        write_locked_claim(batch);
    } else {
        hearth_batch_write_claim(batch, out);
    }
    write_watermarks(batch);
    for (size_t shard = 0; shard < n_shards; shard++) {
        write_push_ids(batch, shard);
    }
    write_copies(batch, n_shards);
    hearth_buf_append(out, "COMMIT", sizeof "COMMIT");

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the statements of a batch")
               : HEARTH_OK;
}

enum hearth_status hearth_batch_add_late_copy(struct hearth_batch *batch, struct hearth_err *err)
{
    batch->with_late = true;

    return hearth_batch_write_script(batch, err);
}
