/*
 * flame_cells.c -- paints rows of flame graphs. The cost of a row depends on its cells, not on the
 * nodes of the level: after each box, the next node that reaches another cell is searched.
 */
#include "flame_cells.h"

#include "hearth/base/hash.h"
#include "hearth/base/human.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define MIN_NAME_CELLS 3 /* names that are cut to fewer cells say nothing */

/* ---- texts ---- */

/*
 * The next character: *ret_n_bytes of the text, in the returned number of cells. *ret_ok is false
 * if it is shown as '?'.
 */
static int next_character(struct hearth_str text, size_t at, size_t *ret_n_bytes, bool *ret_ok)
{
    mbstate_t state = {0};
    wchar_t wide = 0;
    size_t n = mbrtowc(&wide, text.p + at, text.n - at, &state);
    bool is_whole = n != 0 && n != (size_t)-1 && n != (size_t)-2;
    int cells = is_whole ? wcwidth(wide) : -1;

    *ret_ok = cells > 0;
    *ret_n_bytes = is_whole ? n : 1;

    return cells > 0 ? cells : 1;
}

/* The cells of a text; stops above `enough`. */
static int count_cells(struct hearth_str text, int enough)
{
    int cells = 0;
    size_t n;
    bool ok;

    for (size_t at = 0; at < text.n && cells <= enough; at += n) {
        cells += next_character(text, at, &n, &ok);
    }
    return cells;
}

void flame_value(double value, const struct flame_ink *ink, char out[48])
{
    hearth_human_value(value, ink->unit, out);

    char *micro = ink->is_utf8 ? NULL : strstr(out, "µ");
    if (micro != NULL) {
        *micro = 'u';
        memmove(micro + 1, micro + strlen("µ"), strlen(micro + strlen("µ")) + 1);
    }
}

int flame_fit(struct hearth_str text, int width, bool is_utf8, struct hearth_buf *out)
{
    bool cut = count_cells(text, width) > width;
    int room = cut ? width - 1 : width, used = 0;

    for (size_t at = 0; at < text.n;) {
        size_t n;
        bool ok;
        int cells = next_character(text, at, &n, &ok);
        if (used + cells > room) {
            break;
        }
        hearth_buf_append(out, ok ? text.p + at : "?", ok ? n : 1);
        used += cells;
        at += n;
    }
    if (cut && width > 0) {
        hearth_buf_cstr(out, is_utf8 ? "…" : "~");
        used++;
    }

    return used;
}

void flame_fit_padded(struct hearth_str text, int width, bool is_utf8, struct hearth_buf *out)
{
    for (int used = flame_fit(text, width, is_utf8, out); used < width; used++) {
        hearth_buf_byte(out, ' ');
    }
}

/* Without the directories of a package path, which would fill a narrow box: web.(*Handler).Run. */
static struct hearth_str shorten_name(struct hearth_str name)
{
    size_t from = 0;

    for (size_t i = 0; i + 1 < name.n && memchr("( <", name.p[i], 3) == NULL; i++) {
        from = name.p[i] == '/' ? i + 1 : from;
    }
    return hearth_str_n(name.p + from, name.n - from);
}

/* Whether a name goes on with what a compiler appends to the copy of a function: isra.0, cold. */
static bool is_of_copy(struct hearth_str rest)
{
    static const char *const suffixes[] = {"isra.", "part.", "constprop.", "cold", "llvm."};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (rest.n >= n && memcmp(rest.p, suffixes[i], n) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Without leading packages, for a box that is too narrow: HashMap.put of java.util.HashMap.put. The
 * last two parts stay.
 */
static struct hearth_str drop_packages(struct hearth_str name)
{
    size_t from = 0, before = 0;

    for (size_t i = 0; i < name.n; i++) {
        bool is_plain = (name.p[i] >= 'a' && name.p[i] <= 'z') || name.p[i] == '_' ||
                        (name.p[i] >= '0' && name.p[i] <= '9');
        if (name.p[i] == '.') {
            if (is_of_copy(hearth_str_n(name.p + i + 1, name.n - i - 1))) {
                return hearth_str_n(name.p + from, name.n - from);
            }
            before = from;
            from = i + 1;
        } else if (!is_plain) {
            return hearth_str_n(name.p + from, name.n - from);
        }
    }
    return hearth_str_n(name.p + before, name.n - before);
}

/* ---- colours ---- */

enum flame_colors flame_colors_of(const char *term, const char *color_term)
{
    if (term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0) {
        return FLAME_MONOCHROME;
    }
    bool is_true = color_term != NULL &&
                   (strcmp(color_term, "truecolor") == 0 || strcmp(color_term, "24bit") == 0);
    if (is_true || strstr(term, "direct") != NULL) {
        return FLAME_TRUE_COLOR;
    }
    if (strstr(term, "256") != NULL) {
        return FLAME_256_COLORS;
    }
    return strncmp(term, "vt", 2) == 0 ? FLAME_MONOCHROME : FLAME_16_COLORS;
}

static double share_of(double whole, int64_t value)
{
    return whole > 0 ? (double)value / whole : 0;
}

struct flame_change flame_function_change(const struct flame_sides *sides, uint32_t name,
                                          bool is_total)
{
    const int64_t *const *values = is_total ? sides->function_total : sides->function_self;

    return (struct flame_change){share_of(sides->whole[0], values[0][name]),
                                 share_of(sides->whole[1], values[1][name]),
                                 sides->function_q[name]};
}

struct flame_change flame_change_of(const struct flame_sides *sides, const struct flame_tree *tree,
                                    uint32_t node)
{
    if (tree != sides->tree) {
        return flame_function_change(sides, tree->name[node], true);
    }

    return (struct flame_change){share_of(sides->whole[0], sides->total[0][node]),
                                 share_of(sides->whole[1], sides->total[1][node]), sides->q[node]};
}

void flame_append_change_color(const struct flame_change *change, enum flame_colors colors,
                               struct hearth_buf *out)
{
    static const unsigned char scale[] = {27, 33, 75, 117, 250, 222, 215, 208, 202};
    static const unsigned char basic[] = {44, 44, 46, 46, 47, 43, 43, 41, 41};
    double both = change->base + change->now;
    double ratio =
        both > 0 && change->q <= FLAME_BEYOND_Q ? (change->now - change->base) / both : 0;
    int at = (int)(ratio * 4 + 4.5); /* -1: gone; 1: new */

    at = at < 0 ? 0 : at > 8 ? 8 : at;
    if (colors >= FLAME_256_COLORS) {
        hearth_buf_printf(out, "\033[38;5;16;48;5;%um", scale[at]);
    } else if (colors == FLAME_16_COLORS) {
        hearth_buf_printf(out, "\033[30;%um", basic[at]);
    }
}

enum box_style {
    BOX_FRAME,
    BOX_ABOVE,
    BOX_SELECTED,
    BOX_MATCHED,
    BOX_UNMATCHED
};

/* A stable colour for each package: the name up to its last separator. */
static void append_package_color(struct hearth_str name, enum flame_colors colors,
                                 struct hearth_buf *out)
{
    static const unsigned char warm[] = {130, 131, 136, 137, 166, 167,
                                         172, 173, 208, 209, 214, 215};
    static const unsigned char basic[] = {41, 43, 101, 103};
    size_t cut = name.n;

    for (size_t i = 0; i < name.n; i++) {
        cut = memchr("./:_", name.p[i], 4) != NULL ? i : cut;
    }
    uint64_t hash = hearth_hash64(name.p, cut, 0);
    if (colors == FLAME_TRUE_COLOR) {
        hearth_buf_printf(out, "\033[30;48;2;%u;%u;%um", 205 + (unsigned)(hash % 50),
                          80 + (unsigned)(hash >> 8 & 127), 40 + (unsigned)(hash >> 16 & 31));
    } else if (colors == FLAME_256_COLORS) {
        hearth_buf_printf(out, "\033[38;5;16;48;5;%um", warm[hash % sizeof warm]);
    } else if (colors == FLAME_16_COLORS) {
        hearth_buf_printf(out, "\033[30;%um", basic[hash % sizeof basic]);
    }
}

static void append_style(enum box_style style, struct hearth_str name, enum flame_colors colors,
                         struct hearth_buf *out)
{
    /* By style, then monochrome, 16 colours, more. */
    static const char *const styles[][3] = {
        [BOX_FRAME] = {"", "", ""},
        [BOX_ABOVE] = {"", "\033[30;47m", "\033[38;5;16;48;5;250m"},
        [BOX_SELECTED] = {"\033[7m", "\033[1;37;44m", "\033[1;38;5;231;48;5;25m"},
        [BOX_MATCHED] = {"\033[1;4m", "\033[1;30;45m", "\033[38;5;16;48;5;177m"},
        [BOX_UNMATCHED] = {"", "\033[30;47m", "\033[38;5;252;48;5;240m"},
    };

    if (style == BOX_FRAME) {
        append_package_color(name, colors, out);
    } else {
        hearth_buf_cstr(out, styles[style][colors < FLAME_256_COLORS ? colors : 2]);
    }
}

/* ---- rows ---- */

bool flame_box(const struct flame_tree *tree, uint32_t zoom, uint32_t node, int width,
               const struct flame_ink *ink, int *ret_from, int *ret_to)
{
    double scale = width / (double)tree->total[zoom];
    double from = (double)(tree->from[node] - tree->from[zoom]) * scale;
    double to = from + (double)tree->total[node] * scale;

    *ret_from = from <= 0 ? 0 : (int)(from + 0.5);
    *ret_to = to >= width ? width : to <= 0 ? 0 : (int)(to + 0.5);

    return *ret_to > *ret_from &&
           (double)tree->total[node] * 100.0 >= (double)tree->total[zoom] * ink->min_percent;
}

/* Name, share and value, as far as they fit into `width` cells. */
static void paint_box(const struct flame_tree *tree, const struct flame_names *names, uint32_t node,
                      enum box_style style, int width, const struct flame_ink *ink,
                      struct hearth_buf *out)
{
    struct hearth_str name = names->v[tree->name[node]];
    struct hearth_str shown = shorten_name(name);
    char value[48], facts[96];
    int left = width;

    struct flame_change change = {0};

    /* The edge is what tells boxes of one colour apart. */
    if (ink->sides != NULL) {
        change = flame_change_of(ink->sides, tree, node);
    }
    if (ink->sides != NULL && style == BOX_FRAME) {
        flame_append_change_color(&change, ink->colors, out);
    } else {
        append_style(style, name, ink->colors, out);
    }
    hearth_buf_cstr(out, ink->is_utf8 ? "▏" : "|");
    left--;

    flame_value((double)tree->total[node], ink, value);
    double percent = 100.0 * (double)tree->total[node] / (double)ink->total;
    int cells = count_cells(shown, left);
    if (cells > left) {
        shown = drop_packages(shown);
        cells = count_cells(shown, left);
    }
    if (cells > left && left < MIN_NAME_CELLS) {
        shown = HEARTH_STR("");
        cells = 0;
    }
    double points = 100 * (change.now - change.base);
    (void)(ink->sides == NULL
               ? snprintf(facts, sizeof facts, " %.1f%% %s ", percent, value)
               : snprintf(facts, sizeof facts, " %.1f%% %+.2f pt ", 100 * change.now, points));
    if (count_cells(hearth_str_c(facts), left) + cells > left) {
        (void)(ink->sides == NULL ? snprintf(facts, sizeof facts, " %.1f%% ", percent)
                                  : snprintf(facts, sizeof facts, " %+.2f pt ", points));
    }
    if (count_cells(hearth_str_c(facts), left) + cells > left) {
        facts[0] = '\0';
    }
    flame_fit_padded(shown, left - count_cells(hearth_str_c(facts), left), ink->is_utf8, out);
    hearth_buf_cstr(out, facts);
    hearth_buf_cstr(out, "\033[0m");
}

static enum box_style style_of(const struct flame_tree *tree, uint32_t node, uint32_t selected,
                               bool is_above, const struct flame_ink *ink)
{
    if (node == selected) {
        return BOX_SELECTED;
    }
    if (ink->marks != NULL) {
        return ink->marks[tree->name[node]] != 0 ? BOX_MATCHED : BOX_UNMATCHED;
    }
    return is_above ? BOX_ABOVE : BOX_FRAME;
}

/* The first node after `node` that may reach beyond cell `at`. */
static uint32_t next_beyond(const struct flame_tree *tree, uint32_t level, uint32_t zoom,
                            uint32_t node, int at, int width)
{
    double per_cell = (double)tree->total[zoom] / width;
    int64_t from = tree->from[zoom] + (int64_t)((at + 0.499) * per_cell);
    uint32_t next = flame_tree_at(tree, level, from);

    return next > node ? next : node + 1;
}

int flame_paint_level(const struct flame_tree *tree, const struct flame_names *names, uint32_t zoom,
                      uint32_t level, uint32_t selected, int width, const struct flame_ink *ink,
                      struct hearth_buf *out)
{
    uint32_t zoom_level = flame_tree_level(tree, zoom);
    int at = 0, n_boxes = 0;

    /* An ancestor of the zoomed node, or the node itself. */
    if (level <= zoom_level) {
        uint32_t node = zoom;
        for (uint32_t l = zoom_level; l > level; l--) {
            node = tree->parent[node];
        }
        bool is_above = level < zoom_level || node == 0;
        paint_box(tree, names, node, style_of(tree, node, selected, is_above, ink), width, ink,
                  out);
        return 1;
    }

    uint32_t end = level < tree->n_levels ? tree->level_first[level + 1] : 0;
    int64_t zoom_end = tree->from[zoom] + tree->total[zoom];
    uint32_t node = level < tree->n_levels ? flame_tree_at(tree, level, tree->from[zoom]) : 0;
    while (node < end && tree->from[node] < zoom_end && at < width) {
        int from, to;
        if (flame_box(tree, zoom, node, width, ink, &from, &to) && from >= at) {
            for (; at < from; at++) {
                hearth_buf_byte(out, ' ');
            }
            paint_box(tree, names, node, style_of(tree, node, selected, false, ink), to - from, ink,
                      out);
            at = to;
            n_boxes++;
        }
        node = next_beyond(tree, level, zoom, node, to > at ? to : at, width);
    }
    for (; at < width; at++) {
        hearth_buf_byte(out, ' ');
    }

    return n_boxes;
}
