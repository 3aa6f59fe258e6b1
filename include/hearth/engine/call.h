/*
 * call.h -- the context of one call of the engine: for which tenant it runs, with what memory, and until when.
 *
 * Ownership: everything is borrowed for the duration of the call; answers live in the arena.
 * Threads:   a call belongs to one thread; the engine is shared by all.
 */
#ifndef HEARTH_ENGINE_CALL_H
#define HEARTH_ENGINE_CALL_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"
#include "hearth/base/str.h"

struct hearth_query_engine;

struct hearth_call {
    struct hearth_query_engine *engine;
    struct hearth_str tenant;
    struct hearth_arena *arena;
    struct hearth_cancel *cancel; /* the deadline, and whether the client has gone; may be NULL */
    /* Lines for the client about what the answer lacks or what was changed; may be NULL. */
    struct hearth_buf *notes;
    /* The server's own call: the limits of queries (range, lookback, points) do not apply. */
    bool is_own;
};

#endif
