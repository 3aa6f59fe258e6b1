/* test_store_access.c -- loading, tokens, last uses, grants, several servers, housekeeping. */
#include "access_fixture.h"

/* ---- loading ---- */

static void an_empty_database_has_version_1_and_no_rows(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_access_rows rows = load(&fix);

    assert_int_equal(rows.version, 1);
    assert_int_equal(rows.n_tokens + rows.n_users + rows.n_sessions + rows.n_grants, 0);
    assert_int_equal(version_of(fix.store), 1);
    close_access(&fix);
}

static void all_fields_are_read_back(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);

    struct hearth_token token = make_token("tokenB", 1);
    token.expires_ms = 99000;
    token.last_used_ms = 98000;
    token.last_used_from = HEARTH_STR("10.1.2.3");
    struct hearth_user user = make_user("alice");
    user.last_login_ms = 4000;
    user.is_disabled = true;
    struct hearth_str groups[] = {HEARTH_STR("group:sre"), HEARTH_STR("group:dev")};
    struct hearth_session session = make_session("oidc:bob", 2, 5000);
    session.last_used_ms = 6000;
    session.groups = groups;
    session.n_groups = 2;
    add_token(&fix, &token);
    assert_ok(hearth_store_user_add(SCOPE(&fix), &user, &err));
    assert_ok(hearth_store_session_add(SCOPE(&fix), &session, 0, &err));
    int32_t grant_id = add_grant(&fix, "group:sre", "*", "{service_name=\"api\"}");

    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.n_tokens, 1);
    const struct hearth_token *t = &rows.tokens[0];
    assert_true(hearth_str_eq(t->id, token.id) && hearth_str_eq(t->name, token.name));
    assert_true(hearth_str_eq(t->hash, token.hash));
    assert_true(hearth_str_eq(t->created_by, token.created_by));
    assert_true(t->created_ms == 1000 && t->expires_ms == 99000 && t->last_used_ms == 98000);
    assert_string_equal(t->last_used_from.p, "10.1.2.3");

    assert_int_equal(rows.n_users, 1);
    const struct hearth_user *u = &rows.users[0];
    assert_string_equal(u->name.p, "alice");
    assert_true(hearth_str_eq(u->password, user.password));
    assert_string_equal(u->created_by.p, "user:root");
    assert_true(u->created_ms == 2000 && u->password_ms == 2000 && u->last_login_ms == 4000);
    assert_true(u->is_disabled);

    assert_int_equal(rows.n_sessions, 1);
    const struct hearth_session *s = &rows.sessions[0];
    assert_true(hearth_str_eq(s->hash, session.hash));
    assert_string_equal(s->subject.p, "oidc:bob");
    assert_int_equal(s->n_groups, 2);
    assert_string_equal(s->groups[0].p, "group:sre");
    assert_string_equal(s->groups[1].p, "group:dev");
    assert_true(s->created_ms == 5000 && s->last_used_ms == 6000);
    assert_int_equal(s->expires_ms, session.expires_ms);
    assert_string_equal(s->address.p, "127.0.0.1");
    assert_string_equal(s->agent.p, "browser");

    assert_int_equal(rows.n_grants, 1);
    const struct hearth_stored_grant *g = &rows.grants[0];
    assert_int_equal(g->id, grant_id);
    assert_string_equal(g->grant.subject.p, "group:sre");
    assert_string_equal(g->grant.tenant.p, "*");
    assert_int_equal(g->grant.role, HEARTH_ROLE_VIEWER);
    assert_string_equal(g->grant.selector.p, "{service_name=\"api\"}");
    assert_string_equal(g->created_by.p, "user:root");
    assert_int_equal(g->created_ms, 3000);
    close_access(&fix);
}

static void rows_are_sorted_in_c_order(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    static const char *const names[] = {"a", "Z", "\xc3\xa4", "_", "b"};
    static const char *const sorted[] = {"Z", "_", "a", "b", "\xc3\xa4"};

    for (int i = 0; i < 5; i++) {
        struct hearth_token token = make_token(names[i], i);
        add_token(&fix, &token);
        add_user(&fix, names[i]);
        (void)add_grant(&fix, "group:x", names[i], "");
        (void)add_grant(&fix, names[i], "t", "");
    }

    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.n_grants, 10);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(rows.tokens[i].id.p, sorted[i]);
        assert_string_equal(rows.users[i].name.p, sorted[i]);
    }
    for (size_t i = 1; i < rows.n_grants; i++) {
        const struct hearth_grant *a = &rows.grants[i - 1].grant, *b = &rows.grants[i].grant;
        int order = hearth_str_cmp(a->subject, b->subject);
        assert_true(order < 0 || (order == 0 && hearth_str_cmp(a->tenant, b->tenant) < 0));
    }
    close_access(&fix);
}

static void sessions_that_have_ended_and_unknown_roles_are_not_loaded(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_session session = make_session("oidc:bob", 0, 1000);
    session.expires_ms = now_ms() - 1000;
    assert_ok(hearth_store_session_add(SCOPE(&fix), &session, 0, &err));
    session = make_session("oidc:bob", 1, 1000);
    session.expires_ms = 0; /* never */
    assert_ok(hearth_store_session_add(SCOPE(&fix), &session, 0, &err));
    (void)add_grant(&fix, "group:x", "t", "");
    (void)add_grant(&fix, "group:y", "t", "");
    pg_cluster_run(fix.url, "UPDATE hearth_data.access_grant SET role = 4711 WHERE subject ="
                            " 'group:x'");

    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.n_sessions, 1);
    assert_true(hearth_str_eq(rows.sessions[0].hash, make_hash(1)));
    assert_int_equal(rows.n_grants, 1);
    assert_string_equal(rows.grants[0].grant.subject.p, "group:y");
    close_access(&fix);
}

/* ---- tokens ---- */

static void a_token_has_its_own_grants(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_token token = make_token("tokenA", 1);
    const struct hearth_grant grants[] = {
        {HEARTH_STR("ignored"), HEARTH_STR("t"), HEARTH_ROLE_INGEST, HEARTH_STR("")},
        {HEARTH_STR(""), HEARTH_STR("s"), HEARTH_ROLE_ADMIN, HEARTH_STR("{a=\"b\"}")},
        {HEARTH_STR(""), HEARTH_STR("t"), HEARTH_ROLE_INGEST, HEARTH_STR("")}, /* twice */
    };
    assert_ok(hearth_store_token_add(SCOPE(&fix), &token, grants, 3, &err));
    assert_int_equal(version_of(fix.store), 2);

    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.n_grants, 2);
    assert_string_equal(rows.grants[0].grant.subject.p, "token:tokenA");
    assert_string_equal(rows.grants[0].grant.tenant.p, "s");
    assert_int_equal(rows.grants[0].grant.role, HEARTH_ROLE_ADMIN);
    assert_string_equal(rows.grants[1].grant.tenant.p, "t");
    assert_string_equal(rows.grants[1].created_by.p, "user:root");
    assert_int_equal(rows.grants[1].created_ms, 1000);

    /* The id is taken, also for an equal token. */
    assert_fails(hearth_store_token_add(SCOPE(&fix), &token, grants, 3, &err),
                 HEARTH_ALREADY_EXISTS, "tokenA");
    assert_int_equal(version_of(fix.store), 2);

    /* Deleting it deletes its grants only. */
    (void)add_grant(&fix, "token:tokenAB", "t", "");
    assert_ok(hearth_store_token_end(SCOPE(&fix), token.id, 0, &err));
    rows = load(&fix);
    assert_int_equal(rows.n_tokens, 0);
    assert_int_equal(rows.n_grants, 1);
    assert_fails(hearth_store_token_end(SCOPE(&fix), token.id, 0, &err), HEARTH_NOT_FOUND,
                 "tokenA");
    close_access(&fix);
}

static void a_token_ends_at_the_earliest_of_its_ends(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_token token = make_token("tokenA", 1);
    add_token(&fix, &token);
    static const struct {
        int64_t end_ms, expected_ms;
    } steps[] = {{5000, 5000}, {6000, 5000}, {4000, 4000}, {INT64_MAX, 4000}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(steps); i++) {
        assert_ok(hearth_store_token_end(SCOPE(&fix), token.id, steps[i].end_ms, &err));
        assert_int_equal(load(&fix).tokens[0].expires_ms, steps[i].expected_ms);
    }
    assert_fails(hearth_store_token_end(SCOPE(&fix), HEARTH_STR("other"), 1, &err),
                 HEARTH_NOT_FOUND, "other");
    close_access(&fix);
}

/* ---- last uses ---- */

static void the_latest_use_is_noted_and_the_version_stays(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_token a = make_token("tokenA", 1), b = make_token("tokenB", 2);
    add_token(&fix, &a);
    add_token(&fix, &b);
    add_session(&fix, "oidc:bob", 3, 1000, 0);
    int64_t version = version_of(fix.store);

    const struct hearth_credential_use uses[] = {
        {.id = a.id, .at_ms = 5000, .from = HEARTH_STR("first")},
        {.id = a.id, .at_ms = 9000, .from = hearth_str_n("last\xff", 5)},
        {.id = a.id, .at_ms = 7000, .from = HEARTH_STR("middle")},
        {.hash = make_hash(3), .at_ms = 8000},
        {.hash = make_hash(3), .at_ms = 6000},
        {.id = HEARTH_STR("gone"), .at_ms = 6000},
        {.hash = make_hash(4), .at_ms = 6000},
    };
    assert_ok(hearth_store_access_note_use(SCOPE(&fix), uses, HEARTH_ARRAY_LEN(uses), &err));
    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.tokens[0].last_used_ms, 9000);
    assert_string_equal(rows.tokens[0].last_used_from.p, "last?");
    assert_int_equal(rows.tokens[1].last_used_ms, 0);
    assert_int_equal(rows.sessions[0].last_used_ms, 8000);

    /* Earlier uses, which another server reports late, change nothing. */
    assert_ok(hearth_store_access_note_use(SCOPE(&fix), uses, 1, &err));
    assert_ok(hearth_store_access_note_use(SCOPE(&fix), NULL, 0, &err));
    rows = load(&fix);
    assert_int_equal(rows.tokens[0].last_used_ms, 9000);
    assert_int_equal(rows.version, version);
    close_access(&fix);
}

/* ---- grants ---- */

static void equal_grants_are_stored_once(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    char selector[40000]; /* longer than an index could hold */
    for (size_t i = 0; i + 1 < sizeof selector; i++) {
        selector[i] = (char)('a' + i * i % 23 % 26);
    }
    selector[sizeof selector - 1] = '\0';

    int32_t one = add_grant(&fix, "user:alice", "t", selector);
    int64_t version = version_of(fix.store);
    assert_int_equal(add_grant(&fix, "user:alice", "t", selector), one);
    assert_int_equal(version_of(fix.store), version);
    int32_t two = add_grant(&fix, "user:alice", "t", "");
    assert_int_not_equal(two, one);
    assert_int_equal(version_of(fix.store), version + 1);
    struct hearth_stored_grant editor = make_grant("user:alice", "t", "");
    editor.grant.role = HEARTH_ROLE_EDITOR;
    int32_t three = 0;
    assert_ok(hearth_store_grant_add(SCOPE(&fix), &editor, &three, &err));
    assert_int_not_equal(three, two);

    assert_ok(hearth_store_grant_delete(SCOPE(&fix), one, &err));
    assert_fails(hearth_store_grant_delete(SCOPE(&fix), one, &err), HEARTH_NOT_FOUND, "no grant");
    assert_int_equal(load(&fix).n_grants, 2);
    close_access(&fix);
}

/* ---- several servers ---- */

struct grant_writer {
    pthread_t thread;
    struct access_fixture fix;
    int number;
};

static void *write_grants(void *arg)
{
    struct grant_writer *writer = arg;
    for (int i = 0; i < 20; i++) {
        char subject[32];
        (void)snprintf(subject, sizeof subject, "user:%d", i);
        (void)add_grant(&writer->fix, subject, writer->number == 0 ? "t" : "u", "");
        (void)add_grant(&writer->fix, subject, "both", "");
        const struct hearth_credential_use use = {.id = HEARTH_STR("tokenA"), .at_ms = i + 1};
        assert_ok(hearth_store_access_note_use(SCOPE(&writer->fix), &use, 1, &err));
    }
    return NULL;
}

/* Each version that one server reads has all writes up to it: 1 + grants + token. */
static void two_servers_write_at_once_and_read_ordered_versions(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_token token = make_token("tokenA", 1);
    add_token(&fix, &token);
    struct grant_writer writers[2] = {{.fix = fix, .number = 0}, {.fix = fix, .number = 1}};
    writers[1].fix.store = open_store(fix.url);
    for (int i = 0; i < 2; i++) {
        hearth_arena_init(&writers[i].fix.arena, 0);
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_grants, &writers[i]), 0);
    }

    for (size_t n = 0; n < 60;) {
        hearth_arena_reset(&fix.arena);
        struct hearth_access_rows rows = load(&fix);
        assert_int_equal(rows.version, 2 + (int64_t)rows.n_grants);
        n = rows.n_grants;
    }

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
        hearth_arena_release(&writers[i].fix.arena);
    }
    assert_int_equal(version_of(writers[1].fix.store), 62);
    assert_int_equal(load(&fix).tokens[0].last_used_ms, 20);
    close_store(writers[1].fix.store);
    close_access(&fix);
}

/* ---- ends ---- */

static void housekeeping_deletes_ended_sessions_and_old_tokens(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    const struct hearth_grant grant = {HEARTH_STR(""), HEARTH_STR("t"), HEARTH_ROLE_INGEST,
                                       HEARTH_STR("")};
    const int64_t ends_ms[] = {0, now_ms() - 31 * DAY_MS, now_ms() - 29 * DAY_MS,
                               now_ms() + DAY_MS};
    for (int i = 0; i < 4; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "token%d", i);
        struct hearth_token token = make_token(id, i);
        token.expires_ms = ends_ms[i];
        assert_ok(hearth_store_token_add(SCOPE(&fix), &token, &grant, 1, &err));
        struct hearth_session session = make_session("oidc:bob", i, 1000);
        session.expires_ms = ends_ms[i];
        assert_ok(hearth_store_session_add(SCOPE(&fix), &session, 0, &err));
    }

    int64_t version = version_of(fix.store);
    struct hearth_housekeeping times = {0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.pg, &times, &err));
    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.n_tokens, 3);
    assert_string_equal(rows.tokens[0].id.p, "token0");
    assert_string_equal(rows.tokens[1].id.p, "token2");
    assert_int_equal(rows.n_grants, 3);
    assert_int_equal(rows.version, version + 1);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.access_session"), 2);

    times = (struct hearth_housekeeping){0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.pg, &times, &err));
    assert_int_equal(version_of(fix.store), version + 1);
    close_access(&fix);
}

static void many_ended_rows_are_deleted_in_slices(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.access_token SELECT 'old' || i, '',"
                            " sha256('x'), '', 0, 1, 0, '' FROM generate_series(1, 2500) i");
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.access_session SELECT sha256(i::text::bytea),"
                            " '', '{}', 0, 0, 1, '', '' FROM generate_series(1, 2500) i");

    struct hearth_housekeeping times = {0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.pg, &times, &err));
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.access_token"), 0);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.access_session"), 0);
    close_access(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_database_has_version_1_and_no_rows),
        cmocka_unit_test(all_fields_are_read_back),
        cmocka_unit_test(rows_are_sorted_in_c_order),
        cmocka_unit_test(sessions_that_have_ended_and_unknown_roles_are_not_loaded),
        cmocka_unit_test(a_token_has_its_own_grants),
        cmocka_unit_test(a_token_ends_at_the_earliest_of_its_ends),
        cmocka_unit_test(the_latest_use_is_noted_and_the_version_stays),
        cmocka_unit_test(equal_grants_are_stored_once),
        cmocka_unit_test(two_servers_write_at_once_and_read_ordered_versions),
        cmocka_unit_test(housekeeping_deletes_ended_sessions_and_old_tokens),
        cmocka_unit_test(many_ended_rows_are_deleted_in_slices),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
