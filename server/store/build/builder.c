/*
 * builder.c -- the builder's thread, and the order of its steps (contract: builder.h).
 */
#include "build/builder.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "build/roll.h"
#include "pg/store_state.h"

#include <assert.h>
#include <stdio.h>

#define CONNECT_TIMEOUT_MS   5000
#define STATEMENT_TIMEOUT_MS (10 * 60 * 1000)
#define PACK_LEVEL           1
/* The pause of a server that waits for the lease, or for its database. */
#define IDLE_WAIT_NS HEARTH_NS_PER_SEC

/* The first queries of a server that has just started have the processors for themselves. */
#define START_PAUSE_NS HEARTH_NS_PER_SEC

/* The size of a reason that is kept so that it is logged once, with its NUL. */
enum {
    REASON_BYTES = 160
};

static const struct step {
    const char *name; /* label of its metrics */
    hearth_builder_step *run;
} STEPS[] = {
    {"close", hearth_step_close},     {"fold", hearth_step_fold},
    {"fill", hearth_step_fill},       {"rules", hearth_step_rules},
    {"erase", hearth_step_erase},     {"spans", hearth_step_spans},
    {"compact", hearth_step_compact}, {"retention", hearth_step_retention},
};

struct hearth_builder_thread {
    struct hearth_builder builder; /* of the thread alone, as are the reasons below */
    struct hearth_cancel cancel;   /* cancels the builder's statements */
    pthread_t thread;
    struct hearth_mutex lock; /* guards woken, stopping */
    pthread_cond_t wake;
    bool woken;    /* the next round is to begin now */
    bool stopping; /* the thread is to end; never reset */
    /* why each step failed, why the lease could not be taken; empty: the last attempt worked */
    char step_reasons[HEARTH_ARRAY_LEN(STEPS)][REASON_BYTES];
    char lease_reason[REASON_BYTES];
};

/* ---- the thread ---- */

static bool is_stopping(struct hearth_builder_thread *thread)
{
    hearth_mutex_lock(&thread->lock);
    bool stopping = thread->stopping;
    hearth_mutex_unlock(&thread->lock);

    return stopping;
}

/* Sleeps until the time has passed, or hearth_builder_wake or _stop is called. */
static void rest(struct hearth_builder_thread *thread, int64_t duration_ns)
{
    int64_t until_mono_ns = hearth_clock_mono_ns() + duration_ns;
    bool in_time = true;

    hearth_mutex_lock(&thread->lock);
    while (in_time && !thread->stopping && !thread->woken) {
        in_time = hearth_mutex_wait_until(&thread->lock, &thread->wake, until_mono_ns);
    }
    thread->woken = false;
    hearth_mutex_unlock(&thread->lock);
}

/* Logs why a step failed, unless it failed for the same reason the last time. */
static void log_new_reason(char last_reason[REASON_BYTES], const char *step, const char *reason)
{
    if (strncmp(last_reason, reason, REASON_BYTES - 1) != 0) {
        HEARTH_LOG(HEARTH_LOG_WARN, "builder", "background work failed, will be tried again",
                   "step", step, "reason", reason, NULL);
        (void)snprintf(last_reason, REASON_BYTES, "%.*s", REASON_BYTES - 1, reason);
    }
}

/* Runs a step. Returns whether it has more work to do at once. */
static bool run_step(struct hearth_builder_thread *thread, size_t step_idx)
{
    assert(step_idx < HEARTH_ARRAY_LEN(STEPS));

    struct hearth_builder *builder = &thread->builder;
    const struct step *step = &STEPS[step_idx];
    struct hearth_str name = hearth_str_c(step->name);
    struct hearth_err err = HEARTH_ERR_INIT;
    bool more = false;

    /* Run it, and measure it. */
    int64_t cpu_ns = hearth_clock_thread_cpu_ns();
    enum hearth_status status = step->run(builder, &more, &err);
    hearth_metric_add_label(HEARTH_M_BUILDER_CPU, name, hearth_clock_thread_cpu_ns() - cpu_ns);
    if (status == HEARTH_OK) {
        thread->step_reasons[step_idx][0] = '\0';
        return more;
    }

    /* A lost lease and a cancellation at the end are no errors. */
    hearth_builder_rollback(builder);
    if (builder->token != 0 && !is_stopping(thread)) {
        hearth_metric_add_label(HEARTH_M_BUILDER_ERRORS, name, 1);
        log_new_reason(thread->step_reasons[step_idx], step->name, err.msg);
    }

    return false;
}

/* Connects if necessary, and renews or takes the lease. Returns whether this server holds it. */
static bool hold_lease(struct hearth_builder_thread *thread)
{
    struct hearth_builder *builder = &thread->builder;
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_OK;

    if (!hearth_pg_alive(&builder->pg)) {
        status = hearth_pg_connect(&builder->pg, CONNECT_TIMEOUT_MS, &err);
    }

    if (status == HEARTH_OK) {
        status = hearth_lease_take(builder, &err);
    }

    if (status != HEARTH_OK && !is_stopping(thread)) {
        log_new_reason(thread->lease_reason, "lease", err.msg);
    } else {
        thread->lease_reason[0] = '\0';
    }

    return status == HEARTH_OK && builder->token != 0;
}

/*
 * Runs each step once, until the lease or the connection is lost. Returns whether a step has more
 * work to do at once.
 */
static bool run_round(struct hearth_builder_thread *thread)
{
    const struct hearth_builder *builder = &thread->builder;
    bool more = false;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(STEPS); i++) {
        if (builder->token == 0 || !hearth_pg_usable(&builder->pg) || is_stopping(thread)) {
            break;
        }

        more = run_step(thread, i) || more;
    }

    return more;
}

static void *run_builder(void *arg)
{
    struct hearth_builder_thread *thread = arg;
    struct hearth_builder *builder = &thread->builder;
    int64_t interval_ns = hearth_store_live(builder->store)->builder_interval_ns;

    rest(thread, interval_ns < START_PAUSE_NS ? interval_ns : START_PAUSE_NS);
    while (!is_stopping(thread)) {
        bool is_holder = hold_lease(thread);
        bool more = is_holder && run_round(thread);
        if (!more) {
            rest(thread,
                 is_holder ? hearth_store_live(builder->store)->builder_interval_ns : IDLE_WAIT_NS);
        }
    }

    hearth_lease_release(builder);

    return NULL;
}

static void free_thread(struct hearth_builder_thread *thread)
{
    hearth_pg_close(&thread->builder.pg);
    hearth_close_free(thread->builder.close);
    hearth_inflater_free(thread->builder.inflater);
    hearth_packer_free(thread->builder.packer);
    (void)pthread_cond_destroy(&thread->wake);
    hearth_mutex_destroy(&thread->lock);
    hearth_mem_free(thread);
}

static enum hearth_status start_thread(struct hearth_builder_thread *thread, struct hearth_err *err)
{
    /* The new thread inherits the mask: signals are for the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&thread->thread, NULL, run_builder, thread);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the builder's thread: %s",
                           strerrordesc_np(rc));
    }

    (void)pthread_setname_np(thread->thread, "builder");

    return HEARTH_OK;
}

enum hearth_status hearth_builder_start(struct hearth_store *store,
                                        struct hearth_builder_thread **ret_thread,
                                        struct hearth_err *err)
{
    /* The writer id is the name of this server in the lease. */
    assert(store->url != NULL && store->batch_writer_id != 0);

    struct hearth_builder_thread *thread = hearth_mem_zalloc(sizeof *thread);
    if (thread == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the builder");
    }

    /* Make its parts. */
    hearth_cancel_init(&thread->cancel, INT64_MAX);
    hearth_mutex_init(&thread->lock, HEARTH_RANK_BUILDER, "builder.lock");
    hearth_cond_init(&thread->wake);
    thread->builder = (struct hearth_builder){
        .store = store,
        .pg = {.url = store->url,
               .lineage = &store->lineage,
               .cancel = &thread->cancel,
               .timeout_ms = STATEMENT_TIMEOUT_MS},
        .inflater = hearth_inflater_new(),
        .packer = hearth_packer_new(PACK_LEVEL),
        .close = hearth_close_new(),
    };

    /* Nothing has expired since the last server ended that could not wait. */
    store->retention.next_pass_mono_ns = hearth_clock_mono_ns() + HEARTH_QUIET_START_NS;
    store->retention.next_sweep_mono_ns = store->retention.next_pass_mono_ns;

    /* Start the thread. */
    enum hearth_status status = HEARTH_OK;
    if (thread->builder.inflater == NULL || thread->builder.packer == NULL ||
        thread->builder.close == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the builder");
    } else {
        status = start_thread(thread, err);
    }

    if (status != HEARTH_OK) {
        free_thread(thread);
        return status;
    }

    /* Metrics with a label are listed before they are counted. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(STEPS); i++) {
        hearth_metric_declare(HEARTH_M_BUILDER_CPU, STEPS[i].name);
        hearth_metric_declare(HEARTH_M_BUILDER_ERRORS, STEPS[i].name);
    }
    hearth_retention_declare_metrics();

    *ret_thread = thread;

    return HEARTH_OK;
}

void hearth_builder_wake(struct hearth_builder_thread *thread)
{
    hearth_mutex_lock(&thread->lock);
    thread->woken = true;
    (void)pthread_cond_signal(&thread->wake);
    hearth_mutex_unlock(&thread->lock);
}

void hearth_builder_stop(struct hearth_builder_thread *thread)
{
    if (thread == NULL) {
        return;
    }

    /* Cancel the running statement, end the sleep. */
    atomic_store(&thread->cancel.cancelled, true);
    hearth_mutex_lock(&thread->lock);
    thread->stopping = true;
    (void)pthread_cond_signal(&thread->wake);
    hearth_mutex_unlock(&thread->lock);

    (void)pthread_join(thread->thread, NULL);
    free_thread(thread);
}
