/* oidc.c -- options, start and stop; contract: oidc.h. */
#include "oidc/oidc.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"

#include "oidc/oidc_cache.h"
#include "oidc/oidc_internal.h"
#include "oidc/oidc_url.h"
#include "ranks.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <sys/random.h>

/* ---- options ---- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

/* "NAME=URL", or "URL" alone. */
static enum hearth_status parse_issuer(const char *text, struct hearth_oidc_issuer *ret,
                                       struct hearth_err *err)
{
    struct hearth_oidc_url url;
    size_t n = 0;

    while (is_name_byte(text[n])) {
        n++;
    }
    bool has_name = n > 0 && text[n] == '=';
    if (has_name && n > HEARTH_OIDC_MAX_NAME) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the name of an issuer has more than %d bytes", HEARTH_OIDC_MAX_NAME);
    }
    if (has_name) {
        memcpy(ret->name, text, n);
        text += n + 1;
    }
    ret->url = text;

    HEARTH_TRY(hearth_oidc_url_parse(text, &url, err));

    return strchr(text, '?') == NULL
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the URL of an issuer has no arguments: %.200s", text);
}

static enum hearth_status check_pair(const struct hearth_oidc_issuer *a,
                                     const struct hearth_oidc_issuer *b, struct hearth_err *err)
{
    if (strcmp(a->url, b->url) == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the issuer %.200s is listed twice",
                           a->url);
    }

    return a->name[0] == '\0' || b->name[0] == '\0' || strcmp(a->name, b->name) == 0
               ? HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "several issuers need different names, such as corp=https://...: "
                             "otherwise one could name subjects of the other")
               : HEARTH_OK;
}

static enum hearth_status parse_issuers(const struct hearth_oidc_options *options,
                                        struct hearth_oidc_issuer *ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    size_t n = 0;

    for (; options->issuers != NULL && options->issuers[n] != NULL; n++) {
        if (n == HEARTH_OIDC_MAX_ISSUERS) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "at most %d issuers can be listed",
                               HEARTH_OIDC_MAX_ISSUERS);
        }
        HEARTH_TRY(parse_issuer(options->issuers[n], &ret[n], err));
        for (size_t i = 0; i < n; i++) {
            HEARTH_TRY(check_pair(&ret[i], &ret[n], err));
        }
    }
    *ret_n = n;

    return n > 0 ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the way \"oidc\" needs an issuer");
}

/* The options of log-ins by people. */
static enum hearth_status check_client(const struct hearth_oidc_options *options,
                                       struct hearth_err *err)
{
    size_t n = hearth_secret_bytes(options->client_secret);

    if (options->client_id[0] == '\0') {
        return options->audience[0] != '\0'
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "set --oidc-audience (for JWTs of machines) or --oidc-client-id "
                                 "(for log-ins of people)");
    }
    if (n > 0 && (n < HEARTH_OIDC_MIN_SECRET || n > HEARTH_OIDC_MAX_SECRET)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "oidc-client-secret has %zu bytes; it must have %d to %d", n,
                           HEARTH_OIDC_MIN_SECRET, HEARTH_OIDC_MAX_SECRET);
    }

    return strncmp(options->redirect_url, "https://", 8) == 0 ||
                   strncmp(options->redirect_url, "http://", 7) == 0
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "oidc-client-id needs --oidc-redirect-url: the address of this server "
                             "for browsers, followed by /api/v1/oidc/callback");
}

enum hearth_status hearth_oidc_check_options(const struct hearth_oidc_options *options,
                                             struct hearth_err *err)
{
    struct hearth_oidc_issuer issuers[HEARTH_OIDC_MAX_ISSUERS] = {0};
    size_t n;
    enum hearth_status status = parse_issuers(options, issuers, &n, err);

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "oidc-issuer");
        return status;
    }
    if (options->subject_claim[0] == '\0') {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "oidc-subject-claim is empty");
    }
    if (options->refresh_ns < HEARTH_OIDC_PAUSE_NS ||
        options->keys_max_age_ns < options->refresh_ns ||
        options->clock_skew_ns > 10 * 60 * HEARTH_NS_PER_SEC || options->max_cached < 1 ||
        options->max_cached > 1000000 || options->max_logins < 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "oidc-refresh must be at least 10s, oidc-keys-max-age at least "
                           "oidc-refresh, oidc-max-logins at least 1, oidc-clock-skew at most 10m, "
                           "oidc-max-cached 1 to 1000000");
    }

    return check_client(options, err);
}

/* ---- start and stop ---- */

static enum hearth_status make_login_key(const struct hearth_oidc *oidc,
                                         const struct hearth_secret *client_secret,
                                         unsigned char ret[HEARTH_OIDC_KEY_BYTES],
                                         struct hearth_err *err)
{
    struct hearth_str secret = hearth_str_c(hearth_secret_reveal(client_secret));
    char salt[2048];

    if (secret.n == 0) {
        return getrandom(ret, HEARTH_OIDC_KEY_BYTES, 0) == HEARTH_OIDC_KEY_BYTES
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes");
    }

    (void)snprintf(salt, sizeof salt, "%s %s", oidc->issuers[0].url, oidc->options.client_id);

    return hearth_oidc_key_derive(secret, hearth_str_c(salt), ret, err);
}

static enum hearth_status start_fetcher(struct hearth_oidc *oidc, struct hearth_err *err)
{
    sigset_t all, old;

    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    oidc->has_thread = pthread_create(&oidc->thread, NULL, hearth_oidc_run_fetcher, oidc) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!oidc->has_thread) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "cannot start the thread that fetches keys; raise the limit of threads");
    }

    (void)pthread_setname_np(oidc->thread, "oidc");

    return HEARTH_OK;
}

enum hearth_status hearth_oidc_start(const struct hearth_oidc_options *options,
                                     struct hearth_oidc **ret, struct hearth_err *err)
{
    HEARTH_TRY(hearth_oidc_check_options(options, err));
    struct hearth_oidc *oidc = hearth_mem_zalloc(sizeof *oidc);
    if (oidc == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for issuers");
    }

    oidc->options = *options;
    oidc->options.client_secret = NULL;
    atomic_init(&oidc->client_secret, options->client_secret);
    oidc->names = (struct hearth_claim_names){options->subject_claim, options->groups_claim};
    oidc->audience = options->audience[0] != '\0' ? options->audience : options->client_id;
    hearth_cancel_init(&oidc->cancel, INT64_MAX);
    hearth_mutex_init(&oidc->lock, HEARTH_RANK_OIDC, "oidc.lock");
    hearth_cond_init(&oidc->wake);
    hearth_cond_init(&oidc->tried);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);

    enum hearth_status status = parse_issuers(options, oidc->issuers, &oidc->n_issuers, err);
    if (status == HEARTH_OK) {
        status = make_login_key(oidc, options->client_secret, oidc->login_key, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_oidc_cache_new(options->max_cached, &oidc->cache, err);
    }
    if (status == HEARTH_OK) {
        status = start_fetcher(oidc, err);
    }
    if (status != HEARTH_OK) {
        hearth_oidc_stop(oidc);
        return status;
    }

    *ret = oidc;

    return HEARTH_OK;
}

void hearth_oidc_reload(struct hearth_oidc *oidc, const struct hearth_secret *client_secret)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    unsigned char key[HEARTH_OIDC_KEY_BYTES];
    bool is_new = !hearth_secret_same(atomic_load(&oidc->client_secret), client_secret);

    if (is_new && make_login_key(oidc, client_secret, key, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "oidc", "the client keeps its old secret", "error", err.msg,
                   NULL);
        return;
    }

    hearth_mutex_lock(&oidc->lock);
    if (is_new) {
        memcpy(oidc->login_key, key, sizeof key);
    }
    for (size_t i = 0; i < oidc->n_issuers; i++) {
        oidc->issuers[i].due_mono_ns = 0;
    }
    (void)pthread_cond_signal(&oidc->wake);
    hearth_mutex_unlock(&oidc->lock);

    atomic_store(&oidc->client_secret, client_secret);
    explicit_bzero(key, sizeof key);
}

void hearth_oidc_get_login_key(struct hearth_oidc *oidc, unsigned char ret[HEARTH_OIDC_KEY_BYTES])
{
    hearth_mutex_lock(&oidc->lock);
    memcpy(ret, oidc->login_key, HEARTH_OIDC_KEY_BYTES);
    hearth_mutex_unlock(&oidc->lock);
}

void hearth_oidc_stop(struct hearth_oidc *oidc)
{
    if (oidc == NULL) {
        return;
    }

    if (oidc->has_thread) {
        atomic_store(&oidc->cancel.cancelled, true);
        hearth_mutex_lock(&oidc->lock);
        oidc->stopping = true;
        (void)pthread_cond_broadcast(&oidc->wake);
        (void)pthread_cond_broadcast(&oidc->tried);
        hearth_mutex_unlock(&oidc->lock);
        (void)pthread_join(oidc->thread, NULL);
    }

    for (size_t i = 0; i < oidc->n_issuers; i++) {
        hearth_oidc_endpoints_release(oidc->issuers[i].endpoints);
        hearth_jwks_release(oidc->issuers[i].keys);
    }
    hearth_oidc_cache_free(oidc->cache);
    (void)pthread_cond_destroy(&oidc->wake);
    (void)pthread_cond_destroy(&oidc->tried);
    hearth_mutex_destroy(&oidc->lock);
    explicit_bzero(oidc->login_key, sizeof oidc->login_key);
    hearth_mem_free(oidc);
}
