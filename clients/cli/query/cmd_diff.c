/*
 * cmd_diff.c -- two selections side by side: the functions that changed, and on a terminal the flame
 * graph of both. Shares of each side's total are compared, so that sides of different length or load
 * may be. The server says which changes are beyond noise.
 */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    EVERY_NODE = 1048576
};

/* A change is beyond noise if its q is at most this (hearth/v1/query.proto). */
#define BEYOND_Q 0.05

/* Node of a level; [0] left, [1] right. */
struct node {
    int64_t x[2], total[2], self[2];
    size_t name, parent;
    bool within_noise;
};

struct diff {
    const Querier__V1__FlameGraphDiff *graph;
    struct node **levels;
    size_t *n_nodes;
    double whole[2];
    struct hearth_str unit;
    const Hearth__V1__DiffNoise *noise; /* NULL: the server is too old, or could not judge */
};

/* What a function has on each side; a recursive call counts once in total. */
struct row {
    const char *name;
    int64_t self[2], total[2];
    double change;                            /* of its self, in shares */
    const Hearth__V1__FunctionChange *judged; /* NULL: its change is not judged */
};

static enum hearth_status fail_malformed(struct cli *cli)
{
    return HEARTH_FAIL(&cli->err, HEARTH_INTERNAL, "the server sent a malformed diff");
}

static enum hearth_status read_level(struct cli *cli, struct diff *d, size_t l)
{
    const Querier__V1__Level *level = d->graph->levels[l];
    size_t n = level->n_values / 7, parent = 0;

    d->n_nodes[l] = n;
    d->levels[l] = hearth_arena_array(&cli->arena, n, sizeof(struct node));
    if (d->levels[l] == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    int64_t end[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        struct node *node = &d->levels[l][i];
        const int64_t *v = level->values + 7 * i;
        if (v[6] < 0 || (uint64_t)v[6] >= d->graph->n_names) {
            return fail_malformed(cli);
        }
        node->name = (size_t)v[6];
        node->within_noise = d->noise != NULL && l < d->noise->n_levels &&
                             i < d->noise->levels[l]->n_q &&
                             (double)d->noise->levels[l]->q[i] > BEYOND_Q;
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

static enum hearth_status read_diff(struct cli *cli, struct diff *d)
{
    const Querier__V1__FlameGraphDiff *graph = d->graph;
    d->levels = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof d->levels[0]);
    d->n_nodes = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof d->n_nodes[0]);
    if (d->levels == NULL || d->n_nodes == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    d->whole[0] = (double)graph->leftticks;
    d->whole[1] = (double)graph->rightticks;
    for (size_t l = 0; l < graph->n_levels; l++) {
        HEARTH_TRY(read_level(cli, d, l));
    }
    return HEARTH_OK;
}

static double side_share(const struct diff *d, int side, double value)
{
    return d->whole[side] > 0 ? value / d->whole[side] : 0;
}

/* ---- the table ---- */

static bool is_below_itself(const struct diff *d, size_t level, const struct node *node)
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

static bool is_beyond_noise(const struct row *row)
{
    return row->judged != NULL && row->judged->q <= BEYOND_Q;
}

static int by_change(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (is_beyond_noise(x) != is_beyond_noise(y)) {
        return is_beyond_noise(x) ? -1 : 1;
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
static enum hearth_status judge_rows(struct cli *cli, const struct diff *d, struct row *rows,
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

static enum hearth_status make_rows(struct cli *cli, const struct diff *d, struct row **ret,
                                    size_t *ret_n)
{
    size_t n = d->graph->n_names, n_rows = 0;
    struct row *rows = hearth_arena_calloc(&cli->arena, n, sizeof rows[0]);

    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t l = 1; l < d->graph->n_levels; l++) {
        for (size_t i = 0; i < d->n_nodes[l]; i++) {
            const struct node *node = &d->levels[l][i];
            bool again = is_below_itself(d, l, node);
            for (int side = 0; side < 2; side++) {
                rows[node->name].self[side] += node->self[side];
                rows[node->name].total[side] += again ? 0 : node->total[side];
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct row row = rows[i];
        if (row.total[0] + row.total[1] > 0) {
            row.name = d->graph->names[i];
            row.change =
                side_share(d, 1, (double)row.self[1]) - side_share(d, 0, (double)row.self[0]);
            rows[n_rows++] = row;
        }
    }
    HEARTH_TRY(judge_rows(cli, d, rows, n_rows));
    qsort(rows, n_rows, sizeof rows[0], by_change);
    *ret = rows;
    *ret_n = n_rows;

    return HEARTH_OK;
}

/* The interval of the change of a row's self, with a star if it is beyond noise; returns its width. */
static int print_interval(const struct row *row, struct hearth_buf *out)
{
    char ends[2][32], text[72] = "";

    if (row->judged != NULL) {
        cli_percent(row->judged->low, 1, true, ends[0]);
        cli_percent(row->judged->high, 1, true, ends[1]);
        (void)snprintf(text, sizeof text, "%s..%s", ends[0], ends[1]);
    }
    hearth_buf_printf(out, " %s %18s", is_beyond_noise(row) ? "*" : " ", text);

    return 21;
}

static void print_diff_row(const struct cli *cli, const struct diff *d, const struct row *row,
                           struct hearth_buf *out)
{
    char text[4][32], change[2][32];
    const int64_t values[] = {row->self[0], row->self[1], row->total[0], row->total[1]};
    for (int i = 0; i < 4; i++) {
        cli_percent((double)values[i], d->whole[i % 2], false, text[i]);
    }
    double total =
        side_share(d, 1, (double)row->total[1]) - side_share(d, 0, (double)row->total[0]);
    cli_percent(row->change, 1, true, change[0]);
    cli_percent(total, 1, true, change[1]);
    const char *mark = row->total[0] == 0 ? "new  " : row->total[1] == 0 ? "gone " : "     ";
    hearth_buf_printf(out, "%8s %8s %8s", text[0], text[1], change[0]);
    int taken = 61;
    if (d->noise != NULL) {
        taken += print_interval(row, out);
    }
    hearth_buf_printf(out, "  %8s %8s %8s  %s", text[2], text[3], change[1], mark);
    cli_fit(hearth_str_c(row->name), cli->width > taken + 39 ? cli->width - taken : 40, false, out);
    hearth_buf_byte(out, '\n');
}

static void print_diff_table(const struct cli *cli, const struct diff *d, const struct row *rows,
                             size_t n, struct hearth_buf *out)
{
    size_t limit = cli->has_limit ? (size_t)cli->limit : 30;
    char whole[2][48];

    const char *gap = d->noise != NULL ? "                     " : "";
    const char *interval = d->noise != NULL ? "       95 % interval" : "";
    hearth_buf_printf(out, "%8s %8s %8s%s  %8s %8s %8s\n", "self", "self", "", gap, "total",
                      "total", "");
    hearth_buf_printf(out, "%8s %8s %8s%s  %8s %8s %8s       function\n", "base", "now", "change",
                      interval, "base", "now", "change");
    for (size_t i = 0; i < n && i < limit; i++) {
        print_diff_row(cli, d, &rows[i], out);
    }
    if (n > limit) {
        hearth_buf_printf(out, "%zu of %zu functions shown; --limit shows more\n", limit, n);
    }
    for (int side = 0; side < 2; side++) {
        cli_value(d->whole[side], d->unit, whole[side]);
    }
    hearth_buf_printf(out, "total: %s, now %s; shares are of each side's own total\n", whole[0],
                      whole[1]);
}

/* How many changes are beyond noise, and how that is known. */
static void print_judgement(const Hearth__V1__DiffNoise *noise, struct hearth_buf *out)
{
    if (noise == NULL) {
        return;
    }
    if (noise->method == HEARTH__V1__NOISE_METHOD__NOISE_METHOD_UNSPECIFIED) {
        hearth_buf_printf(out, "noise is not known: %s\n", noise->reason);
        return;
    }
    hearth_buf_printf(out, "* beyond noise: %lld of %lld functions with at least 0.1 %% of a side",
                      (long long)noise->changed_functions, (long long)noise->judged_functions);
    if (noise->method == HEARTH__V1__NOISE_METHOD__NOISE_METHOD_POISSON) {
        hearth_buf_printf(out, "; %s\n", noise->reason);
        return;
    }
    hearth_buf_printf(out, ", by %lld and %lld slices of time", (long long)noise->left_slices,
                      (long long)noise->right_slices);
    if (noise->left_series > 0) {
        hearth_buf_printf(out, ", and %lld and %lld series", (long long)noise->left_series,
                          (long long)noise->right_series);
    }
    hearth_buf_byte(out, '\n');

    const Hearth__V1__RateChange *rate = noise->rate;
    if (rate != NULL && rate->left > 0) {
        char ends[3][32];
        cli_percent(rate->right - rate->left, rate->left, true, ends[0]);
        cli_percent(rate->low, rate->left, true, ends[1]);
        cli_percent(rate->high, rate->left, true, ends[2]);
        hearth_buf_printf(out, "total per second: %s (95 %%: %s..%s)\n", ends[0], ends[1], ends[2]);
    }
}

/* ---- the picture ---- */

/* Blue: less; grey: about the same, or within noise; orange to red: more. By the ratio of shares. */
static unsigned diff_color(const struct diff *d, const struct node *node)
{
    static const unsigned char scale[] = {27, 33, 75, 117, 250, 222, 215, 208, 202};
    double base = side_share(d, 0, (double)node->total[0]),
           now = side_share(d, 1, (double)node->total[1]);
    if (node->within_noise) {
        return scale[4];
    }
    double change = base + now > 0 ? (now - base) / (base + now) : 0; /* -1: gone; 1: new */
    int at = (int)(change * 4 + 4.5);
    return scale[at < 0 ? 0 : at > 8 ? 8 : at];
}

/* Where a node stands: the mean of both sides, each of its own whole. */
static int cell_column(const struct cli *cli, const struct diff *d, const struct node *node,
                       bool end)
{
    double sum = 0;
    int sides = 0;
    for (int side = 0; side < 2; side++) {
        if (d->whole[side] > 0) {
            sum += side_share(d, side, (double)(node->x[side] + (end ? node->total[side] : 0)));
            sides++;
        }
    }
    return (int)(sum / sides * cli->width + 0.5);
}

static bool paint_diff_level(const struct cli *cli, const struct diff *d, size_t level,
                             struct hearth_buf *out)
{
    int at = 0;
    bool visible = false;

    for (size_t i = 0; i < d->n_nodes[level]; i++) {
        const struct node *node = &d->levels[level][i];
        int from = cell_column(cli, d, node, false), to = cell_column(cli, d, node, true);
        if (to <= from || from < at) {
            continue;
        }
        for (; at < from; at++) {
            hearth_buf_byte(out, ' ');
        }
        hearth_buf_printf(out, "\033[48;5;%um\033[38;5;16m", diff_color(d, node));
        hearth_buf_cstr(out, to - from > 1 ? "▏" : "");
        cli_fit(hearth_str_c(d->graph->names[node->name]), to - from > 1 ? to - from - 1 : 1, true,
                out);
        hearth_buf_cstr(out, "\033[0m");
        at = to;
        visible = true;
    }
    hearth_buf_cstr(out, visible ? "\n" : "");

    return visible;
}

static void paint_diff(const struct cli *cli, const struct diff *d, struct hearth_buf *out)
{
    hearth_buf_cstr(out, "\033[48;5;27m\033[38;5;16m less \033[48;5;250m same "
                         "\033[48;5;202m more \033[0m\n");
    for (size_t level = 0; level < d->graph->n_levels; level++) {
        if (!paint_diff_level(cli, d, level, out)) {
            hearth_buf_printf(out, "%zu deeper levels are narrower than a cell\n",
                              d->graph->n_levels - level);
            break;
        }
    }
    hearth_buf_byte(out, '\n');
}

/* ---- request ---- */

/* --base-from and --base-to; without: the same range for two selectors, else what lies before it. */
static enum hearth_status base_range(struct cli *cli, int64_t *ret_from, int64_t *ret_to)
{
    int64_t length = cli->to_ms - cli->from_ms, ns;
    bool other = cli->n_args == 2;

    *ret_to = other ? cli->to_ms : cli->from_ms;
    if (cli->base_to != NULL) {
        HEARTH_TRY(cli_parse_time(cli, cli->base_to, &ns));
        *ret_to = ns / HEARTH_NS_PER_MS;
    }
    *ret_from = *ret_to - length;
    if (cli->base_from != NULL) {
        HEARTH_TRY(cli_parse_time(cli, cli->base_from, &ns));
        *ret_from = ns / HEARTH_NS_PER_MS;
        *ret_to = cli->base_to == NULL && !other ? *ret_from + length : *ret_to;
    }
    if (*ret_from > *ret_to) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "--base-from is after --base-to");
    }
    char a[32], b[32];
    cli_zoned(*ret_from * HEARTH_NS_PER_MS, a);
    cli_zoned(*ret_to * HEARTH_NS_PER_MS, b);
    (void)fprintf(stderr, "base: %s to %s\n", a, b);

    return HEARTH_OK;
}

static enum hearth_status ask_diff(struct cli *cli, const char **ret_type, struct diff *d,
                                   const Hearth__V1__DiffNoise **ret_noise, ProtobufCMessage **ret)
{
    Hearth__V1__DiffRequest request;
    Hearth__V1__Selection left, right;
    Hearth__V1__DiffResponse *answer;
    const char *base;

    HEARTH_TRY(cli_query_selector(cli, 0, &base));
    HEARTH_TRY(cli_selection(cli, cli->n_args == 2 ? 1 : 0, &right));
    left = right;
    left.label_selector = cli_field(cli, base);
    HEARTH_TRY(base_range(cli, &left.start, &left.end));
    hearth__v1__diff_request__init(&request);
    request.left = &left;
    request.right = &right;
    request.noise = true;
    request.max_nodes = cli->max_nodes == 0 ? EVERY_NODE : cli->max_nodes;
    HEARTH_TRY(cli_read_go_stacks(cli, &request.go_stacks));
    HEARTH_TRY(cli_call(cli, "hearth.v1.QueryService/Diff", &request,
                        &hearth__v1__diff_response__descriptor, &answer));
    cli_say_aggregation(&right, answer->aggregation);
    *ret_type = right.profile_type;
    d->graph = answer->flamegraph;
    *ret_noise = answer->noise;
    d->noise = answer->noise != NULL && answer->noise->n_levels > 0 ? answer->noise : NULL;
    *ret = &answer->base;

    return HEARTH_OK;
}

enum cli_exit cli_diff(struct cli *cli)
{
    const char *type = NULL;
    ProtobufCMessage *answer = NULL;
    struct diff d = {0};
    struct hearth_profile_type parts;
    struct row *rows = NULL;
    size_t n_rows = 0;
    const Hearth__V1__DiffNoise *noise = NULL;
    enum hearth_status status = ask_diff(cli, &type, &d, &noise, &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (d.graph == NULL || d.graph->total == 0) {
        return cli_no_data(cli);
    }
    status = hearth_profile_type_parse(hearth_str_c(type), &parts, &cli->err);
    if (status == HEARTH_OK) {
        d.unit = parts.sample_unit;
        status = read_diff(cli, &d);
    }
    if (status == HEARTH_OK) {
        status = make_rows(cli, &d, &rows, &n_rows);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->color) {
        paint_diff(cli, &d, &out);
    }
    print_diff_table(cli, &d, rows, n_rows, &out);
    print_judgement(noise, &out);

    return cli_print_answer(cli, answer, &out);
}
