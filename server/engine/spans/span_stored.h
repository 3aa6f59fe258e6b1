/*
 * span_stored.h -- stored spans, for queries by id (private to the engine).
 *
 * Threads: one request runs on one thread. Ownership: results live in the query's arena.
 */
#ifndef HEARTH_ENGINE_SPAN_STORED_H
#define HEARTH_ENGINE_SPAN_STORED_H

#include "hearth/codec/compress.h"
#include "hearth/engine/span_profiles.h"
#include "hearth/store/store_spans.h"

struct hearth_stored_group {
    struct hearth_span_group group;
    struct hearth_span *spans; /* sorted by id */
    size_t n_spans;
};

/* Unpacked groups. */
struct hearth_stored_groups {
    struct hearth_stored_group *v;
    size_t n;
    bool is_cut; /* more spans exist than max_lookup_spans allows */
};

/* Decompress a stored text into arena. The errors of hearth_unpack, and NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_unpack(struct hearth_arena *arena,
                                        struct hearth_inflater *inflater, struct hearth_str packed,
                                        struct hearth_str *ret, struct hearth_err *err);

/* Read the groups that `asked` selects (store/store_spans.h); its limit is set here. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_groups_read(const struct hearth_query *query,
                                             const struct hearth_span_query *asked,
                                             struct hearth_stored_groups *ret,
                                             struct hearth_err *err);

/* The texts under which a trace with the given id may be stored. In arena. */
#define HEARTH_TRACE_TEXTS (HEARTH_TRACE_ID_MEANINGS + 1)
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_trace_texts(struct hearth_str id, struct hearth_arena *arena,
                                             struct hearth_str ret[HEARTH_TRACE_TEXTS],
                                             size_t *ret_n, struct hearth_err *err);

/* Find a span in a group; NULL: it is not in the group. Only ids of eight bytes are compared. */
const struct hearth_span *hearth_stored_span_in(const struct hearth_stored_group *group,
                                                uint64_t span_id);
/* Describe a stored span, in arena; NULL: the arena is full. */
const struct hearth_stored_span *hearth_stored_span_make(const struct hearth_stored_group *group,
                                                         const struct hearth_span *span,
                                                         struct hearth_arena *arena);

/*
 * Add the stored spans, or local roots, to rows; among several with the id, one of the row's trace
 * is preferred. One query reads all of them. Rows are shown without stored spans too: only the
 * errors NO_MEMORY, CANCELLED and DEADLINE_EXCEEDED are returned.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_spans_of_rows(const struct hearth_query *query, bool of_roots,
                                               struct hearth_span_row *rows, size_t n,
                                               struct hearth_err *err);

/*
 * The ids that a profiler attached to samples of the span, if its tracer names them (tag
 * pyroscope.profile.id); returns their number.
 */
size_t hearth_stored_profile_ids(const struct hearth_span *span,
                                 uint64_t ret[HEARTH_SPAN_ID_MEANINGS]);

/*
 * The ids of the given spans and of all their stored descendants, across services, ascending; and
 * in `missing` the given spans that are not stored. The span index says where spans are stored.
 */
struct hearth_span_family {
    uint64_t *ids;
    size_t n;
    uint64_t *missing;
    size_t n_missing;
    bool is_cut;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_stored_family(const struct hearth_query *query, const uint64_t *span_ids,
                                        size_t n, struct hearth_span_family *ret,
                                        struct hearth_err *err);

#endif
