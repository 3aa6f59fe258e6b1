/* network_rows.h -- what network.c and network_captured.c share (private to the store). Threads: safe. */
#ifndef HEARTH_STORE_NETWORK_ROWS_H
#define HEARTH_STORE_NETWORK_ROWS_H

#include "pg/session.h"

/* Two parameters: the tenant's name, and the service's fingerprint. */
void hearth_network_param_service(struct hearth_pg_params *params, struct hearth_str tenant,
                                  struct hearth_str service);

/*
 * Run `write`, which sets *n_services to how many services of that name there were when it wrote; the service is made, and
 * `write` run again, when there was none.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_write(const struct hearth_scope *scope, struct hearth_str service,
                                        hearth_with_pg_fn *write, void *context,
                                        const int64_t *n_services, struct hearth_err *err);

#endif
