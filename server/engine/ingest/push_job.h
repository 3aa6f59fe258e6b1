/*
 * push_job.h -- the profiles of a push on their way to the commit queue (private to the room).
 *
 *   ingest.c        requests: their state, their limits, their end
 *   push_scratch.c  memory of decoding, reused from profile to profile
 *   push_profile.c  the steps of one profile
 *
 * Threads: the thread that pushes works on a profile until it is submitted; then a committer ends
 *          it.
 */
#ifndef HEARTH_ENGINE_PUSH_JOB_H
#define HEARTH_ENGINE_PUSH_JOB_H

#include "hearth/base/budget.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/tenant_use.h"

#include "common/call_internal.h"
#include "ingest/ingest_internal.h"
#include "ingest/push_view.h"
#include "ingest/shown_keys.h"
#include "ingest/spool_internal.h"

#include <stdatomic.h>

#define HEARTH_PUSH_RATE_SLOTS  1024
#define HEARTH_PUSH_MAX_WAITING 64

/* Memory of one profile's decoding, reused by later profiles. */
struct hearth_push_scratch {
    struct hearth_push_scratch *next; /* in the free list */
    struct hearth_inflater *inflater;
    struct hearth_buf raw; /* the inflated profile */
    struct hearth_arena arena;
};

/* Token bucket of one tenant. Tenants whose hashes collide share a slot, and so the rate. */
struct rate_bucket {
    double tokens;      /* bytes that may be sent now; their fractions add up */
    int64_t at_mono_ns; /* time of the last update; 0: unused */
};

struct hearth_ingest {
    struct hearth_ingest_options options;
    _Atomic(const struct hearth_limits *) limits; /* those of options until they are replaced */
    struct hearth_store *store;
    struct hearth_mutex lock; /* guards free_scratch, n_free, rates */
    struct hearth_push_scratch *free_scratch;
    unsigned n_free;
    struct rate_bucket rates[HEARTH_PUSH_RATE_SLOTS];
    struct hearth_shown_keys *shown; /* series that narrowed senders may push */
};

/* One profile of a request. */
struct hearth_push_job {
    struct hearth_push_item item; /* first: the committer gives it back */
    struct hearth_push_state *state;
    struct hearth_arena keep; /* rows until the commit */
    uint32_t series_idx, n_samples;
    bool has_hints;
    bool reads_cpu;                      /* the CPU time of its stages is measured */
    bool is_read;                        /* false until the bytes are decoded */
    bool is_given_back;                  /* by the commit queue, to be spooled */
    struct hearth_str id;                /* as sent */
    struct hearth_push_receipt *receipt; /* may be NULL */

    /* Valid only while hearth_ingest_push works on the profile, or the request needs its input. */
    const struct hearth_push_sample *sample;
    /* Valid only while a thread works on the profile. */
    struct hearth_push_scratch *scratch;
    struct hearth_push_work work;
    struct hearth_push_ready *ready; /* once it is decoded, in scratch */
};

/* The state of a request between hearth_ingest_push and its `done`. */
struct hearth_push_state {
    struct hearth_push_request *request;
    struct hearth_ingest *ingest;
    struct hearth_mutex
        lock; /* guards the request's outcome while profiles end on several threads */
    int64_t now_ns;
    struct hearth_ingest_options options; /* with the limits of the tenant */
    struct hearth_tenant_use *use;        /* held; NULL: pushes are not counted */
    struct hearth_arena arena;            /* memory of identities */
    uint64_t raw_bytes;                   /* inflated so far */
    int64_t upload_count;                 /* of all profiles; 0: each has its own */
    /* The view of the sender while hearth_ingest_push runs; NULL later: it was checked. */
    struct hearth_push_view *view;
    struct hearth_spool_write spool;             /* the record of profiles that are spooled */
    const struct hearth_push_file *spooled_file; /* the latest file in it; not followed */
    uint32_t n_spooled, n_spooled_files;
    /* Profiles that the commit queue gave back, why, and the work to spool them. */
    uint32_t n_given_back;
    struct hearth_err give_back_err;
    struct hearth_spool_job spool_job;
    /* Decoded profiles of one hour whose series are not known. */
    struct hearth_push_job *waiting[HEARTH_PUSH_MAX_WAITING];
    size_t n_waiting, n_waiting_series, n_waiting_bytes;
    struct hearth_push_job jobs[]; /* [n_profiles of the request] */
};

/* Half of the memory of pushes is in use: what is not needed must not hold it. */
static inline bool hearth_push_memory_is_scarce(struct hearth_budget *budget)
{
    size_t limit = budget == NULL ? 0 : budget->limit_bytes;

    return limit > 0 && atomic_load(&budget->used_bytes) > limit / 2;
}

/* Take scratch memory from the free list, or make new; NULL: no memory. */
struct hearth_push_scratch *hearth_push_take_scratch(struct hearth_ingest *ingest);
/* Return it to the free list, or free it if the list is full. */
void hearth_push_give_scratch(struct hearth_ingest *ingest, struct hearth_push_scratch *scratch);

/*
 * Run the steps of one profile, from the sent bytes to rows in the commit queue. It ends here, or
 * when its commit ends. If its series are new and the request has other profiles, it may wait for
 * hearth_push_finish_waiting.
 */
void hearth_push_profile(struct hearth_push_job *job, const struct hearth_identity *identity);
/* Read a profile again that the commit queue gave back, and add it to the record of its push. */
HEARTH_MUST_CHECK
enum hearth_status hearth_push_spool_again(struct hearth_push_job *job, struct hearth_err *err);
/* Make the series of the profiles that wait, and run the rest of their steps. */
void hearth_push_finish_waiting(struct hearth_push_state *state);

/* Called when the item of a job has its outcome, by a committer or by hearth_store_withdraw. */
void hearth_push_end_job(struct hearth_push_item *item, enum hearth_status status,
                         const struct hearth_err *err);
/* Note in the request that a profile failed. */
void hearth_push_record_failure(struct hearth_push_state *state, const struct hearth_push_job *job,
                                enum hearth_status status, const struct hearth_err *err);
/* End the request if this was the last of its profiles. */
void hearth_push_release_pending(struct hearth_push_state *state);

#endif
