/*
 * span_exact.c -- the samples that carry ids, read from the profiles that the index names.
 *
 * Attributes stand beside a row once, with the values of all profile types: so one column of each series is asked for, and
 * no stack trace is read. What the index names and does not carry the id (keys are hashes), or is gone, counts nothing.
 */
#include "spans/span_exact_run.h"

#include <stdlib.h>

enum key_kind {
    KEY_TYPE,
    KEY_TYPE_OF_SPAN,
    KEY_PROFILE,
    KEY_PROFILE_OF_TYPE,
    KEY_PROFILE_OF_SPAN,
    KEY_SPAN,
    KEY_TRACE,
};

/* ---- ids ---- */

static int by_id(const void *left, const void *right)
{
    struct hearth_exact_id a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.of != b.of) {
        return a.of < b.of ? -1 : 1;
    }
    if (a.id.hi != b.id.hi) {
        return a.id.hi < b.id.hi ? -1 : 1;
    }
    return (a.id.lo > b.id.lo) - (a.id.lo < b.id.lo);
}

/* The first of those with the id, and how many. */
static size_t find_ids(const struct exact_run *run, uint8_t of, struct hearth_trace_id id,
                       size_t *ret_n)
{
    const struct hearth_exact_id key = {.id = id, .of = of};
    size_t low = 0, high = run->question->n_ids, n = 0;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (by_id(&run->ids[mid], &key) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    while (low + n < run->question->n_ids && by_id(&run->ids[low + n], &key) == 0) {
        n++;
    }
    *ret_n = n;
    return low;
}

static enum hearth_status sort_ids(struct exact_run *run, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n = run->question->n_ids;
    run->ids = hearth_arena_array(arena, n, sizeof run->ids[0]);
    run->last_sample =
        hearth_arena_calloc(arena, run->question->n_askers, sizeof run->last_sample[0]);
    if (run->ids == NULL || run->last_sample == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (n > 0) {
        memcpy(run->ids, run->question->ids, n * sizeof run->ids[0]);
        qsort(run->ids, n, sizeof run->ids[0], by_id);
    }
    return HEARTH_OK;
}

/* ---- series ---- */

static int by_series(const void *left, const void *right)
{
    struct exact_series a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a.series_id > b.series_id) - (a.series_id < b.series_id);
}

/* Canonical ids of the types that are asked for. */
static enum hearth_status wanted_types(struct exact_run *run, struct hearth_err *err)
{
    const struct hearth_exact_question *question = run->question;
    struct hearth_arena *arena = run->query->call.arena;
    run->types = hearth_arena_array(arena, question->n_profile_types, sizeof run->types[0]);
    for (size_t i = 0; i < question->n_profile_types && run->types != NULL; i++) {
        struct hearth_profile_type type;
        HEARTH_TRY(hearth_profile_type_parse(question->profile_types[i], &type, err));
        struct hearth_buf id;
        hearth_buf_init(&id, 0);
        hearth_profile_type_format(&type, &id);
        run->types[run->n_types++] = hearth_arena_str(arena, hearth_buf_view(&id));
        hearth_buf_release(&id);
    }
    run->cap_types = run->n_types;
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* The number of a type; a new one counts unless certain ones are asked for. HEARTH_NO_TYPE: it does not count. */
static uint32_t number_of_type(struct exact_run *run, struct hearth_str type)
{
    struct hearth_arena *arena = run->query->call.arena;
    for (size_t i = 0; i < run->n_types; i++) {
        if (hearth_str_eq(run->types[i], type)) {
            return (uint32_t)i;
        }
    }
    if (run->question->n_profile_types > 0 || type.n == 0) {
        return HEARTH_NO_TYPE;
    }
    if (run->n_types == run->cap_types) {
        size_t cap = run->cap_types == 0 ? 16 : 2 * run->cap_types;
        struct hearth_str *v = hearth_arena_array(arena, cap, sizeof v[0]);
        if (v == NULL) {
            return HEARTH_NO_TYPE;
        }
        memcpy(v, run->types, run->n_types * sizeof v[0]);
        run->types = v;
        run->cap_types = cap;
    }
    run->types[run->n_types] = hearth_arena_str(arena, type);
    return (uint32_t)run->n_types++;
}

/* A profile has several types: labels that say one of them are not its own. */
static bool is_of_column(struct hearth_str name)
{
    return hearth_str_eq_c(name, HEARTH_LABEL_PROFILE_TYPE) ||
           hearth_str_eq_c(name, HEARTH_LABEL_TYPE) || hearth_str_eq_c(name, HEARTH_LABEL_UNIT);
}

static enum hearth_status copy_labels(struct exact_run *run, const struct hearth_label_index *index,
                                      struct exact_series *series, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_labels all;
    HEARTH_TRY(hearth_label_index_labels(index, &series->hit, arena, &all, err));
    series->labels.v = hearth_arena_array(arena, all.n, sizeof all.v[0]);
    for (size_t i = 0; i < all.n && series->labels.v != NULL; i++) {
        struct hearth_str name = all.v[i].name;
        if (!is_of_column(name)) {
            series->labels.v[series->labels.n++] = (struct hearth_label){
                hearth_arena_str(arena, name), hearth_arena_str(arena, all.v[i].value)};
        }
    }
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    series->service = hearth_labels_get(&series->labels, HEARTH_STR(HEARTH_LABEL_SERVICE));
    return HEARTH_OK;
}

/* The series of the places that have a type which counts, under the index's lock. */
static enum hearth_status take_series(struct exact_run *run, const struct hearth_label_index *index,
                                      struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct hearth_span_places *places = run->question->places;
    run->series = hearth_arena_array(arena, places->n, sizeof run->series[0]);
    for (size_t i = 0; i < places->n && run->series != NULL; i++) {
        const struct hearth_read_instant *at = &places->instants[i];
        struct hearth_series_hit *hits;
        size_t n;
        if (i > 0 && at->series_id == places->instants[i - 1].series_id) {
            continue;
        }
        HEARTH_TRY(hearth_label_index_columns(index, at->series_id, arena, &hits, &n, err));
        if (n == 0 || hits[0].service_id != at->service_id) {
            continue;
        }
        struct exact_series series = {.series_id = at->series_id,
                                      .service_id = at->service_id,
                                      .n_types = (uint32_t)n,
                                      .hit = hits[0]};
        series.types = hearth_arena_array(arena, n, sizeof series.types[0]);
        bool counts = false;
        for (size_t c = 0; c < n && series.types != NULL; c++) {
            series.types[c] = number_of_type(run, hearth_label_index_type(index, &hits[c]));
            counts = counts || series.types[c] != HEARTH_NO_TYPE;
        }
        if (counts) {
            HEARTH_TRY(copy_labels(run, index, &series, err));
            run->series[run->n_series++] = series;
        }
    }
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status find_series(struct exact_run *run, struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    const struct hearth_label_index *index;
    HEARTH_TRY(hearth_call_lock_index(&query->call, &index, err));
    enum hearth_status status = take_series(run, index, err);
    hearth_store_index_unlock(query->call.engine->store, index);
    return status;
}

/* One hit of each series, in the order of places, which is that of services and series. */
static enum hearth_status select_series(const struct exact_run *run, struct hearth_selection *ret,
                                        struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct hearth_span_places *places = run->question->places;
    *ret = (struct hearth_selection){.from_ns = INT64_MAX, .to_ns = INT64_MIN, .rows = true};
    ret->hits = hearth_arena_array(arena, run->n_series, sizeof ret->hits[0]);
    ret->service_ids = hearth_arena_array(arena, run->n_series, sizeof ret->service_ids[0]);
    if (ret->hits == NULL || ret->service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < run->n_series; i++) {
        const struct hearth_series_hit *hit = &run->series[i].hit;
        if (i == 0 || hit->service_id != ret->hits[i - 1].service_id) {
            ret->service_ids[ret->n_services++] = hit->service_id;
        }
        ret->hits[ret->n_hits++] = *hit;
    }
    for (size_t i = 0; i < places->n; i++) {
        int64_t ts_ns = places->instants[i].ts_ns;
        ret->from_ns = ts_ns < ret->from_ns ? ts_ns : ret->from_ns;
        ret->to_ns = ts_ns > ret->to_ns ? ts_ns : ret->to_ns;
    }
    ret->detail = (struct hearth_read_detail){.identity = true,
                                              .attrs = HEARTH_ATTRS_ALONE,
                                              .some = true,
                                              .instants = places->instants,
                                              .n_instants = places->n};
    return HEARTH_OK;
}

/* ---- counting ---- */

static void forget(void *context)
{
    struct exact_run *run = context;
    hearth_idmap_reset(&run->map);
    hearth_buf_reset(&run->sums);
    hearth_buf_reset(&run->span_sums);
    hearth_buf_reset(&run->profiles);
    hearth_buf_reset(&run->spans);
    hearth_buf_reset(&run->traces);
}

static enum hearth_status fail_memory(struct hearth_err *err)
{
    return HEARTH_FAIL(
        err, HEARTH_NO_MEMORY,
        "the query needs more memory than it may for samples of spans: ask for fewer");
}

/* The number that the key has; a new one gets the next of `rows`, for which *row is appended. */
static uint32_t intern(struct exact_run *run, enum key_kind kind, uint64_t a, uint64_t b,
                       struct hearth_profile_id c, struct hearth_buf *rows, const void *row,
                       size_t n_bytes)
{
    const uint64_t parts[5] = {(uint64_t)kind, a, b, (uint64_t)(int64_t)c.writer_id,
                               (uint64_t)c.profile_no};
    bool is_new;
    uint32_t next = rows == NULL ? 0 : (uint32_t)(rows->n / n_bytes);
    struct hearth_hash128 key = hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
    uint32_t number = hearth_idmap_intern(&run->map, key, next, &is_new);
    if (number != HEARTH_IDMAP_NONE && is_new && rows != NULL) {
        hearth_buf_append(rows, row, n_bytes);
    }
    return number != HEARTH_IDMAP_NONE && (rows == NULL || !hearth_buf_failed(rows))
               ? number
               : HEARTH_IDMAP_NONE;
}

/* Is the key new? Memory that was refused shows in the next intern. */
static bool is_first(struct exact_run *run, enum key_kind kind, uint64_t of,
                     struct hearth_profile_id id)
{
    size_t n = run->map.n;
    (void)intern(run, kind, of, 0, id, NULL, NULL, 0);
    return run->map.n > n;
}

static enum hearth_status add_sum(struct exact_run *run, struct hearth_buf *sums,
                                  enum key_kind kind, const struct exact_sum *add,
                                  struct hearth_profile_id profile, struct hearth_err *err)
{
    struct exact_sum zero = {.of = add->of, .type = add->type};
    bool of_span = kind == KEY_TYPE_OF_SPAN;
    uint32_t number = intern(run, kind, add->of, add->type, (struct hearth_profile_id){0}, sums,
                             &zero, sizeof zero);
    if (number == HEARTH_IDMAP_NONE) {
        return fail_memory(err);
    }
    struct exact_sum *sum = &EXACT_ROWS(*sums, struct exact_sum)[number];
    if (__builtin_add_overflow(sum->total, add->total, &sum->total)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over samples exceeds 64 bits");
    }
    sum->n_profiles +=
        is_first(run, of_span ? KEY_PROFILE_OF_SPAN : KEY_PROFILE_OF_TYPE, number, profile);
    return HEARTH_OK;
}

static enum hearth_status count_profile(struct exact_run *run, const struct hearth_read_row *row,
                                        uint32_t series_no, uint32_t asker, struct hearth_err *err)
{
    const struct hearth_profile_id id = {row->writer_id, row->profile_no};
    const struct exact_seen_profile profile = {asker, series_no, id, row->ts_ns, row->duration_ns};
    uint32_t number =
        intern(run, KEY_PROFILE, asker, 0, id, &run->profiles, &profile, sizeof profile);
    if (number == HEARTH_IDMAP_NONE) {
        return fail_memory(err);
    }
    struct exact_seen_profile *seen = &EXACT_ROWS(run->profiles, struct exact_seen_profile)[number];
    seen->series = series_no < seen->series ? series_no : seen->series; /* rows come in no order */
    return HEARTH_OK;
}

/* *ret_span: its number; NONE: the sample is of no span. */
static enum hearth_status count_ids(struct exact_run *run, uint32_t series_no,
                                    const struct hearth_sample_attrs *attrs, uint32_t asker,
                                    uint32_t *ret_span, struct hearth_err *err)
{
    const struct hearth_profile_id none = {0};
    *ret_span = HEARTH_IDMAP_NONE;
    if (attrs->span_id != 0) {
        const struct exact_seen_span span = {
            .asker = asker, .series = series_no, .id = attrs->span_id};
        uint32_t number =
            intern(run, KEY_SPAN, asker, attrs->span_id, none, &run->spans, &span, sizeof span);
        if (number == HEARTH_IDMAP_NONE) {
            return fail_memory(err);
        }
        struct exact_seen_span *seen = &EXACT_ROWS(run->spans, struct exact_seen_span)[number];
        seen->is_mixed = seen->is_mixed ||
                         run->series[seen->series].service_id != run->series[series_no].service_id;
        *ret_span = number;
    }
    const struct exact_seen_trace trace = {asker, {attrs->trace_id_hi, attrs->trace_id_lo}};
    const struct hearth_profile_id low = {.profile_no = (int64_t)trace.id.lo};
    if (!hearth_trace_id_is_none(trace.id) &&
        intern(run, KEY_TRACE, asker, trace.id.hi, low, &run->traces, &trace, sizeof trace) ==
            HEARTH_IDMAP_NONE) {
        return fail_memory(err);
    }
    return HEARTH_OK;
}

/* A sample counts for an asker. */
static enum hearth_status count_sample(struct exact_run *run, const struct hearth_read_row *row,
                                       uint32_t series_no, const struct hearth_attr_sample *sample,
                                       uint32_t asker, struct hearth_err *err)
{
    const struct exact_series *series = &run->series[series_no];
    const struct hearth_profile_id id = {row->writer_id, row->profile_no};
    uint32_t span = HEARTH_IDMAP_NONE;
    bool counts = false;
    for (uint32_t c = 0; c < series->n_types; c++) {
        struct exact_sum add = {.of = asker, .type = series->types[c], .total = sample->values[c]};
        if (add.type == HEARTH_NO_TYPE || add.total == 0) {
            continue;
        }
        if (add.total < 0) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "damaged sample attributes");
        }
        if (!counts) {
            counts = true;
            HEARTH_TRY(count_profile(run, row, series_no, asker, err));
            HEARTH_TRY(count_ids(run, series_no, &sample->attrs, asker, &span, err));
        }
        HEARTH_TRY(add_sum(run, &run->sums, KEY_TYPE, &add, id, err));
        if (span != HEARTH_IDMAP_NONE) {
            add.of = span;
            HEARTH_TRY(add_sum(run, &run->span_sums, KEY_TYPE_OF_SPAN, &add, id, err));
        }
    }
    return HEARTH_OK;
}

static enum hearth_status take_sample(struct exact_run *run, const struct hearth_read_row *row,
                                      uint32_t series_no, const struct hearth_attr_sample *sample,
                                      struct hearth_err *err)
{
    const struct hearth_sample_attrs *attrs = &sample->attrs;
    const struct hearth_exact_id carried[] = {
        {{0, attrs->span_id}, HEARTH_OF_SPAN, 0},
        {{0, attrs->local_root_span_id}, HEARTH_OF_LOCAL_ROOT, 0},
        {{attrs->trace_id_hi, attrs->trace_id_lo}, HEARTH_OF_TRACE, 0},
    };
    run->n_samples++;
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(carried); k++) {
        size_t n = 0, first = 0;
        if (!hearth_trace_id_is_none(carried[k].id)) {
            first = find_ids(run, carried[k].of, carried[k].id, &n);
        }
        for (size_t i = 0; i < n; i++) {
            uint32_t asker = run->ids[first + i].asker;
            if (run->last_sample[asker] != run->n_samples) {
                run->last_sample[asker] = run->n_samples;
                HEARTH_TRY(count_sample(run, row, series_no, sample, asker, err));
            }
        }
    }
    return HEARTH_OK;
}

static enum hearth_status visit_row(void *context, const struct hearth_read_row *row,
                                    struct hearth_err *err)
{
    struct exact_run *run = context;
    const struct exact_series key = {.series_id = row->series_id};
    const struct exact_series *series =
        bsearch(&key, run->series, run->n_series, sizeof key, by_series);
    if (series == NULL) {
        return HEARTH_OK;
    }
    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, run->query->call.arena);
    struct hearth_attr_sample *samples;
    size_t n = 0;
    uint32_t n_types;
    enum hearth_status status =
        hearth_sample_attrs_decode(row->attrs, &scratch, &samples, &n, &n_types, err);
    if (status == HEARTH_OK && n > 0 && n_types < series->n_types) {
        status = HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes lack value column %u",
                             (unsigned)n_types);
    }
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        status = take_sample(run, row, (uint32_t)(series - run->series), &samples[i], err);
    }
    if (status == HEARTH_CORRUPT) {
        hearth_err_prefix(err, "profile of series %d at %lld", (int)row->series_id,
                          (long long)row->ts_ns);
    }
    hearth_arena_release(&scratch);
    return status;
}

/* ---- the whole ---- */

static enum hearth_status find_samples(struct exact_run *run, struct hearth_exact *ret,
                                       struct hearth_err *err)
{
    struct hearth_selection selection;
    HEARTH_TRY(sort_ids(run, err));
    HEARTH_TRY(wanted_types(run, err));
    HEARTH_TRY(find_series(run, err));
    HEARTH_TRY(select_series(run, &selection, err));
    if (run->n_series > 1) {
        qsort(run->series, run->n_series, sizeof run->series[0], by_series);
    }
    struct hearth_query quiet = *run->query; /* what retention took is for the asker to say */
    quiet.call.notes = NULL;
    const struct hearth_reader reader = {.reset = forget, .row = visit_row, .context = run};
    HEARTH_TRY(hearth_selection_read(&quiet, &selection, &reader, err));
    return hearth_exact_answer(run, ret, err);
}

enum hearth_status hearth_exact_find(const struct hearth_query *query,
                                     const struct hearth_exact_question *question,
                                     struct hearth_exact *ret, struct hearth_err *err)
{
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    size_t limit = limits.max_query_memory_bytes > 0 ? (size_t)limits.max_query_memory_bytes : 0;
    struct exact_run run = {.query = query, .question = question};
    struct hearth_buf *const rows[] = {&run.sums, &run.span_sums, &run.profiles, &run.spans,
                                       &run.traces};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(rows); i++) {
        hearth_buf_init(rows[i], limit);
        rows[i]->budget = query->call.arena->budget;
    }
    hearth_idmap_init(&run.map);
    for (size_t i = 0; i < question->n_askers; i++) {
        ret[i] = (struct hearth_exact){0};
    }
    enum hearth_status status = find_samples(&run, ret, err);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(rows); i++) {
        hearth_buf_release(rows[i]);
    }
    hearth_idmap_release(&run.map);
    return status;
}
