/*
 * store_network.h -- results of network tasks: flushes of connections, sampled requests, captured
 * events of them, and names of addresses (sql/0010_network.sql; nouns: model/network_traffic.h).
 *
 * Captured events are stored as they are given: the caller has redacted and cut them
 * (server/engine/network/redact.h). They are read by hearth_store_captured and
 * hearth_store_attached only, and not after `retain-captured`, deleted or not.
 *
 * Times are milliseconds since the epoch unless they say otherwise.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, CORRUPT (stored bytes), and the errors named at each
 *            function.
 */
#ifndef HEARTH_STORE_NETWORK_H
#define HEARTH_STORE_NETWORK_H

#include "hearth/model/network_traffic.h"
#include "hearth/store/store.h"

/* ---- flushes ---- */

/* What one end of a connection counted since its flush before. */
struct hearth_network_flush {
    struct hearth_str source_id, destination_id;
    enum hearth_network_side side;
    enum hearth_network_component component;
    /* Addresses of ends that no agent sees, separated by '\n'. */
    struct hearth_str source_addresses, destination_addresses;
    struct hearth_str payload; /* hearth_network_encode */
    int64_t at_ms;             /* answers only */
};

/* Flushes of an instance at one time. */
struct hearth_network_report {
    struct hearth_str service, instance;
    int64_t at_ms;
    const struct hearth_network_flush *flushes; /* [n] */
    size_t n;
};

/*
 * Store the flushes of a report in one transaction; repeated flushes are ignored.
 * The service is created if it is new. INVALID_ARGUMENT: at_ms is negative or too large. arena: not
 * used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_network_add(const struct hearth_scope *scope,
                                            const struct hearth_network_report *report,
                                            struct hearth_err *err);

/* Flushes of an instance: from_ms included, to_ms excluded. */
struct hearth_network_range {
    struct hearth_str service, instance;
    struct hearth_str source_id, destination_id; /* empty: all */
    int64_t from_ms, to_ms;
};

/*
 * Distinct relations, without payload and time; a relation is repeated for other addresses.
 * Includes relations of sampled requests. Sorted by source, destination, side, component and
 * addresses.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_network_relations(const struct hearth_scope *scope,
                                                  const struct hearth_network_range *range,
                                                  struct hearth_network_flush **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* Callbacks. `begin` is called first, and again if the read restarts: discard earlier flushes. */
struct hearth_network_reader {
    void *context;
    enum hearth_status (*begin)(void *context, struct hearth_err *err);
    enum hearth_status (*flush)(
        void *context, const struct hearth_network_flush *flush, /* valid during the call */
        struct hearth_err *err);
};

/* Visits flushes by source, destination, side and time. arena: not used. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_network_flushes(const struct hearth_scope *scope,
                                                const struct hearth_network_range *range,
                                                const struct hearth_network_reader *reader,
                                                struct hearth_err *err);

/* ---- sampled requests ---- */

/* Duplicates are ignored. The service is created if it is new. arena: not used. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_sampled_put(const struct hearth_scope *scope,
                                            const struct hearth_sampled_request *request,
                                            struct hearth_err *err);

/* A zeroed member does not restrict. */
struct hearth_sampled_filter {
    struct hearth_str request_id, service, instance, trace_id, source_id, destination_id;
    enum hearth_sampled_reason reason;
    int64_t from_ms, to_ms; /* both included; 0: no bound */
    int64_t limit;          /* 0: no limit */
};

/* The slowest first. A request_id that is not an id finds nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_sampled(const struct hearth_scope *scope,
                                        const struct hearth_sampled_filter *filter,
                                        struct hearth_sampled_request **ret, size_t *ret_n,
                                        struct hearth_err *err);

/* ---- captured events ---- */

/*
 * Duplicates are ignored. *ret_kept is false if the tenant would have more than max_day_bytes (0:
 * no limit) of today; the event is then only counted. The service is created if it is new. arena:
 * not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_captured_put(const struct hearth_scope *scope,
                                             const struct hearth_captured_event *event,
                                             int64_t max_day_bytes, bool *ret_kept,
                                             struct hearth_err *err);

/*
 * Events of a sampled request (an answer of hearth_store_sampled): those of its trace, and of its
 * segment and span if both name them, that name its instance or no instance. The earliest first.
 * *ret_dropped: number of events of the request's day and tenant that exceeded the limit of a day.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_captured(const struct hearth_scope *scope,
                                         const struct hearth_sampled_request *request,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         int64_t *ret_dropped, struct hearth_err *err);

/*
 * Events of these traces, by trace and time, without bodies: the tag HEARTH_CAPTURED_BODY is left
 * out.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_attached(const struct hearth_scope *scope,
                                         const struct hearth_str *trace_ids, size_t n_ids,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         struct hearth_err *err);

/* ---- addresses ---- */

/* Names sorted by address; only those of the n addresses, or all if addresses is NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_addresses(const struct hearth_scope *scope,
                                          const struct hearth_str *addresses, size_t n,
                                          struct hearth_address_name **ret, size_t *ret_n,
                                          struct hearth_err *err);
/*
 * Set all names or none; an empty name deletes the address, the last name of a repeated address
 * counts. RESOURCE_EXHAUSTED: the tenant would have more than max_addresses (0: no limit). arena:
 * may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_addresses_set(const struct hearth_scope *scope,
                                              const struct hearth_address_name *names, size_t n,
                                              int64_t max_addresses, struct hearth_err *err);

#endif
