/* status.c -- the status table and error messages. */
#include "hearth/base/status.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int grpc, http;
} g_table[] = {
#define X(name, number, grpc, http, connect, meaning) [number] = {connect, grpc, http},
#include "hearth/base/status.def"
#undef X
};

_Static_assert(HEARTH_ARRAY_LEN(g_table) == HEARTH_N_STATUSES, "status.def numbers are dense");

const char *hearth_status_name(enum hearth_status status)
{
    return (unsigned)status < HEARTH_N_STATUSES ? g_table[status].name : "unknown";
}

int hearth_status_grpc(enum hearth_status status)
{
    return (unsigned)status < HEARTH_N_STATUSES ? g_table[status].grpc : 2;
}

int hearth_status_http(enum hearth_status status)
{
    return (unsigned)status < HEARTH_N_STATUSES ? g_table[status].http : 500;
}

enum hearth_status hearth_status_from_grpc(int code)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_table); i++) {
        if (g_table[i].grpc == code) {
            return (enum hearth_status)i;
        }
    }

    return HEARTH_INTERNAL;
}

/* Messages go to clients and into logs: they must have no control bytes and be valid UTF-8. */
static void make_printable(char *msg)
{
    size_t n = strlen(msg);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)msg[i] < 0x20 || msg[i] == 0x7f) {
            msg[i] = '?';
        }
    }

    /* A message truncated by the buffer may end inside a character: drop that character. */
    size_t tail = n;
    while (tail > 0 && n - tail < 4 && ((unsigned char)msg[tail - 1] & 0xC0) == 0x80) {
        tail--;
    }

    if (tail > 0 && (unsigned char)msg[tail - 1] >= 0xC0 &&
        !hearth_str_utf8_valid(hearth_str_n(msg + tail - 1, n - tail + 1))) {
        msg[tail - 1] = '\0';
        n = tail - 1;
    }

    /* Still invalid: no byte beyond ASCII can be trusted. */
    if (!hearth_str_utf8_valid(hearth_str_n(msg, n))) {
        for (size_t i = 0; i < n; i++) {
            if ((unsigned char)msg[i] >= 0x80) {
                msg[i] = '?';
            }
        }
    }
}

void hearth_err_set(struct hearth_err *err, enum hearth_status status, const char *file,
                    uint32_t line, const char *fmt, ...)
{
    assert(status != HEARTH_OK && (unsigned)status < HEARTH_N_STATUSES);

    if (err == NULL) {
        return;
    }

    va_list args;
    va_start(args, fmt);
    err->status = status;
    err->is_passing = false;
    err->selector_place = 0;
    err->limit = NULL;
    err->file = file;
    err->line = line;
    (void)vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    make_printable(err->msg);
}

void hearth_err_prefix(struct hearth_err *err, const char *fmt, ...)
{
    if (err == NULL) {
        return;
    }

    char old[sizeof err->msg];
    (void)snprintf(old, sizeof old, "%s", err->msg);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->msg) {
        size_t room = sizeof err->msg - (size_t)n;
        int cut = (int)(room < 3 ? 0 : room - 3); /* ": " and the NUL */
        (void)snprintf(err->msg + n, room, ": %.*s", cut, old);
    }

    make_printable(err->msg);
}

void hearth_bug(const char *file, uint32_t line, const char *what)
{
    (void)fprintf(stderr, "hearth: bug at %s:%u: %s\n", file, line, what);
    abort();
}
