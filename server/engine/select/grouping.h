/*
 * grouping.h -- the hits of a selection by labels that were asked for (private to the engine).
 * Threads: one request is one thread.
 */
#ifndef HEARTH_ENGINE_GROUPING_H
#define HEARTH_ENGINE_GROUPING_H

#include "select/query_internal.h"

/* Each is looked for in each series, while the index is locked. */
#define HEARTH_MAX_GROUP_BY 100u

/* Arrays in the arena it was made in; hits are borrowed. */
struct hearth_grouping {
    const struct hearth_series_hit *hits;
    size_t n_hits;
    uint32_t *of_hit;             /* [n_hits]: the hit's group */
    struct hearth_labels *labels; /* [n]: of each group, without those that its series lack */
    size_t n;
    struct hearth_idmap by_hit; /* (series, column) to the hit's index */
    int32_t last_series;
    uint16_t last_column;
    uint32_t last_hit;
};

/*
 * Under the index's lock; repeated names count once, nothing to group by is one group. Release it in
 * any case. INVALID_ARGUMENT for more names than HEARTH_MAX_GROUP_BY; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_grouping_make(struct hearth_grouping *grouping,
                                        const struct hearth_label_index *index,
                                        const struct hearth_series_hit *hits, size_t n_hits,
                                        const struct hearth_str *group_by, size_t n_group_by,
                                        struct hearth_arena *arena, struct hearth_err *err);
void hearth_grouping_release(struct hearth_grouping *grouping);
/* The hit of a series and column, HEARTH_IDMAP_NONE for others. Cheap when they come in runs. */
uint32_t hearth_grouping_hit(struct hearth_grouping *grouping, int32_t series_id, uint16_t column);

#endif
