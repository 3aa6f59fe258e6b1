/*
 * adhoc.h -- profiles that were uploaded to be looked at, outside of all services: kept as they are,
 * decoded for each look.
 *
 * Formats, by their bytes: pprof (plain, gzip or zstd), collapsed stacks, the text of perf script.
 * A type is named by its sample type ("cpu"), with its unit where two share that ("cpu:count").
 *
 * Ownership: answers live in the call's arena.
 * Threads:   safe.
 * Source:    adhocprofiles.v1.AdHocProfileService as in docs/reference/api-clients.md.
 */
#ifndef HEARTH_ENGINE_ADHOC_H
#define HEARTH_ENGINE_ADHOC_H

#include "hearth/engine/call.h"
#include "hearth/model/client_setting.h"
#include "hearth/model/flame_diff.h"
#include "hearth/model/stacktree.h"

/* What of a profile is asked for. */
struct hearth_adhoc_spec {
    struct hearth_str profile_type; /* empty: the profile's first, or its default */
    bool has_max_nodes;
    int64_t max_nodes; /* unset or 0: default-flamegraph-nodes */
};

struct hearth_adhoc_view {
    struct hearth_adhoc profile; /* without payload */
    struct hearth_str *types;    /* that it has */
    size_t n_types;
    struct hearth_str type;              /* the one that is shown */
    struct hearth_str sample_type, unit; /* of that */
    struct hearth_flamegraph graph;      /* _upload and _get */
    struct hearth_flame_diff diff;       /* _diff */
};

/*
 * Keep a profile. INVALID_ARGUMENT: bytes that are no profile, or exceed max-adhoc-profile-bytes.
 * RESOURCE_EXHAUSTED: max-adhoc-profiles, max-adhoc-bytes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_upload(const struct hearth_call *call, struct hearth_str name,
                                       struct hearth_str bytes,
                                       const struct hearth_adhoc_spec *spec,
                                       struct hearth_adhoc_view *ret, struct hearth_err *err);
/* NOT_FOUND; INVALID_ARGUMENT: it has no such type. */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_get(const struct hearth_call *call, struct hearth_str id,
                                    const struct hearth_adhoc_spec *spec,
                                    struct hearth_adhoc_view *ret, struct hearth_err *err);
/* Newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_list(const struct hearth_call *call, struct hearth_adhoc **ret,
                                     size_t *ret_n, struct hearth_err *err);
/* ret->types: those that both have, with one unit; INVALID_ARGUMENT when there is none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_diff(const struct hearth_call *call, struct hearth_str left_id,
                                     struct hearth_str right_id,
                                     const struct hearth_adhoc_spec *spec,
                                     struct hearth_adhoc_view *ret, struct hearth_err *err);

#endif
