/* oidc_url.c -- judges addresses before they are used. */
#include "oidc/oidc_url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>

/* IPv4 ranges that are not public, as first address and number of bits. */
static const struct {
    uint32_t first;
    unsigned n_bits;
} g_private4[] = {
    {0x00000000, 8},  {0x0A000000, 8},  {0x64400000, 10}, {0x7F000000, 8},  {0xA9FE0000, 16},
    {0xAC100000, 12}, {0xC0000000, 24}, {0xC0A80000, 16}, {0xC6120000, 15}, {0xE0000000, 3},
};

static bool is_private4(uint32_t ip)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_private4); i++) {
        if ((ip ^ g_private4[i].first) >> (32 - g_private4[i].n_bits) == 0) {
            return true;
        }
    }

    return false;
}

bool hearth_oidc_is_private(const struct sockaddr *address)
{
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
    uint32_t ip4;

    if (address->sa_family == AF_INET) {
        memcpy(&in4, address, sizeof in4);
        return is_private4(ntohl(in4.sin_addr.s_addr));
    }
    if (address->sa_family != AF_INET6) {
        return true;
    }

    /* Global unicast is 2000::/3; addresses that hold IPv4 ones (mapped, NAT64, 6to4) are judged by
     * those, or lie outside. */
    memcpy(&in6, address, sizeof in6);
    const unsigned char *ip = in6.sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
        memcpy(&ip4, ip + 12, sizeof ip4);
        return is_private4(ntohl(ip4));
    }
    if (ip[0] == 0x20 && ip[1] == 0x02) {
        memcpy(&ip4, ip + 2, sizeof ip4);
        return is_private4(ntohl(ip4));
    }

    return (ip[0] & 0xE0) != 0x20;
}

static bool is_loopback_name(const char *host)
{
    struct in_addr ip4;

    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0) {
        return true;
    }

    return inet_pton(AF_INET, host, &ip4) == 1 && ntohl(ip4.s_addr) >> 24 == 127;
}

/* Takes a part of the URL; false if it is missing or too long. */
static bool get_url_part(CURLU *url, CURLUPart part, char *ret, size_t n_bytes)
{
    char *text = NULL;
    bool is_there = curl_url_get(url, part, &text, 0) == CURLUE_OK && strlen(text) < n_bytes;

    if (is_there) {
        (void)snprintf(ret, n_bytes, "%s", text);
    }
    curl_free(text);

    return is_there;
}

static bool has_url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool is_there = curl_url_get(url, part, &text, 0) == CURLUE_OK;

    curl_free(text);

    return is_there;
}

enum hearth_status hearth_oidc_url_parse(const char *text, struct hearth_oidc_url *ret,
                                         struct hearth_err *err)
{
    struct hearth_oidc_url url = {.is_plain = false};
    char scheme[16] = "";

    if (strlen(text) > HEARTH_OIDC_MAX_URL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a URL has more than %d bytes",
                           HEARTH_OIDC_MAX_URL);
    }

    CURLU *parsed = curl_url();
    if (parsed == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a URL");
    }
    bool is_url = curl_url_set(parsed, CURLUPART_URL, text, 0) == CURLUE_OK &&
                  get_url_part(parsed, CURLUPART_SCHEME, scheme, sizeof scheme) &&
                  get_url_part(parsed, CURLUPART_HOST, url.host, sizeof url.host) &&
                  !has_url_part(parsed, CURLUPART_USER) &&
                  !has_url_part(parsed, CURLUPART_PASSWORD) &&
                  !has_url_part(parsed, CURLUPART_FRAGMENT);
    curl_url_cleanup(parsed);

    url.is_plain = strcmp(scheme, "http") == 0;
    if (!is_url || (!url.is_plain && strcmp(scheme, "https") != 0) ||
        (url.is_plain && !is_loopback_name(url.host))) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "\"%.200s\" is not a URL https://HOST, or http:// with a loopback "
                           "address, without user name and fragment",
                           text);
    }

    *ret = url;

    return HEARTH_OK;
}

bool hearth_oidc_is_local_path(struct hearth_str path)
{
    if (path.n == 0 || path.n > HEARTH_OIDC_MAX_RETURN || path.p[0] != '/' ||
        (path.n > 1 && path.p[1] == '/')) {
        return false;
    }

    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        if (c <= ' ' || c >= 0x7F || c == '\\' || c == '"' || c == '<' || c == '>') {
            return false;
        }
    }

    return true;
}
