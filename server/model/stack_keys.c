/*
 * stack_keys.c -- the 128-bit keys of a profile's strings, functions, mappings, locations and
 * stacks.
 *
 * Made without any lock and without looking at a dictionary; every profile pays for it, so each
 * string is read once, and only where a function or a mapping names it. A key depends on content
 * alone, never on the numbering of a profile, and on the seed of this process, so that nobody can
 * prepare two stacks with one key.
 *
 *     function = hash of the keys of name, system name, file name; start line
 *     mapping  = hash of the keys of file name, build id; flags; start, limit, offset unless it has
 * functions location = hash of the key of the mapping; is folded; (key of function, line) of each
 * line, or the address stack    = hash of the low halves of the keys of its locations
 *
 * The low half of a location is enough there: within one dictionary two of a million locations
 * share it with probability 3e-8. The stack's own hash needs no seed, as its input cannot be known.
 */
#include "hearth/model/dict.h"

static bool is_unset(struct hearth_hash128 key)
{
    return (key.lo | key.hi) == 0;
}

struct maker {
    const struct hearth_profile *profile;
    struct hearth_stack_keys keys;
    uint64_t seed;
};

static inline struct hearth_hash128 string_key(struct maker *m, uint32_t i)
{
    struct hearth_hash128 *key = &m->keys.string[i];
    if (is_unset(*key)) {
        struct hearth_str s = m->profile->strings[i];
        *key = hearth_hash128(s.p, s.n, m->seed);
    }
    return *key;
}

static void make_mappings(struct maker *m)
{
    for (uint32_t i = 0; i < m->profile->n_mappings; i++) {
        const struct hearth_mapping *mapping = &m->profile->mappings[i];
        struct hearth_hash128 filename = string_key(m, mapping->filename);
        struct hearth_hash128 build_id = string_key(m, mapping->build_id);
        uint64_t flags = (uint64_t)mapping->has_functions | (uint64_t)mapping->has_filenames << 1 |
                         (uint64_t)mapping->has_line_numbers << 2 |
                         (uint64_t)mapping->has_inline_frames << 3;
        uint64_t words[8] = {filename.lo, filename.hi, build_id.lo, build_id.hi, flags};
        if (!mapping->has_functions) {
            words[5] = mapping->start;
            words[6] = mapping->limit;
            words[7] = mapping->offset;
        }
        m->keys.mapping[i] = hearth_hash128(words, sizeof words, m->seed);
    }
}

static void make_functions(struct maker *m)
{
    for (uint32_t i = 0; i < m->profile->n_functions; i++) {
        const struct hearth_function *function = &m->profile->functions[i];
        struct hearth_hash128 name = string_key(m, function->name);
        struct hearth_hash128 system_name = string_key(m, function->system_name);
        struct hearth_hash128 filename = string_key(m, function->filename);
        uint64_t words[7] = {name.lo,
                             name.hi,
                             system_name.lo,
                             system_name.hi,
                             filename.lo,
                             filename.hi,
                             (uint64_t)function->start_line};
        m->keys.function[i] = hearth_hash128(words, sizeof words, m->seed);
    }
}

#define LINE_WORDS 3
#define MOST_LINES 16 /* hashed at once; a longer location is hashed in steps */

static struct hearth_hash128 location_key(const struct maker *m,
                                          const struct hearth_location *location)
{
    struct hearth_hash128 mapping = {0, 0};
    if (location->mapping != HEARTH_NO_INDEX) {
        mapping = m->keys.mapping[location->mapping];
    }
    uint64_t words[3 + LINE_WORDS * MOST_LINES];
    words[0] = mapping.lo;
    words[1] = mapping.hi;
    words[2] = (uint64_t)location->n_lines << 1 | location->is_folded;
    size_t n = 3;
    if (location->n_lines == 0) {
        words[n++] = location->address;
    }
    const struct hearth_line *line = m->profile->lines + location->first_line;
    for (uint32_t i = 0; i < location->n_lines; i++, line++) {
        if (n + LINE_WORDS > HEARTH_ARRAY_LEN(words)) {
            struct hearth_hash128 so_far = hearth_hash128(words, n * sizeof words[0], m->seed);
            words[0] = so_far.lo;
            words[1] = so_far.hi;
            n = 2;
        }
        struct hearth_hash128 function = {0, 0};
        if (line->function != HEARTH_NO_INDEX) {
            function = m->keys.function[line->function];
        }
        words[n++] = function.lo;
        words[n++] = function.hi;
        words[n++] = (uint64_t)line->line;
    }
    return hearth_hash128(words, n * sizeof words[0], m->seed);
}

static void make_stacks(struct maker *m, const uint64_t *halves, uint64_t *gathered)
{
    const struct hearth_profile *profile = m->profile;
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        const uint32_t *at = profile->stack_locs + profile->stack_first[s];
        uint32_t depth = profile->stack_first[s + 1] - profile->stack_first[s];
        uint32_t i = 0;
        for (; i < depth && at[i] != HEARTH_NO_INDEX; i++) {
            gathered[i] = halves[at[i]];
        }
        m->keys.skip[s] = i < depth;
        m->keys.stack[s] = hearth_hash128(gathered, i * sizeof gathered[0], 0);
    }
}

static uint32_t deepest(const struct hearth_profile *profile)
{
    uint32_t most = 0;
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        uint32_t depth = profile->stack_first[s + 1] - profile->stack_first[s];
        most = depth > most ? depth : most;
    }
    return most;
}

enum hearth_status hearth_stack_keys_make(const struct hearth_profile *profile,
                                          struct hearth_arena *arena,
                                          struct hearth_stack_keys *ret_keys,
                                          struct hearth_err *err)
{
    struct maker m = {.profile = profile, .seed = hearth_hash_process_seed()};
    m.keys.stack = hearth_arena_array(arena, profile->n_samples, sizeof m.keys.stack[0]);
    m.keys.location = hearth_arena_array(arena, profile->n_locations, sizeof m.keys.location[0]);
    m.keys.function = hearth_arena_array(arena, profile->n_functions, sizeof m.keys.function[0]);
    m.keys.mapping = hearth_arena_array(arena, profile->n_mappings, sizeof m.keys.mapping[0]);
    m.keys.string = hearth_arena_calloc(arena, profile->n_strings, sizeof m.keys.string[0]);
    m.keys.skip = hearth_arena_array(arena, profile->n_samples, sizeof m.keys.skip[0]);
    uint64_t *halves = hearth_arena_array(arena, profile->n_locations, sizeof halves[0]);
    uint64_t *gathered = hearth_arena_array(arena, deepest(profile), sizeof gathered[0]);
    if (m.keys.stack == NULL || m.keys.location == NULL || m.keys.function == NULL ||
        m.keys.mapping == NULL || m.keys.string == NULL || m.keys.skip == NULL || halves == NULL ||
        gathered == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    make_mappings(&m);
    make_functions(&m);
    for (uint32_t l = 0; l < profile->n_locations; l++) {
        m.keys.location[l] = location_key(&m, &profile->locations[l]);
        halves[l] = m.keys.location[l].lo;
    }
    make_stacks(&m, halves, gathered);
    *ret_keys = m.keys;
    return HEARTH_OK;
}
