/*
 * client_call.h -- unary calls with bytes and with protobuf-c messages in arenas, for the other
 * files of the library and for `hearth`, which is linked with it statically. The shared library
 * does not export them.
 *
 * Threads: safe, each arena in one thread.
 * Errors:  as in client.h, with the statuses of base/status.h.
 */
#ifndef HEARTH_CLIENT_CALL_H
#define HEARTH_CLIENT_CALL_H

#include "hearth/base/arena.h"
#include "hearth/client.h"
#include "hearth/codec/pb.h"

struct Querier__V1__FlameGraph;

struct hearth_call {
    const char *method; /* "querier.v1.QuerierService/Series" */
    struct hearth_str request;
    bool is_repeatable;       /* methods that only read are in any case */
    struct hearth_str answer; /* out: in the arena */
    const char *dropped;      /* out: metadata hearth-dropped, in the arena; NULL: none */
    bool is_open;             /* out: after a failure, see struct hearth_client_error */
};

/* The monotonic time, in nanoseconds, after `ms` milliseconds from now; at most INT64_MAX. */
int64_t hearth_call_until_ns(int64_t ms);

HEARTH_MUST_CHECK
enum hearth_status hearth_call_run(struct hearth_client *client, struct hearth_call *call,
                                   struct hearth_arena *arena, struct hearth_err *err);

/*
 * The same with messages, for `call` with a method: the answer is unpacked as `answer_type` into
 * arena. A push whose profiles all have ids is repeatable.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_message(struct hearth_client *client, struct hearth_call *call,
                                       const struct ProtobufCMessage *request,
                                       const struct ProtobufCMessageDescriptor *answer_type,
                                       struct hearth_arena *arena,
                                       struct ProtobufCMessage **ret_answer,
                                       struct hearth_err *err);

/* The graph as nodes in the arena; `unit` is not set. CORRUPT if a box does not lie in one above. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_flame(const struct Querier__V1__FlameGraph *graph,
                                     struct hearth_arena *arena, struct hearth_client_flame *flame,
                                     struct hearth_err *err);

/* The status of an error of client.h, with its text in err, which may be NULL. */
enum hearth_status hearth_call_error_in(const struct hearth_client_error *error,
                                        struct hearth_err *err);
/* The other way; `error` may be NULL. */
enum hearth_client_status hearth_call_error_out(const struct hearth_err *err,
                                                enum hearth_status status, bool is_open,
                                                struct hearth_client_error *error);

#endif
