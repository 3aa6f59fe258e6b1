/* cmd_changes.c -- what changed beyond noise in any service, as the server judges it. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "cli.h"

#include <stdio.h>

/* The base lies --against before the range: without it a day, or the length of a longer range. */
static enum hearth_status read_base(struct cli *cli, Hearth__V1__ChangesRequest *request)
{
    struct hearth_str against = hearth_str_c(cli->against == NULL ? "1d" : cli->against);
    struct hearth_str ago = HEARTH_STR("-ago");
    int64_t ns;

    if (against.n > ago.n && hearth_str_ends(against, ago)) {
        against.n -= ago.n;
    }
    if (hearth_duration_parse(against, &ns, &cli->err) != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "--against");
        return cli->err.status;
    }
    int64_t length = cli->to_ms - cli->from_ms, before = ns / HEARTH_NS_PER_MS;
    before = cli->against == NULL && length > before ? length : before;
    request->base_start = cli->from_ms - before;
    request->base_end = cli->to_ms - before;

    char a[32], b[32];
    cli_zoned(request->base_start * HEARTH_NS_PER_MS, a);
    cli_zoned(request->base_end * HEARTH_NS_PER_MS, b);
    (void)fprintf(stderr, "base: %s to %s\n", a, b);

    return HEARTH_OK;
}

static enum hearth_status ask_changes(struct cli *cli, Hearth__V1__ChangesResponse **ret)
{
    Hearth__V1__ChangesRequest request;
    const char *selector;

    hearth__v1__changes_request__init(&request);
    HEARTH_TRY(cli_resolve_range(cli));
    HEARTH_TRY(cli_query_selector(cli, 0, &selector));
    if (cli->type != NULL) {
        HEARTH_TRY(cli_complete_type(cli, selector));
        request.profile_type = cli_field(cli, cli->type);
    }
    HEARTH_TRY(read_base(cli, &request));
    request.label_selector = cli_field(cli, selector);
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    request.limit = cli->has_limit ? cli->limit : 30;

    return cli_call(cli, "hearth.v1.QueryService/Changes", &request,
                    &hearth__v1__changes_response__descriptor, ret);
}

static void print_change(const struct cli *cli, const Hearth__V1__ServiceChange *change,
                         struct hearth_buf *out)
{
    const Hearth__V1__FunctionChange *function = change->function;
    char cost[32], sides[2][32], by[32], q[32];
    struct hearth_str type = hearth_str_c(change->profile_type);

    cli_percent(change->cost, 1, true, cost);
    cli_percent((double)function->left_self, (double)change->left_total, false, sides[0]);
    cli_percent((double)function->right_self, (double)change->right_total, false, sides[1]);
    cli_percent(function->change, 1, true, by);
    (void)snprintf(q, sizeof q, "%.2g", function->q);
    hearth_buf_printf(out, "%8s  %8s %8s %8s %8s  ", cost, sides[0], sides[1], by, q);
    cli_fit(hearth_str_c(change->service), 20, true, out);
    hearth_buf_cstr(out, "  ");

    /* The first two parts of a type tell it from others. */
    type.n = hearth_str_find(type, ':', hearth_str_find(type, ':', 0) + 1);
    cli_fit(type, 16, true, out);
    hearth_buf_cstr(out, "  ");
    cli_fit(hearth_str_c(function->name), cli->width > 125 ? cli->width - 85 : 40, false, out);
    hearth_buf_byte(out, '\n');
}

static void print_changes(const struct cli *cli, const Hearth__V1__ChangesResponse *answer,
                          struct hearth_buf *out)
{
    if (answer->n_changes > 0) {
        hearth_buf_printf(out, "%8s  %8s %8s %8s %8s  %-20s  %-16s  %s\n", "cost", "base", "now",
                          "change", "q", "service", "type", "function");
    }
    for (size_t i = 0; i < answer->n_changes; i++) {
        print_change(cli, answer->changes[i], out);
    }
    if ((int64_t)answer->n_changes < answer->change_count) {
        hearth_buf_printf(out, "%zu of %lld changes shown; --limit shows more\n", answer->n_changes,
                          (long long)answer->change_count);
    }
    hearth_buf_printf(out,
                      "beyond noise: %lld of %lld functions in %lld comparisons of a service and a "
                      "type\n",
                      (long long)answer->change_count, (long long)answer->judged_functions,
                      (long long)answer->compared);
    if (answer->unjudged > 0) {
        hearth_buf_printf(out,
                          "not judged: %lld comparisons with data in fewer than 4 slices of time "
                          "and 4 series\n",
                          (long long)answer->unjudged);
    }
    if (answer->one_sided > 0) {
        hearth_buf_printf(out, "not compared: %lld with data in one of the ranges\n",
                          (long long)answer->one_sided);
    }
    if (answer->left_out > 0) {
        hearth_buf_printf(out,
                          "not compared: the %lld smallest (max-compared-pairs); a selector or "
                          "--type narrows the search\n",
                          (long long)answer->left_out);
    }
}

enum cli_exit cli_changes(struct cli *cli)
{
    Hearth__V1__ChangesResponse *answer = NULL;
    struct hearth_buf out;
    enum hearth_status status = ask_changes(cli, &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->compared + answer->one_sided == 0) {
        return cli_no_data(cli);
    }
    hearth_buf_init(&out, 0);
    print_changes(cli, answer, &out);

    return cli_print_answer(cli, &answer->base, &out);
}
