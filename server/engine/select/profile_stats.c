/*
 * profile_stats.c -- times of the oldest and the newest profile of a tenant.
 *
 * The label index knows which hours have profiles; the times of one hour are read, for all series
 * that are active in it. For the newest hour, its last minute before now is tried first: an active
 * tenant has profiles there, and they are few.
 */
#include "select/planned.h"

#include <assert.h>

/* Hours may be empty if all of their profiles were deleted a moment ago, but not many. */
#define MAX_HOURS 48

struct time_span {
    bool any;
    int64_t oldest_ns, newest_ns;
};

static void reset_time_span(void *context)
{
    *(struct time_span *)context = (struct time_span){0};
}

static enum hearth_status widen_time_span(void *context, const struct hearth_read_total *total,
                                          struct hearth_err *err)
{
    struct time_span *span = context;
    (void)err;
    span->oldest_ns = !span->any || total->ts_ns < span->oldest_ns ? total->ts_ns : span->oldest_ns;
    span->newest_ns = !span->any || total->ts_ns > span->newest_ns ? total->ts_ns : span->newest_ns;
    span->any = true;
    return HEARTH_OK;
}

/*
 * Selects one column of each series that is active in the range: the times of all columns are
 * equal.
 */
static enum hearth_status select_all_series(const struct hearth_query *query, int64_t from_ns,
                                            int64_t to_ns, struct hearth_selection *ret,
                                            struct hearth_err *err)
{
    const struct hearth_call_index *index;
    struct hearth_selector all;
    struct hearth_selection selection = {.from_ns = from_ns, .to_ns = to_ns, .totals = true};
    struct hearth_series_hits hits;

    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    hearth_selector_init(&all);
    const struct hearth_index_filter filter = {&all, from_ns, to_ns};
    enum hearth_status status =
        hearth_call_index_select(index, &filter, query->call.arena, &hits, err);
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    selection.hits = hits.v;
    selection.service_ids =
        hearth_arena_array(query->call.arena, hits.n, sizeof selection.service_ids[0]);
    if (selection.service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    /* Hits are sorted by service; they are compacted in place. */
    for (size_t i = 0; i < hits.n; i++) {
        const struct hearth_series_hit hit = hits.v[i];
        if (selection.n_hits > 0 &&
            selection.hits[selection.n_hits - 1].series_id == hit.series_id) {
            continue;
        }
        if (selection.n_hits == 0 ||
            selection.hits[selection.n_hits - 1].service_id != hit.service_id) {
            selection.service_ids[selection.n_services++] = hit.service_id;
        }
        selection.hits[selection.n_hits++] = hit;
    }

    *ret = selection;
    return HEARTH_OK;
}

/* Reads the oldest and newest time in a range. */
static enum hearth_status read_time_span(const struct hearth_query *query, int64_t from_ns,
                                         int64_t to_ns, struct time_span *span,
                                         struct hearth_err *err)
{
    struct hearth_selection selection;
    struct hearth_query quiet =
        *query; /* without notes about retention, which do not matter here */

    quiet.call.notes = NULL;
    reset_time_span(span);
    HEARTH_TRY(select_all_series(query, from_ns, to_ns, &selection, err));
    const struct hearth_reader reader = {
        .reset = reset_time_span, .total = widen_time_span, .context = span};
    return hearth_selection_read(&quiet, &selection, &reader, err);
}

/* The first time for which times of single profiles are stored; INT64_MIN: no bound. */
static int64_t find_first_kept_time(const struct hearth_query *query)
{
    struct hearth_retention retention;

    hearth_call_retention(&query->call, &retention);
    if (retention.profiles_ns == 0 || retention.roll_1h_ns == 0) {
        return INT64_MIN;
    }

    int64_t longest =
        retention.profiles_ns > retention.roll_1h_ns ? retention.profiles_ns : retention.roll_1h_ns;
    return hearth_clock_wall_ns() - longest;
}

/*
 * Finds the first hour with profiles that is not before *hour, or the last one that is not after
 * it.
 */
static enum hearth_status find_hour_with_profiles(const struct hearth_query *query, bool oldest,
                                                  int64_t *hour, bool *ret_found,
                                                  struct hearth_err *err)
{
    const struct hearth_call_index *index;
    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_call_index_hour(index, oldest, hour, ret_found, err);
    hearth_call_index_unlock(index);
    return status;
}

/*
 * Reads the times of one hour; for the newest hour, only those of its last minute if there are any.
 */
static enum hearth_status read_hour_times(const struct hearth_query *query, int64_t hour,
                                          bool oldest, struct time_span *span,
                                          struct hearth_err *err)
{
    int64_t from_ns = hour * HEARTH_NS_PER_HOUR, to_ns = from_ns + HEARTH_NS_PER_HOUR - 1;
    int64_t minute_ago_ns = hearth_clock_wall_ns() - 60 * HEARTH_NS_PER_SEC;
    if (!oldest && minute_ago_ns > from_ns && minute_ago_ns < to_ns) {
        HEARTH_TRY(read_time_span(query, minute_ago_ns, to_ns, span, err));
        if (span->any) {
            return HEARTH_OK;
        }
    }

    return read_time_span(query, from_ns, to_ns, span, err);
}

/*
 * Finds the oldest or newest time: hour by hour, until one has profiles or only its hour is known.
 */
static enum hearth_status find_time_end(const struct hearth_query *query, bool oldest,
                                        bool *ret_any, int64_t *ret_ns, struct hearth_err *err)
{
    int64_t kept_from_ns = find_first_kept_time(query);
    int64_t hour = oldest ? INT32_MIN : INT32_MAX;

    *ret_any = false;
    for (int i = 0; i < MAX_HOURS; i++) {
        bool found;
        struct time_span span = {0};
        HEARTH_TRY(find_hour_with_profiles(query, oldest, &hour, &found, err));
        if (!found) {
            return HEARTH_OK;
        }
        int64_t from_ns = hour * HEARTH_NS_PER_HOUR;
        if (from_ns >= kept_from_ns) {
            HEARTH_TRY(read_hour_times(query, hour, oldest, &span, err));
        }
        if (span.any || from_ns < kept_from_ns) {
            *ret_any = true;
            *ret_ns = !span.any ? from_ns : oldest ? span.oldest_ns : span.newest_ns;
            return HEARTH_OK;
        }
        hour += oldest ? 1 : -1;
    }

    return HEARTH_OK;
}

static int64_t floor_to_ms(int64_t ns)
{
    return ns / HEARTH_NS_PER_MS - (ns % HEARTH_NS_PER_MS < 0);
}

enum hearth_status hearth_query_profile_stats(const struct hearth_query *query,
                                              struct hearth_profile_stats *ret,
                                              struct hearth_err *err)
{
    assert(query != NULL && ret != NULL);

    struct hearth_profile_stats stats = {0};
    int64_t oldest_ns = 0, newest_ns = 0;

    HEARTH_TRY(find_time_end(query, true, &stats.any, &oldest_ns, err));
    if (stats.any) {
        HEARTH_TRY(find_time_end(query, false, &stats.any, &newest_ns, err));
        stats.oldest_ms = floor_to_ms(oldest_ns);
        stats.newest_ms = floor_to_ms(newest_ns > oldest_ns ? newest_ns : oldest_ns);
    }

    *ret = stats;
    return HEARTH_OK;
}
