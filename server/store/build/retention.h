/*
 * retention.h -- how long tenants' data is kept, and what the step that enforces it shares (private
 * to the store).
 */
#ifndef HEARTH_STORE_RETENTION_H
#define HEARTH_STORE_RETENTION_H

#include "hearth/store/background.h"

void hearth_retention_default(const struct hearth_store *store, struct hearth_retention *ret);
/* Settings of other names, and values below 0, change nothing. */
void hearth_retention_apply(struct hearth_retention *retention, struct hearth_str name,
                            int64_t value_ns);

struct hearth_builder;
/*
 * Take series that have no hour left out of the catalogue, service by service from the one after
 * store->retention.sweep_service on, for about a second. *ret_done: all services were looked at.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_sweep(struct hearth_builder *builder, bool *ret_done,
                                                  struct hearth_err *err);

#endif
