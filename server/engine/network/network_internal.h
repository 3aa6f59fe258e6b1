/*
 * network_internal.h -- what the files about network tasks share (private to the engine).
 *
 *   network.c          meters and sampled requests in, ends of connections
 *   network_book.c     names of addresses
 *   network_answers.c  topology and metrics over time
 *   network_requests.c sampled requests and what was captured of them, in and out
 */
#ifndef HEARTH_ENGINE_NETWORK_INTERNAL_H
#define HEARTH_ENGINE_NETWORK_INTERNAL_H

#include "hearth/engine/network.h"
#include "hearth/model/entity_id.h"

#include "network/redact.h"
#include "select/query_internal.h"

#include <pthread.h>

/* Of an address as agents say it: "ip:port", or what is no address. */
#define HEARTH_ADDRESS_BYTES 256
/* Virtual processes that were reported lately: a hash of each, where it was last put. */
#define HEARTH_NETWORK_SEEN 8192

struct hearth_network {
    struct hearth_network_address *configured; /* by address; is_configured */
    size_t n_configured;
    struct hearth_arena arena;
    struct hearth_redactor *redactor;
    pthread_mutex_t lock; /* guards seen */
    struct {
        uint64_t key;
        int64_t mono_ns;
    } seen[HEARTH_NETWORK_SEEN];
};

void hearth_network_free(struct hearth_network *network); /* NULL-safe */

/* The same address in one form: "ip", "ip:port" or "[ip]:port" (IPv6). INVALID_ARGUMENT names it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_address_normal(struct hearth_str text, struct hearth_arena *arena,
                                         struct hearth_str *ret, struct hearth_err *err);

/* names[i] of addresses[i]; empty where there is none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_names(const struct hearth_call *call,
                                        const struct hearth_str *addresses, size_t n,
                                        struct hearth_str *ret_names, struct hearth_err *err);

/* One end of a connection as an agent says it; one of the three. */
struct hearth_network_end {
    struct hearth_str process_id;
    bool is_local;
    struct hearth_str address;
    struct hearth_str name; /* found: of a virtual one */
};

/* process_id of each is set; those that no agent watches are reported. `what` names the ends in messages. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_resolve(const struct hearth_call *call, struct hearth_str service,
                                          struct hearth_str instance,
                                          struct hearth_network_end *ends, size_t n,
                                          struct hearth_err *err);
/* What agents say of one end; INVALID_ARGUMENT when it is none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_check_end(const struct hearth_network_end *end, const char *role,
                                            struct hearth_err *err);
/* Within what reject-older-than and reject-newer-than allow. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_check_time(const struct hearth_call *call, int64_t at_ms,
                                             struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_network_check_names(struct hearth_str service, struct hearth_str instance,
                                              struct hearth_err *err);

/* "source-destination", or INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_split_call(struct hearth_str call_id,
                                             struct hearth_str *ret_source,
                                             struct hearth_str *ret_destination,
                                             struct hearth_err *err);

#endif
