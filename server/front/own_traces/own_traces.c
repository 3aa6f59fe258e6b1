/* own_traces.c -- the queue of ended spans and the thread that sends them (contract: own_traces.h).
 */
#include "own_traces/own_traces.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"

#include "ranks.h"

#include <assert.h>
#include <curl/curl.h>

#define BATCH      (HEARTH_OWN_SPANS_QUEUED / 2)
#define EACH_NS    HEARTH_NS_PER_SEC
#define SEND_MS    2000L
#define ARENA_SIZE ((size_t)64 << 20)

struct hearth_own_traces {
    const char *url, *version;
    CURL *curl;                 /* used by the thread only */
    struct curl_slist *headers; /* immutable */
    bool was_refused;           /* the latest batch failed: failures are logged once */
    pthread_t thread;
    struct hearth_mutex lock; /* guards the rest */
    pthread_cond_t wake;
    bool stopping;
    size_t first, n;               /* the queue is a ring */
    struct hearth_own_span *queue; /* HEARTH_OWN_SPANS_QUEUED */
    struct hearth_own_span *batch; /* BATCH; used by the thread only, without the lock */
};

enum hearth_status hearth_own_traces_check(const char *url, int64_t one_in, struct hearth_err *err)
{
    struct hearth_str text = hearth_str_c(url);

    if (!hearth_str_starts(text, HEARTH_STR("http://")) &&
        !hearth_str_starts(text, HEARTH_STR("https://"))) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "trace-otlp-url \"%s\" does not begin with http:// or https://", url);
    }
    if (one_in < 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "trace-one-in is %lld; it must be at least 1", (long long)one_in);
    }

    return HEARTH_OK;
}

static void count_own_spans(const char *outcome, size_t n)
{
    hearth_metric_add_label(HEARTH_M_OWN_SPANS, hearth_str_c(outcome), (int64_t)n);
}

void hearth_own_traces_record(struct hearth_own_traces *traces, const struct hearth_own_span *span)
{
    hearth_mutex_lock(&traces->lock);
    bool has_room = traces->n < HEARTH_OWN_SPANS_QUEUED;
    if (has_room) {
        traces->queue[(traces->first + traces->n++) % HEARTH_OWN_SPANS_QUEUED] = *span;
        if (traces->n == BATCH) {
            (void)pthread_cond_signal(&traces->wake);
        }
    }
    hearth_mutex_unlock(&traces->lock);

    if (!has_room) {
        count_own_spans("dropped", 1);
    }
}

/* ---- sending ---- */

static size_t ignore_answer(char *bytes, size_t size, size_t n, void *context)
{
    (void)bytes;
    (void)context;
    return size * n;
}

static CURLcode set_up_export(struct hearth_own_traces *traces)
{
    CURLcode rc = CURLE_OK;

    rc |= curl_easy_setopt(traces->curl, CURLOPT_URL, traces->url);
    rc |= curl_easy_setopt(traces->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    rc |= curl_easy_setopt(traces->curl, CURLOPT_NOSIGNAL, 1L);
    rc |= curl_easy_setopt(traces->curl, CURLOPT_USERAGENT, "hearthd");
    rc |= curl_easy_setopt(traces->curl, CURLOPT_HTTPHEADER, traces->headers);
    rc |= curl_easy_setopt(traces->curl, CURLOPT_TIMEOUT_MS, SEND_MS);
    rc |= curl_easy_setopt(traces->curl, CURLOPT_WRITEFUNCTION, ignore_answer);

    return rc;
}

static enum hearth_status post_spans(struct hearth_own_traces *traces, struct hearth_str body,
                                     struct hearth_err *err)
{
    CURL *curl = traces->curl;
    long code = 0;
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);

    rc |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.p);
    if (rc == CURLE_OK) {
        rc = curl_easy_perform(curl);
    }
    if (rc != CURLE_OK) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%.200s: %s", traces->url,
                           curl_easy_strerror(rc));
    }

    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    if (code != 200) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%.200s answered with the status %ld",
                           traces->url, code);
    }

    return HEARTH_OK;
}

static void send_batch(struct hearth_own_traces *traces, size_t n)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_buf body;

    hearth_arena_init(&arena, ARENA_SIZE);
    hearth_buf_init(&body, ARENA_SIZE);
    enum hearth_status status = hearth_own_spans_encode(
        traces->batch, n, traces->version, hearth_clock_wall_ns() - hearth_clock_mono_ns(), &arena,
        &body, &err);
    if (status == HEARTH_OK) {
        status = post_spans(traces, hearth_buf_view(&body), &err);
    }
    hearth_buf_release(&body);
    hearth_arena_release(&arena);

    count_own_spans(status == HEARTH_OK ? "sent" : "failed", n);
    if (status != HEARTH_OK && !traces->was_refused) {
        HEARTH_LOG(HEARTH_LOG_WARN, "traces", "spans of own requests could not be sent", "reason",
                   err.msg, NULL);
    }
    traces->was_refused = status != HEARTH_OK;
}

/* Copies the oldest spans to the batch. The caller holds the lock. */
static size_t take_oldest_spans(struct hearth_own_traces *traces)
{
    size_t n = traces->n < BATCH ? traces->n : BATCH;

    hearth_mutex_assert_held(&traces->lock);
    for (size_t i = 0; i < n; i++) {
        traces->batch[i] = traces->queue[(traces->first + i) % HEARTH_OWN_SPANS_QUEUED];
    }
    traces->first = (traces->first + n) % HEARTH_OWN_SPANS_QUEUED;
    traces->n -= n;

    return n;
}

/* At the stop one batch is sent; what is left then is dropped. */
static void *run_sender(void *arg)
{
    struct hearth_own_traces *traces = arg;
    bool is_last = false;

    hearth_mutex_lock(&traces->lock);
    while (!is_last) {
        int64_t until_ns = hearth_clock_mono_ns() + EACH_NS;
        while (!traces->stopping && traces->n < BATCH && hearth_clock_mono_ns() < until_ns) {
            (void)hearth_mutex_wait_until(&traces->lock, &traces->wake, until_ns);
        }

        is_last = traces->stopping;
        size_t n = take_oldest_spans(traces);
        hearth_mutex_unlock(&traces->lock);
        if (n > 0) {
            send_batch(traces, n);
        }
        hearth_mutex_lock(&traces->lock);
    }

    count_own_spans("dropped", traces->n);
    hearth_mutex_unlock(&traces->lock);

    return NULL;
}

/* ---- life ---- */

static void free_own_traces(struct hearth_own_traces *traces)
{
    curl_slist_free_all(traces->headers);
    curl_easy_cleanup(traces->curl);
    (void)pthread_cond_destroy(&traces->wake);
    hearth_mutex_destroy(&traces->lock);
    hearth_mem_free(traces->queue);
    hearth_mem_free(traces->batch);
    hearth_mem_free(traces);
}

/* A receiver that is a hearthd, too, records no spans of these requests: see the README. */
static bool add_headers(struct hearth_own_traces *traces)
{
    static const char *const lines[] = {
        "Content-Type: application/x-protobuf",
        "Expect:", "traceparent: 00-00000000000000000000000000000001-0000000000000001-00"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(lines); i++) {
        struct curl_slist *more = curl_slist_append(traces->headers, lines[i]);
        if (more == NULL) {
            return false;
        }
        traces->headers = more;
    }

    return true;
}

static bool start_sender(struct hearth_own_traces *traces)
{
    sigset_t all, old;

    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    bool is_started = pthread_create(&traces->thread, NULL, run_sender, traces) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (is_started) {
        (void)pthread_setname_np(traces->thread, "own-traces");
    }

    return is_started;
}

enum hearth_status hearth_own_traces_start(const char *url, const char *version,
                                           struct hearth_own_traces **ret, struct hearth_err *err)
{
    struct hearth_own_traces *traces = hearth_mem_zalloc(sizeof *traces);
    if (traces == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for traces of own requests");
    }

    traces->url = url;
    traces->version = version;
    hearth_mutex_init(&traces->lock, HEARTH_RANK_OWN_TRACES, "own_traces.lock");
    hearth_cond_init(&traces->wake);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    traces->curl = curl_easy_init();
    traces->queue = hearth_mem_zalloc(HEARTH_OWN_SPANS_QUEUED * sizeof traces->queue[0]);
    traces->batch = hearth_mem_zalloc(BATCH * sizeof traces->batch[0]);
    bool is_made = traces->curl != NULL && traces->queue != NULL && traces->batch != NULL &&
                   add_headers(traces) && set_up_export(traces) == CURLE_OK;
    if (!is_made || !start_sender(traces)) {
        free_own_traces(traces);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                           "no memory or thread for traces of own requests (trace-otlp-url)");
    }

    *ret = traces;
    return HEARTH_OK;
}

void hearth_own_traces_stop(struct hearth_own_traces *traces)
{
    if (traces == NULL) {
        return;
    }

    hearth_mutex_lock(&traces->lock);
    traces->stopping = true;
    (void)pthread_cond_signal(&traces->wake);
    hearth_mutex_unlock(&traces->lock);
    (void)pthread_join(traces->thread, NULL);
    free_own_traces(traces);
}
