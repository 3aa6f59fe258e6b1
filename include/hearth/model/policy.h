/*
 * policy.h -- policies as they are stored, and which values of their metrics to read.
 *
 * The rules inside a policy, and how agents follow them: policy_rule.h. Times are milliseconds
 * since the epoch.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_POLICY_H
#define HEARTH_MODEL_POLICY_H

#include "hearth/model/policy_rule.h"

struct hearth_policy {
    struct hearth_str service;
    struct hearth_policy_target *targets;
    size_t n_targets;
    int64_t version; /* 1 for the first of the service; every change raises it, deletions too */
    struct hearth_str uuid;
    int64_t modified_ms;
    struct hearth_str modified_by;
    bool is_observing;
    bool is_deletion;       /* in histories */
    struct hearth_str json; /* input: the targets as sql/0009_policies.sql describes them */
};

/* A zeroed member does not restrict, but the service is required. */
struct hearth_monitor_filter {
    struct hearth_str service, instance, process;
    uint32_t monitors;        /* bits 1 << monitor; 0: all */
    int64_t start_ms, end_ms; /* both included */
    size_t max_values;        /* of all lines together; 0: no limit */
};

#endif
