/*
 * span_scan.c -- rows with what their samples carry, each decoded by column and visited as it comes.
 *
 * Everything comes from one statement, the whole as well, so that parts and whole are of one moment, while profiles
 * come in. Roll-ups do not know spans and are not asked: what is expired under them is neither in the parts nor in the whole,
 * and the plan's note says from when on there are single profiles.
 *
 * A filter of stacks needs dictionaries, which cannot be read while rows come. So the selection is summed first, mostly from
 * roll-ups, to see which dictionaries it has; rows of those that came since, a few, wait until the statement has ended.
 */
#include "spans/span_scan.h"

#include "hearth/base/budget.h"

struct hearth_kept_row {
    struct hearth_kept_row *next;
    struct hearth_read_row row; /* attrs copied, the other columns left out */
};

static bool has_filter(const struct hearth_span_scan *scan)
{
    return !hearth_stack_filter_is_empty(&scan->merge->stacks);
}

static bool is_of_samples(const struct hearth_span_scan *scan)
{
    return scan->selection.match != NULL && scan->selection.match->of_samples;
}

/* ---- one row ---- */

static bool matches(const struct hearth_profile_match *match,
                    const struct hearth_attr_columns *columns, size_t i)
{
    const struct hearth_attr_column *spans = &columns->of[HEARTH_ATTR_SPAN_ID];
    const struct hearth_attr_column *traces = &columns->of[HEARTH_ATTR_TRACE_ID];
    struct hearth_sample_attrs attrs = {0};
    if (spans->values != NULL && spans->index[i] != 0) {
        attrs.span_id = spans->values[spans->index[i] - 1].lo;
    }
    if (traces->values != NULL && traces->index[i] != 0) {
        attrs.trace_id_hi = traces->values[traces->index[i] - 1].hi;
        attrs.trace_id_lo = traces->values[traces->index[i] - 1].lo;
    }
    return hearth_profile_match_sample(match, &attrs);
}

/* What does not count becomes 0. */
static enum hearth_status leave_out(struct hearth_span_scan *scan,
                                    const struct hearth_read_row *row,
                                    const struct hearth_stack_pass *pass,
                                    struct hearth_attr_columns *columns, struct hearth_err *err)
{
    bool of_samples = is_of_samples(scan);
    for (size_t i = 0; i < columns->n; i++) {
        int64_t *value = &columns->values[i];
        if (*value < 0 || (pass != NULL && columns->stack_ids[i] >= pass->n_stacks)) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "profiles of series %d: damaged sample attributes",
                               (int)row->series_id);
        }
        if ((pass != NULL && !pass->passes[columns->stack_ids[i]]) ||
            (of_samples && !matches(scan->selection.match, columns, i))) {
            *value = 0;
        }
        if (of_samples && __builtin_add_overflow(scan->total, *value, &scan->total)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over samples exceeds 64 bits");
        }
    }
    return HEARTH_OK;
}

/* Into scratch, until the next row. */
static enum hearth_status decode(struct hearth_span_scan *scan, const struct hearth_read_row *row,
                                 struct hearth_attr_columns *ret, struct hearth_err *err)
{
    uint32_t matched =
        is_of_samples(scan) ? 1u << HEARTH_ATTR_SPAN_ID | 1u << HEARTH_ATTR_TRACE_ID : 0;
    const struct hearth_attr_wish wish = {
        .attrs = scan->attrs | matched, .column = row->column, .stacks = has_filter(scan)};
    hearth_arena_reset(&scan->scratch);
    enum hearth_status status =
        hearth_sample_attrs_columns(row->attrs, &wish, &scan->scratch, ret, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "profile of series %d at %lld", (int)row->series_id,
                          (long long)row->ts_ns);
    }
    return status;
}

static enum hearth_status visit_samples(struct hearth_span_scan *scan,
                                        const struct hearth_read_row *row,
                                        const struct hearth_stack_pass *pass,
                                        struct hearth_attr_columns *columns, struct hearth_err *err)
{
    uint32_t hit = hearth_grouping_hit(&scan->grouping, row->series_id, row->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }
    HEARTH_TRY(leave_out(scan, row, pass, columns, err));
    return scan->visit(scan->context, row, hit, columns, err);
}

/* The highest stack plus one. */
static uint32_t bound_of(const struct hearth_attr_columns *columns)
{
    uint32_t bound = 0;
    for (size_t i = 0; i < columns->n; i++) {
        bound = columns->stack_ids[i] >= bound ? columns->stack_ids[i] + 1 : bound;
    }
    return bound;
}

static enum hearth_status keep_row(struct hearth_span_scan *scan, const struct hearth_read_row *row,
                                   struct hearth_err *err)
{
    struct hearth_kept_row *kept = hearth_arena_alloc(&scan->kept_arena, sizeof *kept);
    if (kept == NULL) {
        return HEARTH_FAIL_ARENA(err, &scan->kept_arena);
    }
    kept->row = *row;
    kept->row.ids = kept->row.val = kept->row.val0 = kept->row.members = (struct hearth_str){0};
    kept->row.attrs = hearth_arena_str(&scan->kept_arena, row->attrs);
    if (kept->row.attrs.p == NULL) {
        return HEARTH_FAIL_ARENA(err, &scan->kept_arena);
    }
    kept->next = scan->kept;
    scan->kept = kept;
    return HEARTH_OK;
}

static enum hearth_status take_row(void *context, const struct hearth_read_row *row,
                                   struct hearth_err *err)
{
    struct hearth_span_scan *scan = context;
    const struct hearth_profile_match *match = scan->selection.match;
    size_t dict;
    if (match != NULL && !hearth_profile_match_row(match, row)) {
        return HEARTH_OK;
    }
    if (scan->whole && !is_of_samples(scan)) {
        HEARTH_TRY(hearth_sums_add_row(&scan->sums, row, &dict, err));
    }
    if (row->attrs.n == 0) {
        return HEARTH_OK;
    }
    struct hearth_attr_columns columns;
    HEARTH_TRY(decode(scan, row, &columns, err));
    if (!has_filter(scan)) {
        return visit_samples(scan, row, NULL, &columns, err);
    }
    const struct hearth_stack_pass *pass = hearth_stack_passes_find(
        &scan->passes, row->service_id, hearth_day_of(row->ts_ns), row->writer_id);
    return pass == NULL || pass->n_stacks < bound_of(&columns)
               ? keep_row(scan, row, err)
               : visit_samples(scan, row, pass, &columns, err);
}

static void forget(void *context)
{
    struct hearth_span_scan *scan = context;
    scan->total = 0;
    scan->kept = NULL;
    hearth_arena_reset(&scan->kept_arena);
    hearth_sums_forget(&scan->sums);
    scan->reset(scan->context);
}

/* ---- the whole selection ---- */

/*
 * Of the range that is read, which begins a step before that of the question when it is one of buckets: rows whose dictionaries
 * are not known wait in memory. No further than a question may reach: what is beyond waits.
 */
static void widen(const struct hearth_span_scan *scan, struct hearth_query *query)
{
    struct hearth_limits limits;
    int64_t from_ms = scan->selection.from_ns / HEARTH_NS_PER_MS, first_ms;
    hearth_call_limits(&query->call, &limits);
    if (limits.max_query_range_ns > 0 &&
        !__builtin_sub_overflow(query->end_ms, limits.max_query_range_ns / HEARTH_NS_PER_MS,
                                &first_ms)) {
        from_ms = from_ms < first_ms ? first_ms : from_ms;
    }
    if (from_ms > 0 && from_ms < query->start_ms) { /* 0 is no time */
        query->start_ms = from_ms;
    }
}

/* What the filter says of the dictionaries that there are. */
static enum hearth_status load_passes(struct hearth_span_scan *scan, struct hearth_err *err)
{
    struct hearth_query quiet = *scan->query; /* the notes are those of the rows */
    struct hearth_merge_spec sum = *scan->merge;
    struct hearth_sums sums;
    quiet.call.notes = NULL;
    widen(scan, &quiet);
    sum.mean = false;
    enum hearth_status status = hearth_query_sum(&quiet, &sum, &sums, err);
    for (size_t i = 0; i < sums.n_dicts && status == HEARTH_OK; i++) {
        const struct hearth_dict_sums *dict = &sums.dicts[i];
        const struct hearth_stack_pass *unused;
        status = hearth_stack_passes_load(&scan->passes, dict->service_id, dict->day,
                                          dict->writer_id, dict->bound, &unused, err);
    }
    hearth_sums_release(&sums);
    return status;
}

static enum hearth_status visit_kept(struct hearth_span_scan *scan, struct hearth_err *err)
{
    for (const struct hearth_kept_row *kept = scan->kept; kept != NULL; kept = kept->next) {
        const struct hearth_read_row *row = &kept->row;
        const struct hearth_stack_pass *pass;
        struct hearth_attr_columns columns;
        HEARTH_TRY(hearth_cancel_check(scan->query->call.cancel, err));
        HEARTH_TRY(decode(scan, row, &columns, err));
        HEARTH_TRY(hearth_stack_passes_load(&scan->passes, row->service_id,
                                            hearth_day_of(row->ts_ns), row->writer_id,
                                            bound_of(&columns), &pass, err));
        HEARTH_TRY(visit_samples(scan, row, pass, &columns, err));
    }
    return HEARTH_OK;
}

static enum hearth_status add_up(struct hearth_span_scan *scan, struct hearth_err *err)
{
    for (size_t i = 0; i < scan->sums.n_dicts; i++) {
        const struct hearth_dict_sums *dict = &scan->sums.dicts[i];
        const struct hearth_stack_pass *pass = NULL;
        if (has_filter(scan)) {
            HEARTH_TRY(hearth_stack_passes_load(&scan->passes, dict->service_id, dict->day,
                                                dict->writer_id, dict->bound, &pass, err));
        }
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
    struct hearth_store *store = query->call.engine->store;
    const struct hearth_label_index *index;
    hearth_arena_init_like(&scan->scratch, query->call.arena);
    hearth_arena_init_like(&scan->kept_arena, query->call.arena);
    hearth_sums_init(&scan->sums, query, NULL);
    hearth_stack_passes_init(&scan->passes, query, &merge->stacks);
    HEARTH_TRY(hearth_stack_filter_check(&merge->stacks, err));
    HEARTH_TRY(hearth_call_lock_index(&query->call, &index, err));
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
    hearth_store_index_unlock(store, index);
    HEARTH_TRY(status);
    HEARTH_TRY(hearth_selection_match(query, &merge->profiles, &scan->selection, err));
    scan->selection.rows = true;
    scan->selection.detail.identity = true;
    scan->selection.detail.attrs =
        scan->whole && !is_of_samples(scan) ? HEARTH_ATTRS_BESIDE : HEARTH_ATTRS_ALONE;
    return HEARTH_OK;
}

enum hearth_status hearth_span_scan_run(struct hearth_span_scan *scan, struct hearth_err *err)
{
    const struct hearth_reader reader = {.reset = forget, .row = take_row, .context = scan};
    if (scan->selection.n_hits == 0) {
        return HEARTH_OK;
    }
    if (has_filter(scan)) {
        HEARTH_TRY(load_passes(scan, err));
    }
    HEARTH_TRY(hearth_selection_read(scan->query, &scan->selection, &reader, err));
    HEARTH_TRY(visit_kept(scan, err));
    return add_up(scan, err);
}

void hearth_span_scan_release(struct hearth_span_scan *scan)
{
    hearth_stack_passes_release(&scan->passes);
    hearth_sums_release(&scan->sums);
    hearth_arena_release(&scan->kept_arena);
    hearth_arena_release(&scan->scratch);
    hearth_grouping_release(&scan->grouping);
}
