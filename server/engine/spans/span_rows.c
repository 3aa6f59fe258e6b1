/*
 * span_rows.c -- the spans, traces, local roots, endpoints or names of a selection, sorted by
 * value.
 *
 * A row of the answer is an entry. For each profile, every value of the attribute is looked up
 * once, then samples are added by number. A fact that all samples of an entry share is kept until
 * two samples differ; samples without the fact do not count as different.
 *
 * Sample labels split a profile into several rows, in any order, but the profile counts once for an
 * entry. So the entries that a row counted for are noted, four bytes each, and profiles with
 * several rows are corrected at the end.
 *
 * Values of gauges are summed, not averaged: a span's part of a mean per scrape has no meaning.
 */
#include "hearth/engine/span_profiles.h"

#include "common/id_table.h"
#include "common/texts.h"
#include "spans/span_scan.h"
#include "spans/span_stored.h"

#include <assert.h>
#include <stdlib.h>

#define DEFAULT_LIMIT 100
#define CHECK_EVERY   4096
#define NONE          HEARTH_IDMAP_NONE

/* Facts in which the samples of an entry differ. */
enum several {
    SEVERAL_TRACES = 1u << 0,
    SEVERAL_ROOTS = 1u << 1,
    SEVERAL_NAMES = 1u << 2,
    SEVERAL_ENDPOINTS = 1u << 3,
    SEVERAL_SERVICES = 1u << 4,
};

struct span_entry {
    int64_t value;
    struct hearth_trace_id trace;
    uint64_t root;
    int64_t first_ns, last_ns;
    uint32_t name, endpoint; /* numbers of texts; 0: none */
    uint32_t service;        /* group of the scan, plus 1; 0: none */
    uint32_t n_profiles, n_spans;
    uint32_t last_row; /* number of the last row that counted for it */
    uint32_t several;
};

/* A row of the table profile, and the entries it counted for. */
struct counted_row {
    int64_t profile_no;
    int32_t writer_id;
    uint32_t n;
    size_t begin; /* index of its first entry in `counted` */
};

struct rows_run {
    const struct hearth_query *query;
    enum hearth_attr by;
    struct hearth_span_scan scan;
    struct hearth_id_table ids;   /* number of an entry, by its key */
    struct hearth_id_table pairs; /* pairs (entry, span) that were counted */
    struct hearth_texts texts;
    struct hearth_buf entry_bytes, counted, row_bytes;
    size_t n_entries;
    uint32_t row_no;
};

static struct span_entry *list_entries(const struct rows_run *run)
{
    return (struct span_entry *)(void *)run->entry_bytes.p;
}

/* ---- one row ---- */

/* The columns of a row, and the numbers found so far for their values; NONE: not looked up yet. */
struct row_maps {
    const struct hearth_attr_columns *columns;
    uint32_t *entry; /* number of the entry, for each value of `by` */
    uint32_t *name, *endpoint;
    uint32_t *counted;           /* for each span, the last entry it was noted for */
    struct hearth_id_key *pairs; /* [n_pairs]: noted pairs (entry, span) */
    size_t n_pairs;
};

static uint32_t *make_row_map(struct rows_run *run, const struct hearth_attr_column *column)
{
    uint32_t *map = hearth_arena_array(&run->scan.scratch, column->n_values, sizeof map[0]);

    if (map != NULL) {
        memset(map, 0xff, column->n_values * sizeof map[0]);
    }
    return map;
}

static const struct hearth_attr_value *find_sample_value(const struct hearth_attr_column *column,
                                                         size_t i)
{
    return column->values == NULL || column->index[i] == 0 ? NULL
                                                           : &column->values[column->index[i] - 1];
}

/* The number of the text of sample i; 0: it has no text; NONE: no memory. */
static uint32_t find_sample_text(struct rows_run *run, const struct hearth_attr_column *column,
                                 uint32_t *map, size_t i)
{
    const struct hearth_attr_value *value = find_sample_value(column, i);

    if (value == NULL) {
        return 0;
    }

    uint32_t *known = &map[column->index[i] - 1];
    if (*known == NONE) {
        *known = hearth_texts_id(&run->texts, value->text);
    }

    return *known;
}

static uint32_t find_or_make_entry(struct rows_run *run, const struct hearth_attr_value *value,
                                   struct hearth_err *err)
{
    uint64_t hi = value->hi, lo = value->lo;

    if (value->text.n > 0) {
        lo = hearth_texts_id(&run->texts, value->text);
    }

    /* A new key gets a new entry. */
    bool inserted;
    uint32_t at = lo == NONE && value->text.n > 0
                      ? NONE
                      : hearth_id_table_intern(&run->ids, hi, lo, &inserted);
    if (at != NONE && inserted) {
        const struct span_entry entry = {.first_ns = INT64_MAX, .last_ns = INT64_MIN};
        hearth_buf_append(&run->entry_bytes, &entry, sizeof entry);
        run->n_entries++;
    }

    if (at == NONE || hearth_buf_failed(&run->entry_bytes)) {
        (void)hearth_span_fail_memory(err);
        return NONE;
    }

    return at;
}

static void merge_fact_u64(uint64_t *kept, uint64_t value, uint32_t flag, uint32_t *several)
{
    if (value != 0 && *kept != value) {
        *several |= *kept != 0 ? flag : 0;
        *kept = value;
    }
}

static void merge_fact_u32(uint32_t *kept, uint32_t value, uint32_t flag, uint32_t *several)
{
    if (value != 0 && *kept != value) {
        *several |= *kept != 0 ? flag : 0;
        *kept = value;
    }
}

/* Merge the other facts of sample i into its entry. */
static enum hearth_status merge_sample_facts(struct rows_run *run, const struct row_maps *maps,
                                             size_t i, struct span_entry *entry,
                                             struct hearth_err *err)
{
    const struct hearth_attr_column *of = maps->columns->of;
    const struct hearth_attr_value *trace = find_sample_value(&of[HEARTH_ATTR_TRACE_ID], i);
    const struct hearth_attr_value *root =
        find_sample_value(&of[HEARTH_ATTR_LOCAL_ROOT_SPAN_ID], i);

    /* Trace and root. */
    if (trace != NULL && (entry->trace.hi != trace->hi || entry->trace.lo != trace->lo)) {
        entry->several |= hearth_trace_id_is_none(entry->trace) ? 0 : SEVERAL_TRACES;
        entry->trace = (struct hearth_trace_id){trace->hi, trace->lo};
    }

    merge_fact_u64(&entry->root, root == NULL ? 0 : root->lo, SEVERAL_ROOTS, &entry->several);

    /* Name and endpoint. */
    uint32_t name = find_sample_text(run, &of[HEARTH_ATTR_SPAN_NAME], maps->name, i);
    uint32_t endpoint = find_sample_text(run, &of[HEARTH_ATTR_ENDPOINT], maps->endpoint, i);
    merge_fact_u32(&entry->name, name, SEVERAL_NAMES, &entry->several);
    merge_fact_u32(&entry->endpoint, endpoint, SEVERAL_ENDPOINTS, &entry->several);

    return name == NONE || endpoint == NONE ? hearth_span_fail_memory(err) : HEARTH_OK;
}

/* Note the span of a sample, if entries are not spans; it is counted at the end of the row. */
static void note_entry_span(const struct rows_run *run, struct row_maps *maps, size_t i,
                            uint32_t at)
{
    const struct hearth_attr_column *spans = &maps->columns->of[HEARTH_ATTR_SPAN_ID];
    const struct hearth_attr_value *span = find_sample_value(spans, i);

    if (span == NULL || maps->counted[spans->index[i] - 1] == at) {
        return;
    }

    maps->counted[spans->index[i] - 1] = at;
    maps->pairs[maps->n_pairs++] = (struct hearth_id_key){at, span->lo};
    hearth_id_table_prefetch(&run->pairs, at, span->lo);
}

static enum hearth_status count_noted_spans(struct rows_run *run, const struct row_maps *maps,
                                            struct hearth_err *err)
{
    for (size_t i = 0; i < maps->n_pairs; i++) {
        const struct hearth_id_key *pair = &maps->pairs[i];
        bool inserted;
        if (hearth_id_table_intern(&run->pairs, pair->hi, pair->lo, &inserted) == NONE) {
            return hearth_span_fail_memory(err);
        }
        list_entries(run)[pair->hi].n_spans += inserted;
    }

    return HEARTH_OK;
}

static void count_entry_row(struct rows_run *run, const struct hearth_read_row *row, uint32_t hit,
                            uint32_t at)
{
    assert(at < run->n_entries);

    struct span_entry *entry = &list_entries(run)[at];

    /* Count the profile, and extend the entry's times. */
    entry->last_row = run->row_no;
    entry->n_profiles++;
    entry->first_ns = row->ts_ns < entry->first_ns ? row->ts_ns : entry->first_ns;
    entry->last_ns = row->ts_ns > entry->last_ns ? row->ts_ns : entry->last_ns;
    merge_fact_u32(&entry->service, run->scan.grouping.of_hit[hit] + 1, SEVERAL_SERVICES,
                   &entry->several);
    hearth_buf_append(&run->counted, &at, sizeof at);
}

static enum hearth_status add_sample_to_entry(struct rows_run *run, struct row_maps *maps,
                                              const struct hearth_read_row *row, uint32_t hit,
                                              size_t i, struct hearth_err *err)
{
    const struct hearth_attr_column *by = &maps->columns->of[run->by];
    const struct hearth_attr_value *value = find_sample_value(by, i);

    if (value == NULL) {
        return HEARTH_OK;
    }

    /* Find the entry of the value, once per row. */
    uint32_t *known = &maps->entry[by->index[i] - 1];
    if (*known == NONE) {
        *known = find_or_make_entry(run, value, err);
        if (*known == NONE) {
            return HEARTH_NO_MEMORY;
        }
    }

    /* Add the value. */
    struct span_entry *entry = &list_entries(run)[*known];
    if (__builtin_add_overflow(entry->value, maps->columns->values[i], &entry->value)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over spans exceeds 64 bits");
    }

    /* Count the row, the span and the facts. */
    if (entry->last_row != run->row_no) {
        count_entry_row(run, row, hit, *known);
    }

    if (run->by != HEARTH_ATTR_SPAN_ID) {
        note_entry_span(run, maps, i, *known);
    }

    return merge_sample_facts(run, maps, i, entry, err);
}

/* Prefetch the keys of a row, except texts, which are few and close to each other. */
static void prefetch_entries(const struct rows_run *run, const struct hearth_attr_column *column)
{
    bool is_text = run->by == HEARTH_ATTR_SPAN_NAME || run->by == HEARTH_ATTR_ENDPOINT;
    for (size_t i = 0; i < column->n_values && !is_text; i++) {
        hearth_id_table_prefetch(&run->ids, column->values[i].hi, column->values[i].lo);
    }
}

static enum hearth_status visit_rows_row(void *context, const struct hearth_read_row *row,
                                         uint32_t hit, const struct hearth_attr_columns *columns,
                                         struct hearth_err *err)
{
    struct rows_run *run = context;
    struct row_maps maps = {
        .columns = columns,
        .entry = make_row_map(run, &columns->of[run->by]),
        .name = make_row_map(run, &columns->of[HEARTH_ATTR_SPAN_NAME]),
        .endpoint = make_row_map(run, &columns->of[HEARTH_ATTR_ENDPOINT]),
        .counted = make_row_map(run, &columns->of[HEARTH_ATTR_SPAN_ID]),
        .pairs = hearth_arena_array(&run->scan.scratch, columns->n, sizeof maps.pairs[0]),
    };

    if (maps.pairs == NULL || maps.entry == NULL || maps.name == NULL || maps.endpoint == NULL ||
        maps.counted == NULL) {
        return HEARTH_FAIL_ARENA(err, &run->scan.scratch);
    }

    /* Begin the row. */
    prefetch_entries(run, &columns->of[run->by]);
    struct counted_row counted = {.profile_no = row->profile_no,
                                  .writer_id = row->writer_id,
                                  .begin = run->counted.n / sizeof(uint32_t)};
    if (++run->row_no == UINT32_MAX) {
        return hearth_span_fail_memory(err);
    }

    /* Add its samples. */
    for (size_t i = 0; i < columns->n; i++) {
        if (columns->values[i] != 0) {
            HEARTH_TRY(add_sample_to_entry(run, &maps, row, hit, i, err));
        }
    }

    /* Count its spans, and note its entries. */
    HEARTH_TRY(count_noted_spans(run, &maps, err));
    counted.n = (uint32_t)(run->counted.n / sizeof(uint32_t) - counted.begin);
    hearth_buf_append(&run->row_bytes, &counted, sizeof counted);

    return hearth_buf_failed(&run->counted) || hearth_buf_failed(&run->row_bytes)
               ? hearth_span_fail_memory(err)
               : HEARTH_OK;
}

static void reset_rows(void *context)
{
    struct rows_run *run = context;

    hearth_id_table_reset(&run->ids);
    hearth_id_table_reset(&run->pairs);
    hearth_buf_reset(&run->entry_bytes);
    hearth_buf_reset(&run->counted);
    hearth_buf_reset(&run->row_bytes);
    run->n_entries = 0;
    run->row_no = 0;
}

/* ---- profiles with several rows ---- */

static int compare_counted_rows(const void *left, const void *right)
{
    const struct counted_row *a = left, *b = right;

    if (a->writer_id != b->writer_id) {
        return a->writer_id < b->writer_id ? -1 : 1;
    }
    return (a->profile_no > b->profile_no) - (a->profile_no < b->profile_no);
}

static int compare_entry_numbers(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Count a profile once for each entry, given its rows. */
static enum hearth_status count_split_profile(struct rows_run *run, const struct counted_row *rows,
                                              size_t n, struct hearth_err *err)
{
    const uint32_t *counted = (const uint32_t *)(const void *)run->counted.p;
    size_t n_all = 0, k = 0;

    /* Collect the entries of all rows. */
    for (size_t i = 0; i < n; i++) {
        n_all += rows[i].n;
    }

    hearth_arena_reset(&run->scan.scratch);
    uint32_t *all = hearth_arena_array(&run->scan.scratch, n_all, sizeof all[0]);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, &run->scan.scratch);
    }

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < rows[i].n; j++) {
            all[k++] = counted[rows[i].begin + j];
        }
    }

    /* Entries that occur repeatedly were counted too often. */
    if (n_all > 1) {
        qsort(all, n_all, sizeof all[0], compare_entry_numbers);
    }

    for (size_t i = 1; i < n_all; i++) {
        list_entries(run)[all[i]].n_profiles -= all[i] == all[i - 1];
    }

    return HEARTH_OK;
}

static enum hearth_status count_split_profiles(struct rows_run *run, struct hearth_err *err)
{
    struct counted_row *rows = (struct counted_row *)(void *)run->row_bytes.p;
    size_t n = run->row_bytes.n / sizeof rows[0];

    /* Sort the rows by profile. */
    if (n > 1) {
        qsort(rows, n, sizeof rows[0], compare_counted_rows);
    }

    /* Correct profiles with several rows. */
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && compare_counted_rows(&rows[i], &rows[k]) == 0; k++) {
        }
        if (k - i > 1) {
            HEARTH_TRY(hearth_cancel_check(run->query->call.cancel, err));
            HEARTH_TRY(count_split_profile(run, &rows[i], k - i, err));
        }
    }

    return HEARTH_OK;
}

/* ---- the page ---- */

/* Negative: entry a precedes entry b. */
static int compare_entries(const struct rows_run *run, uint32_t a, uint32_t b)
{
    const struct span_entry *entries = list_entries(run);
    const struct hearth_id_key *x = &run->ids.keys[a], *y = &run->ids.keys[b];

    if (entries[a].value != entries[b].value) {
        return entries[a].value > entries[b].value ? -1 : 1;
    }

    if (run->by == HEARTH_ATTR_SPAN_NAME || run->by == HEARTH_ATTR_ENDPOINT) {
        return hearth_str_cmp(run->texts.v[x->lo], run->texts.v[y->lo]);
    }

    if (x->hi != y->hi) {
        return x->hi < y->hi ? -1 : 1;
    }

    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Move heap[at] down until both children precede it in the order. */
static void sift_down(const struct rows_run *run, uint32_t *heap, size_t n, size_t at)
{
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && compare_entries(run, heap[child], heap[child + 1]) < 0) {
            child++;
        }
        if (compare_entries(run, heap[at], heap[child]) >= 0) {
            return;
        }
        uint32_t other = heap[at];
        heap[at] = heap[child];
        heap[child] = other;
        at = child;
    }
}

/* Check for cancellation now and then: a page may follow millions of entries. */
static enum hearth_status check_cancelled_at(const struct rows_run *run, size_t i,
                                             struct hearth_err *err)
{
    return i % CHECK_EVERY == 0 ? hearth_cancel_check(run->query->call.cancel, err) : HEARTH_OK;
}

/*
 * Find the entries at positions `from` to k of the order, and store them at these positions of
 * *ret. A heap holds the first k entries with the last of them at its top, so most entries cost one
 * comparison, and earlier pages are never sorted.
 */
static enum hearth_status select_page(const struct rows_run *run, size_t from, size_t k,
                                      uint32_t **ret, struct hearth_err *err)
{
    uint32_t *heap = hearth_arena_array(run->query->call.arena, k, sizeof heap[0]);

    assert((k == 0 || from < k) && k <= run->n_entries);

    if (heap == NULL) {
        return HEARTH_FAIL_ARENA(err, run->query->call.arena);
    }

    /* Make a heap of the first k entries. */
    for (size_t i = 0; i < k; i++) {
        heap[i] = (uint32_t)i;
    }

    for (size_t i = k / 2; i > 0; i--) {
        HEARTH_TRY(check_cancelled_at(run, i, err));
        sift_down(run, heap, k, i - 1);
    }

    /* Replace its top by each entry that precedes it. */
    for (uint32_t i = (uint32_t)k; i < run->n_entries && k > 0; i++) {
        HEARTH_TRY(check_cancelled_at(run, i, err));
        if (compare_entries(run, i, heap[0]) < 0) {
            heap[0] = i;
            sift_down(run, heap, k, 0);
        }
    }

    /* Sort the page. */
    for (size_t n = k; n > from && n > 1;
         n--) { /* move the last of the first n entries to their end */
        HEARTH_TRY(check_cancelled_at(run, n, err));
        uint32_t last = heap[0];
        heap[0] = heap[n - 1];
        heap[n - 1] = last;
        sift_down(run, heap, n - 1, 0);
    }

    *ret = heap;

    return HEARTH_OK;
}

static void fill_row_key(const struct rows_run *run, uint32_t at, struct hearth_span_row *out)
{
    const struct hearth_id_key *key = &run->ids.keys[at];

    switch (run->by) {
    case HEARTH_ATTR_TRACE_ID:
        out->trace = (struct hearth_trace_id){key->hi, key->lo};
        break;
    case HEARTH_ATTR_LOCAL_ROOT_SPAN_ID:
        out->local_root_id = key->lo;
        break;
    case HEARTH_ATTR_ENDPOINT:
        out->endpoint = run->texts.v[key->lo];
        break;
    case HEARTH_ATTR_SPAN_NAME:
        out->name = run->texts.v[key->lo];
        break;
    case HEARTH_ATTR_SPAN_ID:
    case HEARTH_ATTR_NONE:
    case HEARTH_ATTR_THREAD_ID:
    case HEARTH_ATTR_THREAD_NATIVE_ID:
    case HEARTH_ATTR_THREAD_NAME:
    case HEARTH_ATTR_TIMESTAMP:
        out->span_id = key->lo;
        out->n_spans = 1;
        break;
    }
}

static void fill_span_row(const struct rows_run *run, uint32_t at, struct hearth_span_row *out)
{
    const struct span_entry *entry = &list_entries(run)[at];
    bool is_narrow = run->by == HEARTH_ATTR_SPAN_ID || run->by == HEARTH_ATTR_LOCAL_ROOT_SPAN_ID;

    *out = (struct hearth_span_row){.value = entry->value,
                                    .n_profiles = entry->n_profiles,
                                    .first_ns = entry->first_ns,
                                    .last_ns = entry->last_ns,
                                    .n_spans = entry->n_spans};

    /* Facts are shown only if all samples share them. */
    if (is_narrow && (entry->several & SEVERAL_TRACES) == 0) {
        out->trace = entry->trace;
    }

    if (is_narrow && (entry->several & SEVERAL_ROOTS) == 0) {
        out->local_root_id = entry->root;
    }

    if (is_narrow && entry->name != 0 && (entry->several & SEVERAL_NAMES) == 0) {
        out->name = run->texts.v[entry->name];
    }

    if (is_narrow && entry->endpoint != 0 && (entry->several & SEVERAL_ENDPOINTS) == 0) {
        out->endpoint = run->texts.v[entry->endpoint];
    }

    if (entry->service != 0 && (entry->several & SEVERAL_SERVICES) == 0) {
        const struct hearth_labels *labels = &run->scan.grouping.labels[entry->service - 1];
        out->service = labels->n > 0 ? labels->v[0].value : HEARTH_STR("");
    }

    fill_row_key(run, at, out);
}

static enum hearth_status write_rows_page(struct rows_run *run, int64_t limit, int64_t offset,
                                          struct hearth_span_rows *ret, struct hearth_err *err)
{
    struct hearth_span_rows made = {.n_all = (int64_t)run->n_entries, .total = run->scan.total};

    /* The rest of the total belongs to no entry; no value is negative, so a wrong sum shows. */
    made.unlabelled = made.total;
    for (size_t i = 0; i < run->n_entries; i++) {
        made.unlabelled -= list_entries(run)[i].value;
        if (made.unlabelled < 0) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "sample attributes hold more than the profiles they belong to");
        }
    }

    /* Select the page. */
    size_t from = (uint64_t)offset < run->n_entries ? (size_t)offset : run->n_entries;
    size_t n = run->n_entries - from;
    n = n > (uint64_t)limit ? (size_t)limit : n;
    uint32_t *order;
    HEARTH_TRY(select_page(run, from, n == 0 ? 0 : from + n, &order, err));
    made.rows = hearth_arena_array(run->query->call.arena, n, sizeof made.rows[0]);
    if (made.rows == NULL) {
        return HEARTH_FAIL_ARENA(err, run->query->call.arena);
    }

    /* Fill it. */
    for (size_t i = 0; i < n; i++) {
        fill_span_row(run, order[from + i], &made.rows[i]);
    }

    made.n_rows = n;
    *ret = made;

    return HEARTH_OK;
}

/* ---- the query ---- */

static enum hearth_attr choose_attr(enum hearth_spans_by by)
{
    switch (by) {
    case HEARTH_SPANS_BY_TRACE:
        return HEARTH_ATTR_TRACE_ID;
    case HEARTH_SPANS_BY_LOCAL_ROOT:
        return HEARTH_ATTR_LOCAL_ROOT_SPAN_ID;
    case HEARTH_SPANS_BY_ENDPOINT:
        return HEARTH_ATTR_ENDPOINT;
    case HEARTH_SPANS_BY_NAME:
        return HEARTH_ATTR_SPAN_NAME;
    case HEARTH_SPANS_BY_SPAN:
        break;
    }

    return HEARTH_ATTR_SPAN_ID;
}

static void init_rows_run(struct rows_run *run, const struct hearth_query *query,
                          const struct hearth_span_rows_spec *spec)
{
    enum hearth_spans_by by = spec->by;
    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);
    size_t limit = limits.max_query_memory_bytes > 0 ? (size_t)limits.max_query_memory_bytes : 0;
    *run = (struct rows_run){.query = query, .by = choose_attr(by)};
    /* Rows of traces, endpoints and names show no facts except the number of spans. */
    uint32_t facts = by == HEARTH_SPANS_BY_SPAN || by == HEARTH_SPANS_BY_LOCAL_ROOT
                         ? 1u << HEARTH_ATTR_TRACE_ID | 1u << HEARTH_ATTR_LOCAL_ROOT_SPAN_ID |
                               1u << HEARTH_ATTR_SPAN_NAME | 1u << HEARTH_ATTR_ENDPOINT
                         : 0;

    run->scan = (struct hearth_span_scan){
        .query = query,
        .merge = &spec->merge,
        .attrs = facts | 1u << run->by | 1u << HEARTH_ATTR_SPAN_ID,
        .whole = true,
        .visit = visit_rows_row,
        .reset = reset_rows,
        .context = run,
    };

    hearth_id_table_init(&run->ids, query->call.arena->budget);
    hearth_id_table_init(&run->pairs, query->call.arena->budget);
    hearth_texts_init(&run->texts, query->call.arena);
    struct hearth_buf *bufs[] = {&run->entry_bytes, &run->counted, &run->row_bytes};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
        hearth_buf_init(bufs[i], limit);
        bufs[i]->budget = query->call.arena->budget;
    }
}

static void release_rows_run(struct rows_run *run)
{
    hearth_span_scan_release(&run->scan);
    hearth_id_table_release(&run->ids);
    hearth_id_table_release(&run->pairs);
    hearth_texts_release(&run->texts);
    hearth_buf_release(&run->entry_bytes);
    hearth_buf_release(&run->counted);
    hearth_buf_release(&run->row_bytes);
}

enum hearth_status hearth_query_span_rows(const struct hearth_query *query,
                                          const struct hearth_span_rows_spec *spec,
                                          struct hearth_span_rows *ret, struct hearth_err *err)
{
    assert(query != NULL && ret != NULL);

    *ret = (struct hearth_span_rows){0};
    const struct hearth_str service = HEARTH_STR("service_name");
    struct hearth_range range;
    struct rows_run run;

    /* Check the request. */
    HEARTH_TRY(hearth_query_range(query, &range, err));
    if (spec->limit < 0 || spec->offset < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %lld is negative",
                           spec->limit < 0 ? "limit" : "offset",
                           (long long)(spec->limit < 0 ? spec->limit : spec->offset));
    }

    if (spec->whole_ms && __builtin_add_overflow(range.to_ns, HEARTH_NS_PER_MS - 1, &range.to_ns)) {
        range.to_ns = INT64_MAX;
    }

    /* Scan, count and write. */
    init_rows_run(&run, query, spec);
    enum hearth_status status =
        hearth_span_scan_init(&run.scan, range.from_ns, range.to_ns, &service, 1, err);
    if (range.empty) {
        run.scan.selection.n_hits = 0;
    }

    status = status == HEARTH_OK ? hearth_span_scan_run(&run.scan, err) : status;
    status = status == HEARTH_OK ? count_split_profiles(&run, err) : status;
    status = status == HEARTH_OK
                 ? write_rows_page(&run, spec->limit == 0 ? DEFAULT_LIMIT : spec->limit,
                                   spec->offset, ret, err)
                 : status;
    release_rows_run(&run);

    /* Add the stored spans to the first rows. */
    bool of_roots = spec->by == HEARTH_SPANS_BY_LOCAL_ROOT;
    if (status == HEARTH_OK && (of_roots || spec->by == HEARTH_SPANS_BY_SPAN)) {
        size_t n = ret->n_rows < HEARTH_MAX_NAMED_ROWS ? ret->n_rows : HEARTH_MAX_NAMED_ROWS;
        status = hearth_stored_spans_of_rows(query, of_roots, ret->rows, n, err);
    }

    return status;
}
