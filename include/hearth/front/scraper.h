/*
 * scraper.h -- fetches profiles over HTTP from targets, again and again, and pushes them.
 *
 * A job has groups of addresses, fixed or found by DNS, and paths; each address and path is a
 * target. One of the servers that have a target in their configuration fetches it: the one that
 * holds its claim (engine/scrape.h). Transfers run on one thread; what they fetched is decoded and
 * pushed on a few others.
 *
 * Series have the labels of their group, `job`, `instance` (the address), and service_name (the
 * job) unless the group has it. A failed scrape is counted in hearth_scrapes_total, kept as the
 * state of the target, and noted as an ingest error.
 *
 * Limits:  max_concurrent transfers at once, the others wait; max_targets, more are reported and
 *          ignored; max_body_bytes of a body, also inflated.
 * Threads: start and stop from one thread.
 */
#ifndef HEARTH_FRONT_SCRAPER_H
#define HEARTH_FRONT_SCRAPER_H

#include "hearth/base/budget.h"
#include "hearth/base/secret.h"
#include "hearth/engine/ingest.h"
#include "hearth/engine/ingest_errors.h"
#include "hearth/engine/query.h"

#define HEARTH_SCRAPE_MAX_ADDRESS 279 /* bytes: a host name, a colon, a port */
#define HEARTH_SCRAPE_MAX_PATH    700 /* bytes, with the prefix of the job */

struct hearth_scrape_path {
    const char *path; /* begins with '/'; may have a query; at most HEARTH_SCRAPE_MAX_PATH */
    /* The target measures while the request runs: "seconds" is added to the query, a second less
     * than the interval. */
    bool is_measured;
};

struct hearth_scrape_group {
    /* HOST:PORT, or names for DNS; [n_addresses]; at most HEARTH_SCRAPE_MAX_ADDRESS each. */
    const char *const *addresses;
    size_t n_addresses;
    bool is_dns; /* resolve the names every 30 s, to one target for each address */
    uint16_t port;
    const struct hearth_label *labels;
    size_t n_labels;
};

struct hearth_scrape_job {
    const char *name, *tenant;
    const char *scheme;           /* "http" or "https" */
    struct hearth_secret *bearer; /* token, sent in the header Authorization; NULL: none */
    int64_t interval_ns, timeout_ns;
    const struct hearth_scrape_path *paths;
    size_t n_paths;
    const struct hearth_scrape_group *groups;
    size_t n_groups;
};

struct hearth_scrape_options {
    const struct hearth_scrape_job *jobs; /* kept, with all that they point to */
    size_t n_jobs;
    int64_t max_targets, max_concurrent, max_body_bytes;
    struct hearth_budget *budget;               /* of bodies; kept; NULL: no limit */
    struct hearth_ingest_errors *ingest_errors; /* kept; NULL: failures are not noted */
};

struct hearth_scraper;

/*
 * Start the threads. The database and the targets need not be reachable. INVALID_ARGUMENT for a
 * tenant whose name breaks the rules of X-Scope-OrgID.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_scraper_start(const struct hearth_scrape_options *options, /* copied */
                                        struct hearth_query_engine *engine,          /* kept */
                                        struct hearth_ingest *ingest,                /* kept */
                                        struct hearth_scraper **ret, struct hearth_err *err);
/* Cut off transfers, withdraw pushes, give up the claims. NULL-safe. */
void hearth_scraper_stop(struct hearth_scraper *scraper);

#endif
