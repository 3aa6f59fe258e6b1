/*
 * exported_profiles.h -- from an export of OpenTelemetry's protocol to the series of a push.
 *
 * An export holds profiles of many resources (format/otlp_profiles.h). Each becomes a series with
 * its service, the labels of its resource, and its kind as __name__. A profile_id of 16 bytes makes
 * the profile safe to repeat.
 *
 * Threads: safe; the work is done on the calling thread.
 */
#ifndef HEARTH_ENGINE_EXPORTED_PROFILES_H
#define HEARTH_ENGINE_EXPORTED_PROFILES_H

#include "hearth/engine/ingest.h"

struct hearth_profiles_export {
    struct hearth_str tenant;
    struct hearth_str wire; /* a plain ExportProfilesServiceRequest; must outlive the push */
    size_t n_bytes;         /* size as sent: counts against the tenant's rate */
    const char *client;     /* as in hearth_push_request */
};

/* What is not in the series. */
struct hearth_profiles_outcome {
    size_t n_received;       /* profiles of the export */
    size_t n_rejected;       /* of them, left out because of an error */
    uint64_t n_bad_samples;  /* samples left out of other profiles */
    struct hearth_err first; /* why the first one was left out; OK: none was */
};

/*
 * Reads an export within the limits of the tenant, and sets the series of a push; n_series is 0 if
 * no profile is left. Series and profiles live in the arena, which must outlive the push.
 * discards: [HEARTH_N_DISCARDS]; all that was cut or left out is counted.
 *
 * Errors: INVALID_ARGUMENT for damaged bytes and older layouts of the protocol; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_read_export(const struct hearth_ingest *ingest,
                                             const struct hearth_profiles_export *in,
                                             struct hearth_arena *arena, uint64_t *discards,
                                             struct hearth_push_request *request,
                                             struct hearth_profiles_outcome *ret,
                                             struct hearth_err *err);

#endif
