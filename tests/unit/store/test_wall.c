/*
 * test_wall.c -- row-level security: statements without any condition on the tenant, on every table, find and change rows
 * of the entered tenants only; real reads with the ids of another tenant find nothing; without the right to make the role
 * the server says so.
 */
#include "read_plans.h"
#include "session/statements.h"

#define A HEARTH_STR("a")
#define B HEARTH_STR("b")

/* One row of tenant `a` and one of `b` in each table with a policy; checks, keys to other tables and defaults do not matter. */
static const char FILL[] =
    "CREATE FUNCTION public.fill() RETURNS void LANGUAGE plpgsql AS $$ DECLARE r record; list "
    "text; texts text; BEGIN"
    " FOR r IN SELECT conrelid::regclass AS t, conname FROM pg_constraint WHERE connamespace = "
    "'hearth_data'::regnamespace"
    "  AND contype IN ('c', 'f') AND coninhcount = 0 ORDER BY contype DESC LOOP"
    "  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', r.t, r.conname); END LOOP;"
    " FOR r IN SELECT c.oid::regclass AS t, c.relname FROM pg_class c WHERE relnamespace = "
    "'hearth_data'::regnamespace"
    "  AND relkind = 'p' LOOP"
    "  EXECUTE format('CREATE TABLE hearth_data.%I PARTITION OF %s DEFAULT', r.relname || '_rest', "
    "r.t); END LOOP;"
    " FOR n IN 1 .. 2 LOOP FOR r IN SELECT c.oid, c.oid::regclass AS t, c.relname FROM pg_class c "
    "WHERE relrowsecurity"
    "  AND relnamespace = 'hearth_data'::regnamespace AND relname NOT IN ('span_index_begin', "
    "'application_clock') LOOP"
    "  SELECT string_agg(quote_ident(attname), ','), string_agg(CASE"
    "   WHEN attname = 'tenant' OR (attname = 'name' AND r.relname = 'tenant') THEN "
    "quote_literal(chr(96 + n))"
    "   WHEN atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype) "
    "THEN n::text"
    "   WHEN atttypid = 'text'::regtype THEN quote_literal(chr(96 + n)) WHEN atttypid = "
    "'uuid'::regtype"
    "   THEN quote_literal(md5(n::text)) || '::uuid' WHEN atttypid = 'bool'::regtype THEN 'false'"
    "   WHEN atttypid = 'timestamptz'::regtype THEN 'now()' WHEN atttypid = 'jsonb'::regtype THEN "
    "'''{}'''"
    "   WHEN atttypid = 'bytea'::regtype THEN '''''' ELSE '''{}''' END, ',') INTO list, texts FROM "
    "pg_attribute"
    "   WHERE attrelid = r.oid AND attnum > 0 AND NOT attisdropped;"
    "  EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s)', r.t, list, texts);"
    " END LOOP; END LOOP; END $$; SELECT public.fill()";

/* Text: "table statement=rows" of each table where the number of rows is not `want`. */
static const char LOOK[] =
    "CREATE FUNCTION public.look(names text[], want int) RETURNS text LANGUAGE plpgsql AS $$ "
    "DECLARE r record; n int;"
    " wrong text := ''; BEGIN FOR r IN SELECT c.oid::regclass AS t, (SELECT attname FROM "
    "pg_attribute WHERE attrelid = c.oid"
    "  AND attnum > 0 ORDER BY attnum LIMIT 1) AS col, (SELECT attname FROM pg_attribute WHERE "
    "attrelid = c.oid AND attnum > 0"
    "  AND attidentity = '' ORDER BY attnum LIMIT 1) AS plain FROM pg_class c WHERE relrowsecurity "
    "AND relnamespace ="
    "  'hearth_data'::regnamespace AND relname NOT IN ('span_index_begin', 'application_clock') "
    "LOOP"
    "  PERFORM hearth_data.enter_tenants(names, '{1,2}', 'postgres_tenant');"
    "  EXECUTE format('SELECT count(*) FROM %s', r.t) INTO n;"
    "  IF n <> want THEN wrong := wrong || format('%s select=%s ', r.t, n); END IF;"
    "  EXECUTE format('WITH u AS (UPDATE %s SET %I = %I RETURNING 1) SELECT count(*) FROM u', r.t, "
    "r.plain, r.plain) INTO n;"
    "  IF n <> want THEN wrong := wrong || format('%s update=%s ', r.t, n); END IF;"
    "  BEGIN EXECUTE format('WITH d AS (DELETE FROM %s RETURNING 1) SELECT count(*) FROM d', r.t) "
    "INTO n;"
    "   IF n <> want THEN wrong := wrong || format('%s delete=%s ', r.t, n); END IF;"
    "   RAISE EXCEPTION USING ERRCODE = 'P0099'; EXCEPTION WHEN SQLSTATE 'P0099' THEN NULL; END;"
    "  RESET ROLE; END LOOP; RETURN wrong; END $$";

static void look(const char *url, const char *names, int want)
{
    char sql[200], text[4000] = "";
    (void)snprintf(sql, sizeof sql, "SELECT public.look(%s, %d)", names, want);
    pg_cluster_text(url, sql, text, sizeof text);
    assert_string_equal(text, "");
}

static void statements_without_a_condition_find_and_change_only_the_tenants_rows(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    store_close_soon(store);
    pg_cluster_run(url, FILL);
    pg_cluster_run(url, LOOK);
    look(url, "'{a}'", 1);
    look(url, "'{b}'", 1);
    look(url, "'{a,b}'", 2);
    look(url, "'{}'", 0);
    look(url, "'{nobody}'", 0);
}

static void every_table_has_a_policy_or_is_closed_to_the_role(void **state)
{
    (void)state;
    char url[256], text[2000] = "";
    struct hearth_store *store = open_fresh(url, NULL);
    store_close_soon(store);

    /* Tables without a policy: the server's own. A new table belongs here or gets a policy in its migration. */
    pg_cluster_text(
        url,
        "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND NOT relispartition AND NOT relrowsecurity AND relnamespace = "
        "'hearth_data'::regnamespace",
        text, sizeof text);
    assert_string_equal(text, "access_clock access_grant access_session access_token access_user "
                              "audit catalog_clock ingest_batch lease migration push_id writer");

    /* The role may use tables with a policy only; not even leaves. */
    pg_cluster_text(
        url,
        "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class c WHERE relkind IN ('r', 'p')"
        " AND has_table_privilege('postgres_tenant', c.oid, 'SELECT, INSERT, UPDATE, DELETE') <>"
        " (relrowsecurity AND EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid))"
        " AND relnamespace = 'hearth_data'::regnamespace",
        text, sizeof text);
    assert_string_equal(text, "");
    assert_int_equal(
        pg_cluster_int(url,
                       "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r' AND"
                       " relnamespace = 'hearth_data'::regnamespace") > 10,
        1);
}

static void reads_with_the_ids_of_another_tenant_find_nothing(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    push_profile(store, &g_world, "svc", "pod", T0, 20); /* of tenant anonymous */
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_series_hit *hits;
    size_t n = select_hits(store, TENANT, "{}", T0 - HOUR, T0 + HOUR, &arena, &hits);
    assert_true(n > 0);
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0 - HOUR, T0 + HOUR, hits, n};
    (void)finish_plan(store, &hand, 1);

    const struct hearth_view both[] = {{.tenant = A}, {.tenant = TENANT}};
    const struct {
        struct hearth_scope scope;
        bool found;
    } reads[] = {{{.store = store, .tenant = TENANT}, true},
                 {{.store = store, .tenant = A}, false},
                 {{.store = store}, false},
                 {{.store = store, .tenants = both, .n_tenants = 2}, true},
                 {{.store = store, .tenant = TENANT, .tenants = both, .n_tenants = 1}, false}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(reads); i++) {
        struct counter counter = {0};
        assert_ok(hearth_store_read(&reads[i].scope, &hand.plan, count_row, &counter, &err));
        assert_int_equal(counter.n_rows, reads[i].found ? n : 0);
        const struct hearth_dict *dict;
        struct hearth_dict_key key = {hits[0].service_id, hearth_day_of(T0), store->writer_id};
        if (i > 0) { /* the first would fill the cache */
            enum hearth_status status =
                hearth_store_read_dict(&reads[i].scope, key, 1, &dict, NULL);
            assert_int_equal(status, reads[i].found ? HEARTH_OK : HEARTH_CORRUPT);
            hearth_store_read_dict_release(store, status == HEARTH_OK ? dict : NULL);
        }
        if (reads[i].found && i > 0) {
            break; /* from now on the dictionary is in memory */
        }
    }
    hearth_arena_release(&hand.arena);
    hearth_arena_release(&arena);
    store_close_soon(store);
}

/* A forgotten predicate, through the functions that all rooms use. */
static void a_forgotten_predicate_finds_nothing_and_nothing_outlives_the_transaction(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.max_readers = 1;
    struct hearth_store *store = open_fresh(url, &options);
    push_profile(store, &g_world, "svc", "pod", T0, 20);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    int64_t n = -1;
    bool found;
    struct hearth_err refusal = HEARTH_ERR_INIT;
    for (int i = 0; i < 2; i++) {
        assert_ok(hearth_store_select_one(STORE_SCOPE(store, B, &arena),
                                          "SELECT count(*) FROM hearth_data.service", NULL,
                                          &hearth_i64_rows, &n, &found, &err));
        assert_int_equal(n, 0);
        assert_ok(hearth_store_select_one(STORE_SCOPE(store, TENANT, &arena),
                                          "SELECT count(*) FROM hearth_data.service", NULL,
                                          &hearth_i64_rows, &n, &found, &err));
        assert_int_equal(n, 1);

        /* The same connection, as the owner: no role and no tenant is left. */
        struct hearth_scope own = hearth_scope_of_owner(STORE_SCOPE(store, B, &arena));
        assert_ok(hearth_store_select_one(
            &own,
            "SELECT count(*) FROM hearth_data.profile WHERE current_user = session_user"
            " AND coalesce(current_setting('hearth.tenants', true), '') = ''",
            NULL, &hearth_i64_rows, &n, &found, &err));
        assert_int_equal(n, 1);

        /* A statement that fails leaves the connection usable. */
        assert_int_equal(hearth_store_run(STORE_SCOPE(store, B, &arena),
                                          "SELECT 1 FROM hearth_data.writer", NULL, NULL, &refusal),
                         HEARTH_INTERNAL);
        assert_non_null(strstr(refusal.msg, "permission denied"));
    }
    hearth_arena_release(&arena);
    store_close_soon(store);
}

static void a_missing_role_is_reported_and_an_administrator_can_mend_it(void **state)
{
    (void)state;
    char url[256], limited[300], reason[256];
    pg_cluster_empty_database(&g_cluster, url);
    pg_cluster_run(url, "CREATE ROLE limited LOGIN");
    (void)snprintf(limited, sizeof limited, "ALTER DATABASE test_%d OWNER TO limited",
                   g_cluster.n_databases);
    pg_cluster_run(url, limited);
    (void)snprintf(limited, sizeof limited, "host=%s dbname=test_%d user=limited", g_cluster.dir,
                   g_cluster.n_databases);

    /* auto: it works, and /ready has a line. */
    struct hearth_store *store = open_store(limited);
    assert_true(hearth_store_ready(store, reason));
    assert_non_null(strstr(reason, "row-level security"));
    push_profile(store, &g_world, "svc", "pod", T0, 20);
    store_close_soon(store);

    /* off: no line. */
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.row_level_security = HEARTH_ROW_LEVEL_SECURITY_OFF;
    store = open_ready(limited, &options);
    assert_true(hearth_store_ready(store, reason));
    assert_string_equal(reason, "");
    store_close_soon(store);

    /* require: not ready, until an administrator has made the role. */
    options.row_level_security = HEARTH_ROW_LEVEL_SECURITY_REQUIRE;
    store = store_open_url(limited, &options);
    reason[0] = '\0';
    for (int i = 0; i < 300 && strstr(reason, "limited_tenant") == NULL; i++) {
        (void)usleep(50000);
        assert_false(hearth_store_ready(store, reason));
    }
    assert_non_null(strstr(reason, "limited_tenant"));
    pg_cluster_run(url, "CREATE ROLE limited_tenant NOLOGIN; GRANT limited_tenant TO limited");
    (void)expect_ready(store);
    assert_int_equal(hearth_metric_value(HEARTH_M_ROW_LEVEL_SECURITY), 1);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_without_a_condition_find_and_change_only_the_tenants_rows),
        cmocka_unit_test(every_table_has_a_policy_or_is_closed_to_the_role),
        cmocka_unit_test(reads_with_the_ids_of_another_tenant_find_nothing),
        cmocka_unit_test(a_forgotten_predicate_finds_nothing_and_nothing_outlives_the_transaction),
        cmocka_unit_test(a_missing_role_is_reported_and_an_administrator_can_mend_it),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
