/*
 * call_internal.h -- the engine's state, and helpers that every call uses (private to the engine).
 *
 * Threads: the helpers are safe to call from any thread with its own call.
 */
#ifndef HEARTH_ENGINE_CALL_INTERNAL_H
#define HEARTH_ENGINE_CALL_INTERNAL_H

#include "hearth/base/sync.h"
#include "hearth/engine/call.h"
#include "hearth/engine/limits.h"
#include "hearth/store/scope.h"

#include <stdatomic.h>

/*
 * Ranks of the engine's locks (hearth/base/sync.h). None of them is held while another is acquired,
 * or while the store is called: only base's locks are acquired below them.
 */
enum hearth_engine_rank {
    HEARTH_RANK_LEFTOVERS = HEARTH_RANKS_ENGINE, /* leftovers.lock: the stop of their thread */
    HEARTH_RANK_ACCESS,                          /* access.lock: the current snapshot, the stop */
    HEARTH_RANK_CREDENTIAL_USE,                  /* access.use_lock: addresses of last uses */
    HEARTH_RANK_FAILURES,                        /* failures.lock: counts of wrong credentials */
    HEARTH_RANK_HASHING,       /* hashing.lock: callers that hash a password, callers that wait */
    HEARTH_RANK_AUDIT,         /* audit.lock: events that wait */
    HEARTH_RANK_INGEST_ERRORS, /* ingest_errors.lock: refused uploads that wait; the stop */
    HEARTH_RANK_UPLOADS,       /* uploads.lock: which claims are held, the stop */
    HEARTH_RANK_PUSH_WAIT,     /* push_wait.lock: the end of a push */
    HEARTH_RANK_PUSH,          /* push.lock: the outcome of a request */
    HEARTH_RANK_INGEST,        /* ingest.lock: scratch memory and rates */
    HEARTH_RANK_SPOOL,         /* spool.lock: the spool's file, records that wait for the disk */
    HEARTH_RANK_SHOWN_KEYS,    /* shown_keys.lock: series that narrowed credentials may push */
    HEARTH_RANK_RATES,         /* query_engine.rates_lock */
    HEARTH_RANK_SUM_CACHE,     /* sum_cache.lock: the table and the order of use */
    HEARTH_RANK_NETWORK,       /* network.lock: reported processes */
    HEARTH_RANK_TENANT_USES,   /* tenant_uses.lock: what tenants use */
    HEARTH_RANK_RECENT,        /* recent_queries.lock: the rings */
};

#define HEARTH_RATE_SLOTS 512

/* Segments or spans that a tenant may still send. Tenants whose hashes collide share a slot. */
struct hearth_segment_rate {
    double tokens;
    int64_t at_mono_ns; /* time of the last update; 0: unused */
};

struct hearth_network;
struct hearth_sum_cache;
struct hearth_retention;

struct hearth_query_engine {
    struct hearth_limits start_limits;            /* the first ones that limits points to */
    _Atomic(const struct hearth_limits *) limits; /* read by hearth_engine_limits */
    struct hearth_store *store;
    struct hearth_sum_cache *sum_cache; /* select/sum_cache.h */
    struct hearth_mutex rates_lock;     /* guards the three tables of rates */
    struct hearth_segment_rate segment_rates[HEARTH_RATE_SLOTS];
    struct hearth_segment_rate otlp_rates[HEARTH_RATE_SLOTS];
    struct hearth_segment_rate refusal_rates[HEARTH_RATE_SLOTS]; /* by instance: notes in logs */
    struct hearth_network *network;    /* set by hearth_query_set_network; may be NULL */
    _Atomic uint32_t n_uploads_queued; /* by this server; its parsers look when it changes */
    /* When the span index begins; set once, when first known. */
    _Atomic int64_t span_index_since_ns;
    atomic_bool knows_span_index;
};

/* The limits of the server now; the struct lives as long as the engine. */
static inline const struct hearth_limits *
hearth_engine_limits(const struct hearth_query_engine *engine)
{
    return atomic_load_explicit(&engine->limits, memory_order_acquire);
}

/*
 * The scope of a call's reads and writes in the store; valid until the end of the enclosing block.
 */
#define HEARTH_CALL_SCOPE(call)                                     \
    (&(const struct hearth_scope){                                  \
        .store = (call)->engine->store,                             \
        .tenant = (call)->tenant,                                   \
        .cancel = (call)->cancel,                                   \
        .arena = (call)->arena,                                     \
        .tenants = (call)->tenants,                                 \
        .n_tenants = (call)->n_tenants < 2 ? 0 : (call)->n_tenants, \
    })

/* The limits that apply to the call's tenant; of several tenants, the strictest ones. */
void hearth_call_limits(const struct hearth_call *call, struct hearth_limits *ret);
/* The retention of the call's tenant; of several tenants, the shortest one of each tier. */
void hearth_call_retention(const struct hearth_call *call, struct hearth_retention *ret);
/* True if the call is about several tenants. */
static inline bool hearth_call_has_tenants(const struct hearth_call *call)
{
    return call->n_tenants > 1;
}

/*
 * Adds a line to call->notes unless it is there already; does nothing without notes. Truncated at
 * 511 bytes.
 */
void hearth_call_note(const struct hearth_call *call, const char *format, ...) HEARTH_PRINTF(2, 3);
/* Adds each line as a note of its own. */
void hearth_call_note_lines(const struct hearth_call *call, struct hearth_str lines);
/* Notes that the answer has n of n_all series because of its limit; nothing if it has all. */
void hearth_call_note_series(const struct hearth_call *call, size_t n, size_t n_all);

#endif
