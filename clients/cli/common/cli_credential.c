/*
 * cli_credential.c -- the token that the client sends, and secrets in files.
 *
 * A file that others can read is refused, not only named: the next user of the machine would have
 * the token. `ps` shows options, so files and variables stand first in help and messages.
 */

#include "cli_credential.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- files ---- */

static enum hearth_status check_private(FILE *file, const char *what, const char *path,
                                        struct hearth_err *err)
{
    struct stat found;
    char reason[128];

    if (fstat(fileno(file), &found) != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %.200s: %s", what, path,
                           strerror_r(errno, reason, sizeof reason));
    }
    if (S_ISDIR(found.st_mode)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %.200s is a directory", what, path);
    }

    return (found.st_mode & (S_IRWXG | S_IRWXO)) == 0
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "%s %.200s can be read or written by others than its owner (mode "
                             "%04o): chmod 600 %.100s",
                             what, path, (unsigned)found.st_mode & 07777u, path);
}

struct hearth_str cli_take_line(struct hearth_str text)
{
    struct hearth_str none = {NULL, 0};

    if (text.n > 0 && text.p[text.n - 1] == '\n') {
        text.n--;
    }
    if (text.n > 0 && text.p[text.n - 1] == '\r') {
        text.n--;
    }

    return hearth_str_find(text, '\n', 0) < text.n ? none : text;
}

static enum hearth_status read_line(struct cli *cli, FILE *file, const char *what, const char *path,
                                    struct hearth_str *ret, struct hearth_err *err)
{
    char *bytes = hearth_arena_alloc(&cli->arena, CLI_MAX_SECRET_BYTES + 1);

    if (bytes == NULL) {
        return HEARTH_FAIL_ARENA(err, &cli->arena);
    }
    size_t n = fread(bytes, 1, CLI_MAX_SECRET_BYTES + 1, file);
    struct hearth_str line = cli_take_line(hearth_str_n(bytes, n));
    if (ferror(file) != 0 || n > CLI_MAX_SECRET_BYTES || line.p == NULL || line.n == 0 ||
        memchr(line.p, '\0', line.n) != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s %.200s must have one line of text, of at most %zu KiB", what, path,
                           CLI_MAX_SECRET_BYTES >> 10);
    }

    bytes[line.n] = '\0';
    *ret = line;

    return HEARTH_OK;
}

enum hearth_status cli_read_secret(struct cli *cli, const char *what, const char *path,
                                   struct hearth_str *ret, struct hearth_err *err)
{
    char reason[128];
    assert(what != NULL && path != NULL);

    if (strcmp(path, "-") == 0) {
        return read_line(cli, stdin, what, path, ret, err);
    }
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %.200s: %s", what, path,
                           strerror_r(errno, reason, sizeof reason));
    }

    enum hearth_status status = check_private(file, what, path, err);
    if (status == HEARTH_OK) {
        status = read_line(cli, file, what, path, ret, err);
    }
    (void)fclose(file);

    return status;
}

/* ---- the token ---- */

/* The line that a command of the context prints. It may ask on the terminal, as long as it likes. */
static enum hearth_status run_token_command(struct cli *cli, struct hearth_str *ret,
                                            struct hearth_err *err)
{
    char what[96];
    (void)snprintf(what, sizeof what, "token-command of the context %s", cli->context_name);

    FILE *pipe = popen(cli->token_command, "re");
    if (pipe == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: cannot run a shell", what);
    }
    enum hearth_status status = read_line(cli, pipe, what, "(its output)", ret, err);
    int ended = pclose(pipe);

    if (ended != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: it failed with exit code %d", what,
                           WIFEXITED(ended) ? WEXITSTATUS(ended) : -1);
    }

    return status;
}

/* *ret_from says where it was found; NULL: no token is given. */
static enum hearth_status find_token(struct cli *cli, struct hearth_str *ret, const char **ret_from,
                                     struct hearth_err *err)
{
    const char *from = NULL;

    if (cli->token != NULL) {
        from = cli->origins[CLI_SETTING_TOKEN] == CLI_FLAG ? "--token" : "HEARTH_TOKEN";
        *ret = hearth_str_c(cli->token);
    } else if (cli->token_file != NULL) {
        HEARTH_TRY(cli_read_secret(cli, "token file", cli->token_file, ret, err));
        from = hearth_arena_printf(&cli->arena, "token file %.200s", cli->token_file);
    } else if (cli->token_command != NULL) {
        HEARTH_TRY(run_token_command(cli, ret, err));
        from =
            hearth_arena_printf(&cli->arena, "token-command of the context %s", cli->context_name);
    }
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(err, &cli->arena);
    }
    *ret = hearth_str_trim(*ret);
    *ret_from = from;

    return HEARTH_OK;
}

enum hearth_status cli_connect(struct cli *cli, const struct hearth_client_options *options,
                               struct hearth_client **ret_client, struct hearth_err *err)
{
    struct hearth_client *client;
    struct hearth_client_error error;

    /* Read once: a pipe cannot be read again. */
    if (cli->token_from == NULL) {
        HEARTH_TRY(find_token(cli, &cli->token_text, &cli->token_from, err));
    }
    if (hearth_client_new(options, &client, &error) != HEARTH_CLIENT_OK) {
        return hearth_call_error_in(&error, err);
    }
    enum hearth_status status = HEARTH_OK;
    if (cli->token_from != NULL) {
        const char *token = hearth_arena_strndup(&cli->arena, cli->token_text.p, cli->token_text.n);
        if (token == NULL) {
            status = HEARTH_FAIL_ARENA(err, &cli->arena);
        } else if (hearth_client_set_token(client, token, &error) != HEARTH_CLIENT_OK) {
            status = hearth_call_error_in(&error, err);
        }
    }
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "%s", cli->token_from);
        hearth_client_free(client);
        return status;
    }
    *ret_client = client;

    return HEARTH_OK;
}
