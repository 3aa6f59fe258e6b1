/*
 * scraper.c -- the thread that decides which targets are fetched when (contract: front/scraper.h).
 *
 * A target is due once in each interval, at a moment that depends on its key, so that targets do
 * not start together. A due target is claimed before each scrape; the claim also stores the outcome
 * of the previous scrape. While another server holds the claim, this one tries again when it may
 * expire.
 */
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "rpc/front_internal.h"
#include "rpc/tenant.h"
#include "scrape/scrape_internal.h"

#include <assert.h>
#include <sys/random.h>

#define TURN_MS       250 /* between two looks for due targets, at most */
#define MAX_BATCH     256 /* targets of one claim */
#define CLAIM_TURNS   3   /* intervals that a claim holds, at least */
#define LEAST_HOLD_NS (30 * HEARTH_NS_PER_SEC)
#define RETRY_NS      (2 * HEARTH_NS_PER_SEC)
#define MAX_QUEUED    4096
#define N_WORKERS     4
#define N_RESOLVERS   2

/* Targets that are claimed with one statement; they share the length of the claim. */
struct claim_batch {
    struct scrape *scrapes[MAX_BATCH];
    struct hearth_scrape_target targets[MAX_BATCH];
    bool claimed[MAX_BATCH];
    size_t n;
    int64_t hold_ns;
};

/* ---- claims ---- */

/* Longer than a scrape can take: an interval and the timeout, if the target measures. */
static int64_t get_hold_ns(const struct scrape *scrape)
{
    const struct hearth_scrape_job *job = scrape->job;
    int64_t hold_ns = CLAIM_TURNS * job->interval_ns;
    int64_t longest_ns = 2 * job->interval_ns + job->timeout_ns;

    hold_ns = hold_ns < longest_ns ? longest_ns : hold_ns;

    return hold_ns < LEAST_HOLD_NS ? LEAST_HOLD_NS : hold_ns;
}

static void add_claim(struct claim_batch *batch, struct scrape *scrape)
{
    batch->scrapes[batch->n] = scrape;

    batch->targets[batch->n] = (struct hearth_scrape_target){
        .key = scrape->key,
        .tenant = hearth_str_c(scrape->job->tenant),
        .job = hearth_str_c(scrape->job->name),
        .address = hearth_str_c(scrape->address),
        .path = hearth_str_c(scrape->path->path),
        .scraped_ms = scrape->scraped_ms,
        .took_ms = scrape->took_ms,
        .n_bytes = scrape->n_bytes,
        .failure = hearth_str_c(scrape->failure),
    };

    batch->n++;
}

/*
 * Collects targets that are due, or whose outcome is not stored; the first one sets the length of
 * the claims. Begins after the last target that was due, so that all have their turn when too few
 * may run at once.
 */
static void collect_claims(struct hearth_scraper *scraper, int64_t now_ns,
                           struct claim_batch *batch)
{
    size_t room = scraper->n_running < (size_t)scraper->options.max_concurrent
                      ? (size_t)scraper->options.max_concurrent - scraper->n_running
                      : 0;

    batch->n = 0;
    size_t first_idx = scraper->turn_idx;
    for (size_t i = 0; i < scraper->n_scrapes && batch->n < MAX_BATCH; i++) {
        size_t at_idx = (first_idx + i) % scraper->n_scrapes;
        struct scrape *scrape = scraper->scrapes[at_idx];
        bool is_due = now_ns >= scrape->due_mono_ns && room > 0;
        if (scrape->is_running || scrape->is_gone || !(is_due || scrape->has_news)) {
            continue;
        }

        if (batch->n == 0) {
            batch->hold_ns = get_hold_ns(scrape);
        }
        if (get_hold_ns(scrape) != batch->hold_ns) {
            continue;
        }

        add_claim(batch, scrape);
        if (is_due) {
            scraper->turn_idx = at_idx + 1;
            room--;
        }
    }
}

/* Claims a batch. While the database is away nothing is fetched: it could not be stored. */
static bool claim_batch(struct hearth_scraper *scraper, struct claim_batch *batch)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    const struct hearth_call call = {
        .engine = scraper->engine, .arena = &arena, .cancel = &scraper->cancel};
    enum hearth_status status = hearth_scrape_claim(&call, scraper->holder, batch->hold_ns,
                                                    batch->targets, batch->n, batch->claimed, &err);
    hearth_arena_release(&arena);

    /* The store itself says when the database is away. */
    if (status != HEARTH_OK && status != HEARTH_UNAVAILABLE && status != HEARTH_CANCELLED) {
        HEARTH_LOG(HEARTH_LOG_WARN, "scrape", "targets could not be claimed; nothing is fetched",
                   "reason", err.msg, NULL);
    }

    return status == HEARTH_OK;
}

/* The next moment of the target's interval; moments that have passed are skipped. */
static int64_t get_next_due_ns(const struct scrape *scrape, int64_t now_ns)
{
    int64_t interval_ns = scrape->job->interval_ns;
    int64_t late_ns = now_ns - scrape->due_mono_ns;

    return scrape->due_mono_ns + (late_ns < 0 ? 0 : late_ns / interval_ns + 1) * interval_ns;
}

/* Another server has the target: later profiles here are not compared with the last one. */
static void lose_claim(struct scrape *scrape, int64_t now_ns, int64_t hold_ns)
{
    scrape->has_news = false;
    scrape->due_mono_ns = now_ns + hold_ns / CLAIM_TURNS;
    hearth_profile_totals_free(scrape->totals);
    scrape->totals = NULL;
}

static void begin_scrapes(struct hearth_scraper *scraper, const struct claim_batch *batch,
                          int64_t now_ns)
{
    for (size_t i = 0; i < batch->n; i++) {
        struct scrape *scrape = batch->scrapes[i];
        if (!batch->claimed[i]) {
            lose_claim(scrape, now_ns, batch->hold_ns);
            continue;
        }

        scrape->has_news = false;
        if (now_ns >= scrape->due_mono_ns &&
            scraper->n_running < (size_t)scraper->options.max_concurrent) {
            scrape->due_mono_ns = get_next_due_ns(scrape, now_ns);
            hearth_scrape_begin(scrape);
        }
    }
}

/* Claims and begins what is due. Returns false if the database did not answer. */
static bool begin_due_scrapes(struct hearth_scraper *scraper, struct claim_batch *batch)
{
    int64_t now_ns = hearth_clock_mono_ns();

    collect_claims(scraper, now_ns, batch);
    if (batch->n == 0) {
        return true;
    }

    if (!claim_batch(scraper, batch)) {
        return false;
    }

    begin_scrapes(scraper, batch, now_ns);

    return true;
}

/* ---- the thread ---- */

static void take_finished(struct hearth_scraper *scraper)
{
    hearth_mutex_lock(&scraper->lock);
    struct scrape *scrape = scraper->finished;
    scraper->finished = NULL;
    hearth_mutex_unlock(&scraper->lock);

    while (scrape != NULL) {
        struct scrape *next = scrape->next_finished;
        assert(scrape->is_running && scraper->n_running > 0);
        scrape->is_running = false;
        scrape->has_news = true;
        scraper->n_running--;
        scrape = next;
    }
}

static bool is_stopping(struct hearth_scraper *scraper)
{
    hearth_mutex_lock(&scraper->lock);
    bool stopping = scraper->stopping;
    hearth_mutex_unlock(&scraper->lock);

    return stopping;
}

static void *run_scraper(void *arg)
{
    struct hearth_scraper *scraper = arg;
    struct claim_batch *batch = hearth_mem_zalloc(sizeof *batch);
    int64_t claim_at_ns = 0;

    while (batch != NULL && !is_stopping(scraper)) {
        int64_t now_ns = hearth_clock_mono_ns();
        hearth_scrape_targets_refresh(scraper, now_ns);
        take_finished(scraper);
        hearth_scrape_targets_sweep(scraper);
        hearth_metric_set(HEARTH_M_SCRAPE_TARGETS, (int64_t)scraper->n_scrapes);
        if (now_ns >= claim_at_ns && !begin_due_scrapes(scraper, batch)) {
            claim_at_ns = now_ns + RETRY_NS;
        }

        int n_active;
        (void)curl_multi_perform(scraper->multi, &n_active);
        hearth_scrape_collect(scraper);
        (void)curl_multi_poll(scraper->multi, NULL, 0, TURN_MS, NULL);
    }

    hearth_mem_free(batch);

    return NULL;
}

/* ---- start and stop ---- */

static void free_scraper(struct hearth_scraper *scraper)
{
    /* Transfers first: pushes that are queued still run, and end at once. */
    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        if (scraper->scrapes[i]->curl != NULL) {
            hearth_scrape_cut(scraper->scrapes[i]);
        }
    }
    hearth_workers_stop(scraper->workers);
    hearth_workers_stop(scraper->resolvers);
    take_finished(scraper);

    hearth_scrape_targets_free(scraper);
    (void)curl_multi_cleanup(scraper->multi);
    hearth_mutex_destroy(&scraper->lock);
    hearth_mem_free(scraper);
}

static enum hearth_status make_scraper(struct hearth_scraper *scraper, struct hearth_err *err)
{
    hearth_cancel_init(&scraper->cancel, INT64_MAX);
    hearth_mutex_init(&scraper->lock, HEARTH_RANK_SCRAPER, "scraper.lock");
    if (getrandom(&scraper->holder, sizeof scraper->holder, 0) != (ssize_t)sizeof scraper->holder) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes");
    }

    scraper->multi = curl_multi_init();
    if (scraper->multi == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the transfers of scrapes");
    }

    HEARTH_TRY(hearth_workers_start("scrape", N_WORKERS, MAX_QUEUED, &scraper->workers, err));
    HEARTH_TRY(hearth_workers_start("resolve", N_RESOLVERS, MAX_QUEUED, &scraper->resolvers, err));

    return hearth_scrape_targets_init(scraper, err);
}

/* Profiles of a tenant that no request can name could not be queried. */
static enum hearth_status check_scrape_tenants(const struct hearth_scrape_options *options,
                                               struct hearth_err *err)
{
    for (size_t i = 0; i < options->n_jobs; i++) {
        enum hearth_status status =
            hearth_tenant_name_check(hearth_str_c(options->jobs[i].tenant), err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "job \"%.64s\" of --scrape-config", options->jobs[i].name);
            return status;
        }
    }

    return HEARTH_OK;
}

/* Starts the thread with signals blocked: the main thread handles them. */
static enum hearth_status start_scraper_thread(struct hearth_scraper *scraper,
                                               struct hearth_err *err)
{
    sigset_t all, old;

    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&scraper->thread, NULL, run_scraper, scraper);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the thread of the scraper");
    }

    (void)pthread_setname_np(scraper->thread, "scraper");

    return HEARTH_OK;
}

enum hearth_status hearth_scraper_start(const struct hearth_scrape_options *options,
                                        struct hearth_query_engine *engine,
                                        struct hearth_ingest *ingest, struct hearth_scraper **ret,
                                        struct hearth_err *err)
{
    assert(options != NULL && engine != NULL && ingest != NULL && ret != NULL);

    HEARTH_TRY(check_scrape_tenants(options, err));
    struct hearth_scraper *scraper = hearth_mem_zalloc(sizeof *scraper);
    if (scraper == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the scraper");
    }

    scraper->options = *options;
    scraper->engine = engine;
    scraper->ingest = ingest;
    enum hearth_status status = make_scraper(scraper, err);
    if (status == HEARTH_OK) {
        status = start_scraper_thread(scraper, err);
    }
    if (status != HEARTH_OK) {
        free_scraper(scraper);
        return status;
    }

    *ret = scraper;

    return HEARTH_OK;
}

/* Gives up the claims, so that another server takes over at once. Tries it for one second. */
static void release_claims(struct hearth_scraper *scraper)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_cancel cancel;

    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + HEARTH_NS_PER_SEC);
    const struct hearth_call call = {.engine = scraper->engine, .cancel = &cancel};
    if (hearth_scrape_release(&call, scraper->holder, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_INFO, "scrape", "claims of targets stay until they expire", "reason",
                   err.msg, NULL);
    }
}

void hearth_scraper_stop(struct hearth_scraper *scraper)
{
    if (scraper == NULL) {
        return;
    }

    atomic_store(&scraper->cancel.cancelled, true);
    hearth_mutex_lock(&scraper->lock);
    scraper->stopping = true;
    hearth_mutex_unlock(&scraper->lock);
    (void)curl_multi_wakeup(scraper->multi);
    (void)pthread_join(scraper->thread, NULL);

    release_claims(scraper);
    free_scraper(scraper);
}
