/*
 * network_traffic.h -- nouns of network tasks: ends of connections, sampled requests, captured
 * events of them, and names of addresses.
 *
 * Times are milliseconds since the epoch unless the member's name says otherwise.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_NETWORK_TRAFFIC_H
#define HEARTH_MODEL_NETWORK_TRAFFIC_H

#include "hearth/model/agent.h"

/* The end of a connection that counted it; the same numbers as in the database. */
enum hearth_network_side {
    HEARTH_NETWORK_CLIENT = 1,
    HEARTH_NETWORK_SERVER = 2,
};

/* SkyWalking's numbers. */
enum hearth_network_component {
    HEARTH_COMPONENT_HTTP = 49,
    HEARTH_COMPONENT_TCP = 110,
    HEARTH_COMPONENT_HTTPS = 129,
    HEARTH_COMPONENT_TLS = 130,
};

enum hearth_sampled_reason {
    HEARTH_SAMPLED_ANY = 0,
    HEARTH_SAMPLED_SLOW = 1,
    HEARTH_SAMPLED_4XX = 2,
    HEARTH_SAMPLED_5XX = 3,
};

enum hearth_trace_provider {
    HEARTH_TRACE_SKYWALKING = 1,
    HEARTH_TRACE_ZIPKIN = 2,
};

#define HEARTH_SAMPLED_ID_TEXT 32 /* hex digits of a request id */

struct hearth_sampled_request {
    struct hearth_str request_id; /* when stored: computed, the given id is ignored */
    struct hearth_str service, instance, source_id, destination_id;
    enum hearth_network_side side;
    enum hearth_network_component component;
    enum hearth_sampled_reason reason;
    enum hearth_trace_provider provider;
    struct hearth_str trace_id;
    struct hearth_str segment_id, span_id; /* empty: not reported */
    struct hearth_str uri;
    int64_t latency_us, at_ms;
    int32_t status;
    bool is_ssl;
    int32_t service_id, n_events; /* answers only */
};

struct hearth_captured_event {
    struct hearth_str service; /* the service it names, otherwise unknown_service */
    struct hearth_str instance;
    enum hearth_trace_provider provider;
    struct hearth_str trace_id, segment_id, span_id; /* all but trace_id may be empty */
    struct hearth_str event;
    int64_t start_ns, end_ns;
    struct hearth_property *tags; /* in their order */
    size_t n_tags;
    int32_t n_redacted;
    int64_t n_cut; /* bytes that were left out */
};

/* The tag that holds the head and body of a request or its response. */
#define HEARTH_CAPTURED_BODY "data_content"

struct hearth_address_name {
    struct hearth_str address, name;
};

#endif
