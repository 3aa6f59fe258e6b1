/*
 * maintenance.h -- what operators see of background work: its state, retention, deletions, and
 * checks of the database.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_MAINTENANCE_H
#define HEARTH_MODEL_MAINTENANCE_H

#include "hearth/base/str.h"

struct hearth_background_state {
    bool has_builder;       /* a server holds an unexpired lease */
    int32_t builder_writer; /* writer id of that server */
    struct hearth_str builder_host;
    int64_t lease_token;
    int64_t lag_ns; /* age of the oldest bucket that is due and not built; 0: all are built */
    int64_t n_late_rows, n_tombstones;
    int64_t oldest_profile_ns; /* in the profile and segment tables; INT64_MAX: they are empty */
    struct hearth_table_size {
        struct hearth_str
            table; /* "profile", "segment", "roll_10m", .., each with its partitions */
        int64_t n_bytes;
    } * tables;
    size_t n_tables;
};

/* How long data is kept, in nanoseconds; 0: for ever. Profiles means rows and segments. */
struct hearth_retention {
    int64_t profiles_ns, roll_10m_ns, roll_1h_ns, roll_1d_ns;
    int64_t spans_ns, monitors_ns, network_ns; /* the server's, the same for all tenants */
    /*
     * What ended before these times was deleted while the retention was shorter; what has been
     * stored since may lie there. 0: nothing was deleted that the present retention would keep.
     */
    int64_t profiles_from_ns, roll_10m_from_ns, roll_1h_from_ns, roll_1d_from_ns;
};

struct hearth_erasure {
    int64_t erasure_id;
    struct hearth_str selector, requested_by;
    int64_t from_ns, to_ns, requested_at_ns;
    int64_t done_at_ns; /* 0: hidden, not removed yet */
    int64_t n_series, n_rows;
};

enum hearth_verdict {
    HEARTH_VERDICT_OK,
    HEARTH_VERDICT_ADVICE, /* works; another setting would be better or cheaper */
    HEARTH_VERDICT_WRONG,  /* something does not work, or data is not safe */
};

struct hearth_check {
    struct hearth_str name; /* "fsync", "rights: create tables", .. */
    enum hearth_verdict verdict;
    struct hearth_str found;
    struct hearth_str advice; /* what to do; empty when OK */
};

#endif
