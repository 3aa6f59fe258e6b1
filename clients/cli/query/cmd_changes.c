/* cmd_changes.c -- what changed beyond noise in any service, as the server judges it. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_explain.h"
#include "listing.h"
#include "text.h"
#include "why.h"

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
    request.explain = cli->explain;
    request.limit = cli->has_limit ? cli->limit : cli_is_table(cli) ? 30 : INT64_MAX;

    return cli_call(cli, "hearth.v1.QueryService/Changes", &request,
                    &hearth__v1__changes_response__descriptor, ret);
}

/* The numbers of a row, which are of the self or of the total. */
static void add_numbers(struct cli_listing *list, const Hearth__V1__ServiceChange *change)
{
    const Hearth__V1__FunctionChange *self = change->function;
    const Hearth__V1__TotalChange *total = change->total;
    bool of_total = change->of_total;
    int64_t base = of_total ? total->left_total : self->left_self;
    int64_t now = of_total ? total->right_total : self->right_self;

    cli_list_text(list, of_total ? "total" : "self");
    cli_list_share(list, (double)base, (double)change->left_total);
    cli_list_share(list, (double)now, (double)change->right_total);
    cli_list_real(list, 100 * (of_total ? total->change : self->change));
    cli_list_real(list, 100 * (of_total ? total->low : self->low));
    cli_list_real(list, 100 * (of_total ? total->high : self->high));
    cli_list_real(list, of_total ? total->q : self->q);
}

static void add_change(struct cli_listing *list, const Hearth__V1__ServiceChange *change)
{
    struct hearth_str type = hearth_str_c(change->profile_type);

    cli_list_real(list, 100 * change->cost);
    add_numbers(list, change);
    cli_list_text(list, change->service);
    cli_list_str(
        list, hearth_str_n(type.p, hearth_str_find(type, ':', hearth_str_find(type, ':', 0) + 1)));
    cli_list_str(list, type);
    cli_list_text(list, change->function->name);
}

/* How much was compared, and what was not. */
static void put_compared(const Hearth__V1__ChangesResponse *answer, struct hearth_buf *out)
{
    char compared[64], unjudged[64];

    if ((int64_t)answer->n_changes < answer->change_count) {
        hearth_buf_printf(out, "%zu of %lld changes shown; --limit shows more\n", answer->n_changes,
                          (long long)answer->change_count);
    }
    cli_number(answer->compared, "comparison", "comparisons", compared);
    int64_t judged = answer->judged_totals > answer->judged_functions ? answer->judged_totals
                                                                      : answer->judged_functions;
    hearth_buf_printf(out, "beyond noise: %lld of %lld functions in %s of a service and a type\n",
                      (long long)answer->change_count, (long long)judged, compared);
    if (answer->unjudged > 0) {
        cli_number(answer->unjudged, "comparison", "comparisons", unjudged);
        hearth_buf_printf(out,
                          "not judged: %s with data in fewer than 4 slices of time and 4 series\n",
                          unjudged);
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
    struct cli_listing list;
    enum hearth_status status = ask_changes(cli, &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->compared + answer->one_sided == 0) {
        return cli_no_data(cli);
    }
    cli_list_begin(cli, &list);
    list.empty = "nothing changed beyond noise";
    for (size_t i = 0; i < answer->n_changes; i++) {
        add_change(&list, answer->changes[i]);
    }
    put_compared(answer, &list.foot);

    return cli_list_end(&list, &answer->base);
}

enum cli_exit cli_explain_changes(struct cli *cli)
{
    Hearth__V1__ChangesResponse *answer = NULL;
    enum hearth_status status = ask_changes(cli, &answer);

    return status == HEARTH_OK
               ? cli_print_plan(cli, cli->type == NULL ? "" : cli->type, answer->plan)
               : cli_fail(cli, status);
}
