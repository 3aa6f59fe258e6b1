/*
 * store_span_index.h -- finding profiles and stored spans by bare ids (sql/0011_span_index.sql,
 * docs/decisions/0016-span-index.md).
 *
 * Acknowledged associations are found, whichever server took them. An answer may contain false
 * associations (keys are shortened, ids collide), or associations of deleted profiles: the caller
 * checks the profiles.
 *
 * Units:     nanoseconds since the epoch.
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe.
 * Errors:    UNAVAILABLE, INTERNAL, CORRUPT, NO_MEMORY, CANCELLED, DEADLINE_EXCEEDED.
 */
#ifndef HEARTH_STORE_SPAN_INDEX_H
#define HEARTH_STORE_SPAN_INDEX_H

#include "hearth/model/span_index.h"
#include "hearth/store/store.h"

/* A key to be found. */
struct hearth_span_question {
    uint64_t key;
    uint8_t of; /* bits of enum hearth_association_of: any of these */
};

/*
 * Associations sorted by service, series and time; each once, with the `of` bits of all that agree.
 * `key` in an answer is the key of the question. from_ns, to_ns: times of profiles and groups, both
 * included; INT64_MIN and INT64_MAX: all. limit: maximum number of profiles (of a series) and
 * groups, the latest ones, however many of the ids each has (0: no limit); *ret_is_cut: there are
 * more.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_find_spans(const struct hearth_scope *scope,
                                           const struct hearth_span_question *questions,
                                           size_t n_questions, int64_t from_ns, int64_t to_ns,
                                           size_t limit, struct hearth_association **ret,
                                           size_t *ret_n, bool *ret_is_cut, struct hearth_err *err);

/*
 * Profiles and spans stored since this time are in the index; INT64_MIN: all. Tenant and arena are
 * not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_span_index_since(const struct hearth_scope *scope,
                                                 int64_t *ret_since_ns, struct hearth_err *err);

#endif
