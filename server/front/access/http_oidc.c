/*
 * http_oidc.c -- GET /api/v1/oidc/login and /api/v1/oidc/callback: log-in of people at an issuer.
 *
 * The browser is sent to the issuer with a sealed cookie (oidc/oidc_state.h), and returns with a
 * code. Then a session begins, as after a log-in by password.
 */
#include "access/cookies.h"
#include "handlers.h"
#include "http/http_call.h"
#include "oidc/oidc.h"
#include "rpc/front_internal.h"

#include <assert.h>

#define FOUND 302

static enum hearth_status check_oidc_listener(struct hearth_rpc *rpc)
{
    return rpc->front->oidc == NULL || (rpc->caller.modes & HEARTH_AUTH_OIDC) == 0
               ? HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                             "this listener takes no log-ins at an issuer; it needs the way "
                             "\"oidc\" (auth)")
               : HEARTH_OK;
}

/* An answer that sends the browser to another address and is kept nowhere. */
static void send_browser_to(struct hearth_rpc *rpc, const char *url)
{
    rpc->http->code = FOUND;
    hearth_rpc_add_header(rpc, "Location", url);
    hearth_rpc_add_header(rpc, "Cache-Control", "no-store");
}

/* ---- to the issuer ---- */

static enum hearth_status begin_oidc_login(struct hearth_rpc *rpc)
{
    struct hearth_str return_path = hearth_http_arg(rpc, "return"), cookie;
    const char *url;

    HEARTH_TRY(check_oidc_listener(rpc));
    if (return_path.n == 0) {
        return_path = HEARTH_STR("/");
    }
    struct hearth_oidc *oidc = hearth_oidc_hold(rpc->front->oidc);
    enum hearth_status status =
        hearth_oidc_begin_login(oidc, return_path, &rpc->arena, &url, &cookie, &rpc->err);
    hearth_oidc_release(oidc);
    HEARTH_TRY(status);

    hearth_cookie_set_login(rpc, cookie, HEARTH_OIDC_LOGIN_S);
    send_browser_to(rpc, url);

    return HEARTH_OK;
}

void hearth_http_oidc_login(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, begin_oidc_login(rpc));
}

/* ---- back from the issuer ---- */

static void note_oidc_login(struct hearth_rpc *rpc, struct hearth_str subject,
                            enum hearth_status status)
{
    hearth_audit_note(rpc->front->options.access,
                      &(const struct hearth_audit_event){
                          .subject = subject,
                          .address = hearth_str_c(rpc->caller.address),
                          .action = HEARTH_STR("login"),
                          .outcome = hearth_str_c(hearth_status_name(status)),
                          .message = hearth_str_c(status == HEARTH_OK ? "" : rpc->err.msg)});
}

/* Whoever has no role gets no session: the issuer may know many people. */
static enum hearth_status check_has_role(struct hearth_rpc *rpc,
                                         const struct hearth_oidc_identity *identity)
{
    const struct hearth_credential credential = {.kind = HEARTH_CREDENTIAL_SUBJECT,
                                                 .subjects = identity->subjects,
                                                 .n_subjects = identity->n_subjects};
    struct hearth_admission admission;

    HEARTH_TRY(
        hearth_access_identify(rpc->front->options.access, &credential, &admission, &rpc->err));
    hearth_admission_release(&admission);

    return HEARTH_OK;
}

static enum hearth_status begin_oidc_session(struct hearth_rpc *rpc,
                                             const struct hearth_oidc_identity *identity)
{
    const struct hearth_login from = {.address = hearth_str_c(rpc->caller.address)};
    char cookie[HEARTH_COOKIE_CHARS + 1];

    HEARTH_TRY(check_has_role(rpc, identity));
    HEARTH_TRY(hearth_access_begin_session(rpc->front->options.access, identity->subjects,
                                           identity->n_subjects, &from, &rpc->cancel, cookie,
                                           &rpc->err));

    hearth_cookie_set_session(rpc, cookie, rpc->front->options.session_max_ns / HEARTH_NS_PER_SEC);
    explicit_bzero(cookie, sizeof cookie);

    return HEARTH_OK;
}

/* A wrong answer counts as a wrong credential of the address. */
static enum hearth_status finish_at_issuer(struct hearth_rpc *rpc, struct hearth_oidc_identity *ret,
                                           struct hearth_str *ret_return_path)
{
    const struct hearth_oidc_answer answer = {
        .cookie = rpc->http->login_cookie,
        .state = hearth_http_arg(rpc, "state"),
        .code = hearth_http_arg(rpc, "code"),
        .issuer = hearth_http_arg(rpc, "iss"),
        .error = hearth_http_arg(rpc, "error"),
        .error_description = hearth_http_arg(rpc, "error_description"),
    };
    struct hearth_err why = HEARTH_ERR_INIT;

    struct hearth_oidc *oidc = hearth_oidc_hold(rpc->front->oidc);
    enum hearth_status status = hearth_oidc_finish_login(oidc, &answer, &rpc->cancel, &rpc->arena,
                                                         ret, ret_return_path, &why);
    hearth_oidc_release(oidc);
    if (status == HEARTH_UNAUTHENTICATED) {
        return hearth_access_refuse(rpc->front->options.access, hearth_str_c(rpc->caller.address),
                                    why.msg, &rpc->err);
    }

    return status == HEARTH_OK ? HEARTH_OK : HEARTH_FAIL(&rpc->err, status, "%s", why.msg);
}

static enum hearth_status finish_oidc_login(struct hearth_rpc *rpc)
{
    struct hearth_oidc_identity identity;
    struct hearth_str return_path;

    HEARTH_TRY(check_oidc_listener(rpc));
    enum hearth_status status = finish_at_issuer(rpc, &identity, &return_path);
    if (status != HEARTH_OK) {
        note_oidc_login(rpc, HEARTH_STR("unknown"), status);
        return status;
    }

    status = begin_oidc_session(rpc, &identity);
    note_oidc_login(rpc, identity.subjects[0], status);
    HEARTH_TRY(status);
    const char *path = hearth_arena_strndup(&rpc->arena, return_path.p, return_path.n);
    if (path == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth_cookie_set_login(rpc, HEARTH_STR(""), 0);
    send_browser_to(rpc, path);

    return HEARTH_OK;
}

void hearth_http_oidc_callback(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, finish_oidc_login(rpc));
}
