/* test_sync.c -- timed waits end on time, and a wrong order of locks aborts the process. */
#include "hearth/base/clock.h"
#include "hearth/base/sync.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    RANK_OUTER = 10,
    RANK_INNER = 20
};

static struct hearth_mutex g_outer, g_inner, g_other_inner;

static int make_locks(void **state)
{
    (void)state;
    hearth_mutex_init(&g_outer, RANK_OUTER, "test.outer");
    hearth_mutex_init(&g_inner, RANK_INNER, "test.inner");
    hearth_mutex_init(&g_other_inner, RANK_INNER, "test.other_inner");

    return 0;
}

static int destroy_locks(void **state)
{
    (void)state;
    hearth_mutex_destroy(&g_outer);
    hearth_mutex_destroy(&g_inner);
    hearth_mutex_destroy(&g_other_inner);

    return 0;
}

/* ---- conditions ---- */

static void a_timed_wait_ends_when_its_time_has_passed(void **state)
{
    (void)state;
    pthread_cond_t cond;
    hearth_cond_init(&cond);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int64_t until_ns = hearth_clock_mono_ns() + 20 * HEARTH_NS_PER_MS;

    (void)pthread_mutex_lock(&mutex);
    while (hearth_cond_wait_until(&cond, &mutex, until_ns)) {
        assert_true(hearth_clock_mono_ns() < until_ns + 60 * HEARTH_NS_PER_SEC);
    }

    (void)pthread_mutex_unlock(&mutex);

    assert_true(hearth_clock_mono_ns() >= until_ns);
    (void)pthread_cond_destroy(&cond);
}

static void a_wait_until_a_past_time_returns_at_once(void **state)
{
    (void)state;
    pthread_cond_t cond;
    hearth_cond_init(&cond);

    hearth_mutex_lock(&g_outer);
    assert_false(hearth_mutex_wait_until(&g_outer, &cond, 0));
    hearth_mutex_assert_held(&g_outer);
    hearth_mutex_unlock(&g_outer);

    (void)pthread_cond_destroy(&cond);
}

struct signalled {
    pthread_cond_t cond;
    bool is_set; /* guarded by g_inner */
};

static void *set_and_signal(void *arg)
{
    struct signalled *signalled = arg;

    hearth_mutex_lock(&g_inner);
    signalled->is_set = true;
    (void)pthread_cond_signal(&signalled->cond);
    hearth_mutex_unlock(&g_inner);

    return NULL;
}

static void a_wait_under_two_locks_gives_up_the_inner_one_only(void **state)
{
    (void)state;
    struct signalled signalled = {.is_set = false};
    hearth_cond_init(&signalled.cond);
    pthread_t thread;

    hearth_mutex_lock(&g_outer);
    hearth_mutex_lock(&g_inner);
    assert_int_equal(pthread_create(&thread, NULL, set_and_signal, &signalled), 0);
    while (!signalled.is_set) {
        hearth_mutex_wait(&g_inner, &signalled.cond);
    }

    hearth_mutex_assert_held(&g_outer);
    hearth_mutex_assert_held(&g_inner);
    hearth_mutex_unlock(&g_inner);
    hearth_mutex_unlock(&g_outer);

    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_cond_destroy(&signalled.cond);
}

/* ---- order ---- */

static void locks_may_be_taken_in_rising_order_and_released_in_any(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        hearth_mutex_lock(&g_outer);
        hearth_mutex_lock(&g_inner);
        hearth_mutex_unlock(&g_outer);
        hearth_mutex_unlock(&g_inner);

        hearth_mutex_lock(&g_other_inner);
        hearth_mutex_unlock(&g_other_inner);
    }
}

#ifdef HEARTH_DEBUG_LOCKS

/* The standard error of a child that runs `body`, which must end by abort(). */
static void expect_abort(void (*body)(void), char *ret_text, size_t size)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }

    (void)close(ends[1]);

    size_t n = 0;
    ssize_t got;
    while (n + 1 < size && (got = read(ends[0], ret_text + n, size - 1 - n)) > 0) {
        n += (size_t)got;
    }

    ret_text[n] = '\0';
    (void)close(ends[0]);

    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void lock_outer_under_inner(void)
{
    hearth_mutex_lock(&g_inner);
    hearth_mutex_lock(&g_outer);
}

static void lock_two_of_one_rank(void)
{
    hearth_mutex_lock(&g_inner);
    hearth_mutex_lock(&g_other_inner);
}

static void lock_twice(void)
{
    hearth_mutex_lock(&g_inner);
    hearth_mutex_lock(&g_inner);
}

static void wait_with_the_outer_lock(void)
{
    pthread_cond_t cond;
    hearth_cond_init(&cond);

    hearth_mutex_lock(&g_outer);
    hearth_mutex_lock(&g_inner);
    (void)hearth_mutex_wait_until(&g_outer, &cond, 0);
}

static void unlock_what_is_free(void)
{
    hearth_mutex_unlock(&g_inner);
}

static void assert_that_a_free_lock_is_held(void)
{
    hearth_mutex_assert_held(&g_inner);
}

static void hold_too_many_locks(void)
{
    static struct hearth_mutex locks[HEARTH_MAX_HELD_LOCKS + 1];

    for (unsigned i = 0; i < HEARTH_ARRAY_LEN(locks); i++) {
        hearth_mutex_init(&locks[i], i + 1, "test.many");
        hearth_mutex_lock(&locks[i]);
    }
}

static void a_lower_rank_under_a_higher_one_aborts_with_both_names(void **state)
{
    (void)state;
    char text[1024];

    expect_abort(lock_outer_under_inner, text, sizeof text);

    assert_non_null(strstr(text, "test.outer (rank 10) is acquired under test.inner (rank 20)"));
}

static void two_locks_of_one_rank_abort(void **state)
{
    (void)state;
    char text[1024];

    expect_abort(lock_two_of_one_rank, text, sizeof text);
    assert_non_null(strstr(text, "test.other_inner (rank 20) is acquired under test.inner"));

    expect_abort(lock_twice, text, sizeof text);
    assert_non_null(strstr(text, "itself"));
}

static void a_wait_that_gives_up_an_outer_lock_aborts(void **state)
{
    (void)state;
    char text[1024];

    expect_abort(wait_with_the_outer_lock, text, sizeof text);

    assert_non_null(strstr(text, "test.outer (rank 10) is acquired under test.inner (rank 20)"));
}

static void releasing_or_assuming_a_free_lock_aborts(void **state)
{
    (void)state;
    char text[1024];

    expect_abort(unlock_what_is_free, text, sizeof text);
    assert_non_null(strstr(text, "lock test.inner is not held by this thread"));

    expect_abort(assert_that_a_free_lock_is_held, text, sizeof text);
    assert_non_null(strstr(text, "lock test.inner is not held by this thread"));

    expect_abort(hold_too_many_locks, text, sizeof text);
    assert_non_null(strstr(text, "HEARTH_MAX_HELD_LOCKS"));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timed_wait_ends_when_its_time_has_passed),
        cmocka_unit_test(a_wait_until_a_past_time_returns_at_once),
        cmocka_unit_test(a_wait_under_two_locks_gives_up_the_inner_one_only),
        cmocka_unit_test(locks_may_be_taken_in_rising_order_and_released_in_any),
#ifdef HEARTH_DEBUG_LOCKS
        cmocka_unit_test(a_lower_rank_under_a_higher_one_aborts_with_both_names),
        cmocka_unit_test(two_locks_of_one_rank_abort),
        cmocka_unit_test(a_wait_that_gives_up_an_outer_lock_aborts),
        cmocka_unit_test(releasing_or_assuming_a_free_lock_aborts),
#endif
    };

    return cmocka_run_group_tests(tests, make_locks, destroy_locks);
}
