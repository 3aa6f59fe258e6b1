/*
 * agent.h -- services, instances and processes as agents report them.
 *
 * Names are at most HEARTH_AGENT_NAME_BYTES. Times are milliseconds since the epoch.
 *
 * The layer of an instance is the one it reported; if the instance itself never reported, it is the
 * layer of its first reported process.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_AGENT_H
#define HEARTH_MODEL_AGENT_H

#include "hearth/base/str.h"

#define HEARTH_AGENT_NAME_BYTES 1024

enum hearth_detect_type {
    HEARTH_DETECT_UNDEFINED = 0,
    HEARTH_DETECT_HOST = 1,
    HEARTH_DETECT_KUBERNETES = 2,
    HEARTH_DETECT_VIRTUAL = 3,
};

/* Names of the two synthetic processes of an instance, for unreported peers of its connections. */
#define HEARTH_UNKNOWN_LOCAL  "UNKNOWN_LOCAL"
#define HEARTH_UNKNOWN_REMOTE "UNKNOWN_REMOTE"

struct hearth_property {
    struct hearth_str name, value;
};

struct hearth_instance {
    struct hearth_str service, name, layer;
    struct hearth_property *properties; /* in answers: sorted by name */
    size_t n_properties;
    int64_t first_seen_ms, last_seen_ms;
};

struct hearth_process {
    struct hearth_str
        process_id; /* of hearth_process_public_id; in reports: computed, the given id is ignored */
    struct hearth_str service, instance, name, layer;
    enum hearth_detect_type detect_type;
    struct hearth_str agent_id;
    struct hearth_str *labels; /* in answers: sorted */
    size_t n_labels;
    struct hearth_property *properties; /* in answers: sorted by name */
    size_t n_properties;
    bool can_be_profiled;
    int64_t first_seen_ms, last_seen_ms; /* in reports: last_seen_ms is now */
};

struct hearth_reported_service {
    int32_t service_id;
    struct hearth_str name, layer;
    struct hearth_str *labels; /* labels of its processes that are not virtual, sorted */
    size_t n_labels;
    int32_t n_instances, n_processes;
    int64_t first_seen_ms, last_seen_ms;
};

/* A zeroed member (empty text, 0, false) does not restrict. */
struct hearth_process_filter {
    struct hearth_str service, instance, process_id, agent_id;
    const struct hearth_str *labels; /* the process must have all of them */
    size_t n_labels;
    int64_t seen_after_ms;  /* lower bound of last_seen_ms, included */
    int64_t seen_before_ms; /* upper bound of first_seen_ms, included */
    bool without_virtual, only_profilable;
};

#endif
