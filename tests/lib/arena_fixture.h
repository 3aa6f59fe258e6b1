/* arena_fixture.h -- an arena without a limit, for a group of tests or for each test. */
#ifndef HEARTH_TESTS_ARENA_FIXTURE_H
#define HEARTH_TESTS_ARENA_FIXTURE_H

#include "hearth/base/arena.h"

static struct hearth_arena g_arena;

static int make_arena(void **state)
{
    (void)state;
    hearth_arena_init(&g_arena, 0);
    return 0;
}

static int free_arena(void **state)
{
    (void)state;
    hearth_arena_release(&g_arena);
    return 0;
}

#endif
