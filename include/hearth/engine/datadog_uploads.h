/*
 * datadog_uploads.h -- from an attachment of a Datadog client to the series of a push.
 *
 * An attachment is a pprof, which is divided into families (format/datadog_profile.h), or a
 * recording of Java (engine/ingest_files.h); the bytes decide. Each profile becomes a series with
 * the labels of the upload and the family as __name__.
 *
 * Threads: safe; the work is done on the calling thread.
 */
#ifndef HEARTH_ENGINE_DATADOG_UPLOADS_H
#define HEARTH_ENGINE_DATADOG_UPLOADS_H

#include "hearth/engine/ingest.h"

struct hearth_datadog_upload {
    struct hearth_str tenant;
    struct hearth_str filename;        /* of the attachment */
    struct hearth_str bytes;           /* plain */
    size_t n_bytes;                    /* size as sent: counts against the tenant's rate */
    int64_t from_ns, until_ns;         /* time of the profiles; 0: the attachment's own */
    const struct hearth_label *labels; /* of every series; borrowed */
    size_t n_labels;
    const struct hearth_str *custom_keys; /* sample labels that the program has set itself */
    size_t n_custom_keys;
    struct hearth_push_file *file; /* to keep with the profiles; outlives the push; may be NULL */
};

/*
 * Reads an attachment within the limits of the tenant, and adds its series to the request, whose
 * list grows in the arena. *cap: the capacity of that list, 0 at first. Nothing is added if the
 * attachment has no samples. Texts borrow from upload->bytes.
 *
 * discards: [HEARTH_N_DISCARDS]; what was cut or dropped is counted.
 *
 * Errors: INVALID_ARGUMENT for bytes that are neither format or damaged, and for an attachment that
 *         exceeds max-profile-bytes, max-samples, max-sample-types or max-sample-labels; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_read_datadog(const struct hearth_ingest *ingest,
                                              const struct hearth_datadog_upload *upload,
                                              struct hearth_arena *arena, uint64_t *discards,
                                              struct hearth_push_request *request, size_t *cap,
                                              struct hearth_err *err);

#endif
