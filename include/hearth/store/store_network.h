/*
 * store_network.h -- what network tasks brought: flushes of connections, sampled requests, what was captured of them, and
 * names of addresses (sql/0010_network.sql).
 *
 * What is captured is stored as it is given: who gives it has redacted and cut it (engine/network/redact.h). It is read by
 * hearth_store_captured and hearth_store_attached only, and not after `retain-captured`, gone or not.
 *
 * Times are milliseconds since the epoch unless they say otherwise.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, CORRUPT (stored bytes), and what each function says.
 */
#ifndef HEARTH_STORE_NETWORK_H
#define HEARTH_STORE_NETWORK_H

#include "hearth/model/network_traffic.h"
#include "hearth/store/store.h"

/* ---- flushes ---- */

struct hearth_network_flush {
    struct hearth_str source_id, destination_id;
    enum hearth_network_side side;
    enum hearth_network_component component;
    /* Of ends that no agent sees: lines, each an address, '\n' between them. */
    struct hearth_str source_addresses, destination_addresses;
    struct hearth_str payload; /* hearth_network_encode */
    int64_t at_ms;             /* answers only */
};

/* What an instance counted at one time; one transaction, repeatable. The service is made when it is new. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_network_add(const struct hearth_scope *scope,
                                            struct hearth_str service, struct hearth_str instance,
                                            int64_t at_ms,
                                            const struct hearth_network_flush *flushes, size_t n,
                                            struct hearth_err *err);

/* Of an instance, from_ms included, to_ms excluded. */
struct hearth_network_range {
    struct hearth_str service, instance;
    struct hearth_str source_id, destination_id; /* empty: all */
    int64_t from_ms, to_ms;
};

/* Without payload and time, some more than once: with other addresses. Relations of sampled requests are among them. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_network_relations(const struct hearth_scope *scope,
                                                  const struct hearth_network_range *range,
                                                  struct hearth_network_flush **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* Who reads flushes. `begin` comes first, and once more when the read began anew: forget what came before. */
struct hearth_network_reader {
    void *context;
    enum hearth_status (*begin)(void *context, struct hearth_err *err);
    enum hearth_status (*flush)(void *context,
                                const struct hearth_network_flush *flush, /* during the call */
                                struct hearth_err *err);
};

/* By source, destination, side and time. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_network_flushes(const struct hearth_scope *scope,
                                                const struct hearth_network_range *range,
                                                const struct hearth_network_reader *reader,
                                                struct hearth_err *err);

/* ---- sampled requests ---- */

/* What comes again is stored once. The service is made when it is new. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_sampled_put(const struct hearth_scope *scope,
                                            const struct hearth_sampled_request *request,
                                            struct hearth_err *err);

/* What is not said does not restrict. */
struct hearth_sampled_filter {
    struct hearth_str request_id, service, instance, trace_id, source_id, destination_id;
    enum hearth_sampled_reason reason;
    int64_t from_ms, to_ms; /* both included; 0: open */
    int64_t limit;          /* 0: none */
};

/* The slowest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_sampled(const struct hearth_scope *scope,
                                        const struct hearth_sampled_filter *filter,
                                        struct hearth_sampled_request **ret, size_t *ret_n,
                                        struct hearth_err *err);

/* ---- captured events ---- */

/*
 * What comes again is stored once. *ret_kept false: with it the tenant would have more than max_day_bytes (0: no limit)
 * of today, so it is only counted.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_captured_put(const struct hearth_scope *scope,
                                             const struct hearth_captured_event *event,
                                             int64_t max_day_bytes, bool *ret_kept,
                                             struct hearth_err *err);

/*
 * Of a sampled request (an answer of hearth_store_sampled): those of its trace, segment and span, as far as each says
 * them, that name its instance or none. The earliest first. *ret_dropped: events of the request's day and tenant that did
 * not fit the limit of a day.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_captured(const struct hearth_scope *scope,
                                         const struct hearth_sampled_request *request,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         int64_t *ret_dropped, struct hearth_err *err);

/* Of these traces, by trace and time, without bodies: the tag HEARTH_CAPTURED_BODY is left out. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_attached(const struct hearth_scope *scope,
                                         const struct hearth_str *trace_ids, size_t n_ids,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         struct hearth_err *err);

/* ---- addresses ---- */

/* By address; `addresses` (n of them): only those. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_addresses(const struct hearth_scope *scope,
                                          const struct hearth_str *addresses, size_t n,
                                          struct hearth_address_name **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* All or none; an empty name takes the address out. RESOURCE_EXHAUSTED: more than max_addresses (0: no limit). */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_addresses_set(const struct hearth_scope *scope,
                                              const struct hearth_address_name *names, size_t n,
                                              int64_t max_addresses, struct hearth_err *err);

#endif
