/*
 * call_index.h -- the label indexes of a call's tenants, as far as the caller may see them (private
 * to the engine).
 *
 * This is the engine's only way to the label index: a caller cannot forget the view of its call,
 * because every function here answers for visible series alone. A series is visible if at least one
 * selector of the view of its tenant matches it.
 *
 * If the call has several tenants, every series has the label __tenant_id__ as well, which replaces
 * a stored label of that name. Selectors and lists of names may use it. Ids of services, series and
 * shapes are unique over all tenants, so hits of several tenants can be mixed.
 *
 * The functions have the parameters and the meaning of those of hearth/selector/label_index.h with
 * the same name. The arena may be another one than that of the call. A call with one tenant and
 * without a narrow view costs no more than the label index itself.
 *
 * Threads: confined to the call's thread. A thread locks one at a time, and unlocks it itself.
 */
#ifndef HEARTH_ENGINE_CALL_INDEX_H
#define HEARTH_ENGINE_CALL_INDEX_H

#include "hearth/engine/call.h"
#include "hearth/selector/label_index.h"

struct hearth_call_index;

/*
 * Parses the view, and locks the label indexes of all tenants of the call, with a note if one lacks
 * series. Errors: those of hearth_store_indexes_lock; INVALID_ARGUMENT if a selector of the view is
 * malformed; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_call_index_lock(const struct hearth_call *call,
                                                            const struct hearth_call_index **ret,
                                                            struct hearth_err *err);
void hearth_call_index_unlock(const struct hearth_call_index *index); /* NULL-safe */

/* True if memory was too small for all series of a tenant: results may lack series. */
bool hearth_call_index_is_cut(const struct hearth_call_index *index);

/* The first hour at or after *hour, or the last one at or before it, in which one is active. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_hour(const struct hearth_call_index *index, bool first,
                                          int64_t *hour, bool *ret_any, struct hearth_err *err);

HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_select(const struct hearth_call_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena,
                                            struct hearth_series_hits *ret_hits,
                                            struct hearth_err *err);
struct hearth_series_key;

/*
 * Whether a series that need not exist would be visible with all of its types under one of n
 * selectors: what the label index of this one series says. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_key_is_shown(const struct hearth_series_key *key,
                                       const struct hearth_selector *selectors, size_t n, bool *ret,
                                       struct hearth_err *err);

/*
 * Names of the services all of whose series, at any time, are visible with all columns. In arena,
 * sorted. The call must have one tenant.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_whole_services(const struct hearth_call_index *index,
                                                    struct hearth_arena *arena,
                                                    struct hearth_index_texts *ret,
                                                    struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_covered(const struct hearth_call_index *index,
                                             const struct hearth_index_filter *filter,
                                             const struct hearth_series_hits *hits,
                                             struct hearth_arena *arena,
                                             struct hearth_series_hits *ret_covered,
                                             struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_same_labels(const struct hearth_call_index *index,
                                                 const struct hearth_series_hits *hits,
                                                 struct hearth_arena *arena, uint32_t **ret_first,
                                                 struct hearth_err *err);
/* The visible columns of a series. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_columns(const struct hearth_call_index *index,
                                             int32_t series_id, struct hearth_arena *arena,
                                             struct hearth_series_hits *ret_hits,
                                             struct hearth_err *err);
struct hearth_str hearth_call_index_type(const struct hearth_call_index *index,
                                         const struct hearth_series_hit *hit);
/* The hit must be a result of _select or _columns of an index of the same call. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_labels(const struct hearth_call_index *index,
                                            const struct hearth_series_hit *hit,
                                            struct hearth_arena *arena,
                                            struct hearth_labels *ret_labels,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_names(const struct hearth_call_index *index,
                                           const struct hearth_index_filter *filter,
                                           struct hearth_arena *arena,
                                           struct hearth_index_texts *ret_names,
                                           struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_values(const struct hearth_call_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_str name, struct hearth_arena *arena,
                                            struct hearth_index_texts *ret_values,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_project(const struct hearth_call_index *index,
                                             const struct hearth_index_filter *filter,
                                             struct hearth_projected_names names,
                                             struct hearth_arena *arena,
                                             struct hearth_label_sets *ret_sets,
                                             struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_call_index_group(const struct hearth_call_index *index,
                                           const struct hearth_series_hits *hits,
                                           struct hearth_projected_names names,
                                           struct hearth_arena *arena,
                                           struct hearth_label_groups *ret_groups,
                                           struct hearth_err *err);

#endif
