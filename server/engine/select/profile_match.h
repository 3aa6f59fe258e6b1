/*
 * profile_match.h -- which rows and samples pass a filter by profile, span or trace (private to the
 * engine).
 *
 * Threads: immutable, but for the set `counted` of one query.
 */
#ifndef HEARTH_ENGINE_PROFILE_MATCH_H
#define HEARTH_ENGINE_PROFILE_MATCH_H

#include "hearth/engine/filter.h"
#include "hearth/model/sample_attrs.h"
#include "hearth/store/read.h"

/* The lists of a filter, sorted. */
struct hearth_profile_match {
    struct hearth_profile_id *profiles;
    size_t n_profiles;
    uint64_t *spans;
    size_t n_spans;
    uint64_t *local_roots;
    size_t n_local_roots;
    struct hearth_trace_id *traces;
    size_t n_traces;
    bool any_list;                    /* a match in one of the lists of ids is enough */
    bool of_samples;                  /* there are ids of samples: matching rows is not enough */
    struct hearth_read_detail detail; /* columns that a read must return, and rows it may skip */
    struct hearth_span_set *counted;  /* the filter's */
};

/* Makes the match in arena; *ret is NULL for an empty filter. Errors: NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_match_make(const struct hearth_profile_filter *filter,
                                             struct hearth_arena *arena,
                                             struct hearth_profile_match **ret,
                                             struct hearth_err *err);

bool hearth_profile_match_row(const struct hearth_profile_match *match,
                              /* Whether the profile of a row passes. */
                              const struct hearth_read_row *row);
bool hearth_profile_match_sample(const struct hearth_profile_match *match,
                                 const struct hearth_sample_attrs *attrs);
/* Adds the span of a sample that counts; 0 is ignored. */
void hearth_span_set_add(struct hearth_span_set *set, uint64_t span_id);

/*
 * The samples of a row that have attributes, in arena. Errors: CORRUPT, also if the row's value
 * column is missing.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_samples(const struct hearth_read_row *row, struct hearth_arena *arena,
                                      struct hearth_attr_sample **ret, size_t *ret_n,
                                      struct hearth_err *err);

#endif
