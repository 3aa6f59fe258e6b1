/*
 * settings_cache.h -- the settings of tenants, in memory (private to the store).
 *
 * Contract of reading and writing them: hearth/store/settings.h.
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_SETTINGS_CACHE_H
#define HEARTH_STORE_SETTINGS_CACHE_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_settings;

HEARTH_MUST_CHECK enum hearth_status hearth_settings_new(struct hearth_settings **ret,
                                                         struct hearth_err *err);
void hearth_settings_free(struct hearth_settings *settings); /* NULL-safe */

/* Read all settings from the database. Calls take turns: the last one reads last. */
HEARTH_MUST_CHECK enum hearth_status
hearth_settings_refresh(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

#endif
