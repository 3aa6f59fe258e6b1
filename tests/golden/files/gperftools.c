/* gperftools.c -- allocates, frees and computes; recorded with gperftools. */
#include <stdio.h>
#include <stdlib.h>

static char *g_kept[64];

static char *allocate(size_t n_bytes)
{
    return calloc(1, n_bytes);
}

static double spin(long n)
{
    double sum = 0;

    for (long i = 1; i < n; i++) {
        sum += 1.0 / (double)i;
    }

    return sum;
}

static double compute(int depth)
{
    return depth > 0 ? compute(depth - 1) + spin(4000000) : spin(4000000);
}

int main(void)
{
    double sum = 0;

    for (int i = 0; i < 64; i++) {
        g_kept[i] = allocate(4096);
        free(allocate(1000));
    }
    for (int i = 0; i < 20; i++) {
        sum += compute(3);
    }
    (void)printf("%d\n", sum > 0);

    return 0;
}
