/*
 * uploads.h -- files that people upload: received in parts, parsed in the background by any server.
 *
 * Ownership: answers live in the call's arena.
 * Threads:   safe.
 * Errors:    of the store, and the errors named at each function. Each limit is named in its error.
 * Source:    hearth.v1.UploadService as in docs/reference/api-uploads.md.
 */
#ifndef HEARTH_ENGINE_UPLOADS_H
#define HEARTH_ENGINE_UPLOADS_H

#include "hearth/engine/call.h"
#include "hearth/engine/ingest.h"
#include "hearth/model/profile_upload.h"

/* The service of profiles whose labels name none. */
#define HEARTH_UPLOAD_SERVICE "hearth-upload"

/* ---- uploading ---- */

/*
 * Create an upload from file_name, format, labels, from_ns, until_ns, sample_rate, n_bytes,
 * part_bytes (0: the default) and sha256 (may be empty); all other members are set. Profiles whose
 * labels name no service belong to HEARTH_UPLOAD_SERVICE. The label __name__, if any, replaces the names
 * that the file gives to its profiles.
 *
 * INVALID_ARGUMENT: a label, a size, a format. RESOURCE_EXHAUSTED: max-uploads, max-uploads-bytes,
 * or the disk is too full.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_create(const struct hearth_call *call,
                                        struct hearth_profile_upload *upload,
                                        struct hearth_err *err);
/*
 * Store a part, or replace it. When it returns OK, the part is committed. part: from 0. sha256: of
 * the part; may be empty. INVALID_ARGUMENT: number, size or checksum are wrong. NOT_FOUND.
 * FAILED_PRECONDITION: the upload receives no more parts.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_put_part(const struct hearth_call *call,
                                          struct hearth_str upload_id, int32_t part,
                                          struct hearth_str bytes, struct hearth_str sha256,
                                          struct hearth_err *err);
/*
 * Check that all parts are there and that their bytes have the checksum (sha256, and the one that
 * was announced at the creation; both may be empty), and queue the upload for parsing. A second
 * call changes nothing. FAILED_PRECONDITION: parts are missing. INVALID_ARGUMENT: the checksum is
 * another one; the upload still receives parts. NOT_FOUND.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_finish(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_str sha256, struct hearth_profile_upload *ret,
                                        struct hearth_err *err);
/* The three steps for a file that is in memory. After a failure nothing is left of the upload. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_file(const struct hearth_call *call,
                                      struct hearth_profile_upload *upload, struct hearth_str bytes,
                                      struct hearth_err *err);

/* ---- reading ---- */

/* Missing parts that an answer names. */
#define HEARTH_UPLOAD_MAX_MISSING 1000
/* Uploads in a list. */
#define HEARTH_UPLOAD_MAX_LIST 1000

struct hearth_upload_details {
    struct hearth_profile_upload upload;
    int32_t *missing; /* the first parts that have not been received, if it is receiving */
    size_t n_missing;
    struct hearth_profile_upload_result *results; /* by profile and type */
    size_t n_results;
};

/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_get(const struct hearth_call *call, struct hearth_str upload_id,
                                     struct hearth_upload_details *ret, struct hearth_err *err);
/* The latest uploads of the tenant, newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_list(const struct hearth_call *call,
                                      struct hearth_profile_upload **ret, size_t *ret_n,
                                      struct hearth_err *err);
/*
 * Append the original bytes of a part to `out`; part -1: of the whole file. NOT_FOUND.
 * INVALID_ARGUMENT: there is no such part. FAILED_PRECONDITION: it has not been received. NO_MEMORY
 * if the budget of `out` is too small.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_read(const struct hearth_call *call, struct hearth_str upload_id,
                                      int32_t part, struct hearth_profile_upload *ret,
                                      struct hearth_buf *out, struct hearth_err *err);
/* Delete the upload with its original; stored profiles stay. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_delete(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_err *err);

/* "receiving", "queued", ...; static. */
const char *hearth_upload_state_name(enum hearth_profile_upload_state state);

/* ---- parsing ---- */

struct hearth_upload_options {
    int64_t n_parsers;    /* threads; 0: this server parses nothing */
    int64_t memory_bytes; /* of each; 0: no limit */
    int64_t lease_ns;     /* how long a claim lasts that is not extended; at least 1 s */
};

struct hearth_ingest_errors;
struct hearth_upload_parsers;

/*
 * Start the threads. The database need not be reachable yet. `errors` notes uploads that fail;
 * NULL: they are not noted. Engine, ingest and errors are kept.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_parsers_start(const struct hearth_upload_options *options,
                                               struct hearth_query_engine *engine,
                                               struct hearth_ingest *ingest,
                                               struct hearth_ingest_errors *errors,
                                               struct hearth_upload_parsers **ret,
                                               struct hearth_err *err);
/*
 * Stop the threads; the store must still be open. Uploads that are being parsed are queued again.
 * NULL-safe.
 */
void hearth_upload_parsers_stop(struct hearth_upload_parsers *parsers);

#endif
