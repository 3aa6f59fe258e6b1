/*
 * session.c -- running statements: checks that the store is open, finds a connection, repeats after
 * a passing fault (contract: session.h).
 */
#include "session/session.h"

#include "hearth/base/log.h"

#include "nodes/nodes.h"
#include "pg/clocks.h"
#include "pg/pool.h"
#include "pg/store_state.h"
#include "session/disk.h"
#include "session/wall.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#define PG_ATTEMPTS 4
/* Seed of the keys of tenants' locks: random, so that no other program uses these keys. */
#define LOCK_SEED "4721170935208671310"

/* ---- readiness ---- */

bool hearth_store_set_reason(struct hearth_store *store, const char *reason)
{
    assert(reason != NULL);

    hearth_mutex_lock(&store->reason_lock);
    bool changed = strncmp(store->reason, reason, sizeof store->reason - 1) != 0;
    (void)snprintf(store->reason, sizeof store->reason, "%s", reason);
    hearth_mutex_unlock(&store->reason_lock);

    return changed;
}

/* Write the problem of a store that is ready; an empty text if there is no problem. */
static void describe_problem(struct hearth_store *store, char reason[256])
{
    struct hearth_err err = HEARTH_ERR_INIT;

    const char *read_only = atomic_load(&store->read_only);

    reason[0] = '\0';
    if (read_only != NULL) {
        (void)snprintf(reason, 256, "%s", read_only);
    } else if (hearth_disk_check(store, &err) != HEARTH_OK) {
        (void)snprintf(reason, 256, "%.255s", err.msg);
    } else {
        hearth_clocks_explain(hearth_store_clock_ahead_ns(store), reason);
    }

    if (reason[0] == '\0') {
        hearth_wall_explain(store, reason);
    }

    if (reason[0] == '\0' && store->nodes != NULL) {
        hearth_nodes_explain(store->nodes, reason);
    }
}

bool hearth_store_ready(struct hearth_store *store, char reason[256])
{
    bool ready =
        atomic_load(&store->ready) && !atomic_load(&store->away) && !atomic_load(&store->closing);
    if (!ready) {
        hearth_mutex_lock(&store->reason_lock);
        (void)snprintf(reason, 256, "%s", store->reason);
        hearth_mutex_unlock(&store->reason_lock);
    } else {
        describe_problem(store, reason);
    }

    return ready;
}

bool hearth_store_is_away(struct hearth_store *store)
{
    return (!atomic_load(&store->ready) || atomic_load(&store->away)) &&
           !atomic_load(&store->closing);
}

bool hearth_store_look_whether_away(struct hearth_store *store, int64_t timeout_ns)
{
    int64_t until_ns = hearth_clock_mono_ns() + timeout_ns;
    bool has_time = true;

    if (hearth_store_is_away(store)) {
        return true;
    }

    hearth_mutex_lock(&store->reason_lock);
    uint64_t mine = ++store->n_looks_wanted;
    (void)pthread_cond_signal(&store->boot_wake);
    while (has_time && store->n_looked < mine && !hearth_store_is_away(store) &&
           !atomic_load(&store->closing)) {
        has_time = hearth_mutex_wait_until(&store->reason_lock, &store->looked, until_ns);
    }
    hearth_mutex_unlock(&store->reason_lock);

    return hearth_store_is_away(store);
}

bool hearth_store_lost(struct hearth_store *store, char reason[256])
{
    return hearth_lineage_explain(&store->lineage, reason);
}

enum hearth_status hearth_store_check_open(struct hearth_store *store, struct hearth_err *err)
{
    if (atomic_load(&store->closing)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    if (!atomic_load(&store->ready)) {
        char reason[256];
        bool ready = hearth_store_ready(store, reason); /* may have become ready just now */
        return ready ? HEARTH_OK : HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "not ready: %s", reason);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_check_writable(struct hearth_store *store, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));

    const char *read_only = atomic_load(&store->read_only);
    return read_only == NULL ? HEARTH_OK : HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", read_only);
}

void hearth_store_note_away(struct hearth_store *store, const char *reason)
{
    char text[256];

    (void)snprintf(text, sizeof text, "waiting for the database: %.220s", reason);
    bool changed = hearth_store_set_reason(store, text);
    if (!atomic_exchange(&store->away, true) || changed) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "database is away", "reason", reason, NULL);
    }
}

void hearth_store_note_back(struct hearth_store *store)
{
    if (atomic_exchange(&store->away, false)) {
        HEARTH_LOG(HEARTH_LOG_INFO, "store", "database is back", NULL);
    }
}

/* ---- synchronous standbys ---- */

enum hearth_status hearth_session_await_standbys(struct hearth_pg *pg,
                                                 enum hearth_pg_fault *ret_fault,
                                                 struct hearth_err *err)
{
    return hearth_pg_exec(pg, HEARTH_SQL_SETTLE, NULL, NULL, NULL, ret_fault, err);
}

/* ---- connections ---- */

enum hearth_status hearth_store_run_on_primary(struct hearth_store *store,
                                               struct hearth_cancel *cancel,
                                               const struct hearth_pg_params *wall,
                                               hearth_with_pg_fn *fn, void *context,
                                               struct hearth_err *err)
{
    assert(fn != NULL);

    for (int attempt = 1;; attempt++) {
        struct hearth_pg *pg = NULL;
        HEARTH_TRY(hearth_pool_take(store->pool, cancel, &pg, err));

        /* Run the callback. Its error is shown only if it is the last attempt. */
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        struct hearth_err failure = HEARTH_ERR_INIT;
        pg->wall = wall;
        enum hearth_status status = fn(context, pg, &fault, &failure);
        hearth_pool_give(store->pool, pg);
        if (status == HEARTH_OK) {
            return HEARTH_OK;
        }

        /* Stop, unless another attempt may succeed. */
        bool passing = fault == HEARTH_PG_FAULT_CONNECTION || fault == HEARTH_PG_FAULT_RETRY;
        if (!passing || attempt == PG_ATTEMPTS) {
            if (err != NULL) {
                *err = failure;
            }

            return status;
        }

        HEARTH_TRY(hearth_cancel_check(cancel, err));
    }
}

/* A callback that may write, and its state over all attempts. */
struct settled_run {
    hearth_with_pg_fn *fn;
    void *context;
    bool was_in_doubt; /* an attempt before may have committed, without its synchronous standby */
};

/*
 * Run the callback. If an earlier attempt is in doubt, this one may have found everything made, and
 * waited for no standby. Where that wait fails, the callback is not run again, because it may have
 * delivered rows.
 */
static enum hearth_status run_settled(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct settled_run *run = context;
    enum hearth_status status = run->fn(run->context, pg, ret_fault, err);

    if (status == HEARTH_OK && run->was_in_doubt && pg->read_only == NULL) {
        *ret_fault = HEARTH_PG_FAULT_NONE;
        return hearth_session_await_standbys(pg, NULL, err);
    }

    run->was_in_doubt = run->was_in_doubt || *ret_fault == HEARTH_PG_FAULT_CONNECTION;

    return status;
}

enum hearth_status hearth_store_as_owner(struct hearth_store *store, struct hearth_cancel *cancel,
                                         hearth_with_pg_fn *fn, void *context,
                                         struct hearth_err *err)
{
    struct settled_run run = {.fn = fn, .context = context};

    return hearth_store_run_on_primary(store, cancel, NULL, run_settled, &run, err);
}

enum hearth_status hearth_store_with_pg(const struct hearth_scope *scope, hearth_with_pg_fn *fn,
                                        void *context, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_wall_release) struct hearth_wall wall;
    hearth_wall_init(&wall, scope, NULL, 0);
    struct settled_run run = {.fn = fn, .context = context};

    return hearth_store_run_on_primary(scope->store, scope->cancel, hearth_wall_params(&wall),
                                       run_settled, &run, err);
}

/* ---- transactions ---- */

/* Take the lock of the scope's tenant; the parameters are in the scope's arena. */
static enum hearth_status lock_tenant(struct hearth_pg *pg, const struct hearth_scope *scope,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    return hearth_pg_exec(pg, "SELECT pg_advisory_xact_lock(hashtextextended($1, " LOCK_SEED "))",
                          &params, scope->cancel, NULL, ret_fault, err);
}

/* A transaction and its state over all attempts. */
struct transaction_run {
    struct hearth_transaction transaction;
    hearth_transaction_fn *fn;
    void *context;
};

static enum hearth_status run_transaction(void *context, struct hearth_pg *pg,
                                          enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct transaction_run *run = context;
    struct hearth_transaction *transaction = &run->transaction;

    /* Begin an attempt. */
    transaction->pg = pg;
    transaction->attempt++;
    transaction->fault = HEARTH_PG_FAULT_NONE;
    hearth_arena_reset(transaction->arena);

    enum hearth_status status =
        hearth_pg_begin(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", &transaction->fault, err);
    if (status == HEARTH_OK) {
        status = run->fn(run->context, transaction, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_pg_script(pg, "COMMIT", &transaction->fault, err);
    }

    /* After a COMMIT there is no transaction, and the rollback does nothing. */
    hearth_pg_rollback(pg);
    *ret_fault = transaction->fault;

    return status;
}

enum hearth_status hearth_store_in_transaction(const struct hearth_scope *scope,
                                               hearth_transaction_fn *fn, void *context,
                                               struct hearth_err *err)
{
    assert(fn != NULL);

    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* The arena of all attempts. */
    struct hearth_arena arena;
    if (scope->arena != NULL) {
        hearth_arena_init_like(&arena, scope->arena);
    } else {
        hearth_arena_init(&arena, 0);
    }

    struct transaction_run run = {
        .transaction = {.scope = scope, .arena = &arena}, .fn = fn, .context = context};
    enum hearth_status status = hearth_store_with_pg(scope, run_transaction, &run, err);
    hearth_arena_release(&arena);

    return status;
}

enum hearth_status hearth_transaction_lock_tenant(struct hearth_transaction *transaction,
                                                  struct hearth_err *err)
{
    assert(PQtransactionStatus(transaction->pg->conn) != PQTRANS_IDLE);

    struct hearth_scope scope = *transaction->scope;
    scope.arena = transaction->arena;

    return lock_tenant(transaction->pg, &scope, &transaction->fault, err);
}

/* ---- rows that statements rely on ---- */

enum hearth_status hearth_writer_register(struct hearth_pg *pg, struct hearth_cancel *cancel,
                                          int32_t *ret_writer_id, struct hearth_err *err)
{
    char host[128] = "";

    (void)gethostname(host, sizeof host - 1);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, hearth_str_c(host));
    PGresult *result = NULL;
    enum hearth_status status =
        hearth_pg_exec(pg, "INSERT INTO hearth_data.writer (host) VALUES ($1) RETURNING writer_id",
                       &params, cancel, &result, NULL, err);
    hearth_arena_release(&arena);
    HEARTH_TRY(status);

    *ret_writer_id = hearth_pg_i32(result, 0, 0);
    PQclear(result);

    return HEARTH_OK;
}

enum hearth_status hearth_tenant_begin(struct hearth_pg *pg, struct hearth_str tenant,
                                       struct hearth_cancel *cancel,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_begin(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const struct hearth_scope scope = {.tenant = tenant, .cancel = cancel, .arena = &arena};
    enum hearth_status status = lock_tenant(pg, &scope, ret_fault, err);
    hearth_arena_release(&arena);

    return status;
}
