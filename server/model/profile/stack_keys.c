/*
 * stack_keys.c -- the keys of a profile's strings, functions, mappings, locations and stacks.
 *
 * Computed without any lock and without a dictionary. Every profile pays for it, so each string is
 * hashed once, and only if a function or a mapping refers to it. A key depends on content alone,
 * never on the numbering of a profile, and on the seed of this process, so that nobody can prepare
 * two stacks with one key.
 *
 *     string   = XXH3, 64 bits
 *     function = mix of name, system name, file name, start line
 *     mapping  = XXH3 of file name, build id, flags; a second key also of start, limit, offset
 *     location = mix of mapping, is folded, and function and line of each line; without lines: mix
 *                of the second key of its mapping and its address
 *     stack    = NH of the low halves of the keys of its locations
 *
 * Above XXH3 all inputs are random for anyone who does not know the seed, so a multiplication mixes
 * well enough and is several times cheaper than a call. NH is the universal hash of UMAC: the sum
 * of (x[i] + k[i]) * (x[i + 1] + k[i + 1]) with random keys k; any two different stacks have the
 * same sum with a probability of at most 2^-64.
 *
 * 64 bits per part suffice, because they need to differ within one dictionary only: among a million
 * locations, two have the same 64 bits with a probability of 3e-8.
 *
 * Source: J. Black et al., UMAC: Fast and Secure Message Authentication, 1999 (NH).
 */
#include "hearth/model/dict.h"

#include <assert.h>

#define N_NH_KEYS 64 /* even; a deeper stack is hashed in blocks */

struct key_maker {
    const struct hearth_profile *profile;
    struct hearth_stack_keys keys;
    uint64_t *string; /* [n_strings]; 0: not hashed yet */
    uint64_t seed;
    uint64_t nh[N_NH_KEYS];
};

static inline uint64_t hash_string(struct key_maker *m, uint32_t i)
{
    uint64_t key = m->string[i];
    if (key == 0) {
        struct hearth_str s = m->profile->strings[i];
        key = hearth_hash64(s.p, s.n, m->seed) | 1;
        m->string[i] = key;
    }
    return key;
}

static void make_mappings(struct key_maker *m)
{
    for (uint32_t i = 0; i < m->profile->n_mappings; i++) {
        const struct hearth_mapping *mapping = &m->profile->mappings[i];
        uint64_t flags = (uint64_t)mapping->has_functions | (uint64_t)mapping->has_filenames << 1 |
                         (uint64_t)mapping->has_line_numbers << 2 |
                         (uint64_t)mapping->has_inline_frames << 3;
        uint64_t words[6] = {hash_string(m, mapping->filename), hash_string(m, mapping->build_id),
                             flags};
        m->keys.mapping[i] = hearth_hash128(words, sizeof words, m->seed);

        /* The words are 0 for a mapping without a range: both keys are equal, one entry results. */
        words[3] = mapping->start;
        words[4] = mapping->limit;
        words[5] = mapping->offset;
        m->keys.ranged_mapping[i] = hearth_hash128(words, sizeof words, m->seed);
    }
}

static void make_functions(struct key_maker *m)
{
    for (uint32_t i = 0; i < m->profile->n_functions; i++) {
        const struct hearth_function *function = &m->profile->functions[i];
        uint64_t name = hash_string(m, function->name);
        uint64_t filename = hash_string(m, function->filename);
        uint64_t names = hearth_hash_mix(name ^ m->seed, hash_string(m, function->system_name));
        uint64_t place = hearth_hash_mix(filename + m->seed, (uint64_t)function->start_line);
        m->keys.function[i].lo = hearth_hash_mix(names, place);
        m->keys.function[i].hi = hearth_hash_mix(place + name, names);
    }
}

static struct hearth_hash128 make_zero_key(void)
{
    return (struct hearth_hash128){0, 0};
}

/*
 * The key of a location with no line, or with several. The numbers of a client are added to the
 * seed, so that none of them makes a factor 0.
 */
static struct hearth_hash128 hash_long_location(const struct key_maker *m,
                                                const struct hearth_location *location,
                                                struct hearth_hash128 mapping)
{
    uint64_t head = m->seed + ((uint64_t)location->n_lines << 1 | location->is_folded);
    struct hearth_hash128 key = {hearth_hash_mix(mapping.lo ^ m->seed, head),
                                 hearth_hash_mix(mapping.hi ^ m->seed, head)};

    if (location->n_lines == 0) {
        key.lo = hearth_hash_mix(key.lo, m->seed + location->address);
        key.hi = hearth_hash_mix(key.hi, m->seed + location->address);
    }

    /* Each line is mixed into the key of those before it, so their order counts. */
    const struct hearth_line *line = m->profile->lines + location->first_line;
    for (uint32_t i = 0; i < location->n_lines; i++, line++) {
        struct hearth_hash128 function =
            line->function == HEARTH_NO_INDEX ? make_zero_key() : m->keys.function[line->function];
        uint64_t number = m->seed + (uint64_t)line->line;
        key.lo = hearth_hash_mix(key.lo + function.lo, number);
        key.hi = hearth_hash_mix(key.hi + function.hi, number);
    }

    return key;
}

static inline struct hearth_hash128 hash_location(const struct key_maker *m,
                                                  const struct hearth_location *location)
{
    const struct hearth_hash128 *mappings =
        location->n_lines == 0 ? m->keys.ranged_mapping : m->keys.mapping;
    struct hearth_hash128 mapping =
        location->mapping == HEARTH_NO_INDEX ? make_zero_key() : mappings[location->mapping];

    if (location->n_lines != 1) {
        return hash_long_location(m, location, mapping);
    }

    const struct hearth_line *line = &m->profile->lines[location->first_line];
    struct hearth_hash128 function =
        line->function == HEARTH_NO_INDEX ? make_zero_key() : m->keys.function[line->function];

    /* The seed is odd, so folded and not folded locations differ. */
    uint64_t place = (uint64_t)line->line + (location->is_folded ? m->seed << 1 : 0);

    return (struct hearth_hash128){
        .lo = hearth_hash_mix(m->seed + (function.lo ^ mapping.lo), place),
        .hi = hearth_hash_mix(m->seed + (function.hi ^ mapping.hi), place),
    };
}

__extension__ typedef unsigned __int128 u128;

/* NH over the locations up to the first dangling one; *ret_whole: no location is dangling. */
static struct hearth_hash128 hash_stack(const struct key_maker *m, const uint64_t *halves,
                                        const uint32_t *locs, uint32_t depth, bool *ret_whole)
{
    struct hearth_hash128 key = {depth, m->seed};
    bool whole = true;

    for (uint32_t from = 0; from < depth; from += N_NH_KEYS) {
        uint32_t n = depth - from < N_NH_KEYS ? depth - from : N_NH_KEYS;
        const uint32_t *at = locs + from;
        u128 sum = 0;
        uint32_t i = 0;

        /* Pairs of locations. */
        for (; i + 2 <= n; i += 2) {
            if (at[i] == HEARTH_NO_INDEX || at[i + 1] == HEARTH_NO_INDEX) {
                break;
            }
            sum += (u128)(halves[at[i]] + m->nh[i]) * (halves[at[i + 1]] + m->nh[i + 1]);
        }

        /* The last one of an odd number. An even number adds 0, because a branch would be
         * mispredicted for a part of all stacks. */
        uint32_t last = at[n - 1];
        if (i + 2 > n && last != HEARTH_NO_INDEX) {
            uint64_t factor = m->nh[n % N_NH_KEYS] & (0 - (uint64_t)(n & 1));
            sum += (u128)(halves[last] + m->nh[n - 1]) * factor;
            i = n;
        }
        whole = whole && i == n;

        /* Mix the sum of this block into the key. */
        uint64_t lo = hearth_hash_mix(key.lo ^ (uint64_t)sum, (uint64_t)(sum >> 64));
        key.hi = hearth_hash_mix(key.hi ^ (uint64_t)(sum >> 64), (uint64_t)sum + key.lo);
        key.lo = lo;
    }

    *ret_whole = whole;

    return key;
}

static void make_stacks(struct key_maker *m, const uint64_t *halves)
{
    const struct hearth_profile *profile = m->profile;

    for (uint32_t s = 0; s < profile->n_samples; s++) {
        const uint32_t *locs = profile->stack_locs + profile->stack_first[s];
        uint32_t depth = profile->stack_first[s + 1] - profile->stack_first[s];
        bool whole;
        m->keys.stack[s] = hash_stack(m, halves, locs, depth, &whole);
        m->keys.skip[s] = !whole;
    }
}

enum hearth_status hearth_stack_keys_make(const struct hearth_profile *profile,
                                          struct hearth_arena *arena,
                                          struct hearth_stack_keys *ret_keys,
                                          struct hearth_err *err)
{
    assert(profile != NULL && arena != NULL && ret_keys != NULL);

    struct key_maker m = {.profile = profile, .seed = hearth_hash_process_seed()};

    /* Random keys for NH. */
    for (uint32_t i = 0; i < N_NH_KEYS; i++) {
        m.nh[i] = hearth_hash64(&i, sizeof i, m.seed);
    }

    /* Memory for the keys. */
    m.keys.stack = hearth_arena_array(arena, profile->n_samples, sizeof m.keys.stack[0]);
    m.keys.location = hearth_arena_array(arena, profile->n_locations, sizeof m.keys.location[0]);
    m.keys.function = hearth_arena_array(arena, profile->n_functions, sizeof m.keys.function[0]);
    m.keys.mapping = hearth_arena_array(arena, profile->n_mappings, sizeof m.keys.mapping[0]);
    m.keys.ranged_mapping =
        hearth_arena_array(arena, profile->n_mappings, sizeof m.keys.ranged_mapping[0]);
    m.keys.skip = hearth_arena_array(arena, profile->n_samples, sizeof m.keys.skip[0]);
    m.string = hearth_arena_calloc(arena, profile->n_strings, sizeof m.string[0]);
    uint64_t *halves = hearth_arena_array(arena, profile->n_locations, sizeof halves[0]);
    if (m.keys.stack == NULL || m.keys.location == NULL || m.keys.function == NULL ||
        m.keys.mapping == NULL || m.keys.ranged_mapping == NULL || m.keys.skip == NULL ||
        m.string == NULL || halves == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Each kind of key is made of those before it. */
    make_mappings(&m);
    make_functions(&m);
    for (uint32_t l = 0; l < profile->n_locations; l++) {
        m.keys.location[l] = hash_location(&m, &profile->locations[l]);
        halves[l] = m.keys.location[l].lo;
    }

    make_stacks(&m, halves);
    *ret_keys = m.keys;

    return HEARTH_OK;
}
