/* query_note.c -- a request as an entry of the list of recent queries (contract: query_note.h). */
#include "rpc/query_note.h"

#include "hearth/engine/recent_queries.h"

#include "rpc/audit_request.h"
#include "rpc/front_internal.h"

/* Questions about data are those that may be asked of several tenants at once. */
static bool is_data_query(const struct hearth_rpc *rpc)
{
    return rpc->method->pool == HEARTH_POOL_QUERY && rpc->run_mono_ns != 0 &&
           (rpc->method->flags & HEARTH_METHOD_MANY_TENANTS) != 0;
}

void hearth_query_note(struct hearth_rpc *rpc)
{
    const struct hearth_admission *admission = &rpc->caller.admission;
    struct hearth_buf request;

    if (!is_data_query(rpc)) {
        return;
    }

    hearth_buf_init(&request, 0);
    hearth_rpc_write_request(rpc, HEARTH_RECENT_QUERY_BYTES, &request);

    int64_t took_ns = hearth_rpc_took_ns(rpc, hearth_clock_mono_ns());
    hearth_recent_queries_note(
        rpc->front->recent_queries,
        &(const struct hearth_recent_query){
            .received_ms = (hearth_clock_wall_ns() - took_ns) / HEARTH_NS_PER_MS,
            .took_us = took_ns / 1000,
            .waited_us = (rpc->run_mono_ns - rpc->submitted_mono_ns) / 1000,
            .n_bytes = (int64_t)rpc->packed.n,
            .tenant = hearth_rpc_tenant(rpc),
            .subject = admission->access == NULL ? HEARTH_STR("anonymous") : admission->subject,
            .method = hearth_str_c(rpc->method->path),
            .code = hearth_str_c(hearth_status_name(rpc->status)),
            .request_id = hearth_str_c(rpc->ids.request_id),
            .message = rpc->status == HEARTH_OK ? HEARTH_STR("") : hearth_str_c(rpc->err.msg),
            .request = rpc->http != NULL ? rpc->arguments : hearth_buf_view(&request)});
    hearth_buf_release(&request);
}
