/* tokens.c -- creating, rotating, deleting and listing tokens. */
#include "hearth/base/clock.h"

#include "access/access_internal.h"
#include "access/access_rules.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_NAME_BYTES   100
#define MAX_TOKEN_GRANTS 64

static enum hearth_status check_new_token(const struct hearth_access_call *call,
                                          const struct hearth_new_token *token,
                                          struct hearth_err *err)
{
    if (token->name.n == 0 || token->name.n > MAX_NAME_BYTES ||
        !hearth_str_utf8_valid(token->name)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the name of a token is UTF-8 of 1 to %d bytes", MAX_NAME_BYTES);
    }

    if (token->n_grants == 0 || token->n_grants > MAX_TOKEN_GRANTS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a token has 1 to %d grants (a role in a tenant each), not %zu",
                           MAX_TOKEN_GRANTS, token->n_grants);
    }

    if (token->expires_ms != 0 && token->expires_ms <= hearth_access_now_ms()) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the token would have expired already");
    }

    for (size_t i = 0; i < token->n_grants; i++) {
        HEARTH_TRY(hearth_access_check_grant(call, &token->grants[i], err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_access_create_token(const struct hearth_access_call *call,
                                              const struct hearth_new_token *token,
                                              struct hearth_made_token *ret, struct hearth_err *err)
{
    struct hearth_token row = {.name = token->name,
                               .created_by = call->admission->subject,
                               .created_ms = hearth_access_now_ms(),
                               .expires_ms = token->expires_ms};

    HEARTH_TRY(check_new_token(call, token, err));
    if (row.created_by.n == 0) {
        row.created_by = HEARTH_STR("anonymous");
    }

    HEARTH_TRY(hearth_access_make_token(call->arena, &ret->text, &row, err));
    HEARTH_TRY(hearth_store_token_add(HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena),
                                      &row, token->grants, token->n_grants, err));
    hearth_access_wrote(call->access, call->cancel);
    HEARTH_TRY(hearth_access_end_setup(call->access, call->cancel, err));
    ret->id = row.id;
    ret->expires_ms = row.expires_ms;

    return HEARTH_OK;
}

/* The grants of a token, copied to the arena. */
static enum hearth_status copy_token_grants(const struct hearth_known_token *token,
                                            struct hearth_arena *arena, struct hearth_grant **ret,
                                            struct hearth_err *err)
{
    struct hearth_grant *grants = hearth_arena_array(arena, token->grants.n, sizeof *grants);
    if (grants == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < token->grants.n; i++) {
        const struct hearth_grant *from = &token->grants.first[i].grant;
        grants[i] = (struct hearth_grant){.tenant = hearth_arena_str(arena, from->tenant),
                                          .role = from->role,
                                          .selector = hearth_arena_str(arena, from->selector)};
    }
    *ret = grants;

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* True if the caller administers every tenant that the token has a grant in. */
static bool may_change_token(const struct hearth_access_call *call,
                             const struct hearth_known_token *token)
{
    for (size_t i = 0; i < token->grants.n; i++) {
        if (!hearth_access_is_admin(call, token->grants.first[i].grant.tenant)) {
            return false;
        }
    }
    return token->grants.n > 0 || hearth_access_is_admin(call, HEARTH_STR(HEARTH_ALL_TENANTS));
}

/* The token, if the caller may change it; otherwise NOT_FOUND. */
static enum hearth_status find_own_token(const struct hearth_access_call *call,
                                         const struct hearth_access_snapshot *held,
                                         struct hearth_str id, struct hearth_known_token **ret,
                                         struct hearth_err *err)
{
    struct hearth_known_token *token = held == NULL ? NULL : hearth_snapshot_token(held, id);

    if (token == NULL || !may_change_token(call, token)) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no token \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(id));
    }
    *ret = token;

    return HEARTH_OK;
}

/* When a token that begins now ends if it lives as long as the row's; 0: never. */
static int64_t same_lifetime(const struct hearth_token *row)
{
    int64_t end_ms;

    if (row->expires_ms == 0) {
        return 0;
    }
    bool is_beyond =
        __builtin_add_overflow(hearth_access_now_ms() - row->created_ms, row->expires_ms, &end_ms);
    return is_beyond ? INT64_MAX : end_ms;
}

/* Name, grants and lifetime of the old token, in the arena. */
static enum hearth_status copy_token(const struct hearth_access_call *call, struct hearth_str id,
                                     struct hearth_new_token *ret, struct hearth_err *err)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(call->access);
    struct hearth_known_token *token;
    struct hearth_grant *grants = NULL;

    enum hearth_status status = find_own_token(call, held, id, &token, err);
    if (status == HEARTH_OK) {
        status = copy_token_grants(token, call->arena, &grants, err);
    }
    if (status == HEARTH_OK) {
        ret->name = hearth_arena_str(call->arena, token->row->name);
        ret->grants = grants;
        ret->n_grants = token->grants.n;
        ret->expires_ms = same_lifetime(token->row);
        status = ret->name.p == NULL ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
    }
    hearth_snapshot_release(held);

    return status;
}

enum hearth_status hearth_access_rotate_token(const struct hearth_access_call *call,
                                              const struct hearth_rotation *rotation,
                                              struct hearth_made_token *ret, struct hearth_err *err)
{
    struct hearth_new_token token;

    if (rotation->overlap_ns < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the overlap is negative");
    }

    HEARTH_TRY(copy_token(call, rotation->id, &token, err));
    if (rotation->never_expires || rotation->expires_ms != 0) {
        token.expires_ms = rotation->expires_ms;
    }
    HEARTH_TRY(hearth_access_create_token(call, &token, ret, err));
    enum hearth_status status = hearth_store_token_end(
        HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), rotation->id,
        hearth_access_now_ms() + rotation->overlap_ns / HEARTH_NS_PER_MS, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
        return status;
    }
    hearth_access_wrote(call->access, call->cancel);

    return HEARTH_OK;
}

enum hearth_status hearth_access_delete_token(const struct hearth_access_call *call,
                                              struct hearth_str id, struct hearth_err *err)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(call->access);
    struct hearth_known_token *token;

    enum hearth_status status = find_own_token(call, held, id, &token, err);
    hearth_snapshot_release(held);
    HEARTH_TRY(status);
    HEARTH_TRY(hearth_store_token_end(HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena),
                                      id, 0, err));
    hearth_access_wrote(call->access, call->cancel);

    return HEARTH_OK;
}

/* ---- listing ---- */

static int compare_listed_tokens(const void *left, const void *right)
{
    const struct hearth_listed_token *a = left, *b = right;
    int order = hearth_str_cmp(a->token.name, b->token.name);
    return order != 0 ? order : hearth_str_cmp(a->token.id, b->token.id);
}

static enum hearth_status copy_listed_token(const struct hearth_known_token *token,
                                            struct hearth_arena *arena,
                                            struct hearth_listed_token *ret, struct hearth_err *err)
{
    const struct hearth_token *row = token->row;

    *ret = (struct hearth_listed_token){
        .token = {.id = hearth_arena_str(arena, row->id),
                  .name = hearth_arena_str(arena, row->name),
                  .created_by = hearth_arena_str(arena, row->created_by),
                  .created_ms = row->created_ms,
                  .expires_ms = row->expires_ms,
                  .last_used_ms = atomic_load(&token->used_ms),
                  .last_used_from = hearth_arena_str(arena, row->last_used_from)},
        .n_grants = token->grants.n};

    return copy_token_grants(token, arena, &ret->grants, err);
}

enum hearth_status hearth_access_tokens(const struct hearth_access_call *call,
                                        struct hearth_listed_token **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(call->access);
    size_t n_rows = held == NULL ? 0 : held->rows.n_tokens, n = 0;
    struct hearth_listed_token *list = hearth_arena_array(call->arena, n_rows, sizeof *list);
    enum hearth_status status = list == NULL ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;

    for (size_t i = 0; status == HEARTH_OK && i < n_rows; i++) {
        if (may_change_token(call, &held->tokens[i])) {
            status = copy_listed_token(&held->tokens[i], call->arena, &list[n++], err);
        }
    }
    hearth_snapshot_release(held);
    HEARTH_TRY(status);

    qsort(list, n, sizeof *list, compare_listed_tokens);
    *ret = list;
    *ret_n = n;

    return HEARTH_OK;
}
