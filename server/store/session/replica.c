/*
 * replica.c -- decides which node a read runs on.
 *
 * Every read first reads the primary's flushed WAL position: a few bytes and no lock in the
 * primary, and hearthd keeps no list of acknowledged commits. The position may lie within a record
 * whose rest is not on disk yet (the WAL writer stops at whole pages), and no replica can replay
 * half a record. Only in this case, a transaction writes one small WAL record, which moves the
 * position on.
 *
 * After the replica was late, was lost or cancelled a read, reads do not try it for a second; this
 * pause doubles each time up to ten seconds (thirty if it was lost). The first good read ends it.
 */
#include "session/replica.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/lineage.h"
#include "pg/pg.h"
#include "pg/pool.h"
#include "pg/store_state.h"
#include "session/node_reads.h"
#include "session/session.h"
#include "session/wall.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#define PAUSE_FIRST_NS  HEARTH_NS_PER_SEC
#define PAUSE_LATE_NS   (10 * HEARTH_NS_PER_SEC)
#define PAUSE_LOST_NS   (30 * HEARTH_NS_PER_SEC)
#define LOOK_LIMIT_NS   (5 * HEARTH_NS_PER_SEC)
#define STEP_FIRST_NS   (HEARTH_NS_PER_MS / 2)
#define STEP_LAST_NS    (10 * HEARTH_NS_PER_MS)
#define WAL_BLOCK_BYTES 8192

enum outcome {
    OUTCOME_REPLICA,   /* the read ran on the replica */
    OUTCOME_LATE,      /* it did not replay the primary's position in time */
    OUTCOME_LOST,      /* no connection, or not a replica of the primary */
    OUTCOME_CANCELLED, /* it gave up a read, such as for vacuum */
};

/* Label values of the metric, and texts of the log. */
static const char *const OUTCOMES[] = {"replica", "late", "lost", "cancelled"};

struct hearth_replica {
    struct hearth_pool *pool;
    int64_t wait_ns;          /* how long a read waits for the replay */
    struct hearth_mutex lock; /* guards the rest */
    enum outcome last;        /* of the latest read */
    int64_t resume_mono_ns;   /* reads do not try the replica before; 0: it was always good */
    int64_t pause_ns;         /* length of the next pause */
};

/* How far the primary's WAL is on disk. */
struct position {
    int64_t lsn; /* bytes since the beginning of the WAL; it has no meaning in another cluster */
    char identity[HEARTH_LINEAGE_IDENTITY_BYTES];
};

/* ---- life ---- */

/*
 * Return a copy of the URL that accepts standbys only, unless the URL sets target_session_attrs
 * itself. The caller frees it; NULL: no memory.
 */
static enum hearth_status make_standby_url(const struct hearth_secret *secret,
                                           struct hearth_secret **ret, struct hearth_err *err)
{
    assert(secret != NULL);

    const char *url = hearth_secret_reveal(secret);
    struct hearth_str before = HEARTH_STR(""), after = HEARTH_STR("");
    bool is_uri = strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
    if (strstr(url, "target_session_attrs") != NULL) {
        return hearth_secret_copy(secret, ret, err);
    }

    if (!is_uri) {
        before = HEARTH_STR("target_session_attrs=standby ");
    } else if (strchr(url, '?') == NULL) {
        after = HEARTH_STR("?target_session_attrs=standby");
    } else {
        after = HEARTH_STR("&target_session_attrs=standby");
    }

    return hearth_secret_join(before, secret, after, ret, err);
}

enum hearth_status hearth_replica_new(const struct hearth_store_options *options,
                                      struct hearth_replica **ret_replica, struct hearth_err *err)
{
    assert(hearth_pg_url_valid(options->read_url));

    struct hearth_replica *replica = hearth_mem_zalloc(sizeof *replica);
    struct hearth_secret *url = NULL;
    enum hearth_status status = HEARTH_OK;
    if (replica == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the replica's state");
    } else {
        status = make_standby_url(options->read_url, &url, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_pool_new(url, options->max_readers, &replica->pool, err);
    }

    hearth_secret_free(url);
    if (status != HEARTH_OK) {
        hearth_mem_free(replica);
        return status;
    }

    hearth_pool_set_timeout(replica->pool, options->statement_timeout_ms);
    replica->wait_ns = options->read_wait_ns;
    replica->pause_ns = PAUSE_FIRST_NS;
    hearth_mutex_init(&replica->lock, HEARTH_RANK_REPLICA, "replica.lock");
    *ret_replica = replica;

    return HEARTH_OK;
}

void hearth_replica_free(struct hearth_replica *replica)
{
    if (replica == NULL) {
        return;
    }

    hearth_pool_free(replica->pool);
    hearth_mutex_destroy(&replica->lock);
    hearth_mem_free(replica);
}

/* ---- outcomes of reads ---- */

static void count_outcome(enum outcome outcome)
{
    assert((size_t)outcome < HEARTH_ARRAY_LEN(OUTCOMES));
    hearth_metric_add_label(HEARTH_M_REPLICA_READS, hearth_str_c(OUTCOMES[outcome]), 1);
}

/* Return whether reads do not try the replica now. Counts the outcome that caused the pause. */
static bool is_paused(struct hearth_replica *replica)
{
    hearth_mutex_lock(&replica->lock);
    bool paused = hearth_clock_mono_ns() < replica->resume_mono_ns;
    enum outcome last = replica->last;
    hearth_mutex_unlock(&replica->lock);

    if (paused) {
        count_outcome(last);
    }

    return paused;
}

/* Record the outcome of a read; log it if it differs from the last one. */
static void note_outcome(struct hearth_replica *replica, enum outcome outcome, const char *reason)
{
    assert(outcome == OUTCOME_REPLICA || reason != NULL);

    hearth_mutex_lock(&replica->lock);
    bool changed = replica->last != outcome;
    int64_t now_ns = hearth_clock_mono_ns();
    replica->last = outcome;
    if (outcome == OUTCOME_REPLICA) {
        replica->pause_ns = PAUSE_FIRST_NS;
    } else if (now_ns >= replica->resume_mono_ns) { /* no other thread has begun a pause */
        int64_t limit = outcome == OUTCOME_LOST ? PAUSE_LOST_NS : PAUSE_LATE_NS;
        replica->resume_mono_ns = now_ns + replica->pause_ns;
        replica->pause_ns = replica->pause_ns * 2 > limit ? limit : replica->pause_ns * 2;
    }

    hearth_mutex_unlock(&replica->lock);

    count_outcome(outcome);
    if (changed && outcome == OUTCOME_REPLICA) {
        HEARTH_LOG(HEARTH_LOG_INFO, "store", "reads run on the replica", NULL);
    } else if (changed) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "reads run on the primary", "replica",
                   OUTCOMES[outcome], "reason", reason, NULL);
    }
}

/* ---- positions ---- */

static void take_identity(const PGresult *result, int column,
                          char out[HEARTH_LINEAGE_IDENTITY_BYTES])
{
    struct hearth_str text = hearth_pg_str(result, 0, column);
    (void)snprintf(out, HEARTH_LINEAGE_IDENTITY_BYTES, HEARTH_STR_FMT, HEARTH_STR_ARG(text));
}

/* Read the primary's position into the struct position `context`. */
static enum hearth_status read_position(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    static const char sql[] =
        "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8, " HEARTH_LINEAGE_IDENTITY;
    struct position *position = context;

    for (int round = 0;; round++) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, ret_fault, err));
        if (PQntuples(result) != 1) {
            PQclear(result);
            return HEARTH_FAIL(err, HEARTH_INTERNAL,
                               "the primary did not return its WAL position and identity");
        }

        position->lsn = hearth_pg_i64(result, 0, 0);
        take_identity(result, 1, position->identity);
        PQclear(result);

        /* Only a position at a page boundary can lie within a record. */
        if (position->lsn % WAL_BLOCK_BYTES != 0 || round == 1) {
            return HEARTH_OK;
        }

        HEARTH_TRY(hearth_pg_exec(pg, "SELECT pg_logical_emit_message(true, 'hearth', '')", NULL,
                                  NULL, NULL, ret_fault, err));
    }
}

/* Read how far the replica has replayed. UNAVAILABLE: it is not a replica of this primary. */
static enum hearth_status read_replayed(struct hearth_pg *pg, const struct position *position,
                                        struct hearth_cancel *cancel, int64_t *ret_lsn,
                                        struct hearth_err *err)
{
    static const char sql[] = "SELECT pg_is_in_recovery(), coalesce((pg_last_wal_replay_lsn()"
                              " - '0/0'::pg_lsn)::int8, 0), " HEARTH_LINEAGE_IDENTITY;
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, cancel, &result, NULL, err));

    /* Compare the identities: an empty one never equals that of a primary. */
    enum hearth_status status = HEARTH_OK;
    char identity[HEARTH_LINEAGE_IDENTITY_BYTES] = "";
    if (PQntuples(result) == 1) {
        take_identity(result, 2, identity);
    }

    if (strcmp(identity, position->identity) != 0) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "the replica belongs to another cluster or database than the "
                             "primary: check --read-database-url");
    } else if (PQgetvalue(result, 0, 0)[0] == 0) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "the replica is not in recovery: it was promoted, or "
                             "--read-database-url names a primary");
    } else {
        *ret_lsn = hearth_pg_i64(result, 0, 1);
    }

    PQclear(result);

    return status;
}

static void sleep_step(int64_t ns)
{
    assert(ns >= 0 && ns < HEARTH_NS_PER_SEC);

    struct timespec ts = {.tv_nsec = (long)ns};
    (void)nanosleep(&ts, NULL);
}

/* Wait until the replica has replayed the position. DEADLINE_EXCEEDED: `patience` has ended. */
static enum hearth_status await_replay(struct hearth_pg *pg, const struct position *position,
                                       struct hearth_cancel *patience, struct hearth_err *err)
{
    for (int64_t step_ns = STEP_FIRST_NS;;
         step_ns = step_ns * 2 > STEP_LAST_NS ? STEP_LAST_NS : step_ns * 2) {
        int64_t lsn = 0;
        HEARTH_TRY(read_replayed(pg, position, patience, &lsn, err));
        hearth_metric_set(HEARTH_M_REPLICA_LAG, position->lsn > lsn ? position->lsn - lsn : 0);
        if (lsn >= position->lsn) {
            return HEARTH_OK;
        }

        if (hearth_clock_mono_ns() + step_ns >= patience->deadline_mono_ns) {
            return HEARTH_FAIL(err, HEARTH_DEADLINE_EXCEEDED,
                               "%lld bytes of WAL are not replayed yet",
                               (long long)(position->lsn - lsn));
        }

        sleep_step(step_ns);
    }
}

/* Take a connection to the replica that has all acknowledged data; NULL: use the primary. */
static enum hearth_status take_replica(struct hearth_store *store, struct hearth_cancel *cancel,
                                       struct hearth_pg **ret_pg, struct hearth_err *err)
{
    struct hearth_replica *replica = store->replica;
    assert(replica != NULL);

    *ret_pg = NULL;
    if (is_paused(replica)) {
        return HEARTH_OK;
    }

    /* The primary's position; the wait for it ends with the request's deadline at the latest. */
    struct position position;
    HEARTH_TRY(hearth_store_as_owner(store, cancel, read_position, &position, err));
    struct hearth_cancel patience;
    int64_t until_ns = hearth_clock_mono_ns() + replica->wait_ns;
    if (cancel != NULL && cancel->deadline_mono_ns < until_ns) {
        until_ns = cancel->deadline_mono_ns;
    }

    hearth_cancel_init(&patience, until_ns);

    /* Wait on a connection to the replica; its next statements obey the request again. */
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
        bool is_late = status == HEARTH_DEADLINE_EXCEEDED;
        note_outcome(replica, is_late ? OUTCOME_LATE : OUTCOME_LOST, reason.msg);
    }

    return hearth_cancel_check(cancel, err);
}

/* ---- reads ---- */

enum hearth_status hearth_store_read_with_pg(const struct hearth_store_reader *reader,
                                             struct hearth_err *err)
{
    struct hearth_store *store = reader->scope->store;
    struct hearth_cancel *cancel = reader->scope->cancel;
    unsigned node = hearth_node_of_reader(reader);
    bool is_done = false;
    if (node != 0) {
        enum hearth_status status = hearth_node_read(reader, node, NULL, &is_done, err);
        if (is_done || status != HEARTH_OK) {
            return status;
        }
    }

    HEARTH_CLEANUP(hearth_wall_release) struct hearth_wall wall;
    hearth_wall_init(&wall, reader->scope, reader->services, reader->n_services);
    const struct hearth_pg_params *params = hearth_wall_params(&wall);

    /* Choose the node. */
    struct hearth_pg *pg = NULL;
    if (store->replica != NULL) {
        HEARTH_TRY(take_replica(store, cancel, &pg, err));
    }

    if (pg == NULL && store->nodes != NULL) {
        return hearth_node_read_all(reader, params, err);
    }

    if (pg == NULL) {
        return hearth_store_run_on_primary(store, cancel, params, reader->fn, reader->context, err);
    }

    /* Read on the replica. */
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
    struct hearth_err failure = HEARTH_ERR_INIT;
    pg->wall = params;
    enum hearth_status status = reader->fn(reader->context, pg, &fault, &failure);
    hearth_pool_give(store->replica->pool, pg);
    if (status == HEARTH_OK) {
        note_outcome(store->replica, OUTCOME_REPLICA, NULL);
        return HEARTH_OK;
    }

    if (status != HEARTH_UNAVAILABLE) { /* the read would fail on the primary, too */
        if (err != NULL) {
            *err = failure;
        }

        return status;
    }

    /* Read on the primary, if the callback delivered no row and may run again. */
    note_outcome(store->replica, OUTCOME_CANCELLED, failure.msg);
    HEARTH_TRY(hearth_cancel_check(cancel, err));
    if (fault == HEARTH_PG_FAULT_CONNECTION || fault == HEARTH_PG_FAULT_RETRY) {
        return hearth_store_run_on_primary(store, cancel, params, reader->fn, reader->context, err);
    }

    /* Some rows were delivered: the caller has to begin again, and will use the primary. */
    return HEARTH_FAIL(err, HEARTH_ABORTED, "the replica gave up a read: %s; try again",
                       failure.msg);
}

/* ---- doctor ---- */

enum hearth_status hearth_replica_look(struct hearth_replica *replica, struct hearth_pg *primary,
                                       struct hearth_replica_look *ret, struct hearth_err *err)
{
    struct position position;
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;

    HEARTH_TRY(read_position(&position, primary, &fault, err));
    struct hearth_cancel patience;
    hearth_cancel_init(&patience, hearth_clock_mono_ns() + LOOK_LIMIT_NS);
    struct hearth_pg *pg = NULL;
    HEARTH_TRY(hearth_pool_take(replica->pool, &patience, &pg, err));

    /* Read its position and its setting on one connection. */
    int64_t lsn = 0;
    PGresult *result = NULL;
    enum hearth_status status = read_replayed(pg, &position, &patience, &lsn, err);
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
