/*
 * config_load.h -- one load of the configuration: arguments, environment, a file, and the result.
 */
#ifndef HEARTH_TEST_CONFIG_LOAD_H
#define HEARTH_TEST_CONFIG_LOAD_H

#include "hearth/app/config.h"

#include "config_options.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MAX    16

/* One load: the arguments and environment of a process, and the result. */
struct load {
    char *argv[MAX], *environ[MAX];
    int argc;
    size_t n_environ;
    char path[32]; /* configuration file; "": none */
    struct hearth_config config;
    struct hearth_err err;
    bool loaded;
};

static inline int setup(void **state)
{
    static char name[] = "hearthd";
    struct load *l = test_calloc(1, sizeof *l);
    l->argv[l->argc++] = name;
    *state = l;
    return 0;
}

static inline void forget(struct load *l)
{
    if (l->loaded) {
        hearth_config_release(&l->config);
    }
    l->loaded = false;
}

static inline int teardown(void **state)
{
    struct load *l = *state;

    forget(l);
    if (l->path[0] != '\0') {
        (void)unlink(l->path);
    }

    for (int i = 1; i < l->argc; i++) {
        free(l->argv[i]);
    }

    for (size_t i = 0; i < l->n_environ; i++) {
        free(l->environ[i]);
    }

    test_free(l);

    return 0;
}

static inline void flag(struct load *l, const char *text)
{
    assert_true(l->argc < MAX - 1);
    l->argv[l->argc++] = strdup(text);
}

static inline void env(struct load *l, const char *text)
{
    assert_true(l->n_environ < MAX - 1);
    l->environ[l->n_environ++] = strdup(text);
}

/* Make a file with this text, and pass it as --config. */
static inline void file(struct load *l, const char *text, size_t n)
{
    char option[64];

    (void)strcpy(l->path, "/tmp/test_config.XXXXXX");
    int fd = mkstemp(l->path);
    assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
    (void)snprintf(option, sizeof option, "--config=%s", l->path);
    flag(l, option);
}

static inline enum hearth_status load(struct load *l)
{
    forget(l);
    l->loaded = true;
    return hearth_config_load(&l->config, l->argc, l->argv, l->environ, &l->err);
}

static inline void assert_loads(struct load *l)
{
    if (load(l) != HEARTH_OK) {
        fail_msg("%s", l->err.msg);
    }
}

static inline void assert_refused(struct load *l, const char *message)
{
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(l->err.msg, message);
}

/* The message begins with "PATH:LINE: ". */
static inline void assert_refused_at(struct load *l, unsigned line, const char *message)
{
    char expected[300];
    (void)snprintf(expected, sizeof expected, "%s:%u: %s", l->path, line, message);
    assert_refused(l, expected);
}

static inline char *printed(const struct load *l)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    hearth_config_print(&l->config, &out);
    assert_false(hearth_buf_failed(&out));
    char *copy = strndup(out.p, out.n);
    hearth_buf_release(&out);

    return copy;
}

#define load_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
