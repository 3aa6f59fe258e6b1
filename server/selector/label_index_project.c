/*
 * label_index_project.c -- distinct projections of the selected series.
 *
 * A projection is a row of value ordinals, one per requested name, in the order of the names. Rows
 * are made distinct by their hash. Then the ordinals of each name are replaced by their rank among
 * the used texts, so that rows are sorted without comparing texts.
 */
#include "hearth/base/mem.h"

#include "label_index_internal.h"

#include <assert.h>
#include <stdlib.h>

/*
 * All labels are projected on all names up to this product of series and names (64 MB per column).
 */
#define MAX_CELLS (16u * 1024 * 1024)

struct projection {
    const struct index_query *query;
    const struct index_wanted *wanted; /* sorted by text, distinct */
    size_t n_wanted;
    bool per_column; /* some name depends on the column */
    uint32_t *rows;  /* [n_rows][n_wanted] */
    size_t n_rows, cap_rows;
    size_t max_rows;          /* by the request's memory limit; rows are not in its arena */
    struct hearth_idmap seen; /* hashes of rows */
    bool refused;             /* memory was refused, or there are more than max_rows */
};

static enum want want_rows(void *context, uint32_t group)
{
    const struct projection *p = context;
    const struct hearth_label_index *index = p->query->index;

    for (size_t i = 0; i < p->n_wanted; i++) {
        if (hearth_index_varies(index, &p->wanted[i], &index->groups[group])) {
            return WANT_ALL;
        }
    }

    return WANT_ANY;
}

static void add_row(struct projection *p, const struct index_series *series, size_t column)
{
    assert(p->n_wanted > 0);

    const struct hearth_label_index *index = p->query->index;

    if (p->refused || p->n_rows >= p->max_rows ||
        !hearth_mem_grow(&p->rows, &p->cap_rows, (p->n_rows + 1) * p->n_wanted, sizeof *p->rows)) {
        p->refused = true;
        return;
    }

    uint32_t *row = p->rows + p->n_rows * p->n_wanted;
    for (size_t i = 0; i < p->n_wanted; i++) {
        row[i] = hearth_index_value_of(index, &p->wanted[i], series, column);
    }

    /* Keep it only if it is new. */
    bool inserted = false;
    struct hearth_hash128 key = hearth_hash128(row, p->n_wanted * sizeof *row, index->seed);
    p->refused =
        hearth_idmap_intern(&p->seen, key, (uint32_t)p->n_rows, &inserted) == HEARTH_IDMAP_NONE;
    p->n_rows += inserted ? 1 : 0;
}

static void see_rows(void *context, uint32_t ordinal)
{
    struct projection *p = context;
    const struct hearth_label_index *index = p->query->index;
    const struct index_series *series = &index->series[ordinal];
    const struct index_shape *shape = &index->shapes[index->groups[series->group].shape];

    for (size_t c = 0; c < shape->n_columns; c++) {
        if (p->query->column_ok[shape->first_column + c]) {
            add_row(p, series, c);
            if (!p->per_column) {
                return;
            }
        }
    }
}

/* True if any series of the tenant that is active in the range has one of the names. */
static bool any_name_exists(const struct projection *p)
{
    const struct hearth_label_index *index = p->query->index;

    for (size_t g = 0; g < index->n_groups; g++) {
        const struct index_group *group = &index->groups[g];
        const struct index_shape *shape = &index->shapes[group->shape];
        if (!activity_meets(&group->activity, p->query->from_hour, p->query->to_hour)) {
            continue;
        }

        for (size_t i = 0; i < p->n_wanted; i++) {
            if (hearth_index_varies(index, &p->wanted[i], group)) {
                return true;
            }
            for (size_t c = 0; p->wanted[i].derived != N_DERIVED && c < shape->n_columns; c++) {
                if (hearth_index_derived_text(index, group, c, p->wanted[i].derived) != 0) {
                    return true;
                }
            }
        }
    }

    return false;
}

struct ranked_text {
    struct hearth_str text;
    uint32_t value;
};

static int compare_ranked(const void *a, const void *b)
{
    struct ranked_text left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left.text, right.text);
}

/* Replace column i of the rows by ranks (from 1); *ret_texts has the texts, copied, by rank - 1. */
static enum hearth_status rank_column(struct projection *p, size_t i, struct hearth_arena *arena,
                                      struct hearth_str **ret_texts, struct hearth_err *err)
{
    const struct index_wanted *wanted = &p->wanted[i];
    uint32_t *rank_of = hearth_arena_calloc(arena, wanted->n_values, sizeof *rank_of);
    struct ranked_text *used = NULL;
    struct hearth_str *texts = NULL;
    size_t n = 0;

    /* Mark and count the used values. */
    if (rank_of != NULL) {
        for (size_t r = 0; r < p->n_rows; r++) {
            uint32_t value = p->rows[r * p->n_wanted + i];
            n += value != 0 && rank_of[value] == 0;
            rank_of[value] = 1;
        }
        used = hearth_arena_array(arena, n, sizeof *used);
        texts = hearth_arena_array(arena, n, sizeof *texts);
    }

    if (used == NULL || texts == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Sort their texts. */
    n = 0;
    for (uint32_t value = 1; value < wanted->n_values; value++) {
        if (rank_of[value] != 0) {
            used[n++] = (struct ranked_text){
                hearth_index_value_text(p->query->index, wanted, value), value};
        }
    }

    qsort(used, n, sizeof *used, compare_ranked);

    /* Ranks replace values. */
    for (size_t k = 0; k < n; k++) {
        rank_of[used[k].value] = (uint32_t)k + 1;
        texts[k] = hearth_arena_str(arena, used[k].text);
        if (texts[k].p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    rank_of[0] = 0;
    for (size_t r = 0; r < p->n_rows; r++) {
        uint32_t *value = &p->rows[r * p->n_wanted + i];
        *value = rank_of[*value];
    }

    *ret_texts = texts;

    return HEARTH_OK;
}

static bool is_empty_from(const uint32_t *row, size_t from, size_t n)
{
    while (from < n && row[from] == 0) {
        from++;
    }
    return from == n;
}

/*
 * The order of the label sets of two rows. At the first difference, a row without the label
 * continues with a greater name, so it comes later; unless it ends there: it is then a prefix and
 * comes first.
 */
static int compare_rows(const void *a, const void *b, void *n_wanted)
{
    const uint32_t *left, *right;
    size_t n;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    memcpy(&n, n_wanted, sizeof n);
    for (size_t i = 0; i < n; i++) {
        if (left[i] == right[i]) {
            continue;
        }
        if (left[i] == 0) {
            return is_empty_from(left, i, n) ? -1 : 1;
        }
        if (right[i] == 0) {
            return is_empty_from(right, i, n) ? 1 : -1;
        }
        return left[i] < right[i] ? -1 : 1;
    }

    return 0;
}

/* Turn rows of ranks into label sets. */
static enum hearth_status make_sets(struct projection *p, struct hearth_arena *arena,
                                    struct hearth_label_sets *ret_sets, struct hearth_err *err)
{
    struct hearth_str **texts = hearth_arena_array(arena, p->n_wanted, sizeof *texts);
    const uint32_t **order = hearth_arena_array(arena, p->n_rows, sizeof *order);
    struct hearth_labels *sets = hearth_arena_array(arena, p->n_rows, sizeof *sets);
    size_t n_sets = 0, n_labels = 0;

    if (texts == NULL || order == NULL || sets == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Ranks, by which rows can be sorted. */
    for (size_t i = 0; i < p->n_wanted; i++) {
        HEARTH_TRY(rank_column(p, i, arena, &texts[i], err));
    }

    /* Choose the rows: an empty one only if some series has one of the names. */
    for (size_t r = 0; r < p->n_rows; r++) {
        const uint32_t *row = p->rows + r * p->n_wanted;
        if (!is_empty_from(row, 0, p->n_wanted) || any_name_exists(p)) {
            order[n_sets++] = row;
        }
        for (size_t i = 0; i < p->n_wanted; i++) {
            n_labels += row[i] != 0;
        }
    }

    /* Sort them, and look their texts up. */
    qsort_r(order, n_sets, sizeof *order, compare_rows, &p->n_wanted);
    struct hearth_label *labels = hearth_arena_array(arena, n_labels, sizeof *labels);
    if (labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t s = 0; s < n_sets; s++) {
        sets[s] = (struct hearth_labels){.v = labels};
        for (size_t i = 0; i < p->n_wanted; i++) {
            uint32_t rank = order[s][i];
            if (rank != 0) {
                labels[sets[s].n++] = (struct hearth_label){p->wanted[i].text, texts[i][rank - 1]};
            }
        }

        labels += sets[s].n;
    }

    *ret_sets = (struct hearth_label_sets){sets, n_sets};

    return HEARTH_OK;
}

static enum hearth_status project_on_names(struct index_query *query,
                                           struct hearth_projected_names names,
                                           struct hearth_arena *arena,
                                           struct hearth_label_sets *ret_sets,
                                           struct hearth_err *err)
{
    struct projection p = {.query = query};

    struct index_wanted *wanted;
    HEARTH_TRY(hearth_index_look_up_all(query->index, names, arena, &wanted, &p.n_wanted, err));
    p.wanted = wanted;
    for (size_t i = 0; i < p.n_wanted; i++) {
        p.per_column = p.per_column || wanted[i].derived < N_COLUMN_DERIVED;
    }

    p.max_rows =
        arena->limit_bytes == 0
            ? SIZE_MAX
            : arena->limit_bytes / (p.n_wanted * sizeof *p.rows + sizeof(struct hearth_hash128));
    hearth_idmap_init(&p.seen);
    const struct index_visitor visitor = {want_rows, see_rows, &p};
    enum hearth_status status = hearth_index_walk(query, &visitor, arena, err);
    if (status == HEARTH_OK && p.refused) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu label sets", p.n_rows);
    }

    if (status == HEARTH_OK) {
        status = make_sets(&p, arena, ret_sets, err);
    }

    hearth_idmap_release(&p.seen);
    hearth_mem_free(p.rows);

    return status;
}

/* ---- all labels: every series is a projection, unless it equals another one ---- */

static int compare_sets(const void *a, const void *b)
{
    struct hearth_labels left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_labels_cmp(&left, &right);
}

static enum hearth_status copy_labels(struct hearth_labels *labels, struct hearth_arena *arena,
                                      struct hearth_err *err)
{
    for (size_t i = 0; i < labels->n; i++) {
        labels->v[i].name = hearth_arena_str(arena, labels->v[i].name);
        labels->v[i].value = hearth_arena_str(arena, labels->v[i].value);
        if (labels->v[i].name.p == NULL || labels->v[i].value.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status project_on_all(const struct hearth_label_index *index,
                                         const struct hearth_index_filter *filter,
                                         struct hearth_arena *arena,
                                         struct hearth_label_sets *ret_sets, struct hearth_err *err)
{
    struct hearth_series_hits hits;
    size_t n = 0;

    HEARTH_TRY(hearth_label_index_select(index, filter, arena, &hits, err));
    struct hearth_labels *sets = hearth_arena_array(arena, hits.n, sizeof *sets);
    if (sets == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < hits.n; i++) {
        HEARTH_TRY(hearth_label_index_labels(index, &hits.v[i], arena, &sets[i], err));
    }

    /* Sort, and copy the distinct ones. */
    qsort(sets, hits.n, sizeof *sets, compare_sets);
    for (size_t i = 0; i < hits.n; i++) {
        if (n == 0 || hearth_labels_cmp(&sets[n - 1], &sets[i]) != 0) {
            sets[n] = sets[i];
            HEARTH_TRY(copy_labels(&sets[n++], arena, err));
        }
    }

    *ret_sets = (struct hearth_label_sets){sets, n};

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_project(const struct hearth_label_index *index,
                                              const struct hearth_index_filter *filter,
                                              struct hearth_projected_names names,
                                              struct hearth_arena *arena,
                                              struct hearth_label_sets *ret_sets,
                                              struct hearth_err *err)
{
    assert((names.v != NULL || names.n == 0) && arena != NULL && ret_sets != NULL);

    struct index_query query;
    struct hearth_index_texts all;

    HEARTH_TRY(hearth_index_query_init(&query, index, filter, arena, err));
    if (names.n > 0) {
        return project_on_names(&query, names, arena, ret_sets, err);
    }

    /* All labels: the names that the series have. */
    HEARTH_TRY(hearth_label_index_names(index, filter, arena, &all, err));
    if (all.n == 0 || query.n_bound > MAX_CELLS / all.n) {
        return project_on_all(index, filter, arena, ret_sets, err);
    }

    names = (struct hearth_projected_names){all.v, all.n};
    return project_on_names(&query, names, arena, ret_sets, err);
}
