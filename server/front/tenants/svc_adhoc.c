/* svc_adhoc.c -- adhocprofiles.v1.AdHocProfileService: profiles that users upload to view them. */
#include "hearth/base/base64.h"
#include "hearth/engine/adhoc.h"
#include "hearth/pb/adhocprofiles/v1/adhocprofiles.pb-c.h"

#include "handlers.h"
#include "query/flamebearer.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

/* Write the view as JSON text in the request's arena; NULL if memory was refused. */
static char *make_flamebearer(struct hearth_rpc *rpc, const struct hearth_adhoc_view *view,
                              bool is_diff)
{
    const struct hearth_flamebearer_about about = {
        .name = view->profile.name, .type = view->sample_type, .unit = view->unit};
    struct hearth_buf text;
    struct hearth_json json;

    hearth_buf_init(&text, 0);
    text.budget = rpc->arena.budget;
    hearth_json_init(&json, &text);
    hearth_json_object(&json);

    struct hearth_flamebearer bearer = is_diff ? hearth_flamebearer_double(&view->diff, &about)
                                               : hearth_flamebearer_single(&view->graph, &about);

    (void)hearth_flamebearer_more(&bearer, SIZE_MAX, &json);
    hearth_json_key_c(&json, "timeline");
    hearth_json_null(&json);
    hearth_json_key_c(&json, "groups");
    hearth_json_null(&json);
    hearth_json_key_c(&json, "heatmap");
    hearth_json_null(&json);
    hearth_json_object_end(&json);

    char *copy = hearth_buf_failed(&text) ? NULL : hearth_rpc_text(rpc, hearth_buf_view(&text));

    hearth_buf_release(&text);

    return copy;
}

static enum hearth_status answer_view(struct hearth_rpc *rpc, const struct hearth_adhoc_view *view)
{
    Adhocprofiles__V1__AdHocProfilesGetResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    adhocprofiles__v1__ad_hoc_profiles_get_response__init(out);
    out->id = hearth_rpc_text(rpc, view->profile.id);
    out->name = hearth_rpc_text(rpc, view->profile.name);
    out->uploaded_at = view->profile.uploaded_at_ms;
    out->profile_type = hearth_rpc_text(rpc, view->type);
    out->profile_types = hearth_rpc_texts(rpc, view->types, view->n_types);
    out->n_profile_types = view->n_types;
    out->flamebearer_profile = make_flamebearer(rpc, view, false);
    if (rpc->arena.refused || out->flamebearer_profile == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status upload(struct hearth_rpc *rpc)
{
    const Adhocprofiles__V1__AdHocProfilesUploadRequest *in =
        (const Adhocprofiles__V1__AdHocProfilesUploadRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str bytes;
    if (!hearth_base64_decode(hearth_str_c(in->profile), &rpc->arena, &bytes)) {
        return rpc->arena.refused
                   ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                   : HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "profile is not base64");
    }

    const struct hearth_adhoc_spec spec = {.has_max_nodes = in->max_nodes_presence_case != 0,
                                           .max_nodes = in->max_nodes};
    struct hearth_adhoc_view view;

    HEARTH_TRY(hearth_adhoc_upload(&call, hearth_str_c(in->name), bytes, &spec, &view, &rpc->err));

    return answer_view(rpc, &view);
}

void hearth_svc_adhoc_upload(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, upload(rpc));
}

static enum hearth_status get(struct hearth_rpc *rpc)
{
    const Adhocprofiles__V1__AdHocProfilesGetRequest *in =
        (const Adhocprofiles__V1__AdHocProfilesGetRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_adhoc_spec spec = {.has_max_nodes = in->max_nodes_presence_case != 0,
                                     .max_nodes = in->max_nodes};
    if (in->profile_type_presence_case != 0) {
        spec.profile_type = hearth_str_c(in->profile_type);
    }

    struct hearth_adhoc_view view;
    HEARTH_TRY(hearth_adhoc_get(&call, hearth_str_c(in->id), &spec, &view, &rpc->err));

    return answer_view(rpc, &view);
}

void hearth_svc_adhoc_get(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get(rpc));
}

static enum hearth_status list(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_adhoc *profiles;
    size_t n;

    HEARTH_TRY(hearth_adhoc_list(&call, &profiles, &n, &rpc->err));

    Adhocprofiles__V1__AdHocProfilesListResponse *out =
        hearth_arena_alloc(&rpc->arena, sizeof *out);
    Adhocprofiles__V1__AdHocProfilesProfileMetadata **all =
        hearth_arena_array(&rpc->arena, n, sizeof *all);
    Adhocprofiles__V1__AdHocProfilesProfileMetadata *bodies =
        hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || all == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    adhocprofiles__v1__ad_hoc_profiles_list_response__init(out);

    for (size_t i = 0; i < n; i++) {
        adhocprofiles__v1__ad_hoc_profiles_profile_metadata__init(&bodies[i]);
        bodies[i].id = hearth_rpc_text(rpc, profiles[i].id);
        bodies[i].name = hearth_rpc_text(rpc, profiles[i].name);
        bodies[i].uploaded_at = profiles[i].uploaded_at_ms;
        all[i] = &bodies[i];
    }

    out->profiles = all;
    out->n_profiles = n;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_adhoc_list(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list(rpc));
}

static enum hearth_status diff(struct hearth_rpc *rpc)
{
    const Adhocprofiles__V1__AdHocProfilesDiffRequest *in =
        (const Adhocprofiles__V1__AdHocProfilesDiffRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_adhoc_spec spec = {.has_max_nodes = in->max_nodes_presence_case != 0,
                                     .max_nodes = in->max_nodes};
    if (in->profile_type_presence_case != 0) {
        spec.profile_type = hearth_str_c(in->profile_type);
    }

    struct hearth_adhoc_view view;

    HEARTH_TRY(hearth_adhoc_diff(&call, hearth_str_c(in->left_id), hearth_str_c(in->right_id),
                                 &spec, &view, &rpc->err));

    Adhocprofiles__V1__AdHocProfilesDiffResponse *out =
        hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    adhocprofiles__v1__ad_hoc_profiles_diff_response__init(out);
    out->profile_types = hearth_rpc_texts(rpc, view.types, view.n_types);
    out->n_profile_types = view.n_types;
    out->flamebearer_profile = make_flamebearer(rpc, &view, true);
    if (rpc->arena.refused || out->flamebearer_profile == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_adhoc_diff(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, diff(rpc));
}
