/* store_scope.h -- a scope of the store without a deadline, as an argument; valid until the end of the enclosing block. */
#ifndef STORE_SCOPE_H
#define STORE_SCOPE_H

#include "hearth/store/scope.h"

#define STORE_SCOPE(store_, tenant_, arena_) \
    (&(const struct hearth_scope){.store = (store_), .tenant = (tenant_), .arena = (arena_)})

/* The same without a wall, for rows that tests insert for services that no tenant has. */
#define STORE_OWNER(store_, cancel_) \
    (&(const struct hearth_scope){.store = (store_), .cancel = (cancel_), .is_owner = true})

#endif
