/* fair_share.c -- lanes, limits and use of tenants (contract: fair_share.h). */
#include "rpc/fair_share.h"

#include "hearth/engine/tenant_use.h"

#include "rpc/front_internal.h"

#include <assert.h>

/* A tenant's limit below this is raised to it, so that a tenant can always change it. */
#define QUERY_LEAST_BYTES ((size_t)1 << 20)

size_t hearth_fair_share(bool multitenancy, unsigned n_threads)
{
    unsigned n_others = n_threads / 4 > 0 ? n_threads / 4 : 1;
    return multitenancy && n_threads > 1 ? n_threads - n_others : 0;
}

/* The limits of the tenant; of several tenants, the strictest. */
static void find_tenant_limits(const struct hearth_rpc *rpc, struct hearth_limits *ret)
{
    const struct hearth_query_engine *query = rpc->front->query;

    if (rpc->caller.tenants.n > 1) {
        hearth_query_strictest_limits(query, rpc->caller.tenants.v, rpc->caller.tenants.n, ret);
    } else {
        hearth_query_tenant_limits(query, hearth_rpc_tenant(rpc), ret);
    }
}

/* The limits are applied before the query allocates anything that is charged to its parents. */
static void share_query_memory(struct hearth_rpc *rpc, const struct hearth_limits *limits)
{
    size_t limit = (size_t)limits->max_query_memory_bytes;
    limit = limit > 0 && limit < QUERY_LEAST_BYTES ? QUERY_LEAST_BYTES : limit;
    rpc->arena.limit_bytes = limit;
    atomic_store(&rpc->memory.limit_bytes, limit);
    if (rpc->front->options.tenant_uses == NULL || rpc->use != NULL ||
        atomic_load(&rpc->memory.used_bytes) > rpc->memory.free_bytes) {
        return;
    }

    struct hearth_tenant_uses *uses = rpc->front->options.tenant_uses;
    rpc->use = hearth_tenant_use_take(uses, hearth_rpc_tenant(rpc));
    rpc->memory.parent =
        hearth_tenant_use_memory(uses, rpc->use, (size_t)limits->max_tenant_query_memory_bytes);
}

void hearth_fair_share_begin(struct hearth_rpc *rpc, struct hearth_lane_key *ret_key)
{
    struct hearth_front *front = rpc->front;
    bool is_query = rpc->method->pool == HEARTH_POOL_QUERY;

    *ret_key = (struct hearth_lane_key){.name = hearth_rpc_tenant(rpc)};
    if ((rpc->method->flags & HEARTH_METHOD_TENANT) == 0) {
        return;
    }

    ret_key->max_running = is_query ? front->query_share : front->ingest_share;
    if (is_query) {
        struct hearth_limits limits;
        find_tenant_limits(rpc, &limits);
        share_query_memory(rpc, &limits);
        ret_key->max_queued = (size_t)limits.max_queued_queries;
        if (limits.max_queries > 0) {
            ret_key->max_running = (size_t)limits.max_queries;
        }
    }
}

enum hearth_status hearth_fair_share_refuse(struct hearth_rpc *rpc, enum hearth_queued why)
{
    const struct hearth_front_options *options = &rpc->front->options;

    if (why == HEARTH_QUEUE_STOPPED || atomic_load(&rpc->front->is_stopping)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    if (why == HEARTH_QUEUE_LANE_FULL) {
        struct hearth_limits limits;
        find_tenant_limits(rpc, &limits);
        hearth_tenant_use_count(options->tenant_uses, hearth_rpc_tenant(rpc),
                                HEARTH_USE_REFUSED_QUERIES, 1);
        (void)HEARTH_FAIL(&rpc->err, HEARTH_RESOURCE_EXHAUSTED,
                          "too many queries of the tenant are waiting (max-queued-queries is %lld, "
                          "max-queries %lld): retry later, or have these limits raised",
                          (long long)limits.max_queued_queries, (long long)limits.max_queries);
        rpc->err.is_passing = true;
        return HEARTH_RESOURCE_EXHAUSTED;
    }

    if (hearth_rpc_tenant(rpc).n > 0) {
        hearth_tenant_use_count(options->tenant_uses, hearth_rpc_tenant(rpc),
                                HEARTH_USE_REFUSED_QUEUE, 1);
    }

    return HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                       "too many requests are waiting (max-queued-requests is %lld): retry later",
                       (long long)options->max_queued_requests);
}

void hearth_fair_share_count(struct hearth_rpc *rpc)
{
    struct hearth_tenant_uses *uses = rpc->front->options.tenant_uses;
    if (rpc->use == NULL || rpc->run_mono_ns == 0) {
        return;
    }

    hearth_tenant_use_add(uses, rpc->use, HEARTH_USE_QUERIES, 1);
    hearth_tenant_use_add(uses, rpc->use, HEARTH_USE_QUERY_NS,
                          hearth_clock_mono_ns() - rpc->run_mono_ns);
    if (rpc->status == HEARTH_NO_MEMORY && rpc->memory.refused_by != NULL &&
        rpc->memory.refused_by == rpc->memory.parent) {
        hearth_tenant_use_add(uses, rpc->use, HEARTH_USE_REFUSED_QUERY_MEMORY, 1);
    }
}

void hearth_fair_share_release(struct hearth_rpc *rpc)
{
    hearth_tenant_use_give(rpc->front->options.tenant_uses, rpc->use);
    rpc->use = NULL;
}
