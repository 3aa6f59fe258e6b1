/*
 * cpu_timer.h -- interrupts the waiting of a thread after the process has used some time of a
 * processor, on any of its threads.
 *
 * A signal to the thread ends its epoll_pwait, with EINTR. At all other times the thread blocks the
 * signal, so none is lost: one that comes earlier ends the next wait.
 *
 * Threads: confined to the thread that starts it, which has no other timer of this kind.
 */
#ifndef HEARTH_FRONT_CPU_TIMER_H
#define HEARTH_FRONT_CPU_TIMER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct hearth_cpu_timer {
    bool is_made; /* false: the kernel has refused it */
    timer_t timer;
    sigset_t waiting; /* the signals to block in epoll_pwait */
};

void hearth_cpu_timer_start(struct hearth_cpu_timer *timer);
void hearth_cpu_timer_stop(struct hearth_cpu_timer *timer);
/* Interrupts once, after the process has used `cpu_ns` > 0 from now on. False: it will not. */
bool hearth_cpu_timer_arm(struct hearth_cpu_timer *timer, int64_t cpu_ns);

#endif
