/* test_sw_commands.c -- commands as SkyWalking's agents expect them. */
#include "hearth/pb/skywalking/v3/common.pb-c.h"

#include "rpc/rpc.h"
#include "tasks/sw_commands.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hearth_command_arg ARGS[] = {
    {"TaskId", {"t-1", 3}},
    {"Empty", {NULL, 0}},
    {"Duration", {"10 min", 2}}, /* two bytes of a longer text */
};

static const Skywalking__V3__Command *answer(struct hearth_rpc *rpc, size_t n_args)
{
    Skywalking__V3__Commands commands = SKYWALKING__V3__COMMANDS__INIT;
    *rpc = (struct hearth_rpc){.arena = {0}};
    hearth_arena_init(&rpc->arena, 1 << 20);

    assert_int_equal(hearth_sw_set_command(rpc, "ProfileTaskQuery", ARGS, n_args, &commands),
                     HEARTH_OK);
    assert_int_equal(commands.n_commands, 1);

    return commands.commands[0];
}

/* Of the form xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx. */
static void assert_random_uuid(const char *uuid)
{
    assert_int_equal(strlen(uuid), 36);
    for (size_t i = 0; i < 36; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        assert_true(is_dash ? uuid[i] == '-' : isxdigit((unsigned char)uuid[i]) != 0);
    }
    assert_int_equal(uuid[14], '4');
    assert_non_null(strchr("89ab", uuid[19]));
}

static void a_command_has_a_name_a_serial_number_and_its_arguments(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    const Skywalking__V3__Command *command = answer(&rpc, HEARTH_ARRAY_LEN(ARGS));

    assert_string_equal(command->command, "ProfileTaskQuery");
    assert_int_equal(command->n_args, 1 + HEARTH_ARRAY_LEN(ARGS));
    assert_string_equal(command->args[0]->key, "SerialNumber");
    assert_random_uuid(command->args[0]->value);
    assert_string_equal(command->args[1]->key, "TaskId");
    assert_string_equal(command->args[1]->value, "t-1");
    assert_string_equal(command->args[2]->value, "");
    assert_string_equal(command->args[3]->value, "10");

    hearth_arena_release(&rpc.arena);
}

/* Agents drop a command whose serial number they have seen. */
static void two_commands_have_different_serial_numbers(void **state)
{
    (void)state;
    struct hearth_rpc first, second;
    const Skywalking__V3__Command *one = answer(&first, 0), *other = answer(&second, 0);

    assert_int_equal(one->n_args, 1);
    assert_string_not_equal(one->args[0]->value, other->args[0]->value);

    hearth_arena_release(&first.arena);
    hearth_arena_release(&second.arena);
}

static void a_command_that_does_not_fit_fails_the_request(void **state)
{
    (void)state;
    static char large[100000];
    struct hearth_command_arg arg = {"Large", hearth_str_n(large, sizeof large)};
    Skywalking__V3__Commands commands = SKYWALKING__V3__COMMANDS__INIT;
    struct hearth_rpc rpc = {.arena = {0}};
    memset(large, 'x', sizeof large);
    hearth_arena_init(&rpc.arena, 64 << 10);

    assert_int_equal(hearth_sw_set_command(&rpc, "X", &arg, 1, &commands), HEARTH_OK);
    assert_true(rpc.arena.refused);

    hearth_arena_release(&rpc.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_has_a_name_a_serial_number_and_its_arguments),
        cmocka_unit_test(two_commands_have_different_serial_numbers),
        cmocka_unit_test(a_command_that_does_not_fit_fails_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
