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

struct hearth_oidc_slot {
    struct hearth_mutex lock; /* guards `now` */
    struct hearth_oidc *now;
};

static enum hearth_status make_login_key(struct hearth_oidc *oidc, struct hearth_err *err)
{
    struct hearth_str secret = hearth_str_c(hearth_secret_reveal(oidc->options.client_secret));
    char salt[2048];

    if (secret.n == 0) {
        return getrandom(oidc->login_key, HEARTH_OIDC_KEY_BYTES, 0) == HEARTH_OIDC_KEY_BYTES
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes");
    }

    (void)snprintf(salt, sizeof salt, "%s %s", oidc->issuers[0].url, oidc->options.client_id);

    return hearth_oidc_key_derive(secret, hearth_str_c(salt), oidc->login_key, err);
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

/* ---- what a reload takes along ---- */

static bool is_same_list(const char *const *a, const char *const *b)
{
    size_t i = 0;

    if (a == NULL || b == NULL) {
        return a == b;
    }
    while (a[i] != NULL && b[i] != NULL && strcmp(a[i], b[i]) == 0) {
        i++;
    }

    return a[i] == b[i];
}

/* A key without a secret is random: log-ins that were begun go on if it stays. */
static void keep_login_key(struct hearth_oidc *oidc, const struct hearth_oidc *old)
{
    if (strcmp(oidc->options.client_id, old->options.client_id) == 0 &&
        strcmp(oidc->issuers[0].url, old->issuers[0].url) == 0 &&
        hearth_secret_same(oidc->options.client_secret, old->options.client_secret)) {
        memcpy(oidc->login_key, old->login_key, sizeof oidc->login_key);
    }
}

/* Documents that came from the same places hold until they are fetched again, which is due now. */
static void keep_documents(struct hearth_oidc *oidc, struct hearth_oidc *old)
{
    if (strcmp(oidc->options.ca_file, old->options.ca_file) != 0 ||
        !is_same_list(oidc->options.private_hosts, old->options.private_hosts)) {
        return;
    }

    hearth_mutex_lock(&old->lock);
    for (size_t i = 0; i < oidc->n_issuers; i++) {
        struct hearth_oidc_issuer *to = &oidc->issuers[i];
        const struct hearth_oidc_issuer *from = old->issuers;
        while (from < old->issuers + old->n_issuers && strcmp(from->url, to->url) != 0) {
            from++;
        }
        if (from == old->issuers + old->n_issuers) {
            continue;
        }

        if (from->endpoints != NULL) {
            (void)atomic_fetch_add(&from->endpoints->n_holders, 1);
        }
        to->endpoints = from->endpoints;
        to->keys = hearth_jwks_hold(from->keys);
        memcpy(to->keys_hash, from->keys_hash, sizeof to->keys_hash);
        to->fetched_mono_ns = from->fetched_mono_ns;
        to->n_failures = from->n_failures;
        to->failure = from->failure;
    }
    hearth_mutex_unlock(&old->lock);
}

/* ---- issuers of one set of options ---- */

/* The thread ends; calls may go on. */
static void stop_fetcher(struct hearth_oidc *oidc)
{
    if (!oidc->has_thread) {
        return;
    }

    atomic_store(&oidc->cancel.cancelled, true);
    hearth_mutex_lock(&oidc->lock);
    oidc->stopping = true;
    (void)pthread_cond_broadcast(&oidc->wake);
    (void)pthread_cond_broadcast(&oidc->tried);
    hearth_mutex_unlock(&oidc->lock);
    (void)pthread_join(oidc->thread, NULL);
    oidc->has_thread = false;
}

void hearth_oidc_release(struct hearth_oidc *oidc)
{
    if (oidc == NULL || atomic_fetch_sub(&oidc->n_holders, 1) != 1) {
        return;
    }

    assert(!oidc->has_thread);
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

/* old: the issuers that these will replace; NULL: none. */
static enum hearth_status start_issuers(const struct hearth_oidc_options *options,
                                        struct hearth_oidc *old, struct hearth_oidc **ret,
                                        struct hearth_err *err)
{
    struct hearth_oidc *oidc = hearth_mem_zalloc(sizeof *oidc);
    if (oidc == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for issuers");
    }

    atomic_init(&oidc->n_holders, 1);
    oidc->options = *options;
    oidc->names = (struct hearth_claim_names){options->subject_claim, options->groups_claim};
    oidc->audience = options->audience[0] != '\0' ? options->audience : options->client_id;
    hearth_cancel_init(&oidc->cancel, INT64_MAX);
    hearth_mutex_init(&oidc->lock, HEARTH_RANK_OIDC, "oidc.lock");
    hearth_cond_init(&oidc->wake);
    hearth_cond_init(&oidc->tried);

    enum hearth_status status = parse_issuers(options, oidc->issuers, &oidc->n_issuers, err);
    if (status == HEARTH_OK) {
        status = make_login_key(oidc, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_oidc_cache_new(options->max_cached, &oidc->cache, err);
    }
    if (status == HEARTH_OK) {
        if (old != NULL) {
            keep_login_key(oidc, old);
            keep_documents(oidc, old);
        }
        status = start_fetcher(oidc, err);
    }
    if (status != HEARTH_OK) {
        hearth_oidc_release(oidc);
        return status;
    }

    *ret = oidc;

    return HEARTH_OK;
}

/* ---- the slot ---- */

enum hearth_status hearth_oidc_start(const struct hearth_oidc_options *options,
                                     struct hearth_oidc_slot **ret, struct hearth_err *err)
{
    HEARTH_TRY(hearth_oidc_check_options(options, err));
    struct hearth_oidc_slot *slot = hearth_mem_zalloc(sizeof *slot);
    if (slot == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for issuers");
    }

    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    hearth_mutex_init(&slot->lock, HEARTH_RANK_OIDC, "oidc_slot.lock");
    enum hearth_status status = start_issuers(options, NULL, &slot->now, err);
    if (status != HEARTH_OK) {
        hearth_oidc_stop(slot);
        return status;
    }

    *ret = slot;

    return HEARTH_OK;
}

void hearth_oidc_reload(struct hearth_oidc_slot *slot, const struct hearth_oidc_options *options)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_oidc *next, *old = slot->now; /* only this thread changes it */

    if (start_issuers(options, old, &next, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "oidc", "the options of issuers before this reload stay",
                   "error", err.msg, NULL);
        return;
    }

    hearth_mutex_lock(&slot->lock);
    slot->now = next;
    hearth_mutex_unlock(&slot->lock);
    stop_fetcher(old);
    hearth_oidc_release(old);
}

struct hearth_oidc *hearth_oidc_hold(struct hearth_oidc_slot *slot)
{
    hearth_mutex_lock(&slot->lock);
    struct hearth_oidc *oidc = slot->now;
    (void)atomic_fetch_add(&oidc->n_holders, 1);
    hearth_mutex_unlock(&slot->lock);

    return oidc;
}

void hearth_oidc_stop(struct hearth_oidc_slot *slot)
{
    if (slot == NULL) {
        return;
    }

    if (slot->now != NULL) {
        stop_fetcher(slot->now);
        hearth_oidc_release(slot->now);
    }
    hearth_mutex_destroy(&slot->lock);
    hearth_mem_free(slot);
}
