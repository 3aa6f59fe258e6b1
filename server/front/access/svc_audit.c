/* svc_audit.c -- hearth.v1.AccessService: the audit log. */
#include "access/access_messages.h"
#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(event, struct hearth_audit_event, Hearth__V1__AuditEvent);
static const struct hearth_message_member event_members[] = {
    HEARTH_MAP(event, id, id),           HEARTH_MAP(event, at_ms, at_ms),
    HEARTH_MAP(event, tenant, tenant),   HEARTH_MAP(event, subject, subject),
    HEARTH_MAP(event, address, address), HEARTH_MAP(event, action, action),
    HEARTH_MAP(event, object, object),   HEARTH_MAP(event, outcome, outcome),
    HEARTH_MAP(event, message, message),
};
static const struct hearth_message_map event_map =
    HEARTH_MESSAGE_MAP(event, hearth__v1__audit_event__descriptor);

HEARTH_UNARY(hearth_svc_audit_log, Hearth__V1__AuditLogRequest, Hearth__V1__AuditLogResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    const struct hearth_audit_query query = {
        .from_ms = in->from_ms,
        .to_ms = in->to_ms,
        .tenant = hearth_str_c(in->tenant),
        .subject = hearth_str_c(in->subject),
        .action = hearth_str_c(in->action),
        .outcome = hearth_str_c(in->outcome),
        .before_id = in->before_id,
        .limit = in->limit,
    };
    struct hearth_audit_event *events;
    size_t n;

    HEARTH_TRY(hearth_audit_list(&call, &query, &events, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &event_map, events, n, out, events);

    return HEARTH_OK;
}
