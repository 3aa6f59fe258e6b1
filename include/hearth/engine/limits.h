/*
 * limits.h -- every limit of ingest and queries, with its default. Options set limits, and tenants
 * may override those in tenant_limits.def. An error or note names the limit that was hit.
 *
 * 0 means "no limit" unless stated otherwise. A reload of the configuration replaces the
 * server's limits by another struct; each is immutable.
 *
 * Threads: safe.
 * Source:  the limits of Pyroscope (docs/reference/limits.md compares the defaults).
 */
#ifndef HEARTH_ENGINE_LIMITS_H
#define HEARTH_ENGINE_LIMITS_H

#include "hearth/base/buf.h"
#include "hearth/base/status.h"
#include "hearth/codec/demangle.h"

struct hearth_store;

struct hearth_limits {
    /* X-macro: type, field, default; options.def has the flag and the help text of each. */
#define X(type, field, def) type field;
#include "hearth/engine/limits.def"
#undef X
    enum hearth_demangle demangle; /* names of C++ and Rust; no limit, but a setting of ingest */
};

void hearth_limits_init(struct hearth_limits *limits);

/*
 * Returns the limits of a tenant: its own where it has any, otherwise the server's. Reads memory
 * that is at most some seconds old, without an allocation or round trip, so that each request may
 * call it. store may be NULL; then the result is the server's limits.
 */
void hearth_limits_of_tenant(const struct hearth_limits *server, struct hearth_store *store,
                             struct hearth_str tenant, struct hearth_limits *ret);

struct hearth_view;

/*
 * The strictest limits of several tenants: of each limit the smallest that is set; a switch is on
 * if it is on for all tenants.
 */
void hearth_limits_strictest(const struct hearth_limits *server, struct hearth_store *store,
                             const struct hearth_view *tenants, size_t n,
                             struct hearth_limits *ret);

enum hearth_limit_kind {
    HEARTH_LIMIT_COUNT,
    HEARTH_LIMIT_BYTES,
    HEARTH_LIMIT_DURATION, /* nanoseconds */
    HEARTH_LIMIT_SWITCH,   /* 0 or 1 */
};

/* One limit that a tenant may override. */
struct hearth_limit {
    const char *name;
    enum hearth_limit_kind kind;
    size_t offset; /* in struct hearth_limits */
};

extern const struct hearth_limit hearth_tenant_limits[];
extern const size_t hearth_n_tenant_limits;

/* Returns the limit of that name; NULL if tenants cannot override a limit of that name. */
const struct hearth_limit *hearth_limit_find(struct hearth_str name);
/* The value in limits; a switch is 0 or 1. */
int64_t hearth_limit_get(const struct hearth_limit *limit, const struct hearth_limits *limits);
/*
 * Parses a value in the syntax of options: "64m", "7d", "16000", "true". Errors: INVALID_ARGUMENT
 * names the limit, the value and the expected form.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_limit_parse(const struct hearth_limit *limit, struct hearth_str text,
                                      int64_t *ret, struct hearth_err *err);
/* Appends the value as text that hearth_limit_parse reads back. */
void hearth_limit_format(const struct hearth_limit *limit, int64_t value, struct hearth_buf *out);

#endif
