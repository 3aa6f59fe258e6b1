/* cmd_audit.c -- hearth admin audit: who did what, a page of the server after the other. */
#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_access.h"

#define PAGE           1000 /* largest page of the server */
#define DEFAULT_EVENTS 100

/* --outcome as the log names it. */
static enum hearth_status read_outcome(struct cli *cli, char **ret)
{
    const char *text = cli->access.outcome;

    if (text == NULL) {
        return HEARTH_OK;
    }
    text = strcmp(text, "denied") == 0 ? hearth_status_name(HEARTH_PERMISSION_DENIED) : text;
    for (int i = 0; i < HEARTH_N_STATUSES; i++) {
        if (strcmp(text, hearth_status_name((enum hearth_status)i)) == 0) {
            *ret = cli_field(cli, text);
            return *ret == NULL ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
        }
    }

    return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                       "--outcome must be ok, denied, unauthenticated, or another name of an error "
                       "such as not_found, not \"%.60s\"",
                       text);
}

static enum hearth_status read_filter(struct cli *cli, Hearth__V1__AuditLogRequest *request)
{
    const struct cli_access *access = &cli->access;
    bool is_everywhere = cli->tenant == NULL || strcmp(cli->tenant, "*") == 0;

    hearth__v1__audit_log_request__init(request);
    if (cli->since != NULL || cli->from != NULL || cli->to != NULL) {
        bool has_start = cli->since != NULL || cli->from != NULL;
        HEARTH_TRY(cli_resolve_range(cli));
        request->from_ms = has_start ? cli->from_ms : 0;
        request->to_ms = cli->to != NULL ? cli->to_ms : 0;
    }
    HEARTH_TRY(read_outcome(cli, &request->outcome));
    request->tenant = cli_field(cli, is_everywhere ? "" : cli->tenant);
    request->subject = cli_subject(cli, access->subject == NULL ? "" : access->subject);
    request->action = cli_field(cli, access->action == NULL ? "" : access->action);

    return request->tenant == NULL || request->subject == NULL || request->action == NULL
               ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena)
               : HEARTH_OK;
}

/* Appends the events of pages until there are `limit` of them. */
static enum hearth_status read_pages(struct cli *cli, Hearth__V1__AuditLogRequest *request,
                                     int64_t limit, Hearth__V1__AuditLogResponse *ret)
{
    hearth__v1__audit_log_response__init(ret);
    for (;;) {
        Hearth__V1__AuditLogResponse *page;
        request->limit = limit - (int64_t)ret->n_events;
        request->limit = request->limit > PAGE ? PAGE : request->limit;
        HEARTH_TRY(cli_call(cli, CLI_ACCESS "AuditLog", request,
                            &hearth__v1__audit_log_response__descriptor, &page));

        size_t n = ret->n_events + page->n_events;
        Hearth__V1__AuditEvent **events = hearth_arena_array(&cli->arena, n, sizeof *events);
        if (n > 0 && events == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        for (size_t i = 0; i < n; i++) {
            events[i] = i < ret->n_events ? ret->events[i] : page->events[i - ret->n_events];
        }
        ret->events = events;
        ret->n_events = n;

        bool is_last = (int64_t)page->n_events < request->limit || (int64_t)n >= limit;
        if (is_last) {
            return HEARTH_OK;
        }
        request->before_id = events[n - 1]->id;
    }
}

enum cli_exit cli_audit(struct cli *cli)
{
    Hearth__V1__AuditLogRequest request;
    Hearth__V1__AuditLogResponse all;
    enum hearth_status status = read_filter(cli, &request);
    if (status == HEARTH_OK) {
        status = read_pages(cli, &request, cli->has_limit ? cli->limit : DEFAULT_EVENTS, &all);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "no event matches";
    for (size_t i = 0; i < all.n_events; i++) {
        const Hearth__V1__AuditEvent *event = all.events[i];
        cli_list_time(&list, event->at_ms);
        cli_list_text(&list, event->subject);
        cli_list_text(&list, event->address);
        cli_list_text(&list, event->outcome);
        cli_list_text(&list, event->action);
        cli_list_text(&list, event->tenant);
        cli_list_text(&list, event->object);
        cli_list_text(&list, event->message);
    }

    return cli_list_end(&list, &all.base);
}
