/* client.c -- clients: their address, their options, their credentials. */
#include "hearth/base/mem.h"

#include "client_call.h"
#include "client_exchange.h"
#include "client_headers.h"
#include "client_tls.h"

#include <grpc/grpc_security.h>

#include <assert.h>

void hearth_client_options_init(struct hearth_client_options *options)
{
    *options = (struct hearth_client_options){
        .url = "http://127.0.0.1:4040",
        .timeout_ms = 60000,
        .retry_ms = 10000,
        .max_answer_bytes = (size_t)1 << 30,
    };
}

/* gRPC would connect to a larger number modulo 65,536. */
static bool is_port(struct hearth_str text)
{
    int64_t port;

    return hearth_str_to_i64(text, &port) && port >= 1 && port <= UINT16_MAX;
}

/* HOST:PORT of a URL; a missing port is 4040. Gives the text. */
static enum hearth_status find_target(struct hearth_str given, bool *ret_is_tls, char **ret,
                                      struct hearth_err *err)
{
    struct hearth_str url = given;

    *ret_is_tls = hearth_str_starts(url, HEARTH_STR("https://"));
    if (*ret_is_tls) {
        url = hearth_str_n(url.p + 8, url.n - 8);
    } else if (hearth_str_starts(url, HEARTH_STR("http://"))) {
        url = hearth_str_n(url.p + 7, url.n - 7);
    }
    if (url.n > 0 && url.p[url.n - 1] == '/') {
        url.n--;
    }
    size_t port = 0; /* where it begins; 0: the address has no port */
    for (size_t i = 0; i < url.n; i++) {
        port = url.p[i] == ':' ? i + 1 : url.p[i] == ']' ? 0 : port;
    }
    if (url.n == 0 || hearth_str_find(url, '/', 0) < url.n ||
        (port > 0 && !is_port(hearth_str_n(url.p + port, url.n - port)))) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "url \"" HEARTH_STR_FMT
                           "\" is not http://HOST:PORT or https://HOST:PORT, with a port of 1 to "
                           "65535",
                           HEARTH_STR_ARG(given));
    }
    char *target = hearth_mem_alloc(url.n + sizeof ":4040");
    if (target == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a client");
    }
    memcpy(target, url.p, url.n);
    memcpy(target + url.n, port > 0 ? "" : ":4040", port > 0 ? 1 : sizeof ":4040");
    *ret = target;

    return HEARTH_OK;
}

/* Whether a text is http://[USER:PASSWORD@]HOST:PORT, as the core reads it. */
static bool is_proxy(struct hearth_str url)
{
    const struct hearth_str scheme = HEARTH_STR("http://");

    for (size_t i = 0; i < url.n; i++) {
        if (url.p[i] <= ' ' || url.p[i] >= 0x7f) {
            return false;
        }
    }
    size_t slash = hearth_str_starts(url, scheme) ? hearth_str_find(url, '/', scheme.n) : 0;
    size_t n_digits = 0;
    while (n_digits < url.n && url.p[url.n - 1 - n_digits] >= '0' &&
           url.p[url.n - 1 - n_digits] <= '9') {
        n_digits++;
    }

    return slash >= url.n && n_digits > 0 && n_digits <= 5 && url.n > scheme.n + n_digits + 1 &&
           url.p[url.n - 1 - n_digits] == ':';
}

static grpc_channel *open_channel(const char *target, grpc_channel_credentials *credentials,
                                  const struct hearth_client_options *options)
{
    size_t max_bytes = options->max_answer_bytes;
    grpc_arg args[] = {
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH},
         .value.integer = max_bytes > INT32_MAX ? INT32_MAX : (int)max_bytes},
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_MAX_SEND_MESSAGE_LENGTH},
         .value.integer = -1},
        /* One server, one user: a refused connection is an answer, not the start of a long
           back-off. */
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS},
         .value.integer = 200},
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_MAX_RECONNECT_BACKOFF_MS},
         .value.integer = 1000},
        /* Otherwise the core reads variables itself, and takes https_proxy for servers without TLS. */
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_ENABLE_HTTP_PROXY},
         .value.integer = options->proxy != NULL},
        {.type = GRPC_ARG_STRING,
         .key = (char[]){GRPC_ARG_HTTP_PROXY},
         .value.string = (char *)(uintptr_t)options->proxy},
    };
    size_t n_args = HEARTH_ARRAY_LEN(args) - (options->proxy == NULL);
    grpc_channel_args channel_args = {.num_args = n_args, .args = args};
    return grpc_channel_create(target, credentials, &channel_args);
}

static enum hearth_status make_credentials(const struct hearth_client_options *options, bool is_tls,
                                           grpc_channel_credentials **ret_credentials,
                                           struct hearth_err *err)
{
    bool has_files = options->ca_file != NULL || options->cert_file != NULL ||
                     options->key_file != NULL || options->skip_verify;

    if (is_tls) {
        return hearth_tls_credentials(options, ret_credentials, err);
    }
    if (has_files) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "url \"%.200s\": certificates are for https://HOST:PORT", options->url);
    }
    *ret_credentials = grpc_insecure_credentials_create();

    return HEARTH_OK;
}

/* Checks what the calls send, and where to. */
static enum hearth_status fill_client(const struct hearth_client_options *options,
                                      struct hearth_client *client, struct hearth_err *err)
{
    grpc_channel_credentials *credentials = NULL;
    bool is_tls;

    client->options = *options;
    HEARTH_TRY(find_target(hearth_str_c(options->url), &is_tls, &client->target, err));
    HEARTH_TRY(client_metadata_fill(&client->metadata, options, err));
    if (options->proxy != NULL && !is_proxy(hearth_str_c(options->proxy))) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the proxy is not http://HOST:PORT or http://USER:PASSWORD@HOST:PORT");
    }
    HEARTH_TRY(make_credentials(options, is_tls, &credentials, err));
    client->channel = open_channel(client->target, credentials, options);
    grpc_channel_credentials_release(credentials);

    return HEARTH_OK;
}

enum hearth_client_status hearth_client_new(const struct hearth_client_options *options,
                                            struct hearth_client **ret_client,
                                            struct hearth_client_error *error)
{
    assert(options != NULL && options->url != NULL && ret_client != NULL);
    assert(options->timeout_ms > 0 && options->retry_ms >= 0);
    assert(options->waiting == NULL || options->waiting_after_ms >= 0);

    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_client *client = hearth_mem_zalloc(sizeof *client);
    enum hearth_status status;
    if (client == NULL) {
        status = HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate a client");
        return hearth_call_error_out(&err, status, false, error);
    }
    grpc_init();
    status = fill_client(options, client, &err);
    if (status != HEARTH_OK) {
        hearth_client_free(client);
        return hearth_call_error_out(&err, status, false, error);
    }
    *ret_client = client;

    return HEARTH_CLIENT_OK;
}

void hearth_client_free(struct hearth_client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->channel != NULL) {
        grpc_channel_destroy(client->channel);
    }
    client_metadata_release(&client->metadata);
    grpc_shutdown();
    hearth_mem_free(client->target);
    hearth_mem_free(client);
}

enum hearth_client_status hearth_client_set_token(struct hearth_client *client, const char *token,
                                                  struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_OK;
    struct hearth_buf value;
    assert(client != NULL && token != NULL);

    /* gRPC refuses a call with other bytes, without saying why. */
    bool is_text = token[0] != '\0';
    for (const char *c = token; *c != '\0'; c++) {
        is_text = is_text && *c > ' ' && *c < 0x7f;
    }
    hearth_buf_init(&value, 0);
    hearth_buf_printf(&value, "Bearer %s", token);
    if (!is_text) {
        status = HEARTH_FAIL(&err, HEARTH_INVALID_ARGUMENT,
                             "a token is one word of visible ASCII characters");
    } else if (client_metadata_has(&client->metadata, "authorization")) {
        status = HEARTH_FAIL(&err, HEARTH_INVALID_ARGUMENT,
                             "the header authorization is given already: a token is sent in it");
    } else if (hearth_buf_failed(&value)) {
        status = HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate a client");
    } else {
        client_metadata_add(&client->metadata, HEARTH_STR("authorization"),
                            hearth_buf_view(&value));
    }
    hearth_buf_release(&value);

    return hearth_call_error_out(&err, status, false, error);
}
