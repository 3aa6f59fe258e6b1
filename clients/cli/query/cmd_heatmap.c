/* cmd_heatmap.c -- how large profiles, or what spans took of them, are over time, as a grid of cells. */
#include "hearth/model/profile_type.h"

#include "cli.h"

#include <limits.h>

#define QUERIER "querier.v1.QuerierService/"

enum {
    ROWS = 20,
    COLUMNS = 80
};

static const char *const g_shades[] = {" ", "░", "▒", "▓", "█"};

/* Largest values on top. A column holds one slot or several. */
static void print_series(const Types__V1__HeatmapSeries *series,
                         const Querier__V1__SelectHeatmapRequest *request, struct hearth_str unit,
                         struct hearth_buf *out)
{
    int64_t cells[ROWS][COLUMNS] = {0}, max = 0, n = 0;
    int64_t span = request->end - request->start + 1;

    for (size_t s = 0; s < series->n_slots; s++) {
        const Types__V1__HeatmapSlot *slot = series->slots[s];
        int64_t at = (slot->timestamp - request->start) * COLUMNS / span;
        at = at < 0 ? 0 : at >= COLUMNS ? COLUMNS - 1 : at;
        for (size_t row = 0; row < slot->n_counts && row < ROWS; row++) {
            cells[row][at] += slot->counts[row];
            n += slot->counts[row];
            max = cells[row][at] > max ? cells[row][at] : max;
        }
    }
    for (size_t i = 0; i < series->n_labels; i++) {
        hearth_buf_cstr(out, i == 0 ? "" : ", ");
        cli_fit(hearth_str_c(series->labels[i]->name), INT_MAX, false, out);
        hearth_buf_byte(out, '=');
        cli_fit(hearth_str_c(series->labels[i]->value), INT_MAX, false, out);
    }
    hearth_buf_cstr(out, series->n_labels > 0 ? "\n" : "");
    for (size_t row = ROWS; row-- > 0;) {
        char lower[48] = "";
        if (series->n_slots > 0 && row < series->slots[0]->n_y_min) {
            cli_value(series->slots[0]->y_min[row], unit, lower);
        }
        hearth_buf_printf(out, "%10s │", lower);
        for (size_t column = 0; column < COLUMNS; column++) {
            int64_t count = cells[row][column];
            int64_t shade = count == 0 ? 0 : 1 + (count * 3 + max - 1) / max;
            hearth_buf_cstr(out, g_shades[shade > 4 ? 4 : shade]);
        }
        hearth_buf_byte(out, '\n');
    }
    char from[32], to[32];
    cli_time(request->start, from);
    cli_time(request->end, to);
    hearth_buf_printf(out, "%10s └%s%*s\n", "", from, COLUMNS - (int)strlen(from), to);
    hearth_buf_printf(out, "%lld points, up to %lld in a cell\n", (long long)n, (long long)max);
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
        print_series(answer->series[i], &request, type.sample_unit, &out);
    }

    return cli_print_answer(cli, &answer->base, &out);
}
