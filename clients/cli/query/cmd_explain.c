/* cmd_explain.c -- --explain: what a query would read, from which tables, and the estimated time. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

#include <stdio.h>

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

static void print_plan_row(const char *what, int64_t rows, int64_t bytes, double ms, int64_t series,
                           const char *range, struct hearth_buf *out)
{
    char reads[32], size[48], time[48], n[32];
    cli_count(rows, reads);
    format_value((double)bytes, "bytes", size);
    format_value(ms * 1e6, "nanoseconds", time);
    hearth_buf_printf(out, "%-34s %11s %10s %9s", what, reads, size, time);
    if (series >= 0) {
        cli_count(series, n);
        hearth_buf_printf(out, " %9s  %s", n, range);
    }
    hearth_buf_byte(out, '\n');
}

static void print_leg(const Hearth__V1__ExplainLeg *leg, struct hearth_buf *out)
{
    char what[64], from[32], to[32], range[80];
    cli_date(leg->from_ns / HEARTH_NS_PER_MS, from);
    cli_date(leg->to_ns / HEARTH_NS_PER_MS, to);
    bool same_day = strncmp(from, to, 10) == 0;
    (void)snprintf(range, sizeof range, "%s to %s", from, same_day ? to + 11 : to);
    (void)snprintf(what, sizeof what, "%s%s", source_name(leg->source),
                   leg->whole_service ? ", whole service" : "");
    print_plan_row(what, leg->rows, leg->bytes, leg->milliseconds, leg->series, range, out);
}

static void print_plan(const Hearth__V1__ExplainRequest *request,
                       const Hearth__V1__ExplainResponse *e, struct hearth_buf *out)
{
    char from[32], to[32], series[64], services[64];
    cli_date(e->from_ns / HEARTH_NS_PER_MS, from);
    cli_date(e->to_ns / HEARTH_NS_PER_MS, to);
    cli_number(e->series, "series", "series", series);
    cli_number(e->services, "service", "services", services);

    hearth_buf_printf(out, "%s of %s: %s, %s to %s\n\n", series, services, request->profile_type,
                      from, to);
    hearth_buf_printf(out, "%-34s %11s %10s %9s %9s  %s\n", "source", "reads", "bytes", "about",
                      "series", "range");
    for (size_t i = 0; i < e->n_legs; i++) {
        print_leg(e->legs[i], out);
    }
    if (e->n_totals > 1 && e->n_totals < e->n_legs) {
        hearth_buf_byte(out, '\n');
        for (size_t i = 0; i < e->n_totals; i++) {
            const Hearth__V1__ExplainTotal *t = e->totals[i];
            print_plan_row(source_name(t->source), t->rows, t->bytes, t->milliseconds, -1, "", out);
        }
    }
    print_plan_row("all", e->rows, e->bytes, e->milliseconds, -1, "", out);
    for (size_t i = 0; i < e->n_notes; i++) {
        hearth_buf_cstr(out, i == 0 ? "\nnote: " : "note: ");
        cli_fit(hearth_str_c(e->notes[i]), 1000, false, out);
        hearth_buf_byte(out, '\n');
    }
}

/* Fields that both kinds have. */
static enum hearth_status prepare_explain(struct cli *cli, Hearth__V1__ExplainRequest *request)
{
    const char *selector, *type;
    HEARTH_TRY(cli_query_selector(cli, 0, &selector));
    HEARTH_TRY(cli_resolve_range(cli));
    HEARTH_TRY(cli_profile_type(cli, selector, &type));
    request->profile_type = cli_field(cli, type);
    request->label_selector = cli_field(cli, selector);
    request->start = cli->from_ms;
    request->end = cli->to_ms;
    if (cli_has_stack_filter(cli)) {
        request->stacks = hearth_arena_alloc(&cli->arena, sizeof *request->stacks);
        if (request->stacks == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        hearth__v1__stack_filter__init(request->stacks);
        cli_stack_filter(cli, request->stacks);
    }

    return cli->arena.refused || request->profile_type == NULL || request->label_selector == NULL
               ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena)
               : HEARTH_OK;
}

static enum cli_exit ask_explain(struct cli *cli, Hearth__V1__ExplainRequest *request,
                                 enum hearth_status status)
{
    Hearth__V1__ExplainResponse *answer = NULL;

    if (status == HEARTH_OK) {
        status = cli_call(cli, "hearth.v1.QueryService/Explain", request,
                          &hearth__v1__explain_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->series == 0) {
        return cli_no_data(cli);
    }
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    print_plan(request, answer, &text);

    return cli_print_answer(cli, &answer->base, &text);
}

enum cli_exit cli_explain_merge(struct cli *cli)
{
    Hearth__V1__ExplainRequest request;
    hearth__v1__explain_request__init(&request);
    request.kind = HEARTH__V1__QUESTION_KIND__QUESTION_KIND_MERGE;
    return ask_explain(cli, &request, prepare_explain(cli, &request));
}

enum cli_exit cli_explain_timeline(struct cli *cli)
{
    Hearth__V1__ExplainRequest request;
    hearth__v1__explain_request__init(&request);
    request.kind = HEARTH__V1__QUESTION_KIND__QUESTION_KIND_TIME_SERIES;
    enum hearth_status status = prepare_explain(cli, &request);
    if (status == HEARTH_OK) {
        status = cli_timeline_step(cli, &request.step);
    }
    request.group_by = cli_by_names(cli);
    request.n_group_by = cli->n_by;
    return ask_explain(cli, &request, status);
}
