/*
 * messages.h -- what the handlers of all services need to read requests and to fill answers.
 *
 * Texts and arrays live in the request's arena. A function returns NULL when the arena's limit is
 * reached; the arena remembers it, so a handler may check `rpc->arena.refused` once at the end.
 *
 * Threads: the thread that runs the request.
 */
#ifndef HEARTH_FRONT_MESSAGES_H
#define HEARTH_FRONT_MESSAGES_H

#include "hearth/engine/query.h"

struct hearth_rpc;
struct Types__V1__LabelPair;

/* A call for the tenant of `rpc`, with its arena, cancellation and notes. */
struct hearth_call hearth_rpc_call(struct hearth_rpc *rpc);
/* The same for a query over [start_ms, end_ms]. */
struct hearth_query hearth_rpc_query(struct hearth_rpc *rpc, int64_t start_ms, int64_t end_ms);

/* Views of n C strings of a message; borrowed. */
struct hearth_str *hearth_rpc_strs(struct hearth_rpc *rpc, char *const *texts, size_t n);
/* Views of n labels of a message; borrowed. */
struct hearth_label *hearth_rpc_labels(struct hearth_rpc *rpc,
                                       struct Types__V1__LabelPair *const *labels, size_t n);
/* A NUL-terminated copy. */
char *hearth_rpc_text(struct hearth_rpc *rpc, struct hearth_str text);
/* NUL-terminated copies of n texts. */
char **hearth_rpc_texts(struct hearth_rpc *rpc, const struct hearth_str *texts, size_t n);

/* The id as 16 hexadecimal digits; "" for id 0, as protobuf-c has it for texts that are not set. */
char *hearth_rpc_span_text(struct hearth_rpc *rpc, uint64_t id);
/* The id as 32 hexadecimal digits; "" if there is no id. */
char *hearth_rpc_trace_text(struct hearth_rpc *rpc, struct hearth_trace_id id);

#endif
