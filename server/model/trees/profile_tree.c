/* profile_tree.c -- the stacks of a decoded profile as a tree of function names. */
#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"
#include "hearth/model/stacktree.h"

struct adding {
    struct hearth_stacktree *tree;
    const struct hearth_profile *profile;
    uint32_t *name_of; /* string index -> name of the tree + 1; 0: not asked yet */
};

static uint32_t child_named(struct adding *a, uint32_t node, uint32_t name)
{
    return name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE : hearth_stacktree_child(a->tree, node, name);
}

static uint32_t name_of_string(struct adding *a, uint32_t string)
{
    if (a->name_of[string] == 0) {
        /* NONE + 1 is 0: a refusal is not remembered as a name. */
        a->name_of[string] = hearth_stacktree_name(a->tree, a->profile->strings[string]) + 1;
    }
    return a->name_of[string] - 1;
}

static uint32_t name_of_address(struct adding *a, const struct hearth_location *location)
{
    const struct hearth_profile *p = a->profile;
    struct hearth_str file = {"", 0};

    if (location->mapping != HEARTH_NO_INDEX) {
        file = p->strings[p->mappings[location->mapping].filename];
    }

    char text[HEARTH_FRAME_NAME_BYTES];
    size_t n = hearth_frame_name(location->address, file, text);

    return hearth_stacktree_name(a->tree, hearth_str_n(text, n));
}

/* The node below `node` for one location; its outermost line comes first. */
static uint32_t descend(struct adding *a, uint32_t node, uint32_t location_idx)
{
    if (location_idx == HEARTH_NO_INDEX) {
        return child_named(a, node, hearth_stacktree_name(a->tree, HEARTH_FRAME_UNKNOWN));
    }

    const struct hearth_location *location = &a->profile->locations[location_idx];
    if (location->n_lines == 0) {
        return child_named(a, node, name_of_address(a, location));
    }

    for (uint32_t i = location->n_lines; i-- > 0 && node != HEARTH_NO_NODE;) {
        uint32_t function = a->profile->lines[location->first_line + i].function;
        node = child_named(a, node, name_of_string(a, a->profile->functions[function].name));
    }

    return node;
}

static enum hearth_status add_all(struct adding *a, uint32_t type_idx, struct hearth_err *err)
{
    const struct hearth_profile *p = a->profile;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        int64_t value = p->values[(size_t)s * p->n_types + type_idx];
        uint32_t node = hearth_stacktree_root(a->tree);
        for (uint32_t i = p->stack_first[s + 1];
             value != 0 && i-- > p->stack_first[s] && node != HEARTH_NO_NODE;) {
            node = descend(a, node, p->stack_locs[i]);
        }
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a tree of stack traces");
        }
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
    HEARTH_ASSERT(type_idx < profile->n_types);
    struct adding a = {.tree = tree, .profile = profile};
    a.name_of = hearth_mem_calloc(profile->n_strings, sizeof a.name_of[0]);
    if (a.name_of == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a tree of stack traces");
    }

    enum hearth_status status = add_all(&a, type_idx, err);
    hearth_mem_free(a.name_of);

    return status;
}
