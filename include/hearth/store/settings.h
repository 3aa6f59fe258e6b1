/*
 * settings.h -- settings of tenants that differ from the server's: a name and a whole number each
 * (hearth_data.tenant_setting). The callers define the names.
 *
 * All settings are held in memory. Each server reads them again every few seconds, and at once when
 * it has set one itself.
 *
 * Threads: safe. A look-up takes a lock that only a refresh holds for writing, and allocates no
 *          memory.
 */
#ifndef HEARTH_STORE_SETTINGS_H
#define HEARTH_STORE_SETTINGS_H

#include "hearth/store/store.h"

struct hearth_setting {
    struct hearth_str name;
    int64_t value; /* >= 0; in hearth_store_settings_set, a negative value deletes the setting */
};

/* Called under a lock: it must return quickly and not call the store. */
typedef void hearth_setting_fn(void *context, struct hearth_str name, int64_t value);

/*
 * Visit all settings of the tenant, sorted by name; at most 10 s old while the database answers.
 * The empty name stands for tenants without settings: what the builder notes about all of them.
 */
void hearth_store_settings(struct hearth_store *store, struct hearth_str tenant,
                           hearth_setting_fn *visit, void *context);

/* The value of one setting of the tenant; `other` if it has none. */
int64_t hearth_store_setting(struct hearth_store *store, struct hearth_str tenant, const char *name,
                             int64_t other);

/*
 * Set all settings, or none. A tenant that has pushed nothing yet is created if `make_tenant`,
 * otherwise the status is NOT_FOUND. If a name is repeated, its last value counts.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_settings_set(struct hearth_store *store, struct hearth_str tenant,
                                             bool make_tenant,
                                             const struct hearth_setting *settings, size_t n,
                                             struct hearth_err *err);

#endif
