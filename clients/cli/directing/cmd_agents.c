/* cmd_agents.c -- hearth agents: services, instances and processes that SkyWalking's agents report. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"

#include <limits.h>

#define PROCESSES "hearth.v1.ProcessService/"
/* Who was seen this long ago is there: agents ping each 20 s. */
#define ALIVE_MS (10 * 60 * 1000)

/* ---- what is asked for ---- */

/* Milliseconds; 0: since ever. *ret_to 0: until now. */
static enum hearth_status seen_within(struct cli *cli, int64_t *ret_from, int64_t *ret_to)
{
    *ret_from = cli->all ? 0 : cli->now_ns / HEARTH_NS_PER_MS - ALIVE_MS;
    *ret_to = 0;
    if (cli->all || (cli->since == NULL && cli->from == NULL && cli->to == NULL)) {
        return HEARTH_OK;
    }
    HEARTH_TRY(cli_resolve_range(cli));
    *ret_from = cli->from_ms;
    *ret_to = cli->to_ms;
    return HEARTH_OK;
}

/* The argument, or --service. */
static enum hearth_status named_service(struct cli *cli, char **ret)
{
    const char *service = cli->n_args > 0 ? cli->args[0] : cli->agent.service;
    if (service == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "service name required; `hearth agents services` lists them");
    }
    *ret = cli_field(cli, service);
    return *ret == NULL ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

/* ---- answers ---- */

static const char *join_texts(struct cli *cli, char *const *texts, size_t n)
{
    const char *list = "";
    for (size_t i = 0; i < n && list != NULL; i++) {
        list = hearth_arena_printf(&cli->arena, "%s%s%s", list, i == 0 ? "" : ",", texts[i]);
    }
    return list == NULL ? "" : list;
}

/* Ends a listing, with the reason if it is empty. */
static enum cli_exit end_agents(struct cli *cli, struct cli_listing *list,
                                const ProtobufCMessage *answer)
{
    bool is_range = cli->since != NULL || cli->from != NULL || cli->to != NULL;
    bool is_empty = list->n_cells == 0;

    if (is_empty) {
        cli_say("hearth", cli->all ? "no agents were ever seen"
                          : is_range
                              ? "no agents seen in this range; --all shows older ones"
                              : "no agents seen in the last 10 minutes; --all shows older ones");
    }
    enum cli_exit code = cli_list_end(list, answer);
    return code == CLI_OK && is_empty ? CLI_NO_DATA : code;
}

/* ---- commands ---- */

enum cli_exit cli_agents_services(struct cli *cli)
{
    Hearth__V1__ListServicesRequest request;
    Hearth__V1__ListServicesResponse *answer = NULL;
    struct cli_listing list;

    hearth__v1__list_services_request__init(&request);
    int64_t to_ms;
    enum hearth_status status = seen_within(cli, &request.seen_after_ms, &to_ms);
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROCESSES "ListServices", &request,
                          &hearth__v1__list_services_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_services; i++) {
        const Hearth__V1__ReportedService *service = answer->services[i];
        cli_list_text(&list, service->service);
        cli_list_text(&list, service->layer);
        cli_list_number(&list, service->instance_count);
        cli_list_number(&list, service->process_count);
        cli_list_time(&list, service->last_seen_ms);
        cli_list_text(&list, join_texts(cli, service->labels, service->n_labels));
    }

    return end_agents(cli, &list, &answer->base);
}

static const char *properties_of(struct cli *cli, Hearth__V1__Property *const *properties, size_t n)
{
    const char *list = "";
    for (size_t i = 0; i < n && list != NULL; i++) {
        list = hearth_arena_printf(&cli->arena, "%s%s%s=%s", list, i == 0 ? "" : " ",
                                   properties[i]->name, properties[i]->value);
    }
    return list == NULL ? "" : list;
}

enum cli_exit cli_agents_instances(struct cli *cli)
{
    Hearth__V1__ListInstancesRequest request;
    Hearth__V1__ListInstancesResponse *answer = NULL;
    struct cli_listing list;

    hearth__v1__list_instances_request__init(&request);
    int64_t to_ms;
    enum hearth_status status = named_service(cli, &request.service);
    if (status == HEARTH_OK) {
        status = seen_within(cli, &request.seen_after_ms, &to_ms);
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROCESSES "ListInstances", &request,
                          &hearth__v1__list_instances_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_instances; i++) {
        const Hearth__V1__ReportedInstance *instance = answer->instances[i];
        cli_list_text(&list, instance->instance);
        cli_list_text(&list, instance->layer);
        cli_list_time(&list, instance->last_seen_ms);
        cli_list_text(&list, properties_of(cli, instance->properties, instance->n_properties));
    }

    return end_agents(cli, &list, &answer->base);
}

static const char *detect_type(Hearth__V1__DetectType type)
{
    static const char *const words[] = {"", "host", "kubernetes", "virtual"};
    return (size_t)type < HEARTH_ARRAY_LEN(words) ? words[type] : "";
}

/* --process-labels a,b as the repeated field. */
static enum hearth_status fill_labels(struct cli *cli, Hearth__V1__ListProcessesRequest *request)
{
    struct hearth_str all = hearth_str_c(cli->agent.process_labels);
    request->labels = hearth_arena_array(&cli->arena, all.n, sizeof *request->labels);
    for (size_t from = 0; request->labels != NULL && from < all.n;) {
        size_t to = hearth_str_find(all, ',', from);
        if (to > from) {
            request->labels[request->n_labels++] =
                hearth_arena_strndup(&cli->arena, all.p + from, to - from);
        }
        from = to + 1;
    }
    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

static enum hearth_status fill_processes(struct cli *cli, Hearth__V1__ListProcessesRequest *request)
{
    HEARTH_TRY(named_service(cli, &request->service));
    HEARTH_TRY(fill_labels(cli, request));
    if (cli->agent.instance != NULL) {
        request->instance = cli_field(cli, cli->agent.instance);
    }
    return seen_within(cli, &request->start_ms, &request->end_ms);
}

enum cli_exit cli_agents_processes(struct cli *cli)
{
    Hearth__V1__ListProcessesRequest request;
    Hearth__V1__ListProcessesResponse *answer = NULL;
    struct cli_listing list;

    hearth__v1__list_processes_request__init(&request);
    enum hearth_status status = fill_processes(cli, &request);
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROCESSES "ListProcesses", &request,
                          &hearth__v1__list_processes_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_processes; i++) {
        const Hearth__V1__Process *process = answer->processes[i];
        cli_list_text(&list, process->instance);
        cli_list_text(&list, process->name);
        cli_list_text(&list, detect_type(process->detect_type));
        cli_list_number(&list, process->can_be_profiled);
        cli_list_time(&list, process->last_seen_ms);
        cli_list_text(&list, join_texts(cli, process->labels, process->n_labels));
        cli_list_text(&list, process->process_id);
    }

    return end_agents(cli, &list, &answer->base);
}
