/*
 * span_lookup.h -- what is known of one span or trace that is asked about (private to the engine).
 *
 *   span_lookup.c  finding it, of all together
 *   span_answer.c  to an answer: exact, by window, or why not
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
    /* Stored: of a trace all of its groups, of a span those it is in. */
    const struct hearth_stored_group **groups;
    size_t n_groups, cap_groups;
    const struct hearth_stored_span *stored; /* of a span; NULL: not stored */
    size_t max_stored; /* in its answer: all answers of a request share the limit */
    bool is_cut;       /* the index names more profiles than were read */
    bool is_expired;   /* the index names profiles that retention has taken */
};

/* An id of a span that is neither hexadecimal nor decimal. */
bool hearth_lookup_is_text(struct hearth_str id);

/* exact: [2], samples of the id, and samples whose local root it is. */
HEARTH_MUST_CHECK
enum hearth_status hearth_lookup_answer(const struct hearth_query *query,
                                        const struct hearth_lookup_options *options,
                                        const struct hearth_lookup_subject *subject,
                                        const struct hearth_exact *exact, int64_t since_ns,
                                        struct hearth_found *ret, struct hearth_err *err);

#endif
