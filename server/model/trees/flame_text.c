/* flame_text.c -- a flame graph as an indented tree of plain text (contract: flame_text.h). */
#include "hearth/model/flame_text.h"

#include "hearth/base/human.h"
#include "hearth/model/frame_name.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BAR_CELLS 16

/* A node of a level, with its absolute position. */
struct cell {
    int64_t x, total;
    struct hearth_str name;
};

struct level {
    /* [n]: children from left to right by parent; printed ones are in the order of printing. */
    struct cell *cells;
    size_t n;
};

struct text_tree {
    const struct hearth_flame_text *how;
    struct hearth_buf *out;
    struct level *levels;
    size_t n_levels;
    int64_t whole;    /* the total of the graph */
    int64_t smallest; /* nodes with a smaller total are omitted */
    size_t n_printed, n_left_out;
};

static enum hearth_status read_levels(struct text_tree *t, const struct hearth_flamegraph *graph,
                                      struct hearth_arena *arena, struct hearth_err *err)
{
    t->n_levels = graph->n_levels;
    t->levels = hearth_arena_calloc(arena, graph->n_levels, sizeof *t->levels);
    if (t->levels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t l = 0; l < graph->n_levels; l++) {
        const struct hearth_flame_level *level = &graph->levels[l];
        size_t n = level->n / 4;
        struct cell *cells = hearth_arena_array(arena, n, sizeof *cells);
        if (cells == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        /* Distances become positions. */
        int64_t end = 0;
        for (size_t i = 0; i < n; i++) {
            const int64_t *v = level->values + 4 * i;
            if (v[3] < 0 || (uint64_t)v[3] >= graph->n_names) {
                return HEARTH_FAIL(err, HEARTH_CORRUPT,
                                   "the flame graph is damaged: a node refers to a missing name");
            }
            cells[i] = (struct cell){end + v[0], v[1], hearth_frame_shown(graph->names[v[3]])};
            end += v[0] + v[1];
        }
        t->levels[l] = (struct level){cells, n};
    }

    return HEARTH_OK;
}

static void print_line(struct text_tree *t, const struct cell *cell, const char *prefix)
{
    char value[48];
    double share = (double)cell->total / (double)t->whole;

    hearth_human_value((double)cell->total, t->how->unit, value);
    hearth_buf_printf(t->out, "%*s %6.2f%% ", hearth_human_width(value, 10), value, 100.0 * share);
    size_t from = t->out->n;
    hearth_human_bar(share, BAR_CELLS, t->out);
    size_t n_cells = (t->out->n - from) / strlen("█");
    hearth_buf_printf(t->out, "%*s", BAR_CELLS - (int)n_cells, "");
    hearth_buf_printf(t->out, " %s", prefix);
    hearth_human_fit(cell->name, t->how->name_width, false, t->out);
    hearth_buf_byte(t->out, '\n');
    t->n_printed++;
}

/* The first cell at or after x. */
static size_t find_first_cell(const struct cell *cells, size_t n, int64_t x)
{
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (cells[middle].x < x) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }

    return low;
}

static int compare_weight(const void *left, const void *right)
{
    const struct cell *a = left, *b = right;

    return a->total != b->total ? (a->total < b->total) - (a->total > b->total)
                                : hearth_str_cmp(a->name, b->name);
}

/*
 * Print the children of a cell, the heaviest first: the cells of the next level that begin inside
 * it. Sorting them leaves them between the children of its neighbours, so those are found as
 * before. The recursion is no deeper than the graph has levels.
 */
static void print_children(struct text_tree *t, size_t depth, const struct cell *parent,
                           bool parent_is_only, char *prefix, size_t n_prefix)
{
    if (depth >= t->n_levels) {
        return;
    }

    /* Sort them. The omitted ones are the last. */
    size_t n_level = t->levels[depth].n;
    size_t first = find_first_cell(t->levels[depth].cells, n_level, parent->x);
    struct cell *cells = t->levels[depth].cells + first;
    size_t n = 0, n_printed = 0;
    for (; first + n < n_level && cells[n].x < parent->x + parent->total; n++) {
        n_printed += cells[n].total >= t->smallest;
    }
    if (n > 1) {
        qsort(cells, n, sizeof cells[0], compare_weight);
    }
    t->n_left_out += n - n_printed;

    /* Print the others. */
    for (size_t i = 0; i < n_printed; i++) {
        /* A chain of only children begins a column to the right of its parent, and stays there. */
        bool is_last = i + 1 == n_printed, only = is_last && cells[i].total == parent->total;
        const char *mark = only ? (parent_is_only ? "" : " ") : is_last ? "└ " : "├ ";
        const char *rest = only ? mark : is_last ? "  " : "│ ";
        if (n_prefix + 8 >= 240) {
            mark = rest = "";
        }
        memcpy(prefix + n_prefix, mark, strlen(mark) + 1);
        print_line(t, &cells[i], prefix);

        /* Its own children continue the line, unless it was the last one. */
        size_t n_rest = strlen(rest);
        memcpy(prefix + n_prefix, rest, n_rest + 1);
        print_children(t, depth + 1, &cells[i], only, prefix, n_prefix + n_rest);
    }
}

enum hearth_status hearth_flame_text_write(const struct hearth_flamegraph *graph,
                                           const struct hearth_flame_text *how,
                                           struct hearth_arena *arena, struct hearth_buf *out,
                                           struct hearth_err *err)
{
    assert(graph != NULL && how != NULL && arena != NULL && out != NULL);

    struct text_tree t = {.how = how, .out = out, .whole = graph->total};
    char prefix[256] = "";

    /* Read and check the graph. */
    HEARTH_TRY(read_levels(&t, graph, arena, err));
    if (t.n_levels == 0 || t.levels[0].n == 0 || graph->total <= 0) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "the flame graph is empty");
    }

    /* Print the tree. */
    double smallest = ceil((double)graph->total * how->min_percent / 100.0);
    t.smallest = smallest < 1 ? 1 : (int64_t)smallest;
    print_line(&t, &t.levels[0].cells[0], "");
    print_children(&t, 1, &t.levels[0].cells[0], false, prefix, 0);

    /* Count the omitted nodes. */
    if (t.n_left_out > 0) {
        hearth_buf_printf(out, "%zu nodes shown; %zu below %.3g%% left out", t.n_printed,
                          t.n_left_out, how->min_percent);
        if (how->option != NULL) {
            hearth_buf_printf(out, " (%s)", how->option);
        }
        hearth_buf_byte(out, '\n');
    }

    return HEARTH_OK;
}
