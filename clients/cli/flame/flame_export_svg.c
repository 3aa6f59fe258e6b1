/*
 * flame_export_svg.c -- flame graphs and diffs as SVG pictures, root at the top. Colours are those of
 * clients/viewer. Fills are those of the light theme, for programs without styles; a box has the
 * fill of the dark one as a property, which the picture's style applies if the viewer prefers it.
 */
#include "hearth/base/hash.h"
#include "hearth/base/human.h"
#include "hearth/base/mem.h"

#include "flame_export.h"

#include <math.h>
#include <stdio.h>

#define ROW_PIXELS      18
#define HEAD_PIXELS     44
#define LEAST_WIDTH     0.5 /* of a box of its own */
#define TEXT_WIDTH      24  /* from which a box has text */
#define VALUE_WIDTH     200 /* from which the text has a value */
#define VALUE_CHARS     28
#define ADVANCE         7.25
#define TITLE_CHARS     1000
#define UNCHANGED_SHARE 0.001 /* where noise is not known, smaller changes are shown as unchanged */

enum svg_theme {
    SVG_LIGHT,
    SVG_DARK
};

/* The prefix keeps the style from other pictures of a page that includes this one. */
static const char g_style[] = "<style>@media (prefers-color-scheme:dark){"
                              ".hearth rect[style]{fill:var(--dark)}"
                              ".hearth g{fill:#f0eeeb}"
                              ".hearth path,.hearth [stroke-dasharray]{stroke:#f0eeeb}"
                              "}</style>\n";

struct svg_picture {
    const struct flame_export *graph;
    struct hearth_buf *out;
    struct hearth_buf text; /* of one title or label */
    double *x;              /* by node: left edge, less than 0 if it is not drawn */
    double *filled;         /* by node: right edge of the children so far */
    double largest;         /* change of a share */
};

/* ---- text ---- */

/* U+FFFE and U+FFFF, which XML does not allow. */
static bool is_noncharacter(const char *p)
{
    return memcmp(p, "\xef\xbf\xbe", 3) == 0 || memcmp(p, "\xef\xbf\xbf", 3) == 0;
}

/* Appends at most `limit` characters of an untrusted text as text of XML, and an ellipsis if it is cut. */
static void put_xml(struct svg_picture *svg, struct hearth_str text, int limit)
{
    struct hearth_buf *shown = &svg->text;

    hearth_buf_reset(shown);
    hearth_human_fit(text, limit, false, shown);
    for (size_t i = 0; i < shown->n; i++) {
        char c = shown->p[i];
        if (memchr("&<>\"'", c, 5) != NULL) {
            hearth_buf_printf(svg->out, "&#%d;", c);
        } else if (i + 3 <= shown->n && is_noncharacter(shown->p + i)) {
            hearth_buf_cstr(svg->out, "?");
            i += 2;
        } else {
            hearth_buf_byte(svg->out, (unsigned char)c);
        }
    }
    svg->out->failed = svg->out->failed || hearth_buf_failed(shown);
}

static struct hearth_str name_of(const struct flame_export *graph, uint32_t node)
{
    struct hearth_str name = graph->names[graph->name[node]];
    return name.n > 0 ? name : HEARTH_STR("[unknown]");
}

static bool is_other(const struct flame_export *graph, uint32_t node)
{
    return node > 0 && hearth_str_eq_c(name_of(graph, node), "other");
}

/* ---- values ---- */

static double share_of(const struct flame_export *graph, int side, int64_t value)
{
    int64_t whole = graph->total[side][0];
    return whole > 0 ? (double)value / (double)whole : 0;
}

static double change_of(const struct flame_export *graph, uint32_t node)
{
    return share_of(graph, 1, graph->total[1][node]) - share_of(graph, 0, graph->total[0][node]);
}

/* What the width of a node stands for: of a diff both sides. */
static double width_value(const struct flame_export *graph, uint32_t node)
{
    return (double)graph->total[0][node] +
           (graph->n_sides == 2 ? (double)graph->total[1][node] : 0);
}

/* "1.20 s (25.00%)", of a diff "20.00% → 25.00% (+5.00%)". */
static void put_values(struct svg_picture *svg, int64_t *const values[2], uint32_t node)
{
    const struct flame_export *graph = svg->graph;
    double base = share_of(graph, 0, values[0][node]);
    char text[48];

    if (graph->n_sides == 2) {
        double now = share_of(graph, 1, values[1][node]);
        hearth_buf_printf(svg->out, "%.2f%% → %.2f%% (%+.2f%%)", 100 * base, 100 * now,
                          100 * (now - base));
        return;
    }
    hearth_human_value((double)values[0][node], graph->facts.unit, text);
    hearth_buf_printf(svg->out, "%s (%.2f%%)", text, 100 * base);
}

/* ---- colours ---- */

/* A colour for each package, which is the name up to its last separator. */
static const char *package_fill(struct hearth_str name, enum svg_theme theme)
{
    static const char *const hues[][24] = {
        {"f3adc2", "f6aeb2", "f6b0a4", "f3b397", "eeb88c", "e5bd86", "d9c284", "ccc887",
         "bdcd8e", "add199", "9dd4a7", "8ed6b6", "83d7c6", "7ed6d5", "7fd4e3", "85d0ee",
         "91ccf6", "9fc7fb", "aec2fc", "bebdfa", "ccb8f4", "d9b4ea", "e4b1df", "edaed1"},
        {"8a4e61", "8d4e53", "8d5046", "8b5339", "86572d", "7f5c25", "766122", "6b6626",
         "5d6a2f", "4e6e3b", "3d7149", "2a7257", "157365", "017272", "06707e", "1c6d88",
         "2f698f", "416593", "506094", "5e5c92", "6b588d", "755485", "7e517a", "854f6e"},
    };
    size_t cut = name.n;

    for (size_t i = 1; i < name.n && memchr("(<", name.p[i], 2) == NULL; i++) {
        cut = memchr("./:", name.p[i], 3) != NULL ? i : cut;
    }
    return hues[theme][hearth_hash64(name.p, cut, 0) % HEARTH_ARRAY_LEN(hues[theme])];
}

static bool is_seen_change(const struct flame_export *graph, uint32_t node)
{
    return graph->q != NULL ? graph->q[node] <= FLAME_EXPORT_BEYOND_Q
                            : fabs(change_of(graph, node)) >= UNCHANGED_SHARE;
}

/* From grey to orange for more, to blue for less, by the square root of the change. */
static void put_diff_fill(struct svg_picture *svg, uint32_t node, enum svg_theme theme)
{
    static const double colors[][3][3] = {
        {{0xd3, 0xd1, 0xca}, {0xed, 0x79, 0x40}, {0x56, 0xa4, 0xeb}},
        {{0x4a, 0x48, 0x42}, {0xac, 0x43, 0x0e}, {0x1c, 0x67, 0xa4}},
    };
    double change = is_seen_change(svg->graph, node) ? change_of(svg->graph, node) : 0;
    double part = svg->largest > 0 ? sqrt(fabs(change) / svg->largest) : 0;
    const double *same = colors[theme][0], *end = colors[theme][change > 0 ? 1 : 2];

    for (int i = 0; i < 3; i++) {
        hearth_buf_printf(svg->out, "%02x", (unsigned)(same[i] + (end[i] - same[i]) * part + 0.5));
    }
}

static void put_theme_fill(struct svg_picture *svg, uint32_t node, enum svg_theme theme)
{
    const struct flame_export *graph = svg->graph;

    if (node == 0) {
        hearth_buf_cstr(svg->out, theme == SVG_DARK ? "303338" : "dcdee2");
    } else if (graph->n_sides == 2) {
        put_diff_fill(svg, node, theme);
    } else if (is_other(graph, node)) {
        hearth_buf_cstr(svg->out, theme == SVG_DARK ? "4b4d50" : "bcbec0");
    } else {
        hearth_buf_cstr(svg->out, package_fill(name_of(graph, node), theme));
    }
}

static void put_fill(struct svg_picture *svg, uint32_t node)
{
    hearth_buf_cstr(svg->out, " fill=\"#");
    put_theme_fill(svg, node, SVG_LIGHT);
    hearth_buf_cstr(svg->out, "\" style=\"--dark:#");
    put_theme_fill(svg, node, SVG_DARK);
    hearth_buf_byte(svg->out, '"');
}

/* ---- boxes ---- */

static void put_place(struct svg_picture *svg, double x, double y, double width)
{
    double gap = width < 3 ? 0 : 1;
    hearth_buf_printf(svg->out, "x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\"", x, y,
                      width - gap, ROW_PIXELS - 1);
}

/* The name, cut to the box, and the total if there is room. */
static void put_label(struct svg_picture *svg, uint32_t node, double x, double y, double width)
{
    struct hearth_str name = node == 0 ? HEARTH_STR("total") : name_of(svg->graph, node);
    int columns = (int)((width - 8) / ADVANCE);
    bool is_wide = false;

    /* Characters of some scripts take two columns. */
    for (size_t i = 0; i < name.n && i < 4 * (size_t)columns; i++) {
        is_wide = is_wide || (unsigned char)name.p[i] >= 0xE0;
    }
    columns = is_wide ? columns / 2 : columns;
    hearth_buf_printf(svg->out, "<text x=\"%.2f\" y=\"%.0f\">", x + 4, y + ROW_PIXELS - 5);
    put_xml(svg, name, columns);
    if (width >= VALUE_WIDTH && name.n + VALUE_CHARS <= (size_t)columns) {
        hearth_buf_cstr(svg->out, "  ");
        put_values(svg, svg->graph->total, node);
    }
    hearth_buf_cstr(svg->out, "</text>");
}

static void put_box(struct svg_picture *svg, uint32_t node, double y, double width)
{
    const struct flame_export *graph = svg->graph;
    bool is_diff = graph->n_sides == 2 && node > 0;
    bool is_new = is_diff && graph->total[0][node] == 0;
    bool is_gone = is_diff && graph->total[1][node] == 0;
    double x = svg->x[node];

    hearth_buf_cstr(svg->out, "<g><title>");
    put_xml(svg, node == 0 ? HEARTH_STR("total") : name_of(graph, node), TITLE_CHARS);
    hearth_buf_cstr(svg->out, " · total ");
    put_values(svg, graph->total, node);
    hearth_buf_cstr(svg->out, " · self ");
    put_values(svg, graph->self, node);
    hearth_buf_cstr(svg->out, is_new ? " · new" : is_gone ? " · gone" : "");
    if (is_diff && graph->q != NULL) {
        hearth_buf_cstr(svg->out,
                        is_seen_change(graph, node) ? " · beyond noise" : " · within noise");
    }
    hearth_buf_cstr(svg->out, "</title><rect ");
    put_place(svg, x, y, width);
    put_fill(svg, node);
    hearth_buf_printf(svg->out, "%s/>",
                      is_gone ? " stroke=\"#1c1f25\" stroke-dasharray=\"2 2\"" : "");
    if (is_new || is_other(graph, node)) {
        hearth_buf_cstr(svg->out, "<rect ");
        put_place(svg, x, y, width);
        hearth_buf_cstr(svg->out, " fill=\"url(#hatched)\"/>");
    }
    if (width >= TEXT_WIDTH) {
        put_label(svg, node, x, y, width);
    }
    hearth_buf_cstr(svg->out, "</g>\n");
}

/* A grey box for neighbours that are too narrow; [from, to) of pixels. */
static void put_run(struct svg_picture *svg, double from, double to, double y, uint32_t n)
{
    if (n == 0 || to - from < LEAST_WIDTH / 4) {
        return;
    }
    hearth_buf_printf(svg->out, "<g><title>%u frames that are too narrow</title><rect ", n);
    put_place(svg, from, y, to - from);
    hearth_buf_cstr(svg->out, " fill=\"#bcbec0\" style=\"--dark:#4b4d50\"/></g>\n");
}

/*
 * Draws the level that begins at `begin`; returns the first node of the next one. Nodes stand in the
 * order of their parents, so the level ends where a parent is in it.
 */
static uint32_t put_level(struct svg_picture *svg, uint32_t begin, double y, double scale)
{
    const struct flame_export *graph = svg->graph;
    double run_from = 0, run_to = 0;
    uint32_t n_run = 0, node = begin;

    for (; node < graph->n_nodes && (node == 0 || graph->parent[node] < begin); node++) {
        uint32_t parent = graph->parent[node];
        double width = width_value(graph, node) * scale;
        bool is_drawn = width >= LEAST_WIDTH, is_below_drawn = node == 0 || svg->x[parent] >= 0;
        double x = node == 0 ? 0 : svg->filled[parent];

        svg->filled[parent] = x + width;
        svg->filled[node] = x;
        svg->x[node] = is_drawn && is_below_drawn ? x : -1;
        if (!is_below_drawn) {
            continue;
        }

        /* A run of narrow neighbours ends at a box and at a gap. */
        if (is_drawn || x > run_to + LEAST_WIDTH) {
            put_run(svg, run_from, run_to, y, n_run);
            n_run = 0;
        }
        if (is_drawn) {
            put_box(svg, node, y, width);
        } else {
            run_from = n_run++ == 0 ? x : run_from;
        }
        run_to = x + width;
    }
    put_run(svg, run_from, run_to, y, n_run);

    return node;
}

/* ---- the picture ---- */

/* Writes a line of facts that are there, with dots between them. */
static void put_head_line(struct svg_picture *svg, double y, const char *const *texts, size_t n)
{
    const char *between = "";

    hearth_buf_printf(svg->out, "<text x=\"4\" y=\"%.0f\">", y);
    for (size_t i = 0; i < n; i++) {
        if (texts[i] != NULL && texts[i][0] != '\0') {
            hearth_buf_cstr(svg->out, between);
            put_xml(svg, hearth_str_c(texts[i]), FLAME_EXPORT_SVG_WIDTH / 8);
            between = " · ";
        }
    }
    hearth_buf_cstr(svg->out, "</text>\n");
}

static void put_head(struct svg_picture *svg, size_t n_levels)
{
    const struct flame_export_facts *facts = &svg->graph->facts;
    bool is_diff = svg->graph->n_sides == 2;
    size_t height = HEAD_PIXELS + (n_levels + 1) * ROW_PIXELS;
    char total[48], cut[96] = "";

    hearth_human_value((double)svg->graph->total[0][0], facts->unit, total);
    if (n_levels < svg->graph->n_levels) {
        (void)snprintf(cut, sizeof cut, "%zu deeper levels are not drawn",
                       svg->graph->n_levels - n_levels);
    }
    hearth_buf_printf(svg->out,
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hearth\" width=\"%d\" "
                      "height=\"%zu\" viewBox=\"0 0 %d %zu\">\n<title>",
                      FLAME_EXPORT_SVG_WIDTH, height, FLAME_EXPORT_SVG_WIDTH, height);
    put_xml(svg, hearth_str_c(facts->title == NULL ? "" : facts->title), TITLE_CHARS);
    hearth_buf_printf(svg->out,
                      "</title>\n%s<defs><pattern id=\"hatched\" width=\"6\" height=\"6\" "
                      "patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\" stroke=\"#1c1f25\" "
                      "stroke-opacity=\"0.3\"/></pattern></defs>\n"
                      "<rect width=\"%d\" height=\"%zu\" fill=\"#fbfaf8\" "
                      "style=\"--dark:#111316\"/>\n"
                      "<g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', "
                      "monospace\" font-size=\"12\" fill=\"#1c1f25\" direction=\"ltr\" "
                      "unicode-bidi=\"bidi-override\">\n",
                      g_style, FLAME_EXPORT_SVG_WIDTH, height);
    put_head_line(svg, 16,
                  (const char *[]){facts->title, facts->type, facts->range, is_diff ? NULL : total},
                  4);
    put_head_line(svg, 34,
                  (const char *[]){is_diff ? facts->sides[0] : NULL,
                                   is_diff ? facts->sides[1] : NULL, facts->noise, cut},
                  4);
}

void flame_export_svg(const struct flame_export *graph, struct hearth_buf *out)
{
    struct svg_picture svg = {.graph = graph, .out = out};
    double whole = width_value(graph, 0), scale = whole > 0 ? FLAME_EXPORT_SVG_WIDTH / whole : 0;
    size_t n_levels =
        graph->n_levels < FLAME_EXPORT_SVG_LEVELS ? graph->n_levels : FLAME_EXPORT_SVG_LEVELS;
    uint32_t begin = 0;

    hearth_buf_init(&svg.text, 0);
    svg.x = hearth_mem_calloc(graph->n_nodes, sizeof *svg.x);
    svg.filled = hearth_mem_calloc(graph->n_nodes, sizeof *svg.filled);
    out->failed = out->failed || svg.x == NULL || svg.filled == NULL;
    for (uint32_t i = 1; i < graph->n_nodes && graph->n_sides == 2; i++) {
        if (is_seen_change(graph, i)) {
            svg.largest = fmax(svg.largest, fabs(change_of(graph, i)));
        }
    }

    put_head(&svg, n_levels);
    for (size_t level = 0; level < n_levels && !hearth_buf_failed(out); level++) {
        begin = put_level(&svg, begin, HEAD_PIXELS + (double)level * ROW_PIXELS, scale);
    }
    hearth_buf_cstr(out, "</g></svg>\n");
    hearth_mem_free(svg.x);
    hearth_mem_free(svg.filled);
    hearth_buf_release(&svg.text);
}
