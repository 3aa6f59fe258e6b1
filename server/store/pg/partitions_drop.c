/*
 * partitions_drop.c -- removing a day's leaf while people read and write.
 *
 *   rename   to drop_<leaf>. First of all: a COPY that names the leaf would fill a table that is
 *            about to go; now it misses it (42P01) and its committer makes the day again
 *            (partitions.c).
 *   detach   CONCURRENTLY: PostgreSQL waits, without a lock that anyone would queue behind, for the
 *            statements that began before and could still read the leaf. Interrupted, it stays
 *            "pending", and must be finalized before any other leaf of that parent can go.
 *   drop
 *
 * A lock that conflicts with readers is waited for only a moment, because later readers queue up
 * after it. The catalogs alone show the stage, so any server continues half-done work, and two
 * servers at once do no harm.
 */
#include "hearth/base/clock.h"

#include "pg/partitions.h"
#include "pg/pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* New readers of the leaf wait at most this long (40 ms) for our lock. */
#define LOCK_SCRIPT "BEGIN; SET LOCAL lock_timeout = 40; "
/* Readers do not wait for these locks; only the making of another day's leaf does. */
#define CALM_LOCK_SCRIPT   "BEGIN; SET LOCAL lock_timeout = 500; "
#define DETACH_PATIENCE_MS 8000
#define LOCK_ATTEMPTS      4
#define LOCK_PAUSE_US      50000
#define MAX_STAGES         8
#define RECONNECT_MS       5000
#define CONCURRENTLY_SINCE 140000

struct stages {
    char pending[64]; /* a child of the parent whose detaching was interrupted; may be empty */
    bool leaf_exists, old_exists, old_attached;
};

static enum hearth_status look(struct hearth_pg *pg, const char *parent, const char *leaf,
                               const char *old, struct stages *ret, struct hearth_err *err)
{
    char sql[1024];

    /* A row as JSON: PostgreSQL 13 has no such column. */
    (void)snprintf(sql, sizeof sql,
                   "SELECT (SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid ="
                   " i.inhrelid WHERE i.inhparent = 'hearth_data.%s'::regclass AND"
                   " (to_jsonb(i)->>'inhdetachpending')::boolean LIMIT 1),"
                   " to_regclass('%s') IS NOT NULL, to_regclass('%s') IS NOT NULL,"
                   " EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass('%s'))",
                   parent, leaf, old, old);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    struct hearth_str pending = hearth_pg_str(result, 0, 0);
    (void)snprintf(ret->pending, sizeof ret->pending, HEARTH_STR_FMT, HEARTH_STR_ARG(pending));
    ret->leaf_exists = PQgetvalue(result, 0, 1)[0] != 0;
    ret->old_exists = PQgetvalue(result, 0, 2)[0] != 0;
    ret->old_attached = PQgetvalue(result, 0, 3)[0] != 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Run a transaction that waits for its lock only a moment; try a few times. */
static enum hearth_status run_briefly(struct hearth_pg *pg, const char *script,
                                      struct hearth_err *err)
{
    for (int attempt = 1;; attempt++) {
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        enum hearth_status status = hearth_pg_script(pg, script, &fault, err);
        if (status == HEARTH_OK) {
            return HEARTH_OK;
        }

        hearth_pg_rollback(pg);
        if (fault != HEARTH_PG_FAULT_RETRY || attempt == LOCK_ATTEMPTS) {
            return status;
        }

        (void)usleep(LOCK_PAUSE_US);
    }
}

/*
 * Detach the leaf. CONCURRENTLY cannot run in a transaction, so pg->timeout_ms limits its wait: when
 * it expires, the statement is cancelled in PostgreSQL and the connection is closed.
 */
static enum hearth_status detach(struct hearth_pg *pg, const char *parent, const char *old,
                                 struct hearth_err *err)
{
    char sql[256];

    if (PQserverVersion(pg->conn) < CONCURRENTLY_SINCE) {
        (void)snprintf(sql, sizeof sql,
                       LOCK_SCRIPT "ALTER TABLE hearth_data.%s DETACH PARTITION %s; COMMIT", parent,
                       old);
        return run_briefly(pg, sql, err);
    }

    (void)snprintf(sql, sizeof sql, "ALTER TABLE hearth_data.%s DETACH PARTITION %s CONCURRENTLY",
                   parent, old);
    int64_t timeout_ms = pg->timeout_ms;
    pg->timeout_ms = DETACH_PATIENCE_MS;
    enum hearth_status status = hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
    pg->timeout_ms = timeout_ms;
    if (status == HEARTH_DEADLINE_EXCEEDED) {
        HEARTH_TRY(hearth_pg_connect(pg, RECONNECT_MS, err));
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "statements that began before still run; %s goes when they have ended",
                           old);
    }

    return status;
}

static enum hearth_status finalize(struct hearth_pg *pg, const char *parent, const char *pending,
                                   struct hearth_err *err)
{
    char sql[320];

    (void)snprintf(sql, sizeof sql,
                   CALM_LOCK_SCRIPT
                   "ALTER TABLE hearth_data.%s DETACH PARTITION hearth_data.%s FINALIZE; COMMIT",
                   parent, pending);

    return run_briefly(pg, sql, err);
}

/*
 * Run one stage; *ret_done when the leaf is removed. Once that leaf has its drop_ name, a leaf of
 * the day is a new one, made for acknowledged profiles: it is kept.
 *
 * has_left  in and out: the leaf has its drop_ name, or had it
 */
static enum hearth_status advance(struct hearth_store *store, struct hearth_pg *pg,
                                  const char *parent, int32_t day, bool *has_left, bool *ret_done,
                                  struct hearth_err *err)
{
    char leaf[64], old[64], sql[256];

    hearth_partition_name(parent, day, leaf);
    const char *name = leaf + strlen(HEARTH_SCHEMA_DOT);
    (void)snprintf(old, sizeof old, HEARTH_SCHEMA_DOT HEARTH_LEAVING_PREFIX "%.40s", name);
    struct stages at;
    HEARTH_TRY(look(pg, parent, leaf, old, &at, err));
    *has_left = *has_left || at.old_exists;
    *ret_done = !at.old_exists && (*has_left || !at.leaf_exists);
    if (at.pending[0] != '\0') {
        return finalize(pg, parent, at.pending, err);
    }

    if (at.old_attached) {
        return detach(pg, parent, old, err);
    }

    if (at.old_exists) {
        (void)snprintf(sql, sizeof sql, CALM_LOCK_SCRIPT "DROP TABLE IF EXISTS %s; COMMIT", old);
        return run_briefly(pg, sql, err);
    }

    if (at.leaf_exists && !*has_left) {
        (void)snprintf(sql, sizeof sql,
                       LOCK_SCRIPT "ALTER TABLE %s RENAME TO " HEARTH_LEAVING_PREFIX
                                   "%.40s; COMMIT",
                       leaf, name);
        HEARTH_TRY(run_briefly(pg, sql, err));
        hearth_partitions_forget(store, day);
        *has_left = true;
    }

    return HEARTH_OK;
}

static enum hearth_status drop_leaf(struct hearth_store *store, struct hearth_pg *pg,
                                    const char *parent, int32_t day, bool has_left,
                                    struct hearth_err *err)
{
    bool done = false;
    enum hearth_status status = HEARTH_OK;

    for (int stage = 0; stage < MAX_STAGES && !done && status == HEARTH_OK; stage++) {
        status = advance(store, pg, parent, day, &has_left, &done, err);
    }

    if (status == HEARTH_OK && !done) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "detaching of other partitions is interrupted again and again; retry");
    }

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "dropping day %" PRId32 " of %s", day, parent);
    }

    return status;
}

enum hearth_status hearth_partitions_drop(struct hearth_store *store, struct hearth_pg *pg,
                                          const char *parent, int32_t day, struct hearth_err *err)
{
    return drop_leaf(store, pg, parent, day, false, err);
}

enum hearth_status hearth_partitions_finish_drop(struct hearth_store *store, struct hearth_pg *pg,
                                                 const char *parent, int32_t day,
                                                 struct hearth_err *err)
{
    return drop_leaf(store, pg, parent, day, true, err);
}

/* Return the smallest day >= from_day of leaves named `prefix`, parent, '_', day. */
static enum hearth_status ask_day(struct hearth_pg *pg, const char *quoted_parents,
                                  const char *prefix, int32_t from_day, int32_t *ret_day,
                                  bool *ret_found, struct hearth_err *err)
{
    char sql[768];

    (void)snprintf(sql, sizeof sql,
                   "SELECT min(day) FROM (SELECT to_date(right(c.relname, 8), 'YYYYMMDD') - date"
                   " '1970-01-01' AS day FROM pg_class c, unnest(ARRAY[%s]) p (name)"
                   " WHERE c.relnamespace = 'hearth_data'::regnamespace AND c.relkind = 'r' AND"
                   " c.relname = '%s' || p.name || '_' || right(c.relname, 8) AND"
                   " right(c.relname, 8) ~ '^[0-9]{8}$') d WHERE day >= %" PRId32,
                   quoted_parents, prefix, from_day);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    *ret_found = !hearth_pg_is_null(result, 0, 0);
    *ret_day = *ret_found ? hearth_pg_i32(result, 0, 0) : 0;
    PQclear(result);

    return HEARTH_OK;
}

enum hearth_status hearth_partitions_next_day(struct hearth_pg *pg, const char *quoted_parents,
                                              int32_t from_day, int32_t *ret_day, bool *ret_found,
                                              struct hearth_err *err)
{
    return ask_day(pg, quoted_parents, "", from_day, ret_day, ret_found, err);
}

enum hearth_status hearth_partitions_leaving(struct hearth_pg *pg, const char *parent,
                                             int32_t *ret_day, bool *ret_found,
                                             struct hearth_err *err)
{
    char quoted[32];
    (void)snprintf(quoted, sizeof quoted, "'%s'", parent);
    return ask_day(pg, quoted, HEARTH_LEAVING_PREFIX, INT32_MIN, ret_day, ret_found, err);
}
