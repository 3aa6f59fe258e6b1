/*
 * store_span_index.h -- finding profiles and stored spans by bare ids (sql/0011_span_index.sql, docs/decisions/0016-span-index.md).
 *
 * What was acknowledged is found, whichever server took it. An answer may have associations that are none (keys are cut short,
 * ids collide) or whose profile has gone: who asks looks at the profile.
 *
 * Units: nanoseconds since the epoch. Ownership: answers in the arena. Threads: safe.
 * Errors: UNAVAILABLE, INTERNAL, CORRUPT, NO_MEMORY, CANCELLED, DEADLINE_EXCEEDED.
 */
#ifndef HEARTH_STORE_SPAN_INDEX_H
#define HEARTH_STORE_SPAN_INDEX_H

#include "hearth/model/span_index.h"
#include "hearth/store/store.h"

struct hearth_span_question {
    uint64_t key;
    uint8_t of; /* enum hearth_association_of: any of these */
};

/*
 * By service, series, time; each once, with the `of` bits of all that agree. `key` in an answer is that of the question.
 * from_ns, to_ns: profiles and groups of this time, both included; INT64_MIN and INT64_MAX: all. limit: at most so many
 * profiles (of a series) and groups, the latest, whatever number of the ids each carries; *ret_is_cut says that there are more.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_find_spans(const struct hearth_scope *scope,
                                           const struct hearth_span_question *questions,
                                           size_t n_questions, int64_t from_ns, int64_t to_ns,
                                           size_t limit, struct hearth_association **ret,
                                           size_t *ret_n, bool *ret_is_cut, struct hearth_err *err);

/* Since when what is stored is in the index; INT64_MIN: all of it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_span_index_since(const struct hearth_scope *scope,
                                                 int64_t *ret_since_ns, struct hearth_err *err);

#endif
