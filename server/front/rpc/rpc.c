/*
 * rpc.c -- the life of a request between its transport and its handler.
 *
 * Requests whose work has begun and not ended are in flight; the stop of the server waits for them.
 * Server streams are never in flight: they have no end of their own. A collecting request is in
 * flight during each run.
 */
#include "rpc/rpc.h"

#include "hearth/base/hash.h"
#include "hearth/base/metrics.h"
#include "hearth/base/work_steps.h"
#include "hearth/codec/pb.h"
#include "hearth/engine/partial.h"

#include "rpc/audit_request.h"
#include "rpc/client_family.h"
#include "rpc/fair_share.h"
#include "rpc/front_internal.h"
#include "rpc/query_note.h"
#include "rpc/request_log.h"

#include <assert.h>
#include <poll.h>

/* Larger health checks go to a pool. */
#define INLINE_MAX_BODY_BYTES 4096u
#define CHAT_MAX_BYTES        (64u << 10) /* of a message, decompressed */
#define POLL_BATCH            256u
#define NOTES_MAX_BYTES       (64u << 10)
/* A query may use so much without taking it from the budget: small queries always run. */
#define QUERY_FREE_BYTES ((size_t)1 << 20)
/* Smaller bodies belong to queries, not to pushes, and are not counted. */
#define BODY_FREE_BYTES   4096u
#define LARGE_QUERY_BYTES ((size_t)32 << 20)
/* A smaller arena is kept while the answer is sent. */
#define KEEP_ARENA_BYTES ((size_t)64 << 10)
#define ANSWER_EARLY_NS  (500 * HEARTH_NS_PER_MS)
/* How long one stream may occupy a thread of a pool. */
#define TURN_NS (10 * HEARTH_NS_PER_MS)

static pthread_key_t g_inflater_key;
static pthread_once_t g_inflater_once = PTHREAD_ONCE_INIT;

static void free_inflater(void *inflater)
{
    hearth_inflater_free(inflater);
}

static void make_inflater_key(void)
{
    if (pthread_key_create(&g_inflater_key, free_inflater) != 0) {
        HEARTH_BUG("no thread-specific key left for the inflater");
    }
}

struct hearth_inflater *hearth_rpc_inflater(void)
{
    (void)pthread_once(&g_inflater_once, make_inflater_key);
    struct hearth_inflater *inflater = pthread_getspecific(g_inflater_key);
    if (inflater == NULL) {
        inflater = hearth_inflater_new();
        (void)pthread_setspecific(g_inflater_key, inflater);
    }
    return inflater;
}

void hearth_rpc_init(struct hearth_rpc *rpc, struct hearth_front *front,
                     const struct hearth_method *method)
{
    assert(front != NULL && method != NULL);
    memset(rpc, 0, sizeof *rpc);
    rpc->front = front;
    rpc->method = method;
    rpc->client = HEARTH_CLIENT_OTHER;
    rpc->fd = -1;
    rpc->started_mono_ns = hearth_clock_mono_ns();
    hearth_request_ids_init(&rpc->ids);
    hearth_cancel_init(&rpc->cancel, INT64_MAX);
    rpc->client_deadline_mono_ns = INT64_MAX;
    hearth_buf_init(&rpc->packed, 0);
    hearth_buf_init(&rpc->notes, NOTES_MAX_BYTES);

    /* An upload decodes into twice the size of its body at most, out of the memory of pushes. */
    const struct hearth_front_options *options = &front->options;
    if (method->pool == HEARTH_POOL_INGEST) {
        hearth_arena_init(&rpc->arena, 2 * (size_t)options->max_request_bytes + (1u << 20));
        rpc->arena.budget = options->push_memory;
        return;
    }

    /* A query has a part of the memory of queries, for its arena and its answer. */
    hearth_arena_init(&rpc->arena, (size_t)options->max_query_memory_bytes);
    hearth_budget_init_part(&rpc->memory, "max-query-memory-bytes",
                            (size_t)options->max_query_memory_bytes, QUERY_FREE_BYTES,
                            options->query_memory);
    rpc->arena.budget = rpc->packed.budget = &rpc->memory;
}

void hearth_rpc_release(struct hearth_rpc *rpc)
{
    assert(!rpc->is_in_flight && rpc->session == NULL);

    hearth_pieces_release(&rpc->pieces);
    hearth_arena_release(&rpc->arena);
    hearth_admitted_release(&rpc->caller);
    hearth_buf_release(&rpc->packed);
    hearth_buf_release(&rpc->notes);
    hearth_rpc_let_body_go(rpc);
    if (rpc->memory.is_part) { /* a query */
        hearth_budget_close(&rpc->memory);
    }
    hearth_fair_share_release(rpc);

    /* The ticker gives the memory of large queries back to the kernel. */
    if (rpc->memory.peak_bytes > LARGE_QUERY_BYTES) {
        atomic_store(&rpc->front->has_garbage, true);
    }
}

/* Memory that others use is given back later: the client may retry. A request that alone needs more
 * than the limit is refused for good. */
static enum hearth_status refuse_body(struct hearth_rpc *rpc, size_t n_bytes)
{
    const struct hearth_budget *budget = rpc->front->options.push_memory;

    if (n_bytes > budget->limit_bytes) {
        return HEARTH_FAIL(&rpc->err, HEARTH_TOO_LARGE,
                           "this request alone needs %zu bytes of memory; the limit (%s) is %zu",
                           n_bytes, budget->option, budget->limit_bytes);
    }

    hearth_ingest_drop_idle(rpc->front->ingest);

    return HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                       "request bodies and pushes in work need more than %s (%zu): retry later",
                       budget->option, budget->limit_bytes);
}

enum hearth_status hearth_rpc_judge_memory(struct hearth_rpc *rpc, size_t n_more_bytes,
                                           enum hearth_status status)
{
    size_t refused = hearth_budget_refused_bytes();
    if (status != HEARTH_NO_MEMORY || refused == 0 || rpc->method->pool != HEARTH_POOL_INGEST) {
        return status;
    }
    return refuse_body(rpc, refused + n_more_bytes + rpc->body_held +
                                hearth_arena_held_bytes(&rpc->arena));
}

enum hearth_status hearth_rpc_hold_body(struct hearth_rpc *rpc, size_t n_bytes)
{
    size_t held = n_bytes > BODY_FREE_BYTES ? n_bytes : 0;

    if (held <= rpc->body_held) {
        return HEARTH_OK;
    }
    if (!hearth_budget_take(rpc->front->options.push_memory, held - rpc->body_held)) {
        return refuse_body(rpc, held);
    }

    rpc->body_held = held;

    return HEARTH_OK;
}

enum hearth_status hearth_rpc_expect_body(struct hearth_rpc *rpc, int64_t n)
{
    struct hearth_budget *budget = rpc->front->options.push_memory;

    if (n <= (int64_t)BODY_FREE_BYTES) {
        return HEARTH_OK;
    }
    if (!hearth_budget_take(budget, (size_t)n)) {
        return refuse_body(rpc, (size_t)n);
    }

    hearth_budget_give(budget, (size_t)n);

    return HEARTH_OK;
}

void hearth_rpc_let_body_go(struct hearth_rpc *rpc)
{
    hearth_budget_give(rpc->front->options.push_memory, rpc->body_held);
    rpc->body_held = 0;
}

static int64_t deadline_after(int64_t timeout_ns)
{
    int64_t deadline;
    return timeout_ns == INT64_MAX ||
                   __builtin_add_overflow(hearth_clock_mono_ns(), timeout_ns, &deadline)
               ? INT64_MAX
               : deadline;
}

void hearth_rpc_set_timeout(struct hearth_rpc *rpc, int64_t timeout_ns)
{
    rpc->client_deadline_mono_ns = deadline_after(timeout_ns);
    if (hearth_rpc_is_collecting(rpc)) { /* the server's default limits runs: set_run_deadline */
        rpc->cancel.deadline_mono_ns = rpc->client_deadline_mono_ns;
        return;
    }
    if (timeout_ns == INT64_MAX && rpc->front->options.default_deadline_ns > 0) {
        timeout_ns = rpc->front->options.default_deadline_ns;
    }
    rpc->cancel.deadline_mono_ns = deadline_after(timeout_ns);
}

/* The deadline of one run of a collecting method; the time between messages is not limited. */
static void set_run_deadline(struct hearth_rpc *rpc)
{
    int64_t ours = rpc->front->options.default_deadline_ns;
    int64_t deadline = ours > 0 ? deadline_after(ours) : INT64_MAX;
    rpc->cancel.deadline_mono_ns =
        deadline < rpc->client_deadline_mono_ns ? deadline : rpc->client_deadline_mono_ns;
}

void hearth_rpc_add_header(struct hearth_rpc *rpc, const char *name, const char *value)
{
    assert(name != NULL);
    if (rpc->n_headers < HEARTH_RPC_MAX_HEADERS && value != NULL) {
        rpc->headers[rpc->n_headers++] = (struct hearth_rpc_header){name, value};
    }
}

/* ---- in flight ---- */

static void link_in_flight(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;
    assert(!rpc->is_in_flight);

    hearth_mutex_lock(&front->in_flight_lock);
    rpc->prev = NULL;
    rpc->next = front->in_flight.first;
    if (rpc->next != NULL) {
        rpc->next->prev = rpc;
    }

    front->in_flight.first = rpc;
    front->in_flight.n++;
    rpc->is_in_flight = true;
    hearth_mutex_unlock(&front->in_flight_lock);
}

static void unlink_in_flight(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;
    assert(rpc->is_in_flight);

    hearth_mutex_lock(&front->in_flight_lock);
    if (rpc->prev != NULL) {
        rpc->prev->next = rpc->next;
    } else {
        front->in_flight.first = rpc->next;
    }

    if (rpc->next != NULL) {
        rpc->next->prev = rpc->prev;
    }

    assert(front->in_flight.n > 0);
    front->in_flight.n--;
    rpc->is_in_flight = false;
    hearth_mutex_unlock(&front->in_flight_lock);
}

size_t hearth_rpc_in_flight(struct hearth_front *front)
{
    hearth_mutex_lock(&front->in_flight_lock);
    size_t n = front->in_flight.n;
    hearth_mutex_unlock(&front->in_flight_lock);
    return n;
}

void hearth_rpc_set_abandon(struct hearth_rpc *rpc, hearth_rpc_abandon_fn *abandon, void *work)
{
    hearth_mutex_lock(&rpc->front->in_flight_lock);
    assert(rpc->is_in_flight);
    rpc->abandon = abandon;
    rpc->work = work;
    hearth_mutex_unlock(&rpc->front->in_flight_lock);
}

/* The caller holds the in-flight lock. */
static void abandon_rpc(struct hearth_rpc *rpc, enum hearth_status why)
{
    hearth_rpc_abandon_fn *fn = rpc->abandon;
    hearth_mutex_assert_held(&rpc->front->in_flight_lock);
    assert(fn != NULL && rpc->is_in_flight);

    rpc->abandon = NULL;
    fn(rpc, rpc->work, why);
}

void hearth_rpc_cancel_all(struct hearth_front *front)
{
    hearth_mutex_lock(&front->in_flight_lock);
    for (struct hearth_rpc *rpc = front->in_flight.first; rpc != NULL; rpc = rpc->next) {
        atomic_store(&rpc->cancel.cancelled, true);
        if (rpc->abandon != NULL) {
            abandon_rpc(rpc, HEARTH_UNAVAILABLE);
        }
    }
    hearth_mutex_unlock(&front->in_flight_lock);
}

/* Marks the requests of descriptors whose client has left as cancelled. */
static void poll_batch(struct pollfd *fds, struct hearth_rpc **rpcs, nfds_t n)
{
    if (n == 0 || poll(fds, n, 0) <= 0) {
        return;
    }
    for (nfds_t i = 0; i < n; i++) {
        if ((fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
            atomic_store(&rpcs[i]->cancel.cancelled, true);
        }
    }
}

/* OK while the client waits for the answer; otherwise why it does not. */
static enum hearth_status check_awaited(struct hearth_rpc *rpc)
{
    HEARTH_TRY(hearth_cancel_check(&rpc->cancel, NULL));
    int64_t deadline = rpc->client_deadline_mono_ns;
    if (deadline == INT64_MAX) {
        return HEARTH_OK;
    }
    int64_t early = (deadline - rpc->started_mono_ns) / 5;
    early = early > ANSWER_EARLY_NS ? ANSWER_EARLY_NS : early;
    return hearth_clock_mono_ns() < deadline - early ? HEARTH_OK : HEARTH_DEADLINE_EXCEEDED;
}

/* The caller holds the in-flight lock. The deadline of a request that can be abandoned is final. */
static void abandon_overdue(struct hearth_front *front)
{
    hearth_mutex_assert_held(&front->in_flight_lock);

    for (struct hearth_rpc *rpc = front->in_flight.first; rpc != NULL; rpc = rpc->next) {
        enum hearth_status why = rpc->abandon != NULL ? check_awaited(rpc) : HEARTH_OK;
        if (why != HEARTH_OK) {
            abandon_rpc(rpc, why);
        }
    }
}

/*
 * libmicrohttpd does not poll a connection whose request is suspended, so the server does. A
 * request leaves the list before its connection is resumed: a descriptor seen under the lock is
 * open.
 */
void hearth_rpc_cancel_gone(struct hearth_front *front)
{
    struct pollfd fds[POLL_BATCH];
    struct hearth_rpc *rpcs[POLL_BATCH];
    nfds_t n = 0;

    hearth_mutex_lock(&front->in_flight_lock);
    for (struct hearth_rpc *rpc = front->in_flight.first; rpc != NULL; rpc = rpc->next) {
        if (rpc->fd >= 0) {
            fds[n] = (struct pollfd){.fd = rpc->fd, .events = POLLRDHUP};
            rpcs[n++] = rpc;
        }
        if (n == POLL_BATCH) {
            poll_batch(fds, rpcs, n);
            n = 0;
        }
    }

    poll_batch(fds, rpcs, n);
    abandon_overdue(front);
    hearth_mutex_unlock(&front->in_flight_lock);
}

/* ---- end ---- */

enum hearth_status hearth_rpc_answer_in_pieces(struct hearth_rpc *rpc, struct hearth_pieces pieces)
{
    assert(pieces.more != NULL && rpc->pieces.more == NULL);
    rpc->pieces = pieces;
    return hearth_pieces_begin(&rpc->pieces, rpc->pieces_way, &rpc->cancel, &rpc->packed,
                               &rpc->is_gzip, &rpc->err);
}

static bool write_more_json(void *json, size_t n_bytes, struct hearth_buf *out)
{
    return hearth_pb_json_more(json, n_bytes, out);
}

static void release_json(void *json)
{
    hearth_pb_json_release(json);
}

static enum hearth_status check_packed(struct hearth_rpc *rpc)
{
    if (!hearth_buf_failed(&rpc->packed)) {
        return HEARTH_OK;
    }

    return rpc->packed.budget != NULL
               ? HEARTH_FAIL_BUDGET(&rpc->err, rpc->packed.budget)
               : HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the answer");
}

static enum hearth_status encode_json(struct hearth_rpc *rpc)
{
    const struct ProtobufCMessage *answer = rpc->answer;

    /* JSON is made from a message: decode an answer that the handler has encoded. */
    if (rpc->is_packed) {
        struct ProtobufCMessage *message;
        HEARTH_TRY(check_packed(rpc));
        HEARTH_TRY(hearth_pb_unpack(rpc->method->response, hearth_buf_view(&rpc->packed),
                                    &rpc->arena, &message, &rpc->err));
        answer = message;
        hearth_buf_release(&rpc->packed);
    }

    if (answer == NULL) {
        hearth_buf_cstr(&rpc->packed, "{}");
        return HEARTH_OK;
    }

    /* A large text is made in pieces. */
    struct hearth_pb_json *json = hearth_pb_json_new(answer, &rpc->arena);
    if (json == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return hearth_rpc_answer_in_pieces(
        rpc,
        (struct hearth_pieces){.more = write_more_json, .release = release_json, .context = json});
}

static enum hearth_status encode_answer(struct hearth_rpc *rpc)
{
    if (rpc->http == NULL && rpc->codec == HEARTH_RPC_JSON) {
        HEARTH_TRY(encode_json(rpc));
    } else if (rpc->answer != NULL) {
        hearth_pb_pack(rpc->answer, &rpc->packed);
    }

    return check_packed(rpc);
}

/* The answer of a run, if any, when both sides stream. Other streams encode their messages
 * themselves. */
static enum hearth_status encode_stream_message(struct hearth_rpc *rpc)
{
    bool has_answer = rpc->answer != NULL || rpc->is_packed;
    rpc->has_message = has_answer && hearth_rpc_is_collecting(rpc);
    return rpc->has_message ? encode_answer(rpc) : HEARTH_OK;
}

/*
 * The answer is in `packed`, and a slow client may take minutes to read it: the data it was made
 * from is freed now, unless the rest of the answer is made from it. Header values and the long
 * message live in the arena and are copied to a new one.
 */
static void shed_arena(struct hearth_rpc *rpc)
{
    rpc->request = rpc->answer = NULL;
    rpc->partial = NULL;
    if (rpc->arena.used_bytes <= KEEP_ARENA_BYTES || rpc->pieces.more != NULL) {
        return;
    }

    struct hearth_arena kept;
    hearth_arena_init(&kept, 0);
    size_t n = 0;
    for (size_t i = 0; i < rpc->n_headers; i++) {
        const char *value = rpc->headers[i].value;
        value = hearth_arena_strndup(&kept, value, strlen(value));
        if (value != NULL) {
            rpc->headers[n++] = (struct hearth_rpc_header){rpc->headers[i].name, value};
        }
    }

    rpc->n_headers = n;
    if (rpc->long_message != NULL) {
        rpc->long_message =
            hearth_arena_strndup(&kept, rpc->long_message, strlen(rpc->long_message));
    }

    hearth_arena_release(&rpc->arena);
    rpc->arena = kept;
}

/* The answer is not made from the session. */
static void end_session(struct hearth_rpc *rpc)
{
    if (rpc->session != NULL) {
        assert(rpc->free_session != NULL);
        rpc->free_session(rpc->session);
        rpc->session = NULL;
    }
}

/* What the answer leaves out is its first note, and so never one of those that are only counted. */
static void note_partial(struct hearth_rpc *rpc)
{
    char line[HEARTH_PARTIAL_NOTE_BYTES];
    struct hearth_buf all;

    hearth_partial_note(rpc->partial, line);
    if (line[0] == '\0') {
        return;
    }

    hearth_buf_init(&all, 0);
    hearth_buf_printf(&all, "%s\n", line);
    hearth_buf_str(&all, hearth_buf_view(&rpc->notes));
    hearth_buf_release(&rpc->notes);
    rpc->notes = all;
    hearth_metric_add(HEARTH_M_PARTIAL_ANSWERS, 1);
}

void hearth_rpc_end(struct hearth_rpc *rpc, enum hearth_status status)
{
    if (rpc->drop_body != NULL) {
        rpc->drop_body(rpc);
        rpc->drop_body = NULL;
    }

    /* Clients do not retry a call that is CANCELLED. */
    if (status == HEARTH_CANCELLED && atomic_load(&rpc->front->is_stopping)) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    if (rpc->is_audited) {
        status = hearth_rpc_write_audit(rpc, status);
    }

    /* Encode the answer; that may fail, too. */
    if (status == HEARTH_OK) {
        bool is_stream = (rpc->method->flags & HEARTH_METHOD_STREAM) != 0;
        int64_t began_ns = hearth_clock_mono_ns();
        status = is_stream ? encode_stream_message(rpc) : encode_answer(rpc);
        hearth_work_step_add("encode the answer", began_ns);
    }

    if (status == HEARTH_OK && rpc->partial != NULL) {
        note_partial(rpc);
    }

    rpc->status = status;
    hearth_fair_share_count(rpc);
    hearth_query_note(rpc);

    /* Free what is not needed to send the answer. */
    if (status != HEARTH_OK) {
        hearth_pieces_release(&rpc->pieces);
    }
    shed_arena(rpc);
    end_session(rpc);
    if (status != HEARTH_OK) {
        hearth_buf_release(&rpc->packed);
    } else {
        rpc->n_notes =
            hearth_notes_encode(hearth_buf_view(&rpc->notes), &rpc->arena, rpc->note_values);
    }

    if (rpc->memory.is_part) {
        hearth_budget_settle(&rpc->memory);
    }

    /* From `finish` on, the request belongs to its transport. */
    hearth_request_log(rpc, hearth_clock_mono_ns());
    if (rpc->is_in_flight) {
        unlink_in_flight(rpc);
    }
    rpc->finish(rpc);
}

void hearth_rpc_end_now(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, rpc->later);
}

static void run_end_job(struct hearth_job *job)
{
    hearth_rpc_end_now(HEARTH_CONTAINER_OF(job, struct hearth_rpc, job));
}

void hearth_rpc_end_later(struct hearth_rpc *rpc, enum hearth_status status)
{
    rpc->later = status;

    /* The transport's thread may not wait for the database, as the audit log does. */
    if (rpc->end_soon != NULL && !rpc->is_audited) {
        rpc->end_soon(rpc);
        return;
    }

    rpc->job.run = run_end_job;
    /* The queue has no limit, and is stopped only when no request is in flight. */
    if (!hearth_workers_submit(rpc->front->finishers, &rpc->job)) {
        HEARTH_BUG("a request ended after its front had stopped");
    }
}

/* Resets the request for its next run. The stream may now be quiet for days, so all memory is
 * freed. */
static void reset_run(struct hearth_rpc *rpc)
{
    rpc->request = rpc->answer = NULL;
    rpc->is_packed = false;
    rpc->n_headers = 0;
    rpc->cancel.deadline_mono_ns = rpc->client_deadline_mono_ns;
    hearth_buf_release(&rpc->notes);
    hearth_arena_release(&rpc->arena);
    rpc->long_message = NULL;
    rpc->partial = NULL;
    rpc->err = (struct hearth_err)HEARTH_ERR_INIT;
}

void hearth_rpc_next(struct hearth_rpc *rpc)
{
    HEARTH_ASSERT(hearth_rpc_is_collecting(rpc) && !rpc->said_all);
    enum hearth_status status = HEARTH_OK;
    if (atomic_load(&rpc->front->is_stopping)) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping");
    } else if ((rpc->method->flags & HEARTH_METHOD_STREAM) != 0) {
        status = encode_stream_message(rpc);
    }

    rpc->n_messages++;
    hearth_metric_add_label(HEARTH_M_STREAM_MESSAGES, hearth_str_c(rpc->method->path + 1), 1);
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    reset_run(rpc);
    unlink_in_flight(rpc);
    rpc->read_on(rpc);
}

/* ---- start ---- */

static enum hearth_status decode_request(struct hearth_rpc *rpc, size_t max_bytes)
{
    HEARTH_TRY(hearth_cancel_check(&rpc->cancel, &rpc->err));
    if (rpc->http != NULL) {
        return HEARTH_OK; /* the handler of a plain route reads the body */
    }

    /* Unwrap, decompress, decode. */
    assert(rpc->drop_body != NULL);
    if (rpc->open_body != NULL) {
        HEARTH_TRY(rpc->open_body(rpc));
    }
    if ((rpc->method->flags & HEARTH_METHOD_WIRE) != 0) {
        return HEARTH_OK;
    }

    struct hearth_inflater *inflater = hearth_rpc_inflater();
    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    const struct hearth_rpc_body body = {rpc->body, rpc->codec, rpc->compression, max_bytes,
                                         inflater};
    struct ProtobufCMessage *message;
    HEARTH_TRY(hearth_body_decode(rpc->method->request, &body, &rpc->arena, &message, &rpc->err));
    rpc->request = message;

    /* The message holds copies, so a large body need not live as long as the work. */
    rpc->drop_body(rpc);
    rpc->drop_body = NULL;

    return HEARTH_OK;
}

/* A push whose deadline passed before its work began may be repeated: tell the client so. */
static enum hearth_status allow_retry_of_push(struct hearth_rpc *rpc, enum hearth_status status)
{
    if (status != HEARTH_DEADLINE_EXCEEDED || rpc->method->pool != HEARTH_POOL_INGEST) {
        return status;
    }
    return HEARTH_FAIL(
        &rpc->err, HEARTH_UNAVAILABLE,
        "the deadline (the request's own, or request-timeout) passed before a thread "
        "took the request; nothing of it was stored: retry");
}

/* For the list of ingest errors. Messages of streams are many and small: they are not hashed. */
static void hash_upload_body(struct hearth_rpc *rpc)
{
    const size_t max = HEARTH_INGEST_ERROR_BODY_BYTES;
    size_t n = rpc->body.n < max ? rpc->body.n : max;

    if ((rpc->method->flags & (HEARTH_METHOD_UPLOAD | HEARTH_METHOD_OTLP)) != 0 && n > 0) {
        rpc->body_hash = hearth_hash64(rpc->body.p, n, 0);
    }
}

/* Before each message of a stream: the caller's token may have ended since it began. */
static enum hearth_status check_caller(struct hearth_rpc *rpc)
{
    return hearth_rpc_is_collecting(rpc)
               ? hearth_front_readmit(rpc->method, &rpc->caller, &rpc->err)
               : HEARTH_OK;
}

static enum hearth_status open_request(struct hearth_rpc *rpc)
{
    HEARTH_TRY(check_caller(rpc));
    return rpc->said_all ? hearth_cancel_check(&rpc->cancel, &rpc->err)
                         : decode_request(rpc, (size_t)rpc->front->options.max_request_bytes);
}

static void work_on_request(struct hearth_rpc *rpc)
{
    hash_upload_body(rpc);
    (void)hearth_budget_refused_bytes(); /* reset: it may be left from another request */
    enum hearth_status status = open_request(rpc);
    if (status != HEARTH_OK) {
        status = hearth_rpc_judge_memory(rpc, 0, status);
        hearth_rpc_end(rpc, allow_retry_of_push(rpc, status));
        return;
    }

    rpc->is_audited = (rpc->method->flags & HEARTH_METHOD_AUDIT) != 0;
    rpc->method->handle(rpc);
}

/* A stream lasts as long as its client wants: it has no span. */
static bool begin_own_span(struct hearth_rpc *rpc)
{
    const struct hearth_front *front = rpc->front;

    return front->own_traces != NULL && !hearth_rpc_is_collecting(rpc) &&
           (rpc->method->flags & HEARTH_METHOD_STREAM) == 0 &&
           hearth_request_ids_begin_span(&rpc->ids, front->options.own_traces.one_in);
}

static void run_request(struct hearth_rpc *rpc)
{
    bool is_ingest = rpc->method->pool == HEARTH_POOL_INGEST;
    rpc->run_mono_ns = hearth_clock_mono_ns();
    hearth_metric_observe_ns(HEARTH_M_POOL_WAIT,
                             is_ingest ? HEARTH_STR("ingest") : HEARTH_STR("query"),
                             rpc->run_mono_ns - rpc->submitted_mono_ns);
    if (!begin_own_span(rpc)) {
        work_on_request(rpc);
        return;
    }

    /* The request may be freed before its handler returns, so the steps are here. */
    struct hearth_work_steps steps;
    hearth_work_steps_begin(&steps, rpc);
    hearth_work_step_add("wait for a thread", rpc->submitted_mono_ns);
    work_on_request(rpc);
    hearth_work_steps_end();
}

static void run_request_job(struct hearth_job *job)
{
    run_request(HEARTH_CONTAINER_OF(job, struct hearth_rpc, job));
}

/*
 * The turn of one stream on a pool's thread. If the next message is there when a handler is done
 * with one, the handler's hearth_rpc_next leads back to hearth_rpc_start on this thread. The turn
 * then continues when the handler has returned: without recursion, and without waking another
 * thread for each message. If the handler calls hearth_rpc_next on another thread, or the turn is
 * over, the request is submitted to the pool again.
 */
struct stream_turn {
    struct hearth_rpc *rpc;
    int64_t until_mono_ns; /* when the turn is over */
    bool continues;        /* set by continue_turn: run the request once more */
};

static _Thread_local struct stream_turn *g_turn; /* NULL: this thread runs no stream */

static void run_stream_turn(struct hearth_job *job)
{
    struct hearth_rpc *rpc = HEARTH_CONTAINER_OF(job, struct hearth_rpc, job);
    struct stream_turn turn = {.rpc = rpc, .until_mono_ns = hearth_clock_mono_ns() + TURN_NS};
    assert(g_turn == NULL);

    g_turn = &turn;
    do {
        turn.continues = false;
        run_request(rpc); /* unless `continues` is set, the request may be freed by now */
    } while (turn.continues);
    g_turn = NULL;
}

/* True if this thread runs the turn of the request, and will run it for the next message, too. */
static bool continue_turn(const struct hearth_rpc *rpc)
{
    if (g_turn == NULL || g_turn->rpc != rpc || hearth_clock_mono_ns() >= g_turn->until_mono_ns) {
        return false;
    }
    g_turn->continues = true;
    return true;
}

enum hearth_status hearth_rpc_chat(struct hearth_rpc *rpc)
{
    assert((rpc->method->flags & HEARTH_METHOD_CHAT) != 0);

    hearth_arena_reset(&rpc->arena);
    rpc->answer = NULL;
    rpc->body_bytes += rpc->body.n;
    if (rpc->body.n > INLINE_MAX_BODY_BYTES) {
        return HEARTH_FAIL(&rpc->err, HEARTH_RESOURCE_EXHAUSTED,
                           "message of %zu bytes; the limit of this method is %u bytes",
                           rpc->body.n, INLINE_MAX_BODY_BYTES);
    }

    HEARTH_TRY(decode_request(rpc, CHAT_MAX_BYTES));
    rpc->method->handle(rpc);

    return rpc->status == HEARTH_OK ? encode_answer(rpc) : rpc->status;
}

bool hearth_rpc_is_inline(const struct hearth_rpc *rpc)
{
    return (rpc->method->flags & HEARTH_METHOD_INLINE) != 0 &&
           rpc->body.n <= INLINE_MAX_BODY_BYTES && rpc->compression == HEARTH_COMPRESSION_NONE;
}

/* A tenant with fewer requests needs the place of this one in the queue. */
static void drop_request(struct hearth_job *job)
{
    struct hearth_rpc *rpc = HEARTH_CONTAINER_OF(job, struct hearth_rpc, job);
    hearth_rpc_end_later(rpc, hearth_fair_share_refuse(rpc, HEARTH_QUEUE_FULL));
}

void hearth_rpc_start(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;
    assert(rpc->transport != NULL && rpc->peer_text != NULL && rpc->finish != NULL);
    assert(!hearth_rpc_is_collecting(rpc) || rpc->read_on != NULL);

    rpc->submitted_mono_ns = hearth_clock_mono_ns();
    rpc->body_bytes += rpc->body.n;
    rpc->job.run = run_request_job;
    if (hearth_rpc_is_collecting(rpc)) {
        rpc->job.run = run_stream_turn;
        set_run_deadline(rpc);
    }
    if (hearth_rpc_is_collecting(rpc) || (rpc->method->flags & HEARTH_METHOD_STREAM) == 0) {
        link_in_flight(rpc);
    }

    /* Run it on this thread, if that is allowed. */
    if (continue_turn(rpc)) {
        return;
    }
    if (hearth_rpc_is_inline(rpc)) {
        run_request(rpc);
        return;
    }

    /* Otherwise a pool runs it. */
    struct hearth_lane_key key;
    hearth_fair_share_begin(rpc, &key);
    rpc->job.drop = drop_request;
    bool is_ingest = rpc->method->pool == HEARTH_POOL_INGEST;
    enum hearth_queued outcome = hearth_workers_submit_as(
        is_ingest ? front->ingest_pool : front->query_pool, &rpc->job, &key);
    if (outcome != HEARTH_QUEUED) {
        hearth_rpc_end(rpc, hearth_fair_share_refuse(rpc, outcome));
    }
}

void hearth_rpc_refuse(struct hearth_rpc *rpc, enum hearth_status status)
{
    assert(status != HEARTH_OK);
    hearth_rpc_end(rpc, status);
}
