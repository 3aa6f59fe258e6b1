/* pprof_errors.c -- what is wrong with a profile, and where. */
#include "pprof/pprof_scan.h"

#include <stdio.h>

enum hearth_status hearth_pprof_damaged(const struct pprof_scan *s, const char *what, uint32_t i,
                                        struct pprof_cursor c)
{
    return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT, "%s %u: %s, at byte %zu of %zu", what, i,
                       c.why, (size_t)(c.p - s->base), s->n_bytes);
}

enum hearth_status hearth_pprof_no_such_string(const struct pprof_scan *s, const char *what,
                                               uint32_t i, const char *field)
{
    char number[16] = "";
    if (i != HEARTH_NO_INDEX) {
        (void)snprintf(number, sizeof number, " %u", i);
    }

    return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                       "%s%s: %s: string index out of range of the %u strings", what, number, field,
                       s->out->n_strings);
}
