/* profile_tree.c -- the stacks of a decoded profile as a tree of function names, and back. */
#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"
#include "hearth/model/stacktree.h"

#include <assert.h>

struct profile_adder {
    struct hearth_stacktree *tree;
    const struct hearth_profile *profile;
    uint32_t *name_of; /* string index -> name of the tree plus 1; 0: not looked up yet */
    bool is_shown;     /* names are those that are shown */
};

static uint32_t find_named_child(struct profile_adder *a, uint32_t node, uint32_t name)
{
    return name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE : hearth_stacktree_child(a->tree, node, name);
}

static uint32_t name_string(struct profile_adder *a, uint32_t string)
{
    if (a->name_of[string] == 0) {
        struct hearth_str name = a->profile->strings[string];
        name = a->is_shown ? hearth_frame_shown(name) : name;
        /* NONE + 1 is 0, so a refusal is not stored as a name. */
        a->name_of[string] = hearth_stacktree_name(a->tree, name) + 1;
    }
    return a->name_of[string] - 1;
}

static uint32_t name_address(struct profile_adder *a, const struct hearth_location *location)
{
    const struct hearth_profile *p = a->profile;
    const struct hearth_mapping *mapping =
        location->mapping == HEARTH_NO_INDEX ? NULL : &p->mappings[location->mapping];
    char text[HEARTH_FRAME_NAME_BYTES];
    size_t n = hearth_frame_name(location->address, mapping, p->strings, text);

    return hearth_stacktree_name(a->tree, hearth_str_n(text, n));
}

/* Find or make the nodes of one location below `node`, outermost line first; returns the last. */
static uint32_t add_location(struct profile_adder *a, uint32_t node, uint32_t location_idx)
{
    if (location_idx == HEARTH_NO_INDEX) {
        return find_named_child(a, node, hearth_stacktree_name(a->tree, HEARTH_FRAME_UNKNOWN));
    }

    const struct hearth_location *location = &a->profile->locations[location_idx];
    if (location->n_lines == 0) {
        return find_named_child(a, node, name_address(a, location));
    }

    for (uint32_t i = location->n_lines; i-- > 0 && node != HEARTH_NO_NODE;) {
        uint32_t function = a->profile->lines[location->first_line + i].function;
        node = find_named_child(a, node, name_string(a, a->profile->functions[function].name));
    }

    return node;
}

static enum hearth_status add_samples(struct profile_adder *a, uint32_t type_idx,
                                      struct hearth_err *err)
{
    const struct hearth_profile *p = a->profile;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        int64_t value = p->values[(size_t)s * p->n_types + type_idx];

        uint32_t node = hearth_stacktree_root(a->tree);
        for (uint32_t i = p->stack_first[s + 1];
             value != 0 && i-- > p->stack_first[s] && node != HEARTH_NO_NODE;) {
            node = add_location(a, node, p->stack_locs[i]);
        }
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a tree of stack traces");
        }

        /* The value belongs to the leaf. */
        int64_t *self = &a->tree->nodes[node].self;
        if (__builtin_add_overflow(*self, value, self)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of stack traces exceeds 64 bits");
        }
    }

    return HEARTH_OK;
}

static enum hearth_status add_named_profile(struct hearth_stacktree *tree,
                                            const struct hearth_profile *profile, uint32_t type_idx,
                                            bool is_shown, struct hearth_err *err)
{
    assert(tree != NULL && profile != NULL);

    HEARTH_ASSERT(type_idx < profile->n_types);
    struct profile_adder a = {.tree = tree, .profile = profile, .is_shown = is_shown};
    a.name_of = hearth_mem_calloc(profile->n_strings, sizeof a.name_of[0]);
    if (a.name_of == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a tree of stack traces");
    }

    enum hearth_status status = add_samples(&a, type_idx, err);
    hearth_mem_free(a.name_of);

    return status;
}

enum hearth_status hearth_stacktree_add_profile(struct hearth_stacktree *tree,
                                                const struct hearth_profile *profile,
                                                uint32_t type_idx, struct hearth_err *err)
{
    return add_named_profile(tree, profile, type_idx, false, err);
}

enum hearth_status hearth_stacktree_add_shown(struct hearth_stacktree *tree,
                                              const struct hearth_profile *profile,
                                              uint32_t type_idx, struct hearth_err *err)
{
    return add_named_profile(tree, profile, type_idx, true, err);
}

/* ---- back ---- */

static uint32_t parent_of(const struct hearth_stacktree *tree, uint32_t node)
{
    return tree->nodes[node].parent;
}

/* Samples, and the frames of all of them. */
static void count_stacked(const struct hearth_stacktree *tree, size_t *ret_samples,
                          size_t *ret_frames)
{
    *ret_samples = *ret_frames = 0;
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        if (tree->nodes[i].self == 0) {
            continue;
        }
        ++*ret_samples;
        for (uint32_t at = i; at != 0; at = parent_of(tree, at)) {
            ++*ret_frames;
        }
    }
}

/*
 * A function, a line and a location for each name; then the texts of the type. Name 0, which is
 * empty, is that of the root, but also of functions without a name.
 */
static void name_functions(const struct hearth_stacktree *tree, struct hearth_str type,
                           struct hearth_str unit, struct hearth_profile *p)
{
    p->strings[0] = hearth_str_n("", 0);
    for (uint32_t i = 0; i < p->n_functions; i++) {
        p->strings[i] = tree->names[i];
        p->functions[i] = (struct hearth_function){.name = i, .system_name = i};
        p->lines[i] = (struct hearth_line){.function = i};
        p->locations[i] =
            (struct hearth_location){.mapping = HEARTH_NO_INDEX, .first_line = i, .n_lines = 1};
    }
    p->strings[p->n_strings - 2] = type;
    p->strings[p->n_strings - 1] = unit;
    p->types[0] = (struct hearth_value_type){p->n_strings - 2, p->n_strings - 1};
}

static void write_stacks(const struct hearth_stacktree *tree, struct hearth_profile *p)
{
    uint32_t sample = 0, n = 0;

    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        if (tree->nodes[i].self == 0) {
            continue;
        }
        p->values[sample] = tree->nodes[i].self;
        p->stack_first[sample++] = n;
        for (uint32_t at = i; at != 0; at = parent_of(tree, at)) {
            p->stack_locs[n++] = tree->nodes[at].name;
        }
    }
    p->stack_first[sample] = n;
}

enum hearth_status hearth_stacktree_to_profile(const struct hearth_stacktree *tree,
                                               struct hearth_str type, struct hearth_str unit,
                                               struct hearth_profile *ret, struct hearth_err *err)
{
    assert(tree != NULL && ret != NULL);

    struct hearth_arena *arena = tree->arena;
    size_t n_functions = tree->n_names, n_samples, n_frames;
    size_t n_strings = (n_functions > 0 ? n_functions : 1) + 2;
    count_stacked(tree, &n_samples, &n_frames);
    if (n_frames > INT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "the stack traces have %zu frames in all, more than a profile can hold",
                           n_frames);
    }

    *ret = (struct hearth_profile){
        .strings = hearth_arena_calloc(arena, n_strings, sizeof *ret->strings),
        .types = hearth_arena_calloc(arena, 1, sizeof *ret->types),
        .functions = hearth_arena_calloc(arena, n_functions, sizeof *ret->functions),
        .lines = hearth_arena_calloc(arena, n_functions, sizeof *ret->lines),
        .locations = hearth_arena_calloc(arena, n_functions, sizeof *ret->locations),
        .stack_first = hearth_arena_calloc(arena, n_samples + 1, sizeof *ret->stack_first),
        .stack_locs = hearth_arena_calloc(arena, n_frames, sizeof *ret->stack_locs),
        .values = hearth_arena_calloc(arena, n_samples, sizeof *ret->values),
        .label_first = hearth_arena_calloc(arena, n_samples + 1, sizeof *ret->label_first),
        .n_strings = (uint32_t)n_strings,
        .n_types = 1,
        .n_functions = (uint32_t)n_functions,
        .n_lines = (uint32_t)n_functions,
        .n_locations = (uint32_t)n_functions,
        .n_samples = (uint32_t)n_samples,
        .n_stack_locs = (uint32_t)n_frames,
    };
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    name_functions(tree, type, unit, ret);
    write_stacks(tree, ret);

    return HEARTH_OK;
}
