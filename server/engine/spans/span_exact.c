/*
 * span_exact.c -- samples that carry ids, read from the profiles that the index names.
 *
 * Attributes are stored once per row, with the values of all profile types. So one column of each
 * series is read, and no stack traces. A profile that the index names counts nothing if it does not
 * carry the id (keys are hashes), or was deleted.
 */
#include "spans/span_exact_run.h"

#include <assert.h>
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

static int compare_exact_ids(const void *left, const void *right)
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

/* Find the entries with an id: the index of the first, and their number. */
static size_t find_exact_ids(const struct exact_run *run, uint8_t of, struct hearth_trace_id id,
                             size_t *ret_n)
{
    const struct hearth_exact_id key = {.id = id, .of = of};
    size_t low = 0, high = run->search->n_ids, n = 0;

    assert(run->ids != NULL || high == 0);

    /* Binary search. */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare_exact_ids(&run->ids[mid], &key) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    /* Count the equal ones. */
    while (low + n < run->search->n_ids && compare_exact_ids(&run->ids[low + n], &key) == 0) {
        n++;
    }

    *ret_n = n;

    return low;
}

static enum hearth_status sort_exact_ids(struct exact_run *run, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n = run->search->n_ids;

    /* Copy and sort the ids. */
    run->ids = hearth_arena_array(arena, n, sizeof run->ids[0]);
    run->last_sample =
        hearth_arena_calloc(arena, run->search->n_results, sizeof run->last_sample[0]);
    if (run->ids == NULL || run->last_sample == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n > 0) {
        memcpy(run->ids, run->search->ids, n * sizeof run->ids[0]);
        qsort(run->ids, n, sizeof run->ids[0], compare_exact_ids);
    }

    return HEARTH_OK;
}

/* ---- series ---- */

static int compare_exact_series(const void *left, const void *right)
{
    struct exact_series a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a.series_id > b.series_id) - (a.series_id < b.series_id);
}

/* Make the canonical ids of the requested types. */
static enum hearth_status read_wanted_types(struct exact_run *run, struct hearth_err *err)
{
    const struct hearth_exact_search *search = run->search;
    struct hearth_arena *arena = run->query->call.arena;

    run->types = hearth_arena_array(arena, search->n_profile_types, sizeof run->types[0]);
    for (size_t i = 0; i < search->n_profile_types && run->types != NULL; i++) {
        struct hearth_profile_type type;
        HEARTH_TRY(hearth_profile_type_parse(search->profile_types[i], &type, err));
        struct hearth_buf id;
        hearth_buf_init(&id, 0);
        hearth_profile_type_format(&type, &id);
        run->types[run->n_types++] = hearth_arena_str(arena, hearth_buf_view(&id));
        hearth_buf_release(&id);
    }

    run->cap_types = run->n_types;

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/*
 * The number of a type; a new type gets a number unless types were requested. HEARTH_NO_TYPE: it
 * does not count.
 */
static uint32_t number_type(struct exact_run *run, struct hearth_str type)
{
    struct hearth_arena *arena = run->query->call.arena;

    for (size_t i = 0; i < run->n_types; i++) {
        if (hearth_str_eq(run->types[i], type)) {
            return (uint32_t)i;
        }
    }

    /* Types other than the requested ones do not count. */
    if (run->search->n_profile_types > 0 || type.n == 0) {
        return HEARTH_NO_TYPE;
    }

    if (!hearth_arena_grow(arena, &run->types, &run->cap_types, run->n_types + 1,
                           sizeof run->types[0])) {
        return HEARTH_NO_TYPE;
    }

    run->types[run->n_types] = hearth_arena_str(arena, type);

    return (uint32_t)run->n_types++;
}

bool hearth_label_names_type(struct hearth_str name)
{
    return hearth_str_eq_c(name, HEARTH_LABEL_PROFILE_TYPE) ||
           hearth_str_eq_c(name, HEARTH_LABEL_TYPE) || hearth_str_eq_c(name, HEARTH_LABEL_UNIT);
}

static enum hearth_status copy_series_labels(struct exact_run *run,
                                             const struct hearth_call_index *index,
                                             struct exact_series *series, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_labels all;

    /* Copy the labels without those of the type. */
    HEARTH_TRY(hearth_call_index_labels(index, &series->hit, arena, &all, err));
    series->labels.v = hearth_arena_array(arena, all.n, sizeof all.v[0]);
    for (size_t i = 0; i < all.n && series->labels.v != NULL; i++) {
        struct hearth_str name = all.v[i].name;
        if (!hearth_label_names_type(name)) {
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

/*
 * Collect the series of the places that have a type that counts. The caller holds the index's lock.
 */
static enum hearth_status collect_exact_series(struct exact_run *run,
                                               const struct hearth_call_index *index,
                                               struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct hearth_span_places *places = run->search->places;

    /* Look at each series once. */
    run->series = hearth_arena_array(arena, places->n, sizeof run->series[0]);
    for (size_t i = 0; i < places->n && run->series != NULL; i++) {
        const struct hearth_read_instant *at = &places->instants[i];
        struct hearth_series_hits hits;
        if (i > 0 && at->series_id == places->instants[i - 1].series_id) {
            continue;
        }
        HEARTH_TRY(hearth_call_index_columns(index, at->series_id, arena, &hits, err));
        if (hits.n == 0 || hits.v[0].service_id != at->service_id) {
            continue;
        }

        /* Number its types. */
        struct exact_series series = {.series_id = at->series_id,
                                      .service_id = at->service_id,
                                      .n_types = (uint32_t)hits.n,
                                      .hit = hits.v[0]};
        series.types = hearth_arena_array(arena, hits.n, sizeof series.types[0]);
        bool counts = false;
        for (size_t c = 0; c < hits.n && series.types != NULL; c++) {
            series.types[c] = number_type(run, hearth_call_index_type(index, &hits.v[c]));
            counts = counts || series.types[c] != HEARTH_NO_TYPE;
        }

        /* Keep it if any type counts. */
        if (counts) {
            HEARTH_TRY(copy_series_labels(run, index, &series, err));
            run->series[run->n_series++] = series;
        }
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status find_exact_series(struct exact_run *run, struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    const struct hearth_call_index *index;

    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = collect_exact_series(run, index, err);
    hearth_call_index_unlock(index);

    return status;
}

/*
 * Make a selection with one hit of each series, in the order of places, which is that of services
 * and series.
 */
static enum hearth_status select_exact_series(const struct exact_run *run,
                                              struct hearth_selection *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct hearth_span_places *places = run->search->places;

    *ret = (struct hearth_selection){.from_ns = INT64_MAX, .to_ns = INT64_MIN, .rows = true};
    ret->hits = hearth_arena_array(arena, run->n_series, sizeof ret->hits[0]);
    ret->service_ids = hearth_arena_array(arena, run->n_series, sizeof ret->service_ids[0]);
    if (ret->hits == NULL || ret->service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Hits and services. */
    for (size_t i = 0; i < run->n_series; i++) {
        const struct hearth_series_hit *hit = &run->series[i].hit;
        if (i == 0 || hit->service_id != ret->hits[i - 1].service_id) {
            ret->service_ids[ret->n_services++] = hit->service_id;
        }
        ret->hits[ret->n_hits++] = *hit;
    }

    /* The range of all places. */
    for (size_t i = 0; i < places->n; i++) {
        int64_t ts_ns = places->instants[i].ts_ns;
        ret->from_ns = ts_ns < ret->from_ns ? ts_ns : ret->from_ns;
        ret->to_ns = ts_ns > ret->to_ns ? ts_ns : ret->to_ns;
    }

    /* Read attributes and identity only. */
    ret->detail = (struct hearth_read_detail){.identity = true,
                                              .attrs = HEARTH_ATTRS_ALONE,
                                              .some = true,
                                              .instants = places->instants,
                                              .n_instants = places->n};

    return HEARTH_OK;
}

/* ---- counting ---- */

static void reset_exact(void *context)
{
    struct exact_run *run = context;

    hearth_idmap_reset(&run->map);
    hearth_buf_reset(&run->sums);
    hearth_buf_reset(&run->span_sums);
    hearth_buf_reset(&run->profiles);
    hearth_buf_reset(&run->spans);
    hearth_buf_reset(&run->traces);
}

static enum hearth_status fail_exact_memory(struct hearth_err *err)
{
    return HEARTH_FAIL(
        err, HEARTH_NO_MEMORY,
        "the query needs more memory than it may for samples of spans: ask for fewer");
}

/* What a number is given to; members that its kind does not use are 0. */
struct exact_key {
    enum key_kind kind;
    uint64_t a, b;
    struct hearth_profile_id profile;
};

/* The number of a key; a new key gets the next number of `rows`, and *row is appended there. */
static uint32_t intern_exact(struct exact_run *run, const struct exact_key *key,
                             struct hearth_buf *rows, const void *row, size_t n_bytes)
{
    const uint64_t parts[5] = {(uint64_t)key->kind, key->a, key->b,
                               (uint64_t)(int64_t)key->profile.writer_id,
                               (uint64_t)key->profile.profile_no};
    bool is_new;
    uint32_t next = rows == NULL ? 0 : (uint32_t)(rows->n / n_bytes);
    struct hearth_hash128 hash = hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
    uint32_t number = hearth_idmap_intern(&run->map, hash, next, &is_new);

    assert((rows == NULL) == (row == NULL));

    if (number != HEARTH_IDMAP_NONE && is_new && rows != NULL) {
        hearth_buf_append(rows, row, n_bytes);
    }

    return number != HEARTH_IDMAP_NONE && (rows == NULL || !hearth_buf_failed(rows))
               ? number
               : HEARTH_IDMAP_NONE;
}

/* Whether the key is new. Refused memory shows in the next call of intern_exact. */
static bool is_first_exact(struct exact_run *run, const struct exact_key *key)
{
    size_t n = run->map.n;
    (void)intern_exact(run, key, NULL, NULL, 0);
    return run->map.n > n;
}

/* A sample, and where it was read. */
struct exact_sample {
    const struct hearth_read_row *row;
    const struct hearth_attr_sample *sample;
    uint32_t series_no;
};

/* kind: KEY_TYPE or KEY_TYPE_OF_SPAN. */
static enum hearth_status add_exact_sum(struct exact_run *run, enum key_kind kind,
                                        const struct exact_sum *add,
                                        const struct hearth_read_row *row, struct hearth_err *err)
{
    bool of_span = kind == KEY_TYPE_OF_SPAN;
    struct hearth_buf *sums = of_span ? &run->span_sums : &run->sums;
    const struct exact_sum zero = {.of = add->of, .type = add->type};
    const struct exact_key key = {.kind = kind, .a = add->of, .b = add->type};

    assert(of_span || kind == KEY_TYPE);

    uint32_t number = intern_exact(run, &key, sums, &zero, sizeof zero);
    if (number == HEARTH_IDMAP_NONE) {
        return fail_exact_memory(err);
    }

    /* Add to the sum. */
    struct exact_sum *sum = &EXACT_ROWS(*sums, struct exact_sum)[number];
    if (__builtin_add_overflow(sum->total, add->total, &sum->total)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over samples exceeds 64 bits");
    }

    /* Count the profile once. */
    const struct exact_key once = {.kind = of_span ? KEY_PROFILE_OF_SPAN : KEY_PROFILE_OF_TYPE,
                                   .a = number,
                                   .profile = {row->writer_id, row->profile_no}};
    sum->n_profiles += is_first_exact(run, &once);

    return HEARTH_OK;
}

static enum hearth_status count_exact_profile(struct exact_run *run, const struct exact_sample *at,
                                              uint32_t result_no, struct hearth_err *err)
{
    const struct hearth_read_row *row = at->row;
    const struct hearth_profile_id id = {row->writer_id, row->profile_no};
    const struct exact_seen_profile profile = {result_no, at->series_no, id, row->ts_ns,
                                               row->duration_ns};
    const struct exact_key key = {.kind = KEY_PROFILE, .a = result_no, .profile = id};
    uint32_t number = intern_exact(run, &key, &run->profiles, &profile, sizeof profile);

    if (number == HEARTH_IDMAP_NONE) {
        return fail_exact_memory(err);
    }

    /* Rows arrive in no order; the first series of a profile is shown. */
    struct exact_seen_profile *seen = &EXACT_ROWS(run->profiles, struct exact_seen_profile)[number];
    seen->series = at->series_no < seen->series ? at->series_no : seen->series;

    return HEARTH_OK;
}

/* Count the ids of a sample. *ret_span: number of the span; NONE: the sample has no span. */
static enum hearth_status count_sample_ids(struct exact_run *run, const struct exact_sample *at,
                                           uint32_t result_no, uint32_t *ret_span,
                                           struct hearth_err *err)
{
    const struct hearth_sample_attrs *attrs = &at->sample->attrs;

    *ret_span = HEARTH_IDMAP_NONE;

    /* Count the span; several services make it mixed. */
    if (attrs->span_id != 0) {
        const struct exact_seen_span span = {
            .result_no = result_no, .series = at->series_no, .id = attrs->span_id};
        const struct exact_key key = {.kind = KEY_SPAN, .a = result_no, .b = attrs->span_id};
        uint32_t number = intern_exact(run, &key, &run->spans, &span, sizeof span);
        if (number == HEARTH_IDMAP_NONE) {
            return fail_exact_memory(err);
        }

        struct exact_seen_span *seen = &EXACT_ROWS(run->spans, struct exact_seen_span)[number];
        seen->is_mixed = seen->is_mixed || run->series[seen->series].service_id !=
                                               run->series[at->series_no].service_id;
        *ret_span = number;
    }

    /* Count the trace. */
    const struct exact_seen_trace trace = {result_no, {attrs->trace_id_hi, attrs->trace_id_lo}};
    const struct exact_key key = {.kind = KEY_TRACE,
                                  .a = result_no,
                                  .b = trace.id.hi,
                                  .profile = {.profile_no = (int64_t)trace.id.lo}};
    if (!hearth_trace_id_is_none(trace.id) &&
        intern_exact(run, &key, &run->traces, &trace, sizeof trace) == HEARTH_IDMAP_NONE) {
        return fail_exact_memory(err);
    }

    return HEARTH_OK;
}

/* Count a sample for a result. */
static enum hearth_status count_exact_sample(struct exact_run *run, const struct exact_sample *at,
                                             uint32_t result_no, struct hearth_err *err)
{
    const struct exact_series *series = &run->series[at->series_no];
    uint32_t span = HEARTH_IDMAP_NONE;
    bool counts = false;

    for (uint32_t c = 0; c < series->n_types; c++) {
        /* Values of types that do not count, or of zero, are skipped. */
        struct exact_sum add = {
            .of = result_no, .type = series->types[c], .total = at->sample->values[c]};
        if (add.type == HEARTH_NO_TYPE || add.total == 0) {
            continue;
        }
        if (add.total < 0) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "damaged sample attributes");
        }

        /* The first value that counts makes the profile and the ids count. */
        if (!counts) {
            counts = true;
            HEARTH_TRY(count_exact_profile(run, at, result_no, err));
            HEARTH_TRY(count_sample_ids(run, at, result_no, &span, err));
        }

        /* Add it to the result and to the span. */
        HEARTH_TRY(add_exact_sum(run, KEY_TYPE, &add, at->row, err));
        if (span != HEARTH_IDMAP_NONE) {
            add.of = span;
            HEARTH_TRY(add_exact_sum(run, KEY_TYPE_OF_SPAN, &add, at->row, err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status take_exact_sample(struct exact_run *run, const struct exact_sample *at,
                                            struct hearth_err *err)
{
    const struct hearth_sample_attrs *attrs = &at->sample->attrs;
    const struct hearth_exact_id carried[] = {
        {{0, attrs->span_id}, HEARTH_OF_SPAN, 0},
        {{0, attrs->local_root_span_id}, HEARTH_OF_LOCAL_ROOT, 0},
        {{attrs->trace_id_hi, attrs->trace_id_lo}, HEARTH_OF_TRACE, 0},
    };

    assert(at->series_no < run->n_series);

    run->n_samples++;

    /* Count the sample once for each result that one of its ids belongs to. */
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(carried); k++) {
        size_t n = 0, first = 0;
        if (!hearth_trace_id_is_none(carried[k].id)) {
            first = find_exact_ids(run, carried[k].of, carried[k].id, &n);
        }

        for (size_t i = 0; i < n; i++) {
            uint32_t result_no = run->ids[first + i].result_no;
            if (run->last_sample[result_no] != run->n_samples) {
                run->last_sample[result_no] = run->n_samples;
                HEARTH_TRY(count_exact_sample(run, at, result_no, err));
            }
        }
    }

    return HEARTH_OK;
}

static enum hearth_status visit_exact_row(void *context, const struct hearth_read_row *row,
                                          struct hearth_err *err)
{
    struct exact_run *run = context;
    const struct exact_series key = {.series_id = row->series_id};
    const struct exact_series *series =
        bsearch(&key, run->series, run->n_series, sizeof key, compare_exact_series);

    /* A series whose types do not count is skipped. */
    if (series == NULL) {
        return HEARTH_OK;
    }

    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, run->query->call.arena);
    struct hearth_attr_sample *samples;
    size_t n = 0;
    uint32_t n_types;

    /* Decode the attributes. */
    enum hearth_status status =
        hearth_sample_attrs_decode(row->attrs, &scratch, &samples, &n, &n_types, err);
    if (status == HEARTH_OK && n > 0 && n_types < series->n_types) {
        status = HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes lack value column %u",
                             (unsigned)n_types);
    }

    /* Count the samples. */
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        const struct exact_sample at = {row, &samples[i], (uint32_t)(series - run->series)};
        status = take_exact_sample(run, &at, err);
    }

    /* Name the profile of a decoding error. */
    if (status == HEARTH_CORRUPT) {
        hearth_err_prefix(err, "profile of series %d at %lld", (int)row->series_id,
                          (long long)row->ts_ns);
    }

    hearth_arena_release(&scratch);

    return status;
}

/* ---- the whole ---- */

static enum hearth_status find_exact_samples(struct exact_run *run, struct hearth_exact *ret,
                                             struct hearth_err *err)
{
    struct hearth_selection selection;

    /* Choose ids, types and series. */
    HEARTH_TRY(sort_exact_ids(run, err));
    HEARTH_TRY(read_wanted_types(run, err));
    HEARTH_TRY(find_exact_series(run, err));
    HEARTH_TRY(select_exact_series(run, &selection, err));
    if (run->n_series > 1) {
        qsort(run->series, run->n_series, sizeof run->series[0], compare_exact_series);
    }

    /* Read and count. */
    struct hearth_query quiet = *run->query; /* the caller describes what retention removed */
    quiet.call.notes = NULL;
    const struct hearth_reader reader = {
        .reset = reset_exact, .row = visit_exact_row, .context = run};
    HEARTH_TRY(hearth_selection_read(&quiet, &selection, &reader, err));

    return hearth_exact_answer(run, ret, err);
}

enum hearth_status hearth_exact_find(const struct hearth_query *query,
                                     const struct hearth_exact_search *search,
                                     struct hearth_exact *ret, struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(query != NULL && ret != NULL);

    hearth_call_limits(&query->call, &limits);

    /* Everything counted shares the query's memory limit. */
    size_t limit = limits.max_query_memory_bytes > 0 ? (size_t)limits.max_query_memory_bytes : 0;
    struct exact_run run = {.query = query, .search = search};
    struct hearth_buf *const rows[] = {&run.sums, &run.span_sums, &run.profiles, &run.spans,
                                       &run.traces};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(rows); i++) {
        hearth_buf_init(rows[i], limit);
        rows[i]->budget = query->call.arena->budget;
    }

    /* Count. */
    hearth_idmap_init(&run.map);
    for (size_t i = 0; i < search->n_results; i++) {
        ret[i] = (struct hearth_exact){0};
    }

    enum hearth_status status = find_exact_samples(&run, ret, err);

    /* Release. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(rows); i++) {
        hearth_buf_release(rows[i]);
    }

    hearth_idmap_release(&run.map);

    return status;
}
