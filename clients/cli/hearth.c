/*
 * hearth.c -- hearth: looks at the terminal, and runs a command of the table.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "cli_call.h"
#include "cli_credential.h"
#include "cli_messages.h"
#include "cli_settings.h"
#include "flame_file.h"
#include "table.h"
#include "text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* What the rows of cli_commands run. */
#define SECTION(title)                                                             {NULL, NULL},
#define GROUP(name, text)                                                          {NULL, NULL},
#define COMMAND(words, arguments, min, max, run, explain, options, help, one, two) {run, explain},
static const struct {
    cli_command_fn *run, *explain;
} g_runs[] = {
#include "commands.def"
};
#undef SECTION
#undef GROUP
#undef COMMAND

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

#define COMPLETION_MS 300 /* somebody has pressed Tab */

/* The client of a command that makes requests. */
static enum hearth_status open_client(struct cli *cli, const struct cli_command *command)
{
    struct hearth_client_options options;

    HEARTH_TRY(cli_settle(cli));
    cli_client_options(cli, &options);
    if (g_runs[command - cli_commands].run == cli_completion) {
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
    size_t row = (size_t)(command - cli_commands);
    enum cli_exit code = cli->explain ? g_runs[row].explain(cli) : g_runs[row].run(cli);
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
    (void)setenv("GRPC_VERBOSITY", "NONE", 0); /* its lines would stand before our messages */
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
