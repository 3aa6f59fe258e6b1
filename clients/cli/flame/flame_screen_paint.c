/*
 * flame_screen_paint.c -- the rows of the interactive flame graph: two of headlines, the graph, the
 * selected node, and one for the search, messages and hints.
 */
#include "hearth/base/human.h"

#include "flame_screen.h"

#include <stdio.h>
#include <string.h>

#define HEAD_ROWS  2
#define FOOT_ROWS  2
#define MIN_WIDTH  30
#define MIN_HEIGHT 8

/* ---- lines ---- */

/* `right` at the right edge, `left` in the rest. */
static void paint_line(const struct flame_screen *screen, const char *style, struct hearth_str left,
                       const char *right, struct hearth_buf *out)
{
    struct hearth_buf end;

    hearth_buf_init(&end, 0);
    int room = screen->width > 40 ? screen->width - 20 : screen->width / 2;
    int used = flame_fit(hearth_str_c(right), room, screen->ink.is_utf8, &end);
    int gap = used > 0 ? 2 : 0;

    hearth_buf_cstr(out, screen->ink.colors == FLAME_MONOCHROME ? "" : style);
    flame_fit_padded(left, screen->width - used - gap, screen->ink.is_utf8, out);
    hearth_buf_printf(out, "%*s", gap, "");
    hearth_buf_append(out, end.p, end.n);
    hearth_buf_cstr(out, "\033[0m\n");
    hearth_buf_release(&end);
}

static void paint_blank(const struct flame_screen *screen, struct hearth_buf *out)
{
    hearth_buf_printf(out, "%*s\n", screen->width, "");
}

/* Which view and which part of it is shown: "from the leaves, levels 4-21 of 96". */
static void describe_place(const struct flame_screen *screen, char *out, size_t cap)
{
    static const char *const views[] = {
        [FLAME_VIEW_STACKS] = "",
        [FLAME_VIEW_LEAVES] = "from the leaves",
        [FLAME_VIEW_SANDWICH] = "callers and callees",
    };
    const struct flame_pane *pane = &screen->panes[screen->focus];
    const char *view = screen->is_table ? "functions" : views[screen->view];
    uint32_t last = pane->first_level + (uint32_t)pane->n_rows;
    uint32_t n = pane->tree->n_levels;

    (void)snprintf(out, cap, "%s", view);
    if (!screen->is_table && (pane->first_level > 1 || last < n)) {
        (void)snprintf(out, cap, "%s%s%s%u-%u of %u", view, view[0] == '\0' ? "" : ", ",
                       screen->width < 80 ? "" : "levels ", pane->first_level + 1,
                       last < n ? last : n, n);
    }
}

/* "total 1.2 s", and of a diff "base 1.2 s, now 1.3 s". */
static void describe_total(const struct flame_screen *screen, char *out, size_t cap)
{
    const struct flame_sides *sides = screen->ink.sides;
    char values[2][48];

    for (int i = 0; i < 2; i++) {
        double value = sides == NULL ? (double)screen->whole.total[0] : sides->whole[i];
        flame_value(value, &screen->ink, values[i]);
    }
    (void)(sides == NULL ? snprintf(out, cap, "total %s", values[0])
                         : snprintf(out, cap, "base %s, now %s", values[0], values[1]));
}

static void paint_head(const struct flame_screen *screen, struct hearth_buf *out)
{
    char right[128], type[160], line[320], place[96];

    describe_total(screen, right, sizeof right);
    paint_line(screen, "\033[1m", hearth_str_c(screen->facts.selector), right, out);

    describe_place(screen, place, sizeof place);

    /* A narrow line has the first two parts of the type, which tell it from others. */
    (void)snprintf(type, sizeof type, "%s", screen->facts.type);
    char *second = strchr(type, ':');
    char *cut = second == NULL ? NULL : strchr(second + 1, ':');
    if (cut != NULL && screen->width < 120) {
        *cut = '\0';
    }
    (void)snprintf(line, sizeof line, "%s  %s", type, screen->facts.range);
    paint_line(screen, "", hearth_str_c(line), place, out);
}

/* "base 4.10%, now 5.06%, +0.96 pt, q 0.0003"; a narrow line has only the change and its q. */
static void describe_change(const struct flame_screen *screen, const struct flame_change *change,
                            char *out, size_t cap)
{
    char sides[64] = "", noise[32];

    if (screen->width >= 80) {
        (void)snprintf(sides, sizeof sides, "base %.2f%%, now %.2f%%, ", 100 * change->base,
                       100 * change->now);
    }
    (void)snprintf(noise, sizeof noise, change->q > FLAME_BEYOND_Q ? "within noise" : "q %.2g",
                   change->q);
    (void)snprintf(out, cap, "%s%+.2f pt, %s", sides, 100 * (change->now - change->base),
                   screen->sides.has_noise ? noise : "noise is not known");
}

static void paint_selected(const struct flame_screen *screen, struct hearth_buf *out)
{
    const struct flame_pane *pane = &screen->panes[screen->focus];
    const struct flame_tree *tree = pane->tree;
    char total[48], self[48], right[160];
    double all = (double)screen->whole.total[0];

    if (screen->is_table) {
        paint_line(screen, "\033[1m",
                   screen->n_rows > 0 ? screen->names.v[screen->rows[screen->row]]
                                      : HEARTH_STR("no function matches"),
                   "", out);
        return;
    }
    if (screen->ink.sides != NULL) {
        struct flame_change change = flame_change_of(screen->ink.sides, tree, pane->at);
        describe_change(screen, &change, right, sizeof right);
        paint_line(screen, "\033[1m", screen->names.v[tree->name[pane->at]], right, out);
        return;
    }
    flame_value((double)tree->total[pane->at], &screen->ink, total);
    flame_value((double)tree->self[pane->at], &screen->ink, self);
    (void)snprintf(right, sizeof right, "%s %.2f%%, self %s %.2f%%", total,
                   100.0 * (double)tree->total[pane->at] / all, self,
                   100.0 * (double)tree->self[pane->at] / all);
    paint_line(screen, "\033[1m", screen->names.v[tree->name[pane->at]], right, out);
}

static void paint_foot(const struct flame_screen *screen, struct hearth_buf *out)
{
    char line[FLAME_SEARCH_BYTES + 128], value[48];
    const char *hints =
        screen->width < 80 ? "? help  q quit"
        : screen->ink.sides != NULL
            ? "blue less, grey within noise, red more  s sandwich  t table  ? help  q quit"
            : "/ search  Enter zoom  s sandwich  t table  ? help  q quit";

    if (screen->message[0] != '\0') {
        paint_line(screen, "\033[1m", hearth_str_c(screen->message), "", out);
        return;
    }
    if (screen->is_typing) {
        (void)snprintf(line, sizeof line, "/%s_", screen->typed);
        paint_line(screen, "\033[1m", hearth_str_c(line), "Enter search, Esc cancel", out);
        return;
    }
    if (screen->search[0] == '\0') {
        paint_line(screen, "", HEARTH_STR(""), hints, out);
        return;
    }
    flame_value((double)screen->matched, &screen->ink, value);
    (void)snprintf(line, sizeof line, "matched %s%s %.2f%%", screen->is_folded ? "at least " : "",
                   screen->ink.sides == NULL ? value : "",
                   100.0 * (double)screen->matched / (double)screen->whole.total[0]);
    struct hearth_buf left;
    hearth_buf_init(&left, 0);
    hearth_buf_printf(&left, "/%s", screen->search);
    paint_line(screen, "\033[1m", hearth_buf_view(&left), line, out);
    hearth_buf_release(&left);
}

/* ---- graph ---- */

/* Scrolls a pane so that its selected node is on the screen, and nothing is empty without need. */
static void scroll_to_selected(struct flame_pane *pane, int rows)
{
    uint32_t n_rows = (uint32_t)rows;
    uint32_t level = flame_tree_level(pane->tree, pane->at);
    uint32_t least = pane->grows_up ? 1 : 0;

    pane->n_rows = rows;
    if (level < pane->first_level) {
        pane->first_level = level;
    }
    if (level >= pane->first_level + n_rows) {
        pane->first_level = level - n_rows + 1;
    }
    if (pane->first_level < least) {
        pane->first_level = least;
    }
}

static void paint_pane(const struct flame_screen *screen, int index, struct hearth_buf *out)
{
    const struct flame_pane *pane = &screen->panes[index];
    int n_rows = pane->n_rows;
    uint32_t selected = screen->focus == index ? pane->at : HEARTH_NO_NODE;

    for (int row = 0; row < n_rows; row++) {
        int step = pane->grows_up ? n_rows - 1 - row : row;
        (void)flame_paint_level(pane->tree, &screen->names, pane->zoom,
                                pane->first_level + (uint32_t)step, selected, screen->width,
                                &screen->ink, out);
        hearth_buf_byte(out, '\n');
    }
}

/* ---- help ---- */

static const char *const g_keys[] = {
    "arrows or h j k l   select a box",
    "Enter               zoom into the selected box",
    "u or Backspace      zoom out by one level",
    "0                   show the whole graph",
    "PageUp, PageDown    select a box a page away",
    "Home, End           select the zoomed box, the deepest box below",
    "/                   search names by a regular expression (RE2)",
    "n, N                select the next, the previous match",
    "s                   callers and callees of the selected function",
    "Tab                 change between callers and callees",
    "i                   build stacks from their leaves, and back",
    "t                   table of functions; o sorts it",
    "y                   copy the address of the page that shows the same",
    "Esc                 end the search, the view or the zoom",
    "q                   quit",
};

static void paint_help(const struct flame_screen *screen, int n_rows, struct hearth_buf *out)
{
    for (int i = 0; i < n_rows; i++) {
        const char *text = (size_t)i < HEARTH_ARRAY_LEN(g_keys) ? g_keys[i] : "";
        flame_fit_padded(hearth_str_c(text), screen->width, screen->ink.is_utf8, out);
        hearth_buf_byte(out, '\n');
    }
}

void flame_screen_paint(struct flame_screen *screen, int width, int height, struct hearth_buf *out)
{
    screen->width = width;
    screen->height = height;
    if (width < MIN_WIDTH || height < MIN_HEIGHT) {
        flame_fit_padded(HEARTH_STR("the terminal is too small"), width, false, out);
        hearth_buf_byte(out, '\n');
        for (int i = 1; i < height; i++) {
            paint_blank(screen, out);
        }
        return;
    }

    int n_rows = height - HEAD_ROWS - FOOT_ROWS;
    int upper = screen->n_panes == 2 ? n_rows / 2 : n_rows;
    scroll_to_selected(&screen->panes[0], upper);
    if (screen->n_panes == 2) {
        scroll_to_selected(&screen->panes[1], n_rows - upper);
    }
    paint_head(screen, out);
    if (screen->is_help) {
        paint_help(screen, n_rows, out);
    } else if (screen->is_table) {
        flame_screen_paint_table(screen, n_rows, out);
    } else {
        for (int i = 0; i < screen->n_panes; i++) {
            paint_pane(screen, i, out);
        }
    }
    paint_selected(screen, out);
    paint_foot(screen, out);
}
