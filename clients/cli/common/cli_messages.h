/*
 * cli_messages.h -- what a command says on standard error, and its exit code.
 */
#ifndef HEARTH_CLIENTS_CLI_MESSAGES_H
#define HEARTH_CLIENTS_CLI_MESSAGES_H

#include "cli.h"

/* Prints "hearth: <message>", and returns the exit code of a status. */
enum cli_exit cli_fail(struct cli *cli, enum hearth_status status);
enum cli_exit cli_usage(const char *message);
/* The words of the command that cli_usage names; "": none. They are borrowed. */
void cli_set_usage(const char *words);
/* Prints "WHAT: TEXT" on standard error, without control bytes. */
void cli_say(const char *what, const char *text);
/* Adds to a refusal what the user can do about it. */
void cli_explain_refusal(struct cli *cli, enum hearth_status status);

#endif
