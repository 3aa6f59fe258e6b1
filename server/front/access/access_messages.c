/* access_messages.c -- grants as messages. */
#include "access/access_messages.h"

#include "rpc/front_internal.h"

static const char *const g_role_names[] = {
#define X(NAME, name, rights, meaning) name,
#include "hearth/model/roles.def"
#undef X
};

HEARTH_MAP_TYPES(grant, struct hearth_grant, Hearth__V1__Grant);
static const struct hearth_message_member grant_members[] = {
    HEARTH_MAP(grant, subject, subject),
    HEARTH_MAP(grant, tenant, tenant),
    HEARTH_MAP_NAME(grant, role, role, g_role_names),
    HEARTH_MAP(grant, selector, selector),
};
const struct hearth_message_map hearth_grant_map =
    HEARTH_MESSAGE_MAP(grant, hearth__v1__grant__descriptor);

HEARTH_MAP_TYPES(stored, struct hearth_stored_grant, Hearth__V1__Grant);
static const struct hearth_message_member stored_members[] = {
    HEARTH_MAP(stored, grant.subject, subject),
    HEARTH_MAP(stored, grant.tenant, tenant),
    HEARTH_MAP_NAME(stored, grant.role, role, g_role_names),
    HEARTH_MAP(stored, grant.selector, selector),
    HEARTH_MAP(stored, id, id),
    HEARTH_MAP(stored, created_by, created_by),
    HEARTH_MAP(stored, created_ms, created_ms),
};
const struct hearth_message_map hearth_stored_grant_map =
    HEARTH_MESSAGE_MAP(stored, hearth__v1__grant__descriptor);

struct hearth_access_call hearth_rpc_access_call(struct hearth_rpc *rpc)
{
    return (struct hearth_access_call){
        .access = rpc->front->options.access,
        .admission = &rpc->caller.admission,
        .arena = &rpc->arena,
        .cancel = &rpc->cancel,
    };
}

enum hearth_status hearth_read_grant(const Hearth__V1__Grant *grant, struct hearth_grant *ret,
                                     struct hearth_err *err)
{
    *ret = (struct hearth_grant){.subject = hearth_str_c(grant->subject),
                                 .tenant = hearth_str_c(grant->tenant),
                                 .selector = hearth_str_c(grant->selector)};

    return hearth_role_parse(hearth_str_c(grant->role), &ret->role)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "\"%s\" is no role; there are ingest, viewer, profiler, editor and "
                             "admin",
                             grant->role);
}
