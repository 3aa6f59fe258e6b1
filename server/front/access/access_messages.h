/* access_messages.h -- what the handlers of AccessService share. Threads: the request's thread. */
#ifndef HEARTH_FRONT_ACCESS_MESSAGES_H
#define HEARTH_FRONT_ACCESS_MESSAGES_H

#include "hearth/engine/access_control.h"
#include "hearth/pb/hearth/v1/access.pb-c.h"

#include "rpc/message_map.h"
#include "rpc/rpc.h"

/* A change of credentials, on behalf of the request's caller. */
struct hearth_access_call hearth_rpc_access_call(struct hearth_rpc *rpc);
/* Reads a grant; its texts are borrowed. INVALID_ARGUMENT for an unknown role. */
HEARTH_MUST_CHECK enum hearth_status
hearth_read_grant(const Hearth__V1__Grant *grant, struct hearth_grant *ret, struct hearth_err *err);

extern const struct hearth_message_map hearth_grant_map;        /* struct hearth_grant */
extern const struct hearth_message_map hearth_stored_grant_map; /* struct hearth_stored_grant */

#endif
