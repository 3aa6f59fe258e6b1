/* cmd_heatmap.c -- how large profiles, or what spans took of them, are over time, as a grid of cells. */
#include "hearth/model/profile_type.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "text.h"
#include "why.h"

#include <limits.h>

#define QUERIER "querier.v1.QuerierService/"

enum {
    ROWS = 20,
    COLUMNS_IN_PIPES = 80,
    FEWEST_COLUMNS = 30, /* the times at both ends of the axis */
    MOST_COLUMNS = 400,
    BESIDE_COLUMNS = 12, /* the values on the left */
};

struct heatmap_picture {
    int64_t cells[ROWS][MOST_COLUMNS];
    int64_t n_columns, n_points, most;
};

static const char *const g_shades[] = {" ", "░", "▒", "▓", "█"};

static int64_t choose_columns(const struct cli *cli)
{
    int64_t n = cli->is_terminal ? cli->width - BESIDE_COLUMNS : COLUMNS_IN_PIPES;

    return n < FEWEST_COLUMNS ? FEWEST_COLUMNS : n > MOST_COLUMNS ? MOST_COLUMNS : n;
}

/* The column of a time; those outside of the range are at its edges. */
static int64_t find_column(const Querier__V1__SelectHeatmapRequest *request, int64_t ms,
                           int64_t n_columns)
{
    double share = (double)(ms - request->start) / (double)(request->end - request->start + 1);

    return share <= 0 ? 0 : share >= 1 ? n_columns : (int64_t)(share * (double)n_columns);
}

/* Adds the slots of a series. One is as wide as its step, whose end is its time; a column that has
 * several adds them up. */
static void fill_picture(const Types__V1__HeatmapSeries *series,
                         const Querier__V1__SelectHeatmapRequest *request,
                         struct heatmap_picture *picture)
{
    int64_t step_ms = (int64_t)(request->step * 1000), n_columns = picture->n_columns;

    for (size_t s = 0; s < series->n_slots; s++) {
        const Types__V1__HeatmapSlot *slot = series->slots[s];
        int64_t from = find_column(request, slot->timestamp - step_ms, n_columns);
        int64_t to = find_column(request, slot->timestamp, n_columns);
        from = from < n_columns ? from : n_columns - 1;
        to = to > from ? to : from + 1;
        for (size_t row = 0; row < slot->n_counts && row < ROWS; row++) {
            picture->n_points += slot->counts[row];
            for (int64_t at = from; at < to; at++) {
                int64_t *cell = &picture->cells[row][at];
                *cell += slot->counts[row];
                picture->most = *cell > picture->most ? *cell : picture->most;
            }
        }
    }
}

/* The least value of a row; "" if the row below has the same in digits, as rows of one value have. */
static void put_lower_bound(const Types__V1__HeatmapSeries *series, size_t row,
                            struct hearth_str unit, char ret[48])
{
    char below[48] = "";

    ret[0] = '\0';
    if (series->n_slots == 0 || row >= series->slots[0]->n_y_min) {
        return;
    }

    cli_value(series->slots[0]->y_min[row], unit, ret);
    if (row > 0) {
        cli_value(series->slots[0]->y_min[row - 1], unit, below);
    }
    if (strcmp(ret, below) == 0) {
        ret[0] = '\0';
    }
}

/* Largest values on top. */
static void print_series(const struct cli *cli, const Types__V1__HeatmapSeries *series,
                         const Querier__V1__SelectHeatmapRequest *request, struct hearth_str unit,
                         struct hearth_buf *out)
{
    struct heatmap_picture picture = {.n_columns = choose_columns(cli)};

    fill_picture(series, request, &picture);
    for (size_t i = 0; i < series->n_labels; i++) {
        hearth_buf_cstr(out, i == 0 ? "" : ", ");
        cli_fit(hearth_str_c(series->labels[i]->name), INT_MAX, false, out);
        hearth_buf_byte(out, '=');
        cli_fit(hearth_str_c(series->labels[i]->value), INT_MAX, false, out);
    }
    hearth_buf_cstr(out, series->n_labels > 0 ? "\n" : "");
    for (size_t row = ROWS; row-- > 0;) {
        char lower[48];
        put_lower_bound(series, row, unit, lower);
        hearth_buf_printf(out, "%*s │", hearth_human_width(lower, 10), lower);
        for (int64_t column = 0; column < picture.n_columns; column++) {
            int64_t count = picture.cells[row][column];
            int64_t shade = count == 0 ? 0 : 1 + (count * 3 + picture.most - 1) / picture.most;
            hearth_buf_cstr(out, g_shades[shade > 4 ? 4 : shade]);
        }
        hearth_buf_byte(out, '\n');
    }
    char from[32], to[32];
    cli_time(request->start, from);
    cli_time(request->end, to);
    hearth_buf_printf(out, "%10s └%s%*s\n", "", from, (int)picture.n_columns - (int)strlen(from),
                      to);
    hearth_buf_printf(out, "%lld points, up to %lld in a cell\n", (long long)picture.n_points,
                      (long long)picture.most);
}

static enum hearth_status ask_heatmap(struct cli *cli, Querier__V1__SelectHeatmapRequest *request,
                                      Querier__V1__SelectHeatmapResponse **ret_answer)
{
    const char *selector, *type;
    const char *what = cli->by_kind == NULL ? "profile" : cli->by_kind;

    HEARTH_TRY(cli_query_selector(cli, 0, &selector));
    HEARTH_TRY(cli_resolve_range(cli));
    HEARTH_TRY(cli_profile_type(cli, selector, &type));
    HEARTH_TRY(cli_timeline_step(cli, &request->step));
    bool spans = strcmp(what, "span") == 0;
    request->query_type = spans ? QUERIER__V1__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_SPAN
                                : QUERIER__V1__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_INDIVIDUAL;
    request->exemplar_type = spans ? TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_SPAN
                                   : TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_INDIVIDUAL;
    if (cli->output != CLI_JSON) { /* the picture shows none of them */
        request->exemplar_type = TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_NONE;
    }
    request->profile_typeid = cli_field(cli, type);
    request->label_selector = cli_field(cli, selector);
    request->start = cli->from_ms;
    request->end = cli->to_ms;
    request->group_by = cli_by_names(cli);
    request->n_group_by = cli->n_by;
    if (cli->has_limit) {
        request->limit_presence_case = QUERIER__V1__SELECT_HEATMAP_REQUEST__LIMIT_PRESENCE_LIMIT;
        request->limit = cli->limit;
    }

    return cli_call(cli, QUERIER "SelectHeatmap", request,
                    &querier__v1__select_heatmap_response__descriptor, ret_answer);
}

enum cli_exit cli_heatmap(struct cli *cli)
{
    Querier__V1__SelectHeatmapRequest request;
    Querier__V1__SelectHeatmapResponse *answer = NULL;
    struct hearth_profile_type type;

    querier__v1__select_heatmap_request__init(&request);
    enum hearth_status status = ask_heatmap(cli, &request, &answer);
    if (status == HEARTH_OK) {
        status = hearth_profile_type_parse(hearth_str_c(request.profile_typeid), &type, &cli->err);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_series == 0) {
        return cli_no_data(cli);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_say_zone();
    for (size_t i = 0; i < answer->n_series; i++) {
        hearth_buf_cstr(&out, i == 0 ? "" : "\n");
        print_series(cli, answer->series[i], &request, type.sample_unit, &out);
    }

    return cli_print_answer(cli, &answer->base, &out);
}
