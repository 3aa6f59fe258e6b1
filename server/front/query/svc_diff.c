/* svc_diff.c -- querier.v1: the diff of two selections, and the call graph of one. */
#include "handlers.h"
#include "query/query_maps.h"
#include "query/svc_querier.h"
#include "rpc/unary.h"

/* Reads a side; an absent side is read as an empty request, which is refused. */
static enum hearth_status read_diff_side(struct hearth_rpc *rpc, const char *name,
                                         const Querier__V1__SelectMergeStacktracesRequest *in,
                                         struct hearth_query *query, struct hearth_merge_spec *spec)
{
    Querier__V1__SelectMergeStacktracesRequest empty;

    querier__v1__select_merge_stacktraces_request__init(&empty);
    in = in != NULL ? in : &empty;

    /* The name of the side is a prefix of its errors. */
    *query = hearth_rpc_query(rpc, in->start, in->end);
    enum hearth_status status = hearth_rpc_merge_spec(rpc, in, false, spec);
    if (status != HEARTH_OK) {
        hearth_err_prefix(&rpc->err, "%s", name);
    }

    return status;
}

HEARTH_UNARY(hearth_svc_diff, Querier__V1__DiffRequest, Querier__V1__DiffResponse)
{
    struct hearth_query left, right;
    struct hearth_merge_spec left_spec, right_spec;
    struct hearth_flame_diff diff = {0};

    /* Both sides are read before a query runs. */
    HEARTH_TRY(read_diff_side(rpc, "left", in->left, &left, &left_spec));
    HEARTH_TRY(read_diff_side(rpc, "right", in->right, &right, &right_spec));
    HEARTH_TRY(hearth_query_diff(&left, &left_spec, &right, &right_spec, NULL, &diff, &rpc->err));
    out->flamegraph = hearth_rpc_map(rpc, &hearth_flame_diff_map, &diff);

    return HEARTH_OK;
}
