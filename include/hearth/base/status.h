/*
 * status.h -- the closed set of outcomes, and the details of a failure.
 *
 * Every fallible function returns `enum hearth_status` and may describe a failure in a caller-owned
 * `struct hearth_err`. The table in status.def is the only place where statuses are mapped to gRPC,
 * HTTP and Connect codes.
 *
 * Threads: an hearth_err belongs to one call at a time; the functions here are pure.
 */
#ifndef HEARTH_BASE_STATUS_H
#define HEARTH_BASE_STATUS_H

#include "hearth/base/str.h"

#include <stdarg.h>

enum hearth_status {
#define X(name, number, grpc, http, connect, meaning) HEARTH_##name = (number),
#include "hearth/base/status.def"
#undef X
    HEARTH_N_STATUSES
};

/* Owned by the caller, of fixed size, unchanged on success. */
struct hearth_err {
    enum hearth_status status;
    uint32_t line; /* place of the HEARTH_FAIL */
    /*
     * The failure is temporary and not caused by the request: a retry may succeed, although the
     * status does not say so.
     */
    bool is_passing;
    /*
     * 1 + the byte of a label selector at which reading it stopped; 0 if the error is not about
     * the text of a selector.
     */
    uint32_t selector_place;
    const char *limit; /* option whose limit was hit, if it is counted; static; or NULL */
    const char *file;  /* place of the HEARTH_FAIL; static */
    char msg[480];     /* one sentence, lower case, no full stop: what is wrong, and where */
};

#define HEARTH_ERR_INIT     \
    {                       \
        .status = HEARTH_OK \
    }

const char *hearth_status_name(enum hearth_status status); /* "invalid_argument" style (Connect) */
int hearth_status_grpc(enum hearth_status status);         /* grpc-status number */
int hearth_status_http(enum hearth_status status);         /* HTTP status code */
enum hearth_status hearth_status_from_grpc(int code);      /* unknown codes become INTERNAL */

/*
 * Write a formatted message, truncated if it is too long; `err` may be NULL. Invalid UTF-8 and
 * control bytes become '?'.
 */
void hearth_err_set(struct hearth_err *err, enum hearth_status status, const char *file,
                    uint32_t line, const char *fmt, ...) HEARTH_PRINTF(5, 6);

/* Put the formatted text and ": " before an existing message. `err` may be NULL. */
void hearth_err_prefix(struct hearth_err *err, const char *fmt, ...) HEARTH_PRINTF(2, 3);

/* An expression whose value is the literal status, so that analyzers see the failure path. */
#define HEARTH_FAIL(err, st, ...) \
    (hearth_err_set((err), (st), __FILE__, (uint32_t)__LINE__, __VA_ARGS__), (st))

/*
 * Return early on failure. Use it only in functions whose resources are held by arenas or cleanup
 * variables.
 */
#define HEARTH_TRY(expr)                                        \
    do {                                                        \
        enum hearth_status hearth_try_status_ = (expr);         \
        if (HEARTH_UNLIKELY(hearth_try_status_ != HEARTH_OK)) { \
            return hearth_try_status_;                          \
        }                                                       \
    } while (0)

/* A violated invariant of our own code: prints the place and aborts, in every build. */
HEARTH_NORETURN void hearth_bug(const char *file, uint32_t line, const char *what);
#define HEARTH_BUG(what) hearth_bug(__FILE__, (uint32_t)__LINE__, (what))
/* Like assert(), but active in every build: for checks that must not be left out. */
#define HEARTH_ASSERT(cond)             \
    do {                                \
        if (HEARTH_UNLIKELY(!(cond))) { \
            HEARTH_BUG(#cond);          \
        }                               \
    } while (0)

#endif
