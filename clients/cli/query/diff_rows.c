/* diff_rows.c -- reads the answer of a diff (contract: diff_rows.h). */
#include "diff_rows.h"

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"
#include "flame_cells.h"

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

double diff_total_q(const struct diff *d, const struct diff_row *row)
{
    return d->noise == NULL ? 0 : row->total_judged == NULL ? 1 : row->total_judged->q;
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
    const struct diff_row *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* The row of a function among those sorted by name; NULL: it is not shown. */
static struct diff_row *find_row(struct diff_row *const *sorted, size_t n, const char *name)
{
    const struct diff_row wanted = {.name = name}, *key = &wanted;
    struct diff_row *const *found =
        n == 0 ? NULL : bsearch(&key, sorted, n, sizeof(struct diff_row *), by_name);

    return found == NULL ? NULL : *found;
}

/* Gives each row the server's judgements of its function. */
static enum hearth_status judge_rows(struct cli *cli, const struct diff *d, struct diff_row *rows,
                                     size_t n_rows)
{
    const Hearth__V1__DiffNoise *noise = d->noise;
    struct diff_row **sorted = hearth_arena_array(&cli->arena, n_rows, sizeof(struct diff_row *));

    if (sorted == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n_rows; i++) {
        sorted[i] = &rows[i];
    }
    if (n_rows > 0) {
        qsort(sorted, n_rows, sizeof(struct diff_row *), by_name);
    }
    for (size_t i = 0; noise != NULL && i < noise->n_functions; i++) {
        struct diff_row *row = find_row(sorted, n_rows, noise->functions[i]->name);
        if (row != NULL) {
            row->judged = noise->functions[i];
        }
    }
    for (size_t i = 0; noise != NULL && i < noise->n_totals; i++) {
        struct diff_row *row = find_row(sorted, n_rows, noise->totals[i]->name);
        if (row != NULL) {
            row->total_judged = noise->totals[i];
        }
    }

    return HEARTH_OK;
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
