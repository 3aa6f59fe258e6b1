/*
 * client_data.h -- stores settings of clients and ad hoc profiles of a tenant
 * (model/client_setting.h).
 *
 * The tenant need not have pushed anything. The caller passes the limits; they are exact, also with
 * concurrent writers.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_CLIENT_DATA_H
#define HEARTH_STORE_CLIENT_DATA_H

#include "hearth/model/client_setting.h"
#include "hearth/store/store.h"

/* ---- settings ---- */

/* Sorted by name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_client_settings(const struct hearth_scope *scope,
                                                struct hearth_client_setting **ret, size_t *ret_n,
                                                struct hearth_err *err);
/*
 * Create or replace a setting. ALREADY_EXISTS: the stored one was modified later.
 * RESOURCE_EXHAUSTED: a new setting above max_settings (0: no limit). arena: may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_client_setting_put(const struct hearth_scope *scope,
                                                   const struct hearth_client_setting *setting,
                                                   int64_t max_settings, struct hearth_err *err);
/* OK if the setting does not exist, too. arena: not used. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_client_setting_delete(const struct hearth_scope *scope,
                                                      struct hearth_str name,
                                                      struct hearth_err *err);

/* ---- ad hoc profiles ---- */

/*
 * Store a profile; nothing happens if its id is stored. RESOURCE_EXHAUSTED, naming the limit: the
 * tenant would have more than max_profiles or max_bytes (0: no limit). arena: may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_adhoc_put(const struct hearth_scope *scope,
                                          const struct hearth_adhoc *profile, int64_t max_profiles,
                                          int64_t max_bytes, struct hearth_err *err);
/* A profile with its payload. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_adhoc_get(const struct hearth_scope *scope, struct hearth_str id,
                                          struct hearth_adhoc *ret, struct hearth_err *err);
/* Profiles without payload, the newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_adhoc_list(const struct hearth_scope *scope,
                                           struct hearth_adhoc **ret, size_t *ret_n,
                                           struct hearth_err *err);

#endif
