/*
 * oidc.h -- callers that an issuer of OpenID Connect knows: JWTs of machines, log-in of people.
 *
 * A thread of this room fetches the documents of each listed issuer: the discovery document, then
 * the keys. They are fetched again every refresh_ns, and when a JWT names an unknown key, but at
 * most every HEARTH_OIDC_PAUSE_NS. While an issuer is away its keys hold for keys_max_age_ns.
 *
 * hearth_oidc_verify only computes, and remembers JWTs that were right until they end, or until the
 * issuer's keys change. The two calls of a log-in block: they run on a pool.
 *
 * Subjects. With one issuer without a name: "oidc:CLAIM" and "group:GROUP". With a name, as in
 * "corp=https://login.example": "oidc:corp:CLAIM" and "group:corp:GROUP". Several issuers must all
 * have names, so no issuer can name another one's subject.
 *
 * Locks:   oidc.lock and slot.lock (HEARTH_RANK_OIDC), never held together.
 * Threads: safe; start, reload and stop from one thread.
 * Source:  OpenID Connect Core 1.0, Discovery 1.0; RFC 6749, 7636 (PKCE), 9207 (iss in answers).
 */
#ifndef HEARTH_FRONT_OIDC_H
#define HEARTH_FRONT_OIDC_H

#include "hearth/base/cancel.h"
#include "hearth/front/front.h"

struct hearth_oidc;      /* issuers, as one set of options names them */
struct hearth_oidc_slot; /* the issuers in effect, which a reload replaces */

#define HEARTH_OIDC_PAUSE_NS   (10 * HEARTH_NS_PER_SEC)
#define HEARTH_OIDC_LOGIN_S    600 /* a person may take this long to log in */
#define HEARTH_OIDC_MIN_SECRET 16  /* bytes of a client's secret */
#define HEARTH_OIDC_MAX_SECRET 1000

/* INVALID_ARGUMENT for options that contradict each other. */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_check_options(const struct hearth_oidc_options *options,
                                             struct hearth_err *err);
/* Starts the thread. No issuer need be reachable. The options are kept. */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_start(const struct hearth_oidc_options *options,
                                     struct hearth_oidc_slot **ret, struct hearth_err *err);
/*
 * Uses other options, which are kept and have been checked, and fetches the documents of the
 * issuers again. What is known of an issuer holds until then, if its documents come the same way
 * (ca_file, private_hosts). JWTs are verified again. Log-ins that were begun with another client,
 * secret or first issuer end with UNAUTHENTICATED. Without memory or threads, the old options stay,
 * and the log says so. Waits until the old thread has ended, about a second. From one thread.
 */
void hearth_oidc_reload(struct hearth_oidc_slot *slot, const struct hearth_oidc_options *options);
/* No call is under way. NULL-safe. */
void hearth_oidc_stop(struct hearth_oidc_slot *slot);

/* The issuers in effect. The caller releases them; calls with them end as they began. */
struct hearth_oidc *hearth_oidc_hold(struct hearth_oidc_slot *slot);
void hearth_oidc_release(struct hearth_oidc *oidc); /* NULL-safe */

/* Who a verified token names. Texts are in the caller's arena. */
struct hearth_oidc_identity {
    struct hearth_str *subjects; /* the caller, then its groups */
    size_t n_subjects;
    int64_t expires_ms; /* milliseconds since the epoch */
};

/*
 * Verifies the JWT of a request. Never blocks.
 *
 * ret_is_wrong  always set: the JWT was made by nobody whom the options list, so the client guesses
 *
 * Returns  OK; UNAUTHENTICATED; UNAVAILABLE while the keys of its issuer are not known, or while a
 *          key that it names is looked for; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_verify(struct hearth_oidc *oidc, struct hearth_str jwt,
                                      struct hearth_arena *arena, struct hearth_oidc_identity *ret,
                                      bool *ret_is_wrong, struct hearth_err *err);

/* ---- log-in: at the first issuer, if there is a client id ---- */

/*
 * Where the browser is sent to, and the cookie that it must bring back (oidc_state.h).
 *
 * Returns  OK; INVALID_ARGUMENT for a return path that is not local; UNIMPLEMENTED without a client
 *          id; UNAVAILABLE while the issuer's documents are not known; NO_MEMORY; INTERNAL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_begin_login(struct hearth_oidc *oidc, struct hearth_str return_path,
                                           struct hearth_arena *arena, const char **ret_url,
                                           struct hearth_str *ret_cookie, struct hearth_err *err);

/* What the browser brings back from the issuer; missing members have p NULL. */
struct hearth_oidc_answer {
    struct hearth_str cookie;
    struct hearth_str state, code, issuer, error, error_description;
};

/*
 * Finishes a log-in: exchanges the code for an ID token and verifies it. Blocks, at most for
 * HEARTH_OIDC_FETCH_MS twice.
 *
 * Returns  OK; UNAUTHENTICATED; UNAVAILABLE if the issuer does not answer, or max_logins others are
 *          being finished; CANCELLED; DEADLINE_EXCEEDED; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_oidc_finish_login(struct hearth_oidc *oidc, const struct hearth_oidc_answer *answer,
                         struct hearth_cancel *cancel, struct hearth_arena *arena,
                         struct hearth_oidc_identity *ret, struct hearth_str *ret_return_path,
                         struct hearth_err *err);

#endif
