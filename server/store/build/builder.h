/*
 * builder.h -- the thread that does what nobody waits for: roll-ups, late profiles, compaction,
 * deletion, retention (private to the store).
 *
 * Each server runs one; the holder of the lease (hearth_data.lease, row "builder") works. A round
 * runs the steps of builder.c in order; each does a bounded piece (about a second, a transaction or
 * a few) and says whether there is more. Every transaction that writes begins with
 * hearth_builder_begin: it share-locks the lease row and compares the token, so a server that lost
 * the lease while it slept cannot write, and one that is writing cannot lose it.
 *
 * Steps: roll_close.c (close and build buckets), roll_fold.c (late profiles), erase_step.c
 * (tombstones), rule_step.c (recording rules), span_fold.c (the span index), compact.c (closed hours into segments), retention_step.c (days past their time,
 * catalogue sweep).
 *
 * Threads: a struct hearth_builder belongs to its thread.
 */
#ifndef HEARTH_STORE_BUILDER_H
#define HEARTH_STORE_BUILDER_H

#include "hearth/codec/compress.h"
#include "hearth/store/store.h"

#include "build/span_work.h"
#include "pg/pg.h"

#define HEARTH_LEASE_BUILDER "builder"

struct hearth_builder {
    struct hearth_store *store;
    struct hearth_pg pg;     /* its own connection; its cancel is set when the store closes */
    int64_t token;           /* of the lease; 0: not held */
    int64_t renewed_mono_ns; /* when the lease was */
    struct hearth_inflater *inflater;
    struct hearth_packer *packer;
    struct hearth_close *close; /* roll_close.c: the barrier it waits at */
    int64_t next_fold_mono_ns;  /* roll_fold.c: when the next pass over all services begins */
    int32_t fold_after;         /* and the last service that this one has done */
    int64_t next_days_mono_ns;  /* compact_days.c: when it looks again */
    int64_t next_marks_mono_ns; /* rule_step.c: likewise, for buckets that changed */
    int64_t rules_after;        /* and the last rule that had its turn */
    int64_t next_spans_mono_ns; /* span_fold.c: when few fresh associations are folded, too */
    struct hearth_span_merge merges[256]; /* and whose parts it looks at: the last one first */
    size_t n_merges;
    /* roll_write.c: what a roll-up gathers before it writes; 0: 256 MiB of sums, 32 MiB of rows */
    size_t max_sum_bytes, max_send_bytes;
};

/* OK, with *ret_more when it should be called again soon. Leaves no transaction open, failing or not. */
typedef enum hearth_status hearth_builder_step(struct hearth_builder *builder, bool *ret_more,
                                               struct hearth_err *err);

hearth_builder_step hearth_step_close, hearth_step_fold, hearth_step_rules, hearth_step_erase,
    hearth_step_spans, hearth_step_compact, hearth_step_retention;
/* Gives the tables of hearth_dropped_partitions_total their lines. */
void hearth_retention_declare_metrics(void);

/*
 * rule_step.c, in a transaction that changes what buckets of the service hold: they are summed again
 * for the recording rules of its tenant. Begins of buckets of 10 minutes, in any order.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_rules_mark(struct hearth_builder *builder,
                                                       int32_t service_id, const int64_t *t0s_ns,
                                                       size_t n, struct hearth_err *err);

/* BEGIN, lock the lease, compare the token. FAILED_PRECONDITION when it is another's. */
HEARTH_MUST_CHECK enum hearth_status hearth_builder_begin(struct hearth_builder *builder,
                                                          struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_builder_commit(struct hearth_builder *builder,
                                                           struct hearth_err *err);
/* After a failure; harmless outside a transaction. */
void hearth_builder_rollback(struct hearth_builder *builder);

/*
 * In a transaction: raise the generation of the service's roll_state row, which must exist, and
 * return it: the `part` of what the transaction writes.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_builder_next_generation(struct hearth_builder *builder,
                                                                    int32_t service_id,
                                                                    int64_t *ret_generation,
                                                                    struct hearth_err *err);

/* The thread. _stop waits for the end of the running statement, which it cancels. NULL-safe. */
struct hearth_builder_thread;
HEARTH_MUST_CHECK enum hearth_status hearth_builder_start(struct hearth_store *store,
                                                          struct hearth_builder_thread **ret_thread,
                                                          struct hearth_err *err);
void hearth_builder_stop(struct hearth_builder_thread *thread);
/* Begin the next round now. */
void hearth_builder_wake(struct hearth_builder_thread *thread);

/*
 * compact_days.c: drop the oldest leaf of profile of which nothing counts any more: all that is on it
 * lies in segments. closed_ns: what is before it has been compacted, if anything has.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_compact_days(struct hearth_builder *builder,
                                                         int64_t closed_ns, struct hearth_err *err);

#endif
