/*
 * profile_builder.c -- profiles from stacks: interns everything by content, then copies it into
 * flat arrays.
 *
 * Tables grow in the arena, which keeps no outgrown copies of large ones; finish only hands them
 * out. Maps are on the heap and count against the budget of the arena, and against its byte limit
 * by themselves. Keys are 128-bit hashes with the seed of the process: equal keys are regarded as
 * equal content.
 */
#include "hearth/format/profile_builder.h"

#include "hearth/base/budget.h"
#include "hearth/base/hash.h"
#include "hearth/base/limit.h"
#include "hearth/base/mem.h"

#include "pprof/pprof_text.h"

#include <assert.h>

/* Entries of one table; below HEARTH_NO_INDEX, so that every index can be represented. */
#define MAX_ENTRIES (UINT32_MAX - 1)

struct vec_u32 {
    uint32_t *v;
    size_t n, cap;
};

struct hearth_profile_builder {
    struct hearth_arena *arena;
    uint64_t seed;
    uint32_t max_frames; /* 0: no limit */
    struct hearth_idmap string_ids, mapping_ids, function_ids, location_ids, sample_ids;
    size_t map_bytes; /* of the maps, charged to the arena's budget */
    struct hearth_str *strings;
    size_t n_strings, cap_strings;
    struct hearth_value_type *types;
    size_t n_types, cap_types;
    struct hearth_mapping *mappings;
    size_t n_mappings, cap_mappings;
    struct hearth_function *functions;
    size_t n_functions, cap_functions;
    struct hearth_line *lines;
    size_t n_lines, cap_lines;
    struct hearth_location *locations;
    size_t n_locations, cap_locations;
    struct vec_u32 stack_first, stack_locs; /* stack_first has no entry for the end */
    struct vec_u32 label_first;             /* has no entry for the end, either */
    uint32_t last_sample;                   /* that was added or found */
    struct hearth_sample_label *labels;
    size_t n_labels, cap_labels;
    int64_t *values;
    size_t cap_values;
    uint64_t *key; /* scratch: the words that are hashed for a key */
    size_t cap_key;
};

struct hearth_profile_builder *hearth_profile_builder_new(struct hearth_arena *arena)
{
    assert(arena != NULL);

    struct hearth_profile_builder *b = hearth_mem_zalloc(sizeof *b);
    if (b == NULL) {
        return NULL;
    }

    b->arena = arena;
    b->seed = hearth_hash_process_seed();
    if (hearth_profile_builder_string(b, HEARTH_STR("")) != 0) {
        hearth_profile_builder_free(b);
        return NULL;
    }

    return b;
}

void hearth_profile_builder_limit(struct hearth_profile_builder *b, uint32_t max_frames)
{
    b->max_frames = max_frames;
}

void hearth_profile_builder_free(struct hearth_profile_builder *b)
{
    if (b == NULL) {
        return;
    }

    hearth_idmap_release(&b->string_ids);
    hearth_idmap_release(&b->mapping_ids);
    hearth_idmap_release(&b->function_ids);
    hearth_idmap_release(&b->location_ids);
    hearth_idmap_release(&b->sample_ids);
    hearth_budget_give(b->arena->budget, b->map_bytes);
    hearth_mem_free(b);
}

static size_t count_map_bytes(const struct hearth_profile_builder *b)
{
    return hearth_idmap_bytes(&b->string_ids) + hearth_idmap_bytes(&b->mapping_ids) +
           hearth_idmap_bytes(&b->function_ids) + hearth_idmap_bytes(&b->location_ids) +
           hearth_idmap_bytes(&b->sample_ids);
}

/* Make room for `more` elements after the n elements of *arr. */
static bool reserve_elements(struct hearth_profile_builder *b, void *arr, size_t *cap, size_t n,
                             size_t more, size_t size)
{
    size_t want;

    if (HEARTH_LIKELY(*cap - n >= more)) {
        return true;
    }

    assert(n <= *cap);
    if (__builtin_add_overflow(n, more, &want) || want > MAX_ENTRIES) {
        return false;
    }

    return hearth_arena_regrow(b->arena, arr, cap, want, size);
}

#define RESERVE(b, what, n, more) \
    reserve_elements((b), &(b)->what, &(b)->cap_##what, (n), (more), sizeof *(b)->what)

static struct hearth_hash128 hash_words(const struct hearth_profile_builder *b,
                                        const uint64_t *words, size_t n)
{
    return hearth_hash128(words, n * sizeof *words, b->seed);
}

/* Charges what the map needs for another entry, within the limit and the budget of the arena. */
static bool account_entry(struct hearth_profile_builder *b, const struct hearth_idmap *map)
{
    struct hearth_arena *arena = b->arena;
    size_t n_bytes = count_map_bytes(b) - hearth_idmap_bytes(map) + hearth_idmap_next_bytes(map);

    if (n_bytes <= b->map_bytes) {
        return true;
    }

    arena->over_limit = arena->limit_bytes != 0 && n_bytes > arena->limit_bytes;
    arena->over_budget =
        !arena->over_limit && !hearth_budget_take(arena->budget, n_bytes - b->map_bytes);
    if (arena->over_limit || arena->over_budget) {
        arena->refused = true;
        return false;
    }
    b->map_bytes = n_bytes;

    return true;
}

/*
 * The id of `key`; a new key gets the id n, and *ret_fresh is true. The caller has made room for
 * the entry before, so that a map never contains an entry that does not exist.
 */
static uint32_t intern_key(struct hearth_profile_builder *b, struct hearth_idmap *map,
                           struct hearth_hash128 key, size_t n, bool *ret_fresh)
{
    *ret_fresh = false;
    if (HEARTH_UNLIKELY(hearth_idmap_next_bytes(map) > hearth_idmap_bytes(map)) &&
        !account_entry(b, map)) {
        return hearth_idmap_find(map, key);
    }

    return hearth_idmap_intern(map, key, (uint32_t)n, ret_fresh);
}

uint32_t hearth_profile_builder_string(struct hearth_profile_builder *b, struct hearth_str text)
{
    /*
     * The key is made from the original bytes, so that each text is checked and repaired only once.
     */
    struct hearth_hash128 key = hearth_hash128(text.p, text.n, b->seed);
    uint32_t id = hearth_idmap_find(&b->string_ids, key);
    if (id != HEARTH_IDMAP_NONE) {
        return id;
    }

    struct hearth_pprof_notes notes = {0};
    if (!RESERVE(b, strings, b->n_strings, 1) ||
        !hearth_pprof_mend_text(&text, 0, b->arena, &notes)) {
        return HEARTH_NO_INDEX;
    }

    if (notes.strings_repaired > 0) { /* the repaired text may exist already */
        uint32_t mended = hearth_profile_builder_string(b, text);
        bool fresh;
        return mended == HEARTH_NO_INDEX ? mended
                                         : intern_key(b, &b->string_ids, key, mended, &fresh);
    }

    struct hearth_str copy = hearth_arena_str(b->arena, text);
    if (copy.p == NULL) {
        return HEARTH_NO_INDEX;
    }

    bool fresh;
    id = intern_key(b, &b->string_ids, key, b->n_strings, &fresh);
    if (fresh) {
        b->strings[b->n_strings++] = copy;
    }

    return id;
}

uint32_t hearth_profile_builder_mapping(struct hearth_profile_builder *b,
                                        const struct hearth_mapping *mapping)
{
    const uint64_t words[] = {
        mapping->start, mapping->limit, mapping->offset,
        (uint64_t)mapping->filename << 32 | mapping->build_id,
        (uint64_t)mapping->has_functions | (uint64_t)mapping->has_filenames << 1 |
            (uint64_t)mapping->has_line_numbers << 2 | (uint64_t)mapping->has_inline_frames << 3};
    bool fresh;

    if (!RESERVE(b, mappings, b->n_mappings, 1)) {
        return HEARTH_NO_INDEX;
    }

    uint32_t id = intern_key(b, &b->mapping_ids, hash_words(b, words, HEARTH_ARRAY_LEN(words)),
                             b->n_mappings, &fresh);
    if (fresh) {
        b->mappings[b->n_mappings++] = *mapping;
    }

    return id;
}

uint32_t hearth_profile_builder_function(struct hearth_profile_builder *b,
                                         const struct hearth_function *function)
{
    const uint64_t words[] = {(uint64_t)function->name << 32 | function->system_name,
                              function->filename, (uint64_t)function->start_line};
    bool fresh;

    if (!RESERVE(b, functions, b->n_functions, 1)) {
        return HEARTH_NO_INDEX;
    }

    uint32_t id = intern_key(b, &b->function_ids, hash_words(b, words, HEARTH_ARRAY_LEN(words)),
                             b->n_functions, &fresh);
    if (fresh) {
        b->functions[b->n_functions++] = *function;
    }

    return id;
}

uint32_t hearth_profile_builder_location(struct hearth_profile_builder *b,
                                         const struct hearth_location *location,
                                         const struct hearth_line *lines, uint32_t n_lines)
{
    if (!RESERVE(b, locations, b->n_locations, 1) || !RESERVE(b, lines, b->n_lines, n_lines) ||
        !RESERVE(b, key, 0, 2 + 2 * (size_t)n_lines)) {
        return HEARTH_NO_INDEX;
    }

    /* The key: address, mapping, folded flag and all lines. */
    b->key[0] = location->address;
    b->key[1] = (uint64_t)location->mapping << 1 | location->is_folded;
    for (size_t i = 0; i < n_lines; i++) {
        b->key[2 + 2 * i] = lines[i].function;
        b->key[3 + 2 * i] = (uint64_t)lines[i].line;
    }

    bool fresh;
    struct hearth_hash128 key = hash_words(b, b->key, 2 + 2 * (size_t)n_lines);
    uint32_t id = intern_key(b, &b->location_ids, key, b->n_locations, &fresh);
    if (fresh) {
        struct hearth_location *copy = &b->locations[b->n_locations++];
        *copy = *location;
        copy->first_line = (uint32_t)b->n_lines;
        copy->n_lines = n_lines;
        for (size_t i = 0; i < n_lines; i++) {
            b->lines[b->n_lines++] = lines[i];
        }
    }

    return id;
}

uint32_t hearth_profile_builder_type(struct hearth_profile_builder *b, struct hearth_str type,
                                     struct hearth_str unit)
{
    struct hearth_value_type t = {hearth_profile_builder_string(b, type),
                                  hearth_profile_builder_string(b, unit)};
    if (t.type == HEARTH_NO_INDEX || t.unit == HEARTH_NO_INDEX) {
        return HEARTH_NO_INDEX;
    }

    for (size_t i = 0; i < b->n_types; i++) {
        if (b->types[i].type == t.type && b->types[i].unit == t.unit) {
            return (uint32_t)i;
        }
    }

    HEARTH_ASSERT(b->stack_first.n == 0); /* the values of samples have no room for another type */
    if (!RESERVE(b, types, b->n_types, 1)) {
        return HEARTH_NO_INDEX;
    }

    b->types[b->n_types] = t;

    return (uint32_t)b->n_types++;
}

enum hearth_status hearth_profile_builder_add(struct hearth_profile_builder *b, uint32_t sample,
                                              const int64_t *values, struct hearth_err *err)
{
    assert(sample < b->stack_first.n);

    int64_t *to = b->values + (size_t)sample * b->n_types;
    for (size_t k = 0; k < b->n_types; k++) {
        int64_t sum;
        if (__builtin_add_overflow(to[k], values[k], &sum)) {
            struct hearth_str type = b->strings[b->types[k].type];
            return HEARTH_FAIL(
                err, HEARTH_OUT_OF_RANGE,
                "the sum of the values of a stack exceeds 64 bits in type \"" HEARTH_STR_FMT "\"",
                HEARTH_STR_ARG(type));
        }
    }

    for (size_t k = 0; k < b->n_types; k++) {
        to[k] += values[k];
    }

    return HEARTH_OK;
}

/* Add labels to the key of a sample; false if memory is refused. */
static bool hash_labels(struct hearth_profile_builder *b, const struct hearth_sample_label *labels,
                        uint32_t n, struct hearth_hash128 *key)
{
    if (!RESERVE(b, key, 0, 2 + 3 * (size_t)n)) {
        return false;
    }

    b->key[0] = key->lo;
    b->key[1] = key->hi;
    for (size_t i = 0; i < n; i++) {
        b->key[2 + 3 * i] = (uint64_t)labels[i].key << 32 | labels[i].str;
        b->key[3 + 3 * i] = labels[i].num_unit;
        b->key[4 + 3 * i] = (uint64_t)labels[i].num;
    }
    *key = hash_words(b, b->key, 2 + 3 * (size_t)n);

    return true;
}

/* Make room for a sample; false if memory is refused. */
static bool reserve_sample(struct hearth_profile_builder *b, size_t n_locations, size_t n_labels)
{
    size_t n = b->stack_first.n;

    return reserve_elements(b, &b->stack_first.v, &b->stack_first.cap, n, 1,
                            sizeof *b->stack_first.v) &&
           reserve_elements(b, &b->label_first.v, &b->label_first.cap, n, 1,
                            sizeof *b->label_first.v) &&
           reserve_elements(b, &b->stack_locs.v, &b->stack_locs.cap, b->stack_locs.n, n_locations,
                            sizeof *b->stack_locs.v) &&
           RESERVE(b, labels, b->n_labels, n_labels) &&
           RESERVE(b, values, n * b->n_types, b->n_types);
}

enum hearth_status hearth_profile_builder_labelled_sample(struct hearth_profile_builder *b,
                                                          const uint32_t *locations,
                                                          uint32_t n_locations,
                                                          const struct hearth_sample_label *labels,
                                                          uint32_t n_labels, const int64_t *values,
                                                          struct hearth_err *err)
{
    size_t n = b->stack_first.n;
    struct hearth_hash128 key = hearth_hash128(locations, n_locations * sizeof *locations, b->seed);
    if (n_labels > 0 && !hash_labels(b, labels, n_labels, &key)) {
        return HEARTH_FAIL_ARENA(err, b->arena);
    }

    uint32_t sample = hearth_idmap_find(&b->sample_ids, key);
    if (sample != HEARTH_IDMAP_NONE) {
        HEARTH_TRY(hearth_profile_builder_add(b, sample, values, err));
        b->last_sample = sample;
        return HEARTH_OK;
    }

    if (b->max_frames > 0 && b->stack_locs.n + n_locations > b->max_frames) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the stacks of the profile have more than %u frames in "
                           "sum" HEARTH_RAISE_LIMIT("max-stack-frames"),
                           b->max_frames);
    }

    bool fresh;
    if (!reserve_sample(b, n_locations, n_labels) ||
        intern_key(b, &b->sample_ids, key, n, &fresh) == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL_ARENA(err, b->arena);
    }

    b->stack_first.v[b->stack_first.n++] = (uint32_t)b->stack_locs.n;
    for (size_t i = 0; i < n_locations; i++) {
        b->stack_locs.v[b->stack_locs.n++] = locations[i];
    }

    b->label_first.v[b->label_first.n++] = (uint32_t)b->n_labels;
    for (size_t i = 0; i < n_labels; i++) {
        b->labels[b->n_labels++] = labels[i];
    }

    for (size_t k = 0; k < b->n_types; k++) {
        b->values[n * b->n_types + k] = values[k];
    }

    b->last_sample = (uint32_t)n;
    return HEARTH_OK;
}

uint32_t hearth_profile_builder_last_sample(const struct hearth_profile_builder *b)
{
    return b->last_sample;
}

enum hearth_status hearth_profile_builder_sample(struct hearth_profile_builder *b,
                                                 const uint32_t *locations, uint32_t n_locations,
                                                 const int64_t *values, struct hearth_err *err)
{
    return hearth_profile_builder_labelled_sample(b, locations, n_locations, NULL, 0, values, err);
}

/* Arrays of a profile are never NULL, and those of first indices have one for the end. */
static bool reserve_ends(struct hearth_profile_builder *b)
{
    size_t n = b->stack_first.n;

    return reserve_elements(b, &b->stack_first.v, &b->stack_first.cap, n, 1,
                            sizeof *b->stack_first.v) &&
           reserve_elements(b, &b->label_first.v, &b->label_first.cap, n, 1,
                            sizeof *b->label_first.v) &&
           reserve_elements(b, &b->stack_locs.v, &b->stack_locs.cap, 0, 1,
                            sizeof *b->stack_locs.v) &&
           RESERVE(b, labels, 0, 1) && RESERVE(b, types, 0, 1) && RESERVE(b, mappings, 0, 1) &&
           RESERVE(b, functions, 0, 1) && RESERVE(b, lines, 0, 1) && RESERVE(b, locations, 0, 1) &&
           RESERVE(b, values, 0, 1);
}

enum hearth_status hearth_profile_builder_finish(struct hearth_profile_builder *b,
                                                 struct hearth_profile *ret_profile,
                                                 struct hearth_err *err)
{
    size_t n = b->stack_first.n;

    if (!reserve_ends(b)) {
        return HEARTH_FAIL_ARENA(err, b->arena);
    }

    assert(b->n_strings > 0 && b->strings[0].n == 0);
    b->stack_first.v[n] = (uint32_t)b->stack_locs.n;
    b->label_first.v[n] = (uint32_t)b->n_labels;
    *ret_profile = (struct hearth_profile){
        .strings = b->strings,
        .types = b->types,
        .mappings = b->mappings,
        .functions = b->functions,
        .lines = b->lines,
        .locations = b->locations,
        .stack_first = b->stack_first.v,
        .stack_locs = b->stack_locs.v,
        .values = b->values,
        .label_first = b->label_first.v,
        .sample_labels = b->labels,
        .n_strings = (uint32_t)b->n_strings,
        .n_types = (uint32_t)b->n_types,
        .n_mappings = (uint32_t)b->n_mappings,
        .n_functions = (uint32_t)b->n_functions,
        .n_lines = (uint32_t)b->n_lines,
        .n_locations = (uint32_t)b->n_locations,
        .n_samples = (uint32_t)n,
        .n_stack_locs = (uint32_t)b->stack_locs.n,
        .n_sample_labels = (uint32_t)b->n_labels,
    };

    return HEARTH_OK;
}
