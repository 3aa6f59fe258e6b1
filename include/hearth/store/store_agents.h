/*
 * store_agents.h -- services, instances and processes as agents report them.
 *
 * Reports merge: the last ping counts, properties are merged by key, labels are replaced when there are any, an
 * agent's id when it is not blank, the detect type when it is not UNDEFINED, "can be profiled" always.
 *
 * The layer of an instance is what it says itself; of one that only its processes name, what the first of them said.
 * A report that changes nothing within 10 s of the last may leave last_seen_ms as it is.
 *
 * Names are at most HEARTH_AGENT_NAME_BYTES. Times are milliseconds since the epoch.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, INVALID_ARGUMENT (names, texts that are not UTF-8),
 *            RESOURCE_EXHAUSTED (max_instances, max_processes of a tenant, named: what is new is left out, what is
 *            known is merged), and what each function says.
 */
#ifndef HEARTH_STORE_AGENTS_H
#define HEARTH_STORE_AGENTS_H

#include "hearth/store/store.h"

#define HEARTH_AGENT_NAME_BYTES 1024
#define HEARTH_AGENT_MERGED_BYTES \
    262144 /* of properties, as JSON: beyond, only those of the last report stay */

enum hearth_detect_type {
    HEARTH_DETECT_UNDEFINED = 0,
    HEARTH_DETECT_HOST = 1,
    HEARTH_DETECT_KUBERNETES = 2,
    HEARTH_DETECT_VIRTUAL = 3,
};

/* Two processes of an instance that nobody reports, but that connections lead to. */
#define HEARTH_UNKNOWN_LOCAL  "UNKNOWN_LOCAL"
#define HEARTH_UNKNOWN_REMOTE "UNKNOWN_REMOTE"

struct hearth_property {
    struct hearth_str name, value;
};

struct hearth_instance {
    struct hearth_str service, name, layer;
    struct hearth_property *properties; /* answers: by name */
    size_t n_properties;
    int64_t first_seen_ms, last_seen_ms;
};

struct hearth_process {
    struct hearth_str process_id; /* of hearth_process_public_id; reports: computed, not read */
    struct hearth_str service, instance, name, layer;
    enum hearth_detect_type detect_type;
    struct hearth_str agent_id;
    struct hearth_str *labels; /* answers: sorted */
    size_t n_labels;
    struct hearth_property *properties; /* answers: by name */
    size_t n_properties;
    bool can_be_profiled;
    int64_t first_seen_ms, last_seen_ms; /* reports: last_seen_ms is now */
};

struct hearth_reported_service {
    int32_t service_id;
    struct hearth_str name, layer;
    struct hearth_str *labels; /* of its processes that are not virtual, sorted */
    size_t n_labels;
    int32_t n_instances, n_processes;
    int64_t first_seen_ms, last_seen_ms;
};

/* The id of a service of the tenant. `make`: it becomes one when it is not; else NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_service_id(const struct hearth_scope *scope,
                                           struct hearth_str service, bool make,
                                           int32_t *ret_service_id, struct hearth_err *err);
/* Of n different ones, which become services where they are none, in one transaction. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_service_ids(const struct hearth_scope *scope,
                                            const struct hearth_str *services, size_t n,
                                            int32_t *ret_ids, struct hearth_err *err);

/*
 * One transaction: services, instances (those of the processes too) and processes are made or merged. One statement
 * where all are known and as they are said to be. The latest last_seen_ms counts, for all.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_report_agents(const struct hearth_scope *scope,
                                              const struct hearth_instance *instances,
                                              size_t n_instances,
                                              const struct hearth_process *processes,
                                              size_t n_processes,
                                              int64_t max_instances, /* 0: no limit */
                                              int64_t max_processes, struct hearth_err *err);

/* What is not said (NULL, 0, false) does not restrict. */
struct hearth_process_filter {
    struct hearth_str service, instance, process_id, agent_id;
    const struct hearth_str *labels; /* that it must have */
    size_t n_labels;
    int64_t seen_after_ms;  /* last_seen_ms >= it */
    int64_t seen_before_ms; /* first_seen_ms <= it */
    bool without_virtual, only_profilable;
};

/* By service, instance and name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_processes(const struct hearth_scope *scope,
                                          const struct hearth_process_filter *filter,
                                          struct hearth_process **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* By name; service empty: of all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_instances(const struct hearth_scope *scope,
                                          struct hearth_str service, int64_t seen_after_ms,
                                          struct hearth_instance **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* By name; service empty: all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_reported_services(const struct hearth_scope *scope,
                                                  struct hearth_str service, int64_t seen_after_ms,
                                                  struct hearth_reported_service **ret,
                                                  size_t *ret_n, struct hearth_err *err);

#endif
