/*
 * svc_capabilities.c -- version.v1, capabilities.v1 and vcs.v1: methods by which clients learn what
 * the server can do.
 */
#include "hearth/pb/capabilities/v1/feature_flags.pb-c.h"
#include "hearth/pb/version/v1/version.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

#define QUERIER_API 1 /* the only version */

HEARTH_UNARY(hearth_svc_version, Version__V1__VersionRequest, Version__V1__VersionResponse)
{
    out->querierapi = QUERIER_API;
    return HEARTH_OK;
}

struct feature_flag {
    const char *name, *description;
    bool enabled;
};

static void fill_flag_presence(struct hearth_rpc *rpc HEARTH_UNUSED, const void *from HEARTH_UNUSED,
                               void *message)
{
    Capabilities__V1__FeatureFlag *out = message;
    out->description_presence_case =
        CAPABILITIES__V1__FEATURE_FLAG__DESCRIPTION_PRESENCE_DESCRIPTION;
}

HEARTH_MAP_TYPES(flag, struct feature_flag, Capabilities__V1__FeatureFlag);
static const struct hearth_message_member flag_members[] = {
    HEARTH_MAP(flag, name, name),
    HEARTH_MAP(flag, description, description),
    HEARTH_MAP(flag, enabled, enabled),
};
static const struct hearth_message_map flag_map =
    HEARTH_MESSAGE_MAP_AND(flag, capabilities__v1__feature_flag__descriptor, fill_flag_presence);

HEARTH_UNARY(hearth_svc_feature_flags, Capabilities__V1__GetFeatureFlagsRequest,
             Capabilities__V1__GetFeatureFlagsResponse)
{
    bool has_rules = hearth_service_is_known(rpc->front->methods,
                                             HEARTH_STR("settings.v1.RecordingRulesService"));

    /*
     * Sorted by name, in byte order.
     *
     * utf8LabelNames: clients that see it send `Accept: ...; allow-utf8-labelnames=true` and quote
     * names in selectors; both work here. Other clients are shown classic names only.
     *
     * v2StorageLayer: clients that see it offer spans, heatmaps and traces, and send no requests
     * about blocks.
     */
    const struct feature_flag flags[] = {
        {"pyroscopeRuler", "recording rules run here", has_rules},
        {"pyroscopeRulerFunctions", "recording rules may name a function", has_rules},
        {"utf8LabelNames", "label names are any UTF-8", true},
        {"v2StorageLayer", "answers are those of the second generation of the API", true},
    };

    HEARTH_RPC_LIST(rpc, &flag_map, flags, HEARTH_ARRAY_LEN(flags), out, feature_flags);

    return HEARTH_OK;
}

/* The handler of all methods of vcs.v1, whose requests have different types. */
enum hearth_status hearth_svc_vcs(struct hearth_rpc *rpc,
                                  const struct ProtobufCMessage *in HEARTH_UNUSED,
                                  struct ProtobufCMessage *out HEARTH_UNUSED)
{
    return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                       "source code integration is not configured");
}
