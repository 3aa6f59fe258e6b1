/*
 * svc_profile.c -- GET /debug/pprof/: the CPU profile of this process.
 *
 * Taking a profile blocks its thread, so it has a thread of its own instead of one of a pool.
 */
#include "hearth/base/signals.h"

#include "handlers.h"
#include "http/http_call.h"
#include "rpc/front_internal.h"

#define DEFAULT_S 10
#define MAX_S     60

void hearth_http_pprof_index(struct hearth_rpc *rpc)
{
    hearth_buf_cstr(&rpc->packed,
                    "GET /debug/pprof/profile?seconds=N    CPU profile of hearthd, gzipped pprof "
                    "(1 to 60 s; 10 without)\n"
                    "\n"
                    "go tool pprof http://HOST:PORT/debug/pprof/profile?seconds=10\n");
    rpc->http->answer_type = "text/plain; charset=utf-8";
    hearth_rpc_end(rpc, HEARTH_OK);
}

struct profile_order {
    struct hearth_rpc *rpc;
    int64_t duration_ns;
};

static void *take_profile(void *arg)
{
    const struct profile_order *order = arg;
    struct hearth_rpc *rpc = order->rpc;

    rpc->http->answer_type = "application/octet-stream";
    enum hearth_status status =
        rpc->front->options.cpu_profile(order->duration_ns, &rpc->cancel, &rpc->packed, &rpc->err);
    if (status == HEARTH_OK) {
        hearth_rpc_add_header(rpc, "Content-Disposition", "attachment; filename=\"profile.pb.gz\"");
    }

    hearth_rpc_end(rpc, status); /* the request and the front may be freed after this */

    return NULL;
}

static enum hearth_status start_profile_thread(struct hearth_rpc *rpc, int64_t duration_ns)
{
    struct profile_order *order = hearth_arena_alloc(&rpc->arena, sizeof *order);
    if (order == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    *order = (struct profile_order){rpc, duration_ns};
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t ours, old;
    hearth_signals_to_block(&ours);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_BLOCK, &ours, &old);
    int rc = pthread_create(&thread, &attr, take_profile, order);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);

    return rc == 0 ? HEARTH_OK
                   : HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                                 "cannot start a thread for the profile");
}

void hearth_http_cpu_profile(struct hearth_rpc *rpc)
{
    struct hearth_str text = hearth_http_arg(rpc, "seconds");
    int64_t seconds = DEFAULT_S;
    enum hearth_status status = HEARTH_OK;

    if (rpc->front->options.cpu_profile == NULL) {
        status =
            HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED, "this server does not profile itself");
    } else if (text.p != NULL &&
               (!hearth_str_to_i64(text, &seconds) || seconds < 1 || seconds > MAX_S)) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                             "seconds is \"" HEARTH_STR_FMT "\"; it must be 1 to %d",
                             HEARTH_STR_ARG(text), MAX_S);
    } else {
        rpc->cancel.deadline_mono_ns = INT64_MAX; /* the request itself limits the time */
        status = start_profile_thread(rpc, seconds * HEARTH_NS_PER_SEC);
    }

    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
    }
}
