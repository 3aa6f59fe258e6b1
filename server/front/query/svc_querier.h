/*
 * svc_querier.h -- helpers of the query services.
 *
 * Messages and their arrays live in the request's arena; some texts borrow from the inputs. Status
 * functions set the error of the request.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_SVC_QUERIER_H
#define HEARTH_FRONT_SVC_QUERIER_H

#include "hearth/engine/query.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/messages.h"

/* Ids of a request and the name of their field, for errors; {0}: no ids. */
struct hearth_rpc_ids {
    const char *field;
    char *const *texts;
    size_t n;
    bool any_spelling; /* spans and traces: other forms than 16 and 32 hex digits, too */
};

/*
 * Reads ids of profiles (UUIDs), spans and traces, in the request's arena. A text that may mean
 * several ids of spans or traces adds all of them (model/trace_ids.h). INVALID_ARGUMENT names field
 * and text.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_profile_filter(struct hearth_rpc *rpc, struct hearth_rpc_ids profiles,
                                             struct hearth_rpc_ids spans,
                                             struct hearth_rpc_ids traces,
                                             struct hearth_profile_filter *ret);

/*
 * Reads the selection of a request for merged stack traces, or of a side of Diff, whose format is
 * ignored. is_pprof: go_pgo is read; otherwise it is ignored. In the request's arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_merge_spec(struct hearth_rpc *rpc,
                                         const Querier__V1__SelectMergeStacktracesRequest *in,
                                         bool is_pprof, struct hearth_merge_spec *ret);

/* Appends the call graph of a selection as Graphviz; spec->max_nodes limits the functions. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_dot(struct hearth_rpc *rpc, const struct hearth_query *query,
                                  const struct hearth_merge_spec *spec, struct hearth_buf *out);

/*
 * Answers with merged stack traces in a format: sets a field of out, which the caller has
 * initialised. The pprof format is written to rpc->packed instead, as the response of
 * SelectMergeStacktraces.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_merge(struct hearth_rpc *rpc, const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    Querier__V1__ProfileFormat format,
                                    Querier__V1__SelectMergeStacktracesResponse *out);

#endif
