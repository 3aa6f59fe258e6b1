/* cmd_explain.c -- --explain: what a query would read, from which tables, and the estimated time. */
#include "cmd_explain.h"

#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "text.h"
#include "why.h"

#include <stdio.h>
#include <string.h>

static const char *source_name(Hearth__V1__Source source)
{
    switch (source) {
    case HEARTH__V1__SOURCE__SOURCE_PROFILE:
        return "profiles";
    case HEARTH__V1__SOURCE__SOURCE_LATE:
        return "late profiles";
    case HEARTH__V1__SOURCE__SOURCE_SEGMENT:
        return "compacted segments";
    case HEARTH__V1__SOURCE__SOURCE_HOUR_TOTALS:
        return "hours of totals";
    case HEARTH__V1__SOURCE__SOURCE_ROLL_10M:
        return "blocks of 10 min";
    case HEARTH__V1__SOURCE__SOURCE_ROLL_1H:
        return "blocks of 1 h";
    case HEARTH__V1__SOURCE__SOURCE_ROLL_1D:
        return "blocks of 1 d";
    default:
        return "?";
    }
}

static void format_value(double v, const char *unit, char out[48])
{
    cli_value(v, hearth_str_c(unit), out);
}

/* Columns of the table: the names, the numbers behind them, and the ranges at the end. */
#define NAME_COLUMNS   34
#define NUMBER_COLUMNS 43
#define RANGE_COLUMNS  47

/* The table of a plan. If it is folded, a long name and each range have a line of their own. */
struct plan_table {
    struct hearth_buf *out;
    int name_columns;
    bool is_folded;
};

static struct plan_table begin_table(const struct cli *cli, struct hearth_buf *out)
{
    struct plan_table table = {.out = out, .name_columns = NAME_COLUMNS};

    if (cli_is_fitted(cli) && cli->width < NAME_COLUMNS + NUMBER_COLUMNS + RANGE_COLUMNS) {
        int left = cli->width - NUMBER_COLUMNS;
        table.is_folded = true;
        table.name_columns = left < 10 ? 10 : left < NAME_COLUMNS ? left : NAME_COLUMNS;
    }

    return table;
}

static void print_plan_row(const struct plan_table *table, const char *what, int64_t rows,
                           int64_t bytes, double ms, int64_t series, const char *range)
{
    struct hearth_buf *out = table->out;
    char reads[32], size[48], time[48], n[32];
    cli_count(rows, reads);
    format_value((double)bytes, "bytes", size);
    format_value(ms * 1e6, "nanoseconds", time);
    if (strlen(what) > (size_t)table->name_columns) {
        hearth_buf_printf(out, "%s\n", what);
        what = "";
    }
    hearth_buf_printf(out, "%-*s %11s %10s %*s", table->name_columns, what, reads, size,
                      hearth_human_width(time, 9), time);
    if (series >= 0) {
        cli_count(series, n);
        hearth_buf_printf(out, " %9s%s%s", n, table->is_folded ? "\n    " : "  ", range);
    }
    hearth_buf_byte(out, '\n');
}

static void print_leg(const Hearth__V1__ExplainLeg *leg, const struct plan_table *table)
{
    char what[64], from[32], to[32], range[80];
    cli_date(leg->from_ns / HEARTH_NS_PER_MS, from);
    cli_date(leg->to_ns / HEARTH_NS_PER_MS, to);
    bool same_day = strncmp(from, to, 10) == 0;
    (void)snprintf(range, sizeof range, "%s to %s", from, same_day ? to + 11 : to);
    (void)snprintf(what, sizeof what, "%s%s", source_name(leg->source),
                   leg->whole_service ? ", whole service" : "");
    print_plan_row(table, what, leg->rows, leg->bytes, leg->milliseconds, leg->series, range);
}

static const char *step_name(Hearth__V1__PlanStep step)
{
    switch (step) {
    case HEARTH__V1__PLAN_STEP__PLAN_STEP_TOTALS:
        return "totals of services";
    case HEARTH__V1__PLAN_STEP__PLAN_STEP_STACKS:
        return "stack traces";
    case HEARTH__V1__PLAN_STEP__PLAN_STEP_PARTS:
        return "slices and series, to know the noise";
    default:
        return "?";
    }
}

/* A line above the legs of each step of a query that has several. */
static void print_step(const Hearth__V1__ExplainLeg *leg, const Hearth__V1__ExplainLeg *before,
                       struct hearth_buf *out)
{
    bool is_only = leg->step == HEARTH__V1__PLAN_STEP__PLAN_STEP_UNSPECIFIED;

    if (!is_only &&
        (before == NULL || before->step != leg->step || before->of_base != leg->of_base)) {
        hearth_buf_printf(out, "%s: %s\n", leg->of_base ? "base" : "now", step_name(leg->step));
    }
}

/* A row for each leg, for each source, and for all. */
static void print_legs(const Hearth__V1__ExplainResponse *e, const struct plan_table *table)
{
    struct hearth_buf *out = table->out;

    hearth_buf_printf(out, "\n%-*s %11s %10s %9s %9s%s\n", table->name_columns, "source", "reads",
                      "bytes", "about", "series", table->is_folded ? "" : "  range");
    for (size_t i = 0; i < e->n_legs; i++) {
        print_step(e->legs[i], i == 0 ? NULL : e->legs[i - 1], out);
        print_leg(e->legs[i], table);
    }
    if (e->n_totals > 1 && e->n_totals < e->n_legs) {
        hearth_buf_byte(out, '\n');
        for (size_t i = 0; i < e->n_totals; i++) {
            const Hearth__V1__ExplainTotal *t = e->totals[i];
            print_plan_row(table, source_name(t->source), t->rows, t->bytes, t->milliseconds, -1,
                           "");
        }
    }
    print_plan_row(table, "all", e->rows, e->bytes, e->milliseconds, -1, "");
}

static void print_plan(const struct cli *cli, const char *type, bool is_read,
                       const Hearth__V1__ExplainResponse *e, struct hearth_buf *out)
{
    char from[32], to[32], series[64], services[64];
    cli_date(e->from_ns / HEARTH_NS_PER_MS, from);
    cli_date(e->to_ns / HEARTH_NS_PER_MS, to);
    cli_number(e->series, "series", "series", series);
    cli_number(e->services, "service", "services", services);

    hearth_buf_printf(out, "%s of %s: %s%s%s to %s\n", series, services, type,
                      type[0] != '\0' ? ", " : "", from, to);
    if (is_read) {
        const struct plan_table table = begin_table(cli, out);
        print_legs(e, &table);
    }
    for (size_t i = 0; i < e->n_notes; i++) {
        hearth_buf_cstr(out, i == 0 ? "\nnote: " : "note: ");
        cli_fit(hearth_str_c(e->notes[i]), 1000, false, out);
        hearth_buf_byte(out, '\n');
    }
}

/* is_read: whether such queries read profiles. */
static enum cli_exit show_plan(struct cli *cli, const char *type, bool is_read,
                               const Hearth__V1__ExplainResponse *plan)
{
    struct hearth_buf text;

    if (plan == NULL) {
        return cli_fail(cli, HEARTH_FAIL(&cli->err, HEARTH_UNIMPLEMENTED,
                                         "this hearthd cannot explain this query: it is older"));
    }
    if (plan->series == 0) {
        return cli_no_data(cli);
    }
    hearth_buf_init(&text, 0);
    print_plan(cli, type, is_read, plan, &text);

    return cli_print_answer(cli, &plan->base, &text);
}

enum cli_exit cli_print_plan(struct cli *cli, const char *type,
                             const Hearth__V1__ExplainResponse *plan)
{
    return show_plan(cli, type, true, plan);
}

/* A request about a selection, whose fields it borrows. */
static void fill_explain(const Hearth__V1__Selection *selection, Hearth__V1__QuestionKind kind,
                         Hearth__V1__ExplainRequest *ret)
{
    hearth__v1__explain_request__init(ret);
    ret->kind = kind;
    ret->profile_type = selection->profile_type;
    ret->label_selector = selection->label_selector;
    ret->start = selection->start;
    ret->end = selection->end;
    ret->stacks = selection->stacks;
    ret->n_profile_ids = selection->n_profile_ids;
    ret->profile_ids = selection->profile_ids;
    ret->n_span_ids = selection->n_span_ids;
    ret->span_ids = selection->span_ids;
    ret->n_trace_ids = selection->n_trace_ids;
    ret->trace_ids = selection->trace_ids;
}

enum cli_exit cli_ask_explain(struct cli *cli, Hearth__V1__ExplainRequest *request)
{
    Hearth__V1__ExplainResponse *answer = NULL;
    enum hearth_status status = cli_call(cli, "hearth.v1.QueryService/Explain", request,
                                         &hearth__v1__explain_response__descriptor, &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    return show_plan(cli, request->profile_type,
                     request->kind != HEARTH__V1__QUESTION_KIND__QUESTION_KIND_CATALOGUE, answer);
}

/* The plan of a kind of query about the selection in an argument. */
static enum cli_exit explain_argument(struct cli *cli, size_t arg, Hearth__V1__QuestionKind kind)
{
    Hearth__V1__ExplainRequest request;
    Hearth__V1__Selection selection;
    enum hearth_status status = cli_selection(cli, arg, &selection);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    fill_explain(&selection, kind, &request);

    return cli_ask_explain(cli, &request);
}

enum cli_exit cli_explain_merge(struct cli *cli)
{
    return explain_argument(cli, 0, HEARTH__V1__QUESTION_KIND__QUESTION_KIND_MERGE);
}

enum cli_exit cli_explain_function(struct cli *cli)
{
    return explain_argument(cli, 1, HEARTH__V1__QUESTION_KIND__QUESTION_KIND_MERGE);
}

enum cli_exit cli_explain_label_stats(struct cli *cli)
{
    return explain_argument(cli, 1, HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_TOTALS);
}

enum cli_exit cli_explain_spans(struct cli *cli)
{
    return explain_argument(cli, 0, HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_ROWS);
}

enum cli_exit cli_explain_heatmap(struct cli *cli)
{
    return cli_is_by_span(cli)
               ? cli_explain_spans(cli)
               : explain_argument(cli, 0, HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_TOTALS);
}

/* Types, labels, values and series; cardinality counts the answer of series. */
static enum cli_exit explain_catalogue(struct cli *cli, size_t arg)
{
    Hearth__V1__ExplainRequest request;
    const char *selector;
    enum hearth_status status = cli_query_selector(cli, arg, &selector);

    status = status == HEARTH_OK ? cli_resolve_range(cli) : status;
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth__v1__explain_request__init(&request);
    request.kind = HEARTH__V1__QUESTION_KIND__QUESTION_KIND_CATALOGUE;
    request.label_selector = cli_field(cli, selector);
    request.start = cli->from_ms;
    request.end = cli->to_ms;

    return cli_ask_explain(cli, &request);
}

enum cli_exit cli_explain_catalogue(struct cli *cli)
{
    return explain_catalogue(cli, 0);
}

enum cli_exit cli_explain_values(struct cli *cli)
{
    return explain_catalogue(cli, 1);
}

enum cli_exit cli_explain_timeline(struct cli *cli)
{
    Hearth__V1__ExplainRequest request;
    Hearth__V1__Selection selection;
    enum hearth_status status = cli_selection(cli, 0, &selection);

    if (status == HEARTH_OK) {
        fill_explain(&selection, HEARTH__V1__QUESTION_KIND__QUESTION_KIND_TIME_SERIES, &request);
        status = cli_timeline_step(cli, &request.step);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    request.group_by = cli_by_names(cli);
    request.n_group_by = cli->n_by;

    return cli_ask_explain(cli, &request);
}
