/*
 * settings.h -- settings of tenants that differ from the server's: a name and a whole number each
 * (hearth_data.tenant_setting). What names mean is the business of who asks.
 *
 * All are held in memory: read anew every few seconds, and at once by the server that sets one.
 *
 * Threads: safe; a look-up takes a lock that only a refresh holds for writing, and allocates nothing.
 */
#ifndef HEARTH_STORE_SETTINGS_H
#define HEARTH_STORE_SETTINGS_H

#include "hearth/store/store.h"

struct hearth_setting {
    struct hearth_str name;
    int64_t value; /* >= 0; to be set: below 0 takes it away */
};

/* Called under a lock: quick, and without asking the store. */
typedef void hearth_setting_fn(void *context, struct hearth_str name, int64_t value);

/* Everything that the tenant has of its own, by name. At most 10 s old while the database answers. */
void hearth_store_settings(struct hearth_store *store, struct hearth_str tenant,
                           hearth_setting_fn *visit, void *context);
/*
 * Set all or none. A tenant that has pushed nothing yet is NOT_FOUND, or made when `make_tenant`. The
 * latest of a repeated name counts.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_settings_set(struct hearth_store *store, struct hearth_str tenant,
                                             bool make_tenant,
                                             const struct hearth_setting *settings, size_t n,
                                             struct hearth_err *err);

#endif
