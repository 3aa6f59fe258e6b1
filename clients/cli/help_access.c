/* help_access.c -- options and help of the commands for tokens, users, grants and the audit log. */
#include "cli.h"

#include <stdio.h>

/* ---- options ---- */

static const struct {
    const char *flag, *value, *help;
} g_access_options[] = {
#define X(kind, name, flag, value, help) {flag, value, help},
#include "access_options.def"
#undef X
};

/* Whether a command is among those that begin the help of an option; "tokens": any of its verbs. */
static bool is_taken_by(const char *help, const char *words)
{
    size_t n = strlen(words);

    for (const char *at = help;; at++) {
        if (strncmp(at, words, n) == 0 && strchr(" ,:", at[n]) != NULL) {
            return true;
        }
        at += strcspn(at, ",:");
        if (at[0] != ',') {
            return false;
        }
        at += strspn(at + 1, " ");
    }
}

bool cli_find_misplaced_access(const struct cli *cli, const char *sub, char *message, size_t cap)
{
#define GIVEN_TEXT(name)                 (cli->access.name != NULL)
#define GIVEN_LIST(name)                 (cli->access.name.n > 0)
#define X(kind, name, flag, value, help) GIVEN_##kind(name),
    const bool is_given[] = {
#include "access_options.def"
    };
#undef X
    char words[64];
    bool has_verb = sub != NULL && cli->n_args > 0;

    (void)snprintf(words, sizeof words, "%s%s%.30s", sub == NULL ? "" : sub, has_verb ? " " : "",
                   has_verb ? cli->args[0] : "");
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_access_options); i++) {
        if (is_given[i] && !is_taken_by(g_access_options[i].help, words)) {
            (void)snprintf(message, cap, "%s is for admin %.*s", g_access_options[i].flag,
                           (int)strcspn(g_access_options[i].help, ":"), g_access_options[i].help);
            return true;
        }
    }

    return false;
}

/* ---- help ---- */

static const struct {
    const char *sub, *text, *examples;
} g_access_help[] = {
    {"tokens",
     "hearth admin tokens create NAME --role ROLE [--tenant T] [--selector S] [--expires 90d]\n"
     "                                [--grant TENANT:ROLE[:SELECTOR]]...\n"
     "hearth admin tokens list | rotate ID [--overlap 1d] [--expires 90d] | delete ID\n"
     "  A new token is printed alone, this once: send it into a file. --tenant is anonymous "
     "unless\n"
     "  given; '*' is all tenants and the server as a whole.\n",
     "    umask 077; hearth admin tokens create 'shop agents' --role ingest > shop.token\n"
     "    hearth admin tokens create ci --grant shop:ingest --grant shop:viewer --expires 90d\n"
     "    hearth admin tokens rotate k3Jf0aQz7B --overlap 1d > new.token\n"},
    {"users",
     "hearth admin users create NAME [--password-file FILE]\n"
     "hearth admin users list | password NAME | disable NAME | enable NAME | delete NAME\n"
     "  Users log in with a password, on servers with --auth user.\n",
     "    hearth admin users create alice\n"
     "    hearth admin users password alice --password-file - < new-password\n"},
    {"grants",
     "hearth admin grants add SUBJECT --role ROLE [--tenant T] [--selector S]\n"
     "hearth admin grants list | delete ID\n"
     "  SUBJECT is user:NAME, or NAME for short, group:NAME, cert:NAME, oidc:NAME, proxy:NAME.\n",
     "    hearth admin grants add alice --role viewer --tenant shop\n"
     "    hearth admin grants add group:sre --role profiler --tenant '*'\n"},
    {"sessions",
     "hearth admin sessions end [SUBJECT]\n"
     "  Logs a user out everywhere; without SUBJECT: yourself.\n",
     "    hearth admin sessions end alice\n"},
    {"audit",
     "hearth admin audit [--since 1d] [--subject S] [--action A] [--outcome O] [--limit N] [-o "
     "json]\n"
     "  Lists what was done and what was refused, the latest first, 100 events unless --limit "
     "says\n"
     "  otherwise. --tenant: only events of this tenant.\n",
     "    hearth admin audit --since 1d --outcome denied\n"
     "    hearth admin audit --subject alice --action /hearth.v1.AccessService/ --limit 1000\n"},
    {"whoami",
     "hearth whoami [-o json]\n"
     "  Shows who the server says you are, and your roles.\n",
     "    hearth whoami --token-file shop.token\n"},
};

static void print_command(size_t at)
{
    (void)printf("%s", g_access_help[at].text);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_access_options); i++) {
        char left[64];
        if (is_taken_by(g_access_options[i].help, g_access_help[at].sub)) {
            (void)snprintf(left, sizeof left, "%s %s", g_access_options[i].flag,
                           g_access_options[i].value);
            (void)printf("    %-32s %s\n", left, g_access_options[i].help);
        }
    }
    (void)printf("%s", g_access_help[at].examples);
}

bool cli_print_access_help(const char *sub)
{
    bool is_known = sub == NULL;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_access_help); i++) {
        if (sub == NULL || strcmp(sub, g_access_help[i].sub) == 0) {
            print_command(i);
            is_known = true;
        }
        (void)printf("%s", sub == NULL ? "\n" : "");
    }

    return is_known;
}
