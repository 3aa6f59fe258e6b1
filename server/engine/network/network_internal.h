/*
 * network_internal.h -- declarations shared by the files about network tasks (private to the
 * engine).
 *
 *   network.c           intake of meters; ends of connections
 *   network_book.c      names of addresses
 *   network_answers.c   topology and metrics over time
 *   network_requests.c  sampled requests and captured data, intake and queries
 */
#ifndef HEARTH_ENGINE_NETWORK_INTERNAL_H
#define HEARTH_ENGINE_NETWORK_INTERNAL_H

#include "hearth/engine/network.h"
#include "hearth/model/entity_id.h"

#include "network/redact.h"
#include "select/query_internal.h"

/* Maximum bytes of an address as agents send it: "ip:port", or any other text. */
#define HEARTH_ADDRESS_BYTES 256
/*
 * Elements of the table of recently reported virtual processes; each holds the hash that was put
 * there last.
 */
#define HEARTH_NETWORK_SEEN 8192

struct hearth_network {
    struct hearth_network_address *configured; /* sorted by address; is_configured is true */
    size_t n_configured;
    struct hearth_arena arena;
    struct hearth_redactor *redactor;
    struct hearth_mutex lock; /* guards `seen` */
    struct {
        uint64_t key;
        int64_t mono_ns;
    } seen[HEARTH_NETWORK_SEEN];
};

void hearth_network_free(struct hearth_network *network); /* NULL-safe */

/* Look up the names of n addresses; ret_names[i] is the name of addresses[i], or empty. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_names(const struct hearth_call *call,
                                        const struct hearth_str *addresses, size_t n,
                                        struct hearth_str *ret_names, struct hearth_err *err);

/* One end of a connection as an agent sends it; exactly one of the first three members is set. */
struct hearth_network_end {
    struct hearth_str process_id;
    bool is_local;
    struct hearth_str address;
    struct hearth_str name; /* set by hearth_network_resolve for virtual processes */
};

/* Set process_id of each end, and report the ends that no agent monitors as virtual processes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_resolve(const struct hearth_call *call, struct hearth_str service,
                                          struct hearth_str instance,
                                          struct hearth_network_end *ends, size_t n,
                                          struct hearth_err *err);
/* Check one end as an agent sent it. role names the end in messages. INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_check_end(const struct hearth_network_end *end, const char *role,
                                            struct hearth_err *err);
/*
 * Check that a time is within the limits reject-older-than and reject-newer-than. INVALID_ARGUMENT.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_check_time(const struct hearth_call *call, int64_t at_ms,
                                             struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_network_check_names(struct hearth_str service, struct hearth_str instance,
                                              struct hearth_err *err);

/* Split a call id, "source-destination". INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_split_call(struct hearth_str call_id,
                                             struct hearth_str *ret_source,
                                             struct hearth_str *ret_destination,
                                             struct hearth_err *err);

#endif
