/*
 * tenant_use.h -- what each tenant uses of this server now, in the last minute and since the start.
 *
 * A tenant has an entry from its first request on. At most HEARTH_MAX_TENANT_USES entries are kept:
 * the one that was used least recently makes room. If all are held, further tenants share one
 * entry, and so the counts and the memory of one tenant.
 *
 * Ownership: an entry that was taken is held until it is given back.
 * Threads:   safe.
 */
#ifndef HEARTH_ENGINE_TENANT_USE_H
#define HEARTH_ENGINE_TENANT_USE_H

#include "hearth/base/budget.h"
#include "hearth/base/str.h"
#include "hearth/engine/call.h"

#define HEARTH_MAX_TENANT_USES 1024u

enum hearth_use {
#define U(id, ...) HEARTH_USE_##id,
#define R(id, ...) HEARTH_USE_##id,
#include "hearth/engine/tenant_use.def"
    HEARTH_N_USES,
};

struct hearth_use_kind {
    const char *name; /* in metrics; of a refusal: the option */
    bool is_refusal;
};

extern const struct hearth_use_kind hearth_use_kinds[HEARTH_N_USES];

struct hearth_tenant_uses;
struct hearth_tenant_use;

struct hearth_tenant_uses_options {
    struct hearth_budget *query_memory; /* the whole; borrowed; NULL: no limit */
    size_t tenant_query_memory_bytes;   /* of a tenant without its own; 0: the whole */
    size_t n_labels;                    /* tenants with a label in metrics; 0: no such metrics */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_tenant_uses_new(const struct hearth_tenant_uses_options *options,
                                          struct hearth_tenant_uses **ret_uses,
                                          struct hearth_err *err);
/* No entry is held. NULL-safe. */
void hearth_tenant_uses_free(struct hearth_tenant_uses *uses);

/*
 * Take the entry of a tenant; NULL only where uses is NULL. hearth_tenant_use_give and
 * hearth_tenant_use_add ignore a use of NULL.
 */
struct hearth_tenant_use *hearth_tenant_use_take(struct hearth_tenant_uses *uses,
                                                 struct hearth_str tenant);
void hearth_tenant_use_give(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use);

/* The memory of all queries of the tenant. limit_bytes 0: the server's value. */
struct hearth_budget *hearth_tenant_use_memory(const struct hearth_tenant_uses *uses,
                                               struct hearth_tenant_use *use, size_t limit_bytes);

void hearth_tenant_use_add(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use,
                           enum hearth_use what, int64_t n);
/* The same for a tenant whose entry is not held. uses may be NULL: counts nothing. */
void hearth_tenant_use_count(struct hearth_tenant_uses *uses, struct hearth_str tenant,
                             enum hearth_use what, int64_t n);

struct hearth_use_counts {
    int64_t total;  /* since the entry was made */
    int64_t minute; /* in the last 55 to 60 s */
};

struct hearth_tenant_usage {
    struct hearth_use_counts counts[HEARTH_N_USES];
    int64_t since_ms;          /* when the entry was made, epoch; 0: the tenant has none */
    size_t query_memory_bytes; /* held now */
    size_t query_memory_limit; /* 0: no limit */
};

/* A tenant without an entry has used nothing. */
void hearth_tenant_usage_read(struct hearth_tenant_uses *uses, struct hearth_str tenant,
                              struct hearth_tenant_usage *ret);

/* What the tenant has in the database, by all servers. */
struct hearth_tenant_stock {
    int64_t n_services, n_series;
    int64_t n_tasks; /* profiling tasks that have not ended */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_tenant_stock_read(const struct hearth_call *call,
                                            struct hearth_tenant_stock *ret,
                                            struct hearth_err *err);

#endif
