/*
 * replica.c -- which node a read runs on.
 *
 * The primary's flushed WAL position is asked before every read: a few bytes and no lock there, and
 * it needs no bookkeeping of who acknowledged what. It may lie in the middle of a record whose rest
 * is not on disk yet (the WAL writer stops at whole pages), which no replica can replay to; then,
 * and only then, a transaction that writes one small WAL record moves it on.
 *
 * A replica that was late, lost or cancelled a read is not asked for a second, doubling to ten
 * (thirty when lost); the first good read ends that.
 */
#include "pg/replica.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/pg.h"
#include "pg/pool.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <stdio.h>
#include <time.h>

#define PAUSE_FIRST_NS  HEARTH_NS_PER_SEC
#define PAUSE_LATE_NS   (10 * HEARTH_NS_PER_SEC)
#define PAUSE_LOST_NS   (30 * HEARTH_NS_PER_SEC)
#define STEP_FIRST_NS   (HEARTH_NS_PER_MS / 2)
#define STEP_LAST_NS    (10 * HEARTH_NS_PER_MS)
#define WAL_BLOCK_BYTES 8192
#define IDENTITY_BYTES  64

/* Of this database and its cluster: positions in the WAL mean nothing elsewhere. */
#define IDENTITY                                                              \
    "(SELECT system_identifier FROM pg_control_system())::text || '/' || oid" \
    " FROM pg_database WHERE datname = current_database()"

enum outcome {
    OUTCOME_REPLICA,
    OUTCOME_LATE,
    OUTCOME_LOST,
    OUTCOME_CANCELLED,
};
static const char *const OUTCOMES[] = {"replica", "late", "lost", "cancelled"};

struct hearth_replica {
    struct hearth_pool *pool;
    int64_t wait_ns;
    pthread_mutex_t lock; /* guards the rest */
    enum outcome last;
    int64_t resume_mono_ns, pause_ns; /* the next pause */
};

/* Where the primary's WAL is on disk. */
struct position {
    int64_t lsn;
    char identity[IDENTITY_BYTES];
};

/* ---- life ---- */

/* The URL, asking for a standby unless it says itself what it wants. */
static char *standby_url(const char *url)
{
    size_t n = strlen(url) + sizeof "?target_session_attrs=standby ";
    char *text = hearth_mem_zalloc(n);
    bool is_uri = strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;

    if (text == NULL) {
        return NULL;
    }

    if (strstr(url, "target_session_attrs") != NULL) {
        (void)snprintf(text, n, "%s", url);
    } else if (is_uri) {
        (void)snprintf(text, n, "%s%starget_session_attrs=standby", url,
                       strchr(url, '?') == NULL ? "?" : "&");
    } else {
        (void)snprintf(text, n, "target_session_attrs=standby %s", url);
    }

    return text;
}

enum hearth_status hearth_replica_new(const struct hearth_store_options *options,
                                      struct hearth_replica **ret_replica, struct hearth_err *err)
{
    if (!hearth_pg_url_valid(options->read_url)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the URL of the read replica cannot be parsed; it looks like "
                           "postgresql://user@host:5432/database");
    }

    struct hearth_replica *replica = hearth_mem_zalloc(sizeof *replica);
    char *url = standby_url(options->read_url);
    enum hearth_status status = HEARTH_OK;
    if (replica == NULL || url == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the replica's state");
    } else {
        status = hearth_pool_new(url, options->max_readers, &replica->pool, err);
    }

    hearth_mem_free(url);
    if (status != HEARTH_OK) {
        hearth_mem_free(replica);
        return status;
    }

    hearth_pool_set_timeout(replica->pool, options->statement_timeout_ms);
    replica->wait_ns = options->read_wait_ns;
    replica->pause_ns = PAUSE_FIRST_NS;
    (void)pthread_mutex_init(&replica->lock, NULL);
    *ret_replica = replica;

    return HEARTH_OK;
}

void hearth_replica_free(struct hearth_replica *replica)
{
    if (replica == NULL) {
        return;
    }

    hearth_pool_free(replica->pool);
    (void)pthread_mutex_destroy(&replica->lock);
    hearth_mem_free(replica);
}

/* ---- standing ---- */

static void count(enum outcome outcome)
{
    hearth_metric_add_label(HEARTH_M_REPLICA_READS, hearth_str_c(OUTCOMES[outcome]), 1);
}

/* True while it is left alone; counted as what it was left alone for. */
static bool is_paused(struct hearth_replica *replica)
{
    (void)pthread_mutex_lock(&replica->lock);
    bool paused = hearth_clock_mono_ns() < replica->resume_mono_ns;
    enum outcome last = replica->last;
    (void)pthread_mutex_unlock(&replica->lock);
    if (paused) {
        count(last);
    }

    return paused;
}

static void note(struct hearth_replica *replica, enum outcome outcome, const char *reason)
{
    (void)pthread_mutex_lock(&replica->lock);
    bool changed = replica->last != outcome;
    int64_t now_ns = hearth_clock_mono_ns();
    replica->last = outcome;
    if (outcome == OUTCOME_REPLICA) {
        replica->pause_ns = PAUSE_FIRST_NS;
    } else if (now_ns >= replica->resume_mono_ns) { /* not yet left alone by another thread */
        int64_t limit = outcome == OUTCOME_LOST ? PAUSE_LOST_NS : PAUSE_LATE_NS;
        replica->resume_mono_ns = now_ns + replica->pause_ns;
        replica->pause_ns = replica->pause_ns * 2 > limit ? limit : replica->pause_ns * 2;
    }

    (void)pthread_mutex_unlock(&replica->lock);
    count(outcome);
    if (changed && outcome == OUTCOME_REPLICA) {
        HEARTH_LOG(HEARTH_LOG_INFO, "store", "the replica answers", NULL);
    } else if (changed) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "reads go to the primary", "replica",
                   OUTCOMES[outcome], "reason", reason, NULL);
    }
}

/* ---- positions ---- */

static void take_identity(const PGresult *result, int column, char out[IDENTITY_BYTES])
{
    struct hearth_str text = hearth_pg_str(result, 0, column);
    (void)snprintf(out, IDENTITY_BYTES, HEARTH_STR_FMT, HEARTH_STR_ARG(text));
}

static enum hearth_status ask_position(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    static const char sql[] =
        "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8, " IDENTITY;
    struct position *position = context;

    for (int round = 0;; round++) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, ret_fault, err));
        if (PQntuples(result) != 1) {
            PQclear(result);
            return HEARTH_FAIL(err, HEARTH_INTERNAL, "the primary does not know its WAL position");
        }

        position->lsn = hearth_pg_i64(result, 0, 0);
        take_identity(result, 1, position->identity);
        PQclear(result);
        if (position->lsn % WAL_BLOCK_BYTES != 0 || round == 1) {
            return HEARTH_OK;
        }

        HEARTH_TRY(hearth_pg_exec(pg, "SELECT pg_logical_emit_message(true, 'hearth', '')", NULL,
                                  NULL, NULL, ret_fault, err));
    }
}

/* How far the replica is; UNAVAILABLE when it is none of this primary. */
static enum hearth_status ask_replayed(struct hearth_pg *pg, const struct position *position,
                                       struct hearth_cancel *cancel, int64_t *ret_lsn,
                                       struct hearth_err *err)
{
    static const char sql[] = "SELECT pg_is_in_recovery(), coalesce((pg_last_wal_replay_lsn()"
                              " - '0/0'::pg_lsn)::int8, 0), " IDENTITY;
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, cancel, &result, NULL, err));
    enum hearth_status status = HEARTH_OK;
    char identity[IDENTITY_BYTES] = "";
    if (PQntuples(result) == 1) {
        take_identity(result, 2, identity);
    }

    if (strcmp(identity, position->identity) != 0) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "the replica is of another cluster or database than the primary");
    } else if (PQgetvalue(result, 0, 0)[0] == 0) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "the replica is none: it is not in recovery (promoted?)");
    } else {
        *ret_lsn = hearth_pg_i64(result, 0, 1);
    }

    PQclear(result);

    return status;
}

static void sleep_step(int64_t ns)
{
    struct timespec ts = {.tv_nsec = (long)ns};
    (void)nanosleep(&ts, NULL);
}

/* Until it has replayed that far, or `patience` ends (DEADLINE_EXCEEDED). */
static enum hearth_status await_replay(struct hearth_pg *pg, const struct position *position,
                                       struct hearth_cancel *patience, struct hearth_err *err)
{
    for (int64_t step_ns = STEP_FIRST_NS;;
         step_ns = step_ns * 2 > STEP_LAST_NS ? STEP_LAST_NS : step_ns * 2) {
        int64_t lsn = 0;
        HEARTH_TRY(ask_replayed(pg, position, patience, &lsn, err));
        if (lsn >= position->lsn) {
            return HEARTH_OK;
        }

        if (hearth_clock_mono_ns() + step_ns >= patience->deadline_mono_ns) {
            return HEARTH_FAIL(err, HEARTH_DEADLINE_EXCEEDED, "%lld bytes of WAL behind",
                               (long long)(position->lsn - lsn));
        }

        sleep_step(step_ns);
    }
}

/* A connection to the replica, which has everything; NULL: ask the primary. */
static enum hearth_status take(struct hearth_store *store, struct hearth_cancel *cancel,
                               struct hearth_pg **ret_pg, struct hearth_err *err)
{
    struct hearth_replica *replica = store->replica;

    *ret_pg = NULL;
    if (is_paused(replica)) {
        return HEARTH_OK;
    }

    struct position position;
    HEARTH_TRY(hearth_store_with_pg(store, cancel, ask_position, &position, err));
    struct hearth_cancel patience;
    int64_t until_ns = hearth_clock_mono_ns() + replica->wait_ns;
    if (cancel != NULL && cancel->deadline_mono_ns < until_ns) {
        until_ns = cancel->deadline_mono_ns;
    }

    hearth_cancel_init(&patience, until_ns);
    struct hearth_err reason = HEARTH_ERR_INIT;
    struct hearth_pg *pg = NULL;
    enum hearth_status status = hearth_pool_take(replica->pool, &patience, &pg, &reason);
    if (status == HEARTH_OK) {
        status = await_replay(pg, &position, &patience, &reason);
        pg->cancel = cancel;
        if (status != HEARTH_OK) {
            hearth_pool_give(replica->pool, pg);
        }
    }

    if (status == HEARTH_OK) {
        *ret_pg = pg;
    } else {
        note(replica, status == HEARTH_DEADLINE_EXCEEDED ? OUTCOME_LATE : OUTCOME_LOST, reason.msg);
    }

    return hearth_cancel_check(cancel, err);
}

/* ---- reads ---- */

enum hearth_status hearth_store_read_with_pg(struct hearth_store *store,
                                             struct hearth_cancel *cancel, hearth_with_pg_fn *fn,
                                             void *context, struct hearth_err *err)
{
    struct hearth_pg *pg = NULL;
    if (store->replica != NULL) {
        HEARTH_TRY(take(store, cancel, &pg, err));
    }

    if (pg == NULL) {
        return hearth_store_with_pg(store, cancel, fn, context, err);
    }

    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
    struct hearth_err failure = HEARTH_ERR_INIT;
    enum hearth_status status = fn(context, pg, &fault, &failure);
    hearth_pool_give(store->replica->pool, pg);
    if (status == HEARTH_OK) {
        note(store->replica, OUTCOME_REPLICA, NULL);
        return HEARTH_OK;
    }

    if (status != HEARTH_UNAVAILABLE) { /* the primary would say the same */
        if (err != NULL) {
            *err = failure;
        }

        return status;
    }

    note(store->replica, OUTCOME_CANCELLED, failure.msg);
    HEARTH_TRY(hearth_cancel_check(cancel, err));
    if (fault == HEARTH_PG_FAULT_CONNECTION || fault == HEARTH_PG_FAULT_RETRY) {
        return hearth_store_with_pg(store, cancel, fn, context, err);
    }

    /* Some of it was delivered: only who asked can begin again, and will find the primary. */
    return HEARTH_FAIL(err, HEARTH_ABORTED, "the replica gave up a read: %s", failure.msg);
}

/* ---- doctor ---- */

enum hearth_status hearth_replica_look(struct hearth_replica *replica, struct hearth_pg *primary,
                                       struct hearth_replica_look *ret, struct hearth_err *err)
{
    struct position position;
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;

    HEARTH_TRY(ask_position(&position, primary, &fault, err));
    struct hearth_cancel patience;
    hearth_cancel_init(&patience, hearth_clock_mono_ns() + 5 * HEARTH_NS_PER_SEC);
    struct hearth_pg *pg = NULL;
    HEARTH_TRY(hearth_pool_take(replica->pool, &patience, &pg, err));
    int64_t lsn = 0;
    PGresult *result = NULL;
    enum hearth_status status = ask_replayed(pg, &position, &patience, &lsn, err);
    if (status == HEARTH_OK) {
        status = hearth_pg_exec(pg, "SELECT current_setting('hot_standby_feedback')", NULL,
                                &patience, &result, NULL, err);
    }

    if (status == HEARTH_OK) {
        ret->lag_bytes = position.lsn > lsn ? position.lsn - lsn : 0;
        ret->feedback = hearth_str_eq_c(hearth_pg_str(result, 0, 0), "on");
        PQclear(result);
    }

    hearth_pool_give(replica->pool, pg);

    return status;
}
