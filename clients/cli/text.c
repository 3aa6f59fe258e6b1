/* text.c -- values, times and bars for people. */
#include "hearth/base/clock.h"
#include "hearth/query/timeexpr.h"

#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

/* Three significant digits in the largest unit that leaves at least 1. */
static void
scaled(double value, const double *factors, const char *const *units, size_t n, char out[48])
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) >= factors[i + 1] * 0.9995) {
        i++;
    }
    double v = value / factors[i];
    int digits = fabs(v) >= 100 || v == floor(v) ? 0 : fabs(v) >= 10 ? 1 : 2;
    (void)snprintf(out, 48, "%.*f%s", digits, v, units[i]);
}

void cli_value(double value, struct hearth_str unit, char out[48])
{
    static const double time[] = {1, 1e3, 1e6, 1e9, 60e9, 3600e9, 86400e9};
    static const char *const time_units[] = {" ns", " us", " ms", " s", " min", " h", " d"};
    static const double bytes[] = {1, 1024.0, 1048576.0, 1073741824.0, 1099511627776.0};
    static const char *const byte_units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    static const double count[] = {1, 1e3, 1e6, 1e9, 1e12};
    static const char *const count_units[] = {"", "k", "M", "G", "T"};
    if (hearth_str_eq_c(unit, "nanoseconds")) {
        scaled(value, time, time_units, HEARTH_ARRAY_LEN(time), out);
    } else if (hearth_str_eq_c(unit, "bytes")) {
        scaled(value, bytes, byte_units, HEARTH_ARRAY_LEN(bytes), out);
    } else {
        scaled(value, count, count_units, HEARTH_ARRAY_LEN(count), out);
    }
}

void cli_time(int64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%m-%d %H:%M:%S", &tm) == 0) {
        (void)snprintf(out, 32, "%lld", (long long)ms);
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

void cli_bar(double fraction, int width, struct hearth_buf *out)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    int n = (int)(fraction * width * 8 + 0.5);
    for (int i = 0; i < n / 8; i++) {
        hearth_buf_cstr(out, "█");
    }
    hearth_buf_cstr(out, eighths[n % 8]);
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

/* C0, DEL, and C1 (U+0080 to U+009F): a terminal could take them for commands. */
static bool is_control(const char *p, size_t n)
{
    unsigned char c = (unsigned char)p[0];
    return c < 0x20 || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0);
}

void cli_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out)
{
    int columns = 0;
    size_t i = 0;
    while (i < text.n && columns < width) {
        size_t n = 1;
        while (i + n < text.n && ((unsigned char)text.p[i + n] & 0xC0) == 0x80) {
            n++;
        }
        if (columns == width - 1 && i + n < text.n) {
            hearth_buf_cstr(out, "…");
        } else if (is_control(text.p + i, n)) {
            hearth_buf_byte(out, '?');
        } else {
            hearth_buf_append(out, text.p + i, n);
        }
        i += n;
        columns++;
    }
    for (; pad && columns < width; columns++) {
        hearth_buf_byte(out, ' ');
    }
}

enum cli_exit cli_print(struct hearth_buf *out)
{
    bool ok = !hearth_buf_failed(out) &&
              (out->n == 0 || fwrite(out->p, 1, out->n, stdout) == out->n) && fflush(stdout) == 0;
    hearth_buf_release(out);
    if (!ok) {
        (void)fprintf(stderr, "hearth: cannot write to standard output\n");
    }
    return ok ? CLI_OK : CLI_FAILED;
}
