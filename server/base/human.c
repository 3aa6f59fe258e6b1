/* human.c -- values with units, bars and untrusted texts, formatted for people. */
#include "hearth/base/human.h"

#include "hearth/base/compiler.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

/* Three significant digits in the largest unit in which the value is at least 1. */
static void print_scaled(double value, const double *factors, const char *const *units, size_t n,
                         char out[48])
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) >= factors[i + 1] * 0.9995) {
        i++;
    }

    double v = value / factors[i];
    int digits = fabs(v) >= 100 || v == floor(v) ? 0 : fabs(v) >= 10 ? 1 : 2;
    (void)snprintf(out, 48, "%.*f%s", digits, v, units[i]);
}

void hearth_human_value(double value, struct hearth_str unit, char out[48])
{
    static const double time[] = {1, 1e3, 1e6, 1e9, 60e9, 3600e9, 86400e9};
    static const char *const time_units[] = {" ns", " us", " ms", " s", " min", " h", " d"};
    static const double bytes[] = {1, 1024.0, 1048576.0, 1073741824.0, 1099511627776.0};
    static const char *const byte_units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    static const double count[] = {1, 1e3, 1e6, 1e9, 1e12};
    static const char *const count_units[] = {"", "k", "M", "G", "T"};

    if (hearth_str_eq_c(unit, "nanoseconds")) {
        print_scaled(value, time, time_units, HEARTH_ARRAY_LEN(time), out);
    } else if (hearth_str_eq_c(unit, "bytes")) {
        print_scaled(value, bytes, byte_units, HEARTH_ARRAY_LEN(bytes), out);
    } else {
        print_scaled(value, count, count_units, HEARTH_ARRAY_LEN(count), out);
    }
}

void hearth_human_bar(double fraction, int width, struct hearth_buf *out)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

    assert(width >= 0);
    /* Not greater than 0: negative, or not a number (a share of an empty sum). */
    fraction = !(fraction > 0) ? 0 : fraction > 1 ? 1 : fraction;
    int n = (int)(fraction * width * 8 + 0.5);
    for (int i = 0; i < n / 8; i++) {
        hearth_buf_cstr(out, "█");
    }

    hearth_buf_cstr(out, eighths[n % 8]);
}

/* C0, DEL, and C1 (U+0080 to U+009F): a terminal could interpret them as commands. */
static bool is_control(const char *p, size_t n)
{
    unsigned char c = (unsigned char)p[0];
    return c < 0x20 || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0);
}

void hearth_human_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out)
{
    assert(width >= 0);

    int columns = 0;
    size_t i = 0;
    while (i < text.n && columns < width) {
        /* One character: a byte and its continuation bytes. */
        size_t n = 1;
        while (i + n < text.n && ((unsigned char)text.p[i + n] & 0xC0) == 0x80) {
            n++;
        }

        /* The last column shows that more text follows. */
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
