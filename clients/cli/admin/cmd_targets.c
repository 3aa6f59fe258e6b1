/* cmd_targets.c -- hearth admin targets: what servers fetch profiles from, and how it went. */
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli.h"

#include <stdio.h>

#define ADMIN "hearth.v1.AdminService/"

static void print_target(const Hearth__V1__ScrapeTarget *target, struct hearth_buf *out)
{
    char at[64] = "not yet", took[48] = "", bytes[48] = "";
    char where[512];

    if (target->scraped_ms > 0) {
        cli_date(target->scraped_ms, at);
        cli_value((double)target->took_ms * 1e6, HEARTH_STR("nanoseconds"), took);
        cli_value((double)target->bytes, HEARTH_STR("bytes"), bytes);
    }

    (void)snprintf(where, sizeof where, "%.200s%.200s", target->address, target->path);
    cli_fit(hearth_str_c(target->job), 16, true, out);
    hearth_buf_cstr(out, "  ");
    cli_fit(hearth_str_c(where), 48, true, out);
    hearth_buf_printf(out, "  %-20s %10s %11s\n", at, took, bytes);
    if (!target->claimed) {
        hearth_buf_cstr(out, "    no server fetches it\n");
    }
    if (target->failure[0] != '\0') {
        hearth_buf_cstr(out, "    ");
        cli_fit(hearth_str_c(target->failure), 512, false, out);
        hearth_buf_cstr(out, "\n");
    }
}

enum cli_exit cli_admin_targets(struct cli *cli)
{
    Hearth__V1__ScrapeTargetsRequest request;
    Hearth__V1__ScrapeTargetsResponse *answer = NULL;

    hearth__v1__scrape_targets_request__init(&request);
    enum hearth_status status = cli_call(cli, ADMIN "ScrapeTargets", &request,
                                         &hearth__v1__scrape_targets_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (answer->n_targets == 0) {
        hearth_buf_cstr(&out,
                        "no server fetches profiles; hearthd --scrape-config names targets\n");
    } else {
        hearth_buf_printf(&out, "%-16s  %-48s  %-20s %10s %11s\n", "job", "target", "latest",
                          "took", "size");
    }
    for (size_t i = 0; i < answer->n_targets; i++) {
        print_target(answer->targets[i], &out);
    }

    return cli_print_answer(cli, &answer->base, &out);
}
