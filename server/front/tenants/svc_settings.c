/* svc_settings.c -- settings.v1.SettingsService: settings that clients store on the server. */
#include "hearth/engine/client_settings.h"
#include "hearth/pb/settings/v1/settings.pb-c.h"

#include "handlers.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(setting, struct hearth_client_setting, Settings__V1__Setting);
static const struct hearth_message_member setting_members[] = {
    HEARTH_MAP(setting, name, name),
    HEARTH_MAP(setting, value, value),
    HEARTH_MAP(setting, modified_at_ms, modifiedat),
};
static const struct hearth_message_map setting_map =
    HEARTH_MESSAGE_MAP(setting, settings__v1__setting__descriptor);

HEARTH_UNARY(hearth_svc_settings_get, Settings__V1__GetSettingsRequest,
             Settings__V1__GetSettingsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_client_setting *settings;
    size_t n;

    HEARTH_TRY(hearth_client_settings_get(&call, &settings, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &setting_map, settings, n, out, settings);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_settings_set, Settings__V1__SetSettingsRequest,
             Settings__V1__SetSettingsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);

    if (in->setting == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "the setting is missing");
    }

    struct hearth_client_setting setting = {
        .name = hearth_str_c(in->setting->name),
        .value = hearth_str_c(in->setting->value),
        .modified_at_ms = in->setting->modifiedat,
    };

    HEARTH_TRY(hearth_client_settings_set(&call, &setting, &rpc->err));
    out->setting = hearth_rpc_map(rpc, &setting_map, &setting);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_settings_delete, Settings__V1__DeleteSettingsRequest,
             Settings__V1__DeleteSettingsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_client_settings_delete(&call, hearth_str_c(in->name), &rpc->err);
}
