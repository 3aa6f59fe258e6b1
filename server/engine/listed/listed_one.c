/*
 * listed_one.c -- one upload by its id alone.
 *
 * The number in the id says the minute and the lower bits of the service, so that the totals of a
 * minute of few services are read; the rows with the id are kept.
 */
#include "hearth/store/store_originals.h"

#include "common/shown.h"
#include "listed/listed_scan.h"

#include <assert.h>
#include <stdlib.h>

/* A value column of a stored row of the upload. */
struct one_value {
    uint32_t hit; /* of scan.selection, which has all columns of each series */
    int64_t ts_ns, duration_ns, total;
};

struct listed_one {
    struct hearth_query query; /* its range holds all rows */
    struct listed_scan scan;   /* its query and selection are set */
    struct hearth_profile_id id;
    struct hearth_buf values; /* struct one_value */
    struct one_value *v;      /* [n], by hit and time */
    size_t n;
};

static enum hearth_status fail_not_listed(struct hearth_profile_id id, struct hearth_err *err)
{
    char text[HEARTH_PROFILE_ID_TEXT + 1];

    hearth_profile_id_format(id, text);
    return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                       "there is no profile %s: it has expired (retain-raw), was deleted, or is of "
                       "another tenant",
                       text);
}

/* Selects all columns of the series of the services that the place may mean. */
static enum hearth_status select_services_of_place(struct listed_one *one,
                                                   const struct hearth_profile_place *place,
                                                   struct hearth_err *err)
{
    const struct hearth_call *call = &one->query.call;
    struct hearth_selection *selection = &one->scan.selection;
    const struct hearth_call_index *index;
    struct hearth_selector all;
    struct hearth_series_hits hits;

    HEARTH_TRY(hearth_call_index_lock(call, &index, err));
    hearth_selector_init(&all);
    const struct hearth_index_filter filter = {&all, place->from_ns, place->to_ns - 1};
    enum hearth_status status = hearth_call_index_select(index, &filter, call->arena, &hits, err);
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    *selection = (struct hearth_selection){
        .hits = hits.v,
        .from_ns = place->from_ns,
        .to_ns = place->to_ns - 1,
        .totals = true,
        .rows = true,
        .detail = {.identity = true, .profile_nos = &one->id.profile_no, .n_profile_nos = 1},
    };
    selection->service_ids =
        hearth_arena_array(call->arena, hits.n, sizeof selection->service_ids[0]);
    if (selection->service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Hits are sorted by service. */
    for (size_t i = 0; i < hits.n; i++) {
        const struct hearth_series_hit hit = hits.v[i];
        if (hit.service_id % HEARTH_PROFILE_NO_SERVICES != place->service_bits) {
            continue;
        }
        if (selection->n_hits == 0 ||
            selection->hits[selection->n_hits - 1].service_id != hit.service_id) {
            selection->service_ids[selection->n_services++] = hit.service_id;
        }
        selection->hits[selection->n_hits++] = hit;
    }

    return HEARTH_OK;
}

/* ---- rows ---- */

static void forget_one_values(void *context)
{
    struct listed_one *one = context;
    hearth_buf_reset(&one->values);
}

static enum hearth_status take_one_value(void *context, const struct hearth_read_total *total,
                                         struct hearth_err *err)
{
    struct listed_one *one = context;
    if (total->writer_id != one->id.writer_id || total->profile_no != one->id.profile_no) {
        return HEARTH_OK;
    }

    /* The hit: few rows have the id, so a search without an index is enough. */
    const struct hearth_selection *selection = &one->scan.selection;
    struct one_value value = {
        .ts_ns = total->ts_ns, .duration_ns = total->duration_ns, .total = total->total};
    while (value.hit < selection->n_hits &&
           (selection->hits[value.hit].series_id != total->series_id ||
            selection->hits[value.hit].column != total->column)) {
        value.hit++;
    }
    if (value.hit == selection->n_hits) {
        return HEARTH_OK;
    }

    hearth_buf_append(&one->values, &value, sizeof value);
    return hearth_buf_failed(&one->values)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the rows of a profile")
               : HEARTH_OK;
}

static int compare_one_values(const void *left, const void *right)
{
    const struct one_value *a = left, *b = right;
    if (a->hit != b->hit) {
        return a->hit < b->hit ? -1 : 1;
    }

    return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

/*
 * Reads the totals of the rows of an upload, at least one. Release it in any case. Errors:
 * NOT_FOUND.
 */
static enum hearth_status read_listed_one(struct listed_one *one, const struct hearth_call *call,
                                          struct hearth_profile_id id, struct hearth_err *err)
{
    assert(one != NULL && call != NULL);

    *one = (struct listed_one){.query = {.call = *call}, .id = id};
    hearth_buf_init(&one->values, 0);
    one->values.budget = call->arena->budget;
    one->query.call.notes = NULL; /* the range is not the caller's */
    one->scan.query = &one->query;

    struct hearth_profile_place place;
    if (!hearth_profile_no_place(id.profile_no, &place)) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "the id does not say where its profile is stored, as ids of older "
                           "servers do not: select it by profile_ids, a selector and a range");
    }

    /* The limits of ranges hold as for any query. */
    struct hearth_range range;
    one->query.start_ms = place.from_ns / HEARTH_NS_PER_MS;
    one->query.end_ms = place.to_ns / HEARTH_NS_PER_MS - 1;
    HEARTH_TRY(hearth_query_range(&one->query, &range, err));
    if (range.empty) {
        return fail_not_listed(id, err);
    }

    HEARTH_TRY(select_services_of_place(one, &place, err));
    const struct hearth_reader reader = {
        .reset = forget_one_values, .total = take_one_value, .context = one};
    HEARTH_TRY(hearth_selection_read(&one->query, &one->scan.selection, &reader, err));

    one->v = (struct one_value *)(void *)one->values.p;
    one->n = one->values.n / sizeof one->v[0];
    if (one->n == 0) {
        return fail_not_listed(id, err);
    }
    qsort(one->v, one->n, sizeof one->v[0], compare_one_values);

    return HEARTH_OK;
}

static void release_listed_one(struct listed_one *one)
{
    hearth_buf_release(&one->values);
}

/* The text of a selector for the upload's service, in the call's arena. */
static enum hearth_status format_service_selector(const struct listed_one *one,
                                                  struct hearth_str service, struct hearth_str *ret,
                                                  struct hearth_err *err)
{
    struct hearth_arena *arena = one->query.call.arena;
    struct hearth_selector selector;
    struct hearth_buf text;

    hearth_selector_init(&selector);
    hearth_buf_init(&text, 0);
    enum hearth_status status = hearth_selector_add(&selector, HEARTH_STR(HEARTH_LABEL_SERVICE),
                                                    HEARTH_MATCH_EQ, service, arena, err);
    if (status == HEARTH_OK) {
        hearth_selector_format(&selector, &text);
        *ret = hearth_arena_str(arena, hearth_buf_view(&text));
        status = ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_buf_release(&text);
    hearth_selector_release(&selector);

    return status;
}

/* ---- the answer ---- */

static int64_t add_total(int64_t sum, int64_t value)
{
    return __builtin_add_overflow(sum, value, &sum) ? (value < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* Adds a total to the value of its type, in a list sorted by type with room for one more. */
static void add_typed_total(struct hearth_listed_value *values, size_t *n, struct hearth_str type,
                            uint16_t column, int64_t total)
{
    size_t at = 0;
    while (at < *n && hearth_str_cmp(values[at].profile_type, type) < 0) {
        at++;
    }

    if (at == *n || !hearth_str_eq(values[at].profile_type, type)) {
        memmove(values + at + 1, values + at, (*n - at) * sizeof values[0]);
        values[at] = (struct hearth_listed_value){.profile_type = type};
        ++*n;
    }
    values[at].total = add_total(values[at].total, total);
    values[at].column = column > values[at].column ? column : values[at].column;
}

/* The first value behind the series of value i. */
static size_t find_next_series(const struct listed_one *one, size_t i)
{
    const struct hearth_series_hit *hits = one->scan.selection.hits;
    int32_t series_id = hits[one->v[i].hit].series_id;

    while (i < one->n && hits[one->v[i].hit].series_id == series_id) {
        i++;
    }

    return i;
}

/* Sums the values of one series from value i on. Returns the index behind them. */
static size_t sum_one_series(const struct listed_one *one, size_t i,
                             const struct hearth_call_index *index,
                             struct hearth_listed_detail *ret, struct hearth_listed_series *series)
{
    struct hearth_arena *arena = one->query.call.arena;
    const struct hearth_series_hit *hits = one->scan.selection.hits;
    size_t end = find_next_series(one, i);

    for (; i < end; i++) {
        const struct one_value *value = &one->v[i];
        struct hearth_str type =
            hearth_arena_str(arena, hearth_call_index_type(index, &hits[value->hit]));
        uint16_t column = hits[value->hit].column;
        add_typed_total(series->values, &series->n_values, type, column, value->total);
        add_typed_total(ret->values, &ret->n_values, type, column, value->total);
        ret->upload.ts_ns = value->ts_ns < ret->upload.ts_ns ? value->ts_ns : ret->upload.ts_ns;
        ret->upload.duration_ns = value->duration_ns > ret->upload.duration_ns
                                      ? value->duration_ns
                                      : ret->upload.duration_ns;
    }

    return i;
}

/* Fills all series of the upload, and lists one hit of each. The caller holds the index's lock. */
static enum hearth_status fill_series(const struct listed_one *one,
                                      const struct hearth_call_index *index, uint32_t *first_hits,
                                      struct hearth_listed_detail *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = one->query.call.arena;

    for (size_t i = 0; i < one->n;) {
        struct hearth_listed_series *series = &ret->series[ret->n_series];
        uint32_t hit = one->v[i].hit;
        enum hearth_status status = hearth_listed_labels(index, &one->scan.selection.hits[hit],
                                                         arena, &series->labels, err);
        if (status == HEARTH_NOT_FOUND) {
            i = find_next_series(one, i); /* it was deleted meanwhile */
            continue;
        }
        HEARTH_TRY(status);

        /* A series has at most as many types as values are left. */
        series->values = hearth_arena_array(arena, one->n - i, sizeof series->values[0]);
        if (series->values == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        i = sum_one_series(one, i, index, ret, series);
        for (size_t l = 0; l < series->labels.n; l++) {
            struct hearth_label *label = &series->labels.v[l];
            *label = (struct hearth_label){hearth_arena_str(arena, label->name),
                                           hearth_arena_str(arena, label->value)};
        }
        first_hits[ret->n_series++] = hit;
    }

    return HEARTH_OK;
}

static enum hearth_status fill_detail(struct listed_one *one, struct hearth_listed_detail *ret,
                                      struct hearth_err *err)
{
    const struct hearth_call *call = &one->query.call;
    uint32_t *first_hits = hearth_arena_array(call->arena, one->n, sizeof first_hits[0]);
    *ret = (struct hearth_listed_detail){
        .upload = {.id = one->id, .ts_ns = INT64_MAX, .duration_ns = INT64_MIN},
        .series = hearth_arena_calloc(call->arena, one->n, sizeof ret->series[0]),
        .values = hearth_arena_array(call->arena, one->n, sizeof ret->values[0]),
        .start_ms = one->query.start_ms,
        .end_ms = one->query.end_ms,
    };
    if (first_hits == NULL || ret->series == NULL || ret->values == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    const struct hearth_call_index *index;
    HEARTH_TRY(hearth_call_index_lock(call, &index, err));
    enum hearth_status status = fill_series(one, index, first_hits, ret, err);
    if (status == HEARTH_OK) {
        status = hearth_listed_describe(
            &one->scan, index, (struct listed_hits){first_hits, ret->n_series}, &ret->upload, err);
    }
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    return ret->n_series > 0 ? HEARTH_OK : fail_not_listed(one->id, err);
}

/* Whether a call sees all series and types of an upload of which it sees some. */
static enum hearth_status shows_whole_upload(const struct hearth_call *call,
                                             struct hearth_profile_id id,
                                             const struct hearth_listed_detail *visible, bool *ret,
                                             struct hearth_err *err)
{
    struct hearth_call unnarrowed = *call;
    struct listed_one one;
    struct hearth_listed_detail detail;

    *ret = !hearth_call_is_narrow(call);
    if (*ret) {
        return HEARTH_OK;
    }

    unnarrowed.view = NULL;
    enum hearth_status status = read_listed_one(&one, &unnarrowed, id, err);
    status = status == HEARTH_OK ? fill_detail(&one, &detail, err) : status;
    release_listed_one(&one);
    HEARTH_TRY(status);

    bool same = detail.n_series == visible->n_series;
    for (size_t i = 0; same && i < detail.n_series; i++) {
        same = detail.series[i].n_values == visible->series[i].n_values;
    }
    *ret = same;

    return HEARTH_OK;
}

/* Those of the first file: a client says the same of all. */
static enum hearth_status read_client_tags(const struct hearth_call *call,
                                           struct hearth_listed_detail *detail,
                                           struct hearth_err *err)
{
    struct hearth_labels *tags = &detail->client_tags;
    struct hearth_str text = HEARTH_STR("");

    for (size_t i = 0; i < detail->n_originals && text.n == 0; i++) {
        text = detail->originals[i].client_tags;
    }

    size_t max = 1;
    for (size_t i = 0; i < text.n; i++) {
        max += text.p[i] == ',';
    }
    *tags = (struct hearth_labels){.v = hearth_arena_array(call->arena, max, sizeof tags->v[0])};
    if (tags->v == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t at = 0, end; at < text.n; at = end + 1) {
        end = hearth_str_find(text, ',', at);
        size_t colon = hearth_str_find(text, ':', at);
        if (colon < end) {
            tags->v[tags->n++] =
                (struct hearth_label){hearth_str_n(text.p + at, colon - at),
                                      hearth_str_n(text.p + colon + 1, end - colon - 1)};
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_listed_find(const struct hearth_call *call, struct hearth_profile_id id,
                                      struct hearth_listed_detail *ret, struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    struct listed_one one;
    struct hearth_listed_detail detail;
    enum hearth_status status = read_listed_one(&one, call, id, err);
    status = status == HEARTH_OK ? fill_detail(&one, &detail, err) : status;
    if (status == HEARTH_OK) {
        status = format_service_selector(&one, detail.upload.service, &detail.selector, err);
    }
    release_listed_one(&one);
    HEARTH_TRY(status);

    /* A file holds all series of its upload, so a part of them does not show it. */
    bool whole;
    HEARTH_TRY(shows_whole_upload(call, id, &detail, &whole, err));
    if (whole) {
        struct hearth_original *originals;
        HEARTH_TRY(hearth_store_originals(HEARTH_CALL_SCOPE(call), id, &originals,
                                          &detail.n_originals, err));
        detail.originals = originals;
        HEARTH_TRY(read_client_tags(call, &detail, err));
    }

    *ret = detail;
    return HEARTH_OK;
}
