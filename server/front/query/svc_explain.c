/* svc_explain.c -- hearth.v1.QueryService: how a query would be answered. */
#include "hearth/engine/listed.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "handlers.h"
#include "query/query_maps.h"
#include "query/selection.h"
#include "query/svc_querier.h"
#include "rpc/unary.h"

static const Hearth__V1__Source g_sources[HEARTH_N_SOURCES] = {
    [HEARTH_SOURCE_PROFILE] = HEARTH__V1__SOURCE__SOURCE_PROFILE,
    [HEARTH_SOURCE_LATE] = HEARTH__V1__SOURCE__SOURCE_LATE,
    [HEARTH_SOURCE_SEGMENT] = HEARTH__V1__SOURCE__SOURCE_SEGMENT,
    [HEARTH_SOURCE_TOTALS] = HEARTH__V1__SOURCE__SOURCE_HOUR_TOTALS,
    [HEARTH_SOURCE_ROLL_10M] = HEARTH__V1__SOURCE__SOURCE_ROLL_10M,
    [HEARTH_SOURCE_ROLL_1H] = HEARTH__V1__SOURCE__SOURCE_ROLL_1H,
    [HEARTH_SOURCE_ROLL_1D] = HEARTH__V1__SOURCE__SOURCE_ROLL_1D,
};

/* ---- messages ---- */

static const Hearth__V1__PlanStep g_steps[] = {
    [HEARTH_STEP_ONLY] = HEARTH__V1__PLAN_STEP__PLAN_STEP_UNSPECIFIED,
    [HEARTH_STEP_TOTALS] = HEARTH__V1__PLAN_STEP__PLAN_STEP_TOTALS,
    [HEARTH_STEP_STACKS] = HEARTH__V1__PLAN_STEP__PLAN_STEP_STACKS,
    [HEARTH_STEP_PARTS] = HEARTH__V1__PLAN_STEP__PLAN_STEP_PARTS,
};

static void fill_leg_source(struct hearth_rpc *rpc HEARTH_UNUSED, const void *from, void *message)
{
    const struct hearth_explained_leg *leg = from;
    Hearth__V1__ExplainLeg *out = message;

    assert((size_t)leg->source < HEARTH_N_SOURCES);
    out->source = g_sources[leg->source];
    out->step = g_steps[leg->step];
}

HEARTH_MAP_TYPES(leg, struct hearth_explained_leg, Hearth__V1__ExplainLeg);
static const struct hearth_message_member leg_members[] = {
    HEARTH_MAP(leg, whole_service, whole_service),
    HEARTH_MAP(leg, from_ns, from_ns),
    HEARTH_MAP(leg, to_ns, to_ns),
    HEARTH_MAP(leg, n_services, services),
    HEARTH_MAP(leg, n_series, series),
    HEARTH_MAP(leg, n_rows, rows),
    HEARTH_MAP(leg, n_bytes, bytes),
    HEARTH_MAP(leg, ms, milliseconds),
    HEARTH_MAP(leg, of_base, of_base),
};
static const struct hearth_message_map leg_map =
    HEARTH_MESSAGE_MAP_AND(leg, hearth__v1__explain_leg__descriptor, fill_leg_source);

static void fill_total_source(struct hearth_rpc *rpc HEARTH_UNUSED, const void *from, void *message)
{
    const struct hearth_explained_leg *sum = from;
    Hearth__V1__ExplainTotal *out = message;

    assert((size_t)sum->source < HEARTH_N_SOURCES);
    out->source = g_sources[sum->source];
}

/* The sum of all legs of a source. */
HEARTH_MAP_TYPES(total, struct hearth_explained_leg, Hearth__V1__ExplainTotal);
static const struct hearth_message_member total_members[] = {
    HEARTH_MAP(total, n_rows, rows),
    HEARTH_MAP(total, n_bytes, bytes),
    HEARTH_MAP(total, ms, milliseconds),
};
static const struct hearth_message_map total_map =
    HEARTH_MESSAGE_MAP_AND(total, hearth__v1__explain_total__descriptor, fill_total_source);

/* Unused sources are left out of the totals. */
static void fill_totals(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_explanation *explanation = from;
    Hearth__V1__ExplainResponse *out = message;
    struct hearth_explained_leg totals[HEARTH_N_SOURCES];
    size_t n = 0;

    for (int source = 0; source < HEARTH_N_SOURCES; source++) {
        struct hearth_explained_leg *sum = &totals[n];
        bool is_used = false;
        *sum = (struct hearth_explained_leg){.source = (enum hearth_source)source};
        for (size_t i = 0; i < explanation->n_legs; i++) {
            const struct hearth_explained_leg *leg = &explanation->legs[i];
            if (leg->source == sum->source) {
                is_used = true;
                sum->n_rows += leg->n_rows;
                sum->n_bytes += leg->n_bytes;
                sum->ms += leg->ms;
            }
        }

        n += is_used;
    }

    HEARTH_RPC_LIST(rpc, &total_map, totals, n, out, totals);
}

HEARTH_MAP_TYPES(explanation, struct hearth_explanation, Hearth__V1__ExplainResponse);
static const struct hearth_message_member explanation_members[] = {
    HEARTH_MAP(explanation, from_ns, from_ns),
    HEARTH_MAP(explanation, to_ns, to_ns),
    HEARTH_MAP(explanation, n_services, services),
    HEARTH_MAP(explanation, n_series, series),
    HEARTH_MAP(explanation, n_rows, rows),
    HEARTH_MAP(explanation, n_bytes, bytes),
    HEARTH_MAP(explanation, ms, milliseconds),
    HEARTH_MAP_LIST(explanation, legs, n_legs, legs, &leg_map),
    HEARTH_MAP_TEXTS(explanation, notes, n_notes, notes),
};
const struct hearth_message_map hearth_explanation_map =
    HEARTH_MESSAGE_MAP_AND(explanation, hearth__v1__explain_response__descriptor, fill_totals);

/* ---- Explain ---- */

/* Reads the conditions on stack traces, from one of the two fields that may have them. */
static enum hearth_status read_explained_filter(struct hearth_rpc *rpc,
                                                const Hearth__V1__ExplainRequest *in,
                                                struct hearth_stack_filter *ret)
{
    if (in->stacks != NULL && in->n_call_site > 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "call_site and stacks are both set: use stacks.call_site");
    }

    HEARTH_TRY(hearth_rpc_stack_filter(rpc, in->stacks, ret));
    if (in->n_call_site > 0) {
        ret->call_site = hearth_rpc_strs(rpc, in->call_site, in->n_call_site);
        ret->n_call_site = in->n_call_site;
    }

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* Reads the ids of profiles, spans and traces, which only some kinds have. */
static enum hearth_status read_explained_ids(struct hearth_rpc *rpc,
                                             const Hearth__V1__ExplainRequest *in,
                                             struct hearth_profile_filter *ret)
{
    bool may_have = in->kind == HEARTH__V1__QUESTION_KIND__QUESTION_KIND_UNSPECIFIED ||
                    in->kind == HEARTH__V1__QUESTION_KIND__QUESTION_KIND_MERGE ||
                    in->kind == HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_ROWS;
    if (!may_have && in->n_profile_ids + in->n_span_ids + in->n_trace_ids > 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "profile_ids, span_ids and trace_ids are for QUESTION_KIND_MERGE and "
                           "_PROFILE_ROWS");
    }

    return hearth_rpc_profile_filter(
        rpc, (struct hearth_rpc_ids){"profile_ids", in->profile_ids, in->n_profile_ids, false},
        (struct hearth_rpc_ids){"span_ids", in->span_ids, in->n_span_ids, true},
        (struct hearth_rpc_ids){"trace_ids", in->trace_ids, in->n_trace_ids, true}, ret);
}

static enum hearth_status explain_series_in_time(struct hearth_rpc *rpc,
                                                 const Hearth__V1__ExplainRequest *in,
                                                 const struct hearth_query *query,
                                                 const struct hearth_stack_filter *stacks,
                                                 struct hearth_explanation *ret)
{
    const struct hearth_timeseries_spec spec = {
        .profile_type = hearth_str_c(in->profile_type),
        .selector = hearth_str_c(in->label_selector),
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .step_seconds = in->step,
        .stacks = *stacks,
    };

    if (spec.group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return hearth_query_explain_timeseries(query, &spec, ret, &rpc->err);
}

static enum hearth_status explain_catalogue(struct hearth_rpc *rpc,
                                            const Hearth__V1__ExplainRequest *in,
                                            const struct hearth_query *query,
                                            struct hearth_explanation *ret)
{
    const struct hearth_str selector = hearth_str_c(in->label_selector);
    const struct hearth_label_request request = {.selectors = &selector,
                                                 .n_selectors = selector.n > 0};

    if (in->profile_type[0] != '\0') {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "profile_type is set: queries of labels have a selector alone");
    }

    return hearth_query_explain_labels(query, &request, ret, &rpc->err);
}

static enum hearth_status explain_list(struct hearth_rpc *rpc, const Hearth__V1__ExplainRequest *in,
                                       const struct hearth_query *query,
                                       struct hearth_explanation *ret)
{
    const struct hearth_listed_filter filter = {
        .selector = hearth_str_c(in->label_selector),
        .labels = hearth_rpc_labels(rpc, in->labels, in->n_labels),
        .n_labels = in->n_labels,
        .profile_type = hearth_str_c(in->profile_type),
    };

    if (filter.labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return hearth_listed_explain(query, &filter, ret, &rpc->err);
}

static enum hearth_status explain_query(struct hearth_rpc *rpc,
                                        const Hearth__V1__ExplainRequest *in,
                                        struct hearth_explanation *ret)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_merge_spec merge = {
        .profile_type = hearth_str_c(in->profile_type),
        .selector = hearth_str_c(in->label_selector),
    };

    HEARTH_TRY(read_explained_filter(rpc, in, &merge.stacks));
    HEARTH_TRY(read_explained_ids(rpc, in, &merge.profiles));

    /* Explain the query by the method that would answer it. */
    switch (in->kind) {
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_UNSPECIFIED:
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_MERGE:
        return hearth_query_explain_merge(&query, &merge, ret, &rpc->err);
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_TOTALS:
        return hearth_query_explain_profiles(&query, &merge, false, ret, &rpc->err);
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_ROWS:
        return hearth_query_explain_profiles(&query, &merge, true, ret, &rpc->err);
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_TIME_SERIES:
        return explain_series_in_time(rpc, in, &query, &merge.stacks, ret);
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_CATALOGUE:
        return explain_catalogue(rpc, in, &query, ret);
    case HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_LIST:
        return explain_list(rpc, in, &query, ret);
    default:
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "kind %d is not known: QUESTION_KIND_MERGE, _TIME_SERIES, "
                           "_PROFILE_TOTALS, _PROFILE_ROWS, _CATALOGUE and _PROFILE_LIST are",
                           (int)in->kind);
    }
}

HEARTH_UNARY(hearth_svc_explain, Hearth__V1__ExplainRequest, Hearth__V1__ExplainResponse)
{
    struct hearth_explanation explanation = {0};

    HEARTH_TRY(explain_query(rpc, in, &explanation));
    hearth_rpc_map_into(rpc, &hearth_explanation_map, &explanation, out);

    return HEARTH_OK;
}
