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
struct hearth_span_lookup {
    uint64_t key;
    uint8_t of; /* bits of enum hearth_association_of: any of these */
};

struct hearth_span_search {
    const struct hearth_span_lookup *lookups;
    size_t n_lookups;
    /* Range of the times of profiles and groups, both included; INT64_MIN and INT64_MAX: all. */
    int64_t from_ns, to_ns;
    /* Number of profiles (of a series) and groups, the latest ones; 0: no limit. */
    size_t limit;
};

struct hearth_found_spans {
    struct hearth_association *associations;
    size_t n;
    bool is_cut; /* the limit was exceeded */
};

/*
 * Return associations sorted by service, series and time; each once, with the `of` bits of all that
 * agree. The key of a returned association is that of the lookup.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_find_spans(const struct hearth_scope *scope,
                                           const struct hearth_span_search *search,
                                           struct hearth_found_spans *ret, struct hearth_err *err);

/*
 * Profiles and spans stored since this time are in the index; INT64_MIN: all. Tenant and arena are
 * not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_span_index_since(const struct hearth_scope *scope,
                                                 int64_t *ret_since_ns, struct hearth_err *err);

#endif
