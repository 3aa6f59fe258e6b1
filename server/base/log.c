/* log.c -- logfmt or JSON lines; one write(2) each. */
#include "hearth/base/log.h"

#include "hearth/base/clock.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 4096u

static _Atomic int g_level = HEARTH_LOG_INFO;
static _Atomic bool g_json;

static const char *const g_names[] = {"debug", "info", "warn", "error"};

struct line {
    size_t n;
    bool cut;
    char text[LINE_BYTES];
};

void hearth_log_set_level(enum hearth_log_level level)
{
    atomic_store(&g_level, (int)level);
}

void hearth_log_set_json(bool json)
{
    atomic_store(&g_json, json);
}

bool hearth_log_parse_level(const char *name, enum hearth_log_level *ret)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_names); i++) {
        if (strcmp(name, g_names[i]) == 0) {
            *ret = (enum hearth_log_level)i;
            return true;
        }
    }
    return false;
}

bool hearth_log_enabled(enum hearth_log_level level)
{
    return (int)level >= atomic_load_explicit(&g_level, memory_order_relaxed);
}

/* Keeps 16 bytes free for the mark of a cut and the end of the line. */
static void put(struct line *line, const char *p, size_t n)
{
    if (line->cut || n > LINE_BYTES - 16 - line->n) {
        line->cut = true;
        return;
    }
    memcpy(line->text + line->n, p, n);
    line->n += n;
}

static void put_c(struct line *line, const char *s)
{
    put(line, s, strlen(s));
}

static bool needs_quotes(const char *s)
{
    if (*s == '\0') {
        return true;
    }
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == '\\' || *s == 0x7f) {
            return true;
        }
    }
    return false;
}

static void put_quoted(struct line *line, const char *s)
{
    put_c(line, "\"");
    for (; *s != '\0'; s++) {
        char esc[8];
        if (*s == '"' || *s == '\\') {
            esc[0] = '\\';
            esc[1] = *s;
            put(line, esc, 2);
        } else if (*s == '\n') {
            put(line, "\\n", 2);
        } else if ((unsigned char)*s < 0x20 || *s == 0x7f) {
            (void)snprintf(esc, sizeof esc, "\\u%04x", (unsigned)(unsigned char)*s);
            put(line, esc, 6);
        } else {
            put(line, s, 1);
        }
    }
    put_c(line, "\"");
}

static void put_pair(struct line *line, bool json, bool first, const char *key, const char *value)
{
    if (json) {
        put_c(line, first ? "{" : ",");
        put_quoted(line, key);
        put_c(line, ":");
        put_quoted(line, value);
        return;
    }
    if (!first) {
        put_c(line, " ");
    }
    put_c(line, key);
    put_c(line, "=");
    if (needs_quotes(value)) {
        put_quoted(line, value);
    } else {
        put_c(line, value);
    }
}

void hearth_log_write(enum hearth_log_level level, const char *component, const char *msg, ...)
{
    struct line line;
    line.n = 0;
    line.cut = false;
    bool json = atomic_load_explicit(&g_json, memory_order_relaxed);
    char when[32];
    hearth_clock_format(hearth_clock_wall_ns(), when);
    put_pair(&line, json, true, "ts", when);
    put_pair(&line, json, false, "level", g_names[level]);
    put_pair(&line, json, false, "component", component);
    put_pair(&line, json, false, "msg", msg);
    va_list args;
    va_start(args, msg);
    for (const char *key = va_arg(args, const char *); key != NULL; key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);
        size_t before = line.n;
        put_pair(&line, json, false, key, value == NULL ? "" : value);
        if (line.cut) { /* a half-written pair would break the line's syntax */
            line.n = before;
            break;
        }
    }
    va_end(args);
    const char *tail = line.cut ? (json ? ",\"cut\":1}\n" : " cut=1\n") : (json ? "}\n" : "\n");
    memcpy(line.text + line.n, tail, strlen(tail));
    line.n += strlen(tail);
    ssize_t written = write(STDERR_FILENO, line.text, line.n);
    (void)written; /* nowhere to report that the log itself is gone */
}

const char *hearth_log_i64(int64_t value)
{
    static _Thread_local char g_text[8][24];
    static _Thread_local unsigned g_next;
    char *text = g_text[g_next++ % 8];
    (void)snprintf(text, 24, "%lld", (long long)value);
    return text;
}
