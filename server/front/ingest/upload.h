/*
 * upload.h -- an upload to /ingest while its request is read (private to this room).
 *
 * Lives in the arena of its call, as everything that it refers to.
 * Threads: confined to the thread of the request.
 */
#ifndef HEARTH_FRONT_UPLOAD_H
#define HEARTH_FRONT_UPLOAD_H

#include "hearth/format/ingest_name.h"
#include "hearth/format/multipart.h"
#include "hearth/format/profile_file.h"

#include "rpc/push_call.h"

struct upload {
    struct hearth_rpc *rpc;
    struct hearth_push_call *call;
    struct hearth_ingest_name name;
    struct hearth_str app; /* the application name; for text formats without the profile type */
    struct hearth_ingest_values values;
    struct hearth_ingest_type type; /* of a text format */
    struct hearth_str profile;
    const char *file_format; /* of a file of several profiles; "": unknown; otherwise NULL */
    struct hearth_str context_labels;   /* of a JFR recording */
    struct hearth_file_object *objects; /* programs beside a perf.data */
    size_t n_objects;
    struct hearth_push_hints hints;
    struct hearth_multipart form;
    bool keeps;                   /* the file is stored next to its profiles */
    struct hearth_push_file file; /* if keeps: the body as sent, or the file of the form */
};

/*
 * Takes the body from the request, and sets profile, format (never UNKNOWN or MULTIPART, unless the
 * body is empty) and file_format; for forms also the context labels and the cells of the hints. If
 * originals are kept, sets `keeps` and `file`, whose bytes live as long as the call.
 * INVALID_ARGUMENT for damaged compression or forms; TOO_LARGE; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_upload_read_body(struct upload *u);

#endif
