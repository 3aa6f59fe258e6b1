/*
 * upload_parsers.c -- the threads that parse uploads (contract: hearth/engine/uploads.h).
 *
 * Each parser looks for a queued upload within a second after this server has queued one, every
 * five seconds for those of other servers, and at once after it has finished one. One more thread
 * extends the leases of the claims, because a parser cannot while it decodes. If a claim is lost,
 * that thread cancels the parser's push.
 *
 * A parser whose outcome cannot be written, because the database is away, leaves it: the lease
 * ends, and the next claim repeats the upload under the same push ids.
 */
#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"
#include "hearth/engine/ingest_errors.h"
#include "hearth/store/store_uploads.h"

#include "common/call_internal.h"
#include "uploads/upload_parse.h"

#include <assert.h>
#include <stdio.h>

#define TURN_NS      HEARTH_NS_PER_SEC
#define LOOK_EACH_NS (5 * HEARTH_NS_PER_SEC)
#define MIN_LEASE_NS HEARTH_NS_PER_SEC
/* How long an upload waits whose failure may pass. */
#define AGAIN_AFTER_MS INT64_C(10000)
#define MAX_PARSERS    64
#define MAX_NAME_BYTES 80u /* of a file, in an error */

struct hearth_upload_parsers;

struct upload_parser {
    struct hearth_upload_parsers *all;
    pthread_t thread;
    struct hearth_budget budget;
    struct hearth_cancel cancel; /* set by the stop, and when the claim is lost */
    /* Guarded by the lock. */
    int64_t upload_no; /* of the claim; 0: there is none */
    int32_t claim;
};

struct hearth_upload_parsers {
    struct hearth_query_engine *engine;
    struct hearth_ingest *ingest;
    struct hearth_ingest_errors *errors; /* notes failed uploads; NULL: they are not noted */
    int64_t lease_ns;
    struct hearth_mutex lock; /* guards `stopping`, and the claims of the parsers */
    pthread_cond_t wake;
    bool stopping;
    pthread_t keeper;
    bool has_keeper;
    size_t n_parsers; /* whose threads run */
    struct upload_parser parsers[];
};

/* Waits, at most for pause_ns, for the stop. True: the server stops. */
static bool wait_for_stop(struct hearth_upload_parsers *all, int64_t pause_ns)
{
    int64_t until_ns = hearth_clock_mono_ns() + pause_ns;

    hearth_mutex_lock(&all->lock);
    while (!all->stopping && hearth_clock_mono_ns() < until_ns) {
        (void)hearth_mutex_wait_until(&all->lock, &all->wake, until_ns);
    }
    bool stopping = all->stopping;
    hearth_mutex_unlock(&all->lock);

    return stopping;
}

/* ---- leases ---- */

static void set_parser_claim(struct upload_parser *parser,
                             const struct hearth_profile_upload *upload)
{
    hearth_mutex_lock(&parser->all->lock);
    parser->upload_no = upload == NULL ? 0 : upload->upload_no;
    parser->claim = upload == NULL ? 0 : upload->claim;
    hearth_mutex_unlock(&parser->all->lock);
}

static void extend_parser_lease(struct hearth_upload_parsers *all, struct upload_parser *parser)
{
    hearth_mutex_lock(&all->lock);
    const struct hearth_profile_upload claimed = {.upload_no = parser->upload_no,
                                                  .claim = parser->claim};
    hearth_mutex_unlock(&all->lock);
    if (claimed.upload_no == 0) {
        return;
    }

    /* Without the database the lease may end; then the next write finds the claim lost. */
    const struct hearth_scope scope = {.store = all->engine->store};
    if (hearth_store_upload_extend(&scope, &claimed, all->lease_ns / HEARTH_NS_PER_MS, NULL) !=
        HEARTH_ABORTED) {
        return;
    }

    hearth_mutex_lock(&all->lock);
    if (parser->upload_no == claimed.upload_no && parser->claim == claimed.claim) {
        atomic_store(&parser->cancel.cancelled, true);
    }
    hearth_mutex_unlock(&all->lock);
}

static void *run_lease_keeper(void *arg)
{
    struct hearth_upload_parsers *all = arg;

    while (!wait_for_stop(all, all->lease_ns / 3)) {
        for (size_t i = 0; i < all->n_parsers; i++) {
            extend_parser_lease(all, &all->parsers[i]);
        }
    }

    return NULL;
}

/* ---- one upload ---- */

static void log_outcome(const struct hearth_profile_upload *upload, const char *outcome,
                        const char *reason)
{
    char file[128], tenant[128];

    (void)snprintf(file, sizeof file, HEARTH_STR_FMT, HEARTH_STR_ARG(upload->file_name));
    (void)snprintf(tenant, sizeof tenant, HEARTH_STR_FMT, HEARTH_STR_ARG(upload->tenant));
    hearth_metric_add_label(HEARTH_M_UPLOADS, hearth_str_c(outcome), 1);
    HEARTH_LOG(HEARTH_LOG_INFO, "uploads", "upload was parsed", "outcome", outcome, "tenant",
               tenant, "upload", upload->upload_id.p, "file", file, "stored",
               hearth_log_i64(upload->n_stored), "reason", reason, NULL);
}

/* Lists a failed upload among the refused ones, which its sender may never ask for. */
static void note_failed_upload(const struct hearth_upload_parsers *all,
                               const struct hearth_profile_upload *upload, int64_t body_hash)
{
    size_t n_name = upload->file_name.n < MAX_NAME_BYTES ? upload->file_name.n : MAX_NAME_BYTES;
    char message[1024];

    if (all->errors == NULL) {
        return;
    }

    size_t n = (size_t)snprintf(
        message, sizeof message, "upload %.*s, file \"%.*s\": ", HEARTH_PROFILE_UPLOAD_ID_TEXT,
        upload->upload_id.p, (int)n_name, n_name > 0 ? upload->file_name.p : "");
    (void)snprintf(message + n, sizeof message - n, "%.*s", (int)upload->reason.n,
                   upload->reason.p);
    hearth_ingest_errors_note(
        all->errors, &(const struct hearth_ingest_error){.tenant = upload->tenant,
                                                         .client = HEARTH_STR("upload"),
                                                         .route = HEARTH_STR("upload"),
                                                         .code = HEARTH_STR("upload_failed"),
                                                         .message = hearth_str_c(message),
                                                         .n_subject = n,
                                                         .body_hash = body_hash,
                                                         .n_bytes = upload->n_bytes});
}

/* How hearth_upload_parse ended. */
struct parse_outcome {
    enum hearth_status status;
    struct hearth_err why; /* not used if status is OK and nothing was refused */
    int64_t body_hash;
};

static enum hearth_status write_outcome(const struct hearth_upload_parsers *all,
                                        const struct hearth_scope *scope,
                                        struct hearth_profile_upload *upload,
                                        const struct parse_outcome *outcome, struct hearth_err *err)
{
    const struct hearth_err *why = &outcome->why;
    enum hearth_status status = outcome->status;
    char text[sizeof why->msg + 96];

    if (status == HEARTH_ABORTED) {
        return HEARTH_OK;
    }
    if (hearth_upload_may_pass(status)) {
        const char *reason = status == HEARTH_CANCELLED ? "its server stopped" : why->msg;
        upload->reason = hearth_str_c(reason);
        HEARTH_TRY(hearth_store_upload_again(scope, upload,
                                             status == HEARTH_CANCELLED ? 0 : AGAIN_AFTER_MS, err));
        log_outcome(upload, "again", reason);
        return HEARTH_OK;
    }

    /* Done, or failed. */
    upload->state = HEARTH_PROFILE_UPLOAD_DONE;
    text[0] = '\0';
    if (status != HEARTH_OK) {
        (void)snprintf(text, sizeof text, "%s", why->msg);
    } else if (upload->n_refused > 0) {
        (void)snprintf(text, sizeof text, "%lld of %lld profiles were refused: %s",
                       (long long)upload->n_refused, (long long)upload->n_profiles, why->msg);
    }
    if (text[0] != '\0') {
        upload->state = HEARTH_PROFILE_UPLOAD_FAILED;
    }
    upload->reason = hearth_str_c(text);
    HEARTH_TRY(hearth_store_upload_end(scope, upload, err));
    log_outcome(upload, hearth_upload_state_name(upload->state), text);
    if (upload->state == HEARTH_PROFILE_UPLOAD_FAILED) {
        note_failed_upload(all, upload, outcome->body_hash);
    }

    return HEARTH_OK;
}

static void parse_upload(struct upload_parser *parser, struct hearth_profile_upload *upload)
{
    struct hearth_upload_parsers *all = parser->all;
    struct parse_outcome outcome = {.why = HEARTH_ERR_INIT};
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_upload_work work = {
        .engine = all->engine,
        .ingest = all->ingest,
        .budget = &parser->budget,
        .cancel = &parser->cancel,
        .upload = upload,
        .body_hash = &outcome.body_hash,
    };

    set_parser_claim(parser, upload);
    outcome.status = hearth_upload_parse(&work, &outcome.why);
    set_parser_claim(parser, NULL);

    /* Also while the server stops: another one can begin at once. */
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const struct hearth_scope scope = {
        .store = all->engine->store, .tenant = upload->tenant, .arena = &arena};
    enum hearth_status status = write_outcome(all, &scope, upload, &outcome, &err);
    if (status != HEARTH_OK && status != HEARTH_ABORTED) {
        HEARTH_LOG(HEARTH_LOG_WARN, "uploads",
                   "the outcome of an upload could not be written; it is parsed again", "upload",
                   upload->upload_id.p, "reason", err.msg, NULL);
    }
}

/* Claims and parses an upload; false: there is none, or the database cannot be reached. */
static bool parse_next(struct upload_parser *parser)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const struct hearth_scope scope = {
        .store = parser->all->engine->store, .cancel = &parser->cancel, .arena = &arena};
    struct hearth_profile_upload upload;
    bool found = false;

    /* The loss of an earlier claim is past. */
    hearth_mutex_lock(&parser->all->lock);
    atomic_store(&parser->cancel.cancelled, parser->all->stopping);
    hearth_mutex_unlock(&parser->all->lock);

    /* An unreachable database is reported by requests, not here. */
    if (hearth_store_upload_claim(&scope, parser->all->lease_ns / HEARTH_NS_PER_MS, &upload, &found,
                                  NULL) != HEARTH_OK) {
        return false;
    }
    if (found) {
        parse_upload(parser, &upload);
    }

    return found;
}

static void *run_parser(void *arg)
{
    struct upload_parser *parser = arg;
    _Atomic uint32_t *n_queued = &parser->all->engine->n_uploads_queued;
    uint32_t n_seen = 0;
    int64_t look_mono_ns = 0;
    bool found = false;

    while (!wait_for_stop(parser->all, found ? 0 : TURN_NS)) {
        uint32_t n = atomic_load(n_queued);
        if (found || n != n_seen || hearth_clock_mono_ns() >= look_mono_ns) {
            found = parse_next(parser);
            n_seen = n;
            look_mono_ns = hearth_clock_mono_ns() + LOOK_EACH_NS - TURN_NS / 2;
        }
    }

    return NULL;
}

/* ---- life cycle ---- */

/* Starts a thread with signals blocked: the main thread handles them. */
static enum hearth_status start_thread(pthread_t *ret, void *(*run)(void *), void *arg,
                                       const char *name, struct hearth_err *err)
{
    sigset_t all, old;

    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(ret, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the thread %s", name);
    }
    (void)pthread_setname_np(*ret, name);

    return HEARTH_OK;
}

static enum hearth_status start_threads(struct hearth_upload_parsers *all,
                                        const struct hearth_upload_options *options,
                                        struct hearth_err *err)
{
    for (size_t i = 0; i < (size_t)options->n_parsers; i++) {
        struct upload_parser *parser = &all->parsers[i];
        char name[24];

        parser->all = all;
        hearth_cancel_init(&parser->cancel, INT64_MAX);
        hearth_budget_init(&parser->budget, "upload-memory-bytes", (size_t)options->memory_bytes);
        (void)snprintf(name, sizeof name, "upload-%u", (unsigned)i % 1000);
        HEARTH_TRY(start_thread(&parser->thread, run_parser, parser, name, err));
        all->n_parsers = i + 1;
    }

    HEARTH_TRY(start_thread(&all->keeper, run_lease_keeper, all, "upload-leases", err));
    all->has_keeper = true;

    return HEARTH_OK;
}

enum hearth_status hearth_upload_parsers_start(const struct hearth_upload_options *options,
                                               struct hearth_query_engine *engine,
                                               struct hearth_ingest *ingest,
                                               struct hearth_ingest_errors *errors,
                                               struct hearth_upload_parsers **ret,
                                               struct hearth_err *err)
{
    assert(engine != NULL && ingest != NULL && ret != NULL);

    *ret = NULL;
    if (options->n_parsers < 0 || options->n_parsers > MAX_PARSERS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "upload-parsers must be 0 to %d",
                           MAX_PARSERS);
    }
    if (options->lease_ns < MIN_LEASE_NS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "upload-lease must be at least 1s");
    }
    if (options->n_parsers == 0) {
        return HEARTH_OK;
    }

    size_t n = (size_t)options->n_parsers;
    struct hearth_upload_parsers *all = hearth_mem_zalloc(sizeof *all + n * sizeof all->parsers[0]);
    if (all == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for parsers of uploads");
    }

    all->engine = engine;
    all->ingest = ingest;
    all->errors = errors;
    all->lease_ns = options->lease_ns;
    hearth_mutex_init(&all->lock, HEARTH_RANK_UPLOADS, "uploads.lock");
    hearth_cond_init(&all->wake);
    enum hearth_status status = start_threads(all, options, err);
    if (status != HEARTH_OK) {
        hearth_upload_parsers_stop(all);
        return status;
    }

    *ret = all;

    return HEARTH_OK;
}

void hearth_upload_parsers_stop(struct hearth_upload_parsers *all)
{
    if (all == NULL) {
        return;
    }

    /* Stop the threads, also in the middle of a push. */
    hearth_mutex_lock(&all->lock);
    all->stopping = true;
    for (size_t i = 0; i < all->n_parsers; i++) {
        atomic_store(&all->parsers[i].cancel.cancelled, true);
    }
    (void)pthread_cond_broadcast(&all->wake);
    hearth_mutex_unlock(&all->lock);

    for (size_t i = 0; i < all->n_parsers; i++) {
        (void)pthread_join(all->parsers[i].thread, NULL);
    }
    if (all->has_keeper) {
        (void)pthread_join(all->keeper, NULL);
    }

    (void)pthread_cond_destroy(&all->wake);
    hearth_mutex_destroy(&all->lock);
    hearth_mem_free(all);
}
