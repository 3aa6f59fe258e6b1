/*
 * proxy.c -- which proxy a server is reached through (contract: cli_settings.h).
 *
 * The rules are curl's: a variable for each scheme, NO_PROXY for exceptions. Loopback addresses never
 * need a proxy, which could not reach them. The gRPC core would take https_proxy for both schemes.
 */
#include "cli_settings.h"

#include <assert.h>

/* The host of a URL, without a port and brackets. */
static struct hearth_str host_of_url(struct hearth_str url)
{
    size_t from = 0;
    for (size_t i = 0; i + 2 < url.n && from == 0; i++) {
        from = memcmp(url.p + i, "://", 3) == 0 ? i + 3 : 0;
    }
    struct hearth_str host = hearth_str_n(url.p + from, url.n - from);

    if (host.n > 0 && host.p[0] == '[') {
        size_t end = hearth_str_find(host, ']', 0);
        return hearth_str_n(host.p + 1, (end < host.n ? end : host.n) - 1);
    }
    host.n = hearth_str_find(host, '/', 0);

    return hearth_str_n(host.p, hearth_str_find(host, ':', 0));
}

static bool is_loopback(struct hearth_str host)
{
    return hearth_str_eq_nocase(host, HEARTH_STR("localhost")) ||
           hearth_str_starts(host, HEARTH_STR("127.")) || hearth_str_eq_c(host, "::1");
}

/* Whether an entry of NO_PROXY covers a host: "*", the host, or a domain that it is in. */
static bool is_exception(struct hearth_str entry, struct hearth_str host)
{
    if (hearth_str_eq_c(entry, "*")) {
        return true;
    }
    if (entry.n > 0 && entry.p[0] == '.') {
        entry = hearth_str_n(entry.p + 1, entry.n - 1);
    }
    if (entry.n == 0 || entry.n > host.n) {
        return false;
    }
    struct hearth_str end = hearth_str_n(host.p + host.n - entry.n, entry.n);

    return hearth_str_eq_nocase(end, entry) &&
           (entry.n == host.n || host.p[host.n - entry.n - 1] == '.');
}

static bool is_excepted(struct hearth_str list, struct hearth_str host)
{
    for (size_t from = 0; from < list.n;) {
        size_t to = hearth_str_find(list, ',', from);
        if (is_exception(hearth_str_trim(hearth_str_n(list.p + from, to - from)), host)) {
            return true;
        }
        from = to + 1;
    }

    return false;
}

enum hearth_status cli_find_proxy(struct cli *cli, const char *url, const char **ret,
                                  const char **ret_variable)
{
    static const char *const with_tls[] = {"grpc_proxy", "HTTPS_PROXY", "https_proxy", NULL};
    static const char *const without_tls[] = {"grpc_proxy", "http_proxy", NULL};
    static const char *const exceptions[] = {"NO_PROXY", "no_proxy", "no_grpc_proxy"};
    struct hearth_str host = host_of_url(hearth_str_c(url));
    assert(ret != NULL && ret_variable != NULL);

    /* The first variable that is set. */
    *ret = *ret_variable = NULL;
    const char *value = NULL, *const *name =
                                  strncmp(url, "https:", 6) == 0 ? with_tls : without_tls;
    for (; *name != NULL && value == NULL; name++) {
        value = cli_find_variable(*name);
        *ret_variable = *name;
    }
    bool is_direct = value == NULL || is_loopback(host);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(exceptions) && !is_direct; i++) {
        const char *list = cli_find_variable(exceptions[i]);
        is_direct = list != NULL && is_excepted(hearth_str_c(list), host);
    }
    if (is_direct) {
        *ret_variable = NULL;
        return HEARTH_OK;
    }

    /* HOST:PORT is short for http://HOST:PORT; a slash at the end means nothing. */
    struct hearth_str proxy = hearth_str_c(value);
    if (proxy.p[proxy.n - 1] == '/') {
        proxy.n--;
    }
    *ret = hearth_arena_printf(&cli->arena, "%s%.*s", strstr(value, "://") == NULL ? "http://" : "",
                               (int)proxy.n, proxy.p);

    return *ret == NULL ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}
