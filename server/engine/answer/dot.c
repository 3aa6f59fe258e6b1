/* dot.c -- a selection as a call graph in Graphviz' language. */
#include "hearth/model/dot_text.h"

#include "select/query_internal.h"

#include <assert.h>

static enum hearth_status note_hidden_calls(const struct hearth_query *query,
                                            const struct hearth_call_graph *graph,
                                            struct hearth_err *err)
{
    size_t n_nodes = graph->n_functions - graph->n_nodes, n_edges = graph->n_calls - graph->n_edges;
    if (query->call.notes == NULL || (n_nodes == 0 && n_edges == 0)) {
        return HEARTH_OK;
    }

    hearth_buf_printf(query->call.notes,
                      "%zu of %zu functions and %zu calls are not shown: ask for more with"
                      " max_nodes\n",
                      n_nodes, graph->n_functions, n_edges);

    return hearth_buf_failed(query->call.notes)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the notes of an answer")
               : HEARTH_OK;
}

/* Writes the calls of a tree; those below max_nodes nodes of a flame graph are left out. */
static enum hearth_status write_call_graph(const struct hearth_query *query,
                                           const struct hearth_stacktree *tree,
                                           const struct hearth_profile_type *type,
                                           int64_t max_functions, struct hearth_buf *out,
                                           struct hearth_err *err)
{
    struct hearth_call_graph graph;
    struct hearth_buf title;

    HEARTH_TRY(hearth_dot_select(tree, max_functions, query->call.arena, &graph, err));
    if (graph.n_nodes == 0) {
        return HEARTH_OK;
    }

    hearth_buf_init(&title, 0);
    hearth_profile_type_format(type, &title);
    hearth_dot_write(&graph, hearth_buf_view(&title), type->sample_unit, out);
    bool failed = hearth_buf_failed(out) || hearth_buf_failed(&title);
    hearth_buf_release(&title);
    if (failed) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "the call graph exceeds the memory of an answer");
    }

    return note_hidden_calls(query, &graph, err);
}

/* The requested number of functions, or the default; never more than max_flamegraph_nodes. */
static enum hearth_status find_max_functions(const struct hearth_query *query, int64_t max_nodes,
                                             int64_t *ret_n, struct hearth_err *err)
{
    struct hearth_merge_spec requested = {.has_max_nodes = true, .max_nodes = max_nodes};
    struct hearth_limits limits;

    HEARTH_TRY(hearth_query_max_nodes(query, &requested, ret_n, err));
    hearth_call_limits(&query->call, &limits);
    int64_t most = limits.max_flamegraph_nodes;
    if (max_nodes == 0) {
        *ret_n = most > 0 && most < HEARTH_DOT_FUNCTIONS ? most : HEARTH_DOT_FUNCTIONS;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_query_dot(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, int64_t max_nodes,
                                    struct hearth_buf *out, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && out != NULL);

    struct hearth_profile_type type;
    struct hearth_merge_spec shown = *spec;
    int64_t n;

    shown.empty_names = false; /* a box needs a name */
    HEARTH_TRY(find_max_functions(query, max_nodes, &n, err));
    HEARTH_TRY(hearth_profile_type_parse(spec->profile_type, &type, err));
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->call.arena);
    enum hearth_status status = hearth_query_function_tree(query, &shown, 0, &tree, err);
    if (status == HEARTH_OK) {
        status = write_call_graph(query, &tree, &type, n, out, err);
    }

    hearth_stacktree_release(&tree);
    return status;
}
