/*
 * oidc_login.c -- log-in of people: to the issuer, and back with a code.
 *
 * What protects it: the state and the cookie (the answer belongs to this browser), the nonce (the
 * ID token belongs to this log-in), PKCE (nobody else can use the code), "iss" (the answer is the
 * issuer's own).
 */
#include "hearth/base/log.h"
#include "hearth/codec/json_pick.h"

#include "oidc/oidc_internal.h"
#include "oidc/oidc_url.h"

#include <assert.h>

#define KEY_WAIT_NS (5 * HEARTH_NS_PER_SEC) /* for a key that an ID token names */

/* Appends a text with all but the unreserved characters of RFC 3986 as %XX. */
static void append_escaped(struct hearth_buf *out, struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (is_plain) {
            hearth_buf_byte(out, c);
        } else {
            hearth_buf_printf(out, "%%%02X", c);
        }
    }
}

/* Appends "NAME=VALUE&" pairs. */
struct form_pair {
    const char *name;
    struct hearth_str value;
};

static void append_form(struct hearth_buf *out, const struct form_pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "%s%s=", i > 0 ? "&" : "", pairs[i].name);
        append_escaped(out, pairs[i].value);
    }
}

/* The endpoints of the issuer where people log in, held. */
static enum hearth_status hold_endpoints(struct hearth_oidc *oidc,
                                         struct hearth_oidc_endpoints **ret, struct hearth_err *err)
{
    struct hearth_oidc_issuer *issuer = &oidc->issuers[0];
    enum hearth_status status = HEARTH_OK;

    if (oidc->options.client_id[0] == '\0') {
        return HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED,
                           "people cannot log in at an issuer: oidc-client-id is not set");
    }

    hearth_mutex_lock(&oidc->lock);
    if (issuer->endpoints == NULL) {
        (void)hearth_oidc_want(oidc, issuer);
        status = HEARTH_FAIL(
            err, HEARTH_UNAVAILABLE, "the issuer %.100s has not answered yet: try again%s%.200s",
            issuer->url, issuer->failure.msg[0] != '\0' ? "; " : "", issuer->failure.msg);
    } else if (issuer->endpoints->authorization == NULL || issuer->endpoints->token == NULL) {
        status =
            HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED,
                        "the issuer %.100s offers no log-in by authorization code", issuer->url);
    } else {
        (void)atomic_fetch_add(&issuer->endpoints->n_holders, 1);
        *ret = issuer->endpoints;
    }
    hearth_mutex_unlock(&oidc->lock);

    return status;
}

/* ---- to the issuer ---- */

static const char *make_login_url(const struct hearth_oidc *oidc, const char *endpoint,
                                  const struct hearth_oidc_state *state, struct hearth_arena *arena)
{
    struct hearth_sha256 hash;
    unsigned char sum[HEARTH_SHA256_BYTES];
    struct hearth_buf url;
    const char *text = NULL;

    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, state->verifier);
    hearth_sha256_end(&hash, sum);
    const struct form_pair pairs[] = {
        {"response_type", HEARTH_STR("code")},
        {"client_id", hearth_str_c(oidc->options.client_id)},
        {"redirect_uri", hearth_str_c(oidc->options.redirect_url)},
        {"scope", hearth_str_c(oidc->options.scopes)},
        {"state", state->state},
        {"nonce", state->nonce},
        {"code_challenge", hearth_base64url(hearth_str_n((const char *)sum, sizeof sum), arena)},
        {"code_challenge_method", HEARTH_STR("S256")},
    };

    hearth_buf_init(&url, 0);
    hearth_buf_printf(&url, "%s%c", endpoint, strchr(endpoint, '?') == NULL ? '?' : '&');
    append_form(&url, pairs, HEARTH_ARRAY_LEN(pairs));
    if (!hearth_buf_failed(&url)) {
        text = hearth_arena_strndup(arena, url.p, url.n);
    }
    hearth_buf_release(&url);

    return text;
}

enum hearth_status hearth_oidc_begin_login(struct hearth_oidc *oidc, struct hearth_str return_path,
                                           struct hearth_arena *arena, const char **ret_url,
                                           struct hearth_str *ret_cookie, struct hearth_err *err)
{
    struct hearth_oidc_endpoints *endpoints;
    struct hearth_oidc_state state;
    if (!hearth_oidc_is_local_path(return_path)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "return is not a path of this server: it begins with one '/', and has "
                           "at most %d characters, without blanks, quotes and backslashes",
                           HEARTH_OIDC_MAX_RETURN);
    }

    HEARTH_TRY(hold_endpoints(oidc, &endpoints, err));
    enum hearth_status status = hearth_oidc_state_make(
        return_path, hearth_oidc_now_ms() + HEARTH_OIDC_LOGIN_S * 1000, arena, &state, err);
    if (status == HEARTH_OK) {
        status = hearth_oidc_state_seal(oidc->login_key, &state, arena, ret_cookie, err);
    }
    if (status == HEARTH_OK) {
        *ret_url = make_login_url(oidc, endpoints->authorization, &state, arena);
        status = *ret_url == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_oidc_endpoints_release(endpoints);

    return status;
}

/* ---- back from the issuer ---- */

static enum hearth_status read_token_answer(struct hearth_str json, long code,
                                            struct hearth_arena *arena, struct hearth_str *ret,
                                            struct hearth_err *err)
{
    struct hearth_json_pick picks[] = {{.path = "id_token"}, {.path = "error"}};
    struct hearth_err why = HEARTH_ERR_INIT;

    if (hearth_json_pick(json, picks, HEARTH_ARRAY_LEN(picks), arena, &why) != HEARTH_OK) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the issuer answered HTTP status %ld, and no JSON: %s", code, why.msg);
    }
    if (code == 400 || code == 401) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the issuer refused the code of the log-in: \"" HEARTH_STR_FMT
                           "\"; log in again",
                           HEARTH_STR_ARG(picks[1].text));
    }
    if (code != 200) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the issuer answered HTTP status %ld", code);
    }
    if (picks[0].text.p == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the issuer sent no ID token; oidc-scopes must contain openid");
    }
    *ret = picks[0].text;

    return HEARTH_OK;
}

static enum hearth_status exchange_code(struct hearth_oidc *oidc,
                                        const struct hearth_oidc_endpoints *endpoints,
                                        struct hearth_str code, struct hearth_str verifier,
                                        struct hearth_cancel *cancel, struct hearth_buf *body,
                                        long *ret_code, struct hearth_err *err)
{
    const struct hearth_oidc_options *options = &oidc->options;
    const char *secret = hearth_secret_reveal(options->client_secret);
    bool has_secret = secret[0] != '\0';
    bool is_basic = has_secret && !endpoints->posts_secret;
    const struct form_pair pairs[] = {
        {"grant_type", HEARTH_STR("authorization_code")},
        {"code", code},
        {"redirect_uri", hearth_str_c(options->redirect_url)},
        {"code_verifier", verifier},
        {"client_id", hearth_str_c(options->client_id)},
        {"client_secret", hearth_str_c(secret)},
    };
    struct hearth_buf form;

    /* The secret in one of the two ways only. */
    hearth_buf_init(&form, 0);
    append_form(&form, pairs, is_basic ? 4 : has_secret ? 6 : 5);
    hearth_buf_byte(&form, '\0');
    if (hearth_buf_failed(&form)) {
        hearth_buf_release(&form);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a log-in");
    }

    const struct hearth_oidc_request request = {
        .url = endpoints->token,
        .issuer_url = oidc->issuers[0].url,
        .private_hosts = options->private_hosts,
        .ca_file = options->ca_file,
        .form = form.p,
        .user = is_basic ? options->client_id : NULL,
        .password = secret,
        .max_bytes = HEARTH_OIDC_DOC_BYTES,
        .cancel = cancel,
    };
    enum hearth_status status = hearth_oidc_fetch(&request, body, ret_code, err);
    explicit_bzero(form.p, form.n);
    hearth_buf_release(&form);

    return status;
}

/* Waits until the documents of the issuer were tried again; false if that takes too long. */
static bool wait_for_try(struct hearth_oidc *oidc, uint64_t n_tries, int64_t until_ns)
{
    bool is_in_time = true;

    hearth_mutex_lock(&oidc->lock);
    while (oidc->issuers[0].n_tries == n_tries && !oidc->stopping && is_in_time) {
        is_in_time = hearth_mutex_wait_until(&oidc->lock, &oidc->tried, until_ns);
    }
    bool is_tried = oidc->issuers[0].n_tries != n_tries;
    hearth_mutex_unlock(&oidc->lock);

    return is_tried;
}

/* A new key may have signed the ID token: then it is verified again when the keys were fetched. */
static enum hearth_status verify_id_token(struct hearth_oidc *oidc, struct hearth_str id_token,
                                          struct hearth_str nonce, struct hearth_arena *arena,
                                          struct hearth_oidc_identity *ret, struct hearth_err *err)
{
    struct hearth_checked_jwt checked;
    bool is_wrong;

    hearth_mutex_lock(&oidc->lock);
    uint64_t n_tries = oidc->issuers[0].n_tries;
    hearth_mutex_unlock(&oidc->lock);
    enum hearth_status status =
        hearth_oidc_check_jwt(oidc, id_token, nonce, arena, &checked, &is_wrong, err);
    if (status == HEARTH_UNAVAILABLE &&
        wait_for_try(oidc, n_tries, hearth_clock_mono_ns() + KEY_WAIT_NS)) {
        status = hearth_oidc_check_jwt(oidc, id_token, nonce, arena, &checked, &is_wrong, err);
    }
    HEARTH_TRY(status);
    if (checked.issuer != &oidc->issuers[0]) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the ID token is of another issuer");
    }
    *ret = checked.identity;

    return HEARTH_OK;
}

/* Checks what the browser brings back, before anything is done with it. */
static enum hearth_status check_login_answer(struct hearth_oidc *oidc,
                                             const struct hearth_oidc_answer *answer,
                                             struct hearth_arena *arena,
                                             struct hearth_oidc_state *ret, struct hearth_err *err)
{
    if (answer->cookie.p == NULL || !hearth_oidc_state_open(oidc->login_key, answer->cookie,
                                                            hearth_oidc_now_ms(), arena, ret)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the log-in was not begun in this browser within %d minutes: log in "
                           "again",
                           HEARTH_OIDC_LOGIN_S / 60);
    }
    if (!hearth_str_eq_secret(answer->state, ret->state)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the answer belongs to another log-in (state): log in again");
    }
    if (answer->issuer.p != NULL && !hearth_str_eq_c(answer->issuer, oidc->issuers[0].url)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the answer is of another issuer (iss)");
    }
    if (answer->error.p != NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the issuer refused the log-in: \"" HEARTH_STR_FMT "\" " HEARTH_STR_FMT,
                           HEARTH_STR_ARG(answer->error),
                           HEARTH_STR_ARG(answer->error_description));
    }

    return answer->code.n > 0 && hearth_oidc_is_local_path(ret->return_path)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the issuer sent no code: log in again");
}

static enum hearth_status finish_with_code(struct hearth_oidc *oidc,
                                           const struct hearth_oidc_answer *answer,
                                           const struct hearth_oidc_state *state,
                                           struct hearth_cancel *cancel, struct hearth_arena *arena,
                                           struct hearth_oidc_identity *ret, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf body;
    struct hearth_oidc_endpoints *endpoints;
    struct hearth_str id_token;
    long code;

    hearth_buf_init(&body, 0);
    HEARTH_TRY(hold_endpoints(oidc, &endpoints, err));
    enum hearth_status status =
        exchange_code(oidc, endpoints, answer->code, state->verifier, cancel, &body, &code, err);
    hearth_oidc_endpoints_release(endpoints);
    HEARTH_TRY(status);
    HEARTH_TRY(read_token_answer(hearth_buf_view(&body), code, arena, &id_token, err));

    return verify_id_token(oidc, id_token, state->nonce, arena, ret, err);
}

enum hearth_status
hearth_oidc_finish_login(struct hearth_oidc *oidc, const struct hearth_oidc_answer *answer,
                         struct hearth_cancel *cancel, struct hearth_arena *arena,
                         struct hearth_oidc_identity *ret, struct hearth_str *ret_return_path,
                         struct hearth_err *err)
{
    struct hearth_oidc_state state;

    if (oidc->options.client_id[0] == '\0') {
        return HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED,
                           "people cannot log in at an issuer: oidc-client-id is not set");
    }
    HEARTH_TRY(check_login_answer(oidc, answer, arena, &state, err));

    /* The issuer may be slow, and queries need the threads. */
    if (atomic_fetch_add(&oidc->n_logins, 1) >= oidc->options.max_logins) {
        (void)atomic_fetch_sub(&oidc->n_logins, 1);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "too many log-ins are being finished (oidc-max-logins): load this page "
                           "again");
    }
    enum hearth_status status = finish_with_code(oidc, answer, &state, cancel, arena, ret, err);
    (void)atomic_fetch_sub(&oidc->n_logins, 1);
    HEARTH_TRY(status);
    *ret_return_path = state.return_path;

    return HEARTH_OK;
}
