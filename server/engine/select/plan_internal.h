/*
 * plan_internal.h -- a plan while it is made: services, groups, pieces (private to the engine).
 *
 *   plan_groups.c   groups of services and series that are planned alike
 *   plan.c          the pieces of a group, legs, notes
 *
 * Threads: pure functions; a planner belongs to one call.
 */
#ifndef HEARTH_ENGINE_PLAN_INTERNAL_H
#define HEARTH_ENGINE_PLAN_INTERNAL_H

#include "hearth/base/clock.h"
#include "hearth/engine/plan.h"

#define PLAN_MAX_GROUPS 8  /* of services in the same state */
#define PLAN_MAX_HOLES  16 /* of one group and size of block */
#define PLAN_NS_PER_10M (INT64_C(600) * HEARTH_NS_PER_SEC)
#define PLAN_NO_GROUP   UINT32_MAX
/* From so many hits on, series with few profiles are read by a range of ids (read_id_range.c). */
#define PLAN_MANY_HITS 4096
#define PLAN_N_GROUPS  ((size_t)3 * PLAN_MAX_GROUPS)

/* A part of the range, half-open. */
struct plan_stretch {
    int64_t from_ns, to_ns;
};

enum {
    PLAN_GAP = HEARTH_N_SOURCES, /* instead of a source: no source has the data any more */
    PLAN_N_LENGTHS = 3           /* of blocks */
};

/* A stretch of a group's range, and the source that answers it. */
struct plan_piece {
    int source;
    struct plan_stretch at;
};

/* Hits of a group; `rows`, `blocks` and `whole` are the hits to read from each kind of source. */
struct plan_hits {
    struct hearth_series_hit *v;
    size_t n;
};

/* Stretches in which blocks are deleted in part, or absent: ascending, disjoint. */
struct plan_holes {
    struct plan_stretch at[PLAN_MAX_HOLES + 1];
    size_t n;
};

struct plan_group {
    /* rows may be in either table between the two compacted bounds */
    int64_t built_ns, compacted_from_ns, compacted_to_ns;
    int64_t kept_from_ns; /* profiles from here on are there, whatever retain-raw says */
    struct plan_holes holes[PLAN_N_LENGTHS]; /* by hearth_plan_holes_of */
    bool has_deletions;
    struct plan_hits rows, blocks,
        whole; /* hits for profiles, blocks of series, blocks of services */
    size_t cap_rows;
};

/* The holes of a group for blocks of a length; packed totals have those of the longest blocks. */
static inline const struct plan_holes *hearth_plan_holes_of(const struct plan_group *group,
                                                            enum hearth_source source)
{
    size_t i = source == HEARTH_SOURCE_ROLL_10M  ? 0
               : source == HEARTH_SOURCE_ROLL_1H ? 1
                                                 : PLAN_N_LENGTHS - 1;
    return &group->holes[i];
}

/* One service of the query. */
struct plan_service {
    const struct hearth_service_state *state; /* NULL: no roll-ups, no segments */
    const struct hearth_tombstone *tombstones;
    size_t n_tombstones; /* of the service */
    size_t first_hit, n_hits;
    int64_t built_ns, compacted_ns; /* clamped to the range */
    int64_t kept_from_ns;           /* as of a group; INT64_MAX: only retain-raw keeps them */
    /* What is absent of the range before built_ns, clamped to it; NULL if n_absent is 0. */
    struct hearth_absent_blocks *absent;
    size_t n_absent;
    uint32_t group, deleted_group; /* indices of planner.groups; PLAN_NO_GROUP: not yet */
};

struct plan_tier {
    enum hearth_source source;
    int64_t length_ns, cutoff_ns;
    bool cuts_edges; /* a block can answer for a part of its time */
};

struct planner {
    const struct hearth_plan_input *in;
    struct hearth_arena *arena;
    struct plan_stretch range;
    int64_t rows_cutoff_ns;
    int64_t rows_whole_from_ns; /* >= rows_cutoff_ns; older rows were deleted, or stored later */
    struct plan_tier tiers[3];
    size_t n_tiers;
    struct plan_service *services;
    size_t n_services;
    /*
     * [PLAN_N_GROUPS]: groups of services, then groups of series with deletions, then, for each
     * group of services that lack blocks, one of hits with blocks of whole services, which lack
     * fewer
     */
    struct plan_group *groups;
    size_t n_deleted_groups;
    struct plan_piece *pieces; /* of the current group */
    size_t n_pieces, cap_pieces;
    struct hearth_read_leg *legs;
    size_t n_legs, cap_legs;
    struct hearth_buf *notes;
    bool refused; /* memory was refused; checked at the end */
};

/* The last multiple of `length` that is not above t; INT64_MIN if it does not fit. */
static inline int64_t floor_to(int64_t t, int64_t length)
{
    int64_t down, rest = t % length;
    if (__builtin_sub_overflow(t, rest < 0 ? rest + length : rest, &down)) {
        return INT64_MIN;
    }
    return down;
}

/* The first multiple that is not below t; INT64_MAX if it does not fit. */
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

/* What tombstones leave of a series in the range. */
enum plan_fate {
    PLAN_ALIVE,
    PLAN_TOUCHED, /* a part of its range is deleted */
    PLAN_GONE,    /* all of its range is deleted */
};

/* What the tombstones of its service leave of a series. */
enum plan_fate hearth_plan_fate(const struct planner *p, const struct plan_service *service,
                                int32_t series_id);

/* Fills services and groups. False: memory was refused. */
HEARTH_MUST_CHECK bool hearth_plan_group(struct planner *p);

/* The state of a service; NULL if the plan has no row of it. */
const struct hearth_service_state *hearth_plan_find_state(const struct hearth_read_state *state,
                                                          int32_t service_id);

#endif
