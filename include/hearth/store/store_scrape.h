/*
 * store_scrape.h -- which server scrapes which target (model/scrape_target.h).
 *
 * A server claims a target for some time and claims it again before that ends; when it dies, others
 * may claim its targets after that time. Times are those of the database.
 *
 * Threads: safe, also between servers.
 * Errors:  UNAVAILABLE, INTERNAL, NO_MEMORY.
 */
#ifndef HEARTH_STORE_STORE_SCRAPE_H
#define HEARTH_STORE_STORE_SCRAPE_H

#include "hearth/model/scrape_target.h"
#include "hearth/store/scope.h"

/* Claims of one server. */
struct hearth_scrape_claims {
    struct hearth_hash128 holder; /* of this run of the server */
    int64_t hold_ns;              /* from now on */
    const struct hearth_scrape_target *targets;
    size_t n;
};

/*
 * Claim targets of any tenants, or claim them again, and store the outcome of their latest scrapes.
 * ret_claimed[n]: whether the server holds the target now. The scope's tenant is ignored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_scrape_claim(const struct hearth_scope *scope,
                                             const struct hearth_scrape_claims *claims,
                                             bool *ret_claimed, struct hearth_err *err);
/* Give up all claims of a server, so that others can take over immediately. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_scrape_release(const struct hearth_scope *scope,
                                               struct hearth_hash128 holder,
                                               struct hearth_err *err);
/* The targets of the tenant, sorted by job, address and path. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_scrape_targets(const struct hearth_scope *scope,
                                               struct hearth_scrape_target **ret, size_t *ret_n,
                                               struct hearth_err *err);

#endif
