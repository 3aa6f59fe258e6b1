/*
 * cli_call.h -- calls of a server: the options of the client, a request, its answer on standard output.
 *
 * Threads: a struct cli belongs to one thread, and has a client of its own.
 */
#ifndef HEARTH_CLIENTS_CLI_CALL_H
#define HEARTH_CLIENTS_CLI_CALL_H

#include "cli.h"

/* Returns the settings of the client, after cli_settle. It prints notes and long waits, and keeps `cli`. */
void cli_client_options(struct cli *cli, struct hearth_client_options *ret_options);
/* Makes a request with the client of `cli`. *ret_answer, a pointer to the message, is in the arena. */
HEARTH_MUST_CHECK enum hearth_status cli_call(struct cli *cli, const char *method,
                                              const void *request,
                                              const struct ProtobufCMessageDescriptor *answer_type,
                                              void *ret_answer);
/* Copies a text into the arena, for a field of a request: protobuf-c declares fields writable. */
char *cli_field(struct cli *cli, const char *text);
/* Prints the answer as JSON, or `text`, the table. Releases text. */
enum cli_exit cli_print_answer(struct cli *cli, const struct ProtobufCMessage *answer,
                               struct hearth_buf *text);

#endif
