/*
 * tls_context.c -- makes an SSL_CTX from files. Each load makes another one; connections keep the
 * one that they began with.
 */
#include "net/tls_context.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "rpc/front_internal.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define SUITES                                                                                 \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:" \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define GROUPS         "X25519:P-256:P-384"
#define TICKET_S       3600
#define MAX_CHAIN      8
#define MAX_CERT_BYTES (32 << 10) /* of a client's chain */
#define CHECK_NS       (60 * HEARTH_NS_PER_SEC)
#define WARN_NS        (24 * 3600 * HEARTH_NS_PER_SEC)
#define SOON_S         (7 * 24 * 3600)

enum {
    CERT_FILE,
    KEY_FILE,
    CA_FILE,
    N_FILES
};

/* Changes if a file is written, or if a link to it points elsewhere. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

struct hearth_tls_context {
    char *files[N_FILES]; /* CA_FILE: empty if none */
    const char *flags[N_FILES];
    enum hearth_client_auth client_auth;
    int min_version;
    struct hearth_mutex lock; /* guards ssl */
    SSL_CTX *ssl;

    /* The rest belongs to the thread that loads and checks. */
    struct stamp stamps[N_FILES]; /* when the last load began */
    int64_t checked_mono_ns, warned_mono_ns;
    int64_t expires_s; /* Unix time */
};

const char *hearth_tls_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason == NULL ? "unknown error" : reason;
}

/* An encrypted key would otherwise make OpenSSL ask on the terminal. */
static int refuse_passphrase(char *out, int n, int is_write, void *context)
{
    (void)out, (void)n, (void)is_write, (void)context;
    return 0;
}

/* True if the list of ALPN (each name with its length before it) has `name`. */
static bool offers_protocol(const unsigned char *list, unsigned n, struct hearth_str name)
{
    for (unsigned i = 0; i < n; i += 1u + list[i]) {
        if (list[i] == name.n && i + 1 + name.n <= n && memcmp(list + i + 1, name.p, name.n) == 0) {
            return true;
        }
    }
    return false;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
                           const unsigned char *offered, unsigned n, void *context)
{
    static const unsigned char h2[] = {'h', '2'},
                               http1[] = {'h', 't', 't', 'p', '/', '1', '.', '1'};
    bool has_http1 = offers_protocol(offered, n, HEARTH_STR("http/1.1"));

    (void)ssl, (void)context;
    if (!has_http1 && !offers_protocol(offered, n, HEARTH_STR("h2"))) {
        return SSL_TLSEXT_ERR_NOACK; /* the first bytes decide */
    }

    *ret = has_http1 ? http1 : h2;
    *ret_n = has_http1 ? sizeof http1 : sizeof h2;

    return SSL_TLSEXT_ERR_OK;
}

static enum hearth_status fail_file(const struct hearth_tls_context *context, int file,
                                    struct hearth_err *err)
{
    const char *path = context->files[file];
    FILE *readable = fopen(path, "re");
    char reason[128];

    if (readable == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %s: %s", context->flags[file], path,
                           strerror_r(errno, reason, sizeof reason));
    }

    (void)fclose(readable);

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "%s %s: %s; it must be PEM without a passphrase", context->flags[file], path,
                       hearth_tls_reason());
}

static enum hearth_status fail_pair(const struct hearth_tls_context *context,
                                    struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "tls-key-file %s is not the key of tls-cert-file %s",
                       context->files[KEY_FILE], context->files[CERT_FILE]);
}

/* Protocols, suites, tickets; OpenSSL refuses none of these constants. */
static void set_rules(const struct hearth_tls_context *context, SSL_CTX *ssl)
{
    bool asks = context->client_auth != HEARTH_CLIENT_AUTH_NONE;
    bool ok = SSL_CTX_set_min_proto_version(ssl, context->min_version) == 1 &&
              SSL_CTX_set_cipher_list(ssl, SUITES) == 1 &&
              SSL_CTX_set1_groups_list(ssl, GROUPS) == 1;
    HEARTH_ASSERT(ok);

    SSL_CTX_set_security_level(ssl, 2);
    (void)SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                       (asks ? SSL_OP_NO_TICKET : 0));
    (void)SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ssl, 1);

    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(ssl, asks ? 0 : 1);
    (void)SSL_CTX_set_timeout(ssl, TICKET_S);
    (void)SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"hearth", 6);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    SSL_CTX_set_default_passwd_cb(ssl, refuse_passphrase);
}

static enum hearth_status load_client_ca(const struct hearth_tls_context *context, SSL_CTX *ssl,
                                         struct hearth_err *err)
{
    if (context->client_auth == HEARTH_CLIENT_AUTH_NONE) {
        return HEARTH_OK;
    }

    /* The certificates to verify with, and their names, which clients choose a certificate by. */
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(context->files[CA_FILE]);
    if (names == NULL || SSL_CTX_load_verify_file(ssl, context->files[CA_FILE]) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return fail_file(context, CA_FILE, err);
    }

    SSL_CTX_set_client_CA_list(ssl, names);
    SSL_CTX_set_verify_depth(ssl, MAX_CHAIN);
    SSL_CTX_set_max_cert_list(ssl, MAX_CERT_BYTES);
    SSL_CTX_set_verify(ssl,
                       SSL_VERIFY_PEER | (context->client_auth == HEARTH_CLIENT_AUTH_REQUIRE
                                              ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                                              : 0),
                       NULL);

    return HEARTH_OK;
}

static int64_t read_expiry(SSL_CTX *ssl)
{
    struct tm when = {0};
    const X509 *certificate = SSL_CTX_get0_certificate(ssl);
    return certificate != NULL && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &when) == 1
               ? (int64_t)timegm(&when)
               : 0;
}

static enum hearth_status make_ssl_context(const struct hearth_tls_context *context,
                                           SSL_CTX **ret_ssl, struct hearth_err *err)
{
    ERR_clear_error();
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
    enum hearth_status status = HEARTH_OK;

    if (ssl == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for TLS");
    }

    set_rules(context, ssl);

    /* Certificate and key must be a pair. */
    if (SSL_CTX_use_certificate_chain_file(ssl, context->files[CERT_FILE]) != 1) {
        status = fail_file(context, CERT_FILE, err);
    } else if (SSL_CTX_use_PrivateKey_file(ssl, context->files[KEY_FILE], SSL_FILETYPE_PEM) != 1) {
        bool is_pair = ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_VALUES_MISMATCH;
        status = is_pair ? fail_file(context, KEY_FILE, err) : fail_pair(context, err);
    } else if (SSL_CTX_check_private_key(ssl) != 1) { /* keys of two kinds */
        status = fail_pair(context, err);
    } else {
        status = load_client_ca(context, ssl, err);
    }

    if (status != HEARTH_OK) {
        ERR_clear_error();
        SSL_CTX_free(ssl);
        return status;
    }

    *ret_ssl = ssl;

    return HEARTH_OK;
}

static void read_stamps(const struct hearth_tls_context *context, struct stamp stamps[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) {
        struct stat file;
        stamps[i] = (struct stamp){0};
        if (context->files[i][0] != '\0' && stat(context->files[i], &file) == 0) {
            stamps[i] = (struct stamp){file.st_dev, file.st_ino, file.st_size, file.st_mtim};
        }
    }
}

static bool have_changed(const struct stamp a[N_FILES], const struct stamp b[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) {
        if (a[i].device != b[i].device || a[i].inode != b[i].inode || a[i].size != b[i].size ||
            a[i].modified.tv_sec != b[i].modified.tv_sec ||
            a[i].modified.tv_nsec != b[i].modified.tv_nsec) {
            return true;
        }
    }
    return false;
}

static void log_expiry(const struct hearth_tls_context *context, const char *message)
{
    time_t when = (time_t)context->expires_s;
    struct tm parts = {0};
    char text[32] = "";
    int64_t left_s = context->expires_s - hearth_clock_wall_ns() / HEARTH_NS_PER_SEC;

    (void)gmtime_r(&when, &parts);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    HEARTH_LOG(left_s < SOON_S ? HEARTH_LOG_WARN : HEARTH_LOG_INFO, "tls", message, "file",
               context->files[CERT_FILE], "expires", text, "days_left",
               hearth_log_i64(left_s / (24 * 3600)), NULL);
}

/* The stamps are read first: a file that changes meanwhile is loaded again by the next check. */
static enum hearth_status load_files(struct hearth_tls_context *context, struct hearth_err *err)
{
    SSL_CTX *ssl;

    read_stamps(context, context->stamps);
    HEARTH_TRY(make_ssl_context(context, &ssl, err));
    context->expires_s = read_expiry(ssl);
    context->warned_mono_ns = hearth_clock_mono_ns();
    hearth_metric_set(HEARTH_M_TLS_EXPIRY, context->expires_s);

    hearth_mutex_lock(&context->lock);
    SSL_CTX *old = context->ssl;
    context->ssl = ssl;
    hearth_mutex_unlock(&context->lock);
    SSL_CTX_free(old);

    return HEARTH_OK;
}

static enum hearth_status set_options(struct hearth_tls_context *context,
                                      const struct hearth_tls_options *options,
                                      struct hearth_err *err)
{
    const char *const files[N_FILES] = {options->cert_file, options->key_file,
                                        options->client_ca_file};
    static const char *const flags[N_FILES] = {"tls-cert-file", "tls-key-file",
                                               "tls-client-ca-file"};

    for (int i = 0; i < N_FILES; i++) {
        const char *file = files[i] == NULL ? "" : files[i];
        context->flags[i] = flags[i];
        context->files[i] = hearth_mem_strndup(file, strlen(file));
        if (context->files[i] == NULL) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for TLS");
        }
        if (file[0] == '\0' && (i != CA_FILE || options->client_auth != HEARTH_CLIENT_AUTH_NONE)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s is needed %s", flags[i],
                               i == CA_FILE ? "to verify clients (tls-client-auth)"
                                            : "to listen on https://");
        }
    }

    context->client_auth = options->client_auth;
    context->min_version = options->only_tls13 ? TLS1_3_VERSION : TLS1_2_VERSION;

    return HEARTH_OK;
}

/* A context that has loaded its files. */
static enum hearth_status make_context(const struct hearth_tls_options *options,
                                       struct hearth_tls_context **ret_context,
                                       struct hearth_err *err)
{
    struct hearth_tls_context *context = hearth_mem_zalloc(sizeof *context);
    if (context == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for TLS");
    }

    hearth_mutex_init(&context->lock, HEARTH_RANK_TLS, "tls_context.lock");
    enum hearth_status status = set_options(context, options, err);
    if (status == HEARTH_OK) {
        status = load_files(context, err);
    }
    if (status != HEARTH_OK) {
        hearth_tls_context_free(context);
        return status;
    }

    *ret_context = context;

    return HEARTH_OK;
}

enum hearth_status hearth_tls_context_new(const struct hearth_tls_options *options,
                                          struct hearth_tls_context **ret_context,
                                          struct hearth_err *err)
{
    struct hearth_tls_context *context;

    HEARTH_TRY(make_context(options, &context, err));
    context->checked_mono_ns = hearth_clock_mono_ns();
    log_expiry(context, "certificate loaded");
    *ret_context = context;

    return HEARTH_OK;
}

void hearth_tls_context_free(struct hearth_tls_context *context)
{
    if (context == NULL) {
        return;
    }
    for (int i = 0; i < N_FILES; i++) {
        hearth_mem_free(context->files[i]);
    }
    SSL_CTX_free(context->ssl);
    hearth_mutex_destroy(&context->lock);
    hearth_mem_free(context);
}

enum hearth_status hearth_tls_context_try(const struct hearth_tls_options *options,
                                          struct hearth_err *err)
{
    struct hearth_tls_context *context;

    HEARTH_TRY(make_context(options, &context, err));
    hearth_tls_context_free(context);

    return HEARTH_OK;
}

void hearth_tls_context_load(struct hearth_tls_context *context)
{
    struct hearth_err err = HEARTH_ERR_INIT;

    if (load_files(context, &err) == HEARTH_OK) {
        hearth_metric_add_label(HEARTH_M_TLS_RELOADS, HEARTH_STR("ok"), 1);
        log_expiry(context, "certificate loaded again");
    } else {
        hearth_metric_add_label(HEARTH_M_TLS_RELOADS, HEARTH_STR("failed"), 1);
        HEARTH_LOG(HEARTH_LOG_ERROR, "tls",
                   "certificate not loaded again; the old one stays in effect", "error", err.msg,
                   NULL);
    }
}

void hearth_tls_context_check(struct hearth_tls_context *context, int64_t now_mono_ns)
{
    struct stamp stamps[N_FILES];

    if (now_mono_ns - context->checked_mono_ns < CHECK_NS) {
        return;
    }

    context->checked_mono_ns = now_mono_ns;
    read_stamps(context, stamps);
    if (have_changed(stamps, context->stamps)) {
        hearth_tls_context_load(context);
    }

    int64_t left_s = context->expires_s - hearth_clock_wall_ns() / HEARTH_NS_PER_SEC;
    if (left_s < SOON_S && now_mono_ns - context->warned_mono_ns >= WARN_NS) {
        context->warned_mono_ns = now_mono_ns;
        log_expiry(context, left_s < 0 ? "certificate has expired" : "certificate expires soon");
    }
}

SSL *hearth_tls_context_open(struct hearth_tls_context *context)
{
    /* The new SSL has a reference of its own. */
    hearth_mutex_lock(&context->lock);
    assert(context->ssl != NULL);
    SSL *ssl = SSL_new(context->ssl);
    hearth_mutex_unlock(&context->lock);

    if (ssl != NULL) {
        SSL_set_accept_state(ssl);
    }

    return ssl;
}
