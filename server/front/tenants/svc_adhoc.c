/* svc_adhoc.c -- adhocprofiles.v1.AdHocProfileService: profiles that users upload to view them. */
#include "hearth/base/base64.h"
#include "hearth/engine/adhoc.h"
#include "hearth/pb/adhocprofiles/v1/adhocprofiles.pb-c.h"

#include "handlers.h"
#include "query/flamebearer.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

/* Writes the view as JSON text in the request's arena. */
static enum hearth_status make_flamebearer(struct hearth_rpc *rpc,
                                           const struct hearth_adhoc_view *view, bool is_diff,
                                           char **ret)
{
    const struct hearth_flamebearer_about about = {
        .name = view->profile.name, .type = view->sample_type, .unit = view->unit};
    struct hearth_flamebearer bearer = is_diff ? hearth_flamebearer_double(&view->diff, &about)
                                               : hearth_flamebearer_single(&view->graph, &about);
    struct hearth_buf text;
    struct hearth_json json;

    assert(view != NULL && ret != NULL);

    /* Write the graph at once, then the members that an uploaded profile lacks. */
    hearth_buf_init(&text, 0);
    text.budget = rpc->arena.budget;
    hearth_json_init(&json, &text);
    hearth_json_object(&json);
    (void)hearth_flamebearer_more(&bearer, SIZE_MAX, &json);
    hearth_json_key_c(&json, "timeline");
    hearth_json_null(&json);
    hearth_json_key_c(&json, "groups");
    hearth_json_null(&json);
    hearth_json_key_c(&json, "heatmap");
    hearth_json_null(&json);
    hearth_json_object_end(&json);

    /* Copy the text to the arena. */
    bool failed = hearth_buf_failed(&text);
    *ret = failed ? NULL : hearth_rpc_text(rpc, hearth_buf_view(&text));
    hearth_buf_release(&text);

    return *ret == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* An uploaded profile as it is shown, but for its graph. */
HEARTH_MAP_TYPES(view, struct hearth_adhoc_view, Adhocprofiles__V1__AdHocProfilesGetResponse);
static const struct hearth_message_member view_members[] = {
    HEARTH_MAP(view, profile.id, id),
    HEARTH_MAP(view, profile.name, name),
    HEARTH_MAP(view, profile.uploaded_at_ms, uploaded_at),
    HEARTH_MAP(view, type, profile_type),
    HEARTH_MAP_TEXTS(view, types, n_types, profile_types),
};
static const struct hearth_message_map view_map =
    HEARTH_MESSAGE_MAP(view, adhocprofiles__v1__ad_hoc_profiles_get_response__descriptor);

HEARTH_MAP_TYPES(upload, struct hearth_adhoc, Adhocprofiles__V1__AdHocProfilesProfileMetadata);
static const struct hearth_message_member upload_members[] = {
    HEARTH_MAP(upload, id, id),
    HEARTH_MAP(upload, name, name),
    HEARTH_MAP(upload, uploaded_at_ms, uploaded_at),
};
static const struct hearth_message_map upload_map =
    HEARTH_MESSAGE_MAP(upload, adhocprofiles__v1__ad_hoc_profiles_profile_metadata__descriptor);

static enum hearth_status answer_view(struct hearth_rpc *rpc, const struct hearth_adhoc_view *view,
                                      Adhocprofiles__V1__AdHocProfilesGetResponse *out)
{
    hearth_rpc_map_into(rpc, &view_map, view, out);
    return make_flamebearer(rpc, view, false, &out->flamebearer_profile);
}

HEARTH_UNARY(hearth_svc_adhoc_upload, Adhocprofiles__V1__AdHocProfilesUploadRequest,
             Adhocprofiles__V1__AdHocProfilesGetResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    const struct hearth_adhoc_spec spec = {.has_max_nodes = in->max_nodes_presence_case != 0,
                                           .max_nodes = in->max_nodes};
    struct hearth_adhoc_view view;
    struct hearth_str bytes;

    if (!hearth_base64_decode(hearth_str_c(in->profile), &rpc->arena, &bytes)) {
        return rpc->arena.refused
                   ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                   : HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "profile is not base64");
    }

    HEARTH_TRY(hearth_adhoc_upload(&call, hearth_str_c(in->name), bytes, &spec, &view, &rpc->err));

    return answer_view(rpc, &view, out);
}

HEARTH_UNARY(hearth_svc_adhoc_get, Adhocprofiles__V1__AdHocProfilesGetRequest,
             Adhocprofiles__V1__AdHocProfilesGetResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_adhoc_spec spec = {.has_max_nodes = in->max_nodes_presence_case != 0,
                                     .max_nodes = in->max_nodes};
    struct hearth_adhoc_view view;

    if (in->profile_type_presence_case != 0) {
        spec.profile_type = hearth_str_c(in->profile_type);
    }

    HEARTH_TRY(hearth_adhoc_get(&call, hearth_str_c(in->id), &spec, &view, &rpc->err));

    return answer_view(rpc, &view, out);
}

HEARTH_UNARY(hearth_svc_adhoc_list, Adhocprofiles__V1__AdHocProfilesListRequest,
             Adhocprofiles__V1__AdHocProfilesListResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_adhoc *profiles;
    size_t n;

    HEARTH_TRY(hearth_adhoc_list(&call, &profiles, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &upload_map, profiles, n, out, profiles);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_adhoc_diff, Adhocprofiles__V1__AdHocProfilesDiffRequest,
             Adhocprofiles__V1__AdHocProfilesDiffResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_adhoc_spec spec = {.has_max_nodes = in->max_nodes_presence_case != 0,
                                     .max_nodes = in->max_nodes};
    struct hearth_adhoc_view view;

    if (in->profile_type_presence_case != 0) {
        spec.profile_type = hearth_str_c(in->profile_type);
    }

    HEARTH_TRY(hearth_adhoc_diff(&call, hearth_str_c(in->left_id), hearth_str_c(in->right_id),
                                 &spec, &view, &rpc->err));

    out->profile_types = hearth_rpc_texts(rpc, view.types, view.n_types);
    out->n_profile_types = view.n_types;

    return make_flamebearer(rpc, &view, true, &out->flamebearer_profile);
}
