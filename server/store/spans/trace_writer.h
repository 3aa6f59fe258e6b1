/*
 * trace_writer.h -- the thread that commits spans and snapshots, and the parts of its transaction
 * (private to the store).
 *
 * The queue is bounded in bytes. A batch is the items of some milliseconds; while it is committed,
 * the next one gathers. All rows of a batch may be written twice, so a batch that fails for a
 * passing reason is written again.
 *
 * Threads: _start and _stop: one thread. The functions of batches: the writer's thread.
 */
#ifndef HEARTH_STORE_TRACE_WRITER_H
#define HEARTH_STORE_TRACE_WRITER_H

#include "hearth/store/store_spans.h"

#include "pg/pg.h"

struct hearth_trace_writer;

HEARTH_MUST_CHECK enum hearth_status hearth_trace_writer_start(struct hearth_store *store,
                                                               struct hearth_trace_writer **ret,
                                                               struct hearth_err *err);
/* Commit queued items until the deadline, and fail the rest with UNAVAILABLE. NULL-safe. */
void hearth_trace_writer_stop(struct hearth_trace_writer *writer, int64_t deadline_mono_ns);

/* ---- trace_services.c ---- */

#define HEARTH_TRACE_MAX_KNOWN 100000u /* services or instances in memory */

/* Services and instances that were seen recently; emptied at HEARTH_TRACE_MAX_KNOWN. */
struct hearth_trace_names {
    struct hearth_idmap services;  /* by tenant and service: service_id */
    struct hearth_idmap refreshed; /* by tenant, service, instance and minute: 0 */
};

void hearth_trace_names_init(struct hearth_trace_names *names);
void hearth_trace_names_release(struct hearth_trace_names *names);
struct hearth_hash128 hearth_trace_name_key(const struct hearth_str *parts, size_t n,
                                            uint64_t seed);

/*
 * Remember all services of an item, whose tenant is scope->tenant. Unknown ones are created or read
 * many at once: one by one, an export with a new service for each span would delay the items of all
 * clients by minutes. scope->arena: scratch.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_services_learn(const struct hearth_scope *scope, struct hearth_trace_names *names,
                            const struct hearth_trace_item *item, struct hearth_err *err);
/* The id of a service from memory, otherwise from the database, which creates it. */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_service_find(const struct hearth_scope *scope, struct hearth_trace_names *names,
                          struct hearth_str service, int32_t *ret, struct hearth_err *err);

/* ---- trace_batch.c ---- */

/* Items that are stored in one transaction. */
struct hearth_trace_batch {
    struct hearth_store *store;
    struct hearth_trace_names *names;
    struct hearth_trace_item *const *items;
    size_t n_items;
    struct hearth_cancel *cancel;
    /* Set by hearth_trace_batch_store: */
    struct hearth_trace_part *parts; /* what is left for other nodes to store; the caller's */
    struct hearth_arena arena;
    int64_t now_ms;
};

/*
 * Store the items, but for batch->parts, which are set if it returns OK. UNAVAILABLE,
 * DEADLINE_EXCEEDED: the database is away.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_trace_batch_store(struct hearth_trace_batch *batch,
                                                              struct hearth_err *err);

/* ---- trace_snapshots.c ---- */

/* Within the transaction of a batch: insert its snapshots. *ret_fault as in pg.h. */
HEARTH_MUST_CHECK enum hearth_status hearth_trace_snapshots_insert(struct hearth_trace_batch *batch,
                                                                   struct hearth_pg *pg,
                                                                   enum hearth_pg_fault *ret_fault,
                                                                   struct hearth_err *err);

#endif
