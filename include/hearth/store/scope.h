/*
 * scope.h -- for whom a call reads or writes the store, with what memory, and until when.
 *
 * Every member is borrowed for the duration of the call. A function that needs no tenant ignores it (its header says
 * so); one that returns no rows accepts a NULL arena. cancel may be NULL: no deadline, never cancelled.
 */
#ifndef HEARTH_STORE_SCOPE_H
#define HEARTH_STORE_SCOPE_H

#include "hearth/base/arena.h"
#include "hearth/base/cancel.h"
#include "hearth/base/str.h"

struct hearth_store;

struct hearth_scope {
    struct hearth_store *store;
    struct hearth_str tenant;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena; /* returned rows and texts live here */
};

#endif
