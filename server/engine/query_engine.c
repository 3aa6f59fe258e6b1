/*
 * query_engine.c -- makes and frees a query engine, which owns the state of several rooms
 * (contract: hearth/engine/query.h).
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "network/network_internal.h"
#include "select/sum_cache.h"

enum hearth_status hearth_query_engine_new(const struct hearth_limits *limits, size_t cache_bytes,
                                           struct hearth_store *store,
                                           struct hearth_query_engine **ret_engine,
                                           struct hearth_err *err)
{
    struct hearth_query_engine *engine = hearth_mem_zalloc(sizeof *engine);
    struct hearth_sum_cache *cache = hearth_sum_cache_new(cache_bytes);
    if (engine == NULL || cache == NULL) {
        hearth_mem_free(engine);
        hearth_sum_cache_free(cache);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the query engine");
    }

    engine->start_limits = *limits;
    atomic_init(&engine->limits, &engine->start_limits);
    engine->store = store;
    engine->sum_cache = cache;
    hearth_mutex_init(&engine->rates_lock, HEARTH_RANK_RATES, "query_engine.rates_lock");
    for (int source = 0; source < HEARTH_N_SOURCES; source++) {
        hearth_metric_declare(HEARTH_M_PLAN_LEGS, hearth_source_name((enum hearth_source)source));
    }

    *ret_engine = engine;
    return HEARTH_OK;
}

void hearth_query_set_limits(struct hearth_query_engine *engine, const struct hearth_limits *limits)
{
    atomic_store_explicit(&engine->limits, limits, memory_order_release);
}

void hearth_query_engine_free(struct hearth_query_engine *engine)
{
    if (engine != NULL) {
        hearth_network_free(engine->network);
        hearth_sum_cache_free(engine->sum_cache);
        hearth_mutex_destroy(&engine->rates_lock);
        hearth_mem_free(engine);
    }
}
