/*
 * profile_upload.h -- a file that a person uploads: received in parts, then parsed in the
 * background.
 *
 *   RECEIVING --all parts, checksum--> QUEUED --claim--> PARSING --> DONE or FAILED
 *                                        ^------later------'
 *
 * Times ending in _ms are milliseconds since the epoch; 0: not yet.
 *
 * Threads: plain data.
 */
#ifndef HEARTH_MODEL_PROFILE_UPLOAD_H
#define HEARTH_MODEL_PROFILE_UPLOAD_H

#include "hearth/model/agent.h"
#include "hearth/model/profile_id.h"

/* Sizes of parts that a client may choose; all parts but the last have this size. */
#define HEARTH_UPLOAD_MIN_PART_BYTES     (64 << 10)
#define HEARTH_UPLOAD_DEFAULT_PART_BYTES (4 << 20)
#define HEARTH_UPLOAD_MAX_PART_BYTES     (8 << 20)
/* Hexadecimal digits of an id, without the NUL. */
#define HEARTH_PROFILE_UPLOAD_ID_TEXT 32

/* The numbers are stored. */
enum hearth_profile_upload_state {
    HEARTH_PROFILE_UPLOAD_RECEIVING = 0,
    HEARTH_PROFILE_UPLOAD_QUEUED = 1,
    HEARTH_PROFILE_UPLOAD_PARSING = 2,
    HEARTH_PROFILE_UPLOAD_DONE = 3,
    HEARTH_PROFILE_UPLOAD_FAILED = 4,
};

struct hearth_profile_upload {
    struct hearth_str tenant, upload_id;
    /* What the person said. */
    struct hearth_str file_name;
    struct hearth_str format;       /* name of a format; empty: detected */
    struct hearth_property *labels; /* of every series */
    size_t n_labels;
    int64_t from_ns, until_ns; /* time of the profiles; 0: the file's own */
    int64_t sample_rate;       /* Hz, for files that do not tell theirs; 0: unknown */
    int64_t n_bytes;
    int32_t part_bytes;
    struct hearth_str sha256; /* 64 hexadecimal digits; empty: not known yet */
    /* Progress. */
    enum hearth_profile_upload_state state;
    int64_t created_ms, queued_ms, ended_ms;
    int64_t n_received_bytes;
    int64_t n_profiles, n_samples; /* of the file; 0 until it is decoded */
    int64_t n_settled;             /* profiles that were stored, empty or refused */
    int64_t n_stored, n_refused;   /* profiles */
    struct hearth_str dropped;     /* reasons and numbers, as the header hearth-dropped */
    struct hearth_str reason;      /* failed: why; queued: why it is tried again */
    /* For the worker. */
    int64_t upload_no;
    int32_t claim;      /* number of the claim */
    int32_t n_lost;     /* earlier claims whose server was lost */
    int64_t storing_ms; /* start of the first push that may be in doubt; 0: no push is in doubt */
};

/* One profile type of one profile of a file. */
struct hearth_profile_upload_result {
    int32_t profile, type; /* from 0 */
    struct hearth_str profile_type;
    int32_t writer_id; /* of the stored profile, like profile_no; 0: not known */
    int64_t profile_no;
    int64_t n_samples, total;
};

/* The number of parts of a file. */
static inline int32_t hearth_profile_upload_n_parts(const struct hearth_profile_upload *upload)
{
    return (int32_t)((upload->n_bytes + upload->part_bytes - 1) / upload->part_bytes);
}

/* The size of a part; part: from 0, below the number of parts. */
static inline int64_t hearth_profile_upload_part_bytes(const struct hearth_profile_upload *upload,
                                                       int32_t part)
{
    int64_t left = upload->n_bytes - (int64_t)part * upload->part_bytes;
    return left < upload->part_bytes ? left : upload->part_bytes;
}

#endif
