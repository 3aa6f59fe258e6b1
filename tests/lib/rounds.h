/* rounds.h -- how many rounds a test with random input runs. */
#ifndef HEARTH_TEST_ROUNDS_H
#define HEARTH_TEST_ROUNDS_H

#include <stdlib.h>

/* A third of `all`, rounded up; all of them if the environment variable HEARTH_TEST_LONG is set. */
static inline int test_rounds(int all)
{
    return getenv("HEARTH_TEST_LONG") != NULL ? all : (all + 2) / 3;
}

#endif
