/*
 * grouping.h -- groups of a selection's hits by labels (private to the engine).
 *
 * Threads: one request is one thread.
 */
#ifndef HEARTH_ENGINE_GROUPING_H
#define HEARTH_ENGINE_GROUPING_H

#include "select/query_internal.h"

/* Each name is searched in each series while the index is locked. */
#define HEARTH_MAX_GROUP_BY 100u

/* The caller sets the first five fields before hearth_grouping_make, which sets the others. */
struct hearth_grouping {
    const struct hearth_series_hit *hits; /* borrowed; sorted by (service, series, column) */
    size_t n_hits;
    const struct hearth_str *group_by; /* names of labels, borrowed */
    size_t n_group_by;
    struct hearth_arena *arena; /* memory of the arrays */

    uint32_t *of_hit; /* [n_hits]: the group of each hit */
    struct hearth_labels
        *labels; /* [n]: labels of each group, without those that its series lack */
    size_t n;
    struct hearth_series_hit *sorted; /* [n_hits]: a copy, as callers narrow their selections */
    uint32_t last_hit;                /* the latest that was found, or 0 */
};

/*
 * Groups the hits; the caller holds the lock of the index, which names alone need. Repeated names
 * count once; without names there is one group. Errors: INVALID_ARGUMENT for more names than
 * HEARTH_MAX_GROUP_BY; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_grouping_make(struct hearth_grouping *grouping,
                                        const struct hearth_call_index *index,
                                        struct hearth_err *err);
/* hearth_grouping_hit for a row that is not of the latest hit. */
uint32_t hearth_grouping_find(struct hearth_grouping *grouping,
                              const struct hearth_series_hit *wanted);

/*
 * The hit of a service, series and column; HEARTH_IDMAP_NONE if it was not selected. Runs of equal
 * arguments are cheap, and so are rows in the order of the hits.
 */
HEARTH_ALWAYS_INLINE uint32_t hearth_grouping_hit(struct hearth_grouping *grouping,
                                                  int32_t service_id, int32_t series_id,
                                                  uint16_t column)
{
    const struct hearth_series_hit *last = &grouping->sorted[grouping->last_hit];
    if (grouping->n_hits > 0 && last->series_id == series_id && last->column == column &&
        last->service_id == service_id) {
        return grouping->last_hit;
    }

    const struct hearth_series_hit wanted = {
        .service_id = service_id, .series_id = series_id, .column = column};
    return hearth_grouping_find(grouping, &wanted);
}

#endif
