/* client_tls.h -- credentials of gRPC's channels from files. Threads: safe. */
#ifndef HEARTH_CLIENT_TLS_H
#define HEARTH_CLIENT_TLS_H

#include "hearth/base/status.h"
#include "hearth/client.h"

#include <grpc/grpc_security.h>

/*
 * Credentials for TLS. INVALID_ARGUMENT if a file cannot be read, is larger than 1 MiB, or stands
 * without its partner; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tls_credentials(const struct hearth_client_options *options,
                                          grpc_channel_credentials **ret_credentials,
                                          struct hearth_err *err);

#endif
