/* svc_tokens.c -- hearth.v1.AccessService: the caller itself, and tokens. */
#include "access/access_messages.h"
#include "handlers.h"
#include "rpc/audit_request.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"
#include "rpc/unary.h"

HEARTH_UNARY(hearth_svc_who_am_i, Hearth__V1__WhoAmIRequest, Hearth__V1__WhoAmIResponse)
{
    const struct hearth_admission *admission = &rpc->caller.admission;
    struct hearth_grant *grants = NULL;
    size_t n = 0;

    if (admission->access == NULL) {
        out->subject = out->name = hearth_rpc_text(rpc, HEARTH_STR("anonymous"));
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_access_grants_of(admission, &rpc->arena, &grants, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &hearth_grant_map, grants, n, out, grants);
    out->subject = hearth_rpc_text(rpc, admission->subject);
    out->name = hearth_rpc_text(rpc, admission->name);
    out->expires_ms = admission->expires_ms;

    return HEARTH_OK;
}

static void answer_token(struct hearth_rpc *rpc, const struct hearth_made_token *made,
                         Hearth__V1__CreatedToken *out)
{
    out->id = hearth_rpc_text(rpc, made->id);
    out->token = hearth_rpc_text(rpc, made->text);
    out->expires_ms = made->expires_ms;
}

HEARTH_UNARY(hearth_svc_create_token, Hearth__V1__CreateTokenRequest, Hearth__V1__CreatedToken)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_made_token made;
    struct hearth_grant *grants = hearth_arena_array(&rpc->arena, in->n_grants, sizeof *grants);

    if (grants == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    for (size_t i = 0; i < in->n_grants; i++) {
        HEARTH_TRY(hearth_read_grant(in->grants[i], &grants[i], &rpc->err));
    }

    const struct hearth_new_token token = {.name = hearth_str_c(in->name),
                                           .grants = grants,
                                           .n_grants = in->n_grants,
                                           .expires_ms = in->expires_ms};
    HEARTH_TRY(hearth_access_create_token(&call, &token, &made, &rpc->err));
    answer_token(rpc, &made, out);
    hearth_rpc_set_object(rpc, "token " HEARTH_STR_FMT " \"%s\"", HEARTH_STR_ARG(made.id),
                          in->name);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_rotate_token, Hearth__V1__RotateTokenRequest, Hearth__V1__CreatedToken)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_rotation rotation = {.id = hearth_str_c(in->id),
                                       .expires_ms = in->expires_ms,
                                       .never_expires = in->never_expires};
    struct hearth_made_token made;

    if (__builtin_mul_overflow(in->overlap_ms, HEARTH_NS_PER_MS, &rotation.overlap_ns)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "overlap_ms is out of range");
    }
    if (in->never_expires && in->expires_ms != 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "expires_ms and never_expires exclude each other");
    }

    HEARTH_TRY(hearth_access_rotate_token(&call, &rotation, &made, &rpc->err));
    answer_token(rpc, &made, out);
    hearth_rpc_set_object(rpc, "token " HEARTH_STR_FMT " instead of %s", HEARTH_STR_ARG(made.id),
                          in->id);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_delete_token, Hearth__V1__DeleteTokenRequest,
             Hearth__V1__DeleteTokenResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    return hearth_access_delete_token(&call, hearth_str_c(in->id), &rpc->err);
}

HEARTH_MAP_TYPES(token, struct hearth_listed_token, Hearth__V1__Token);
static const struct hearth_message_member token_members[] = {
    HEARTH_MAP(token, token.id, id),
    HEARTH_MAP(token, token.name, name),
    HEARTH_MAP(token, token.created_by, created_by),
    HEARTH_MAP(token, token.created_ms, created_ms),
    HEARTH_MAP(token, token.expires_ms, expires_ms),
    HEARTH_MAP(token, token.last_used_ms, last_used_ms),
    HEARTH_MAP(token, token.last_used_from, last_used_from),
    HEARTH_MAP_LIST(token, grants, n_grants, grants, &hearth_grant_map),
};
static const struct hearth_message_map token_map =
    HEARTH_MESSAGE_MAP(token, hearth__v1__token__descriptor);

HEARTH_UNARY(hearth_svc_list_tokens, Hearth__V1__ListTokensRequest, Hearth__V1__ListTokensResponse)
{
    const struct hearth_access_call call = hearth_rpc_access_call(rpc);
    struct hearth_listed_token *tokens;
    size_t n;

    HEARTH_TRY(hearth_access_tokens(&call, &tokens, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &token_map, tokens, n, out, tokens);

    return HEARTH_OK;
}
