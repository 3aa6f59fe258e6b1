/* cookies.c -- writes Set-Cookie; contract: cookies.h. */
#include "access/cookies.h"

#include "rpc/front_internal.h"

static void add_cookie(struct hearth_rpc *rpc, const char *tls_name, const char *plain_name,
                       struct hearth_str value, int64_t max_age_s)
{
    bool is_over_tls = rpc->caller.is_over_tls;
    const char *name = is_over_tls ? tls_name : plain_name, *secure = is_over_tls ? "; Secure" : "";
    char *header = hearth_arena_printf(
        &rpc->arena, "%s=%.*s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%lld%s", name, (int)value.n,
        value.n > 0 ? value.p : "", (long long)max_age_s, secure);

    hearth_rpc_add_header(rpc, "Set-Cookie", header);
}

void hearth_cookie_set_session(struct hearth_rpc *rpc, const char *value, int64_t max_age_s)
{
    add_cookie(rpc, HEARTH_COOKIE_TLS, HEARTH_COOKIE_PLAIN, hearth_str_c(value), max_age_s);
}

void hearth_cookie_set_login(struct hearth_rpc *rpc, struct hearth_str value, int64_t max_age_s)
{
    add_cookie(rpc, HEARTH_LOGIN_COOKIE_TLS, HEARTH_LOGIN_COOKIE_PLAIN, value, max_age_s);
}
