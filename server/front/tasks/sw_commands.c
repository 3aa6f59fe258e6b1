/* sw_commands.c -- commands for SkyWalking's agents (contract: sw_commands.h). */
#include "tasks/sw_commands.h"

#include "hearth/pb/skywalking/v3/common.pb-c.h"

#include "rpc/message_map.h"
#include "rpc/rpc.h"

#include <assert.h>
#include <sys/random.h>

/* ---- messages ---- */

HEARTH_MAP_TYPES(command_arg, struct hearth_command_arg, Skywalking__V3__KeyStringValuePair);
static const struct hearth_message_member command_arg_members[] = {
    HEARTH_MAP(command_arg, key, key),
    HEARTH_MAP(command_arg, value, value),
};
static const struct hearth_message_map command_arg_map =
    HEARTH_MESSAGE_MAP(command_arg, skywalking__v3__key_string_value_pair__descriptor);

static void fill_command_args(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_command *command = from;
    Skywalking__V3__Command *out = message;
    assert(command->name != NULL && command->n_args <= HEARTH_COMMAND_ARGS);

    HEARTH_RPC_LIST(rpc, &command_arg_map, command->args, command->n_args, out, args);
}

HEARTH_MAP_TYPES(command, struct hearth_command, Skywalking__V3__Command);
static const struct hearth_message_member command_members[] = {
    HEARTH_MAP(command, name, command),
};
static const struct hearth_message_map command_map =
    HEARTH_MESSAGE_MAP_AND(command, skywalking__v3__command__descriptor, fill_command_args);

void hearth_sw_set_commands(struct hearth_rpc *rpc, const struct hearth_command *commands, size_t n,
                            struct Skywalking__V3__Commands *out)
{
    assert(commands != NULL || n == 0);
    HEARTH_RPC_LIST(rpc, &command_map, commands, n, out, commands);
}

/* ---- one command ---- */

/* Makes a random UUID of version 4; an empty text when the arena is full. */
static enum hearth_status make_serial(struct hearth_rpc *rpc, struct hearth_str *ret)
{
    unsigned char b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INTERNAL, "cannot get random bytes for a command");
    }

    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    *ret = hearth_str_c(hearth_arena_printf(
        &rpc->arena, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
        b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
        b[15]));

    return HEARTH_OK;
}

enum hearth_status hearth_sw_set_command(struct hearth_rpc *rpc, const char *name,
                                         const struct hearth_command_arg *args, size_t n,
                                         struct Skywalking__V3__Commands *out)
{
    assert(name != NULL && n < HEARTH_COMMAND_ARGS);
    struct hearth_command command = {.name = name, .args = {{.key = "SerialNumber"}}};

    HEARTH_TRY(make_serial(rpc, &command.args[0].value));
    memcpy(&command.args[1], args, n * sizeof args[0]);
    command.n_args = n + 1;
    hearth_sw_set_commands(rpc, &command, 1, out);

    return HEARTH_OK;
}
