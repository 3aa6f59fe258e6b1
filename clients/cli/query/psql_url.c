/* psql_url.c -- moves a password from a database URL to the environment (contract: psql_url.h). */
#include "psql_url.h"

#include "hearth/base/mem.h"

#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Percent-decode; false for an invalid escape and for NUL. `out` has room for in.n + 1 bytes. */
static bool decode_password(struct hearth_str in, char *out)
{
    for (size_t i = 0; i < in.n; i++) {
        *out = in.p[i];
        if (in.p[i] == '%') {
            int high = i + 2 < in.n ? hex_value(in.p[i + 1]) : -1;
            int low = i + 2 < in.n ? hex_value(in.p[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0) {
                return false;
            }
            *out = (char)(high * 16 + low);
            i += 2;
        }
        out++;
    }

    *out = '\0';

    return true;
}

static enum hearth_status export_password(struct hearth_str password, struct hearth_err *err)
{
    char *decoded = hearth_mem_alloc(password.n + 1);
    if (decoded == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a password");
    }

    bool ok = decode_password(password, decoded);
    ok = ok && setenv("PGPASSWORD", decoded, 1) == 0;
    explicit_bzero(decoded, password.n + 1);
    hearth_mem_free(decoded);

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                            "the password in --database-url is not percent-encoded: a %% is "
                            "written %%25");
}

enum hearth_status cli_psql_url(const struct hearth_secret *secret, struct hearth_arena *arena,
                                const char **ret, struct hearth_err *err)
{
    struct hearth_str url = hearth_str_c(hearth_secret_reveal(secret));
    size_t from = hearth_str_starts(url, HEARTH_STR("postgresql://")) ? 13
                  : hearth_str_starts(url, HEARTH_STR("postgres://")) ? 11
                                                                      : 0;

    /* "user:password@", as libpq finds it. */
    size_t at = from, colon = from;
    while (from > 0 && at < url.n && url.p[at] != '@' && url.p[at] != '/') {
        at++;
    }
    while (colon < at && url.p[colon] != ':') {
        colon++;
    }
    bool has_password = from > 0 && at < url.n && url.p[at] == '@' && colon < at;
    struct hearth_str rest = has_password ? hearth_str_n(url.p + at, url.n - at) : url;

    if (memmem(rest.p, rest.n, "password", 8) != NULL ||
        (has_password && memchr(rest.p + 1, '@', rest.n - 1) != NULL)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "--database-url has a password that psql would show to other users; "
                           "write postgresql://user:password@host/database, with %%40 for an @, "
                           "or set PGPASSWORD");
    }
    if (has_password) {
        HEARTH_TRY(export_password(hearth_str_n(url.p + colon + 1, at - colon - 1), err));
    }

    *ret = has_password
               ? hearth_arena_printf(arena, "%.*s%.*s", (int)colon, url.p, (int)rest.n, rest.p)
               : hearth_arena_strndup(arena, url.p, url.n);

    return *ret == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}
