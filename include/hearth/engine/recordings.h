/*
 * recordings.h -- from a recording of Java's Flight Recorder to the series of a push.
 *
 * A recording holds profiles of several kinds (format/jfr.h). Each becomes a series with the labels
 * of the upload, the kind as __name__, and jfr_event, if async-profiler says what it sampled.
 *
 * Threads: safe; the work is done on the calling thread.
 */
#ifndef HEARTH_ENGINE_RECORDINGS_H
#define HEARTH_ENGINE_RECORDINGS_H

#include "hearth/engine/ingest.h"

struct hearth_recording_upload {
    struct hearth_str tenant;
    struct hearth_str jfr;             /* plain bytes */
    struct hearth_str context_labels;  /* plain LabelsSnapshot of Pyroscope's agent; may be empty */
    size_t n_bytes;                    /* size as sent: counts against the tenant's rate */
    int64_t sample_rate;               /* Hz, for recordings that do not tell theirs; 0: unknown */
    int64_t from_ns, until_ns;         /* time of the profiles; 0: the recording's own */
    const struct hearth_label *labels; /* of every series; borrowed */
    size_t n_labels;
};

/*
 * Reads a recording within the limits of the tenant, and sets the series of a push; n_series is 0
 * if the recording has no samples. Series and profiles live in the arena, labels are the upload's.
 * discards: [HEARTH_N_DISCARDS]; texts and stacks that were cut are counted.
 *
 * Errors: INVALID_ARGUMENT for damaged bytes, and for a recording larger than max-profile-bytes or
 *         with more samples than max-samples; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_read_recording(const struct hearth_ingest *ingest,
                                                const struct hearth_recording_upload *upload,
                                                struct hearth_arena *arena, uint64_t *discards,
                                                struct hearth_push_request *request,
                                                struct hearth_err *err);

#endif
