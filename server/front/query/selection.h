/*
 * selection.h -- hearth.v1.Selection: what the questions of QueryService begin with, read once for
 * all of them.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_SELECTION_H
#define HEARTH_FRONT_SELECTION_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "query/svc_querier.h"

struct hearth_rpc_selection {
    struct hearth_query query;
    struct hearth_merge_spec merge;
    /* For the answer: what was done with gauges (SUM for other types), and the unit of values. */
    Hearth__V1__Aggregation aggregation;
    char *unit;
};

/*
 * In the request's arena, texts borrowed from the request. INVALID_ARGUMENT for a selection that is
 * missing, for its profile type and its ids; its selector and filters are the engine's to check.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_selection(struct hearth_rpc *rpc, const Hearth__V1__Selection *in,
                                        struct hearth_rpc_selection *ret);

/* Which stack traces count; in NULL: all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_stack_filter(struct hearth_rpc *rpc,
                                           const Hearth__V1__StackFilter *in,
                                           struct hearth_stack_filter *ret);

/* Rows of a table as messages, in the request's arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_top_rows(struct hearth_rpc *rpc, const struct hearth_top *top,
                                       Hearth__V1__TopRow ***ret);

/* INVALID_ARGUMENT for a number that means nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_go_stacks(struct hearth_rpc *rpc, Hearth__V1__GoStacks in,
                                        enum hearth_go_stacks *ret);

#endif
