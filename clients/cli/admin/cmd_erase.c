/* cmd_erase.c -- hearth admin erase and erasures. */
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "text.h"
#include "why.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ADMIN "hearth.v1.AdminService/"

static enum hearth_status ask_erase(struct cli *cli, Hearth__V1__EraseRequest *request,
                                    Hearth__V1__EraseResponse **ret_answer)
{
    return cli_call(cli, ADMIN "Erase", request, &hearth__v1__erase_response__descriptor,
                    ret_answer);
}

static enum hearth_status prepare_erase(struct cli *cli, Hearth__V1__EraseRequest *request)
{
    const char *selector;

    HEARTH_TRY(cli_selector(cli, 0, &selector));
    if (cli->all) {
        request->start = 0;
        request->end = INT64_MAX;
    } else {
        HEARTH_TRY(cli_resolve_range(cli));
        request->start = cli->from_ms;
        request->end = cli->to_ms;
    }
    const char *user = getenv("USER");
    user = user == NULL || user[0] == '\0' ? "hearth" : user;
    char *by = cli->reason == NULL ? hearth_arena_strndup(&cli->arena, user, strlen(user))
                                   : hearth_arena_printf(&cli->arena, "%s: %s", user, cli->reason);
    request->label_selector = cli_field(cli, selector);
    request->requested_by = by;

    return by == NULL || request->label_selector == NULL ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena)
                                                         : HEARTH_OK;
}

/* A person says yes by the number that a slip in the selector would change. */
static bool is_confirmed(int64_t n_series)
{
    char line[64];
    (void)fprintf(stderr, "This cannot be undone. Type the number of series to delete them: ");
    (void)fflush(stderr);
    if (fgets(line, sizeof line, stdin) == NULL) {
        return false;
    }
    int64_t typed;
    return hearth_str_to_i64(hearth_str_trim(hearth_str_c(line)), &typed) && typed == n_series;
}

static enum cli_exit print_erased(struct cli *cli, const Hearth__V1__EraseResponse *answer)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (answer->erasure_id > 0) {
        char series[64];
        cli_number(answer->series, "series", "series", series);
        hearth_buf_printf(&out,
                          "deletion %lld: %s hidden now, removed from the disk within minutes; "
                          "`hearth admin erasures` says when\n",
                          (long long)answer->erasure_id, series);
    } else {
        hearth_buf_cstr(&out, "nothing was deleted (--dry-run)\n");
    }
    return cli_print_answer(cli, &answer->base, &out);
}

static enum cli_exit run_erase(struct cli *cli, Hearth__V1__EraseRequest *request,
                               const Hearth__V1__EraseResponse *counted)
{
    bool asks = !cli->yes && isatty(STDIN_FILENO) == 1;

    if (!cli->yes && !asks) {
        return cli_usage(
            "standard input is not a terminal: --yes deletes without asking, --dry-run "
            "only counts");
    }
    if (asks && !is_confirmed(counted->series)) {
        (void)fprintf(stderr, "hearth: nothing was deleted\n");
        return CLI_FAILED;
    }
    request->dry_run = false;
    request->expected_series_presence_case =
        HEARTH__V1__ERASE_REQUEST__EXPECTED_SERIES_PRESENCE_EXPECTED_SERIES;
    request->expected_series = counted->series;
    Hearth__V1__EraseResponse *answer = NULL;
    enum hearth_status status = ask_erase(cli, request, &answer);

    return status == HEARTH_OK ? print_erased(cli, answer) : cli_fail(cli, status);
}

enum cli_exit cli_admin_erase(struct cli *cli)
{
    if (cli->n_args == 0) {
        return cli_usage("admin erase requires a selector; '{}' selects everything");
    }
    if (!cli->all && cli->since == NULL && cli->from == NULL) {
        return cli_usage("admin erase requires a range: --since 1h, --from T --to T, or --all");
    }
    if (cli->all && (cli->since != NULL || cli->from != NULL || cli->to != NULL)) {
        return cli_usage("--all cannot be combined with --since, --from or --to");
    }
    Hearth__V1__EraseRequest request;
    hearth__v1__erase_request__init(&request);
    request.dry_run = true;
    Hearth__V1__EraseResponse *counted = NULL;
    enum hearth_status status = prepare_erase(cli, &request);
    if (status == HEARTH_OK) {
        status = ask_erase(cli, &request, &counted);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    char series[64], services[64];
    cli_number(counted->series, "series", "series", series);
    cli_number(counted->services, "service", "services", services);
    (void)fprintf(stderr, "%s of %s match\n", series, services);
    if (cli->dry_run) {
        return print_erased(cli, counted);
    }

    return counted->series == 0 ? cli_no_data(cli) : run_erase(cli, &request, counted);
}

/* ---- erasures ---- */

enum cli_exit cli_admin_erasures(struct cli *cli)
{
    Hearth__V1__ErasuresRequest request;

    hearth__v1__erasures_request__init(&request);
    Hearth__V1__ErasuresResponse *answer = NULL;
    enum hearth_status status = cli_call(cli, ADMIN "Erasures", &request,
                                         &hearth__v1__erasures_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "nothing was ever deleted";
    for (size_t i = 0; i < answer->n_erasures; i++) {
        const Hearth__V1__Erasure *e = answer->erasures[i];
        cli_list_number(&list, e->erasure_id);
        cli_list_time(&list, e->requested_at_ms);
        cli_list_text(&list, e->done_at_ms > 0 ? "gone" : "hidden");
        cli_list_time(&list, e->done_at_ms);
        cli_list_number(&list, e->series);
        cli_list_number(&list, e->rows);
        cli_list_time(&list, e->start);
        cli_list_time(&list, e->start > 0 ? e->end : 0);
        cli_list_text(&list, e->requested_by);
        cli_list_text(&list, e->label_selector);
    }

    return cli_list_end(&list, &answer->base);
}
