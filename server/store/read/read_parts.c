/* read_parts.c -- the plan of the services of one node (contract: read_parts.h). */
#include "read/read_parts.h"

#include <assert.h>

/* Copy the state of the services of a part, which are some of those of the plan. */
static struct hearth_read_state *copy_state(const struct hearth_read_state *state,
                                            const struct hearth_node_part *part,
                                            struct hearth_arena *arena)
{
    struct hearth_read_state *ret = hearth_arena_zalloc(arena, sizeof *ret);
    struct hearth_service_state *services =
        hearth_arena_array(arena, part->n_services, sizeof services[0]);
    if (ret == NULL || services == NULL) {
        return NULL;
    }

    size_t n = 0;
    for (size_t i = 0; i < state->n_services && n < part->n_services; i++) {
        if (state->services[i].service_id == part->services[n]) {
            services[n++] = state->services[i];
        }
    }

    /* Tombstones concern the reader of rows, which has the whole state. */
    assert(n == part->n_services);
    ret->services = services;
    ret->n_services = n;

    return ret;
}

/* Copy the hits of the services of a shard, both in ascending order. */
static bool copy_hits(struct hearth_read_leg *leg, const struct hearth_node_part *part,
                      size_t shard, struct hearth_arena *arena)
{
    struct hearth_series_hit *hits = hearth_arena_array(arena, leg->n_hits, sizeof hits[0]);
    if (hits == NULL) {
        return false;
    }

    size_t n = 0, at = 0;
    for (size_t i = 0; i < leg->n_hits; i++) {
        while (at < part->n_services && part->services[at] < leg->hits[i].service_id) {
            at++;
        }

        if (at < part->n_services && part->services[at] == leg->hits[i].service_id &&
            (part->shard_of == NULL || part->shard_of[at] == shard)) {
            hits[n++] = leg->hits[i];
        }
    }

    leg->hits = hits;
    leg->n_hits = n;

    return true;
}

/* Make the legs of a shard. Legs that share hits share them afterwards. */
static bool copy_legs(struct hearth_read_leg *legs, const struct hearth_read_plan *plan,
                      const struct hearth_node_part *part, size_t shard, struct hearth_arena *arena)
{
    for (size_t i = 0; i < plan->n_legs; i++) {
        const struct hearth_read_leg *from = &plan->legs[i];
        size_t same = i;
        while (same > 0 && (plan->legs[same - 1].hits != from->hits ||
                            plan->legs[same - 1].n_hits != from->n_hits)) {
            same--;
        }

        legs[i] = *from;
        if (same > 0) {
            legs[i].hits = legs[same - 1].hits;
            legs[i].n_hits = legs[same - 1].n_hits;
        } else if (!copy_hits(&legs[i], part, shard, arena)) {
            return false;
        }
    }

    return true;
}

enum hearth_status hearth_read_part_plan(const struct hearth_read_plan *plan,
                                         const struct hearth_node_part *part,
                                         struct hearth_arena *arena, struct hearth_read_plan *ret,
                                         struct hearth_err *err)
{
    size_t n_shards = part->n_shards > 0 ? part->n_shards : 1, n_legs;

    *ret = *plan;
    if (__builtin_mul_overflow(plan->n_legs, n_shards, &n_legs)) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "a query has too many parts");
    }

    ret->legs = hearth_arena_array(arena, n_legs, sizeof ret->legs[0]);
    ret->n_legs = n_legs;
    ret->state = copy_state(plan->state, part, arena);
    bool is_made = ret->legs != NULL && ret->state != NULL;
    for (size_t s = 0; s < n_shards && is_made; s++) {
        is_made = copy_legs(ret->legs + s * plan->n_legs, plan, part, s, arena);
    }

    return is_made ? HEARTH_OK : HEARTH_FAIL_ARENA(err, arena);
}
