/*
 * progress.c -- one line on a terminal that says what is going on, until there is something to print.
 *
 * Threads: safe.
 */
#include "progress.h"

#include "text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static bool g_is_shown; /* guarded by g_lock */

static bool has_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
}

void cli_progress(const struct cli *cli, const char *fmt, ...)
{
    char text[256];
    va_list args;

    if (!has_terminal()) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);

    /* A line that wraps could not be erased. */
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    cli_fit(hearth_str_c(text), cli->width < 80 ? cli->width - 1 : 79, false, &line);
    (void)pthread_mutex_lock(&g_lock);
    (void)fprintf(stderr, "\r\033[K%.*s", (int)line.n, line.n > 0 ? line.p : "");
    g_is_shown = true;
    (void)pthread_mutex_unlock(&g_lock);
    hearth_buf_release(&line);
}

/* The caller holds g_lock. */
static void erase_progress(void)
{
    if (g_is_shown) {
        (void)fputs("\r\033[K", stderr);
        g_is_shown = false;
    }
}

void cli_progress_end(void)
{
    (void)pthread_mutex_lock(&g_lock);
    erase_progress();
    (void)pthread_mutex_unlock(&g_lock);
}

void cli_print_result(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)pthread_mutex_lock(&g_lock);
    erase_progress();
    (void)vprintf(fmt, args);
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&g_lock);
    va_end(args);
}
