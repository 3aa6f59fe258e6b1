/*
 * trace_parts.h -- groups of spans as rows, and their division among the nodes of distributed
 * tables (private to the store).
 *
 * Threads: confined to the thread that writes; a part belongs to one thread at a time.
 */
#ifndef HEARTH_STORE_TRACE_PARTS_H
#define HEARTH_STORE_TRACE_PARTS_H

#include "hearth/store/store_spans.h"

#include "pg/pg.h"

/* A row of span_group; its texts belong to the item. */
struct hearth_trace_row {
    int32_t service_id;
    int64_t start_ns, segment_key, trace_key, duration_ns;
    int32_t n_spans, kind, flags; /* flags: enum hearth_span_group_flags, and trace_batch.c's */
    struct hearth_str trace_id, segment_id, instance, endpoint, spans;
    struct hearth_trace_item *item;
};

/* The rows of one item for one node. */
struct hearth_trace_part {
    struct hearth_trace_part *next;
    struct hearth_trace_item *item;
    unsigned node;
    size_t n;
    struct hearth_trace_row rows[];
};

/* Insert rows; stored ones are ignored. *ret_fault as in pg.h. */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_rows_insert(const struct hearth_trace_row *rows, size_t n, struct hearth_pg *pg,
                         struct hearth_arena *arena, struct hearth_cancel *cancel,
                         enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/*
 * Make the parts of rows, which are sorted by item. Each counts in its item->n_parts. After
 * NO_MEMORY, no part was made.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_trace_parts_make(struct hearth_store *store, const struct hearth_trace_row *rows, size_t n,
                        struct hearth_trace_part **ret, struct hearth_err *err);

/* Where parts go. */
struct hearth_trace_target {
    struct hearth_store *store;
    struct hearth_cancel *cancel; /* of all statements */
    unsigned node;
    struct hearth_pg pg; /* connected when it is needed; the owner closes it */
};

/*
 * Try once to store a list of parts in one transaction. UNAVAILABLE, DEADLINE_EXCEEDED: the node or
 * the coordinator is away. ABORTED: a service was removed meanwhile, or a leaf cannot be made while
 * another node is lost; parts of other services and days may be stored.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_trace_parts_store(struct hearth_trace_target *to,
                                                              const struct hearth_trace_part *parts,
                                                              struct hearth_err *err);

#endif
