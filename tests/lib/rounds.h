/* rounds.h -- how many rounds a test with random input runs, and where a test cuts connections. */
#ifndef HEARTH_TEST_ROUNDS_H
#define HEARTH_TEST_ROUNDS_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A third of `all`, rounded up; all of them if the environment variable HEARTH_TEST_LONG is set. */
static inline int test_rounds(int all)
{
    return getenv("HEARTH_TEST_LONG") != NULL ? all : (all + 2) / 3;
}

/*
 * Which of many places a test tries: every *ret_step-th from the returned one on, which differs
 * from run to run, so that runs together try them all. All of them if HEARTH_TEST_LONG is set.
 * HEARTH_TEST_FIRST repeats a run.
 */
static inline int test_first_place(int step, int *ret_step)
{
    const char *repeated = getenv("HEARTH_TEST_FIRST");
    *ret_step = getenv("HEARTH_TEST_LONG") != NULL ? 1 : step;
    int first = repeated != NULL ? atoi(repeated) : (int)(time(NULL) % *ret_step);
    printf("HEARTH_TEST_FIRST=%d, every %d. place\n", first, *ret_step);
    return first;
}

#endif
