/*
 * front.c -- puts the parts together: default options, start, the ticker, and the order in which
 * everything stops.
 */
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"
#include "hearth/engine/recent_queries.h"
#include "hearth/front/listen_text.h"

#include "grpc/grpc_server.h"
#include "grpc/svc_health.h"
#include "http/http_server.h"
#include "http/quiet_routes.h"
#include "ingest/kept_originals.h"
#include "net/acceptor.h"
#include "oidc/oidc.h"
#include "own_traces/own_traces.h"
#include "rpc/agent_methods.h"
#include "rpc/client_family.h"
#include "rpc/fair_share.h"
#include "rpc/front_internal.h"
#include "rpc/heap.h"
#include "tables.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS       (100 * HEARTH_NS_PER_MS)
#define QUIET_TICK_NS (500 * HEARTH_NS_PER_MS)

/*
 * When a request ends, its memory is given back to the C library. With the library's defaults, it
 * is then given back to the kernel, and the next request faults it in again: 33 instead of 24 us of
 * CPU for a push of 20 KB, 14 instead of 10 ms for an answer of 5 MB. What stays free is given back
 * later (rpc/heap.h). The settings belong to the process, so they are made once, before threads are
 * started. Setting the trim threshold ends the library's own adjustment of the mmap threshold, so
 * all three are set.
 */
static void keep_freed_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 16 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void)mallopt(M_TOP_PAD, 1 << 20);
}

/* Each heap keeps the memory that its threads once needed. The library's default is eight heaps for
 * each processor. */
static void limit_heaps(long n_cpus)
{
    (void)mallopt(M_ARENA_MAX, n_cpus < 2 ? 4 : n_cpus > 32 ? 64 : 2 * (int)n_cpus);
}

void hearth_front_options_init(struct hearth_front_options *options)
{
    *options = (struct hearth_front_options){
        .auth_modes = HEARTH_AUTH_NONE,
        .oidc = {.audience = "",
                 .client_id = "",
                 .redirect_url = "",
                 .scopes = "openid profile email",
                 .subject_claim = "sub",
                 .groups_claim = "groups",
                 .ca_file = "",
                 .clock_skew_ns = 60 * HEARTH_NS_PER_SEC,
                 .refresh_ns = 3600 * HEARTH_NS_PER_SEC,
                 .keys_max_age_ns = 24 * 3600 * HEARTH_NS_PER_SEC,
                 .max_cached = 4096,
                 .max_logins = 2},
        .max_connections = 8192,
        .max_header_bytes = 64 * 1024,
        .max_read_tenants = 16,
        .max_streams = 256,
        .max_request_bytes = 64 * 1024 * 1024,
        .first_bytes_timeout_ns = 10 * HEARTH_NS_PER_SEC,
        .head_timeout_ns = 20 * HEARTH_NS_PER_SEC,
        .min_body_rate = 256,
        .http_idle_timeout_ns = 120 * HEARTH_NS_PER_SEC,
        .grpc_keepalive_ns = 60 * HEARTH_NS_PER_SEC,

        .default_deadline_ns = 60 * HEARTH_NS_PER_SEC,
        .max_query_memory_bytes = 384 * 1024 * 1024,
        .max_queued_requests = 4096,
        .memory_quota_bytes = 256 * 1024 * 1024,
        .version = "",

        .agents = {.token = NULL,
                   .tenant = "anonymous",
                   .processes = true,
                   .ebpf = true,
                   .policies = true,
                   .trace_profiling = true,
                   .async_profiler = true,
                   .pprof = true,
                   .segments = true,
                   .meters = true,
                   .logs = true,
                   .management = true},
    };
}

/* ---- the ticker ---- */

static void publish_pools(const struct hearth_front *front)
{
    hearth_metric_set(HEARTH_M_INGEST_WAITING, (int64_t)hearth_workers_queued(front->ingest_pool));
    hearth_metric_set(HEARTH_M_INGEST_RUNNING, (int64_t)hearth_workers_running(front->ingest_pool));
    hearth_metric_set(HEARTH_M_QUERIES_WAITING, (int64_t)hearth_workers_queued(front->query_pool));
    hearth_metric_set(HEARTH_M_QUERIES_RUNNING, (int64_t)hearth_workers_running(front->query_pool));
}

/*
 * While no request is in work and no client watches the health, each tick would be for nothing. A
 * request that begins meanwhile is looked at with the next one.
 */
static int64_t choose_tick_ns(struct hearth_front *front)
{
    hearth_mutex_lock(&front->watch_lock);
    bool is_watched = front->watchers != NULL;
    hearth_mutex_unlock(&front->watch_lock);

    return is_watched || hearth_rpc_in_flight(front) > 0 ? TICK_NS : QUIET_TICK_NS;
}

/* Works every TICK_NS until stop_ticker, or QUIET_TICK_NS. */
static void *run_ticker(void *arg)
{
    struct hearth_front *front = arg;
    struct hearth_heap heap = {.ingest = front->ingest};

    int64_t tick_ns = TICK_NS;
    hearth_mutex_lock(&front->tick_lock);
    while (!front->ticker_ends) {
        (void)hearth_mutex_wait_until(&front->tick_lock, &front->tick_wake,
                                      hearth_clock_mono_ns() + tick_ns);
        hearth_mutex_unlock(&front->tick_lock);
        atomic_store(&front->ticked_ns, hearth_clock_mono_ns());
        hearth_rpc_cancel_gone(front);
        hearth_health_tick(front);
        publish_pools(front);
        hearth_grpc_tick(front->grpc);
        hearth_heap_tick(&heap, &front->has_garbage, hearth_clock_mono_ns());
        tick_ns = choose_tick_ns(front);
        hearth_mutex_lock(&front->tick_lock);
    }

    hearth_mutex_unlock(&front->tick_lock);

    return NULL;
}

static enum hearth_status start_ticker(struct hearth_front *front, struct hearth_err *err)
{
    sigset_t all, old;

    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    front->has_ticker = pthread_create(&front->ticker, NULL, run_ticker, front) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!front->has_ticker) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "cannot start the front's ticker; raise the limit of threads");
    }

    (void)pthread_setname_np(front->ticker, "front-ticker");

    return HEARTH_OK;
}

static void stop_ticker(struct hearth_front *front)
{
    if (!front->has_ticker) {
        return;
    }
    hearth_mutex_lock(&front->tick_lock);
    front->ticker_ends = true;
    (void)pthread_cond_signal(&front->tick_wake);
    hearth_mutex_unlock(&front->tick_lock);
    (void)pthread_join(front->ticker, NULL);
    front->has_ticker = false;
}

/* ---- start ---- */

static void init_locks(struct hearth_front *front)
{
    hearth_mutex_init(&front->in_flight_lock, HEARTH_RANK_FRONT, "front.in_flight_lock");
    hearth_mutex_init(&front->watch_lock, HEARTH_RANK_FRONT, "front.watch_lock");
    hearth_mutex_init(&front->drain_lock, HEARTH_RANK_FRONT, "front.drain_lock");
    hearth_mutex_init(&front->tick_lock, HEARTH_RANK_FRONT, "front.tick_lock");
    hearth_cond_init(&front->tick_wake);
}

static void free_front(struct hearth_front *front)
{
    hearth_mutex_destroy(&front->in_flight_lock);
    hearth_mutex_destroy(&front->watch_lock);
    hearth_mutex_destroy(&front->drain_lock);
    hearth_mutex_destroy(&front->tick_lock);
    (void)pthread_cond_destroy(&front->tick_wake);
    hearth_recent_queries_free(front->recent_queries);
    hearth_mem_free(front);
}

/*
 * A push of a new series or hour waits for a write to the catalogue, which all pushes that wait at
 * that time share. With one thread for each of two processors, 20,000 new series took two minutes.
 */
static unsigned choose_ingest_threads(const struct hearth_front_options *options, unsigned n_cpus)
{
    unsigned n = 2 * n_cpus > 16 ? 2 * n_cpus : 16;
    return options->ingest_threads > 0 ? options->ingest_threads : n;
}

static enum hearth_status start_pools(struct hearth_front *front, struct hearth_err *err)
{
    const struct hearth_front_options *options = &front->options;
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = n_cpus < 1 ? 1 : (unsigned)n_cpus;
    unsigned n_ingest = choose_ingest_threads(options, n);
    unsigned n_query = options->query_threads > 0 ? options->query_threads : 2 * n;
    size_t max_queued = (size_t)options->max_queued_requests;

    hearth_metric_set(HEARTH_M_INGEST_THREADS, n_ingest);
    hearth_metric_set(HEARTH_M_QUERY_THREADS, n_query);
    hearth_metric_set(HEARTH_M_QUEUE_LIMIT, (int64_t)max_queued);

    front->ingest_share = hearth_fair_share(options->multitenancy, n_ingest);
    front->query_share = hearth_fair_share(options->multitenancy, n_query);
    HEARTH_TRY(hearth_workers_start("finish", 1, SIZE_MAX, &front->finishers, err));
    HEARTH_TRY(hearth_workers_start("ingest", n_ingest, max_queued, &front->ingest_pool, err));

    return hearth_workers_start("query", n_query, max_queued, &front->query_pool, err);
}

/*
 * An agent's stream may be quiet for weeks, and pings must not add up to a flood. A ping has 17
 * bytes. The client may ping every 10 s (grpc_server.c), and it answers the pings of the server.
 * The rate is twice the sum.
 */
static uint64_t compute_quiet_bytes_per_s(int64_t keepalive_ns)
{
    assert(keepalive_ns > 0);
    return 4 + (uint64_t)(2 * 17 * HEARTH_NS_PER_SEC / keepalive_ns);
}

static enum hearth_status start_network(struct hearth_front *front,
                                        const struct hearth_front_options *given,
                                        struct hearth_err *err)
{
    HEARTH_TRY(hearth_grpc_start(front, &front->grpc, err));
    HEARTH_TRY(hearth_http_start(front, &front->http, err));
    struct hearth_acceptor_options options = {
        .listen = given->listen,
        .bound = given->bound,
        .max_connections = (size_t)front->options.max_connections,
        .first_bytes_timeout_ns = front->options.first_bytes_timeout_ns,
        .tls = &front->options.tls,
        .pace = {.head_timeout_ns = front->options.head_timeout_ns,
                 .min_body_rate = front->options.min_body_rate},
        .max_message_bytes = (uint64_t)front->options.max_request_bytes,
        .max_unread_bytes = (uint64_t)front->options.memory_quota_bytes + (64u << 20),
        .quiet_bytes_per_s = compute_quiet_bytes_per_s(front->options.grpc_keepalive_ns),
        .take_grpc = hearth_grpc_take,
        .grpc_context = front->grpc,
        .take_http = hearth_http_take,
        .http_context = front->http,
    };
    HEARTH_TRY(hearth_acceptor_open(&options, &front->acceptor, err));
    HEARTH_TRY(start_ticker(front, err));

    return hearth_acceptor_run(front->acceptor, err);
}

/* True if a listener accepts the way "oidc". */
static bool takes_oidc(const struct hearth_front_options *options)
{
    struct hearth_err ignored = HEARTH_ERR_INIT;
    bool takes = false;

    for (size_t i = 0; options->listen != NULL && options->listen[i] != NULL; i++) {
        struct hearth_listen_text listen = {.auth_modes = 0};
        if (hearth_listen_parse(options->listen[i], &listen, &ignored) == HEARTH_OK) {
            unsigned modes = listen.auth_modes != 0 ? listen.auth_modes : options->auth_modes;
            takes = takes || (modes & HEARTH_AUTH_OIDC) != 0;
        }
    }

    return takes;
}

static bool sends_own_traces(const struct hearth_front_options *options)
{
    return options->own_traces.url != NULL && options->own_traces.url[0] != '\0';
}

/* INVALID_ARGUMENT for options that no front could start with. */
static enum hearth_status check_front_options(const struct hearth_front_options *options,
                                              struct hearth_err *err)
{
    const struct {
        const char *name;
        int64_t value, min;
    } rules[] = {
        {"max-connections", options->max_connections, 1},
        {"max-header-bytes", options->max_header_bytes, 4096},
        {"max-read-tenants", options->max_read_tenants, 1},
        {"max-streams", options->max_streams, 1},
        {"max-request-bytes", options->max_request_bytes, 1},
        {"first-bytes-timeout", options->first_bytes_timeout_ns, 1},
        {"head-timeout", options->head_timeout_ns, 0},
        {"min-body-rate", options->min_body_rate, 0},
        {"http-idle-timeout", options->http_idle_timeout_ns, 0},
        {"grpc-keepalive", options->grpc_keepalive_ns, HEARTH_NS_PER_MS},
        {"request-timeout", options->default_deadline_ns, 0},
        {"max-query-memory-bytes", options->max_query_memory_bytes, 0},
        {"max-queued-requests", options->max_queued_requests, 1},
        {"grpc-memory-quota", options->memory_quota_bytes, 0},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(rules); i++) {
        if (rules[i].value < rules[i].min) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s is %lld; it must be at least %lld",
                               rules[i].name, (long long)rules[i].value, (long long)rules[i].min);
        }
    }

    HEARTH_TRY(hearth_otlp_check_options(&options->otlp, err));
    if (sends_own_traces(options)) {
        HEARTH_TRY(
            hearth_own_traces_check(options->own_traces.url, options->own_traces.one_in, err));
    }
    if (takes_oidc(options)) {
        HEARTH_TRY(hearth_oidc_check_options(&options->oidc, err));
    }
    HEARTH_TRY(hearth_kept_protocols_check(options->keep_originals, err));

    return hearth_agent_check_options(options, err);
}

enum hearth_status hearth_front_check(const struct hearth_front_options *options,
                                      struct hearth_err *err)
{
    bool uses_tls = false;

    HEARTH_TRY(check_front_options(options, err));
    for (size_t i = 0; options->listen[i] != NULL; i++) {
        struct hearth_listen_text listen;
        HEARTH_TRY(hearth_listen_parse(options->listen[i], &listen, err));
        uses_tls = uses_tls || listen.is_tls;
    }

    if (uses_tls) {
        return hearth_tls_context_try(&options->tls, err);
    }
    if (options->tls.cert_file != NULL && options->tls.cert_file[0] != '\0') {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "tls-cert-file is set, but no address of listen begins with https://");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_front_bind(const char *const *listen, const int *sockets,
                                     size_t n_sockets, struct hearth_listeners **ret,
                                     struct hearth_err *err)
{
    struct hearth_listeners *bound = hearth_mem_zalloc(sizeof *bound);
    enum hearth_status status = HEARTH_OK;

    if (bound == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the listening sockets");
    }

    for (size_t i = 0; status == HEARTH_OK && i < n_sockets; i++) {
        status = hearth_listeners_pass(bound, sockets[i], err);
    }
    for (; status == HEARTH_OK && *listen != NULL; listen++) {
        status = hearth_listeners_add(bound, *listen, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_listeners_check_passed(bound, err);
    }

    if (status != HEARTH_OK) {
        hearth_front_unbind(bound);
        return status;
    }

    *ret = bound;
    return HEARTH_OK;
}

enum hearth_status hearth_front_share(const struct hearth_listeners *bound,
                                      struct hearth_listeners **ret, struct hearth_err *err)
{
    struct hearth_listeners *copy = hearth_mem_zalloc(sizeof *copy);
    if (copy == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the listening sockets");
    }

    for (; copy->n < bound->n; copy->n++) {
        struct hearth_listener *listener = &copy->all[copy->n];
        *listener = bound->all[copy->n];
        listener->fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
        if (listener->fd < 0) {
            int saved = errno;
            hearth_front_unbind(copy);
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot duplicate a listening socket: %s",
                               strerrordesc_np(saved));
        }
    }

    *ret = copy;
    return HEARTH_OK;
}

void hearth_front_unbind(struct hearth_listeners *bound)
{
    if (bound != NULL) {
        hearth_listeners_close(bound);
        hearth_mem_free(bound);
    }
}

enum hearth_status hearth_front_start(const struct hearth_front_options *options,
                                      struct hearth_ingest *ingest,
                                      struct hearth_query_engine *query, struct hearth_admin *admin,
                                      hearth_front_ready_fn *ready, void *ready_context,
                                      struct hearth_front **ret_front, struct hearth_err *err)
{
    HEARTH_TRY(check_front_options(options, err));
    struct hearth_front *front = hearth_mem_zalloc(sizeof *front);
    if (front == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the front");
    }

    /* The members; pointers of the caller are not kept. */
    front->options = *options;
    front->options.listen = NULL;
    front->options.bound = NULL;
    front->options.version = NULL;
    (void)snprintf(front->version, sizeof front->version, "%s",
                   options->version != NULL ? options->version : "");
    front->ingest = ingest;
    front->query = query;
    front->admin = admin;
    front->ready = ready;
    front->ready_context = ready_context;
    front->methods = &hearth_method_table;
    front->routes = &hearth_http_route_table;
    init_locks(front);

    /* The process: metrics, memory. */
    hearth_methods_declare_metrics(front->methods);
    hearth_client_declare_metrics();
    hearth_quiet_routes_declare_metrics();
    keep_freed_memory();
    limit_heaps(sysconf(_SC_NPROCESSORS_ONLN));
    /* Threads and sockets. */
    enum hearth_status status = hearth_recent_queries_new(&front->recent_queries, err);
    if (status == HEARTH_OK) {
        status = start_pools(front, err);
    }
    if (status == HEARTH_OK && sends_own_traces(options)) {
        status = hearth_own_traces_start(options->own_traces.url, front->version,
                                         &front->own_traces, err);
    }
    if (status == HEARTH_OK && takes_oidc(options)) {
        status = hearth_oidc_start(&options->oidc, &front->oidc, err);
    }
    if (status == HEARTH_OK) {
        status = start_network(front, options, err);
    }

    if (status != HEARTH_OK) {
        hearth_front_stop(front, 0);
        return status;
    }

    *ret_front = front;

    return HEARTH_OK;
}

const char *hearth_front_address(const struct hearth_front *front, size_t i)
{
    const struct hearth_listener *listener = hearth_acceptor_listener(front->acceptor, i);
    return listener == NULL ? NULL : listener->text;
}

int64_t hearth_front_progress_ns(const struct hearth_front *front)
{
    int64_t ticked_ns = atomic_load(&front->ticked_ns);
    int64_t turned_ns = hearth_acceptor_turned_ns(front->acceptor);

    return ticked_ns < turned_ns ? ticked_ns : turned_ns;
}

bool hearth_front_is_tls(const struct hearth_front *front, size_t i)
{
    return hearth_acceptor_listener(front->acceptor, i)->is_tls;
}

enum hearth_status hearth_front_check_reload(const struct hearth_front *front,
                                             const struct hearth_front_options *options,
                                             struct hearth_err *err)
{
    HEARTH_TRY(check_front_options(options, err));
    if (front->oidc == NULL || hearth_oidc_check_options(&options->oidc, err) == HEARTH_OK) {
        return HEARTH_OK;
    }
    hearth_err_prefix(err, "the way \"oidc\" stays until a restart");

    return HEARTH_INVALID_ARGUMENT;
}

void hearth_front_reload(struct hearth_front *front, const struct hearth_front_options *options)
{
    atomic_store(&front->options.agents.token, atomic_load(&options->agents.token));
    if (front->oidc != NULL) {
        hearth_oidc_reload(front->oidc, &options->oidc);
    }
}

void hearth_front_load_tls(struct hearth_front *front)
{
    struct hearth_tls *tls = hearth_acceptor_tls(front->acceptor);
    if (tls != NULL) {
        hearth_tls_context_load(hearth_tls_get_context(tls));
    }
}

void hearth_front_check_tls(struct hearth_front *front)
{
    struct hearth_tls *tls = hearth_acceptor_tls(front->acceptor);
    if (tls != NULL) {
        hearth_tls_context_check(hearth_tls_get_context(tls), hearth_clock_mono_ns());
    }
}

/* ---- stop ---- */

/* True if a request is in work on a pool, or about to be. */
static bool is_front_working(struct hearth_front *front)
{
    return hearth_rpc_in_flight(front) > 0 ||
           (front->http != NULL && hearth_http_working(front->http) > 0) ||
           (front->grpc != NULL && hearth_grpc_working(front->grpc) > 0);
}

static bool is_front_idle(struct hearth_front *front)
{
    return hearth_rpc_in_flight(front) == 0 &&
           (front->http == NULL || hearth_http_open_requests(front->http) == 0) &&
           (front->grpc == NULL || hearth_grpc_working(front->grpc) == 0);
}

static void wait_until_idle(struct hearth_front *front, int64_t deadline_mono_ns)
{
    while (!is_front_idle(front) && hearth_clock_mono_ns() < deadline_mono_ns) {
        (void)usleep(2000);
    }
}

/* Lets requests finish until the deadline, then cancels them and waits for their end. */
static void wait_for_requests(struct hearth_front *front, int64_t deadline_mono_ns)
{
    /* Let them finish, then those that open HTTP connections have brought meanwhile. */
    wait_until_idle(front, deadline_mono_ns);
    if (front->http != NULL) {
        hearth_http_shut(front->http);
    }
    wait_until_idle(front, deadline_mono_ns);
    if (is_front_idle(front)) {
        return;
    }

    /* Cancel them, repeatedly, because a queued one may begin only now. The calls of gRPC are
     * cancelled later: before that, the server's own answer UNAVAILABLE has its chance. */
    HEARTH_LOG(HEARTH_LOG_WARN, "front", "cancelling requests that did not finish in time",
               "requests", hearth_log_i64((int64_t)hearth_rpc_in_flight(front)), NULL);

    for (int i = 0; hearth_rpc_in_flight(front) > 0; i++) {
        hearth_rpc_cancel_all(front);
        if (i > 50 && front->grpc != NULL) {
            hearth_grpc_cancel_calls(front->grpc);
        }
        (void)usleep(2000);
    }

    /* Their answers are being sent: wait for a second at most. */
    for (int i = 0; i < 500 && !is_front_idle(front); i++) {
        (void)usleep(2000);
    }
}

/*
 * The order: no new connections, no new calls; requests finish or are cancelled; the connections of
 * gRPC end; then the libraries, which own the memory of requests; last, the threads that end
 * requests.
 */
void hearth_front_stop(struct hearth_front *front, int64_t deadline_mono_ns)
{
    if (front == NULL) {
        return;
    }

    /* Nothing new. */
    if (!atomic_load(&front->is_draining)) {
        hearth_front_drain(front, "stopping");
    }
    atomic_store(&front->is_stopping, true);
    if (front->acceptor != NULL) {
        hearth_acceptor_stop(front->acceptor);
    }

    if (front->grpc != NULL) {
        hearth_grpc_begin_stop(front->grpc);
    }

    /* Requests finish. */
    hearth_health_end_watches(front);
    wait_for_requests(front, deadline_mono_ns);
    stop_ticker(front);

    /* The connections of gRPC, with the calls whose client never sent its message. */
    if (front->grpc != NULL) {
        hearth_grpc_shut(front->grpc,
                         front->acceptor != NULL ? hearth_acceptor_peers(front->acceptor) : NULL);
        hearth_grpc_cancel_calls(front->grpc);
    }

    /* Threads and libraries. A request may have begun just before it would have been refused. */
    while (is_front_working(front)) {
        hearth_rpc_cancel_all(front);
        (void)usleep(1000);
    }
    hearth_workers_stop(front->ingest_pool);
    hearth_workers_stop(front->query_pool);
    hearth_grpc_free(front->grpc);
    hearth_http_free(front->http);
    hearth_workers_stop(front->finishers);
    hearth_acceptor_free(front->acceptor);
    hearth_oidc_stop(front->oidc);
    hearth_own_traces_stop(front->own_traces);
    free_front(front);
}
