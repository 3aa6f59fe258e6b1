/*
 * oidc_fetcher.c -- the thread that fetches the documents of issuers.
 *
 * After a failure it tries again after 10 s, then after 20 s, up to a minute.
 */
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/json_pick.h"

#include "oidc/oidc_cache.h"
#include "oidc/oidc_internal.h"
#include "oidc/oidc_url.h"

#include <assert.h>
#include <stdio.h>

#define MAX_RETRY_NS   (60 * HEARTH_NS_PER_SEC)
#define DOCUMENT_MAX   ((size_t)1 << 20) /* of the arena that a discovery document is read into */
#define DISCOVERY_PATH "/.well-known/openid-configuration"

/* The documents of an issuer, as they were fetched. */
struct fetched {
    struct hearth_oidc_endpoints *endpoints;
    struct hearth_jwks *keys;
    unsigned char keys_hash[HEARTH_SHA256_BYTES];
};

void hearth_oidc_endpoints_release(struct hearth_oidc_endpoints *endpoints)
{
    if (endpoints != NULL && atomic_fetch_sub(&endpoints->n_holders, 1) == 1) {
        hearth_arena_release(&endpoints->arena);
        hearth_mem_free(endpoints);
    }
}

/* ---- the documents ---- */

static enum hearth_status fetch_document(struct hearth_oidc *oidc,
                                         const struct hearth_oidc_issuer *issuer, const char *url,
                                         size_t max_bytes, struct hearth_buf *body,
                                         struct hearth_err *err)
{
    const struct hearth_oidc_request request = {.url = url,
                                                .issuer_url = issuer->url,
                                                .private_hosts = oidc->options.private_hosts,
                                                .ca_file = oidc->options.ca_file,
                                                .max_bytes = max_bytes,
                                                .cancel = &oidc->cancel};
    long code;

    HEARTH_TRY(hearth_oidc_fetch(&request, body, &code, err));

    return code == 200
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%.200s answered HTTP status %ld%s", url,
                             code, code / 100 == 3 ? "; redirects are not followed" : "");
}

/* True if the list has the text; an empty list has the default of the specification. */
static bool list_has(const struct hearth_json_pick *list, const char *text, bool by_default)
{
    for (size_t i = 0; i < list->n_items; i++) {
        if (hearth_str_eq_c(list->items[i], text)) {
            return true;
        }
    }

    return list->n_items == 0 && by_default;
}

/* The URL of an endpoint; NULL if it is not offered. */
static enum hearth_status take_endpoint(const struct hearth_oidc_issuer *issuer,
                                        const struct hearth_json_pick *pick, const char **ret,
                                        struct hearth_err *err)
{
    struct hearth_oidc_url own, url;

    *ret = NULL;
    if (pick->text.p == NULL) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_oidc_url_parse(issuer->url, &own, err));
    if (hearth_oidc_url_parse(pick->text.p, &url, err) != HEARTH_OK ||
        (url.is_plain && !own.is_plain)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the document of %.100s names as %s a URL that is not https: %.100s",
                           issuer->url, pick->path, pick->text.p);
    }
    *ret = pick->text.p;

    return HEARTH_OK;
}

static enum hearth_status read_discovery(const struct hearth_oidc_issuer *issuer,
                                         struct hearth_str json, struct hearth_oidc_endpoints *ret,
                                         struct hearth_err *err)
{
    struct hearth_json_pick picks[] = {
        {.path = "issuer"},
        {.path = "jwks_uri"},
        {.path = "authorization_endpoint"},
        {.path = "token_endpoint"},
        {.path = "token_endpoint_auth_methods_supported", .is_array = true},
    };

    HEARTH_TRY(hearth_json_pick(json, picks, HEARTH_ARRAY_LEN(picks), &ret->arena, err));
    if (!hearth_str_eq_c(picks[0].text, issuer->url)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the document of %.100s says that its issuer is \"" HEARTH_STR_FMT
                           "\"; set --oidc-issuer to exactly that if it is right",
                           issuer->url, HEARTH_STR_ARG(picks[0].text));
    }

    HEARTH_TRY(take_endpoint(issuer, &picks[1], &ret->jwks, err));
    HEARTH_TRY(take_endpoint(issuer, &picks[2], &ret->authorization, err));
    HEARTH_TRY(take_endpoint(issuer, &picks[3], &ret->token, err));
    ret->posts_secret = !list_has(&picks[4], "client_secret_basic", true) &&
                        list_has(&picks[4], "client_secret_post", false);

    return ret->jwks != NULL
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the document of %.100s names no keys (jwks_uri)", issuer->url);
}

static enum hearth_status fetch_discovery(struct hearth_oidc *oidc,
                                          const struct hearth_oidc_issuer *issuer,
                                          struct hearth_buf *body,
                                          struct hearth_oidc_endpoints *endpoints,
                                          struct hearth_err *err)
{
    char url[HEARTH_OIDC_MAX_URL + sizeof DISCOVERY_PATH];
    size_t n = strlen(issuer->url);

    /* A slash at the end is part of the issuer's name, and not doubled. */
    n -= n > 0 && issuer->url[n - 1] == '/' ? 1 : 0;
    (void)snprintf(url, sizeof url, "%.*s%s", (int)n, issuer->url, DISCOVERY_PATH);
    HEARTH_TRY(fetch_document(oidc, issuer, url, HEARTH_OIDC_DOC_BYTES, body, err));

    return read_discovery(issuer, hearth_buf_view(body), endpoints, err);
}

static enum hearth_status fetch_all(struct hearth_oidc *oidc,
                                    const struct hearth_oidc_issuer *issuer, struct fetched *ret,
                                    struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf body;
    struct hearth_sha256 hash;

    hearth_buf_init(&body, 0);
    struct hearth_oidc_endpoints *endpoints = hearth_mem_zalloc(sizeof *endpoints);
    if (endpoints == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the document of an issuer");
    }
    atomic_init(&endpoints->n_holders, 1);
    hearth_arena_init(&endpoints->arena, DOCUMENT_MAX);

    enum hearth_status status = fetch_discovery(oidc, issuer, &body, endpoints, err);
    if (status == HEARTH_OK) {
        hearth_buf_reset(&body);
        status = fetch_document(oidc, issuer, endpoints->jwks, HEARTH_JWKS_MAX_BYTES, &body, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_jwks_parse(hearth_buf_view(&body), &ret->keys, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "%.200s", endpoints->jwks);
        }
    }
    if (status != HEARTH_OK) {
        hearth_oidc_endpoints_release(endpoints);
        return status;
    }

    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, hearth_buf_view(&body));
    hearth_sha256_end(&hash, ret->keys_hash);
    ret->endpoints = endpoints;

    return HEARTH_OK;
}

/* ---- what is known ---- */

/* The keys that hold from now on; NULL: none. The caller holds the lock. */
static void set_keys(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer,
                     struct hearth_jwks *keys)
{
    hearth_mutex_assert_held(&oidc->lock);
    hearth_jwks_release(issuer->keys);
    issuer->keys = keys;
    issuer->generation++;
    hearth_oidc_cache_drop(oidc->cache, issuer);
}

static void take_fetched(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer,
                         struct fetched *fetched)
{
    bool is_same = issuer->keys != NULL &&
                   memcmp(issuer->keys_hash, fetched->keys_hash, sizeof issuer->keys_hash) == 0;

    hearth_oidc_endpoints_release(issuer->endpoints);
    issuer->endpoints = fetched->endpoints;
    if (is_same) {
        hearth_jwks_release(fetched->keys);
    } else {
        HEARTH_LOG(HEARTH_LOG_INFO, "oidc", "the issuer has new keys", "issuer", issuer->url,
                   "keys", hearth_log_i64((int64_t)fetched->keys->n), "ignored",
                   hearth_log_i64((int64_t)fetched->keys->n_ignored), NULL);
        memcpy(issuer->keys_hash, fetched->keys_hash, sizeof issuer->keys_hash);
        set_keys(oidc, issuer, fetched->keys);
    }
}

/* Counts the failure, and forgets keys that are too old. The caller holds the lock. */
static void take_failure(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer,
                         const struct hearth_err *why, int64_t now_ns)
{
    if (issuer->n_failures++ == 0) {
        HEARTH_LOG(HEARTH_LOG_WARN, "oidc",
                   issuer->keys != NULL ? "the documents of the issuer could not be fetched; its "
                                          "keys hold for oidc-keys-max-age"
                                        : "the documents of the issuer could not be fetched",
                   "issuer", issuer->url, "reason", why->msg, NULL);
    }

    issuer->failure = *why;
    if (issuer->keys != NULL && now_ns - issuer->fetched_mono_ns >= oidc->options.keys_max_age_ns) {
        HEARTH_LOG(HEARTH_LOG_WARN, "oidc",
                   "the keys of the issuer are too old, and do not hold any more", "issuer",
                   issuer->url, "reason", why->msg, NULL);
        set_keys(oidc, issuer, NULL);
    }
}

static int64_t get_retry_ns(unsigned n_failures)
{
    int64_t wait_ns = HEARTH_OIDC_PAUSE_NS * (n_failures < 4 ? n_failures : 6);
    return wait_ns < MAX_RETRY_NS ? wait_ns : MAX_RETRY_NS;
}

/* Fetches the documents of one issuer. The caller holds the lock, which is released meanwhile. */
static void try_issuer(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer)
{
    struct fetched fetched = {.keys = NULL};
    struct hearth_err err = HEARTH_ERR_INIT;

    issuer->is_fetching = true;
    issuer->tried_mono_ns = hearth_clock_mono_ns();
    hearth_mutex_unlock(&oidc->lock);
    enum hearth_status status = fetch_all(oidc, issuer, &fetched, &err);
    hearth_metric_add_label(HEARTH_M_OIDC_FETCHES,
                            hearth_str_c(status == HEARTH_OK ? "ok" : "failed"), 1);
    hearth_mutex_lock(&oidc->lock);

    int64_t now_ns = hearth_clock_mono_ns();
    if (status == HEARTH_OK) {
        take_fetched(oidc, issuer, &fetched);
        issuer->fetched_mono_ns = now_ns;
        issuer->n_failures = 0;
        issuer->failure.msg[0] = '\0';
        issuer->due_mono_ns = now_ns + oidc->options.refresh_ns;
    } else {
        take_failure(oidc, issuer, &err, now_ns);
        issuer->due_mono_ns = now_ns + get_retry_ns(issuer->n_failures);
        /* Keys end in time also if the next try is later. */
        int64_t end_ns = issuer->fetched_mono_ns + oidc->options.keys_max_age_ns;
        if (issuer->keys != NULL && end_ns < issuer->due_mono_ns) {
            issuer->due_mono_ns = end_ns;
        }
    }
    issuer->is_fetching = false;
    issuer->n_tries++;
    (void)pthread_cond_broadcast(&oidc->tried);
}

bool hearth_oidc_want(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer)
{
    int64_t now_ns = hearth_clock_mono_ns();

    hearth_mutex_assert_held(&oidc->lock);
    if (issuer->is_fetching || issuer->due_mono_ns <= now_ns) {
        return true;
    }
    if (issuer->n_tries > 0 && now_ns - issuer->tried_mono_ns < HEARTH_OIDC_PAUSE_NS) {
        return false;
    }

    issuer->due_mono_ns = now_ns;
    (void)pthread_cond_signal(&oidc->wake);

    return true;
}

static struct hearth_oidc_issuer *find_first_due(struct hearth_oidc *oidc)
{
    struct hearth_oidc_issuer *first = &oidc->issuers[0];

    for (size_t i = 1; i < oidc->n_issuers; i++) {
        if (oidc->issuers[i].due_mono_ns < first->due_mono_ns) {
            first = &oidc->issuers[i];
        }
    }

    return first;
}

void *hearth_oidc_run_fetcher(void *arg)
{
    struct hearth_oidc *oidc = arg;

    hearth_mutex_lock(&oidc->lock);
    while (!oidc->stopping) {
        struct hearth_oidc_issuer *issuer = find_first_due(oidc);
        if (issuer->due_mono_ns <= hearth_clock_mono_ns()) {
            try_issuer(oidc, issuer);
        } else {
            (void)hearth_mutex_wait_until(&oidc->lock, &oidc->wake, issuer->due_mono_ns);
        }
    }
    hearth_mutex_unlock(&oidc->lock);

    return NULL;
}
