/* span_exact_answer.c -- sorts the counted samples of ids into results. */
#include "spans/span_exact_run.h"

#include <assert.h>
#include <stdlib.h>

static int compare_exact_sums(const void *left, const void *right, void *types_ptr)
{
    const struct exact_sum *a = left, *b = right;
    const struct hearth_str *types = types_ptr;

    if (a->of != b->of) {
        return a->of < b->of ? -1 : 1;
    }

    return hearth_str_cmp(types[a->type], types[b->type]);
}

static int compare_seen_profiles(const void *left, const void *right)
{
    const struct exact_seen_profile *a = left, *b = right;

    if (a->result_no != b->result_no) {
        return a->result_no < b->result_no ? -1 : 1;
    }

    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }

    if (a->id.writer_id != b->id.writer_id) {
        return a->id.writer_id < b->id.writer_id ? -1 : 1;
    }

    return (a->id.profile_no > b->id.profile_no) - (a->id.profile_no < b->id.profile_no);
}

/* Compare numbers of spans by result, then by share, largest first. */
static int compare_seen_spans(const void *left, const void *right, void *spans_ptr)
{
    const struct exact_seen_span *spans = spans_ptr;
    const struct exact_seen_span *a = &spans[*(const uint32_t *)left];
    const struct exact_seen_span *b = &spans[*(const uint32_t *)right];

    if (a->result_no != b->result_no) {
        return a->result_no < b->result_no ? -1 : 1;
    }

    if (a->share != b->share) {
        return a->share > b->share ? -1 : 1;
    }

    return (a->id > b->id) - (a->id < b->id);
}

static int compare_seen_traces(const void *left, const void *right)
{
    const struct exact_seen_trace *a = left, *b = right;

    if (a->result_no != b->result_no) {
        return a->result_no < b->result_no ? -1 : 1;
    }
    if (a->id.hi != b->id.hi) {
        return a->id.hi < b->id.hi ? -1 : 1;
    }

    return (a->id.lo > b->id.lo) - (a->id.lo < b->id.lo);
}

static int compare_span_numbers(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

static int compare_names(const void *left, const void *right)
{
    struct hearth_str a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return hearth_str_cmp(a, b);
}

/* Make the types of one result or span from its sorted sums. */
static enum hearth_status make_found_types(const struct exact_run *run,
                                           const struct exact_sum *sums, size_t n,
                                           struct hearth_found_type **ret, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_found_type *v = hearth_arena_array(arena, n, sizeof v[0]);

    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_profile_type type = {0};
        if (hearth_profile_type_parse(run->types[sums[i].type], &type, NULL) != HEARTH_OK) {
            type.sample_unit = HEARTH_STR(""); /* an invalid type that was stored */
        }
        v[i] = (struct hearth_found_type){run->types[sums[i].type], type.sample_unit, sums[i].total,
                                          sums[i].n_profiles};
    }

    *ret = v;

    return HEARTH_OK;
}

static enum hearth_status answer_types(struct exact_run *run, struct hearth_exact *ret,
                                       struct hearth_err *err)
{
    const struct exact_sum *sums = EXACT_ROWS(run->sums, struct exact_sum);
    size_t n_all = N_EXACT_ROWS(run->sums, struct exact_sum);

    for (size_t i = 0, n; i < n_all; i += n) {
        for (n = 1; i + n < n_all && sums[i + n].of == sums[i].of; n++) {
        }

        struct hearth_exact *out = &ret[sums[i].of];
        HEARTH_TRY(make_found_types(run, &sums[i], n, &out->types, err));
        out->n_types = n;
    }

    return HEARTH_OK;
}

/* List the names of the profiles' services, each once. */
static enum hearth_status list_services(const struct exact_run *run,
                                        const struct exact_seen_profile *profiles, size_t n,
                                        struct hearth_exact *out, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_str *v = hearth_arena_array(arena, n, sizeof v[0]);

    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Neighbours often have the same service. */
    size_t n_names = 0;
    for (size_t i = 0; i < n; i++) {
        struct hearth_str name = run->series[profiles[i].series].service;
        if (i == 0 || !hearth_str_eq(name, v[n_names - 1])) {
            v[n_names++] = name;
        }
    }

    /* Sort the names, and drop repeated ones. */
    qsort(v, n_names, sizeof v[0], compare_names);
    for (size_t i = 0; i < n_names; i++) {
        if (out->n_services == 0 || !hearth_str_eq(v[out->n_services - 1], v[i])) {
            v[out->n_services++] = v[i];
        }
    }

    out->services = v;

    return HEARTH_OK;
}

static enum hearth_status answer_profiles(struct exact_run *run, struct hearth_exact *ret,
                                          struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct exact_seen_profile *seen = EXACT_ROWS(run->profiles, struct exact_seen_profile);
    size_t n_all = N_EXACT_ROWS(run->profiles, struct exact_seen_profile);

    for (size_t i = 0, n; i < n_all; i += n) {
        for (n = 1; i + n < n_all && seen[i + n].result_no == seen[i].result_no; n++) {
        }

        /* Copy the first profiles. */
        struct hearth_exact *out = &ret[seen[i].result_no];
        size_t n_shown = n < run->search->max_profiles ? n : run->search->max_profiles;
        out->profiles = hearth_arena_array(arena, n_shown, sizeof out->profiles[0]);
        if (out->profiles == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        for (; out->n_profiles < n_shown; out->n_profiles++) {
            const struct exact_seen_profile *from = &seen[i + out->n_profiles];
            const struct exact_series *series = &run->series[from->series];
            out->profiles[out->n_profiles] =
                (struct hearth_found_profile){.id = from->id,
                                              .service = series->service,
                                              .labels = series->labels,
                                              .time_ns = from->time_ns,
                                              .duration_ns = from->duration_ns};
        }

        /* Totals over all of them. */
        out->n_all_profiles = (int64_t)n;
        out->first_ns = seen[i].time_ns;
        out->last_ns = seen[i + n - 1].time_ns;
        HEARTH_TRY(list_services(run, &seen[i], n, out, err));
    }

    return HEARTH_OK;
}

/* Find a total of a result; the sums are sorted and contain it. */
static int64_t find_total(const struct exact_run *run, uint32_t result_no, uint32_t type)
{
    const struct exact_sum *sums = EXACT_ROWS(run->sums, struct exact_sum);
    const struct exact_sum key = {.of = result_no, .type = type};
    size_t low = 0, high = N_EXACT_ROWS(run->sums, struct exact_sum);

    assert(high > 0);

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare_exact_sums(&sums[mid], &key, run->types) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return sums[low].total;
}

/*
 * Sum each span's shares of its result's totals, in the order of types, so that rounding is always
 * the same.
 */
static void sum_shares(struct exact_run *run)
{
    struct exact_seen_span *spans = EXACT_ROWS(run->spans, struct exact_seen_span);

    for (size_t i = 0; i < N_EXACT_ROWS(run->span_sums, struct exact_sum); i++) {
        const struct exact_sum *sum = &EXACT_ROWS(run->span_sums, struct exact_sum)[i];
        int64_t whole = find_total(run, spans[sum->of].result_no, sum->type);
        spans[sum->of].share += (double)sum->total / (double)whole;
    }
}

/*
 * Fill in the spans of one result. order: their numbers; first_sum: index of each number's first
 * sum.
 */
static enum hearth_status answer_result_spans(struct exact_run *run, const uint32_t *order,
                                              size_t n, const size_t *first_sum,
                                              struct hearth_exact *out, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct exact_seen_span *spans = EXACT_ROWS(run->spans, struct exact_seen_span);
    const struct exact_sum *sums = EXACT_ROWS(run->span_sums, struct exact_sum);
    size_t n_shown = n < HEARTH_EXACT_MAX_SPANS ? n : HEARTH_EXACT_MAX_SPANS;

    out->spans = hearth_arena_calloc(arena, n_shown, sizeof out->spans[0]);
    out->span_ids = hearth_arena_array(arena, n, sizeof out->span_ids[0]);
    if (out->spans == NULL || out->span_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* All ids are listed, but only the largest spans with their types. */
    for (size_t i = 0; i < n; i++) {
        const struct exact_seen_span *span = &spans[order[i]];
        out->span_ids[out->n_span_ids++] = span->id;
        if (i >= n_shown) {
            continue;
        }
        struct hearth_found_span *to = &out->spans[out->n_spans++];
        to->span_id = span->id;
        to->service = span->is_mixed ? HEARTH_STR("") : run->series[span->series].service;
        to->n_types = first_sum[order[i] + 1] - first_sum[order[i]];
        HEARTH_TRY(make_found_types(run, &sums[first_sum[order[i]]], to->n_types, &to->types, err));
    }

    /* Sort the ids. */
    qsort(out->span_ids, n, sizeof out->span_ids[0], compare_span_numbers);

    return HEARTH_OK;
}

static enum hearth_status answer_spans(struct exact_run *run, struct hearth_exact *ret,
                                       struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n_all = N_EXACT_ROWS(run->spans, struct exact_seen_span);
    const struct exact_seen_span *spans = EXACT_ROWS(run->spans, struct exact_seen_span);
    const struct exact_sum *sums = EXACT_ROWS(run->span_sums, struct exact_sum);
    uint32_t *order = hearth_arena_array(arena, n_all, sizeof order[0]);
    size_t *first_sum = hearth_arena_array(arena, n_all + 1, sizeof first_sum[0]);

    if (order == NULL || first_sum == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Index the sums by span. */
    size_t at = 0;
    for (size_t i = 0; i < n_all; i++) {
        order[i] = (uint32_t)i;
        first_sum[i] = at;
        for (; at < N_EXACT_ROWS(run->span_sums, struct exact_sum) && sums[at].of == i; at++) {
        }
    }

    first_sum[n_all] = at;

    /* Sort the spans by result and share. */
    if (n_all > 1) {
        qsort_r(order, n_all, sizeof order[0], compare_seen_spans, run->spans.p);
    }

    for (size_t i = 0, n; i < n_all; i += n) {
        uint32_t result_no = spans[order[i]].result_no;
        for (n = 1; i + n < n_all && spans[order[i + n]].result_no == result_no; n++) {
        }
        HEARTH_TRY(answer_result_spans(run, order + i, n, first_sum, &ret[result_no], err));
    }

    return HEARTH_OK;
}

static enum hearth_status answer_traces(struct exact_run *run, struct hearth_exact *ret,
                                        struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct exact_seen_trace *traces = EXACT_ROWS(run->traces, struct exact_seen_trace);
    size_t n_all = N_EXACT_ROWS(run->traces, struct exact_seen_trace);

    for (size_t i = 0, n; i < n_all; i += n) {
        for (n = 1; i + n < n_all && traces[i + n].result_no == traces[i].result_no; n++) {
        }

        struct hearth_exact *out = &ret[traces[i].result_no];
        out->trace_ids = hearth_arena_array(arena, n, sizeof out->trace_ids[0]);
        if (out->trace_ids == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        for (; out->n_trace_ids < n; out->n_trace_ids++) {
            out->trace_ids[out->n_trace_ids] = traces[i + out->n_trace_ids].id;
        }
    }

    return HEARTH_OK;
}

static void sort_seen(struct exact_run *run)
{
    struct hearth_buf *const sums[] = {&run->sums, &run->span_sums};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sums); i++) {
        if (sums[i]->n > 0) {
            qsort_r(sums[i]->p, N_EXACT_ROWS(*sums[i], struct exact_sum), sizeof(struct exact_sum),
                    compare_exact_sums, run->types);
        }
    }

    if (run->profiles.n > 0) {
        qsort(run->profiles.p, N_EXACT_ROWS(run->profiles, struct exact_seen_profile),
              sizeof(struct exact_seen_profile), compare_seen_profiles);
    }

    if (run->traces.n > 0) {
        qsort(run->traces.p, N_EXACT_ROWS(run->traces, struct exact_seen_trace),
              sizeof(struct exact_seen_trace), compare_seen_traces);
    }
}

enum hearth_status hearth_exact_answer(struct exact_run *run, struct hearth_exact *ret,
                                       struct hearth_err *err)
{
    assert(ret != NULL);

    /* Sort what was counted. */
    sort_seen(run);
    sum_shares(run);

    /* Fill in the results. */
    HEARTH_TRY(answer_types(run, ret, err));
    HEARTH_TRY(answer_profiles(run, ret, err));
    HEARTH_TRY(answer_spans(run, ret, err));

    return answer_traces(run, ret, err);
}
