/*
 * network_expire.h -- deletes old sampled requests and captured events of network tasks (private to
 * the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_NETWORK_EXPIRE_H
#define HEARTH_STORE_NETWORK_EXPIRE_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* Uses the store's retain_network_ns and retain_captured_ns; 0: deletes nothing of that kind. */
HEARTH_MUST_CHECK enum hearth_status
hearth_network_expire(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

#endif
