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
    const struct hearth_series_hit *hits; /* borrowed */
    size_t n_hits;
    const struct hearth_str *group_by; /* names of labels, borrowed */
    size_t n_group_by;
    struct hearth_arena *arena; /* memory of the arrays */

    uint32_t *of_hit; /* [n_hits]: the group of each hit */
    struct hearth_labels
        *labels; /* [n]: labels of each group, without those that its series lack */
    size_t n;
    struct hearth_idmap by_hit; /* (series, column) to the hit's index */
    int32_t last_series;        /* the latest look-up: series, column, and its hit */
    uint16_t last_column;
    uint32_t last_hit;
};

/*
 * Groups the hits; the caller holds the lock of the index. Repeated names count once; without names
 * there is one group. Release it in any case. Errors: INVALID_ARGUMENT for more names than
 * HEARTH_MAX_GROUP_BY; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_grouping_make(struct hearth_grouping *grouping,
                                        const struct hearth_call_index *index,
                                        struct hearth_err *err);
void hearth_grouping_release(struct hearth_grouping *grouping);
/*
 * The hit of a series and column; HEARTH_IDMAP_NONE if it was not selected. Runs of equal arguments
 * are cheap.
 */
uint32_t hearth_grouping_hit(struct hearth_grouping *grouping, int32_t series_id, uint16_t column);

#endif
