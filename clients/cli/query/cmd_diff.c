/*
 * cmd_diff.c -- two selections side by side: the functions that changed, and on a terminal the flame
 * graph of both. Shares of each side's total are compared, so that sides of different length or load
 * may be. The server says which changes are beyond noise.
 */
#include "cmd_diff.h"

#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_explain.h"
#include "cmd_flame.h"
#include "diff_gate.h"
#include "filters.h"
#include "flame_cells.h"
#include "flame_file.h"
#include "flame_output.h"
#include "listing.h"
#include "text.h"
#include "why.h"

#include <stdio.h>

enum {
    EVERY_NODE = 1048576,
    TABLE_ROWS = 30, /* without --limit */
};

/* The limit, as limits and errors name it. */
#define MOST_NODES "max-flamegraph-nodes"

/* ---- the table ---- */

/* The interval of the change of a row's self, with a star if it is beyond noise; returns its width. */
static int print_interval(const struct diff_row *row, struct hearth_buf *out)
{
    char ends[2][32], text[72] = "";

    if (row->judged != NULL) {
        cli_percent(row->judged->low, 1, true, ends[0]);
        cli_percent(row->judged->high, 1, true, ends[1]);
        (void)snprintf(text, sizeof text, "%s..%s", ends[0], ends[1]);
    }
    hearth_buf_printf(out, " %s %18s", diff_is_beyond_noise(row) ? "*" : " ", text);

    return 21;
}

/* A terminal with less room for names than this has no columns of totals. */
#define LEAST_NAME 20

static bool has_totals(const struct cli *cli, const struct diff *d)
{
    return cli->width >= 61 + (d->noise != NULL ? 21 : 0) + LEAST_NAME;
}

static void print_diff_row(const struct cli *cli, const struct diff *d, const struct diff_row *row,
                           struct hearth_buf *out)
{
    char text[4][32], change[2][32];
    const int64_t values[] = {row->self[0], row->self[1], row->total[0], row->total[1]};
    for (int i = 0; i < 4; i++) {
        cli_percent((double)values[i], d->whole[i % 2], false, text[i]);
    }
    double total =
        diff_share(d, 1, (double)row->total[1]) - diff_share(d, 0, (double)row->total[0]);
    cli_percent(row->change, 1, true, change[0]);
    cli_percent(total, 1, true, change[1]);
    const char *mark = row->total[0] == 0 ? "new  " : row->total[1] == 0 ? "gone " : "     ";
    hearth_buf_printf(out, "%8s %8s %8s", text[0], text[1], change[0]);
    int taken = 33;
    if (d->noise != NULL) {
        taken += print_interval(row, out);
    }
    if (has_totals(cli, d)) {
        hearth_buf_printf(out, "  %8s %8s %8s", text[2], text[3], change[1]);
        taken += 28;
    }
    hearth_buf_printf(out, "  %s", mark);
    int room = cli->width - taken;
    cli_fit(hearth_str_c(row->name), room > LEAST_NAME ? room : LEAST_NAME, false, out);
    hearth_buf_byte(out, '\n');
}

static void print_diff_table(const struct cli *cli, const struct diff *d,
                             const struct diff_row *rows, size_t n, struct hearth_buf *out)
{
    size_t limit = cli->has_limit ? (size_t)cli->limit : TABLE_ROWS;
    char whole[2][48];

    const char *gap = d->noise != NULL ? "                     " : "";
    const char *interval = d->noise != NULL ? "       95 % interval" : "";
    hearth_buf_printf(out, "%8s %8s %8s%s", "self", "self", "", gap);
    if (has_totals(cli, d)) {
        hearth_buf_printf(out, "  %8s %8s %8s", "total", "total", "");
    }
    hearth_buf_printf(out, "\n%8s %8s %8s%s", "base", "now", "change", interval);
    if (has_totals(cli, d)) {
        hearth_buf_printf(out, "  %8s %8s %8s", "base", "now", "change");
    }
    hearth_buf_cstr(out, "       function\n");
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

/* What is missing where a side has no samples; NULL: both have. */
static const char *empty_side(const struct diff *d)
{
    return d->whole[0] == 0   ? "there is nothing in the base: every function is new"
           : d->whole[1] == 0 ? "there is nothing to compare with the base: every function is gone"
                              : NULL;
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

/* Where a node stands: the mean of both sides, each of its own whole. */
static int cell_column(const struct cli *cli, const struct diff *d, const struct diff_node *node,
                       bool end)
{
    double sum = 0;
    int sides = 0;
    for (int side = 0; side < 2; side++) {
        if (d->whole[side] > 0) {
            sum += diff_share(d, side, (double)(node->x[side] + (end ? node->total[side] : 0)));
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
        const struct diff_node *node = &d->levels[level][i];
        int from = cell_column(cli, d, node, false), to = cell_column(cli, d, node, true);
        if (to <= from || from < at) {
            continue;
        }
        for (; at < from; at++) {
            hearth_buf_byte(out, ' ');
        }
        const struct flame_change change = {diff_share(d, 0, (double)node->total[0]),
                                            diff_share(d, 1, (double)node->total[1]), node->q};
        flame_append_change_color(&change, FLAME_256_COLORS, out);
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

/* --base-from and --base-to; without them, the same range for two selectors, otherwise the range before it. */
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
    if (*ret_from != cli->from_ms || *ret_to != cli->to_ms) {
        char a[32], b[32];
        cli_zoned(*ret_from * HEARTH_NS_PER_MS, a);
        cli_zoned(*ret_to * HEARTH_NS_PER_MS, b);
        (void)fprintf(stderr, "base: %s to %s\n", a, b);
    }

    return HEARTH_OK;
}

/* The name of both sides, or of each. */
static const char *diff_title(struct cli *cli, const char *base, const char *now)
{
    return strcmp(base, now) == 0 ? now : hearth_arena_printf(&cli->arena, "%s → %s", base, now);
}

/* What a file says about the two sides. */
static void fill_diff_facts(struct cli *cli, const Hearth__V1__Selection *left,
                            const Hearth__V1__Selection *right, struct flame_export_facts *ret)
{
    const Hearth__V1__Selection *const sides[] = {left, right};

    *ret = (struct flame_export_facts){
        .title = diff_title(cli, left->label_selector, right->label_selector),
        .type = right->profile_type,
    };
    for (int i = 0; i < 2; i++) {
        ret->sides[i] = hearth_arena_printf(
            &cli->arena, "%s: %s, %s", i == 0 ? "base" : "now", sides[i]->label_selector,
            flame_output_range(cli, sides[i]->start, sides[i]->end));
    }
}

enum hearth_status cli_diff_sides(struct cli *cli, Hearth__V1__Selection *ret_left,
                                  Hearth__V1__Selection *ret_right)
{
    const char *base;

    HEARTH_TRY(cli_query_selector(cli, 0, &base));
    HEARTH_TRY(cli_selection(cli, cli->n_args == 2 ? 1 : 0, ret_right));
    *ret_left = *ret_right;
    ret_left->label_selector = cli_field(cli, base);

    return base_range(cli, &ret_left->start, &ret_left->end);
}

/* The most nodes that this tenant may ask for; 0 if nothing limits them. */
static enum hearth_status ask_most_nodes(struct cli *cli, int64_t *ret)
{
    Hearth__V1__GetLimitsRequest request;
    Hearth__V1__Limits *answer;

    hearth__v1__get_limits_request__init(&request);
    HEARTH_TRY(cli_call(cli, "hearth.v1.AdminService/GetLimits", &request,
                        &hearth__v1__limits__descriptor, &answer));
    *ret = 0;
    for (size_t i = 0; i < answer->n_limits; i++) {
        if (strcmp(answer->limits[i]->name, MOST_NODES) == 0) {
            *ret = answer->limits[i]->number;
        }
    }

    return HEARTH_OK;
}

/* Every node, or as many as the server allows: it refuses to be asked for more. */
static enum hearth_status call_diff(struct cli *cli, Hearth__V1__DiffRequest *request,
                                    Hearth__V1__DiffResponse **ret)
{
    request->max_nodes = cli->max_nodes == 0 ? EVERY_NODE : cli->max_nodes;
    enum hearth_status status = cli_call(cli, "hearth.v1.QueryService/Diff", request,
                                         &hearth__v1__diff_response__descriptor, ret);
    if (status != HEARTH_INVALID_ARGUMENT || cli->max_nodes != 0 ||
        strstr(cli->err.msg, MOST_NODES) == NULL) {
        return status;
    }
    HEARTH_TRY(ask_most_nodes(cli, &request->max_nodes));

    return cli_call(cli, "hearth.v1.QueryService/Diff", request,
                    &hearth__v1__diff_response__descriptor, ret);
}

static enum hearth_status ask_diff(struct cli *cli, struct diff_sides *ret_sides,
                                   Hearth__V1__DiffResponse **ret)
{
    Hearth__V1__DiffRequest request;
    Hearth__V1__Selection *left = &ret_sides->selections[0], *right = &ret_sides->selections[1];

    HEARTH_TRY(cli_diff_sides(cli, left, right));
    hearth__v1__diff_request__init(&request);
    request.left = left;
    request.right = right;
    request.noise = true;
    request.explain = cli->explain;
    HEARTH_TRY(cli_read_go_stacks(cli, &request.go_stacks));

    return call_diff(cli, &request, ret);
}

static enum hearth_status ask_files(struct cli *cli, struct flame_export_facts *ret_facts,
                                    Hearth__V1__DiffResponse **ret)
{
    const char *base = flame_output_file_title(cli->args[0]);
    const char *now = flame_output_file_title(cli->args[1]);

    *ret_facts = (struct flame_export_facts){
        .title = diff_title(cli, base, now),
        .sides = {hearth_arena_printf(&cli->arena, "base: %s", base),
                  hearth_arena_printf(&cli->arena, "now: %s", now)},
    };

    return diff_ask_files(cli, &ret_facts->type, ret);
}

/* Whether the arguments are two files. CLI_USAGE, with a message, for one file. */
static enum cli_exit look_for_files(struct cli *cli, bool *ret)
{
    const char *other = NULL; /* the last argument that names no file */
    size_t n = 0;

    for (size_t i = 0; i < cli->n_args; i++) {
        bool is_file = flame_is_file(cli->args[i]);
        n += is_file;
        other = is_file ? other : cli->args[i];
    }
    *ret = n == 2;
    if (n != 1) {
        return CLI_OK;
    }

    const char *message =
        hearth_arena_printf(&cli->arena, "diff compares two files, or two selections: %s%.200s%s",
                            other == NULL ? "name the second file" : "there is no file \"",
                            other == NULL ? "" : other, other == NULL ? "" : "\"");

    return cli_usage(message == NULL ? "there is no memory" : message);
}

/* Adds the cells of a row, in the order of columns.def. */
static void list_diff_row(const struct diff *d, const struct diff_row *row,
                          struct cli_listing *list)
{
    double total[2];

    /* Self, and what is known about its noise. */
    cli_list_share(list, (double)row->self[0], d->whole[0]);
    cli_list_share(list, (double)row->self[1], d->whole[1]);
    cli_list_real(list, 100 * row->change);
    if (d->noise != NULL) {
        cli_list_number(list, diff_is_beyond_noise(row));
    } else {
        cli_list_absent(list);
    }
    const double judged[] = {row->judged == NULL ? 0 : 100 * row->judged->low,
                             row->judged == NULL ? 0 : 100 * row->judged->high,
                             row->judged == NULL ? 0 : row->judged->q};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(judged); i++) {
        if (row->judged != NULL) {
            cli_list_real(list, judged[i]);
        } else {
            cli_list_absent(list);
        }
    }

    /* Total. */
    for (int side = 0; side < 2; side++) {
        total[side] = 100 * diff_share(d, side, (double)row->total[side]);
        cli_list_real(list, total[side]);
    }
    cli_list_real(list, total[1] - total[0]);

    /* The values of both. */
    cli_list_number(list, row->self[0]);
    cli_list_number(list, row->self[1]);
    cli_list_number(list, row->total[0]);
    cli_list_number(list, row->total[1]);
    cli_list_str(list, d->unit);
    cli_list_text(list, row->name);
}

/* Draws the table for people, and the graph on a terminal. */
static void draw_diff(const struct cli *cli, const Hearth__V1__DiffResponse *answer,
                      const struct diff *d, const struct diff_row *rows, size_t n_rows,
                      struct hearth_buf *out)
{
    const char *empty = empty_side(d);

    if (empty != NULL) {
        hearth_buf_printf(out, "%s\n\n", empty);
    }
    if (cli->color) {
        paint_diff(cli, d, out);
    }
    print_diff_table(cli, d, rows, n_rows, out);
    print_judgement(answer->noise, out);
}

static enum cli_exit print_diff(struct cli *cli, const Hearth__V1__DiffResponse *answer,
                                const struct diff *d, const struct diff_row *rows, size_t n_rows)
{
    struct cli_listing list;
    size_t limit = cli->has_limit ? (size_t)cli->limit : cli_is_table(cli) ? TABLE_ROWS : n_rows;

    cli_list_begin(cli, &list);
    list.unit = d->unit;
    list.is_drawn = true;
    for (size_t i = 0; i < n_rows && i < limit; i++) {
        list_diff_row(d, &rows[i], &list);
    }
    draw_diff(cli, answer, d, rows, n_rows, &list.foot);

    return cli_list_end(&list, &answer->base);
}

/* Writes the graph as the file that -o names. */
static enum cli_exit save_diff(struct cli *cli, const Hearth__V1__DiffResponse *answer,
                               const struct flame_export_facts *facts)
{
    struct flame_export graph;
    enum hearth_status status =
        flame_output_read_diff(cli, answer->flamegraph, answer->noise, facts, &graph);

    return status == HEARTH_OK ? flame_output_diff(cli, &graph) : cli_fail(cli, status);
}

/* Writes the page of --report. */
static enum cli_exit save_report_page(struct cli *cli, const Hearth__V1__DiffResponse *answer,
                                      const struct flame_export_facts *facts)
{
    const char *path = strchr(cli->report, '=') + 1; /* html=FILE */
    struct flame_export graph;
    struct hearth_buf out;
    enum hearth_status status =
        flame_output_read_diff(cli, answer->flamegraph, answer->noise, facts, &graph);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth_buf_init(&out, 0);
    flame_export_html(&graph, &out);

    return diff_save_report(path, &out) ? CLI_OK : CLI_FAILED;
}

static enum cli_exit run_diff(struct cli *cli, struct diff_gates *gates, bool are_files)
{
    struct flame_export_facts facts = {0};
    struct diff_sides sides = {.are_files = are_files};
    Hearth__V1__DiffResponse *answer = NULL;
    struct diff d;
    struct diff_row *rows = NULL;
    size_t n_rows = 0;

    /* Ask. */
    enum hearth_status status =
        are_files ? ask_files(cli, &facts, &answer) : ask_diff(cli, &sides, &answer);
    if (status != HEARTH_OK) {
        enum cli_exit code = cli_fail(cli, status);
        return code == CLI_NO_DATA ? diff_gates_report(cli, gates, cli->err.msg) : code;
    }
    if (answer->flamegraph == NULL || answer->flamegraph->total == 0) {
        (void)(are_files ? flame_file_is_empty(cli->args[0], facts.type) : cli_no_data(cli));
        return diff_gates_report(cli, gates, "neither side has data");
    }

    /* Read the answer. */
    if (!are_files) {
        cli_say_aggregation(&sides.selections[1], answer->aggregation);
        fill_diff_facts(cli, &sides.selections[0], &sides.selections[1], &facts);
    }
    sides.type = facts.type;
    facts.unit = cli_type_unit(facts.type);
    status = diff_read(cli, answer, facts.unit, &d);
    if (status == HEARTH_OK) {
        status = diff_make_rows(cli, &d, &rows, &n_rows);
    }
    if (status == HEARTH_OK) {
        status = diff_gates_check(cli, gates, &d, rows, n_rows);
    }
    if (status == HEARTH_OK && cli->annotate != NULL) {
        status = diff_find_places(cli, gates, &sides);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    /* Print, show or save it. */
    enum cli_exit code = CLI_OK;
    if (cli->interactive) {
        code = diff_run_screen(cli, &d, rows, n_rows, &sides);
    } else if (flame_output_is_chosen(cli)) {
        code = save_diff(cli, answer, &facts);
    } else {
        code = print_diff(cli, answer, &d, rows, n_rows);
    }
    if (code == CLI_OK && cli->report != NULL) {
        code = save_report_page(cli, answer, &facts);
    }
    if (code != CLI_OK || gates->n == 0) {
        return code;
    }

    const char *empty = empty_side(&d);
    if (empty != NULL) {
        (void)fprintf(stderr, "hearth: nothing was compared: %s\n", empty);
    }

    return diff_gates_report(cli, gates, empty);
}

enum cli_exit cli_diff(struct cli *cli)
{
    struct diff_gates gates;
    bool are_files, is_screen;

    enum cli_exit code = look_for_files(cli, &are_files);
    if (code == CLI_OK && cli->interactive) {
        code = cli_choose_screen(cli, &is_screen);
    }
    if (code != CLI_OK) {
        return code;
    }
    enum hearth_status status = diff_gates_read(cli, &gates);
    code = status == HEARTH_OK ? run_diff(cli, &gates, are_files) : cli_fail(cli, status);
    diff_gates_release(&gates);

    return code;
}

enum cli_exit cli_explain_diff(struct cli *cli)
{
    struct diff_sides sides = {0};
    Hearth__V1__DiffResponse *answer = NULL;
    bool is_files = false;

    if (look_for_files(cli, &is_files) != CLI_OK) {
        return CLI_USAGE;
    }
    if (is_files) {
        return cli_usage("--explain is for queries: files are read as a whole");
    }
    enum hearth_status status = ask_diff(cli, &sides, &answer);

    return status == HEARTH_OK ? cli_print_plan(cli, sides.selections[1].profile_type, answer->plan)
                               : cli_fail(cli, status);
}
