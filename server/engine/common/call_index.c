/*
 * call_index.c -- locking the label indexes of a call, and hits of visible series.
 *
 * A view is a disjunction of selectors. The label index is searched once per selector, joined with
 * that of the query by AND, and the results are united; so the index need not know about views.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store.h"

#include "common/call_index_parts.h"

#include <assert.h>

/* ---- parts ---- */

/* The view of tenant i of the call; its selectors may be none. */
static struct hearth_view view_of_tenant(const struct hearth_call *call, size_t i)
{
    if (call->n_tenants > 1) {
        return call->tenants[i];
    }

    struct hearth_view view = {.tenant = call->tenant};
    if (call->view != NULL) {
        view.selectors = call->view->selectors;
        view.n_selectors = call->view->n_selectors;
    }

    return view;
}

static void release_parts(const struct hearth_call_index *index)
{
    for (size_t i = 0; i < index->n_parts; i++) {
        hearth_selector_release(&index->parts[i].view);
    }
}

/* Parses the selectors of one view, one part for each. */
static enum hearth_status add_view_parts(struct hearth_call_index *index,
                                         const struct hearth_view *view, struct hearth_err *err)
{
    size_t n = view->n_selectors == 0 ? 1 : view->n_selectors;

    for (size_t i = 0; i < n; i++) {
        struct index_part *part = &index->parts[index->n_parts++];
        *part = (struct index_part){.tenant = view->tenant};
        hearth_selector_init(&part->view);
        enum hearth_status status =
            view->n_selectors == 0
                ? HEARTH_OK
                : hearth_selector_parse(&part->view, view->selectors[i], index->arena, NULL, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "a selector that narrows the credential");
            return status;
        }
    }

    return HEARTH_OK;
}

static enum hearth_status make_parts(const struct hearth_call *call,
                                     struct hearth_call_index *index, struct hearth_err *err)
{
    size_t n_parts = 0;

    index->n_tenants = call->n_tenants > 1 ? call->n_tenants : 1;
    for (size_t i = 0; i < index->n_tenants; i++) {
        size_t n = view_of_tenant(call, i).n_selectors;
        n_parts += n == 0 ? 1 : n;
    }

    index->parts = hearth_arena_array(call->arena, n_parts, sizeof index->parts[0]);
    if (index->parts == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < index->n_tenants; i++) {
        struct hearth_view view = view_of_tenant(call, i);
        HEARTH_TRY(add_view_parts(index, &view, err));
    }

    return HEARTH_OK;
}

/* Locks the indexes, and gives them to the parts. */
static enum hearth_status lock_parts(const struct hearth_call *call,
                                     struct hearth_call_index *index, struct hearth_err *err)
{
    size_t n = index->n_tenants;
    struct hearth_str *tenants = hearth_arena_array(call->arena, n, sizeof tenants[0]);
    const struct hearth_label_index **locked = hearth_arena_array(call->arena, n, sizeof *locked);

    if (tenants == NULL || locked == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        tenants[i] = view_of_tenant(call, i).tenant;
    }

    HEARTH_TRY(hearth_store_indexes_lock(index->store, tenants, n, call->cancel, locked, err));
    for (size_t i = 0, tenant = 0; i < index->n_parts; i++) {
        while (!hearth_str_eq(tenants[tenant], index->parts[i].tenant)) {
            tenant++;
        }
        index->parts[i].index = locked[tenant];
    }

    return HEARTH_OK;
}

bool hearth_call_index_is_cut(const struct hearth_call_index *index)
{
    bool is_cut = false;

    for (size_t i = 0; i < index->n_parts; i++) {
        is_cut = is_cut || hearth_label_index_is_cut(index->parts[i].index);
    }

    return is_cut;
}

/* Notes that series are missing. A narrowed caller is not told how many there are. */
static void note_cut_index(const struct hearth_call *call, const struct hearth_call_index *index)
{
    if (!index_is_plain(index)) {
        hearth_call_note(call, "the answer lacks series: the tenant has more of them than fit into "
                               "memory (raise label-index-bytes)");
        return;
    }

    hearth_call_note(call,
                     "the answer lacks series: the tenant has more of them than fit into memory "
                     "(raise label-index-bytes); only %zu are searched",
                     hearth_label_index_series(index->parts[0].index));
}

enum hearth_status hearth_call_index_lock(const struct hearth_call *call,
                                          const struct hearth_call_index **ret,
                                          struct hearth_err *err)
{
    assert(call != NULL && call->arena != NULL && ret != NULL);

    struct hearth_call_index *index = hearth_arena_zalloc(call->arena, sizeof *index);
    if (index == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    index->store = call->engine->store;
    index->arena = call->arena;
    enum hearth_status status = make_parts(call, index, err);
    status = status == HEARTH_OK ? lock_parts(call, index, err) : status;
    if (status != HEARTH_OK) {
        release_parts(index);
        return status;
    }

    if (hearth_call_index_is_cut(index)) {
        note_cut_index(call, index);
    }
    *ret = index;

    return HEARTH_OK;
}

void hearth_call_index_unlock(const struct hearth_call_index *index)
{
    if (index != NULL) {
        hearth_store_index_unlock(index->store, index->parts[0].index);
        release_parts(index);
    }
}

/* ---- filters ---- */

enum hearth_status hearth_index_part_filter(const struct hearth_call_index *index, size_t part,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena,
                                            struct hearth_index_filter *ret, bool *ret_any,
                                            struct hearth_err *err)
{
    const struct hearth_selector *asked = filter->selector, *view = &index->parts[part].view;
    struct hearth_selector *joined = hearth_arena_zalloc(arena, sizeof *joined);

    if (joined == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    joined->cap = asked->n + view->n;
    joined->matchers = hearth_arena_array(arena, joined->cap, sizeof joined->matchers[0]);
    if (joined->matchers == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret_any = true;
    for (size_t i = 0; i < asked->n; i++) {
        if (is_tenant_label(index, asked->matchers[i].name)) {
            *ret_any =
                *ret_any && hearth_matcher_matches(&asked->matchers[i], index->parts[part].tenant);
        } else {
            joined->matchers[joined->n++] = asked->matchers[i];
        }
    }

    for (size_t i = 0; i < view->n; i++) {
        joined->matchers[joined->n++] = view->matchers[i];
    }

    *ret = (struct hearth_index_filter){joined, filter->from_ns, filter->to_ns};

    return HEARTH_OK;
}

/* ---- hits ---- */

/* Concatenates lists of hits, sorts them and removes duplicates. */
static enum hearth_status unite_hits(const struct hearth_series_hits *lists, size_t n_lists,
                                     struct hearth_arena *arena, struct hearth_series_hits *ret,
                                     struct hearth_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < n_lists; i++) {
        n += lists[i].n;
    }

    struct hearth_series_hit *hits = hearth_arena_array(arena, n, sizeof hits[0]);
    if (hits == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    n = 0;
    for (size_t i = 0; i < n_lists; i++) {
        if (lists[i].n > 0) {
            memcpy(hits + n, lists[i].v, lists[i].n * sizeof hits[0]);
            n += lists[i].n;
        }
    }

    /* One list is sorted and distinct already. */
    *ret = (struct hearth_series_hits){hits, n_lists > 1 ? hearth_series_hits_sort(hits, n) : n};

    return HEARTH_OK;
}

enum hearth_status hearth_call_index_select(const struct hearth_call_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena,
                                            struct hearth_series_hits *ret_hits,
                                            struct hearth_err *err)
{
    assert(index != NULL && filter != NULL && ret_hits != NULL);

    if (index_is_plain(index)) {
        return hearth_label_index_select(index->parts[0].index, filter, arena, ret_hits, err);
    }

    struct hearth_series_hits *lists = hearth_arena_calloc(arena, index->n_parts, sizeof lists[0]);
    if (lists == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < index->n_parts; i++) {
        struct hearth_index_filter own;
        bool any;
        HEARTH_TRY(hearth_index_part_filter(index, i, filter, arena, &own, &any, err));
        if (any) {
            HEARTH_TRY(
                hearth_label_index_select(index->parts[i].index, &own, arena, &lists[i], err));
        }
    }

    return unite_hits(lists, index->n_parts, arena, ret_hits, err);
}

enum hearth_status hearth_call_index_covered(const struct hearth_call_index *index,
                                             const struct hearth_index_filter *filter,
                                             const struct hearth_series_hits *hits,
                                             struct hearth_arena *arena,
                                             struct hearth_series_hits *ret_covered,
                                             struct hearth_err *err)
{
    assert(index != NULL && ret_covered != NULL);

    if (!index_has_tenants(index)) {
        return hearth_label_index_covered(index->parts[0].index, filter, hits, arena, ret_covered,
                                          err);
    }

    /* An index has no active series of the services of other tenants, so these are not covered. */
    struct hearth_series_hits *lists = hearth_arena_calloc(arena, index->n_parts, sizeof lists[0]);
    if (lists == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < index->n_parts; i++) {
        if (is_first_of_tenant(index, i)) {
            HEARTH_TRY(hearth_label_index_covered(index->parts[i].index, filter, hits, arena,
                                                  &lists[i], err));
        }
    }

    return unite_hits(lists, index->n_parts, arena, ret_covered, err);
}

/* Sets first[] for the hits that the index of a part has. */
static enum hearth_status find_same_in_part(const struct index_part *part,
                                            const struct hearth_series_hits *hits,
                                            struct hearth_arena *arena, uint32_t *first,
                                            struct hearth_err *err)
{
    struct hearth_series_hits own = {hearth_arena_array(arena, hits->n, sizeof own.v[0]), 0};
    uint32_t *places = hearth_arena_array(arena, hits->n, sizeof places[0]), *found;

    if (own.v == NULL || places == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < hits->n; i++) {
        if (hearth_label_index_has_series(part->index, hits->v[i].series_id)) {
            places[own.n] = (uint32_t)i;
            own.v[own.n++] = hits->v[i];
        }
    }

    HEARTH_TRY(hearth_label_index_same_labels(part->index, &own, arena, &found, err));
    for (size_t i = 0; i < own.n; i++) {
        first[places[i]] = places[found[i]];
    }

    return HEARTH_OK;
}

enum hearth_status hearth_call_index_same_labels(const struct hearth_call_index *index,
                                                 const struct hearth_series_hits *hits,
                                                 struct hearth_arena *arena, uint32_t **ret_first,
                                                 struct hearth_err *err)
{
    assert(index != NULL && ret_first != NULL);

    if (!index_has_tenants(index)) {
        return hearth_label_index_same_labels(index->parts[0].index, hits, arena, ret_first, err);
    }

    uint32_t *first = hearth_arena_calloc(arena, hits->n, sizeof first[0]);
    if (first == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < index->n_parts; i++) {
        if (is_first_of_tenant(index, i)) {
            HEARTH_TRY(find_same_in_part(&index->parts[i], hits, arena, first, err));
        }
    }

    *ret_first = first;

    return HEARTH_OK;
}

/* ---- one series ---- */

/* Whether the view shows a hit of a series that the tenant of part i has. */
static bool shows_hit(const struct hearth_call_index *index, size_t i,
                      const struct hearth_series_hit *hit)
{
    const struct hearth_label_index *of_tenant = index->parts[i].index;

    do {
        if (hearth_label_index_matches(of_tenant, &index->parts[i].view, hit)) {
            return true;
        }
        i++;
    } while (i < index->n_parts && !is_first_of_tenant(index, i));

    return false;
}

/* The first part whose index has the series, or n_parts. */
static size_t find_part(const struct hearth_call_index *index, int32_t series_id)
{
    size_t i = 0;

    while (i < index->n_parts && !hearth_label_index_has_series(index->parts[i].index, series_id)) {
        i++;
    }

    return i;
}

enum hearth_status hearth_call_index_columns(const struct hearth_call_index *index,
                                             int32_t series_id, struct hearth_arena *arena,
                                             struct hearth_series_hits *ret_hits,
                                             struct hearth_err *err)
{
    assert(index != NULL && ret_hits != NULL);

    size_t part = index_is_plain(index) ? 0 : find_part(index, series_id), n = 0;

    *ret_hits = (struct hearth_series_hits){0};
    if (part == index->n_parts) {
        return HEARTH_OK;
    }

    HEARTH_TRY(
        hearth_label_index_columns(index->parts[part].index, series_id, arena, ret_hits, err));
    for (size_t i = 0; i < ret_hits->n; i++) {
        if (index_is_plain(index) || shows_hit(index, part, &ret_hits->v[i])) {
            ret_hits->v[n++] = ret_hits->v[i];
        }
    }

    ret_hits->n = n;

    return HEARTH_OK;
}

struct hearth_str hearth_call_index_type(const struct hearth_call_index *index,
                                         const struct hearth_series_hit *hit)
{
    assert(index != NULL && hit != NULL);

    size_t part = index->n_tenants == 1 ? 0 : find_part(index, hit->series_id);

    return part == index->n_parts ? HEARTH_STR("")
                                  : hearth_label_index_type(index->parts[part].index, hit);
}

/* Adds the label __tenant_id__, which replaces another one of that name. */
static enum hearth_status add_tenant_label(struct hearth_labels *labels, struct hearth_str tenant,
                                           struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_label *v = hearth_arena_array(arena, labels->n + 1, sizeof v[0]);
    size_t n = 0;

    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < labels->n; i++) {
        if (!hearth_str_eq_c(labels->v[i].name, HEARTH_LABEL_TENANT)) {
            v[n++] = labels->v[i];
        }
    }

    v[n++] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_TENANT), tenant};
    *labels = (struct hearth_labels){v, n};
    hearth_labels_sort(labels);

    return HEARTH_OK;
}

enum hearth_status hearth_call_index_labels(const struct hearth_call_index *index,
                                            const struct hearth_series_hit *hit,
                                            struct hearth_arena *arena,
                                            struct hearth_labels *ret_labels,
                                            struct hearth_err *err)
{
    assert(index != NULL && hit != NULL && ret_labels != NULL);

    size_t part = index->n_tenants == 1 ? 0 : find_part(index, hit->series_id);
    if (part == index->n_parts) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "series %d is not in the label indexes",
                           (int)hit->series_id);
    }

    struct hearth_labels labels;
    HEARTH_TRY(hearth_label_index_labels(index->parts[part].index, hit, arena, &labels, err));
    if (index_has_tenants(index)) {
        HEARTH_TRY(add_tenant_label(&labels, index->parts[part].tenant, arena, err));
    }

    *ret_labels = labels;

    return HEARTH_OK;
}

/* ---- hours ---- */

/* The start of an hour in nanoseconds, cut to their range. */
static int64_t hour_start_ns(int64_t hour)
{
    const int64_t most = INT64_MAX / HEARTH_NS_PER_HOUR;
    return hour > most ? INT64_MAX : hour < -most ? INT64_MIN : hour * HEARTH_NS_PER_HOUR;
}

enum hearth_status hearth_call_index_hour(const struct hearth_call_index *index, bool first,
                                          int64_t *hour, bool *ret_any, struct hearth_err *err)
{
    assert(index != NULL && hour != NULL && ret_any != NULL);

    const int64_t limit = *hour;
    bool any = false;

    for (size_t i = 0; i < index->n_parts; i++) {
        const struct index_part *part = &index->parts[i];
        int64_t low = limit, high = limit;
        bool found;
        if (part->view.n == 0) {
            found = first ? hearth_label_index_first_hour(part->index, limit, &low)
                          : hearth_label_index_last_hour(part->index, limit, &high);
        } else {
            const struct hearth_index_filter filter = {&part->view,
                                                       first ? hour_start_ns(limit) : INT64_MIN,
                                                       first ? INT64_MAX : hour_start_ns(limit)};
            HEARTH_TRY(hearth_label_index_hours(part->index, &filter, index->arena, &found, &low,
                                                &high, err));
        }

        int64_t edge = first ? low : high;
        if (found && (!any || (first ? edge < *hour : edge > *hour))) {
            *hour = edge;
            any = true;
        }
    }

    *ret_any = any;

    return HEARTH_OK;
}
