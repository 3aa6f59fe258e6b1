/* svc_querier.h -- what the files of the query services share. Threads: pure. */
#ifndef HEARTH_FRONT_SVC_QUERIER_H
#define HEARTH_FRONT_SVC_QUERIER_H

#include "hearth/engine/query.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/messages.h"

/* Labels as messages, in the request's arena; false when it is full. */
HEARTH_MUST_CHECK bool hearth_rpc_labels(struct hearth_rpc *rpc, const struct hearth_labels *labels,
                                         Types__V1__LabelPair ***ret_pairs);
/* Ids as a request has them; field: what it calls them. Without any: {0}. */
struct hearth_rpc_ids {
    const char *field;
    char *const *texts;
    size_t n;
    bool any_spelling; /* of spans and traces: not only 16 and 32 hex digits (model/trace_ids.h) */
};

/*
 * Ids of profiles (UUIDs), spans and traces, in the request's arena: of these all that a text may
 * mean. INVALID_ARGUMENT names field and text.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_profile_filter(struct hearth_rpc *rpc, struct hearth_rpc_ids profiles,
                                             struct hearth_rpc_ids spans,
                                             struct hearth_rpc_ids traces,
                                             struct hearth_profile_filter *ret);
/*
 * What a request for merged stack traces selects: of all its formats, and of the sides of Diff,
 * whose format does not count. is_pprof: go_pgo is meant. In the request's arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_merge_spec(struct hearth_rpc *rpc,
                                         const Querier__V1__SelectMergeStacktracesRequest *in,
                                         bool is_pprof, struct hearth_merge_spec *ret);
/* The call graph of a selection, appended as Graphviz; spec->max_nodes is the number of functions.
 * */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_dot(struct hearth_rpc *rpc, const struct hearth_query *query,
                                  const struct hearth_merge_spec *spec, struct hearth_buf *out);
/* Profile, span and trace as texts; false when the request's arena is full. */
HEARTH_MUST_CHECK bool hearth_rpc_exemplars(struct hearth_rpc *rpc,
                                            const struct hearth_exemplar *exemplars, size_t n,
                                            Types__V1__Exemplar ***ret);
/*
 * The merged stack traces in a format: a field of out (initialised by the caller), or, of pprof,
 * rpc->packed, as the response of SelectMergeStacktraces.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_merge(struct hearth_rpc *rpc, const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    Querier__V1__ProfileFormat format,
                                    Querier__V1__SelectMergeStacktracesResponse *out);
/* As messages, in the request's arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_flamegraph(struct hearth_rpc *rpc,
                                         const struct hearth_flamegraph *graph,
                                         Querier__V1__FlameGraph **ret);
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_flame_diff(struct hearth_rpc *rpc,
                                         const struct hearth_flame_diff *diff,
                                         Querier__V1__FlameGraphDiff **ret);
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_series(struct hearth_rpc *rpc, const struct hearth_timeseries *series,
                                     size_t n, Types__V1__Series ***ret);
/* End with the standard complaint of a full arena. */
void hearth_rpc_end_full(struct hearth_rpc *rpc);

#endif
