/*
 * otlp_headers.h -- the headers of an export by OTLP over HTTP.
 *
 * Threads: the thread that runs the request.
 * Source:  OTLP specification, "OTLP/HTTP".
 */
#ifndef HEARTH_FRONT_OTLP_HEADERS_H
#define HEARTH_FRONT_OTLP_HEADERS_H

#include "rpc/rpc.h"

/*
 * How the body of a plain route is encoded; the answer has the same codec. INVALID_ARGUMENT, with
 * the HTTP status 415 and a header that lists the known ones, for other types and encodings.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_otlp_headers_read(struct hearth_rpc *rpc,
                                            enum hearth_rpc_codec *ret_codec,
                                            enum hearth_compression *ret_compression);

#endif
