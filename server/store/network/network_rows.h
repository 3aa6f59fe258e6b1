/*
 * network_rows.h -- shared by store_network.c and network_captured.c (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_NETWORK_ROWS_H
#define HEARTH_STORE_NETWORK_ROWS_H

#include "pg/session.h"

/* Add two parameters: the tenant's name, and the service's fingerprint. */
void hearth_network_param_service(struct hearth_pg_params *params, struct hearth_str tenant,
                                  struct hearth_str service);

/*
 * Run `write`, which sets *n_services to the number of services of that name that existed when it
 * wrote (0 or 1). If there was none, create the service and run `write` again. Uses store, tenant
 * and cancel of the scope; UNAVAILABLE if the service is being removed all the time.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_write(const struct hearth_scope *scope, struct hearth_str service,
                                        hearth_with_pg_fn *write, void *context,
                                        const int64_t *n_services, struct hearth_err *err);

#endif
