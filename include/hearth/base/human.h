/*
 * human.h -- values, bars and foreign texts for people: on terminals, and as plain text of the server.
 *
 * Threads: pure.
 */
#ifndef HEARTH_BASE_HUMAN_H
#define HEARTH_BASE_HUMAN_H

#include "hearth/base/buf.h"

/* 12.3 s, 4.56 MiB, 1.23k: three digits in the largest unit that leaves at least 1. `unit` as in profile types. */
void hearth_human_value(double value, struct hearth_str unit, char out[48]);
/* Append fraction (0 to 1) of width cells as block characters, eighths of a cell at the end. */
void hearth_human_bar(double fraction, int width, struct hearth_buf *out);
/* Append text cut to `width` columns of UTF-8 characters, padded when pad. Control characters become '?'. */
void hearth_human_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out);

#endif
