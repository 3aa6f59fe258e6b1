/*
 * call_index_group.c -- groups of hits by their labels, over the tenants of a call.
 *
 * The label index of one tenant groups by itself. Values of several tenants have no ordinals in
 * common, so their texts are compared.
 */
#include "common/call_index_parts.h"

#include <assert.h>

/* The labels of a hit that are among `names`, sorted by name, with their values copied to arena. */
static enum hearth_status project_hit_labels(const struct hearth_labels *all,
                                             struct hearth_projected_names names,
                                             struct hearth_arena *arena, struct hearth_labels *ret,
                                             struct hearth_err *err)
{
    struct hearth_label *v = hearth_arena_array(arena, names.n, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < names.n; i++) {
        struct hearth_str value = hearth_labels_get(all, names.v[i]);
        bool repeated = false;
        for (size_t j = 0; j < n; j++) {
            repeated = repeated || hearth_str_eq(v[j].name, names.v[i]);
        }
        if (value.p != NULL && !repeated) {
            v[n++] = (struct hearth_label){names.v[i], hearth_arena_str(arena, value)};
            if (v[n - 1].value.p == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }

    *ret = (struct hearth_labels){v, n};
    hearth_labels_sort(ret);
    return HEARTH_OK;
}

/* Finds or makes the groups of all hits by the texts of their labels. */
static enum hearth_status group_by_texts(const struct hearth_call_index *index,
                                         const struct hearth_series_hits *hits,
                                         struct hearth_projected_names names,
                                         struct hearth_idmap *by_labels,
                                         struct hearth_label_groups *groups, struct hearth_err *err)
{
    struct hearth_arena *arena = index->arena;

    for (size_t i = 0; i < hits->n; i++) {
        struct hearth_labels all, labels;
        bool inserted;
        HEARTH_TRY(hearth_call_index_labels(index, &hits->v[i], arena, &all, err));
        HEARTH_TRY(project_hit_labels(&all, names, arena, &labels, err));
        groups->of_hit[i] = hearth_idmap_intern(by_labels, hearth_labels_fingerprint(&labels),
                                                (uint32_t)groups->n, &inserted);
        if (groups->of_hit[i] == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the groups of a query");
        }
        if (inserted) {
            groups->v[groups->n++] = labels;
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_call_index_group(const struct hearth_call_index *index,
                                           const struct hearth_series_hits *hits,
                                           struct hearth_projected_names names,
                                           struct hearth_arena *arena,
                                           struct hearth_label_groups *ret_groups,
                                           struct hearth_err *err)
{
    assert(index != NULL && hits != NULL && names.n > 0 && ret_groups != NULL);

    if (!index_has_tenants(index)) {
        return hearth_label_index_group(index->parts[0].index, hits, names, arena, ret_groups, err);
    }

    *ret_groups = (struct hearth_label_groups){
        .v = hearth_arena_array(arena, hits->n, sizeof ret_groups->v[0]),
        .of_hit = hearth_arena_array(arena, hits->n, sizeof ret_groups->of_hit[0])};
    if (ret_groups->v == NULL || ret_groups->of_hit == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_idmap by_labels;
    hearth_idmap_init(&by_labels);
    enum hearth_status status = group_by_texts(index, hits, names, &by_labels, ret_groups, err);
    hearth_idmap_release(&by_labels);

    return status;
}
