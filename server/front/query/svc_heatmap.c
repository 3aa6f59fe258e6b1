/* svc_heatmap.c -- querier.v1: profiles and spans by value and time. */
#include "handlers.h"
#include "query/query_maps.h"
#include "query/svc_querier.h"
#include "rpc/unary.h"

/* The number of cells of a slot: the same as of the heatmap's edges. */
#define CELLS HEARTH_ARRAY_LEN(((struct hearth_heatmap_slot *)NULL)->counts)

/* ---- messages ---- */

static void fill_slot_counts(struct hearth_rpc *rpc HEARTH_UNUSED, const void *from, void *message)
{
    const struct hearth_heatmap_slot *in = from;
    Types__V1__HeatmapSlot *out = message;

    out->n_counts = CELLS;
    out->counts = (int32_t *)(uintptr_t)in->counts; /* borrowed */
}

HEARTH_MAP_TYPES(slot, struct hearth_heatmap_slot, Types__V1__HeatmapSlot);
static const struct hearth_message_member slot_members[] = {
    HEARTH_MAP(slot, ts_ms, timestamp),
    HEARTH_MAP_LIST(slot, exemplars, n_exemplars, exemplars, &hearth_exemplar_map),
};
static const struct hearth_message_map slot_map =
    HEARTH_MESSAGE_MAP_AND(slot, types__v1__heatmap_slot__descriptor, fill_slot_counts);

HEARTH_MAP_TYPES(row, struct hearth_heatmap_series, Types__V1__HeatmapSeries);
static const struct hearth_message_member row_members[] = {
    HEARTH_MAP_LIST(row, slots, n_slots, slots, &slot_map),
    HEARTH_MAP_LABELS(row, labels, labels),
};
static const struct hearth_message_map row_map =
    HEARTH_MESSAGE_MAP(row, types__v1__heatmap_series__descriptor);

/* ---- SelectHeatmap ---- */

static enum hearth_status read_heatmap_spec(struct hearth_rpc *rpc,
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

HEARTH_UNARY(hearth_svc_select_heatmap, Querier__V1__SelectHeatmapRequest,
             Querier__V1__SelectHeatmapResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_heatmap_spec spec;

    /* Read the request. */
    HEARTH_TRY(read_heatmap_spec(rpc, in, &spec));
    struct hearth_heatmap *heatmap = hearth_arena_alloc(&rpc->arena, sizeof *heatmap);
    if (heatmap == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query. The answer borrows the counts of the heatmap. */
    HEARTH_TRY(hearth_query_heatmap(&query, &spec, heatmap, &rpc->err));
    HEARTH_RPC_LIST(rpc, &row_map, heatmap->series, heatmap->n_series, out, series);

    /* All slots share the edges of the cells. */
    for (size_t i = 0; i < out->n_series; i++) {
        for (size_t k = 0; k < out->series[i]->n_slots; k++) {
            out->series[i]->slots[k]->n_y_min = CELLS;
            out->series[i]->slots[k]->y_min = heatmap->y_min;
        }
    }

    return HEARTH_OK;
}
