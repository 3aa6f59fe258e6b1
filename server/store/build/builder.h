/*
 * builder.h -- the thread of the background work: roll-ups, late profiles, compaction, deletion,
 * retention (private to the store).
 *
 * Each server runs one; the holder of the lease (hearth_data.lease, row "builder") works. A round
 * runs the steps of builder.c in order; each does a bounded piece (about a second, a transaction or
 * a few) and says whether it has more work. Every transaction that writes begins with
 * hearth_builder_begin: it share-locks the lease row and compares the token, so a server that lost
 * the lease while it slept cannot write, and one that is writing cannot lose it.
 *
 * Steps, in their order:
 *   roll_close.c       closes buckets and builds them
 *   roll_fold.c        folds late profiles
 *   roll_fill.c        writes absent hours and days before their profiles are dropped
 *   rule_step.c        sums buckets for recording rules
 *   erase_step.c       removes the rows that tombstones hide
 *   span_fold.c        folds fresh associations into the span index
 *   compact.c          compacts closed hours into segments
 *   retention_step.c   drops days past their retention, sweeps the catalogue
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
    struct hearth_pg pg;     /* its own connection; cancelled when the store closes */
    int64_t token;           /* of the lease; 0: another server has it */
    int64_t renewed_mono_ns; /* when the lease was taken or renewed last */
    struct hearth_inflater *inflater;
    struct hearth_packer *packer;
    struct hearth_close *close; /* roll_close.c: the barrier at which it waits */
    int64_t next_fold_mono_ns;  /* roll_fold.c: when the next pass over all services begins */
    int64_t next_fill_mono_ns;  /* roll_fill.c: when it looks at all services again */
    int32_t fold_after;         /* the last service of this pass that is done */
    int64_t next_days_mono_ns;  /* compact_days.c: when it searches for days to drop again */
    int64_t next_marks_mono_ns; /* rule_step.c: when it sums changed buckets again */
    int64_t rules_after;        /* the last rule that had its turn */
    int64_t next_spans_mono_ns; /* span_fold.c: when it folds even a few fresh associations */
    struct hearth_span_merge merges[256]; /* whose parts to merge, the last one first */
    size_t n_merges;
    /* roll_write.c: memory of a roll-up before it is written; 0: 256 MiB of sums, 32 MiB of rows */
    size_t max_sum_bytes, max_send_bytes;
};

/* *ret_more: it has more work, call it again soon. Never leaves a transaction open. */
typedef enum hearth_status hearth_builder_step(struct hearth_builder *builder, bool *ret_more,
                                               struct hearth_err *err);

hearth_builder_step hearth_step_close, hearth_step_fold, hearth_step_fill, hearth_step_rules,
    hearth_step_erase, hearth_step_spans, hearth_step_compact, hearth_step_retention;

/* Declare the tables of the metric hearth_dropped_partitions_total, so that all are listed. */
void hearth_retention_declare_metrics(void);

/*
 * In a transaction that changes the contents of buckets: mark them, so that they are summed again
 * for the recording rules of the service's tenant. t0s_ns: the begins of n buckets of 10 minutes,
 * in any order (rule_step.c).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_rules_mark(struct hearth_builder *builder,
                                                       int32_t service_id, const int64_t *t0s_ns,
                                                       size_t n, struct hearth_err *err);

/* ---- lease.c ---- */

/*
 * Renew the lease, or take it if it has expired, outside a transaction. Sets the token to 0 if
 * another server holds it.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_lease_take(struct hearth_builder *builder,
                                                       struct hearth_err *err);

/* End the lease when the thread ends, so that the next server need not wait for its expiry. */
void hearth_lease_release(struct hearth_builder *builder);

/*
 * Begin a transaction: lock the lease and compare the token. FAILED_PRECONDITION: another server
 * has the lease. The connection must not be in a transaction.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_builder_begin(struct hearth_builder *builder,
                                                          struct hearth_err *err);

HEARTH_MUST_CHECK enum hearth_status hearth_builder_commit(struct hearth_builder *builder,
                                                           struct hearth_err *err);

/* Roll back after a failure; does nothing outside a transaction. */
void hearth_builder_rollback(struct hearth_builder *builder);

/*
 * In a transaction: raise the generation of the service's roll_state row, which must exist, and
 * return it: the `part` of what the transaction writes.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_builder_next_generation(struct hearth_builder *builder,
                                                                    int32_t service_id,
                                                                    int64_t *ret_generation,
                                                                    struct hearth_err *err);

/* ---- builder.c ---- */

/*
 * The thread. _start: the store has its writer id; the first round begins a second later, or
 * builder_interval_ns if that is shorter, so that it takes no processor from first queries. _stop
 * cancels the running statement and waits for the end of the thread; NULL-safe.
 */
struct hearth_builder_thread;
HEARTH_MUST_CHECK enum hearth_status hearth_builder_start(struct hearth_store *store,
                                                          struct hearth_builder_thread **ret_thread,
                                                          struct hearth_err *err);
void hearth_builder_stop(struct hearth_builder_thread *thread);

/* Begin the next round now. */
void hearth_builder_wake(struct hearth_builder_thread *thread);

/*
 * Drop the oldest leaf of `profile` whose rows all lie in segments, if any; at most once a minute.
 * Only days that end at or before closed_ns are considered (compact_days.c).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_compact_days(struct hearth_builder *builder,
                                                         int64_t closed_ns, struct hearth_err *err);

#endif
