/*
 * profile_match.c -- prepares a filter by profile, span or trace: sorted lists, the columns that a
 * read must return, and the rows that it may skip.
 *
 * A missing span or trace is 0 in the attributes of a sample, so 0 in a filter matches no sample.
 */
#include "select/profile_match.h"

#include <assert.h>
#include <stdlib.h>

static int compare_profile_ids(const void *left, const void *right)
{
    struct hearth_profile_id a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.writer_id != b.writer_id) {
        return a.writer_id < b.writer_id ? -1 : 1;
    }

    return (a.profile_no > b.profile_no) - (a.profile_no < b.profile_no);
}

static int compare_span_ids(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

static int compare_trace_ids(const void *left, const void *right)
{
    struct hearth_trace_id a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.hi != b.hi) {
        return a.hi < b.hi ? -1 : 1;
    }

    return (a.lo > b.lo) - (a.lo < b.lo);
}

static void sort_list(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n > 1) {
        qsort(v, n, size, compare);
    }
}

static bool
copy_filter_lists(const struct hearth_profile_filter *filter, struct hearth_arena *arena,
                  /* Copies the lists of a filter, and sorts them. False: memory was refused. */
                  struct hearth_profile_match *match)
{
    match->profiles = hearth_arena_array(arena, filter->n_profiles, sizeof match->profiles[0]);
    match->spans = hearth_arena_array(arena, filter->n_spans, sizeof match->spans[0]);
    match->traces = hearth_arena_array(arena, filter->n_traces, sizeof match->traces[0]);
    match->local_roots =
        hearth_arena_array(arena, filter->n_local_roots, sizeof match->local_roots[0]);
    if (match->profiles == NULL || match->spans == NULL || match->traces == NULL ||
        match->local_roots == NULL) {
        return false;
    }

    for (size_t i = 0; i < filter->n_profiles; i++) {
        match->profiles[match->n_profiles++] = filter->profiles[i];
    }

    for (size_t i = 0; i < filter->n_spans; i++) {
        match->spans[match->n_spans++] = filter->spans[i];
    }

    for (size_t i = 0; i < filter->n_local_roots; i++) {
        match->local_roots[match->n_local_roots++] = filter->local_roots[i];
    }

    for (size_t i = 0; i < filter->n_traces; i++) {
        match->traces[match->n_traces++] = filter->traces[i];
    }

    /* Sorted, so that rows and samples are searched by bsearch. */
    sort_list(match->profiles, match->n_profiles, sizeof match->profiles[0], compare_profile_ids);
    sort_list(match->spans, match->n_spans, sizeof match->spans[0], compare_span_ids);
    sort_list(match->local_roots, match->n_local_roots, sizeof match->local_roots[0],
              compare_span_ids);
    sort_list(match->traces, match->n_traces, sizeof match->traces[0], compare_trace_ids);

    return true;
}

static void write_be64(uint64_t value, char *out)
{
    for (int b = 0; b < 8; b++) {
        out[b] = (char)(uint8_t)(value >> (56 - 8 * b));
    }
}

/*
 * Bytes that the encoded attributes of a row contain if a sample of it passes. If all lists must
 * match, the bytes of one list are enough.
 */
static bool make_attribute_hints(struct hearth_profile_match *match, struct hearth_arena *arena)
{
    struct hearth_read_detail *detail = &match->detail;
    size_t n_most = match->n_spans + match->n_local_roots + match->n_traces;
    struct hearth_str *with = hearth_arena_array(arena, n_most, sizeof with[0]);
    char *at = hearth_arena_array(arena, n_most, 16);
    if (with == NULL || at == NULL) {
        return false;
    }

    detail->attrs_with = with;

    for (size_t i = 0; i < match->n_spans; i++, at += 8) {
        write_be64(match->spans[i], at);
        with[detail->n_attrs_with++] = hearth_str_n(at, 8);
    }

    for (size_t i = 0; i < match->n_local_roots && (match->any_list || match->n_spans == 0);
         i++, at += 8) {
        write_be64(match->local_roots[i], at);
        with[detail->n_attrs_with++] = hearth_str_n(at, 8);
    }

    bool has_hints = match->n_spans + match->n_local_roots > 0;
    for (size_t i = 0; i < match->n_traces && (match->any_list || !has_hints); i++, at += 16) {
        write_be64(match->traces[i].hi, at);
        write_be64(match->traces[i].lo, at + 8);
        with[detail->n_attrs_with++] = hearth_str_n(at, 16);
    }

    return true;
}

/* Sets the detail of a read. False: memory was refused. */
static bool make_read_hints(struct hearth_profile_match *match,
                            const struct hearth_profile_filter *filter, struct hearth_arena *arena)
{
    int64_t *numbers = hearth_arena_array(arena, match->n_profiles, sizeof numbers[0]);
    if (numbers == NULL) {
        return false;
    }

    for (size_t i = 0; i < match->n_profiles; i++) {
        numbers[i] = match->profiles[i].profile_no;
    }

    match->detail = (struct hearth_read_detail){
        .identity = match->n_profiles > 0,
        .attrs = match->of_samples ? HEARTH_ATTRS_ALONE : HEARTH_ATTRS_NOT_READ,
        .profile_nos = numbers,
        .n_profile_nos = match->n_profiles,
        .some = filter->some,
        .instants = filter->instants,
        .n_instants = filter->n_instants,
    };

    return make_attribute_hints(match, arena);
}

enum hearth_status hearth_profile_match_make(const struct hearth_profile_filter *filter,
                                             struct hearth_arena *arena,
                                             struct hearth_profile_match **ret,
                                             struct hearth_err *err)
{
    assert(filter != NULL && arena != NULL && ret != NULL);

    *ret = NULL;
    if (hearth_profile_filter_is_empty(filter)) {
        return HEARTH_OK;
    }

    struct hearth_profile_match *match = hearth_arena_zalloc(arena, sizeof *match);
    if (match == NULL || !copy_filter_lists(filter, arena, match)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    assert(match->n_spans == filter->n_spans && match->n_traces == filter->n_traces);
    match->of_samples = hearth_profile_filter_has_ids(filter);
    match->any_list = filter->any_list;
    match->counted = filter->counted;
    if (!make_read_hints(match, filter, arena)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret = match;
    return HEARTH_OK;
}

bool hearth_profile_match_row(const struct hearth_profile_match *match,
                              const struct hearth_read_row *row)
{
    struct hearth_profile_id id = {row->writer_id, row->profile_no};
    return match->n_profiles == 0 ||
           bsearch(&id, match->profiles, match->n_profiles, sizeof id, compare_profile_ids) != NULL;
}

static bool contains_span(const uint64_t *ids, size_t n, uint64_t id)
{
    return n > 0 && id != 0 && bsearch(&id, ids, n, sizeof id, compare_span_ids) != NULL;
}

static bool contains_trace(const struct hearth_profile_match *match, struct hearth_trace_id id)
{
    return match->n_traces > 0 && !hearth_trace_id_is_none(id) &&
           bsearch(&id, match->traces, match->n_traces, sizeof id, compare_trace_ids) != NULL;
}

bool hearth_profile_match_sample(const struct hearth_profile_match *match,
                                 const struct hearth_sample_attrs *attrs)
{
    bool span = contains_span(match->spans, match->n_spans, attrs->span_id);
    bool root = contains_span(match->local_roots, match->n_local_roots, attrs->local_root_span_id);
    bool trace =
        contains_trace(match, (struct hearth_trace_id){attrs->trace_id_hi, attrs->trace_id_lo});

    return match->any_list ? span || root || trace
                           : (span || match->n_spans == 0) && (root || match->n_local_roots == 0) &&
                                 (trace || match->n_traces == 0);
}

/* The set is kept sorted: most samples add no new span. */
void hearth_span_set_add(struct hearth_span_set *set, uint64_t span_id)
{
    size_t low = 0, high = set->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (set->ids[mid] < span_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    if (span_id == 0 || (low < set->n && set->ids[low] == span_id) ||
        set->n == HEARTH_SPAN_SET_MAX) {
        return;
    }

    memmove(set->ids + low + 1, set->ids + low, (set->n - low) * sizeof set->ids[0]);
    set->ids[low] = span_id;
    set->n++;
}

enum hearth_status hearth_row_samples(const struct hearth_read_row *row, struct hearth_arena *arena,
                                      struct hearth_attr_sample **ret, size_t *ret_n,
                                      struct hearth_err *err)
{
    uint32_t n_types;
    enum hearth_status status =
        hearth_sample_attrs_decode(row->attrs, arena, ret, ret_n, &n_types, err);
    if (status == HEARTH_OK && *ret_n > 0 && row->column >= n_types) {
        status = HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes lack value column %u",
                             (unsigned)row->column);
    }

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "profile of series %d at %lld", (int)row->series_id,
                          (long long)row->ts_ns);
    }

    return status;
}
