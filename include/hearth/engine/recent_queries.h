/*
 * recent_queries.h -- the latest queries of each tenant, and its latest slow ones, in memory.
 *
 * The hash of a tenant's name selects one of 64 slots, so a busy tenant displaces the queries of
 * few others. A slot keeps HEARTH_RECENT_QUERIES of each kind. Texts are cut.
 *
 * Ownership: queries are copied; a list lives in the arena of its call.
 * Threads:   safe.
 * Errors:    PERMISSION_DENIED and NO_MEMORY of the list.
 */
#ifndef HEARTH_ENGINE_RECENT_QUERIES_H
#define HEARTH_ENGINE_RECENT_QUERIES_H

#include "hearth/base/str.h"
#include "hearth/engine/call.h"

#define HEARTH_RECENT_QUERIES     100u
#define HEARTH_SLOW_QUERY_US      1000000
#define HEARTH_RECENT_QUERY_BYTES 1024u /* of the request; of each other text a quarter */

struct hearth_recent_query {
    int64_t received_ms; /* since the epoch */
    int64_t took_us;     /* until the answer was ready, with the waiting */
    int64_t waited_us;   /* for a thread */
    int64_t n_bytes;     /* of the answer; of one in pieces, of the first */
    struct hearth_str tenant, subject, method, code, message, request, request_id;
};

struct hearth_recent_queries;

HEARTH_MUST_CHECK
enum hearth_status hearth_recent_queries_new(struct hearth_recent_queries **ret,
                                             struct hearth_err *err);
/* NULL-safe. */
void hearth_recent_queries_free(struct hearth_recent_queries *queries);

/* Copies the query. Where memory is refused, it is not kept. */
void hearth_recent_queries_note(struct hearth_recent_queries *queries,
                                const struct hearth_recent_query *query);

/*
 * The queries of the call's tenant, the latest first, in the arena of the call. A narrowed call is
 * PERMISSION_DENIED: the requests name series that it does not see.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_recent_queries_list(struct hearth_recent_queries *queries,
                                              const struct hearth_call *call, bool slow_only,
                                              struct hearth_recent_query **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
