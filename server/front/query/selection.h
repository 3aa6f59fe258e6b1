/*
 * selection.h -- hearth.v1.Selection, which most requests of QueryService have, and helpers of
 * its handlers.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_SELECTION_H
#define HEARTH_FRONT_SELECTION_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "query/svc_querier.h"

/* A Selection as arguments of the engine. */
struct hearth_rpc_selection {
    struct hearth_query query;
    struct hearth_merge_spec merge;
    /* Fields of the answer: aggregation of gauges (SUM for other types), and unit of the values. */
    Hearth__V1__Aggregation aggregation;
    char *unit;
};

/*
 * Reads a selection, in the request's arena; texts are borrowed from the request. INVALID_ARGUMENT:
 * the selection is missing, or its profile type or an id is invalid. The engine checks its selector
 * and filters.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_selection(struct hearth_rpc *rpc, const Hearth__V1__Selection *in,
                                        struct hearth_rpc_selection *ret);

/* Reads a filter of stack traces, in the request's arena; in may be NULL, which selects all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_stack_filter(struct hearth_rpc *rpc,
                                           const Hearth__V1__StackFilter *in,
                                           struct hearth_stack_filter *ret);

/* Reads the kind of rows; UNSPECIFIED is FUNCTION. INVALID_ARGUMENT: an unknown number. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_top_kind(struct hearth_rpc *rpc, Hearth__V1__TopKind in,
                                       enum hearth_top_kind *ret);

/* Reads go_stacks; UNSPECIFIED is STORED. INVALID_ARGUMENT: an unknown number. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_go_stacks(struct hearth_rpc *rpc, Hearth__V1__GoStacks in,
                                        enum hearth_go_stacks *ret);

#endif
