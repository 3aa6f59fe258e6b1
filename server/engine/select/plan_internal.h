/*
 * plan_internal.h -- a plan in the making: services, groups, the cut (private to the engine).
 *
 *   plan_groups.c   which services and series are cut alike
 *   plan.c          the cut of a group, legs, notes
 */
#ifndef HEARTH_ENGINE_PLAN_INTERNAL_H
#define HEARTH_ENGINE_PLAN_INTERNAL_H

#include "hearth/base/clock.h"
#include "hearth/engine/plan.h"

#define PLAN_MAX_GROUPS    8  /* of services that stand alike */
#define PLAN_MAX_FORBIDDEN 16 /* stretches without blocks of one group */
#define PLAN_NS_PER_10M    (INT64_C(600) * HEARTH_NS_PER_SEC)
#define PLAN_NO_GROUP      UINT32_MAX

/* Half-open. */
struct plan_stretch {
    int64_t from_ns, to_ns;
};

enum {
    PLAN_GAP = HEARTH_N_SOURCES /* in place of a source: nothing has it any more */
};

struct plan_piece {
    int source;
    struct plan_stretch at;
};

/* The hits of a group: as they are, and for blocks. */
struct plan_hits {
    struct hearth_series_hit *v;
    size_t n;
};

struct plan_group {
    int64_t built_ns, compacted_from_ns, compacted_to_ns;  /* both: rows may lie in either table */
    struct plan_stretch forbidden[PLAN_MAX_FORBIDDEN + 1]; /* ascending, apart */
    size_t n_forbidden;
    struct plan_hits rows, blocks, whole;
    size_t cap_rows;
};

/* One service of the question. */
struct plan_service {
    const struct hearth_service_state *state; /* NULL: nothing is rolled up */
    const struct hearth_tombstone *tombstones;
    size_t n_tombstones; /* of the service */
    size_t first_hit, n_hits;
    int64_t built_ns, compacted_ns; /* as far as they matter in the range */
    uint32_t group, deleted_group;
};

struct plan_tier {
    enum hearth_source source;
    int64_t length_ns, cutoff_ns;
    bool cuts_edges; /* a block answers for a part of its time, too */
};

struct planner {
    const struct hearth_plan_input *in;
    struct hearth_arena *arena;
    struct plan_stretch range;
    int64_t rows_cutoff_ns;
    struct plan_tier tiers[3];
    size_t n_tiers;
    struct plan_service *services;
    size_t n_services;
    struct plan_group
        *groups; /* [2 * PLAN_MAX_GROUPS]: of services, then of series with deletions */
    size_t n_deleted_groups;
    struct plan_piece *pieces; /* of the group at hand */
    size_t n_pieces, cap_pieces;
    struct hearth_read_leg *legs;
    size_t n_legs, cap_legs;
    struct hearth_buf *notes;
    bool refused; /* memory */
};

/* The last multiple of `length` that is not above t; INT64_MIN for what lies before all of them. */
static inline int64_t floor_to(int64_t t, int64_t length)
{
    int64_t down, rest = t % length;
    if (__builtin_sub_overflow(t, rest < 0 ? rest + length : rest, &down)) {
        return INT64_MIN;
    }
    return down;
}

/* The first that is not below t; INT64_MAX for what lies after all of them. */
static inline int64_t ceil_to(int64_t t, int64_t length)
{
    int64_t up, rest = t % length;
    if (__builtin_add_overflow(t, rest > 0 ? length - rest : -rest, &up)) {
        return INT64_MAX;
    }
    return up;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline void push_hit(struct plan_hits *list, const struct hearth_series_hit *hit)
{
    list->v[list->n++] = *hit;
}

enum plan_fate {
    PLAN_ALIVE,
    PLAN_TOUCHED, /* a part of its range is deleted */
    PLAN_GONE,    /* all of it */
};

/* What tombstones leave of a series. */
enum plan_fate hearth_plan_fate(const struct planner *p, const struct plan_service *service,
                                int32_t series_id);

/* Fill services and groups. False when memory was refused. */
HEARTH_MUST_CHECK bool hearth_plan_group(struct planner *p);

#endif
