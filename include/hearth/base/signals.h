/*
 * signals.h -- which signals our threads take.
 *
 * Those that end or steer the process are waited for by one thread; all others block them. SIGPROF stays open
 * everywhere: it belongs to the CPU profile of hearthd itself, and without one nobody sends it.
 *
 * Threads: pure.
 */
#ifndef HEARTH_BASE_SIGNALS_H
#define HEARTH_BASE_SIGNALS_H

#include <signal.h>

/* What a thread of ours blocks. */
static inline void hearth_signals_to_block(sigset_t *ret_set)
{
    (void)sigfillset(ret_set);
    (void)sigdelset(ret_set, SIGPROF);
}

#endif
