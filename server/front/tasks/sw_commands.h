/*
 * sw_commands.h -- commands for SkyWalking's agents, in answers of the type skywalking.v3.Commands.
 *
 * Names and keys are borrowed, values are copied. Without memory, the answer has no commands and
 * the request fails at its end (rpc/unary.h).
 *
 * Threads: confined to the request.
 */
#ifndef HEARTH_FRONT_SW_COMMANDS_H
#define HEARTH_FRONT_SW_COMMANDS_H

#include "hearth/engine/tasks.h"

struct hearth_rpc;
struct Skywalking__V3__Commands;

/* Answers n commands. */
void hearth_sw_set_commands(struct hearth_rpc *rpc, const struct hearth_command *commands, size_t n,
                            struct Skywalking__V3__Commands *out);
/*
 * Answers one command with n arguments, n < HEARTH_COMMAND_ARGS. Before them the command has the
 * argument SerialNumber, a random UUID: agents drop a command whose number they have seen before.
 * INTERNAL without random bytes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sw_set_command(struct hearth_rpc *rpc, const char *name,
                                         const struct hearth_command_arg *args, size_t n,
                                         struct Skywalking__V3__Commands *out);

#endif
