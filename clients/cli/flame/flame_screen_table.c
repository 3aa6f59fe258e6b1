/* flame_screen_table.c -- the table of functions of the interactive flame graph. */
#include "hearth/base/human.h"
#include "hearth/base/mem.h"

#include "flame_screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The size of a function's change. */
static double size_change(const struct flame_screen *screen, uint32_t name)
{
    struct flame_change change = flame_function_change(screen->ink.sides, name, screen->by_total);

    return fabs(change.now - change.base);
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct flame_screen *screen = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const int64_t *first = screen->by_total ? screen->function_total : screen->function_self;
    const int64_t *second = screen->by_total ? screen->function_self : screen->function_total;

    if (screen->ink.sides != NULL && size_change(screen, x) != size_change(screen, y)) {
        return size_change(screen, x) > size_change(screen, y) ? -1 : 1;
    }
    if (first[x] != first[y]) {
        return first[x] > first[y] ? -1 : 1;
    }
    if (second[x] != second[y]) {
        return second[x] > second[y] ? -1 : 1;
    }
    return screen->names.rank[x] < screen->names.rank[y] ? -1 : 1;
}

void flame_screen_sort_table(struct flame_screen *screen)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < screen->names.n; i++) {
        bool is_function = i != screen->whole.name[0] && screen->function_total[i] > 0;
        bool is_found = screen->ink.marks == NULL || screen->ink.marks[i] != 0;
        if (is_function && is_found) {
            screen->rows[n++] = i;
        }
    }
    qsort_r(screen->rows, n, sizeof *screen->rows, compare_rows, screen);
    screen->n_rows = n;
    screen->row = 0;
    screen->first_row = 0;
}

void flame_screen_open_table(struct flame_screen *screen)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n = (size_t)screen->names.n + 1;
    bool ok = true;

    if (screen->rows == NULL) {
        screen->function_self = hearth_mem_calloc(n, sizeof *screen->function_self);
        screen->function_total = hearth_mem_calloc(n, sizeof *screen->function_total);
        screen->rows = hearth_mem_calloc(n, sizeof *screen->rows);
        ok = screen->function_self != NULL && screen->function_total != NULL &&
             screen->rows != NULL &&
             flame_tree_functions(&screen->whole, screen->names.n, screen->function_self,
                                  screen->function_total, &err) == HEARTH_OK;
    }
    if (!ok) {
        hearth_mem_free(screen->function_self);
        hearth_mem_free(screen->function_total);
        hearth_mem_free(screen->rows);
        screen->function_self = NULL;
        screen->function_total = NULL;
        screen->rows = NULL;
        flame_screen_say(screen, "cannot allocate the table");
        return;
    }
    screen->is_table = true;
    flame_screen_sort_table(screen);
}

static void move_row(struct flame_screen *screen, int64_t step)
{
    int64_t row = (int64_t)screen->row + step;

    row = row >= screen->n_rows ? (int64_t)screen->n_rows - 1 : row;
    screen->row = row < 0 ? 0 : (uint32_t)row;
}

void flame_screen_table_key(struct flame_screen *screen, int key)
{
    int page = screen->height > 8 ? screen->height - 7 : 1;

    switch (key) {
    case FLAME_KEY_UP:
    case 'k':
        move_row(screen, -1);
        break;
    case FLAME_KEY_DOWN:
    case 'j':
        move_row(screen, 1);
        break;
    case FLAME_KEY_PAGE_UP:
        move_row(screen, -page);
        break;
    case FLAME_KEY_PAGE_DOWN:
        move_row(screen, page);
        break;
    case FLAME_KEY_HOME:
        move_row(screen, INT32_MIN);
        break;
    case FLAME_KEY_END:
        move_row(screen, INT32_MAX);
        break;
    case 'o':
        screen->by_total = !screen->by_total;
        flame_screen_sort_table(screen);
        break;
    case 's':
    case FLAME_KEY_ENTER:
    case '\n':
        if (screen->n_rows > 0) {
            flame_screen_sandwich(screen, screen->rows[screen->row]);
        }
        break;
    case 't':
    case FLAME_KEY_ESCAPE:
        screen->is_table = false;
        break;
    default:
        break;
    }
}

#define COLUMN_CELLS 20 /* a value, its share, a space */

/* A narrow screen has only the column that the rows are sorted by. */
static bool has_two_columns(const struct flame_screen *screen)
{
    return screen->width >= 3 * COLUMN_CELLS;
}

static void append_column(const struct flame_screen *screen, uint32_t name, bool is_total,
                          struct hearth_buf *out)
{
    int64_t value = is_total ? screen->function_total[name] : screen->function_self[name];
    char text[48], column[80];

    /* The share on the right side of a diff, and its change. */
    if (screen->ink.sides != NULL) {
        struct flame_change change = flame_function_change(screen->ink.sides, name, is_total);
        (void)snprintf(column, sizeof column, "%7.2f%% %+7.2f pt", 100 * change.now,
                       100 * (change.now - change.base));
        flame_fit_padded(hearth_str_c(column), COLUMN_CELLS, screen->ink.is_utf8, out);
        return;
    }
    flame_value((double)value, &screen->ink, text);
    double percent = 100.0 * (double)value / (double)screen->whole.total[0];
    (void)snprintf(column, sizeof column, "%*s %7.2f%%", hearth_human_width(text, 10), text,
                   percent);
    flame_fit_padded(hearth_str_c(column), COLUMN_CELLS, screen->ink.is_utf8, out);
}

static void append_columns(const struct flame_screen *screen, uint32_t name, struct hearth_buf *out)
{
    if (has_two_columns(screen) || !screen->by_total) {
        append_column(screen, name, false, out);
    }
    if (has_two_columns(screen) || screen->by_total) {
        append_column(screen, name, true, out);
    }
}

static void paint_table_head(const struct flame_screen *screen, struct hearth_buf *out)
{
    const char *self = screen->by_total ? "self" : "self v";
    const char *total = screen->by_total ? "total v" : "total";
    char head[128], name[80];

    (void)snprintf(name, sizeof name, "function (%u); o sorts by %s", screen->n_rows,
                   screen->by_total ? "self" : "total");
    if (has_two_columns(screen)) {
        (void)snprintf(head, sizeof head, "%19s %19s %s", self, total, name);
    } else {
        (void)snprintf(head, sizeof head, "%19s %s", screen->by_total ? total : self, name);
    }
    hearth_buf_cstr(out, screen->ink.colors == FLAME_MONOCHROME ? "" : "\033[1m");
    flame_fit_padded(hearth_str_c(head), screen->width, screen->ink.is_utf8, out);
    hearth_buf_cstr(out, "\033[0m\n");
}

void flame_screen_paint_table(struct flame_screen *screen, int n_rows, struct hearth_buf *out)
{
    int name_cells = screen->width - (has_two_columns(screen) ? 2 : 1) * COLUMN_CELLS;
    uint32_t n_shown = n_rows > 1 ? (uint32_t)n_rows - 1 : 1;

    if (screen->row < screen->first_row) {
        screen->first_row = screen->row;
    } else if (screen->row >= screen->first_row + n_shown) {
        screen->first_row = screen->row - n_shown + 1;
    }

    paint_table_head(screen, out);
    for (uint32_t i = 0; i < n_shown; i++) {
        uint32_t row = screen->first_row + i;
        if (row >= screen->n_rows) {
            flame_fit_padded(HEARTH_STR(""), screen->width, false, out);
            hearth_buf_byte(out, '\n');
            continue;
        }
        uint32_t name = screen->rows[row];
        hearth_buf_cstr(out, row == screen->row ? "\033[7m" : "");
        append_columns(screen, name, out);
        flame_fit_padded(screen->names.v[name], name_cells, screen->ink.is_utf8, out);
        hearth_buf_cstr(out, "\033[0m\n");
    }
}
