/*
 * scope.h -- whose data a call to the store reads or writes, with which memory, and until when.
 *
 * Every member is borrowed for the duration of the call. The default, if a function's comment says
 * nothing else:
 *
 *     store   required
 *     tenant  required; may be a tenant without any data
 *     cancel  may be NULL: no deadline, never cancelled
 *     arena   required if the function returns rows or texts; otherwise NULL is accepted. Its limit
 *             and budget also hold for the memory of a transaction
 */
#ifndef HEARTH_STORE_SCOPE_H
#define HEARTH_STORE_SCOPE_H

#include "hearth/base/arena.h"
#include "hearth/base/cancel.h"
#include "hearth/base/str.h"

struct hearth_store;

/* Not shared between threads: its arena is not thread-safe. */
struct hearth_scope {
    struct hearth_store *store;
    struct hearth_str tenant;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena; /* owner of returned rows and texts */
};

#endif
