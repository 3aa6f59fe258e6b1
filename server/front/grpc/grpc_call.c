/*
 * grpc_call.c -- calls as a state machine over tags. Runs on the threads of the completion queue,
 * except `finish`, `read_on` and `stream_send`, which run on the thread where the work ends.
 *
 * Collecting calls read ahead: while a message is in work, the next ones are read as long as there
 * is room. So the tag of a read may come while another thread uses the rpc, or after the call has
 * ended. Each read therefore holds a reference, and the members it shares with the work are guarded
 * by grpc->lock. The thread that sets is_running owns the rpc until it clears it.
 *
 * A client that never sends the only message of its call, or never takes the answer, would hold the
 * call for ever. So these waits are listed in grpc->waits, unless the client's own deadline, which
 * the core enforces, is earlier.
 */
#include "grpc/grpc_call.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "grpc/read_ahead.h"
#include "grpc/svc_health.h"
#include "net/acceptor.h"
#include "net/peer_caller.h"
#include "rpc/agent_methods.h"
#include "rpc/client_family.h"
#include "rpc/front_internal.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include <assert.h>

#define PUSHBACK_MS           "1000"
#define LONG_PUSHBACK_MS      "30000" /* for errors that pass, but not at once */
#define COPY_BELOW_BYTES      256u
#define GZIP_MIN_BYTES        1024u
#define HEADER_OVERHEAD_BYTES 32u /* as RFC 9113 counts */
#define MAX_METADATA          (HEARTH_RPC_MAX_HEADERS + HEARTH_MAX_NOTES + 2)

enum call_state {
    CALL_NEW,     /* requested from the core */
    CALL_READING, /* began; waits for a message */
    CALL_WORKING, /* a message is with the rpc's handler */
    CALL_SENDING, /* the last batch, with the status, is on its way */
};

struct call {
    struct hearth_rpc rpc; /* initialised if has_rpc */
    struct hearth_grpc *grpc;
    grpc_call *call; /* NULL while NEW */
    grpc_call_details details;
    grpc_metadata_array metadata;

    /* Buffers. */
    grpc_byte_buffer *incoming; /* out-parameter of the read that is under way */
    grpc_byte_buffer *body;     /* the message in work, as received */
    struct hearth_buf joined;   /* the message in work in one piece, if it came in several slices */
    grpc_byte_buffer *out;      /* the message that is being sent */
    grpc_slice status_text;     /* if has_status_text; must live until the last batch is done */
    grpc_metadata trailing[MAX_METADATA], leading[MAX_METADATA];

    /* Tags: a new call, the client's close, a read, the last batch, a message of a stream, the end
     * of the work. */
    struct hearth_op op_new, op_close, op_read, op_send, op_stream, op_end;

    int was_cancelled; /* out-parameter of the watch for the client's close */
    _Atomic int refs;  /* chains of operations that have not ended */
    /* Incremented (release) before each batch, loaded (acquire) by the function of its tag. The
     * core keeps this order, but neither the C standard nor ThreadSanitizer know it. */
    _Atomic int n_batches;
    enum call_state state; /* changed by the thread that owns the rpc */
    bool has_rpc, has_status_text;
    bool sent_leading;       /* the initial metadata were sent */
    bool is_counted;         /* counted in grpc->n_working */
    bool is_late;            /* began when the server was stopping: not counted */
    struct hearth_peer peer; /* a copy, because the connection may close before the call ends */

    struct hearth_client_wait wait; /* guarded by grpc->lock */
    bool is_awaiting;               /* `wait` was listed; used by the thread that owns the rpc */

    /* Open calls (chats and collecting calls); guarded by grpc->lock. */
    struct call *prev, *next;   /* in grpc->open */
    bool is_open;               /* it is in grpc->open */
    bool is_waiting;            /* collecting: nothing in work, the next message has not come */
    int64_t wait_until_mono_ns; /* if is_waiting: when it is overdue; INT64_MAX: never */

    /* Collecting calls; guarded by grpc->lock. */
    struct hearth_ahead ahead; /* messages that were read and are not in work */
    int n_ends;                /* reads that returned no message: 0, 1, 2 (see take_step) */
    bool is_reading;           /* a read is under way, and holds a reference */
    bool is_running;           /* a thread owns the rpc for a run, or is about to */
    bool is_over;              /* the request has ended: messages are dropped */
};

static struct hearth_peers *get_peers(const struct call *call)
{
    return hearth_acceptor_peers(call->grpc->front->acceptor);
}

static struct hearth_str view_slice(const grpc_slice *slice)
{
    return hearth_str_n((const char *)GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
}

/* A call counts from the start of its work until its answer is sent: the stop waits for it. */
static void set_counted(struct call *call, bool is_counted)
{
    if (call->is_counted != is_counted) {
        call->is_counted = is_counted;
        (void)atomic_fetch_add(&call->grpc->n_working, is_counted ? 1 : -1);
    }
}

/* ---- open calls: they last as long as their clients want ---- */

static bool is_chat(const struct call *call)
{
    return (call->rpc.method->flags & HEARTH_METHOD_CHAT) != 0;
}

static bool is_collecting_call(const struct call *call)
{
    return hearth_rpc_is_collecting(&call->rpc);
}

static void count_open_stream(const struct call *call, int64_t n)
{
    hearth_metric_add_label(HEARTH_M_OPEN_STREAMS, hearth_str_c(call->rpc.method->path + 1), n);
}

static enum hearth_status link_open(struct call *call, struct hearth_err *err)
{
    struct hearth_grpc *grpc = call->grpc;

    hearth_mutex_lock(&grpc->lock);
    call->is_open = !atomic_load(&grpc->is_stopping);
    if (call->is_open) {
        call->next = grpc->open;
        if (call->next != NULL) {
            call->next->prev = call;
        }
        grpc->open = call;
    }

    hearth_mutex_unlock(&grpc->lock);
    if (!call->is_open) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    count_open_stream(call, 1);

    return HEARTH_OK;
}

static void unlink_open(struct call *call)
{
    struct hearth_grpc *grpc = call->grpc;
    assert(call->is_open);

    hearth_mutex_lock(&grpc->lock);
    *(call->prev != NULL ? &call->prev->next : &grpc->open) = call->next;
    if (call->next != NULL) {
        call->next->prev = call->prev;
    }
    hearth_mutex_unlock(&grpc->lock);
    count_open_stream(call, -1);
}

void hearth_call_end_open(struct hearth_grpc *grpc)
{
    hearth_mutex_lock(&grpc->lock);
    for (struct call *call = grpc->open; call != NULL; call = call->next) {
        if (call->is_waiting || is_chat(call)) {
            (void)grpc_call_cancel_with_status(call->call, GRPC_STATUS_UNAVAILABLE,
                                               "the server is stopping", NULL);
        }
    }
    hearth_mutex_unlock(&grpc->lock);
}

void hearth_call_end_overdue(struct hearth_grpc *grpc, int64_t now_mono_ns)
{
    hearth_mutex_lock(&grpc->lock);
    for (struct call *call = grpc->open; call != NULL; call = call->next) {
        if (call->is_waiting && call->wait_until_mono_ns <= now_mono_ns) {
            (void)grpc_call_cancel_with_status(call->call, GRPC_STATUS_DEADLINE_EXCEEDED,
                                               "the client sent no message within request-timeout",
                                               NULL);
            call->wait_until_mono_ns = INT64_MAX;
        }
    }

    hearth_mutex_unlock(&grpc->lock);
}

static void unref_grpc_call(struct call *call)
{
    if (atomic_fetch_sub(&call->refs, 1) > 1) {
        return;
    }
    assert(!call->is_reading && !call->is_counted && call->ahead.n == 0);

    if (call->is_open) {
        unlink_open(call);
    }

    if (call->has_rpc) {
        hearth_rpc_release(&call->rpc);
    }

    if (call->call != NULL) {
        grpc_call_unref(call->call);
    }

    grpc_call_details_destroy(&call->details);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_byte_buffer_destroy(call->body);
    grpc_byte_buffer_destroy(call->out);
    hearth_buf_release(&call->joined);
    if (call->has_status_text) {
        grpc_slice_unref(call->status_text);
    }

    hearth_mem_free(call);
}

static void start_batch(struct call *call, const grpc_op *ops, size_t n, struct hearth_op *tag)
{
    (void)atomic_fetch_add_explicit(&call->n_batches, 1, memory_order_release);
    grpc_call_error rc = grpc_call_start_batch(call->call, ops, n, tag, NULL);
    HEARTH_ASSERT(rc == GRPC_CALL_OK); /* otherwise this file misuses the core */
}

static void start_read(struct call *call)
{
    assert(call->incoming == NULL);
    grpc_op read = {.op = GRPC_OP_RECV_MESSAGE};
    read.data.recv_message.recv_message = &call->incoming;
    hearth_peers_reading(get_peers(call), &call->peer, 1);
    start_batch(call, &read, 1, &call->op_read);
}

/* To be called first in the function of every tag: see n_batches. */
static void acquire_batch(struct call *call)
{
    (void)atomic_load_explicit(&call->n_batches, memory_order_acquire);
}

/* ---- waits for the client ---- */

/* To be called before the batch whose end ends the wait: after it, the call may be freed. */
static void begin_wait(struct call *call, int64_t until_mono_ns)
{
    struct hearth_grpc *grpc = call->grpc;

    if (until_mono_ns == INT64_MAX || call->rpc.client_deadline_mono_ns <= until_mono_ns) {
        return;
    }

    call->is_awaiting = true;
    hearth_mutex_lock(&grpc->lock);
    hearth_client_waits_add(&grpc->waits, &call->wait, call->call, until_mono_ns);
    hearth_mutex_unlock(&grpc->lock);
}

static void end_wait(struct call *call)
{
    struct hearth_grpc *grpc = call->grpc;

    if (call->is_awaiting) {
        call->is_awaiting = false;
        hearth_mutex_lock(&grpc->lock);
        hearth_client_waits_remove(&grpc->waits, &call->wait);
        hearth_mutex_unlock(&grpc->lock);
    }
}

/* ---- answering ---- */

static void on_sent(struct hearth_op *op, bool ok)
{
    struct call *call = HEARTH_CONTAINER_OF(op, struct call, op_send);
    (void)ok; /* false: the client has left */
    acquire_batch(call);
    end_wait(call);
    set_counted(call, false);
    unref_grpc_call(call);
}

/* Takes the bytes without a copy, unless a copy is cheaper or fits into the slice itself. */
static grpc_byte_buffer *make_byte_buffer(struct hearth_buf *packed)
{
    grpc_slice slice;

    if (packed->n < COPY_BELOW_BYTES) {
        slice = grpc_slice_from_copied_buffer(packed->p, packed->n);
    } else {
        size_t n;
        char *bytes = hearth_buf_take(packed, &n);
        slice = grpc_slice_new(bytes, n, hearth_mem_free);
    }

    grpc_byte_buffer *out = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);

    return out;
}

static grpc_metadata make_metadata(const char *name, const char *value)
{
    return (grpc_metadata){.key = grpc_slice_from_static_string(name),
                           .value = grpc_slice_from_static_string(value)};
}

static grpc_op make_leading_op(struct call *call)
{
    const struct hearth_rpc *rpc = &call->rpc;

    assert(!call->sent_leading && rpc->n_headers <= MAX_METADATA);

    for (size_t i = 0; i < rpc->n_headers; i++) {
        /* Values live in the request's arena, which lives as long as the call. */
        call->leading[i] = make_metadata(rpc->headers[i].name, rpc->headers[i].value);
    }

    call->sent_leading = true;
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};

    /* Compress only if the client compresses: all clients accept gzip, also those on the same
     * machine, for which it costs more than it saves. */
    if (rpc->packed.n >= GZIP_MIN_BYTES && rpc->compression != HEARTH_COMPRESSION_NONE) {
        op.data.send_initial_metadata.maybe_compression_level.is_set = 1;
        op.data.send_initial_metadata.maybe_compression_level.level = GRPC_COMPRESS_LEVEL_LOW;
    }

    op.data.send_initial_metadata.metadata = call->leading;
    op.data.send_initial_metadata.count = rpc->n_headers;

    return op;
}

static grpc_op make_status_op(struct call *call)
{
    const struct hearth_rpc *rpc = &call->rpc;
    size_t n_trailing = 0;

    call->trailing[n_trailing++] = make_metadata(HEARTH_REQUEST_ID_HEADER, rpc->ids.request_id);
    if (rpc->status == HEARTH_UNAVAILABLE) {
        call->trailing[n_trailing++] = make_metadata("grpc-retry-pushback-ms", PUSHBACK_MS);
    } else if (rpc->status != HEARTH_OK && rpc->err.is_passing) {
        call->trailing[n_trailing++] = make_metadata("grpc-retry-pushback-ms", LONG_PUSHBACK_MS);
    }

    for (size_t i = 0; i < rpc->n_notes; i++) {
        call->trailing[n_trailing++] = make_metadata("hearth-note", rpc->note_values[i]);
    }

    grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
    int code = hearth_status_grpc(rpc->status);
    op.data.send_status_from_server.status = (grpc_status_code)code;
    op.data.send_status_from_server.trailing_metadata = call->trailing;
    op.data.send_status_from_server.trailing_metadata_count = n_trailing;
    if (rpc->status != HEARTH_OK) {
        call->status_text = grpc_slice_from_copied_string(hearth_rpc_message(rpc));
        call->has_status_text = true;
        op.data.send_status_from_server.status_details = &call->status_text;
    }

    return op;
}

/* Drops messages that were read ahead; the message of a read that is under way will be dropped. */
static void end_collecting(struct call *call)
{
    struct hearth_grpc *grpc = call->grpc;
    hearth_mutex_lock(&grpc->lock);
    call->is_over = true;
    call->is_waiting = false;
    hearth_mutex_unlock(&grpc->lock);
    hearth_ahead_clear(&call->ahead, grpc->front->options.push_memory);
}

static void finish_call(struct hearth_rpc *rpc)
{
    struct call *call = HEARTH_CONTAINER_OF(rpc, struct call, rpc);

    HEARTH_ASSERT(call->state == CALL_READING || call->state == CALL_WORKING);

    /* The request is with the transport again. */
    call->state = CALL_SENDING;
    set_counted(call, !call->is_late);
    if (is_collecting_call(call)) {
        end_collecting(call);
    }

    /* Everything that is still to be sent, in one batch. */
    const struct hearth_front_options *options = &rpc->front->options;
    begin_wait(call, hearth_client_answer_limit(hearth_clock_mono_ns(), rpc->packed.n,
                                                options->head_timeout_ns, options->min_body_rate));
    grpc_op ops[3];
    size_t n = 0;
    if (!call->sent_leading) {
        ops[n++] = make_leading_op(call);
    }

    bool is_stream = (rpc->method->flags & HEARTH_METHOD_STREAM) != 0;
    if (rpc->status == HEARTH_OK && (!is_stream || rpc->has_message)) {
        call->out = make_byte_buffer(&rpc->packed);
        ops[n] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
        ops[n++].data.send_message.send_message = call->out;
    }

    ops[n++] = make_status_op(call);
    start_batch(call, ops, n, &call->op_send);
}

/*
 * The end of a push comes from a committer. A batch without operations brings it to the thread of
 * the completion queue. If the answer were sent from a third thread, both would wait for the core's
 * locks, and the queue would be woken twice.
 */
static void end_soon(struct hearth_rpc *rpc)
{
    struct call *call = HEARTH_CONTAINER_OF(rpc, struct call, rpc);
    start_batch(call, NULL, 0, &call->op_end);
}

static void on_end(struct hearth_op *op, bool ok)
{
    struct call *call = HEARTH_CONTAINER_OF(op, struct call, op_end);
    (void)ok;
    acquire_batch(call);
    hearth_rpc_end_now(&call->rpc);
}

/* ---- streams: a message to the client ---- */

static void continue_collecting(struct call *call);

static void on_stream_sent(struct hearth_op *op, bool ok)
{
    struct call *call = HEARTH_CONTAINER_OF(op, struct call, op_stream);

    (void)ok;
    acquire_batch(call);
    grpc_byte_buffer_destroy(call->out);
    call->out = NULL;
    if (is_collecting_call(call)) {
        continue_collecting(call);
    } else if (is_chat(call)) {
        start_read(call); /* returns no message if the client has left */
    } else {
        hearth_health_sent(&call->rpc);
    }
}

static bool stream_send(struct hearth_rpc *rpc, const void *message, size_t n_bytes)
{
    struct call *call = HEARTH_CONTAINER_OF(rpc, struct call, rpc);
    if (call->out != NULL) {
        return false;
    }

    grpc_slice slice = grpc_slice_from_copied_buffer(message, n_bytes);
    call->out = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    grpc_op ops[2];
    size_t n = 0;
    if (!call->sent_leading) {
        ops[n++] = make_leading_op(call);
    }

    ops[n] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
    ops[n++].data.send_message.send_message = call->out;
    start_batch(call, ops, n, &call->op_stream);

    return true;
}

static void read_on(struct hearth_rpc *rpc)
{
    struct call *call = HEARTH_CONTAINER_OF(rpc, struct call, rpc);

    if (!rpc->has_message) {
        continue_collecting(call);
        return;
    }

    rpc->has_message = false;

    /* The next message may be in work before stream_send returns: take the buffer out of the rpc
     * first. */
    struct hearth_buf message = rpc->packed;
    hearth_buf_init(&rpc->packed, 0);
    rpc->packed.budget = message.budget;
    (void)stream_send(rpc, message.p, message.n);
    hearth_buf_release(&message);
}

static void on_close(struct hearth_op *op, bool ok)
{
    struct call *call = HEARTH_CONTAINER_OF(op, struct call, op_close);

    (void)ok;
    acquire_batch(call);
    if (call->was_cancelled != 0) {
        atomic_store(&call->rpc.cancel.cancelled, true);
        if ((call->rpc.method->flags & HEARTH_METHOD_STREAM) != 0 && !is_chat(call) &&
            !is_collecting_call(call)) {
            hearth_health_gone(&call->rpc);
        }
    }

    unref_grpc_call(call);
}

/* ---- reading ---- */

static void drop_grpc_body(struct hearth_rpc *rpc)
{
    struct call *call = HEARTH_CONTAINER_OF(rpc, struct call, rpc);
    grpc_byte_buffer_destroy(call->body);
    call->body = NULL;
    hearth_buf_release(&call->joined);
    hearth_rpc_let_body_go(rpc);
    rpc->body = hearth_str_n(NULL, 0);
}

/* Sets rpc->body to the bytes of call->body in one piece. Compressed bytes stay compressed. */
static enum hearth_status view_body(struct call *call, struct hearth_err *err)
{
    struct hearth_rpc *rpc = &call->rpc;
    grpc_byte_buffer *body = call->body;

    if (body == NULL || body->type != GRPC_BB_RAW) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the call carries no whole message");
    }

    grpc_compression_algorithm algorithm = body->data.raw.compression;
    rpc->compression = algorithm == GRPC_COMPRESS_GZIP      ? HEARTH_COMPRESSION_GZIP
                       : algorithm == GRPC_COMPRESS_DEFLATE ? HEARTH_COMPRESSION_ZLIB
                                                            : HEARTH_COMPRESSION_NONE;
    /* One slice needs no copy. */
    const grpc_slice_buffer *slices = &body->data.raw.slice_buffer;
    HEARTH_TRY(hearth_rpc_hold_body(rpc, slices->length));
    if (slices->count == 1) {
        rpc->body = view_slice(&slices->slices[0]);
        return HEARTH_OK;
    }

    /* Several slices are joined. Then they are freed, because a push may wait for a thread. */
    if (hearth_buf_reserve(&call->joined, slices->length) == NULL && slices->length > 0) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a message of %zu bytes",
                           slices->length);
    }

    for (size_t i = 0; i < slices->count; i++) {
        hearth_buf_str(&call->joined, view_slice(&slices->slices[i]));
    }

    grpc_byte_buffer_destroy(call->body);
    call->body = NULL;
    rpc->body = hearth_buf_view(&call->joined);

    return HEARTH_OK;
}

static void handle_chat_message(struct call *call)
{
    struct hearth_rpc *rpc = &call->rpc;

    if (call->body == NULL) { /* the client has sent its last message, or has left */
        hearth_rpc_end(rpc, hearth_cancel_check(&rpc->cancel, &rpc->err));
        return;
    }

    rpc->drop_body = drop_grpc_body;
    enum hearth_status status = view_body(call, &rpc->err);
    if (status == HEARTH_OK) {
        status = hearth_rpc_chat(rpc);
    }

    if (status != HEARTH_OK) {
        hearth_rpc_refuse(rpc, status);
        return;
    }

    (void)stream_send(rpc, rpc->packed.p, rpc->packed.n);
    hearth_buf_reset(&rpc->packed);
}

/* ---- collecting: the next message, or the end ---- */

/* What the thread that called take_step must do after it has released the lock. */
struct call_step {
    bool reads; /* start a read, for which a reference is held */
    bool runs;  /* start a run, of call->body or of the end; the thread owns the rpc */
};

/*
 * The caller holds grpc->lock. gRPC reports "the client has sent its last message" and "the client
 * has broken off" alike: a read returns no message. In the second case the client's close is
 * reported right after. So a read that returns no message is repeated once (n_ends): when the
 * second one returns, the close would be known.
 */
static struct call_step take_step(struct call *call)
{
    hearth_mutex_assert_held(&call->grpc->lock);

    bool is_stopping = atomic_load(&call->grpc->is_stopping);
    bool is_open = !call->is_over && !is_stopping;
    struct call_step step = {
        .reads = is_open && !call->is_reading && call->n_ends < 2 &&
                 (call->n_ends == 1 || hearth_ahead_has_room(&call->ahead)),
        .runs = !call->is_over && !call->is_running &&
                (call->ahead.n > 0 || call->n_ends == 2 || is_stopping),
    };

    /* Take the first message, if any; otherwise the run is about the end. */
    if (step.runs) {
        call->is_running = true;
        if (call->ahead.n > 0) {
            struct hearth_ahead_message message = hearth_ahead_take(&call->ahead);
            call->body = message.body;
            call->rpc.body_held = message.held;
        }
    }

    call->is_waiting = is_open && !call->is_running;
    if (step.reads) {
        call->is_reading = true;
        (void)atomic_fetch_add(&call->refs, 1);
    }

    return step;
}

/*
 * The request, or a run of it, is complete. The stop sets is_shut, then waits for counted calls: it
 * waits for this one, or this one sees is_shut. Then the pools may have ended.
 */
static void start_work_of(struct call *call)
{
    struct hearth_rpc *rpc = &call->rpc;

    call->state = CALL_WORKING;
    set_counted(call, true);
    if (atomic_load(&call->grpc->is_shut)) {
        hearth_rpc_refuse(rpc,
                          HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping"));
        return;
    }
    hearth_rpc_start(rpc);
}

/* Starts a run of a collecting call, of call->body or of the end. */
static void start_run(struct call *call)
{
    struct hearth_rpc *rpc = &call->rpc;
    assert(call->state == CALL_READING);

    enum hearth_status status = hearth_cancel_check(&rpc->cancel, &rpc->err);
    if (status == HEARTH_OK && atomic_load(&call->grpc->is_stopping)) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    rpc->drop_body = drop_grpc_body;
    rpc->said_all = call->body == NULL;
    if (status == HEARTH_OK && !rpc->said_all) {
        status = view_body(call, &rpc->err);
    }

    if (status != HEARTH_OK) {
        hearth_rpc_refuse(rpc, status);
        return;
    }

    start_work_of(call);
}

/* The call may be freed by then, unless the caller holds a reference. */
static void do_step(struct call *call, struct call_step step)
{
    if (step.reads) {
        start_read(call);
    }
    if (step.runs) {
        start_run(call);
    }
}

/* A run has finished, or the call has begun: starts the next run if its message is there. */
static void continue_collecting(struct call *call)
{
    struct hearth_grpc *grpc = call->grpc;

    call->state = CALL_READING;
    set_counted(call, false);
    hearth_mutex_lock(&grpc->lock);
    call->is_running = false;
    hearth_ahead_done(&call->ahead);
    struct call_step step = take_step(call);
    if (call->is_waiting) {
        int64_t max_wait_ns = call->rpc.max_wait_ns;
        call->wait_until_mono_ns =
            max_wait_ns > 0 ? hearth_clock_mono_ns() + max_wait_ns : INT64_MAX;
    }

    hearth_mutex_unlock(&grpc->lock);
    do_step(call, step);
}

/* A read of a collecting call is done. */
static void take_message(struct call *call)
{
    struct hearth_grpc *grpc = call->grpc;
    grpc_byte_buffer *body = call->incoming;

    call->incoming = NULL;
    hearth_mutex_lock(&grpc->lock);
    assert(call->is_reading);
    call->is_reading = false;

    bool is_wanted = body != NULL && !call->is_over && call->n_ends == 0;
    if (is_wanted) {
        hearth_ahead_put(&call->ahead, grpc->front->options.push_memory, body);
    } else {
        call->n_ends++;
    }

    struct call_step step = take_step(call);
    hearth_mutex_unlock(&grpc->lock);
    if (!is_wanted) {
        grpc_byte_buffer_destroy(body);
    }

    do_step(call, step);
    unref_grpc_call(call);
}

static void on_read(struct hearth_op *op, bool ok)
{
    struct call *call = HEARTH_CONTAINER_OF(op, struct call, op_read);
    struct hearth_rpc *rpc = &call->rpc;

    (void)ok;
    acquire_batch(call);

    /* For the guards against floods and slow clients. */
    hearth_peers_reading(get_peers(call), &call->peer, -1);
    hearth_peers_progress(get_peers(call), &call->peer);
    if (call->incoming != NULL) {
        hearth_peers_prove(get_peers(call), &call->peer);
    }

    /* The three kinds of calls. */
    if (is_collecting_call(call)) {
        take_message(call);
        return;
    }

    end_wait(call);
    call->body = call->incoming;
    call->incoming = NULL;
    if (is_chat(call)) {
        handle_chat_message(call);
        return;
    }

    /* Without a message, the reason may be that the call was ended. */
    enum hearth_status status =
        call->body == NULL ? hearth_cancel_check(&rpc->cancel, &rpc->err) : HEARTH_OK;
    if (status == HEARTH_OK) {
        status = view_body(call, &rpc->err);
    }
    if (status != HEARTH_OK) {
        hearth_rpc_refuse(rpc, status);
        return;
    }

    start_work_of(call);
}

/* Reads the metadata that the server uses, and finds the tenant. */
static enum hearth_status read_metadata(struct call *call, struct hearth_err *err)
{
    struct hearth_rpc *rpc = &call->rpc;
    size_t n_bytes = 0;
    const struct hearth_front_options *options = &rpc->front->options;
    const struct hearth_proxy_headers proxy = {options->proxy_user_header,
                                               options->proxy_groups_header};
    struct hearth_front_caller caller = {0};

    for (size_t i = 0; i < call->metadata.count; i++) {
        struct hearth_str key = view_slice(&call->metadata.metadata[i].key);
        struct hearth_str value = view_slice(&call->metadata.metadata[i].value);
        n_bytes += key.n + value.n + HEADER_OVERHEAD_BYTES;
        hearth_caller_take_field(&caller, &proxy, key, value);
        if ((rpc->method->flags & HEARTH_METHOD_UPLOAD) != 0 &&
            hearth_str_eq_c(key, "user-agent")) {
            rpc->client = hearth_client_of_user_agent(value);
        } else if (hearth_str_eq_c(key, HEARTH_REQUEST_ID_HEADER)) {
            hearth_request_ids_take_id(&rpc->ids, value);
        } else if (hearth_str_eq_c(key, "traceparent")) {
            hearth_request_ids_take_traceparent(&rpc->ids, value);
        } else if (hearth_str_eq_c(key, "accept")) {
            struct hearth_accept accept;
            if (!hearth_accept_parse(value, &accept)) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "malformed accept metadata");
            }
            rpc->utf8_label_names = rpc->utf8_label_names || accept.utf8_label_names;
        }
    }

    /* The core limits each frame of a header block, not their sum. */
    if (n_bytes > (size_t)rpc->front->options.max_header_bytes) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "metadata of %zu bytes exceeds the limit (max-header-bytes) of %lld",
                           n_bytes, (long long)rpc->front->options.max_header_bytes);
    }

    struct hearth_peer_names names;
    hearth_peer_describe(rpc->front, &call->peer, &caller, &names);
    enum hearth_status status =
        hearth_front_admit(rpc->front, rpc->method, &caller, &rpc->caller, err);
    hearth_peer_names_release(&names);

    return status;
}

static int64_t compute_remaining_ns(gpr_timespec deadline)
{
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) {
        return INT64_MAX;
    }

    gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    int64_t ns;
    if (__builtin_mul_overflow(left.tv_sec, HEARTH_NS_PER_SEC, &ns) ||
        __builtin_add_overflow(ns, (int64_t)left.tv_nsec, &ns)) {
        return left.tv_sec < 0 ? 0 : INT64_MAX;
    }

    return ns < 0 ? 0 : ns;
}

/* The core names a channel that was made from a descriptor "fd:12". */
static int find_fd(const struct call *call)
{
    char *text = grpc_call_get_peer(call->call);
    int64_t fd = -1;
    struct hearth_str peer = hearth_str_c(text);
    if (hearth_str_starts(peer, HEARTH_STR("fd:"))) {
        (void)hearth_str_to_i64(hearth_str_n(peer.p + 3, peer.n - 3), &fd);
    }

    gpr_free(text);

    return fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
}

static void write_peer_text(struct hearth_rpc *rpc, char out[HEARTH_PEER_TEXT_BYTES])
{
    struct call *call = HEARTH_CONTAINER_OF(rpc, struct call, rpc);
    hearth_peer_text(&call->peer, out);
}

/* Stands for all unknown methods, in the answer and the log. */
static const struct hearth_method g_unknown = {
    .path = "/unknown",
    .pool = HEARTH_POOL_QUERY,
};

static void begin_call(struct call *call)
{
    struct hearth_rpc *rpc = &call->rpc;
    struct hearth_str path = view_slice(&call->details.method);
    const struct hearth_method *method = hearth_method_find(call->grpc->front->methods, path);

    hearth_rpc_init(rpc, call->grpc->front, method != NULL ? method : &g_unknown);
    call->has_rpc = true;
    rpc->transport = "grpc";
    rpc->drop_body = drop_grpc_body;
    rpc->finish = finish_call;
    rpc->end_soon = end_soon;
    rpc->stream_send = stream_send;
    rpc->read_on = read_on;
    rpc->peer_text = write_peer_text;
    hearth_peers_find(get_peers(call), find_fd(call), &call->peer);
    hearth_peers_progress(get_peers(call), &call->peer);

    /* Watch for the client's close from the start; otherwise it would be reported only at the end.
     * */
    atomic_store(&call->refs, 2);
    call->state = CALL_READING;
    grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    close.data.recv_close_on_server.cancelled = &call->was_cancelled;
    start_batch(call, &close, 1, &call->op_close);

    if (method == NULL) {
        hearth_rpc_refuse(rpc, HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                                           "unknown method \"" HEARTH_STR_FMT "\"",
                                           HEARTH_STR_ARG(path)));
        return;
    }

    /* The stop does not wait for calls that begin after it. */
    call->is_late = atomic_load(&call->grpc->is_stopping);
    if (call->is_late) {
        hearth_rpc_refuse(rpc,
                          HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping"));
        return;
    }

    /* Admit the client. */
    enum hearth_status status = read_metadata(call, &rpc->err);
    if (status == HEARTH_OK && (is_chat(call) || is_collecting_call(call))) {
        status = link_open(call, &rpc->err);
    }

    if (status != HEARTH_OK) {
        hearth_rpc_refuse(rpc, status);
        return;
    }

    /* The core ends a chat at its client's deadline; the server's default deadline limits work. */
    if (!is_chat(call)) {
        hearth_rpc_set_timeout(rpc, compute_remaining_ns(call->details.deadline));
    }

    if (is_collecting_call(call)) {
        continue_collecting(call);
        return;
    }
    if (!is_chat(call)) {
        begin_wait(call, rpc->cancel.deadline_mono_ns);
    }
    start_read(call);
}

static void on_new_call(struct hearth_op *op, bool ok)
{
    struct call *call = HEARTH_CONTAINER_OF(op, struct call, op_new);

    acquire_batch(call);
    if (!ok) { /* the core was shut down */
        unref_grpc_call(call);
        return;
    }
    hearth_call_request(call->grpc);
    begin_call(call);
}

void hearth_call_request(struct hearth_grpc *grpc)
{
    if (atomic_load(&grpc->is_shut)) {
        return;
    }

    struct call *call = hearth_mem_zalloc(sizeof *call);
    if (call == NULL) {
        (void)atomic_fetch_add(&grpc->n_wanted, 1);
        return;
    }

    call->grpc = grpc;
    call->op_new.done = on_new_call;
    call->op_close.done = on_close;
    call->op_read.done = on_read;
    call->op_send.done = on_sent;
    call->op_stream.done = on_stream_sent;
    call->op_end.done = on_end;
    atomic_init(&call->refs, 1);
    grpc_call_details_init(&call->details);
    grpc_metadata_array_init(&call->metadata);
    hearth_buf_init(&call->joined, 0);
    atomic_store_explicit(&call->n_batches, 0, memory_order_release);
    grpc_call_error rc =
        grpc_server_request_call(grpc->server, &call->call, &call->details, &call->metadata,
                                 grpc->queue, grpc->queue, &call->op_new);
    HEARTH_ASSERT(rc == GRPC_CALL_OK);
}
