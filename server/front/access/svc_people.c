/* svc_people.c -- hearth.v1.AccessService: users, sessions and grants. */
#include "access/access_messages.h"
#include "handlers.h"
#include "rpc/audit_request.h"
#include "rpc/front_internal.h"
#include "rpc/unary.h"

HEARTH_UNARY(hearth_svc_create_user, Hearth__V1__CreateUserRequest, Hearth__V1__CreateUserResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);

    hearth_rpc_set_object(rpc, "user %s", in->name);

    return hearth_access_create_user(&call, hearth_str_c(in->name), hearth_str_c(in->password),
                                     &rpc->err);
}

HEARTH_UNARY(hearth_svc_set_password, Hearth__V1__SetPasswordRequest,
             Hearth__V1__SetPasswordResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);

    hearth_rpc_set_object(rpc, "user %s", in->name);

    return hearth_access_set_password(&call, hearth_str_c(in->name), hearth_str_c(in->password),
                                      hearth_str_c(in->old_password), &rpc->err);
}

HEARTH_UNARY(hearth_svc_disable_user, Hearth__V1__DisableUserRequest,
             Hearth__V1__DisableUserResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    return hearth_access_disable_user(&call, hearth_str_c(in->name), in->disabled, &rpc->err);
}

HEARTH_UNARY(hearth_svc_delete_user, Hearth__V1__DeleteUserRequest, Hearth__V1__DeleteUserResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    return hearth_access_delete_user(&call, hearth_str_c(in->name), &rpc->err);
}

HEARTH_MAP_TYPES(user, struct hearth_listed_user, Hearth__V1__User);
static const struct hearth_message_member user_members[] = {
    HEARTH_MAP(user, user.name, name),
    HEARTH_MAP(user, user.created_by, created_by),
    HEARTH_MAP(user, user.created_ms, created_ms),
    HEARTH_MAP(user, user.password_ms, password_ms),
    HEARTH_MAP(user, user.last_login_ms, last_login_ms),
    HEARTH_MAP(user, user.is_disabled, disabled),
    HEARTH_MAP(user, n_sessions, sessions),
};
static const struct hearth_message_map user_map =
    HEARTH_MESSAGE_MAP(user, hearth__v1__user__descriptor);

HEARTH_UNARY(hearth_svc_list_users, Hearth__V1__ListUsersRequest, Hearth__V1__ListUsersResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_listed_user *users;
    size_t n;

    HEARTH_TRY(hearth_access_users(&call, &users, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &user_map, users, n, out, users);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_end_sessions, Hearth__V1__EndSessionsRequest,
             Hearth__V1__EndSessionsResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_str subject =
        in->subject[0] == '\0' ? call.admission->subject : hearth_str_c(in->subject);

    hearth_rpc_set_object(rpc, HEARTH_STR_FMT, HEARTH_STR_ARG(subject));

    return hearth_access_end_sessions(&call, subject, &out->sessions, &rpc->err);
}

/* ---- grants ---- */

HEARTH_UNARY(hearth_svc_add_grant, Hearth__V1__Grant, Hearth__V1__AddGrantResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_grant grant;

    HEARTH_TRY(hearth_read_grant(in, &grant, &rpc->err));

    return hearth_access_add_grant(&call, &grant, &out->id, &rpc->err);
}

HEARTH_UNARY(hearth_svc_delete_grant, Hearth__V1__DeleteGrantRequest,
             Hearth__V1__DeleteGrantResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    return hearth_access_delete_grant(&call, in->id, &rpc->err);
}

HEARTH_UNARY(hearth_svc_list_grants, Hearth__V1__ListGrantsRequest, Hearth__V1__ListGrantsResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_stored_grant *grants;
    size_t n;

    HEARTH_TRY(hearth_access_grants(&call, &grants, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &hearth_stored_grant_map, grants, n, out, grants);

    return HEARTH_OK;
}
