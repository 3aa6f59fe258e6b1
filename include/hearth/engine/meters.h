/*
 * meters.h -- metrics that agents report: what policies watch, and what network tasks count.
 *
 * Each of the two takes what is its own by the name's prefix ("rover_con_p_", "rover_net_p_") and leaves the rest.
 *
 * Ownership: sets are borrowed. Threads: safe.
 * Errors:    of the store; INVALID_ARGUMENT names a meter that cannot be what it says. Nothing of a set is kept then.
 * Source:    skywalking.v3.MeterReportService as in docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_METERS_H
#define HEARTH_ENGINE_METERS_H

#include "hearth/engine/query.h"

struct hearth_meter_bucket {
    double lower_bound; /* -INFINITY: none */
    int64_t count;
};

struct hearth_meter {
    struct hearth_str name;
    struct hearth_label *labels; /* as sent */
    size_t n_labels;
    double value; /* without buckets */
    struct hearth_meter_bucket *buckets;
    size_t n_buckets;
};

/* What one process counted at one time. */
struct hearth_meter_set {
    struct hearth_str service, instance;
    int64_t at_ms;
    struct hearth_meter *meters;
    size_t n_meters;
};

/* The query says tenant, cancel and arena. Committed when it returns OK. *ret_n_taken: meters that were kept. */
HEARTH_MUST_CHECK
enum hearth_status hearth_monitors_take(const struct hearth_call *call,
                                        const struct hearth_meter_set *set, size_t *ret_n_taken,
                                        struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_network_take(const struct hearth_call *call,
                                       const struct hearth_meter_set *set, size_t *ret_n_taken,
                                       struct hearth_err *err);

#endif
