/* svc_functions.c -- hearth.v1.QueryService: tables of functions, sandwich, lines. */
#include "handlers.h"
#include "query/selection.h"
#include "rpc/front_internal.h"

#define DEFAULT_TOP_ROWS 100

/* ---- Top ---- */

static enum hearth_status read_top_spec(struct hearth_rpc *rpc, const Hearth__V1__TopRequest *in,
                                        struct hearth_top_spec *ret)
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
    };
    static const enum hearth_top_sort sorts[] = {
        [HEARTH__V1__TOP_SORT__TOP_SORT_UNSPECIFIED] = HEARTH_TOP_BY_SELF,
        [HEARTH__V1__TOP_SORT__TOP_SORT_SELF] = HEARTH_TOP_BY_SELF,
        [HEARTH__V1__TOP_SORT__TOP_SORT_TOTAL] = HEARTH_TOP_BY_TOTAL,
        [HEARTH__V1__TOP_SORT__TOP_SORT_NAME] = HEARTH_TOP_BY_NAME,
    };

    /* Numbers of the request are hostile. */
    if ((unsigned)in->kind >= HEARTH_ARRAY_LEN(kinds)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "kind %d is not known",
                           (int)in->kind);
    }

    if ((unsigned)in->sort >= HEARTH_ARRAY_LEN(sorts)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "sort %d is not known",
                           (int)in->sort);
    }

    /* A limit of 0 is the default. */
    *ret = (struct hearth_top_spec){
        .kind = kinds[in->kind],
        .search = hearth_str_c(in->search),
        .sort = sorts[in->sort],
        .reverse = in->reverse,
        .limit = in->limit == 0 ? DEFAULT_TOP_ROWS : in->limit,
        .offset = in->offset,
    };

    return HEARTH_OK;
}

enum hearth_status hearth_rpc_top_rows(struct hearth_rpc *rpc, const struct hearth_top *top,
                                       Hearth__V1__TopRow ***ret)
{
    Hearth__V1__TopRow **rows = hearth_arena_array(&rpc->arena, top->n_rows, sizeof *rows);
    Hearth__V1__TopRow *bodies = hearth_arena_array(&rpc->arena, top->n_rows, sizeof *bodies);
    if (rows == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* One message for each row. */
    for (size_t i = 0; i < top->n_rows; i++) {
        const struct hearth_top_row *row = &top->rows[i];
        hearth__v1__top_row__init(&bodies[i]);
        bodies[i].name = hearth_rpc_text(rpc, row->name);
        bodies[i].file = hearth_rpc_text(rpc, row->file);
        bodies[i].module = hearth_rpc_text(rpc, row->module);
        bodies[i].line = row->line;
        bodies[i].self = row->self;
        bodies[i].total = row->total;
        rows[i] = &bodies[i];
    }

    *ret = rows;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static enum hearth_status answer_top(struct hearth_rpc *rpc,
                                     const struct hearth_rpc_selection *selection,
                                     const struct hearth_top *top)
{
    Hearth__V1__TopResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Rows, then the sums of the table. */
    hearth__v1__top_response__init(out);
    HEARTH_TRY(hearth_rpc_top_rows(rpc, top, &out->rows));
    out->n_rows = top->n_rows;
    out->row_count = top->n_all;
    out->total = top->total;
    out->aggregation = selection->aggregation;
    out->unit = selection->unit;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status top(struct hearth_rpc *rpc)
{
    const Hearth__V1__TopRequest *in = (const Hearth__V1__TopRequest *)rpc->request;
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

    return answer_top(rpc, &selection, &table);
}

void hearth_svc_top(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, top(rpc));
}

/* ---- Sandwich ---- */

static enum hearth_status check_function(struct hearth_rpc *rpc, const char *function)
{
    return function[0] == '\0'
               ? HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "function is required")
               : HEARTH_OK;
}

static bool make_side(struct hearth_rpc *rpc, const struct hearth_sandwich_node *nodes, size_t n,
                      Hearth__V1__SandwichNode ***ret)
{
    Hearth__V1__SandwichNode **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__SandwichNode *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (list == NULL || bodies == NULL) {
        return false;
    }

    /* One message for each node. */
    for (size_t i = 0; i < n; i++) {
        hearth__v1__sandwich_node__init(&bodies[i]);
        bodies[i].name = hearth_rpc_text(rpc, nodes[i].name);
        bodies[i].parent = nodes[i].parent;
        bodies[i].self = nodes[i].self;
        bodies[i].total = nodes[i].total;
        list[i] = &bodies[i];
    }

    *ret = list;

    return !rpc->arena.refused;
}

static enum hearth_status sandwich(struct hearth_rpc *rpc)
{
    const Hearth__V1__SandwichRequest *in = (const Hearth__V1__SandwichRequest *)rpc->request;
    struct hearth_rpc_selection selection;
    struct hearth_sandwich answer;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    HEARTH_TRY(check_function(rpc, in->function));
    selection.merge.has_max_nodes = true;
    selection.merge.max_nodes = in->max_nodes;
    HEARTH_TRY(hearth_rpc_go_stacks(rpc, in->go_stacks, &selection.merge.go_stacks));

    /* Query callers and callees. */
    HEARTH_TRY(hearth_query_sandwich(&selection.query, &selection.merge, hearth_str_c(in->function),
                                     &answer, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__SandwichResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__sandwich_response__init(out);
    out->self = answer.self;
    out->total = answer.total;
    out->whole = answer.whole;
    out->n_callers = answer.n_callers;
    out->n_callees = answer.n_callees;
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;
    if (!make_side(rpc, answer.callers, answer.n_callers, &out->callers) ||
        !make_side(rpc, answer.callees, answer.n_callees, &out->callees)) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_sandwich(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, sandwich(rpc));
}

/* ---- Lines ---- */

static bool make_lines(struct hearth_rpc *rpc, const struct hearth_lines *answer,
                       Hearth__V1__LinesResponse *out)
{
    out->lines = hearth_arena_array(&rpc->arena, answer->n_lines, sizeof out->lines[0]);
    Hearth__V1__Line *bodies = hearth_arena_array(&rpc->arena, answer->n_lines, sizeof *bodies);
    if (out->lines == NULL || bodies == NULL) {
        return false;
    }

    /* One message for each line. */
    for (size_t i = 0; i < answer->n_lines; i++) {
        const struct hearth_line_total *line = &answer->lines[i];
        hearth__v1__line__init(&bodies[i]);
        bodies[i].line = line->line;
        bodies[i].self = line->self;
        bodies[i].total = line->total;
        bodies[i].file = hearth_rpc_text(rpc, line->file);
        bodies[i].mapping = hearth_rpc_text(rpc, line->mapping);
        bodies[i].build_id = hearth_rpc_text(rpc, line->build_id);
        out->lines[i] = &bodies[i];
    }

    out->n_lines = answer->n_lines;

    return !rpc->arena.refused;
}

static bool make_sources(struct hearth_rpc *rpc, const struct hearth_lines *answer,
                         Hearth__V1__LinesResponse *out)
{
    out->sources = hearth_arena_array(&rpc->arena, answer->n_sources, sizeof out->sources[0]);
    Types__V1__Labels *bodies = hearth_arena_array(&rpc->arena, answer->n_sources, sizeof *bodies);
    if (out->sources == NULL || bodies == NULL) {
        return false;
    }

    /* One message for each set of labels. */
    for (size_t i = 0; i < answer->n_sources; i++) {
        types__v1__labels__init(&bodies[i]);
        bodies[i].n_labels = answer->sources[i].n;
        if (!hearth_rpc_labels(rpc, &answer->sources[i], &bodies[i].labels)) {
            return false;
        }

        out->sources[i] = &bodies[i];
    }

    out->n_sources = answer->n_sources;

    return true;
}

static enum hearth_status lines(struct hearth_rpc *rpc)
{
    const Hearth__V1__LinesRequest *in = (const Hearth__V1__LinesRequest *)rpc->request;
    struct hearth_rpc_selection selection;
    struct hearth_lines answer;

    /* Read the request, and query. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    HEARTH_TRY(check_function(rpc, in->function));
    HEARTH_TRY(hearth_query_lines(&selection.query, &selection.merge, hearth_str_c(in->function),
                                  &answer, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__LinesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__lines_response__init(out);
    out->self = answer.self;
    out->total = answer.total;
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;
    if (!make_lines(rpc, &answer, out) || !make_sources(rpc, &answer, out)) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_lines(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, lines(rpc));
}
