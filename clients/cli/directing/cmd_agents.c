/* cmd_agents.c -- hearth agents: services, instances and processes that SkyWalking's agents report. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"

#include "cli.h"

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

/* ---- tables ---- */

#define MAX_COLUMNS 7
#define MAX_WIDTH   40

/* Columns as wide as what they hold, the last one as it is. */
struct table {
    const char *const *heads;
    size_t n_columns, n_rows;
    struct hearth_str *cells; /* row after row */
    size_t n;
};

static enum hearth_status start_table(struct cli *cli, struct table *table,
                                      const char *const *heads, size_t n, size_t rows)
{
    *table = (struct table){.heads = heads, .n_columns = n, .n_rows = rows};
    table->cells = hearth_arena_array(&cli->arena, n * rows, sizeof *table->cells);
    return table->cells == NULL ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

static void add_cell(struct table *table, const char *text)
{
    table->cells[table->n++] = hearth_str_c(text);
}

static int columns_of(struct hearth_str text)
{
    int n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    }
    return n;
}

static void print_agents_table(const struct table *table, struct hearth_buf *out)
{
    int widths[MAX_COLUMNS];

    for (size_t k = 0; k < table->n_columns; k++) {
        widths[k] = columns_of(hearth_str_c(table->heads[k]));
        for (size_t i = 0; i < table->n_rows; i++) {
            int width = columns_of(table->cells[i * table->n_columns + k]);
            widths[k] = width > widths[k] ? width : widths[k];
        }
        widths[k] = widths[k] > MAX_WIDTH ? MAX_WIDTH : widths[k];
    }
    for (size_t i = 0; i <= table->n_rows; i++) {
        for (size_t k = 0; k < table->n_columns; k++) {
            bool is_last = k + 1 == table->n_columns;
            struct hearth_str cell = i == 0 ? hearth_str_c(table->heads[k])
                                            : table->cells[(i - 1) * table->n_columns + k];
            hearth_buf_cstr(out, k == 0 ? "" : "  ");
            cli_fit(cell, is_last ? INT_MAX : widths[k], !is_last, out);
        }
        hearth_buf_byte(out, '\n');
    }
}

static const char *date_of(struct cli *cli, int64_t ms)
{
    char text[32];
    cli_date(ms, text);
    const char *copy = hearth_arena_strndup(&cli->arena, text, strlen(text));
    return copy == NULL ? "" : copy;
}

static const char *count_text(struct cli *cli, int64_t n)
{
    const char *text = hearth_arena_printf(&cli->arena, "%lld", (long long)n);
    return text == NULL ? "" : text;
}

static const char *join_texts(struct cli *cli, char *const *texts, size_t n)
{
    const char *list = "";
    for (size_t i = 0; i < n && list != NULL; i++) {
        list = hearth_arena_printf(&cli->arena, "%s%s%s", list, i == 0 ? "" : ",", texts[i]);
    }
    return list == NULL ? "" : list;
}

/* The table, when it is one that was asked for, or JSON. */
static enum cli_exit end_agents_answer(struct cli *cli, const ProtobufCMessage *answer,
                                       const struct table *table)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (table->n_rows > 0 && cli->output == CLI_TABLE) {
        print_agents_table(table, &out);
    }
    if (table->n_rows == 0) {
        bool is_range = cli->since != NULL || cli->from != NULL || cli->to != NULL;
        cli_say("hearth", cli->all ? "none was ever reported"
                          : is_range
                              ? "none was seen in this range; --all lists older ones"
                              : "none was seen in the last 10 minutes; --all lists older ones");
    }
    enum cli_exit code = cli_print_answer(cli, answer, &out);
    return code == CLI_OK && table->n_rows == 0 ? CLI_NO_DATA : code;
}

/* ---- commands ---- */

enum cli_exit cli_agents_services(struct cli *cli)
{
    static const char *const heads[] = {"service",   "layer",     "instances",
                                        "processes", "last seen", "labels"};
    Hearth__V1__ListServicesRequest request;
    Hearth__V1__ListServicesResponse *answer = NULL;
    struct table table;

    hearth__v1__list_services_request__init(&request);
    int64_t to_ms;
    enum hearth_status status = seen_within(cli, &request.seen_after_ms, &to_ms);
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROCESSES "ListServices", &request,
                          &hearth__v1__list_services_response__descriptor, &answer);
    }
    if (status == HEARTH_OK) {
        status = start_table(cli, &table, heads, HEARTH_ARRAY_LEN(heads), answer->n_services);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    for (size_t i = 0; i < answer->n_services; i++) {
        const Hearth__V1__ReportedService *service = answer->services[i];
        add_cell(&table, service->service);
        add_cell(&table, service->layer);
        add_cell(&table, count_text(cli, service->instance_count));
        add_cell(&table, count_text(cli, service->process_count));
        add_cell(&table, date_of(cli, service->last_seen_ms));
        add_cell(&table, join_texts(cli, service->labels, service->n_labels));
    }

    return end_agents_answer(cli, &answer->base, &table);
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
    static const char *const heads[] = {"instance", "layer", "last seen", "properties"};
    Hearth__V1__ListInstancesRequest request;
    Hearth__V1__ListInstancesResponse *answer = NULL;
    struct table table;

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
    if (status == HEARTH_OK) {
        status = start_table(cli, &table, heads, HEARTH_ARRAY_LEN(heads), answer->n_instances);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    for (size_t i = 0; i < answer->n_instances; i++) {
        const Hearth__V1__ReportedInstance *instance = answer->instances[i];
        add_cell(&table, instance->instance);
        add_cell(&table, instance->layer);
        add_cell(&table, date_of(cli, instance->last_seen_ms));
        add_cell(&table, properties_of(cli, instance->properties, instance->n_properties));
    }

    return end_agents_answer(cli, &answer->base, &table);
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
    static const char *const heads[] = {"instance",  "process", "kind",      "profilable",
                                        "last seen", "labels",  "process id"};
    Hearth__V1__ListProcessesRequest request;
    Hearth__V1__ListProcessesResponse *answer = NULL;
    struct table table;

    hearth__v1__list_processes_request__init(&request);
    enum hearth_status status = fill_processes(cli, &request);
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROCESSES "ListProcesses", &request,
                          &hearth__v1__list_processes_response__descriptor, &answer);
    }
    if (status == HEARTH_OK) {
        status = start_table(cli, &table, heads, HEARTH_ARRAY_LEN(heads), answer->n_processes);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    for (size_t i = 0; i < answer->n_processes; i++) {
        const Hearth__V1__Process *process = answer->processes[i];
        add_cell(&table, process->instance);
        add_cell(&table, process->name);
        add_cell(&table, detect_type(process->detect_type));
        add_cell(&table, process->can_be_profiled ? "yes" : "no");
        add_cell(&table, date_of(cli, process->last_seen_ms));
        add_cell(&table, join_texts(cli, process->labels, process->n_labels));
        add_cell(&table, process->process_id);
    }

    return end_agents_answer(cli, &answer->base, &table);
}
