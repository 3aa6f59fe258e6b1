/* text.c -- values, times and bars for people. */
#include "text.h"

#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

void cli_time(int64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%m-%d %H:%M:%S", &tm) == 0) {
        (void)snprintf(out, 32, "%lld", (long long)ms);
    }
}

void cli_zoned(int64_t ns, char out[32])
{
    time_t seconds = (time_t)(ns / HEARTH_NS_PER_SEC);
    struct tm tm;
    char offset[8];
    if (localtime_r(&seconds, &tm) == NULL || tm.tm_gmtoff == 0) {
        hearth_clock_format(ns, out);
        return;
    }

    /* strftime's offset lacks the colon of RFC 3339. */
    int64_t ms = ns % HEARTH_NS_PER_SEC / HEARTH_NS_PER_MS;
    size_t n = strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    if (n == 0 || strftime(offset, sizeof offset, "%z", &tm) != 5) {
        hearth_clock_format(ns, out);
        return;
    }
    (void)snprintf(out + n, 32 - n, ".%03d%.3s:%.2s", (int)(ms < 0 ? 0 : ms), offset, offset + 3);
}

void cli_zoned_seconds(int64_t ms, char out[48])
{
    cli_zoned(ms * HEARTH_NS_PER_MS, out);
    char *fraction = strchr(out, '.');
    if (fraction != NULL) {
        memmove(fraction, fraction + 4, strlen(fraction + 4) + 1);
    }
}

void cli_say_zone(void)
{
    time_t now = time(NULL);
    struct tm tm;
    char text[64];

    if (localtime_r(&now, &tm) != NULL && tm.tm_gmtoff != 0 &&
        strftime(text, sizeof text, "times: %Z (%z); --utc prints UTC", &tm) > 0) {
        (void)fprintf(stderr, "%s\n", text);
    }
}

void cli_date(int64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
        (void)snprintf(out, 32, "%lld", (long long)ms);
    }
}

void cli_local_date(int64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        (void)snprintf(out, 32, "%lld", (long long)ms);
    }
}

void cli_duration(int64_t ms, char out[48])
{
    const int64_t day = HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS;
    if (ms == 0) {
        (void)snprintf(out, 48, "for ever");
    } else if (ms % day == 0) {
        (void)snprintf(out, 48, "%lldd", (long long)(ms / day));
    } else {
        hearth_duration_format(ms * HEARTH_NS_PER_MS, out);
    }
}

void cli_count(int64_t n, char out[32])
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        bool first = i == 0 || digits[i - 1] == '-';
        if (!first && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

void cli_number(int64_t n, const char *one, const char *many, char out[64])
{
    char text[32];
    cli_count(n, text);
    (void)snprintf(out, 64, "%s %s", text, n == 1 ? one : many);
}

struct hearth_str cli_type_name(const char *type)
{
    struct hearth_str text = hearth_str_c(type);
    size_t from = hearth_str_find(text, ':', 0) + 1, to = hearth_str_find(text, ':', from);

    return from <= to && to < text.n ? hearth_str_n(text.p + from, to - from) : text;
}

struct hearth_str cli_type_unit(const char *type)
{
    struct hearth_str text = hearth_str_c(type);
    size_t from = hearth_str_find(text, ':', hearth_str_find(text, ':', 0) + 1) + 1;
    size_t to = hearth_str_find(text, ':', from);

    return from <= to && to <= text.n ? hearth_str_n(text.p + from, to - from) : HEARTH_STR("");
}

void cli_course_add(struct cli_course *course, int64_t at, double value)
{
    const int64_t n = HEARTH_ARRAY_LEN(course->cells);
    int64_t cell = (at - course->start) * n / (course->end - course->start + 1);

    cell = cell < 0 ? 0 : cell >= n ? n - 1 : cell;
    course->cells[cell] = value > course->cells[cell] ? value : course->cells[cell];
}

void cli_course(const double *cells, size_t n, double max, struct hearth_buf *out)
{
    static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    for (size_t i = 0; i < n; i++) {
        int level = cells[i] <= 0 || max <= 0 ? 0 : 1 + (int)(cells[i] / max * 7.0 + 0.5);
        hearth_buf_cstr(out, levels[level > 8 ? 8 : level]);
    }
}

void cli_percent(double part, double whole, bool sign, char out[32])
{
    double percent = whole > 0 ? 100.0 * part / whole : 0;
    if (percent != 0 && fabs(percent) < 0.005) {
        (void)snprintf(out, 32, "%s<0.01%%", percent < 0 ? "-" : sign ? "+" : "");
    } else {
        (void)snprintf(out, 32, sign ? "%+.2f%%" : "%.2f%%", percent);
    }
}

enum cli_exit cli_save(const char *path, struct hearth_str bytes, const char *what)
{
    bool is_output = path == NULL || strcmp(path, "-") == 0;
    FILE *file = is_output ? stdout : fopen(path, "wbe");
    bool ok = file != NULL && fwrite(bytes.p, 1, bytes.n, file) == bytes.n && fflush(file) == 0;
    int saved = errno;

    if (file != NULL && !is_output && fclose(file) != 0) {
        ok = false;
        saved = errno;
    }
    if (!ok) {
        (void)fprintf(stderr, "hearth: cannot write %s: %s\n",
                      is_output ? "to standard output" : path, strerrordesc_np(saved));
    } else if (!is_output) {
        (void)fprintf(stderr, "wrote %s: %s%zu bytes\n", path, what, bytes.n);
    }

    return ok ? CLI_OK : CLI_FAILED;
}

/* ---- writing ---- */

static struct {
    bool is_ascii;
    int page_lines;
} g_screen;

void cli_set_screen(bool is_ascii, int page_lines)
{
    g_screen.is_ascii = is_ascii;
    g_screen.page_lines = page_lines;
}

/* Replaces the characters that this client draws with, each by one of the same width. */
static void draw_in_ascii(struct hearth_buf *out)
{
    static const struct {
        const char *drawn;
        char ascii;
    } pairs[] = {{"█", '#'}, {"▉", '#'}, {"▊", '#'}, {"▋", '='}, {"▌", '='}, {"▍", '-'}, {"▎", '-'},
                 {"▏", '.'}, {"▁", '_'}, {"▂", '_'}, {"▃", '.'}, {"▄", '-'}, {"▅", '='}, {"▆", '+'},
                 {"▇", '*'}, {"░", '.'}, {"▒", '+'}, {"▓", '*'}, {"│", '|'}, {"├", '+'}, {"└", '`'},
                 {"┌", '+'}, {"─", '-'}, {"…", '~'}, {"µ", 'u'}};
    size_t to = 0;

    for (size_t at = 0; at < out->n;) {
        char ascii = '\0';
        for (size_t i = 0; (out->p[at] & 0x80) != 0 && i < HEARTH_ARRAY_LEN(pairs); i++) {
            size_t n = strlen(pairs[i].drawn);
            if (n <= out->n - at && memcmp(out->p + at, pairs[i].drawn, n) == 0) {
                ascii = pairs[i].ascii;
                at += n;
                break;
            }
        }
        out->p[to++] = ascii != '\0' ? ascii : out->p[at++];
    }
    out->n = to;
}

void cli_shell_word(const char *text, struct hearth_buf *out)
{
    bool plain = text[0] != '\0';

    for (const char *p = text; *p != '\0'; p++) {
        plain = plain && (strchr("_-.:/@%+,=", *p) != NULL || (*p >= '0' && *p <= '9') ||
                          (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'));
    }
    if (plain) {
        hearth_buf_cstr(out, text);
        return;
    }
    hearth_buf_byte(out, '\'');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'') {
            hearth_buf_cstr(out, "'\\''");
        } else {
            hearth_buf_byte(out, (unsigned char)*p < 0x20 ? '?' : (unsigned char)*p);
        }
    }
    hearth_buf_byte(out, '\'');
}

static int count_lines(struct hearth_str text)
{
    int n = 0;
    for (size_t at = hearth_str_find(text, '\n', 0); at < text.n && n < INT_MAX;
         at = hearth_str_find(text, '\n', at + 1)) {
        n++;
    }
    return n;
}

enum cli_exit cli_print_exact(struct hearth_buf *out)
{
    bool ok = !hearth_buf_failed(out) &&
              (out->n == 0 || fwrite(out->p, 1, out->n, stdout) == out->n) && fflush(stdout) == 0;
    hearth_buf_release(out);
    if (!ok) {
        (void)fprintf(stderr, "hearth: cannot write to standard output\n");
    }
    return ok ? CLI_OK : CLI_FAILED;
}

enum cli_exit cli_print(struct hearth_buf *out)
{
    if (g_screen.is_ascii) {
        draw_in_ascii(out);
    }
    if (g_screen.page_lines > 0 && !hearth_buf_failed(out) &&
        count_lines(hearth_buf_view(out)) > g_screen.page_lines && cli_page(hearth_buf_view(out))) {
        hearth_buf_release(out);
        return CLI_OK;
    }
    return cli_print_exact(out);
}
