/*
 * rpc.h -- one request by any transport, from its complete body to the answer that the transport
 * sends.
 *
 *   transport                    pool thread                        any thread
 *   hearth_rpc_init ... start -> decode -> method's handler ... -> hearth_rpc_end -> finish
 *
 * A handler ends the request exactly once: with hearth_rpc_end, or with hearth_rpc_end_later when
 * the calling thread must not do the work of ending. After the end the request belongs to its
 * transport again, which may free it at any time.
 *
 * Server streams (HEARTH_METHOD_STREAM) end the same way; before that they send messages with
 * `stream_send`.
 *
 * Client streams (HEARTH_METHOD_COLLECT, "collecting"): the handler runs on its pool once for each
 * message, in order and never twice at a time. Each run finishes with hearth_rpc_next, which reads
 * the next message. After the last message the handler runs once more, with `request` NULL, and
 * ends the request. It may end the request earlier with an error.
 *
 *   - Arena, request, answer, headers and notes are reset before each run. State that must last is
 *     kept in `session`, which is freed at the end in any case.
 *   - If the client breaks off, there is no further run. Messages that were handled stay handled.
 *   - If the server streams too (HEARTH_METHOD_STREAM as well), the `answer` of each run, if any,
 *     is sent before the next run begins.
 *   - While a message is handled, a few more are read ahead (grpc/read_ahead.h). The same thread
 *     handles them until another stream has its turn. They are dropped when the request ends early.
 *   - Between messages the request holds its session and nothing else: no thread, body or arena, no
 *     deadline of the server's (each run has one), and it is not in flight. When the server stops,
 *     it ends such a request; a run that has begun continues to its hearth_rpc_next.
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
#include "rpc/admit.h"
#include "rpc/connect.h"
#include "rpc/method.h"
#include "rpc/notes.h"
#include "rpc/pieces.h"
#include "rpc/request_ids.h"

struct hearth_front;
struct hearth_http_call;
struct hearth_partial;
struct hearth_tenant_use;

#define HEARTH_RPC_MAX_HEADERS 4

struct hearth_rpc;

/* why: DEADLINE_EXCEEDED, CANCELLED (the client left) or UNAVAILABLE (the server stops). */
typedef void hearth_rpc_abandon_fn(struct hearth_rpc *rpc, void *work, enum hearth_status why);

struct hearth_rpc_header {
    const char *name;  /* static */
    const char *value; /* static or in the request's arena */
};

struct hearth_rpc {
    struct hearth_front *front;
    const struct hearth_method *method;

    /* ---- set by the transport before the start ---- */

    const char *transport; /* "grpc", "http" */
    int fd; /* polled to see whether the client left; -1: the transport sees it itself */
    void (*peer_text)(struct hearth_rpc *rpc, char out[HEARTH_PEER_TEXT_BYTES]);
    struct hearth_admitted caller; /* who calls, for which tenant */
    const char *client;            /* static: the family of an upload's client (client_family.h) */
    struct hearth_request_ids ids; /* as sent by the client, or made */
    bool utf8_label_names;         /* the client reads label names that are not classic */
    enum hearth_rpc_codec codec;
    enum hearth_compression compression;
    enum hearth_pieces_way pieces_way; /* for large answers in JSON */
    struct hearth_str body;            /* borrowed from the transport until `drop_body` */
    struct hearth_http_call *http;     /* for plain HTTP routes only: http/http_call.h; else NULL */
    struct hearth_str arguments;       /* of a plain route, as sent; borrowed from the transport */
    /* Unwraps the body before it is decoded, on a pool thread; NULL: the body is not wrapped. */
    enum hearth_status (*open_body)(struct hearth_rpc *rpc);
    /* Frees the body; the request sets it to NULL after the call. */
    void (*drop_body)(struct hearth_rpc *rpc);
    /* Sends `status` or `packed`. Called from any thread. */
    void (*finish)(struct hearth_rpc *rpc);
    /* Calls hearth_rpc_end_now on a thread of the transport; NULL: the front has one for it. */
    void (*end_soon)(struct hearth_rpc *rpc);
    /* Collecting: sends `packed` if has_message, then reads the next message. From any thread. */
    void (*read_on)(struct hearth_rpc *rpc);
    /* Server streams: sends a message; false while the previous one is still being sent. */
    bool (*stream_send)(struct hearth_rpc *rpc, const void *message, size_t n);

    /* ---- limits ---- */

    struct hearth_cancel cancel;     /* the deadline of the work (of one run, if it collects) */
    int64_t client_deadline_mono_ns; /* the deadline of the client; INT64_MAX: none */
    int64_t started_mono_ns;         /* when its head came */
    int64_t submitted_mono_ns; /* when it last began to wait for a thread: with each message */
    struct hearth_arena arena;
    struct hearth_budget
        memory; /* of a query: its part of the memory of all queries; else zeroed */
    struct hearth_tenant_use *use; /* of a query: its tenant's, held; or NULL */
    int64_t run_mono_ns;           /* when a thread took it; 0: none has */
    size_t body_held;              /* bytes of the body that are taken from the budget of pushes */

    /* ---- for the handler ---- */

    /* NULL for plain HTTP routes, and in the last run of a collecting method. */
    const struct ProtobufCMessage *request;

    /* ---- the answer ---- */

    /* A message in the arena. Or is_packed: `packed` already holds an encoded method->response. */
    const struct ProtobufCMessage *answer;
    bool is_packed;
    bool has_message; /* of a stream both ways: `packed` holds a message to be sent */
    struct hearth_buf packed;
    bool is_gzip;                /* `packed` is compressed: a large answer in JSON */
    struct hearth_pieces pieces; /* the rest after `packed`, with HEARTH_PIECES_AS_SENT */
    enum hearth_status status;
    struct hearth_err err;
    const char
        *long_message; /* in the arena: sent instead of err.msg, which would cut it; or NULL */
    struct hearth_rpc_header headers[HEARTH_RPC_MAX_HEADERS];
    size_t n_headers;
    struct hearth_buf notes;        /* lines appended by the handler; sent only with status OK */
    struct hearth_partial *partial; /* of a query that has made a call: in the arena; else NULL */
    const char *note_values[HEARTH_MAX_NOTES];
    size_t n_notes;

    /* ---- the audit log, metrics of uploads ---- */

    const char *audit_object; /* what the call was about, in the arena; NULL: its request */
    bool is_audited;          /* the handler has begun, and its end is written to the audit log */
    const char *refusal;      /* static: the reason of the refusal; NULL: the name of the status */
    bool counts_refusals;     /* the engine works on the upload, and counts the refusals itself */
    uint64_t body_hash; /* of the first bytes of the body, for the list of ingest errors; or 0 */

    /* ---- collecting ---- */

    void *session;                       /* the handler's own; NULL at first */
    void (*free_session)(void *session); /* may not wait for anything */
    int64_t max_wait_ns; /* how long the client may take for its next message; 0: any time */
    int64_t n_messages;  /* messages handled */
    bool said_all;       /* the client has sent its last message */

    /* ---- hearth_rpc_set_abandon; guarded by the in-flight lock ---- */

    hearth_rpc_abandon_fn *abandon;
    void *work;

    /* ---- used by the rooms of front only ---- */

    struct hearth_job job;
    struct hearth_rpc *prev, *next; /* in the in-flight list, or in the list of health watchers */
    bool is_in_flight;
    size_t body_bytes;        /* received, for the log; of a stream: of all messages */
    enum hearth_status later; /* the status of hearth_rpc_end_later */

    /* ---- health watches, see grpc/svc_health.c; guarded by the watch lock ---- */

    int stream_state;      /* the serving state that was sent last; -1: none yet */
    bool is_service_known; /* otherwise the state is SERVICE_UNKNOWN and never changes */
    bool is_watching;      /* was put on the list of watchers */
    bool is_sending;       /* a message is on its way */
    bool is_ending;        /* is not on the list any more; ends when no message is on its way */
};

/* All requests whose work has begun and not ended. */
struct hearth_rpc_list {
    struct hearth_rpc *first;
    size_t n;
};

/* Prepares a request. The method decides about the arena's limit; it may not be NULL. */
void hearth_rpc_init(struct hearth_rpc *rpc, struct hearth_front *front,
                     const struct hearth_method *method);
/* Frees what the request holds, not the struct. */
void hearth_rpc_release(struct hearth_rpc *rpc);

/*
 * Counts a body of n bytes (in total so far) against the memory of pushes. hearth_rpc_let_body_go
 * gives it back.
 *
 * Returns  OK; UNAVAILABLE when all bodies together are too large, TOO_LARGE when this one alone
 *          is.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_rpc_hold_body(struct hearth_rpc *rpc, size_t n_bytes);
void hearth_rpc_let_body_go(struct hearth_rpc *rpc);
/*
 * The same check for a body of n bytes that is announced and has not come; counts nothing. n may be
 * negative: not announced.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_rpc_expect_body(struct hearth_rpc *rpc, int64_t n);
/*
 * Turns NO_MEMORY of an upload into the errors of hearth_rpc_hold_body if the budget of pushes
 * refused the memory. Other statuses are returned as they are. To be called on the thread whose
 * allocation was refused.
 *
 * n_more_bytes  held by the upload in addition to its body and its arena
 */
enum hearth_status hearth_rpc_judge_memory(struct hearth_rpc *rpc, size_t n_more_bytes,
                                           enum hearth_status status);

/* Sets the deadline from the client's timeout; INT64_MAX: the server's default. */
void hearth_rpc_set_timeout(struct hearth_rpc *rpc, int64_t timeout_ns);

/* True when the caller's own thread runs it: small health checks, which must work when all pools
 * are full. */
bool hearth_rpc_is_inline(const struct hearth_rpc *rpc);
/*
 * Starts the work on its pool, or on this thread. The request may have ended when this returns.
 * Collecting: starts one run, for the message in `body`, or with said_all for the end.
 */
void hearth_rpc_start(struct hearth_rpc *rpc);
/* Answers without any work, e.g. a request that breaks a rule; `rpc->err` holds the message. */
void hearth_rpc_refuse(struct hearth_rpc *rpc, enum hearth_status status);

/*
 * The only tenant, or the first of several. Lives as long as the request; empty where the method
 * has no HEARTH_METHOD_TENANT.
 */
static inline struct hearth_str hearth_rpc_tenant(const struct hearth_rpc *rpc)
{
    return hearth_str_n(rpc->caller.tenants.first.text, rpc->caller.tenants.first.n);
}

/* Handles a message of a HEARTH_METHOD_CHAT in rpc->body; appends the answer to rpc->packed. */
HEARTH_MUST_CHECK enum hearth_status hearth_rpc_chat(struct hearth_rpc *rpc);

void hearth_rpc_end(struct hearth_rpc *rpc, enum hearth_status status);
/* The same on another thread: for callers that hold locks or must not do this work. */
void hearth_rpc_end_later(struct hearth_rpc *rpc, enum hearth_status status);
/* For `end_soon`: ends a request that hearth_rpc_end_later was called for. */
void hearth_rpc_end_now(struct hearth_rpc *rpc);
/*
 * The handler of a collecting method is done with a message, see above. The caller may not use the
 * request after this: the next message may already be handled on another thread.
 */
void hearth_rpc_next(struct hearth_rpc *rpc);
/* Finishes a run: after an error, and in the last run, the request ends; otherwise the next message
 * is read. */
static inline void hearth_rpc_finish_run(struct hearth_rpc *rpc, enum hearth_status status)
{
    if (status == HEARTH_OK && rpc->request != NULL) {
        hearth_rpc_next(rpc);
    } else {
        hearth_rpc_end(rpc, status);
    }
}

static inline bool hearth_rpc_is_collecting(const struct hearth_rpc *rpc)
{
    return (rpc->method->flags & HEARTH_METHOD_COLLECT) != 0;
}

/*
 * How to end the request before its work has ended: when its deadline passes, its client leaves, or
 * the server stops and cannot wait. A deadline that the client sent counts as passed a little early
 * (half a second, or a fifth of its time), so that the answer arrives before the client stops
 * waiting. `abandon` is called at most once, with the in-flight lock held; the request ends later,
 * on another thread. abandon == NULL takes it back: no call is under way or follows after that.
 */
void hearth_rpc_set_abandon(struct hearth_rpc *rpc, hearth_rpc_abandon_fn *abandon, void *work);

/* The decompressor of this thread, kept for reuse; NULL without memory. */
struct hearth_inflater *hearth_rpc_inflater(void);

/*
 * Answers a plain route with a text that is made in pieces. `packed` may hold its beginning. The
 * data that the pieces are made from lives in the arena. The handler ends the request with the
 * returned status.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_answer_in_pieces(struct hearth_rpc *rpc, struct hearth_pieces pieces);

/* Ignored if value is NULL or HEARTH_RPC_MAX_HEADERS are set. */
void hearth_rpc_add_header(struct hearth_rpc *rpc, const char *name, const char *value);

/*
 * Returns how long the request has taken: since it was complete, or since its head came if it was
 * refused before. For a stream: since its last message.
 */
static inline int64_t hearth_rpc_took_ns(const struct hearth_rpc *rpc, int64_t now_mono_ns)
{
    bool is_complete = rpc->submitted_mono_ns != 0;

    return now_mono_ns - (is_complete ? rpc->submitted_mono_ns : rpc->started_mono_ns);
}

/* Cancels requests whose HTTP client has left. Abandons those, and overdue ones, if they can be. */
void hearth_rpc_cancel_gone(struct hearth_front *front);
size_t hearth_rpc_in_flight(struct hearth_front *front);
/* Cancels all requests in flight, and abandons those that can be. */
void hearth_rpc_cancel_all(struct hearth_front *front);

/* The message of a request that failed. */
static inline const char *hearth_rpc_message(const struct hearth_rpc *rpc)
{
    return rpc->long_message != NULL ? rpc->long_message : rpc->err.msg;
}

#endif
