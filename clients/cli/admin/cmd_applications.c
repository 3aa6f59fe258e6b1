/* cmd_applications.c -- hearth admin applications: services and their owners, rules that switch profiling. */
#include "hearth/pb/hearth/v1/applications.pb-c.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"

#include <stdlib.h>
#include <string.h>

#define APPLICATIONS "hearth.v1.ApplicationService/"

static const char *const PROFILING[] = {"rules", "on", "off"};

static const char *name_profiling(int profiling)
{
    return profiling >= 0 && profiling <= 2 ? PROFILING[profiling] : "?";
}

/* on, off or rules. */
static enum hearth_status read_profiling(struct cli *cli, Hearth__V1__Profiling *ret)
{
    const char *text = cli->profiling;

    if (strcmp(text, "on") == 0) {
        *ret = HEARTH__V1__PROFILING__PROFILING_ON;
    } else if (strcmp(text, "off") == 0) {
        *ret = HEARTH__V1__PROFILING__PROFILING_OFF;
    } else if (strcmp(text, "rules") == 0) {
        *ret = HEARTH__V1__PROFILING__PROFILING_UNSPECIFIED;
    } else {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--profiling is on, off or rules, not \"%.60s\"", text);
    }

    return HEARTH_OK;
}

static char *user_name(struct cli *cli)
{
    const char *user = getenv("USER");
    return cli_field(cli, user != NULL ? user : "");
}

/* ---- applications ---- */

static void add_application(struct cli_listing *list, const Hearth__V1__Application *a)
{
    cli_list_text(list, a->name);
    cli_list_text(list, name_profiling((int)a->profiling));
    cli_list_number(list, a->approved);
    cli_list_time(list, a->last_seen_ms);
    cli_list_text(list, a->owner);
    cli_list_text(list, a->description);
}

enum cli_exit cli_applications_list(struct cli *cli)
{
    Hearth__V1__ListApplicationsRequest request;
    Hearth__V1__ListApplicationsResponse *answer = NULL;
    hearth__v1__list_applications_request__init(&request);
    enum hearth_status status =
        cli_call(cli, APPLICATIONS "List", &request,
                 &hearth__v1__list_applications_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "no service has sent a profile";
    for (size_t i = 0; i < answer->n_applications; i++) {
        add_application(&list, answer->applications[i]);
    }

    return cli_list_end(&list, &answer->base);
}

static enum cli_exit end_application(struct cli *cli, const Hearth__V1__Application *answer)
{
    struct cli_listing list;
    cli_list_begin(cli, &list);
    add_application(&list, answer);
    return cli_list_end(&list, &answer->base);
}

enum cli_exit cli_applications_show(struct cli *cli)
{
    Hearth__V1__GetApplicationRequest request;
    Hearth__V1__Application *answer = NULL;
    hearth__v1__get_application_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_call(cli, APPLICATIONS "Get", &request, &hearth__v1__application__descriptor, &answer);
    return status == HEARTH_OK ? end_application(cli, answer) : cli_fail(cli, status);
}

enum cli_exit cli_applications_set(struct cli *cli)
{
    Hearth__V1__SetApplicationRequest request;
    Hearth__V1__Application *answer = NULL;
    hearth__v1__set_application_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    request.updated_by = user_name(cli);
    if (cli->owner != NULL) {
        request.owner_presence_case = HEARTH__V1__SET_APPLICATION_REQUEST__OWNER_PRESENCE_OWNER;
        request.owner = cli_field(cli, cli->owner);
    }
    if (cli->description != NULL) {
        request.description_presence_case =
            HEARTH__V1__SET_APPLICATION_REQUEST__DESCRIPTION_PRESENCE_DESCRIPTION;
        request.description = cli_field(cli, cli->description);
    }
    if (cli->approve || cli->withdraw) {
        request.approved_presence_case =
            HEARTH__V1__SET_APPLICATION_REQUEST__APPROVED_PRESENCE_APPROVED;
        request.approved = cli->approve;
    }

    enum hearth_status status = HEARTH_OK;
    if (cli->profiling != NULL) {
        request.profiling_presence_case =
            HEARTH__V1__SET_APPLICATION_REQUEST__PROFILING_PRESENCE_PROFILING;
        status = read_profiling(cli, &request.profiling);
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, APPLICATIONS "Set", &request, &hearth__v1__application__descriptor,
                          &answer);
    }

    return status == HEARTH_OK ? end_application(cli, answer) : cli_fail(cli, status);
}

enum cli_exit cli_applications_delete(struct cli *cli)
{
    Hearth__V1__DeleteApplicationRequest request;
    Hearth__V1__DeleteApplicationResponse *answer = NULL;
    struct hearth_buf out;
    hearth__v1__delete_application_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_call(cli, APPLICATIONS "Delete", &request,
                 &hearth__v1__delete_application_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth_buf_init(&out, 0);
    return cli_print_answer(cli, &answer->base, &out);
}

/* ---- rules ---- */

static void add_application_rule(struct cli_listing *list, const Hearth__V1__ApplicationRule *rule)
{
    cli_list_text(list, rule->name);
    cli_list_text(list, name_profiling((int)rule->profiling));
    cli_list_text(list, rule->label_selector);
}

enum cli_exit cli_applications_rule_list(struct cli *cli)
{
    Hearth__V1__ListApplicationRulesRequest request;
    Hearth__V1__ListApplicationRulesResponse *answer = NULL;
    hearth__v1__list_application_rules_request__init(&request);
    enum hearth_status status =
        cli_call(cli, APPLICATIONS "ListRules", &request,
                 &hearth__v1__list_application_rules_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "there are no rules";
    for (size_t i = 0; i < answer->n_rules; i++) {
        add_application_rule(&list, answer->rules[i]);
    }

    return cli_list_end(&list, &answer->base);
}

enum cli_exit cli_applications_rule_add(struct cli *cli)
{
    Hearth__V1__ApplicationRule request;
    Hearth__V1__ApplicationRule *answer = NULL;
    struct cli_listing list;
    hearth__v1__application_rule__init(&request);
    if (cli->profiling == NULL) {
        return cli_usage("admin applications rule add NAME SELECTOR requires --profiling on|off");
    }
    request.name = cli_field(cli, cli->args[0]);
    request.label_selector = cli_field(cli, cli->args[1]);
    request.updated_by = user_name(cli);
    enum hearth_status status = read_profiling(cli, &request.profiling);
    if (status == HEARTH_OK) {
        status = cli_call(cli, APPLICATIONS "SetRule", &request,
                          &hearth__v1__application_rule__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_list_begin(cli, &list);
    add_application_rule(&list, answer);

    return cli_list_end(&list, &answer->base);
}

enum cli_exit cli_applications_rule_delete(struct cli *cli)
{
    Hearth__V1__DeleteApplicationRuleRequest request;
    Hearth__V1__DeleteApplicationRuleResponse *answer = NULL;
    struct hearth_buf out;
    hearth__v1__delete_application_rule_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_call(cli, APPLICATIONS "DeleteRule", &request,
                 &hearth__v1__delete_application_rule_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth_buf_init(&out, 0);
    return cli_print_answer(cli, &answer->base, &out);
}
