/* rpc_fixture.h -- a request with an arena of 1 MiB for each test, which is its state. */
#ifndef HEARTH_TESTS_RPC_FIXTURE_H
#define HEARTH_TESTS_RPC_FIXTURE_H

#include "rpc/rpc.h"

static int set_up(void **state)
{
    static struct hearth_rpc rpc;
    rpc = (struct hearth_rpc){0};
    hearth_arena_init(&rpc.arena, 1u << 20);
    *state = &rpc;
    return 0;
}

static int tear_down(void **state)
{
    struct hearth_rpc *rpc = *state;
    hearth_arena_release(&rpc->arena);
    return 0;
}

#endif
