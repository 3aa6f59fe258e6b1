/* cmd_usage.c -- hearth admin usage: what a tenant uses of a server, beside its limits. */
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "text.h"

#include <string.h>

#define ADMIN "hearth.v1.AdminService/"

/* The unit of a limit or a use, which its name has. */
static struct hearth_str unit_of(const char *name)
{
    return strstr(name, "bytes") != NULL         ? HEARTH_STR("bytes")
           : strstr(name, "nanoseconds") != NULL ? HEARTH_STR("nanoseconds")
                                                 : HEARTH_STR("count");
}

static void add_limit(struct cli_listing *list, const Hearth__V1__LimitedUse *use)
{
    struct hearth_str unit = unit_of(use->limit);

    cli_list_text(list, use->limit);
    cli_list_value(list, use->used, unit);
    if (use->max == 0) {
        cli_list_absent(list);
    } else {
        cli_list_value(list, use->max, unit);
    }
    cli_list_number(list, use->refused);
    cli_list_absent(list);
    cli_list_value(list, use->refused_last_minute, HEARTH_STR("count"));
    cli_list_str(list, unit);
}

static void add_use(struct cli_listing *list, const Hearth__V1__CountedUse *use)
{
    struct hearth_str unit = unit_of(use->name);

    cli_list_text(list, use->name);
    for (int i = 0; i < 3; i++) {
        cli_list_absent(list);
    }
    cli_list_value(list, use->total, unit);
    cli_list_value(list, use->last_minute, unit);
    cli_list_str(list, unit);
}

enum cli_exit cli_admin_usage(struct cli *cli)
{
    Hearth__V1__UsageRequest request;
    Hearth__V1__UsageResponse *answer = NULL;

    hearth__v1__usage_request__init(&request);
    enum hearth_status status =
        cli_call(cli, ADMIN "Usage", &request, &hearth__v1__usage_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_limits; i++) {
        add_limit(&list, answer->limits[i]);
    }
    for (size_t i = 0; i < answer->n_uses && answer->since_ms > 0; i++) {
        add_use(&list, answer->uses[i]);
    }
    if (answer->since_ms > 0) {
        char since[48];
        cli_zoned_seconds(answer->since_ms, since);
        hearth_buf_printf(&list.foot, "refusals and totals: on this server since %s\n", since);
    }

    return cli_list_end(&list, &answer->base);
}
