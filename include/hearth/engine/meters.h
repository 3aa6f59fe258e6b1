/*
 * meters.h -- metrics that agents report: monitors of policies, and counters of network tasks.
 *
 * Each of the two functions takes the meters with its own name prefix ("rover_con_p_",
 * "rover_net_p_") and ignores the rest.
 *
 * Ownership: sets are borrowed. Threads: safe.
 * Errors:    those of the store; INVALID_ARGUMENT names an invalid meter, and nothing of the set is
 *            stored then.
 * Source:    skywalking.v3.MeterReportService as in docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_METERS_H
#define HEARTH_ENGINE_METERS_H

#include "hearth/engine/query.h"

struct hearth_meter_bucket {
    double lower_bound; /* -INFINITY: no lower bound */
    int64_t count;
};

struct hearth_meter {
    struct hearth_str name;
    struct hearth_label *labels; /* as sent */
    size_t n_labels;
    double value; /* value of a meter without buckets */
    struct hearth_meter_bucket *buckets;
    size_t n_buckets;
};

/* The meters of one process at one time. */
struct hearth_meter_set {
    struct hearth_str service, instance;
    int64_t at_ms;
    struct hearth_meter *meters;
    size_t n_meters;
};

/*
 * Store the meters of a set; they are committed when the call returns OK. *ret_n_taken: number of
 * stored meters.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_monitors_take(const struct hearth_call *call,
                                        const struct hearth_meter_set *set, size_t *ret_n_taken,
                                        struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_network_take(const struct hearth_call *call,
                                       const struct hearth_meter_set *set, size_t *ret_n_taken,
                                       struct hearth_err *err);

#endif
