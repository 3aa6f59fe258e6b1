/* svc_explain.c -- hearth.v1.QueryService: how a query would be answered. */
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "handlers.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"

static const Hearth__V1__Source g_sources[HEARTH_N_SOURCES] = {
    [HEARTH_SOURCE_PROFILE] = HEARTH__V1__SOURCE__SOURCE_PROFILE,
    [HEARTH_SOURCE_LATE] = HEARTH__V1__SOURCE__SOURCE_LATE,
    [HEARTH_SOURCE_SEGMENT] = HEARTH__V1__SOURCE__SOURCE_SEGMENT,
    [HEARTH_SOURCE_TOTALS] = HEARTH__V1__SOURCE__SOURCE_HOUR_TOTALS,
    [HEARTH_SOURCE_ROLL_10M] = HEARTH__V1__SOURCE__SOURCE_ROLL_10M,
    [HEARTH_SOURCE_ROLL_1H] = HEARTH__V1__SOURCE__SOURCE_ROLL_1H,
    [HEARTH_SOURCE_ROLL_1D] = HEARTH__V1__SOURCE__SOURCE_ROLL_1D,
};

static enum hearth_status explain(struct hearth_rpc *rpc, struct hearth_explanation *ret)
{
    const Hearth__V1__ExplainRequest *in = (const Hearth__V1__ExplainRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    const struct hearth_str *call_site = hearth_rpc_strs(rpc, in->call_site, in->n_call_site);
    const struct hearth_str *group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by);
    if (call_site == NULL || group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Explain the query by the method that would answer it. */
    switch (in->kind) {
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_UNSPECIFIED:
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_MERGE: {
        struct hearth_merge_spec spec = {
            .profile_type = hearth_str_c(in->profile_type),
            .selector = hearth_str_c(in->label_selector),
            .stacks.call_site = call_site,
            .stacks.n_call_site = in->n_call_site,
        };
        return hearth_query_explain_merge(&query, &spec, ret, &rpc->err);
    }
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_TIME_SERIES: {
        struct hearth_timeseries_spec spec = {
            .profile_type = hearth_str_c(in->profile_type),
            .selector = hearth_str_c(in->label_selector),
            .group_by = group_by,
            .n_group_by = in->n_group_by,
            .step_seconds = in->step,
            .stacks.call_site = call_site,
            .stacks.n_call_site = in->n_call_site,
        };
        return hearth_query_explain_timeseries(&query, &spec, ret, &rpc->err);
    }
    default:
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "kind %d is not known: QUESTION_KIND_MERGE and "
                           "QUESTION_KIND_TIME_SERIES are",
                           (int)in->kind);
    }
}

static bool add_legs(struct hearth_rpc *rpc, const struct hearth_explanation *e,
                     Hearth__V1__ExplainResponse *out)
{
    out->legs = hearth_arena_array(&rpc->arena, e->n_legs, sizeof out->legs[0]);
    Hearth__V1__ExplainLeg *bodies = hearth_arena_array(&rpc->arena, e->n_legs, sizeof *bodies);
    if (out->legs == NULL || bodies == NULL) {
        return false;
    }

    /* One message for each leg. */
    for (size_t i = 0; i < e->n_legs; i++) {
        const struct hearth_explained_leg *leg = &e->legs[i];
        hearth__v1__explain_leg__init(&bodies[i]);
        bodies[i].source = g_sources[leg->source];
        bodies[i].whole_service = leg->whole_service;
        bodies[i].from_ns = leg->from_ns;
        bodies[i].to_ns = leg->to_ns;
        bodies[i].services = leg->n_services;
        bodies[i].series = leg->n_series;
        bodies[i].rows = leg->n_rows;
        bodies[i].bytes = leg->n_bytes;
        bodies[i].milliseconds = leg->ms;
        out->legs[i] = &bodies[i];
    }

    out->n_legs = e->n_legs;

    return true;
}

static bool add_totals(struct hearth_rpc *rpc, const struct hearth_explanation *e,
                       Hearth__V1__ExplainResponse *out)
{
    out->totals = hearth_arena_array(&rpc->arena, HEARTH_N_SOURCES, sizeof out->totals[0]);
    Hearth__V1__ExplainTotal *bodies =
        hearth_arena_array(&rpc->arena, HEARTH_N_SOURCES, sizeof *bodies);
    if (out->totals == NULL || bodies == NULL) {
        return false;
    }

    /* Sum the legs of each source; unused sources are left out. */
    for (size_t source = 0; source < HEARTH_N_SOURCES; source++) {
        Hearth__V1__ExplainTotal *total = &bodies[source];
        bool used = false;
        hearth__v1__explain_total__init(total);
        total->source = g_sources[source];
        for (size_t i = 0; i < e->n_legs; i++) {
            if (e->legs[i].source == (enum hearth_source)source) {
                used = true;
                total->rows += e->legs[i].n_rows;
                total->bytes += e->legs[i].n_bytes;
                total->milliseconds += e->legs[i].ms;
            }
        }

        if (used) {
            out->totals[out->n_totals++] = total;
        }
    }

    return true;
}

static enum hearth_status answer(struct hearth_rpc *rpc)
{
    struct hearth_explanation e = {0};

    HEARTH_TRY(explain(rpc, &e));

    /* Make the answer in the arena. */
    Hearth__V1__ExplainResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    char **notes = hearth_arena_array(&rpc->arena, e.n_notes, sizeof *notes);
    if (out == NULL || notes == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Sums of all legs. */
    hearth__v1__explain_response__init(out);
    out->from_ns = e.from_ns;
    out->to_ns = e.to_ns;
    out->services = e.n_services;
    out->series = e.n_series;
    out->rows = e.n_rows;
    out->bytes = e.n_bytes;
    out->milliseconds = e.ms;

    /* Notes, legs and totals of sources. */
    out->notes = notes;
    for (; out->n_notes < e.n_notes; out->n_notes++) {
        notes[out->n_notes] = hearth_rpc_text(rpc, e.notes[out->n_notes]);
    }

    if (!add_legs(rpc, &e, out) || !add_totals(rpc, &e, out) || rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_explain(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, answer(rpc));
}
