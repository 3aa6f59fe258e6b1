/*
 * lifecycle.c -- starts store, engine, front and embedded database, in this order; runs until a
 * signal; stops in reverse.
 *
 * First, hearthd gives up rights that the rest does not need: give_up_rights.
 *
 * The front listens before the database is available: /ready says what it waits for. Signals are
 * blocked in every thread and handled here, so that no work is interrupted; the exception is
 * SIGPROF, see self_profile.h.
 *
 * If the database may have lost commits, what is in memory is wrong (pg/lineage.h): all parts are
 * stopped and started again in this process. The listening sockets stay, so clients connect again
 * and wait.
 *
 * SIGHUP has two meanings. If the terminal that hearthd was started in has closed, hearthd stops in
 * order, as other programs end. Otherwise an administrator sent it, and the configuration is read
 * again. If SIGHUP is ignored at the start (nohup), it stays ignored.
 */
#include "lifecycle.h"

#include "hearth/app/config.h"
#include "hearth/app/embedded_pg.h"
#include "hearth/app/run_user.h"
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/engine/ingest_errors.h"
#include "hearth/engine/rules.h"
#include "hearth/engine/spool.h"
#include "hearth/engine/task_leftovers.h"
#include "hearth/engine/tenant_use.h"
#include "hearth/engine/uploads.h"
#include "hearth/front/scraper.h"

#include "auth_options.h"
#include "commands.h"
#include "reload.h"
#include "sandbox.h"
#include "scrape_file.h"
#include "self_profile.h"
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Between two looks for changed credentials that no listener asks for. */
#define UNASKED_LOOK_NS (5 * HEARTH_NS_PER_SEC)

enum exit_code {
    EXIT_CLEAN = 0,
    EXIT_FAILED = 1,
    EXIT_OPTIONS = 2,
};

/* The targets to fetch profiles from, which have secrets. */
struct scrape_file {
    struct hearth_arena arena;
    struct hearth_scrape_options options;
    const char *path; /* NULL: not loaded; empty: there is no file */
    struct stat about;
};

struct server {
    struct hearth_config config; /* of the start */
    struct hearth_reload reload;
    bool has_terminal; /* there was a terminal at the start */
    struct hearth_budget query_memory, push_memory;
    struct hearth_tenant_uses *uses;
    struct hearth_service service;      /* the manager that started hearthd, if any */
    struct hearth_listeners *listeners; /* the front has duplicates */
    struct hearth_embedded_pg *pg;      /* NULL with --database-url */
    struct hearth_secret *pg_url;       /* of pg; without a password */
    struct hearth_store *store;
    struct hearth_spool *spool; /* NULL without spool-dir */
    struct hearth_ingest *ingest;
    struct hearth_query_engine *query;
    struct hearth_rules *rules;
    struct hearth_task_leftovers *leftovers;
    struct hearth_upload_parsers *parsers;
    struct hearth_ingest_errors *ingest_errors;
    struct hearth_access *access;
    bool asks_who_calls;
    struct scrape_file scrape, next_scrape; /* in effect; of a reload */
    struct hearth_scraper *scraper;
    struct hearth_admin *admin;
    struct hearth_front *front;
};

static bool is_ready(void *context, char reason[256])
{
    struct server *server = context;
    char spooled[128], away[256];

    hearth_spool_explain(server->spool, spooled);
    if (!hearth_store_ready(server->store, reason)) {
        if (spooled[0] != '\0') { /* first, because errors of connections can be long */
            (void)snprintf(away, sizeof away, "%s", reason);
            (void)snprintf(reason, 256, "%s; %.125s", spooled, away);
        }
        return false;
    }
    if (server->asks_who_calls && !hearth_access_is_loaded(server->access)) {
        (void)snprintf(reason, 256, "waiting for the credentials of callers");
        return false;
    }
    if (reason[0] == '\0') {
        (void)snprintf(reason, 256, "%s", spooled);
    }
    if (reason[0] == '\0') {
        hearth_reload_explain(&server->reload, reason);
    }

    return true;
}

static void release_scrape_file(struct scrape_file *file)
{
    hearth_scrape_file_release(&file->options);
    hearth_arena_release(&file->arena);
    *file = (struct scrape_file){0};
}

/* The targets to fetch profiles from, if there is a file that names some. */
static enum hearth_status load_scrape_file(struct server *server,
                                           const struct hearth_config *config,
                                           struct scrape_file *ret, struct hearth_err *err)
{
    release_scrape_file(ret);
    hearth_arena_init(&ret->arena, 0);
    ret->options = (struct hearth_scrape_options){
        .max_targets = config->max_scrape_targets,
        .max_concurrent = config->scrape_concurrency,
        .max_body_bytes = config->front.max_request_bytes,
        .budget = &server->push_memory,
    };

    ret->path = hearth_arena_printf(&ret->arena, "%s", config->scrape_config);
    if (ret->path == NULL) {
        return HEARTH_FAIL_ARENA(err, &ret->arena);
    }
    if (config->scrape_config[0] == '\0') {
        return HEARTH_OK;
    }

    if (stat(config->scrape_config, &ret->about) != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: %s", config->scrape_config,
                           strerrordesc_np(errno));
    }

    return hearth_scrape_file_load(config->scrape_config, &ret->arena, &ret->options, err);
}

static enum hearth_status start_scraper(struct server *server, const struct hearth_config *config,
                                        struct hearth_err *err)
{
    if (config->scrape_config[0] == '\0') {
        return HEARTH_OK;
    }

    server->scrape.options.ingest_errors = server->ingest_errors;

    return hearth_scraper_start(&server->scrape.options, server->query, server->ingest,
                                &server->scraper, err);
}

/*
 * What needs the rights of the start, then the loss of these rights: the user, the process that
 * starts PostgreSQL, the sandbox. There is only one thread yet.
 */
static enum hearth_status give_up_rights(struct server *server, struct hearth_err *err)
{
    struct hearth_config *config = &server->config;
    struct hearth_identity identity;
    enum hearth_sandbox sandbox = HEARTH_SANDBOX_ON;

    /* Ports, files and directories; a port that is in use leaves no directory. */
    HEARTH_TRY(hearth_auth_check_addresses(config, err));
    HEARTH_TRY(hearth_front_bind(config->front.listen, server->service.sockets,
                                 server->service.n_sockets, &server->listeners, err));
    HEARTH_TRY(hearth_identity_choose(config, &identity, err));
    if (config->database_url == NULL) {
        HEARTH_TRY(hearth_embedded_pg_new(config->data_dir, config->postgres_bin, &identity,
                                          &server->pg, err));
    }
    HEARTH_TRY(load_scrape_file(server, config, &server->scrape, err));

    /* The user. The starter is forked before dumps are forbidden: PostgreSQL would inherit that. */
    HEARTH_TRY(hearth_identity_take(&identity, err));
    if (identity.is_switched) {
        HEARTH_LOG(HEARTH_LOG_INFO, "app", "root is given up", "user", identity.name, NULL);
    }
    if (server->pg != NULL) {
        HEARTH_TRY(hearth_embedded_pg_prepare(server->pg, err));
    }
    if (config->spool_dir[0] != '\0') {
        HEARTH_TRY(
            hearth_spool_open(config->spool_dir, config->max_spool_bytes, &server->spool, err));
    }
    hearth_process_hide(config->dumpable);

    /* The sandbox. */
    struct hearth_err why = HEARTH_ERR_INIT;
    HEARTH_ASSERT(hearth_sandbox_parse(config->sandbox, &sandbox));
    if (hearth_sandbox_enter(sandbox, &why) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "app", "hearthd runs without its sandbox", "error", why.msg,
                   NULL);
    }

    return HEARTH_OK;
}

/* A spooled push that was refused is listed as others are, which are refused at once. */
static void note_refused_push(void *context, const struct hearth_ingest_error *error)
{
    hearth_ingest_errors_note(context, error);
}

/* What the process does once. */
static enum hearth_status start_process(struct server *server, struct hearth_err *err)
{
    struct hearth_config *config = &server->config;

    HEARTH_TRY(hearth_service_open(&server->service, err));
    HEARTH_TRY(hearth_auth_read_options(config, err));
    HEARTH_TRY(hearth_store_check_options(&config->store, err));
    hearth_budget_init(&server->push_memory, "push-memory-bytes",
                       (size_t)config->push_memory_bytes);
    HEARTH_TRY(give_up_rights(server, err));

    /* Before the store connects, which may migrate the database. The user reads the files of TLS
     * again when it reloads. */
    HEARTH_TRY(hearth_front_check(&config->front, err));

    /* The embedded database is started last. */
    if (server->pg != NULL) {
        HEARTH_TRY(hearth_secret_new(hearth_str_c(hearth_embedded_pg_url(server->pg)),
                                     &server->pg_url, err));
        config->store.url = server->pg_url;
        config->store.data_dir = config->data_dir;
    }

    return HEARTH_OK;
}

/* Everything that has data of the database in memory, and what works on it. */
static enum hearth_status start_parts(struct server *server, struct hearth_err *err)
{
    struct hearth_config *config = &server->config;

    /* The store and the budgets that engine and front share. */
    HEARTH_TRY(hearth_store_open(&config->store, &server->store, err));
    hearth_budget_init(&server->query_memory, "queries-memory-bytes",
                       (size_t)config->queries_memory_bytes);
    config->front.query_memory = &server->query_memory;
    config->front.push_memory = &server->push_memory;

    /* With multitenancy, the queries of one tenant have half of the memory. */
    struct hearth_tenant_uses_options uses = {
        .query_memory = &server->query_memory,
        .tenant_query_memory_bytes = config->limits.max_tenant_query_memory_bytes > 0
                                         ? (size_t)config->limits.max_tenant_query_memory_bytes
                                     : config->front.multitenancy
                                         ? (size_t)config->queries_memory_bytes / 2
                                         : 0,
        .n_labels = (size_t)(config->metrics_tenants < 200 ? config->metrics_tenants : 200)};
    HEARTH_TRY(hearth_tenant_uses_new(&uses, &server->uses, err));
    config->front.tenant_uses = server->uses;

    /* The engine: pushes, queries and its background threads. */
    struct hearth_ingest_options ingest = {.limits = config->limits,
                                           .service_labels = config->service_labels,
                                           .budget = &server->push_memory,
                                           .uses = server->uses,
                                           .spool = server->spool};
    HEARTH_TRY(hearth_ingest_new(&ingest, server->store, &server->ingest, err));
    HEARTH_TRY(hearth_query_engine_new(&config->limits, (size_t)config->query_cache_bytes,
                                       server->store, &server->query, err));
    HEARTH_TRY(hearth_query_set_network(server->query, &config->network, err));
    HEARTH_TRY(hearth_rules_start(server->query, &server->query_memory, &server->rules, err));
    HEARTH_TRY(hearth_task_leftovers_start(server->query, server->ingest, &server->push_memory,
                                           &server->leftovers, err));
    HEARTH_TRY(hearth_ingest_errors_start(server->store, &server->ingest_errors, err));
    if (server->spool != NULL) {
        HEARTH_TRY(hearth_spool_start(server->spool, server->ingest, server->store,
                                      note_refused_push, server->ingest_errors, err));
    }
    server->asks_who_calls = hearth_auth_asks_who_calls(config);
    if (!server->asks_who_calls) {
        config->access.look_each_ns = UNASKED_LOOK_NS;
    }
    HEARTH_TRY(hearth_access_start(&config->access, server->store, &server->access, err));
    HEARTH_TRY(hearth_upload_parsers_start(&config->uploads, server->query, server->ingest,
                                           server->ingest_errors, &server->parsers, err));
    HEARTH_TRY(hearth_admin_new(server->store, &server->admin, err));
    HEARTH_TRY(start_scraper(server, config, err));

    /* The front, which listens from here on. */
    config->front.version = HEARTH_VERSION;
    config->front.write_config = hearth_reload_write_config;
    config->front.hooks_context = &server->reload;
    config->front.cpu_profile = hearth_self_profile;
    config->front.spool = server->spool;
    config->front.ingest_errors = server->ingest_errors;
    config->front.access = server->access;
    HEARTH_TRY(hearth_front_share(server->listeners, &config->front.bound, err));
    HEARTH_TRY(hearth_front_start(&config->front, server->ingest, server->query, server->admin,
                                  is_ready, server, &server->front, err));
    for (size_t i = 0; hearth_front_address(server->front, i) != NULL; i++) {
        HEARTH_LOG(HEARTH_LOG_INFO, "app", "listening", "addr",
                   hearth_front_address(server->front, i), "scheme",
                   hearth_front_is_tls(server->front, i) ? "https" : "http", "version",
                   HEARTH_VERSION, NULL);
    }

    return HEARTH_OK;
}

static enum hearth_status start(struct server *server, struct hearth_err *err)
{
    HEARTH_TRY(start_process(server, err));
    HEARTH_TRY(start_parts(server, err));
    hearth_auth_warn_of_clear_credentials(&server->config);

    return server->pg == NULL ? HEARTH_OK : hearth_embedded_pg_start(server->pg, err);
}

/* Requests may go on until the deadline. */
static void stop_parts(struct server *server, int64_t deadline)
{
    hearth_front_stop(server->front, deadline);
    hearth_scraper_stop(server->scraper);
    hearth_task_leftovers_stop(server->leftovers);
    hearth_upload_parsers_stop(server->parsers);
    hearth_spool_stop(server->spool);
    hearth_ingest_errors_stop(server->ingest_errors);
    hearth_access_stop(server->access);

    /*
     * Commits are quick when there are no requests: allow two seconds even if requests have used up
     * the time.
     */
    int64_t moment = hearth_clock_mono_ns() + 2 * HEARTH_NS_PER_SEC;
    hearth_store_close(server->store, deadline > moment ? deadline : moment);
    hearth_ingest_free(server->ingest);
    hearth_rules_free(server->rules);
    hearth_query_engine_free(server->query);
    hearth_admin_free(server->admin);
    hearth_tenant_uses_free(server->uses);
    hearth_front_unbind(server->config.front.bound);

    server->front = NULL;
    server->scraper = NULL;
    server->leftovers = NULL;
    server->parsers = NULL;
    server->ingest_errors = NULL;
    server->access = NULL;
    server->store = NULL;
    server->ingest = NULL;
    server->rules = NULL;
    server->query = NULL;
    server->admin = NULL;
    server->uses = NULL;
    server->config.front.bound = NULL;
}

static void stop(struct server *server, int64_t deadline)
{
    stop_parts(server, deadline);
    hearth_spool_close(server->spool);
    hearth_embedded_pg_stop(server->pg, hearth_clock_mono_ns() + 10 * HEARTH_NS_PER_SEC);
    hearth_front_unbind(server->listeners);
    release_scrape_file(&server->scrape);
    release_scrape_file(&server->next_scrape);
    hearth_secret_free(server->pg_url);
    hearth_service_close(&server->service);
}

static void publish_memory(struct server *server)
{
    hearth_metric_set(HEARTH_M_QUERY_MEMORY,
                      (int64_t)atomic_load(&server->query_memory.used_bytes));
    hearth_metric_set(HEARTH_M_QUERY_MEMORY_LIMIT,
                      (int64_t)atomic_load(&server->query_memory.limit_bytes));
    hearth_metric_set(HEARTH_M_PUSH_MEMORY, (int64_t)atomic_load(&server->push_memory.used_bytes));
    hearth_metric_set(HEARTH_M_PUSH_MEMORY_LIMIT,
                      (int64_t)atomic_load(&server->push_memory.limit_bytes));
}

/* True if the process has a terminal, which could close. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static bool is_same_scrape_file(const struct scrape_file *file, const struct hearth_config *next)
{
    struct stat about = {0};

    if (strcmp(file->path, next->scrape_config) != 0 ||
        file->options.max_targets != next->max_scrape_targets ||
        file->options.max_concurrent != next->scrape_concurrency) {
        return false;
    }

    return file->path[0] == '\0' ||
           (stat(file->path, &about) == 0 && about.st_dev == file->about.st_dev &&
            about.st_ino == file->about.st_ino && about.st_size == file->about.st_size &&
            about.st_mtim.tv_sec == file->about.st_mtim.tv_sec &&
            about.st_mtim.tv_nsec == file->about.st_mtim.tv_nsec);
}

/* A hook of the reload: what the start checks, too. */
static enum hearth_status check_next(void *context, struct hearth_config *next,
                                     struct hearth_err *err)
{
    struct server *server = context;

    HEARTH_TRY(hearth_auth_read_options(next, err));
    HEARTH_TRY(hearth_auth_check_addresses(next, err));
    HEARTH_TRY(hearth_front_check_reload(server->front, &next->front, err));

    /* A file that is the same is not read: its tokens may be readable for root only. */
    release_scrape_file(&server->next_scrape);
    if (is_same_scrape_file(&server->scrape, next)) {
        return HEARTH_OK;
    }

    return load_scrape_file(server, next, &server->next_scrape, err);
}

/* A hook of the reload. If the file of targets has changed, fetching begins again. */
static void apply_config(void *context, const struct hearth_config *now)
{
    struct server *server = context;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_log_set_level(now->parsed_log_level);
    hearth_ingest_set_limits(server->ingest, &now->limits);
    hearth_query_set_limits(server->query, &now->limits);
    hearth_store_set_options(server->store, &now->store);
    hearth_access_set_admin_token(server->access, now->admin_token);
    hearth_front_reload(server->front, &now->front);

    if (server->next_scrape.path == NULL) {
        return;
    }

    hearth_scraper_stop(server->scraper);
    server->scraper = NULL;
    release_scrape_file(&server->scrape);
    server->scrape = server->next_scrape;
    server->next_scrape = (struct scrape_file){0};
    if (start_scraper(server, now, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "app", "no profiles are fetched from targets", "error",
                   err.msg, NULL);
    }
}

/* Tell the service manager what is missing, and that the threads make progress. */
static void tell_state(struct server *server)
{
    char reason[256];
    int64_t now_ns = hearth_clock_mono_ns();

    hearth_service_show(&server->service, is_ready(server, reason) ? "ready" : reason);
    hearth_service_feed(&server->service, now_ns, hearth_front_progress_ns(server->front));
}

/*
 * Run until SIGTERM, SIGINT or the end of the terminal (SIGHUP); returns the number of the signal.
 * 0: the store is lost.
 */
static int run_until_signal(struct server *server, const sigset_t *signals)
{
    char reason[256];

    for (;;) {
        struct timespec second = {.tv_nsec = 500000000};
        int number = sigtimedwait(signals, NULL, &second);
        if (number == SIGTERM || number == SIGINT ||
            (number == SIGHUP && server->has_terminal && !has_terminal())) {
            return number;
        }
        if (hearth_store_lost(server->store, reason)) {
            HEARTH_LOG(HEARTH_LOG_ERROR, "app",
                       "hearthd begins again: it disconnects its clients, and reads all data from "
                       "the database",
                       "reason", reason, NULL);
            return 0;
        }

        if (number == SIGHUP) {
            hearth_reload_run(&server->reload);
            hearth_front_load_tls(server->front);
        }
        hearth_front_check_tls(server->front);
        if (server->pg != NULL) {
            hearth_embedded_pg_watch(server->pg);
        }

        publish_memory(server);
        hearth_sandbox_report();
        tell_state(server);
    }
}

/* After the loss of the store: no request can succeed any more. */
static enum hearth_status begin_again(struct server *server, struct hearth_err *err)
{
    hearth_metric_add(HEARTH_M_DATABASE_REPLACED, 1);
    hearth_front_drain(server->front, "the database was replaced");
    stop_parts(server, hearth_clock_mono_ns());
    HEARTH_TRY(start_parts(server, err));

    /* What reloads have changed since the start. */
    const struct hearth_config *now = atomic_load(&server->reload.now);
    if (now != &server->config) {
        apply_config(server, now);
    }

    return HEARTH_OK;
}

/* Run until a signal, or until the parts cannot be started again; returns the exit code. */
static int serve(struct server *server, const sigset_t *signals)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int number;

    /* It takes connections from now on, whether or not the database can be reached. */
    hearth_service_tell(&server->service, "READY=1");
    while ((number = run_until_signal(server, signals)) == 0) {
        if (begin_again(server, &err) != HEARTH_OK) {
            HEARTH_LOG(HEARTH_LOG_ERROR, "app", "cannot begin again", "error", err.msg, NULL);
            return EXIT_FAILED;
        }
    }

    HEARTH_LOG(HEARTH_LOG_INFO, "app", "stopping", "signal",
               number == SIGTERM  ? "SIGTERM"
               : number == SIGHUP ? "SIGHUP: the terminal was closed"
                                  : "SIGINT",
               NULL);

    return EXIT_CLEAN;
}

static int run_server(struct server *server, const sigset_t *signals)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int code;

    if (start(server, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "app", "cannot start", "error", err.msg, NULL);
        code = err.status == HEARTH_INVALID_ARGUMENT ? EXIT_OPTIONS : EXIT_FAILED;
    } else {
        code = serve(server, signals);
        hearth_service_tell(&server->service, "STOPPING=1");
    }

    /* New connections are refused as soon as the front has closed its duplicates, too. */
    hearth_front_unbind(server->listeners);
    server->listeners = NULL;
    if (server->front != NULL) {
        hearth_front_drain(server->front, "shutting down");

        /* A second signal ends the process at once: the database recovers at its next start. */
        (void)signal(SIGTERM, SIG_DFL);
        (void)signal(SIGINT, SIG_DFL);
        (void)pthread_sigmask(SIG_UNBLOCK, signals, NULL);
    }

    stop(server, hearth_clock_mono_ns() + server->config.shutdown_timeout_ns);
    if (code == EXIT_CLEAN) {
        HEARTH_LOG(HEARTH_LOG_INFO, "app", "stopped", NULL);
    }

    return code;
}

static int print_request(const struct hearth_config *config)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    if (config->want_help) {
        hearth_config_help(config->want_help_all, &out);
    } else if (config->want_version) {
        hearth_buf_printf(&out, "hearthd %s\n", HEARTH_VERSION);
    } else {
        hearth_config_print(config, &out);
    }

    bool ok = !hearth_buf_failed(&out) && fwrite(out.p, 1, out.n, stdout) == out.n;
    hearth_buf_release(&out);

    return ok ? EXIT_CLEAN : EXIT_FAILED;
}

/* True if SIGHUP is ignored, as nohup does for its command. */
static bool ignores_hangup(void)
{
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* What the start checks before it needs the database, a port or a user. */
static int check_config(struct server *server, bool print_origins)
{
    struct hearth_config *config = &server->config;
    struct hearth_err auth = HEARTH_ERR_INIT, addresses = auth, front = auth, scrape = auth;
    struct hearth_err store = auth;

    /* The options that are set, even if there are mistakes among them. */
    if (print_origins) {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        hearth_config_print_set(config, &out);
        (void)fwrite(out.p, 1, out.n, stdout);
        (void)fflush(stdout);
        hearth_buf_release(&out);
    }

    hearth_config_note(config, hearth_auth_read_options(config, &auth), &auth);
    if (config->front.listen != NULL) { /* no mistake in listen itself */
        hearth_config_note(config, hearth_auth_check_addresses(config, &addresses), &addresses);
        hearth_config_note(config, hearth_front_check(&config->front, &front), &front);
    }
    hearth_config_note(config, hearth_store_check_options(&config->store, &store), &store);
    hearth_config_note(config, load_scrape_file(server, config, &server->scrape, &scrape), &scrape);
    release_scrape_file(&server->scrape);
    if (config->n_mistakes > 0) {
        hearth_config_print_mistakes(config);
        return EXIT_OPTIONS;
    }

    for (size_t i = 0; i < config->n_warnings; i++) {
        (void)fprintf(stderr, "hearthd: warning: %s\n", config->warnings[i]);
    }
    (void)printf("the configuration is valid\n");

    return EXIT_CLEAN;
}

int hearth_main(int argc, char *const *argv, char *const *environment)
{
    enum hearth_command command = hearth_command_take(&argc, &argv);
    struct server server = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    int code;
    enum hearth_status status = hearth_config_load(&server.config, argc, argv, environment, &err);
    bool check = command == HEARTH_COMMAND_CHECK_CONFIG || command == HEARTH_COMMAND_CHECK_ORIGIN;
    if (server.config.n_mistakes > 0 && !check) {
        hearth_config_print_mistakes(&server.config);
        code = EXIT_OPTIONS;
    } else if (status != HEARTH_OK && server.config.n_mistakes == 0) {
        (void)fprintf(stderr, "hearthd: %s\n", err.msg);
        code = EXIT_FAILED;
    } else if (server.config.want_help || server.config.want_version || server.config.want_print) {
        code = print_request(&server.config);
    } else if (check) {
        code = check_config(&server, command == HEARTH_COMMAND_CHECK_ORIGIN);
    } else if (command != HEARTH_COMMAND_SERVE) {
        hearth_config_wipe(argc, argv, environment);
        bool dry_run = command == HEARTH_COMMAND_MIGRATE_PLAN;
        code = dry_run || command == HEARTH_COMMAND_MIGRATE
                   ? hearth_command_migrate(&server.config, dry_run)
                   : hearth_command_scale_out(&server.config, command);
    } else {
        hearth_config_wipe(argc, argv, environment);
        hearth_log_set_level(server.config.parsed_log_level);
        hearth_log_set_json(server.config.log_format[0] == 'j');
        sigset_t signals;
        (void)sigemptyset(&signals);
        (void)sigaddset(&signals, SIGTERM);
        (void)sigaddset(&signals, SIGINT);
        if (!ignores_hangup()) {
            (void)sigaddset(&signals, SIGHUP);
        }

        server.has_terminal = has_terminal();
        (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i < server.config.n_warnings; i++) {
            HEARTH_LOG(HEARTH_LOG_WARN, "app", server.config.warnings[i], NULL);
        }
        hearth_metrics_start(HEARTH_VERSION);
        hearth_reload_init(&server.reload, &server.config, argc, argv, environment,
                           &(struct hearth_reload_hooks){check_next, apply_config, &server});
        code = run_server(&server, &signals);
        hearth_reload_release(&server.reload);
    }

    hearth_config_release(&server.config);

    return code;
}
