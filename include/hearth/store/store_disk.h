/*
 * store_disk.h -- estimated bytes on disk of the services of a tenant.
 *
 * Threads: safe.
 * Errors:  UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED, INTERNAL, NO_MEMORY; as scope.h.
 */
#ifndef HEARTH_STORE_STORE_DISK_H
#define HEARTH_STORE_STORE_DISK_H

#include "hearth/model/service_disk.h"
#include "hearth/store/scope.h"
#include "hearth/store/store.h"

/*
 * The services of the scope's tenant that have rows, the largest first, in scope->arena. Reads at
 * most `max_disk_sample_bytes` (option) of the heap of each table, of all tenants: the size of a
 * table is shared out among all services. A service whose few rows are not in the sample is absent.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_disk_services(const struct hearth_scope *scope,
                                              struct hearth_service_disk **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
