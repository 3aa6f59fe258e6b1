/* human.c -- values with units, bars and untrusted texts, formatted for people. */
#include "hearth/base/human.h"

#include "hearth/base/compiler.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

struct step {
    double factor;
    const char *unit;
};

static const struct step g_times[] = {{1, " ns"},     {1e3, " µs"},   {1e6, " ms"},   {1e9, " s"},
                                      {60e9, " min"}, {3600e9, " h"}, {86400e9, " d"}};
static const struct step g_bytes[] = {{1, " B"},
                                      {1024.0, " KiB"},
                                      {1048576.0, " MiB"},
                                      {1073741824.0, " GiB"},
                                      {1099511627776.0, " TiB"}};
static const struct step g_counts[] = {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}};

/* The units that a unit of profile types is shown in, the smallest first. */
static const struct step *find_steps(struct hearth_str unit, size_t *ret_n)
{
    if (hearth_str_eq_c(unit, "nanoseconds")) {
        *ret_n = HEARTH_ARRAY_LEN(g_times);
        return g_times;
    }
    if (hearth_str_eq_c(unit, "bytes")) {
        *ret_n = HEARTH_ARRAY_LEN(g_bytes);
        return g_bytes;
    }
    *ret_n = HEARTH_ARRAY_LEN(g_counts);
    return g_counts;
}

void hearth_human_value(double value, struct hearth_str unit, char out[48])
{
    size_t i = 0, n;
    const struct step *steps = find_steps(unit, &n);

    /* Three significant digits in the largest unit in which the value is at least 1. */
    while (i + 1 < n && fabs(value) >= steps[i + 1].factor * 0.9995) {
        i++;
    }
    double v = value / steps[i].factor;
    int digits = fabs(v) >= 100 || v == floor(v) ? 0 : fabs(v) >= 10 ? 1 : 2;
    (void)snprintf(out, 48, "%.*f%s", digits, v, steps[i].unit);
}

int hearth_human_width(const char *value, int columns)
{
    for (const char *at = value; *at != '\0'; at++) {
        columns += ((unsigned char)*at & 0xc0) == 0x80;
    }
    return columns;
}

void hearth_human_scale(double max, struct hearth_str unit, struct hearth_human_scale *ret)
{
    size_t i = 0, n;
    const struct step *steps = find_steps(unit, &n);

    /* A minute has too few seconds for its hundredths to tell them apart. */
    while (steps != g_counts && i + 1 < n &&
           max >= (steps[i + 1].factor < 60e9 || steps == g_bytes ? 1 : 10) * steps[i + 1].factor) {
        i++;
    }
    double v = max / steps[i].factor;
    int digits = i == 0 || v >= 1000 ? 0 : v >= 100 ? 1 : 2;
    *ret = (struct hearth_human_scale){steps[i].factor, steps[i].unit, digits};
}

void hearth_human_scaled(double value, const struct hearth_human_scale *scale, char out[48])
{
    static const char *const least[] = {"1", "0.1", "0.01"};
    static const double bounds[] = {0.5, 0.05, 0.005};

    double v = value / scale->factor;
    if (v != 0 && fabs(v) < bounds[scale->digits]) {
        (void)snprintf(out, 48, "%s<%s%s", v < 0 ? "-" : "", least[scale->digits], scale->unit);
    } else {
        (void)snprintf(out, 48, "%.*f%s", scale->digits, v, scale->unit);
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

/* The code point of the character of n bytes at p; -1 if they are not a character of UTF-8. */
static int32_t decode_character(const char *p, size_t n)
{
    unsigned char lead = (unsigned char)p[0];
    int32_t point = n == 1 ? lead : lead & (0x7f >> n);

    if (!hearth_str_utf8_valid(hearth_str_n(p, n))) {
        return -1;
    }
    for (size_t i = 1; i < n; i++) {
        point = point << 6 | ((unsigned char)p[i] & 0x3f);
    }
    return point;
}

/* Whether a terminal obeys the character, or it hides or turns round others. */
static bool is_hostile(int32_t point)
{
    static const struct {
        int32_t from, to;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
        {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
        {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ranges); i++) {
        if (point >= ranges[i].from && point <= ranges[i].to) {
            return true;
        }
    }
    return false;
}

/*
 * The character at `at`, of *ret_n_bytes bytes, as it is shown: itself, or an escape in `room`.
 * Bytes that are not a character are taken one by one.
 */
static struct hearth_str show_character(struct hearth_str text, size_t at, char room[16],
                                        size_t *ret_n_bytes)
{
    size_t n = 1;

    while (at + n < text.n && n < 4 && ((unsigned char)text.p[at + n] & 0xc0) == 0x80) {
        n++;
    }
    int32_t point = decode_character(text.p + at, n);
    *ret_n_bytes = point < 0 ? 1 : n;
    if (point >= 0 && !is_hostile(point)) {
        return hearth_str_n(text.p + at, n);
    }

    int length = point < 0        ? snprintf(room, 16, "\\x%02x", (unsigned char)text.p[at])
                 : point > 0xffff ? snprintf(room, 16, "\\U%08x", (unsigned)point)
                                  : snprintf(room, 16, "\\u%04x", (unsigned)point);
    return hearth_str_n(room, (size_t)length);
}

void hearth_human_escape(struct hearth_str text, struct hearth_buf *out)
{
    char room[16];
    size_t n;

    for (size_t at = 0; at < text.n; at += n) {
        hearth_buf_str(out, show_character(text, at, room, &n));
    }
}

void hearth_human_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out)
{
    assert(width >= 0);

    char room[16];
    int columns = 0;
    size_t n;
    for (size_t at = 0; at < text.n && columns < width; at += n) {
        struct hearth_str shown = show_character(text, at, room, &n);
        int cells = shown.p == room ? (int)shown.n : 1;
        bool is_last = at + n >= text.n;

        /* The last column shows that more text follows. */
        if (columns + cells > width || (columns + cells == width && !is_last)) {
            hearth_buf_cstr(out, "…");
            columns++;
            break;
        }
        hearth_buf_str(out, shown);
        columns += cells;
    }

    for (; pad && columns < width; columns++) {
        hearth_buf_byte(out, ' ');
    }
}
