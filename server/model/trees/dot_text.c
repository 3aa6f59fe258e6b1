/*
 * dot_text.c -- a call graph in Graphviz' language.
 *
 * Labels are escaped for Graphviz' quoted strings: \" does not end one, \N and similar sequences
 * are not replaced, and text that looks like an HTML entity stays as it is.
 */
#include "hearth/model/dot_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define LINE_BYTES       56u /* longest line of a name; longer ones would make boxes too wide */
#define LEAST_LINE_BYTES 16u
/* Calls that a flame graph of this many nodes would not show make a picture unreadable. */
#define TREE_NODES 512

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

void hearth_dot_write(const struct hearth_call_graph *graph, struct hearth_str title,
                      struct hearth_str unit, struct hearth_buf *out)
{
    assert(graph != NULL && out != NULL);

    char total[32];

    format_value(graph->total, unit, total);

    /* Title and defaults. */
    hearth_buf_cstr(out, "digraph \"");
    append_escaped(out, title);
    hearth_buf_cstr(out,
                    "\" {\n  graph [fontname=\"sans-serif\", labelloc=t, labeljust=l, label=\"");
    append_escaped(out, title);
    hearth_buf_printf(out, "\\ltotal %s, %zu of %zu functions\\l\"];\n", total, graph->n_nodes,
                      graph->n_functions);
    hearth_buf_cstr(
        out, "  node [fontname=\"sans-serif\", shape=box, style=filled, margin=\"0.16,0.08\"];\n"
             "  edge [fontname=\"sans-serif\", fontsize=10];\n");

    /* Nodes and edges. */
    for (size_t i = 0; i < graph->n_nodes; i++) {
        append_dot_node(out, graph, i, unit);
    }

    for (size_t i = 0; i < graph->n_edges; i++) {
        append_dot_edge(out, graph, &graph->edges[i], unit);
    }

    hearth_buf_cstr(out, "}\n");
}

enum hearth_status hearth_dot_select(const struct hearth_stacktree *tree, int64_t max_functions,
                                     struct hearth_arena *arena, struct hearth_call_graph *ret,
                                     struct hearth_err *err)
{
    assert(tree != NULL && ret != NULL);

    int64_t max_nodes = max_functions > TREE_NODES ? max_functions : TREE_NODES, least;
    size_t n_shown = max_functions < 1 ? SIZE_MAX : (size_t)max_functions;

    HEARTH_TRY(hearth_stacktree_min_total(tree, max_nodes, &least, err));
    return hearth_call_graph_make(tree, n_shown, least, arena, ret, err);
}
