/*
 * listed_facets.c -- the uploads of a range, counted by the values of labels.
 *
 * The values of all selected series are numbered before the scan, so that counting an upload is a
 * few additions.
 */
#include "listed/listed_scan.h"

#include <assert.h>
#include <stdlib.h>

/* A value of a hit. */
struct facet_entry {
    struct hearth_str value; /* borrows from the index until the values are numbered */
    uint32_t hit, number;
};

/* A label while its values are counted. */
struct facet_count {
    struct hearth_str label;
    struct facet_entry *entries; /* by hit */
    size_t n_entries, cap_entries;
    uint32_t *first;                   /* [n_hits + 1]: the entries of each hit */
    struct hearth_facet_value *values; /* by number */
    int64_t *latest;                   /* the latest upload that was counted for each value */
    size_t n_values;
    int64_t n_uploads;
};

struct facet_run {
    struct listed_scan scan;
    struct facet_count *counts;
    size_t n_counts;
    int64_t n_uploads;
};

/* ---- labels ---- */

/* Lists the labels of the request, once each. */
static enum hearth_status list_requested_labels(struct facet_run *run,
                                                const struct hearth_facet_spec *spec,
                                                struct hearth_err *err)
{
    if (spec->n_labels > HEARTH_LISTED_MAX_FACETS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%zu labels are requested, more than %d",
                           spec->n_labels, HEARTH_LISTED_MAX_FACETS);
    }

    for (size_t i = 0; i < spec->n_labels; i++) {
        bool is_new = true;
        if (spec->labels[i].n == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the name of label %zu is empty", i);
        }
        for (size_t k = 0; k < run->n_counts; k++) {
            is_new = is_new && !hearth_str_eq(run->counts[k].label, spec->labels[i]);
        }
        if (is_new) {
            run->counts[run->n_counts++].label = spec->labels[i];
        }
    }

    return HEARTH_OK;
}

/* Adds a label in the order of names; the last one is pushed out if there are too many. */
static void add_found_label(struct facet_run *run, struct hearth_str name,
                            struct hearth_arena *arena)
{
    size_t low = 0, high = run->n_counts;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (hearth_str_cmp(run->counts[mid].label, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    bool is_known = low < run->n_counts && hearth_str_eq(run->counts[low].label, name);
    if (is_known || low == HEARTH_LISTED_MAX_FACETS) {
        return;
    }

    run->n_counts += run->n_counts < HEARTH_LISTED_MAX_FACETS;
    memmove(run->counts + low + 1, run->counts + low,
            (run->n_counts - 1 - low) * sizeof run->counts[0]);
    run->counts[low] = (struct facet_count){.label = hearth_arena_str(arena, name)};
}

/* ---- values ---- */

static enum hearth_status add_facet_entry(struct facet_count *count, struct hearth_str value,
                                          uint32_t hit, struct hearth_arena *arena,
                                          struct hearth_err *err)
{
    if (count->n_entries == count->cap_entries) {
        size_t cap = count->cap_entries > 0 ? 2 * count->cap_entries : 64;
        struct facet_entry *entries = hearth_arena_array(arena, cap, sizeof entries[0]);
        if (entries == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        if (count->n_entries > 0) {
            memcpy(entries, count->entries, count->n_entries * sizeof entries[0]);
        }
        count->entries = entries;
        count->cap_entries = cap;
    }

    count->entries[count->n_entries++] = (struct facet_entry){.value = value, .hit = hit};

    return HEARTH_OK;
}

/* Adds the values that a hit has of all labels. */
static enum hearth_status add_hit_values(struct facet_run *run,
                                         const struct hearth_call_index *index, uint32_t hit,
                                         const struct hearth_labels *labels, struct hearth_err *err)
{
    struct hearth_arena *arena = run->scan.query->call.arena;
    for (size_t i = 0; i < run->n_counts; i++) {
        struct facet_count *count = &run->counts[i];
        if (!hearth_str_eq_c(count->label, HEARTH_LABEL_PROFILE_TYPE)) {
            struct hearth_str value = hearth_labels_get(labels, count->label);
            if (value.p != NULL) {
                HEARTH_TRY(add_facet_entry(count, value, hit, arena, err));
            }
            continue;
        }

        /* All types of the series. */
        struct hearth_series_hits columns;
        HEARTH_TRY(hearth_call_index_columns(index, run->scan.selection.hits[hit].series_id, arena,
                                             &columns, err));
        for (size_t c = 0; c < columns.n; c++) {
            HEARTH_TRY(add_facet_entry(count, hearth_call_index_type(index, &columns.v[c]), hit,
                                       arena, err));
        }
    }

    return HEARTH_OK;
}

/* Visits the labels of each hit: to find the labels that there are, or their values. */
static enum hearth_status visit_hit_labels(struct facet_run *run,
                                           const struct hearth_call_index *index, bool values,
                                           struct hearth_err *err)
{
    struct hearth_arena *arena = run->scan.query->call.arena, scratch;
    hearth_arena_init_like(&scratch, arena);

    enum hearth_status status = HEARTH_OK;
    for (size_t h = 0; status == HEARTH_OK && h < run->scan.selection.n_hits; h++) {
        struct hearth_labels labels = {0};
        hearth_arena_reset(&scratch);
        status = hearth_listed_labels(index, &run->scan.selection.hits[h], &scratch, &labels, err);
        if (status == HEARTH_NOT_FOUND) {
            status = HEARTH_OK;
        } else if (status == HEARTH_OK && values) {
            status = add_hit_values(run, index, (uint32_t)h, &labels, err);
        }
        for (size_t i = 0; status == HEARTH_OK && !values && i < labels.n; i++) {
            add_found_label(run, labels.v[i].name, arena);
        }
    }
    hearth_arena_release(&scratch);

    return status;
}

static int compare_entry_values(const void *left, const void *right)
{
    const struct facet_entry *a = left, *b = right;
    int order = hearth_str_cmp(a->value, b->value);

    return order != 0 ? order : (a->hit > b->hit) - (a->hit < b->hit);
}

static int compare_entry_hits(const void *left, const void *right)
{
    const struct facet_entry *a = left, *b = right;
    if (a->hit != b->hit) {
        return a->hit < b->hit ? -1 : 1;
    }

    return (a->number > b->number) - (a->number < b->number);
}

/* Numbers the values of a label in their order, copies them, and sorts the entries by hit. */
static enum hearth_status number_values(struct facet_count *count, size_t n_hits,
                                        struct hearth_arena *arena, struct hearth_err *err)
{
    size_t n = count->n_entries;
    count->values = hearth_arena_calloc(arena, n, sizeof count->values[0]);
    count->latest = hearth_arena_calloc(arena, n, sizeof count->latest[0]);
    count->first = hearth_arena_calloc(arena, n_hits + 1, sizeof count->first[0]);
    if (count->values == NULL || count->latest == NULL || count->first == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n > 1) {
        qsort(count->entries, n, sizeof count->entries[0], compare_entry_values);
    }
    for (size_t i = 0; i < n; i++) {
        struct facet_entry *entry = &count->entries[i];
        if (i == 0 || !hearth_str_eq(entry->value, count->values[count->n_values - 1].value)) {
            count->values[count->n_values++].value = hearth_arena_str(arena, entry->value);
        }
        entry->number = (uint32_t)count->n_values - 1;
    }

    if (n > 1) {
        qsort(count->entries, n, sizeof count->entries[0], compare_entry_hits);
    }
    for (size_t h = 0, i = 0; h < n_hits; h++) {
        while (i < n && count->entries[i].hit == h) {
            i++;
        }
        count->first[h + 1] = (uint32_t)i;
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Finds the labels and numbers their values. */
static enum hearth_status
prepare_facets(struct facet_run *run, const struct hearth_facet_spec *spec, struct hearth_err *err)
{
    const struct hearth_call *call = &run->scan.query->call;
    run->counts = hearth_arena_calloc(call->arena, HEARTH_LISTED_MAX_FACETS, sizeof run->counts[0]);
    if (run->counts == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }
    HEARTH_TRY(list_requested_labels(run, spec, err));

    const struct hearth_call_index *index;
    HEARTH_TRY(hearth_call_index_lock(call, &index, err));
    enum hearth_status status =
        spec->n_labels > 0 ? HEARTH_OK : visit_hit_labels(run, index, false, err);
    status = status == HEARTH_OK ? visit_hit_labels(run, index, true, err) : status;
    for (size_t i = 0; status == HEARTH_OK && i < run->n_counts; i++) {
        status = number_values(&run->counts[i], run->scan.selection.n_hits, call->arena, err);
    }
    hearth_call_index_unlock(index);

    return status;
}

/* ---- counting ---- */

/* A value of several rows of the upload is counted once. */
static enum hearth_status count_upload(void *context, const struct listed_rows *upload,
                                       bool *ret_stop, struct hearth_err *err)
{
    struct facet_run *run = context;
    (void)ret_stop;
    (void)err;

    run->n_uploads++;
    for (size_t k = 0; k < run->n_counts; k++) {
        struct facet_count *count = &run->counts[k];
        bool any = false;
        for (size_t i = 0; i < upload->n; i++) {
            uint32_t hit = upload->rows[i].hit;
            for (uint32_t e = count->first[hit]; e < count->first[hit + 1]; e++) {
                uint32_t number = count->entries[e].number;
                count->values[number].n_uploads += count->latest[number] != run->n_uploads;
                count->latest[number] = run->n_uploads;
                any = true;
            }
        }
        count->n_uploads += any;
    }

    return HEARTH_OK;
}

/* ---- the answer ---- */

static int compare_facet_values(const void *left, const void *right)
{
    const struct hearth_facet_value *a = left, *b = right;
    if (a->n_uploads != b->n_uploads) {
        return a->n_uploads > b->n_uploads ? -1 : 1;
    }

    return hearth_str_cmp(a->value, b->value);
}

/* Values without an upload in the range are left out. */
static void write_facet(struct facet_count *count, size_t limit, struct hearth_facet *out)
{
    size_t n = 0;
    for (size_t i = 0; i < count->n_values; i++) {
        if (count->values[i].n_uploads > 0) {
            count->values[n++] = count->values[i];
        }
    }

    if (n > 1) {
        qsort(count->values, n, sizeof count->values[0], compare_facet_values);
    }
    *out = (struct hearth_facet){
        .label = count->label,
        .values = count->values,
        .n_values = limit > 0 && n > limit ? limit : n,
        .n_all = (int64_t)n,
        .n_uploads = count->n_uploads,
    };
}

enum hearth_status hearth_listed_facets(const struct hearth_query *query,
                                        const struct hearth_listed_filter *filter,
                                        const struct hearth_facet_spec *spec,
                                        struct hearth_facets *ret, struct hearth_err *err)
{
    assert(query != NULL && filter != NULL && spec != NULL && ret != NULL);

    struct facet_run run = {.n_counts = 0};
    enum hearth_status status = hearth_listed_scan_init(&run.scan, query, filter, err);
    status = status == HEARTH_OK ? prepare_facets(&run, spec, err) : status;
    status = status == HEARTH_OK ? hearth_listed_scan_run(&run.scan, true, count_upload, &run, err)
                                 : status;
    hearth_listed_scan_release(&run.scan);
    HEARTH_TRY(status);

    struct hearth_facet *facets =
        hearth_arena_array(query->call.arena, run.n_counts, sizeof facets[0]);
    if (facets == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }
    for (size_t i = 0; i < run.n_counts; i++) {
        write_facet(&run.counts[i], spec->limit, &facets[i]);
    }
    *ret = (struct hearth_facets){.v = facets, .n = run.n_counts, .n_uploads = run.n_uploads};

    return HEARTH_OK;
}
