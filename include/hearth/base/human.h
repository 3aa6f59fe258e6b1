/*
 * human.h -- formats values, bars and untrusted texts for people: on terminals and in plain-text
 * answers.
 *
 * Threads: pure.
 */
#ifndef HEARTH_BASE_HUMAN_H
#define HEARTH_BASE_HUMAN_H

#include "hearth/base/buf.h"

/*
 * "12.3 s", "4.56 MiB", "1.23k": three digits in the largest unit in which the value is at least 1.
 * `unit` as in profile types: "nanoseconds", "bytes"; all others are counts. UTF-8, for "µs".
 */
void hearth_human_value(double value, struct hearth_str unit, char out[48]);
/* The width for "%*s" of printf, which counts bytes, that shows a value in so many columns. */
int hearth_human_width(const char *value, int columns);
/* One unit for the values of a column, so that they can be compared by eye. */
struct hearth_human_scale {
    double factor;
    const char *unit;
    int digits; /* after the point, 0 to 2 */
};
/*
 * The scale of a column with the largest value `max`: the largest unit in which that is at least 1;
 * minutes and longer units: at least 10.
 */
void hearth_human_scale(double max, struct hearth_str unit, struct hearth_human_scale *ret);
/* "12.30 s"; "<0.01 s" for a value that would be shown as 0. */
void hearth_human_scaled(double value, const struct hearth_human_scale *scale, char out[48]);
/*
 * Append a bar of fraction * width cells (fraction: 0 to 1) in block characters, exact to an eighth
 * of a cell. A fraction outside that range is the nearest bound; NaN is 0.
 */
void hearth_human_bar(double fraction, int width, struct hearth_buf *out);
/*
 * Append `text` so that no terminal obeys it and no reader is misled: control characters, marks of
 * writing direction and characters without width become escapes of JSON like \u202e (above U+FFFF
 * \U000e0041), bytes that are no UTF-8 become \xff. All else stays as it is.
 */
void hearth_human_escape(struct hearth_str text, struct hearth_buf *out);
/*
 * The same, truncated to `width` characters (with an ellipsis) and, if `pad`, padded to `width`
 * with spaces.
 */
void hearth_human_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out);

#endif
