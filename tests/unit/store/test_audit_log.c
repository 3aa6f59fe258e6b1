/* test_audit_log.c -- the audit log: filters, pages, months, what is refused, retention. */
#include "access/access_expire.h"
#include "access_fixture.h"
#include "session/partitions.h"

#define DAY_2020  18262 /* 2020-01-01 */
#define JAN_2020  (DAY_2020 * DAY_MS)
#define DEC_LEAF  "hearth_data.audit_20191201"
#define JAN_LEAF  "hearth_data.audit_20200101"
#define ALL_TIMES .from_ms = 0, .to_ms = INT64_MAX

static struct hearth_audit_event make_event(int64_t at_ms, const char *tenant, const char *action)
{
    return (struct hearth_audit_event){.at_ms = at_ms,
                                       .tenant = hearth_str_c(tenant),
                                       .subject = HEARTH_STR("user:alice"),
                                       .address = HEARTH_STR("127.0.0.1"),
                                       .action = hearth_str_c(action),
                                       .object = HEARTH_STR("what"),
                                       .outcome = HEARTH_STR("ok"),
                                       .message = HEARTH_STR("")};
}

static void add_events(struct access_fixture *fix, const struct hearth_audit_event *events,
                       size_t n)
{
    assert_ok(
        hearth_store_audit_add(STORE_SCOPE(fix->store, HEARTH_STR(""), NULL), events, n, &err));
}

static void add_event(struct access_fixture *fix, int64_t at_ms)
{
    struct hearth_audit_event event = make_event(at_ms, "t", "login");
    add_events(fix, &event, 1);
}

/* The actions of the events that the filter lets through, "c b a". */
static void expect_actions(struct access_fixture *fix, struct hearth_audit_filter filter,
                           const char *expected)
{
    struct hearth_audit_event *events;
    size_t n;
    char text[256] = "";

    filter.limit = filter.limit == 0 ? 100 : filter.limit;
    assert_ok(hearth_store_audit(SCOPE(fix), &filter, &events, &n, &err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s%s", i == 0 ? "" : " ", events[i].action.p);
    }
    assert_string_equal(text, expected);
}

#define expect_events(fix, expected, ...) \
    expect_actions((fix), (struct hearth_audit_filter){__VA_ARGS__}, (expected))

static bool has_leaf(const struct access_fixture *fix, const char *leaf)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT (to_regclass('%s') IS NOT NULL)::int", leaf);
    return pg_cluster_int(fix->url, sql) != 0;
}

/* ---- adding and reading ---- */

static void all_fields_of_an_event_are_read_back(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_audit_event event = make_event(now_ms(), "t", "hearth.v1.AdminService/Delete");
    event.outcome = HEARTH_STR("permission_denied");
    event.message = HEARTH_STR("needs admin");
    add_events(&fix, &event, 1);

    struct hearth_audit_event *read;
    size_t n;
    const struct hearth_audit_filter filter = {ALL_TIMES, .limit = 9};
    assert_ok(hearth_store_audit(SCOPE(&fix), &filter, &read, &n, &err));
    assert_int_equal(n, 1);
    assert_true(read->id > 0);
    assert_int_equal(read->at_ms, event.at_ms);
    assert_string_equal(read->tenant.p, "t");
    assert_string_equal(read->subject.p, "user:alice");
    assert_string_equal(read->address.p, "127.0.0.1");
    assert_string_equal(read->action.p, "hearth.v1.AdminService/Delete");
    assert_string_equal(read->object.p, "what");
    assert_string_equal(read->outcome.p, "permission_denied");
    assert_string_equal(read->message.p, "needs admin");
    close_access(&fix);
}

static void events_are_selected_by_each_filter(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    int64_t at_ms = now_ms();
    struct hearth_audit_event events[] = {
        make_event(at_ms, "t", "login"),
        make_event(at_ms + 1, "u", "logout"),
        make_event(at_ms + 2, "", "start"),
        make_event(at_ms + 3, "t", "log%"),
    };
    events[1].subject = HEARTH_STR("user:bob");
    events[3].outcome = HEARTH_STR("internal");
    add_events(&fix, events, 4);

    const struct hearth_str tenants[] = {HEARTH_STR("t"), HEARTH_STR("u")};
    const struct hearth_str whole[] = {HEARTH_STR("")};
    expect_events(&fix, "log% start logout login", ALL_TIMES);
    expect_events(&fix, "start logout", .from_ms = at_ms + 1, .to_ms = at_ms + 2);
    expect_events(&fix, "", .from_ms = at_ms + 4, .to_ms = INT64_MAX);
    expect_events(&fix, "log% login", ALL_TIMES, .tenants = tenants, .n_tenants = 1);
    expect_events(&fix, "log% logout login", ALL_TIMES, .tenants = tenants, .n_tenants = 2);
    expect_events(&fix, "start", ALL_TIMES, .tenants = whole, .n_tenants = 1);
    expect_events(&fix, "logout", ALL_TIMES, .subject = HEARTH_STR("user:bob"));
    expect_events(&fix, "", ALL_TIMES, .subject = HEARTH_STR("user:bo"));
    expect_events(&fix, "log% logout login", ALL_TIMES, .action = HEARTH_STR("log"));
    expect_events(&fix, "log%", ALL_TIMES, .action = HEARTH_STR("log%")); /* no pattern */
    expect_events(&fix, "log%", ALL_TIMES, .outcome = HEARTH_STR("internal"));
    close_access(&fix);
}

static void pages_have_each_event_once(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_audit_event events[10];
    static const char names[10][2] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    for (int i = 0; i < 10; i++) {
        /* Equal times, and some before: the order is that of the ids. */
        events[i] = make_event(JAN_2020 - (i % 3), "t", names[i]);
    }
    add_events(&fix, events, 10);

    char text[64] = "";
    int64_t before_id = 0;
    for (size_t n = 3; n == 3;) {
        struct hearth_audit_event *page;
        const struct hearth_audit_filter filter = {ALL_TIMES, .before_id = before_id, .limit = 3};
        assert_ok(hearth_store_audit(SCOPE(&fix), &filter, &page, &n, &err));
        for (size_t i = 0; i < n; i++) {
            assert_true(before_id == 0 || page[i].id < before_id);
            before_id = page[i].id;
            (void)strcat(text, page[i].action.p);
        }
        (void)strcat(text, "|");
    }
    assert_string_equal(text, "jih|gfe|dcb|a|");
    close_access(&fix);
}

static void hostile_texts_lose_no_event(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    char object[5000];
    memset(object, 'x', sizeof object);
    memcpy(object + HEARTH_MAX_AUDIT_TEXT_BYTES - 1, "\xc3\xa4", 2); /* cut within a character */
    struct hearth_audit_event event = make_event(now_ms(), "t", "login");
    event.subject = hearth_str_n("user:\0\xff", 7);
    event.object = hearth_str_n(object, sizeof object);
    add_events(&fix, &event, 1);

    struct hearth_audit_event *read;
    size_t n;
    const struct hearth_audit_filter filter = {ALL_TIMES, .limit = 9};
    assert_ok(hearth_store_audit(SCOPE(&fix), &filter, &read, &n, &err));
    assert_string_equal(read->subject.p, "user:\?\?");
    assert_int_equal(read->object.n, HEARTH_MAX_AUDIT_TEXT_BYTES);
    assert_int_equal(read->object.p[HEARTH_MAX_AUDIT_TEXT_BYTES - 1], '?');

    /* Times that no clock has. */
    event.at_ms = -1;
    assert_fails(
        hearth_store_audit_add(STORE_SCOPE(fix.store, HEARTH_STR(""), NULL), &event, 1, &err),
        HEARTH_OUT_OF_RANGE, "clock");
    event.at_ms = INT64_MAX;
    assert_fails(
        hearth_store_audit_add(STORE_SCOPE(fix.store, HEARTH_STR(""), NULL), &event, 1, &err),
        HEARTH_OUT_OF_RANGE, "clock");
    close_access(&fix);
}

/* ---- months ---- */

static void months_have_their_calendar_length(void **state)
{
    (void)state;
    static const struct {
        int32_t day, first, next;
    } cases[] = {
        {DAY_2020, DAY_2020, DAY_2020 + 31},
        {DAY_2020 + 30, DAY_2020, DAY_2020 + 31},
        {DAY_2020 - 1, DAY_2020 - 31, DAY_2020},
        {DAY_2020 + 31 + 28, DAY_2020 + 31, DAY_2020 + 60},              /* 29 February 2020 */
        {DAY_2020 - 365 + 31, DAY_2020 - 365 + 31, DAY_2020 - 365 + 59}, /* February 2019 */
        {0, 0, 31},
        {-1, -31, 0},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        int32_t next = 0;
        assert_int_equal(hearth_partition_month(cases[i].day, &next), cases[i].first);
        assert_int_equal(next, cases[i].next);
    }
}

static void events_at_the_turn_of_the_year_lie_in_two_partitions(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    const struct hearth_audit_event events[] = {
        make_event(JAN_2020 - 1, "t", "old"),
        make_event(JAN_2020, "t", "new"),
        make_event(JAN_2020 + 31 * DAY_MS - 1, "t", "end"),
    };
    add_events(&fix, events, 3);

    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM " DEC_LEAF), 1);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM " JAN_LEAF), 2);
    expect_events(&fix, "end new old", ALL_TIMES);
    expect_events(&fix, "new", .from_ms = JAN_2020, .to_ms = JAN_2020);

    /* This month has its partition before an event needs it. */
    int32_t next;
    char leaf[64];
    hearth_partition_name(
        "audit", hearth_partition_month(hearth_day_of(hearth_clock_wall_ns()), &next), leaf);
    assert_true(has_leaf(&fix, leaf));
    close_access(&fix);
}

struct event_writer {
    pthread_t thread;
    struct access_fixture fix;
};

static void *write_events(void *arg)
{
    struct event_writer *writer = arg;
    for (int month = 0; month < 24; month++) {
        add_event(&writer->fix, JAN_2020 + month * 31 * DAY_MS);
    }
    return NULL;
}

static void two_servers_need_the_same_new_months_at_once(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.retain_audit_ns = 0;
    struct event_writer writers[2] = {{.fix = fix}, {.fix = fix}};
    writers[1].fix.store = open_ready(fix.url, &options);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_events, &writers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    }

    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.audit"), 48);
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT count(DISTINCT audit_id) FROM hearth_data.audit"), 48);
    close_store(writers[1].fix.store);
    close_access(&fix);
}

/* ---- append-only ---- */

static void expect_refused(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (code == NULL || strcmp(code, "42501") != 0) {
        fail_msg("%s: %s", sql, code == NULL ? "was executed" : PQresultErrorMessage(result));
    }
    assert_non_null(strstr(PQresultErrorMessage(result), "append-only"));
    PQclear(result);
}

static void the_log_cannot_be_changed_not_even_by_a_superuser(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_event(&fix, JAN_2020);
    add_event(&fix, JAN_2020 - 1);
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT rolsuper::int FROM pg_roles WHERE rolname = current_user"),
        1);

    static const char *const refused[] = {
        "UPDATE hearth_data.audit SET subject = 'user:eve'",
        "DELETE FROM hearth_data.audit",
        "DELETE FROM hearth_data.audit WHERE at < 1577836800000",
        "TRUNCATE hearth_data.audit",
        "TRUNCATE ONLY " JAN_LEAF,
        "UPDATE " JAN_LEAF " SET at = at + 1",
        "DELETE FROM " JAN_LEAF,
        "TRUNCATE " JAN_LEAF,
        "WITH d AS (DELETE FROM " DEC_LEAF " RETURNING 1) SELECT count(*) FROM d",
        "INSERT INTO hearth_data.audit (audit_id, at, tenant, subject, address, action, object,"
        " outcome, message) OVERRIDING SYSTEM VALUE SELECT audit_id, at, '', '', '', '', '', '', ''"
        " FROM hearth_data.audit ON CONFLICT (audit_id, at) DO UPDATE SET subject = 'user:eve'",
    };
    PGconn *conn = pg_cluster_connect(fix.url);
    for (int replica = 0; replica < 2; replica++) {
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(refused); i++) {
            expect_refused(conn, refused[i]);
        }
        /* Ordinary triggers do not fire in this mode. */
        PQclear(PQexec(conn, "SET session_replication_role = replica"));
    }
    PQfinish(conn);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.audit"
                                             " WHERE subject = 'user:alice'"),
                     2);
    close_access(&fix);
}

/* ---- retention ---- */

/* Drops what is due if events before this time may go. */
static void expire_before(struct access_fixture *fix, int64_t at_ms)
{
    fix->store->options.retain_audit_ns = hearth_clock_wall_ns() - at_ms * HEARTH_NS_PER_MS;
    assert_ok(hearth_audit_expire(fix->store, &fix->pg, &err));
}

static void a_month_is_dropped_when_all_of_it_is_past(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_event(&fix, JAN_2020 - 1);
    add_event(&fix, JAN_2020);
    add_event(&fix, now_ms());

    /* Forever. */
    assert_ok(hearth_audit_expire(fix.store, &fix.pg, &err));
    expect_events(&fix, "login login login", ALL_TIMES);

    /* Until the last hour of December has passed, all of December stays. */
    expire_before(&fix, JAN_2020 - 3600000);
    assert_true(has_leaf(&fix, DEC_LEAF));
    expire_before(&fix, JAN_2020 + 3600000);
    assert_false(has_leaf(&fix, DEC_LEAF));
    assert_true(has_leaf(&fix, JAN_LEAF));
    expire_before(&fix, JAN_2020 + 31 * DAY_MS - 3600000);
    expect_events(&fix, "login login", ALL_TIMES);
    expire_before(&fix, JAN_2020 + 31 * DAY_MS + 3600000);
    expect_events(&fix, "login", ALL_TIMES);

    /* An event of a dropped month makes the month again. */
    add_event(&fix, JAN_2020 - 1);
    expect_events(&fix, "login login", ALL_TIMES);
    assert_true(has_leaf(&fix, DEC_LEAF));
    close_access(&fix);
}

static void housekeeping_drops_the_log_after_400_days(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    struct hearth_store_options defaults;
    hearth_store_options_init(&defaults);
    assert_int_equal(defaults.retain_audit_ns, 400 * HEARTH_NS_PER_DAY);
    add_event(&fix, now_ms() - 440 * DAY_MS); /* its month ended 409 days ago or earlier */
    add_event(&fix, now_ms() - 399 * DAY_MS);
    add_event(&fix, now_ms());

    fix.store->options.retain_audit_ns = defaults.retain_audit_ns;
    struct hearth_housekeeping times = {0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.pg, &times, &err));
    expect_events(&fix, "login login", ALL_TIMES);
    close_access(&fix);
}

static void a_month_that_is_read_is_dropped_later(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_event(&fix, JAN_2020);
    PGconn *reader = pg_cluster_connect(fix.url);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM hearth_data.audit"));
    expire_before(&fix, JAN_2020 + 40 * DAY_MS);
    assert_true(has_leaf(&fix, JAN_LEAF));
    PQclear(PQexec(reader, "ROLLBACK"));
    PQfinish(reader);

    expire_before(&fix, JAN_2020 + 40 * DAY_MS);
    assert_false(has_leaf(&fix, JAN_LEAF));
    close_access(&fix);
}

/* A server was killed after it had renamed the month; its options have changed since. */
static void a_drop_that_has_begun_is_finished(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    add_event(&fix, JAN_2020);
    add_event(&fix, JAN_2020 - 1);
    pg_cluster_run(fix.url, "ALTER TABLE " JAN_LEAF " RENAME TO drop_audit_20200101");

    assert_ok(hearth_audit_expire(fix.store, &fix.pg, &err));
    assert_false(has_leaf(&fix, "hearth_data.drop_audit_20200101"));
    assert_true(has_leaf(&fix, DEC_LEAF));
    close_access(&fix);
}

struct month_dropper {
    pthread_t thread;
    struct hearth_store *store;
    struct hearth_pg pg;
};

static void *drop_months(void *arg)
{
    struct month_dropper *dropper = arg;
    assert_ok(hearth_audit_expire(dropper->store, &dropper->pg, &err));
    return NULL;
}

static void several_servers_drop_the_same_months_at_once(void **state)
{
    (void)state;
    struct access_fixture fix;
    open_access(&fix);
    for (int month = 0; month < 10; month++) {
        add_event(&fix, JAN_2020 + month * 31 * DAY_MS);
    }
    fix.store->options.retain_audit_ns = 400 * HEARTH_NS_PER_DAY;

    struct month_dropper droppers[3];
    for (int i = 0; i < 3; i++) {
        droppers[i] =
            (struct month_dropper){.store = fix.store, .pg = {.url = test_secret(fix.url)}};
        assert_ok(hearth_pg_connect(&droppers[i].pg, CONNECT_MS, &err));
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&droppers[i].thread, NULL, drop_months, &droppers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(droppers[i].thread, NULL), 0);
        hearth_pg_close(&droppers[i].pg);
    }

    /* A server that met another one in a stage goes on later. */
    for (int i = 0; i < 50 && has_leaf(&fix, "hearth_data.audit_20201001"); i++) {
        assert_ok(hearth_audit_expire(fix.store, &fix.pg, &err));
    }
    assert_ok(hearth_audit_expire(fix.store, &fix.pg, &err));
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.audit"), 0);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM pg_class WHERE relkind = 'r'"
                                             " AND relname LIKE '%audit_2020%'"),
                     0);
    close_access(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_of_an_event_are_read_back),
        cmocka_unit_test(events_are_selected_by_each_filter),
        cmocka_unit_test(pages_have_each_event_once),
        cmocka_unit_test(hostile_texts_lose_no_event),
        cmocka_unit_test(months_have_their_calendar_length),
        cmocka_unit_test(events_at_the_turn_of_the_year_lie_in_two_partitions),
        cmocka_unit_test(two_servers_need_the_same_new_months_at_once),
        cmocka_unit_test(the_log_cannot_be_changed_not_even_by_a_superuser),
        cmocka_unit_test(a_month_is_dropped_when_all_of_it_is_past),
        cmocka_unit_test(housekeeping_drops_the_log_after_400_days),
        cmocka_unit_test(a_month_that_is_read_is_dropped_later),
        cmocka_unit_test(a_drop_that_has_begun_is_finished),
        cmocka_unit_test(several_servers_drop_the_same_months_at_once),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
