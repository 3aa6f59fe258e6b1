/*
 * http_login.c -- POST /api/v1/login and /api/v1/logout: sessions of browsers.
 *
 * A log-in must be JSON, which a form of another site cannot send.
 */
#include "hearth/codec/json_pick.h"

#include "access/cookies.h"
#include "handlers.h"
#include "http/http_call.h"
#include "rpc/front_internal.h"
#include "rpc/media.h"

#include <assert.h>

#define BODY_MAX_BYTES 8192

static void set_session_cookie(struct hearth_rpc *rpc, const char *value, int64_t max_age_s)
{
    hearth_cookie_set_session(rpc, value, max_age_s);
    hearth_rpc_add_header(rpc, "Cache-Control", "no-store");
}

static void note_login(struct hearth_rpc *rpc, struct hearth_str user, enum hearth_status status)
{
    struct hearth_access *access = rpc->front->options.access;
    const char *subject =
        hearth_arena_printf(&rpc->arena, "user:" HEARTH_STR_FMT, HEARTH_STR_ARG(user));

    hearth_audit_note(
        access, &(const struct hearth_audit_event){
                    .subject = hearth_str_c(subject),
                    .address = hearth_str_c(rpc->caller.address),
                    .action = HEARTH_STR("login"),
                    .outcome = hearth_str_c(hearth_status_name(status)),
                    .message = status == HEARTH_OK ? HEARTH_STR("") : hearth_str_c(rpc->err.msg)});
}

static enum hearth_status check_login_request(struct hearth_rpc *rpc)
{
    if (rpc->front->options.access == NULL || (rpc->caller.modes & HEARTH_AUTH_USER) == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                           "this listener takes no passwords; it needs the way \"user\" (auth)");
    }

    struct hearth_str type = rpc->http->content_type;
    type.n = hearth_str_find(type, ';', 0);
    if (!hearth_str_eq_nocase(hearth_str_trim(type), HEARTH_STR("application/json"))) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "a log-in is JSON: Content-Type: application/json");
    }

    return rpc->body.n <= BODY_MAX_BYTES
               ? HEARTH_OK
               : HEARTH_FAIL(&rpc->err, HEARTH_TOO_LARGE, "a log-in has at most %d bytes",
                             BODY_MAX_BYTES);
}

static enum hearth_status log_in(struct hearth_rpc *rpc)
{
    struct hearth_json_pick picks[] = {{.path = "user"}, {.path = "password"}};
    char cookie[HEARTH_COOKIE_CHARS + 1];

    HEARTH_TRY(check_login_request(rpc));
    HEARTH_TRY(hearth_json_pick(rpc->body, picks, HEARTH_ARRAY_LEN(picks), &rpc->arena, &rpc->err));
    if (picks[0].text.p == NULL || picks[1].text.p == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "a log-in has the members \"user\" and \"password\"");
    }

    const struct hearth_login login = {.user = picks[0].text,
                                       .password = picks[1].text,
                                       .address = hearth_str_c(rpc->caller.address)};
    enum hearth_status status =
        hearth_access_login(rpc->front->options.access, &login, &rpc->cancel, cookie, &rpc->err);
    note_login(rpc, login.user, status);
    HEARTH_TRY(status);

    set_session_cookie(rpc, cookie, rpc->front->options.session_max_ns / HEARTH_NS_PER_SEC);
    explicit_bzero(cookie, sizeof cookie);
    rpc->http->answer_type = "application/json";
    hearth_buf_cstr(&rpc->packed, "{}\n");

    return HEARTH_OK;
}

void hearth_http_login(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, log_in(rpc));
}

void hearth_http_logout(struct hearth_rpc *rpc)
{
    enum hearth_status status =
        hearth_access_logout(&rpc->caller.admission, &rpc->cancel, &rpc->err);

    if (status == HEARTH_OK) {
        set_session_cookie(rpc, "", 0);
        rpc->http->answer_type = "application/json";
        hearth_buf_cstr(&rpc->packed, "{}\n");
    }
    hearth_rpc_end(rpc, status);
}
