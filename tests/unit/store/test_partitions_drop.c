/* A day's leaf goes away under readers and writers, and from wherever it was left. */
#include "pg/pg.h"
#include "pg_cluster.h"
#include "session/partitions.h"
#include "store_fixture.h"
#include "store_push.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DAY  20000 /* 2024-10-04 */
#define LEAF "profile_20241004"

struct fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_pg pg;
};

static void open_fixture(struct fixture *fix)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    *fix = (struct fixture){0};
    fix->store = open_fresh(fix->url, NULL);
    fix->pg.url = test_secret(fix->url);
    assert_int_equal(hearth_pg_connect(&fix->pg, CONNECT_MS, &err), HEARTH_OK);
    assert_int_equal(hearth_partitions_ensure(fix->store, &fix->pg, HEARTH_LEAVES_ALL, DAY, &err),
                     HEARTH_OK);
}

static void close_fixture(struct fixture *fix)
{
    hearth_pg_close(&fix->pg);
    store_close_soon(fix->store);
}

static long long n_leaves(const struct fixture *fix)
{
    return pg_cluster_int(fix->url, "SELECT count(*) FROM pg_class WHERE relname LIKE '%" LEAF "'"
                                    " AND relkind = 'r'");
}

static void drop_ok(struct fixture *fix)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    if (hearth_partitions_drop(fix->store, &fix->pg, "profile", DAY, &err) != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(n_leaves(fix), 0);
}

static void a_leaf_is_dropped_and_others_stay(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    long long before = pg_cluster_int(fix.url, "SELECT count(*) FROM pg_inherits");
    drop_ok(&fix);
    /* A table has indexes that are attached as well: profile has one. */
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM pg_inherits"), before - 2);
    drop_ok(&fix); /* again: nothing to do */
    close_fixture(&fix);
}

/* What a killed server may leave, stage by stage. */
static void continues_a_drop_from_any_step_at_which_it_stopped(void **state)
{
    (void)state;
    static const char *const left[] = {
        "ALTER TABLE hearth_data." LEAF " RENAME TO drop_" LEAF,
        "ALTER TABLE hearth_data." LEAF " RENAME TO drop_" LEAF
        "; ALTER TABLE hearth_data.profile DETACH PARTITION hearth_data.drop_" LEAF,
        "ALTER TABLE hearth_data.profile DETACH PARTITION hearth_data." LEAF,
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(left); i++) {
        struct fixture fix;
        open_fixture(&fix);
        pg_cluster_run(fix.url, left[i]);
        drop_ok(&fix);
        close_fixture(&fix);
    }
}

static void a_detach_that_was_interrupted_is_finalized_also_of_another_leaf(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_partitions_ensure(fix.store, &fix.pg, HEARTH_LEAVES_ALL, DAY + 1, &err),
                     HEARTH_OK);
    PGconn *reader = pg_cluster_connect(fix.url);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM hearth_data.profile"));
    PGconn *victim = pg_cluster_connect(fix.url);
    assert_int_equal(PQsendQuery(victim, "ALTER TABLE hearth_data.profile DETACH PARTITION"
                                         " hearth_data.profile_20241005 CONCURRENTLY"),
                     1);
    wait_until_blocked(fix.url, "ALTER TABLE%CONCURRENTLY%", 1);
    char errbuf[256];
    PGcancel *cancel = PQgetCancel(victim);
    assert_int_equal(PQcancel(cancel, errbuf, sizeof errbuf), 1);
    PQfreeCancel(cancel);
    PQfinish(victim);
    PQclear(PQexec(reader, "ROLLBACK"));
    PQfinish(reader);
    wait_until_sql(fix.url, "SELECT count(*) FROM pg_inherits WHERE inhdetachpending");
    drop_ok(&fix);
    assert_int_equal(pg_cluster_int(fix.url,
                                    "SELECT count(*) FROM pg_inherits WHERE"
                                    " inhrelid = 'hearth_data.profile_20241005'::regclass"),
                     0);
    close_fixture(&fix);
}

struct long_reader {
    pthread_t thread;
    char url[256];
    const char *from; /* what it reads for eight seconds */
};

static void *read_for_eight_seconds(void *arg)
{
    struct long_reader *reader = arg;
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT pg_sleep(8), (SELECT count(*) FROM hearth_data.%s)",
                   reader->from);
    pg_cluster_run(reader->url, sql);
    return NULL;
}

struct prober {
    pthread_t thread;
    char url[256];
    const char *sql;
    _Atomic bool stop;
    int64_t worst_ns;
    unsigned n, n_failed;
};

static void *probe(void *arg)
{
    struct prober *prober = arg;
    PGconn *conn = pg_cluster_connect(prober->url);
    while (!atomic_load(&prober->stop)) {
        int64_t from_ns = hearth_clock_mono_ns();
        PGresult *result = PQexec(conn, prober->sql);
        int64_t took_ns = hearth_clock_mono_ns() - from_ns;
        prober->worst_ns = took_ns > prober->worst_ns ? took_ns : prober->worst_ns;
        prober->n++;
        prober->n_failed +=
            PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK;
        PQclear(result);
        (void)usleep(2000);
    }
    PQfinish(conn);
    return NULL;
}

static void start_probe(struct prober *prober, const struct fixture *fix, const char *sql)
{
    *prober = (struct prober){.sql = sql};
    (void)snprintf(prober->url, sizeof prober->url, "%s", fix->url);
    assert_int_equal(pthread_create(&prober->thread, NULL, probe, prober), 0);
}

static void check_probe(struct prober *prober, const char *what)
{
    atomic_store(&prober->stop, true);
    (void)pthread_join(prober->thread, NULL);
    print_message("  %s: %u statements, the slowest took %.1f ms\n", what, prober->n,
                  (double)prober->worst_ns / 1e6);
    assert_true(prober->n > 50);
    assert_int_equal(prober->n_failed, 0);
    /* A statement that waited for the reader took about 8 s; on a busy machine one takes 0.1 s. */
    assert_true(prober->worst_ns < 5 * HEARTH_NS_PER_SEC);
}

static void drop_behind_reader(const char *from)
{
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_partitions_ensure(fix.store, &fix.pg, HEARTH_LEAVES_ALL, DAY + 1, &err),
                     HEARTH_OK);
    struct long_reader slow = {.from = from};
    (void)snprintf(slow.url, sizeof slow.url, "%s", fix.url);
    struct prober reader, writer, other;
    assert_int_equal(pthread_create(&slow.thread, NULL, read_for_eight_seconds, &slow), 0);
    (void)usleep(300000);
    start_probe(&reader, &fix, "SELECT count(*) FROM hearth_data.profile");
    start_probe(
        &writer, &fix,
        "INSERT INTO hearth_data.profile_20241005 SELECT 1, 1, 1728086400000000001, 1, 1, 1,"
        " 1, 0, '{}', '', '{}', NULL");
    start_probe(&other, &fix,
                "SELECT count(*) FROM hearth_data.profile WHERE ts >= 1728086400000000000");
    int64_t from_ns = hearth_clock_mono_ns();
    int n_calls = 1;
    enum hearth_status status;
    while ((status = hearth_partitions_drop(fix.store, &fix.pg, "profile", DAY, &err)) ==
               HEARTH_UNAVAILABLE &&
           n_calls < 100) {
        n_calls++;
        (void)usleep(100000);
    }
    print_message("  dropped after %.1f s and %d calls\n",
                  (double)(hearth_clock_mono_ns() - from_ns) / 1e9, n_calls);
    assert_int_equal(status, HEARTH_OK);
    check_probe(&reader, "readers of all days");
    check_probe(&writer, "writers of the next day");
    check_probe(&other, "readers of the next day");
    assert_int_equal(n_leaves(&fix), 0);
    (void)pthread_join(slow.thread, NULL);
    close_fixture(&fix);
}

static void no_statement_waits_while_a_drop_waits_for_a_reader_of_all_days(void **state)
{
    (void)state;
    drop_behind_reader("profile");
}

static void no_statement_waits_while_a_drop_waits_for_a_reader_of_another_day(void **state)
{
    (void)state;
    drop_behind_reader("profile WHERE ts >= 1728086400000000000");
}

static void no_statement_waits_while_a_long_reader_holds_the_leaf_itself(void **state)
{
    (void)state;
    drop_behind_reader(LEAF);
}

static void push_into_the_day(struct fixture *fix)
{
    push_profile(fix->store, &g_world, "api", "pod-1", DAY * HEARTH_NS_PER_DAY + 5, 10);
}

/* Both the server that dropped it and one that was not told. */
static void a_push_into_a_dropped_day_makes_its_leaf_again(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push_into_the_day(&fix);
    drop_ok(&fix);
    push_into_the_day(&fix);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.profile"), 1);
    struct fixture other = {.store = store_open_url(fix.url, NULL)};
    assert_true(store_wait_ready(other.store));
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_partitions_drop(other.store, &fix.pg, "profile", DAY, &err), HEARTH_OK);
    push_into_the_day(&fix);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.profile"), 1);
    store_close_soon(other.store);
    close_fixture(&fix);
}

/* While the old leaf still has the bounds: the push waits for it rather than fail. */
static void a_push_into_a_day_that_is_being_dropped_waits_for_the_drop(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_err err = HEARTH_ERR_INIT;
    pg_cluster_run(fix.url, "ALTER TABLE hearth_data." LEAF " RENAME TO drop_" LEAF);
    hearth_partitions_forget(fix.store, DAY);
    assert_int_equal(hearth_partitions_ensure(fix.store, &fix.pg, HEARTH_LEAVES_ALL, DAY, &err),
                     HEARTH_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "being dropped"));
    drop_ok(&fix);
    push_into_the_day(&fix);
    close_fixture(&fix);
}

static void a_push_does_not_need_the_leaves_of_spans_and_makes_none_but_its_own(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    pg_cluster_run(fix.url, "ALTER TABLE hearth_data.span_group_20241004 RENAME TO"
                            " drop_span_group_20241004");
    hearth_partitions_forget(fix.store, DAY);
    push_into_the_day(&fix);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM pg_class WHERE relname ="
                                             " 'span_group_20241004'"),
                     0);

    /* A day that nobody has written to. */
    struct store_push *push = make_push(fix.store, "api", (DAY - 9) * HEARTH_NS_PER_DAY, 10, 0);
    store_push_submit(push);
    end_push(push);
    char leaves[256];
    pg_cluster_text(fix.url,
                    "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind ="
                    " 'r' AND relname LIKE '%_20240925'",
                    leaves, sizeof leaves);
    assert_string_equal(leaves, "dict_chunk_20240925 profile_20240925 series_hour_20240925");
    close_fixture(&fix);
}

static void the_oldest_leaves_of_several_tables_are_found_together(void **state)
{
    static const struct hearth_str parents[] = {HEARTH_STR("segment"), HEARTH_STR("profile"),
                                                HEARTH_STR("roll_1d"), HEARTH_STR("nothing")};
    struct fixture fix;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_oldest_leaf found[HEARTH_ARRAY_LEN(parents)];
    (void)state;
    open_fixture(&fix);
    for (int32_t day = DAY + 1; day <= DAY + 2; day++) {
        assert_int_equal(hearth_partitions_ensure(fix.store, &fix.pg, HEARTH_LEAVES_ALL, day, &err),
                         HEARTH_OK);
    }
    pg_cluster_run(fix.url, "ALTER TABLE hearth_data." LEAF " RENAME TO drop_" LEAF
                            "; DROP TABLE hearth_data.roll_1d_20241004"
                            "; ALTER TABLE hearth_data.roll_1d_20241006 RENAME TO"
                            " drop_roll_1d_20241006");
    assert_int_equal(
        hearth_partitions_oldest(&fix.pg, parents, HEARTH_ARRAY_LEN(parents), found, &err),
        HEARTH_OK);
    assert_true(found[0].exists && found[0].day == DAY && !found[0].is_leaving);
    assert_true(found[1].exists && found[1].day == DAY + 1);
    assert_true(found[1].is_leaving && found[1].leaving_day == DAY);
    assert_true(found[2].exists && found[2].day == DAY + 1);
    assert_true(found[2].is_leaving && found[2].leaving_day == DAY + 2);
    assert_true(!found[3].exists && !found[3].is_leaving);
    close_fixture(&fix);
}

/* Everything before it is late. */
static void raise_watermark(struct fixture *fix, int32_t service_id, int64_t watermark_ns)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "INSERT INTO hearth_data.roll_state VALUES (%d, %lld, 0, 0, 1)",
                   service_id, (long long)watermark_ns);
    pg_cluster_run(fix->url, sql);
}

/* Its profiles are acknowledged. */
static void a_newer_leaf_stays_when_the_old_one_is_dropped(void **state)
{
    (void)state;
    struct fixture fix;
    struct hearth_err err = HEARTH_ERR_INIT;
    open_fixture(&fix);
    pg_cluster_run(fix.url, "ALTER TABLE hearth_data.profile DETACH PARTITION hearth_data." LEAF
                            "; ALTER TABLE hearth_data." LEAF " RENAME TO drop_" LEAF);
    hearth_partitions_forget(fix.store, DAY);
    push_into_the_day(&fix);
    assert_int_equal(n_leaves(&fix), 2);
    assert_int_equal(hearth_partitions_drop(fix.store, &fix.pg, "profile", DAY, &err), HEARTH_OK);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data." LEAF), 1);

    /* Compaction has only leaves with a leaving name to drop, if another server has not done it. */
    assert_int_equal(hearth_partitions_finish_drop(fix.store, &fix.pg, "profile", DAY, &err),
                     HEARTH_OK);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data." LEAF), 1);
    drop_ok(&fix);
    close_fixture(&fix);
}

static void late_profiles_of_a_day_are_stored_while_its_leaf_is_dropped(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t late_ns = DAY * HEARTH_NS_PER_DAY + 5, now_ns = hearth_clock_wall_ns();
    struct store_push *late = make_push(fix.store, "api", late_ns, 10, 0),
                      *other = make_push(fix.store, "new", late_ns, 10, 0),
                      *today = make_push(fix.store, "new", now_ns, 10, 0);
    raise_watermark(&fix, late->item.service_id, now_ns);
    pg_cluster_run(fix.url, "ALTER TABLE hearth_data." LEAF " RENAME TO drop_" LEAF);
    hearth_partitions_forget(fix.store, DAY);

    /* One of a service without a watermark needs the leaf and waits for it; nobody else does. */
    store_push_submit(other);
    store_push_submit(late);
    store_push_submit(today);
    end_push(late);
    end_push(today);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.profile_late"), 1);

    /* Not drop_ok: what waits may have made the leaf again before it counts. */
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_partitions_drop(fix.store, &fix.pg, "profile", DAY, &err), HEARTH_OK);

    /* It waits for about 4 s: on a machine that is held up the leaf may go too late for it. */
    assert_true(store_push_wait(other));
    if (other->status == HEARTH_OK) {
        assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data." LEAF), 1);
    } else {
        assert_int_equal(other->status, HEARTH_UNAVAILABLE);
        assert_non_null(strstr(other->err.msg, "being dropped; retry"));
    }
    store_push_free(other);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_dropped_and_others_stay),
        cmocka_unit_test(continues_a_drop_from_any_step_at_which_it_stopped),
        cmocka_unit_test(a_detach_that_was_interrupted_is_finalized_also_of_another_leaf),
        cmocka_unit_test(no_statement_waits_while_a_drop_waits_for_a_reader_of_all_days),
        cmocka_unit_test(no_statement_waits_while_a_drop_waits_for_a_reader_of_another_day),
        cmocka_unit_test(no_statement_waits_while_a_long_reader_holds_the_leaf_itself),
        cmocka_unit_test(a_push_into_a_dropped_day_makes_its_leaf_again),
        cmocka_unit_test(a_push_into_a_day_that_is_being_dropped_waits_for_the_drop),
        cmocka_unit_test(a_push_does_not_need_the_leaves_of_spans_and_makes_none_but_its_own),
        cmocka_unit_test(a_newer_leaf_stays_when_the_old_one_is_dropped),
        cmocka_unit_test(the_oldest_leaves_of_several_tables_are_found_together),
        cmocka_unit_test(late_profiles_of_a_day_are_stored_while_its_leaf_is_dropped),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
