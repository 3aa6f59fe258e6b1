/*
 * hearth.c -- hearth: runs a command of the table, and turns statuses into exit codes.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "cli_settings.h"
#include "table.h"

#include <assert.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* The words of the command that runs, for messages. */
static const char *g_words = "";

void cli_set_usage(const struct cli_command *command)
{
    g_words = command == NULL ? "" : command->words;
}

enum cli_exit cli_usage(const char *message)
{
    (void)fprintf(stderr, "hearth: %s; try hearth %s%s--help\n", message, g_words,
                  g_words[0] == '\0' ? "" : " ");
    return CLI_USAGE;
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

enum cli_exit cli_version(struct cli *cli)
{
    (void)cli;
    (void)printf("hearth %s\n", HEARTH_VERSION);
    return CLI_OK;
}

/* ---- run ---- */

/* --color, else NO_COLOR, CLICOLOR_FORCE, TERM, and whether somebody looks. */
static bool wants_color(const struct cli *cli)
{
    const char *force = cli_find_variable("CLICOLOR_FORCE"), *term = getenv("TERM");

    if (cli->color_when != NULL && strcmp(cli->color_when, "auto") != 0) {
        return strcmp(cli->color_when, "always") == 0;
    }
    if (cli_find_variable("NO_COLOR") != NULL) {
        return false;
    }
    return (force != NULL && strcmp(force, "0") != 0) ||
           (cli->is_terminal && (term == NULL || strcmp(term, "dumb") != 0));
}

/* What the output looks like. After the options. */
static void look_at_terminal(struct cli *cli)
{
    struct winsize size = {0};
    bool may_page = cli->command != NULL && cli->command->row == CLI_ROW_COMMAND &&
                    cli_has_key(cli->command->options, "no-pager");

    cli->is_terminal = isatty(STDOUT_FILENO) == 1;
    cli->color = wants_color(cli);
    cli->width = cli->is_terminal || cli->color ? 100 : 1000; /* a pipe has no edge */
    if (cli->is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
        cli->width = size.ws_col;
    }
    cli_set_screen(
        strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
        may_page && !cli->no_pager && cli->is_terminal && size.ws_row > 1 ? size.ws_row - 1 : 0);
}

void cli_say(const char *what, const char *text)
{
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    cli_fit(hearth_str_c(text), INT_MAX, false, &line);
    (void)fprintf(stderr, "%s: %.*s\n", what, (int)line.n, line.n > 0 ? line.p : "");
    hearth_buf_release(&line);
}

static void print_note(void *context, const char *text)
{
    const struct cli *cli = context;

    if (cli->kept_notes != NULL) {
        hearth_buf_cstr(cli->kept_notes, cli->kept_notes->n > 0 ? "; " : "");
        hearth_buf_cstr(cli->kept_notes, text);
    } else if (!cli->is_quiet) {
        cli_say("note", text);
    }
}

#define COMPLETION_MS 300  /* somebody has pressed Tab */
#define RETRY_MS      3000 /* a restart; then somebody wants to read the reason */

void cli_client_options(struct cli *cli, struct hearth_client_options *ret_options)
{
    hearth_client_options_init(ret_options);
    ret_options->retry_ms = RETRY_MS;
    ret_options->url = cli->url;
    ret_options->tenant = cli->tenant;
    ret_options->headers = cli->header_lines;
    ret_options->n_headers = cli->n_headers;
    ret_options->proxy = cli->proxy;
    ret_options->ca_file = cli->ca_file;
    ret_options->cert_file = cli->cert_file;
    ret_options->key_file = cli->key_file;
    ret_options->skip_verify = cli->skip_verify;
    ret_options->timeout_ms = cli->timeout_ms > 0 ? cli->timeout_ms : ret_options->timeout_ms;
    ret_options->note = print_note;
    ret_options->note_context = cli;
    ret_options->waiting = cli_waits;
    ret_options->waiting_context = cli;
    ret_options->waiting_after_ms = CLI_WAITING_MS;
}

/* The client of a command that makes requests. */
static enum hearth_status open_client(struct cli *cli, const struct cli_command *command)
{
    struct hearth_client_options options;

    HEARTH_TRY(cli_settle(cli));
    cli_client_options(cli, &options);
    if (command->run == cli_completion) {
        options.timeout_ms = COMPLETION_MS;
    }

    return cli_connect(cli, &options, &cli->client, &cli->err);
}

/*
 * Whether a command makes requests. Commands about contexts store and show settings, and use none;
 * what is read from a local file needs no server.
 */
static bool needs_server(const struct cli *cli, const struct cli_command *command)
{
    bool is_file = strstr(command->arguments, "|FILE") != NULL && cli->n_args > 0 &&
                   flame_is_file(cli->args[0]) && !cli->explain;

    return cli_has_key(command->options, "url") && !cli_words_begin(command->words, "context") &&
           !is_file;
}

static enum cli_exit run_command(struct cli *cli, const struct cli_command *command)
{
    if (needs_server(cli, command)) {
        enum hearth_status status = open_client(cli, command);
        if (status != HEARTH_OK) {
            (void)cli_fail(cli, status);
            return CLI_USAGE;
        }
    }
    if (cli->utc) {
        (void)setenv("TZ", "UTC", 1);
        tzset();
    }
    enum cli_exit code = cli->explain ? command->explain(cli) : command->run(cli);
    hearth_client_free(cli->client);

    return code;
}

/* Keep the database URL as a secret, and overwrite it in the arguments, which other users see. */
static enum cli_exit hide_database_url(struct cli *cli, int argc, char **argv)
{
    if (cli->database_url == NULL) {
        return CLI_OK;
    }

    struct hearth_str url = hearth_str_c(cli->database_url);
    if (hearth_secret_new(url, &cli->database, &cli->err) != HEARTH_OK) {
        return cli_fail(cli, cli->err.status);
    }

    for (int i = 1; i < argc; i++) {
        size_t n = strlen(argv[i]);
        if (n >= url.n && argv[i] + n - url.n == url.p) {
            hearth_secret_wipe(argv[i] + n - url.n);
            break;
        }
    }

    return CLI_OK;
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_TIME, "");
    (void)setlocale(LC_CTYPE, "");
    struct cli *cli = hearth_mem_zalloc(sizeof *cli);
    if (cli == NULL) {
        return CLI_FAILED;
    }
    hearth_arena_init(&cli->arena, 0);
    cli->now_ns = hearth_clock_wall_ns();
    cli->min_percent = 0.5;
    const struct cli_command *command = NULL;
    enum cli_exit code = cli_parse(cli, argc, argv, &command);
    cli->command = command;
    look_at_terminal(cli);
    if (code == CLI_OK) {
        code = hide_database_url(cli, argc, argv);
    }
    if (code == CLI_OK && cli->wants_version) {
        code = cli_version(cli);
    } else if (code == CLI_OK && cli->wants_help) {
        code = cli->wants_manual ? cli_print_manual() : cli_print_help(command);
    } else if (code == CLI_OK && (command == NULL || command->row == CLI_ROW_GROUP)) {
        /* A command is missing. */
        (void)cli_print_help(command);
        code = CLI_USAGE;
    } else if (code == CLI_OK) {
        code = run_command(cli, command);
    }
    hearth_secret_free(cli->database);
    hearth_arena_release(&cli->arena);
    hearth_mem_free(cli);

    return (int)code;
}
