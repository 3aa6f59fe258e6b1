/*
 * batch.h -- the profiles of one group commit: encoded once, sent until the outcome is known
 * (private to the store).
 *
 * One script, one message:
 *
 *   BEGIN; INSERT ingest_batch RETURNING (the ingest lock, shared);
 *   SELECT watermarks; [INSERT push_id .. RETURNING;]
 *   [COPY dict_chunk leaf;]...  [COPY span_fresh;]  [COPY original;]  COPY profile leaf; [...]
 *   [COPY profile_late;]  COMMIT
 *
 * PostgreSQL stops at each COPY to receive its rows, so a batch costs one round trip plus one for
 * each COPY: two in the common case (one day, no new stacks, no ids of spans, no originals). Each
 * statement has its own snapshot.
 *
 * On a node of distributed tables, span_fresh and original are not: they are tables of the
 * catalogue. Before the first COPY ends, a transaction of their own stores their rows on the
 * coordinator (batch_catalog.c).
 *
 * There, the script names the tables of the shards, if the map of nodes knows them
 * (batch_shards.c), and has a COPY for each of them. Without a pooler, a function of Citus locks
 * them, one batch row is enough, and a prepared statement for each of them reads its watermarks.
 *
 * A batch of few rows is sent in another way, if that is possible (batch_prepared.h).
 *
 * Late. A profile before its service's watermark is stored in profile_late. The watermark must be
 * read under the ingest lock: the builder, which raises it, waits for all holders of the lock
 * (docs/decisions/0011-roll-ups.md). Only then late profiles are known, and the COPY of late rows
 * costs a round trip, so the script has one only if a profile is older than the watermarks that
 * this committer has read. If a profile is late without it, the transaction is rolled back and sent
 * again with it. Late profiles need no leaf, so they are stored while the leaf of their day is
 * dropped.
 *
 * Outcome. PostgreSQL can commit as soon as the end of the last COPY is sent. From then until an
 * answer, the batch is in doubt. A later attempt under the same seq settles it: its INSERT either
 * fails with 23505 (the earlier attempt was committed; the unique index waits for an attempt that
 * still runs) or succeeds (it was not committed). An INSERT into the table of a shard succeeds also
 * if the shard has moved, so the batch stays in doubt until the count of shards is known.
 *
 * Threads: confined to its committer.
 */
#ifndef HEARTH_STORE_BATCH_H
#define HEARTH_STORE_BATCH_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_commit_statements;
struct hearth_nodes;
struct hearth_shard;

struct hearth_batch_item {
    struct hearth_push_item *item;
    size_t day;                /* index into days */
    size_t shard;              /* index into shards; 0 without shards */
    size_t rows_from, rows_to; /* its bytes in the rows of the day */
    bool twin;                 /* has the id of an earlier item of the batch: no rows */
    /* Results of the last attempt: */
    bool repeated; /* stored within the last hour already */
    bool late;     /* before its service's watermark */
    bool blocked;  /* not late, and its day has no leaf; or that leaf cannot be made */
};

struct hearth_batch_day {
    int32_t day;
    struct hearth_buf chunks, rows; /* COPY rows of dict_chunk, of profile */
    bool avoids_leaf;               /* the day has no leaf: only its late rows can be stored */
    bool lacks_leaves;              /* they cannot be made: a node does not answer */
};

struct hearth_batch_dict {
    int32_t service_id;
    struct hearth_ingest_dict *dict;
    size_t shard; /* index into shards; 0 without shards */
    bool cut;     /* a chunk is in the batch, up to `upto` */
    struct hearth_dict_mark upto;
    size_t day;                  /* of the chunk: index into days */
    size_t chunk_from, chunk_to; /* its bytes in the chunks of the day */
};

struct hearth_batch_id {
    int32_t service_id;
    struct hearth_hash128 hash;
    size_t item;
};

/* An item that has associations and is no twin. */
struct hearth_batch_spans {
    int32_t service_id;
    size_t item;
};

struct hearth_batch_mark {
    int32_t service_id;
    int64_t watermark_ns;
};

enum hearth_batch_copy_kind {
    HEARTH_COPY_CHUNKS,
    HEARTH_COPY_SPANS,
    HEARTH_COPY_ORIGINALS,
    HEARTH_COPY_PROFILES,
    HEARTH_COPY_LATE,
};

/* A COPY of the script. */
struct hearth_batch_copy {
    enum hearth_batch_copy_kind kind;
    size_t day, shard; /* whose rows it has, as far as that matters */
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
    struct hearth_pg *catalog; /* for a transaction of its own; NULL: the script writes all */
    uint32_t catalog_key;      /* names the committer among those of the server */
    struct hearth_commit_statements *statements; /* of the committer; NULL: only scripts */
    size_t max_small_rows;                       /* of a batch that is sent by them */
    /* Of the last attempt: whether it lost this connection during the transaction, and an error. */
    bool catalog_lost;
    enum hearth_status catalog_status;
    enum hearth_pg_fault catalog_fault;
    struct hearth_err catalog_err;
    bool is_lacking;    /* of the last attempt: items are blocked because leaves cannot be made */
    size_t n_avoided;   /* days without a leaf */
    size_t n_originals; /* of items that are no twins */
    struct hearth_buf script;
    struct hearth_batch_copy *copies; /* of the script, in its order */
    size_t n_copies;
    struct hearth_shard *shards; /* whose tables the script names, sorted; batch_shards.c */
    size_t *first_of_shard;      /* index of its first dictionary; [n_shards] */
    size_t n_shards;             /* 0: it names the data tables */
    struct hearth_nodes *nodes;  /* whose map has the shards */
    bool is_prepared;            /* the script runs a prepared statement for each of them */
    bool
        locks_shards; /* the script calls Citus' function for it, and names a shard of batch rows */
    /* Of the last attempt: the placements that the node had, and whether it lacked some. */
    int64_t n_placed;
    bool has_moved;
    struct hearth_batch_mark *marks; /* of the last attempt, sorted by service; [n_dicts] */
    size_t n_marks;
    int64_t at_ns;       /* time of push ids */
    bool with_late;      /* the script has the COPY of late rows */
    bool in_doubt;       /* an attempt may have committed */
    bool is_distributed; /* the ingest lock is a statement before the INSERT: nodes/layout.h */
    unsigned n_results;  /* of the last attempt, without COPYs: HEARTH_BATCH_CLAIMED and others */
};

/*
 * Results of the script, by number. Where the ingest lock is no statement of its own, the count
 * begins at 1.
 */
enum {
    HEARTH_BATCH_LOCKED = 2,
    HEARTH_BATCH_CLAIMED = 3,    /* with so many results or more, the batch rows were inserted */
    HEARTH_BATCH_WATERMARKS = 4, /* the first of hearth_batch_mark_results() */
};

/* What a batch is made of. */
struct hearth_batch_input {
    const struct hearth_store *store;
    struct hearth_push_item *const *items; /* kept until the release */
    size_t n_items;                        /* at least 1 */
    int64_t seq;
    int64_t at_ns;         /* the time of push ids */
    int64_t late_below_ns; /* older profiles are probably late (a guess) */
    /* For rows of the catalogue, if the batch is sent to a node; connected when it is needed. */
    struct hearth_pg *catalog;
    unsigned committer;         /* its number: one transaction of the catalogue at a time */
    struct hearth_nodes *nodes; /* whose map has the shards; NULL: the script names none */
    unsigned node;              /* that of the committer */
    struct hearth_commit_statements *statements; /* of the committer; NULL: only scripts */
    struct hearth_zstd_tables *tables;           /* of the committer, for chunks; or NULL */
};

/*
 * Encode a batch. Cuts the dictionaries: all attempts have the same chunks. NO_MEMORY. Release the
 * batch in any case.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_encode(struct hearth_batch *batch,
                                                         const struct hearth_batch_input *input,
                                                         struct hearth_err *err);
/* Return the leaves that days[day] needs: bits of HEARTH_LEAF_... */
unsigned hearth_batch_leaves(const struct hearth_batch *batch, size_t day);
/*
 * Between attempts: set whether days[day] has no leaf. Without it, a send fails with RETRY if a
 * profile of the day is not late. NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_avoid_leaf(struct hearth_batch *batch, size_t day,
                                                             bool avoid, struct hearth_err *err);
/*
 * Before a send: mark the items that need a leaf or a chunk of a day that lacks leaves. Returns
 * whether there are any.
 */
bool hearth_batch_mark_lacking(struct hearth_batch *batch);
/* After that, or a send that failed: return the number of blocked items. */
size_t hearth_batch_blocked(const struct hearth_batch *batch);
/* After a successful send: return the number of rows in profile_late. */
int64_t hearth_batch_late_rows(const struct hearth_batch *batch);
/* After a successful send: return the highest watermark that it read; INT64_MIN: no watermark. */
int64_t hearth_batch_watermark(const struct hearth_batch *batch);
void hearth_batch_release(struct hearth_batch *batch);

/*
 * Find out whether an earlier attempt was committed, by inserting the batch rows only, which are
 * rolled back. OK: it was not, and cannot be any more. A failure with UNIQUE: it was.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_probe(struct hearth_batch *batch,
                                                        struct hearth_pg *pg,
                                                        enum hearth_pg_fault *ret_fault,
                                                        struct hearth_err *err);

/* ---- batch.c, for batch_send.c and batch_prepared.c ---- */

#define HEARTH_CHUNK_COLUMNS \
    "service_id, day, writer_id, first_stack, first_string, n_stacks, payload"
#define HEARTH_N_CHUNK_COLUMNS 7

/* The number of results before the first one. */
static inline unsigned hearth_batch_first_result(const struct hearth_batch *batch)
{
    return batch->is_distributed ? 0 : 1;
}

/* The number of results that have watermarks. */
static inline size_t hearth_batch_mark_results(const struct hearth_batch *batch)
{
    return batch->is_prepared ? batch->n_shards : 1;
}

/* The rows of the day are copied into its leaf. */
static inline bool hearth_batch_fills_leaf(const struct hearth_batch_day *day)
{
    return day->rows.n > 0 && !day->avoids_leaf;
}

/* Compare by service and hash: the order of batch->ids. */
int hearth_batch_compare_ids(const struct hearth_batch_id *a, const struct hearth_batch_id *b);

/* ---- batch_script.c ---- */
/* Append the beginning of a script for any node, up to the INSERT of batch rows. */
void hearth_batch_write_claim(const struct hearth_batch *batch, struct hearth_buf *out);
/* Between attempts: write the script again. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_write_script(struct hearth_batch *batch,
                                                               struct hearth_err *err);
/* The same, with COPYs of late rows. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_add_late_copy(struct hearth_batch *batch,
                                                                struct hearth_err *err);
/* Append the ids of the shards, as the text of an array. */
void hearth_batch_write_shard_ids(const struct hearth_batch *batch, struct hearth_buf *out);
/*
 * Selects the number of shards of a list that the node has, as of service 0. The coordinator, which
 * may take over from a node, is a group without these shards.
 */
#define HEARTH_SELECT_PLACED                                                                \
    "SELECT 0 AS service_id, count(*) AS watermark FROM pg_catalog.pg_dist_placement WHERE" \
    " groupid = (SELECT groupid FROM pg_catalog.pg_dist_local_group) AND shardid = "
/* Append what adds the watermarks of a shard's services, up to their array. */
void hearth_batch_select_watermarks(struct hearth_buf *out, const struct hearth_shard *shard);

/* ---- batch_shards.c ---- */
/* Compare by service and dictionary: the order of batch->dicts. */
int hearth_batch_compare_dicts(const void *left, const void *right);
/* Set the shards of dictionaries and items, if all are known and lie on the node. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status
hearth_batch_find_shards(struct hearth_batch *batch, unsigned node, struct hearth_err *err);
/* ShareLock, as PostgreSQL numbers the modes of locks (storage/lockdefs.h). */
#define HEARTH_SHARE_LOCK "5"
/*
 * Before a send, outside a transaction: prepare the statements of shards, if the connection allows
 * it, find out how it locks them, and write the script again if it is another one now. Only a lost
 * connection, and NO_MEMORY, are failures.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_prepare_shards(struct hearth_batch *batch,
                                                                 struct hearth_pg *pg,
                                                                 enum hearth_pg_fault *ret_fault,
                                                                 struct hearth_err *err);
/*
 * After an attempt that failed on an open connection: whether the reason may be that the script
 * named the tables of shards.
 */
bool hearth_batch_blames_shards(const struct hearth_batch *batch, enum hearth_pg_fault fault);
/* Between attempts: name the data tables from now on, and let the map be read again. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_leave_shards(struct hearth_batch *batch,
                                                               struct hearth_err *err);

/* ---- batch_spans.c ---- */
#define HEARTH_SPAN_FRESH_TABLE     "hearth_data.span_fresh"
#define HEARTH_SPAN_FRESH_COLUMNS   "service_id, n_associations, associations"
#define HEARTH_N_SPAN_FRESH_COLUMNS 3
/* Set batch->spans. The twins are known. */
void hearth_batch_collect_spans(struct hearth_batch *batch);
/* Put the rows of the COPY into span_fresh. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_put_spans(const struct hearth_batch *batch,
                                                            struct hearth_pg *pg,
                                                            enum hearth_pg_fault *ret_fault,
                                                            struct hearth_err *err);
/* After a successful send: return the number of associations that were stored. */
int64_t hearth_batch_associations(const struct hearth_batch *batch);

/* ---- batch_catalog.c ---- */

#define HEARTH_CATALOG_CONNECT_MS 5000
/*
 * Within an attempt, when repeated profiles are known, and before a COMMIT of the data can be sent:
 * store the rows of the catalogue. Does nothing if the script writes them, or there are none.
 * Returns whether the attempt goes on; otherwise batch->catalog_err says why not.
 */
HEARTH_MUST_CHECK bool hearth_batch_write_catalog(struct hearth_batch *batch);

/* ---- batch_originals.c ---- */
#define HEARTH_ORIGINAL_TABLE "hearth_data.original"
#define HEARTH_ORIGINAL_COLUMNS \
    "service_id, writer_id, profile_no, part, ts, name, n_bytes, payload, client_tags"
#define HEARTH_N_ORIGINAL_COLUMNS 9
/* Return the number of items that have an original. The twins are known. */
size_t hearth_batch_count_originals(const struct hearth_batch *batch);
/* Whether the file of an item is stored; known once repeated profiles are. */
bool hearth_batch_stores_original(const struct hearth_batch_item *entry);
/* Put the rows of the COPY into original. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_put_originals(const struct hearth_batch *batch,
                                                                struct hearth_pg *pg,
                                                                enum hearth_pg_fault *ret_fault,
                                                                struct hearth_err *err);
/* After a successful send: add the stored originals to the metrics. */
void hearth_batch_meter_originals(const struct hearth_batch *batch);

/* Attempt once, on a connected pg. After a failure, the caller rolls the transaction back. */
HEARTH_MUST_CHECK enum hearth_status hearth_batch_send(struct hearth_batch *batch,
                                                       struct hearth_pg *pg,
                                                       enum hearth_pg_fault *ret_fault,
                                                       struct hearth_err *err);

#endif
