/*
 * span_lookup.h -- one span or trace of a lookup, with the facts found about it (private to the
 * engine).
 *
 *   span_lookup.c  finds the facts of all subjects together
 *   span_answer.c  makes the answer: exact, by window, or why there is none
 */
#ifndef HEARTH_ENGINE_SPAN_LOOKUP_H
#define HEARTH_ENGINE_SPAN_LOOKUP_H

#include "spans/span_exact.h"
#include "spans/span_stored.h"

struct hearth_lookup_subject {
    const struct hearth_span_subject *asked;
    uint64_t spans[HEARTH_SPAN_ID_MEANINGS];
    size_t n_spans;
    struct hearth_trace_id traces[HEARTH_TRACE_ID_MEANINGS];
    size_t n_traces;
    /* Stored groups: all groups of a trace, or the groups that contain a span. */
    const struct hearth_stored_group **groups;
    size_t n_groups, cap_groups;
    const struct hearth_stored_span *stored; /* the stored span; NULL: not stored, or a trace */
    /* Limit of stored spans in the answer; all answers of a request share max_lookup_spans. */
    size_t max_stored;
    const struct hearth_exact
        *exact;       /* [2]: samples of the id, and of those with this local root */
    int64_t since_ns; /* time at which the span index begins */
    bool is_cut;      /* the index names more profiles than were read */
    bool is_expired;  /* the index names profiles that retention has removed */
};

/* Whether an id of a span is neither hexadecimal nor decimal. */
static inline bool hearth_lookup_is_text(struct hearth_str id)
{
    uint64_t number;
    return id.n > 0 && !(id.n == HEARTH_SPAN_ID_TEXT && hearth_str_hex_to_u64(id, &number)) &&
           !hearth_str_to_u64(id, &number);
}

/* Make the answer of a subject. */
HEARTH_MUST_CHECK
enum hearth_status hearth_lookup_answer(const struct hearth_query *query,
                                        const struct hearth_lookup_options *options,
                                        const struct hearth_lookup_subject *subject,
                                        struct hearth_found *ret, struct hearth_err *err);

#endif
