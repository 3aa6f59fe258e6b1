/*
 * network.h -- what network tasks see: who talks to whom, how much and how fast, and sampled requests.
 *
 * Metrics come by hearth_network_take (meters.h). Ends of connections that no agent watches become processes of the
 * reporting instance: UNKNOWN_LOCAL, what the address book calls the address, or UNKNOWN_REMOTE. Names of an ip and port
 * come before names of the ip, and both the option network-addresses and the tenant's own count.
 *
 * What was captured of requests is personal data. It is redacted (redact.h) and cut before it is stored, and only
 * hearth_network_request answers it whole.
 *
 * Ownership: inputs are borrowed, answers live in the call's arena. Threads: safe.
 * Errors:    INVALID_ARGUMENT (what the caller can mend, named), RESOURCE_EXHAUSTED (a limit, named), NOT_FOUND,
 *            UNAVAILABLE, CANCELLED, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_NETWORK_H
#define HEARTH_ENGINE_NETWORK_H

#include "hearth/engine/query.h"
#include "hearth/model/network_traffic.h"

struct hearth_network_options {
    const char *const *addresses; /* "ip=name", "ip:port=name"; NULL-terminated, or NULL */
    const char *const *redact;    /* rules of redact.h; the same */
};

/* Once, before the first question. Without it: no names, and nothing is captured. INVALID_ARGUMENT names the option. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_set_network(struct hearth_query_engine *engine,
                                            const struct hearth_network_options *options,
                                            struct hearth_err *err);

/* ---- from agents ---- */

/* A log of kind NET_PROFILING_SAMPLED_TRACE. */
struct hearth_sampled_log {
    struct hearth_str service, instance;
    int64_t at_ms; /* 0: now */
    struct hearth_str trace_id, segment_id, span_id;
    struct hearth_str json;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_network_take_sampled(const struct hearth_call *call,
                                               const struct hearth_sampled_log *log,
                                               struct hearth_err *err);

/* An event as sent; service, instance and counts are found, not read. *ret_kept false: today has no room for it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_take_event(const struct hearth_call *call,
                                             const struct hearth_captured_event *event,
                                             bool *ret_kept, struct hearth_err *err);

/* ---- topology and metrics: of the query's range, in whole minutes ---- */

#define HEARTH_NETWORK_MAX_COMPONENTS 4

struct hearth_network_node {
    struct hearth_process process;
    struct hearth_str *addresses; /* of one that no agent watches */
    size_t n_addresses;
};

struct hearth_network_call {
    struct hearth_str call_id, source_id, destination_id;
    const char *source_components[HEARTH_NETWORK_MAX_COMPONENTS];
    const char *destination_components[HEARTH_NETWORK_MAX_COMPONENTS];
    size_t n_source_components, n_destination_components;
};

struct hearth_network_topology {
    struct hearth_network_node *nodes; /* real ones first, then by name */
    size_t n_nodes;
    struct hearth_network_call *calls; /* by id */
    size_t n_calls;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_network_topology(const struct hearth_query *query,
                                           struct hearth_str service, struct hearth_str instance,
                                           struct hearth_network_topology *ret,
                                           struct hearth_err *err);

struct hearth_network_line {
    struct hearth_str call_id;
    const char *metric, *unit;
    enum hearth_network_side side;
    struct hearth_str code; /* of http1_response_status_cpm */
    int32_t percentile;     /* 0: none */
    struct hearth_point *points;
    size_t n_points;
};

struct hearth_network_series_spec {
    struct hearth_str service, instance, call_id; /* call_id empty: all */
    const struct hearth_str *metrics;             /* "process_relation_" before a name is ignored */
    size_t n_metrics;                             /* 0: all */
};

/* By call, side, metric, code and percentile. OUT_OF_RANGE: more than max_points. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_series(const struct hearth_query *query,
                                         const struct hearth_network_series_spec *spec,
                                         struct hearth_network_line **ret, size_t *ret_n,
                                         struct hearth_err *err);

/* "http", "https", "tls", "tcp". */
const char *hearth_network_component_name(enum hearth_network_component component);

/* ---- sampled requests ---- */

struct hearth_network_requests_spec {
    struct hearth_str service, instance, trace_id, call_id, reason; /* empty: any */
    int64_t limit;                                                  /* 0: 20 */
};

/* The slowest first; the query's range may be open (0). */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_requests(const struct hearth_query *query,
                                           const struct hearth_network_requests_spec *spec,
                                           struct hearth_sampled_request **ret, size_t *ret_n,
                                           struct hearth_err *err);

/* With what was captured, the earliest first; *ret_notes: what was redacted, cut, left out or has expired. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_request(const struct hearth_call *call,
                                          struct hearth_str request_id,
                                          struct hearth_sampled_request *ret,
                                          struct hearth_captured_event **ret_events, size_t *ret_n,
                                          struct hearth_str **ret_notes, size_t *ret_n_notes,
                                          struct hearth_err *err);

/* Events of traces, by trace and time, without bodies. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_attached(const struct hearth_call *call,
                                           const struct hearth_str *trace_ids, size_t n_ids,
                                           struct hearth_captured_event **ret, size_t *ret_n,
                                           struct hearth_err *err);

/* ---- addresses ---- */

struct hearth_network_address {
    struct hearth_str address, name;
    bool is_configured; /* by the option: it cannot be changed */
};

/* By address. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_addresses(const struct hearth_call *call,
                                            struct hearth_network_address **ret, size_t *ret_n,
                                            struct hearth_err *err);
/* All or none; an empty name takes the address out. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_addresses_set(const struct hearth_call *call,
                                                const struct hearth_address_name *names, size_t n,
                                                struct hearth_err *err);

#endif
