/*
 * diff_screen.c -- a diff as the interactive flame graph (contract: diff_rows.h).
 *
 * A box is as wide as both sides together, each scaled to the larger one, so that what is new and
 * what is gone has a box, too.
 */
#include "cli_messages.h"
#include "cmd_flame.h"
#include "diff_rows.h"
#include "filters.h"
#include "flame_screen.h"
#include "page_link.h"
#include "text.h"

#include <math.h>
#include <stdio.h>

/* Weights up to this can be added without overflow. */
#define MAX_WEIGHT ((double)(INT64_C(1) << 60))

/* The graph that the screen shows, while it is made. */
struct shown_diff {
    const struct diff *d;
    struct hearth_flamegraph graph;
    struct flame_sides sides;
    double scale[2];
    int64_t **weights, **selfs; /* by level and node of the diff */
    int64_t *total[2];          /* by shown node */
    double *q;
};

static enum hearth_status allocate_shown(struct cli *cli, struct shown_diff *shown)
{
    const struct diff *d = shown->d;
    size_t n_nodes = 0;

    shown->graph = (struct hearth_flamegraph){
        .names = hearth_arena_array(&cli->arena, d->graph->n_names, sizeof(struct hearth_str)),
        .n_names = d->graph->n_names,
        .levels =
            hearth_arena_calloc(&cli->arena, d->graph->n_levels, sizeof(struct hearth_flame_level)),
        .n_levels = d->graph->n_levels,
    };
    shown->weights = hearth_arena_array(&cli->arena, d->graph->n_levels, sizeof(int64_t *));
    shown->selfs = hearth_arena_array(&cli->arena, d->graph->n_levels, sizeof(int64_t *));
    for (size_t l = 0; l < d->graph->n_levels && !cli->arena.refused; l++) {
        size_t n = d->n_nodes[l];
        shown->weights[l] = hearth_arena_calloc(&cli->arena, n, sizeof(int64_t));
        shown->selfs[l] = hearth_arena_calloc(&cli->arena, n, sizeof(int64_t));
        shown->graph.levels[l].values = hearth_arena_array(&cli->arena, 4 * n, sizeof(int64_t));
        n_nodes += n;
    }
    shown->q = hearth_arena_array(&cli->arena, n_nodes, sizeof shown->q[0]);
    for (int side = 0; side < 2; side++) {
        shown->total[side] = hearth_arena_array(&cli->arena, n_nodes, sizeof(int64_t));
    }

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

/* Scales the selfs, and adds them up from the deepest level: rounded totals would not be sums. */
static void weigh_nodes(struct shown_diff *shown)
{
    const struct diff *d = shown->d;

    for (size_t l = d->graph->n_levels; l-- > 0;) {
        for (size_t i = 0; i < d->n_nodes[l]; i++) {
            const struct diff_node *node = &d->levels[l][i];
            for (int side = 0; side < 2; side++) {
                shown->selfs[l][i] += llround((double)node->self[side] * shown->scale[side]);
            }
            shown->weights[l][i] += shown->selfs[l][i];
            if (l > 0) {
                shown->weights[l - 1][node->parent] += shown->weights[l][i];
            }
        }
    }
}

/* Places the nodes of a level that have a weight from left to right in their parents. */
static void place_level(struct shown_diff *shown, size_t l, int64_t *const starts[2], size_t *n)
{
    const struct diff *d = shown->d;
    struct hearth_flame_level *level = &shown->graph.levels[l];
    int64_t end = 0;

    for (size_t i = 0; i < d->n_nodes[l]; i++) {
        const struct diff_node *node = &d->levels[l][i];
        int64_t weight = shown->weights[l][i], from = l == 0 ? 0 : starts[0][node->parent];
        starts[1][i] = from;
        if (weight == 0) {
            continue;
        }
        if (l > 0) {
            starts[0][node->parent] += weight;
        }
        int64_t values[] = {from - end, weight, shown->selfs[l][i], (int64_t)node->name};
        memcpy(level->values + level->n, values, sizeof values);
        level->n += 4;
        end = from + weight;
        for (int side = 0; side < 2; side++) {
            shown->total[side][*n] = node->total[side];
        }
        shown->q[(*n)++] = node->q;
    }
}

static enum hearth_status place_nodes(struct cli *cli, struct shown_diff *shown)
{
    size_t n = 0, most = 1;

    for (size_t l = 0; l < shown->d->graph->n_levels; l++) {
        most = shown->d->n_nodes[l] > most ? shown->d->n_nodes[l] : most;
    }

    /* Where the next child of each node of the level above begins, and the nodes of this one. */
    int64_t *above = hearth_arena_calloc(&cli->arena, most, sizeof above[0]);
    int64_t *here = hearth_arena_calloc(&cli->arena, most, sizeof here[0]);
    if (above == NULL || here == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t l = 0; l < shown->d->graph->n_levels; l++) {
        place_level(shown, l, (int64_t *const[2]){above, here}, &n);
        int64_t *swap = above;
        above = here;
        here = swap;
    }
    shown->graph.total = shown->weights[0][0];

    return HEARTH_OK;
}

/* The changes of functions, for the views that have other nodes. */
static enum hearth_status fill_functions(struct cli *cli, struct shown_diff *shown,
                                         const struct diff_row *rows, size_t n_rows)
{
    size_t n = shown->d->graph->n_names;
    int64_t *values[4];
    double *q = hearth_arena_array(&cli->arena, n, sizeof q[0]);

    for (int i = 0; i < 4; i++) {
        values[i] = hearth_arena_calloc(&cli->arena, n, sizeof values[i][0]);
    }
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        shown->graph.names[i] = hearth_str_c(shown->d->graph->names[i]);
        q[i] = 1;
    }
    for (size_t i = 0; i < n_rows; i++) {
        for (int side = 0; side < 2; side++) {
            values[side][rows[i].name_id] = rows[i].self[side];
            values[2 + side][rows[i].name_id] = rows[i].total[side];
        }
        q[rows[i].name_id] = diff_total_q(shown->d, &rows[i]);
    }
    shown->sides = (struct flame_sides){
        .whole = {shown->d->whole[0], shown->d->whole[1]},
        .has_noise = shown->d->noise != NULL,
        .total = {shown->total[0], shown->total[1]},
        .q = shown->q,
        .function_self = {values[0], values[1]},
        .function_total = {values[2], values[3]},
        .function_q = q,
    };

    return HEARTH_OK;
}

/* ---- the web page ---- */

/* How the page names the range of the base; NULL: not at all. */
static const char *name_base_range(const Hearth__V1__Selection *base,
                                   const Hearth__V1__Selection *now)
{
    static const struct {
        const char *name;
        int64_t ms;
    } distances[] = {{"same", 0}, {"hour", 3600000}, {"day", 86400000}, {"week", 604800000}};
    int64_t length = now->end - now->start, distance = now->start - base->start;

    if (base->end - base->start != length) {
        return NULL;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(distances); i++) {
        if (distance == distances[i].ms) {
            return distances[i].name;
        }
    }

    return distance == length ? "previous" : NULL;
}

/* The address of the page that compares the same; otherwise the reason. */
static void find_diff_page(struct cli *cli, const struct diff_sides *sides,
                           struct flame_facts *facts)
{
    const Hearth__V1__Selection *base = &sides->selections[0], *now = &sides->selections[1];
    const struct page_query query = {now->label_selector, sides->type, now->start, now->end};
    const char *against = sides->are_files ? NULL : name_base_range(base, now);
    struct hearth_buf out;

    facts->no_page = sides->are_files ? "files have no page; hearth upload stores them"
                     : against == NULL
                         ? "the page compares with the same range, or one before it by its "
                           "length, an hour, a day or a week"
                         : "the page cannot show these filters";
    if (against == NULL || cli_is_beyond_page(cli)) {
        return;
    }
    hearth_buf_init(&out, 0);
    page_link_query(cli->url, "diff", &query, &out);
    page_link_param(&out, "against", hearth_str_c(against));
    page_link_param(&out, "base",
                    strcmp(base->label_selector, now->label_selector) == 0
                        ? HEARTH_STR("")
                        : hearth_str_c(base->label_selector));
    facts->page = hearth_arena_strndup(&cli->arena, out.p, out.n);
    hearth_buf_release(&out);
}

static enum hearth_status show_diff(struct cli *cli, const struct diff *d,
                                    const struct diff_row *rows, size_t n_rows,
                                    const struct diff_sides *sides, struct hearth_buf *out)
{
    struct shown_diff shown = {.d = d};

    /* Make the graph. */
    HEARTH_TRY(allocate_shown(cli, &shown));
    double larger = fmin(fmax(d->whole[0], d->whole[1]), MAX_WEIGHT);
    for (int side = 0; side < 2; side++) {
        shown.scale[side] = d->whole[side] > 0 ? larger / d->whole[side] : 0;
    }
    weigh_nodes(&shown);
    HEARTH_TRY(place_nodes(cli, &shown));
    HEARTH_TRY(fill_functions(cli, &shown, rows, n_rows));

    /* Show it. */
    const char *base = cli->args[0], *now = cli->args[cli->n_args == 2 ? 1 : 0];
    struct flame_facts facts = {
        .selector = hearth_arena_printf(&cli->arena, "%s, base %s", now, base),
        .type = sides->type,
        .range = "",
        .sides = &shown.sides,
    };
    find_diff_page(cli, sides, &facts);
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    return cli_run_screen(cli, &shown.graph, &facts, d->unit, out);
}

enum cli_exit diff_run_screen(struct cli *cli, const struct diff *d, const struct diff_row *rows,
                              size_t n_rows, const struct diff_sides *sides)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    enum hearth_status status = show_diff(cli, d, rows, n_rows, sides, &out);
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli_print(&out);
}
