/*
 * filter.h -- which samples of the selected series count: by their stack traces, and by the profile,
 * span or trace they belong to. A zeroed filter lets everything through.
 *
 * Arrays and texts are borrowed for the call. Threads: immutable.
 */
#ifndef HEARTH_ENGINE_FILTER_H
#define HEARTH_ENGINE_FILTER_H

#include "hearth/model/profile_id.h"
#include "hearth/model/trace_ids.h"

/*
 * By stack trace. All conditions that are given must hold. Names are those of function frames as in flame
 * graphs (every line of a location is a frame; a location without lines is named by its address, a
 * function without a name [unknown], which the empty name means as well; a generic function of Go is found
 * by its stored name and by the short one of model/go_stacks.h).
 */
struct hearth_stack_filter {
    const struct hearth_str *call_site; /* the stack begins with these, root first */
    size_t n_call_site;
    const struct hearth_str *functions; /* it contains one of these; or, with all_functions, each */
    size_t n_functions;                 /* at most 64 with all_functions */
    bool all_functions;
    const struct hearth_str *without; /* it contains none of these */
    size_t n_without;
    struct hearth_str regex;         /* RE2, unanchored: some frame's name matches; empty: any */
    struct hearth_str without_regex; /* no frame's name matches; empty: any */
};

static inline bool hearth_stack_filter_is_empty(const struct hearth_stack_filter *filter)
{
    return filter->n_call_site == 0 && filter->n_functions == 0 && filter->n_without == 0 &&
           filter->regex.n == 0 && filter->without_regex.n == 0;
}

struct hearth_read_instant;

/*
 * By what a sample was taken for. Within one list any element will do; all lists that are given must hold. With spans,
 * local roots or traces only samples that carry the id count, with their own values. Such questions read single
 * profiles, never roll-ups.
 */
struct hearth_profile_filter {
    const struct hearth_profile_id *profiles;
    size_t n_profiles;
    const uint64_t *spans;
    size_t n_spans;
    const uint64_t *local_roots;
    size_t n_local_roots;
    const struct hearth_trace_id *traces;
    size_t n_traces;
    bool any_list; /* of spans, local roots and traces one that holds is enough */
    /* Where these ids are, if that is known (store/read.h); else the engine looks them up. */
    bool some;
    const struct hearth_read_instant *instants;
    size_t n_instants;
    struct hearth_span_set *counted; /* spans whose samples counted; NULL: not wanted */
};

/* Distinct spans, ascending once a question is answered; what is more than fits is left out. */
#define HEARTH_SPAN_SET_MAX 10000
struct hearth_span_set {
    uint64_t *ids; /* [HEARTH_SPAN_SET_MAX] */
    size_t n;
};

/* Of samples, not of whole profiles. */
static inline bool hearth_profile_filter_has_ids(const struct hearth_profile_filter *filter)
{
    return filter->n_spans > 0 || filter->n_local_roots > 0 || filter->n_traces > 0;
}

static inline bool hearth_profile_filter_is_empty(const struct hearth_profile_filter *filter)
{
    return filter->n_profiles == 0 && !hearth_profile_filter_has_ids(filter);
}

#endif
