/*
 * signals.h -- which signals our threads block.
 *
 * One thread waits for the signals that end or steer the process; all other threads block them.
 * SIGPROF stays unblocked in all threads: the CPU profile of hearthd itself uses it, and nothing
 * else sends it. So does SIGSYS, by which the kernel reports a system call that the sandbox refuses
 * (app/sandbox.c): a thread that blocked it would end the process.
 *
 * Threads: pure.
 */
#ifndef HEARTH_BASE_SIGNALS_H
#define HEARTH_BASE_SIGNALS_H

#include <signal.h>

/* The set of signals that each of our threads blocks. */
static inline void hearth_signals_to_block(sigset_t *ret_set)
{
    (void)sigfillset(ret_set);
    (void)sigdelset(ret_set, SIGPROF);
    (void)sigdelset(ret_set, SIGSYS);
}

#endif
