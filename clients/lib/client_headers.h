/*
 * client_headers.h -- the headers that a client sends with each call.
 *
 * Threads: immutable while calls run.
 */
#ifndef HEARTH_CLIENT_HEADERS_H
#define HEARTH_CLIENT_HEADERS_H

#include "hearth/base/status.h"
#include "hearth/client.h"

#include <grpc/grpc.h>

#define CLIENT_MAX_METADATA (HEARTH_CLIENT_MAX_HEADERS + 3) /* accept, tenant, token */

/* Texts of a header; the name as it was given. */
struct hearth_header {
    struct hearth_str name, value;
};

/*
 * Reads "NAME: VALUE", which *ret borrows. INVALID_ARGUMENT, with the name, for names that are no
 * token, that HTTP, gRPC or this client set themselves, and for values of other bytes than visible
 * ASCII and spaces; the message does not contain the value.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_header_parse(struct hearth_str text, struct hearth_header *ret,
                                       struct hearth_err *err);

struct client_metadata {
    grpc_metadata v[CLIENT_MAX_METADATA];
    size_t n;
};

/* Copies name and value; the name in lower case, as gRPC wants it. */
void client_metadata_add(struct client_metadata *metadata, struct hearth_str name,
                         struct hearth_str value);
/* Headers of the options, with "accept" and the tenant. INVALID_ARGUMENT. Release in every case. */
HEARTH_MUST_CHECK
enum hearth_status client_metadata_fill(struct client_metadata *ret,
                                        const struct hearth_client_options *options,
                                        struct hearth_err *err);
bool client_metadata_has(const struct client_metadata *metadata, const char *name);
void client_metadata_release(struct client_metadata *metadata);

#endif
