/* cmd_limits.c -- hearth admin limits: the limits of a tenant, shown and changed. */
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli_call.h"
#include "cli_credential.h"
#include "cli_messages.h"
#include "listing.h"

#include <stdlib.h>

#define ADMIN  "hearth.v1.AdminService/"
#define GAUGES "gauge-aggregation"

/* The calls of this command are another tenant's than --tenant's. */
static enum hearth_status use_tenant(struct cli *cli, const char *tenant)
{
    struct hearth_client_options options;
    cli_client_options(cli, &options);
    options.tenant = cli->tenant = tenant;
    hearth_client_free(cli->client);
    cli->client = NULL;
    return cli_connect(cli, &options, &cli->client, &cli->err);
}

/* ---- showing ---- */

static const char *gauges_text(Hearth__V1__Aggregation aggregation)
{
    switch (aggregation) {
    case HEARTH__V1__AGGREGATION__AGGREGATION_SUM:
        return "sum";
    case HEARTH__V1__AGGREGATION__AGGREGATION_MEAN:
        return "mean";
    default:
        return "default";
    }
}

static enum cli_exit print_limits(struct cli *cli, const Hearth__V1__Limits *limits)
{
    struct cli_listing list;

    cli_list_begin(cli, &list);
    for (size_t i = 0; i < limits->n_limits; i++) {
        const Hearth__V1__Limit *limit = limits->limits[i];
        cli_list_text(&list, limit->name);
        cli_list_text(&list, limit->value);
        cli_list_number(&list, limit->is_own);
        cli_list_text(&list, limit->server_value);
    }
    if (cli->output != CLI_JSON) {
        Hearth__V1__GetTenantSettingsRequest request;
        hearth__v1__get_tenant_settings_request__init(&request);
        Hearth__V1__TenantSettings *settings = NULL;
        enum hearth_status status = cli_call(cli, ADMIN "GetTenantSettings", &request,
                                             &hearth__v1__tenant_settings__descriptor, &settings);
        if (status != HEARTH_OK) {
            cli_list_drop(&list);
            return cli_fail(cli, status);
        }
        const char *gauges = gauges_text(settings->gauge_aggregation);
        cli_list_text(&list, GAUGES);
        cli_list_text(&list, gauges);
        cli_list_number(&list, strcmp(gauges, "default") != 0);
        cli_list_absent(&list);
    }

    return cli_list_end(&list, &limits->base);
}

/* ---- changing ---- */

static enum hearth_status set_gauges(struct cli *cli, const char *value)
{
    Hearth__V1__TenantSettings request;
    hearth__v1__tenant_settings__init(&request);
    Hearth__V1__TenantSettings *answer = NULL;
    if (strcmp(value, "sum") == 0) {
        request.gauge_aggregation = HEARTH__V1__AGGREGATION__AGGREGATION_SUM;
    } else if (strcmp(value, "mean") == 0) {
        request.gauge_aggregation = HEARTH__V1__AGGREGATION__AGGREGATION_MEAN;
    } else if (strcmp(value, "default") != 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           GAUGES " must be sum, mean or default, not \"%.60s\"", value);
    }
    return cli_call(cli, ADMIN "SetTenantSettings", &request,
                    &hearth__v1__tenant_settings__descriptor, &answer);
}

/* Puts the words name=value into one request; gauge-aggregation is another method, called first. */
static enum hearth_status change_limits(struct cli *cli, size_t first,
                                        Hearth__V1__Limits **ret_answer)
{
    Hearth__V1__LimitChange bodies[CLI_MAX_LABELS], *list[CLI_MAX_LABELS];
    Hearth__V1__SetLimitsRequest request;

    hearth__v1__set_limits_request__init(&request);
    request.changes = list;
    for (size_t i = first; i < cli->n_args; i++) {
        struct hearth_str word = hearth_str_c(cli->args[i]);
        size_t eq = hearth_str_find(word, '=', 0);
        if (eq == word.n || request.n_changes == CLI_MAX_LABELS) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "\"%.60s\" is not NAME=VALUE",
                               cli->args[i]);
        }
        const char *value = cli->args[i] + eq + 1;
        if (hearth_str_eq_c(hearth_str_n(word.p, eq), GAUGES)) {
            HEARTH_TRY(set_gauges(cli, value));
            continue;
        }
        Hearth__V1__LimitChange *body = &bodies[request.n_changes];
        hearth__v1__limit_change__init(body);
        body->name = hearth_arena_strndup(&cli->arena, word.p, eq);
        body->value = cli_field(cli, value);
        if (body->name == NULL || body->value == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        list[request.n_changes++] = body;
    }

    return request.n_changes == 0 ? HEARTH_OK
                                  : cli_call(cli, ADMIN "SetLimits", &request,
                                             &hearth__v1__limits__descriptor, ret_answer);
}

enum cli_exit cli_admin_limits(struct cli *cli)
{
    size_t first = cli->n_args > 0 && strchr(cli->args[0], '=') == NULL ? 1 : 0;
    Hearth__V1__Limits *answer = NULL;
    enum hearth_status status = first == 1 ? use_tenant(cli, cli->args[0]) : HEARTH_OK;
    if (status == HEARTH_OK && cli->n_args > first) {
        status = change_limits(cli, first, &answer);
    }
    if (status == HEARTH_OK && answer == NULL) {
        Hearth__V1__GetLimitsRequest request;
        hearth__v1__get_limits_request__init(&request);
        status =
            cli_call(cli, ADMIN "GetLimits", &request, &hearth__v1__limits__descriptor, &answer);
    }
    return status == HEARTH_OK ? print_limits(cli, answer) : cli_fail(cli, status);
}
