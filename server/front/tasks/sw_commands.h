/*
 * sw_commands.h -- answers to SkyWalking's agents: skywalking.v3.Commands. An answer without
 * commands needs nothing.
 *
 * Each command begins with SerialNumber, a random UUID: agents drop one that they have seen before.
 * Threads: of the request.
 */
#ifndef HEARTH_FRONT_SW_COMMANDS_H
#define HEARTH_FRONT_SW_COMMANDS_H

#include "rpc/rpc.h"

struct hearth_sw_arg {
    const char *key;
    struct hearth_str value;
};

/* Set rpc->answer to one command, copied into the request's arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sw_answer_command(struct hearth_rpc *rpc, const char *name,
                                            const struct hearth_sw_arg *args, size_t n);

#endif
