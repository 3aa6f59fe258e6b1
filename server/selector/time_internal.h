/*
 * time_internal.h -- declarations that timeexpr.c shares with the generated scanner
 * grammar/time_lex.re.
 *
 * Private to the selector layer.
 */
#ifndef HEARTH_SELECTOR_TIME_INTERNAL_H
#define HEARTH_SELECTOR_TIME_INTERNAL_H

#include "hearth/selector/timeexpr.h"

enum hearth_time_token {
    HEARTH_TIME_END,
    HEARTH_TIME_OTHER,
    HEARTH_TIME_NOW,
    HEARTH_TIME_PLUS,
    HEARTH_TIME_MINUS,
    HEARTH_TIME_CALENDAR, /* YYYY-MM[-DD[Thh[:mm[:ss[.fraction]]][zone]]] */
    HEARTH_TIME_DIGITS,
    HEARTH_TIME_DECIMAL,
    HEARTH_TIME_PART_NS, /* number and unit; units ascend in this order */
    HEARTH_TIME_PART_US,
    HEARTH_TIME_PART_MS,
    HEARTH_TIME_PART_S,
    HEARTH_TIME_PART_MIN,
    HEARTH_TIME_PART_H,
    HEARTH_TIME_PART_D,
    HEARTH_TIME_PART_W,
    HEARTH_TIME_PART_MONTH,
    HEARTH_TIME_PART_Y,
};

/* *limit is a NUL that is not part of the text; the current token is [from, cursor). */
struct hearth_time_lexer {
    const unsigned char *from, *cursor, *marker, *limit;
};

enum hearth_time_token hearth_time_lex(struct hearth_time_lexer *lexer);

#endif
