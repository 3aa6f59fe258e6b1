/* tls.c -- the threads of TLS and the way of a stream through them. */
#include "net/tls.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/log_rate.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "net/tls_loop.h"
#include "rpc/front_internal.h"

#include <assert.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_LOOPS 64
/* A handshake holds about 50 KB, and up to HEARTH_TLS_HANDSHAKE_BYTES if the client is hostile. */
#define MAX_SHAKING 1024

struct hearth_tls {
    struct hearth_tls_context *context;
    size_t n_shakers, n_relays;
    struct hearth_tls_loop *shakers[MAX_LOOPS], *relays[MAX_LOOPS];
    int ready_fd;
    _Atomic size_t n_extra;
    struct hearth_mutex lock; /* guards ready */
    struct hearth_tls_queue ready;
    size_t turn; /* the shaker that gets the next connection */
    struct hearth_log_rate failed_rate;
};

static void take_ready(void *context, struct hearth_tls_stream *stream)
{
    struct hearth_tls *tls = context;

    hearth_mutex_lock(&tls->lock);
    hearth_tls_queue_add(&tls->ready, stream);
    hearth_mutex_unlock(&tls->lock);

    uint64_t one = 1;
    (void)!write(tls->ready_fd, &one, sizeof one);
}

static void count_failure(void *context, struct hearth_tls_stream *stream)
{
    struct hearth_tls *tls = context;
    char text[HEARTH_PEER_TEXT_BYTES];
    int missed;

    if (stream->is_extra) {
        (void)atomic_fetch_sub(&tls->n_extra, 1);
    }

    hearth_metric_add_label(HEARTH_M_TLS_FAILURES, hearth_str_c(stream->failure), 1);
    if (hearth_log_rate_take(&tls->failed_rate, 1, hearth_clock_mono_ns(), &missed)) {
        hearth_address_text((const struct sockaddr *)&stream->origin.address, text);
        HEARTH_LOG(HEARTH_LOG_INFO, "tls", "handshake failed", "reason", stream->failure, "peer",
                   text, "missed", hearth_log_i64(missed), NULL);
    }
}

static enum hearth_status start_loops(struct hearth_tls *tls,
                                      struct hearth_tls_loop_options options, const char *name,
                                      size_t n, struct hearth_tls_loop **loops, size_t *n_loops,
                                      struct hearth_err *err)
{
    char text[32];

    assert(n <= MAX_LOOPS);
    options.ready = take_ready;
    options.failed = count_failure;
    options.context = tls;
    options.name = text;
    for (; *n_loops < n; (*n_loops)++) {
        (void)snprintf(text, sizeof text, "%s-%zu", name, *n_loops);
        HEARTH_TRY(hearth_tls_loop_start(&options, &loops[*n_loops], err));
    }

    return HEARTH_OK;
}

/* Half the processors: the other half work on the requests. */
static size_t choose_relays(unsigned wanted)
{
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = wanted > 0 ? wanted : n_cpus >= 16 ? 8 : n_cpus < 2 ? 1 : (size_t)n_cpus / 2;
    return n > MAX_LOOPS ? MAX_LOOPS : n;
}

static enum hearth_status start_parts(struct hearth_tls *tls,
                                      const struct hearth_tls_options *options,
                                      const struct hearth_tls_loop_options *loop,
                                      struct hearth_err *err)
{
    size_t n_relays = choose_relays(options->threads);
    size_t n_shakers = n_relays < 2 ? 1 : n_relays / 2;

    tls->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tls->ready_fd < 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "no descriptors left for TLS; raise the limit of open files");
    }

    HEARTH_TRY(hearth_tls_context_new(options, &tls->context, err));
    HEARTH_TRY(start_loops(tls, *loop, "tls-shake", n_shakers, tls->shakers, &tls->n_shakers, err));

    return start_loops(tls, *loop, "tls", n_relays, tls->relays, &tls->n_relays, err);
}

enum hearth_status hearth_tls_start(const struct hearth_tls_options *options,
                                    int64_t first_bytes_timeout_ns, int64_t head_timeout_ns,
                                    struct hearth_tls **ret_tls, struct hearth_err *err)
{
    struct hearth_tls *tls = hearth_mem_zalloc(sizeof *tls);
    if (tls == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for TLS");
    }

    hearth_mutex_init(&tls->lock, HEARTH_RANK_TLS, "tls.lock");
    struct hearth_tls_loop_options loop = {
        .max_shaking = MAX_SHAKING,
        .first_bytes_timeout_ns = first_bytes_timeout_ns,
        .shake_timeout_ns = head_timeout_ns > 0 ? head_timeout_ns : first_bytes_timeout_ns,
    };
    enum hearth_status status = start_parts(tls, options, &loop, err);
    if (status != HEARTH_OK) {
        hearth_tls_free(tls);
        return status;
    }

    *ret_tls = tls;

    return HEARTH_OK;
}

void hearth_tls_close_new(struct hearth_tls *tls)
{
    for (size_t i = 0; i < tls->n_shakers; i++) {
        hearth_tls_loop_stop(tls->shakers[i], false);
    }
    for (struct hearth_tls_stream *stream; (stream = hearth_tls_next(tls)) != NULL;) {
        hearth_tls_stream_free(stream);
    }
}

void hearth_tls_free(struct hearth_tls *tls)
{
    if (tls == NULL) {
        return;
    }

    hearth_tls_close_new(tls);
    for (size_t i = 0; i < tls->n_relays; i++) {
        hearth_tls_loop_stop(tls->relays[i], true);
        hearth_tls_loop_free(tls->relays[i]);
    }
    for (size_t i = 0; i < tls->n_shakers; i++) {
        hearth_tls_loop_free(tls->shakers[i]);
    }

    hearth_tls_context_free(tls->context);
    if (tls->ready_fd >= 0) {
        (void)close(tls->ready_fd);
    }
    hearth_mutex_destroy(&tls->lock);
    hearth_mem_free(tls);
}

struct hearth_tls_context *hearth_tls_get_context(struct hearth_tls *tls)
{
    return tls->context;
}

void hearth_tls_take(struct hearth_tls *tls, int fd, const struct hearth_origin *origin,
                     bool is_extra)
{
    struct hearth_tls_stream *stream =
        hearth_tls_stream_new(hearth_tls_context_open(tls->context), fd, origin);
    if (stream == NULL) {
        return;
    }

    stream->is_extra = is_extra;
    if (is_extra) {
        (void)atomic_fetch_add(&tls->n_extra, 1);
    }
    hearth_tls_loop_give(tls->shakers[tls->turn++ % tls->n_shakers], stream);
}

int hearth_tls_ready_fd(const struct hearth_tls *tls)
{
    return tls->ready_fd;
}

struct hearth_tls_stream *hearth_tls_next(struct hearth_tls *tls)
{
    hearth_mutex_lock(&tls->lock);
    struct hearth_tls_stream *stream = hearth_tls_queue_take(&tls->ready);
    if (stream == NULL) {
        uint64_t count;
        (void)!read(tls->ready_fd, &count, sizeof count);
    }
    hearth_mutex_unlock(&tls->lock);

    if (stream != NULL && stream->is_extra) {
        (void)atomic_fetch_sub(&tls->n_extra, 1);
    }

    return stream;
}

void hearth_tls_relay_on(struct hearth_tls *tls, struct hearth_tls_stream *stream)
{
    struct hearth_tls_loop *least = tls->relays[0];

    assert(stream->state == HEARTH_TLS_READY && stream->lib_fd < 0);
    for (size_t i = 1; i < tls->n_relays; i++) {
        if (atomic_load(&tls->relays[i]->n_streams) < atomic_load(&least->n_streams)) {
            least = tls->relays[i];
        }
    }

    stream->state = HEARTH_TLS_RELAYING;
    stream->client.can_read = stream->client.can_write = true; /* an event may have been missed */
    hearth_tls_loop_give(least, stream);
}

size_t hearth_tls_count_extra(const struct hearth_tls *tls)
{
    return atomic_load(&tls->n_extra);
}

size_t hearth_tls_count_draining(const struct hearth_tls *tls)
{
    size_t n = 0;
    for (size_t i = 0; i < tls->n_relays; i++) {
        n += atomic_load(&tls->relays[i]->n_draining);
    }
    return n;
}

size_t hearth_tls_count_relayed(const struct hearth_tls *tls)
{
    size_t n = 0;
    for (size_t i = 0; i < tls->n_relays; i++) {
        n += atomic_load(&tls->relays[i]->n_streams);
    }
    return n;
}
