/* sw_commands.c -- commands for SkyWalking's agents (contract: sw_commands.h). */
#include "tasks/sw_commands.h"

#include "hearth/pb/skywalking/v3/common.pb-c.h"

#include "rpc/messages.h"

#include <stdio.h>
#include <sys/random.h>

/* Make a random UUID of version 4. */
static enum hearth_status make_serial(struct hearth_rpc *rpc, struct hearth_str *ret)
{
    unsigned char b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INTERNAL, "cannot get random bytes for a command");
    }

    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);

    char *text = hearth_arena_printf(
        &rpc->arena, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
        b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
        b[15]);

    *ret = hearth_str_c(text);

    return text == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static Skywalking__V3__KeyStringValuePair *make_pair(struct hearth_rpc *rpc,
                                                     struct hearth_sw_arg arg)
{
    Skywalking__V3__KeyStringValuePair *pair = hearth_arena_alloc(&rpc->arena, sizeof *pair);
    if (pair != NULL) {
        skywalking__v3__key_string_value_pair__init(pair);
        pair->key = hearth_rpc_text(rpc, hearth_str_c(arg.key));
        pair->value = hearth_rpc_text(rpc, arg.value);
    }

    return pair;
}

enum hearth_status hearth_sw_answer_command(struct hearth_rpc *rpc, const char *name,
                                            const struct hearth_sw_arg *args, size_t n)
{
    struct hearth_arena *arena = &rpc->arena;
    Skywalking__V3__Commands *commands = hearth_arena_alloc(arena, sizeof *commands);
    Skywalking__V3__Command *command = hearth_arena_alloc(arena, sizeof *command);
    Skywalking__V3__Command **list = hearth_arena_alloc(arena, sizeof *list);
    Skywalking__V3__KeyStringValuePair **pairs = hearth_arena_array(arena, n + 1, sizeof *pairs);
    struct hearth_sw_arg serial = {.key = "SerialNumber"};

    if (commands == NULL || command == NULL || list == NULL || pairs == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, arena);
    }

    HEARTH_TRY(make_serial(rpc, &serial.value));
    skywalking__v3__commands__init(commands);
    skywalking__v3__command__init(command);
    pairs[0] = make_pair(rpc, serial);

    for (size_t i = 0; i < n; i++) {
        pairs[i + 1] = make_pair(rpc, args[i]);
    }

    command->command = hearth_rpc_text(rpc, hearth_str_c(name));
    command->args = pairs;
    command->n_args = n + 1;
    list[0] = command;
    commands->commands = list;
    commands->n_commands = 1;
    rpc->answer = &commands->base;

    return arena->refused ? HEARTH_FAIL_ARENA(&rpc->err, arena) : HEARTH_OK;
}
