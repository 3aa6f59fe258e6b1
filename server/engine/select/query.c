/* query.c -- ranges and selectors of all queries; types, label names, label values, series. */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/selector/timeexpr.h"
#include "hearth/store/settings.h"

#include "select/query_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_MS      (INT64_MAX / HEARTH_NS_PER_MS)
#define SHOWN_NAMES 64

const struct hearth_limits *hearth_query_server_limits(const struct hearth_query_engine *engine)
{
    assert(engine != NULL);

    return hearth_engine_limits(engine);
}

void hearth_query_tenant_limits(const struct hearth_query_engine *engine, struct hearth_str tenant,
                                struct hearth_limits *ret)
{
    assert(engine != NULL && ret != NULL);

    hearth_limits_of_tenant(hearth_engine_limits(engine), engine->store, tenant, ret);
}

void hearth_query_strictest_limits(const struct hearth_query_engine *engine,
                                   const struct hearth_view *tenants, size_t n,
                                   struct hearth_limits *ret)
{
    assert(engine != NULL && tenants != NULL && n > 0 && ret != NULL);

    hearth_limits_strictest(hearth_engine_limits(engine), engine->store, tenants, n, ret);
}

/* Called by hearth_store_settings for each setting. */
static void take_gauge_setting(void *context, struct hearth_str name, int64_t value)
{
    if (hearth_str_eq_c(name, HEARTH_SETTING_GAUGES) && value <= HEARTH_GAUGES_MEAN) {
        *(enum hearth_gauge_aggregation *)context = (enum hearth_gauge_aggregation)value;
    }
}

enum hearth_gauge_aggregation
hearth_query_gauge_aggregation(const struct hearth_query_engine *engine, struct hearth_str tenant)
{
    assert(engine != NULL);

    enum hearth_gauge_aggregation found = HEARTH_GAUGES_UNSET;
    hearth_store_settings(engine->store, tenant, take_gauge_setting, &found);
    return found;
}

/* ---- ranges ---- */

/* Notes that the start of the range was moved, or that nothing is left of it. */
static void note_moved_range(const struct hearth_query *query, int64_t lookback_ns, bool empty)
{
    char back[48];

    hearth_duration_format(lookback_ns, back);
    hearth_call_note(&query->call,
                     empty ? "the whole range is older than queries may look back (%s, "
                             "max-query-lookback): the answer is empty"
                           : "the range begins %s ago: queries may look back no further "
                             "(max-query-lookback)",
                     back);
}

static int64_t clamp_range_ms(int64_t ms)
{
    return ms > MAX_MS ? MAX_MS : ms < -MAX_MS ? -MAX_MS : ms;
}

enum hearth_status hearth_query_range(const struct hearth_query *query, struct hearth_range *ret,
                                      struct hearth_err *err)
{
    assert(query != NULL && ret != NULL);

    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);

    if (query->start_ms == 0 || query->end_ms == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "missing time range in the query");
    }

    if (query->start_ms > query->end_ms) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "query start time is after end time");
    }

    struct hearth_range range = {
        .from_ns = clamp_range_ms(query->start_ms) * HEARTH_NS_PER_MS,
        .to_ns = clamp_range_ms(query->end_ms) * HEARTH_NS_PER_MS,
    };

    /* A start before the lookback is moved. */
    if (limits.max_query_lookback_ns > 0) {
        int64_t oldest = hearth_clock_wall_ns() - limits.max_query_lookback_ns;
        range.empty = range.to_ns < oldest;
        if (range.from_ns < oldest) {
            note_moved_range(query, limits.max_query_lookback_ns, range.empty);
        }
        range.from_ns = range.from_ns < oldest ? oldest : range.from_ns;
    }

    /* The rest must not be longer than allowed. */
    int64_t length = INT64_MAX;
    if (limits.max_query_range_ns > 0 && !range.empty &&
        (__builtin_sub_overflow(range.to_ns, range.from_ns, &length) ||
         length > limits.max_query_range_ns)) {
        char actual[48], limit[48];
        /* Whole seconds are enough, unless they would equal the limit. */
        int64_t whole = length - length % HEARTH_NS_PER_SEC;
        hearth_duration_format(whole > limits.max_query_range_ns ? whole : length, actual);
        hearth_duration_format(limits.max_query_range_ns, limit);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the query time range exceeds the limit (max_query_length, actual: %s, "
                           "limit: %s); the option is max-query-range",
                           actual, limit);
    }

    *ret = range;
    return HEARTH_OK;
}

/* Adds all selectors to one, which selects series that match each of them. */
static enum hearth_status parse_query_selectors(const struct hearth_query *query,
                                                const struct hearth_str *texts, size_t n,
                                                struct hearth_selector *selector,
                                                struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        enum hearth_status status =
            hearth_selector_parse(selector, texts[i], query->call.arena, NULL, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "selector");
            return status;
        }
    }

    return HEARTH_OK;
}

/* The canonical id of a type, as the label index has it. */
static enum hearth_status write_type_id(const struct hearth_profile_type *type,
                                        struct hearth_arena *arena, struct hearth_str *ret,
                                        struct hearth_err *err)
{
    struct hearth_buf id;

    hearth_buf_init(&id, 0);
    hearth_profile_type_format(type, &id);
    *ret = hearth_arena_str(arena, hearth_buf_view(&id));
    hearth_buf_release(&id);

    return ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_query_hits(const struct hearth_query *query,
                                     const struct hearth_series_choice *choice,
                                     const struct hearth_call_index *index,
                                     struct hearth_series_hits *ret_hits, struct hearth_err *err)
{
    assert(query != NULL && index != NULL && ret_hits != NULL);

    struct hearth_profile_type type;
    struct hearth_str type_id;

    HEARTH_TRY(hearth_profile_type_parse(choice->profile_type, &type, err));
    HEARTH_TRY(write_type_id(&type, query->call.arena, &type_id, err));

    /* The selector, with the type as one more matcher. */
    struct hearth_selector selector;
    hearth_selector_init(&selector);
    enum hearth_status status = parse_query_selectors(query, &choice->selector, 1, &selector, err);
    if (status == HEARTH_OK) {
        status = hearth_selector_add(&selector, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE),
                                     HEARTH_MATCH_EQ, type_id, query->call.arena, err);
    }

    if (status == HEARTH_OK) {
        const struct hearth_index_filter filter = {&selector, choice->from_ns, choice->to_ns};
        status = hearth_call_index_select(index, &filter, query->call.arena, ret_hits, err);
    }

    hearth_selector_release(&selector);
    return status;
}

/* A query of the label index: validated range, parsed selectors, the locked index. */
struct label_query {
    struct hearth_index_filter filter; /* set while `index` is locked */
    struct hearth_selector selector;
    const struct hearth_call_index *index; /* NULL: the range is empty, or nothing is locked */
    struct hearth_range range;
};

/*
 * Variables of Grafana's data source give a whole profile type as metric name, which no series has:
 * names have no ':'. Such a name becomes a matcher on the type.
 */
static enum hearth_status read_names_as_types(struct hearth_selector *selector,
                                              struct hearth_arena *arena, struct hearth_err *err)
{
    for (size_t i = 0; i < selector->n; i++) {
        struct hearth_matcher *matcher = &selector->matchers[i];
        struct hearth_profile_type type;
        if (matcher->op != HEARTH_MATCH_EQ || !hearth_str_eq_c(matcher->name, HEARTH_LABEL_NAME) ||
            hearth_profile_type_parse(matcher->value, &type, NULL) != HEARTH_OK) {
            continue;
        }

        struct hearth_str type_id;
        HEARTH_TRY(write_type_id(&type, arena, &type_id, err));
        matcher->name = HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE);
        matcher->value = matcher->literals[0] = type_id;
    }

    return HEARTH_OK;
}

/* Validates, parses and locks; end it in any case. */
static enum hearth_status begin_label_query(const struct hearth_query *query,
                                            const struct hearth_label_request *request,
                                            struct label_query *lookup, struct hearth_err *err)
{
    const struct hearth_range *range = &lookup->range;

    hearth_selector_init(&lookup->selector);
    lookup->index = NULL;
    HEARTH_TRY(hearth_query_range(query, &lookup->range, err));
    HEARTH_TRY(parse_query_selectors(query, request->selectors, request->n_selectors,
                                     &lookup->selector, err));
    HEARTH_TRY(read_names_as_types(&lookup->selector, query->call.arena, err));
    if (range->empty) {
        return HEARTH_OK;
    }

    lookup->filter = (struct hearth_index_filter){&lookup->selector, range->from_ns, range->to_ns};

    return hearth_call_index_lock(&query->call, &lookup->index, err);
}

/* Unlocks and releases. */
static void end_label_query(struct label_query *lookup)
{
    hearth_call_index_unlock(lookup->index);
    hearth_selector_release(&lookup->selector);
}

enum hearth_status hearth_query_label_hits(const struct hearth_query *query,
                                           const struct hearth_label_request *request,
                                           struct hearth_range *ret_range,
                                           struct hearth_series_hits *ret_hits,
                                           struct hearth_err *err)
{
    assert(query != NULL && request != NULL && ret_range != NULL && ret_hits != NULL);

    struct label_query lookup;
    enum hearth_status status = begin_label_query(query, request, &lookup, err);

    *ret_hits = (struct hearth_series_hits){0};
    if (status == HEARTH_OK && lookup.index != NULL) {
        status = hearth_call_index_select(lookup.index, &lookup.filter, query->call.arena, ret_hits,
                                          err);
    }
    *ret_range = lookup.range;

    end_label_query(&lookup);
    return status;
}

/* Finds the values of a label. */
static enum hearth_status find_label_values(const struct hearth_query *query,
                                            struct hearth_str name,
                                            const struct hearth_label_request *request,
                                            struct hearth_index_texts *ret, struct hearth_err *err)
{
    struct label_query lookup;
    enum hearth_status status = begin_label_query(query, request, &lookup, err);

    *ret = (struct hearth_index_texts){0};
    if (status == HEARTH_OK && lookup.index != NULL) {
        status = hearth_call_index_values(lookup.index, &lookup.filter, name, query->call.arena,
                                          ret, err);
    }

    end_label_query(&lookup);
    return status;
}

enum hearth_status hearth_query_profile_types(const struct hearth_query *query,
                                              struct hearth_str **ret_ids, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(query != NULL && ret_ids != NULL && ret_n != NULL);

    struct hearth_query ranged = *query;
    const struct hearth_label_request all = {0};

    /* Clients that have no range mean the last hour. */
    if (query->start_ms == 0 && query->end_ms == 0) {
        ranged.end_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
        ranged.start_ms = ranged.end_ms - HEARTH_NS_PER_HOUR / HEARTH_NS_PER_MS;
    }

    struct hearth_index_texts ids;
    HEARTH_TRY(find_label_values(&ranged, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE), &all, &ids, err));
    *ret_ids = ids.v;
    *ret_n = ids.n;

    return HEARTH_OK;
}

enum hearth_status hearth_query_label_names(const struct hearth_query *query,
                                            const struct hearth_label_request *request,
                                            struct hearth_str **ret_names, size_t *ret_n,
                                            struct hearth_err *err)
{
    assert(query != NULL && request != NULL && ret_names != NULL && ret_n != NULL);

    struct label_query lookup;
    enum hearth_status status = begin_label_query(query, request, &lookup, err);
    struct hearth_index_texts names = {0};

    if (status == HEARTH_OK && lookup.index != NULL) {
        status =
            hearth_call_index_names(lookup.index, &lookup.filter, query->call.arena, &names, err);
    }

    end_label_query(&lookup);
    if (status != HEARTH_OK) {
        return status;
    }

    if (request->legacy_only) {
        size_t kept = 0;
        for (size_t i = 0; i < names.n; i++) {
            if (hearth_label_name_is_legacy(names.v[i])) {
                names.v[kept++] = names.v[i];
            }
        }
        names.n = kept;
    }

    *ret_names = names.v;
    *ret_n = names.n;

    return HEARTH_OK;
}

enum hearth_status hearth_query_label_values(const struct hearth_query *query,
                                             struct hearth_str name,
                                             const struct hearth_label_request *request,
                                             struct hearth_str **ret_values, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(query != NULL && request != NULL && ret_values != NULL && ret_n != NULL);

    struct hearth_range range;

    /* Before the name: clients' tests expect this order of errors. */
    HEARTH_TRY(hearth_query_range(query, &range, err));
    if (name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "name is required");
    }

    struct hearth_index_texts values;
    HEARTH_TRY(find_label_values(query, name, request, &values, err));
    *ret_values = values.v;
    *ret_n = values.n;

    return HEARTH_OK;
}

/*
 * Removes labels that a client cannot show. Neighbours that become equal are merged; other equal
 * sets stay.
 */
static size_t keep_legacy_labels(struct hearth_labels *sets, size_t n)
{
    size_t n_sets = 0;

    for (size_t i = 0; i < n; i++) {
        struct hearth_labels set = sets[i];
        size_t kept = 0;
        for (size_t l = 0; l < set.n; l++) {
            if (hearth_label_name_is_legacy(set.v[l].name)) {
                set.v[kept++] = set.v[l];
            }
        }
        set.n = kept;
        if (n_sets == 0 || hearth_labels_cmp(&sets[n_sets - 1], &set) != 0) {
            sets[n_sets++] = set;
        }
    }

    return n_sets;
}

/*
 * Whether some label cannot be shown. Sets that were projected on the same names share their texts:
 * each is visited once.
 */
static bool has_other_labels(const struct hearth_labels *sets, size_t n)
{
    const char *shown[SHOWN_NAMES] = {NULL};

    for (size_t i = 0; i < n; i++) {
        for (size_t l = 0; l < sets[i].n; l++) {
            struct hearth_str name = sets[i].v[l].name;
            if (shown[l % SHOWN_NAMES] == name.p) {
                continue;
            }
            if (!hearth_label_name_is_legacy(name)) {
                return true;
            }
            shown[l % SHOWN_NAMES] = name.p;
        }
    }

    return false;
}

static int compare_label_sets(const void *a, const void *b)
{
    return hearth_labels_cmp(a, b);
}

enum hearth_status hearth_query_series(const struct hearth_query *query,
                                       const struct hearth_label_request *request,
                                       struct hearth_labels **ret_sets, size_t *ret_n,
                                       struct hearth_err *err)
{
    assert(query != NULL && request != NULL && ret_sets != NULL && ret_n != NULL);

    struct label_query lookup;
    enum hearth_status status = begin_label_query(query, request, &lookup, err);
    struct hearth_label_sets sets = {0};

    if (status == HEARTH_OK && lookup.index != NULL) {
        const struct hearth_projected_names names = {request->names, request->n_names};
        status = hearth_call_index_project(lookup.index, &lookup.filter, names, query->call.arena,
                                           &sets, err);
    }

    end_label_query(&lookup);
    if (status != HEARTH_OK) {
        return status;
    }

    if (request->legacy_only && has_other_labels(sets.v, sets.n)) {
        /* Without labels, sets may have another order and be equal: sort, then merge equals. */
        sets.n = keep_legacy_labels(sets.v, sets.n);
        qsort(sets.v, sets.n, sizeof sets.v[0], compare_label_sets);
        sets.n = keep_legacy_labels(sets.v, sets.n);
    }

    *ret_sets = sets.v;
    *ret_n = sets.n;

    return HEARTH_OK;
}
