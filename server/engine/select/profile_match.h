/*
 * profile_match.h -- which rows and samples a filter by profile, span or trace lets through (private
 * to the engine). Threads: immutable.
 */
#ifndef HEARTH_ENGINE_PROFILE_MATCH_H
#define HEARTH_ENGINE_PROFILE_MATCH_H

#include "hearth/engine/filter.h"
#include "hearth/model/sample_attrs.h"
#include "hearth/store/read.h"

/* A filter's lists, sorted. */
struct hearth_profile_match {
    struct hearth_profile_id *profiles;
    size_t n_profiles;
    uint64_t *spans;
    size_t n_spans;
    uint64_t *local_roots;
    size_t n_local_roots;
    struct hearth_trace_id *traces;
    size_t n_traces;
    bool any_list;
    bool of_samples;                  /* ids of samples are given: rows are not enough */
    struct hearth_read_detail detail; /* what a read has to bring for it */
    struct hearth_span_set *counted;  /* the filter's */
};

/* Everything in arena; NULL in *ret for an empty filter. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_match_make(const struct hearth_profile_filter *filter,
                                             struct hearth_arena *arena,
                                             struct hearth_profile_match **ret,
                                             struct hearth_err *err);

bool hearth_profile_match_row(const struct hearth_profile_match *match,
                              const struct hearth_read_row *row);
bool hearth_profile_match_sample(const struct hearth_profile_match *match,
                                 const struct hearth_sample_attrs *attrs);
/* A sample that was let through counts. */
void hearth_span_set_add(struct hearth_span_set *set, uint64_t span_id);

/* The samples of a row that carry attributes. In arena. CORRUPT also when its column is missing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_samples(const struct hearth_read_row *row, struct hearth_arena *arena,
                                      struct hearth_attr_sample **ret, size_t *ret_n,
                                      struct hearth_err *err);

#endif
