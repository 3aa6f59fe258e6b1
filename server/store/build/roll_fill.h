/*
 * roll_fill.h -- hours and days that were left out, and whose profiles are about to be dropped
 * (private to the store; docs/decisions/0059-sparse-hours.md).
 *
 * Threads: confined to the builder's.
 */
#ifndef HEARTH_STORE_ROLL_FILL_H
#define HEARTH_STORE_ROLL_FILL_H

#include "build/builder.h"

/* A service that lacks blocks of hours or days. */
struct hearth_unfilled {
    int32_t service_id;
    int64_t day_ns; /* begin of its first day that lacks any: profiles are kept from there on */
    int64_t built_to_ns; /* after that day's begin */
};

/* List these services, ascending, in the arena. Errors of the database; CORRUPT; NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_unfilled_list(struct hearth_pg *pg,
                                                          struct hearth_arena *arena,
                                                          struct hearth_unfilled **ret,
                                                          size_t *ret_n, struct hearth_err *err);

/* Return the begin of the service's first day that lacks any, or INT64_MAX. */
int64_t hearth_unfilled_day(const struct hearth_unfilled *services, size_t n, int32_t service_id);

/*
 * Return whether profiles that ended before end_ns are needed to fill: those of a tenant, or of all
 * (0). Services that are being removed need none.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_unfilled_before(struct hearth_pg *pg, int32_t tenant_id,
                                                            int64_t end_ns, bool *ret,
                                                            struct hearth_err *err);

#endif
