/*
 * builder.c -- the builder's thread, its lease, and the order of its steps (contract: builder.h).
 *
 * The lease is a row. Its holder renews it between transactions; the other servers try each second
 * whether it has expired. To take it over raises the token, and every transaction of the builder
 * begins by share-locking the row and comparing the token: so the old holder cannot write any more,
 * and nobody can take the lease over in the middle of a transaction. Expiry is by the database's
 * clock alone.
 */
#include "build/builder.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "build/roll.h"
#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define CONNECT_TIMEOUT_MS   5000
#define STATEMENT_TIMEOUT_MS (10 * 60 * 1000)
#define RELEASE_TIMEOUT_MS   2000
#define PACK_LEVEL           1
#define LEASE_EXPIRY         "interval '30 s'"
#define RENEW_EACH_NS        (8 * HEARTH_NS_PER_SEC)
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

/* ---- the lease ---- */

/* Runs a statement that returns at most one int8; *ret_value is 0 if it returns no row. */
static enum hearth_status exec_for_i64(struct hearth_pg *pg, const char *sql, int64_t *ret_value,
                                       struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    *ret_value = PQntuples(result) > 0 ? hearth_pg_i64(result, 0, 0) : 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Keeps the token of the lease, 0 if another server has it, and publishes a change. */
static void set_token(struct hearth_builder *builder, int64_t token)
{
    if (token != builder->token) {
        HEARTH_LOG(HEARTH_LOG_INFO, "builder",
                   token != 0 ? "took the lease of background work"
                              : "another server has the lease",
                   "token", hearth_log_i64(token != 0 ? token : builder->token), NULL);
    }

    /* The lags are published by the new holder. */
    if (token == 0 && builder->token != 0) {
        hearth_metric_set(HEARTH_M_ROLL_LAG, 0);
        hearth_metric_set(HEARTH_M_FILL_LAG, 0);
        hearth_metric_set(HEARTH_M_RULE_LAG, 0);
    }

    hearth_metric_set(HEARTH_M_BUILDER_LEASE, token != 0);
    builder->token = token;
}

/*
 * Renews the lease, or takes it if it has expired. Sets the token to 0 if another server holds it.
 * Outside a transaction.
 */
static enum hearth_status take_lease(struct hearth_builder *builder, struct hearth_err *err)
{
    char sql[512];
    int32_t holder = builder->store->batch_writer_id;
    int64_t token = 0;

    /* UPDATE reads the row before it locks it: servers that wait do not disturb the holder. */
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.lease SET holder = %" PRId32
                   ", token = token + (holder <> %" PRId32 ")::int,"
                   " expires_at = clock_timestamp() + " LEASE_EXPIRY
                   " WHERE name = '" HEARTH_LEASE_BUILDER "' AND (holder = %" PRId32
                   " OR expires_at < clock_timestamp()) RETURNING token",
                   holder, holder, holder);
    HEARTH_TRY(exec_for_i64(&builder->pg, sql, &token, err));

    /* A new database has no row yet. */
    if (token == 0) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO hearth_data.lease (name, holder, token, expires_at) VALUES"
                       " ('" HEARTH_LEASE_BUILDER "', %" PRId32
                       ", 1, clock_timestamp() + " LEASE_EXPIRY
                       ") ON CONFLICT (name) DO NOTHING RETURNING token",
                       holder);
        HEARTH_TRY(exec_for_i64(&builder->pg, sql, &token, err));
    }

    set_token(builder, token);
    builder->renewed_mono_ns = hearth_clock_mono_ns();

    return HEARTH_OK;
}

/* Ends the lease when the thread ends, so that the next server need not wait for its expiry. */
static void release_lease(struct hearth_builder *builder)
{
    if (builder->token == 0) {
        return;
    }

    /* The cancellation has ended the running statement; it must not prevent this one. */
    builder->pg.cancel = NULL;
    builder->pg.timeout_ms = RELEASE_TIMEOUT_MS;

    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE hearth_data.lease SET expires_at = '-infinity' WHERE name = '" HEARTH_LEASE_BUILDER
        "' AND holder = %" PRId32 " AND token = %" PRId64,
        builder->store->batch_writer_id, builder->token);

    /* The cancelled statement may have left a transaction, or no connection. */
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_OK;
    if (!hearth_pg_alive(&builder->pg)) {
        status = hearth_pg_connect(&builder->pg, RELEASE_TIMEOUT_MS, &err);
    }

    if (status == HEARTH_OK) {
        hearth_pg_rollback(&builder->pg);
        status = hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, &err);
    }

    if (status != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "builder", "the lease was not released, it will expire",
                   "reason", err.msg, NULL);
    }
    hearth_metric_set(HEARTH_M_BUILDER_LEASE, 0);
}

/* ---- transactions ---- */

enum hearth_status hearth_builder_begin(struct hearth_builder *builder, struct hearth_err *err)
{
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_INTRANS);
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_INERROR);

    if (hearth_clock_mono_ns() - builder->renewed_mono_ns > RENEW_EACH_NS) {
        HEARTH_TRY(take_lease(builder, err));
    }

    /* Begin, and lock the row of the lease if it has our token. */
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; SELECT FROM hearth_data.lease WHERE name = '" HEARTH_LEASE_BUILDER
                   "' AND token = %" PRId64 " FOR SHARE",
                   builder->token);
    HEARTH_TRY(hearth_pg_script_send(&builder->pg, sql, NULL, err));

    int n_rows = 0;
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(&builder->pg, &result, NULL, err));
        if (result == NULL) {
            break;
        }

        n_rows = PQntuples(result);
        PQclear(result);
    }

    /* It has not: another server is the holder. */
    if (n_rows == 0) {
        hearth_builder_rollback(builder);
        set_token(builder, 0);
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "another server has taken over the background work");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_builder_commit(struct hearth_builder *builder, struct hearth_err *err)
{
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_IDLE);

    return hearth_pg_script(&builder->pg, "COMMIT", NULL, err);
}

void hearth_builder_rollback(struct hearth_builder *builder)
{
    hearth_pg_rollback(&builder->pg);
}

enum hearth_status hearth_builder_next_generation(struct hearth_builder *builder,
                                                  int32_t service_id, int64_t *ret_generation,
                                                  struct hearth_err *err)
{
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_IDLE);

    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = generation + 1"
                   " WHERE service_id = %" PRId32 " RETURNING generation",
                   service_id);
    HEARTH_TRY(exec_for_i64(&builder->pg, sql, ret_generation, err));
    if (*ret_generation == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "service %" PRId32 " has no row in roll_state",
                           service_id);
    }

    return HEARTH_OK;
}

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
        status = take_lease(builder, &err);
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

    release_lease(builder);

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
