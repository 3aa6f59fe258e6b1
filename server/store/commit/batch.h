/*
 * batch.h -- the profiles of one group commit: encoded once, sent as often as it takes (private to
 * the store).
 *
 * One script, one message:
 *
 *   BEGIN; INSERT ingest_batch (a row per service) RETURNING (the ingest lock, shared);
 *   SELECT watermarks; [INSERT push_id .. RETURNING;]
 *   [COPY dict_chunk leaf;]...  [COPY span_fresh;]  COPY profile leaf; [...]  [COPY profile_late;]  COMMIT
 *
 * PostgreSQL stops at each COPY and asks for its rows, so a batch costs 1 + the number of its COPYs
 * round trips: two in the common case (one day, no new stacks, no ids of spans), never more than the days and
 * dictionaries call for. Each statement has its own snapshot.
 *
 * Late. A profile before its service's watermark goes to profile_late. The watermark must be read
 * under the ingest lock: whoever raises it then waits for those who hold the lock
 * (docs/decisions/0011-roll-ups.md). Whether anything is late is known only then, and the COPY of
 * late rows costs a round trip, so the script has one when a profile is older than the watermarks
 * that this committer has seen; guessed wrong, the transaction is given up and sent anew with it.
 * Late profiles need no leaf, so that they are stored while the leaf of their day is dropped.
 *
 * Outcome. PostgreSQL can commit from the moment the last COPY's end is sent; from then until an
 * answer the batch is in doubt. A later attempt under the same seq settles it: its INSERT either
 * fails with 23505 (the earlier one was committed; a twin still running is waited for by the unique
 * index) or succeeds (it was not).
 *
 * Threads: confined to its committer.
 */
#ifndef HEARTH_STORE_BATCH_H
#define HEARTH_STORE_BATCH_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_batch_item {
    struct hearth_push_item *item;
    size_t day;                /* index into days */
    size_t rows_from, rows_to; /* its part of that day's rows */
    bool twin;                 /* repeats the id of an earlier item of this batch: no rows */
    bool repeated;             /* PostgreSQL says: stored within the hour; as of the last attempt */
    bool late;                 /* before its service's watermark; as of the last attempt */
    bool blocked;              /* its day has no leaf, and it is not late; as of the last attempt */
};

struct hearth_batch_day {
    int32_t day;
    struct hearth_buf chunks, rows; /* COPY rows of dict_chunk, of profile */
    bool avoids_leaf;               /* there is none: only late rows of the day can be stored */
};

struct hearth_batch_dict {
    int32_t service_id;
    struct hearth_ingest_dict *dict;
    bool cut;
    struct hearth_dict_mark upto;
};

struct hearth_batch_id {
    int32_t service_id;
    struct hearth_hash128 hash;
    size_t item;
};

/* An item with associations that is no twin. */
struct hearth_batch_spans {
    int32_t service_id;
    size_t item;
};

struct hearth_batch_mark {
    int32_t service_id;
    int64_t watermark_ns;
};

struct hearth_batch {
    struct hearth_arena arena;
    int32_t writer_id;
    int64_t seq;
    struct hearth_batch_item *items;
    struct hearth_batch_dict *dicts; /* distinct, sorted by service */
    struct hearth_batch_id *ids;     /* distinct, sorted */
    struct hearth_batch_day *days;
    struct hearth_batch_spans *spans; /* sorted by service */
    size_t n_items, n_dicts, n_ids, n_days, n_spans;
    size_t n_avoided; /* days without a leaf */
    struct hearth_buf script;
    size_t n_claim_bytes; /* of the script, up to and with the batch rows */
    size_t n_copies;
    struct hearth_batch_mark *marks; /* of the last attempt, by service; room for n_dicts */
    size_t n_marks;
    int64_t at_ns;
    bool with_late;     /* the script has the COPY of late rows */
    bool in_doubt;      /* an attempt may have committed */
    unsigned n_results; /* of the last attempt: 2 and more say that the ingest_batch rows went in */
};

/*
 * Encode items (kept until release). at_ns: the time of push ids. late_below_ns: older profiles are
 * probably late (a guess). Cuts the dictionaries; the same cut goes with every attempt. Returns OK;
 * NO_MEMORY. Release it either way.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_batch_encode(struct hearth_batch *batch, struct hearth_push_item *const *items,
                    size_t n_items, int32_t writer_id, int64_t seq, int64_t at_ns,
                    int64_t late_below_ns, struct hearth_err *err);
/* Which leaves the day of the index needs: bits of HEARTH_LEAF_... */
unsigned hearth_batch_leaves(const struct hearth_batch *batch, size_t day);
/*
 * Between attempts: the leaf of that day cannot be had, or can again. Without it a send fails with RETRY when a profile
 * of the day is not late. NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_avoid_leaf(struct hearth_batch *batch, size_t day,
                                                             bool avoid, struct hearth_err *err);
/* After a send that failed: how many items were blocked. */
size_t hearth_batch_blocked(const struct hearth_batch *batch);
/* After a successful send: rows that went to profile_late; the highest watermark read (INT64_MIN: none). */
int64_t hearth_batch_late_rows(const struct hearth_batch *batch);
int64_t hearth_batch_watermark(const struct hearth_batch *batch);
void hearth_batch_release(struct hearth_batch *batch);

/*
 * Was an earlier attempt committed? Asked by the batch rows alone, which are rolled back. OK: it was
 * not, and cannot be any more. A failure with UNIQUE: it was.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_probe(struct hearth_batch *batch,
                                                        struct hearth_pg *pg,
                                                        enum hearth_pg_fault *ret_fault,
                                                        struct hearth_err *err);

/* ---- batch.c, for batch_send.c ---- */

/* The rows of the day are copied into its leaf. */
static inline bool hearth_batch_fills_leaf(const struct hearth_batch_day *day)
{
    return day->rows.n > 0 && !day->avoids_leaf;
}

/* Compare by service and hash: the order of batch->ids. */
int hearth_batch_compare_ids(const struct hearth_batch_id *a, const struct hearth_batch_id *b);
/* Between attempts: write the script again, with a COPY of late rows. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_add_late_copy(struct hearth_batch *batch,
                                                                struct hearth_err *err);

/* ---- batch_spans.c ---- */
#define HEARTH_SPAN_FRESH_COLUMNS   "service_id, n_associations, associations"
#define HEARTH_N_SPAN_FRESH_COLUMNS 3
/* After the twins are known. */
void hearth_batch_collect_spans(struct hearth_batch *batch);
/* The rows of a COPY into span_fresh. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_put_spans(const struct hearth_batch *batch,
                                                            struct hearth_pg *pg,
                                                            enum hearth_pg_fault *ret_fault,
                                                            struct hearth_err *err);
/* After a successful send: how many there were. */
int64_t hearth_batch_associations(const struct hearth_batch *batch);

/* One attempt on a connected pg. A failure leaves the transaction to be rolled back. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_send(struct hearth_batch *batch,
                                                       struct hearth_pg *pg,
                                                       enum hearth_pg_fault *ret_fault,
                                                       struct hearth_err *err);

#endif
