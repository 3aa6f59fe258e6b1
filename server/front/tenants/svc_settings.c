/* svc_settings.c -- settings.v1.SettingsService: settings that clients store on the server. */
#include "hearth/engine/client_settings.h"
#include "hearth/pb/settings/v1/settings.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

static enum hearth_status make_setting(struct hearth_rpc *rpc,
                                       const struct hearth_client_setting *setting,
                                       Settings__V1__Setting **ret)
{
    Settings__V1__Setting *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__setting__init(out);
    out->name = hearth_rpc_text(rpc, setting->name);
    out->value = hearth_rpc_text(rpc, setting->value);
    out->modifiedat = setting->modified_at_ms;
    *ret = out;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static enum hearth_status get(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_client_setting *settings;
    size_t n;

    HEARTH_TRY(hearth_client_settings_get(&call, &settings, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Settings__V1__GetSettingsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Settings__V1__Setting **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__get_settings_response__init(out);

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(make_setting(rpc, &settings[i], &list[i]));
    }

    out->settings = list;
    out->n_settings = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_settings_get(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get(rpc));
}

static enum hearth_status set(struct hearth_rpc *rpc)
{
    const Settings__V1__SetSettingsRequest *in =
        (const Settings__V1__SetSettingsRequest *)rpc->request;
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

    /* Build the answer in the request's arena. */
    Settings__V1__SetSettingsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__set_settings_response__init(out);
    rpc->answer = &out->base;

    return make_setting(rpc, &setting, &out->setting);
}

void hearth_svc_settings_set(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, set(rpc));
}

static enum hearth_status delete_one(struct hearth_rpc *rpc)
{
    const Settings__V1__DeleteSettingsRequest *in =
        (const Settings__V1__DeleteSettingsRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);

    HEARTH_TRY(hearth_client_settings_delete(&call, hearth_str_c(in->name), &rpc->err));

    /* Build the answer in the request's arena. */
    Settings__V1__DeleteSettingsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__delete_settings_response__init(out);
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_settings_delete(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, delete_one(rpc));
}
