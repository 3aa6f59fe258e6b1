/*
 * ingest_files.h -- from a file of any profiler to the series of a push.
 *
 * A file holds one profile or several (format/profile_file.h). Each becomes a series with the
 * labels of the upload, its __name__, and jfr_event, if async-profiler says what it sampled.
 *
 * Threads: safe; the work is done on the calling thread.
 */
#ifndef HEARTH_ENGINE_INGEST_FILES_H
#define HEARTH_ENGINE_INGEST_FILES_H

#include "hearth/engine/ingest.h"

struct hearth_file_object;

struct hearth_file_upload {
    struct hearth_str tenant;
    struct hearth_str bytes;           /* plain */
    const char *format;                /* as in profile_file.h; NULL: the bytes decide */
    bool has_own_limit;                /* the caller has checked the size: no max-profile-bytes */
    struct hearth_str context_labels;  /* plain LabelsSnapshot of Pyroscope's agent; may be empty */
    size_t n_bytes;                    /* size as sent: counts against the tenant's rate */
    int64_t sample_rate;               /* Hz, for recordings that do not tell theirs; 0: unknown */
    int64_t from_ns, until_ns;         /* time of the profiles; 0: the file's own */
    const struct hearth_label *labels; /* of every series, without __name__; borrowed */
    size_t n_labels;
    const struct hearth_file_object *objects; /* programs of a perf.data: profile_file.h */
    size_t n_objects;
    struct hearth_push_file *file; /* to keep with its profiles; NULL: no file is kept */
};

/*
 * Reads a file within the limits of the tenant, and sets the series of a push; n_series is 0 if the
 * file has no profile. Series and profiles live in the arena; texts may borrow from the bytes, and
 * labels are the upload's. discards: [HEARTH_N_DISCARDS]; texts and stacks that were cut are
 * counted.
 *
 * Errors: INVALID_ARGUMENT for damaged bytes, for bytes of no known format, and for a file larger
 *         than max-profile-bytes or with more samples than max-samples; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_read_file(const struct hearth_ingest *ingest,
                                           const struct hearth_file_upload *upload,
                                           struct hearth_arena *arena, uint64_t *discards,
                                           struct hearth_push_request *request,
                                           struct hearth_err *err);

#endif
