/*
 * adhoc.h -- profiles that were uploaded for viewing and belong to no service: stored unchanged,
 * decoded for each view.
 *
 * Formats: all of format/profile_file.h, plain, gzip or zstd. A file with several profiles offers
 * the types of all of them. A type is named by its sample type ("cpu"), with its unit if two types
 * share the sample type ("cpu:count"), and with its profile if they share the unit, too
 * ("mutex:delay:nanoseconds").
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

/* The requested part of a profile. */
struct hearth_adhoc_spec {
    struct hearth_str
        profile_type; /* empty: the first profile's default type, otherwise its first */
    bool has_max_nodes;
    int64_t max_nodes; /* unset or 0: default-flamegraph-nodes */
};

struct hearth_adhoc_view {
    struct hearth_adhoc profile; /* without payload */
    struct hearth_str *types;    /* the types of all profiles of the file */
    size_t n_types;
    struct hearth_str type;              /* the shown type */
    struct hearth_str sample_type, unit; /* sample type and unit of the shown type */
    struct hearth_flamegraph graph;      /* set by _upload and _get */
    struct hearth_flame_diff diff;       /* set by _diff */
};

/*
 * Store a profile. INVALID_ARGUMENT: the bytes are not a profile, or exceed
 * max-adhoc-profile-bytes. RESOURCE_EXHAUSTED: max-adhoc-profiles, max-adhoc-bytes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_upload(const struct hearth_call *call, struct hearth_str name,
                                       struct hearth_str bytes,
                                       const struct hearth_adhoc_spec *spec,
                                       struct hearth_adhoc_view *ret, struct hearth_err *err);
/* View a profile. NOT_FOUND; INVALID_ARGUMENT: the profile does not have the type. */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_get(const struct hearth_call *call, struct hearth_str id,
                                    const struct hearth_adhoc_spec *spec,
                                    struct hearth_adhoc_view *ret, struct hearth_err *err);
/* All profiles of the tenant, newest first, without payload. */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_list(const struct hearth_call *call, struct hearth_adhoc **ret,
                                     size_t *ret_n, struct hearth_err *err);
/*
 * Compare two profiles. ret->types: the types that both have with the same unit; INVALID_ARGUMENT:
 * there is no such type.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_adhoc_diff(const struct hearth_call *call, struct hearth_str left_id,
                                     struct hearth_str right_id,
                                     const struct hearth_adhoc_spec *spec,
                                     struct hearth_adhoc_view *ret, struct hearth_err *err);

#endif
