/* analyze.c -- the plan of a query, summed by source. */
#include "hearth/selector/typed_query.h"

#include "select/query_internal.h"

#include <assert.h>

/* Adds the plan of one profile type. */
static void add_explained_plan(const struct hearth_explanation *e, struct hearth_analysis *analysis)
{
    analysis->n_series += e->n_series;
    analysis->n_bytes += e->n_bytes;
    int64_t n_series[HEARTH_N_SOURCES] = {0};
    for (size_t i = 0; i < e->n_legs; i++) {
        const struct hearth_explained_leg *leg = &e->legs[i];
        struct hearth_analyzed_source *source = &analysis->sources[leg->source];
        source->n_legs++;
        source->n_rows += leg->n_rows;
        source->n_bytes += leg->n_bytes;

        /* Legs of one source may have the same series: their maximum counts. */
        if (leg->n_series > n_series[leg->source]) {
            n_series[leg->source] = leg->n_series;
        }
    }

    for (size_t i = 0; i < HEARTH_N_SOURCES; i++) {
        analysis->sources[i].n_series += n_series[i];
    }
}

enum hearth_status hearth_query_analyze(const struct hearth_query *query, struct hearth_str text,
                                        struct hearth_analysis *ret, struct hearth_err *err)
{
    assert(query != NULL && ret != NULL);

    struct hearth_typed_query typed;
    struct hearth_analysis analysis = {0};

    HEARTH_TRY(hearth_typed_query_parse(text, query->call.arena, &typed, err));
    struct hearth_str *types = &typed.profile_type;
    size_t n_types = 1;
    if (typed.profile_type.n == 0) {
        const struct hearth_label_request request = {.selectors = &typed.selector,
                                                     .n_selectors = 1};
        HEARTH_TRY(hearth_query_label_values(query, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE), &request,
                                             &types, &n_types, err));
    }

    for (size_t i = 0; i < n_types; i++) {
        struct hearth_merge_spec spec = {.profile_type = types[i], .selector = typed.selector};
        struct hearth_explanation explanation;
        HEARTH_TRY(hearth_query_explain_merge(query, &spec, &explanation, err));
        add_explained_plan(&explanation, &analysis);
    }

    *ret = analysis;
    return HEARTH_OK;
}
