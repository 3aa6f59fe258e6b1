/* test_store_users.c -- users and their sessions: adding, changing, ending. */
#include "access_fixture.h"

static void a_user_is_added_once(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_user(&fix, "alice");
    struct hearth_user user = make_user("alice");
    assert_fails(hearth_store_user_add(SCOPE(&fix), &user, &err), HEARTH_ALREADY_EXISTS, "alice");
    assert_int_equal(version_of(fix.store), 2);
    close_access(&fix);
}

static void a_new_password_and_disabling_end_the_sessions_of_the_user(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_user(&fix, "alice");
    add_session(&fix, "user:alice", 1, 1000, 0);
    add_session(&fix, "user:alicea", 2, 1000, 0);
    struct hearth_str password = HEARTH_STR("$argon2id$2");
    bool yes = true, no = false;

    struct hearth_user_change change = {
        .name = HEARTH_STR("alice"), .password = &password, .now_ms = 7000};
    assert_ok(hearth_store_user_change(SCOPE(&fix), &change, &err));
    struct hearth_access_rows rows = load(&fix);
    assert_string_equal(rows.users[0].password.p, "$argon2id$2");
    assert_int_equal(rows.users[0].password_ms, 7000);
    assert_false(rows.users[0].is_disabled);
    assert_int_equal(rows.n_sessions, 1);
    assert_string_equal(rows.sessions[0].subject.p, "user:alicea");

    add_session(&fix, "user:alice", 3, 1000, 0);
    change = (struct hearth_user_change){
        .name = HEARTH_STR("alice"), .is_disabled = &yes, .now_ms = 8000};
    assert_ok(hearth_store_user_change(SCOPE(&fix), &change, &err));
    rows = load(&fix);
    assert_true(rows.users[0].is_disabled);
    assert_int_equal(rows.users[0].password_ms, 7000);
    assert_int_equal(rows.n_sessions, 1);

    /* A log-in that was checked before the user was disabled is refused. */
    struct hearth_session late = make_session("user:alice", 4, 8000);
    assert_fails(hearth_store_session_add(SCOPE(&fix), &late, 0, &err), HEARTH_PERMISSION_DENIED,
                 "alice");
    assert_int_equal(load(&fix).users[0].last_login_ms, 1000);

    /* Enabling ends no session. */
    change.is_disabled = &no;
    assert_ok(hearth_store_user_change(SCOPE(&fix), &change, &err));
    add_session(&fix, "user:alice", 4, 9000, 0);
    assert_ok(hearth_store_user_change(SCOPE(&fix), &change, &err));
    rows = load(&fix);
    assert_false(rows.users[0].is_disabled);
    assert_int_equal(rows.n_sessions, 2);

    change.name = HEARTH_STR("bob");
    assert_fails(hearth_store_user_change(SCOPE(&fix), &change, &err), HEARTH_NOT_FOUND, "bob");
    close_access(&fix);
}

static void a_deleted_user_leaves_no_session_and_no_grant(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_user(&fix, "alice");
    add_user(&fix, "bob");
    add_session(&fix, "user:alice", 1, 1000, 0);
    add_session(&fix, "user:bob", 2, 1000, 0);
    (void)add_grant(&fix, "user:alice", "t", "");
    (void)add_grant(&fix, "user:bob", "t", "");

    int64_t version = version_of(fix.store);
    assert_ok(hearth_store_user_delete(SCOPE(&fix), HEARTH_STR("alice"), &err));
    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.version, version + 1);
    assert_int_equal(rows.n_users, 1);
    assert_int_equal(rows.n_sessions, 1);
    assert_string_equal(rows.sessions[0].subject.p, "user:bob");
    assert_int_equal(rows.n_grants, 1);
    assert_string_equal(rows.grants[0].grant.subject.p, "user:bob");
    assert_fails(hearth_store_user_delete(SCOPE(&fix), HEARTH_STR("alice"), &err), HEARTH_NOT_FOUND,
                 "alice");
    close_access(&fix);
}

static void a_log_in_with_a_password_that_was_changed_meanwhile_is_refused(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_user(&fix, "alice");
    struct hearth_session session = make_session("user:alice", 1, 1000);
    session.password = make_user("alice").password;
    assert_ok(hearth_store_session_add(SCOPE(&fix), &session, 0, &err));

    struct hearth_str password = HEARTH_STR("$argon2id$2");
    struct hearth_user_change change = {
        .name = HEARTH_STR("alice"), .password = &password, .now_ms = 7000};
    assert_ok(hearth_store_user_change(SCOPE(&fix), &change, &err));
    assert_fails(hearth_store_session_add(SCOPE(&fix), &session, 0, &err), HEARTH_UNAUTHENTICATED,
                 "password");

    /* So is one of a user who was deleted. */
    session.password = password;
    assert_ok(hearth_store_user_delete(SCOPE(&fix), HEARTH_STR("alice"), &err));
    assert_fails(hearth_store_session_add(SCOPE(&fix), &session, 0, &err), HEARTH_UNAUTHENTICATED,
                 "password");
    assert_int_equal(load(&fix).n_sessions, 0);
    close_access(&fix);
}

static void the_newest_sessions_of_a_subject_stay(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_user(&fix, "alice");
    add_session(&fix, "oidc:bob", 0, 1, 2);
    for (int i = 1; i <= 4; i++) {
        add_session(&fix, "user:alice", i, 1000 * i, 2);
    }

    struct hearth_access_rows rows = load(&fix);
    assert_int_equal(rows.n_sessions, 3);
    assert_true(hearth_str_eq(rows.sessions[0].hash, make_hash(0)));
    assert_true(hearth_str_eq(rows.sessions[1].hash, make_hash(3)));
    assert_true(hearth_str_eq(rows.sessions[2].hash, make_hash(4)));
    assert_int_equal(rows.users[0].last_login_ms, 4000);

    /* A session that was just added stays, although the clock of its server is late. */
    add_session(&fix, "user:alice", 5, 10, 1);
    rows = load(&fix);
    assert_int_equal(rows.n_sessions, 2);
    assert_true(hearth_str_eq(rows.sessions[1].hash, make_hash(5)));
    assert_int_equal(rows.users[0].last_login_ms, 4000);

    /* A cookie belongs to one session. */
    struct hearth_session same = make_session("oidc:eve", 5, 10);
    assert_fails(hearth_store_session_add(SCOPE(&fix), &same, 0, &err), HEARTH_ALREADY_EXISTS,
                 "cookie");
    close_access(&fix);
}

static void sessions_are_ended_by_hash_and_by_subject(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    size_t n = 77;
    for (int i = 0; i < 4; i++) {
        add_session(&fix, i < 3 ? "oidc:bob" : "oidc:bobby", i, 1000, 0);
    }

    int64_t version = version_of(fix.store);
    assert_ok(hearth_store_session_delete(SCOPE(&fix), make_hash(0), &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(version_of(fix.store), version + 1);
    assert_ok(hearth_store_session_delete(SCOPE(&fix), make_hash(0), &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_store_sessions_end(SCOPE(&fix), HEARTH_STR("oidc:bob"), &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(load(&fix).n_sessions, 1);

    /* Only the two that ended something raised the version. */
    assert_ok(hearth_store_sessions_end(SCOPE(&fix), HEARTH_STR("oidc:bob"), &n, &err));
    assert_int_equal(n, 0);
    assert_int_equal(version_of(fix.store), version + 2);
    close_access(&fix);
}

static void hostile_texts_of_clients_are_stored_mended(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    char agent[2000];
    memset(agent, 'x', sizeof agent);
    struct hearth_session session = make_session("oidc:bob", 1, 1000);
    session.address = hearth_str_n("a\0\xff", 3);
    session.agent = hearth_str_n(agent, sizeof agent);
    assert_ok(hearth_store_session_add(SCOPE(&fix), &session, 0, &err));

    struct hearth_access_rows rows = load(&fix);
    assert_string_equal(rows.sessions[0].address.p, "a\?\?");
    assert_int_equal(rows.sessions[0].agent.n, 512);
    close_access(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_is_added_once),
        cmocka_unit_test(a_new_password_and_disabling_end_the_sessions_of_the_user),
        cmocka_unit_test(a_deleted_user_leaves_no_session_and_no_grant),
        cmocka_unit_test(a_log_in_with_a_password_that_was_changed_meanwhile_is_refused),
        cmocka_unit_test(the_newest_sessions_of_a_subject_stay),
        cmocka_unit_test(sessions_are_ended_by_hash_and_by_subject),
        cmocka_unit_test(hostile_texts_of_clients_are_stored_mended),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
