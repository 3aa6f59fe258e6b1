/*
 * scrape_transfer.c -- one scrape: the HTTP request on the thread of the scraper, then its body on
 * a thread of the workers.
 */
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"

#include "rpc/rpc.h"
#include "scrape/scrape_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define MAX_URL_BYTES 1024
#define OWN_LABELS    3u                /* job, instance, service_name */
#define SPARE_BYTES   ((size_t)1 << 20) /* of the arena of a push, besides two bodies */

/* ---- outcomes ---- */

/* Sets why a scrape failed. */
static void HEARTH_PRINTF(2, 3) fail_scrape(struct scrape *scrape, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(scrape->failure, sizeof scrape->failure, format, arguments);
    va_end(arguments);
    hearth_str_utf8_mend(scrape->failure, strlen(scrape->failure));
}

static void note_failure(const struct scrape *scrape)
{
    struct hearth_ingest_errors *errors = scrape->scraper->options.ingest_errors;
    struct hearth_err message = HEARTH_ERR_INIT;

    if (errors == NULL) {
        return;
    }

    (void)HEARTH_FAIL(&message, HEARTH_INVALID_ARGUMENT, "%s%s: %s", scrape->address,
                      scrape->path->path, scrape->failure);
    hearth_ingest_errors_note(
        errors, &(const struct hearth_ingest_error){.tenant = hearth_str_c(scrape->job->tenant),
                                                    .client = HEARTH_STR("scraper"),
                                                    .route = HEARTH_STR("scrape"),
                                                    .code = HEARTH_STR("scrape_failed"),
                                                    .message = hearth_str_c(message.msg),
                                                    .n_bytes = scrape->n_bytes});
}

/* Hands a scrape that has ended back to the thread of the scraper. Any thread. */
static void finish_scrape(struct scrape *scrape)
{
    struct hearth_scraper *scraper = scrape->scraper;
    bool is_ok = scrape->failure[0] == '\0';

    scrape->scraped_ms = scrape->at_ns / HEARTH_NS_PER_MS;
    scrape->took_ms = (hearth_clock_mono_ns() - scrape->started_mono_ns) / HEARTH_NS_PER_MS;
    hearth_metric_add_label(HEARTH_M_SCRAPES, hearth_str_c(is_ok ? "ok" : "failed"), 1);
    if (!is_ok) {
        note_failure(scrape);
    }

    hearth_mutex_lock(&scraper->lock);
    scrape->next_finished = scraper->finished;
    scraper->finished = scrape;
    hearth_mutex_unlock(&scraper->lock);
    (void)curl_multi_wakeup(scraper->multi);
}

/* ---- pushing ---- */

/* The labels of the group, and our own. */
static enum hearth_status make_scrape_labels(const struct scrape *scrape,
                                             struct hearth_arena *arena,
                                             struct hearth_scraped *scraped, struct hearth_err *err)
{
    const struct hearth_scrape_group *group = scrape->group;
    bool has_service = false;
    size_t n = 0;

    scraped->labels =
        hearth_arena_array(arena, group->n_labels + OWN_LABELS, sizeof *scraped->labels);
    if (scraped->labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < group->n_labels; i++) {
        has_service = has_service || hearth_str_eq_c(group->labels[i].name, "service_name");
        scraped->labels[n++] = group->labels[i];
    }

    struct hearth_str job = hearth_str_c(scrape->job->name);
    scraped->labels[n++] = (struct hearth_label){HEARTH_STR("job"), job};
    scraped->labels[n++] =
        (struct hearth_label){HEARTH_STR("instance"), hearth_str_c(scrape->address)};
    if (!has_service) {
        scraped->labels[n++] = (struct hearth_label){HEARTH_STR("service_name"), job};
    }
    scraped->n_labels = n;

    return HEARTH_OK;
}

/* Inflates the body into `plain`, unless it is not compressed. */
static enum hearth_status inflate_scraped(const struct scrape *scrape, struct hearth_buf *plain,
                                          struct hearth_str *ret, struct hearth_err *err)
{
    struct hearth_str body = hearth_buf_view(&scrape->body);
    enum hearth_compression compression = hearth_compression_detect(body);
    struct hearth_inflater *inflater = hearth_rpc_inflater();

    if (compression == HEARTH_COMPRESSION_NONE) {
        *ret = body;
        return HEARTH_OK;
    }
    if (inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    HEARTH_TRY(hearth_inflate(inflater, compression, body,
                              (size_t)scrape->scraper->options.max_body_bytes, plain, err));
    *ret = hearth_buf_view(plain);

    return HEARTH_OK;
}

static enum hearth_status push_scraped(struct scrape *scrape, struct hearth_arena *arena,
                                       struct hearth_buf *plain, struct hearth_err *err)
{
    struct hearth_scraper *scraper = scrape->scraper;
    struct hearth_scraped scraped = {.tenant = hearth_str_c(scrape->job->tenant),
                                     .n_bytes = scrape->body.n,
                                     .at_ns = scrape->at_ns,
                                     .before_ns = scrape->totals != NULL ? scrape->before_ns : 0};
    const struct hearth_call call = {.engine = scraper->engine,
                                     .tenant = scraped.tenant,
                                     .arena = arena,
                                     .cancel = &scraper->cancel};

    HEARTH_TRY(inflate_scraped(scrape, plain, &scraped.bytes, err));
    HEARTH_TRY(make_scrape_labels(scrape, arena, &scraped, err));
    HEARTH_TRY(hearth_scrape_push(&call, scraper->ingest, &scraped, &scrape->totals, err));
    scrape->before_ns = scrape->at_ns;

    return HEARTH_OK;
}

static void run_push(struct hearth_job *job)
{
    struct scrape *scrape = HEARTH_CONTAINER_OF(job, struct scrape, push_job);
    struct hearth_budget *budget = scrape->scraper->options.budget;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_buf plain;

    /* As much as a push of the same body over HTTP. */
    hearth_arena_init(&arena, 2 * (size_t)scrape->scraper->options.max_body_bytes + SPARE_BYTES);
    arena.budget = budget;
    hearth_buf_init(&plain, 0);
    plain.budget = budget;
    enum hearth_status status = push_scraped(scrape, &arena, &plain, &err);
    if (status != HEARTH_OK) {
        fail_scrape(scrape, "%s: %s", hearth_status_name(status), err.msg);
    }

    hearth_buf_release(&plain);
    hearth_arena_release(&arena);
    hearth_buf_release(&scrape->body);
    finish_scrape(scrape);
}

/* ---- the transfer ---- */

/* The callback of curl for pieces of the body: fewer bytes than given end the transfer. */
static size_t take_body_piece(char *bytes, size_t size, size_t n, void *context)
{
    struct scrape *scrape = context;

    hearth_buf_append(&scrape->body, bytes, size * n);

    return hearth_buf_failed(&scrape->body) ? 0 : size * n;
}

/* Writes the URL; "seconds" is what the interval leaves. It fits: see the limits of scraper.h. */
static void write_url(const struct scrape *scrape, char out[MAX_URL_BYTES])
{
    const struct hearth_scrape_job *job = scrape->job;
    int n =
        snprintf(out, MAX_URL_BYTES, "%s://%s%s", job->scheme, scrape->address, scrape->path->path);

    assert(n > 0 && n < MAX_URL_BYTES);
    if (scrape->path->is_measured) {
        int64_t seconds = job->interval_ns / HEARTH_NS_PER_SEC - 1;
        (void)snprintf(out + n, (size_t)(MAX_URL_BYTES - n), "%cseconds=%lld",
                       strchr(scrape->path->path, '?') == NULL ? '?' : '&',
                       (long long)(seconds < 1 ? 1 : seconds));
    }
}

static bool set_up_transfer(struct scrape *scrape, CURL *curl)
{
    const struct hearth_scrape_job *job = scrape->job;
    int64_t timeout_ns = job->timeout_ns + (scrape->path->is_measured ? job->interval_ns : 0);
    char url[MAX_URL_BYTES];
    CURLcode rc = CURLE_OK;

    write_url(scrape, url);
    rc |= curl_easy_setopt(curl, CURLOPT_URL, url);
    rc |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    rc |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    rc |= curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    rc |= curl_easy_setopt(curl, CURLOPT_USERAGENT, "hearth-scraper");
    rc |= curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, NULL);
    rc |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / HEARTH_NS_PER_MS));
    rc |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body_piece);
    rc |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, scrape);
    rc |= curl_easy_setopt(curl, CURLOPT_PRIVATE, scrape);
    if (job->bearer != NULL) {
        rc |= curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        rc |= curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, hearth_secret_reveal(job->bearer));
    }

    return rc == CURLE_OK;
}

void hearth_scrape_begin(struct scrape *scrape)
{
    struct hearth_scraper *scraper = scrape->scraper;

    assert(!scrape->is_running && scrape->curl == NULL);
    scrape->is_running = true;
    scraper->n_running++;
    scrape->at_ns = hearth_clock_wall_ns();
    scrape->started_mono_ns = hearth_clock_mono_ns();
    scrape->n_bytes = 0;
    scrape->failure[0] = '\0';
    hearth_buf_init(&scrape->body, (size_t)scraper->options.max_body_bytes);
    scrape->body.budget = scraper->options.budget;

    scrape->curl = curl_easy_init();
    if (scrape->curl == NULL || !set_up_transfer(scrape, scrape->curl) ||
        curl_multi_add_handle(scraper->multi, scrape->curl) != CURLM_OK) {
        curl_easy_cleanup(scrape->curl);
        scrape->curl = NULL;
        fail_scrape(scrape, "the request could not be made: no memory, or a bad address");
        finish_scrape(scrape);
    }
}

void hearth_scrape_cut(struct scrape *scrape)
{
    assert(scrape->curl != NULL);
    (void)curl_multi_remove_handle(scrape->scraper->multi, scrape->curl);
    curl_easy_cleanup(scrape->curl);
    scrape->curl = NULL;
    scrape->is_running = false;
    scrape->scraper->n_running--;
}

/* Sets the failure of a transfer that has ended, if it has one. */
static void judge_transfer(struct scrape *scrape, CURLcode result)
{
    long code = 0;

    (void)curl_easy_getinfo(scrape->curl, CURLINFO_RESPONSE_CODE, &code);
    if (hearth_buf_failed(&scrape->body)) {
        fail_scrape(scrape, "the answer has more than %lld bytes (max-request-bytes), or no memory",
                    (long long)scrape->scraper->options.max_body_bytes);
    } else if (result != CURLE_OK) {
        fail_scrape(scrape, "the request failed: %s", curl_easy_strerror(result));
    } else if (code != 200) {
        fail_scrape(scrape, "the target answered HTTP status %ld", code);
    } else if (scrape->body.n == 0) {
        fail_scrape(scrape, "the target answered no bytes");
    }
}

/* Ends a transfer; its body is pushed by the workers. */
static void end_transfer(struct scrape *scrape, CURLcode result)
{
    struct hearth_scraper *scraper = scrape->scraper;

    judge_transfer(scrape, result);
    scrape->n_bytes = (int64_t)scrape->body.n;
    (void)curl_multi_remove_handle(scraper->multi, scrape->curl);
    curl_easy_cleanup(scrape->curl);
    scrape->curl = NULL;

    /* After it is submitted, the scrape belongs to the worker. */
    bool is_ok = scrape->failure[0] == '\0';
    scrape->push_job.run = run_push;
    if (is_ok && hearth_workers_submit(scraper->workers, &scrape->push_job)) {
        return;
    }

    if (is_ok) {
        fail_scrape(scrape, "not pushed: too many fetched profiles wait for a thread");
    }
    hearth_buf_release(&scrape->body);
    finish_scrape(scrape);
}

void hearth_scrape_collect(struct hearth_scraper *scraper)
{
    int n_left;

    for (const CURLMsg *message = curl_multi_info_read(scraper->multi, &n_left); message != NULL;
         message = curl_multi_info_read(scraper->multi, &n_left)) {
        if (message->msg == CURLMSG_DONE) {
            struct scrape *scrape = NULL;
            (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&scrape);
            end_transfer(scrape, message->data.result);
        }
    }
}
