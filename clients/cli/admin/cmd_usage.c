/* cmd_usage.c -- hearth admin usage: what a tenant uses of a server, beside its limits. */
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli.h"

#include <string.h>

#define ADMIN "hearth.v1.AdminService/"

static void format_use(const char *name, int64_t value, char out[48])
{
    if (strstr(name, "bytes") != NULL) {
        cli_value((double)value, HEARTH_STR("bytes"), out);
    } else if (strstr(name, "nanoseconds") != NULL) {
        cli_value((double)value, HEARTH_STR("nanoseconds"), out);
    } else {
        cli_count(value, out);
    }
}

static void print_limits(const Hearth__V1__UsageResponse *answer, struct hearth_buf *out)
{
    char used[48], max[48], refused[48], minute[48];

    hearth_buf_printf(out, "%-32s %11s %11s %11s %11s\n", "limit", "used", "at most", "refused",
                      "last minute");
    for (size_t i = 0; i < answer->n_limits; i++) {
        const Hearth__V1__LimitedUse *use = answer->limits[i];
        format_use(use->limit, use->used, used);
        format_use(use->limit, use->max, max);
        cli_count(use->refused, refused);
        cli_count(use->refused_last_minute, minute);
        hearth_buf_printf(out, "%-32s %11s %11s %11s %11s\n", use->limit, used,
                          use->max == 0 ? "-" : max, refused, minute);
    }
}

enum cli_exit cli_admin_usage(struct cli *cli)
{
    Hearth__V1__UsageRequest request;
    Hearth__V1__UsageResponse *answer = NULL;
    char since[64], total[48], minute[48];

    hearth__v1__usage_request__init(&request);
    enum hearth_status status =
        cli_call(cli, ADMIN "Usage", &request, &hearth__v1__usage_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    print_limits(answer, &out);
    if (answer->since_ms > 0) {
        cli_date(answer->since_ms, since);
        hearth_buf_printf(&out, "\non this server since %-19s %11s %11s\n", since, "total",
                          "last minute");
    }
    for (size_t i = 0; i < answer->n_uses && answer->since_ms > 0; i++) {
        format_use(answer->uses[i]->name, answer->uses[i]->total, total);
        format_use(answer->uses[i]->name, answer->uses[i]->last_minute, minute);
        hearth_buf_printf(&out, "%-40s %11s %11s\n", answer->uses[i]->name, total, minute);
    }

    return cli_print_answer(cli, &answer->base, &out);
}
