/*
 * client_settings.h -- settings that clients store on the server: named texts of a tenant.
 *
 * Ownership: answers live in the call's arena.
 * Threads:   safe.
 * Source:    settings.v1.SettingsService as in docs/reference/api-clients.md.
 */
#ifndef HEARTH_ENGINE_CLIENT_SETTINGS_H
#define HEARTH_ENGINE_CLIENT_SETTINGS_H

#include "hearth/engine/call.h"
#include "hearth/model/client_setting.h"

/* All settings of the tenant, sorted by name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_settings_get(const struct hearth_call *call,
                                              struct hearth_client_setting **ret, size_t *ret_n,
                                              struct hearth_err *err);
/*
 * Store a setting; modified_at_ms <= 0 means now. INVALID_ARGUMENT: the name is empty, or name and
 * value exceed max-setting-bytes. ALREADY_EXISTS: the stored setting was modified later.
 * RESOURCE_EXHAUSTED: max-settings.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_settings_set(const struct hearth_call *call,
                                              struct hearth_client_setting *setting,
                                              struct hearth_err *err);
/* Delete a setting; succeeds if it does not exist. INVALID_ARGUMENT: the name is empty. */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_settings_delete(const struct hearth_call *call,
                                                 struct hearth_str name, struct hearth_err *err);

#endif
