/*
 * client_settings.h -- what clients keep on the server: named texts of a tenant.
 *
 * Ownership: answers live in the call's arena.
 * Threads:   safe.
 * Source:    settings.v1.SettingsService as in docs/reference/api-clients.md.
 */
#ifndef HEARTH_ENGINE_CLIENT_SETTINGS_H
#define HEARTH_ENGINE_CLIENT_SETTINGS_H

#include "hearth/engine/call.h"
#include "hearth/model/client_setting.h"

/* By name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_settings_get(const struct hearth_call *call,
                                              struct hearth_client_setting **ret, size_t *ret_n,
                                              struct hearth_err *err);
/*
 * modified_at_ms <= 0 becomes now. INVALID_ARGUMENT: no name, or name and value exceed
 * max-setting-bytes. ALREADY_EXISTS: the stored one was modified later. RESOURCE_EXHAUSTED:
 * max-settings.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_settings_set(const struct hearth_call *call,
                                              struct hearth_client_setting *setting,
                                              struct hearth_err *err);
/* Deleting a setting that does not exist succeeds. INVALID_ARGUMENT: no name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_settings_delete(const struct hearth_call *call,
                                                 struct hearth_str name, struct hearth_err *err);

#endif
