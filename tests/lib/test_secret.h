/*
 * test_secret.h -- secrets of tests: equal texts share one, and all live until the program ends.
 *
 * Threads: not thread-safe, but for texts that were given before.
 */
#ifndef HEARTH_TESTS_TEST_SECRET_H
#define HEARTH_TESTS_TEST_SECRET_H

#include "hearth/base/secret.h"

#include <stdio.h>
#include <stdlib.h>

#define TEST_MAX_SECRETS 4096

static struct hearth_secret *g_test_secrets[TEST_MAX_SECRETS];
static size_t g_n_test_secrets;

__attribute__((destructor)) static void free_test_secrets(void)
{
    while (g_n_test_secrets > 0) {
        hearth_secret_free(g_test_secrets[--g_n_test_secrets]);
    }
}

/* NULL for an empty text. Ends the program if there is no memory. */
static inline struct hearth_secret *test_secret(const char *text)
{
    for (size_t i = 0; i < g_n_test_secrets; i++) {
        if (hearth_secret_equals(g_test_secrets[i], hearth_str_c(text))) {
            return g_test_secrets[i];
        }
    }

    struct hearth_secret *made = NULL;
    if (g_n_test_secrets == TEST_MAX_SECRETS ||
        hearth_secret_new(hearth_str_c(text), &made, NULL) != HEARTH_OK) {
        (void)fprintf(stderr, "no memory for a secret of a test\n");
        abort();
    }
    if (made != NULL) {
        g_test_secrets[g_n_test_secrets++] = made;
    }

    return made;
}

#endif
