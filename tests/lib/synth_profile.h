/*
 * synth_profile.h -- profiles made of nothing, shaped like real CPU profiles, for tests and
 * benches.
 *
 * A world is a fixed program: functions, locations and a population of stack traces that share
 * their root-most frames. A profile draws distinct stacks from it, frequent ones more often, and
 * numbers strings, functions and locations by first use, as a profiler does. The same seed gives
 * the same world and profiles.
 */
#ifndef HEARTH_TESTS_SYNTH_PROFILE_H
#define HEARTH_TESTS_SYNTH_PROFILE_H

#include "hearth/base/arena.h"
#include "hearth/model/profile.h"

struct synth_world {
    uint64_t rng;
    uint32_t n_functions, n_locations, n_stacks, depth; /* depth: mean number of frames */
    uint32_t *stack_first, *stack_locs;                 /* leaf first, as in a profile */
};

static inline uint64_t synth_next(uint64_t *rng) /* splitmix64 */
{
    uint64_t z = (*rng += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static inline uint32_t synth_below(uint64_t *rng, uint32_t n)
{
    return (uint32_t)(synth_next(rng) % n);
}

/* Every arena allocation of a test is expected to succeed. */
static inline void *synth_array(struct hearth_arena *arena, size_t n, size_t size)
{
    void *p = hearth_arena_calloc(arena, n + 1, size);
    HEARTH_ASSERT(p != NULL);
    return p;
}

static inline void synth_world_init(struct synth_world *world, uint64_t seed, uint32_t n_functions,
                                    uint32_t n_locations, uint32_t n_stacks, uint32_t depth,
                                    struct hearth_arena *arena)
{
    *world = (struct synth_world){seed, n_functions, n_locations, n_stacks, depth, NULL, NULL};
    world->stack_first = synth_array(arena, (size_t)n_stacks + 1, sizeof(uint32_t));
    world->stack_locs = synth_array(arena, (size_t)n_stacks * depth * 2, sizeof(uint32_t));
    for (uint32_t s = 0; s < n_stacks; s++) {
        uint32_t first = world->stack_first[s];
        uint32_t length = depth / 2 + synth_below(&world->rng, depth + 1);
        uint32_t shared = 0; /* root-most frames taken from an earlier stack */
        if (s > 0) {
            uint32_t from = synth_below(&world->rng, s);
            uint32_t from_length = world->stack_first[from + 1] - world->stack_first[from];
            uint32_t most = from_length < length ? from_length : length;
            shared = most / 2 + synth_below(&world->rng, most / 2 + 1);
            for (uint32_t i = 0; i < shared; i++) {
                world->stack_locs[first + length - 1 - i] =
                    world->stack_locs[world->stack_first[from + 1] - 1 - i];
            }
        }
        for (uint32_t i = shared; i < length; i++) {
            world->stack_locs[first + length - 1 - i] = synth_below(&world->rng, n_locations);
        }
        world->stack_first[s + 1] = first + length;
    }
}

/* Distinct stacks, low numbers more often: rank = n * u^3. */
static inline uint32_t synth_draw(struct synth_world *world, bool *taken)
{
    for (;;) {
        double u = (double)(synth_next(&world->rng) >> 11) / 9007199254740992.0;
        uint32_t s = (uint32_t)(u * u * u * world->n_stacks);
        if (!taken[s]) {
            taken[s] = true;
            return s;
        }
    }
}

static inline uint32_t synth_string(struct hearth_profile *p, const char *text)
{
    p->strings[p->n_strings] = hearth_str_c(text);
    return p->n_strings++;
}

/* The location of the world in the profile, made with its function at first use. Every 50th has an
 * inlined line. */
static inline uint32_t synth_location(const struct synth_world *world, struct hearth_profile *p,
                                      uint32_t *location_of, uint32_t *function_of,
                                      uint32_t *file_of, uint32_t l, struct hearth_arena *arena)
{
    if (location_of[l] != 0) {
        return location_of[l] - 1;
    }
    struct hearth_location *location = &p->locations[p->n_locations];
    *location = (struct hearth_location){.mapping = 0,
                                         .first_line = p->n_lines,
                                         .n_lines = l % 50 == 7 ? 2 : 1,
                                         .address = 4096 + l};
    for (uint32_t i = 0; i < location->n_lines; i++) {
        uint32_t f = (l + i) % world->n_functions;
        if (function_of[f] == 0) {
            uint32_t file = f / 8;
            if (file_of[file] == 0) {
                file_of[file] =
                    1 + synth_string(p, hearth_arena_printf(arena, "src/main/pkg%u/File%u.java",
                                                            file % 40, file));
            }
            uint32_t name = synth_string(
                p, hearth_arena_printf(arena, "org.example.service%u.Handler%u$Inner.method%u",
                                       f % 23, f % 301, f));
            p->functions[p->n_functions] =
                (struct hearth_function){name, name, file_of[file] - 1, f % 900};
            function_of[f] = ++p->n_functions;
        }
        p->lines[p->n_lines++] = (struct hearth_line){function_of[f] - 1, 10 + l % 1000};
    }
    location_of[l] = ++p->n_locations;
    return location_of[l] - 1;
}

/*
 * A profile of n_samples distinct stacks; drawn[s] (may be NULL) is the world's number of sample s.
 * n_types values: mostly 1, then 10,000,000 times that.
 */
static inline struct hearth_profile synth_profile(struct synth_world *world, uint32_t n_samples,
                                                  uint32_t n_types, struct hearth_arena *arena,
                                                  uint32_t *drawn)
{
    struct hearth_profile p = {0};
    uint32_t *location_of = synth_array(arena, world->n_locations, sizeof(uint32_t));
    uint32_t *function_of = synth_array(arena, world->n_functions, sizeof(uint32_t));
    uint32_t *file_of = synth_array(arena, world->n_functions, sizeof(uint32_t));
    bool *taken = synth_array(arena, world->n_stacks, sizeof(bool));
    p.strings = synth_array(arena, 2 * (size_t)world->n_functions + 8, sizeof p.strings[0]);
    p.functions = synth_array(arena, world->n_functions, sizeof p.functions[0]);
    p.locations = synth_array(arena, world->n_locations, sizeof p.locations[0]);
    p.lines = synth_array(arena, 2 * (size_t)world->n_locations, sizeof p.lines[0]);
    p.stack_first = synth_array(arena, (size_t)n_samples + 1, sizeof(uint32_t));
    p.stack_locs = synth_array(arena, (size_t)n_samples * world->depth * 2, sizeof(uint32_t));
    p.values = synth_array(arena, (size_t)n_samples * n_types, sizeof p.values[0]);
    p.label_first = synth_array(arena, (size_t)n_samples + 1, sizeof(uint32_t));
    p.mappings = synth_array(arena, 1, sizeof p.mappings[0]);
    p.types = synth_array(arena, n_types, sizeof p.types[0]);
    p.n_samples = n_samples;
    p.n_types = n_types;
    p.n_mappings = 1;
    (void)synth_string(&p, "");
    p.mappings[0] = (struct hearth_mapping){.start = 0x400000,
                                            .limit = 0x900000,
                                            .filename = synth_string(&p, "/usr/bin/service"),
                                            .build_id = synth_string(&p, "3f1c0de5"),
                                            .has_functions = true};
    for (uint32_t s = 0; s < n_samples; s++) {
        uint32_t w = synth_draw(world, taken);
        if (drawn != NULL) {
            drawn[s] = w;
        }
        p.stack_first[s] = p.n_stack_locs;
        for (uint32_t i = world->stack_first[w]; i < world->stack_first[w + 1]; i++) {
            p.stack_locs[p.n_stack_locs++] = synth_location(world, &p, location_of, function_of,
                                                            file_of, world->stack_locs[i], arena);
        }
        int64_t count = synth_below(&world->rng, 4) > 0 ? 1 : 1 + synth_below(&world->rng, 40);
        for (uint32_t k = 0; k < n_types; k++) {
            p.values[(size_t)s * n_types + k] = k == 0 ? count : count * 10000000;
        }
    }
    p.stack_first[n_samples] = p.n_stack_locs;
    return p;
}

#endif
