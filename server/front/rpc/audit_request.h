/*
 * audit_request.h -- writes requests with HEARTH_METHOD_AUDIT to the audit log.
 *
 * The event is committed before the client gets its answer, so that no acknowledged change is
 * missing.
 *
 * Threads: the thread that ends the request; it waits for the database.
 */
#ifndef HEARTH_FRONT_AUDIT_REQUEST_H
#define HEARTH_FRONT_AUDIT_REQUEST_H

#include "rpc/rpc.h"

/*
 * Writes the event of a request that ends with `status`. Returns that status, or UNAVAILABLE if a
 * change was made and could not be written to the log.
 */
enum hearth_status hearth_rpc_write_audit(struct hearth_rpc *rpc, enum hearth_status status);
/*
 * Appends about max_bytes of the request as JSON; nothing if it has secrets or is not a message.
 */
void hearth_rpc_write_request(struct hearth_rpc *rpc, size_t max_bytes, struct hearth_buf *out);
/* What a call was about, for the log, where its request may not be in it or says too little. */
void hearth_rpc_set_object(struct hearth_rpc *rpc, const char *fmt, ...) HEARTH_PRINTF(2, 3);

#endif
