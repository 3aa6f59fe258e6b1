/* flame_screen_table.c -- the table of functions of the interactive flame graph. */
#include "hearth/base/human.h"
#include "hearth/base/mem.h"

#include "flame_screen.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct flame_screen *screen = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const int64_t *first = screen->by_total ? screen->function_total : screen->function_self;
    const int64_t *second = screen->by_total ? screen->function_self : screen->function_total;

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

#define VALUE_CELLS 10
#define SHARE_CELLS 8

static void append_value(const struct flame_screen *screen, int64_t value, struct hearth_buf *out)
{
    char text[48];

    hearth_human_value((double)value, screen->ink.unit, text);
    double percent = 100.0 * (double)value / (double)screen->whole.total[0];
    hearth_buf_printf(out, "%*s %*.2f%% ", VALUE_CELLS, text, SHARE_CELLS - 1, percent);
}

void flame_screen_paint_table(struct flame_screen *screen, int n_rows, struct hearth_buf *out)
{
    int name_cells = screen->width - 2 * (VALUE_CELLS + SHARE_CELLS + 2);
    uint32_t n_shown = n_rows > 1 ? (uint32_t)n_rows - 1 : 1;

    if (screen->row < screen->first_row) {
        screen->first_row = screen->row;
    } else if (screen->row >= screen->first_row + n_shown) {
        screen->first_row = screen->row - n_shown + 1;
    }

    char head[128];
    (void)snprintf(head, sizeof head, "%*s%*s  function (%u); o sorts by %s",
                   VALUE_CELLS + SHARE_CELLS + 1, screen->by_total ? "self" : "self v",
                   VALUE_CELLS + SHARE_CELLS + 2, screen->by_total ? "total v" : "total",
                   screen->n_rows, screen->by_total ? "self" : "total");
    hearth_buf_cstr(out, screen->ink.colors == FLAME_MONOCHROME ? "" : "\033[1m");
    flame_fit_padded(hearth_str_c(head), screen->width, screen->ink.is_utf8, out);
    hearth_buf_cstr(out, "\033[0m\n");

    for (uint32_t i = 0; i < n_shown; i++) {
        uint32_t row = screen->first_row + i;
        if (row >= screen->n_rows) {
            flame_fit_padded(HEARTH_STR(""), screen->width, false, out);
            hearth_buf_byte(out, '\n');
            continue;
        }
        uint32_t name = screen->rows[row];
        hearth_buf_cstr(out, row == screen->row ? "\033[7m" : "");
        append_value(screen, screen->function_self[name], out);
        append_value(screen, screen->function_total[name], out);
        flame_fit_padded(screen->names.v[name], name_cells, screen->ink.is_utf8, out);
        hearth_buf_cstr(out, "\033[0m\n");
    }
}
