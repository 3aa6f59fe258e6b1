/*
 * call_index_texts.c -- label names, label values and projections of visible series.
 *
 * The answers of the parts are united: sorted again, without duplicates.
 */
#include "common/call_index_parts.h"

#include <assert.h>
#include <stdlib.h>

/* ---- names and values ---- */

static int compare_index_texts(const void *a, const void *b)
{
    struct hearth_str left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left, right);
}

/* Concatenates lists of texts and one more text unless it is empty, sorted, without duplicates. */
static enum hearth_status unite_texts(const struct hearth_index_texts *lists, size_t n_lists,
                                      struct hearth_str more, struct hearth_arena *arena,
                                      struct hearth_index_texts *ret, struct hearth_err *err)
{
    size_t n = 1, n_distinct = 0;
    for (size_t i = 0; i < n_lists; i++) {
        n += lists[i].n;
    }

    struct hearth_str *texts = hearth_arena_array(arena, n, sizeof texts[0]);
    if (texts == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    n = 0;
    for (size_t i = 0; i < n_lists; i++) {
        for (size_t k = 0; k < lists[i].n; k++) {
            texts[n++] = lists[i].v[k];
        }
    }

    if (more.n > 0) {
        texts[n++] = more;
    }

    qsort(texts, n, sizeof texts[0], compare_index_texts);
    for (size_t i = 0; i < n; i++) {
        if (n_distinct == 0 || !hearth_str_eq(texts[n_distinct - 1], texts[i])) {
            texts[n_distinct++] = texts[i];
        }
    }

    *ret = (struct hearth_index_texts){texts, n_distinct};

    return HEARTH_OK;
}

/* The names of one part; none if nothing of it matches. */
static enum hearth_status find_part_names(const struct hearth_call_index *index, size_t part,
                                          const struct hearth_index_filter *filter,
                                          struct hearth_arena *arena,
                                          struct hearth_index_texts *ret, struct hearth_err *err)
{
    struct hearth_index_filter own;
    bool any;

    *ret = (struct hearth_index_texts){0};
    HEARTH_TRY(hearth_index_part_filter(index, part, filter, arena, &own, &any, err));

    return any ? hearth_label_index_names(index->parts[part].index, &own, arena, ret, err)
               : HEARTH_OK;
}

enum hearth_status hearth_call_index_names(const struct hearth_call_index *index,
                                           const struct hearth_index_filter *filter,
                                           struct hearth_arena *arena,
                                           struct hearth_index_texts *ret_names,
                                           struct hearth_err *err)
{
    assert(index != NULL && filter != NULL && ret_names != NULL);

    if (index_is_plain(index)) {
        return hearth_label_index_names(index->parts[0].index, filter, arena, ret_names, err);
    }

    struct hearth_index_texts *lists = hearth_arena_calloc(arena, index->n_parts, sizeof lists[0]);
    bool any = false;
    if (lists == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < index->n_parts; i++) {
        HEARTH_TRY(find_part_names(index, i, filter, arena, &lists[i], err));
        any = any || lists[i].n > 0;
    }

    struct hearth_str tenant =
        any && index_has_tenants(index) ? HEARTH_STR(HEARTH_LABEL_TENANT) : HEARTH_STR("");
    return unite_texts(lists, index->n_parts, tenant, arena, ret_names, err);
}

/* The values of one part; of __tenant_id__: its tenant, if any series matches. */
static enum hearth_status find_part_values(const struct hearth_call_index *index, size_t part,
                                           const struct hearth_index_filter *filter,
                                           struct hearth_str name, struct hearth_arena *arena,
                                           struct hearth_index_texts *ret, struct hearth_err *err)
{
    struct hearth_index_filter own;
    bool any;

    if (is_tenant_label(index, name)) {
        HEARTH_TRY(find_part_names(index, part, filter, arena, ret, err));
        any = ret->n > 0;
        *ret = (struct hearth_index_texts){&index->parts[part].tenant, any ? 1 : 0};
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_index_part_filter(index, part, filter, arena, &own, &any, err));

    return any ? hearth_label_index_values(index->parts[part].index, &own, name, arena, ret, err)
               : HEARTH_OK;
}

enum hearth_status hearth_call_index_values(const struct hearth_call_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_str name, struct hearth_arena *arena,
                                            struct hearth_index_texts *ret_values,
                                            struct hearth_err *err)
{
    assert(index != NULL && filter != NULL && ret_values != NULL);

    if (index_is_plain(index)) {
        return hearth_label_index_values(index->parts[0].index, filter, name, arena, ret_values,
                                         err);
    }

    struct hearth_index_texts *lists = hearth_arena_calloc(arena, index->n_parts, sizeof lists[0]);
    if (lists == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < index->n_parts; i++) {
        HEARTH_TRY(find_part_values(index, i, filter, name, arena, &lists[i], err));
    }

    return unite_texts(lists, index->n_parts, HEARTH_STR(""), arena, ret_values, err);
}

/* ---- services ---- */

/* The end of the hits of a service from index `from` on. */
static size_t find_service_end(const struct hearth_series_hits *hits, size_t from)
{
    size_t to = from;
    while (to < hits->n && hits->v[to].service_id == hits->v[from].service_id) {
        to++;
    }
    return to;
}

enum hearth_status hearth_call_index_whole_services(const struct hearth_call_index *index,
                                                    struct hearth_arena *arena,
                                                    struct hearth_index_texts *ret,
                                                    struct hearth_err *err)
{
    assert(index != NULL && index->n_tenants == 1 && ret != NULL);

    struct hearth_selector everything;
    struct hearth_series_hits all, visible;

    hearth_selector_init(&everything);
    const struct hearth_index_filter any_time = {&everything, INT64_MIN, INT64_MAX};
    HEARTH_TRY(hearth_label_index_select(index->parts[0].index, &any_time, arena, &all, err));
    HEARTH_TRY(hearth_call_index_select(index, &any_time, arena, &visible, err));
    struct hearth_index_texts services = {hearth_arena_array(arena, visible.n, sizeof *services.v),
                                          0};
    if (services.v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Visible hits are a part of all hits, in the same order. */
    for (size_t v = 0, a = 0, end; v < visible.n; v = end) {
        end = find_service_end(&visible, v);
        while (all.v[a].service_id != visible.v[v].service_id) {
            a++;
        }
        if (find_service_end(&all, a) - a != end - v) {
            continue;
        }

        struct hearth_labels labels;
        HEARTH_TRY(hearth_call_index_labels(index, &visible.v[v], arena, &labels, err));
        struct hearth_str name = hearth_labels_get(&labels, HEARTH_STR(HEARTH_LABEL_SERVICE));
        services.v[services.n] = hearth_arena_str(arena, name);
        if (services.v[services.n++].p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    if (services.n > 1) {
        qsort(services.v, services.n, sizeof services.v[0], compare_index_texts);
    }
    *ret = services;

    return HEARTH_OK;
}

/* ---- projections ---- */

/* A projection of a call's index. */
struct index_projection {
    const struct hearth_call_index *index;
    const struct hearth_index_filter *filter;
    struct hearth_projected_names names; /* what the label indexes project on; n 0: all labels */
    bool drops_service; /* service_name was not requested: every series has it, so that none of the
                           label indexes leaves out a series */
    bool with_tenant;   /* every set has __tenant_id__ */
    struct hearth_arena *arena;
};

/* Chooses the names: service_name as well, and not __tenant_id__. */
static enum hearth_status choose_projected_names(struct index_projection *p,
                                                 struct hearth_projected_names names,
                                                 struct hearth_err *err)
{
    struct hearth_str *v = hearth_arena_array(p->arena, names.n + 1, sizeof v[0]);
    size_t n = 0;

    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }

    p->drops_service = names.n > 0;
    p->with_tenant = names.n == 0 && index_has_tenants(p->index);
    for (size_t i = 0; i < names.n; i++) {
        p->drops_service = p->drops_service && !hearth_str_eq_c(names.v[i], HEARTH_LABEL_SERVICE);
        if (is_tenant_label(p->index, names.v[i])) {
            p->with_tenant = true;
        } else {
            v[n++] = names.v[i];
        }
    }

    if (p->drops_service) {
        v[n++] = HEARTH_STR(HEARTH_LABEL_SERVICE);
    }
    p->names = (struct hearth_projected_names){v, n};

    return HEARTH_OK;
}

static void drop_label(struct hearth_labels *set, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n; i++) {
        if (!hearth_str_eq_c(set->v[i].name, name)) {
            set->v[n++] = set->v[i];
        }
    }

    set->n = n;
}

/* Adds the label __tenant_id__ to a set. */
static bool add_tenant_to_set(struct hearth_labels *set, struct hearth_str tenant,
                              struct hearth_arena *arena)
{
    struct hearth_label *v = hearth_arena_array(arena, set->n + 1, sizeof v[0]);

    if (v == NULL) {
        return false;
    }

    if (set->n > 0) {
        memcpy(v, set->v, set->n * sizeof v[0]);
    }
    v[set->n] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_TENANT), tenant};
    *set = (struct hearth_labels){v, set->n + 1};
    hearth_labels_sort(set);

    return true;
}

/* The sets of one part. */
static enum hearth_status project_part(const struct index_projection *p, size_t part,
                                       struct hearth_label_sets *ret, struct hearth_err *err)
{
    struct hearth_index_filter own;
    bool any;

    *ret = (struct hearth_label_sets){0};
    HEARTH_TRY(hearth_index_part_filter(p->index, part, p->filter, p->arena, &own, &any, err));
    if (any) {
        HEARTH_TRY(hearth_label_index_project(p->index->parts[part].index, &own, p->names, p->arena,
                                              ret, err));
    }

    for (size_t i = 0; i < ret->n; i++) {
        if (p->drops_service) {
            drop_label(&ret->v[i], HEARTH_LABEL_SERVICE);
        }
        if (index_has_tenants(p->index)) {
            drop_label(&ret->v[i], HEARTH_LABEL_TENANT);
        }
        if (p->with_tenant &&
            !add_tenant_to_set(&ret->v[i], p->index->parts[part].tenant, p->arena)) {
            return HEARTH_FAIL_ARENA(err, p->arena);
        }
    }

    return HEARTH_OK;
}

/* Whether some visible series in the range has one of the requested names. */
static enum hearth_status has_any_name(const struct index_projection *p, bool *ret,
                                       struct hearth_err *err)
{
    struct hearth_selector all;
    struct hearth_index_texts names;

    hearth_selector_init(&all);
    const struct hearth_index_filter range = {&all, p->filter->from_ns, p->filter->to_ns};
    HEARTH_TRY(hearth_call_index_names(p->index, &range, p->arena, &names, err));

    size_t n = p->names.n - (p->drops_service ? 1 : 0);
    *ret = false;
    for (size_t i = 0; i < n && !*ret; i++) {
        *ret = bsearch(&p->names.v[i], names.v, names.n, sizeof names.v[0], compare_index_texts) !=
               NULL;
    }

    return HEARTH_OK;
}

static int compare_projected(const void *a, const void *b)
{
    return hearth_labels_cmp(a, b);
}

/* Concatenates lists of sets, sorted, without duplicates. */
static enum hearth_status unite_sets(const struct hearth_label_sets *lists, size_t n_lists,
                                     struct hearth_arena *arena, struct hearth_label_sets *ret,
                                     struct hearth_err *err)
{
    size_t n = 0, n_distinct = 0;
    for (size_t i = 0; i < n_lists; i++) {
        n += lists[i].n;
    }

    struct hearth_labels *sets = hearth_arena_array(arena, n, sizeof sets[0]);
    if (sets == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    n = 0;
    for (size_t i = 0; i < n_lists; i++) {
        for (size_t k = 0; k < lists[i].n; k++) {
            sets[n++] = lists[i].v[k];
        }
    }

    if (n > 1) {
        qsort(sets, n, sizeof sets[0], compare_projected);
    }

    for (size_t i = 0; i < n; i++) {
        if (n_distinct == 0 || hearth_labels_cmp(&sets[n_distinct - 1], &sets[i]) != 0) {
            sets[n_distinct++] = sets[i];
        }
    }

    *ret = (struct hearth_label_sets){sets, n_distinct};

    return HEARTH_OK;
}

enum hearth_status hearth_call_index_project(const struct hearth_call_index *index,
                                             const struct hearth_index_filter *filter,
                                             struct hearth_projected_names names,
                                             struct hearth_arena *arena,
                                             struct hearth_label_sets *ret_sets,
                                             struct hearth_err *err)
{
    assert(index != NULL && filter != NULL && ret_sets != NULL);

    if (index_is_plain(index)) {
        return hearth_label_index_project(index->parts[0].index, filter, names, arena, ret_sets,
                                          err);
    }

    struct index_projection p = {.index = index, .filter = filter, .arena = arena};
    struct hearth_label_sets *lists = hearth_arena_calloc(arena, index->n_parts, sizeof lists[0]);
    if (lists == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(choose_projected_names(&p, names, err));
    for (size_t i = 0; i < index->n_parts; i++) {
        HEARTH_TRY(project_part(&p, i, &lists[i], err));
    }

    struct hearth_label_sets sets;
    HEARTH_TRY(unite_sets(lists, index->n_parts, arena, &sets, err));

    /* The empty set is the first. */
    if (sets.n > 0 && sets.v[0].n == 0) {
        bool keeps;
        HEARTH_TRY(has_any_name(&p, &keeps, err));
        sets.v += keeps ? 0 : 1;
        sets.n -= keeps ? 0 : 1;
    }

    *ret_sets = sets;

    return HEARTH_OK;
}
