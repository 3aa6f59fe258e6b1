/*
 * ingest_error.h -- a refused upload, or several that were refused for the same reason.
 *
 * Threads: plain data.
 */
#ifndef HEARTH_MODEL_INGEST_ERROR_H
#define HEARTH_MODEL_INGEST_ERROR_H

#include "hearth/base/str.h"

struct hearth_ingest_error {
    struct hearth_str tenant;
    struct hearth_str client;  /* family of the client, as in the metrics: "java", "go", "other" */
    struct hearth_str route;   /* path of the method or of the plain route */
    struct hearth_str code;    /* name of the status, or the reason that the metrics count */
    struct hearth_str message; /* of the latest upload; UTF-8 */
    size_t n_subject;  /* first bytes of message that name the upload: errors that differ only here
                         share a row. 0 in answers */
    int64_t key;       /* equal for errors that share a row of a tenant */
    int64_t body_hash; /* XXH3-64 of the first 4 KiB of the latest body; 0: no body */
    int64_t n_bytes;   /* of the latest body, as sent */
    int64_t n;         /* number of uploads */
    int64_t first_ms, last_ms; /* since the epoch */
};

#endif
