/* One connection: values in and out, errors by SQLSTATE, giving up in time. */
#include "hearth/base/mem.h"

#include "pg/pg.h"
#include "pg/pg_wait.h"
#include "pg/pool.h"
#include "pg_cluster.h"
#include "session/partitions.h"
#include "test_secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct pg_cluster g_cluster;
static char g_url[256];

static int start_cluster(void **state)
{
    (void)state;
    pg_cluster_start(&g_cluster, false);
    pg_cluster_database(&g_cluster, g_url);
    return 0;
}

static int stop_cluster(void **state)
{
    (void)state;
    pg_cluster_stop(&g_cluster);
    return 0;
}

static struct hearth_pg connect_pg(void)
{
    struct hearth_pg pg = {.url = test_secret(g_url)};
    struct hearth_err err = HEARTH_ERR_INIT;
    if (hearth_pg_connect(&pg, 60000, &err) != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
    return pg;
}

static void errors_are_classified_by_sqlstate(void **state)
{
    (void)state;
    static const struct {
        const char *sqlstate;
        enum hearth_pg_fault fault;
    } cases[] = {
        {"08006", HEARTH_PG_FAULT_CONNECTION},    {"57P01", HEARTH_PG_FAULT_CONNECTION},
        {"57P03", HEARTH_PG_FAULT_CONNECTION},    {"25006", HEARTH_PG_FAULT_CONNECTION},
        {"40001", HEARTH_PG_FAULT_RETRY},         {"40P01", HEARTH_PG_FAULT_RETRY},
        {"53200", HEARTH_PG_FAULT_RETRY},         {"53300", HEARTH_PG_FAULT_RETRY},
        {"55P03", HEARTH_PG_FAULT_RETRY},         {"53100", HEARTH_PG_FAULT_DISK_FULL},
        {"23505", HEARTH_PG_FAULT_UNIQUE},        {"57014", HEARTH_PG_FAULT_CANCELLED},
        {"42P01", HEARTH_PG_FAULT_MISSING_TABLE}, {"23514", HEARTH_PG_FAULT_MISSING_TABLE},
        {"23502", HEARTH_PG_FAULT_OTHER},         {"42501", HEARTH_PG_FAULT_OTHER},
        {"XX000", HEARTH_PG_FAULT_OTHER},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_int_equal(hearth_pg_classify(cases[i].sqlstate), cases[i].fault);
    }
}

/* The status and fault of an error that PostgreSQL raises on request. */
static enum hearth_status raise_error(const char *sqlstate, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    struct hearth_pg pg = connect_pg();
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "DO $$ BEGIN RAISE EXCEPTION 'as wished' USING ERRCODE = '%s'; END $$",
                   sqlstate);
    enum hearth_status status = hearth_pg_exec(&pg, sql, NULL, NULL, NULL, ret_fault, err);
    assert_true(*ret_fault == HEARTH_PG_FAULT_CONNECTION ? pg.conn == NULL : hearth_pg_usable(&pg));
    hearth_pg_close(&pg);
    return status;
}

static void a_connection_that_ends_differs_from_one_that_postgresql_has_lost(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        bool is_node_lost;
    } cases[] = {
        {"DO $$ BEGIN RAISE 'gone' USING ERRCODE = '08006'; END $$", true}, /* as Citus does */
        {"SELECT pg_terminate_backend(pg_backend_pid())", false},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_pg pg = connect_pg();
        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_pg_fault fault;
        assert_false(pg.is_node_lost);
        assert_int_equal(hearth_pg_exec(&pg, cases[i].sql, NULL, NULL, NULL, &fault, &err),
                         HEARTH_UNAVAILABLE);
        assert_int_equal(fault, HEARTH_PG_FAULT_CONNECTION);
        assert_null(pg.conn);
        assert_int_equal(pg.is_node_lost, cases[i].is_node_lost);
    }
}

static void a_command_of_citus_that_lost_its_node_may_be_repeated(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        enum hearth_pg_fault fault;
    } cases[] = {
        {"DO $$ BEGIN RAISE 'failed to COPY to shard 7 on db:5432' USING ERRCODE = '58030'; END $$",
         HEARTH_PG_FAULT_RETRY},
        {"DO $$ BEGIN RAISE 'could not read a block' USING ERRCODE = '58030'; END $$",
         HEARTH_PG_FAULT_OTHER},
        {"SELECT \"while executing command on db:5432\"()", HEARTH_PG_FAULT_RETRY},
        {"DO $$ BEGIN RAISE 'a bug' USING ERRCODE = 'XX000'; END $$", HEARTH_PG_FAULT_OTHER},
    };
    struct hearth_pg pg = connect_pg();
    struct hearth_err err = HEARTH_ERR_INIT;

    /* A function of this name is in the context of its error, as the node is in Citus'. */
    assert_int_equal(
        hearth_pg_exec(&pg,
                       "CREATE FUNCTION \"while executing command on db:5432\"() RETURNS void"
                       " LANGUAGE plpgsql AS $$ BEGIN RAISE 'server closed the connection"
                       " unexpectedly' USING ERRCODE = 'XX000'; END $$",
                       NULL, NULL, NULL, NULL, &err),
        HEARTH_OK);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        assert_int_not_equal(hearth_pg_exec(&pg, cases[i].sql, NULL, NULL, NULL, &fault, &err),
                             HEARTH_OK);
        assert_int_equal(fault, cases[i].fault);
        assert_true(hearth_pg_usable(&pg));
    }

    hearth_pg_close(&pg);
}

static void a_full_disk_is_named(void **state)
{
    (void)state;
    enum hearth_pg_fault fault;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(raise_error("53100", &fault, &err), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(fault, HEARTH_PG_FAULT_DISK_FULL);
    assert_string_equal(err.msg, "the database's disk is full: as wished (53100)");
    assert_int_equal(raise_error("40001", &fault, &err), HEARTH_UNAVAILABLE);
    assert_int_equal(raise_error("22012", &fault, &err), HEARTH_INTERNAL);
    assert_string_equal(err.msg, "the database refused a statement: as wished (22012)");
}

static void parameters_are_read_back_unchanged(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    static const int32_t i32s[] = {1, -2, INT32_MAX};
    static const int64_t i64s[] = {INT64_MIN, 7};
    const struct hearth_str texts[] = {HEARTH_STR("\xc3\xa4"), HEARTH_STR(""), HEARTH_STR("x")};
    const struct hearth_hash128 uuids[] = {{.hi = 0x0123456789abcdef, .lo = 0xfedcba9876543210}};
    hearth_pg_param_i32(&params, -5);
    hearth_pg_param_i64(&params, INT64_MIN);
    hearth_pg_param_text(&params, HEARTH_STR("t"));
    hearth_pg_param_bytes(&params, hearth_str_n("a\0b", 3));
    hearth_pg_param_uuid(&params, uuids[0]);
    hearth_pg_param_i32_array(&params, i32s, 3);
    hearth_pg_param_i64_array(&params, i64s, 2);
    hearth_pg_param_text_array(&params, texts, 3);
    hearth_pg_param_uuid_array(&params, uuids, 1);
    hearth_pg_param_text_array(&params, NULL, 0);
    PGresult *r = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_pg_exec(&pg,
                       "SELECT $1, $2, $3, $4, $5::text, $6, $7::text, $8, $9::text, $10,"
                       " NULL::text, '{1,NULL}'::int4[], '{{1},{2}}'::int4[]",
                       &params, NULL, &r, NULL, &err),
        HEARTH_OK);
    assert_int_equal(hearth_pg_i32(r, 0, 0), -5);
    assert_true(hearth_pg_i64(r, 0, 1) == INT64_MIN);
    assert_true(hearth_str_eq_c(hearth_pg_str(r, 0, 2), "t"));
    assert_true(hearth_str_eq(hearth_pg_str(r, 0, 3), hearth_str_n("a\0b", 3)));
    assert_true(hearth_str_eq_c(hearth_pg_str(r, 0, 4), "01234567-89ab-cdef-fedc-ba9876543210"));
    int32_t *ints = NULL;
    struct hearth_str *strs = NULL;
    size_t n = 0;
    assert_int_equal(hearth_pg_i32_array(r, 0, 5, &arena, &ints, &n, &err), HEARTH_OK);
    assert_int_equal(n, 3);
    assert_memory_equal(ints, i32s, sizeof i32s);
    assert_true(hearth_str_eq_c(hearth_pg_str(r, 0, 6), "{-9223372036854775808,7}"));
    assert_int_equal(hearth_pg_str_array(r, 0, 7, &arena, &strs, &n, &err), HEARTH_OK);
    assert_int_equal(n, 3);
    assert_true(hearth_str_eq(strs[0], texts[0]) && strs[1].n == 0 &&
                hearth_str_eq_c(strs[2], "x"));
    assert_true(hearth_str_eq_c(hearth_pg_str(r, 0, 8), "{01234567-89ab-cdef-fedc-ba9876543210}"));
    assert_int_equal(hearth_pg_str_array(r, 0, 9, &arena, &strs, &n, &err), HEARTH_OK);
    assert_int_equal(n, 0);
    assert_true(hearth_pg_is_null(r, 0, 10) && hearth_pg_str(r, 0, 10).p == NULL);
    assert_int_equal(hearth_pg_i32_array(r, 0, 11, &arena, &ints, &n, &err), HEARTH_CORRUPT);
    assert_int_equal(hearth_pg_i32_array(r, 0, 12, &arena, &ints, &n, &err), HEARTH_CORRUPT);
    PQclear(r);
    hearth_arena_release(&arena);
    hearth_pg_close(&pg);
}

static void rows_are_copied_in_binary(void **state)
{
    (void)state;
    enum {
        N = 3000
    };
    struct hearth_pg pg = connect_pg();
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_pg_script(&pg,
                         "CREATE TABLE c (a int4, b int8, p bytea, x int8[], v bytea[], z int4)",
                         NULL, &err),
        HEARTH_OK);
    struct hearth_buf rows;
    hearth_buf_init(&rows, 0);
    static char big[1000];
    memset(big, 'y', sizeof big);
    const struct hearth_str parts[] = {HEARTH_STR("p"), HEARTH_STR("")};
    static const int64_t totals[] = {1, 2, 3};
    for (int32_t i = 0; i < N; i++) {
        hearth_copy_row(&rows, 6);
        hearth_copy_i32(&rows, i);
        hearth_copy_i64(&rows, -(int64_t)i);
        hearth_copy_bytes(&rows, hearth_str_n(big, sizeof big));
        hearth_copy_i64_array(&rows, totals, (size_t)i % 4);
        hearth_copy_bytes_array(&rows, parts, 2);
        hearth_copy_null(&rows);
    }
    enum hearth_pg_fault fault;
    const char *copy = "COPY c FROM STDIN (FORMAT binary)";
    assert_int_equal(hearth_pg_copy(&pg, copy, hearth_buf_view(&rows), &fault, &err), HEARTH_OK);
    assert_int_equal(
        pg_cluster_int(g_url,
                       "SELECT count(*) FROM c WHERE b = -a AND length(p) = 1000 AND z IS NULL"
                       " AND coalesce(array_length(x, 1), 0) = a % 4 AND v = '{p,\"\"}'"),
        N);
    /* Damaged rows are an error of PostgreSQL's, not of the connection. */
    hearth_buf_reset(&rows);
    hearth_copy_row(&rows, 5);
    assert_int_equal(hearth_pg_copy(&pg, copy, hearth_buf_view(&rows), &fault, &err),
                     HEARTH_INTERNAL);
    assert_int_equal(fault, HEARTH_PG_FAULT_OTHER);
    assert_true(hearth_pg_usable(&pg));
    hearth_buf_release(&rows);
    hearth_pg_close(&pg);
}

static void a_refused_copy_fails_with_its_reason(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_pg_script(&pg, "CREATE TABLE refused (a int4)", NULL, &err), HEARTH_OK);
    assert_int_equal(
        hearth_pg_script_send(&pg, "COPY refused FROM STDIN (FORMAT binary)", NULL, &err),
        HEARTH_OK);
    PGresult *result = NULL;
    assert_int_equal(hearth_pg_script_next(&pg, &result, NULL, &err), HEARTH_OK);
    assert_int_equal(PQresultStatus(result), PGRES_COPY_IN);
    PQclear(result);

    enum hearth_pg_fault fault = HEARTH_PG_FAULT_OTHER;
    assert_int_equal(hearth_pg_copy_refuse(&pg, "not today", &fault, &err), HEARTH_OK);
    assert_int_equal(fault, HEARTH_PG_FAULT_NONE);
    assert_int_not_equal(hearth_pg_script_next(&pg, &result, &fault, &err), HEARTH_OK);
    assert_non_null(strstr(err.msg, "not today"));
    assert_true(hearth_pg_usable(&pg));

    hearth_pg_close(&pg);
    assert_int_equal(hearth_pg_copy_refuse(&pg, "not today", &fault, &err), HEARTH_UNAVAILABLE);
    assert_int_equal(fault, HEARTH_PG_FAULT_CONNECTION);
    assert_string_equal(err.msg, "not connected to the database");
}

/* Run the statement "insert" with a number, or NULL, in a pipeline of its own. */
static enum hearth_status run_pipeline(struct hearth_pg *pg, bool prepares, const char *number,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    int length = number == NULL ? 0 : 4;
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_pipeline_begin(pg, ret_fault, err));
    if (prepares) {
        HEARTH_TRY(hearth_pg_pipeline_prepare(
            pg, "insert", "INSERT INTO piped VALUES ($1) RETURNING 100 / number", ret_fault, err));
    }
    HEARTH_TRY(hearth_pg_pipeline_run(pg, "insert", 1, &number, &length, ret_fault, err));
    HEARTH_TRY(hearth_pg_pipeline_run(pg, "insert", 1, &number, &length, ret_fault, err));
    HEARTH_TRY(hearth_pg_pipeline_end(pg, ret_fault, err));
    do {
        HEARTH_TRY(hearth_pg_pipeline_next(pg, &result, ret_fault, err));
        bool has_rows = PQresultStatus(result) == PGRES_TUPLES_OK;
        assert_true(!has_rows || number == NULL || hearth_pg_i32(result, 0, 0) == 20);
        PQclear(result);
    } while (result != NULL);

    return HEARTH_OK;
}

static void a_pipeline_commits_all_of_its_statements_or_none(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_pg_fault fault;
    static const char five[] = {0, 0, 0, 5}, zero[] = {0, 0, 0, 0};

    assert_int_equal(hearth_pg_script(&pg, "CREATE TABLE piped (number int4)", NULL, &err),
                     HEARTH_OK);
    assert_false(pg.is_direct); /* nobody has asked which process answers */
    pg.is_direct = true;
    assert_int_equal(run_pipeline(&pg, true, five, &fault, &err), HEARTH_OK);
    assert_int_equal(run_pipeline(&pg, false, NULL, &fault, &err), HEARTH_OK);
    assert_int_equal(pg_cluster_int(g_url, "SELECT count(*) * 10 + count(number) FROM piped"), 42);

    /* A failure leaves the connection usable, and nothing in the table. */
    assert_int_equal(run_pipeline(&pg, false, zero, &fault, &err), HEARTH_INTERNAL);
    assert_int_equal(fault, HEARTH_PG_FAULT_OTHER);
    assert_non_null(strstr(err.msg, "22012"));
    assert_true(hearth_pg_usable(&pg));
    assert_int_equal(run_pipeline(&pg, true, five, &fault, &err), HEARTH_INTERNAL); /* its name */
    assert_true(hearth_pg_usable(&pg));
    assert_int_equal(run_pipeline(&pg, false, five, &fault, &err), HEARTH_OK);
    assert_int_equal(pg_cluster_int(g_url, "SELECT count(*) * 10 + count(number) FROM piped"), 64);
    hearth_pg_close(&pg);
}

static enum hearth_status run_again(struct hearth_pg *pg, const char *sql, int32_t value,
                                    int64_t *ret, enum hearth_pg_fault *ret_fault)
{
    struct hearth_arena arena;
    struct hearth_pg_params params;
    PGresult *result = NULL;
    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    params.is_repeated = true;
    hearth_pg_param_i32(&params, value);
    enum hearth_status status = hearth_pg_exec(pg, sql, &params, NULL, &result, ret_fault, NULL);
    *ret = status == HEARTH_OK ? hearth_pg_i64(result, 0, 0) : 0;
    PQclear(result);
    hearth_arena_release(&arena);

    return status;
}

/* In the session of pg. */
static int64_t count_prepared(struct hearth_pg *pg)
{
    PGresult *result = NULL;
    assert_int_equal(hearth_pg_exec(pg, "SELECT count(*) FROM pg_prepared_statements", NULL, NULL,
                                    &result, NULL, NULL),
                     HEARTH_OK);
    int64_t n = hearth_pg_i64(result, 0, 0);
    PQclear(result);
    return n;
}

static void a_statement_that_is_run_again_is_prepared_on_a_direct_connection_only(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    int64_t value;

    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(run_again(&pg, "SELECT $1::int8", i, &value, NULL), HEARTH_OK);
        assert_int_equal(value, i);
    }
    assert_int_equal(count_prepared(&pg), 0);

    pg.is_direct = true;
    for (int32_t i = 0; i < 8; i++) {
        assert_int_equal(run_again(&pg, "SELECT $1::int8 * 3", i, &value, NULL), HEARTH_OK);
        assert_int_equal(value, 3 * i);
        assert_int_equal(count_prepared(&pg), i > 0);
    }

    /* A connection remembers the last texts; the others are forgotten in PostgreSQL, too. */
    for (int32_t i = 0; i < 3 * HEARTH_PG_REPEATED; i++) {
        char sql[64];
        (void)snprintf(sql, sizeof sql, "SELECT $1::int8 + %d", (int)i);
        for (int32_t run = 0; run < 3; run++) {
            assert_int_equal(run_again(&pg, sql, run, &value, NULL), HEARTH_OK);
            assert_int_equal(value, run + i);
        }
        assert_int_equal(count_prepared(&pg),
                         i + 2 < HEARTH_PG_REPEATED ? i + 2 : HEARTH_PG_REPEATED);
    }

    /* Another session has none of them. */
    assert_int_equal(hearth_pg_connect(&pg, 60000, NULL), HEARTH_OK);
    pg.is_direct = true;
    assert_int_equal(run_again(&pg, "SELECT $1::int8 + 1", 1, &value, NULL), HEARTH_OK);
    assert_int_equal(value, 2);
    hearth_pg_close(&pg);
}

static void a_prepared_statement_that_fails_is_forgotten(void **state)
{
    (void)state;
    static const char sql[] = "SELECT max(number)::int8 + $1::int8 FROM again";
    struct hearth_pg pg = connect_pg();
    int64_t value;
    enum hearth_pg_fault fault;
    pg.is_direct = true;

    assert_int_equal(hearth_pg_script(&pg, "CREATE TABLE again AS SELECT 5 AS number", NULL, NULL),
                     HEARTH_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_again(&pg, sql, 1, &value, NULL), HEARTH_OK);
        assert_int_equal(value, 6);
    }
    assert_int_equal(count_prepared(&pg), 1);

    assert_int_equal(hearth_pg_script(&pg, "DROP TABLE again", NULL, NULL), HEARTH_OK);
    assert_int_equal(run_again(&pg, sql, 1, &value, &fault), HEARTH_INTERNAL);
    assert_int_equal(fault, HEARTH_PG_FAULT_MISSING_TABLE);
    assert_true(hearth_pg_usable(&pg));
    assert_int_equal(count_prepared(&pg), 0);

    /* A table with another type takes its place. */
    assert_int_equal(
        hearth_pg_script(&pg, "CREATE TABLE again AS SELECT 7::int8 AS number", NULL, NULL),
        HEARTH_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_again(&pg, sql, 1, &value, NULL), HEARTH_OK);
        assert_int_equal(value, 8);
    }
    hearth_pg_close(&pg);
}

static enum hearth_status add_number(void *context, const PGresult *row, struct hearth_err *err)
{
    (void)err;
    *(int64_t *)context += hearth_pg_i64(row, 0, 0);
    return HEARTH_OK;
}

/* The sum of 1 to n; the statement is prepared if `one_plan_if` says so. */
static int64_t stream_again(struct hearth_pg *pg, const char *one_plan_if, int32_t n, bool is_ahead)
{
    static const char sql[] = "SELECT generate_series(1, $1)::int8";
    struct hearth_arena arena;
    struct hearth_pg_params params;
    int64_t sum = 0;
    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    params.is_repeated = true;
    params.one_plan_if = one_plan_if;
    hearth_pg_param_i32(&params, n);
    if (is_ahead) {
        assert_int_equal(hearth_pg_send_ahead(pg, sql, &params, true, NULL), HEARTH_OK);
    }
    assert_int_equal(hearth_pg_stream(pg, sql, &params, NULL, add_number, &sum, NULL, NULL),
                     HEARTH_OK);
    hearth_arena_release(&arena);

    return sum;
}

/* How often the session has run what it has prepared, by one plan for all values, or otherwise. */
static int64_t count_runs(struct hearth_pg *pg, const char *plans)
{
    char sql[128];
    PGresult *result = NULL;
    (void)snprintf(sql, sizeof sql, "SELECT coalesce(sum(%s), 0)::int8 FROM pg_prepared_statements",
                   plans);
    assert_int_equal(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, NULL), HEARTH_OK);
    int64_t n = hearth_pg_i64(result, 0, 0);
    PQclear(result);
    return n;
}

/* Other statements of the session do not get plans for all values. */
static void assert_session_has_no_setting(struct hearth_pg *pg)
{
    PGresult *result = NULL;
    assert_int_equal(hearth_pg_exec(pg, "SHOW plan_cache_mode", NULL, NULL, &result, NULL, NULL),
                     HEARTH_OK);
    assert_true(hearth_str_eq_c(hearth_pg_str(result, 0, 0), "auto"));
    PQclear(result);
}

static void a_stream_that_is_run_again_has_one_plan_for_all_values(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    pg.is_direct = true;

    for (int32_t i = 0; i < 10; i++) {
        assert_int_equal(stream_again(&pg, "SELECT true", i, i % 2 == 1), i * (i + 1) / 2);
    }
    assert_int_equal(count_prepared(&pg), 1);
    assert_int_equal(count_runs(&pg, "generic_plans"), 8);
    assert_int_equal(count_runs(&pg, "custom_plans"), 0);

    assert_session_has_no_setting(&pg);
    hearth_pg_close(&pg);
}

static void a_stream_with_one_plan_that_fails_leaves_the_connection_as_it_was(void **state)
{
    (void)state;
    static const char sql[] = "SELECT 12::int8 / ($1 - i) FROM generate_series(1, 3) i";
    struct hearth_pg pg = connect_pg();
    pg.is_direct = true;

    for (int32_t i = 4; i < 20; i++) {
        struct hearth_arena arena;
        struct hearth_pg_params params;
        enum hearth_pg_fault fault;
        int64_t sum = 0;
        bool fails = i % 4 == 3;
        hearth_arena_init(&arena, 0);
        hearth_pg_params_init(&params, &arena);
        params.is_repeated = true;
        params.one_plan_if = "SELECT true";
        hearth_pg_param_i32(&params, fails ? 3 : i);
        assert_int_equal(hearth_pg_stream(&pg, sql, &params, NULL, add_number, &sum, &fault, NULL),
                         fails ? HEARTH_INTERNAL : HEARTH_OK);
        assert_int_equal(sum, fails ? 6 + 12 : 12 / (i - 1) + 12 / (i - 2) + 12 / (i - 3));
        assert_int_equal(count_prepared(&pg), i % 4 == 1 || i % 4 == 2);
        assert_session_has_no_setting(&pg);
        hearth_arena_release(&arena);
    }
    hearth_pg_close(&pg);
}

static void a_stream_is_not_prepared_where_it_is_not_worth_it(void **state)
{
    (void)state;
    static const char *const refusals[] = {"SELECT false", "SELECT true WHERE false",
                                           "SELECT missing", "SELECT 1"};
    struct hearth_pg pg = connect_pg();
    pg.is_direct = true;

    for (size_t k = 0; k < HEARTH_ARRAY_LEN(refusals); k++) {
        for (int32_t i = 0; i < 4; i++) {
            assert_int_equal(stream_again(&pg, refusals[k], i, false), i * (i + 1) / 2);
        }
        assert_int_equal(count_prepared(&pg), 0);
        assert_int_equal(hearth_pg_connect(&pg, 60000, NULL), HEARTH_OK);
        pg.is_direct = true;
    }

    /* Many rows: it is forgotten, until few come again. */
    for (int32_t i = 0; i < 6; i++) {
        int32_t n = i == 3 ? HEARTH_PG_PREPARED_ROWS + 1 : HEARTH_PG_PREPARED_ROWS;
        assert_int_equal(stream_again(&pg, "SELECT true", n, false), n * (n + 1) / 2);
        assert_int_equal(count_prepared(&pg), i == 1 || i == 2 || i > 3);
    }
    hearth_pg_close(&pg);
}

static void statements_prepared_long_ago_are_prepared_again(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    pg.is_direct = true;

    for (int32_t i = 0; i < 3; i++) {
        (void)stream_again(&pg, "SELECT true", 4, false);
    }
    assert_int_equal(count_runs(&pg, "generic_plans"), 1);
    for (size_t i = 0; i < HEARTH_PG_REPEATED; i++) {
        pg.repeated[i].prepared_mono_ns -= HEARTH_PG_PREPARED_NS;
    }
    for (int i = 0; i < 3; i++) {
        for (int is_ahead = 0; is_ahead <= 1; is_ahead++) {
            assert_int_equal(stream_again(&pg, "SELECT true", 4, is_ahead == 1), 10);
            assert_int_equal(count_prepared(&pg), i > 0 || is_ahead == 1);
        }
    }
    assert_int_equal(count_runs(&pg, "generic_plans"), 4);

    /* What is run seldom is not. */
    assert_int_equal(hearth_pg_connect(&pg, 60000, NULL), HEARTH_OK);
    pg.is_direct = true;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(stream_again(&pg, "SELECT true", 4, false), 10);
        for (size_t k = 0; k < HEARTH_PG_REPEATED; k++) {
            pg.repeated[k].last_mono_ns -= HEARTH_PG_RUN_AGAIN_NS;
        }
    }
    assert_int_equal(count_prepared(&pg), 0);
    hearth_pg_close(&pg);
}

static void wait_until_nothing_runs(void)
{
    for (int i = 0; i < 4000; i++) {
        if (pg_cluster_int(
                g_url,
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hearthd' AND"
                " state = 'active'") == 0) {
            return;
        }
        (void)usleep(5000);
    }
    fail_msg("a statement that was given up goes on in PostgreSQL");
}

static void a_deadline_ends_the_statement_in_postgresql(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 200 * HEARTH_NS_PER_MS);
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_pg_fault fault;
    int64_t from_ns = hearth_clock_mono_ns();
    assert_int_equal(hearth_pg_exec(&pg, "SELECT pg_sleep(60)", NULL, &cancel, NULL, &fault, &err),
                     HEARTH_DEADLINE_EXCEEDED);
    assert_true(hearth_clock_mono_ns() - from_ns < 30 * HEARTH_NS_PER_SEC);
    assert_int_equal(fault, HEARTH_PG_FAULT_CANCELLED);
    assert_null(pg.conn);
    wait_until_nothing_runs();
    /* A connection's own patience counts where the request has none. */
    pg = connect_pg();
    pg.timeout_ms = 100;
    assert_int_equal(hearth_pg_exec(&pg, "SELECT pg_sleep(60)", NULL, NULL, NULL, &fault, &err),
                     HEARTH_DEADLINE_EXCEEDED);
    wait_until_nothing_runs();
}

static void a_statement_ends_in_postgresql_after_its_client_has_gone(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC);
    pg_cluster_run(g_url, "CREATE TABLE held (i int)");
    PGconn *locker = pg_cluster_connect(g_url);
    PQclear(PQexec(locker, "BEGIN; LOCK TABLE held"));

    /* The connection ends without a request to cancel, as that of a killed process does. */
    assert_int_equal(PQsendQuery(pg.conn, "SELECT count(*) FROM held"), 1);
    while (PQflush(pg.conn) == 1) {
    }
    const char *waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while (pg_cluster_int(g_url, waiting) == 0) {
        (void)usleep(1000);
    }
    hearth_pg_close(&pg);
    while (pg_cluster_int(g_url, waiting) != 0) {
        assert_int_equal(hearth_cancel_check(&cancel, NULL), HEARTH_OK);
        (void)usleep(10000);
    }

    PQfinish(locker);
    pg_cluster_run(g_url, "DROP TABLE held");
}

static void a_deadline_holds_although_postgresql_ignores_the_cancellation(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_pg_fault fault;
    pg.timeout_ms = 100;
    assert_int_equal(kill(g_cluster.pid, SIGSTOP), 0); /* connections open, and nobody reads */
    int64_t from_ns = hearth_clock_mono_ns();
    enum hearth_status status =
        hearth_pg_exec(&pg, "SELECT pg_sleep(60)", NULL, NULL, NULL, &fault, &err);
    int64_t took_ns = hearth_clock_mono_ns() - from_ns;
    assert_int_equal(kill(g_cluster.pid, SIGCONT), 0);
    assert_int_equal(status, HEARTH_DEADLINE_EXCEEDED);
    assert_true(took_ns < 20 * HEARTH_NS_PER_SEC);
    wait_until_nothing_runs(); /* the request arrives when PostgreSQL goes on */
}

static void a_deadline_that_has_just_passed_does_not_wait_for_ever(void **state)
{
    (void)state;
    const int64_t now_ns = 1000 * HEARTH_NS_PER_SEC;
    assert_int_equal(hearth_pg_limit_poll(now_ns - 10 * HEARTH_NS_PER_MS, now_ns), 0);
    assert_int_equal(hearth_pg_limit_poll(0, now_ns), 0);
    assert_int_equal(hearth_pg_limit_poll(now_ns + 3 * HEARTH_NS_PER_MS, now_ns), 4);
    assert_int_equal(hearth_pg_limit_poll(INT64_MAX, now_ns), 50);
}

static enum hearth_status count_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct hearth_cancel *cancel = context;
    (void)err;
    if (hearth_pg_i32(row, 0, 0) == 10) {
        atomic_store(&cancel->cancelled, true);
    }
    return HEARTH_OK;
}

static void a_cancelled_stream_stops_between_rows(void **state)
{
    (void)state;
    struct hearth_pg pg = connect_pg();
    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, INT64_MAX);
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_pg_fault fault;
    assert_int_equal(hearth_pg_stream(&pg, "SELECT generate_series(1, 100000000)", NULL, &cancel,
                                      count_row, &cancel, &fault, &err),
                     HEARTH_CANCELLED);
    wait_until_nothing_runs();
    hearth_pg_close(&pg);
}

static void a_wrong_password_is_not_shown(void **state)
{
    (void)state;
    /* trust accepts any password, so let the role be refused by name */
    char url[512];
    (void)snprintf(url, sizeof url, "host=%s dbname=postgres user=nobody password=geheim99",
                   g_cluster.dir);
    struct hearth_pg pg = {.url = test_secret(url)};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_pg_connect(&pg, 60000, &err), HEARTH_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "nobody"));
    assert_null(strstr(err.msg, "geheim99"));
    assert_null(pg.conn);
}

static void a_pool_waits_and_replaces_dead_connections(void **state)
{
    (void)state;
    struct hearth_pool *pool = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_pool_new(test_secret(g_url), 2, &pool, &err), HEARTH_OK);
    struct hearth_pg *a = NULL, *b = NULL, *c = NULL;
    assert_int_equal(hearth_pool_take(pool, NULL, &a, &err), HEARTH_OK);
    assert_int_equal(hearth_pool_take(pool, NULL, &b, &err), HEARTH_OK);
    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 100 * HEARTH_NS_PER_MS);
    assert_int_equal(hearth_pool_take(pool, &cancel, &c, &err), HEARTH_DEADLINE_EXCEEDED);
    hearth_pool_give(pool, a);
    assert_int_equal(hearth_pool_take(pool, NULL, &c, &err), HEARTH_OK);
    assert_ptr_equal(a, c);
    /* One is given back inside a transaction, the other is terminated while nobody looks. */
    assert_int_equal(hearth_pg_script(b, "BEGIN", NULL, &err), HEARTH_OK);
    hearth_pool_give(pool, b);
    hearth_pool_give(pool, c);
    pg_cluster_run(
        g_url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name ="
        " 'hearthd'");
    assert_int_equal(hearth_pool_take(pool, NULL, &a, &err), HEARTH_OK);
    assert_int_equal(hearth_pg_script(a, "SELECT 1", NULL, &err), HEARTH_OK);
    hearth_pool_give(pool, a);
    hearth_pool_free(pool);
}

static void leaves_are_named_by_the_date(void **state)
{
    (void)state;
    char name[64];
    hearth_partition_name("profile", 0, name);
    assert_string_equal(name, "hearth_data.profile_19700101");
    hearth_partition_name("profile", -1, name);
    assert_string_equal(name, "hearth_data.profile_19691231");
    hearth_partition_name("dict_chunk", 20777, name);
    assert_string_equal(name, "hearth_data.dict_chunk_20261120");
    hearth_partition_name("profile", 19782, name);
    assert_string_equal(name, "hearth_data.profile_20240229");
    hearth_partition_name("profile", 11016, name);
    assert_string_equal(name, "hearth_data.profile_20000229");
    hearth_partition_name("profile", 47540, name);
    assert_string_equal(name, "hearth_data.profile_21000228");
    hearth_partition_name("profile", 47541, name);
    assert_string_equal(name, "hearth_data.profile_21000301");
}

/* ---- synchronous standbys ---- */

#define WRITE "SELECT pg_logical_emit_message(true, 'test', 'x')"

static bool cancel_wait_for_standby(int pid)
{
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event ="
                   " 'SyncRep' AND pid = %d",
                   pid);
    return pg_cluster_int(g_url, sql) == 1;
}

/* From here on, commits wait for a standby, which does not exist. */
static void demand_standby(void)
{
    PGconn *conn = pg_cluster_connect(g_url);
    pg_cluster_run(g_url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    pg_cluster_run(g_url, "SELECT pg_reload_conf()");

    /* Processes read the setting at different times: write until a commit waits. */
    for (bool waits = false; !waits;) {
        assert_int_equal(PQsendQuery(conn, WRITE), 1);
        while (PQisBusy(conn)) {
            waits = waits || cancel_wait_for_standby(PQbackendPID(conn));
            assert_int_equal(PQconsumeInput(conn), 1);
        }
        for (PGresult *result; (result = PQgetResult(conn)) != NULL;) {
            PQclear(result);
        }
    }
    PQfinish(conn);
}

enum way {
    BY_EXEC,
    BY_STREAM,
    BY_SCRIPT,
    BY_PIPELINE,
};

static enum hearth_status send_write(struct hearth_pg *pg, enum way way, struct hearth_err *err)
{
    switch (way) {
    case BY_EXEC:
        return hearth_pg_send_ahead(pg, WRITE, NULL, false, err);
    case BY_STREAM:
        return hearth_pg_send_ahead(pg, WRITE, NULL, true, err);
    case BY_SCRIPT:
        return hearth_pg_script_send(pg, "BEGIN; " WRITE "; COMMIT; SELECT 1", NULL, err);
    case BY_PIPELINE:
        break;
    }

    HEARTH_TRY(hearth_pg_pipeline_begin(pg, NULL, err));
    HEARTH_TRY(hearth_pg_pipeline_prepare(pg, "write", WRITE, NULL, err));
    HEARTH_TRY(hearth_pg_pipeline_run(pg, "write", 0, NULL, NULL, NULL, err));
    return hearth_pg_pipeline_end(pg, NULL, err);
}

static enum hearth_status ignore_row(void *context, const PGresult *row, struct hearth_err *err)
{
    (void)context;
    (void)row;
    (void)err;
    return HEARTH_OK;
}

static enum hearth_status await_write(struct hearth_pg *pg, enum way way,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    PGresult *result = NULL;

    if (way == BY_EXEC) {
        return hearth_pg_exec(pg, WRITE, NULL, NULL, NULL, ret_fault, err);
    }
    if (way == BY_STREAM) {
        return hearth_pg_stream(pg, WRITE, NULL, NULL, ignore_row, NULL, ret_fault, err);
    }

    do {
        HEARTH_TRY(way == BY_SCRIPT ? hearth_pg_script_next(pg, &result, ret_fault, err)
                                    : hearth_pg_pipeline_next(pg, &result, ret_fault, err));
        PQclear(result);
    } while (result != NULL);

    return HEARTH_OK;
}

static int forget_standby(void **state)
{
    (void)state;
    pg_cluster_run(g_url, "ALTER SYSTEM RESET synchronous_standby_names");
    pg_cluster_run(g_url, "SELECT pg_reload_conf()");
    return 0;
}

static void
a_commit_that_did_not_wait_for_the_standby_fails_as_if_the_connection_were_lost(void **state)
{
    (void)state;
    demand_standby();
    for (enum way way = BY_EXEC; way <= BY_PIPELINE; way++) {
        struct hearth_pg pg = {.url = test_secret(g_url)}; /* not moved: notices go to it */
        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        assert_int_equal(hearth_pg_connect(&pg, 60000, &err), HEARTH_OK);
        pg.is_direct = true;
        assert_int_equal(send_write(&pg, way, &err), HEARTH_OK);
        while (!cancel_wait_for_standby(PQbackendPID(pg.conn))) {
        }

        assert_int_equal(await_write(&pg, way, &fault, &err), HEARTH_UNAVAILABLE);
        assert_int_equal(fault, HEARTH_PG_FAULT_CONNECTION);
        assert_non_null(strstr(err.msg, "standby"));
        assert_null(pg.conn);
        assert_true(pg.lacks_standby);

        /* What follows is not in doubt. */
        assert_int_equal(hearth_pg_connect(&pg, 60000, &err), HEARTH_OK);
        assert_false(pg.lacks_standby);
        assert_int_equal(hearth_pg_exec(&pg, "SELECT 1", NULL, NULL, NULL, &fault, &err),
                         HEARTH_OK);
        hearth_pg_close(&pg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_classified_by_sqlstate),
        cmocka_unit_test(a_connection_that_ends_differs_from_one_that_postgresql_has_lost),
        cmocka_unit_test(a_command_of_citus_that_lost_its_node_may_be_repeated),
        cmocka_unit_test(a_full_disk_is_named),
        cmocka_unit_test(parameters_are_read_back_unchanged),
        cmocka_unit_test(rows_are_copied_in_binary),
        cmocka_unit_test(a_refused_copy_fails_with_its_reason),
        cmocka_unit_test(a_pipeline_commits_all_of_its_statements_or_none),
        cmocka_unit_test(a_statement_that_is_run_again_is_prepared_on_a_direct_connection_only),
        cmocka_unit_test(a_prepared_statement_that_fails_is_forgotten),
        cmocka_unit_test(a_stream_that_is_run_again_has_one_plan_for_all_values),
        cmocka_unit_test(a_stream_with_one_plan_that_fails_leaves_the_connection_as_it_was),
        cmocka_unit_test(a_stream_is_not_prepared_where_it_is_not_worth_it),
        cmocka_unit_test(statements_prepared_long_ago_are_prepared_again),
        cmocka_unit_test(a_deadline_ends_the_statement_in_postgresql),
        cmocka_unit_test(a_statement_ends_in_postgresql_after_its_client_has_gone),
        cmocka_unit_test(a_deadline_holds_although_postgresql_ignores_the_cancellation),
        cmocka_unit_test(a_deadline_that_has_just_passed_does_not_wait_for_ever),
        cmocka_unit_test(a_cancelled_stream_stops_between_rows),
        cmocka_unit_test(a_wrong_password_is_not_shown),
        cmocka_unit_test(a_pool_waits_and_replaces_dead_connections),
        cmocka_unit_test(leaves_are_named_by_the_date),
        cmocka_unit_test_teardown(
            a_commit_that_did_not_wait_for_the_standby_fails_as_if_the_connection_were_lost,
            forget_standby),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
