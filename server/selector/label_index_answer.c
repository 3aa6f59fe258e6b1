/*
 * label_index_answer.c -- results about the selected series: labels, names, values, hours.
 *
 * Results are first collected as ordinals of texts and pairs; texts are compared only to sort the
 * distinct ones.
 */
#include "label_index_internal.h"

#include <assert.h>
#include <stdlib.h>

static int compare_texts(const void *a, const void *b)
{
    struct hearth_str left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left, right);
}

/* Copy the texts to the arena and sort them. */
static enum hearth_status sort_texts(struct hearth_str *texts, size_t n, struct hearth_arena *arena,
                                     struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        texts[i] = hearth_arena_str(arena, texts[i]);
        if (texts[i].p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    qsort(texts, n, sizeof *texts, compare_texts);

    return HEARTH_OK;
}

/* ---- labels ---- */

/* False if memory was refused. */
static bool make_labels(const struct hearth_label_index *index, const struct index_series *series,
                        size_t column, struct hearth_arena *arena, struct hearth_labels *ret_labels)
{
    const struct index_group *group = &index->groups[series->group];
    const struct index_schema *schema = &index->schemas[group->schema];
    const uint32_t *pairs = hearth_index_series_pairs(index, series);
    struct hearth_labels labels = {
        .v = hearth_arena_array(arena, schema->n_names + (size_t)N_DERIVED, sizeof *labels.v)};

    if (labels.v == NULL) {
        return false;
    }

    /* Own labels, then derived ones. */
    for (size_t i = 0; i < schema->n_names; i++) {
        labels.v[labels.n++] = (struct hearth_label){index->names[schema->names[i]].text,
                                                     hearth_index_pair_value(index, pairs[i])};
    }

    for (size_t i = 0; i < N_DERIVED; i++) {
        uint32_t text = hearth_index_derived_text(index, group, column, (enum derived)i);
        if (text != 0) {
            labels.v[labels.n++] =
                (struct hearth_label){hearth_index_derived_names[i], index->texts[text]};
        }
    }

    hearth_labels_sort(&labels);
    *ret_labels = labels;

    return true;
}

enum hearth_status hearth_label_index_labels(const struct hearth_label_index *index,
                                             const struct hearth_series_hit *hit,
                                             struct hearth_arena *arena,
                                             struct hearth_labels *ret_labels,
                                             struct hearth_err *err)
{
    assert(index != NULL && hit != NULL && arena != NULL && ret_labels != NULL);

    const struct index_series *series = hearth_index_series_of(index, hit);

    if (series == NULL) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "series %d has no column %u in the label index",
                           (int)hit->series_id, hit->column);
    }

    return make_labels(index, series, hit->column, arena, ret_labels)
               ? HEARTH_OK
               : HEARTH_FAIL_ARENA(err, arena);
}

bool hearth_label_index_has_series(const struct hearth_label_index *index, int32_t series_id)
{
    assert(index != NULL);

    return id_table_get(&index->series_ids, series_id) != ORD_NONE;
}

enum hearth_status hearth_label_index_columns(const struct hearth_label_index *index,
                                              int32_t series_id, struct hearth_arena *arena,
                                              struct hearth_series_hits *ret_hits,
                                              struct hearth_err *err)
{
    assert(arena != NULL && ret_hits != NULL);

    uint32_t ordinal = id_table_get(&index->series_ids, series_id);

    *ret_hits = (struct hearth_series_hits){0};
    if (ordinal == ORD_NONE) {
        return HEARTH_OK;
    }

    const struct index_group *group = &index->groups[index->series[ordinal].group];
    const struct index_shape *shape = &index->shapes[group->shape];
    struct hearth_series_hit *hits = hearth_arena_array(arena, shape->n_columns, sizeof hits[0]);
    if (hits == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint16_t c = 0; c < shape->n_columns; c++) {
        hits[c] = (struct hearth_series_hit){series_id, index->services[group->service].id,
                                             shape->id, c, shape->n_columns};
    }

    *ret_hits = (struct hearth_series_hits){hits, shape->n_columns};

    return HEARTH_OK;
}

struct hearth_str hearth_label_index_type(const struct hearth_label_index *index,
                                          const struct hearth_series_hit *hit)
{
    const struct index_series *series = hearth_index_series_of(index, hit);

    return series == NULL
               ? HEARTH_STR("")
               : index->texts[hearth_index_derived_text(index, &index->groups[series->group],
                                                        hit->column, DERIVED_PROFILE_TYPE)];
}

/* ---- names ---- */

struct names_answer {
    const struct index_query *query;
    uint8_t *seen; /* [n_names] */
    bool derived[N_DERIVED];
};

static enum want want_any(void *context, uint32_t group)
{
    (void)context;
    (void)group;
    return WANT_ANY;
}

static void see_names(void *context, uint32_t series)
{
    struct names_answer *answer = context;
    const struct hearth_label_index *index = answer->query->index;
    const struct index_group *group = &index->groups[index->series[series].group];
    const struct index_schema *schema = &index->schemas[group->schema];
    const struct index_shape *shape = &index->shapes[group->shape];

    for (size_t i = 0; i < schema->n_names; i++) {
        answer->seen[schema->names[i]] = 1;
    }

    for (size_t c = 0; c < shape->n_columns; c++) {
        for (size_t i = 0; answer->query->column_ok[shape->first_column + c] && i < N_DERIVED;
             i++) {
            answer->derived[i] |= hearth_index_derived_text(index, group, c, (enum derived)i) != 0;
        }
    }
}

enum hearth_status hearth_label_index_names(const struct hearth_label_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena,
                                            struct hearth_index_texts *ret_names,
                                            struct hearth_err *err)
{
    assert(arena != NULL && ret_names != NULL);

    struct index_query query;

    HEARTH_TRY(hearth_index_query_init(&query, index, filter, arena, err));
    struct names_answer answer = {.query = &query};
    struct hearth_str *names = hearth_arena_array(arena, index->n_names + N_DERIVED, sizeof *names);
    answer.seen = hearth_arena_zalloc(arena, index->n_names);
    if (names == NULL || answer.seen == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    const struct index_visitor visitor = {want_any, see_names, &answer};
    HEARTH_TRY(hearth_index_walk(&query, &visitor, arena, err));

    /* Collect the texts of the names that were seen. */
    size_t n = 0;
    for (size_t i = 0; i < index->n_names; i++) {
        if (answer.seen[i]) {
            names[n++] = index->names[i].text;
        }
    }

    for (size_t i = 0; i < N_DERIVED; i++) {
        if (answer.derived[i]) {
            names[n++] = hearth_index_derived_names[i];
        }
    }

    HEARTH_TRY(sort_texts(names, n, arena, err));
    *ret_names = (struct hearth_index_texts){names, n};

    return HEARTH_OK;
}

/* ---- values ---- */

static struct index_wanted look_up_label_name(const struct hearth_label_index *index,
                                              struct hearth_str name)
{
    struct index_wanted wanted = {
        .text = name, .derived = hearth_index_derived_of(name), .name = ORD_NONE, .n_values = 1};

    if (wanted.derived != N_DERIVED) {
        wanted.n_values = index->n_texts;
    } else {
        wanted.name = hearth_index_find_name(index, name);
        if (wanted.name != ORD_NONE) {
            wanted.n_values = (size_t)index->names[wanted.name].pairs.n + 1;
        }
    }

    return wanted;
}

static int compare_wanted(const void *a, const void *b)
{
    struct index_wanted left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left.text, right.text);
}

enum hearth_status hearth_index_look_up_all(const struct hearth_label_index *index,
                                            struct hearth_projected_names names,
                                            struct hearth_arena *arena,
                                            struct index_wanted **ret_wanted, size_t *ret_n,
                                            struct hearth_err *err)
{
    struct index_wanted *wanted = hearth_arena_array(arena, names.n, sizeof *wanted);
    size_t n = 0;

    if (wanted == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < names.n; i++) {
        struct hearth_str copy = hearth_arena_str(arena, names.v[i]);
        if (copy.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        wanted[i] = look_up_label_name(index, copy);
    }

    /* Without repetitions. */
    qsort(wanted, names.n, sizeof *wanted, compare_wanted);
    for (size_t i = 0; i < names.n; i++) {
        if (n == 0 || !hearth_str_eq(wanted[n - 1].text, wanted[i].text)) {
            wanted[n++] = wanted[i];
        }
    }

    *ret_wanted = wanted;
    *ret_n = n;

    return HEARTH_OK;
}

uint32_t hearth_index_value_of(const struct hearth_label_index *index,
                               const struct index_wanted *wanted, const struct index_series *series,
                               size_t column)
{
    const struct index_group *group = &index->groups[series->group];
    if (wanted->derived != N_DERIVED) {
        return hearth_index_derived_text(index, group, column, wanted->derived);
    }
    int at = hearth_index_schema_find(&index->schemas[group->schema], wanted->name);
    return at < 0 ? 0 : index->pairs[hearth_index_series_pairs(index, series)[at]].value_idx + 1;
}

struct hearth_str hearth_index_value_text(const struct hearth_label_index *index,
                                          const struct index_wanted *wanted, uint32_t value)
{
    assert(value > 0 && value < wanted->n_values);

    if (wanted->derived != N_DERIVED) {
        return index->texts[value];
    }
    return hearth_index_pair_value(index,
                                   ord_list_at(&index->names[wanted->name].pairs)[value - 1]);
}

bool hearth_index_varies(const struct hearth_label_index *index, const struct index_wanted *wanted,
                         const struct index_group *group)
{
    return wanted->derived == N_DERIVED &&
           hearth_index_schema_find(&index->schemas[group->schema], wanted->name) >= 0;
}

struct values_answer {
    const struct index_query *query;
    struct index_wanted wanted;
    uint8_t *seen; /* [n_values] */
};

static enum want want_values(void *context, uint32_t group)
{
    const struct values_answer *answer = context;
    const struct hearth_label_index *index = answer->query->index;
    if (answer->wanted.derived != N_DERIVED) {
        return WANT_ANY;
    }
    return hearth_index_varies(index, &answer->wanted, &index->groups[group]) ? WANT_ALL
                                                                              : WANT_NONE;
}

static void see_values(void *context, uint32_t ordinal)
{
    struct values_answer *answer = context;
    const struct hearth_label_index *index = answer->query->index;
    const struct index_series *series = &index->series[ordinal];
    const struct index_shape *shape = &index->shapes[index->groups[series->group].shape];
    bool per_column = answer->wanted.derived < N_COLUMN_DERIVED;

    for (size_t c = 0; c < (per_column ? shape->n_columns : 1u); c++) {
        if (!per_column || answer->query->column_ok[shape->first_column + c]) {
            answer->seen[hearth_index_value_of(index, &answer->wanted, series, c)] = 1;
        }
    }
}

/*
 * The reverse search: for each value of the name, find the first of its series that matches. No
 * series has two values, so this reads each series at most once; if most series match, it reads one
 * per value.
 */
static void search_values(struct index_query *query, struct values_answer *answer)
{
    const struct hearth_label_index *index = query->index;
    const struct ord_list *pairs = &index->names[answer->wanted.name].pairs;

    for (uint32_t i = 0; i < pairs->n; i++) {
        const struct ord_list *postings = &index->pairs[ord_list_at(pairs)[i]].postings;
        for (uint32_t k = 0; k < postings->n && !answer->seen[i + 1]; k++) {
            answer->seen[i + 1] =
                hearth_index_passes(query, &index->series[ord_list_at(postings)[k]]);
        }
    }
}

enum hearth_status hearth_label_index_values(const struct hearth_label_index *index,
                                             const struct hearth_index_filter *filter,
                                             struct hearth_str name, struct hearth_arena *arena,
                                             struct hearth_index_texts *ret_values,
                                             struct hearth_err *err)
{
    assert(arena != NULL && ret_values != NULL);

    struct index_query query;

    HEARTH_TRY(hearth_index_query_init(&query, index, filter, arena, err));
    struct values_answer answer = {.query = &query, .wanted = look_up_label_name(index, name)};
    size_t n = 0, n_values = answer.wanted.n_values;
    answer.seen = hearth_arena_zalloc(arena, n_values);
    if (answer.seen == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* If most series may match, search by value; otherwise by series. */
    bool broad = query.candidates == NULL && query.n_bound > index->n_series / 2;
    if (broad && answer.wanted.name != ORD_NONE) {
        search_values(&query, &answer);
    } else {
        const struct index_visitor visitor = {want_values, see_values, &answer};
        HEARTH_TRY(hearth_index_walk(&query, &visitor, arena, err));
    }

    /* Collect the texts of the values that were seen. */
    for (size_t i = 1; i < n_values; i++) {
        n += answer.seen[i];
    }

    struct hearth_str *values = hearth_arena_array(arena, n, sizeof *values);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    n = 0;
    for (uint32_t i = 1; i < n_values; i++) {
        if (answer.seen[i]) {
            values[n++] = hearth_index_value_text(index, &answer.wanted, i);
        }
    }

    HEARTH_TRY(sort_texts(values, n, arena, err));
    *ret_values = (struct hearth_index_texts){values, n};

    return HEARTH_OK;
}

/* ---- hours ---- */

struct hours_answer {
    const struct hearth_label_index *index;
    int64_t from_hour, to_hour; /* both included */
    int64_t first, last;
    bool any;
};

static enum want want_each(void *context, uint32_t group)
{
    (void)context;
    (void)group;
    return WANT_ALL;
}

static void see_hours(void *context, uint32_t ordinal)
{
    struct hours_answer *answer = context;
    const struct activity *activity = &answer->index->series[ordinal].activity;
    int64_t first, last;

    if (!activity_first(activity, answer->from_hour, &first) ||
        !activity_last(activity, answer->to_hour, &last) || first > answer->to_hour) {
        return;
    }

    answer->first = !answer->any || first < answer->first ? first : answer->first;
    answer->last = !answer->any || last > answer->last ? last : answer->last;
    answer->any = true;
}

enum hearth_status hearth_label_index_hours(const struct hearth_label_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena, bool *ret_any,
                                            int64_t *ret_first, int64_t *ret_last,
                                            struct hearth_err *err)
{
    assert(ret_any != NULL && ret_first != NULL && ret_last != NULL);

    struct index_query query;

    HEARTH_TRY(hearth_index_query_init(&query, index, filter, arena, err));
    struct hours_answer answer = {
        .index = index, .from_hour = query.from_hour, .to_hour = query.to_hour};
    const struct index_visitor visitor = {want_each, see_hours, &answer};
    HEARTH_TRY(hearth_index_walk(&query, &visitor, arena, err));

    *ret_any = answer.any;
    *ret_first = answer.first;
    *ret_last = answer.last;

    return HEARTH_OK;
}

bool hearth_label_index_first_hour(const struct hearth_label_index *index, int64_t from_hour,
                                   int64_t *ret_hour)
{
    assert(index != NULL && ret_hour != NULL);

    bool found = false;

    for (size_t i = 0; i < index->n_groups; i++) {
        int64_t hour;
        if (activity_first(&index->groups[i].activity, from_hour, &hour) &&
            (!found || hour < *ret_hour)) {
            *ret_hour = hour;
            found = true;
        }
    }

    return found;
}

bool hearth_label_index_last_hour(const struct hearth_label_index *index, int64_t to_hour,
                                  int64_t *ret_hour)
{
    assert(index != NULL && ret_hour != NULL);

    bool found = false;

    for (size_t i = 0; i < index->n_groups; i++) {
        int64_t hour;
        if (activity_last(&index->groups[i].activity, to_hour, &hour) &&
            (!found || hour > *ret_hour)) {
            *ret_hour = hour;
            found = true;
        }
    }

    return found;
}
