/* explain.c -- the plan of each kind of query (select/explain_selection.c has its amounts). */
#include "select/planned.h"
#include "select/stack_filter.h"

#include <assert.h>

/* The specification of a query of single profiles, and whether it reads rows or totals. */
struct profiles_spec {
    const struct hearth_merge_spec *merge;
    bool rows;
};

static enum hearth_status explain_merge(const struct hearth_query *query, const void *spec,
                                        struct hearth_explanation *ret, struct hearth_err *err)
{
    struct hearth_selection selection;
    HEARTH_TRY(hearth_merge_select(query, spec, &selection, err));
    return hearth_selection_explain(query, &selection, ret, err);
}

static enum hearth_status select_explained(const struct hearth_query *query,
                                           const struct hearth_series_choice *choice,
                                           struct hearth_selection *ret, struct hearth_err *err)
{
    const struct hearth_call_index *index;

    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_selection_make(query, choice, index, ret, err);
    hearth_call_index_unlock(index);

    return status;
}

static enum hearth_status explain_timeseries(const struct hearth_query *query, const void *of,
                                             struct hearth_explanation *ret, struct hearth_err *err)
{
    const struct hearth_timeseries_spec *spec = of;
    struct hearth_buckets buckets;
    struct hearth_selection selection;

    HEARTH_TRY(hearth_stack_filter_check(&spec->stacks, query->call.arena, err));
    HEARTH_TRY(hearth_timeseries_buckets(query, spec, &buckets, err));
    const struct hearth_series_choice choice = {spec->profile_type, spec->selector, buckets.from_ns,
                                                buckets.to_ns};
    HEARTH_TRY(select_explained(query, &choice, &selection, err));
    selection.totals = true;
    selection.rows = !hearth_stack_filter_is_empty(&spec->stacks);
    if (buckets.empty) {
        selection.n_hits = selection.n_services = 0;
    }

    return hearth_selection_explain(query, &selection, ret, err);
}

static enum hearth_status explain_profiles(const struct hearth_query *query, const void *of,
                                           struct hearth_explanation *ret, struct hearth_err *err)
{
    const struct profiles_spec *spec = of;
    struct hearth_selection selection;

    HEARTH_TRY(hearth_merge_select(query, spec->merge, &selection, err));
    selection.totals = !spec->rows;
    selection.rows = spec->rows;

    return hearth_selection_explain(query, &selection, ret, err);
}

/* Labels, values, series and types are answered from the index of labels alone. */
static enum hearth_status explain_labels(const struct hearth_query *query, const void *of,
                                         struct hearth_explanation *ret, struct hearth_err *err)
{
    struct hearth_series_hits hits;
    struct hearth_range range;

    HEARTH_TRY(hearth_query_label_hits(query, of, &range, &hits, err));
    hearth_call_note(&query->call, "read from the index of labels in memory; no profile is read");

    const struct hearth_selection nothing = {.from_ns = range.from_ns, .to_ns = range.to_ns};
    HEARTH_TRY(hearth_selection_explain(query, &nothing, ret, err));
    ret->n_series = (int64_t)hits.n;
    for (size_t i = 0; i < hits.n; i++) {
        ret->n_services += i == 0 || hits.v[i].service_id != hits.v[i - 1].service_id;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_query_explain_merge(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              struct hearth_explanation *ret,
                                              struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_merge, spec, ret, err);
}

enum hearth_status hearth_query_explain_timeseries(const struct hearth_query *query,
                                                   const struct hearth_timeseries_spec *spec,
                                                   struct hearth_explanation *ret,
                                                   struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_timeseries, spec, ret, err);
}

enum hearth_status hearth_query_explain_profiles(const struct hearth_query *query,
                                                 const struct hearth_merge_spec *spec, bool rows,
                                                 struct hearth_explanation *ret,
                                                 struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    const struct profiles_spec profiles = {spec, rows};
    return hearth_explain_with_notes(query, explain_profiles, &profiles, ret, err);
}

enum hearth_status hearth_query_explain_labels(const struct hearth_query *query,
                                               const struct hearth_label_request *request,
                                               struct hearth_explanation *ret,
                                               struct hearth_err *err)
{
    assert(query != NULL && request != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_labels, request, ret, err);
}
