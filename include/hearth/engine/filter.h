/*
 * filter.h -- which samples of the selected series count: by their stack traces, and by the
 * profile, span or trace that they belong to. A zeroed filter passes every sample.
 *
 * Ownership: arrays and texts are borrowed for the call.
 * Threads:   immutable.
 */
#ifndef HEARTH_ENGINE_FILTER_H
#define HEARTH_ENGINE_FILTER_H

#include "hearth/model/profile_id.h"
#include "hearth/model/trace_ids.h"

/* What a row of a table is (query.h: hearth_query_top). */
enum hearth_top_kind {
    HEARTH_TOP_FUNCTION,
    HEARTH_TOP_LINE,
    HEARTH_TOP_FILE,
    HEARTH_TOP_DIRECTORY,
    HEARTH_TOP_CLASS,
    HEARTH_TOP_PACKAGE,
    HEARTH_TOP_MODULE,
    HEARTH_TOP_THREAD, /* reads single profiles: roll-ups have no threads */
    HEARTH_TOP_FRAME_KIND,
};

/*
 * Conditions on the rows of one table that a sample is counted in; all that are set must hold.
 * Names are those of the table, "" for the row of everything unknown; a line is "FUNCTION:LINE".
 * Threads filter samples, all other kinds stack traces.
 */
struct hearth_row_filter {
    enum hearth_top_kind kind;
    const struct hearth_str *names; /* required: the sample is in one of these rows */
    size_t n_names;
    const struct hearth_str *without; /* excluded: a sample in any of them does not pass */
    size_t n_without;
    struct hearth_str regex; /* RE2, unanchored: one of its rows must match; empty: no condition */
    struct hearth_str without_regex; /* RE2: none of its rows may match; empty: no condition */
};

#define HEARTH_ROW_FILTERS_MAX 16u /* of one filter of stacks (hard) */

/*
 * Conditions on stack traces; all that are set must hold. Names are names of function frames, as in
 * flame graphs: every line of a location is a frame; a location without lines is named by its
 * address; a function without a name is [unknown], and an empty name here means the same. A generic
 * function of Go is found by its stored name and by the short one of model/go_stacks.h.
 */
struct hearth_stack_filter {
    const struct hearth_str *call_site; /* first frames of the stack, root first */
    size_t n_call_site;
    const struct hearth_str *functions; /* required: one of them, or each with all_functions */
    size_t n_functions;                 /* at most 64 with all_functions */
    bool all_functions;
    const struct hearth_str *without; /* excluded: a stack with any of them does not pass */
    size_t n_without;
    struct hearth_str regex; /* RE2, unanchored: a frame's name must match; empty: no condition */
    struct hearth_str without_regex; /* RE2: no frame's name may match; empty: no condition */
    const struct hearth_row_filter *rows;
    size_t n_rows; /* at most HEARTH_ROW_FILTERS_MAX */
};

/* Whether a filter has conditions on names of functions, besides those of rows. */
static inline bool hearth_stack_filter_has_names(const struct hearth_stack_filter *filter)
{
    return filter->n_call_site > 0 || filter->n_functions > 0 || filter->n_without > 0 ||
           filter->regex.n > 0 || filter->without_regex.n > 0;
}

static inline bool hearth_stack_filter_is_empty(const struct hearth_stack_filter *filter)
{
    return !hearth_stack_filter_has_names(filter) && filter->n_rows == 0;
}

/* Whether a filter has conditions on threads, or on other rows. */
static inline bool hearth_stack_filter_has_rows(const struct hearth_stack_filter *filter,
                                                bool of_threads)
{
    size_t i = 0;
    while (i < filter->n_rows && (filter->rows[i].kind == HEARTH_TOP_THREAD) != of_threads) {
        i++;
    }
    return i < filter->n_rows;
}

/* Whether stack traces must be read to apply a filter. */
static inline bool hearth_stack_filter_needs_stacks(const struct hearth_stack_filter *filter)
{
    return hearth_stack_filter_has_names(filter) || hearth_stack_filter_has_rows(filter, false);
}

struct hearth_read_instant;

/*
 * Conditions on the profile, span or trace of a sample. One element of a list must match, and all
 * lists that are set must hold (but see any_list). With spans, local roots or traces, only samples
 * that carry such an id count, with their own values. A query with such a filter reads single
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
    bool any_list; /* one of the lists spans, local roots and traces is enough */
    /* Series and times that have these ids (store/read.h). some false: the engine looks them up. */
    bool some;
    const struct hearth_read_instant *instants;
    size_t n_instants;
    struct hearth_span_set *counted; /* out: spans whose samples counted; may be NULL */
};

/* Distinct span ids, sorted once the query has been answered; truncated at HEARTH_SPAN_SET_MAX. */
#define HEARTH_SPAN_SET_MAX 10000
struct hearth_span_set {
    uint64_t *ids; /* [HEARTH_SPAN_SET_MAX] */
    size_t n;
};

/* True if the filter has conditions on single samples, not only on whole profiles. */
static inline bool hearth_profile_filter_has_ids(const struct hearth_profile_filter *filter)
{
    return filter->n_spans > 0 || filter->n_local_roots > 0 || filter->n_traces > 0;
}

static inline bool hearth_profile_filter_is_empty(const struct hearth_profile_filter *filter)
{
    return filter->n_profiles == 0 && !hearth_profile_filter_has_ids(filter);
}

#endif
