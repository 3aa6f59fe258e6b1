/*
 * stack_keys.c -- the keys of a profile's strings, functions, mappings, locations and stacks.
 *
 * Computed without any lock and without a dictionary. Every profile pays for it, so each string is
 * hashed once, with as few branches that the processor cannot foresee as possible. A key depends on
 * content alone, never on the numbering of a profile, and on the seed of this process, so that
 * nobody can prepare two stacks with one key.
 *
 *     string   = NH of its bytes, mixed with its length; above 512 bytes XXH3
 *     function = mix of name, system name, file name, start line
 *     mapping  = XXH3 of file name, build id, flags; a second key also of start, limit, offset
 *     location = mix of mapping, is folded, and function and line of each line; without lines: mix
 *                of the second key of its mapping and its address
 *     stack    = NH of the keys of its locations, 128 bits
 *
 * NH is the universal hash of UMAC: the sum of (x[i] + k[i]) * (x[i + 1] + k[i + 1]) with random
 * keys k; any two different inputs of one length have the same sum with a probability of at most
 * 2^-64. Above the strings all inputs are random for anyone who does not know the seed, so a
 * multiplication mixes well enough and is several times cheaper than a call.
 *
 * 64 bits per part suffice, because they need to differ within one dictionary only: among a million
 * locations, two have the same 64 bits with a probability of 3e-8.
 *
 * Source: J. Black et al., UMAC: Fast and Secure Message Authentication, 1999 (NH).
 */
#include "hearth/model/dict.h"

#include <assert.h>
#include <pthread.h>

#define N_NH_KEYS      64 /* even; a deeper stack is hashed in blocks */
#define NH_BLOCK_BYTES 64 /* of a string: eight keys */
#define MAX_NH_BYTES   (N_NH_KEYS * sizeof(uint64_t))

__extension__ typedef unsigned __int128 u128;

static uint64_t g_nh[N_NH_KEYS]; /* random keys, made once in a process */

struct key_maker {
    const struct hearth_profile *profile;
    struct hearth_stack_keys keys;
    uint64_t *string; /* [n_strings] */
    uint64_t seed;
};

static void make_nh_keys(void)
{
    for (uint32_t i = 0; i < N_NH_KEYS; i++) {
        g_nh[i] = hearth_hash64(&i, sizeof i, hearth_hash_process_seed());
    }
}

/* ---- strings ---- */

HEARTH_ALWAYS_INLINE uint64_t load_word(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

HEARTH_ALWAYS_INLINE u128 hash_words(uint64_t a, uint64_t b, const uint64_t *nh)
{
    return (u128)(a + nh[0]) * (b + nh[1]);
}

HEARTH_ALWAYS_INLINE u128 hash_two_words(const char *p, const uint64_t *nh)
{
    return hash_words(load_word(p), load_word(p + 8), nh);
}

/*
 * NH of 17 to 64 bytes: always four pairs of words, which overlap, so that no branch depends on n.
 */
HEARTH_ALWAYS_INLINE u128 hash_block(const char *p, size_t n, const uint64_t *nh)
{
    const char *last = p + n - 16;
    const char *second = p + 16 < last ? p + 16 : last, *third = p + 32 < last ? p + 32 : last;
    return hash_two_words(p, nh) + hash_two_words(second, nh + 2) + hash_two_words(third, nh + 4) +
           hash_two_words(last, nh + 6);
}

/* NH of at most 16 bytes: two words, which overlap, or are filled with zeros. */
static inline u128 hash_short_string(const char *p, size_t n)
{
    uint64_t a = 0, b = 0;
    if (n >= 8) {
        a = load_word(p);
        b = load_word(p + n - 8);
    } else {
        memcpy(&a, p, n);
    }
    return hash_words(a, b, g_nh);
}

static inline uint64_t hash_string(struct hearth_str s, uint64_t seed)
{
    const char *p = s.p;
    size_t left = s.n;
    const uint64_t *nh = g_nh;
    u128 sum = 0;

    if (HEARTH_UNLIKELY(s.n > MAX_NH_BYTES)) {
        return hearth_hash64(s.p, s.n, seed);
    }

    /* Whole blocks; the last 64 bytes overlap with them. */
    for (; left > NH_BLOCK_BYTES; left -= NH_BLOCK_BYTES) {
        sum += hash_block(p, NH_BLOCK_BYTES, nh);
        p += NH_BLOCK_BYTES;
        nh += NH_BLOCK_BYTES / sizeof nh[0];
    }
    if (nh != g_nh) {
        sum += hash_block(p + left - NH_BLOCK_BYTES, NH_BLOCK_BYTES, nh);
    } else if (left > 16) {
        sum += hash_block(p, left, nh);
    } else if (left > 0) {
        sum += hash_short_string(p, left);
    }

    return hearth_hash_mix((uint64_t)sum ^ (seed + s.n), (uint64_t)(sum >> 64) + seed);
}

static void make_mappings(struct key_maker *m)
{
    for (uint32_t i = 0; i < m->profile->n_mappings; i++) {
        const struct hearth_mapping *mapping = &m->profile->mappings[i];
        uint64_t flags = (uint64_t)mapping->has_functions | (uint64_t)mapping->has_filenames << 1 |
                         (uint64_t)mapping->has_line_numbers << 2 |
                         (uint64_t)mapping->has_inline_frames << 3;
        uint64_t words[6] = {m->string[mapping->filename], m->string[mapping->build_id], flags};
        m->keys.mapping[i] = hearth_hash64(words, sizeof words, m->seed);

        /* The words are 0 for a mapping without a range: both keys are equal, one entry results. */
        words[3] = mapping->start;
        words[4] = mapping->limit;
        words[5] = mapping->offset;
        m->keys.ranged_mapping[i] = hearth_hash64(words, sizeof words, m->seed);
    }
}

static void make_functions(struct key_maker *m)
{
    const uint64_t *string = m->string, seed = m->seed;

    for (uint32_t i = 0; i < m->profile->n_functions; i++) {
        const struct hearth_function *f = &m->profile->functions[i];
        uint64_t names = hearth_hash_mix(string[f->name] ^ seed, string[f->system_name]);
        uint64_t place = hearth_hash_mix(string[f->filename] + seed, (uint64_t)f->start_line);
        m->keys.function[i] = hearth_hash_mix(names, place);
    }
}

/* ---- locations ---- */

static inline uint64_t find_function_key(const struct key_maker *m, const struct hearth_line *line)
{
    return line->function == HEARTH_NO_INDEX ? 0 : m->keys.function[line->function];
}

/*
 * The key of a location with no line, or with several. The numbers of a client are added to the
 * seed, so that none of them makes a factor 0.
 */
static uint64_t hash_long_location(const struct key_maker *m,
                                   const struct hearth_location *location, uint64_t mapping)
{
    uint64_t head = m->seed + ((uint64_t)location->n_lines << 1 | location->is_folded);
    uint64_t key = hearth_hash_mix(mapping ^ m->seed, head);

    if (location->n_lines == 0) {
        return hearth_hash_mix(key, m->seed + location->address);
    }

    /* Each line is mixed into the key of those before it, so their order counts. */
    const struct hearth_line *line = m->profile->lines + location->first_line;
    for (uint32_t i = 0; i < location->n_lines; i++, line++) {
        key = hearth_hash_mix(key + find_function_key(m, line), m->seed + (uint64_t)line->line);
    }

    return key;
}

static inline uint64_t hash_location(const struct key_maker *m,
                                     const struct hearth_location *location)
{
    const uint64_t *mappings = location->n_lines == 0 ? m->keys.ranged_mapping : m->keys.mapping;
    uint64_t mapping = location->mapping == HEARTH_NO_INDEX ? 0 : mappings[location->mapping];

    if (location->n_lines != 1) {
        return hash_long_location(m, location, mapping);
    }

    /* The seed is odd, so folded and not folded locations differ. */
    const struct hearth_line *line = &m->profile->lines[location->first_line];
    uint64_t place = (uint64_t)line->line + (location->is_folded ? m->seed << 1 : 0);

    return hearth_hash_mix(m->seed + (find_function_key(m, line) ^ mapping), place);
}

/* ---- stacks ---- */

/* Mixes the NH sum of a block of locations into the key. */
HEARTH_ALWAYS_INLINE void mix_sum(struct hearth_hash128 *key, u128 sum)
{
    uint64_t lo = hearth_hash_mix(key->lo ^ (uint64_t)sum, (uint64_t)(sum >> 64));
    key->hi = hearth_hash_mix(key->hi ^ (uint64_t)(sum >> 64), (uint64_t)sum + key->lo);
    key->lo = lo;
}

/* NH over n locations, at most N_NH_KEYS, none of which is dangling. */
HEARTH_ALWAYS_INLINE u128 sum_locations(const uint64_t *location, const uint32_t *at, uint32_t n)
{
    const uint64_t *nh = g_nh, last = location[at[n - 1]] + g_nh[n - 1];
    u128 sum = 0;
    for (const uint32_t *end = at + (n & ~1u); at < end; at += 2, nh += 2) {
        sum += hash_words(location[at[0]], location[at[1]], nh);
    }

    /*
     * The last one of an odd number. An even number adds 0, because a branch would be mispredicted
     * for a part of all stacks.
     */
    return sum + (u128)last * (g_nh[n % N_NH_KEYS] & (0 - (uint64_t)(n & 1)));
}

static inline struct hearth_hash128 hash_stack(const struct key_maker *m, const uint32_t *locs,
                                               uint32_t depth)
{
    struct hearth_hash128 key = {depth, m->seed};
    for (uint32_t from = 0; from < depth; from += N_NH_KEYS) {
        uint32_t n = depth - from < N_NH_KEYS ? depth - from : N_NH_KEYS;
        mix_sum(&key, sum_locations(m->keys.location, locs + from, n));
    }
    return key;
}

typedef uint32_t four_locations HEARTH_VECTOR(16);

HEARTH_ALWAYS_INLINE four_locations find_dangling(const uint32_t *locs)
{
    four_locations four;
    memcpy(&four, locs, sizeof four);
    return (four_locations)(four == HEARTH_NO_INDEX);
}

static bool has_dangling(const uint32_t *locs, size_t n)
{
    four_locations found = {0}, more = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        found |= find_dangling(locs + i);
        more |= find_dangling(locs + i + 4);
    }

    found |= more;
    uint32_t any = found[0] | found[1] | found[2] | found[3];
    for (; i < n; i++) {
        any |= locs[i] == HEARTH_NO_INDEX;
    }

    return any != 0;
}

static void make_stacks(struct key_maker *m)
{
    static const uint32_t none[] = {0}; /* if all stacks are empty, their locations may be NULL */
    const struct hearth_profile *profile = m->profile;
    const uint32_t *all = profile->stack_locs == NULL ? none : profile->stack_locs;
    uint32_t n = profile->n_samples;
    bool any = n > 0 && has_dangling(all, profile->stack_first[n]);

    for (uint32_t s = 0; s < n; s++) {
        const uint32_t *locs = all + profile->stack_first[s];
        uint32_t depth = profile->stack_first[s + 1] - profile->stack_first[s];
        m->keys.skip[s] = any && has_dangling(locs, depth);
        if (!m->keys.skip[s]) {
            m->keys.stack[s] = hash_stack(m, locs, depth);
        }
    }
}

enum hearth_status hearth_stack_keys_make(const struct hearth_profile *profile,
                                          struct hearth_arena *arena,
                                          struct hearth_stack_keys *ret_keys,
                                          struct hearth_err *err)
{
    static pthread_once_t g_once = PTHREAD_ONCE_INIT;

    assert(profile != NULL && arena != NULL && ret_keys != NULL);

    (void)pthread_once(&g_once, make_nh_keys);
    struct key_maker m = {.profile = profile, .seed = hearth_hash_process_seed()};

    /* Memory for the keys. */
    m.keys.stack = hearth_arena_array(arena, profile->n_samples, sizeof m.keys.stack[0]);
    m.keys.location = hearth_arena_array(arena, profile->n_locations, sizeof m.keys.location[0]);
    m.keys.function = hearth_arena_array(arena, profile->n_functions, sizeof m.keys.function[0]);
    m.keys.mapping = hearth_arena_array(arena, profile->n_mappings, sizeof m.keys.mapping[0]);
    m.keys.ranged_mapping =
        hearth_arena_array(arena, profile->n_mappings, sizeof m.keys.ranged_mapping[0]);
    m.keys.skip = hearth_arena_array(arena, profile->n_samples, sizeof m.keys.skip[0]);
    m.string = hearth_arena_array(arena, profile->n_strings, sizeof m.string[0]);
    if (m.keys.stack == NULL || m.keys.location == NULL || m.keys.function == NULL ||
        m.keys.mapping == NULL || m.keys.ranged_mapping == NULL || m.keys.skip == NULL ||
        m.string == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Each kind of key is made of those before it. */
    for (uint32_t i = 0; i < profile->n_strings; i++) {
        m.string[i] = hash_string(profile->strings[i], m.seed);
    }
    make_mappings(&m);
    make_functions(&m);
    for (uint32_t l = 0; l < profile->n_locations; l++) {
        m.keys.location[l] = hash_location(&m, &profile->locations[l]);
    }

    make_stacks(&m);
    *ret_keys = m.keys;

    return HEARTH_OK;
}
