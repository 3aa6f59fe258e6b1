/*
 * call_site.c -- which nodes of a name tree lie at or below a call site.
 */
#include "query_internal.h"

enum {
    OFF = -1
};

enum hearth_status hearth_call_site_nodes(const struct hearth_name_tree *tree,
                                          uint32_t n_nodes,
                                          const struct hearth_str *call_site,
                                          size_t n_call_site,
                                          struct hearth_arena *arena,
                                          bool **ret_inside,
                                          struct hearth_err *err)
{
    *ret_inside = NULL;
    if (n_call_site == 0) {
        return HEARTH_OK;
    }
    bool *inside = hearth_arena_calloc(arena, n_nodes, sizeof inside[0]);
    /* matched[node]: how many frames of call_site the path to node has matched, or OFF. */
    int32_t *matched = hearth_arena_array(arena, n_nodes, sizeof matched[0]);
    if (inside == NULL || matched == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    matched[0] = 0;
    for (uint32_t i = 1; i < n_nodes; i++) {
        struct hearth_name_node node = hearth_name_tree_node(tree, i);
        inside[i] = inside[node.parent];
        matched[i] = OFF;
        if (inside[node.parent] || matched[node.parent] == OFF) {
            continue;
        }
        if (hearth_str_eq(hearth_name_tree_name(tree, node.name),
                          call_site[matched[node.parent]])) {
            matched[i] = matched[node.parent] + 1;
            inside[i] = (size_t)matched[i] == n_call_site;
        }
    }
    *ret_inside = inside;
    return HEARTH_OK;
}
