/*
 * cli_credential.h -- what the client shows to a server, and secrets in files.
 */
#ifndef HEARTH_CLIENTS_CLI_CREDENTIAL_H
#define HEARTH_CLIENTS_CLI_CREDENTIAL_H

#include "cli.h"

#define CLI_MAX_SECRET_BYTES ((size_t)16 << 10)

/*
 * Makes a client with the token of the settings, after cli_settle. INVALID_ARGUMENT for a token file
 * that cannot be read, or that others can read, and for a command that fails; errors of
 * hearth_client_new.
 */
HEARTH_MUST_CHECK enum hearth_status cli_connect(struct cli *cli,
                                                 const struct hearth_client_options *options,
                                                 struct hearth_client **ret_client,
                                                 struct hearth_err *err);
/* Returns the only line of a text, without its end. p is NULL if the text has several lines. It
 * borrows from the text. */
struct hearth_str cli_take_line(struct hearth_str text);
/*
 * Reads the only line of a file that only its owner can read, into the arena; "-": standard input.
 * `what` names it in messages. INVALID_ARGUMENT if it cannot be read, is empty, longer than
 * CLI_MAX_SECRET_BYTES, has more lines, or if others can read it; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status cli_read_secret(struct cli *cli, const char *what,
                                                     const char *path, struct hearth_str *ret,
                                                     struct hearth_err *err);

#endif
