/* flame_screen_state.c -- the life of the interactive flame graph, and which of its trees are shown. */
#include "hearth/base/mem.h"

#include "flame_screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void flame_screen_say(struct flame_screen *screen, const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    (void)vsnprintf(screen->message, sizeof screen->message, fmt, arguments);
    va_end(arguments);
}

/* ---- life ---- */

enum hearth_status flame_screen_init(struct flame_screen *screen,
                                     const struct hearth_flamegraph *graph,
                                     const struct flame_facts *facts, const struct flame_ink *ink,
                                     struct hearth_err *err)
{
    *screen = (struct flame_screen){.facts = *facts, .ink = *ink};
    hearth_buf_init(&screen->sent, 1 << 20);
    enum hearth_status status = flame_names_init(&screen->names, graph, err);

    if (status == HEARTH_OK) {
        status = flame_tree_read(graph, &screen->whole, err);
    }
    if (status == HEARTH_OK && screen->whole.n == 0) {
        status = HEARTH_FAIL(err, HEARTH_CORRUPT, "the flame graph has no values");
    }
    if (status == HEARTH_OK) {
        screen->ink.total = screen->whole.total[0];
        if (facts->sides != NULL) {
            screen->sides = *facts->sides;
            screen->sides.tree = &screen->whole;
            screen->ink.sides = &screen->sides;
        }
        screen->marks = hearth_mem_zalloc((size_t)screen->names.n + 1);
        status = screen->marks == NULL
                     ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the search")
                     : HEARTH_OK;
    }
    if (status != HEARTH_OK) {
        flame_screen_release(screen);
        return status;
    }
    for (size_t i = 0; i < graph->n_names; i++) {
        screen->is_folded = screen->is_folded || hearth_str_eq_c(graph->names[i], "other");
    }
    flame_screen_show(screen, FLAME_VIEW_STACKS, &screen->whole);

    return HEARTH_OK;
}

void flame_screen_release(struct flame_screen *screen)
{
    flame_tree_release(&screen->whole);
    flame_tree_release(&screen->leaves);
    flame_tree_release(&screen->callers);
    flame_tree_release(&screen->callees);
    flame_names_release(&screen->names);
    hearth_mem_free(screen->marks);
    hearth_mem_free(screen->function_self);
    hearth_mem_free(screen->function_total);
    hearth_mem_free(screen->rows);
    hearth_mem_free(screen->copied);
    hearth_buf_release(&screen->sent);
    *screen = (struct flame_screen){0};
}

/* ---- views ---- */

void flame_screen_show(struct flame_screen *screen, enum flame_view view,
                       const struct flame_tree *tree)
{
    screen->view = view;
    screen->n_panes = 1;
    screen->focus = 0;
    screen->panes[0] = (struct flame_pane){.tree = tree};
}

void flame_screen_show_leaves(struct flame_screen *screen)
{
    struct hearth_err err = HEARTH_ERR_INIT;

    if (screen->view == FLAME_VIEW_LEAVES) {
        flame_screen_show(screen, FLAME_VIEW_STACKS, &screen->whole);
        return;
    }
    if (screen->leaves.n == 0 &&
        flame_tree_invert(&screen->whole, &screen->names, &screen->leaves, &err) != HEARTH_OK) {
        flame_screen_say(screen, "%s", err.msg);
        return;
    }
    flame_screen_show(screen, FLAME_VIEW_LEAVES, &screen->leaves);
}

void flame_screen_sandwich(struct flame_screen *screen, uint32_t name)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct flame_tree callers, callees;

    if (name == screen->whole.name[0]) {
        flame_screen_say(screen, "select a function first: the total has no callers");
        return;
    }
    enum hearth_status status =
        flame_tree_sandwich(&screen->whole, &screen->names, name, true, &callers, &err);
    if (status == HEARTH_OK) {
        status = flame_tree_sandwich(&screen->whole, &screen->names, name, false, &callees, &err);
        if (status != HEARTH_OK) {
            flame_tree_release(&callers);
        }
    }
    if (status != HEARTH_OK) {
        flame_screen_say(screen, "%s", err.msg);
        return;
    }

    flame_tree_release(&screen->callers);
    flame_tree_release(&screen->callees);
    screen->callers = callers;
    screen->callees = callees;
    screen->function = name;
    screen->is_table = false;
    screen->view = FLAME_VIEW_SANDWICH;
    screen->panes[0] = (struct flame_pane){.tree = &screen->callers, .grows_up = true};
    screen->panes[1] = (struct flame_pane){.tree = &screen->callees};
    screen->n_panes = 2;
    screen->focus = 1;
}
