/*
 * call.h -- the context of one call of the engine: its tenant, its memory, its deadline.
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
#include "hearth/model/access.h"

struct hearth_partial;
struct hearth_query_engine;

struct hearth_call {
    struct hearth_query_engine *engine;
    struct hearth_str tenant; /* of several: the first */
    /* The part of the tenant's data that the caller may see; NULL: all of it. */
    const struct hearth_view *view;
    /*
     * A query of several tenants: each with the part that the caller may see of it, sorted by
     * tenant, distinct. `view` is not used then. n_tenants below 2: the call is about `tenant`.
     */
    const struct hearth_view *tenants;
    size_t n_tenants;
    struct hearth_arena *arena;
    struct hearth_cancel *cancel; /* deadline, and whether the client has left; may be NULL */
    /* Lines for the client: parts that the answer lacks, changes of the request; may be NULL. */
    struct hearth_buf *notes;
    /*
     * What the answer leaves out because a node does not answer (engine/partial.h). NULL: an answer
     * without everything is an error.
     */
    struct hearth_partial *partial;
    /*
     * True for the server's own calls, to which the limits of range, lookback and points do not
     * apply.
     */
    bool is_own;
};

#endif
