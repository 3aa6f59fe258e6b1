/* svc_heatmap.c -- querier.v1: profiles and spans by value and time, and exemplars as messages. */
#include "handlers.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define CELLS HEARTH_ARRAY_LEN(((struct hearth_heatmap_slot *)NULL)->counts)

bool hearth_rpc_exemplars(struct hearth_rpc *rpc, const struct hearth_exemplar *exemplars, size_t n,
                          Types__V1__Exemplar ***ret)
{
    struct texts {
        char profile[HEARTH_PROFILE_ID_TEXT + 1], span[17], trace[33];
    } *texts = hearth_arena_calloc(&rpc->arena, n, sizeof *texts);
    Types__V1__Exemplar **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Types__V1__Exemplar *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (texts == NULL || list == NULL || bodies == NULL) {
        return false;
    }

    for (size_t i = 0; i < n; i++) {
        const struct hearth_exemplar *in = &exemplars[i];
        types__v1__exemplar__init(&bodies[i]);
        list[i] = &bodies[i];

        /* Ids as texts; absent spans and traces stay empty. */
        hearth_profile_id_format(in->profile, texts[i].profile);
        if (in->span_id != 0) {
            (void)snprintf(texts[i].span, sizeof texts[i].span, "%016" PRIx64, in->span_id);
        }

        if (in->trace.hi != 0 || in->trace.lo != 0) {
            (void)snprintf(texts[i].trace, sizeof texts[i].trace, "%016" PRIx64 "%016" PRIx64,
                           in->trace.hi, in->trace.lo);
        }

        /* Fill the message. */
        bodies[i].timestamp = in->ts_ms;
        bodies[i].value = in->value;
        bodies[i].profile_id = texts[i].profile;
        bodies[i].span_id = texts[i].span;
        bodies[i].trace_id = texts[i].trace;
        bodies[i].n_labels = in->labels.n;
        if (!hearth_rpc_labels(rpc, &in->labels, &bodies[i].labels)) {
            return false;
        }
    }

    *ret = list;

    return true;
}

static enum hearth_status read_spec(struct hearth_rpc *rpc,
                                    const Querier__V1__SelectHeatmapRequest *in,
                                    struct hearth_heatmap_spec *spec)
{
    bool spans = in->query_type == QUERIER__V1__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_SPAN;

    if (!spans &&
        in->query_type != QUERIER__V1__HEATMAP_QUERY_TYPE__HEATMAP_QUERY_TYPE_INDIVIDUAL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "query_type must be HEATMAP_QUERY_TYPE_INDIVIDUAL or "
                           "HEATMAP_QUERY_TYPE_SPAN");
    }

    /* Exemplars are of the same kind as the counted values. */
    bool of_profiles = in->exemplar_type == TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_INDIVIDUAL;
    bool of_spans = in->exemplar_type == TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_SPAN;
    if (spans ? of_profiles : of_spans) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "exemplar_type must match query_type, or be EXEMPLAR_TYPE_NONE");
    }

    /* An absent limit is 0. */
    *spec = (struct hearth_heatmap_spec){
        .merge = {.profile_type = hearth_str_c(in->profile_typeid),
                  .selector = hearth_str_c(in->label_selector)},
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .step_seconds = in->step,
        .spans = spans,
        .exemplars = of_profiles || of_spans,
        .limit = in->limit_presence_case != 0 ? in->limit : 0,
    };

    return spec->group_by != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
}

static bool make_slots(struct hearth_rpc *rpc, struct hearth_heatmap *heatmap,
                       struct hearth_heatmap_series *in, Types__V1__HeatmapSeries *out)
{
    Types__V1__HeatmapSlot **list = hearth_arena_array(&rpc->arena, in->n_slots, sizeof *list);
    Types__V1__HeatmapSlot *bodies = hearth_arena_array(&rpc->arena, in->n_slots, sizeof *bodies);
    if (list == NULL || bodies == NULL) {
        return false;
    }

    /* All slots share the edges of the cells. */
    for (size_t i = 0; i < in->n_slots; i++) {
        types__v1__heatmap_slot__init(&bodies[i]);
        list[i] = &bodies[i];
        bodies[i].timestamp = in->slots[i].ts_ms;
        bodies[i].n_y_min = CELLS;
        bodies[i].y_min = heatmap->y_min;
        bodies[i].n_counts = CELLS;
        bodies[i].counts = in->slots[i].counts;
        bodies[i].n_exemplars = in->slots[i].n_exemplars;
        if (!hearth_rpc_exemplars(rpc, in->slots[i].exemplars, in->slots[i].n_exemplars,
                                  &bodies[i].exemplars)) {
            return false;
        }
    }

    out->n_slots = in->n_slots;
    out->slots = list;
    out->n_labels = in->labels.n;

    return hearth_rpc_labels(rpc, &in->labels, &out->labels);
}

static enum hearth_status select_heatmap(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectHeatmapRequest *in =
        (const Querier__V1__SelectHeatmapRequest *)rpc->request;
    struct hearth_heatmap_spec spec;

    /* Read the request. */
    HEARTH_TRY(read_spec(rpc, in, &spec));
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_heatmap *heatmap = hearth_arena_alloc(&rpc->arena, sizeof *heatmap);
    Querier__V1__SelectHeatmapResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (heatmap == NULL || out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query. */
    HEARTH_TRY(hearth_query_heatmap(&query, &spec, heatmap, &rpc->err));
    querier__v1__select_heatmap_response__init(out);

    /* Make one message for each series. */
    size_t n = heatmap->n_series;
    Types__V1__HeatmapSeries **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Types__V1__HeatmapSeries *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        types__v1__heatmap_series__init(&bodies[i]);
        list[i] = &bodies[i];
        if (!make_slots(rpc, heatmap, &heatmap->series[i], &bodies[i])) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    out->n_series = n;
    out->series = list;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_select_heatmap(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, select_heatmap(rpc));
}
