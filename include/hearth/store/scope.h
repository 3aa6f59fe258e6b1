/*
 * scope.h -- whose data a call to the store reads or writes, with which memory, and until when.
 *
 * Every member is borrowed for the duration of the call. The default, if a function's comment says
 * nothing else:
 *
 *     store   required
 *     tenant  required; may be a tenant without any data. Statements see only its rows, also if
 *             they lack a condition (row-level security)
 *     tenants the tenants of a read over several, instead of tenant; n_tenants 0: there is only one
 *     cancel  may be NULL: no deadline, never cancelled
 *     arena   required if the function returns rows or texts; otherwise NULL is accepted. Its limit
 *             and budget also hold for the memory of a transaction
 *
 * Threads: a scope belongs to one thread.
 */
#ifndef HEARTH_STORE_SCOPE_H
#define HEARTH_STORE_SCOPE_H

#include "hearth/base/arena.h"
#include "hearth/base/cancel.h"
#include "hearth/base/str.h"
#include "hearth/model/access.h"

struct hearth_store;

/* Not shared between threads: its arena is not thread-safe. */
struct hearth_scope {
    struct hearth_store *store;
    struct hearth_str tenant;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;        /* owner of returned rows and texts */
    const struct hearth_view *tenants; /* only their names are used */
    size_t n_tenants;
    /*
     * The statements are the server's own and see rows of all tenants. Only the store sets it, in
     * functions that work for several tenants.
     */
    bool is_owner;
};

/* The same scope for statements that see rows of all tenants. */
static inline struct hearth_scope hearth_scope_of_owner(const struct hearth_scope *scope)
{
    struct hearth_scope own = *scope;
    own.is_owner = true;
    return own;
}

#endif
