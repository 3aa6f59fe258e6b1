/* diff_rows.c -- reads the answer of a diff (contract: diff_rows.h). */
#include "diff_rows.h"

#include <math.h>
#include <stdlib.h>

static enum hearth_status fail_malformed(struct cli *cli)
{
    return HEARTH_FAIL(&cli->err, HEARTH_INTERNAL, "the server sent a malformed diff");
}

static enum hearth_status read_level(struct cli *cli, struct diff *d, size_t l)
{
    const Querier__V1__Level *level = d->graph->levels[l];
    size_t n = level->n_values / 7, parent = 0;

    d->n_nodes[l] = n;
    d->levels[l] = hearth_arena_array(&cli->arena, n, sizeof(struct diff_node));
    if (d->levels[l] == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    int64_t end[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        struct diff_node *node = &d->levels[l][i];
        const int64_t *v = level->values + 7 * i;
        if (v[6] < 0 || (uint64_t)v[6] >= d->graph->n_names) {
            return fail_malformed(cli);
        }
        node->name = (size_t)v[6];
        bool is_judged = d->noise != NULL && l < d->noise->n_levels && i < d->noise->levels[l]->n_q;
        node->q = is_judged ? (double)d->noise->levels[l]->q[i] : d->noise != NULL;
        for (int side = 0; side < 2; side++) {
            node->x[side] = end[side] + v[3 * side];
            node->total[side] = v[3 * side + 1];
            node->self[side] = v[3 * side + 2];
            end[side] = node->x[side] + node->total[side];
        }
        /* Both levels go from left to right, and a node lies within its parent on both sides. */
        while (l > 0 && parent < d->n_nodes[l - 1] &&
               (d->levels[l - 1][parent].x[0] + d->levels[l - 1][parent].total[0] < end[0] ||
                d->levels[l - 1][parent].x[1] + d->levels[l - 1][parent].total[1] < end[1])) {
            parent++;
        }
        if (l > 0 && parent == d->n_nodes[l - 1]) {
            return fail_malformed(cli);
        }
        node->parent = parent;
    }

    return HEARTH_OK;
}

enum hearth_status diff_read(struct cli *cli, const Hearth__V1__DiffResponse *answer,
                             struct hearth_str unit, struct diff *ret)
{
    const Querier__V1__FlameGraphDiff *graph = answer->flamegraph;
    const Hearth__V1__DiffNoise *noise = answer->noise;

    *ret = (struct diff){
        .graph = graph,
        .levels = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof ret->levels[0]),
        .n_nodes = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof ret->n_nodes[0]),
        .whole = {(double)graph->leftticks, (double)graph->rightticks},
        .unit = unit,
        .noise = noise != NULL && noise->n_levels > 0 ? noise : NULL,
    };
    if (ret->levels == NULL || ret->n_nodes == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t l = 0; l < graph->n_levels; l++) {
        HEARTH_TRY(read_level(cli, ret, l));
    }

    return HEARTH_OK;
}

double diff_share(const struct diff *d, int side, double value)
{
    return d->whole[side] > 0 ? value / d->whole[side] : 0;
}

/* ---- rows ---- */

static double total_change(const struct diff *d, const int64_t total[2])
{
    return diff_share(d, 1, (double)total[1]) - diff_share(d, 0, (double)total[0]);
}

static bool is_below_itself(const struct diff *d, size_t level, const struct diff_node *node)
{
    size_t name = node->name;
    while (level-- > 1) {
        node = &d->levels[level][node->parent];
        if (node->name == name) {
            return true;
        }
    }
    return false;
}

bool diff_is_beyond_noise(const struct diff_row *row)
{
    return row->judged != NULL && row->judged->q <= FLAME_BEYOND_Q;
}

static int by_change(const void *a, const void *b)
{
    const struct diff_row *x = a, *y = b;
    if (diff_is_beyond_noise(x) != diff_is_beyond_noise(y)) {
        return diff_is_beyond_noise(x) ? -1 : 1;
    }
    if (fabs(x->change) != fabs(y->change)) {
        return fabs(x->change) < fabs(y->change) ? 1 : -1;
    }
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const Hearth__V1__FunctionChange *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Compares a text with the name of an element. */
static int compare_name(const void *name, const void *element)
{
    const Hearth__V1__FunctionChange *const *change = element;
    return strcmp(name, (*change)->name);
}

/* Gives each row the server's judgement of its function. */
static enum hearth_status judge_rows(struct cli *cli, const struct diff *d, struct diff_row *rows,
                                     size_t n_rows)
{
    size_t n = d->noise == NULL ? 0 : d->noise->n_functions;
    const Hearth__V1__FunctionChange **sorted =
        hearth_arena_array(&cli->arena, n, sizeof sorted[0]);

    if (sorted == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = d->noise->functions[i];
    }
    if (n > 0) {
        qsort(sorted, n, sizeof sorted[0], by_name);
    }
    for (size_t i = 0; i < n_rows && n > 0; i++) {
        const Hearth__V1__FunctionChange **found =
            bsearch(rows[i].name, sorted, n, sizeof sorted[0], compare_name);
        rows[i].judged = found == NULL ? NULL : *found;
    }

    return HEARTH_OK;
}

/*
 * The server judges nodes. A total is beyond noise if a call that changed in its direction is: if
 * nothing changed, at most 5 % of all diffs have such a node.
 */
static void judge_totals(const struct diff *d, struct diff_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rows[i].total_q = d->noise != NULL;
    }
    for (size_t l = 1; l < d->graph->n_levels; l++) {
        for (size_t i = 0; i < d->n_nodes[l]; i++) {
            const struct diff_node *node = &d->levels[l][i];
            struct diff_row *row = &rows[node->name];
            bool is_same_way = total_change(d, node->total) * total_change(d, row->total) > 0;
            if (is_same_way && node->q < row->total_q && !is_below_itself(d, l, node)) {
                row->total_q = node->q;
            }
        }
    }
}

enum hearth_status diff_make_rows(struct cli *cli, const struct diff *d, struct diff_row **ret,
                                  size_t *ret_n)
{
    size_t n = d->graph->n_names, n_rows = 0;
    struct diff_row *rows = hearth_arena_calloc(&cli->arena, n, sizeof rows[0]);

    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t l = 1; l < d->graph->n_levels; l++) {
        for (size_t i = 0; i < d->n_nodes[l]; i++) {
            const struct diff_node *node = &d->levels[l][i];
            bool again = is_below_itself(d, l, node);
            for (int side = 0; side < 2; side++) {
                rows[node->name].self[side] += node->self[side];
                rows[node->name].total[side] += again ? 0 : node->total[side];
            }
        }
    }
    judge_totals(d, rows, n);
    for (size_t i = 0; i < n; i++) {
        struct diff_row row = rows[i];
        if (row.total[0] + row.total[1] > 0) {
            row.name = d->graph->names[i];
            row.name_id = i;
            row.change =
                diff_share(d, 1, (double)row.self[1]) - diff_share(d, 0, (double)row.self[0]);
            rows[n_rows++] = row;
        }
    }
    HEARTH_TRY(judge_rows(cli, d, rows, n_rows));
    qsort(rows, n_rows, sizeof rows[0], by_change);
    *ret = rows;
    *ret_n = n_rows;

    return HEARTH_OK;
}
