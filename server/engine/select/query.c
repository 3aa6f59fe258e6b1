/* query.c -- ranges and selectors of every question; types, label names, label values, series. */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/selector/timeexpr.h"
#include "hearth/store/settings.h"

#include "select/query_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_MS (INT64_MAX / HEARTH_NS_PER_MS)

const struct hearth_limits *hearth_query_server_limits(const struct hearth_query_engine *engine)
{
    return &engine->limits;
}

void hearth_query_tenant_limits(const struct hearth_query_engine *engine, struct hearth_str tenant,
                                struct hearth_limits *ret)
{
    hearth_limits_of_tenant(&engine->limits, engine->store, tenant, ret);
}

static void take_aggregation(void *context, struct hearth_str name, int64_t value)
{
    if (hearth_str_eq_c(name, HEARTH_SETTING_GAUGES) && value <= HEARTH_GAUGES_MEAN) {
        *(enum hearth_gauge_aggregation *)context = (enum hearth_gauge_aggregation)value;
    }
}

enum hearth_gauge_aggregation
hearth_query_gauge_aggregation(const struct hearth_query_engine *engine, struct hearth_str tenant)
{
    enum hearth_gauge_aggregation found = HEARTH_GAUGES_UNSET;
    hearth_store_settings(engine->store, tenant, take_aggregation, &found);
    return found;
}

/* ---- ranges ---- */

static void note_moved(const struct hearth_query *query, int64_t lookback_ns, bool empty)
{
    char back[48];
    hearth_duration_format(lookback_ns, back);
    hearth_call_note(&query->call,
                     empty ? "the whole range is older than questions may look back (%s, "
                             "max-query-lookback): nothing is left of it"
                           : "the range begins %s ago: questions may look back no further "
                             "(max-query-lookback)",
                     back);
}

static int64_t clamp_ms(int64_t ms)
{
    return ms > MAX_MS ? MAX_MS : ms < -MAX_MS ? -MAX_MS : ms;
}

enum hearth_status hearth_query_range(const struct hearth_query *query, struct hearth_range *ret,
                                      struct hearth_err *err)
{
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    if (query->start_ms == 0 || query->end_ms == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "missing time range in the query");
    }
    if (query->start_ms > query->end_ms) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "query start time is after end time");
    }
    struct hearth_range range = {
        .from_ns = clamp_ms(query->start_ms) * HEARTH_NS_PER_MS,
        .to_ns = clamp_ms(query->end_ms) * HEARTH_NS_PER_MS,
    };
    if (limits.max_query_lookback_ns > 0) {
        int64_t oldest = hearth_clock_wall_ns() - limits.max_query_lookback_ns;
        range.empty = range.to_ns < oldest;
        if (range.from_ns < oldest) {
            note_moved(query, limits.max_query_lookback_ns, range.empty);
        }
        range.from_ns = range.from_ns < oldest ? oldest : range.from_ns;
    }
    int64_t length = INT64_MAX;
    if (limits.max_query_range_ns > 0 && !range.empty &&
        (__builtin_sub_overflow(range.to_ns, range.from_ns, &length) ||
         length > limits.max_query_range_ns)) {
        char actual[48], limit[48];
        /* Whole seconds are enough, unless they would say the limit itself. */
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

static enum hearth_status parse_selectors(const struct hearth_query *query,
                                          const struct hearth_str *texts, size_t n,
                                          struct hearth_selector *selector, struct hearth_err *err)
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

enum hearth_status hearth_query_hits(const struct hearth_query *query,
                                     struct hearth_str profile_type,
                                     struct hearth_str selector_text,
                                     const struct hearth_label_index *index, int64_t from_ns,
                                     int64_t to_ns, struct hearth_series_hit **ret_hits,
                                     size_t *ret_n, struct hearth_err *err)
{
    struct hearth_profile_type type;
    HEARTH_TRY(hearth_profile_type_parse(profile_type, &type, err));
    struct hearth_buf id;
    hearth_buf_init(&id, 0);
    hearth_profile_type_format(&type, &id);
    struct hearth_str type_id = hearth_arena_str(query->call.arena, hearth_buf_view(&id));
    hearth_buf_release(&id);
    if (type_id.p == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }
    struct hearth_selector selector;
    hearth_selector_init(&selector);
    enum hearth_status status = parse_selectors(query, &selector_text, 1, &selector, err);
    if (status == HEARTH_OK) {
        status = hearth_selector_add(&selector, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE),
                                     HEARTH_MATCH_EQ, type_id, query->call.arena, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_label_index_select(index, &selector, from_ns, to_ns, query->call.arena,
                                           ret_hits, ret_n, err);
    }
    hearth_selector_release(&selector);
    return status;
}

/* One question to the label index: validated range, parsed selectors, the index under its lock. */
struct label_question {
    struct hearth_range range;
    struct hearth_selector selector;
    const struct hearth_label_index *index; /* NULL: the range is empty */
};

static enum hearth_status ask_begin(const struct hearth_query *query,
                                    const struct hearth_str *selectors, size_t n_selectors,
                                    struct label_question *ask, struct hearth_err *err)
{
    hearth_selector_init(&ask->selector);
    ask->index = NULL;
    HEARTH_TRY(hearth_query_range(query, &ask->range, err));
    HEARTH_TRY(parse_selectors(query, selectors, n_selectors, &ask->selector, err));
    if (ask->range.empty) {
        return HEARTH_OK;
    }
    return hearth_call_lock_index(&query->call, &ask->index, err);
}

static void ask_end(const struct hearth_query *query, struct label_question *ask)
{
    if (ask->index != NULL) {
        hearth_store_index_unlock(query->call.engine->store, ask->index);
    }
    hearth_selector_release(&ask->selector);
}

/* Values of `name`, the common part of several questions. */
static enum hearth_status ask_values(const struct hearth_query *query, struct hearth_str name,
                                     const struct hearth_str *selectors, size_t n_selectors,
                                     struct hearth_str **ret_values, size_t *ret_n,
                                     struct hearth_err *err)
{
    struct label_question ask;
    enum hearth_status status = ask_begin(query, selectors, n_selectors, &ask, err);
    *ret_n = 0;
    if (status == HEARTH_OK && ask.index != NULL) {
        status =
            hearth_label_index_values(ask.index, &ask.selector, name, ask.range.from_ns,
                                      ask.range.to_ns, query->call.arena, ret_values, ret_n, err);
    }
    ask_end(query, &ask);
    return status;
}

enum hearth_status hearth_query_profile_types(const struct hearth_query *query,
                                              struct hearth_str **ret_ids, size_t *ret_n,
                                              struct hearth_err *err)
{
    struct hearth_query ranged = *query;
    if (query->start_ms == 0 && query->end_ms == 0) { /* clients that know no range */
        ranged.end_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
        ranged.start_ms = ranged.end_ms - HEARTH_NS_PER_HOUR / HEARTH_NS_PER_MS;
    }
    return ask_values(&ranged, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE), NULL, 0, ret_ids, ret_n, err);
}

enum hearth_status hearth_query_label_names(const struct hearth_query *query,
                                            const struct hearth_str *selectors, size_t n_selectors,
                                            bool legacy_only, struct hearth_str **ret_names,
                                            size_t *ret_n, struct hearth_err *err)
{
    struct label_question ask;
    enum hearth_status status = ask_begin(query, selectors, n_selectors, &ask, err);
    struct hearth_str *names = NULL;
    size_t n = 0;
    if (status == HEARTH_OK && ask.index != NULL) {
        status = hearth_label_index_names(ask.index, &ask.selector, ask.range.from_ns,
                                          ask.range.to_ns, query->call.arena, &names, &n, err);
    }
    ask_end(query, &ask);
    if (status != HEARTH_OK) {
        return status;
    }
    if (legacy_only) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            if (hearth_label_name_is_legacy(names[i])) {
                names[kept++] = names[i];
            }
        }
        n = kept;
    }
    *ret_names = names;
    *ret_n = n;
    return HEARTH_OK;
}

enum hearth_status hearth_query_label_values(const struct hearth_query *query,
                                             struct hearth_str name,
                                             const struct hearth_str *selectors, size_t n_selectors,
                                             struct hearth_str **ret_values, size_t *ret_n,
                                             struct hearth_err *err)
{
    struct hearth_range range;
    HEARTH_TRY(
        hearth_query_range(query, &range, err)); /* before the name: clients test the order */
    if (name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "name is required");
    }
    return ask_values(query, name, selectors, n_selectors, ret_values, ret_n, err);
}

/* Without the labels that a client cannot show; sets stay sorted but may become equal. */
static size_t keep_legacy(struct hearth_labels *sets, size_t n)
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

static int by_labels(const void *a, const void *b)
{
    return hearth_labels_cmp(a, b);
}

enum hearth_status hearth_query_series(const struct hearth_query *query,
                                       const struct hearth_str *selectors, size_t n_selectors,
                                       const struct hearth_str *names, size_t n_names,
                                       bool legacy_only, struct hearth_labels **ret_sets,
                                       size_t *ret_n, struct hearth_err *err)
{
    struct label_question ask;
    enum hearth_status status = ask_begin(query, selectors, n_selectors, &ask, err);
    struct hearth_labels *sets = NULL;
    size_t n = 0;
    if (status == HEARTH_OK && ask.index != NULL) {
        status =
            hearth_label_index_project(ask.index, &ask.selector, names, n_names, ask.range.from_ns,
                                       ask.range.to_ns, query->call.arena, &sets, &n, err);
    }
    ask_end(query, &ask);
    if (status != HEARTH_OK) {
        return status;
    }
    if (legacy_only && n > 0) {
        /* Dropping labels may reorder and equalise sets: filter, sort, filter again for equals. */
        n = keep_legacy(sets, n);
        qsort(sets, n, sizeof sets[0], by_labels);
        n = keep_legacy(sets, n);
    }
    *ret_sets = sets;
    *ret_n = n;
    return HEARTH_OK;
}
