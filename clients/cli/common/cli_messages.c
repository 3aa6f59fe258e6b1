/*
 * cli_messages.c -- messages for people, and the exit codes of statuses.
 */
#include "cli_messages.h"

#include "progress.h"
#include "text.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

/* The words of the command that runs, for messages. */
static const char *g_words = "";

void cli_set_usage(const char *words)
{
    g_words = words;
}

enum cli_exit cli_usage(const char *message)
{
    (void)fprintf(stderr, "hearth: %s; try hearth %s%s--help\n", message, g_words,
                  g_words[0] == '\0' ? "" : " ");
    return CLI_USAGE;
}

void cli_say(const char *what, const char *text)
{
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    cli_fit(hearth_str_c(text), INT_MAX, false, &line);
    (void)fprintf(stderr, "%s: %.*s\n", what, (int)line.n, line.n > 0 ? line.p : "");
    hearth_buf_release(&line);
}

/* What may be the reason why a server cannot be reached, by a part of gRPC's or OpenSSL's text. */
static const struct {
    const char *cause, *advice;
} UNREACHABLE[] = {
    {"http1.x server", "if the port speaks TLS, the URL begins with https://"},
    {"wrong version number", "if the port does not speak TLS, the URL begins with http://"},
    {"Connection reset by peer", "is hearthd there, and TLS only if the URL begins with https://?"},
    {"certificate verify failed", "--ca-file names the authority of the server's certificate"},
    {"", "is hearthd running there? --url or HEARTH_URL names another server"},
};

static const char *advise_unreachable(const char *said)
{
    size_t i = 0;

    while (strstr(said, UNREACHABLE[i].cause) == NULL) {
        i++;
    }

    return UNREACHABLE[i].advice;
}

/* What follows the server's message; NULL: nothing. */
static const char *find_advice(const struct cli *cli, enum hearth_status status, const char *said)
{
    bool has_tenant = cli->tenant != NULL;
    switch (status) {
    case HEARTH_UNAUTHENTICATED:
        if (strcmp(said, "no org id") == 0) {
            return has_tenant ? NULL : "name the tenant: set HEARTH_TENANT or --tenant";
        }
        return cli->token_from != NULL && strstr(said, "no credential was sent") != NULL
                   ? "this server does not take tokens"
                   : NULL;
    case HEARTH_PERMISSION_DENIED:
        return strstr(said, "needs the role") == NULL ? NULL : "`hearth whoami` lists your roles";
    case HEARTH_INVALID_ARGUMENT:
        return has_tenant || strstr(said, "X-Scope-OrgID") == NULL
                   ? NULL
                   : "that is, set HEARTH_TENANT or --tenant";
    case HEARTH_UNAVAILABLE:
        return strncmp(said, "cannot reach ", strlen("cannot reach ")) != 0
                   ? NULL
                   : advise_unreachable(said);
    default:
        return NULL;
    }
}

void cli_explain_refusal(struct cli *cli, enum hearth_status status)
{
    char said[sizeof cli->err.msg];
    (void)snprintf(said, sizeof said, "%s", cli->err.msg);
    const char *advice = find_advice(cli, status, said);

    if (advice != NULL) {
        (void)HEARTH_FAIL(&cli->err, status, "%.400s; %s", said, advice);
    } else if (status == HEARTH_UNAUTHENTICATED && cli->token_from != NULL) {
        (void)HEARTH_FAIL(&cli->err, status, "%s: %.250s", cli->token_from, said);
    } else if (status == HEARTH_UNAUTHENTICATED && strstr(said, "send a token") != NULL) {
        (void)HEARTH_FAIL(&cli->err, status,
                          "this server wants a token: set HEARTH_TOKEN_FILE or --token-file");
    }
}

enum cli_exit cli_fail(struct cli *cli, enum hearth_status status)
{
    assert(status != HEARTH_OK);

    cli_explain_refusal(cli, status);
    cli_progress_end();
    (void)fprintf(stderr, "hearth: %s\n", cli->err.msg);
    switch (status) {
    case HEARTH_INVALID_ARGUMENT:
    case HEARTH_OUT_OF_RANGE:
        return CLI_USAGE;
    case HEARTH_NOT_FOUND:
        return CLI_NO_DATA;
    case HEARTH_UNAUTHENTICATED:
    case HEARTH_PERMISSION_DENIED:
        return CLI_AUTH;
    case HEARTH_NO_MEMORY:
    case HEARTH_ALREADY_EXISTS:
    case HEARTH_FAILED_PRECONDITION:
    case HEARTH_ABORTED:
        return CLI_FAILED;
    default:
        return CLI_SERVER;
    }
}
