/*
 * partitions_drop.c -- removes a day's leaf while others read and write.
 *
 *   rename   to drop_<leaf>, before all else: a COPY that names the leaf would fill a table that is
 *            about to be dropped. After the renaming it fails (42P01), and its committer creates
 *            the leaf of the day again (partitions.c).
 *   detach   CONCURRENTLY: PostgreSQL waits for the statements that began earlier and could still
 *            read the leaf, without a lock that other statements would queue up for. If it is
 *            interrupted, the leaf stays "pending", and must be finalized before any other leaf of
 *            that parent can be detached. PostgreSQL 13 and distributed tables do not offer it:
 *            there the lock is waited for a moment, again and again.
 *   drop
 *
 * A lock that conflicts with readers is waited for only a moment, because later readers queue up
 * after it. The stage is stored in PostgreSQL's catalogs only, so any server continues half-done
 * work, and two servers at once do no harm: a server whose table another one has renamed, detached
 * or dropped meanwhile (42P01) looks at the stage again.
 */
#include "hearth/base/clock.h"

#include "nodes/layout.h"
#include "pg/pg.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* New readers of the leaf wait at most this long (40 ms) for our lock. */
#define BEGIN_BRIEF "BEGIN; " HEARTH_SQL_ON_NODES "SET LOCAL lock_timeout = 40"
/* Readers do not wait for these locks; only the creation of another day's leaf does. */
#define BEGIN_CALM         "BEGIN; " HEARTH_SQL_ON_NODES "SET LOCAL lock_timeout = 500"
#define DETACH_PATIENCE_MS 8000
#define LOCK_ATTEMPTS      4
#define LOCK_PAUSE_US      50000
#define MAX_STAGES         8
#define RECONNECT_MS       5000
#define CONCURRENTLY_SINCE 140000

/* The leaf to drop, and the connection to do it. */
struct leaf_drop {
    struct hearth_store *store;
    struct hearth_pg *pg;
    const char *parent; /* without the schema */
    int32_t day;
    char leaf[64];    /* hearth_data.profile_20261120 */
    char leaving[64]; /* hearth_data.drop_profile_20261120 */
    /*
     * The leaf has its drop_ name, or had it: another leaf of the day is a new one, made for
     * acknowledged profiles, and is kept.
     */
    bool has_left;
};

/* The state of the drop, from PostgreSQL's catalogs. */
struct drop_stage {
    char pending[64]; /* a child of the parent whose detaching was interrupted; may be empty */
    bool leaf_exists, leaving_exists, leaving_is_attached;
};

/* Return the name of the leaf without its schema. */
static const char *bare_name(const struct leaf_drop *drop)
{
    return drop->leaf + strlen(HEARTH_SCHEMA_DOT);
}

static enum hearth_status read_stage(const struct leaf_drop *drop, struct drop_stage *ret,
                                     struct hearth_err *err)
{
    char sql[1024];

    /* A row of pg_inherits as JSON, because PostgreSQL 13 lacks the column inhdetachpending. */
    (void)snprintf(sql, sizeof sql,
                   "SELECT (SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid ="
                   " i.inhrelid WHERE i.inhparent = 'hearth_data.%s'::regclass AND"
                   " (to_jsonb(i)->>'inhdetachpending')::boolean LIMIT 1),"
                   " to_regclass('%s') IS NOT NULL, to_regclass('%s') IS NOT NULL,"
                   " EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass('%s'))",
                   drop->parent, drop->leaf, drop->leaving, drop->leaving);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(drop->pg, sql, NULL, NULL, &result, NULL, err));

    struct hearth_str pending = hearth_pg_str(result, 0, 0);
    (void)snprintf(ret->pending, sizeof ret->pending, HEARTH_STR_FMT, HEARTH_STR_ARG(pending));
    ret->leaf_exists = PQgetvalue(result, 0, 1)[0] != 0;
    ret->leaving_exists = PQgetvalue(result, 0, 2)[0] != 0;
    ret->leaving_is_attached = PQgetvalue(result, 0, 3)[0] != 0;
    PQclear(result);

    return HEARTH_OK;
}

/*
 * The statement has a message of its own: Citus sends the whole text of the message to its nodes,
 * which refuse more than one command.
 */
static enum hearth_status run_in_transaction(struct hearth_pg *pg, const char *begin,
                                             const char *sql, enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, begin, ret_fault, err));
    HEARTH_TRY(hearth_pg_script(pg, sql, ret_fault, err));

    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/*
 * Run a statement in a transaction that waits for its lock only a moment; try a few times. OK also
 * if the table is missing: the caller reads the stage again.
 */
static enum hearth_status run_with_lock(struct hearth_pg *pg, const char *begin, const char *sql,
                                        struct hearth_err *err)
{
    for (int attempt = 1;; attempt++) {
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        enum hearth_status status = run_in_transaction(pg, begin, sql, &fault, err);
        if (status == HEARTH_OK) {
            return HEARTH_OK;
        }

        hearth_pg_rollback(pg);
        if (fault == HEARTH_PG_FAULT_MISSING_TABLE) {
            return HEARTH_OK;
        }

        if (fault != HEARTH_PG_FAULT_RETRY || attempt == LOCK_ATTEMPTS) {
            return status;
        }

        (void)usleep(LOCK_PAUSE_US);
    }
}

/*
 * Detach the leaf. CONCURRENTLY cannot run in a transaction, so pg->timeout_ms limits its wait:
 * when it expires, the statement is cancelled in PostgreSQL and the connection is closed.
 */
static enum hearth_status detach_leaf(const struct leaf_drop *drop, struct hearth_err *err)
{
    struct hearth_pg *pg = drop->pg;
    char sql[256];

    if (PQserverVersion(pg->conn) < CONCURRENTLY_SINCE ||
        hearth_layout_is_distributed(drop->store)) {
        (void)snprintf(sql, sizeof sql, "ALTER TABLE hearth_data.%s DETACH PARTITION %s",
                       drop->parent, drop->leaving);
        return run_with_lock(pg, BEGIN_BRIEF, sql, err);
    }

    /* Detach without a lock that readers wait for. */
    (void)snprintf(sql, sizeof sql, "ALTER TABLE hearth_data.%s DETACH PARTITION %s CONCURRENTLY",
                   drop->parent, drop->leaving);
    int64_t timeout_ms = pg->timeout_ms;
    pg->timeout_ms = DETACH_PATIENCE_MS;
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
    enum hearth_status status = hearth_pg_exec(pg, sql, NULL, NULL, NULL, &fault, err);
    pg->timeout_ms = timeout_ms;

    if (status == HEARTH_DEADLINE_EXCEEDED) {
        HEARTH_TRY(hearth_pg_connect(pg, RECONNECT_MS, err));
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "%s cannot be detached before the statements that read it have ended; "
                           "retry",
                           drop->leaving);
    }

    return fault == HEARTH_PG_FAULT_MISSING_TABLE ? HEARTH_OK : status;
}

/* Finish a detaching that was interrupted. */
static enum hearth_status finalize_detach(const struct leaf_drop *drop, const char *pending,
                                          struct hearth_err *err)
{
    char sql[320];

    (void)snprintf(sql, sizeof sql,
                   "ALTER TABLE hearth_data.%s DETACH PARTITION hearth_data.%s FINALIZE",
                   drop->parent, pending);

    return run_with_lock(drop->pg, BEGIN_CALM, sql, err);
}

static enum hearth_status rename_leaf(struct leaf_drop *drop, struct hearth_err *err)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s RENAME TO " HEARTH_LEAVING_PREFIX "%.40s",
                   drop->leaf, bare_name(drop));
    HEARTH_TRY(run_with_lock(drop->pg, BEGIN_BRIEF, sql, err));

    hearth_partitions_forget(drop->store, drop->day);
    drop->has_left = true;

    return HEARTH_OK;
}

/* Run one stage. *ret_done: the leaf is removed. */
static enum hearth_status run_next_stage(struct leaf_drop *drop, bool *ret_done,
                                         struct hearth_err *err)
{
    struct drop_stage at;

    HEARTH_TRY(read_stage(drop, &at, err));
    drop->has_left = drop->has_left || at.leaving_exists;
    *ret_done = !at.leaving_exists && (drop->has_left || !at.leaf_exists);
    if (at.pending[0] != '\0') {
        return finalize_detach(drop, at.pending, err);
    }

    if (at.leaving_is_attached) {
        return detach_leaf(drop, err);
    }

    if (at.leaving_exists) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS %s", drop->leaving);
        return run_with_lock(drop->pg, BEGIN_CALM, sql, err);
    }

    return at.leaf_exists && !drop->has_left ? rename_leaf(drop, err) : HEARTH_OK;
}

/* Run all stages. drop: the caller sets the fields up to the day, and has_left. */
static enum hearth_status drop_leaf(struct leaf_drop *drop, struct hearth_err *err)
{
    assert(PQtransactionStatus(drop->pg->conn) != PQTRANS_INTRANS);

    /* The names. */
    hearth_partition_name(drop->parent, drop->day, drop->leaf);
    (void)snprintf(drop->leaving, sizeof drop->leaving,
                   HEARTH_SCHEMA_DOT HEARTH_LEAVING_PREFIX "%.40s", bare_name(drop));

    /* A pending leaf of another day costs stages of its own. */
    bool done = false;
    enum hearth_status status = HEARTH_OK;
    for (int stage = 0; stage < MAX_STAGES && !done && status == HEARTH_OK; stage++) {
        status = run_next_stage(drop, &done, err);
    }

    if (status == HEARTH_OK && !done) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "detaching of other partitions is interrupted repeatedly; retry");
    }

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "dropping day %" PRId32 " of %s", drop->day, drop->parent);
    }

    return status;
}

enum hearth_status hearth_partitions_drop(struct hearth_store *store, struct hearth_pg *pg,
                                          const char *parent, int32_t day, struct hearth_err *err)
{
    struct leaf_drop drop = {.store = store, .pg = pg, .parent = parent, .day = day};
    return drop_leaf(&drop, err);
}

enum hearth_status hearth_partitions_finish_drop(struct hearth_store *store, struct hearth_pg *pg,
                                                 const char *parent, int32_t day,
                                                 struct hearth_err *err)
{
    struct leaf_drop drop = {
        .store = store, .pg = pg, .parent = parent, .day = day, .has_left = true};
    return drop_leaf(&drop, err);
}

/* ---- which days have leaves ---- */

/* Names of leaves: `prefix`, one of the parents, '_', a day from from_day on. */
struct leaf_names {
    const char *prefix, *quoted_parents;
    int32_t from_day;
};

/* Find the smallest day of such leaves: the last eight characters of their names in pg_class. */
static enum hearth_status find_day_of_leaf(struct hearth_pg *pg, const struct leaf_names *names,
                                           int32_t *ret_day, bool *ret_found,
                                           struct hearth_err *err)
{
    char sql[768];

    (void)snprintf(sql, sizeof sql,
                   "SELECT min(day) FROM (SELECT to_date(right(c.relname, 8), 'YYYYMMDD') - date"
                   " '1970-01-01' AS day FROM pg_class c, unnest(ARRAY[%s]) p (name)"
                   " WHERE c.relnamespace = 'hearth_data'::regnamespace AND c.relkind = 'r' AND"
                   " c.relname = '%s' || p.name || '_' || right(c.relname, 8) AND"
                   " right(c.relname, 8) ~ '^[0-9]{8}$') d WHERE day >= %" PRId32,
                   names->quoted_parents, names->prefix, names->from_day);
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
    const struct leaf_names names = {"", quoted_parents, from_day};
    return find_day_of_leaf(pg, &names, ret_day, ret_found, err);
}

enum hearth_status hearth_partitions_leaving(struct hearth_pg *pg, const char *parent,
                                             int32_t *ret_day, bool *ret_found,
                                             struct hearth_err *err)
{
    char quoted[32];
    const struct leaf_names names = {HEARTH_LEAVING_PREFIX, quoted, INT32_MIN};

    (void)snprintf(quoted, sizeof quoted, "'%s'", parent);

    return find_day_of_leaf(pg, &names, ret_day, ret_found, err);
}

static void take_oldest_leaf(const PGresult *rows, int row, struct hearth_oldest_leaf *ret)
{
    *ret = (struct hearth_oldest_leaf){.exists = !hearth_pg_is_null(rows, row, 0),
                                       .is_leaving = !hearth_pg_is_null(rows, row, 1)};
    ret->day = ret->exists ? hearth_pg_i32(rows, row, 0) : 0;
    ret->leaving_day = ret->is_leaving ? hearth_pg_i32(rows, row, 1) : 0;
}

enum hearth_status hearth_partitions_oldest(struct hearth_pg *pg, const struct hearth_str *parents,
                                            size_t n_parents, struct hearth_oldest_leaf *ret,
                                            struct hearth_err *err)
{
    assert(n_parents > 0 && ret != NULL);

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    struct hearth_pg_params params;
    PGresult *rows = NULL;

    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text_array(&params, parents, n_parents);
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT min(l.day) FILTER (WHERE l.stem = p.name),"
        " min(l.day) FILTER (WHERE l.stem <> p.name)"
        " FROM unnest($1::text[]) WITH ORDINALITY p (name, place) LEFT JOIN (SELECT"
        " left(relname, -9) AS stem, to_date(right(relname, 8), 'YYYYMMDD') - date '1970-01-01' AS"
        " day FROM pg_class WHERE relnamespace = 'hearth_data'::regnamespace AND relkind = 'r' AND"
        " relname ~ '_[0-9]{8}$') l ON l.stem IN (p.name, '" HEARTH_LEAVING_PREFIX "' || p.name)"
        " GROUP BY p.place ORDER BY p.place",
        &params, NULL, &rows, NULL, err));

    assert((size_t)PQntuples(rows) == n_parents);
    for (int i = 0; i < (int)n_parents; i++) {
        take_oldest_leaf(rows, i, &ret[i]);
    }

    PQclear(rows);

    return HEARTH_OK;
}
