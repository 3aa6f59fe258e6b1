/* test_pg_rows.c -- statements by tables of columns: values, NULL, limits, lost connections, wrong tables. */
#include "hearth/model/agent.h"

#include "session/statements.h"
#include "step_fixture.h"
#include "store_scope.h"

#include <signal.h>
#include <sys/wait.h>

struct sample {
    int64_t number;
    struct hearth_str text, bytes;
    struct hearth_str *texts;
    size_t n_texts;
    struct hearth_property *pairs;
    size_t n_pairs;
    int32_t small;
    bool flag;
    struct hearth_hash128 id;
};

#define SAMPLE(kind, member) HEARTH_COLUMN(kind, struct sample, member)
static const struct hearth_column all_columns[] = {
    SAMPLE(I32, small),
    SAMPLE(I64, number),
    SAMPLE(BOOL, flag),
    SAMPLE(TEXT, text),
    SAMPLE(BYTES, bytes),
    HEARTH_COLUMN_LIST(TEXTS, struct sample, texts, n_texts),
    HEARTH_COLUMN_LIST(PAIRS, struct sample, pairs, n_pairs),
};
static const struct hearth_row_type all_rows = HEARTH_ROW_TYPE(all_columns, struct sample);

static const struct hearth_column text_columns[] = {SAMPLE(TEXT, text)};
static const struct hearth_row_type text_rows = HEARTH_ROW_TYPE(text_columns, struct sample);

static struct hearth_scope scope_of(struct fixture *fix)
{
    return (struct hearth_scope){.store = fix->store, .arena = &fix->arena};
}

static void every_kind_of_column_goes_to_its_member(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);

    struct sample *rows;
    size_t n;
    assert_ok(hearth_store_select(
        &scope,
        "SELECT n::int4, n::int8 * 10000000000, (n = 2)::int4, 'text ' || n, '\\x00ff'::bytea,"
        " ARRAY['a', 'b'], ARRAY['k'], ARRAY['v'] FROM generate_series(1, 2) n ORDER BY n",
        NULL, &all_rows, &rows, &n, &err));

    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].small, i + 1);
        assert_true(rows[i].number == (int64_t)(i + 1) * INT64_C(10000000000));
        assert_int_equal(rows[i].flag, i == 1);
        assert_string_equal(rows[i].text.p, i == 0 ? "text 1" : "text 2");
        assert_int_equal(rows[i].bytes.n, 2);
        assert_memory_equal(rows[i].bytes.p, "\x00\xff", 2);
        assert_int_equal(rows[i].n_texts, 2);
        assert_string_equal(rows[i].texts[1].p, "b");
        assert_int_equal(rows[i].n_pairs, 1);
        assert_string_equal(rows[i].pairs[0].name.p, "k");
        assert_string_equal(rows[i].pairs[0].value.p, "v");
        assert_true(rows[i].id.hi == 0 && rows[i].id.lo == 0);
    }
    close_fixture(&fix);
}

static void null_is_zero_false_or_empty(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);

    struct sample row;
    bool found;
    assert_ok(hearth_store_select_one(&scope,
                                      "SELECT NULL::int4, NULL::int8, NULL::int4, NULL::text,"
                                      " NULL::bytea, '{}'::text[], '{}'::text[], '{}'::text[]",
                                      NULL, &all_rows, &row, &found, &err));
    assert_true(found);
    assert_int_equal(row.small, 0);
    assert_int_equal(row.number, 0);
    assert_false(row.flag);
    assert_int_equal(row.text.n, 0);
    assert_non_null(row.text.p);
    assert_int_equal(row.bytes.n, 0);
    assert_int_equal(row.n_texts, 0);
    assert_int_equal(row.n_pairs, 0);
    close_fixture(&fix);
}

static void no_rows_are_an_empty_array_and_leave_the_single_row_alone(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);

    struct sample *rows = NULL, row = {.small = 7};
    size_t n = 9;
    bool found = true;
    assert_ok(
        hearth_store_select(&scope, "SELECT '' WHERE false", NULL, &text_rows, &rows, &n, &err));
    assert_int_equal(n, 0);
    assert_non_null(rows);
    assert_ok(hearth_store_select_one(&scope, "SELECT '' WHERE false", NULL, &text_rows, &row,
                                      &found, &err));
    assert_false(found);
    assert_int_equal(row.small, 7);
    close_fixture(&fix);
}

static void the_first_of_several_rows_is_the_single_row(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);

    struct sample row;
    bool found;
    size_t n = 0;
    static const char sql[] = "SELECT n::text FROM generate_series(1, 3) n ORDER BY n";
    assert_ok(hearth_store_select_one(&scope, sql, NULL, &text_rows, &row, &found, &err));
    assert_true(found);
    assert_string_equal(row.text.p, "1");
    assert_ok(hearth_store_run(&scope, sql, NULL, &n, &err));
    assert_int_equal(n, 3);
    close_fixture(&fix);
}

static void an_arena_at_its_limit_refuses_the_rows(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 100000);
    struct hearth_scope scope = {.store = fix.store, .arena = &arena};

    struct sample *rows = NULL;
    size_t n = 9;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_select(&scope,
                                         "SELECT repeat('x', 1000) FROM generate_series(1, 500)",
                                         NULL, &text_rows, &rows, &n, &err),
                     HEARTH_NO_MEMORY);
    assert_null(rows);
    assert_int_equal(n, 9);
    hearth_arena_release(&arena);
    close_fixture(&fix);
}

static void a_list_with_more_names_than_values_is_corrupt(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);

    static const struct hearth_column columns[] = {
        HEARTH_COLUMN_LIST(PAIRS, struct sample, pairs, n_pairs)};
    static const struct hearth_row_type pair_rows = HEARTH_ROW_TYPE(columns, struct sample);
    struct sample *rows = NULL;
    size_t n = 9;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_select(&scope, "SELECT ARRAY['a', 'b'], ARRAY['1']", NULL,
                                         &pair_rows, &rows, &n, &err),
                     HEARTH_CORRUPT);
    assert_string_equal(err.msg, "a stored list of properties has 2 names, but 1 values");
    assert_int_equal(n, 9);
    close_fixture(&fix);
}

/* ---- wrong tables ---- */

static enum hearth_status select_two_columns_as_one(const struct hearth_scope *scope,
                                                    struct hearth_err *err)
{
    struct sample *rows;
    size_t n;
    return hearth_store_select(scope, "SELECT 'a' AS first, 'b' AS second", NULL, &text_rows, &rows,
                               &n, err);
}

static void a_table_with_the_wrong_number_of_columns_is_an_internal_error(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);
#ifdef NDEBUG
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(select_two_columns_as_one(&scope, &err), HEARTH_INTERNAL);
    assert_string_equal(err.msg,
                        "a statement returns 2 columns, but its row type has 1: first, second");
#else
    pid_t child = fork();
    if (child == 0) {
        struct hearth_err err = HEARTH_ERR_INIT;
        (void)signal(SIGABRT, SIG_DFL);
        (void)freopen("/dev/null", "w", stderr);
        (void)select_two_columns_as_one(&scope, &err);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
#endif
    close_fixture(&fix);
}

/* ---- parameters ---- */

static const struct hearth_column param_columns[] = {
    SAMPLE(I32, small), SAMPLE(I64, number),  SAMPLE(BOOL, flag),
    SAMPLE(TEXT, text), SAMPLE(BYTES, bytes), SAMPLE(UUID, id),
};
static const struct hearth_row_type param_rows = HEARTH_ROW_TYPE(param_columns, struct sample);

static void structs_become_arrays_for_unnest(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);
    const struct sample given[2] = {
        {.small = -1, .number = INT64_MIN, .flag = true, .text = HEARTH_STR("one")},
        {.small = 2, .bytes = HEARTH_STR("\x01\x02"), .id = {1, 2}},
    };
    static const char sql[] =
        "SELECT concat_ws('|', s, n, b, t, encode(y, 'hex'), u) FROM unnest($1::int4[], $2::int8[],"
        " $3::int4[], $4::text[], $5::bytea[], $6::uuid[]) x (s, n, b, t, y, u) ORDER BY s";

    struct sample *rows;
    size_t n;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &fix.arena);
    hearth_pg_param_rows(&params, &param_rows, given, 2);
    assert_ok(hearth_store_select(&scope, sql, &params, &text_rows, &rows, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].text.p, "-1|-9223372036854775808|1|one||"
                                        "00000000-0000-0000-0000-000000000000");
    assert_string_equal(rows[1].text.p, "2|0|0||0102|00000000-0000-0002-0000-000000000001");

    hearth_pg_params_init(&params, &fix.arena);
    hearth_pg_param_rows(&params, &param_rows, NULL, 0);
    assert_ok(hearth_store_select(&scope, sql, &params, &text_rows, &rows, &n, &err));
    assert_int_equal(n, 0);
    close_fixture(&fix);
}

static void parameters_without_memory_fail_the_statement(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 64);
    struct hearth_scope scope = scope_of(&fix);
    const struct sample given[10] = {{.small = 1}};

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_rows(&params, &param_rows, given, 10);
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_run(&scope, "SELECT $1", &params, NULL, &err), HEARTH_NO_MEMORY);
    hearth_arena_release(&arena);
    close_fixture(&fix);
}

/* ---- connections and transactions ---- */

static void end_other_connections(struct fixture *fix)
{
    struct hearth_scope scope = scope_of(fix);
    assert_ok(hearth_store_run(&scope,
                               "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                               " pid <> pg_backend_pid() AND backend_type = 'client backend'",
                               NULL, NULL, &err));
}

/* Ends its own connection at the first attempt. */
static enum hearth_status count_attempts(void *context, struct hearth_transaction *transaction,
                                         struct hearth_err *err)
{
    unsigned *n_attempts = context;
    *n_attempts = transaction->attempt;
    HEARTH_TRY(
        hearth_transaction_run(transaction, "INSERT INTO rows_test VALUES (1)", NULL, NULL, err));
    return transaction->attempt == 1
               ? hearth_transaction_run(
                     transaction, "SELECT pg_terminate_backend(pg_backend_pid())", NULL, NULL, err)
               : HEARTH_OK;
}

static enum hearth_status insert_and_fail(void *context, struct hearth_transaction *transaction,
                                          struct hearth_err *err)
{
    (void)context;
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));
    HEARTH_TRY(
        hearth_transaction_run(transaction, "INSERT INTO rows_test VALUES (2)", NULL, NULL, err));
    return HEARTH_FAIL(err, HEARTH_ABORTED, "changed my mind");
}

static int64_t count_rows(struct fixture *fix)
{
    static const struct hearth_column columns[] = {SAMPLE(I64, number)};
    static const struct hearth_row_type count = HEARTH_ROW_TYPE(columns, struct sample);
    struct hearth_scope scope = scope_of(fix);
    scope.is_owner = true;
    struct sample row;
    bool found;
    assert_ok(hearth_store_select_one(&scope, "SELECT count(*) FROM rows_test", NULL, &count, &row,
                                      &found, &err));
    return row.number;
}

static void a_lost_connection_runs_the_statement_again(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    end_other_connections(&fix);

    struct hearth_scope scope = scope_of(&fix);
    struct sample row;
    bool found;
    for (int i = 0; i < 4; i++) {
        assert_ok(hearth_store_select_one(&scope, "SELECT 'still here'", NULL, &text_rows, &row,
                                          &found, &err));
        assert_string_equal(row.text.p, "still here");
    }
    close_fixture(&fix);
}

static void a_transaction_is_run_again_or_leaves_nothing(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = {.store = fix.store, .tenant = HEARTH_STR("t")};
    scope.is_owner = true; /* the statements are those of no tenant */
    assert_ok(hearth_store_run(&scope, "CREATE TABLE rows_test (n int)", NULL, NULL, &err));

    unsigned n_attempts = 0;
    assert_ok(hearth_store_in_transaction(&scope, count_attempts, &n_attempts, &err));
    assert_int_equal(n_attempts, 2);
    assert_int_equal(count_rows(&fix), 1);

    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_in_transaction(&scope, insert_and_fail, NULL, &err),
                     HEARTH_ABORTED);
    assert_int_equal(count_rows(&fix), 1);
    close_fixture(&fix);
}

static void a_closed_store_is_unavailable(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_scope scope = scope_of(&fix);
    atomic_store(&fix.store->closing, true);

    struct hearth_err err = HEARTH_ERR_INIT;
    unsigned n_attempts = 0;
    assert_int_equal(hearth_store_run(&scope, "SELECT 1", NULL, NULL, &err), HEARTH_UNAVAILABLE);
    assert_int_equal(hearth_store_in_transaction(&scope, count_attempts, &n_attempts, &err),
                     HEARTH_UNAVAILABLE);
    assert_int_equal(n_attempts, 0);
    atomic_store(&fix.store->closing, false);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_column_goes_to_its_member),
        cmocka_unit_test(null_is_zero_false_or_empty),
        cmocka_unit_test(no_rows_are_an_empty_array_and_leave_the_single_row_alone),
        cmocka_unit_test(the_first_of_several_rows_is_the_single_row),
        cmocka_unit_test(an_arena_at_its_limit_refuses_the_rows),
        cmocka_unit_test(a_list_with_more_names_than_values_is_corrupt),
        cmocka_unit_test(a_table_with_the_wrong_number_of_columns_is_an_internal_error),
        cmocka_unit_test(structs_become_arrays_for_unnest),
        cmocka_unit_test(parameters_without_memory_fail_the_statement),
        cmocka_unit_test(a_lost_connection_runs_the_statement_again),
        cmocka_unit_test(a_transaction_is_run_again_or_leaves_nothing),
        cmocka_unit_test(a_closed_store_is_unavailable),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
