/*
 * call_site.c -- which nodes of a name tree lie at or below a call site.
 */
#include "query_internal.h"

enum hearth_status hearth_call_site_nodes(const struct hearth_dict *dict,
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
    bool *inside = hearth_arena_calloc(arena, dict->n_nodes, sizeof inside[0]);
    /* matched[node]: how many frames of call_site the path to node has matched, or OFF. */
    enum {
        OFF = -1
    };
    int32_t *matched = hearth_arena_array(arena, dict->n_nodes, sizeof matched[0]);
    if (inside == NULL || matched == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    matched[0] = 0;
    for (uint32_t i = 1; i < dict->n_nodes; i++) {
        uint32_t parent = dict->node_parent[i];
        inside[i] = inside[parent];
        matched[i] = OFF;
        if (inside[parent] || matched[parent] == OFF) {
            continue;
        }
        if (hearth_str_eq(dict->strings[dict->node_name[i]], call_site[matched[parent]])) {
            matched[i] = matched[parent] + 1;
            inside[i] = (size_t)matched[i] == n_call_site;
        }
    }
    *ret_inside = inside;
    return HEARTH_OK;
}
