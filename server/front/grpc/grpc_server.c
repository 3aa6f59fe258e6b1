/*
 * grpc_server.c -- the server object of the core: settings, threads, shutdown.
 *
 * docs/threat-model.md says which attacks the settings prevent.
 */
#include "grpc/grpc_server.h"

#include "hearth/base/log.h"
#include "hearth/base/log_rate.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"

#include "grpc/core_locks.h"
#include "grpc/grpc_call.h"
#include "rpc/front_internal.h"

#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#include <assert.h>
#include <time.h>
#include <unistd.h>

#define CALLS_ASKED_FOR      128
#define INTAKE_THREADS       8
#define KEEPALIVE_TIMEOUT_MS 20000
#define MIN_PING_INTERVAL_MS 10000
#define MIN_MEMORY_QUOTA     (INT64_C(256) << 20)
#define MAX_ARGS             16
#define OVERDUE_BATCH        256u /* calls that are ended between two holds of the lock */

struct channel_args {
    size_t n;
    grpc_arg v[MAX_ARGS];
};

static void add_int(struct channel_args *args, const char *key, int64_t value)
{
    HEARTH_ASSERT(args->n < MAX_ARGS);

    /* grpc_arg has a char *, but the core only reads it. */
    union {
        const char *in;
        char *out;
    } name = {.in = key};
    args->v[args->n++] = (grpc_arg){
        .type = GRPC_ARG_INTEGER,
        .key = name.out,
        .value.integer = value > INT32_MAX ? INT32_MAX : (int)value,
    };
}

static void add_quota(struct channel_args *args, grpc_resource_quota *quota)
{
    add_int(args, GRPC_ARG_RESOURCE_QUOTA, 0);
    args->v[args->n - 1].type = GRPC_ARG_POINTER;
    args->v[args->n - 1].value.pointer.p = quota;
    args->v[args->n - 1].value.pointer.vtable = grpc_resource_quota_arg_vtable();
}

static grpc_server *make_core_server(const struct hearth_front_options *options)
{
    int64_t quota_bytes = options->memory_quota_bytes < MIN_MEMORY_QUOTA
                              ? MIN_MEMORY_QUOTA
                              : options->memory_quota_bytes;
    grpc_resource_quota *quota = grpc_resource_quota_create("hearth");

    grpc_resource_quota_resize(quota, (size_t)quota_bytes);
    struct channel_args args = {0};
    add_quota(&args, quota);

    /* The core's limit applies to the compressed size only, so the core must never decompress. */
    add_int(&args, GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    add_int(&args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, options->max_request_bytes);
    add_int(&args, GRPC_ARG_MAX_METADATA_SIZE, options->max_header_bytes);
    add_int(&args, GRPC_ARG_MAX_CONCURRENT_STREAMS, options->max_streams);
    add_int(&args, GRPC_ARG_KEEPALIVE_TIME_MS, options->grpc_keepalive_ns / HEARTH_NS_PER_MS);
    add_int(&args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS);
    add_int(&args, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    add_int(&args, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);

    /* Clients may ping often; by default the core allows one ping in five minutes. */
    add_int(&args, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, MIN_PING_INTERVAL_MS);
    grpc_channel_args list = {.num_args = args.n, .args = args.v};
    grpc_server *server = grpc_server_create(&list, NULL);
    grpc_resource_quota_unref(quota);

    return server;
}

static void *run_queue(void *arg)
{
    struct hearth_grpc *grpc = arg;

    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(grpc->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) {
            return NULL;
        }
        struct hearth_op *op = event.tag;
        op->done(op, event.success != 0);
    }
}

static enum hearth_status start_queue_threads(struct hearth_grpc *grpc, struct hearth_err *err)
{
    /* One thread handles about 100,000 small calls per second. On a machine with few cores a second
     * thread costs 2 to 10 %. */
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned want = n_cpus >= 8 ? 2 : 1;
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    while (grpc->n_threads < want &&
           pthread_create(&grpc->threads[grpc->n_threads], NULL, run_queue, grpc) == 0) {
        (void)pthread_setname_np(grpc->threads[grpc->n_threads], "grpc");
        grpc->n_threads++;
    }

    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);

    return grpc->n_threads == want
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "cannot start the threads of gRPC; raise the limit of threads");
}

/* Writes a log line of the core to the server's log. */
static void log_core_line(gpr_log_func_args *args)
{
    static struct hearth_log_rate rate;
    int missed;
    if (hearth_log_rate_take(&rate, 5, hearth_clock_mono_ns(), &missed)) {
        HEARTH_LOG(args->severity == GPR_LOG_SEVERITY_ERROR ? HEARTH_LOG_WARN : HEARTH_LOG_DEBUG,
                   "grpc", args->message, "missed", hearth_log_i64(missed), NULL);
    }
}

static void note_shutdown(struct hearth_op *op, bool ok)
{
    struct hearth_grpc *grpc = HEARTH_CONTAINER_OF(op, struct hearth_grpc, shutdown_op);
    (void)ok;
    hearth_mutex_lock(&grpc->lock);
    grpc->has_stopped = true;
    (void)pthread_cond_broadcast(&grpc->wake);
    hearth_mutex_unlock(&grpc->lock);
}

enum hearth_status hearth_grpc_start(struct hearth_front *front, struct hearth_grpc **ret_grpc,
                                     struct hearth_err *err)
{
    struct hearth_grpc *grpc = hearth_mem_zalloc(sizeof *grpc);
    if (grpc == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for gRPC");
    }

    assert(front->methods != NULL);
    grpc->front = front;
    grpc->shutdown_op.done = note_shutdown;
    hearth_mutex_init(&grpc->lock, HEARTH_RANK_GRPC, "grpc.lock");
    hearth_cond_init(&grpc->wake);

    /* The core, its server and the completion queue. */
    hearth_core_locks_trust();
    gpr_set_log_function(log_core_line);
    grpc_init();
    grpc->server = make_core_server(&front->options);
    grpc->credentials = grpc_insecure_server_credentials_create();
    grpc->queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(grpc->server, grpc->queue, NULL);
    grpc_server_start(grpc->server);

    /* The threads. */
    enum hearth_status status =
        hearth_workers_start("grpc-in", INTAKE_THREADS, SIZE_MAX, &grpc->intake, err);
    if (status == HEARTH_OK) {
        status = start_queue_threads(grpc, err);
    }

    if (status != HEARTH_OK) {
        hearth_grpc_free(grpc);
        return status;
    }

    for (int i = 0; i < CALLS_ASKED_FOR; i++) {
        hearth_call_request(grpc);
    }

    *ret_grpc = grpc;

    return HEARTH_OK;
}

/* A connection on its way from the acceptor to the core. */
struct arrival {
    struct hearth_job job;
    struct hearth_grpc *grpc;
    int fd;
};

static void add_channel(struct hearth_job *job)
{
    struct arrival *arrival = HEARTH_CONTAINER_OF(job, struct arrival, job);
    struct hearth_grpc *grpc = arrival->grpc;
    int fd = arrival->fd;

    hearth_mem_free(arrival);
    if (atomic_load(&grpc->is_stopping)) {
        (void)close(fd);
        return;
    }

    grpc_server_add_channel_from_fd(grpc->server, fd, grpc->credentials);
}

/*
 * The function of the core that adds a channel begins to read if bytes are waiting, and continues
 * as long as more bytes come: a client that sends fast occupies the thread (for seconds, as
 * measured). So it may not be called on the acceptor's thread.
 */
void hearth_grpc_take(void *context, int fd, const struct sockaddr *address,
                      socklen_t address_bytes)
{
    struct hearth_grpc *grpc = context;

    (void)address;
    (void)address_bytes;
    struct arrival *arrival = hearth_mem_alloc(sizeof *arrival);
    if (arrival != NULL) {
        *arrival = (struct arrival){.job.run = add_channel, .grpc = grpc, .fd = fd};
    }

    if (arrival == NULL || !hearth_workers_submit(grpc->intake, &arrival->job)) {
        hearth_mem_free(arrival);
        (void)close(fd);
    }
}

/* A listed call is alive; the reference keeps the core's part of it alive without the lock. */
static size_t take_overdue_calls(struct hearth_grpc *grpc, int64_t now_mono_ns,
                                 grpc_call *out[OVERDUE_BATCH])
{
    hearth_mutex_lock(&grpc->lock);
    size_t n = hearth_client_waits_take_overdue(&grpc->waits, now_mono_ns, out, OVERDUE_BATCH);
    for (size_t i = 0; i < n; i++) {
        grpc_call_ref(out[i]);
    }
    hearth_mutex_unlock(&grpc->lock);

    return n;
}

static void end_overdue_waits(struct hearth_grpc *grpc, int64_t now_mono_ns)
{
    static struct hearth_log_rate rate;
    grpc_call *calls[OVERDUE_BATCH];
    size_t n, n_ended = 0;
    int missed;

    do {
        n = take_overdue_calls(grpc, now_mono_ns, calls);
        for (size_t i = 0; i < n; i++) {
            (void)grpc_call_cancel_with_status(calls[i], GRPC_STATUS_DEADLINE_EXCEEDED,
                                               "the client sent no message within request-timeout, "
                                               "or took the answer more slowly than min-body-rate",
                                               NULL);
            grpc_call_unref(calls[i]);
        }
        n_ended += n;
    } while (n == OVERDUE_BATCH);

    if (n_ended > 0 && hearth_log_rate_take(&rate, 1, now_mono_ns, &missed)) {
        HEARTH_LOG(HEARTH_LOG_WARN, "front",
                   "ended calls whose clients sent no message within request-timeout, or took the "
                   "answer more slowly than min-body-rate",
                   "ended", hearth_log_i64((int64_t)n_ended), "missed", hearth_log_i64(missed),
                   NULL);
    }
}

void hearth_grpc_tick(struct hearth_grpc *grpc)
{
    for (int n = atomic_exchange(&grpc->n_wanted, 0); n > 0; n--) {
        hearth_call_request(grpc);
    }
    int64_t now = hearth_clock_mono_ns();
    if (now - grpc->overdue_mono_ns >= HEARTH_NS_PER_SEC) {
        grpc->overdue_mono_ns = now;
        hearth_call_end_overdue(grpc, now);
        end_overdue_waits(grpc, now);
    }
}

void hearth_grpc_begin_stop(struct hearth_grpc *grpc)
{
    if (!atomic_exchange(&grpc->is_stopping, true)) {
        hearth_call_end_open(grpc);
    }
}

/*
 * A call that arrives while the core shuts down is CANCELLED, which tells its client not to retry.
 * If its connection ends instead, the client sees UNAVAILABLE. So the connections are ended first,
 * after the bytes that were written to them.
 */
void hearth_grpc_shut(struct hearth_grpc *grpc, struct hearth_peers *peers)
{
    assert(atomic_load(&grpc->is_stopping));
    if (!atomic_exchange(&grpc->is_shut, true)) {
        if (peers != NULL) {
            hearth_peers_end_grpc(peers);
        }
        grpc_server_shutdown_and_notify(grpc->server, grpc->queue, &grpc->shutdown_op);
    }
}

size_t hearth_grpc_working(const struct hearth_grpc *grpc)
{
    return (size_t)atomic_load(&grpc->n_working);
}

/* Waits at most wait_ns; true if all calls have ended. */
static bool wait_for_end_of_calls(struct hearth_grpc *grpc, int64_t wait_ns)
{
    int64_t until = hearth_clock_mono_ns() + wait_ns;

    hearth_mutex_lock(&grpc->lock);
    while (!grpc->has_stopped && hearth_mutex_wait_until(&grpc->lock, &grpc->wake, until)) {
    }

    bool has_stopped = grpc->has_stopped;
    hearth_mutex_unlock(&grpc->lock);

    return has_stopped;
}

void hearth_grpc_cancel_calls(struct hearth_grpc *grpc)
{
    grpc_server_cancel_all_calls(grpc->server);
}

void hearth_grpc_free(struct hearth_grpc *grpc)
{
    if (grpc == NULL) {
        return;
    }

    /* Wait until all calls have ended. */
    hearth_grpc_begin_stop(grpc);
    hearth_grpc_shut(grpc, NULL);
    if (grpc->n_threads > 0) {
        while (!wait_for_end_of_calls(grpc, HEARTH_NS_PER_SEC)) {
        }
    }

    /* Stop the threads: they drain the queue, then end. */
    hearth_workers_stop(grpc->intake);
    grpc_completion_queue_shutdown(grpc->queue);
    if (grpc->n_threads == 0) {
        (void)run_queue(grpc);
    }

    for (unsigned i = 0; i < grpc->n_threads; i++) {
        (void)pthread_join(grpc->threads[i], NULL);
    }

    /* Free the core's objects and the struct. */
    grpc_server_destroy(grpc->server);
    grpc_server_credentials_release(grpc->credentials);
    grpc_completion_queue_destroy(grpc->queue);
    grpc_shutdown();
    (void)pthread_cond_destroy(&grpc->wake);
    hearth_mutex_destroy(&grpc->lock);
    hearth_mem_free(grpc);
}
