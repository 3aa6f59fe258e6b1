/*
 * limits.h -- every limit of ingest and query, with its default; set by options, by tenant where
 * tenant_limits.def says so, reported by name when hit.
 *
 * 0 means "no limit" unless said otherwise. The server's are immutable after start.
 * Threads: safe.
 * Source:  the limits of Pyroscope (docs/reference/limits.md compares the defaults).
 */
#ifndef HEARTH_ENGINE_LIMITS_H
#define HEARTH_ENGINE_LIMITS_H

#include "hearth/base/buf.h"
#include "hearth/base/status.h"

struct hearth_store;

struct hearth_limits {
    /* X-macro: type, field, default; options.def has the flag and the help text of each. */
#define X(type, field, def) type field;
#include "hearth/engine/limits.def"
#undef X
};

void hearth_limits_init(struct hearth_limits *limits);

/*
 * What holds for a tenant: the server's, and its own where it has any. From memory, some seconds old
 * at most; no allocation and no round trip, so for each request. store NULL: the server's.
 */
void hearth_limits_of_tenant(const struct hearth_limits *server, struct hearth_store *store,
                             struct hearth_str tenant, struct hearth_limits *ret);

enum hearth_limit_kind {
    HEARTH_LIMIT_COUNT,
    HEARTH_LIMIT_BYTES,
    HEARTH_LIMIT_DURATION, /* nanoseconds */
    HEARTH_LIMIT_SWITCH,   /* 0 or 1 */
};

/* One limit that a tenant may have of its own. */
struct hearth_limit {
    const char *name;
    enum hearth_limit_kind kind;
    size_t offset; /* in struct hearth_limits */
};

extern const struct hearth_limit hearth_tenant_limits[];
extern const size_t hearth_n_tenant_limits;

/* NULL: a tenant cannot have one of that name. */
const struct hearth_limit *hearth_limit_find(struct hearth_str name);
int64_t hearth_limit_get(const struct hearth_limit *limit, const struct hearth_limits *limits);
/* As options are written: "64m", "7d", "16000", "true". INVALID_ARGUMENT names limit and value. */
HEARTH_MUST_CHECK
enum hearth_status hearth_limit_parse(const struct hearth_limit *limit, struct hearth_str text,
                                      int64_t *ret, struct hearth_err *err);
/* Append what _parse reads back. */
void hearth_limit_format(const struct hearth_limit *limit, int64_t value, struct hearth_buf *out);

#endif
