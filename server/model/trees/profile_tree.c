/* profile_tree.c -- the stacks of a decoded profile as a tree of function names. */
#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"
#include "hearth/model/stacktree.h"

#include <assert.h>

struct profile_adder {
    struct hearth_stacktree *tree;
    const struct hearth_profile *profile;
    uint32_t *name_of; /* string index -> name of the tree plus 1; 0: not looked up yet */
};

static uint32_t find_named_child(struct profile_adder *a, uint32_t node, uint32_t name)
{
    return name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE : hearth_stacktree_child(a->tree, node, name);
}

static uint32_t name_string(struct profile_adder *a, uint32_t string)
{
    if (a->name_of[string] == 0) {
        /* NONE + 1 is 0, so a refusal is not stored as a name. */
        a->name_of[string] = hearth_stacktree_name(a->tree, a->profile->strings[string]) + 1;
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

enum hearth_status hearth_stacktree_add_profile(struct hearth_stacktree *tree,
                                                const struct hearth_profile *profile,
                                                uint32_t type_idx, struct hearth_err *err)
{
    assert(tree != NULL && profile != NULL);

    HEARTH_ASSERT(type_idx < profile->n_types);
    struct profile_adder a = {.tree = tree, .profile = profile};
    a.name_of = hearth_mem_calloc(profile->n_strings, sizeof a.name_of[0]);
    if (a.name_of == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a tree of stack traces");
    }

    enum hearth_status status = add_samples(&a, type_idx, err);
    hearth_mem_free(a.name_of);

    return status;
}
