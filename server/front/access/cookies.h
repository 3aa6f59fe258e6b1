/*
 * cookies.h -- the cookies of log-ins.
 *
 * They are HttpOnly and SameSite=Lax. Over TLS, to the listener or to a proxy before it, they are
 * also Secure and bound to the host by their names.
 *
 * Threads: a request's own.
 */
#ifndef HEARTH_FRONT_COOKIES_H
#define HEARTH_FRONT_COOKIES_H

#include "hearth/base/str.h"

struct hearth_rpc;

/* The cookie of a session; an empty value with max_age_s 0 removes it. */
void hearth_cookie_set_session(struct hearth_rpc *rpc, const char *value, int64_t max_age_s);
/* The cookie that a browser carries during a log-in at an issuer. */
void hearth_cookie_set_login(struct hearth_rpc *rpc, struct hearth_str value, int64_t max_age_s);

#endif
