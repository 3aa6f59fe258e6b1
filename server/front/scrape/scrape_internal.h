/*
 * scrape_internal.h -- targets and the state of the scraper (private to front/scrape).
 *
 * The thread of the scraper owns all of this but for what the lock guards. A target that runs
 * belongs to its transfer, then to the job that pushes it, until the job has queued it as finished.
 */
#ifndef HEARTH_FRONT_SCRAPE_INTERNAL_H
#define HEARTH_FRONT_SCRAPE_INTERNAL_H

#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"
#include "hearth/base/clock.h"
#include "hearth/base/sync.h"
#include "hearth/base/workers.h"
#include "hearth/engine/scrape.h"
#include "hearth/front/scraper.h"

#include <curl/curl.h>

#define HEARTH_SCRAPE_ADDRESS_BYTES (HEARTH_SCRAPE_MAX_ADDRESS + 1)
#define HEARTH_SCRAPE_FAILURE_BYTES 400

/* An address and a path. */
struct scrape {
    struct scrape *next_finished;
    struct hearth_scraper *scraper;
    const struct hearth_scrape_job *job;
    const struct hearth_scrape_group *group;
    const struct hearth_scrape_path *path;
    struct hearth_hash128 key;
    char address[HEARTH_SCRAPE_ADDRESS_BYTES];
    bool is_gone;    /* no name has this address any more */
    bool is_running; /* from its transfer until it is finished */
    bool has_news;   /* the outcome is not in the database yet */
    int64_t due_mono_ns;
    /* The difference to the next profile. */
    struct hearth_profile_totals *totals;
    int64_t before_ns;
    /* The transfer, and the push of its body. */
    CURL *curl;
    struct hearth_buf body;
    int64_t at_ns, started_mono_ns;
    struct hearth_job push_job;
    /* The latest outcome. */
    int64_t scraped_ms, took_ms, n_bytes;
    char failure[HEARTH_SCRAPE_FAILURE_BYTES]; /* empty: it succeeded */
};

/* A name of a group, and the addresses that it has now. */
struct scrape_name {
    struct hearth_scraper *scraper;
    const struct hearth_scrape_job *job;
    const struct hearth_scrape_group *group;
    const char *name;
    struct hearth_job resolve_job;
    int64_t due_mono_ns;
    bool is_running;
    /* Guarded by the lock. */
    bool is_fresh; /* the addresses have not been taken over */
    char (*addresses)[HEARTH_SCRAPE_ADDRESS_BYTES];
    size_t n_addresses;
};

struct hearth_scraper {
    struct hearth_scrape_options options;
    struct hearth_query_engine *engine;
    struct hearth_ingest *ingest;
    struct hearth_hash128 holder;
    struct scrape **scrapes;
    size_t n_scrapes, cap_scrapes, n_running;
    size_t turn_idx; /* of the target whose turn it is when too few may run; modulo n_scrapes */
    struct scrape_name *names;
    size_t n_names;
    bool is_over_limit; /* max_targets was reported */
    CURLM *multi;
    struct hearth_workers *workers;   /* push what was fetched */
    struct hearth_workers *resolvers; /* look names up, and wait for name servers */
    struct hearth_cancel cancel;      /* of pushes and claims */
    pthread_t thread;
    struct hearth_mutex lock; /* guards the next two, and addresses of names */
    struct scrape *finished;
    bool stopping;
};

/* ---- scrape_targets.c ---- */

/* Makes the targets with fixed addresses, and the names. */
HEARTH_MUST_CHECK enum hearth_status hearth_scrape_targets_init(struct hearth_scraper *scraper,
                                                                struct hearth_err *err);
/* Starts to resolve names that are due, and takes over the addresses of those that are resolved. */
void hearth_scrape_targets_refresh(struct hearth_scraper *scraper, int64_t now_mono_ns);
/* Frees the targets that are gone and do not run. */
void hearth_scrape_targets_sweep(struct hearth_scraper *scraper);
void hearth_scrape_targets_free(struct hearth_scraper *scraper);

/* ---- scrape_transfer.c ---- */

/* Starts the transfer of a target; if that fails, its failure says why. */
void hearth_scrape_begin(struct scrape *scrape);
/* Handles the end of transfers: their bodies are pushed by the workers. */
void hearth_scrape_collect(struct hearth_scraper *scraper);
/* Ends the transfer of a target that runs, without an outcome. */
void hearth_scrape_cut(struct scrape *scrape);

#endif
