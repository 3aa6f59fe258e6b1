/* cmd_targets.c -- hearth admin targets: what servers fetch profiles from, and how it went. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"

#define ADMIN "hearth.v1.AdminService/"

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

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "no server fetches profiles; hearthd --scrape-config names targets";
    for (size_t i = 0; i < answer->n_targets; i++) {
        const Hearth__V1__ScrapeTarget *target = answer->targets[i];
        bool has_failed = target->failure[0] != '\0';
        cli_list_text(&list, target->job);
        cli_list_str(&list, hearth_str_c(hearth_arena_printf(&cli->arena, "%s%s", target->address,
                                                             target->path)));
        cli_list_time(&list, target->scraped_ms);
        if (target->scraped_ms > 0) {
            cli_list_number(&list, target->took_ms * HEARTH_NS_PER_MS);
            cli_list_number(&list, target->bytes);
        } else {
            cli_list_absent(&list);
            cli_list_absent(&list);
        }
        cli_list_text(&list, !target->claimed ? "unclaimed" : has_failed ? "failed" : "ok");
        cli_list_text(&list, target->failure);
    }

    return cli_list_end(&list, &answer->base);
}
