/* cmd_access.c -- what the commands for tokens, users, grants and the audit log share; whoami. */
#include "cmd_access.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

enum hearth_status cli_make_grant(struct cli *cli, const char *tenant, const char *selector,
                                  const char *role, Hearth__V1__Grant *ret)
{
    hearth__v1__grant__init(ret);
    if (tenant == NULL) {
        tenant = cli->tenant != NULL ? cli->tenant : "anonymous";
    }
    ret->tenant = cli_field(cli, tenant);
    ret->role = cli_field(cli, role);
    ret->selector = cli_field(cli, selector == NULL ? "" : selector);

    return ret->tenant == NULL || ret->role == NULL || ret->selector == NULL
               ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena)
               : HEARTH_OK;
}

void cli_put_grant(const Hearth__V1__Grant *grant, struct hearth_buf *out)
{
    bool is_everywhere = strcmp(grant->tenant, "*") == 0;

    hearth_buf_printf(out, "%s in %s%s%s", grant->role,
                      is_everywhere ? "all tenants" : grant->tenant,
                      grant->selector[0] != '\0' ? ", only " : "", grant->selector);
}

void cli_list_grants(struct cli_listing *list, Hearth__V1__Grant *const *grants, size_t n)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(&text, i == 0 ? "" : "; ");
        cli_put_grant(grants[i], &text);
    }
    cli_list_take(list, &text);
}

char *cli_subject(struct cli *cli, const char *text)
{
    return strchr(text, ':') != NULL || text[0] == '\0'
               ? cli_field(cli, text)
               : hearth_arena_printf(&cli->arena, "user:%s", text);
}

enum cli_exit cli_print_done(struct cli *cli, const ProtobufCMessage *answer, const char *fmt, ...)
{
    char line[512];
    struct hearth_buf out;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    hearth_buf_init(&out, 0);
    cli_fit(hearth_str_c(line), INT_MAX, false, &out);
    hearth_buf_byte(&out, '\n');

    return cli_print_answer(cli, answer, &out);
}

/* ---- whoami ---- */

enum cli_exit cli_whoami(struct cli *cli)
{
    Hearth__V1__WhoAmIRequest request;
    Hearth__V1__WhoAmIResponse *answer = NULL;

    hearth__v1__who_am_irequest__init(&request);
    enum hearth_status status = cli_call(cli, CLI_ACCESS "WhoAmI", &request,
                                         &hearth__v1__who_am_iresponse__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_fit(hearth_str_c(answer->subject), INT_MAX, false, &out);
    if (answer->name[0] != '\0' && strcmp(answer->name, answer->subject) != 0) {
        hearth_buf_cstr(&out, " \"");
        cli_fit(hearth_str_c(answer->name), INT_MAX, false, &out);
        hearth_buf_byte(&out, '"');
    }
    if (answer->expires_ms != 0) {
        char end[32];
        cli_date(answer->expires_ms, end);
        hearth_buf_printf(&out, ", ends %s", end);
    }
    hearth_buf_byte(&out, '\n');
    for (size_t i = 0; i < answer->n_grants; i++) {
        struct hearth_buf grant;
        hearth_buf_init(&grant, 0);
        cli_put_grant(answer->grants[i], &grant);
        hearth_buf_cstr(&out, "  ");
        hearth_human_escape(hearth_buf_view(&grant), &out);
        hearth_buf_byte(&out, '\n');
        hearth_buf_release(&grant);
    }
    if (answer->n_grants == 0) {
        hearth_buf_cstr(&out, "  everything: this server does not ask who calls\n");
    }

    return cli_print_answer(cli, &answer->base, &out);
}
