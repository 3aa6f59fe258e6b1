/*
 * span_scan.c -- reads rows with the attributes of their samples, decodes them by column and visits
 * them.
 *
 * Everything is read by one statement, also the total, so that parts and total are of one moment
 * while profiles arrive. Roll-ups have no spans and are not read: expired profiles are missing in
 * both, and the note of the plan says since when there are single profiles.
 *
 * A filter of stacks needs dictionaries, which cannot be read during the statement. So the
 * selection is summed first, mostly from roll-ups, to find its dictionaries; the few rows whose
 * dictionaries were added since then are kept until the statement has ended.
 */
#include "spans/span_scan.h"

#include "hearth/base/budget.h"

#include <assert.h>

enum hearth_status hearth_span_fail_memory(struct hearth_err *err)
{
    return HEARTH_FAIL(
        err, HEARTH_NO_MEMORY,
        "the query needs more memory than it may for spans: shorten the range or add "
        "label matchers");
}

static bool has_stack_filter(const struct hearth_span_scan *scan)
{
    return hearth_stack_filter_needs_stacks(&scan->merge->stacks);
}

static bool matches_samples(const struct hearth_span_scan *scan)
{
    return scan->selection.match != NULL && scan->selection.match->of_samples;
}

/* ---- one row ---- */

/* The id of sample i in a column; 0: none. */
static uint64_t find_sample_id(const struct hearth_attr_columns *columns, enum hearth_attr attr,
                               size_t i)
{
    const struct hearth_attr_column *column = &columns->of[attr];
    return column->values == NULL || column->index[i] == 0
               ? 0
               : column->values[column->index[i] - 1].lo;
}

static bool matches_sample(struct hearth_span_scan *scan, const struct hearth_attr_columns *columns,
                           size_t i)
{
    assert(scan != NULL && columns != NULL);

    const struct hearth_attr_column *traces = &columns->of[HEARTH_ATTR_TRACE_ID];
    const struct hearth_attr_column *names = &columns->of[HEARTH_ATTR_THREAD_NAME];
    struct hearth_sample_attrs attrs = {
        .span_id = find_sample_id(columns, HEARTH_ATTR_SPAN_ID, i),
        .thread_id = find_sample_id(columns, HEARTH_ATTR_THREAD_ID, i),
        .thread_native_id = find_sample_id(columns, HEARTH_ATTR_THREAD_NATIVE_ID, i),
    };

    /* Collect the other attributes of the sample. */
    if (traces->values != NULL && traces->index[i] != 0) {
        attrs.trace_id_hi = traces->values[traces->index[i] - 1].hi;
        attrs.trace_id_lo = traces->values[traces->index[i] - 1].lo;
    }

    if (names->values != NULL && names->index[i] != 0) {
        attrs.thread_name = names->values[names->index[i] - 1].text;
    }

    return (!matches_samples(scan) || hearth_profile_match_sample(scan->selection.match, &attrs)) &&
           (scan->threads.is_empty || hearth_thread_filter_passes(&scan->threads, &attrs));
}

/* Set the values of samples that do not count to 0. */
static enum hearth_status clear_excluded_samples(struct hearth_span_scan *scan,
                                                 const struct hearth_read_row *row,
                                                 const struct hearth_stack_pass *pass,
                                                 struct hearth_attr_columns *columns,
                                                 struct hearth_err *err)
{
    bool of_samples = matches_samples(scan), filtered = of_samples || !scan->threads.is_empty;

    for (size_t i = 0; i < columns->n; i++) {
        int64_t *value = &columns->values[i];

        /* Values and stacks of damaged attributes may be out of range. */
        if (*value < 0 || (pass != NULL && columns->stack_ids[i] >= pass->n_stacks)) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "profiles of series %d: damaged sample attributes",
                               (int)row->series_id);
        }

        /* Stacks that the filter excludes, and samples that do not match. */
        if ((pass != NULL && !pass->passes[columns->stack_ids[i]]) ||
            (filtered && !matches_sample(scan, columns, i))) {
            *value = 0;
        }

        if (of_samples && __builtin_add_overflow(scan->total, *value, &scan->total)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over samples exceeds 64 bits");
        }
    }

    return HEARTH_OK;
}

/* Decode the attributes of a row into scratch, where they live until the next row. */
static enum hearth_status decode_row_attrs(struct hearth_span_scan *scan,
                                           const struct hearth_read_row *row,
                                           struct hearth_attr_columns *ret, struct hearth_err *err)
{
    uint32_t matched =
        matches_samples(scan) ? 1u << HEARTH_ATTR_SPAN_ID | 1u << HEARTH_ATTR_TRACE_ID : 0;
    uint32_t of_threads = scan->threads.is_empty
                              ? 0
                              : 1u << HEARTH_ATTR_THREAD_ID | 1u << HEARTH_ATTR_THREAD_NATIVE_ID |
                                    1u << HEARTH_ATTR_THREAD_NAME;
    const struct hearth_attr_wish wish = {.attrs = scan->attrs | matched | of_threads,
                                          .column = row->column,
                                          .stacks = has_stack_filter(scan)};

    hearth_arena_reset(&scan->scratch);
    enum hearth_status status =
        hearth_sample_attrs_columns(row->attrs, &wish, &scan->scratch, ret, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "profile of series %d at %lld", (int)row->series_id,
                          (long long)row->ts_ns);
    }

    return status;
}

static enum hearth_status visit_row_samples(struct hearth_span_scan *scan,
                                            const struct hearth_read_row *row,
                                            const struct hearth_stack_pass *pass,
                                            struct hearth_attr_columns *columns,
                                            struct hearth_err *err)
{
    uint32_t hit =
        hearth_grouping_hit(&scan->grouping, row->service_id, row->series_id, row->column);

    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    HEARTH_TRY(clear_excluded_samples(scan, row, pass, columns, err));

    return scan->visit(scan->context, row, hit, columns, err);
}

/* The highest stack id plus 1. */
static uint32_t find_stack_bound(const struct hearth_attr_columns *columns)
{
    uint32_t bound = 0;

    for (size_t i = 0; i < columns->n; i++) {
        bound = columns->stack_ids[i] >= bound ? columns->stack_ids[i] + 1 : bound;
    }
    return bound;
}

/* Keeps a row for a later visit, which uses only its attributes. */
static enum hearth_status keep_scan_row(struct hearth_span_scan *scan,
                                        const struct hearth_read_row *row, struct hearth_err *err)
{
    struct hearth_read_row used = *row;
    used.ids = used.val = used.val0 = (struct hearth_str){0};

    return hearth_kept_row_push(&scan->kept, &used, &scan->kept_arena, err);
}

static enum hearth_status take_scan_row(void *context, const struct hearth_read_row *row,
                                        struct hearth_err *err)
{
    struct hearth_span_scan *scan = context;
    const struct hearth_profile_match *match = scan->selection.match;
    size_t dict;

    /* Rows that the profile filter excludes. */
    if (match != NULL && !hearth_profile_match_row(match, row)) {
        return HEARTH_OK;
    }

    /* Add to the total. */
    if (scan->whole && !matches_samples(scan)) {
        HEARTH_TRY(hearth_sums_add_row(&scan->sums, row, &dict, err));
    }

    if (row->attrs.n == 0) {
        return HEARTH_OK;
    }

    /* Decode and visit; with a filter, rows of unknown dictionaries are kept. */
    struct hearth_attr_columns columns;
    HEARTH_TRY(decode_row_attrs(scan, row, &columns, err));
    if (!has_stack_filter(scan)) {
        return visit_row_samples(scan, row, NULL, &columns, err);
    }

    const struct hearth_stack_pass *pass = hearth_stack_passes_find(
        &scan->passes, row->service_id, hearth_day_of(row->ts_ns), row->writer_id);

    return pass == NULL || pass->n_stacks < find_stack_bound(&columns)
               ? keep_scan_row(scan, row, err)
               : visit_row_samples(scan, row, pass, &columns, err);
}

static void reset_scan(void *context)
{
    struct hearth_span_scan *scan = context;

    scan->total = 0;
    scan->kept = NULL;
    hearth_arena_reset(&scan->kept_arena);
    hearth_sums_forget(&scan->sums);
    scan->reset(scan->context);
}

/* ---- the selection ---- */

/*
 * Extend the query of load_scan_passes to the start of the range that is read, which begins one
 * step earlier if there are buckets: rows of unknown dictionaries would have to be kept in memory.
 * Queries may not reach further back than max_query_range; rows before that are kept.
 */
static void extend_query_range(const struct hearth_span_scan *scan, struct hearth_query *query)
{
    struct hearth_limits limits;
    int64_t from_ms = scan->selection.from_ns / HEARTH_NS_PER_MS, first_ms;

    hearth_call_limits(&query->call, &limits);
    if (limits.max_query_range_ns > 0 &&
        !__builtin_sub_overflow(query->end_ms, limits.max_query_range_ns / HEARTH_NS_PER_MS,
                                &first_ms)) {
        from_ms = from_ms < first_ms ? first_ms : from_ms;
    }

    if (from_ms > 0 && from_ms < query->start_ms) { /* 0 means unset */
        query->start_ms = from_ms;
    }
}

/* Evaluate the filter for all stacks of the dictionaries of the selection. */
static enum hearth_status load_scan_passes(struct hearth_span_scan *scan, struct hearth_err *err)
{
    struct hearth_query quiet = *scan->query; /* notes are made when the rows are read */
    struct hearth_merge_spec sum = *scan->merge;
    struct hearth_sums sums;

    /* Sum the selection, with its dictionaries. */
    quiet.call.notes = NULL;
    extend_query_range(scan, &quiet);
    sum.mean = false;
    sum.stacks = (struct hearth_stack_filter){0}; /* all dictionaries */
    enum hearth_status status = hearth_query_sum(&quiet, &sum, &sums, err);

    /* Evaluate the filter for each of them. */
    for (size_t i = 0; i < sums.n_dicts && status == HEARTH_OK; i++) {
        const struct hearth_dict_sums *dict = &sums.dicts[i];
        const struct hearth_dict_name name = {dict->service_id, dict->day, dict->writer_id};
        const struct hearth_stack_pass *unused;
        status = hearth_stack_passes_load(&scan->passes, name, dict->bound, &unused, err);
    }

    hearth_sums_release(&sums);

    return status;
}

static enum hearth_status visit_kept_rows(struct hearth_span_scan *scan, struct hearth_err *err)
{
    for (const struct hearth_kept_row *kept = scan->kept; kept != NULL; kept = kept->next) {
        const struct hearth_read_row *row = &kept->row;
        const struct hearth_stack_pass *pass;
        struct hearth_attr_columns columns;
        HEARTH_TRY(hearth_cancel_check(scan->query->call.cancel, err));
        HEARTH_TRY(decode_row_attrs(scan, row, &columns, err));
        const struct hearth_dict_name name = {row->service_id, hearth_day_of(row->ts_ns),
                                              row->writer_id};
        HEARTH_TRY(
            hearth_stack_passes_load(&scan->passes, name, find_stack_bound(&columns), &pass, err));
        HEARTH_TRY(visit_row_samples(scan, row, pass, &columns, err));
    }

    return HEARTH_OK;
}

static enum hearth_status sum_scan_total(struct hearth_span_scan *scan, struct hearth_err *err)
{
    for (size_t i = 0; i < scan->sums.n_dicts; i++) {
        const struct hearth_dict_sums *dict = &scan->sums.dicts[i];
        const struct hearth_stack_pass *pass = NULL;

        /* The filter decides which stacks count. */
        if (has_stack_filter(scan)) {
            const struct hearth_dict_name name = {dict->service_id, dict->day, dict->writer_id};
            HEARTH_TRY(hearth_stack_passes_load(&scan->passes, name, dict->bound, &pass, err));
        }

        /* Add them. */
        for (uint32_t s = 0; s < dict->bound; s++) {
            int64_t value = pass == NULL || pass->passes[s] ? dict->acc[s] : 0;
            if (__builtin_add_overflow(scan->total, value, &scan->total)) {
                return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over stacks exceeds 64 bits");
            }
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_span_scan_init(struct hearth_span_scan *scan, int64_t from_ns,
                                         int64_t to_ns, const struct hearth_str *group_by,
                                         size_t n_group_by, struct hearth_err *err)
{
    const struct hearth_query *query = scan->query;
    const struct hearth_merge_spec *merge = scan->merge;
    const struct hearth_call_index *index;

    /* Set up what release frees. */
    hearth_arena_init_like(&scan->scratch, query->call.arena);
    hearth_arena_init_like(&scan->kept_arena, query->call.arena);
    hearth_sums_init(&scan->sums, query, NULL);
    scan->sums.threads = &scan->threads;
    HEARTH_TRY(hearth_stack_passes_init(&scan->passes, query, &merge->stacks, err));
    HEARTH_TRY(hearth_thread_filter_init(&scan->threads, &merge->stacks, query->call.arena, err));

    /* Select and group the hits. */
    HEARTH_TRY(hearth_stack_filter_check(&merge->stacks, query->call.arena, err));
    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    const struct hearth_series_choice choice = {merge->profile_type, merge->selector, from_ns,
                                                to_ns};
    enum hearth_status status = hearth_selection_make(query, &choice, index, &scan->selection, err);
    if (status == HEARTH_OK) {
        scan->grouping = (struct hearth_grouping){.hits = scan->selection.hits,
                                                  .n_hits = scan->selection.n_hits,
                                                  .group_by = group_by,
                                                  .n_group_by = n_group_by,
                                                  .arena = query->call.arena};
        status = hearth_grouping_make(&scan->grouping, index, err);
    }

    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    /* Choose what is read of each row. */
    HEARTH_TRY(hearth_selection_match(query, &merge->profiles, &scan->selection, err));
    scan->selection.rows = true;
    scan->selection.detail.identity = true;
    scan->selection.detail.attrs =
        scan->whole && !matches_samples(scan) ? HEARTH_ATTRS_BESIDE : HEARTH_ATTRS_ALONE;

    return HEARTH_OK;
}

enum hearth_status hearth_span_scan_run(struct hearth_span_scan *scan, struct hearth_err *err)
{
    const struct hearth_reader reader = {
        .reset = reset_scan, .row = take_scan_row, .context = scan};

    if (scan->selection.n_hits == 0) {
        return HEARTH_OK;
    }

    /* Load the filter. */
    if (has_stack_filter(scan)) {
        HEARTH_TRY(load_scan_passes(scan, err));
    }

    /* Read the rows, then visit those that were kept. */
    HEARTH_TRY(hearth_selection_read(scan->query, &scan->selection, &reader, err));
    HEARTH_TRY(visit_kept_rows(scan, err));

    return sum_scan_total(scan, err);
}

void hearth_span_scan_release(struct hearth_span_scan *scan)
{
    if (scan->passes.query != NULL) {
        hearth_stack_passes_release(&scan->passes);
    }

    hearth_thread_filter_release(&scan->threads);
    hearth_sums_release(&scan->sums);
    hearth_arena_release(&scan->kept_arena);
    hearth_arena_release(&scan->scratch);
}
