/* svc_usage.c -- hearth.v1.AdminService: what a tenant uses, beside its limits. */
#include "hearth/engine/tenant_use.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

/* A use of a tenant that a limit bounds. */
struct limited_use {
    const char *limit;
    int64_t used, max; /* max 0: no limit */
    int64_t refused, refused_minute;
};

HEARTH_MAP_TYPES(limited_use, struct limited_use, Hearth__V1__LimitedUse);
static const struct hearth_message_member limited_use_members[] = {
    HEARTH_MAP(limited_use, limit, limit),
    HEARTH_MAP(limited_use, used, used),
    HEARTH_MAP(limited_use, max, max),
    HEARTH_MAP(limited_use, refused, refused),
    HEARTH_MAP(limited_use, refused_minute, refused_last_minute),
};
static const struct hearth_message_map limited_use_map =
    HEARTH_MESSAGE_MAP(limited_use, hearth__v1__limited_use__descriptor);

/* What was counted since the start of the server. */
struct counted_use {
    const char *name;
    struct hearth_use_counts counts;
};

HEARTH_MAP_TYPES(counted_use, struct counted_use, Hearth__V1__CountedUse);
static const struct hearth_message_member counted_use_members[] = {
    HEARTH_MAP(counted_use, name, name),
    HEARTH_MAP(counted_use, counts.total, total),
    HEARTH_MAP(counted_use, counts.minute, last_minute),
};
static const struct hearth_message_map counted_use_map =
    HEARTH_MESSAGE_MAP(counted_use, hearth__v1__counted_use__descriptor);

/* The refusals by a limit are counted under its name. */
static void find_refusals(const struct hearth_tenant_usage *usage, struct limited_use *use)
{
    for (size_t i = 0; i < HEARTH_N_USES; i++) {
        if (hearth_use_kinds[i].is_refusal && strcmp(hearth_use_kinds[i].name, use->limit) == 0) {
            use->refused = usage->counts[i].total;
            use->refused_minute = usage->counts[i].minute;
        }
    }
}

HEARTH_UNARY(hearth_svc_admin_usage, Hearth__V1__UsageRequest, Hearth__V1__UsageResponse)
{
    struct hearth_front *front = rpc->front;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_tenant_stock stock;
    struct hearth_tenant_usage usage = {0};
    struct hearth_limits limits;

    /* Read the state of this server, and what the database has. */
    HEARTH_TRY(hearth_tenant_stock_read(&call, &stock, &rpc->err));
    if (front->options.tenant_uses != NULL) {
        hearth_tenant_usage_read(front->options.tenant_uses, call.tenant, &usage);
    }
    hearth_query_tenant_limits(front->query, call.tenant, &limits);
    struct hearth_lane_counts pushes = hearth_workers_count(front->ingest_pool, call.tenant);
    struct hearth_lane_counts queries = hearth_workers_count(front->query_pool, call.tenant);
    int64_t max_queries = limits.max_queries > 0 ? limits.max_queries : (int64_t)front->query_share;

    /* Beside the limits. */
    struct limited_use uses[] = {
        {.limit = "max-services", .used = stock.n_services, .max = limits.max_services},
        {.limit = "max-series", .used = stock.n_series, .max = limits.max_series},
        {.limit = "max-tasks", .used = stock.n_tasks, .max = limits.max_tasks},
        {.limit = "ingest-rate-bytes",
         .used = usage.counts[HEARTH_USE_INGEST_BYTES].minute / 60,
         .max = limits.ingest_rate_bytes},
        {.limit = "max-queries", .used = (int64_t)queries.n_running, .max = max_queries},
        {.limit = "max-queued-queries",
         .used = (int64_t)queries.n_queued,
         .max = limits.max_queued_queries},
        {.limit = "max-queued-requests",
         .used = (int64_t)(pushes.n_queued + queries.n_queued),
         .max = front->options.max_queued_requests},
        {.limit = "max-tenant-query-memory-bytes",
         .used = (int64_t)usage.query_memory_bytes,
         .max = limits.max_tenant_query_memory_bytes > 0 ? limits.max_tenant_query_memory_bytes
                                                         : (int64_t)usage.query_memory_limit},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(uses); i++) {
        find_refusals(&usage, &uses[i]);
    }
    HEARTH_RPC_LIST(rpc, &limited_use_map, uses, HEARTH_ARRAY_LEN(uses), out, limits);

    /* Counted. */
    struct counted_use counted[HEARTH_N_USES];
    size_t n = 0;
    for (size_t i = 0; i < HEARTH_N_USES; i++) {
        if (!hearth_use_kinds[i].is_refusal) {
            counted[n++] = (struct counted_use){hearth_use_kinds[i].name, usage.counts[i]};
        }
    }
    HEARTH_RPC_LIST(rpc, &counted_use_map, counted, n, out, uses);
    out->since_ms = usage.since_ms;

    return HEARTH_OK;
}
