/*
 * span_places.c -- queries about spans and traces read only the profiles that the span index names,
 * if it knows all profiles of the range. It lacks profiles that were stored before there was an
 * index.
 */
#include "select/span_places.h"

#include <assert.h>

/* ---- places ---- */

enum hearth_status hearth_span_places_of(const struct hearth_association *found, size_t n,
                                         struct hearth_arena *arena, struct hearth_span_places *ret,
                                         struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL);

    const uint8_t of_profiles = HEARTH_OF_SPAN | HEARTH_OF_LOCAL_ROOT | HEARTH_OF_TRACE;
    struct hearth_read_instant *v = hearth_arena_array(arena, n, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_all = 0;
    for (size_t i = 0; i < n; i++) {
        if ((found[i].of & of_profiles) != 0) {
            v[n_all++] = (struct hearth_read_instant){found[i].service_id, found[i].series_id,
                                                      found[i].ts_ns};
        }
    }

    *ret = (struct hearth_span_places){.instants = v, .n = hearth_read_instants_sort(v, n_all)};

    return HEARTH_OK;
}

/*
 * Makes the look-ups. If all lists must match, one list is enough: spans, which are in the fewest
 * profiles.
 */
static size_t make_span_lookups(const struct hearth_profile_filter *filter,
                                struct hearth_span_lookup *out)
{
    size_t n = 0;

    for (size_t i = 0; i < filter->n_spans; i++) {
        out[n++] = (struct hearth_span_lookup){hearth_span_key(filter->spans[i]), HEARTH_OF_SPAN};
    }

    bool more = n == 0 || filter->any_list;
    for (size_t i = 0; i < filter->n_local_roots && more; i++) {
        out[n++] = (struct hearth_span_lookup){hearth_span_key(filter->local_roots[i]),
                                               HEARTH_OF_LOCAL_ROOT};
    }

    more = n == 0 || filter->any_list;
    for (size_t i = 0; i < filter->n_traces && more; i++) {
        out[n++] =
            (struct hearth_span_lookup){hearth_trace_id_key(filter->traces[i]), HEARTH_OF_TRACE};
    }

    return n;
}

enum hearth_status hearth_span_places_find(const struct hearth_query *query,
                                           const struct hearth_profile_filter *filter,
                                           int64_t from_ns, int64_t to_ns,
                                           struct hearth_span_places *ret, struct hearth_err *err)
{
    assert(query != NULL && filter != NULL && ret != NULL);

    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);

    struct hearth_span_lookup *lookups = hearth_arena_array(
        query->call.arena, filter->n_spans + filter->n_local_roots + filter->n_traces,
        sizeof lookups[0]);
    if (lookups == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    const struct hearth_span_search search = {
        .lookups = lookups,
        .n_lookups = make_span_lookups(filter, lookups),
        .from_ns = from_ns,
        .to_ns = to_ns,
        .limit = hearth_lookup_limit(limits.max_lookup_profiles),
    };
    struct hearth_found_spans found;
    HEARTH_TRY(hearth_store_find_spans(HEARTH_CALL_SCOPE(&query->call), &search, &found, err));
    HEARTH_TRY(hearth_span_places_of(found.associations, found.n, query->call.arena, ret, err));
    ret->is_cut = found.is_cut;

    return HEARTH_OK;
}

enum hearth_status hearth_span_index_since(const struct hearth_query *query, int64_t *ret_ns,
                                           struct hearth_err *err)
{
    assert(query != NULL && ret_ns != NULL);

    struct hearth_query_engine *engine = query->call.engine;
    if (!atomic_load(&engine->knows_span_index)) {
        int64_t since_ns;
        HEARTH_TRY(hearth_store_span_index_since(
            &(const struct hearth_scope){.store = engine->store, .cancel = query->call.cancel},
            &since_ns, err));
        atomic_store(&engine->span_index_since_ns, since_ns);
        atomic_store(&engine->knows_span_index, true);
    }

    *ret_ns = atomic_load(&engine->span_index_since_ns);
    return HEARTH_OK;
}

/* ---- selections ---- */

/*
 * Keeps hits of the named series only. One hit stays in any case, so that the plan notes what
 * retention removed from the range.
 */
static void narrow_selection(struct hearth_selection *selection)
{
    assert(selection->n_hits > 0);
    const struct hearth_read_detail *detail = &selection->detail;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < selection->n_hits; i++) {
        const struct hearth_series_hit *hit = &selection->hits[i];
        while (at < detail->n_instants && (detail->instants[at].service_id != hit->service_id
                                               ? detail->instants[at].service_id < hit->service_id
                                               : detail->instants[at].series_id < hit->series_id)) {
            at++;
        }
        if (at < detail->n_instants && detail->instants[at].service_id == hit->service_id &&
            detail->instants[at].series_id == hit->series_id) {
            selection->hits[n] = *hit;
            if (selection->gauge) {
                selection->same_labels[n] = selection->same_labels[i];
            }
            n++;
        }
    }

    /* The services of the remaining hits. */
    selection->n_hits = n == 0 ? 1 : n;
    selection->n_services = 0;
    for (size_t i = 0; i < selection->n_hits; i++) {
        int32_t service_id = selection->hits[i].service_id;
        if (i == 0 || service_id != selection->hits[i - 1].service_id) {
            selection->service_ids[selection->n_services++] = service_id;
        }
    }
}

/*
 * Whether the index knows everything in the range. The time of a profile may be later than its
 * storing by reject_newer_than_ns.
 */
static enum hearth_status check_index_complete(const struct hearth_query *query,
                                               const struct hearth_limits *limits, int64_t from_ns,
                                               bool *ret, struct hearth_err *err)
{
    int64_t since_ns;
    HEARTH_TRY(hearth_span_index_since(query, &since_ns, err));
    *ret = since_ns <= from_ns &&
           (since_ns < 0 || (limits->reject_newer_than_ns > 0 &&
                             from_ns - since_ns >= limits->reject_newer_than_ns));
    return HEARTH_OK;
}

/*
 * Restricts a selection to the places of the filter's ids, if the index knows all and they are not
 * too many.
 */
static enum hearth_status prune_selection(const struct hearth_query *query,
                                          const struct hearth_profile_filter *filter,
                                          struct hearth_selection *selection,
                                          struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);
    size_t n_ids = filter->n_spans + filter->n_local_roots + filter->n_traces;
    bool knows = false;

    /* The index is searched by tenant; of several tenants all rows of the range are read. */
    if (hearth_call_has_tenants(&query->call) || !hearth_profile_filter_has_ids(filter) ||
        selection->n_hits == 0 || n_ids / 2 > hearth_lookup_limit(limits.max_lookup_spans)) {
        return HEARTH_OK;
    }

    HEARTH_TRY(check_index_complete(query, &limits, selection->from_ns, &knows, err));
    if (!knows) {
        return HEARTH_OK;
    }

    /* If there are too many places, all rows of the range are read instead. */
    struct hearth_span_places places;
    HEARTH_TRY(
        hearth_span_places_find(query, filter, selection->from_ns, selection->to_ns, &places, err));
    if (!places.is_cut) {
        selection->detail.some = true;
        selection->detail.instants = places.instants;
        selection->detail.n_instants = places.n;
        narrow_selection(selection);
    }

    return HEARTH_OK;
}

/* Only single profiles have profile ids, spans and traces. */
enum hearth_status hearth_selection_match(const struct hearth_query *query,
                                          const struct hearth_profile_filter *profiles,
                                          struct hearth_selection *selection,
                                          struct hearth_err *err)
{
    assert(query != NULL && selection != NULL);

    struct hearth_profile_match *match;

    HEARTH_TRY(hearth_profile_match_make(profiles, query->call.arena, &match, err));
    if (match == NULL) {
        return HEARTH_OK;
    }

    selection->match = match;
    selection->rows = true;
    selection->detail = match->detail;
    if (!profiles->some) {
        return prune_selection(query, profiles, selection, err);
    }

    if (selection->n_hits > 0) {
        narrow_selection(selection);
    }

    return HEARTH_OK;
}
