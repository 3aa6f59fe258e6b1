/*
 * span_window.c -- profiles that were taken while a span ran, exact to the nanosecond.
 *
 * Profiles are found by the time at which they began, not by their end. So all profiles are read
 * that began within span_window_lookback before the window, and those that ended before it are
 * dropped. Totals are those of the rows; a profile that sample labels split has a row in each of
 * its series, under one name.
 */
#include "hearth/base/mem.h"
#include "hearth/engine/span_profiles.h"
#include "hearth/selector/timeexpr.h"

#include "select/grouping.h"
#include "select/planned.h"
#include "spans/span_exact.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_PROFILE_TYPES    100
#define DEFAULT_MAX_PROFILES 100

/* One value of a profile, in one of its series. */
struct window_row {
    int64_t ts_ns, duration_ns, value, profile_no;
    int32_t writer_id;
    uint32_t hit;
};

/* Facts shared by the rows of a hit. */
struct window_hit {
    bool used, gone;
    struct hearth_labels labels; /* borrowed from the index while it is locked */
    size_t type;
};

struct window_run {
    const struct hearth_query *query;
    const struct hearth_span_window *window;
    struct hearth_found *found;
    struct hearth_limits limits;
    /* Start of the read range; start and end of the window, all included. */
    int64_t from_ns, lo_ns, hi_ns;
    /* Limits by retention and by max-query-lookback; INT64_MIN: no limit. */
    int64_t kept_from_ns, asked_from_ns;
    struct hearth_selection selection;
    struct hearth_grouping grouping;
    struct hearth_buf bytes;
    struct window_row *rows; /* [n], sorted; set after reading */
    size_t n;
    struct window_hit *hits; /* [selection.n_hits] */
    size_t *last_of_type;    /* [found->n_types]: number of the last profile counted, from 1 */
};

static int64_t clamp_sum(int64_t a, int64_t b)
{
    int64_t sum;

    if (!__builtin_add_overflow(a, b, &sum)) {
        return sum;
    }
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t choose_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- selection ---- */

static enum hearth_status check_window(const struct hearth_span_window *window,
                                       struct hearth_err *err)
{
    if (window->end_ns < window->start_ns) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the span ends (%lld ns) before it begins (%lld ns)",
                           (long long)window->end_ns, (long long)window->start_ns);
    }

    if (window->pad_ns < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the pad is %lld ns; it must not be negative",
                           (long long)window->pad_ns);
    }

    if (window->n_profile_types > MAX_PROFILE_TYPES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the request has %zu profile types; it may have %d",
                           window->n_profile_types, MAX_PROFILE_TYPES);
    }

    return HEARTH_OK;
}

static enum hearth_status set_window_range(struct window_run *run, struct hearth_err *err)
{
    const struct hearth_span_window *window = run->window;
    const struct hearth_limits *limits = &run->limits;
    int64_t now_ns = hearth_clock_wall_ns(), length;
    struct hearth_retention keep;

    /* Check the length of the window. */
    run->lo_ns = clamp_sum(window->start_ns, -window->pad_ns);
    run->hi_ns = clamp_sum(window->end_ns, window->pad_ns);
    if (limits->max_query_range_ns > 0 &&
        (__builtin_sub_overflow(run->hi_ns, run->lo_ns, &length) ||
         length > limits->max_query_range_ns)) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the window, which is the span with its pad on both sides, is longer than allowed "
            "(max-query-range)");
    }

    /* Find the start of the read range, and the limits of what can be found. */
    run->from_ns = clamp_sum(run->lo_ns, -choose_max(limits->span_window_lookback_ns, 0));
    hearth_store_retention(run->query->call.engine->store, run->query->call.tenant, &keep);
    run->kept_from_ns = hearth_plan_profiles_from(&keep, now_ns);
    run->asked_from_ns = limits->max_query_lookback_ns > 0
                             ? clamp_sum(now_ns, -limits->max_query_lookback_ns)
                             : INT64_MIN;

    return HEARTH_OK;
}

/* Select the hits of all requested types; a type may be given twice. */
static enum hearth_status select_window_types(struct window_run *run,
                                              const struct hearth_call_index *index,
                                              struct hearth_err *err)
{
    const struct hearth_span_window *window = run->window;
    struct hearth_selection *selection = &run->selection;
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_series_hits of_type[MAX_PROFILE_TYPES];
    size_t n = 0;

    /* Select the hits of each type. */
    for (size_t i = 0; i < window->n_profile_types; i++) {
        const struct hearth_series_choice choice = {window->profile_types[i], window->selector,
                                                    selection->from_ns, selection->to_ns};
        HEARTH_TRY(hearth_query_hits(run->query, &choice, index, &of_type[i], err));
        n += of_type[i].n;
    }

    /* Join them. */
    struct hearth_series_hit *hits = hearth_arena_array(arena, n, sizeof hits[0]);
    if (hits == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    n = 0;
    for (size_t i = 0; i < window->n_profile_types; i++) {
        if (of_type[i].n > 0) {
            memcpy(hits + n, of_type[i].v, of_type[i].n * sizeof hits[0]);
            n += of_type[i].n;
        }
    }

    selection->hits = hits;
    selection->n_hits = hearth_series_hits_sort(hits, n);

    return HEARTH_OK;
}

static enum hearth_status select_all_types(struct window_run *run,
                                           const struct hearth_call_index *index,
                                           struct hearth_err *err)
{
    struct hearth_selection *selection = &run->selection;
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_selector selector;

    hearth_selector_init(&selector);
    enum hearth_status status =
        hearth_selector_parse(&selector, run->window->selector, arena, NULL, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "selector");
    } else {
        const struct hearth_index_filter filter = {&selector, selection->from_ns, selection->to_ns};
        struct hearth_series_hits hits = {0};
        status = hearth_call_index_select(index, &filter, arena, &hits, err);
        selection->hits = hits.v;
        selection->n_hits = hits.n;
    }

    hearth_selector_release(&selector);

    return status;
}

static enum hearth_status select_window_hits(struct window_run *run,
                                             const struct hearth_call_index *index,
                                             struct hearth_err *err)
{
    struct hearth_selection *selection = &run->selection;
    struct hearth_arena *arena = run->query->call.arena;

    /* Read totals with identity, of profiles that end within or after the window's start. */
    *selection = (struct hearth_selection){
        .from_ns = choose_max(run->from_ns, run->asked_from_ns),
        .to_ns = run->hi_ns,
        .totals = true,
        .rows = true,
        .detail = {.identity = true, .has_end = true, .end_ns = run->lo_ns},
    };
    HEARTH_TRY(run->window->n_profile_types > 0 ? select_window_types(run, index, err)
                                                : select_all_types(run, index, err));

    size_t n = selection->n_hits;
    selection->service_ids = hearth_arena_array(arena, n, sizeof selection->service_ids[0]);
    run->hits = hearth_arena_calloc(arena, n, sizeof run->hits[0]);
    if (selection->service_ids == NULL || run->hits == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* List the services. */
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || selection->hits[i].service_id != selection->hits[i - 1].service_id) {
            selection->service_ids[selection->n_services++] = selection->hits[i].service_id;
        }
    }

    /* Prepare the grouping of the rows. */
    run->grouping = (struct hearth_grouping){.hits = selection->hits, .n_hits = n, .arena = arena};
    return hearth_grouping_make(&run->grouping, index, err);
}

/* ---- reading ---- */

static void reset_window(void *context)
{
    struct window_run *run = context;
    hearth_buf_reset(&run->bytes);
}

static enum hearth_status take_window_row(void *context, const struct hearth_read_total *total,
                                          struct hearth_err *err)
{
    struct window_run *run = context;

    /* Drop profiles that do not overlap the window. */
    int64_t end_ns = clamp_sum(total->ts_ns, choose_max(total->duration_ns, 0));

    if (end_ns < run->lo_ns || total->ts_ns > run->hi_ns) {
        return HEARTH_OK;
    }

    /* Drop series outside of the selection. */
    uint32_t hit =
        hearth_grouping_hit(&run->grouping, total->service_id, total->series_id, total->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    /* Keep the row. */
    const struct window_row row = {total->ts_ns,     choose_max(total->duration_ns, 0),
                                   total->total,     total->profile_no,
                                   total->writer_id, hit};
    hearth_buf_append(&run->bytes, &row, sizeof row);

    return !hearth_buf_failed(&run->bytes)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                             "the window has more profiles than the memory of a query holds: "
                             "shorten it or add label matchers");
}

static int compare_window_rows(const void *left, const void *right)
{
    struct window_row a, b;

    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.ts_ns != b.ts_ns) {
        return a.ts_ns < b.ts_ns ? -1 : 1;
    }

    if (a.writer_id != b.writer_id) {
        return a.writer_id < b.writer_id ? -1 : 1;
    }

    if (a.profile_no != b.profile_no) {
        return a.profile_no < b.profile_no ? -1 : 1;
    }

    if (a.hit != b.hit) {
        return a.hit < b.hit ? -1 : 1;
    }

    return (a.value > b.value) - (a.value < b.value);
}

static bool is_same_profile(const struct window_row *a, const struct window_row *b)
{
    return a->ts_ns == b->ts_ns && a->writer_id == b->writer_id && a->profile_no == b->profile_no;
}

static enum hearth_status read_window_rows(struct window_run *run, struct hearth_err *err)
{
    struct hearth_query quiet = *run->query; /* `searched` says what is missing */

    /* Read. */
    quiet.call.notes = NULL;
    const struct hearth_reader reader = {
        .reset = reset_window, .total = take_window_row, .context = run};
    HEARTH_TRY(hearth_selection_read(&quiet, &run->selection, &reader, err));

    /* Sort by profile. */
    run->rows = (struct window_row *)(void *)run->bytes.p;
    run->n = run->bytes.n / sizeof run->rows[0];
    if (run->n > 1) {
        qsort(run->rows, run->n, sizeof run->rows[0], compare_window_rows);
    }

    return HEARTH_OK;
}

/* ---- the answer ---- */

static enum hearth_status name_hit_type(struct window_run *run, struct window_hit *hit,
                                        struct hearth_err *err)
{
    struct hearth_found *found = run->found;
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_str id = hearth_labels_get(&hit->labels, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE));

    assert(found->n_types <= run->selection.n_hits);

    for (hit->type = 0; hit->type < found->n_types; hit->type++) {
        if (hearth_str_eq(found->types[hit->type].profile_type, id)) {
            return HEARTH_OK;
        }
    }

    /* Add a new type. */
    struct hearth_found_type *type = &found->types[found->n_types++];
    *type = (struct hearth_found_type){
        .profile_type = hearth_arena_str(arena, id),
        .unit =
            hearth_arena_str(arena, hearth_labels_get(&hit->labels, HEARTH_STR(HEARTH_LABEL_UNIT))),
    };

    return type->profile_type.p != NULL && type->unit.p != NULL ? HEARTH_OK
                                                                : HEARTH_FAIL_ARENA(err, arena);
}

/*
 * Find labels and types of the hits that have rows; rows of series deleted in the meantime are
 * dropped.
 */
static enum hearth_status name_used_hits(struct window_run *run,
                                         const struct hearth_call_index *index,
                                         struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n_used = 0, n_kept = 0;

    /* Mark the hits that have rows. */
    for (size_t i = 0; i < run->n; i++) {
        struct window_hit *hit = &run->hits[run->rows[i].hit];
        n_used += !hit->used;
        hit->used = true;
    }

    /* Find their labels. */
    run->found->types = hearth_arena_array(arena, n_used, sizeof run->found->types[0]);
    run->last_of_type = hearth_arena_calloc(arena, n_used, sizeof run->last_of_type[0]);
    if (run->found->types == NULL || run->last_of_type == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < run->selection.n_hits; i++) {
        struct window_hit *hit = &run->hits[i];
        if (!hit->used) {
            continue;
        }

        enum hearth_status status =
            hearth_call_index_labels(index, &run->selection.hits[i], arena, &hit->labels, err);
        hit->gone = status == HEARTH_NOT_FOUND;
        HEARTH_TRY(hit->gone ? HEARTH_OK : status);
        HEARTH_TRY(hit->gone ? HEARTH_OK : name_hit_type(run, hit, err));
    }

    /* Drop the rows of deleted series. */
    for (size_t i = 0; i < run->n; i++) {
        if (!run->hits[run->rows[i].hit].gone) {
            run->rows[n_kept++] = run->rows[i];
        }
    }

    run->n = n_kept;

    return HEARTH_OK;
}

static enum hearth_status add_window_profile(struct window_run *run, const struct window_row *row,
                                             struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_found_profile *out = &run->found->profiles[run->found->n_profiles++];
    const struct hearth_labels *labels = &run->hits[row->hit].labels;

    *out = (struct hearth_found_profile){
        .id = {row->writer_id, row->profile_no},
        .service =
            hearth_arena_str(arena, hearth_labels_get(labels, HEARTH_STR(HEARTH_LABEL_SERVICE))),
        .labels = {hearth_arena_array(arena, labels->n, sizeof out->labels.v[0]), 0},
        .time_ns = row->ts_ns,
        .duration_ns = row->duration_ns,
    };

    /* Copy the labels without those of the type. */
    for (size_t i = 0; out->labels.v != NULL && i < labels->n; i++) {
        if (!hearth_label_names_type(labels->v[i].name)) {
            out->labels.v[out->labels.n++] =
                (struct hearth_label){hearth_arena_str(arena, labels->v[i].name),
                                      hearth_arena_str(arena, labels->v[i].value)};
        }
    }

    return out->labels.v == NULL || arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum seen_kind {
    SEEN_ROW,
    SEEN_PROFILE,
    SEEN_TYPE, /* a type of a profile */
};

/*
 * Whether another window of the lookup counted it; it is counted from now on. *failed: memory was
 * refused.
 */
static bool was_counted(const struct window_run *run, enum seen_kind kind,
                        const struct window_row *row, bool *failed)
{
    const struct hearth_series_hit *hit = &run->selection.hits[row->hit];
    struct hearth_str type = run->found->types[run->hits[row->hit].type].profile_type;
    uint64_t parts[6] = {(uint64_t)kind, (uint64_t)(int64_t)row->writer_id,
                         (uint64_t)row->profile_no};
    bool is_new = true;

    if (run->window->seen == NULL) {
        return false;
    }

    /* Make the key of the row, the profile or the type. */
    if (kind == SEEN_ROW) {
        parts[3] = (uint64_t)row->ts_ns;
        parts[4] = (uint64_t)(int64_t)hit->series_id;
        parts[5] = hit->column;
    } else if (kind == SEEN_TYPE) {
        struct hearth_hash128 name = hearth_hash128(type.p, type.n, hearth_hash_process_seed());
        parts[3] = name.hi;
        parts[4] = name.lo;
    }

    /* Count it. */
    struct hearth_hash128 key = hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
    *failed = hearth_idmap_intern(run->window->seen, key, 0, &is_new) == HEARTH_IDMAP_NONE;

    return !is_new;
}

/* Add a row to its type. number: of its profile within this window, from 1. */
static enum hearth_status add_window_row(struct window_run *run, const struct window_row *row,
                                         size_t number, struct hearth_err *err)
{
    size_t t = run->hits[row->hit].type;
    struct hearth_found_type *type = &run->found->types[t];
    bool failed = false;

    /* Rows that another window counted do not count again. */
    if (was_counted(run, SEEN_ROW, row, &failed)) {
        return HEARTH_OK;
    }

    /* Count the profile once for its type. */
    if (run->last_of_type[t] != number && !failed) {
        run->last_of_type[t] = number;
        type->n_profiles += !was_counted(run, SEEN_TYPE, row, &failed);
    }

    if (failed) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the profiles of a window");
    }

    /* Add the value. */
    return __builtin_add_overflow(type->total, row->value, &type->total)
               ? HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                             "the total of " HEARTH_STR_FMT " exceeds 64 bits",
                             HEARTH_STR_ARG(type->profile_type))
               : HEARTH_OK;
}

static enum hearth_status count_window_profiles(struct window_run *run, struct hearth_err *err)
{
    struct hearth_found *found = run->found;
    struct hearth_arena *arena = run->query->call.arena;
    size_t max = run->window->max_profiles > 0 ? run->window->max_profiles : DEFAULT_MAX_PROFILES;
    size_t number = 0;

    found->profiles =
        hearth_arena_array(arena, max < run->n ? max : run->n, sizeof found->profiles[0]);
    if (found->profiles == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Count each profile once, and list the first ones. */
    for (size_t i = 0; i < run->n; i++) {
        const struct window_row *row = &run->rows[i];
        bool failed = false;
        if (i == 0 || !is_same_profile(row, row - 1)) {
            number++;
            if (!was_counted(run, SEEN_PROFILE, row, &failed)) {
                found->n_all_profiles++;
                if (found->n_profiles < max) {
                    HEARTH_TRY(add_window_profile(run, row, err));
                }
            }
        }

        if (failed) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the profiles of a window");
        }
        HEARTH_TRY(add_window_row(run, row, number, err));
    }

    return HEARTH_OK;
}

static int compare_found_types(const void *left, const void *right)
{
    const struct hearth_found_type *a = left, *b = right;
    return hearth_str_cmp(a->profile_type, b->profile_type);
}

static enum hearth_status answer_window(struct window_run *run, struct hearth_err *err)
{
    const struct hearth_call_index *index;

    if (run->n == 0) {
        return HEARTH_OK;
    }

    /* Names are borrowed from the index, so it stays locked. */
    HEARTH_TRY(hearth_call_index_lock(&run->query->call, &index, err));
    enum hearth_status status = name_used_hits(run, index, err);
    status = status == HEARTH_OK ? count_window_profiles(run, err) : status;
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    /* Sort the types, and set the times. */
    struct hearth_found *found = run->found;
    if (run->n > 0) {
        int64_t first_ns = run->rows[0].ts_ns, last_ns = run->rows[run->n - 1].ts_ns;
        qsort(found->types, found->n_types, sizeof found->types[0], compare_found_types);
        found->certainty = HEARTH_CERTAINTY_WINDOW;
        found->start_ms = first_ns / HEARTH_NS_PER_MS - (first_ns % HEARTH_NS_PER_MS < 0);
        found->end_ms = last_ns / HEARTH_NS_PER_MS + (last_ns % HEARTH_NS_PER_MS > 0);
    }

    return HEARTH_OK;
}

/* ---- texts ---- */

static void describe_window(const struct window_run *run, struct hearth_buf *out)
{
    char lo[32], hi[32], from[32], kept[32], back[48];

    /* The window. */
    hearth_duration_format(run->window->pad_ns, back);
    hearth_buf_cstr(out, "profiles of ");
    hearth_buf_str(out, run->window->selector); /* complete, to be copied into a query */
    hearth_buf_printf(out, " that were being taken from %s to %s (the span with %s on both sides)",
                      hearth_plan_moment(run->lo_ns, lo), hearth_plan_moment(run->hi_ns, hi), back);

    /* The look-back. */
    hearth_duration_format(choose_max(run->limits.span_window_lookback_ns, 0), back);
    hearth_buf_printf(out, "; not those that began before %s (span-window-lookback: %s)",
                      hearth_plan_moment(run->from_ns, from), back);

    /* Limits of what can be found. */
    if (run->asked_from_ns > run->from_ns) {
        hearth_buf_printf(out, "; queries may look back to %s (max-query-lookback)",
                          hearth_plan_moment(run->asked_from_ns, from));
    }

    if (run->kept_from_ns > run->from_ns) {
        hearth_buf_printf(out, "; profiles before %s are gone (retain-raw)",
                          hearth_plan_moment(run->kept_from_ns, kept));
    }
}

static void describe_empty_window(const struct window_run *run, struct hearth_buf *out)
{
    char moment[32];

    if (run->n > 0) {
        return;
    }

    /* The first reason that applies. */
    if (run->kept_from_ns > run->hi_ns) {
        hearth_buf_printf(out, "profiles were kept from %s on, and the window ends before",
                          hearth_plan_moment(run->kept_from_ns, moment));
    } else if (run->asked_from_ns > run->hi_ns) {
        hearth_buf_printf(out, "queries may look back to %s, and the window ends before",
                          hearth_plan_moment(run->asked_from_ns, moment));
    } else if (run->selection.n_hits == 0) {
        hearth_buf_printf(out, "no series that the selector takes has profiles%s near the window",
                          run->window->n_profile_types > 0 ? " of these types" : "");
    } else {
        hearth_buf_cstr(out, "no profile was being taken in the window");
    }

    if (run->kept_from_ns > run->from_ns && run->kept_from_ns <= run->hi_ns) {
        hearth_buf_printf(out, "; those before %s are gone",
                          hearth_plan_moment(run->kept_from_ns, moment));
    }
}

static enum hearth_status write_window_texts(struct window_run *run, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_buf text;

    /* Write `searched`. */
    hearth_buf_init(&text, 0);
    describe_window(run, &text);
    run->found->searched = hearth_arena_str(arena, hearth_buf_view(&text));
    bool failed = hearth_buf_failed(&text);

    /* Write `reason`. */
    hearth_buf_reset(&text);
    describe_empty_window(run, &text);
    run->found->reason = hearth_arena_str(arena, hearth_buf_view(&text));
    failed = failed || hearth_buf_failed(&text);
    hearth_buf_release(&text);

    run->found->selector = hearth_arena_str(arena, run->window->selector);

    return failed || run->found->searched.p == NULL || run->found->reason.p == NULL ||
                   run->found->selector.p == NULL
               ? HEARTH_FAIL_ARENA(err, arena)
               : HEARTH_OK;
}

/* ---- the search ---- */

static enum hearth_status search_window(struct window_run *run, struct hearth_err *err)
{
    const struct hearth_call_index *index;

    /* Select. */
    HEARTH_TRY(hearth_call_index_lock(&run->query->call, &index, err));
    enum hearth_status status = select_window_hits(run, index, err);
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    /* Read and count. */
    if (run->selection.from_ns <= run->selection.to_ns) {
        HEARTH_TRY(read_window_rows(run, err));
    }

    HEARTH_TRY(answer_window(run, err));

    return write_window_texts(run, err);
}

enum hearth_status hearth_span_window(const struct hearth_query *query,
                                      const struct hearth_span_window *window,
                                      struct hearth_found *ret, struct hearth_err *err)
{
    struct window_run run = {.query = query, .window = window, .found = ret};

    assert(query != NULL && ret != NULL);

    *ret = (struct hearth_found){0};

    /* Check the window, and choose the range. */
    HEARTH_TRY(check_window(window, err));
    hearth_call_limits(&query->call, &run.limits);
    HEARTH_TRY(set_window_range(&run, err));

    /* Search. */
    int64_t limit = run.limits.max_query_memory_bytes;
    hearth_buf_init(&run.bytes, limit > 0 ? (size_t)limit : 0);
    run.bytes.budget = query->call.arena->budget;
    enum hearth_status status = search_window(&run, err);
    hearth_buf_release(&run.bytes);

    return status;
}
