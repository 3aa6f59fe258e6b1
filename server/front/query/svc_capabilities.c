/*
 * svc_capabilities.c -- version.v1, capabilities.v1 and vcs.v1: methods by which clients learn what
 * the server can do.
 */
#include "hearth/pb/capabilities/v1/feature_flags.pb-c.h"
#include "hearth/pb/version/v1/version.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"

#define QUERIER_API 1 /* the only version */
#define MAX_FLAGS   4

void hearth_svc_version(struct hearth_rpc *rpc)
{
    Version__V1__VersionResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena));
        return;
    }

    version__v1__version_response__init(out);
    out->querierapi = QUERIER_API;
    rpc->answer = &out->base;
    hearth_rpc_end(rpc, HEARTH_OK);
}

void hearth_svc_feature_flags(struct hearth_rpc *rpc)
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
    const struct {
        const char *name, *description;
        bool enabled;
    } flags[MAX_FLAGS] = {
        {"pyroscopeRuler", "recording rules run here", has_rules},
        {"pyroscopeRulerFunctions", "recording rules may name a function", has_rules},
        {"utf8LabelNames", "label names are any UTF-8", true},
        {"v2StorageLayer", "answers are those of the second generation of the API", true},
    };

    /* Make the answer in the arena, texts included. */
    Capabilities__V1__GetFeatureFlagsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Capabilities__V1__FeatureFlag **list = hearth_arena_array(&rpc->arena, MAX_FLAGS, sizeof *list);
    Capabilities__V1__FeatureFlag *bodies =
        hearth_arena_array(&rpc->arena, MAX_FLAGS, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena));
        return;
    }

    capabilities__v1__get_feature_flags_response__init(out);
    for (size_t i = 0; i < MAX_FLAGS; i++) {
        capabilities__v1__feature_flag__init(&bodies[i]);
        bodies[i].enabled = flags[i].enabled;
        bodies[i].name = hearth_arena_strndup(&rpc->arena, flags[i].name, strlen(flags[i].name));
        bodies[i].description =
            hearth_arena_strndup(&rpc->arena, flags[i].description, strlen(flags[i].description));
        bodies[i].description_presence_case =
            CAPABILITIES__V1__FEATURE_FLAG__DESCRIPTION_PRESENCE_DESCRIPTION;
        list[i] = &bodies[i];
    }

    /* A refused text shows in the arena. */
    out->feature_flags = list;
    out->n_feature_flags = MAX_FLAGS;
    rpc->answer = &out->base;
    hearth_rpc_end(rpc, rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK);
}

void hearth_svc_vcs(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                                    "source code integration is not configured"));
}
