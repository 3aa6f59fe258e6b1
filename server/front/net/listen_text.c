/* listen_text.c -- the text of an address: scheme, host, port, modes. */
#include "hearth/front/listen_text.h"

#include <arpa/inet.h>
#include <assert.h>

#define MODES "?auth="

static void copy_part(struct hearth_str part, char *to)
{
    memcpy(to, part.p, part.n);
    to[part.n] = '\0';
}

/* Splits "HOST:PORT"; false for any other form. */
static bool split_address(struct hearth_str s, struct hearth_listen_text *listen)
{
    /* The port stands after the last colon. */
    size_t colon = s.n;
    while (colon > 0 && s.p[colon - 1] != ':') {
        colon--;
    }

    if (colon == 0) {
        return false;
    }

    /* The host, without the brackets of an IPv6 address. */
    struct hearth_str h = hearth_str_n(s.p, colon - 1);
    struct hearth_str p = hearth_str_n(s.p + colon, s.n - colon);
    if (h.n > 0 && h.p[0] == '[') {
        if (h.n < 3 || h.p[h.n - 1] != ']') {
            return false;
        }
        h = hearth_str_n(h.p + 1, h.n - 2);
    } else if (hearth_str_find(h, ':', 0) < h.n) {
        return false; /* an IPv6 address without brackets */
    }

    uint64_t number;
    if (p.n == 0 || p.n > 5 || !hearth_str_to_u64(p, &number) || number > 65535 ||
        h.n >= sizeof listen->host || hearth_str_find(h, '/', 0) < h.n) {
        return false;
    }

    copy_part(h, listen->host);
    copy_part(p, listen->port);

    return true;
}

enum hearth_status hearth_listen_parse(const char *text, struct hearth_listen_text *ret_listen,
                                       struct hearth_err *err)
{
    struct hearth_listen_text listen = {0};
    struct hearth_str rest = hearth_str_c(text);

    /* The scheme. */
    listen.is_tls = hearth_str_starts(rest, HEARTH_STR("https://"));
    size_t n_scheme = listen.is_tls                                    ? strlen("https://")
                      : hearth_str_starts(rest, HEARTH_STR("http://")) ? strlen("http://")
                                                                       : 0;
    rest = hearth_str_n(rest.p + n_scheme, rest.n - n_scheme);

    /* The modes. */
    size_t mark = hearth_str_find(rest, '?', 0);
    if (mark < rest.n) {
        struct hearth_str query = hearth_str_n(rest.p + mark, rest.n - mark);
        struct hearth_err cause = HEARTH_ERR_INIT;
        if (!hearth_str_starts(query, HEARTH_STR(MODES))) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "listen address \"%.200s\": only " MODES "MODE,MODE.. may follow the port", text);
        }
        query = hearth_str_n(query.p + strlen(MODES), query.n - strlen(MODES));
        if (hearth_auth_modes_parse(query, &listen.auth_modes, &cause) != HEARTH_OK) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "listen address \"%.200s\": %s", text,
                               cause.msg);
        }
        rest.n = mark;
    }

    if (!split_address(rest, &listen)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "listen address \"%.200s\" is not HOST:PORT or [IPV6]:PORT, after "
                           "http:// or https:// if need be",
                           text);
    }

    *ret_listen = listen;

    return HEARTH_OK;
}

bool hearth_listen_is_loopback(const struct hearth_listen_text *listen)
{
    struct in_addr ip4;
    struct in6_addr ip6;

    if (inet_pton(AF_INET, listen->host, &ip4) == 1) {
        return ntohl(ip4.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, listen->host, &ip6) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&ip6);
    }

    return strcmp(listen->host, "localhost") == 0;
}

enum hearth_status hearth_listen_join(const char *const *items, struct hearth_arena *arena,
                                      const char *const **ret_texts, struct hearth_err *err)
{
    size_t n = 0, n_texts = 0;

    while (items[n] != NULL) {
        n++;
    }

    const char **texts = hearth_arena_calloc(arena, n + 1, sizeof *texts);
    if (texts == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        bool is_mode = n_texts > 0 && strchr(items[i], ':') == NULL &&
                       strstr(texts[n_texts - 1], MODES) != NULL;
        if (!is_mode) {
            texts[n_texts++] = items[i];
            continue;
        }
        texts[n_texts - 1] = hearth_arena_printf(arena, "%s,%s", texts[n_texts - 1], items[i]);
        if (texts[n_texts - 1] == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    assert(n_texts <= n);
    *ret_texts = texts;

    return HEARTH_OK;
}
