/* svc_recent_queries.c -- hearth.v1.AdminService: recent and slow queries. */
#include "hearth/engine/recent_queries.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(recent_query, struct hearth_recent_query, Hearth__V1__RecentQuery);
static const struct hearth_message_member recent_query_members[] = {
    HEARTH_MAP(recent_query, received_ms, received_ms),
    HEARTH_MAP(recent_query, took_us, took_us),
    HEARTH_MAP(recent_query, waited_us, waited_us),
    HEARTH_MAP(recent_query, subject, subject),
    HEARTH_MAP(recent_query, method, method),
    HEARTH_MAP(recent_query, code, code),
    HEARTH_MAP(recent_query, message, message),
    HEARTH_MAP(recent_query, request, request),
    HEARTH_MAP(recent_query, n_bytes, answer_bytes),
    HEARTH_MAP(recent_query, request_id, request_id),
};
static const struct hearth_message_map recent_query_map =
    HEARTH_MESSAGE_MAP(recent_query, hearth__v1__recent_query__descriptor);

HEARTH_UNARY(hearth_svc_admin_recent_queries, Hearth__V1__RecentQueriesRequest,
             Hearth__V1__RecentQueriesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_recent_query *queries;
    size_t n;

    HEARTH_TRY(hearth_recent_queries_list(rpc->front->recent_queries, &call, in->slow_only,
                                          &queries, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &recent_query_map, queries, n, out, queries);

    return HEARTH_OK;
}
