/*
 * network_rows.h -- writes rows of a service that may not exist yet; shared by store_network.c and
 * network_captured.c (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_NETWORK_ROWS_H
#define HEARTH_STORE_NETWORK_ROWS_H

#include "session/session.h"

/* Add two parameters: the tenant's name, and the service's fingerprint. */
void hearth_network_param_service(struct hearth_pg_params *params, struct hearth_str tenant,
                                  struct hearth_str service);

/*
 * Run `write`, which sets *n_services to the number of services of that name that existed when it
 * wrote (0 or 1). If there was no service, create it and run `write` again, up to three times:
 * UNAVAILABLE if other transactions deleted it each time. Uses store, tenant and cancel of the
 * scope.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_write(const struct hearth_scope *scope, struct hearth_str service,
                                        hearth_with_pg_fn *write, void *context,
                                        const int64_t *n_services, struct hearth_err *err);

#endif
