/* grouping.c -- groups hits by labels, and finds the hit of a row. */
#include "select/grouping.h"

#include <assert.h>

static struct hearth_hash128 make_hit_key(int32_t series_id, uint16_t column)
{
    uint32_t parts[2] = {(uint32_t)series_id, column};
    return hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
}

/* The labels of a hit that are in group_by, sorted by name. */
static enum hearth_status project_group_labels(const struct hearth_grouping *grouping,
                                               const struct hearth_labels *all,
                                               struct hearth_labels *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = grouping->arena;
    const struct hearth_str *group_by = grouping->group_by;
    struct hearth_label *v = hearth_arena_array(arena, grouping->n_group_by, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < grouping->n_group_by; i++) {
        struct hearth_str value = hearth_labels_get(all, group_by[i]);
        bool repeated = false;
        for (size_t j = 0; j < n; j++) {
            repeated = repeated || hearth_str_eq(v[j].name, group_by[i]);
        }
        if (value.p != NULL && !repeated) {
            v[n++] = (struct hearth_label){group_by[i], hearth_arena_str(arena, value)};
            if (v[n - 1].value.p == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }

    *ret = (struct hearth_labels){v, n};
    hearth_labels_sort(ret);
    return HEARTH_OK;
}

/* Finds or makes the group of hit i by its labels. */
static enum hearth_status add_hit_to_group(struct hearth_grouping *grouping,
                                           struct hearth_idmap *by_labels, size_t i,
                                           const struct hearth_labels *labels,
                                           struct hearth_err *err)
{
    const struct hearth_series_hit *hit = &grouping->hits[i];
    bool inserted, unused;
    uint32_t group = hearth_idmap_intern(by_labels, hearth_labels_fingerprint(labels),
                                         (uint32_t)grouping->n, &inserted);
    if (group == HEARTH_IDMAP_NONE ||
        hearth_idmap_intern(&grouping->by_hit, make_hit_key(hit->series_id, hit->column),
                            (uint32_t)i, &unused) == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the groups of a query");
    }

    if (inserted) {
        grouping->labels[grouping->n++] = *labels;
    }

    grouping->of_hit[i] = group;
    return HEARTH_OK;
}

enum hearth_status hearth_grouping_make(struct hearth_grouping *grouping,
                                        const struct hearth_call_index *index,
                                        struct hearth_err *err)
{
    assert(grouping != NULL && (index != NULL || grouping->n_hits == 0));

    const struct hearth_series_hit *hits = grouping->hits;
    size_t n_hits = grouping->n_hits, n_group_by = grouping->n_group_by;
    struct hearth_arena *arena = grouping->arena;

    assert(arena != NULL && (n_hits == 0 || hits != NULL));

    grouping->last_hit = HEARTH_IDMAP_NONE;
    grouping->n = 0;
    hearth_idmap_init(&grouping->by_hit);
    if (n_group_by > HEARTH_MAX_GROUP_BY) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "group_by: %zu labels, at most %u",
                           n_group_by, HEARTH_MAX_GROUP_BY);
    }

    /* There are at most as many groups as hits. */
    grouping->of_hit = hearth_arena_array(arena, n_hits, sizeof grouping->of_hit[0]);
    grouping->labels = hearth_arena_array(arena, n_hits, sizeof grouping->labels[0]);
    if (grouping->of_hit == NULL || grouping->labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_idmap by_labels;
    hearth_idmap_init(&by_labels);
    enum hearth_status status = HEARTH_OK;

    /* Hits with equal projected labels are one group. */
    for (size_t i = 0; status == HEARTH_OK && i < n_hits; i++) {
        struct hearth_labels all = {0}, labels = {0};
        if (n_group_by > 0) {
            status = hearth_call_index_labels(index, &hits[i], arena, &all, err);
            status =
                status == HEARTH_OK ? project_group_labels(grouping, &all, &labels, err) : status;
        }
        if (status == HEARTH_OK) {
            status = add_hit_to_group(grouping, &by_labels, i, &labels, err);
        }
    }

    hearth_idmap_release(&by_labels);
    return status;
}

void hearth_grouping_release(struct hearth_grouping *grouping)
{
    hearth_idmap_release(&grouping->by_hit);
}

uint32_t hearth_grouping_hit(struct hearth_grouping *grouping, int32_t series_id, uint16_t column)
{
    if (grouping->last_hit == HEARTH_IDMAP_NONE || grouping->last_series != series_id ||
        grouping->last_column != column) {
        grouping->last_hit = hearth_idmap_find(&grouping->by_hit, make_hit_key(series_id, column));
        grouping->last_series = series_id;
        grouping->last_column = column;
    }

    return grouping->last_hit;
}
