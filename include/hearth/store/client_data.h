/*
 * client_data.h -- what a tenant keeps that is not profiles of services: settings of clients, and ad hoc
 * profiles.
 *
 * A tenant need not have pushed anything. Limits are the caller's; they hold whoever else writes at
 * the same time.
 *
 * Ownership: answers live in the arena given. Threads: safe.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and what each function names.
 */
#ifndef HEARTH_STORE_CLIENT_DATA_H
#define HEARTH_STORE_CLIENT_DATA_H

#include "hearth/model/client_setting.h"
#include "hearth/store/store.h"

/* ---- settings ---- */

/* By name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_client_settings(const struct hearth_scope *scope,
                                                struct hearth_client_setting **ret, size_t *ret_n,
                                                struct hearth_err *err);
/*
 * Make or replace one. ALREADY_EXISTS when the stored one was modified later; RESOURCE_EXHAUSTED for
 * a new one beyond max_settings (0: no limit).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_client_setting_put(const struct hearth_scope *scope,
                                                   const struct hearth_client_setting *setting,
                                                   int64_t max_settings, struct hearth_err *err);
/* OK, too, if the setting does not exist. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_client_setting_delete(const struct hearth_scope *scope,
                                                      struct hearth_str name,
                                                      struct hearth_err *err);

/* ---- ad hoc profiles ---- */

/* RESOURCE_EXHAUSTED, naming the limit, beyond max_profiles or max_bytes of the tenant (0: no limit). */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_adhoc_put(const struct hearth_scope *scope,
                                          const struct hearth_adhoc *profile, int64_t max_profiles,
                                          int64_t max_bytes, struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_adhoc_get(const struct hearth_scope *scope, struct hearth_str id,
                                          struct hearth_adhoc *ret, struct hearth_err *err);
/* Newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_adhoc_list(const struct hearth_scope *scope,
                                           struct hearth_adhoc **ret, size_t *ret_n,
                                           struct hearth_err *err);

#endif
