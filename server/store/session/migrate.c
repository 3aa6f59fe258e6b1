/*
 * migrate.c -- applies the missing files of sql/NNNN_*.sql; refuses a history that is newer or was
 * altered.
 *
 * Every transaction of this file begins with one advisory lock, for which servers that start
 * together queue up (transaction-level, because PgBouncer does not keep sessions). Under the lock
 * each transaction reads the history again, so a server that waited applies no file twice.
 *
 * Other servers go on while a file is applied. A statement that waits for the lock of a table makes
 * all later statements on this table wait behind it, so it waits only for a moment; then the file
 * is rolled back and tried again.
 */
#include "session/migrate.h"

#include "hearth/base/embedded.h"
#include "hearth/base/hash.h"
#include "hearth/store/store.h"

#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIGRATE_CONNECT_MS 10000
/* About a minute for the longest transaction of others, such as a query, to end. */
#define MAX_LOCK_TRIES 60
#define LOCK_REST_US   500000

static const char LOCK_SQL[] = "BEGIN; SELECT pg_advisory_xact_lock(" HEARTH_LOCK_MIGRATE ")";

static const char PATIENCE_SQL[] = "SET LOCAL lock_timeout = '500ms'";

static const char HISTORY_SQL[] =
    "CREATE TABLE hearth_data.migration (number int4 PRIMARY KEY, name text NOT NULL,"
    " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";

/* Write the file's XXH3-128 as 32 hexadecimal digits. */
static void format_checksum(const struct hearth_embedded *file, char out[33])
{
    struct hearth_hash128 h = hearth_hash128(file->bytes, file->n_bytes, 0);

    (void)snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, h.hi, h.lo);
}

static int32_t number_of_file(const struct hearth_embedded *file)
{
    long number = strtol(file->name, NULL, 10);
    assert(number > 0 && number <= INT32_MAX);

    return (int32_t)number;
}

/* Return the file with the number, or NULL. */
static const struct hearth_embedded *find_file(int32_t number)
{
    for (const struct hearth_embedded *file = hearth_embedded_migrations; file->name != NULL;
         file++) {
        if (number_of_file(file) == number) {
            return file;
        }
    }

    return NULL;
}

/* Whether the schema and the history are there. */
static enum hearth_status find_history_table(struct hearth_pg *pg, bool *ret_schema,
                                             bool *ret_table, struct hearth_err *err)
{
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT to_regnamespace('hearth_data') IS NOT NULL,"
                              " to_regclass('hearth_data.migration') IS NOT NULL",
                              NULL, NULL, &result, NULL, err));

    *ret_schema = PQgetvalue(result, 0, 0)[0] != 0;
    *ret_table = PQgetvalue(result, 0, 1)[0] != 0;
    PQclear(result);

    return HEARTH_OK;
}

static enum hearth_status ensure_history_table(struct hearth_pg *pg, struct hearth_err *err)
{
    bool has_schema, has_table;

    HEARTH_TRY(find_history_table(pg, &has_schema, &has_table, err));

    /* Create the schema only if it is missing: a role without that right can use a prepared one. */
    if (!has_schema) {
        HEARTH_TRY(hearth_pg_script(pg, "CREATE SCHEMA IF NOT EXISTS hearth_data", NULL, err));
    }

    return has_table ? HEARTH_OK : hearth_pg_script(pg, HISTORY_SQL, NULL, err);
}

/* Compare one row of the history with the file of its number. */
static enum hearth_status check_applied(const PGresult *history, int row, struct hearth_err *err)
{
    int32_t number = hearth_pg_i32(history, row, 0);
    struct hearth_str name = hearth_pg_str(history, row, 1);
    struct hearth_str checksum = hearth_pg_str(history, row, 2);
    const struct hearth_embedded *file = find_file(number);
    if (file == NULL) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "the database has migration \"" HEARTH_STR_FMT
                           "\", which this hearthd does not know: a newer hearthd applied it; "
                           "run that version",
                           HEARTH_STR_ARG(name));
    }

    char want[33];
    format_checksum(file, want);
    if (!hearth_str_eq_c(checksum, want) || !hearth_str_eq_c(name, file->name)) {
        return HEARTH_FAIL(
            err, HEARTH_FAILED_PRECONDITION,
            "the database was migrated with another text of \"%s\" (applied: \"" HEARTH_STR_FMT
            "\", checksum " HEARTH_STR_FMT "; here: %s)",
            file->name, HEARTH_STR_ARG(name), HEARTH_STR_ARG(checksum), want);
    }

    return HEARTH_OK;
}

/* Return whether the history has a row of the file. */
static bool is_applied(const PGresult *history, const struct hearth_embedded *file)
{
    for (int row = 0; row < PQntuples(history); row++) {
        if (hearth_pg_i32(history, row, 0) == number_of_file(file)) {
            return true;
        }
    }

    return false;
}

/*
 * Check the whole history; *ret_next is the first file that is not in it, or NULL. `missing`, which
 * may be NULL, is called for each that is not in it.
 */
static enum hearth_status find_next(struct hearth_pg *pg, hearth_migration_fn *missing, void *arg,
                                    const struct hearth_embedded **ret_next, struct hearth_err *err)
{
    PGresult *history = NULL;

    HEARTH_TRY(hearth_pg_exec(
        pg, "SELECT number, name, checksum FROM hearth_data.migration ORDER BY number", NULL, NULL,
        &history, NULL, err));

    /* Compare each row with its file. */
    enum hearth_status status = HEARTH_OK;
    int n = PQntuples(history);
    for (int row = 0; status == HEARTH_OK && row < n; row++) {
        status = check_applied(history, row, err);
    }

    /* Find the files that are missing; they are sorted by number. */
    const struct hearth_embedded *file = hearth_embedded_migrations, *next = NULL;
    for (; status == HEARTH_OK && file->name != NULL; file++) {
        if (is_applied(history, file)) {
            continue;
        }
        next = next == NULL ? file : next;
        if (missing != NULL) {
            missing(arg, file->name);
        }
    }

    PQclear(history);
    HEARTH_TRY(status);
    *ret_next = next;

    return HEARTH_OK;
}

static enum hearth_status apply_file(struct hearth_pg *pg, const struct hearth_embedded *file,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, PATIENCE_SQL, ret_fault, err));

    /* The table of files ends each with a NUL, so it is a C string. */
    enum hearth_status status = hearth_pg_script(pg, (const char *)file->bytes, ret_fault, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "migration %s", file->name);
        return status;
    }

    /* Record it in the history, in the same transaction. */
    char checksum[33];
    format_checksum(file, checksum);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, number_of_file(file));
    hearth_pg_param_text(&params, hearth_str_c(file->name));
    hearth_pg_param_text(&params, hearth_str_c(checksum));
    status = hearth_pg_exec(
        pg, "INSERT INTO hearth_data.migration (number, name, checksum) VALUES ($1, $2, $3)",
        &params, NULL, NULL, ret_fault, err);
    hearth_arena_release(&arena);

    return status;
}

/*
 * Run one transaction: create the history if it is missing, apply one file. *ret_applied: the file;
 * NULL: none is left.
 */
static enum hearth_status apply_next(struct hearth_pg *pg,
                                     const struct hearth_embedded **ret_applied,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct hearth_embedded *next = NULL;

    *ret_fault = HEARTH_PG_FAULT_NONE;
    HEARTH_TRY(hearth_pg_script(pg, LOCK_SQL, NULL, err));
    HEARTH_TRY(ensure_history_table(pg, err));
    HEARTH_TRY(find_next(pg, NULL, NULL, &next, err));
    if (next != NULL) {
        HEARTH_TRY(apply_file(pg, next, ret_fault, err));
    }

    HEARTH_TRY(hearth_pg_script(pg, "COMMIT", NULL, err));
    *ret_applied = next;

    return HEARTH_OK;
}

enum hearth_status hearth_migrate(struct hearth_pg *pg, hearth_migration_fn *applied, void *arg,
                                  struct hearth_err *err)
{
    assert(PQtransactionStatus(pg->conn) != PQTRANS_INTRANS);

    for (int n_tries = 1;;) {
        const struct hearth_embedded *file = NULL;
        enum hearth_pg_fault fault;
        enum hearth_status status = apply_next(pg, &file, &fault, err);
        if (status != HEARTH_OK) {
            hearth_pg_rollback(pg);
            if (fault != HEARTH_PG_FAULT_RETRY || n_tries++ == MAX_LOCK_TRIES) {
                return status;
            }
            HEARTH_TRY(hearth_cancel_check(pg->cancel, err));
            (void)usleep(LOCK_REST_US);
            continue;
        }
        if (file == NULL) {
            return HEARTH_OK;
        }
        if (applied != NULL) {
            applied(arg, file->name);
        }
    }
}

enum hearth_status hearth_migrate_find_newer(struct hearth_pg *pg, char name[128],
                                             struct hearth_err *err)
{
    bool has_schema, has_table;
    PGresult *history = NULL;

    name[0] = '\0';
    HEARTH_TRY(find_history_table(pg, &has_schema, &has_table, err));
    if (!has_table) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_pg_exec(pg, "SELECT number, name FROM hearth_data.migration ORDER BY number",
                              NULL, NULL, &history, NULL, err));
    for (int row = 0; row < PQntuples(history); row++) {
        if (find_file(hearth_pg_i32(history, row, 0)) == NULL) {
            struct hearth_str found = hearth_pg_str(history, row, 1);
            (void)snprintf(name, 128, HEARTH_STR_FMT, HEARTH_STR_ARG(found));
        }
    }
    PQclear(history);

    return HEARTH_OK;
}

enum hearth_status hearth_migrate_plan(struct hearth_pg *pg, hearth_migration_fn *missing,
                                       void *arg, struct hearth_err *err)
{
    bool has_schema, has_table;

    HEARTH_TRY(find_history_table(pg, &has_schema, &has_table, err));

    const struct hearth_embedded *next;
    if (has_table) {
        return find_next(pg, missing, arg, &next, err);
    }

    /* An empty database gets all of them. */
    for (next = hearth_embedded_migrations; next->name != NULL; next++) {
        missing(arg, next->name);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_migrate(const struct hearth_secret *url, bool dry_run,
                                        hearth_store_migration_fn *on_each, void *arg,
                                        struct hearth_err *err)
{
    struct hearth_pg pg = {.url = url};

    HEARTH_TRY(hearth_pg_connect(&pg, MIGRATE_CONNECT_MS, err));
    enum hearth_status status = dry_run ? hearth_migrate_plan(&pg, on_each, arg, err)
                                        : hearth_migrate(&pg, on_each, arg, err);
    hearth_pg_close(&pg);

    return status;
}
