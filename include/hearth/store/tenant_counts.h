/*
 * tenant_counts.h -- how much of the catalogue a tenant has.
 *
 * Threads: safe.
 * Errors:  UNAVAILABLE, INTERNAL, NO_MEMORY; as scope.h.
 */
#ifndef HEARTH_STORE_TENANT_COUNTS_H
#define HEARTH_STORE_TENANT_COUNTS_H

#include "hearth/store/scope.h"
#include "hearth/store/store.h"

struct hearth_tenant_counts {
    int64_t n_services, n_series;
    int64_t n_tasks; /* profiling tasks that have not ended */
};

/* Count the rows of the tenant; reads an index entry for each series. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tenant_counts(const struct hearth_scope *scope,
                                              struct hearth_tenant_counts *ret,
                                              struct hearth_err *err);

#endif
