/*
 * test_access_cuts.c -- the connection is cut at each message of each write of tokens, users,
 * sessions, grants and audit events: the write succeeds, and happens once.
 */
#include "access_fixture.h"
#include "pg_proxy.h"

/* A write, and the rows that it adds or leaves. */
struct cut_case {
    const char *name, *marker;
    void (*prepare)(struct access_fixture *fix); /* before the write; may be NULL */
    void (*write)(struct access_fixture *fix);
    const char *count_sql; /* number of rows */
    long long expected;    /* that the write adds; with a preparation: that there are after it */
    int n_versions;        /* that the preparation and the write add */
};

#define TRANSACTION "BEGIN ISOLATION LEVEL READ COMMITTED"

static void write_token(struct access_fixture *fix)
{
    const struct hearth_token token = make_token("tokenA", 1);
    const struct hearth_grant grant = {HEARTH_STR(""), HEARTH_STR("t"), HEARTH_ROLE_INGEST,
                                       HEARTH_STR("")};
    assert_ok(hearth_store_token_add(SCOPE(fix), &token, &grant, 1, &err));
}

static void end_token(struct access_fixture *fix)
{
    assert_ok(hearth_store_token_end(SCOPE(fix), HEARTH_STR("tokenA"), 0, &err));
}

static void write_user(struct access_fixture *fix)
{
    add_user(fix, "alice");
}

static void delete_user(struct access_fixture *fix)
{
    assert_ok(hearth_store_user_delete(SCOPE(fix), HEARTH_STR("alice"), &err));
}

static void change_user(struct access_fixture *fix)
{
    const bool yes = true;
    const struct hearth_user_change change = {.name = HEARTH_STR("alice"), .is_disabled = &yes};
    assert_ok(hearth_store_user_change(SCOPE(fix), &change, &err));
}

static void write_session(struct access_fixture *fix)
{
    add_session(fix, "oidc:bob", 1, 1000, 5);
}

static void end_sessions(struct access_fixture *fix)
{
    size_t n = 0;
    assert_ok(hearth_store_sessions_end(SCOPE(fix), HEARTH_STR("oidc:bob"), &n, &err));
    assert_int_equal(n, 1);
}

static void write_grant(struct access_fixture *fix)
{
    assert_true(add_grant(fix, "user:alice", "t", "") > 0);
}

static void delete_grant(struct access_fixture *fix)
{
    struct hearth_access_rows rows = load(fix);
    assert_int_equal(rows.n_grants, 1);
    assert_ok(hearth_store_grant_delete(SCOPE(fix), rows.grants[0].id, &err));
}

static void write_events(struct access_fixture *fix)
{
    const struct hearth_audit_event event = {.at_ms = now_ms(), .action = HEARTH_STR("login")};
    const struct hearth_audit_event events[] = {event, event, event};
    assert_ok(hearth_store_audit_add(SCOPE(fix), events, 3, &err));
}

/* The first number of a query, by the connection that is never cut. */
static long long count_rows(struct access_fixture *fix, const char *sql)
{
    PGresult *result = PQexec(fix->pg.conn, sql);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    long long n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return n;
}

/*
 * Cuts the write before each message in turn, until none is left. The database has executed a
 * statement whose result is cut, and has not seen one that is cut itself.
 */
static void cut_each_message(struct access_fixture *fix, struct pg_proxy *proxy,
                             const struct cut_case *c)
{
    int made = 1, n_cut = 0;
    proxy->marker = c->marker;
    for (int at = 0; made > 0; at++) {
        hearth_arena_reset(&fix->arena);
        assert_ok(hearth_pg_script(&fix->pg,
                                   "DELETE FROM hearth_data.access_token;"
                                   "DELETE FROM hearth_data.access_user;"
                                   "DELETE FROM hearth_data.access_session;"
                                   "DELETE FROM hearth_data.access_grant;"
                                   "UPDATE hearth_data.access_clock SET version = 1",
                                   NULL, &err));
        if (c->prepare != NULL) {
            c->prepare(fix);
        }

        long long before = c->prepare == NULL ? count_rows(fix, c->count_sql) : 0;
        char type;
        pg_proxy_arm(proxy, at, false, 1);
        c->write(fix);
        made = pg_proxy_disarm(proxy, 1, &type);
        n_cut += made;

        long long n = count_rows(fix, c->count_sql) - before;
        long long version = count_rows(fix, "SELECT version FROM hearth_data.access_clock");
        if (n != c->expected || version != 1 + c->n_versions) {
            fail_msg("%s, cut %d (%c): %lld rows, version %lld", c->name, at, type, n, version);
        }
    }
    assert_true(n_cut >= 8); /* statements were cut, not only the transaction's ends */
}

static void a_write_whose_answer_is_lost_happens_once(void **state)
{
    (void)state;
    static const struct cut_case cases[] = {
        {"token_add", TRANSACTION, NULL, write_token,
         "SELECT (SELECT count(*) FROM hearth_data.access_token) + (SELECT count(*) FROM"
         " hearth_data.access_grant)",
         2, 1},
        {"token_end", TRANSACTION, write_token, end_token,
         "SELECT (SELECT count(*) FROM hearth_data.access_token) + (SELECT count(*) FROM"
         " hearth_data.access_grant)",
         0, 2},
        {"user_add", TRANSACTION, NULL, write_user, "SELECT count(*) FROM hearth_data.access_user",
         1, 1},
        {"user_delete", TRANSACTION, write_user, delete_user,
         "SELECT count(*) FROM hearth_data.access_user", 0, 2},
        {"session_add", TRANSACTION, NULL, write_session,
         "SELECT count(*) FROM hearth_data.access_session", 1, 1},
        {"sessions_end", TRANSACTION, write_session, end_sessions,
         "SELECT count(*) FROM hearth_data.access_session", 0, 2},
        {"grant_add", TRANSACTION, NULL, write_grant,
         "SELECT count(*) FROM hearth_data.access_grant", 1, 1},
        {"grant_delete", TRANSACTION, write_grant, delete_grant,
         "SELECT count(*) FROM hearth_data.access_grant", 0, 2},
        {"audit_add", "INTO hearth_data.audit", NULL, write_events,
         "SELECT count(*) FROM hearth_data.audit", 3, 0},
    };
    struct access_fixture fix;
    open_access(&fix);
    struct pg_proxy *proxy = calloc(1, sizeof *proxy);
    pg_proxy_start(proxy, g_cluster.dir);

    /* A store that reaches the same database through the proxy. */
    char url[300], db[64];
    pg_cluster_text(fix.url, "SELECT current_database()", db, sizeof db);
    (void)snprintf(url, sizeof url, "host=%s dbname=%s user=postgres", proxy->dir, db);
    close_store(fix.store);
    fix.store = open_store(url);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        cut_each_message(&fix, proxy, &cases[i]);
    }

    close_access(&fix);
    pg_proxy_stop(proxy);
    free(proxy);
}

/* A retry that finds a row of somebody else must not take it for its own. */
static void a_name_that_is_taken_is_refused_also_after_a_cut(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct pg_proxy *proxy = calloc(1, sizeof *proxy);
    pg_proxy_start(proxy, g_cluster.dir);
    proxy->marker = TRANSACTION;
    char url[300], db[64];
    pg_cluster_text(fix.url, "SELECT current_database()", db, sizeof db);
    (void)snprintf(url, sizeof url, "host=%s dbname=%s user=postgres", proxy->dir, db);
    add_user(&fix, "alice");
    close_store(fix.store);
    fix.store = open_store(url);

    int made = 1;
    for (int at = 0; made > 0; at++) {
        struct hearth_user user = make_user("alice");
        char type;
        pg_proxy_arm(proxy, at, false, 1);
        assert_fails(hearth_store_user_add(SCOPE(&fix), &user, &err), HEARTH_ALREADY_EXISTS,
                     "alice");
        made = pg_proxy_disarm(proxy, 1, &type);
    }
    change_user(&fix);
    assert_true(load(&fix).users[0].is_disabled);
    close_access(&fix);
    pg_proxy_stop(proxy);
    free(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_whose_answer_is_lost_happens_once),
        cmocka_unit_test(a_name_that_is_taken_is_refused_also_after_a_cut),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
