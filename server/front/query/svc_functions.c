/* svc_functions.c -- hearth.v1.QueryService: tables of functions, sandwich, lines. */
#include "handlers.h"
#include "query/query_maps.h"
#include "query/selection.h"
#include "rpc/unary.h"

#define DEFAULT_TOP_ROWS 100

/* ---- Top ---- */

static enum hearth_status read_top_spec(struct hearth_rpc *rpc, const Hearth__V1__TopRequest *in,
                                        struct hearth_top_spec *ret)
{
    static const enum hearth_top_sort sorts[] = {
        [HEARTH__V1__TOP_SORT__TOP_SORT_UNSPECIFIED] = HEARTH_TOP_BY_SELF,
        [HEARTH__V1__TOP_SORT__TOP_SORT_SELF] = HEARTH_TOP_BY_SELF,
        [HEARTH__V1__TOP_SORT__TOP_SORT_TOTAL] = HEARTH_TOP_BY_TOTAL,
        [HEARTH__V1__TOP_SORT__TOP_SORT_NAME] = HEARTH_TOP_BY_NAME,
    };

    enum hearth_top_kind kind;

    /* Numbers of the request are hostile. */
    HEARTH_TRY(hearth_rpc_top_kind(rpc, in->kind, &kind));
    if ((unsigned)in->sort >= HEARTH_ARRAY_LEN(sorts)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "sort %d is not known",
                           (int)in->sort);
    }

    /* A limit of 0 is the default. */
    *ret = (struct hearth_top_spec){
        .kind = kind,
        .search = hearth_str_c(in->search),
        .sort = sorts[in->sort],
        .reverse = in->reverse,
        .limit = in->limit == 0 ? DEFAULT_TOP_ROWS : in->limit,
        .offset = in->offset,
    };

    return HEARTH_OK;
}

HEARTH_MAP_TYPES(table, struct hearth_top, Hearth__V1__TopResponse);
static const struct hearth_message_member table_members[] = {
    HEARTH_MAP_LIST(table, rows, n_rows, rows, &hearth_top_row_map),
    HEARTH_MAP(table, n_all, row_count),
    HEARTH_MAP(table, total, total),
};
static const struct hearth_message_map table_map =
    HEARTH_MESSAGE_MAP(table, hearth__v1__top_response__descriptor);

HEARTH_UNARY(hearth_svc_top, Hearth__V1__TopRequest, Hearth__V1__TopResponse)
{
    struct hearth_rpc_selection selection;
    struct hearth_top_spec spec;
    struct hearth_top table;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    HEARTH_TRY(read_top_spec(rpc, in, &spec));
    if (spec.kind == HEARTH_TOP_THREAD) { /* threads are sums of samples, never means */
        selection.merge.mean = false;
        selection.aggregation = HEARTH__V1__AGGREGATION__AGGREGATION_SUM;
    }

    /* Query and answer. */
    HEARTH_TRY(hearth_query_top(&selection.query, &selection.merge, &spec, &table, &rpc->err));
    hearth_rpc_map_into(rpc, &table_map, &table, out);
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;

    return HEARTH_OK;
}

/* ---- Sandwich ---- */

static enum hearth_status check_function(struct hearth_rpc *rpc, const char *function)
{
    assert(function != NULL);
    return function[0] == '\0'
               ? HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "function is required")
               : HEARTH_OK;
}

HEARTH_MAP_TYPES(node, struct hearth_sandwich_node, Hearth__V1__SandwichNode);
static const struct hearth_message_member node_members[] = {
    HEARTH_MAP(node, name, name),
    HEARTH_MAP(node, parent, parent),
    HEARTH_MAP(node, self, self),
    HEARTH_MAP(node, total, total),
};
static const struct hearth_message_map node_map =
    HEARTH_MESSAGE_MAP(node, hearth__v1__sandwich_node__descriptor);

HEARTH_MAP_TYPES(sandwich, struct hearth_sandwich, Hearth__V1__SandwichResponse);
static const struct hearth_message_member sandwich_members[] = {
    HEARTH_MAP(sandwich, self, self),
    HEARTH_MAP(sandwich, total, total),
    HEARTH_MAP(sandwich, whole, whole),
    HEARTH_MAP_LIST(sandwich, callers, n_callers, callers, &node_map),
    HEARTH_MAP_LIST(sandwich, callees, n_callees, callees, &node_map),
};
static const struct hearth_message_map sandwich_map =
    HEARTH_MESSAGE_MAP(sandwich, hearth__v1__sandwich_response__descriptor);

HEARTH_UNARY(hearth_svc_sandwich, Hearth__V1__SandwichRequest, Hearth__V1__SandwichResponse)
{
    struct hearth_rpc_selection selection;
    struct hearth_sandwich sandwich;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    HEARTH_TRY(check_function(rpc, in->function));
    selection.merge.has_max_nodes = true;
    selection.merge.max_nodes = in->max_nodes;
    HEARTH_TRY(hearth_rpc_go_stacks(rpc, in->go_stacks, &selection.merge.go_stacks));

    /* Query callers and callees. */
    HEARTH_TRY(hearth_query_sandwich(&selection.query, &selection.merge, hearth_str_c(in->function),
                                     &sandwich, &rpc->err));
    hearth_rpc_map_into(rpc, &sandwich_map, &sandwich, out);
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;

    return HEARTH_OK;
}

/* ---- Lines ---- */

HEARTH_MAP_TYPES(line, struct hearth_line_total, Hearth__V1__Line);
static const struct hearth_message_member line_members[] = {
    HEARTH_MAP(line, line, line),
    HEARTH_MAP(line, self, self),
    HEARTH_MAP(line, total, total),
    HEARTH_MAP(line, file, file),
    HEARTH_MAP(line, mapping, mapping),
    HEARTH_MAP(line, build_id, build_id),
    HEARTH_MAP(line, start_line, start_line),
};
static const struct hearth_message_map line_map =
    HEARTH_MESSAGE_MAP(line, hearth__v1__line__descriptor);

HEARTH_MAP_TYPES(lines, struct hearth_lines, Hearth__V1__LinesResponse);
static const struct hearth_message_member lines_members[] = {
    HEARTH_MAP(lines, self, self),
    HEARTH_MAP(lines, total, total),
    HEARTH_MAP_LIST(lines, lines, n_lines, lines, &line_map),
    HEARTH_MAP_LIST(lines, sources, n_sources, sources, &hearth_labels_map),
};
static const struct hearth_message_map lines_map =
    HEARTH_MESSAGE_MAP(lines, hearth__v1__lines_response__descriptor);

HEARTH_UNARY(hearth_svc_lines, Hearth__V1__LinesRequest, Hearth__V1__LinesResponse)
{
    struct hearth_rpc_selection selection;
    struct hearth_lines lines;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    HEARTH_TRY(check_function(rpc, in->function));

    /* Query and answer. */
    HEARTH_TRY(hearth_query_lines(&selection.query, &selection.merge, hearth_str_c(in->function),
                                  &lines, &rpc->err));
    hearth_rpc_map_into(rpc, &lines_map, &lines, out);
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;

    return HEARTH_OK;
}
