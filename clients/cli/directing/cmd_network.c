/* cmd_network.c -- hearth network: what network tasks saw of one instance; names of addresses. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/network.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>

#define NETWORK "hearth.v1.NetworkService/"

/* ---- shared ---- */

static char *field_or_empty(struct cli *cli, const char *text)
{
    return cli_field(cli, text == NULL ? "" : text);
}

static enum hearth_status need_instance(struct cli *cli)
{
    if (cli->agent.service == NULL || cli->agent.instance == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "instance required: --service and --instance");
    }
    return cli_resolve_range(cli);
}

static void append_cell(struct hearth_buf *out, const char *text, int width)
{
    cli_fit(hearth_str_c(text), width == 0 ? INT_MAX : width, width != 0, out);
}

static void put_list(struct hearth_buf *out, char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(out, i == 0 ? "" : ",");
        append_cell(out, texts[i], 0);
    }
}

/* Ends a listing, with the likely reason if it is empty. */
static enum cli_exit end_network(struct cli_listing *list, const ProtobufCMessage *answer)
{
    bool any = list->n_cells > 0;

    if (!any) {
        cli_say("hearth",
                "no data in this range; `hearth task list --kind network` shows the tasks and "
                "their reasons");
    }
    enum cli_exit code = cli_list_end(list, answer);
    return code == CLI_OK && !any ? CLI_NO_DATA : code;
}

/* Adds texts, separated by commas, as one. */
static void add_texts(struct cli_listing *list, char *const *texts, size_t n)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(&text, "%s%s", i == 0 ? "" : ",", texts[i]);
    }
    cli_list_take(list, &text);
}

/* ---- topology ---- */

static const Hearth__V1__NetworkNode *find_node(const Hearth__V1__TopologyResponse *answer,
                                                const char *process_id)
{
    for (size_t i = 0; i < answer->n_nodes; i++) {
        if (strcmp(answer->nodes[i]->process_id, process_id) == 0) {
            return answer->nodes[i];
        }
    }
    return NULL;
}

static const char *find_process_name(const Hearth__V1__TopologyResponse *answer,
                                     const char *process_id)
{
    const Hearth__V1__NetworkNode *node = find_node(answer, process_id);
    return node == NULL || node->name[0] == '\0' ? process_id : node->name;
}

static bool is_virtual(const Hearth__V1__NetworkNode *node)
{
    return node->detect_type == HEARTH__V1__DETECT_TYPE__DETECT_TYPE_VIRTUAL;
}

static void put_calls(const Hearth__V1__TopologyResponse *answer, struct hearth_buf *out)
{
    for (size_t i = 0; i < answer->n_calls; i++) {
        const Hearth__V1__NetworkCall *call = answer->calls[i];
        append_cell(out, find_process_name(answer, call->source_id), 24);
        hearth_buf_cstr(out, " -> ");
        append_cell(out, find_process_name(answer, call->destination_id), 24);
        hearth_buf_cstr(out, "  ");
        put_list(out, call->detect_points, call->n_detect_points);
        hearth_buf_cstr(out, "  ");
        put_list(out, call->source_components, call->n_source_components);
        bool both = call->n_source_components > 0 && call->n_destination_components > 0;
        hearth_buf_cstr(out, both ? "/" : "");
        put_list(out, call->destination_components, call->n_destination_components);
        hearth_buf_printf(out, "\n  %s\n", call->call_id);
    }

    for (size_t i = 0; i < answer->n_nodes; i++) {
        if (answer->nodes[i]->n_addresses > 0) {
            append_cell(out, answer->nodes[i]->name, 0);
            hearth_buf_cstr(out, ": ");
            put_list(out, answer->nodes[i]->addresses, answer->nodes[i]->n_addresses);
            hearth_buf_byte(out, '\n');
        }
    }
}

/* In quotes of Graphviz. */
static void append_dot_text(struct hearth_buf *out, const char *text)
{
    hearth_buf_byte(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            hearth_buf_byte(out, '\\');
        }
        hearth_buf_byte(out, (unsigned char)*p < 0x20 ? '?' : (unsigned char)*p);
    }
    hearth_buf_byte(out, '"');
}

static void put_dot(const Hearth__V1__TopologyResponse *answer, struct hearth_buf *out)
{
    hearth_buf_cstr(out, "digraph network {\n  rankdir=LR;\n  node [shape=box];\n");
    for (size_t i = 0; i < answer->n_nodes; i++) {
        const Hearth__V1__NetworkNode *node = answer->nodes[i];
        hearth_buf_cstr(out, "  ");
        append_dot_text(out, node->process_id);
        hearth_buf_cstr(out, " [label=");
        append_dot_text(out, node->name[0] == '\0' ? node->process_id : node->name);
        hearth_buf_cstr(out, is_virtual(node) ? ", style=dashed];\n" : "];\n");
    }

    for (size_t i = 0; i < answer->n_calls; i++) {
        const Hearth__V1__NetworkCall *call = answer->calls[i];
        struct hearth_buf label;
        hearth_buf_init(&label, 0);
        put_list(&label, call->source_components, call->n_source_components);
        bool both = call->n_source_components > 0 && call->n_destination_components > 0;
        hearth_buf_cstr(&label, both ? "/" : "");
        put_list(&label, call->destination_components, call->n_destination_components);
        hearth_buf_byte(&label, '\0');
        hearth_buf_cstr(out, "  ");
        append_dot_text(out, call->source_id);
        hearth_buf_cstr(out, " -> ");
        append_dot_text(out, call->destination_id);
        hearth_buf_cstr(out, " [label=");
        append_dot_text(out, hearth_buf_failed(&label) ? "" : label.p);
        hearth_buf_cstr(out, "];\n");
        hearth_buf_release(&label);
    }
    hearth_buf_cstr(out, "}\n");
}

enum cli_exit cli_network_topology(struct cli *cli)
{
    Hearth__V1__TopologyRequest ask;
    Hearth__V1__TopologyResponse *answer = NULL;

    hearth__v1__topology_request__init(&ask);
    enum hearth_status status = need_instance(cli);
    if (status == HEARTH_OK) {
        ask.service = cli_field(cli, cli->agent.service);
        ask.instance = cli_field(cli, cli->agent.instance);
        ask.start_ms = cli->from_ms;
        ask.end_ms = cli->to_ms;
        status = cli_call(cli, NETWORK "Topology", &ask, &hearth__v1__topology_response__descriptor,
                          &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    if (cli->agent.dot) {
        put_dot(answer, &list.foot);
    } else {
        put_calls(answer, &list.foot);
    }
    for (size_t i = 0; i < answer->n_calls; i++) {
        const Hearth__V1__NetworkCall *call = answer->calls[i];
        cli_list_text(&list, find_process_name(answer, call->source_id));
        cli_list_text(&list, find_process_name(answer, call->destination_id));
        add_texts(&list, call->detect_points, call->n_detect_points);
        add_texts(&list, call->source_components, call->n_source_components);
        add_texts(&list, call->destination_components, call->n_destination_components);
        cli_list_text(&list, call->call_id);
    }

    return end_network(&list, &answer->base);
}

/* ---- series ---- */

/* A line each: metric, code or percentile, end, unit, the last value, and the course. */
static void put_line(const Hearth__V1__NetworkLine *line, struct cli *cli, struct hearth_buf *out)
{
    char part[48] = "";

    if (line->percentile > 0) {
        (void)snprintf(part, sizeof part, " p%d", (int)line->percentile);
    } else if (line->code[0] != '\0') {
        (void)snprintf(part, sizeof part, " %.32s", line->code);
    }
    const char *name = hearth_arena_printf(&cli->arena, "%s%s", line->metric, part);
    append_cell(out, name == NULL ? line->metric : name, 42);
    hearth_buf_printf(out, " %-6s ", line->detect_point);
    append_cell(out, line->unit, 6);
    for (size_t i = 0; i < line->n_points; i++) {
        char at[32];
        cli_date(line->points[i]->at_ms, at);
        hearth_buf_printf(out, "  %s %.6g", at, line->points[i]->value);
    }
    hearth_buf_byte(out, '\n');
}

static void add_line(struct cli_listing *list, const Hearth__V1__NetworkLine *line)
{
    struct hearth_arena *arena = &list->cli->arena;
    const char *part = line->percentile > 0
                           ? hearth_arena_printf(arena, "p%d", (int)line->percentile)
                           : line->code;

    for (size_t i = 0; i < line->n_points; i++) {
        cli_list_text(list, line->call_id);
        cli_list_text(list, line->metric);
        cli_list_text(list, part);
        cli_list_text(list, line->detect_point);
        cli_list_time(list, line->points[i]->at_ms);
        cli_list_real(list, line->points[i]->value);
        cli_list_text(list, line->unit);
    }
}

static enum hearth_status ask_series(struct cli *cli, Hearth__V1__NetworkSeriesResponse **ret)
{
    Hearth__V1__NetworkSeriesRequest ask;

    hearth__v1__network_series_request__init(&ask);
    HEARTH_TRY(need_instance(cli));
    ask.service = cli_field(cli, cli->agent.service);
    ask.instance = cli_field(cli, cli->agent.instance);
    ask.call_id = field_or_empty(cli, cli->agent.call);
    ask.start_ms = cli->from_ms;
    ask.end_ms = cli->to_ms;
    ask.n_metrics = cli->agent.metrics.n;
    ask.metrics = hearth_arena_array(&cli->arena, ask.n_metrics, sizeof *ask.metrics);
    if (ask.metrics == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < ask.n_metrics; i++) {
        ask.metrics[i] = cli_field(cli, cli->agent.metrics.v[i]);
    }

    return cli_call(cli, NETWORK "NetworkSeries", &ask,
                    &hearth__v1__network_series_response__descriptor, ret);
}

enum cli_exit cli_network_series(struct cli *cli)
{
    Hearth__V1__NetworkSeriesResponse *answer = NULL;
    enum hearth_status status = ask_series(cli, &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    const char *call = "";
    for (size_t i = 0; i < answer->n_lines; i++) {
        if (strcmp(call, answer->lines[i]->call_id) != 0) {
            call = answer->lines[i]->call_id;
            hearth_buf_printf(&list.foot, "%s\n", call);
        }
        put_line(answer->lines[i], cli, &list.foot);
        add_line(&list, answer->lines[i]);
    }

    return end_network(&list, &answer->base);
}

/* ---- sampled requests ---- */

static void put_request(const Hearth__V1__SampledRequest *found, struct hearth_buf *out)
{
    char at[32];
    cli_date(found->at_ms, at);
    hearth_buf_printf(out, "%s  %s  %10.3f ms  %-10s  %3d  %-5s  %2d events  trace ",
                      found->request_id, at, found->latency_ms, found->reason, (int)found->status,
                      found->component, (int)found->event_count);
    append_cell(out, found->trace_id, 0);
    hearth_buf_cstr(out, "  ");
    append_cell(out, found->uri, 0);
    hearth_buf_byte(out, '\n');
}

static enum hearth_status ask_requests(struct cli *cli,
                                       Hearth__V1__ListSampledRequestsResponse **ret)
{
    Hearth__V1__ListSampledRequestsRequest ask;

    hearth__v1__list_sampled_requests_request__init(&ask);
    bool by_trace = cli->trace_ids.n > 0;
    if (!by_trace || cli->since != NULL || cli->from != NULL || cli->to != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        ask.start_ms = cli->from_ms;
        ask.end_ms = cli->to_ms;
    }
    ask.service = field_or_empty(cli, cli->agent.service);
    ask.instance = field_or_empty(cli, cli->agent.instance);
    ask.trace_id = field_or_empty(cli, by_trace ? cli->trace_ids.v[0] : NULL);
    ask.call_id = field_or_empty(cli, cli->agent.call);
    ask.reason = field_or_empty(cli, cli->reason);
    ask.limit = cli->has_limit && cli->limit < INT32_MAX ? (int32_t)cli->limit : 0;

    return cli_call(cli, NETWORK "ListSampledRequests", &ask,
                    &hearth__v1__list_sampled_requests_response__descriptor, ret);
}

enum cli_exit cli_network_requests(struct cli *cli)
{
    Hearth__V1__ListSampledRequestsResponse *answer = NULL;
    enum hearth_status status = ask_requests(cli, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_requests; i++) {
        const Hearth__V1__SampledRequest *found = answer->requests[i];
        cli_list_text(&list, found->request_id);
        cli_list_time(&list, found->at_ms);
        cli_list_real(&list, found->latency_ms * (double)HEARTH_NS_PER_MS);
        cli_list_text(&list, found->reason);
        cli_list_number(&list, found->status);
        cli_list_text(&list, found->component);
        cli_list_number(&list, found->event_count);
        cli_list_text(&list, found->trace_id);
        cli_list_text(&list, found->uri);
    }
    return end_network(&list, &answer->base);
}

/* A value of several lines stands below its name, as it is but for control characters. */
static void put_tag(const Hearth__V1__SpanTag *tag, struct hearth_buf *out)
{
    struct hearth_str value = hearth_str_c(tag->value);
    hearth_buf_cstr(out, "  ");
    append_cell(out, tag->key, 0);
    hearth_buf_cstr(out, ": ");
    for (size_t from = 0; from < value.n;) {
        size_t to = hearth_str_find(value, '\n', from);
        size_t end = to > from && value.p[to - 1] == '\r' ? to - 1 : to;
        hearth_buf_cstr(out, from == 0 ? "" : "\n    ");
        cli_fit(hearth_str_n(value.p + from, end - from), INT_MAX, false, out);
        from = to + 1;
    }
    hearth_buf_byte(out, '\n');
}

enum cli_exit cli_network_request(struct cli *cli)
{
    Hearth__V1__GetSampledRequestRequest ask;
    Hearth__V1__GetSampledRequestResponse *answer = NULL;

    hearth__v1__get_sampled_request_request__init(&ask);
    ask.request_id = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_call(cli, NETWORK "GetSampledRequest", &ask,
                 &hearth__v1__get_sampled_request_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    put_request(answer->request, &out);
    for (size_t i = 0; i < answer->n_events; i++) {
        const Hearth__V1__SpanAttachedEventInfo *event = answer->events[i];
        char at[32];
        cli_date(event->start_ns / HEARTH_NS_PER_MS, at);
        hearth_buf_printf(&out, "%s  %.3f ms  ", at,
                          (double)(event->end_ns - event->start_ns) / (double)HEARTH_NS_PER_MS);
        append_cell(&out, event->event, 0);
        hearth_buf_byte(&out, '\n');
        for (size_t k = 0; k < event->n_tags; k++) {
            put_tag(event->tags[k], &out);
        }
    }
    for (size_t i = 0; i < answer->n_notes; i++) {
        hearth_buf_printf(&out, "note: %s\n", answer->notes[i]);
    }

    return cli_print_answer(cli, &answer->base, &out);
}

/* ---- addresses ---- */

static enum cli_exit print_addresses(struct cli *cli, const ProtobufCMessage *answer,
                                     Hearth__V1__AddressName *const *names, size_t n)
{
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "no address has a name";
    for (size_t i = 0; i < n; i++) {
        cli_list_text(&list, names[i]->address);
        cli_list_text(&list, names[i]->is_configured ? "network-addresses" : "set");
        cli_list_text(&list, names[i]->name);
    }
    enum cli_exit code = cli_list_end(&list, answer);
    return code == CLI_OK && n == 0 ? CLI_NO_DATA : code;
}

static enum hearth_status set_addresses(struct cli *cli, Hearth__V1__SetAddressesResponse **ret)
{
    Hearth__V1__SetAddressesRequest ask;

    hearth__v1__set_addresses_request__init(&ask);
    size_t n = cli->n_args;
    Hearth__V1__AddressName *names = hearth_arena_array(&cli->arena, n, sizeof *names);
    ask.addresses = hearth_arena_array(&cli->arena, n, sizeof *ask.addresses);
    if (names == NULL || ask.addresses == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        struct hearth_str item = hearth_str_c(cli->args[i]);
        size_t equals = hearth_str_find(item, '=', 0);
        if (equals == item.n) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                               "\"%s\" is not IP=NAME or IP:PORT=NAME", cli->args[i]);
        }
        hearth__v1__address_name__init(&names[i]);
        names[i].address = hearth_arena_strndup(&cli->arena, item.p, equals);
        names[i].name = cli_field(cli, item.p + equals + 1);
        ask.addresses[i] = &names[i];
    }
    ask.n_addresses = n;
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    return cli_call(cli, NETWORK "SetAddresses", &ask,
                    &hearth__v1__set_addresses_response__descriptor, ret);
}

enum cli_exit cli_network_addresses(struct cli *cli)
{
    if (cli->n_args > 0) {
        Hearth__V1__SetAddressesResponse *answer = NULL;
        enum hearth_status status = set_addresses(cli, &answer);
        if (status != HEARTH_OK) {
            return cli_fail(cli, status);
        }
        enum cli_exit code =
            print_addresses(cli, &answer->base, answer->addresses, answer->n_addresses);
        return code == CLI_NO_DATA ? CLI_OK : code;
    }
    Hearth__V1__ListAddressesRequest ask;
    Hearth__V1__ListAddressesResponse *answer = NULL;
    hearth__v1__list_addresses_request__init(&ask);
    enum hearth_status status = cli_call(cli, NETWORK "ListAddresses", &ask,
                                         &hearth__v1__list_addresses_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    return print_addresses(cli, &answer->base, answer->addresses, answer->n_addresses);
}
