/* cpu_timer.c -- a timer of the CPU clock of the process (contract: cpu_timer.h). */
#include "net/cpu_timer.h"

#include "hearth/base/clock.h"
#include "hearth/base/signals.h"

#include <assert.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#    define sigev_notify_thread_id _sigev_un._tid
#endif

/* Used for nothing else. Not a constant: the C library keeps some real-time signals. */
#define CPU_SIGNAL (SIGRTMIN + 2)

/* The signal ends a wait; there is nothing else to do. */
static void on_signal(int number)
{
    (void)number;
}

void hearth_cpu_timer_start(struct hearth_cpu_timer *timer)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = CPU_SIGNAL};

    event.sigev_notify_thread_id = gettid();
    sigset_t own;
    (void)sigemptyset(&own);
    (void)sigaddset(&own, CPU_SIGNAL);
    (void)pthread_sigmask(SIG_BLOCK, &own, NULL);
    (void)sigfillset(&action.sa_mask);
    hearth_signals_to_block(&timer->waiting);
    (void)sigdelset(&timer->waiting, CPU_SIGNAL);
    timer->is_made = sigaction(CPU_SIGNAL, &action, NULL) == 0 &&
                     timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer->timer) == 0;
}

void hearth_cpu_timer_stop(struct hearth_cpu_timer *timer)
{
    if (timer->is_made) {
        (void)timer_delete(timer->timer);
        timer->is_made = false;
    }
}

bool hearth_cpu_timer_arm(struct hearth_cpu_timer *timer, int64_t cpu_ns)
{
    const struct itimerspec once = {
        .it_value = {.tv_sec = cpu_ns / HEARTH_NS_PER_SEC, .tv_nsec = cpu_ns % HEARTH_NS_PER_SEC}};

    assert(cpu_ns > 0);
    return timer->is_made && timer_settime(timer->timer, 0, &once, NULL) == 0;
}
