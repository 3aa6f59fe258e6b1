/* oidc_fetch.c -- requests to issuers, by libcurl. */
#include "oidc/oidc_fetch.h"

#include "oidc/oidc_url.h"

#include <assert.h>
#include <curl/curl.h>
#include <strings.h>
#include <unistd.h>

#define CONNECT_MS 5000

struct issuer_transfer {
    const struct hearth_oidc_request *request;
    struct hearth_buf *body;
    bool may_be_private; /* the host may be in a private network */
    bool was_private;    /* an address was refused */
};

/* ---- callbacks of curl ---- */

static size_t take_issuer_bytes(char *bytes, size_t size, size_t n, void *context)
{
    struct issuer_transfer *transfer = context;

    hearth_buf_append(transfer->body, bytes, size * n);

    return hearth_buf_failed(transfer->body) ? 0 : size * n;
}

/* The name was resolved: this is the address that will be connected. */
static curl_socket_t open_issuer_socket(void *context, curlsocktype purpose,
                                        struct curl_sockaddr *address)
{
    struct issuer_transfer *transfer = context;

    (void)purpose;
    if (!transfer->may_be_private && hearth_oidc_is_private(&address->addr)) {
        transfer->was_private = true;
        return CURL_SOCKET_BAD;
    }

    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int check_issuer_transfer(void *context, curl_off_t total, curl_off_t done, curl_off_t out,
                                 curl_off_t sent)
{
    const struct issuer_transfer *transfer = context;

    (void)total, (void)done, (void)out, (void)sent;

    return hearth_cancel_check(transfer->request->cancel, NULL) != HEARTH_OK;
}

/* ---- the request ---- */

static bool is_host_private(const struct hearth_oidc_request *request,
                            const struct hearth_oidc_url *url, const struct hearth_oidc_url *issuer)
{
    if (strcasecmp(url->host, issuer->host) == 0) {
        return true;
    }
    for (size_t i = 0; request->private_hosts != NULL && request->private_hosts[i] != NULL; i++) {
        if (strcasecmp(url->host, request->private_hosts[i]) == 0) {
            return true;
        }
    }

    return false;
}

/* User and password are form-encoded first: RFC 6749 section 2.3.1. */
static CURLcode set_basic(CURL *curl, const struct hearth_oidc_request *request)
{
    CURLcode rc = CURLE_OUT_OF_MEMORY;
    char *user = curl_easy_escape(curl, request->user, 0);
    char *password = curl_easy_escape(curl, request->password, 0);

    if (user != NULL && password != NULL) {
        rc = curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        rc |= curl_easy_setopt(curl, CURLOPT_USERNAME, user);
        rc |= curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
    }
    curl_free(user);
    curl_free(password);

    return rc;
}

static CURLcode set_up_request(CURL *curl, struct issuer_transfer *transfer, bool is_plain)
{
    const struct hearth_oidc_request *request = transfer->request;
    CURLcode rc = CURLE_OK;

    rc |= curl_easy_setopt(curl, CURLOPT_URL, request->url);
    rc |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, is_plain ? "http" : "https");
    rc |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    rc |= curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    rc |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    rc |= curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    rc |= curl_easy_setopt(curl, CURLOPT_USERAGENT, "hearth");
    rc |= curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, NULL);
    rc |= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    rc |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)HEARTH_OIDC_FETCH_MS);
    if (request->ca_file != NULL && request->ca_file[0] != '\0') {
        rc |= curl_easy_setopt(curl, CURLOPT_CAINFO, request->ca_file);
    }

    rc |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_issuer_bytes);
    rc |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    rc |= curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_issuer_socket);
    rc |= curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, transfer);
    rc |= curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_issuer_transfer);
    rc |= curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
    rc |= curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    if (request->form != NULL) {
        rc |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->form);
    }
    if (request->user != NULL) {
        rc |= set_basic(curl, request);
    }

    return rc;
}

static enum hearth_status judge_issuer_answer(const struct issuer_transfer *transfer, CURLcode rc,
                                              struct hearth_err *err)
{
    const struct hearth_oidc_request *request = transfer->request;

    if (rc == CURLE_OK) {
        return HEARTH_OK;
    }
    if (rc == CURLE_ABORTED_BY_CALLBACK) {
        HEARTH_TRY(hearth_cancel_check(request->cancel, err));
    }
    if (transfer->was_private) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "%.200s leads to a private network, and its host is not the issuer's; "
                           "list it in --oidc-private-hosts if that is right",
                           request->url);
    }
    if (hearth_buf_failed(transfer->body)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%.200s answered more than %zu bytes",
                           request->url, request->max_bytes);
    }

    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%.200s: %s", request->url, curl_easy_strerror(rc));
}

enum hearth_status hearth_oidc_fetch(const struct hearth_oidc_request *request,
                                     struct hearth_buf *body, long *ret_code,
                                     struct hearth_err *err)
{
    struct hearth_oidc_url issuer, url;
    long code = 0;

    HEARTH_TRY(hearth_oidc_url_parse(request->issuer_url, &issuer, err));
    HEARTH_TRY(hearth_oidc_url_parse(request->url, &url, err));
    if (url.is_plain && !issuer.is_plain) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%.200s is not https, but its issuer is",
                           request->url);
    }

    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a request to an issuer");
    }

    struct issuer_transfer transfer = {.request = request,
                                       .body = body,
                                       .may_be_private = is_host_private(request, &url, &issuer)};
    body->limit_bytes = request->max_bytes;
    CURLcode rc = set_up_request(curl, &transfer, url.is_plain);
    if (rc == CURLE_OK) {
        rc = curl_easy_perform(curl);
        (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    }
    enum hearth_status status = judge_issuer_answer(&transfer, rc, err);
    curl_easy_cleanup(curl);
    if (status == HEARTH_OK) {
        *ret_code = code;
    }

    return status;
}
