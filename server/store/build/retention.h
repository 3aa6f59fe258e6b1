/*
 * retention.h -- how long tenants' data is kept; the sweep of the catalogue (private to the store).
 *
 * Threads: hearth_retention_... safe; hearth_sweep is confined to the builder's thread.
 */
#ifndef HEARTH_STORE_RETENTION_H
#define HEARTH_STORE_RETENTION_H

#include "hearth/store/background.h"

/* Return the options of the server, which apply to tenants without settings. */
void hearth_retention_default(const struct hearth_store *store, struct hearth_retention *ret);

/* Set the value of one setting. Settings of other names, and values below 0, change nothing. */
void hearth_retention_apply(struct hearth_retention *retention, struct hearth_str name,
                            int64_t value_ns);

struct hearth_builder;

/*
 * Take series that have no hour left out of the catalogue, for about a second: service by service,
 * from the one after store->retention.sweep_service on. *ret_done: no service is left.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_sweep(struct hearth_builder *builder, bool *ret_done,
                                                  struct hearth_err *err);

#endif
