/* svc_diff.c -- querier.v1: the diff of two selections, and the call graph of one. */
#include "handlers.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"

enum hearth_status hearth_rpc_dot(struct hearth_rpc *rpc, const struct hearth_query *query,
                                  const struct hearth_merge_spec *spec, struct hearth_buf *out)
{
    int64_t n = spec->has_max_nodes ? spec->max_nodes : 0;
    return hearth_query_dot(query, spec, n, out, &rpc->err);
}

/* Reads a side; an absent side is read as an empty request, which is refused. */
static enum hearth_status read_side(struct hearth_rpc *rpc, const char *name,
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

enum hearth_status hearth_rpc_flame_diff(struct hearth_rpc *rpc,
                                         const struct hearth_flame_diff *diff,
                                         Querier__V1__FlameGraphDiff **ret)
{
    Querier__V1__FlameGraphDiff *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    char **names = hearth_arena_array(&rpc->arena, diff->n_names, sizeof *names);
    Querier__V1__Level **levels = hearth_arena_array(&rpc->arena, diff->n_levels, sizeof *levels);
    Querier__V1__Level *bodies = hearth_arena_array(&rpc->arena, diff->n_levels, sizeof *bodies);
    if (out == NULL || names == NULL || levels == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Names are copied; values are borrowed from the diff. */
    querier__v1__flame_graph_diff__init(out);
    for (size_t i = 0; i < diff->n_names; i++) {
        names[i] = hearth_rpc_text(rpc, diff->names[i]);
    }

    for (size_t i = 0; i < diff->n_levels; i++) {
        querier__v1__level__init(&bodies[i]);
        bodies[i].n_values = diff->levels[i].n;
        bodies[i].values = diff->levels[i].values;
        levels[i] = &bodies[i];
    }

    /* Fill the message. */
    out->n_names = diff->n_names;
    out->names = names;
    out->n_levels = diff->n_levels;
    out->levels = levels;
    out->total = diff->total;
    out->max_self = diff->max_self;
    out->leftticks = diff->left_total;
    out->rightticks = diff->right_total;
    *ret = out;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static enum hearth_status diff_sides(struct hearth_rpc *rpc)
{
    const Querier__V1__DiffRequest *in = (const Querier__V1__DiffRequest *)rpc->request;
    struct hearth_query left, right;
    struct hearth_merge_spec left_spec, right_spec;
    struct hearth_flame_diff diff = {0};

    /* Both sides are read before a query runs. */
    HEARTH_TRY(read_side(rpc, "left", in->left, &left, &left_spec));
    HEARTH_TRY(read_side(rpc, "right", in->right, &right, &right_spec));
    HEARTH_TRY(hearth_query_diff(&left, &left_spec, &right, &right_spec, &diff, &rpc->err));

    /* Make the answer in the arena. */
    Querier__V1__DiffResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    querier__v1__diff_response__init(out);
    rpc->answer = &out->base;

    return hearth_rpc_flame_diff(rpc, &diff, &out->flamegraph);
}

void hearth_svc_diff(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, diff_sides(rpc));
}
