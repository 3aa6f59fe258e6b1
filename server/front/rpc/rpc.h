/*
 * rpc.h -- a request, whatever brought it: from its complete body to the answer that its transport
 * sends.
 *
 *   transport                    pool thread                        any thread
 *   hearth_rpc_init ... start -> decode -> method's handler ... -> hearth_rpc_end -> finish
 *
 * A handler ends the request exactly once, at once or later from another thread
 * (hearth_rpc_end_later, when that thread must not be held up). After the end the request belongs
 * to its transport again, which may free it at any time.
 *
 * Streams (method->is_stream) end the same way; in between they send messages through
 * `stream_send`.
 *
 * Collecting (HEARTH_METHOD_COLLECT): the handler runs on its pool for each message of the client, in their order and
 * one at a time, and each time ends with hearth_rpc_next, which reads the next one; with `request` NULL it runs
 * once more, when the client has said all, and ends the request. It may end it earlier with an error. Arena, request,
 * answer, headers and notes are anew for each run; what must last is `session`, freed at the end whatever happens. A
 * client that breaks off causes no further run: what was handled stays handled. Where the server streams too (with
 * HEARTH_METHOD_STREAM), the `answer` at hearth_rpc_next or at an end that is OK, if there is one, is sent before
 * anything else happens. While a message is in work, a few are read ahead (read_ahead.h), and a thread goes on with them
 * until another stream has its turn; they are dropped when the request ends early. When its client has said nothing
 * more, such a request holds its session and nothing else: no thread, no body, no arena, no deadline of ours (each run
 * has one), and it is not in flight. Stopping ends it then; a run goes on to its hearth_rpc_next.
 *
 * Threads: a request is used by one thread at a time; `cancel` and the in-flight list are shared.
 */
#ifndef HEARTH_FRONT_RPC_H
#define HEARTH_FRONT_RPC_H

#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"
#include "hearth/base/workers.h"

#include "rpc/address_text.h"
#include "rpc/connect.h"
#include "rpc/method.h"
#include "rpc/notes.h"
#include "rpc/pieces.h"
#include "rpc/tenant.h"

struct hearth_front;
struct hearth_http_call;

#define HEARTH_RPC_MAX_HEADERS 4

struct hearth_rpc;

/* why: DEADLINE_EXCEEDED, CANCELLED (the client has left), or UNAVAILABLE (the server is stopping). */
typedef void hearth_rpc_abandon_fn(struct hearth_rpc *rpc, void *work, enum hearth_status why);

struct hearth_rpc_header {
    const char *name;  /* static */
    const char *value; /* static or in arena */
};

struct hearth_rpc {
    struct hearth_front *front;
    const struct hearth_method *method;

    /* Set by the transport before the start. */
    const char *transport; /* "grpc", "http" */
    int fd;                /* watched for a client that leaves; -1: the transport notices itself */
    void (*peer_text)(struct hearth_rpc *rpc, char out[HEARTH_PEER_TEXT_BYTES]);
    struct hearth_tenant tenant;
    const char *client; /* static: client_family.h; of uploads */
    const char *
        refusal; /* static: why the upload is refused, where the status does not say it; NULL: it does */
    bool counts_refusals; /* who works on the upload counts what it refuses */
    bool utf8_label_names;
    enum hearth_rpc_codec codec;
    enum hearth_compression compression;
    enum hearth_pieces_way pieces_way; /* of large answers in JSON */
    struct hearth_str body;            /* borrowed from the transport until `drop_body` */
    struct hearth_http_call *http;     /* plain HTTP routes only: http_call.h */
    /* On a pool thread, before the body is decoded: take it out of its wrapping. NULL: it has none. */
    enum hearth_status (*open_body)(struct hearth_rpc *rpc);
    void (*drop_body)(struct hearth_rpc *rpc);
    void (*finish)(struct hearth_rpc *rpc); /* send `status` or `packed`; from any thread */
    /* Collecting: send `packed` if has_message, then read on; from any thread. */
    void (*read_on)(struct hearth_rpc *rpc);
    /* Streams: false while the one before is still being sent. */
    bool (*stream_send)(struct hearth_rpc *rpc, const void *message, size_t n);

    struct hearth_cancel cancel;
    int64_t started_mono_ns;
    struct hearth_arena arena;
    struct hearth_budget memory; /* of a query: its part of what all may have */
    size_t body_held;            /* of the body, taken from the budget of pushes */

    /* For the handler. */
    const struct ProtobufCMessage
        *request; /* NULL for plain HTTP routes, and at the end of what is collected */

    /* The answer: a message in arena, or a packed one of method->response; encoded into `packed` at
     * the end. */
    const struct ProtobufCMessage *answer;
    bool is_packed;
    bool has_message; /* of a stream both ways: `packed` is one */
    struct hearth_buf packed;
    bool is_gzip;                /* packed is: a large answer in JSON */
    struct hearth_pieces pieces; /* what comes behind packed, with HEARTH_PIECES_AS_SENT */
    enum hearth_status status;
    struct hearth_err err;
    const char *
        long_message; /* in arena: what the client is told instead of err.msg, which would cut it */
    struct hearth_rpc_header headers[HEARTH_RPC_MAX_HEADERS];
    size_t n_headers;
    struct hearth_buf notes; /* lines, by the handler; with an answer that is OK only */
    const char *note_values[HEARTH_MAX_NOTES];
    size_t n_notes;

    /* Of a collecting method: the handler's own, NULL at first. free_session may not wait for anything. */
    void *session;
    void (*free_session)(void *session);
    /* Set by a handler whose session holds much: how long the client may take for its next message. 0: for ever. */
    int64_t max_wait_ns;
    int64_t client_deadline_mono_ns; /* of all the stream; that in `cancel` is of this run */
    int64_t n_messages;              /* that were handled */
    bool said_all;                   /* no more messages come */

    /* See hearth_rpc_set_abandon. Guarded by the in-flight lock. */
    hearth_rpc_abandon_fn *abandon;
    void *work;

    struct hearth_job job;
    struct hearth_rpc *prev, *next; /* in flight, or the health watchers */
    bool is_in_flight;
    size_t body_bytes; /* for the log; of a stream: of all messages */
    enum hearth_status later;
    /* Streams: see svc_health.c. */
    int stream_state;
    bool is_watching, is_sending, is_ending, is_service_known;
};

/* All requests whose work has not ended. */
struct hearth_rpc_list {
    struct hearth_rpc *first;
    size_t n;
};

/* Prepare; the arena's limit comes with the method. `method` may not be NULL. */
void hearth_rpc_init(struct hearth_rpc *rpc, struct hearth_front *front,
                     const struct hearth_method *method);
/* Frees what the request holds, not itself. */
void hearth_rpc_release(struct hearth_rpc *rpc);

/*
 * The body now has n bytes: count them. UNAVAILABLE when all bodies together are too many, TOO_LARGE when this one
 * alone is. Given back by hearth_rpc_let_body_go.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_rpc_hold_body(struct hearth_rpc *rpc, size_t n_bytes);
void hearth_rpc_let_body_go(struct hearth_rpc *rpc);
/* A body of n bytes is announced: the same when it would not fit now. Nothing is counted. */
HEARTH_MUST_CHECK enum hearth_status hearth_rpc_expect_body(struct hearth_rpc *rpc, int64_t n);
/*
 * NO_MEMORY of an upload, on the thread that was refused: the same as for bodies, if it was the memory of pushes that
 * did not suffice. n_more_bytes: what it holds beside its body and its arena. Other statuses stay.
 */
enum hearth_status hearth_rpc_judge_memory(struct hearth_rpc *rpc, size_t n_more_bytes,
                                           enum hearth_status status);

/* The deadline from what the client asked for; INT64_MAX: the server's default. */
void hearth_rpc_set_timeout(struct hearth_rpc *rpc, int64_t timeout_ns);

/* True when the caller's own thread runs it: small health checks, which must work when all pools
 * are full. */
bool hearth_rpc_is_inline(const struct hearth_rpc *rpc);
/* Start the work: on its pool, or on this thread. The request may have ended when this returns. Of a collecting method:
 * of one message in `body`, or with said_all of what comes after the last. */
void hearth_rpc_start(struct hearth_rpc *rpc);
/* Answer without any work, e.g. for a request that breaks a rule; `rpc->err` holds the message. */
void hearth_rpc_refuse(struct hearth_rpc *rpc, enum hearth_status status);

/* Lives as long as the request; empty where the method has no HEARTH_METHOD_TENANT. */
static inline struct hearth_str hearth_rpc_tenant(const struct hearth_rpc *rpc)
{
    return hearth_str_n(rpc->tenant.text, rpc->tenant.n);
}

/* A message of a HEARTH_METHOD_CHAT, in rpc->body: its answer is appended to rpc->packed. */
HEARTH_MUST_CHECK enum hearth_status hearth_rpc_chat(struct hearth_rpc *rpc);

void hearth_rpc_end(struct hearth_rpc *rpc, enum hearth_status status);
/* The same from another thread: for threads that must not do this work, and under locks. */
void hearth_rpc_end_later(struct hearth_rpc *rpc, enum hearth_status status);
/* The handler of a collecting method is done with a message: see above. As after an end, the request is not its own any
 * more: the next message may be in work on another thread. */
void hearth_rpc_next(struct hearth_rpc *rpc);

static inline bool hearth_rpc_is_collecting(const struct hearth_rpc *rpc)
{
    return (rpc->method->flags & HEARTH_METHOD_COLLECT) != 0;
}

/*
 * How to end the request before its work has ended: when its deadline passes, its client leaves, or the
 * server stops and cannot wait. A client's own deadline counts as passed a little before (half a second,
 * or a fifth of its time), so that the answer is there when the client stops waiting. `abandon` is called
 * at most once, with the in-flight lock held; the request ends later, on another thread. NULL takes it
 * back: no call is under way or comes after that.
 */
void hearth_rpc_set_abandon(struct hearth_rpc *rpc, hearth_rpc_abandon_fn *abandon, void *work);

/* This thread's decompressor, kept warm; NULL without memory. */
struct hearth_inflater *hearth_rpc_inflater(void);

/*
 * A text of the handler's as the answer of a plain route: `packed` holds its beginning, if anything. What it
 * is made of lives in the arena. The handler ends the request with the status.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_answer_in_pieces(struct hearth_rpc *rpc, struct hearth_pieces pieces);

void hearth_rpc_add_header(struct hearth_rpc *rpc, const char *name, const char *value);

/* Mark requests whose HTTP client has left; abandon what can be of those and of the overdue ones. */
void hearth_rpc_cancel_gone(struct hearth_front *front);
size_t hearth_rpc_in_flight(struct hearth_front *front);
/* Cancel all; abandon what can be. */
void hearth_rpc_cancel_all(struct hearth_front *front);

/* Of a request that failed. */
static inline const char *hearth_rpc_message(const struct hearth_rpc *rpc)
{
    return rpc->long_message != NULL ? rpc->long_message : rpc->err.msg;
}

#endif
