/*
 * network.h -- results of network tasks: topology, traffic, latency, and sampled requests.
 *
 * Metrics arrive by hearth_network_take (meters.h). Connection ends that no agent monitors become
 * processes of the reporting instance: UNKNOWN_LOCAL, the name of the address in the address book,
 * or UNKNOWN_REMOTE. A name of an ip and port takes precedence over a name of the ip; names of the
 * option network-addresses and names of the tenant are both used.
 *
 * Captured parts of requests are personal data. They are redacted (redact.h) and truncated before
 * they are stored, and only hearth_network_request returns them whole.
 *
 * Ownership: inputs are borrowed, answers live in the call's arena. Threads: safe.
 * Errors:    INVALID_ARGUMENT (names what the caller can correct), RESOURCE_EXHAUSTED (names the
 *            limit), NOT_FOUND, UNAVAILABLE, CANCELLED, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_NETWORK_H
#define HEARTH_ENGINE_NETWORK_H

#include "hearth/engine/query.h"
#include "hearth/model/network_traffic.h"

struct hearth_network_options {
    const char *const *addresses; /* "ip=name", "ip:port=name"; NULL-terminated, or NULL */
    const char *const *redact;    /* rules of redact.h; likewise */
};

/*
 * Set the options, once, before the first call. Without it, addresses have no names and nothing is
 * captured. INVALID_ARGUMENT names the option.
 */
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

/*
 * Take a captured event as received; its service, instance and counts are determined here.
 * *ret_kept false: it was dropped, because the limit of this day is reached.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_take_event(const struct hearth_call *call,
                                             const struct hearth_captured_event *event,
                                             bool *ret_kept, struct hearth_err *err);

/* ---- topology and metrics of the query's range, in whole minutes ---- */

#define HEARTH_NETWORK_MAX_COMPONENTS 4

struct hearth_network_node {
    struct hearth_process process;
    struct hearth_str *addresses; /* addresses of a process that no agent monitors */
    size_t n_addresses;
};

struct hearth_network_call {
    struct hearth_str call_id, source_id, destination_id;
    const char *source_components[HEARTH_NETWORK_MAX_COMPONENTS];
    const char *destination_components[HEARTH_NETWORK_MAX_COMPONENTS];
    size_t n_source_components, n_destination_components;
};

struct hearth_network_topology {
    struct hearth_network_node *nodes; /* reported processes first, then sorted by name */
    size_t n_nodes;
    struct hearth_network_call *calls; /* sorted by id */
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
    struct hearth_str code; /* HTTP status code, for http1_response_status_cpm */
    int32_t percentile;     /* 0: not a percentile */
    struct hearth_point *points;
    size_t n_points;
};

struct hearth_network_series_spec {
    struct hearth_str service, instance, call_id; /* call_id empty: all */
    const struct hearth_str *metrics;             /* "process_relation_" before a name is ignored */
    size_t n_metrics;                             /* 0: all */
};

/* Sorted by call, side, metric, code and percentile. OUT_OF_RANGE: more than max_points. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_series(const struct hearth_query *query,
                                         const struct hearth_network_series_spec *spec,
                                         struct hearth_network_line **ret, size_t *ret_n,
                                         struct hearth_err *err);

/* The name of a component: "http", "https", "tls" or "tcp". */
const char *hearth_network_component_name(enum hearth_network_component component);

/* ---- sampled requests ---- */

struct hearth_network_requests_spec {
    struct hearth_str service, instance, trace_id, call_id, reason; /* empty: any */
    int64_t limit;                                                  /* 0: 20 */
};

/* Sampled requests, slowest first; either end of the query's range may be open (0). */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_requests(const struct hearth_query *query,
                                           const struct hearth_network_requests_spec *spec,
                                           struct hearth_sampled_request **ret, size_t *ret_n,
                                           struct hearth_err *err);

/*
 * One request with its captured events, oldest first. *ret_notes: what was redacted, truncated or
 * dropped, or has expired.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_request(const struct hearth_call *call,
                                          struct hearth_str request_id,
                                          struct hearth_sampled_request *ret,
                                          struct hearth_captured_event **ret_events, size_t *ret_n,
                                          struct hearth_str **ret_notes, size_t *ret_n_notes,
                                          struct hearth_err *err);

/* Captured events of traces, sorted by trace and time, without bodies. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_attached(const struct hearth_call *call,
                                           const struct hearth_str *trace_ids, size_t n_ids,
                                           struct hearth_captured_event **ret, size_t *ret_n,
                                           struct hearth_err *err);

/* ---- addresses ---- */

struct hearth_network_address {
    struct hearth_str address, name;
    bool is_configured; /* set by the option, so it cannot be changed */
};

/* The address book, sorted by address. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_addresses(const struct hearth_call *call,
                                            struct hearth_network_address **ret, size_t *ret_n,
                                            struct hearth_err *err);
/* Set names, all or none; an empty name deletes the address. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_addresses_set(const struct hearth_call *call,
                                                const struct hearth_address_name *names, size_t n,
                                                struct hearth_err *err);

#endif
