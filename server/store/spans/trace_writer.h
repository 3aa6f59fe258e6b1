/*
 * trace_writer.h -- the thread that commits spans and snapshots, and what it needs to know of a batch (private to the
 * store).
 *
 * The queue is bounded in bytes. A batch is what has come within some milliseconds; while it is committed the next one
 * gathers. Everything in it may be written twice, so whatever goes wrong on the way is simply done again.
 */
#ifndef HEARTH_STORE_TRACE_WRITER_H
#define HEARTH_STORE_TRACE_WRITER_H

#include "hearth/store/store_spans.h"

struct hearth_trace_writer;

HEARTH_MUST_CHECK enum hearth_status hearth_trace_writer_start(struct hearth_store *store,
                                                               struct hearth_trace_writer **ret,
                                                               struct hearth_err *err);
/* Commits what is queued until the deadline, fails the rest. NULL-safe. */
void hearth_trace_writer_stop(struct hearth_trace_writer *writer, int64_t deadline_mono_ns);

/* ---- trace_services.c ---- */

#define HEARTH_TRACE_MAX_KNOWN 100000u /* services or instances in memory */

/* Which services and instances were seen lately: ids, and when they were refreshed. The writer's thread's own. */
struct hearth_trace_names {
    struct hearth_idmap services;  /* of tenant and service: service_id */
    struct hearth_idmap refreshed; /* of tenant, service, instance and minute */
};

void hearth_trace_names_init(struct hearth_trace_names *names);
void hearth_trace_names_release(struct hearth_trace_names *names);
struct hearth_hash128 hearth_trace_name_key(const struct hearth_str *parts, size_t n,
                                            uint64_t seed);

/*
 * Services of an item that are not known yet, many at once: one by one, an export with a new service for each span would
 * hold up everybody's for minutes.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_services_know(struct hearth_store *store, struct hearth_trace_names *names,
                           const struct hearth_trace_item *item, struct hearth_cancel *cancel,
                           struct hearth_arena *arena, struct hearth_err *err);
/* From memory, else from the database. */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_service_of(struct hearth_store *store, struct hearth_trace_names *names,
                        struct hearth_str tenant, struct hearth_str service,
                        struct hearth_cancel *cancel, int32_t *ret, struct hearth_err *err);

/* ---- trace_batch.c ---- */

/* Items as one transaction. *ret_fault as in pg.h. */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_batch_store(struct hearth_store *store, struct hearth_trace_names *names,
                         struct hearth_trace_item *const *items, size_t n_items,
                         struct hearth_cancel *cancel, struct hearth_err *err);

#endif
