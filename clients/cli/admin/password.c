/*
 * password.c -- new passwords, typed on the terminal or out of a file.
 *
 * An interrupt must not leave a terminal without echo: signals are noted while a password is typed,
 * and raised again once the terminal is as before.
 */
#include "password.h"

#include "cli_credential.h"

#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t g_signal; /* the last one while a password is typed; 0: none */

static void note_signal(int number)
{
    g_signal = number;
}

/* The signals that end the client; while a password is typed, the terminal is mended first. */
static const int g_ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* A line of standard input, a terminal, without echo; *ret is NULL if there is none. */
static enum hearth_status read_hidden(struct cli *cli, const char *prompt, char **ret)
{
    struct sigaction noting = {.sa_handler = note_signal}, saved[HEARTH_ARRAY_LEN(g_ending)];
    struct termios shown, hidden;
    char *line = hearth_arena_alloc(&cli->arena, CLI_MAX_SECRET_BYTES);

    *ret = NULL;
    if (line == NULL || tcgetattr(STDIN_FILENO, &shown) != 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "the terminal cannot be read");
    }
    hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    g_signal = 0;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_ending); i++) {
        (void)sigaction(g_ending[i], &noting, &saved[i]);
    }

    (void)fprintf(stderr, "%s: ", prompt);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    ssize_t n = read(STDIN_FILENO, line, CLI_MAX_SECRET_BYTES - 1); /* a terminal gives a line */
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    (void)fprintf(stderr, "\n");

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_ending); i++) {
        (void)sigaction(g_ending[i], &saved[i], NULL);
    }
    if (g_signal != 0) {
        (void)raise(g_signal);
    }
    struct hearth_str typed = cli_take_line(hearth_str_n(line, n > 0 ? (size_t)n : 0));
    if (typed.p != NULL && typed.n > 0) {
        line[typed.n] = '\0';
        *ret = line;
    }

    return HEARTH_OK;
}

enum hearth_status cli_new_password(struct cli *cli, char **ret)
{
    char *first, *again;

    if (cli->access.password_file != NULL) {
        struct hearth_str text;
        HEARTH_TRY(
            cli_read_secret(cli, "password file", cli->access.password_file, &text, &cli->err));
        *ret = hearth_arena_strndup(&cli->arena, text.p, text.n);
        return *ret == NULL ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
    }
    if (isatty(STDIN_FILENO) != 1) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "standard input is not a terminal: give --password-file FILE");
    }

    HEARTH_TRY(read_hidden(cli, "New password", &first));
    HEARTH_TRY(read_hidden(cli, "The same again", &again));
    if (first == NULL || again == NULL || strcmp(first, again) != 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION, "nothing was changed: %s",
                           first == NULL ? "no password was typed" : "the two passwords differ");
    }
    *ret = first;

    return HEARTH_OK;
}
