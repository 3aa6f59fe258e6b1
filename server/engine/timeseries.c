/*
 * timeseries.c -- totals of profiles over time, in buckets, grouped by labels.
 *
 * The point at t sums the profiles with t - step < time <= t, for t = start, start + step, ... <=
 * end; the first also takes time = start - step. Profile times are cut to milliseconds before. What
 * lies after the last whole step is left out. Buckets are kept in pages, so that a long range with
 * a small step costs what it holds, not what it could hold.
 */
#include "hearth/base/mem.h"

#include "planned.h"

#include <stdlib.h>

#define PAGE_BUCKETS 256
#define MAX_STEP_MS  (INT64_MAX / HEARTH_NS_PER_MS) /* longer than any range */

struct bucket {
    int64_t sum;
    int64_t n; /* profiles; 0: no point */
};

struct group {
    struct hearth_labels labels;
    struct bucket **pages; /* [n_pages] */
    int64_t sum;
    size_t n_points;
};

struct series_run {
    const struct hearth_query *query;
    const struct hearth_timeseries_spec *spec;
    struct hearth_buckets buckets;
    struct hearth_selection selection;
    struct hearth_idmap group_of_hit; /* (series, column) -> group */
    struct group *groups;
    size_t n_groups, cap_groups;
    size_t n_pages;
    int32_t last_series;
    uint16_t last_column;
    struct group *last_group;
    int64_t n_points;
    /* With a call site: the rows wait here until their dictionaries can be read. */
    struct kept_row *rows;
};

struct kept_row {
    struct kept_row *next;
    struct hearth_read_row row; /* texts copied */
};

static struct hearth_hash128 hit_key(int32_t series_id, uint16_t column)
{
    uint32_t parts[2] = {(uint32_t)series_id, column};
    return hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
}

/* The labels of a hit that are asked for, in order of their names. */
static enum hearth_status project(const struct series_run *run,
                                  const struct hearth_labels *all,
                                  struct hearth_labels *ret,
                                  struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->arena;
    struct hearth_label *v = hearth_arena_array(arena, run->spec->n_group_by, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    size_t n = 0;
    for (size_t i = 0; i < run->spec->n_group_by; i++) {
        struct hearth_str value = hearth_labels_get(all, run->spec->group_by[i]);
        bool repeated = false;
        for (size_t j = 0; j < n; j++) {
            repeated = repeated || hearth_str_eq(v[j].name, run->spec->group_by[i]);
        }
        if (value.p != NULL && !repeated) {
            v[n++] = (struct hearth_label){run->spec->group_by[i], hearth_arena_str(arena, value)};
            if (v[n - 1].value.p == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }
    *ret = (struct hearth_labels){v, n};
    hearth_labels_sort(ret);
    return HEARTH_OK;
}

/* Every hit's group, while the index is locked. */
static enum hearth_status
make_groups(struct series_run *run, const struct hearth_label_index *index, struct hearth_err *err)
{
    struct hearth_idmap by_labels;
    hearth_idmap_init(&by_labels);
    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; status == HEARTH_OK && i < run->selection.n_hits; i++) {
        struct hearth_labels all = {0}, labels = {0};
        if (run->spec->n_group_by > 0) {
            status = hearth_label_index_labels(index, &run->selection.hits[i], run->query->arena,
                                               &all, err);
            status = status == HEARTH_OK ? project(run, &all, &labels, err) : status;
            if (status != HEARTH_OK) {
                break;
            }
        }
        bool inserted, unused;
        uint32_t group = hearth_idmap_intern(&by_labels, hearth_labels_fingerprint(&labels),
                                             (uint32_t)run->n_groups, &inserted);
        if (group == HEARTH_IDMAP_NONE ||
            (inserted && !hearth_mem_grow(&run->groups, &run->cap_groups, run->n_groups + 1,
                                          sizeof run->groups[0])) ||
            hearth_idmap_intern(
                &run->group_of_hit,
                hit_key(run->selection.hits[i].series_id, run->selection.hits[i].column), group,
                &unused) == HEARTH_IDMAP_NONE) {
            status =
                HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the groups of a time series");
        } else if (inserted) {
            run->groups[run->n_groups++] = (struct group){.labels = labels};
        }
    }
    hearth_idmap_release(&by_labels);
    return status;
}

static struct group *group_of(struct series_run *run, int32_t series_id, uint16_t column)
{
    if (run->last_group == NULL || run->last_series != series_id || run->last_column != column) {
        uint32_t group = hearth_idmap_find(&run->group_of_hit, hit_key(series_id, column));
        if (group == HEARTH_IDMAP_NONE) {
            return NULL;
        }
        run->last_group = &run->groups[group];
        run->last_series = series_id;
        run->last_column = column;
    }
    return run->last_group;
}

/* Add one profile's value at its time. */
static enum hearth_status add_value(struct series_run *run,
                                    struct group *group,
                                    int64_t ts_ns,
                                    int64_t value,
                                    struct hearth_err *err)
{
    int64_t ts_ms = ts_ns / HEARTH_NS_PER_MS - (ts_ns % HEARTH_NS_PER_MS < 0);
    int64_t offset = ts_ms - run->buckets.start_ms;
    int64_t b = offset <= 0 ? 0 : (offset + run->buckets.step_ms - 1) / run->buckets.step_ms;
    if (b >= run->buckets.n) {
        return HEARTH_OK;
    }
    struct hearth_arena *arena = run->query->arena;
    if (group->pages == NULL) {
        group->pages = hearth_arena_calloc(arena, run->n_pages, sizeof group->pages[0]);
    }
    struct bucket **page = group->pages == NULL ? NULL : &group->pages[b / PAGE_BUCKETS];
    if (page != NULL && *page == NULL) {
        *page = hearth_arena_calloc(arena, PAGE_BUCKETS, sizeof **page);
    }
    if (page == NULL || *page == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    struct bucket *bucket = &(*page)[b % PAGE_BUCKETS];
    int64_t max_points = run->query->engine->limits.max_points;
    if (bucket->n++ == 0) {
        group->n_points++;
        if (max_points > 0 && ++run->n_points > max_points) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "the answer would have more than max-points (%lld) points: use a longer "
                "step or fewer groups",
                (long long)max_points);
        }
    }
    if (__builtin_add_overflow(bucket->sum, value, &bucket->sum) ||
        __builtin_add_overflow(group->sum, value, &group->sum)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the time series exceeds 64 bits");
    }
    return HEARTH_OK;
}

static enum hearth_status
visit_total(void *context, const struct hearth_read_total *total, struct hearth_err *err)
{
    struct series_run *run = context;
    struct group *group = group_of(run, total->series_id, total->column);
    if (group == NULL) {
        return HEARTH_OK;
    }
    return add_value(run, group, total->ts_ns, total->total, err);
}

/* ---- with a call site: the value of a profile is that of its stacks below the call site ---- */

static enum hearth_status
keep_row(void *context, const struct hearth_read_row *row, struct hearth_err *err)
{
    struct series_run *run = context;
    struct hearth_arena *arena = run->query->arena;
    struct kept_row *kept = hearth_arena_alloc(arena, sizeof *kept);
    if (kept == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    kept->row = *row;
    kept->row.ids = hearth_arena_str(arena, row->ids);
    kept->row.val = hearth_arena_str(arena, row->val);
    kept->row.val0 = hearth_arena_str(arena, row->val0);
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    kept->next = run->rows;
    run->rows = kept;
    return HEARTH_OK;
}

/* Which stacks of a dictionary lie below the call site. */
struct call_site_mask {
    int32_t service_id, day, writer_id;
    uint32_t n_stacks;
    bool *inside; /* [n_stacks] */
};

static enum hearth_status load_mask(const struct series_run *run,
                                    struct call_site_mask *mask,
                                    uint32_t min_stacks,
                                    struct hearth_err *err)
{
    struct hearth_store *store = run->query->engine->store;
    const struct hearth_dict *dict;
    HEARTH_TRY(hearth_store_read_dict(store, mask->service_id, mask->day, mask->writer_id,
                                      min_stacks, run->query->cancel, &dict, err));
    struct hearth_arena *arena = run->query->arena;
    bool *nodes = NULL;
    enum hearth_status status =
        hearth_call_site_nodes(dict->tree, hearth_name_tree_size(dict->tree), run->spec->call_site,
                               run->spec->n_call_site, arena, &nodes, err);
    if (status == HEARTH_OK) {
        mask->n_stacks = dict->n_tree_stacks;
        mask->inside = hearth_arena_array(arena, dict->n_tree_stacks, sizeof mask->inside[0]);
        if (mask->inside == NULL) {
            status = HEARTH_FAIL_ARENA(err, arena);
        }
        for (uint32_t s = 0; status == HEARTH_OK && s < dict->n_tree_stacks; s++) {
            mask->inside[s] = nodes == NULL || nodes[dict->stack_node[s]];
        }
    }
    hearth_store_read_dict_release(store, dict);
    return status;
}

struct mask_table {
    struct call_site_mask *masks;
    size_t n, cap;
    struct hearth_idmap by_key;
};

/* The mask of a row's dictionary, covering at least `bound` stacks. */
static enum hearth_status mask_of_row(const struct series_run *run,
                                      struct mask_table *table,
                                      const struct hearth_read_row *row,
                                      uint32_t bound,
                                      const struct call_site_mask **ret_mask,
                                      struct hearth_err *err)
{
    int32_t parts[3] = {row->service_id, hearth_query_day(row->ts_ns), row->writer_id};
    struct hearth_hash128 key = hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
    bool inserted;
    uint32_t i = hearth_idmap_intern(&table->by_key, key, (uint32_t)table->n, &inserted);
    if (i == HEARTH_IDMAP_NONE ||
        (inserted &&
         !hearth_mem_grow(&table->masks, &table->cap, table->n + 1, sizeof table->masks[0]))) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a call site mask");
    }
    if (inserted) {
        table->masks[table->n++] = (struct call_site_mask){parts[0], parts[1], parts[2], 0, NULL};
    }
    if (table->masks[i].n_stacks < bound) {
        HEARTH_TRY(load_mask(run, &table->masks[i], bound, err));
    }
    *ret_mask = &table->masks[i];
    return HEARTH_OK;
}

static enum hearth_status add_kept_row(struct series_run *run,
                                       struct mask_table *table,
                                       const struct hearth_read_row *row,
                                       struct hearth_arena *scratch,
                                       struct hearth_err *err)
{
    uint32_t bound;
    if (!hearth_columns_id_bound(row->ids, &bound)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "profile of series %d: damaged ids",
                           row->series_id);
    }
    const struct call_site_mask *mask;
    HEARTH_TRY(mask_of_row(run, table, row, bound, &mask, err));
    int64_t *acc = hearth_arena_calloc(scratch, bound, sizeof acc[0]);
    if (acc == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }
    HEARTH_TRY(
        hearth_columns_merge(row->ids, row->val, row->val0, row->is_column0, acc, bound, err));
    int64_t value = 0;
    for (uint32_t s = 0; s < bound; s++) {
        value += mask->inside[s] ? acc[s] : 0; /* part of the row's total, which fits */
    }
    struct group *group = group_of(run, row->series_id, row->column);
    return group == NULL || value == 0 ? HEARTH_OK : add_value(run, group, row->ts_ns, value, err);
}

static enum hearth_status add_kept_rows(struct series_run *run, struct hearth_err *err)
{
    struct mask_table table = {0};
    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, run->query->arena);
    enum hearth_status status = HEARTH_OK;
    for (const struct kept_row *kept = run->rows; status == HEARTH_OK && kept != NULL;
         kept = kept->next) {
        hearth_arena_reset(&scratch);
        status = hearth_cancel_check(run->query->cancel, err);
        if (status == HEARTH_OK) {
            status = add_kept_row(run, &table, &kept->row, &scratch, err);
        }
    }
    hearth_arena_release(&scratch);
    hearth_idmap_release(&table.by_key);
    hearth_mem_free(table.masks);
    return status;
}

/* ---- the answer ---- */

static int by_sum_then_labels(const void *a, const void *b)
{
    const struct hearth_timeseries *x = a, *y = b;
    if (x->sum != y->sum) {
        return x->sum > y->sum ? -1 : 1;
    }
    return hearth_labels_cmp(&x->labels, &y->labels);
}

static void
write_points(const struct series_run *run, const struct group *group, struct hearth_timeseries *out)
{
    size_t n = 0;
    for (size_t p = 0; p < run->n_pages; p++) {
        for (size_t i = 0; group->pages[p] != NULL && i < PAGE_BUCKETS; i++) {
            const struct bucket *bucket = &group->pages[p][i];
            if (bucket->n == 0) {
                continue;
            }
            double value = (double)bucket->sum;
            if (run->spec->average) {
                value /= (double)bucket->n;
            }
            int64_t b = (int64_t)(p * PAGE_BUCKETS + i);
            out->points[n++] =
                (struct hearth_point){run->buckets.start_ms + b * run->buckets.step_ms, value};
            out->sum += value;
        }
    }
    out->n_points = n;
}

static enum hearth_status write_series(struct series_run *run,
                                       struct hearth_timeseries **ret_series,
                                       size_t *ret_n,
                                       struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->arena;
    struct hearth_timeseries *series = hearth_arena_calloc(arena, run->n_groups, sizeof series[0]);
    if (series == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    size_t n = 0;
    for (size_t g = 0; g < run->n_groups; g++) {
        const struct group *group = &run->groups[g];
        if (group->n_points == 0) {
            continue;
        }
        series[n].labels = group->labels;
        series[n].points = hearth_arena_array(arena, group->n_points, sizeof series[n].points[0]);
        if (series[n].points == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        write_points(run, group, &series[n]);
        n++;
    }
    if (n > 0) {
        qsort(series, n, sizeof series[0], by_sum_then_labels);
    }
    if (run->spec->limit > 0 && n > (uint64_t)run->spec->limit) {
        n = (size_t)run->spec->limit;
    }
    *ret_series = series;
    *ret_n = n;
    return HEARTH_OK;
}

/* Find the hits and their groups; the index is locked only here. */
static enum hearth_status find_series(struct series_run *run, struct hearth_err *err)
{
    struct hearth_store *store = run->query->engine->store;
    const struct hearth_label_index *index;
    HEARTH_TRY(hearth_store_index_lock(store, run->query->tenant, run->query->cancel, &index, err));
    enum hearth_status status =
        hearth_selection_make(run->query, run->spec->profile_type, run->spec->selector, index,
                              run->buckets.from_ns, run->buckets.to_ns, &run->selection, err);
    if (status == HEARTH_OK) {
        status = make_groups(run, index, err);
    }
    hearth_store_index_unlock(store, index);
    return status;
}

static void forget_values(void *context)
{
    struct series_run *run = context;
    for (size_t g = 0; g < run->n_groups; g++) {
        run->groups[g] = (struct group){.labels = run->groups[g].labels};
    }
    run->n_points = 0;
    run->rows = NULL;
}

static enum hearth_status read_values(struct series_run *run, struct hearth_err *err)
{
    const struct hearth_reader reader = {
        .reset = forget_values, .row = keep_row, .total = visit_total, .context = run};
    run->selection.totals = true;
    run->selection.rows = run->spec->n_call_site > 0;
    HEARTH_TRY(hearth_selection_read(run->query, &run->selection, &reader, err));
    return add_kept_rows(run, err);
}

enum hearth_status hearth_timeseries_buckets(const struct hearth_query *query,
                                             const struct hearth_timeseries_spec *spec,
                                             struct hearth_buckets *ret,
                                             struct hearth_err *err)
{
    struct hearth_range range;
    HEARTH_TRY(hearth_query_range(query, &range, err));
    if (!(spec->step_seconds >= 0.001 && spec->step_seconds < 1e12)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "step must be >= 1ms");
    }
    *ret = (struct hearth_buckets){
        .start_ms = range.from_ns / HEARTH_NS_PER_MS,
        .step_ms = spec->step_seconds * 1000 < (double)MAX_STEP_MS
                       ? (int64_t)(spec->step_seconds * 1000)
                       : MAX_STEP_MS,
        .empty = range.empty,
    };
    ret->n = (range.to_ns / HEARTH_NS_PER_MS - ret->start_ms) / ret->step_ms + 1;
    if (__builtin_sub_overflow(range.from_ns, ret->step_ms * HEARTH_NS_PER_MS, &ret->from_ns)) {
        ret->from_ns = INT64_MIN;
    }
    /* Times are cut to milliseconds: all of the last one belongs to the range. */
    if (__builtin_add_overflow(range.to_ns, HEARTH_NS_PER_MS - 1, &ret->to_ns)) {
        ret->to_ns = INT64_MAX;
    }
    return HEARTH_OK;
}

enum hearth_status hearth_query_timeseries(const struct hearth_query *query,
                                           const struct hearth_timeseries_spec *spec,
                                           struct hearth_timeseries **ret_series,
                                           size_t *ret_n,
                                           struct hearth_err *err)
{
    *ret_n = 0;
    struct series_run run = {.query = query, .spec = spec};
    HEARTH_TRY(hearth_timeseries_buckets(query, spec, &run.buckets, err));
    if (run.buckets.empty) {
        return HEARTH_OK;
    }
    run.n_pages = (size_t)((run.buckets.n + PAGE_BUCKETS - 1) / PAGE_BUCKETS);
    hearth_idmap_init(&run.group_of_hit);
    enum hearth_status status = find_series(&run, err);
    if (status == HEARTH_OK) {
        status = read_values(&run, err);
    }
    if (status == HEARTH_OK) {
        status = write_series(&run, ret_series, ret_n, err);
    }
    hearth_idmap_release(&run.group_of_hit);
    hearth_mem_free(run.groups);
    return status;
}
