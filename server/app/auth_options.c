/* auth_options.c -- options about who may call, and from where (contract: auth_options.h). */
#include "auth_options.h"

#include "hearth/base/log.h"
#include "hearth/front/listen_text.h"

#include <stdio.h>

#define MIN_ADMIN_TOKEN_BYTES 32

/* Ways to authenticate that cannot work as the other options are. */
static enum hearth_status check_modes(const struct hearth_config *config,
                                      const struct hearth_listen_text *listen, unsigned modes,
                                      struct hearth_err *err)
{
    const struct hearth_front_options *front = &config->front;

    if ((modes & HEARTH_AUTH_MTLS) != 0 &&
        (!listen->is_tls || front->tls.client_auth == HEARTH_CLIENT_AUTH_NONE)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "auth: mtls needs an https listener, tls-client-ca-file and "
                           "tls-client-auth request or require");
    }

    if ((modes & HEARTH_AUTH_PROXY) == 0) {
        return HEARTH_OK;
    }
    if (front->proxy_user_header == NULL || front->proxy_user_header[0] == '\0' ||
        front->proxy_trusted == NULL || front->proxy_trusted[0] == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "auth: proxy needs proxy-user-header and proxy-trusted");
    }

    return HEARTH_OK;
}

static enum hearth_status check_trusted_proxies(const struct hearth_front_options *front,
                                                struct hearth_err *err)
{
    for (size_t i = 0; front->proxy_trusted != NULL && front->proxy_trusted[i] != NULL; i++) {
        if (!hearth_address_range_is_valid(front->proxy_trusted[i])) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "proxy-trusted: \"%s\" is no address and no range such as "
                               "10.0.0.0/8",
                               front->proxy_trusted[i]);
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_auth_check_addresses(const struct hearth_config *config,
                                               struct hearth_err *err)
{
    const char *const *text = config->front.listen;

    HEARTH_TRY(check_trusted_proxies(&config->front, err));
    for (; *text != NULL; text++) {
        struct hearth_listen_text listen;
        HEARTH_TRY(hearth_listen_parse(*text, &listen, err));
        unsigned modes = listen.auth_modes != 0 ? listen.auth_modes : config->front.auth_modes;
        HEARTH_TRY(check_modes(config, &listen, modes, err));
        if (modes == HEARTH_AUTH_NONE && !config->insecure_no_auth &&
            !hearth_listen_is_loopback(&listen)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "listen: %s can be reached from other machines, and everybody who "
                               "reaches it may do everything; set --auth token, or "
                               "--insecure-no-auth",
                               *text);
        }
    }

    return HEARTH_OK;
}

/* Everybody on the way to a listener without TLS can read what callers prove themselves with. */
void hearth_auth_warn_of_clear_credentials(const struct hearth_config *config)
{
    const unsigned without_secrets = HEARTH_AUTH_NONE | HEARTH_AUTH_PROXY;

    for (const char *const *text = config->front.listen; *text != NULL; text++) {
        struct hearth_listen_text listen;
        struct hearth_err ignored = HEARTH_ERR_INIT;
        if (hearth_listen_parse(*text, &listen, &ignored) != HEARTH_OK || listen.is_tls ||
            hearth_listen_is_loopback(&listen)) {
            continue;
        }

        unsigned modes = listen.auth_modes != 0 ? listen.auth_modes : config->front.auth_modes;
        if ((modes & ~without_secrets) != 0) {
            HEARTH_LOG(HEARTH_LOG_WARN, "app",
                       "tokens and passwords can be read on their way to this address: use "
                       "https://, or a proxy with TLS on this machine",
                       "listen", *text, NULL);
        }
    }
}

bool hearth_auth_asks_who_calls(const struct hearth_config *config)
{
    bool asks = config->front.auth_modes != HEARTH_AUTH_NONE;

    for (const char *const *text = config->front.listen; *text != NULL && !asks; text++) {
        struct hearth_listen_text listen;
        struct hearth_err ignored = HEARTH_ERR_INIT;
        asks = hearth_listen_parse(*text, &listen, &ignored) == HEARTH_OK &&
               listen.auth_modes != 0 && listen.auth_modes != HEARTH_AUTH_NONE;
    }

    return asks;
}

/* Not through the log, which others may read. */
static void print_setup_token(const char *token)
{
    (void)fprintf(stderr,
                  "\nNobody has the role admin in all tenants yet. This token has it for an hour, "
                  "or until somebody else is given it:\n\n    %s\n\n",
                  token);
}

enum hearth_status hearth_auth_read_options(struct hearth_config *config, struct hearth_err *err)
{
    struct hearth_err why = HEARTH_ERR_INIT;

    if (hearth_auth_modes_parse(hearth_str_c(config->auth), &config->front.auth_modes, &why) !=
        HEARTH_OK) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "auth: %s", why.msg);
    }

    /* The length is the whole protection of this token against guesses. */
    if (config->admin_token != NULL &&
        hearth_secret_bytes(config->admin_token) < MIN_ADMIN_TOKEN_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "admin-token must have at least %d bytes",
                           MIN_ADMIN_TOKEN_BYTES);
    }

    config->access.admin_token = config->admin_token;
    config->access.offer_setup_token =
        hearth_auth_asks_who_calls(config) ? print_setup_token : NULL;
    config->front.session_max_ns = config->access.session_max_ns;

    return HEARTH_OK;
}
