/*
 * store_monitors.h -- the writer of metrics, and its memory of lines (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_MONITORS_H
#define HEARTH_STORE_MONITORS_H

#include "hearth/store/store_policies.h"

#include "pg/pg.h"

struct hearth_monitors;

HEARTH_MUST_CHECK enum hearth_status hearth_monitors_new(struct hearth_monitors **ret,
                                                         struct hearth_err *err);
void hearth_monitors_free(struct hearth_monitors *monitors); /* NULL-safe */

/* A value to be written to a line of a service. */
struct hearth_monitor_row {
    int32_t service_id, minute, offset_ms;
    int64_t line_id;
    double value;
};

/*
 * Delete lines without values for retain-monitors, at most 10,000. Every server runs it once a
 * minute.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_monitors_trim(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

#endif
