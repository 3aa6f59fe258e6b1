/* log.c -- logfmt or JSON lines; one write(2) each. */
#include "hearth/base/log.h"

#include "hearth/base/clock.h"
#include "hearth/base/str.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 4096u
#define TAIL_BYTES 24u /* room for a closing quote, cut=1 and the end of the line */

static _Atomic int g_level = HEARTH_LOG_INFO;
static _Atomic bool g_json;

static _Thread_local char g_numbers[8][24]; /* results of hearth_log_i64 */

static const char *const g_names[] = {"debug", "info", "warn", "error"};

struct line {
    size_t n;
    bool cut; /* something did not fit; nothing more is appended */
    char text[LINE_BYTES];
};

void hearth_log_set_level(enum hearth_log_level level)
{
    assert((size_t)level < HEARTH_ARRAY_LEN(g_names));

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

/* Append all n bytes, or none and set `cut`. Always leaves TAIL_BYTES of the line free. */
static void put_bytes(struct line *line, const char *p, size_t n)
{
    if (line->cut || n > LINE_BYTES - TAIL_BYTES - line->n) {
        line->cut = true;
        return;
    }

    memcpy(line->text + line->n, p, n);
    line->n += n;
}

static void put_text(struct line *line, const char *s)
{
    put_bytes(line, s, strlen(s));
}

static bool needs_quotes(const char *s)
{
    size_t n = 0;
    for (; s[n] != '\0'; n++) {
        unsigned char c = (unsigned char)s[n];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f) {
            return true;
        }
    }

    return n == 0 || n > 128; /* a long value may be truncated, which only the quoted form shows */
}

/* Length of the well-formed multi-byte character at s; 0 if there is none. */
static size_t measure_character(const char *s)
{
    for (size_t n = 2; n <= 4 && s[n - 1] != '\0'; n++) {
        if (hearth_str_utf8_valid(hearth_str_n(s, n))) {
            return n;
        }
    }

    return 0;
}

static void put_quoted(struct line *line, const char *s)
{
    put_text(line, "\"");
    bool opened = !line->cut;
    while (*s != '\0' && !line->cut) {
        unsigned char c = (unsigned char)*s;
        size_t n = c < 0x80 ? 1 : measure_character(s);
        char esc[8] = {'\\', *s};
        if (c == '"' || c == '\\') {
            put_bytes(line, esc, 2);
        } else if (c == '\n') {
            put_text(line, "\\n");
        } else if (c < 0x20 || c == 0x7f) {
            (void)snprintf(esc, sizeof esc, "\\u%04x", (unsigned)c);
            put_text(line, esc);
        } else if (n == 0) {
            put_text(line, "?");
        } else {
            put_bytes(line, s, n);
        }

        s += n == 0 ? 1 : n;
    }

    if (opened) {
        line->text[line->n++] = '"';
    }
}

/* Decides by the address, not by the text: a tenant named "42" must stay a string. */
static bool is_number(const char *value)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_numbers); i++) {
        if (value == g_numbers[i]) {
            return true;
        }
    }

    return false;
}

/* Append the pair, the pair with its value truncated, or nothing: a line is always well-formed. */
static void put_pair(struct line *line, bool json, const char *key, const char *value)
{
    size_t before = line->n;

    if (line->cut) {
        return;
    }

    if (json) {
        put_text(line, before == 0 ? "{" : ",");
        put_quoted(line, key);
        put_text(line, ":");
    } else {
        put_text(line, before == 0 ? "" : " ");
        put_text(line, key);
        put_text(line, "=");
    }

    bool key_fits = !line->cut && line->n < LINE_BYTES - TAIL_BYTES;
    if (key_fits && (json ? !is_number(value) : needs_quotes(value))) {
        put_quoted(line, value);
        return;
    }

    put_text(line, value);
    if (line->cut || !key_fits) {
        line->cut = true;
        line->n = before;
    }
}

void hearth_log_write(enum hearth_log_level level, const char *component, const char *msg, ...)
{
    assert((size_t)level < HEARTH_ARRAY_LEN(g_names) && component != NULL && msg != NULL);

    int saved_errno = errno; /* callers log between a failure and its report */
    bool json = atomic_load_explicit(&g_json, memory_order_relaxed);
    struct line line;
    line.n = 0;
    line.cut = false;

    /* The pairs that every line has. */
    char when[32];
    hearth_clock_format(hearth_clock_wall_ns(), when);
    put_pair(&line, json, "ts", when);
    put_pair(&line, json, "level", g_names[level]);
    put_pair(&line, json, "component", component);
    put_pair(&line, json, "msg", msg);

    /* The pairs of the caller, up to NULL. */
    va_list args;
    va_start(args, msg);
    for (const char *key = va_arg(args, const char *); key != NULL;
         key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);
        put_pair(&line, json, key, value == NULL ? "" : value);
    }

    va_end(args);

    /* The end of the line, for which put_bytes has left room; then one write(2). */
    const char *tail = line.cut ? (json ? ",\"cut\":1}\n" : " cut=1\n") : (json ? "}\n" : "\n");
    assert(line.n + strlen(tail) <= LINE_BYTES);
    memcpy(line.text + line.n, tail, strlen(tail));
    line.n += strlen(tail);
    ssize_t written = write(STDERR_FILENO, line.text, line.n);
    (void)written; /* a failure of the log itself cannot be reported anywhere */
    errno = saved_errno;
}

const char *hearth_log_i64(int64_t value)
{
    static _Thread_local unsigned g_next;
    char *text = g_numbers[g_next++ % HEARTH_ARRAY_LEN(g_numbers)];
    (void)snprintf(text, 24, "%lld", (long long)value);
    return text;
}
