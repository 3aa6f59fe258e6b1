/*
 * scrape.h -- profiles that servers fetch from targets: claims, and the push of what was fetched.
 *
 * Ownership: everything is borrowed for the duration of a call; answers live in the arena.
 * Threads:   safe.
 */
#ifndef HEARTH_ENGINE_SCRAPE_H
#define HEARTH_ENGINE_SCRAPE_H

#include "hearth/engine/call.h"
#include "hearth/engine/ingest.h"
#include "hearth/format/profile_totals.h"
#include "hearth/model/scrape_target.h"

/*
 * Claim n targets of any tenants for `holder`, this run of the server, for hold_ns, and store the
 * outcome of their latest scrapes. ret_claimed[n]. One server at a time holds a target. The call's
 * tenant is ignored. UNAVAILABLE.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_scrape_claim(const struct hearth_call *call, struct hearth_hash128 holder,
                                       int64_t hold_ns, const struct hearth_scrape_target *targets,
                                       size_t n, bool *ret_claimed, struct hearth_err *err);
/* Give up all claims of `holder`. */
HEARTH_MUST_CHECK
enum hearth_status hearth_scrape_release(const struct hearth_call *call,
                                         struct hearth_hash128 holder, struct hearth_err *err);

/* The tenant's targets, sorted by job, address and path. */
HEARTH_MUST_CHECK
enum hearth_status hearth_scrape_targets(const struct hearth_call *call,
                                         struct hearth_scrape_target **ret, size_t *ret_n,
                                         struct hearth_err *err);

/* A fetched profile. */
struct hearth_scraped {
    struct hearth_str tenant;
    struct hearth_str bytes; /* plain; any format of profile_file.h */
    size_t n_bytes;          /* as sent */
    struct hearth_label *labels;
    size_t n_labels;
    int64_t at_ns;     /* when it was requested: the time of the profile */
    int64_t before_ns; /* when the profile whose totals are given was requested; 0: no such one */
};

/*
 * Push a fetched profile and wait until it is committed. Sample types that count since the start of
 * the process become differences to *totals, which is replaced by the new totals; without earlier
 * totals these types are dropped. After a restart of the process they are kept as they are.
 *
 * Returns the status of the push, or INVALID_ARGUMENT for bytes that are not a profile; *totals is
 * then unchanged.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_scrape_push(const struct hearth_call *call, struct hearth_ingest *ingest,
                                      const struct hearth_scraped *scraped,
                                      struct hearth_profile_totals **totals,
                                      struct hearth_err *err);

#endif
