/*
 * sw_commands.h -- answers to SkyWalking's agents: skywalking.v3.Commands. An answer without
 * commands does not need a call.
 *
 * The first argument of each command is SerialNumber, a random UUID, because agents drop a command
 * whose number they have seen before. Threads: confined to the request.
 */
#ifndef HEARTH_FRONT_SW_COMMANDS_H
#define HEARTH_FRONT_SW_COMMANDS_H

#include "rpc/rpc.h"

struct hearth_sw_arg {
    const char *key;
    struct hearth_str value;
};

/*
 * Set rpc->answer to one command, whose name and n arguments are copied into the request's arena.
 * Errors: INTERNAL without random bytes; the arena's error when it is full.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sw_answer_command(struct hearth_rpc *rpc, const char *name,
                                            const struct hearth_sw_arg *args, size_t n);

#endif
