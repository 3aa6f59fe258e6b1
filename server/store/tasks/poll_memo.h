/*
 * poll_memo.h -- the agents whose polls this server has noted, in memory (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_POLL_MEMO_H
#define HEARTH_STORE_POLL_MEMO_H

#include "hearth/store/store.h"

struct hearth_poll_memo;

/* An empty memo. NULL: memory was refused. */
struct hearth_poll_memo *hearth_poll_memo_new(void);
void hearth_poll_memo_free(struct hearth_poll_memo *memo); /* NULL-safe */

#endif
