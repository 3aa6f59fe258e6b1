/*
 * dot.c -- a selection as a call graph in Graphviz' language.
 *
 * Labels are escaped for Graphviz' quoted strings: \" does not end one, \N and similar sequences
 * are not replaced, and text that looks like an HTML entity stays as it is.
 */
#include "answer/dot.h"

#include "select/query_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define LINE_BYTES        56u /* longest line of a name; longer ones would make boxes too wide */
#define LEAST_LINE_BYTES  16u
#define DEFAULT_FUNCTIONS 100
/* Calls that a flame graph of this many nodes would not show make a picture unreadable. */
#define DEFAULT_TREE_NODES 512

/* ---- values for people ---- */

/* Formats three significant digits, in the largest unit that leaves at least 1. */
static void format_scaled(int64_t value, const double *factors, const char *const *units, size_t n,
                          char out[32])
{
    double v = (double)value;
    size_t i = 0;

    assert(n > 0);

    while (i + 1 < n && fabs(v) >= factors[i]) {
        v /= factors[i++];
    }

    int digits = i == 0 || fabs(v) >= 100 ? 0 : fabs(v) >= 10 ? 1 : 2;
    (void)snprintf(out, 32, "%.*f%s", digits, v, units[i]);
}

static void format_value(int64_t value, struct hearth_str unit, char out[32])
{
    static const double times[] = {1000, 1000, 1000, 60, 60, 24},
                        bytes[] = {1024, 1024, 1024, 1024};
    static const char *const time_units[] = {" ns", " us", " ms", " s", " min", " h", " d"};
    static const char *const byte_units[] = {" B", " KiB", " MiB", " GiB", " TiB"};

    if (hearth_str_eq_c(unit, "nanoseconds")) {
        format_scaled(value, times, time_units, HEARTH_ARRAY_LEN(time_units), out);
    } else if (hearth_str_eq_c(unit, "bytes")) {
        format_scaled(value, bytes, byte_units, HEARTH_ARRAY_LEN(byte_units), out);
    } else {
        (void)snprintf(out, 32, "%lld", (long long)value);
    }
}

/* ---- text ---- */

/* Whether "&name;" or "&#38;" is at `at`: Graphviz would show the character that it means. */
static bool is_html_entity(struct hearth_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.n && (text.p[end] == '#' || (text.p[end] >= '0' && text.p[end] <= '9') ||
                            (text.p[end] >= 'a' && text.p[end] <= 'z') ||
                            (text.p[end] >= 'A' && text.p[end] <= 'Z'))) {
        end++;
    }

    return end > at + 1 && end < text.n && text.p[end] == ';';
}

/* Appends text for a quoted string of Graphviz. */
static void append_escaped(struct hearth_buf *out, struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '"' || c == '\\') {
            hearth_buf_byte(out, '\\');
            hearth_buf_byte(out, (unsigned char)c);
        } else if ((unsigned char)c < ' ' || c == 0x7F) {
            hearth_buf_byte(out, ' ');
        } else if (c == '&' && is_html_entity(text, i)) {
            hearth_buf_cstr(out, "&amp;");
        } else {
            hearth_buf_byte(out, (unsigned char)c);
        }
    }
}

/*
 * Where the first line of a long name ends: after the last separator, otherwise between characters.
 */
static size_t find_line_end(struct hearth_str name)
{
    size_t n = LINE_BYTES;

    assert(name.n > LINE_BYTES);
    for (size_t i = LEAST_LINE_BYTES; i < LINE_BYTES; i++) {
        bool is_pair = name.p[i] == ':' && name.p[i + 1] == ':';
        if (strchr("/,;:.<[ ", name.p[i]) != NULL && name.p[i] != '\0' && !is_pair) {
            n = i + 1;
        }
    }

    /* No separator: do not cut inside of a character of UTF-8. */
    for (unsigned back = 0; n == LINE_BYTES && back < 4; back++) {
        if (((unsigned char)name.p[n - back] & 0xc0) != 0x80) {
            return n - back;
        }
    }

    return n;
}

/* Appends a name, broken into lines. */
static void append_broken_name(struct hearth_buf *out, struct hearth_str name)
{
    while (name.n > LINE_BYTES) {
        size_t n = find_line_end(name);
        append_escaped(out, hearth_str_n(name.p, n));
        hearth_buf_cstr(out, "\\n");
        name = hearth_str_n(name.p + n, name.n - n);
    }

    append_escaped(out, name);
}

static void append_type_id(struct hearth_buf *out, const struct hearth_profile_type *type)
{
    struct hearth_buf id;
    hearth_buf_init(&id, 0);
    hearth_profile_type_format(type, &id);
    append_escaped(out, hearth_buf_view(&id));
    hearth_buf_release(&id);
}

/* The divide_share of a value in the whole; 0 if the whole is 0. */
static double divide_share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Appends a colour from nearly white to orange, by the divide_share of the total. */
static void append_heat_colour(struct hearth_buf *out, double heat)
{
    hearth_buf_printf(out, "#%02x%02x%02x", 0xf8 - (unsigned)(heat * 4),
                      0xf8 - (unsigned)(heat * 0x60), 0xf8 - (unsigned)(heat * 0xa0));
}

static void append_dot_node(struct hearth_buf *out, const struct hearth_call_graph *graph, size_t i,
                            struct hearth_str unit)
{
    const struct hearth_call_node *node = &graph->nodes[i];
    char self[32], total[32];
    double of_self = divide_share(node->self, graph->total),
           of_total = divide_share(node->total, graph->total);

    format_value(node->self, unit, self);
    format_value(node->total, unit, total);

    /* The label: name, self and total, as pprof shows them. */
    hearth_buf_printf(out, "  n%zu [label=\"", i + 1);
    append_broken_name(out, node->name);
    if (node->self == 0) {
        hearth_buf_printf(out, "\\n0 of %s (%.2f%%)", total, 100 * of_total);
    } else {
        hearth_buf_printf(out, "\\n%s (%.2f%%)", self, 100 * of_self);
    }

    if (node->self != 0 && node->total != node->self) {
        hearth_buf_printf(out, "\\nof %s (%.2f%%)", total, 100 * of_total);
    }

    /* Exact values as attributes. */
    hearth_buf_printf(out, "\", self=%lld, total=%lld, fontsize=%d, fillcolor=\"",
                      (long long)node->self, (long long)node->total,
                      10 + (int)(14 * sqrt(of_self)));
    append_heat_colour(out, of_total);
    hearth_buf_cstr(out, "\", tooltip=\"");
    append_escaped(out, node->name);
    hearth_buf_cstr(out, "\"];\n");
}

static void append_dot_edge(struct hearth_buf *out, const struct hearth_call_graph *graph,
                            const struct hearth_call_edge *edge, struct hearth_str unit)
{
    char value[32];
    double of_total = divide_share(edge->value, graph->total);

    format_value(edge->value, unit, value);
    hearth_buf_printf(
        out, "  n%zu -> n%zu [label=\" %s\", value=%lld, weight=%d, penwidth=%.1f%s, tooltip=\"",
        (size_t)edge->from + 1, (size_t)edge->to + 1, value, (long long)edge->value,
        1 + (int)(100 * of_total), 1 + 4 * of_total, edge->is_indirect ? ", style=dashed" : "");
    append_escaped(out, graph->nodes[edge->from].name);
    hearth_buf_cstr(out, " -> ");
    append_escaped(out, graph->nodes[edge->to].name);
    hearth_buf_cstr(out, "\"];\n");
}

void hearth_dot_write(const struct hearth_call_graph *graph, const struct hearth_profile_type *type,
                      struct hearth_buf *out)
{
    assert(graph != NULL && type != NULL && out != NULL);

    char total[32];

    format_value(graph->total, type->sample_unit, total);

    /* Title and defaults. */
    hearth_buf_cstr(out, "digraph \"");
    append_type_id(out, type);
    hearth_buf_cstr(out,
                    "\" {\n  graph [fontname=\"sans-serif\", labelloc=t, labeljust=l, label=\"");
    append_type_id(out, type);
    hearth_buf_printf(out, "\\ltotal %s, %zu of %zu functions\\l\"];\n", total, graph->n_nodes,
                      graph->n_functions);
    hearth_buf_cstr(
        out, "  node [fontname=\"sans-serif\", shape=box, style=filled, margin=\"0.16,0.08\"];\n"
             "  edge [fontname=\"sans-serif\", fontsize=10];\n");

    /* Nodes and edges. */
    for (size_t i = 0; i < graph->n_nodes; i++) {
        append_dot_node(out, graph, i, type->sample_unit);
    }

    for (size_t i = 0; i < graph->n_edges; i++) {
        append_dot_edge(out, graph, &graph->edges[i], type->sample_unit);
    }

    hearth_buf_cstr(out, "}\n");
}

/* ---- the query ---- */

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
    int64_t least;
    int64_t max_nodes = max_functions > DEFAULT_TREE_NODES ? max_functions : DEFAULT_TREE_NODES;
    size_t n_shown = max_functions < 1 ? SIZE_MAX : (size_t)max_functions;

    HEARTH_TRY(hearth_stacktree_min_total(tree, max_nodes, &least, err));
    HEARTH_TRY(hearth_call_graph_make(tree, n_shown, least, query->call.arena, &graph, err));
    if (graph.n_nodes == 0) {
        return HEARTH_OK;
    }

    hearth_dot_write(&graph, type, out);
    if (hearth_buf_failed(out)) {
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
        *ret_n = most > 0 && most < DEFAULT_FUNCTIONS ? most : DEFAULT_FUNCTIONS;
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
