/*
 * tenant_lock.h -- transactions that count what a tenant has before they add to it: one at a time
 * per tenant (private to the store).
 */
#ifndef HEARTH_STORE_TENANT_LOCK_H
#define HEARTH_STORE_TENANT_LOCK_H

#include "catalog/catalog.h"

/* BEGIN, and wait for those of the tenant that began before. The caller commits, or rolls back. */
HEARTH_MUST_CHECK enum hearth_status
hearth_tenant_begin(struct hearth_pg *pg, struct hearth_str tenant, struct hearth_cancel *cancel,
                    enum hearth_pg_fault *ret_fault, struct hearth_err *err);

#endif
