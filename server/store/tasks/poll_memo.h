/*
 * poll_memo.h -- which agents ask this server for tasks, in memory (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_POLL_MEMO_H
#define HEARTH_STORE_POLL_MEMO_H

#include "hearth/store/store.h"

struct hearth_poll_memo;

/* For which agents this server has noted that they ask; NULL without memory. */
struct hearth_poll_memo *hearth_poll_memo_new(void);
void hearth_poll_memo_free(struct hearth_poll_memo *memo); /* NULL-safe */

#endif
