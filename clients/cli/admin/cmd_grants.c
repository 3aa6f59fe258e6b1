/* cmd_grants.c -- hearth admin grants and sessions. */
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_access.h"
#include "text.h"

/* ---- grants ---- */

enum cli_exit cli_grants_add(struct cli *cli)
{
    Hearth__V1__Grant request;
    Hearth__V1__AddGrantResponse *answer = NULL;
    if (cli->access.role == NULL) {
        return cli_usage("grants add requires --role, which is ingest, viewer, profiler, editor or "
                         "admin");
    }
    enum hearth_status status =
        cli_make_grant(cli, NULL, cli->access.selector, cli->access.role, &request);
    request.subject = cli_subject(cli, cli->args[0]);
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_ACCESS "AddGrant", &request,
                          &hearth__v1__add_grant_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf text, out;
    hearth_buf_init(&text, 0);
    hearth_buf_init(&out, 0);
    hearth_buf_printf(&text, "grant %d: %s is ", (int)answer->id, request.subject);
    cli_put_grant(&request, &text);
    hearth_human_escape(hearth_buf_view(&text), &out);
    hearth_buf_byte(&out, '\n');
    hearth_buf_release(&text);

    return cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_grants_delete(struct cli *cli)
{
    Hearth__V1__DeleteGrantRequest request;
    Hearth__V1__DeleteGrantResponse *answer = NULL;
    int64_t id;
    if (!hearth_str_to_i64(hearth_str_c(cli->args[0]), &id) || id <= 0 || id > INT32_MAX) {
        return cli_usage("the id of a grant is a number; `hearth admin grants list` shows it");
    }
    hearth__v1__delete_grant_request__init(&request);
    request.id = (int32_t)id;
    enum hearth_status status = cli_call(cli, CLI_ACCESS "DeleteGrant", &request,
                                         &hearth__v1__delete_grant_response__descriptor, &answer);

    return status == HEARTH_OK
               ? cli_print_done(cli, &answer->base, "grant %d is deleted", (int)request.id)
               : cli_fail(cli, status);
}

enum cli_exit cli_grants_list(struct cli *cli)
{
    Hearth__V1__ListGrantsRequest request;
    Hearth__V1__ListGrantsResponse *answer = NULL;
    hearth__v1__list_grants_request__init(&request);
    enum hearth_status status = cli_call(cli, CLI_ACCESS "ListGrants", &request,
                                         &hearth__v1__list_grants_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "there are no grants";
    for (size_t i = 0; i < answer->n_grants; i++) {
        const Hearth__V1__Grant *grant = answer->grants[i];
        cli_list_number(&list, grant->id);
        cli_list_text(&list, grant->subject);
        cli_list_time(&list, grant->created_ms);
        cli_list_text(&list, grant->created_by);
        cli_list_grants(&list, &answer->grants[i], 1);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- sessions ---- */

enum cli_exit cli_sessions_end(struct cli *cli)
{
    Hearth__V1__EndSessionsRequest request;
    Hearth__V1__EndSessionsResponse *answer = NULL;

    hearth__v1__end_sessions_request__init(&request);
    request.subject = cli_subject(cli, cli->n_args > 0 ? cli->args[0] : "");
    enum hearth_status status = cli_call(cli, CLI_ACCESS "EndSessions", &request,
                                         &hearth__v1__end_sessions_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    char ended[64];
    cli_number(answer->sessions, "session has", "sessions have", ended);

    return cli_print_done(cli, &answer->base, "%s ended", ended);
}
