/*
 * core_locks.h -- settings of gRPC's locks. Private to the front; the header that C and C++ share.
 *
 * Threads: to be called once, before the core is started.
 */
#ifndef HEARTH_FRONT_CORE_LOCKS_H
#define HEARTH_FRONT_CORE_LOCKS_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Abseil, whose locks the core uses, looks for cycles in the order of locks unless it was compiled
 * for release, which Debian's is not: each lock that is taken while another is held costs a search
 * in a graph that all threads share. This ends the search.
 */
void hearth_core_locks_trust(void);

#ifdef __cplusplus
}
#endif

#endif
