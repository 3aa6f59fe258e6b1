/*
 * ingest_errors.c -- refused uploads between the front and the store (contract:
 * hearth/engine/ingest_errors.h).
 *
 * Two buffers: errors are noted in one while the thread writes the other. A buffer that could not
 * be written is tried again; meanwhile the first one fills up.
 */
#include "hearth/engine/ingest_errors.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"
#include "hearth/store/store_ingest_errors.h"

#include "common/call_internal.h"
#include "common/shown.h"

#include <assert.h>

#define MAX_KINDS         256
#define MAX_TENANT_BYTES  256
#define MAX_MESSAGE_BYTES 512
#define WRITE_EACH_NS     HEARTH_NS_PER_SEC
#define DEFAULT_LIMIT     100

/* An error that waits, with the memory of its texts. */
struct waiting_error {
    struct hearth_ingest_error error;
    char tenant[MAX_TENANT_BYTES], message[MAX_MESSAGE_BYTES];
};

struct error_buffer {
    struct waiting_error errors[MAX_KINDS];
    size_t n;
};

struct hearth_ingest_errors {
    struct hearth_store *store;
    struct hearth_cancel cancel;
    pthread_t thread;
    struct hearth_mutex lock; /* guards `noted`, the buffer behind it, and `stopping` */
    pthread_cond_t wake;
    bool stopping;
    struct error_buffer *noted;   /* errors are added here */
    struct error_buffer *written; /* of the thread; n is 0 when all of it is in the database */
    struct error_buffer buffers[2];
};

/* ---- noting ---- */

static size_t copy_text(char *out, size_t cap, struct hearth_str text)
{
    size_t n = text.n < cap ? text.n : cap - 1;

    if (n > 0) {
        memcpy(out, text.p, n);
    }
    hearth_str_utf8_mend(out, n);
    out[n] = '\0';

    return n;
}

/* Hashes an error, without its subject, and with a single "0" for each number in its message. */
static int64_t make_error_key(const struct hearth_ingest_error *error)
{
    const struct hearth_str parts[] = {error->client, error->route, error->code};
    char plain[MAX_MESSAGE_BYTES];
    uint64_t hash = 0;
    size_t n = 0;

    assert(error->n_subject <= error->message.n);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        hash = hearth_hash64(parts[i].p, parts[i].n, hash);
    }

    for (size_t i = error->n_subject; i < error->message.n && n < sizeof plain; i++) {
        bool is_digit = error->message.p[i] >= '0' && error->message.p[i] <= '9';
        if (!is_digit) {
            plain[n++] = error->message.p[i];
        } else if (n == 0 || plain[n - 1] != '0') {
            plain[n++] = '0';
        }
    }

    return (int64_t)hearth_hash64(plain, n, hash);
}

/* The row of the same kind; a new one with n == 0; NULL if the buffer is full. */
static struct waiting_error *find_error_row(struct error_buffer *buffer,
                                            const struct hearth_ingest_error *error, int64_t key)
{
    for (size_t i = 0; i < buffer->n; i++) {
        struct waiting_error *row = &buffer->errors[i];
        if (row->error.key == key && hearth_str_eq(row->error.tenant, error->tenant)) {
            return row;
        }
    }

    if (buffer->n == MAX_KINDS) {
        return NULL;
    }

    struct waiting_error *row = &buffer->errors[buffer->n++];
    row->error = (struct hearth_ingest_error){
        .key = key, .client = error->client, .route = error->route, .code = error->code};
    row->error.tenant =
        hearth_str_n(row->tenant, copy_text(row->tenant, sizeof row->tenant, error->tenant));

    return row;
}

void hearth_ingest_errors_note(struct hearth_ingest_errors *errors,
                               const struct hearth_ingest_error *error)
{
    assert(errors != NULL && error != NULL);
    assert(error->tenant.n < MAX_TENANT_BYTES);

    int64_t key = make_error_key(error);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    hearth_mutex_lock(&errors->lock);
    struct waiting_error *row = find_error_row(errors->noted, error, key);
    if (row != NULL) {
        row->error.message = hearth_str_n(
            row->message, copy_text(row->message, sizeof row->message, error->message));
        row->error.body_hash = error->body_hash;
        row->error.n_bytes = error->n_bytes;
        row->error.first_ms = row->error.n == 0 ? now_ms : row->error.first_ms;
        row->error.last_ms = now_ms;
        row->error.n++;
    }
    hearth_mutex_unlock(&errors->lock);

    if (row == NULL) {
        hearth_metric_add(HEARTH_M_INGEST_ERRORS_UNRECORDED, 1);
    }
}

/* ---- writing ---- */

/* Makes the noted errors the ones to be written, unless some still are. */
static void swap_error_buffers(struct hearth_ingest_errors *errors)
{
    hearth_mutex_assert_held(&errors->lock);
    if (errors->written->n == 0) {
        struct error_buffer *noted = errors->noted;
        errors->noted = errors->written;
        errors->written = noted;
    }
}

static void write_errors(struct hearth_ingest_errors *errors)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_error rows[MAX_KINDS];
    struct error_buffer *buffer = errors->written;

    if (buffer->n == 0) {
        return;
    }

    for (size_t i = 0; i < buffer->n; i++) {
        rows[i] = buffer->errors[i].error;
    }

    const struct hearth_scope scope = {.store = errors->store, .cancel = &errors->cancel};
    enum hearth_status status = hearth_store_ingest_errors_add(&scope, rows, buffer->n, &err);

    /* They are kept while the database is away, and given up if it refuses them. */
    if (status != HEARTH_OK && status != HEARTH_UNAVAILABLE && status != HEARTH_CANCELLED &&
        status != HEARTH_DEADLINE_EXCEEDED) {
        HEARTH_LOG(HEARTH_LOG_WARN, "ingest", "refused uploads could not be recorded", "reason",
                   err.msg, NULL);
        hearth_metric_add(HEARTH_M_INGEST_ERRORS_UNRECORDED, (int64_t)buffer->n);
        status = HEARTH_OK;
    }
    buffer->n = status == HEARTH_OK ? 0 : buffer->n;
}

static void *run_error_writer(void *arg)
{
    struct hearth_ingest_errors *errors = arg;

    hearth_mutex_lock(&errors->lock);
    while (!errors->stopping) {
        swap_error_buffers(errors);
        hearth_mutex_unlock(&errors->lock);
        write_errors(errors);

        /* Sleep until the next turn or the stop. */
        int64_t until_ns = hearth_clock_mono_ns() + WRITE_EACH_NS;
        hearth_mutex_lock(&errors->lock);
        while (!errors->stopping && hearth_clock_mono_ns() < until_ns) {
            (void)hearth_mutex_wait_until(&errors->lock, &errors->wake, until_ns);
        }
    }

    hearth_mutex_unlock(&errors->lock);

    return NULL;
}

/* ---- the life of the thread ---- */

static void free_ingest_errors(struct hearth_ingest_errors *errors)
{
    (void)pthread_cond_destroy(&errors->wake);
    hearth_mutex_destroy(&errors->lock);
    hearth_mem_free(errors);
}

enum hearth_status hearth_ingest_errors_start(struct hearth_store *store,
                                              struct hearth_ingest_errors **ret,
                                              struct hearth_err *err)
{
    struct hearth_ingest_errors *errors = hearth_mem_zalloc(sizeof *errors);

    assert(store != NULL && ret != NULL);

    if (errors == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the refused uploads");
    }

    /* Set up the state. */
    errors->store = store;
    errors->noted = &errors->buffers[0];
    errors->written = &errors->buffers[1];
    hearth_cancel_init(&errors->cancel, INT64_MAX);
    hearth_mutex_init(&errors->lock, HEARTH_RANK_INGEST_ERRORS, "ingest_errors.lock");
    hearth_cond_init(&errors->wake);

    /* Start the thread with signals blocked: the main thread handles them. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&errors->thread, NULL, run_error_writer, errors);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free_ingest_errors(errors);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "cannot start the thread that records refused uploads");
    }

    (void)pthread_setname_np(errors->thread, "ingest-errors");
    *ret = errors;

    return HEARTH_OK;
}

void hearth_ingest_errors_stop(struct hearth_ingest_errors *errors)
{
    if (errors == NULL) {
        return;
    }

    /* Stop the thread. */
    hearth_mutex_lock(&errors->lock);
    errors->stopping = true;
    (void)pthread_cond_broadcast(&errors->wake);
    hearth_mutex_unlock(&errors->lock);
    atomic_store(&errors->cancel.cancelled, true);
    (void)pthread_join(errors->thread, NULL);

    /* Write both buffers, if the database is there. */
    hearth_cancel_init(&errors->cancel, hearth_clock_mono_ns() + WRITE_EACH_NS);
    write_errors(errors);
    if (errors->written->n == 0) {
        errors->written = errors->noted;
        write_errors(errors);
    }

    free_ingest_errors(errors);
}

/* ---- listing ---- */

enum hearth_status hearth_ingest_errors_list(const struct hearth_call *call,
                                             const struct hearth_ingest_errors_query *query,
                                             struct hearth_ingest_error **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(query != NULL && ret != NULL && ret_n != NULL);

    if (query->limit < 0 || query->limit > HEARTH_INGEST_ERRORS_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "limit %lld is not within 0 and %d",
                           (long long)query->limit, HEARTH_INGEST_ERRORS_MAX);
    }

    /* A refused upload belongs to no service. */
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    const struct hearth_ingest_error_filter filter = {
        .from_ms = query->from_ms,
        .client = query->client,
        .route = query->route,
        .limit = query->limit == 0 ? DEFAULT_LIMIT : query->limit,
    };

    return hearth_store_ingest_errors(HEARTH_CALL_SCOPE(call), &filter, ret, ret_n, err);
}
