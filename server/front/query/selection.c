/* selection.c -- reads hearth.v1.Selection as arguments of the engine (selection.h). */
#include "query/selection.h"

#include "rpc/front_internal.h"
#include "rpc/gauges.h"

#include <assert.h>

enum hearth_status hearth_rpc_top_kind(struct hearth_rpc *rpc, Hearth__V1__TopKind in,
                                       enum hearth_top_kind *ret)
{
    static const enum hearth_top_kind kinds[] = {
        [HEARTH__V1__TOP_KIND__TOP_KIND_UNSPECIFIED] = HEARTH_TOP_FUNCTION,
        [HEARTH__V1__TOP_KIND__TOP_KIND_FUNCTION] = HEARTH_TOP_FUNCTION,
        [HEARTH__V1__TOP_KIND__TOP_KIND_LINE] = HEARTH_TOP_LINE,
        [HEARTH__V1__TOP_KIND__TOP_KIND_FILE] = HEARTH_TOP_FILE,
        [HEARTH__V1__TOP_KIND__TOP_KIND_DIRECTORY] = HEARTH_TOP_DIRECTORY,
        [HEARTH__V1__TOP_KIND__TOP_KIND_CLASS] = HEARTH_TOP_CLASS,
        [HEARTH__V1__TOP_KIND__TOP_KIND_PACKAGE] = HEARTH_TOP_PACKAGE,
        [HEARTH__V1__TOP_KIND__TOP_KIND_MODULE] = HEARTH_TOP_MODULE,
        [HEARTH__V1__TOP_KIND__TOP_KIND_THREAD] = HEARTH_TOP_THREAD,
        [HEARTH__V1__TOP_KIND__TOP_KIND_FRAME_KIND] = HEARTH_TOP_FRAME_KIND,
    };

    /* Numbers of the request are hostile. */
    if ((unsigned)in >= HEARTH_ARRAY_LEN(kinds)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "kind %d is not known", (int)in);
    }

    *ret = kinds[in];
    return HEARTH_OK;
}

/* Reads the conditions on rows; a condition without content is a mistake of the caller. */
static enum hearth_status read_row_filters(struct hearth_rpc *rpc,
                                           const Hearth__V1__StackFilter *in,
                                           struct hearth_stack_filter *ret)
{
    struct hearth_row_filter *rows = hearth_arena_array(&rpc->arena, in->n_rows, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_rows; i++) {
        const Hearth__V1__RowFilter *row = in->rows[i];
        rows[i] = (struct hearth_row_filter){
            .names = hearth_rpc_strs(rpc, row->names, row->n_names),
            .n_names = row->n_names,
            .without = hearth_rpc_strs(rpc, row->without, row->n_without),
            .n_without = row->n_without,
            .regex = hearth_str_c(row->regex),
            .without_regex = hearth_str_c(row->without_regex),
        };
        HEARTH_TRY(hearth_rpc_top_kind(rpc, row->kind, &rows[i].kind));
        if (row->n_names + row->n_without + rows[i].regex.n + rows[i].without_regex.n == 0) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                               "stacks.rows[%zu] has no condition: set names, without, regex or "
                               "without_regex",
                               i);
        }
    }

    ret->rows = rows;
    ret->n_rows = in->n_rows;
    return HEARTH_OK;
}

enum hearth_status hearth_rpc_stack_filter(struct hearth_rpc *rpc,
                                           const Hearth__V1__StackFilter *in,
                                           struct hearth_stack_filter *ret)
{
    *ret = (struct hearth_stack_filter){0};
    if (in == NULL) {
        return HEARTH_OK;
    }

    *ret = (struct hearth_stack_filter){
        .call_site = hearth_rpc_strs(rpc, in->call_site, in->n_call_site),
        .n_call_site = in->n_call_site,
        .functions = hearth_rpc_strs(rpc, in->functions, in->n_functions),
        .n_functions = in->n_functions,
        .all_functions = in->all_functions,
        .without = hearth_rpc_strs(rpc, in->without, in->n_without),
        .n_without = in->n_without,
        .regex = hearth_str_c(in->regex),
        .without_regex = hearth_str_c(in->without_regex),
    };

    HEARTH_TRY(read_row_filters(rpc, in, ret));
    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

enum hearth_status hearth_rpc_go_stacks(struct hearth_rpc *rpc, Hearth__V1__GoStacks in,
                                        enum hearth_go_stacks *ret)
{
    switch (in) {
    case HEARTH__V1__GO_STACKS__GO_STACKS_UNSPECIFIED:
    case HEARTH__V1__GO_STACKS__GO_STACKS_STORED:
        *ret = HEARTH_GO_STORED;
        return HEARTH_OK;
    case HEARTH__V1__GO_STACKS__GO_STACKS_REPAIRED:
        *ret = HEARTH_GO_REPAIRED;
        return HEARTH_OK;
    default:
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "go_stacks has no value %d",
                           (int)in);
    }
}

/* Whether gauges are averaged, by the request; if it leaves it open, by the tenant's setting. */
static bool wants_mean(const struct hearth_rpc *rpc, Hearth__V1__Aggregation aggregation)
{
    if (aggregation == HEARTH__V1__AGGREGATION__AGGREGATION_SUM ||
        aggregation == HEARTH__V1__AGGREGATION__AGGREGATION_MEAN) {
        return aggregation == HEARTH__V1__AGGREGATION__AGGREGATION_MEAN;
    }

    return hearth_rpc_gauge_aggregation(rpc) != HEARTH_GAUGES_SUM;
}

enum hearth_status hearth_rpc_selection(struct hearth_rpc *rpc, const Hearth__V1__Selection *in,
                                        struct hearth_rpc_selection *ret)
{
    assert(ret != NULL);
    if (in == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "selection is missing");
    }

    /* Read the scalar fields; only gauges can be averaged. */
    struct hearth_profile_type type;
    HEARTH_TRY(hearth_profile_type_parse(hearth_str_c(in->profile_type), &type, &rpc->err));
    *ret = (struct hearth_rpc_selection){
        .query = hearth_rpc_query(rpc, in->start, in->end),
        .merge = {.profile_type = hearth_str_c(in->profile_type),
                  .selector = hearth_str_c(in->label_selector),
                  .mean = hearth_profile_type_is_gauge(&type) && wants_mean(rpc, in->aggregation)},
        .unit = hearth_rpc_text(rpc, type.sample_unit),
    };
    ret->aggregation = ret->merge.mean ? HEARTH__V1__AGGREGATION__AGGREGATION_MEAN
                                       : HEARTH__V1__AGGREGATION__AGGREGATION_SUM;
    if (ret->unit == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Read the filters of stack traces and profiles. */
    HEARTH_TRY(hearth_rpc_stack_filter(rpc, in->stacks, &ret->merge.stacks));

    return hearth_rpc_profile_filter(
        rpc,
        (struct hearth_rpc_ids){"selection.profile_ids", in->profile_ids, in->n_profile_ids, false},
        (struct hearth_rpc_ids){"selection.span_ids", in->span_ids, in->n_span_ids, true},
        (struct hearth_rpc_ids){"selection.trace_ids", in->trace_ids, in->n_trace_ids, true},
        &ret->merge.profiles);
}
