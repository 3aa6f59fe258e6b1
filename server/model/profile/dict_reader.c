/*
 * dict_reader.c -- the reading side of a dictionary: chunks to arrays, and the tree of function
 * names.
 *
 * A chunk is decoded after the published ends of the arrays and published as a whole when every
 * byte has been checked, so a damaged chunk needs no undoing. Only the counts in struct hearth_dict
 * tell which entries exist.
 *
 * Name tree: texts are interned in it and stack traces become nodes of it, both under its lock.
 * Consecutive stacks usually share their root-most locations, so the walk for a stack starts where
 * it differs from the last one that was walked.
 *
 * A dictionary that is loaded at once looks its stacks up by their keys first: another dictionary
 * of the service has most of them, and equal keys mean equal names. The keys cost less than the
 * walks, but they are made for all stacks, so a dictionary that grows by a few stacks only walks.
 */
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"
#include "hearth/model/frame_name.h"

#include "profile/dict_chunk.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

/* The texts of one chunk; freed when the tree has interned them. The bytes follow the struct. */
struct text_block {
    struct text_block *next;
    size_t n_bytes;
};

struct hearth_dict_impl {
    size_t cap_strings, cap_mappings, cap_functions, cap_lines, cap_locations, cap_stack_first,
        cap_stack_locs;
    size_t cap_stack_node, cap_name_of;
    struct text_block *texts;
    size_t n_text_bytes;
    /*
     * At least the number of frames: locations of stacks, times the lines of the longest location.
     * If that is above the limit, they are counted once, and those of each chunk from then on.
     */
    uint64_t n_frames;
    uint32_t max_lines; /* of a location; at least 1 */
    bool counts_frames;
    /* Names in the tree of strings [0, n_named). */
    uint32_t *name_of;
    uint32_t n_named;
    /* Nodes of the root-most n_path locations of stack path_stack, root first. */
    uint32_t *path;
    uint32_t n_path, path_stack;
    size_t cap_path;
    /* The keys of all stacks; NULL until needed. Several readers may make them at the same time. */
    struct hearth_hash128 *_Atomic stack_keys;
};

/* Parts of a chunk that is not yet published. */
struct incoming_chunk {
    struct hearth_dict_head head;
    uint32_t n_strings, n_lines, max_lines;
    uint64_t n_frames;
    bool counts_frames;
    struct text_block *texts;
};

struct hearth_dict *hearth_dict_new(void)
{
    struct hearth_dict *dict = hearth_mem_zalloc(sizeof *dict);
    struct hearth_dict_impl *impl = hearth_mem_zalloc(sizeof *impl);

    if (dict == NULL || impl == NULL) {
        hearth_mem_free(dict);
        hearth_mem_free(impl);
        return NULL;
    }

    dict->impl = impl;
    impl->max_lines = 1;
    if (!hearth_mem_grow(&dict->strings, &impl->cap_strings, 1, sizeof dict->strings[0]) ||
        !hearth_mem_grow(&dict->stack_first, &impl->cap_stack_first, 1, sizeof(uint32_t))) {
        hearth_dict_free(dict);
        return NULL;
    }

    dict->strings[0] = HEARTH_STR("");
    dict->stack_first[0] = 0;
    dict->n_strings = 1;

    return dict;
}

static void free_texts(struct text_block *block)
{
    while (block != NULL) {
        struct text_block *next = block->next;
        hearth_mem_free(block);
        block = next;
    }
}

/* Return all uses of the tree: its nodes and names may be dead afterwards. */
static void leave_tree(struct hearth_dict *dict)
{
    struct hearth_name_tree *tree = dict->tree;

    if (tree == NULL) {
        return;
    }

    hearth_name_tree_begin(tree);
    for (uint32_t s = 0; s < dict->n_tree_stacks; s++) {
        hearth_name_tree_drop_node(tree, dict->stack_node[s]);
    }

    for (uint32_t i = 0; i < dict->impl->n_named; i++) {
        hearth_name_tree_drop_name(tree, dict->impl->name_of[i]);
    }

    hearth_name_tree_end(tree);
    hearth_name_tree_unref(tree);
}

void hearth_dict_free(struct hearth_dict *dict)
{
    if (dict == NULL) {
        return;
    }

    leave_tree(dict);
    free_texts(dict->impl->texts);
    hearth_mem_free(dict->impl->name_of);
    hearth_mem_free(dict->impl->path);
    hearth_mem_free(atomic_load(&dict->impl->stack_keys));
    hearth_mem_free(dict->impl);
    hearth_mem_free(dict->strings);
    hearth_mem_free(dict->mappings);
    hearth_mem_free(dict->functions);
    hearth_mem_free(dict->lines);
    hearth_mem_free(dict->locations);
    hearth_mem_free(dict->stack_first);
    hearth_mem_free(dict->stack_locs);
    hearth_mem_free(dict->stack_node);
    hearth_mem_free(dict);
}

/* ---- applying a chunk ---- */

#define FAIL_NO_MEMORY(err) \
    HEARTH_FAIL((err), HEARTH_NO_MEMORY, "no memory for a dictionary of this size")

static enum hearth_status fail_entry(const char *table, uint32_t id, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "%s %u of dictionary chunk is damaged", table,
                       (unsigned)id);
}

/* Allocate a text block and link it into *list; NULL if memory was refused. */
static struct text_block *new_texts(struct text_block **list, size_t n_bytes)
{
    struct text_block *block = hearth_mem_alloc(sizeof *block + n_bytes);
    if (block != NULL) {
        *block = (struct text_block){*list, n_bytes};
        *list = block;
    }
    return block;
}

static enum hearth_status read_strings(struct hearth_dict *dict, struct incoming_chunk *in,
                                       const uint8_t *at, struct hearth_err *err)
{
    struct hearth_dict_impl *impl = dict->impl;
    uint32_t start = in->head.start[HEARTH_DICT_STRINGS],
             count = in->head.count[HEARTH_DICT_STRINGS];
    size_t n_bytes = in->head.n_bytes[HEARTH_DICT_STRINGS];

    in->n_strings = dict->n_strings;
    if (count == 0) {
        return n_bytes == 0 ? HEARTH_OK : fail_entry("string", start, err);
    }

    if (count >= UINT32_MAX - dict->n_strings) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "dictionary has too many strings");
    }

    /* Make room for the texts and for the array of strings. */
    struct text_block *block = new_texts(&in->texts, n_bytes);
    if (block == NULL ||
        !hearth_mem_grow(&dict->strings, &impl->cap_strings, (size_t)dict->n_strings + count,
                         sizeof dict->strings[0])) {
        return FAIL_NO_MEMORY(err);
    }

    /* Copy the texts; each string refers to the copy. */
    const uint8_t *copy = (const uint8_t *)(block + 1);
    memcpy(block + 1, at, n_bytes);
    const uint8_t *end = copy + n_bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t n;
        if (!hearth_varint_read(&copy, end, &n) || n > (uint64_t)(end - copy)) {
            return fail_entry("string", start + i, err);
        }
        struct hearth_str s = {(const char *)copy, (size_t)n};
        if (!hearth_str_utf8_valid(s)) {
            return fail_entry("string", start + i, err);
        }
        copy += n;
        dict->strings[in->n_strings++] = s;
    }

    return copy == end ? HEARTH_OK : fail_entry("last string", start + count - 1, err);
}

static bool has_string(const struct incoming_chunk *in, uint32_t id)
{
    return id < in->head.start[HEARTH_DICT_STRINGS] + in->head.count[HEARTH_DICT_STRINGS];
}

static enum hearth_status read_mappings(struct hearth_dict *dict, const struct incoming_chunk *in,
                                        const uint8_t *at, struct hearth_err *err)
{
    uint32_t start = in->head.start[HEARTH_DICT_MAPPINGS];
    uint32_t end_id = start + in->head.count[HEARTH_DICT_MAPPINGS];
    const uint8_t *end = at + in->head.n_bytes[HEARTH_DICT_MAPPINGS];

    if (!hearth_mem_grow(&dict->mappings, &dict->impl->cap_mappings, end_id,
                         sizeof dict->mappings[0])) {
        return FAIL_NO_MEMORY(err);
    }

    for (uint32_t i = start; i < end_id; i++) {
        struct hearth_mapping *mapping = &dict->mappings[i];
        if (!hearth_dict_get_mapping(&at, end, mapping) || !has_string(in, mapping->filename) ||
            !has_string(in, mapping->build_id)) {
            return fail_entry("mapping", i, err);
        }
    }

    return at == end ? HEARTH_OK : fail_entry("end of mappings before", end_id, err);
}

static enum hearth_status read_functions(struct hearth_dict *dict, const struct incoming_chunk *in,
                                         const uint8_t *at, struct hearth_err *err)
{
    uint32_t start = in->head.start[HEARTH_DICT_FUNCTIONS];
    uint32_t end_id = start + in->head.count[HEARTH_DICT_FUNCTIONS];
    const uint8_t *end = at + in->head.n_bytes[HEARTH_DICT_FUNCTIONS];

    if (!hearth_mem_grow(&dict->functions, &dict->impl->cap_functions, end_id,
                         sizeof dict->functions[0])) {
        return FAIL_NO_MEMORY(err);
    }

    for (uint32_t i = start; i < end_id; i++) {
        struct hearth_function *function = &dict->functions[i];
        if (!hearth_dict_get_function(&at, end, function) || !has_string(in, function->name) ||
            !has_string(in, function->system_name) || !has_string(in, function->filename)) {
            return fail_entry("function", i, err);
        }
    }

    return at == end ? HEARTH_OK : fail_entry("end of functions before", end_id, err);
}

static enum hearth_status read_locations(struct hearth_dict *dict, struct incoming_chunk *in,
                                         const uint8_t *at, struct hearth_err *err)
{
    struct hearth_dict_impl *impl = dict->impl;
    uint32_t start = in->head.start[HEARTH_DICT_LOCATIONS];
    uint32_t end_id = start + in->head.count[HEARTH_DICT_LOCATIONS];
    uint32_t n_mappings =
        in->head.start[HEARTH_DICT_MAPPINGS] + in->head.count[HEARTH_DICT_MAPPINGS];
    uint32_t n_functions =
        in->head.start[HEARTH_DICT_FUNCTIONS] + in->head.count[HEARTH_DICT_FUNCTIONS];
    const uint8_t *end = at + in->head.n_bytes[HEARTH_DICT_LOCATIONS];

    in->n_lines = dict->n_lines;
    in->max_lines = impl->max_lines;
    if (!hearth_mem_grow(&dict->locations, &impl->cap_locations, end_id,
                         sizeof dict->locations[0])) {
        return FAIL_NO_MEMORY(err);
    }

    for (uint32_t i = start; i < end_id; i++) {
        struct hearth_location *location = &dict->locations[i];
        if (!hearth_dict_get_location(&at, end, location) ||
            (location->mapping != HEARTH_NO_INDEX && location->mapping >= n_mappings)) {
            return fail_entry("location", i, err);
        }

        /* The lines of a location follow it; make room for them first. */
        location->first_line = in->n_lines;
        in->max_lines = location->n_lines > in->max_lines ? location->n_lines : in->max_lines;
        uint32_t n_lines;
        if (__builtin_add_overflow(in->n_lines, location->n_lines, &n_lines)) {
            return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "dictionary has too many lines");
        }
        if (!hearth_mem_grow(&dict->lines, &impl->cap_lines, n_lines, sizeof dict->lines[0])) {
            return FAIL_NO_MEMORY(err);
        }

        for (; in->n_lines < n_lines; in->n_lines++) {
            struct hearth_line *line = &dict->lines[in->n_lines];
            if (!hearth_dict_get_line(&at, end, line) ||
                (line->function != HEARTH_NO_INDEX && line->function >= n_functions)) {
                return fail_entry("line of location", i, err);
            }
        }
    }

    return at == end ? HEARTH_OK : fail_entry("end of locations before", end_id, err);
}

static enum hearth_status fail_frames(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "dictionary has more than %u frames",
                       (unsigned)HEARTH_DICT_MAX_FRAMES);
}

/* Count the frames of stack_locs[from..to). */
static uint64_t count_stack_frames(const struct hearth_dict *dict, uint32_t from, uint32_t to)
{
    uint64_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        uint32_t n_lines = dict->locations[dict->stack_locs[i]].n_lines;
        n += n_lines == 0 ? 1 : n_lines;
    }

    return n;
}

/* Add the frames of the new stacks, whose locations are stack_locs[from..to); refuse too many. */
static enum hearth_status check_new_frames(const struct hearth_dict *dict,
                                           struct incoming_chunk *in, uint32_t from, uint32_t to,
                                           struct hearth_err *err)
{
    const struct hearth_dict_impl *impl = dict->impl;
    uint64_t at_most = impl->n_frames + (uint64_t)(to - from) * in->max_lines;

    in->counts_frames = impl->counts_frames || at_most > HEARTH_DICT_MAX_FRAMES;
    in->n_frames = at_most;
    if (in->counts_frames) {
        uint64_t before = impl->counts_frames ? impl->n_frames : count_stack_frames(dict, 0, from);
        in->n_frames = before + count_stack_frames(dict, from, to);
    }

    return in->n_frames > HEARTH_DICT_MAX_FRAMES ? fail_frames(err) : HEARTH_OK;
}

static enum hearth_status read_stacks(struct hearth_dict *dict, struct incoming_chunk *in,
                                      const uint8_t *at, struct hearth_err *err)
{
    struct hearth_dict_impl *impl = dict->impl;
    uint32_t start = in->head.start[HEARTH_DICT_STACKS];
    uint32_t end_id = start + in->head.count[HEARTH_DICT_STACKS];
    uint32_t n_locations =
        in->head.start[HEARTH_DICT_LOCATIONS] + in->head.count[HEARTH_DICT_LOCATIONS];
    const uint8_t *end = at + in->head.n_bytes[HEARTH_DICT_STACKS];

    if (!hearth_mem_grow(&dict->stack_first, &impl->cap_stack_first, (size_t)end_id + 1,
                         sizeof(uint32_t))) {
        return FAIL_NO_MEMORY(err);
    }

    uint32_t n_locs = dict->stack_first[start];
    for (uint32_t i = start; i < end_id; i++) {
        uint64_t depth;
        if (!hearth_varint_read(&at, end, &depth) || depth > (uint64_t)(end - at)) {
            return fail_entry("stack trace", i, err);
        }

        /* A location has at least one frame. */
        size_t want = (size_t)n_locs + (size_t)depth;
        if (want > HEARTH_DICT_MAX_FRAMES) {
            return fail_frames(err);
        }
        if (!hearth_mem_grow(&dict->stack_locs, &impl->cap_stack_locs, want, sizeof(uint32_t))) {
            return FAIL_NO_MEMORY(err);
        }

        /* Decode the locations. */
        int64_t location = 0;
        for (uint64_t d = 0; d < depth; d++) {
            uint64_t delta;
            if (!hearth_varint_read(&at, end, &delta) ||
                __builtin_add_overflow(location, hearth_unzigzag(delta), &location) ||
                location < 0 || location >= n_locations) {
                return fail_entry("stack trace", i, err);
            }
            dict->stack_locs[n_locs++] = (uint32_t)location;
        }

        dict->stack_first[i + 1] = n_locs;
    }

    if (at != end) {
        return fail_entry("end of stack traces before", end_id, err);
    }

    return check_new_frames(dict, in, dict->stack_first[start], n_locs, err);
}

/* Read all tables. Entries below the published counts are unchanged. */
static enum hearth_status read_chunk(struct hearth_dict *dict, struct incoming_chunk *in,
                                     const uint8_t *at, struct hearth_err *err)
{
    const uint32_t expected[HEARTH_DICT_N_TABLES] = {
        dict->n_strings, dict->n_mappings, dict->n_functions, dict->n_locations, dict->n_stacks};

    /* A chunk must start where the dictionary ends. */
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        if (in->head.start[t] != expected[t]) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "dictionary chunk starts at entry %u of table %d, not at %u",
                               (unsigned)in->head.start[t], t, (unsigned)expected[t]);
        }
    }

    /* Each table refers only to those before it. */
    HEARTH_TRY(read_strings(dict, in, at, err));
    at += in->head.n_bytes[HEARTH_DICT_STRINGS];
    HEARTH_TRY(read_mappings(dict, in, at, err));
    at += in->head.n_bytes[HEARTH_DICT_MAPPINGS];
    HEARTH_TRY(read_functions(dict, in, at, err));
    at += in->head.n_bytes[HEARTH_DICT_FUNCTIONS];
    HEARTH_TRY(read_locations(dict, in, at, err));
    at += in->head.n_bytes[HEARTH_DICT_LOCATIONS];

    return read_stacks(dict, in, at, err);
}

enum hearth_status hearth_dict_apply(struct hearth_dict *dict, struct hearth_str chunk,
                                     struct hearth_err *err)
{
    assert(dict != NULL);

    struct hearth_dict_impl *impl = dict->impl;
    struct incoming_chunk in = {0};
    const uint8_t *body;
    enum hearth_status status = hearth_dict_get_head(chunk, &in.head, &body, err);

    if (status == HEARTH_OK) {
        status = read_chunk(dict, &in, body, err);
    }

    if (status != HEARTH_OK) {
        free_texts(in.texts);
        return status;
    }

    /* Publish: keep the texts, then raise the counts. */
    if (in.texts != NULL) {
        in.texts->next = impl->texts;
        impl->texts = in.texts;
        impl->n_text_bytes += sizeof *in.texts + in.texts->n_bytes;
    }

    hearth_mem_free(atomic_exchange(&impl->stack_keys, NULL));

    dict->n_strings = in.n_strings;
    dict->n_mappings += in.head.count[HEARTH_DICT_MAPPINGS];
    dict->n_functions += in.head.count[HEARTH_DICT_FUNCTIONS];
    dict->n_locations += in.head.count[HEARTH_DICT_LOCATIONS];
    dict->n_lines = in.n_lines;
    dict->n_stacks += in.head.count[HEARTH_DICT_STACKS];
    impl->n_frames = in.n_frames;
    impl->max_lines = in.max_lines;
    impl->counts_frames = in.counts_frames;

    return HEARTH_OK;
}

/* ---- the name tree ---- */

void hearth_dict_use_tree(struct hearth_dict *dict, struct hearth_name_tree *tree)
{
    assert(dict != NULL && tree != NULL);
    assert(dict->n_tree_stacks == 0);

    HEARTH_ASSERT(dict->tree == NULL);
    dict->tree = hearth_name_tree_ref(tree);
}

/* Intern all new strings; the tree's texts replace those of the chunks. */
static bool name_strings(struct hearth_dict *dict)
{
    struct hearth_dict_impl *impl = dict->impl;

    assert(dict->tree != NULL);

    if (!hearth_mem_grow(&impl->name_of, &impl->cap_name_of, dict->n_strings,
                         sizeof impl->name_of[0])) {
        return false;
    }

    for (; impl->n_named < dict->n_strings; impl->n_named++) {
        uint32_t name = hearth_name_tree_intern(dict->tree, dict->strings[impl->n_named]);
        if (name == HEARTH_NO_INDEX) {
            return false;
        }
        hearth_name_tree_use_name(dict->tree, name);
        impl->name_of[impl->n_named] = name;
        dict->strings[impl->n_named] = hearth_name_tree_name(dict->tree, name);
    }

    /* No string refers to the chunks' texts any more. */
    free_texts(impl->texts);
    impl->texts = NULL;
    impl->n_text_bytes = 0;

    return true;
}

/* The name of a location without lines. HEARTH_NO_INDEX if memory was refused. */
static uint32_t intern_address_name(struct hearth_dict *dict,
                                    const struct hearth_location *location)
{
    const struct hearth_mapping *mapping =
        location->mapping == HEARTH_NO_INDEX ? NULL : &dict->mappings[location->mapping];
    char name[HEARTH_FRAME_NAME_BYTES];
    size_t n_bytes = hearth_frame_name(location->address, mapping, dict->strings, name);

    return hearth_name_tree_intern(dict->tree, hearth_str_n(name, n_bytes));
}

/*
 * Find or add the nodes of a location below `node`, outermost line first; returns the innermost.
 * HEARTH_NO_INDEX if memory was refused.
 */
static uint32_t add_location_nodes(struct hearth_dict *dict, uint32_t node,
                                   const struct hearth_location *location)
{
    if (location->n_lines == 0) {
        uint32_t name = intern_address_name(dict, location);
        return name == HEARTH_NO_INDEX ? name : hearth_name_tree_child(dict->tree, node, name);
    }

    for (uint32_t i = location->n_lines; i > 0 && node != HEARTH_NO_INDEX; i--) {
        uint32_t function = dict->lines[location->first_line + i - 1].function;
        uint32_t name =
            function == HEARTH_NO_INDEX ? 0 : dict->impl->name_of[dict->functions[function].name];
        node = hearth_name_tree_child(dict->tree, node, name);
    }

    return node;
}

/* Number of root-most locations that stack s shares with the path. */
static uint32_t count_shared(const struct hearth_dict *dict, uint32_t s)
{
    const struct hearth_dict_impl *impl = dict->impl;

    if (impl->n_path == 0) {
        return 0;
    }

    const uint32_t *a = dict->stack_locs + dict->stack_first[s];
    const uint32_t *a_end = dict->stack_locs + dict->stack_first[s + 1];
    const uint32_t *b_end = dict->stack_locs + dict->stack_first[impl->path_stack + 1];
    const uint32_t *b = b_end - impl->n_path;
    uint32_t n = 0;
    while (a_end > a && b_end > b && *--a_end == *--b_end) {
        n++;
    }

    return n;
}

/* Find or make the node of stack s by its locations. HEARTH_NO_INDEX if memory was refused. */
static uint32_t walk_stack(struct hearth_dict *dict, uint32_t s)
{
    struct hearth_dict_impl *impl = dict->impl;
    uint32_t depth = dict->stack_first[s + 1] - dict->stack_first[s];
    const uint32_t *locs = depth == 0 ? NULL : dict->stack_locs + dict->stack_first[s];

    if (!hearth_mem_grow(&impl->path, &impl->cap_path, depth, sizeof(uint32_t))) {
        return HEARTH_NO_INDEX;
    }

    /* Keep the shared part of the path, and walk from its end to the leaf. */
    impl->n_path = count_shared(dict, s);
    impl->path_stack = s;
    uint32_t node = impl->n_path == 0 ? 0 : impl->path[impl->n_path - 1];
    while (impl->n_path < depth) {
        node = add_location_nodes(dict, node, &dict->locations[locs[depth - 1 - impl->n_path]]);
        if (node == HEARTH_NO_INDEX) {
            return node;
        }
        impl->path[impl->n_path++] = node;
    }

    return node;
}

/*
 * Find or make the nodes of all new stacks; keys[s] of all stacks, NULL: they are only walked. Call
 * between _begin and _end of the tree.
 */
static bool place_stacks(struct hearth_dict *dict, const struct hearth_hash128 *keys)
{
    if (!name_strings(dict) || !hearth_mem_grow(&dict->stack_node, &dict->impl->cap_stack_node,
                                                dict->n_stacks, sizeof(uint32_t))) {
        return false;
    }

    for (uint32_t s = dict->n_tree_stacks; s < dict->n_stacks; s++) {
        uint32_t known =
            keys == NULL ? HEARTH_NO_INDEX : hearth_name_tree_find_stack(dict->tree, keys[s]);
        uint32_t node = known != HEARTH_NO_INDEX ? known : walk_stack(dict, s);
        if (node == HEARTH_NO_INDEX) {
            return false;
        }

        if (keys != NULL && known == HEARTH_NO_INDEX) {
            hearth_name_tree_note_stack(dict->tree, keys[s], node);
        }

        /* The stack uses its leaf node from now on. */
        hearth_name_tree_use_node(dict->tree, node);
        dict->stack_node[s] = node;
        dict->n_tree_stacks = s + 1;
    }

    return true;
}

/* ---- keys of stacks ---- */

static enum hearth_status make_stack_keys(const struct hearth_dict *dict,
                                          struct hearth_arena *arena,
                                          const struct hearth_hash128 **ret_keys,
                                          struct hearth_err *err)
{
    /* The stacks as samples of a profile, which is what keys are made of. */
    const struct hearth_profile all = {
        .strings = dict->strings,
        .mappings = dict->mappings,
        .functions = dict->functions,
        .lines = dict->lines,
        .locations = dict->locations,
        .stack_first = dict->stack_first,
        .stack_locs = dict->stack_locs,
        .n_strings = dict->n_strings,
        .n_mappings = dict->n_mappings,
        .n_functions = dict->n_functions,
        .n_lines = dict->n_lines,
        .n_locations = dict->n_locations,
        .n_samples = dict->n_stacks,
    };
    struct hearth_stack_keys made;
    HEARTH_TRY(hearth_stack_keys_make(&all, arena, &made, err));
    *ret_keys = made.stack;

    return HEARTH_OK;
}

enum hearth_status hearth_dict_build_tree(struct hearth_dict *dict, struct hearth_err *err)
{
    assert(dict != NULL);

    if (dict->tree == NULL) {
        dict->tree = hearth_name_tree_new();
    }

    if (dict->tree == NULL) {
        return FAIL_NO_MEMORY(err);
    }

    /* Without memory for keys, the stacks are walked. */
    struct hearth_arena scratch;
    const struct hearth_hash128 *keys = NULL;
    hearth_arena_init(&scratch, 0);
    if (dict->n_tree_stacks < dict->n_stacks / 2) {
        (void)make_stack_keys(dict, &scratch, &keys, NULL);
    }

    hearth_name_tree_begin(dict->tree);
    bool done = place_stacks(dict, keys);
    hearth_name_tree_end(dict->tree);
    hearth_arena_release(&scratch);

    return done ? HEARTH_OK : FAIL_NO_MEMORY(err);
}

enum hearth_status hearth_dict_stack_keys(const struct hearth_dict *dict,
                                          struct hearth_arena *scratch,
                                          const struct hearth_hash128 **ret_keys,
                                          struct hearth_err *err)
{
    struct hearth_dict_impl *impl = dict->impl;
    struct hearth_hash128 *kept = atomic_load(&impl->stack_keys);

    if (kept != NULL) {
        *ret_keys = kept;
        return HEARTH_OK;
    }

    const struct hearth_hash128 *made;
    HEARTH_TRY(make_stack_keys(dict, scratch, &made, err));

    /* Keep them. If another reader was faster, its keys, which are equal, stay. */
    size_t n_bytes = dict->n_stacks * sizeof kept[0];
    struct hearth_hash128 *keys = hearth_mem_alloc(n_bytes);
    if (keys == NULL) {
        return FAIL_NO_MEMORY(err);
    }
    if (n_bytes > 0) {
        memcpy(keys, made, n_bytes);
    }
    if (!atomic_compare_exchange_strong(&impl->stack_keys, &kept, keys)) {
        hearth_mem_free(keys);
        keys = kept;
    }

    *ret_keys = keys;
    return HEARTH_OK;
}

size_t hearth_dict_bytes(const struct hearth_dict *dict)
{
    const struct hearth_dict_impl *impl = dict->impl;
    size_t words = impl->cap_stack_first + impl->cap_stack_locs + impl->cap_stack_node +
                   impl->cap_name_of + impl->cap_path;

    return sizeof *dict + sizeof *impl + words * sizeof(uint32_t) +
           dict->n_stacks * sizeof(struct hearth_hash128) +
           impl->cap_strings * sizeof dict->strings[0] +
           impl->cap_mappings * sizeof dict->mappings[0] +
           impl->cap_functions * sizeof dict->functions[0] +
           impl->cap_lines * sizeof dict->lines[0] +
           impl->cap_locations * sizeof dict->locations[0] + impl->n_text_bytes;
}
