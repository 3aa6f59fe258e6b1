/*
 * span_profile.c -- merged stack traces of spans, local roots and traces, made like all other
 * merges.
 *
 * Every given id becomes a list of ids of samples: the stored spans of a trace, the spans below
 * one, and local roots, which also find samples of spans that were not stored. A sample counts
 * once, however many of the ids it carries.
 */
#include "hearth/engine/plan.h"

#include "select/span_places.h"
#include "spans/span_stored.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_TOP_ROWS 100

/* Ids of spans, in an arena. */
struct id_list {
    uint64_t *ids;
    size_t n, cap;
};

struct profile_run {
    const struct hearth_query *query;
    const struct hearth_span_profile_spec *spec;
    struct hearth_limits limits;
    struct hearth_profile_filter filter;
    struct id_list spans, roots; /* ids of the filter */
    struct hearth_trace_id *traces;
};

/* ---- ids ---- */

static enum hearth_status append_ids(struct hearth_arena *arena, struct id_list *list,
                                     const uint64_t *ids, size_t n, struct hearth_err *err)
{
    if (!hearth_arena_grow(arena, &list->ids, &list->cap, list->n + n, sizeof list->ids[0])) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n > 0) {
        memcpy(list->ids + list->n, ids, n * sizeof ids[0]);
        list->n += n;
    }

    return HEARTH_OK;
}

static enum hearth_status add_filter_spans(struct profile_run *run, const uint64_t *ids, size_t n,
                                           struct hearth_err *err)
{
    return append_ids(run->query->call.arena, &run->spans, ids, n, err);
}

static enum hearth_status add_filter_roots(struct profile_run *run, const uint64_t *ids, size_t n,
                                           struct hearth_err *err)
{
    return append_ids(run->query->call.arena, &run->roots, ids, n, err);
}

static enum hearth_status fail_span_id(const char *what, struct hearth_str id,
                                       struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s id \"%.*s\" is that of none", what,
                       id.n > 64 ? 64 : (int)id.n, id.p == NULL ? "" : id.p);
}

static enum hearth_status read_span_ids(struct profile_run *run, struct hearth_err *err)
{
    const struct hearth_span_profile_spec *spec = run->spec;
    uint64_t ids[HEARTH_SPAN_ID_MEANINGS];

    /* Spans. */
    for (size_t i = 0; i < spec->n_span_ids; i++) {
        size_t n = hearth_span_id_meanings(spec->span_ids[i], ids);
        HEARTH_TRY(n == 0 ? fail_span_id("span", spec->span_ids[i], err) : HEARTH_OK);
        HEARTH_TRY(add_filter_spans(run, ids, n, err));
    }

    /* Local roots. */
    for (size_t i = 0; i < spec->n_local_root_ids; i++) {
        size_t n = hearth_span_id_meanings(spec->local_root_ids[i], ids);
        HEARTH_TRY(n == 0 ? fail_span_id("local root", spec->local_root_ids[i], err) : HEARTH_OK);
        HEARTH_TRY(add_filter_roots(run, ids, n, err));
    }

    return HEARTH_OK;
}

/* Read the ids of traces, and of their stored spans. */
static enum hearth_status read_trace_ids(struct profile_run *run, struct hearth_err *err)
{
    const struct hearth_span_profile_spec *spec = run->spec;
    struct hearth_arena *arena = run->query->call.arena;
    size_t n_texts = 0;
    struct hearth_str *texts =
        hearth_arena_array(arena, spec->n_trace_ids * HEARTH_TRACE_TEXTS, sizeof texts[0]);

    run->traces = hearth_arena_array(arena, spec->n_trace_ids * HEARTH_TRACE_ID_MEANINGS,
                                     sizeof run->traces[0]);
    if (texts == NULL || run->traces == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Ids in all their meanings, and the texts under which the traces may be stored. */
    for (size_t i = 0; i < spec->n_trace_ids; i++) {
        size_t n = hearth_trace_id_meanings(spec->trace_ids[i], run->traces + run->filter.n_traces);
        size_t n_new;
        HEARTH_TRY(n == 0 ? fail_span_id("trace", spec->trace_ids[i], err) : HEARTH_OK);
        run->filter.n_traces += n;
        HEARTH_TRY(
            hearth_stored_trace_texts(spec->trace_ids[i], arena, texts + n_texts, &n_new, err));
        n_texts += n_new;
    }

    /* Read the stored spans of the traces. */
    struct hearth_stored_groups groups = {0};
    const struct hearth_span_query asked = {.trace_ids = texts, .n_trace_ids = n_texts};
    if (n_texts > 0) {
        HEARTH_TRY(hearth_stored_groups_read(run->query, &asked, &groups, err));
    }

    /* Add their ids, as spans and as local roots. */
    for (size_t g = 0; g < groups.n; g++) {
        for (size_t i = 0; i < groups.v[g].n_spans && groups.v[g].group.is_raw; i++) {
            uint64_t id = (uint64_t)groups.v[g].spans[i].span_id;
            uint64_t others[HEARTH_SPAN_ID_MEANINGS];
            size_t n = hearth_stored_profile_ids(&groups.v[g].spans[i], others);
            HEARTH_TRY(add_filter_spans(run, others, n, err));
            HEARTH_TRY(add_filter_spans(run, &id, 1, err));
            HEARTH_TRY(add_filter_roots(run, &id, 1, err));
        }
    }

    /* Note a limit. */
    if (groups.is_cut) {
        hearth_call_note(&run->query->call,
                         "more spans are stored of these traces than one request looks at: the "
                         "latest %lld count (max-lookup-spans)",
                         (long long)run->limits.max_lookup_spans);
    }

    return HEARTH_OK;
}

static bool is_missing_span(const struct hearth_span_family *family, struct hearth_str text)
{
    uint64_t ids[HEARTH_SPAN_ID_MEANINGS];
    size_t n = hearth_span_id_meanings(text, ids), n_missing = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < family->n_missing; k++) {
            n_missing += family->missing[k] == ids[i];
        }
    }

    return n_missing >= n;
}

/*
 * Read the spans below the requested ones: stored descendants, and samples that have one of them as
 * local root.
 */
static enum hearth_status read_child_ids(struct profile_run *run, struct hearth_err *err)
{
    const struct hearth_span_profile_spec *spec = run->spec;
    struct hearth_span_family family;
    size_t n_missing = 0;
    uint64_t ids[HEARTH_SPAN_ID_MEANINGS];
    struct id_list own = {0};

    if (!spec->children || spec->n_span_ids == 0) {
        return HEARTH_OK;
    }

    /* Collect the ids of the requested spans. */
    for (size_t i = 0; i < spec->n_span_ids; i++) {
        size_t n = hearth_span_id_meanings(spec->span_ids[i], ids);
        HEARTH_TRY(append_ids(run->query->call.arena, &own, ids, n, err));
    }

    /* Find their descendants. */
    HEARTH_TRY(hearth_stored_family(run->query, own.ids, own.n, &family, err));
    HEARTH_TRY(add_filter_spans(run, family.ids, family.n, err));
    HEARTH_TRY(add_filter_roots(run, family.ids, family.n, err));
    for (size_t i = 0; i < spec->n_span_ids; i++) {
        n_missing += is_missing_span(&family, spec->span_ids[i]);
    }

    /* Note what is missing. */
    if (n_missing > 0) {
        hearth_call_note(&run->query->call,
                         "%zu of %zu spans are not stored: below them, only samples are counted "
                         "whose local root they are",
                         n_missing, spec->n_span_ids);
    }

    if (family.is_cut) {
        hearth_call_note(&run->query->call,
                         "more spans are stored of these traces than one request looks at: those "
                         "below are looked for among the latest %lld (max-lookup-spans)",
                         (long long)run->limits.max_lookup_spans);
    }

    return HEARTH_OK;
}

static enum hearth_status read_profile_ids(struct profile_run *run, struct hearth_err *err)
{
    const struct hearth_span_profile_spec *spec = run->spec;
    size_t n = spec->n_span_ids + spec->n_local_root_ids + spec->n_trace_ids;

    /* Check the number of ids. */
    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "span_ids, local_root_ids or trace_ids are required");
    }

    if (n > hearth_lookup_limit(run->limits.max_lookup_ids)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the request has %zu spans and traces; max-lookup-ids allows %lld", n,
                           (long long)run->limits.max_lookup_ids);
    }

    /* Read them. */
    run->filter.any_list = true;
    HEARTH_TRY(read_span_ids(run, err));
    HEARTH_TRY(read_trace_ids(run, err));
    HEARTH_TRY(read_child_ids(run, err));
    run->filter.spans = run->spans.ids;
    run->filter.n_spans = run->spans.n;
    run->filter.local_roots = run->roots.ids;
    run->filter.n_local_roots = run->roots.n;
    run->filter.traces = run->traces;

    return HEARTH_OK;
}

/* ---- range ---- */

/*
 * Without a given range, use the time of the first to the last profile that the index names, within
 * the limits of look-back.
 */
static enum hearth_status find_profile_range(struct profile_run *run, struct hearth_query *query,
                                             struct hearth_err *err)
{
    struct hearth_span_places places;
    int64_t from_ns = hearth_lookup_from_ns(&run->limits);
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

    if (query->start_ms != 0 || query->end_ms != 0) {
        return HEARTH_OK;
    }

    /* Find the profiles. */
    HEARTH_TRY(hearth_span_places_find(query, &run->filter, from_ns, INT64_MAX, &places, err));
    for (size_t i = 0; i < places.n; i++) {
        int64_t ts_ns = places.instants[i].ts_ns;
        first_ns = ts_ns < first_ns ? ts_ns : first_ns;
        last_ns = ts_ns > last_ns ? ts_ns : last_ns;
    }

    /* Note a limit. */
    if (places.is_cut) {
        hearth_call_note(&query->call,
                         "more profiles carry these ids than one request reads: the latest %lld "
                         "are taken (max-lookup-profiles); ask with a range",
                         (long long)run->limits.max_lookup_profiles);
    }

    /* Read only these profiles. */
    run->filter.some = true;
    run->filter.instants = places.instants;
    run->filter.n_instants = places.n;
    if (places.n == 0) {
        first_ns = last_ns = hearth_clock_wall_ns();
    }

    /* The limit of ranges does not apply, because the profiles are read one by one. */
    query->call.is_own = true;
    query->start_ms = first_ns / HEARTH_NS_PER_MS - (first_ns % HEARTH_NS_PER_MS < 0);
    query->end_ms = last_ns / HEARTH_NS_PER_MS + 1;
    query->start_ms += query->start_ms == 0;

    return HEARTH_OK;
}

/* ---- answers ---- */

static enum hearth_status merge_bytes(const struct hearth_query *query,
                                      const struct hearth_merge_spec *merge, bool is_tree,
                                      struct hearth_span_profile *ret, struct hearth_err *err)
{
    struct hearth_buf bytes;
    struct hearth_merge_spec summed = *merge;

    summed.ret_total = &ret->total;
    hearth_buf_init(&bytes, 0);
    enum hearth_status status = is_tree ? hearth_query_tree(query, &summed, &bytes, err)
                                        : hearth_query_pprof(query, &summed, &bytes, err);
    if (status == HEARTH_OK) {
        ret->bytes = hearth_arena_str(query->call.arena, hearth_buf_view(&bytes));
        if (hearth_buf_failed(&bytes) || ret->bytes.p == NULL) {
            status = HEARTH_FAIL_ARENA(err, query->call.arena);
        }
    }

    hearth_buf_release(&bytes);

    return status;
}

static enum hearth_status merge_profile(const struct profile_run *run,
                                        const struct hearth_query *query,
                                        const struct hearth_merge_spec *merge,
                                        struct hearth_span_profile *ret, struct hearth_err *err)
{
    struct hearth_top_spec top = {.limit = DEFAULT_TOP_ROWS};

    switch (run->spec->format) {
    case HEARTH_SPAN_TREE:
    case HEARTH_SPAN_PPROF:
        return merge_bytes(query, merge, run->spec->format == HEARTH_SPAN_TREE, ret, err);
    case HEARTH_SPAN_TOP:
        top.limit = merge->has_max_nodes && merge->max_nodes > 0 ? merge->max_nodes : top.limit;
        HEARTH_TRY(hearth_query_top(query, merge, &top, &ret->top, err));
        ret->total = ret->top.total;
        return HEARTH_OK;
    case HEARTH_SPAN_FLAMEGRAPH:
        break;
    }

    HEARTH_TRY(hearth_query_flamegraph(query, merge, &ret->flamegraph, err));
    ret->total = ret->flamegraph.total;

    return HEARTH_OK;
}

static enum hearth_status fail_without_samples(const struct profile_run *run,
                                               struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    const struct hearth_merge_spec *merge = &run->spec->merge;
    struct hearth_retention keep;
    char since[32], kept[32], range[96] = "";
    int64_t since_ns;

    /* Say what was searched. */
    HEARTH_TRY(hearth_span_index_since(query, &since_ns, err));
    hearth_store_retention(query->call.engine->store, query->call.tenant, &keep);
    int64_t kept_ns = hearth_plan_profiles_from(&keep, hearth_clock_wall_ns());
    if (query->start_ms == 0 && query->end_ms == 0 && since_ns > 0) {
        (void)snprintf(range, sizeof range,
                       ", found if stored since %s, when the index of spans begins",
                       hearth_plan_moment(since_ns, since));
    }

    return HEARTH_FAIL(
        err, HEARTH_NOT_FOUND,
        "no sample of " HEARTH_STR_FMT " carries any of these ids; samples are kept from %s on "
        "(retain-raw)%s; searched: samples of %zu spans, %zu local roots and %zu traces (each in "
        "all its spellings) in " HEARTH_STR_FMT,
        HEARTH_STR_ARG(merge->profile_type),
        kept_ns == INT64_MIN ? "the first" : hearth_plan_moment(kept_ns, kept), range,
        run->filter.n_spans, run->filter.n_local_roots, run->filter.n_traces,
        HEARTH_STR_ARG(merge->selector.n > 0 ? merge->selector : HEARTH_STR("{}")));
}

static enum hearth_status make_span_profile(struct profile_run *run,
                                            struct hearth_span_set *counted,
                                            struct hearth_span_profile *ret, struct hearth_err *err)
{
    struct hearth_query query = *run->query;
    struct hearth_merge_spec merge = run->spec->merge;

    assert(counted != NULL);

    /* Make the filter. */
    HEARTH_TRY(read_profile_ids(run, err));
    HEARTH_TRY(find_profile_range(run, &query, err));

    /* Merge. */
    run->filter.counted = counted;
    merge.profiles = run->filter;
    merge.selector = merge.selector.n > 0 ? merge.selector : HEARTH_STR("{}");
    HEARTH_TRY(merge_profile(run, &query, &merge, ret, err));
    if (query.plan != NULL) {
        return HEARTH_OK;
    }
    if (ret->total == 0 && hearth_stack_filter_is_empty(&merge.stacks)) {
        return fail_without_samples(run, err);
    }

    /* Copy the counted spans. */
    ret->n_span_ids = counted->n;
    ret->span_ids = hearth_arena_array(query.call.arena, counted->n, sizeof ret->span_ids[0]);
    if (ret->span_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, query.call.arena);
    }

    memcpy(ret->span_ids, counted->ids, counted->n * sizeof ret->span_ids[0]);

    return HEARTH_OK;
}

enum hearth_status hearth_query_span_profile(const struct hearth_query *query,
                                             const struct hearth_span_profile_spec *spec,
                                             struct hearth_span_profile *ret,
                                             struct hearth_err *err)
{
    struct profile_run run = {.query = query, .spec = spec};
    struct hearth_arena scratch;

    assert(query != NULL && ret != NULL);

    *ret = (struct hearth_span_profile){0};
    hearth_call_limits(&query->call, &run.limits);
    hearth_arena_init_like(&scratch, query->call.arena);
    struct hearth_span_set counted = {
        .ids = hearth_arena_array(&scratch, HEARTH_SPAN_SET_MAX, sizeof counted.ids[0])};
    enum hearth_status status = counted.ids != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(err, &scratch);
    if (status == HEARTH_OK) {
        status = make_span_profile(&run, &counted, ret, err);
    }

    hearth_arena_release(&scratch);

    return status;
}
