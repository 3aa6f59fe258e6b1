/* grouping.c -- groups hits by labels, and finds the hit of a row. */
#include "select/grouping.h"

#include <assert.h>

/* Without names there is one group, unless there are no hits. */
static enum hearth_status make_one_group(struct hearth_grouping *grouping, struct hearth_err *err)
{
    grouping->of_hit =
        hearth_arena_calloc(grouping->arena, grouping->n_hits, sizeof grouping->of_hit[0]);
    grouping->labels = hearth_arena_calloc(grouping->arena, 1, sizeof grouping->labels[0]);
    grouping->n = grouping->n_hits > 0 ? 1 : 0;

    return grouping->of_hit != NULL && grouping->labels != NULL
               ? HEARTH_OK
               : HEARTH_FAIL_ARENA(err, grouping->arena);
}

enum hearth_status hearth_grouping_make(struct hearth_grouping *grouping,
                                        const struct hearth_call_index *index,
                                        struct hearth_err *err)
{
    assert(grouping != NULL);

    size_t n_hits = grouping->n_hits, n_group_by = grouping->n_group_by;
    struct hearth_arena *arena = grouping->arena;

    assert(arena != NULL && (n_hits == 0 || grouping->hits != NULL));

    grouping->n = grouping->last_hit = 0;
    if (n_group_by > HEARTH_MAX_GROUP_BY) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "group_by: %zu labels, at most %u",
                           n_group_by, HEARTH_MAX_GROUP_BY);
    }

    struct hearth_series_hits sorted = {hearth_arena_array(arena, n_hits, sizeof sorted.v[0]),
                                        n_hits};
    if (sorted.v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n_hits > 0) {
        memcpy(sorted.v, grouping->hits, n_hits * sizeof sorted.v[0]);
    }
    grouping->sorted = sorted.v;
    if (n_group_by == 0 || n_hits == 0) {
        return make_one_group(grouping, err);
    }

    assert(index != NULL);
    struct hearth_label_groups groups;
    const struct hearth_projected_names names = {grouping->group_by, n_group_by};
    HEARTH_TRY(hearth_call_index_group(index, &sorted, names, arena, &groups, err));
    grouping->of_hit = groups.of_hit;
    grouping->labels = groups.v;
    grouping->n = groups.n;

    return HEARTH_OK;
}

/* <0, 0, >0: the hit is before, at or after this place. */
static int compare_hit(const struct hearth_series_hit *hit, const struct hearth_series_hit *wanted)
{
    return hit->service_id != wanted->service_id ? (hit->service_id < wanted->service_id ? -1 : 1)
           : hit->series_id != wanted->series_id ? (hit->series_id < wanted->series_id ? -1 : 1)
                                                 : (int)hit->column - (int)wanted->column;
}

uint32_t hearth_grouping_find(struct hearth_grouping *grouping,
                              const struct hearth_series_hit *wanted)
{
    size_t low = 0, high = grouping->n_hits;

    /* Rows mostly come in the order of the hits. */
    size_t next = (size_t)grouping->last_hit + 1;
    if (next < high && compare_hit(&grouping->sorted[next], wanted) == 0) {
        return grouping->last_hit = (uint32_t)next;
    }

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_hit(&grouping->sorted[mid], wanted) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    if (low == grouping->n_hits || compare_hit(&grouping->sorted[low], wanted) != 0) {
        return HEARTH_IDMAP_NONE;
    }

    return grouping->last_hit = (uint32_t)low;
}
