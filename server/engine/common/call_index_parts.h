/*
 * call_index_parts.h -- the parts of a call's index: one per tenant and selector of its view
 * (private to call_index*.c).
 */
#ifndef HEARTH_ENGINE_CALL_INDEX_PARTS_H
#define HEARTH_ENGINE_CALL_INDEX_PARTS_H

#include "common/call_index.h"
#include "common/call_internal.h"

/* The series of a tenant, or those of them that one selector of the view matches. */
struct index_part {
    struct hearth_str tenant;
    const struct hearth_label_index *index;
    struct hearth_selector view; /* without matchers: all series */
};

struct hearth_call_index {
    struct hearth_store *store;
    struct hearth_arena *arena; /* the call's */
    struct index_part *parts;   /* parts of a tenant are neighbours, and may share series */
    size_t n_parts, n_tenants;
};

/* True if the index of the only tenant answers by itself. */
static inline bool index_is_plain(const struct hearth_call_index *index)
{
    return index->n_parts == 1 && index->parts[0].view.n == 0;
}

/* True if series have the label __tenant_id__. */
static inline bool index_has_tenants(const struct hearth_call_index *index)
{
    return index->n_tenants > 1;
}

static inline bool is_tenant_label(const struct hearth_call_index *index, struct hearth_str name)
{
    return index_has_tenants(index) && hearth_str_eq_c(name, HEARTH_LABEL_TENANT);
}

/* True if part i is the first of its tenant. */
static inline bool is_first_of_tenant(const struct hearth_call_index *index, size_t i)
{
    return i == 0 || index->parts[i].index != index->parts[i - 1].index ||
           !hearth_str_eq(index->parts[i].tenant, index->parts[i - 1].tenant);
}

/*
 * The filter for one part: the matchers of the filter and of the part's view. Matchers on
 * __tenant_id__ are decided here. *ret_any false: nothing of the part matches. The selector is in
 * arena, and borrows compiled patterns: do not release it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_index_part_filter(const struct hearth_call_index *index, size_t part,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena,
                                            struct hearth_index_filter *ret, bool *ret_any,
                                            struct hearth_err *err);

#endif
