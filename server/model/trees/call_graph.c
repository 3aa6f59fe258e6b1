/*
 * call_graph.c -- functions and calls of a tree.
 *
 * Parents precede children in the tree's array, so one pass finds for each node the nearest shown
 * function above it, and the edge that ends at it. A second pass, depth first, adds the values: an
 * edge that is already on the path from the root is not counted again. Subtrees that count for one
 * edge are disjoint, so no sum exceeds the tree's total.
 */
#include "hearth/model/call_graph.h"

#include <assert.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* A node of the tree in relation to the shown functions. */
struct node_place {
    uint32_t shown; /* the nearest shown function at or above the node, or NONE */
    uint32_t edge;  /* the edge that ends at the node, or NONE */
    bool is_below;  /* the node itself is hidden, below `shown` */
};

struct grapher {
    const struct hearth_stacktree *tree;
    struct hearth_arena *arena; /* for the result */
    struct hearth_arena scratch;
    struct hearth_call_graph graph;
    uint32_t *node_of;         /* tree name -> node of the graph, or NONE if it is not shown */
    struct node_place *places; /* [tree->n_nodes] */
    uint32_t *on_path;         /* [n_edges]: how often the edge is on the current path */
    struct hearth_idmap edge_ids;
};

static int compare_by_total(const void *a_ptr, const void *b_ptr, void *names_ptr)
{
    const struct hearth_function_total *a = a_ptr, *b = b_ptr;
    const struct hearth_str *names = names_ptr;

    if (a->total != b->total) {
        return a->total > b->total ? -1 : 1;
    }

    if (a->self != b->self) {
        return a->self > b->self ? -1 : 1;
    }

    return hearth_str_cmp(names[a->name], names[b->name]);
}

static enum hearth_status choose_nodes(struct grapher *g, size_t max_nodes, struct hearth_err *err)
{
    const struct hearth_stacktree *tree = g->tree;
    struct hearth_function_total *functions;
    size_t n;

    /* The exact table of functions, sorted by total. */
    HEARTH_TRY(hearth_stacktree_functions(tree, &g->scratch, &functions, &n, err));
    if (n > 0) {
        qsort_r(functions, n, sizeof functions[0], compare_by_total, tree->names);
    }

    /* The first max_nodes of them are the nodes. */
    g->graph.n_functions = n;
    n = n < max_nodes ? n : max_nodes;
    g->graph.nodes = hearth_arena_array(g->arena, n, sizeof g->graph.nodes[0]);
    g->node_of = hearth_arena_array(&g->scratch, tree->n_names + 1, sizeof g->node_of[0]);
    if (g->graph.nodes == NULL || g->node_of == NULL) {
        return HEARTH_FAIL_ARENA(err, g->arena);
    }

    memset(g->node_of, 0xff, (tree->n_names + 1) * sizeof g->node_of[0]);
    for (size_t i = 0; i < n; i++) {
        g->node_of[functions[i].name] = (uint32_t)i;
        g->graph.nodes[i] = (struct hearth_call_node){tree->names[functions[i].name],
                                                      functions[i].self, functions[i].total};
    }

    g->graph.n_nodes = n;

    return HEARTH_OK;
}

/* The number of an edge, which is added if absent. NONE if memory was refused. */
static uint32_t intern_edge(struct grapher *g, uint32_t from, uint32_t to, bool is_indirect)
{
    uint64_t pair = (uint64_t)from << 32 | to;
    struct hearth_hash128 key = {hearth_hash_mix(pair, g->tree->seed), pair};
    bool inserted;
    uint32_t edge = hearth_idmap_intern(&g->edge_ids, key, (uint32_t)g->graph.n_edges, &inserted);

    if (edge == HEARTH_IDMAP_NONE) {
        return NONE;
    }

    if (inserted) { /* there is room: the tree has more nodes than the graph has edges */
        assert(g->graph.n_edges < g->tree->n_nodes);
        g->graph.edges[g->graph.n_edges++] =
            (struct hearth_call_edge){.from = from, .to = to, .is_indirect = true};
    }

    g->graph.edges[edge].is_indirect &= is_indirect;

    return edge;
}

static enum hearth_status find_edges(struct grapher *g, struct hearth_err *err)
{
    const struct hearth_stacktree *tree = g->tree;

    g->places = hearth_arena_array(&g->scratch, tree->n_nodes, sizeof g->places[0]);
    g->graph.edges = hearth_arena_array(&g->scratch, tree->n_nodes, sizeof g->graph.edges[0]);
    if (g->places == NULL || g->graph.edges == NULL) {
        return HEARTH_FAIL_ARENA(err, &g->scratch);
    }

    /* The root is above all functions; of every other node the parent's place is known. */
    g->places[0] = (struct node_place){.shown = NONE, .edge = NONE};
    for (size_t i = 1; i < tree->n_nodes; i++) {
        const struct hearth_tree_node *node = &tree->nodes[i];
        const struct node_place *above = &g->places[node->parent];
        uint32_t shown = g->node_of[node->name];
        struct node_place *place = &g->places[i];

        if (shown == NONE) {
            *place = (struct node_place){above->shown, NONE, above->shown != NONE};
            continue;
        }

        *place = (struct node_place){.shown = shown, .edge = NONE};

        if (above->shown != NONE) {
            place->edge = intern_edge(g, above->shown, shown, above->is_below);
            if (place->edge == NONE) {
                return HEARTH_FAIL_ARENA(err, &g->scratch);
            }
        }
    }

    return HEARTH_OK;
}

static enum hearth_status sum_edges(struct grapher *g, struct hearth_err *err)
{
    const struct hearth_tree_node *nodes = g->tree->nodes;

    g->on_path = hearth_arena_calloc(&g->scratch, g->graph.n_edges, sizeof g->on_path[0]);
    if (g->on_path == NULL) {
        return HEARTH_FAIL_ARENA(err, &g->scratch);
    }

    /* Depth first along the links, without recursion. */
    uint32_t at = nodes[0].first_child;
    while (at != HEARTH_NO_NODE && at != 0) {
        uint32_t edge = g->places[at].edge;
        if (edge != NONE && g->on_path[edge]++ == 0) {
            g->graph.edges[edge].value += nodes[at].total;
        }
        if (nodes[at].first_child != HEARTH_NO_NODE) {
            at = nodes[at].first_child;
            continue;
        }

        /* A leaf: go up to the next node with a sibling, leaving edges on the way. */
        for (bool up = true; up;) {
            edge = g->places[at].edge;
            if (edge != NONE) {
                g->on_path[edge]--;
            }
            up = nodes[at].next_sibling == HEARTH_NO_NODE;
            at = up ? nodes[at].parent : nodes[at].next_sibling;
            up = up && at != 0;
        }
    }

    return HEARTH_OK;
}

static int compare_edges(const void *a_ptr, const void *b_ptr)
{
    const struct hearth_call_edge *a = a_ptr, *b = b_ptr;

    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }

    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }

    return (a->to > b->to) - (a->to < b->to);
}

/* Sort the edges of at least min_value, and copy them to the result's arena. */
static enum hearth_status keep_edges(struct grapher *g, int64_t min_value, struct hearth_err *err)
{
    struct hearth_call_graph *graph = &g->graph;
    size_t n = 0;

    /* Remove the other edges. */
    for (size_t i = 0; i < graph->n_edges; i++) {
        graph->n_calls += graph->edges[i].value > 0;
        if (graph->edges[i].value > 0 && graph->edges[i].value >= min_value) {
            graph->edges[n++] = graph->edges[i];
        }
    }

    if (n > 0) {
        qsort(graph->edges, n, sizeof graph->edges[0], compare_edges);
    }

    /* Copy the rest. */
    struct hearth_call_edge *kept = hearth_arena_array(g->arena, n, sizeof kept[0]);
    if (kept == NULL) {
        return HEARTH_FAIL_ARENA(err, g->arena);
    }

    if (n > 0) {
        memcpy(kept, graph->edges, n * sizeof kept[0]);
    }

    graph->edges = kept;
    graph->n_edges = n;

    return HEARTH_OK;
}

static enum hearth_status make_call_graph(struct grapher *g, size_t max_nodes, int64_t min_value,
                                          struct hearth_err *err)
{
    g->graph.total = g->tree->nodes[0].total;
    HEARTH_TRY(choose_nodes(g, max_nodes, err));
    HEARTH_TRY(find_edges(g, err));
    HEARTH_TRY(sum_edges(g, err));
    return keep_edges(g, min_value, err);
}

enum hearth_status hearth_call_graph_make(const struct hearth_stacktree *tree, size_t max_nodes,
                                          int64_t min_value, struct hearth_arena *arena,
                                          struct hearth_call_graph *ret, struct hearth_err *err)
{
    assert(tree != NULL && arena != NULL && ret != NULL);
    assert(!tree->is_cut);

    /* An empty tree has an empty graph. */
    if (tree->n_nodes == 0) {
        *ret = (struct hearth_call_graph){0};
        return HEARTH_OK;
    }

    struct grapher g = {.tree = tree, .arena = arena};
    hearth_arena_init_like(&g.scratch, arena);
    hearth_idmap_init(&g.edge_ids);
    enum hearth_status status = make_call_graph(&g, max_nodes, min_value, err);
    if (status == HEARTH_OK) {
        *ret = g.graph;
    }

    hearth_idmap_release(&g.edge_ids);
    hearth_arena_release(&g.scratch);

    return status;
}
