/*
 * span_stored.h -- spans as they were stored, for questions about ids (private to the engine).
 *
 * Threads: one request is one thread. Ownership: in the query's arena.
 */
#ifndef HEARTH_ENGINE_SPAN_STORED_H
#define HEARTH_ENGINE_SPAN_STORED_H

#include "hearth/engine/span_profiles.h"
#include "hearth/store/store_spans.h"

struct hearth_stored_group {
    struct hearth_span_group group;
    struct hearth_span *spans; /* by id */
    size_t n_spans;
};

/* Groups, unpacked. */
struct hearth_stored_groups {
    struct hearth_stored_group *v;
    size_t n;
    bool is_cut; /* there are more than max_lookup_spans allows */
};

/* What `asked` finds (store/store_spans.h; its limit is set here). */
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_groups_read(const struct hearth_query *query,
                                             const struct hearth_span_query *asked,
                                             struct hearth_stored_groups *ret,
                                             struct hearth_err *err);

/* Groups that the index of spans names for these: not each has one, and not each of them is in one. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_groups_of_spans(const struct hearth_query *query,
                                                 const uint64_t *span_ids, size_t n,
                                                 struct hearth_stored_groups *ret,
                                                 struct hearth_err *err);

/* The texts under which a trace may be stored, that a question's text means. In arena; NULL: it is full. */
#define HEARTH_TRACE_TEXTS (HEARTH_TRACE_ID_MEANINGS + 1)
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_trace_texts(struct hearth_str id, struct hearth_arena *arena,
                                             struct hearth_str ret[HEARTH_TRACE_TEXTS],
                                             size_t *ret_n, struct hearth_err *err);

/* NULL: not in it. Only ids of eight bytes are looked for. */
const struct hearth_span *hearth_stored_span_in(const struct hearth_stored_group *group,
                                                uint64_t span_id);
/* In arena; NULL: it is full. */
const struct hearth_stored_span *hearth_stored_span_make(const struct hearth_stored_group *group,
                                                         const struct hearth_span *span,
                                                         struct hearth_arena *arena);

/*
 * What is stored of the spans of these rows, or of their local roots: of several with the id, that of the row's trace first. One
 * question for all; none where no spans are stored. A row is worth showing without: of errors only NO_MEMORY, CANCELLED and
 * DEADLINE_EXCEEDED are returned.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stored_spans_of_rows(const struct hearth_query *query, bool of_roots,
                                               struct hearth_span_row *rows, size_t n,
                                               struct hearth_err *err);

/* The ids that a profiler gave samples of the span, where its tracer says so (tag pyroscope.profile.id); how many. */
size_t hearth_stored_profile_ids(const struct hearth_span *span,
                                 uint64_t ret[HEARTH_SPAN_ID_MEANINGS]);

/*
 * The ids of these spans and of all spans below them, across services, as far as they are stored: ascending. missing: of
 * these spans, which are not stored. The index of spans says where they are.
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
