/* A timer of the process's CPU time ends the waiting of a thread, and only that. */
#include "hearth/base/clock.h"

#include "net/cpu_timer.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 60000

static int64_t read_process_cpu_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return t.tv_sec * HEARTH_NS_PER_SEC + t.tv_nsec;
}

static void *use_processor(void *arg)
{
    int64_t until_ns = read_process_cpu_ns() + *(const int64_t *)arg;
    while (read_process_cpu_ns() < until_ns) {
    }
    return NULL;
}

static int wait_ms(const struct hearth_cpu_timer *timer, int epoll_fd, int ms)
{
    struct epoll_event event;
    errno = 0;
    return epoll_pwait(epoll_fd, &event, 1, ms, &timer->waiting);
}

static void a_wait_ends_when_other_threads_have_used_the_time(void **state)
{
    (void)state;
    struct hearth_cpu_timer timer;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    hearth_cpu_timer_start(&timer);
    int64_t before_ns = read_process_cpu_ns(), long_ns = 500 * HEARTH_NS_PER_MS;
    assert_true(hearth_cpu_timer_arm(&timer, 50 * HEARTH_NS_PER_MS));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, use_processor, &long_ns), 0);

    assert_int_equal(wait_ms(&timer, epoll_fd, PATIENCE_MS), -1);
    assert_int_equal(errno, EINTR);
    assert_true(read_process_cpu_ns() - before_ns >= 50 * HEARTH_NS_PER_MS);

    (void)pthread_join(thread, NULL);
    hearth_cpu_timer_stop(&timer);
    (void)close(epoll_fd);
}

static void time_that_was_used_before_the_wait_ends_it_at_once(void **state)
{
    (void)state;
    struct hearth_cpu_timer timer;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int64_t used_ns = 100 * HEARTH_NS_PER_MS;
    hearth_cpu_timer_start(&timer);
    assert_true(hearth_cpu_timer_arm(&timer, 10 * HEARTH_NS_PER_MS));
    (void)use_processor(&used_ns); /* the signal is blocked: it interrupts nothing here */

    assert_int_equal(wait_ms(&timer, epoll_fd, PATIENCE_MS), -1);
    assert_int_equal(errno, EINTR);

    /* It was armed once. */
    (void)use_processor(&used_ns);
    assert_int_equal(wait_ms(&timer, epoll_fd, 0), 0);
    hearth_cpu_timer_stop(&timer);
    (void)close(epoll_fd);
}

static void the_wait_of_an_idle_process_does_not_end(void **state)
{
    (void)state;
    struct hearth_cpu_timer timer;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    hearth_cpu_timer_start(&timer);
    assert_true(hearth_cpu_timer_arm(&timer, 10 * HEARTH_NS_PER_SEC));
    assert_int_equal(wait_ms(&timer, epoll_fd, 200), 0);
    hearth_cpu_timer_stop(&timer);
    assert_false(hearth_cpu_timer_arm(&timer, HEARTH_NS_PER_SEC));
    (void)close(epoll_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends_when_other_threads_have_used_the_time),
        cmocka_unit_test(time_that_was_used_before_the_wait_ends_it_at_once),
        cmocka_unit_test(the_wait_of_an_idle_process_does_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
