/*
 * label_index_select.c -- which series match a selector.
 *
 * A selector is prepared once (hearth_index_query_init): matchers on derived labels are decided for
 * every service and column, because these are few; matchers on own labels become tests on pairs.
 * Then there are two walks:
 *
 * - candidates: if an equality has few postings, only those series are read;
 * - groups: otherwise. A group is accepted or rejected as a whole if its schema decides all tests.
 *   Only the tests left open are applied to its series; each distinct value is matched once.
 */
#include "hearth/base/clock.h"
#include "hearth/base/radix.h"

#include "label_index_internal.h"

#include <assert.h>

/* Postings must be this much fewer than the series in groups, because groups have shortcuts. */
#define CANDIDATE_ADVANTAGE 4u

int hearth_index_schema_find(const struct index_schema *schema, uint32_t name)
{
    int low = 0, high = schema->n_names;

    while (low < high) {
        int mid = (low + high) / 2;
        if (schema->names[mid] < name) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low < schema->n_names && schema->names[low] == name ? low : -1;
}

static bool column_matches(const struct hearth_label_index *index,
                           const struct index_column *column, const struct hearth_matcher *matcher,
                           enum derived derived)
{
    if (hearth_matcher_matches(matcher, index->texts[column->text[derived]])) {
        return true;
    }

    /* A column that is stored under another type is also found by that, but not excluded by it. */
    bool is_positive = matcher->op == HEARTH_MATCH_EQ || matcher->op == HEARTH_MATCH_RE;

    return derived == DERIVED_PROFILE_TYPE && is_positive && column->stored_type != 0 &&
           hearth_matcher_matches(matcher, index->texts[column->stored_type]);
}

/* Apply a matcher on a derived label: exclude services or columns. */
static void decide_derived(struct index_query *query, const struct hearth_matcher *matcher,
                           enum derived derived)
{
    const struct hearth_label_index *index = query->index;

    if (derived >= N_COLUMN_DERIVED) {
        for (size_t i = 0; i < index->n_services; i++) {
            query->service_ok[i] =
                query->service_ok[i] &&
                hearth_matcher_matches(matcher, index->texts[index->services[i].text]);
        }
        return;
    }

    for (size_t i = 0; i < index->n_columns; i++) {
        query->column_ok[i] =
            query->column_ok[i] && column_matches(index, &index->columns[i], matcher, derived);
    }
}

/* Prepare a matcher on an own label: a test, unless it has the same result for every series. */
static enum hearth_status decide_own(struct index_query *query,
                                     const struct hearth_matcher *matcher,
                                     struct hearth_arena *arena, struct hearth_err *err)
{
    const struct hearth_label_index *index = query->index;
    struct label_test test = {.matcher = matcher,
                              .name = hearth_index_find_name(index, matcher->name),
                              .only_pair = ORD_NONE,
                              .is_equality = matcher->kind == HEARTH_MATCH_KIND_LITERAL,
                              .negated = matcher->op == HEARTH_MATCH_NE ||
                                         matcher->op == HEARTH_MATCH_NRE};

    /* No series has the label. */
    if (test.name == ORD_NONE) {
        query->nothing = query->nothing || !matcher->matches_empty;
        return HEARTH_OK;
    }

    /* An equality is a test on a pair, everything else on a value. */
    if (test.is_equality) {
        test.only_pair = hearth_index_find_pair(index, test.name, matcher->literals[0]);
        query->nothing = query->nothing ||
                         (test.only_pair == ORD_NONE && !test.negated && !matcher->matches_empty);
    } else {
        test.verdicts = hearth_arena_zalloc(arena, index->names[test.name].pairs.n);
        if (test.verdicts == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    query->tests[query->n_tests++] = test;

    return HEARTH_OK;
}

/* Number of series with one of the test's literal values; SIZE_MAX if it does not list values. */
static size_t count_candidates(const struct index_query *query, const struct label_test *test)
{
    const struct hearth_matcher *matcher = test->matcher;
    bool listed = matcher->kind == HEARTH_MATCH_KIND_LITERAL ||
                  matcher->kind == HEARTH_MATCH_KIND_ALTERNATION;

    if (!listed || test->negated || matcher->matches_empty) {
        return SIZE_MAX;
    }

    size_t n = 0;
    for (size_t i = 0; i < matcher->n_literals; i++) {
        uint32_t pair = hearth_index_find_pair(query->index, test->name, matcher->literals[i]);
        n += pair == ORD_NONE ? 0 : query->index->pairs[pair].postings.n;
    }

    return n;
}

static enum hearth_status choose_candidates(struct index_query *query, struct hearth_arena *arena,
                                            struct hearth_err *err)
{
    const struct hearth_label_index *index = query->index;
    const struct label_test *best = NULL;
    size_t n_best = SIZE_MAX, n_in_groups = 0;

    /* Compare the series in accepted groups with the best postings. */
    for (size_t i = 0; i < index->n_groups; i++) {
        const struct index_group *group = &index->groups[i];
        bool ok = query->service_ok[group->service] && query->shape_ok[group->shape];
        n_in_groups += ok ? group->series.n : 0;
    }

    for (size_t i = 0; i < query->n_tests; i++) {
        size_t n = count_candidates(query, &query->tests[i]);
        if (n < n_best) {
            n_best = n;
            best = &query->tests[i];
        }
    }

    query->n_bound = n_in_groups;
    if (best == NULL || n_best > n_in_groups / CANDIDATE_ADVANTAGE) {
        return HEARTH_OK;
    }

    /* Collect the candidates of all its literals. */
    query->candidates = hearth_arena_array(arena, n_best, sizeof *query->candidates);
    if (query->candidates == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < best->matcher->n_literals; i++) {
        uint32_t pair = hearth_index_find_pair(index, best->name, best->matcher->literals[i]);
        if (pair != ORD_NONE) {
            const struct ord_list *postings = &index->pairs[pair].postings;
            memcpy(query->candidates + query->n_candidates, ord_list_at(postings),
                   postings->n * sizeof *query->candidates);
            query->n_candidates += postings->n;
        }
    }

    query->n_bound = n_best;

    return HEARTH_OK;
}

enum hearth_status hearth_index_query_init(struct index_query *query,
                                           const struct hearth_label_index *index,
                                           const struct hearth_index_filter *filter,
                                           struct hearth_arena *arena, struct hearth_err *err)
{
    assert(index != NULL && filter != NULL && filter->selector != NULL && arena != NULL);

    const struct hearth_selector *selector = filter->selector;

    *query = (struct index_query){.index = index,
                                  .from_hour = floor_div(filter->from_ns, HEARTH_NS_PER_HOUR),
                                  .to_hour = floor_div(filter->to_ns, HEARTH_NS_PER_HOUR),
                                  .positions_of = ORD_NONE,
                                  .nothing = filter->from_ns > filter->to_ns};
    query->tests = hearth_arena_array(arena, selector->n, sizeof *query->tests);
    query->service_ok = hearth_arena_alloc(arena, index->n_services);
    query->column_ok = hearth_arena_alloc(arena, index->n_columns);
    query->shape_ok = hearth_arena_zalloc(arena, index->n_shapes);
    query->states = hearth_arena_zalloc(arena, index->n_groups);
    query->positions = hearth_arena_array(arena, selector->n, sizeof *query->positions);
    if (query->tests == NULL || query->service_ok == NULL || query->column_ok == NULL ||
        query->shape_ok == NULL || query->states == NULL || query->positions == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Apply all matchers. */
    memset(query->service_ok, 1, index->n_services);
    memset(query->column_ok, 1, index->n_columns);
    for (size_t i = 0; i < selector->n; i++) {
        enum derived derived = hearth_index_derived_of(selector->matchers[i].name);
        if (derived != N_DERIVED) {
            decide_derived(query, &selector->matchers[i], derived);
        } else {
            HEARTH_TRY(decide_own(query, &selector->matchers[i], arena, err));
        }
    }

    /* A shape is accepted if any of its columns is. */
    for (size_t i = 0; i < index->n_shapes; i++) {
        for (size_t c = 0; c < index->shapes[i].n_columns; c++) {
            query->shape_ok[i] |= query->column_ok[index->shapes[i].first_column + c];
        }
    }

    return choose_candidates(query, arena, err);
}

/* True if a series with this pair of the test's name passes the test. */
static bool pair_passes(const struct hearth_label_index *index, struct label_test *test,
                        uint32_t pair)
{
    if (test->is_equality) {
        return (pair == test->only_pair) != test->negated;
    }

    uint8_t *verdict = &test->verdicts[index->pairs[pair].value_idx];
    if (*verdict == 0) {
        bool yes = hearth_matcher_matches(test->matcher, hearth_index_pair_value(index, pair));
        *verdict = yes ? 2 : 1;
    }

    return *verdict == 2;
}

enum group_state {
    GROUP_UNKNOWN,
    GROUP_NO,   /* none of its series matches */
    GROUP_YES,  /* every series that is active in the range matches */
    GROUP_OPEN, /* depends on the series */
};

static enum group_state judge_group(struct index_query *query, const struct index_group *group)
{
    const struct index_schema *schema = &query->index->schemas[group->schema];
    enum group_state state = GROUP_YES;

    if (query->nothing || !query->service_ok[group->service] || !query->shape_ok[group->shape] ||
        !activity_meets(&group->activity, query->from_hour, query->to_hour)) {
        return GROUP_NO;
    }

    for (size_t i = 0; i < query->n_tests; i++) {
        query->positions[i] = hearth_index_schema_find(schema, query->tests[i].name);
        if (query->positions[i] >= 0) {
            state = GROUP_OPEN;
        } else if (!query->tests[i].matcher->matches_empty) {
            return GROUP_NO;
        }
    }

    return state;
}

/*
 * The state of a group, decided once per query. The positions of the tests are found again whenever
 * the group changes.
 */
static enum group_state decide_group(struct index_query *query, uint32_t g)
{
    uint8_t *state = &query->states[g];
    if (*state == GROUP_UNKNOWN || (*state == GROUP_OPEN && query->positions_of != g)) {
        enum group_state judged = judge_group(query, &query->index->groups[g]);
        *state = (uint8_t)judged;
        query->positions_of = g;
    }
    return (enum group_state) * state;
}

bool hearth_index_passes(struct index_query *query, const struct index_series *series)
{
    enum group_state state = decide_group(query, series->group);

    if (state == GROUP_NO || !activity_meets(&series->activity, query->from_hour, query->to_hour)) {
        return false;
    }

    const uint32_t *pairs = hearth_index_series_pairs(query->index, series);
    for (size_t i = 0; state == GROUP_OPEN && i < query->n_tests; i++) {
        if (query->positions[i] >= 0 &&
            !pair_passes(query->index, &query->tests[i], pairs[query->positions[i]])) {
            return false;
        }
    }

    return true;
}

static void walk_groups(struct index_query *query, const struct index_visitor *visitor)
{
    const struct hearth_label_index *index = query->index;

    for (uint32_t g = 0; g < index->n_groups; g++) {
        const struct index_group *group = &index->groups[g];
        enum group_state state = decide_group(query, g);
        enum want wanted = state == GROUP_NO ? WANT_NONE : visitor->want(visitor->context, g);
        const uint32_t *series = ord_list_at(&group->series);

        /* Any series may stand for the group. */
        if (wanted == WANT_ANY && state == GROUP_YES) {
            assert(group->series.n > 0);
            visitor->visit(visitor->context, series[0]);
            continue;
        }
        for (uint32_t i = 0; wanted != WANT_NONE && i < group->series.n; i++) {
            if (hearth_index_passes(query, &index->series[series[i]])) {
                visitor->visit(visitor->context, series[i]);
                wanted = wanted == WANT_ANY ? WANT_NONE : wanted;
            }
        }
    }
}

/* wants: per group the caller's enum want plus one; 0: unknown. */
static void walk_candidates(struct index_query *query, const struct index_visitor *visitor,
                            uint8_t *wants)
{
    for (size_t i = 0; i < query->n_candidates; i++) {
        const struct index_series *series = &query->index->series[query->candidates[i]];
        uint8_t *wanted = &wants[series->group];
        if (*wanted == 0) {
            *wanted = (uint8_t)(1 + visitor->want(visitor->context, series->group));
        }

        if (*wanted != 1 + WANT_NONE && hearth_index_passes(query, series)) {
            visitor->visit(visitor->context, query->candidates[i]);
            *wanted = *wanted == 1 + WANT_ANY ? 1 + WANT_NONE : *wanted;
        }
    }
}

enum hearth_status hearth_index_walk(struct index_query *query, const struct index_visitor *visitor,
                                     struct hearth_arena *arena, struct hearth_err *err)
{
    assert(query != NULL && visitor->want != NULL && visitor->visit != NULL);

    if (query->candidates == NULL) {
        walk_groups(query, visitor);
        return HEARTH_OK;
    }

    uint8_t *wants = hearth_arena_zalloc(arena, query->index->n_groups);
    if (wants == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    walk_candidates(query, visitor, wants);

    return HEARTH_OK;
}

/* Sorts keys, ascending; other: [n]. Returns the array that holds the result. */
static const uint64_t *sort_keys(uint64_t *keys, uint64_t *other, size_t n)
{
    const struct hearth_radix_entry entry = {sizeof *keys, 0, sizeof *keys};

    return hearth_radix_sort(keys, other, n, entry, hearth_radix_differ(keys, n, entry));
}

struct selection {
    const struct hearth_label_index *index;
    uint64_t *keys; /* service id, series id */
    size_t n, n_hits;
    const struct index_query *query;
};

static size_t count_columns(const struct index_query *query, const struct index_shape *shape)
{
    size_t n = 0;
    for (size_t c = 0; c < shape->n_columns; c++) {
        n += query->column_ok[shape->first_column + c];
    }
    return n;
}

static enum want want_all(void *context, uint32_t group)
{
    (void)context;
    (void)group;
    return WANT_ALL;
}

static void collect_key(void *context, uint32_t series)
{
    struct selection *selection = context;
    const struct hearth_label_index *index = selection->index;
    const struct index_group *group = &index->groups[index->series[series].group];
    uint32_t service_id = (uint32_t)index->services[group->service].id;
    selection->keys[selection->n++] =
        (uint64_t)service_id << 32 | (uint32_t)index->series[series].id;
    selection->n_hits += count_columns(selection->query, &index->shapes[group->shape]);
}

enum hearth_status hearth_label_index_select(const struct hearth_label_index *index,
                                             const struct hearth_index_filter *filter,
                                             struct hearth_arena *arena,
                                             struct hearth_series_hits *ret_hits,
                                             struct hearth_err *err)
{
    assert(ret_hits != NULL);

    struct index_query query;

    HEARTH_TRY(hearth_index_query_init(&query, index, filter, arena, err));
    struct selection selection = {.index = index, .query = &query};
    selection.keys = hearth_arena_array(arena, query.n_bound, sizeof *selection.keys);
    if (selection.keys == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Collect the keys of matching series. */
    const struct index_visitor visitor = {want_all, collect_key, &selection};
    HEARTH_TRY(hearth_index_walk(&query, &visitor, arena, err));

    struct hearth_series_hit *hits = hearth_arena_array(arena, selection.n_hits, sizeof *hits);
    uint64_t *room = hearth_arena_array(arena, selection.n, sizeof *room);
    if (hits == NULL || room == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Sort them, and make a hit of each matching column. */
    const uint64_t *keys = sort_keys(selection.keys, room, selection.n);
    size_t n = 0;
    for (size_t i = 0; i < selection.n; i++) {
        int32_t series_id = (int32_t)(uint32_t)keys[i];
        uint32_t series = id_table_get(&index->series_ids, series_id);
        const struct index_group *group = &index->groups[index->series[series].group];
        const struct index_shape *shape = &index->shapes[group->shape];
        for (uint16_t c = 0; c < shape->n_columns; c++) {
            if (query.column_ok[shape->first_column + c]) {
                hits[n++] = (struct hearth_series_hit){.series_id = series_id,
                                                       .service_id = (int32_t)(keys[i] >> 32),
                                                       .shape_id = shape->id,
                                                       .column = c,
                                                       .n_types = shape->n_columns};
            }
        }
    }

    *ret_hits = (struct hearth_series_hits){hits, n};

    return HEARTH_OK;
}

/* ---- one hit ---- */

/* Whether a series and column match; an absent own label counts as the empty text. */
static bool hit_matches(const struct hearth_label_index *index,
                        const struct hearth_matcher *matcher, const struct index_series *series,
                        size_t column)
{
    const struct index_group *group = &index->groups[series->group];
    enum derived derived = hearth_index_derived_of(matcher->name);

    if (derived < N_COLUMN_DERIVED) {
        size_t first = index->shapes[group->shape].first_column;
        return column_matches(index, &index->columns[first + column], matcher, derived);
    }

    if (derived != N_DERIVED) {
        return hearth_matcher_matches(matcher, index->texts[index->services[group->service].text]);
    }

    uint32_t name = hearth_index_find_name(index, matcher->name);
    int at = name == ORD_NONE ? -1 : hearth_index_schema_find(&index->schemas[group->schema], name);
    return at < 0
               ? matcher->matches_empty
               : hearth_matcher_matches(
                     matcher,
                     hearth_index_pair_value(index, hearth_index_series_pairs(index, series)[at]));
}

bool hearth_label_index_matches(const struct hearth_label_index *index,
                                const struct hearth_selector *selector,
                                const struct hearth_series_hit *hit)
{
    assert(index != NULL && selector != NULL && hit != NULL);

    const struct index_series *series = hearth_index_series_of(index, hit);

    if (series == NULL) {
        return false;
    }

    for (size_t i = 0; i < selector->n; i++) {
        if (!hit_matches(index, &selector->matchers[i], series, hit->column)) {
            return false;
        }
    }

    return true;
}
