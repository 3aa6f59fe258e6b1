/* client_settings.c -- named texts of a tenant (contract: hearth/engine/client_settings.h). */
#include "hearth/engine/client_settings.h"

#include "hearth/base/clock.h"
#include "hearth/store/client_data.h"

#include "common/shown.h"
#include "select/query_internal.h"

#include <assert.h>

enum hearth_status hearth_client_settings_get(const struct hearth_call *call,
                                              struct hearth_client_setting **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_client_settings(HEARTH_CALL_SCOPE(call), ret, ret_n, err);
}

enum hearth_status hearth_client_settings_set(const struct hearth_call *call,
                                              struct hearth_client_setting *setting,
                                              struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(setting != NULL);

    HEARTH_TRY(hearth_call_check_whole(call, err));

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);

    /* Check name and size. */
    if (setting->name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the setting has no name");
    }

    size_t n_bytes = setting->name.n + setting->value.n;
    if (limits.max_setting_bytes > 0 && n_bytes > (uint64_t)limits.max_setting_bytes) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "setting \"" HEARTH_STR_FMT "\" has %zu bytes; max-setting-bytes allows %lld",
            HEARTH_STR_ARG(setting->name), n_bytes, (long long)limits.max_setting_bytes);
    }

    /* Store it. */
    if (setting->modified_at_ms <= 0) {
        setting->modified_at_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    }

    return hearth_store_client_setting_put(HEARTH_CALL_SCOPE(call), setting, limits.max_settings,
                                           err);
}

enum hearth_status hearth_client_settings_delete(const struct hearth_call *call,
                                                 struct hearth_str name, struct hearth_err *err)
{
    if (name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the name of the setting is missing");
    }
    HEARTH_TRY(hearth_call_check_whole(call, err));

    return hearth_store_client_setting_delete(HEARTH_CALL_SCOPE(call), name, err);
}
