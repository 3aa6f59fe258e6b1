/* caller.c -- reads what a client says of itself. */
#include "rpc/caller.h"

#include "hearth/base/base64.h"
#include "hearth/front/front.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stddef.h>

static const struct {
    const char *name;
    size_t offset;
} g_fields[] = {
    {"dd-api-key", offsetof(struct hearth_front_caller, api_key)},
    {"x-forwarded-for", offsetof(struct hearth_front_caller, forwarded_for)},
    {"x-forwarded-proto", offsetof(struct hearth_front_caller, forwarded_proto)},
    {"origin", offsetof(struct hearth_front_caller, origin)},
    {"host", offsetof(struct hearth_front_caller, host)},
};

/* The value of a cookie in the header "a=1; b=2"; p is NULL if it is not there. */
static struct hearth_str find_cookie(struct hearth_str header, const char *name)
{
    for (size_t at = 0; at < header.n;) {
        size_t end = hearth_str_find(header, ';', at);
        struct hearth_str pair = hearth_str_trim(hearth_str_n(header.p + at, end - at));
        size_t equals = hearth_str_find(pair, '=', 0);
        if (equals < pair.n && hearth_str_eq_c(hearth_str_n(pair.p, equals), name)) {
            return hearth_str_n(pair.p + equals + 1, pair.n - equals - 1);
        }
        at = end + 1;
    }
    return hearth_str_n(NULL, 0);
}

/* Takes one of two cookies, that of TLS if both are there. */
static void take_cookie(struct hearth_str header, const char *tls_name, const char *plain_name,
                        struct hearth_str *ret)
{
    struct hearth_str value = find_cookie(header, tls_name);

    if (value.p == NULL) {
        value = find_cookie(header, plain_name);
    }
    if (value.p != NULL) {
        *ret = value;
    }
}

static void take_cookies(struct hearth_front_caller *caller, struct hearth_str header)
{
    take_cookie(header, HEARTH_COOKIE_TLS, HEARTH_COOKIE_PLAIN, &caller->session);
    take_cookie(header, HEARTH_LOGIN_COOKIE_TLS, HEARTH_LOGIN_COOKIE_PLAIN, &caller->login);
}

static bool is_field(struct hearth_str name, const char *wanted)
{
    return wanted != NULL && hearth_str_eq_nocase(name, hearth_str_c(wanted));
}

/* Counts the occurrences of a header that may be sent once, and keeps the first. */
static void take_first(struct hearth_str value, size_t *n, struct hearth_str *first)
{
    if ((*n)++ == 0) {
        *first = value;
    }
}

void hearth_caller_take_field(struct hearth_front_caller *caller,
                              const struct hearth_proxy_headers *proxy, struct hearth_str name,
                              struct hearth_str value)
{
    if (is_field(name, "x-scope-orgid")) {
        take_first(value, &caller->n_tenants, &caller->tenant);
    } else if (is_field(name, "authentication")) {
        take_first(value, &caller->n_tokens, &caller->token);
    } else if (is_field(name, "authorization")) {
        take_first(value, &caller->n_authorizations, &caller->authorization);
    } else if (is_field(name, "cookie")) {
        take_cookies(caller, value);
    } else if (is_field(name, proxy->user)) {
        caller->proxy_user = hearth_str_trim(value);
    } else if (is_field(name, proxy->groups)) {
        caller->proxy_groups = value;
    } else {
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_fields); i++) {
            if (is_field(name, g_fields[i].name)) {
                memcpy((char *)caller + g_fields[i].offset, &value, sizeof value);
            }
        }
    }
}

void hearth_caller_set_address(struct hearth_front_caller *caller, const char *peer_text)
{
    const char *colon = strrchr(peer_text, ':');
    size_t n = colon != NULL ? (size_t)(colon - peer_text) : strlen(peer_text);
    bool is_bracketed = n >= 2 && peer_text[0] == '[' && peer_text[n - 1] == ']';

    if (is_bracketed) {
        peer_text++;
        n -= 2;
    }
    n = n < sizeof caller->address ? n : sizeof caller->address - 1;
    memcpy(caller->address, peer_text, n);
    caller->address[n] = '\0';
}

/* ---- tokens ---- */

/* A JWT has three parts; a token of ours has no full stop. */
static bool is_jwt(struct hearth_str text)
{
    size_t first = hearth_str_find(text, '.', 0);
    return first < text.n && hearth_str_find(text, '.', first + 1) < text.n;
}

/* The rest of the value after the scheme and a blank; p is NULL for another scheme. */
static struct hearth_str after_scheme(struct hearth_str value, const char *scheme)
{
    size_t n = strlen(scheme);

    if (value.n <= n || value.p[n] != ' ' ||
        !hearth_str_eq_nocase(hearth_str_n(value.p, n), hearth_str_c(scheme))) {
        return hearth_str_n(NULL, 0);
    }

    return hearth_str_trim(hearth_str_n(value.p + n, value.n - n));
}

static enum hearth_status read_basic(struct hearth_str encoded, struct hearth_arena *arena,
                                     struct hearth_str *ret_password, struct hearth_err *err)
{
    struct hearth_str pair;

    if (!hearth_base64_decode(encoded, arena, &pair)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the header Authorization: Basic is not base64");
    }

    size_t colon = hearth_str_find(pair, ':', 0);
    if (colon >= pair.n) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the header Authorization: Basic has no password");
    }
    *ret_password = hearth_str_n(pair.p + colon + 1, pair.n - colon - 1);

    return HEARTH_OK;
}

enum hearth_status hearth_caller_token(const struct hearth_front_caller *caller,
                                       struct hearth_arena *arena, struct hearth_str *ret_token,
                                       struct hearth_str *ret_jwt, struct hearth_err *err)
{
    struct hearth_str found = {NULL, 0};

    *ret_token = *ret_jwt = found;
    if (caller->n_authorizations > 1 || caller->n_tokens > 1) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the header %s was sent several times",
                           caller->n_authorizations > 1 ? "Authorization" : "authentication");
    }

    /* By precedence. */
    if (caller->n_authorizations == 1) {
        struct hearth_str value = hearth_str_trim(caller->authorization);
        struct hearth_str basic = after_scheme(value, "basic");
        found = after_scheme(value, "bearer");
        if (basic.p != NULL) {
            HEARTH_TRY(read_basic(basic, arena, &found, err));
        }
        if (found.p == NULL) {
            return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                               "the header Authorization is neither Bearer nor Basic");
        }
    } else if (caller->api_key.n > 0) {
        found = hearth_str_trim(caller->api_key);
    } else if (caller->n_tokens == 1) {
        struct hearth_str bearer = after_scheme(hearth_str_trim(caller->token), "bearer");
        found = bearer.p != NULL ? bearer : hearth_str_trim(caller->token);
    }

    *(is_jwt(found) ? ret_jwt : ret_token) = found;

    return HEARTH_OK;
}

/* ---- addresses ---- */

/* IPv4 as mapped IPv6. */
static bool parse_ip(const char *text, unsigned char ret[16], bool *ret_is_v4)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

    *ret_is_v4 = inet_pton(AF_INET, text, ret + sizeof mapped) == 1;
    if (*ret_is_v4) {
        memcpy(ret, mapped, sizeof mapped);
        return true;
    }

    return inet_pton(AF_INET6, text, ret) == 1;
}

bool hearth_network_range_parse(struct hearth_str text, struct hearth_network_range *ret)
{
    char address[HEARTH_CALLER_ADDRESS_BYTES];
    size_t slash = hearth_str_find(text, '/', 0);
    uint64_t n_bits = UINT64_MAX;
    bool is_v4;

    if (slash >= sizeof address) {
        return false;
    }
    memcpy(address, text.p, slash);
    address[slash] = '\0';
    if (!parse_ip(address, ret->ip, &is_v4) ||
        (slash < text.n &&
         !hearth_str_to_u64(hearth_str_n(text.p + slash + 1, text.n - slash - 1), &n_bits))) {
        return false;
    }

    unsigned most = is_v4 ? 32 : 128;
    if (slash < text.n && n_bits > most) {
        return false;
    }
    ret->n_bits = 128 - most + (slash < text.n ? (unsigned)n_bits : most);

    return true;
}

bool hearth_address_range_is_valid(const char *text)
{
    struct hearth_network_range range;
    return hearth_network_range_parse(hearth_str_c(text), &range);
}

bool hearth_network_range_has(const struct hearth_network_range *range, const char *address)
{
    unsigned char ip[16];
    bool is_v4;

    if (!parse_ip(address, ip, &is_v4)) {
        return false;
    }

    size_t n_bytes = range->n_bits / 8;
    unsigned rest = range->n_bits % 8;
    unsigned char mask = (unsigned char)(0xFF << (8 - rest));

    return memcmp(ip, range->ip, n_bytes) == 0 &&
           (rest == 0 || ((ip[n_bytes] ^ range->ip[n_bytes]) & mask) == 0);
}

bool hearth_caller_is_within(const struct hearth_front_caller *caller, const char *const *ranges)
{
    struct hearth_network_range range;

    for (size_t i = 0; ranges != NULL && ranges[i] != NULL; i++) {
        if (hearth_network_range_parse(hearth_str_c(ranges[i]), &range) &&
            hearth_network_range_has(&range, caller->address)) {
            return true;
        }
    }

    return false;
}

void hearth_caller_use_forwarded(struct hearth_front_caller *caller)
{
    struct hearth_str all = caller->forwarded_for;
    size_t at = all.n;
    unsigned char ip[16];
    bool is_v4;

    if (all.n == 0) { /* the header is missing: there is no text to point into */
        return;
    }
    while (at > 0 && all.p[at - 1] != ',') {
        at--;
    }

    struct hearth_str last = hearth_str_trim(hearth_str_n(all.p + at, all.n - at));
    char text[HEARTH_CALLER_ADDRESS_BYTES];
    if (last.n == 0 || last.n >= sizeof text) {
        return;
    }
    memcpy(text, last.p, last.n);
    text[last.n] = '\0';
    if (parse_ip(text, ip, &is_v4)) {
        memcpy(caller->address, text, last.n + 1);
    }
}

bool hearth_caller_is_over_tls(const struct hearth_front_caller *caller)
{
    return caller->is_tls || hearth_str_eq_nocase(caller->forwarded_proto, HEARTH_STR("https")) ||
           hearth_str_starts(caller->origin, HEARTH_STR("https://"));
}

bool hearth_caller_is_same_origin(const struct hearth_front_caller *caller)
{
    struct hearth_str scheme = HEARTH_STR("https://"), origin = caller->origin;

    /* A proxy in front of a listener without TLS may have ended it. A server at the other scheme of
     * this host is sent the cookie anyway. */
    if (!caller->is_tls && hearth_str_starts(origin, HEARTH_STR("http://"))) {
        scheme = HEARTH_STR("http://");
    }

    /* Browsers send an origin with every request that may change something. */
    return hearth_str_starts(origin, scheme) &&
           hearth_str_eq_nocase(hearth_str_n(origin.p + scheme.n, origin.n - scheme.n),
                                caller->host);
}
