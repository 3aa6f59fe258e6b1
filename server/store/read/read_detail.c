/*
 * read_detail.c -- what is wanted of single profiles besides their values, and of which ones.
 *
 * Profiles that are known by their moment are looked up one by one (read_sql.c); segments are left
 * out by their hour, and their rows here. Numbers of profiles and ids of spans are hints: they go into
 * the statement while they are few, so that only rows which can matter are sent, and whoever asks looks
 * again.
 */
#include "pg/store_state.h"
#include "read/read_internal.h"

#include <stdlib.h>

#define MAX_HOURS      2000 /* of segments, in the text of a statement */
#define MAX_NUMBERS    200
#define MAX_ATTRS_WITH 16              /* each is looked for in all attributes */
#define FAR_NS         (INT64_MIN / 2) /* of ends: beyond, they are not worth a hint that might overflow */

const struct hearth_series_hit *hearth_read_hits_of(const struct hearth_read_leg *leg,
                                                    int32_t service_id, int32_t series_id,
                                                    size_t *ret_n)
{
    size_t low = 0, high = leg->n_hits;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct hearth_series_hit *hit = &leg->hits[mid];
        bool before = hit->service_id != service_id ? hit->service_id < service_id
                                                    : hit->series_id < series_id;
        if (before) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    size_t n = 0;
    while (low + n < leg->n_hits && leg->hits[low + n].service_id == service_id &&
           leg->hits[low + n].series_id == series_id) {
        n++;
    }

    *ret_n = n;

    return leg->hits + low;
}

static int compare_instants(const void *left, const void *right)
{
    struct hearth_read_instant a, b;

    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.service_id != b.service_id) {
        return a.service_id < b.service_id ? -1 : 1;
    }

    if (a.series_id != b.series_id) {
        return a.series_id < b.series_id ? -1 : 1;
    }

    return (a.ts_ns > b.ts_ns) - (a.ts_ns < b.ts_ns);
}

bool hearth_read_wants(const struct hearth_read_detail *detail, int32_t service_id,
                       int32_t series_id, int64_t ts_ns)
{
    if (!detail->some) {
        return true;
    }

    struct hearth_read_instant key = {service_id, series_id, ts_ns};

    return detail->n_instants > 0 && bsearch(&key, detail->instants, detail->n_instants, sizeof key,
                                             compare_instants) != NULL;
}

/* ---- as SQL ---- */

void hearth_read_detail_fields(struct hearth_buf *sql, const struct read_statement *statement,
                               bool is_row)
{
    if (statement->field_no >= 0) {
        hearth_buf_cstr(sql, is_row ? ", profile_no, duration_ns"
                                    : ", NULL::int8 AS profile_no, NULL::int8 AS duration_ns");
    }

    if (statement->field_attrs >= 0) {
        hearth_buf_cstr(sql, is_row ? ", attrs" : ", NULL::bytea AS attrs");
    }
}

void hearth_read_detail_conditions(struct hearth_buf *sql, const struct hearth_read_detail *detail)
{
    if (detail->attrs == HEARTH_ATTRS_ALONE) {
        hearth_buf_cstr(sql, " AND attrs IS NOT NULL");
    }

    if (detail->n_profile_nos > 0 && detail->n_profile_nos <= MAX_NUMBERS) {
        for (size_t i = 0; i < detail->n_profile_nos; i++) {
            hearth_buf_printf(sql, "%s%lld", i == 0 ? " AND profile_no = ANY ('{" : ",",
                              (long long)detail->profile_nos[i]);
        }

        hearth_buf_cstr(sql, "}'::int8[])");
    }

    if (detail->n_attrs_with > 0 && detail->n_attrs_with <= MAX_ATTRS_WITH) {
        for (size_t i = 0; i < detail->n_attrs_with; i++) {
            hearth_buf_cstr(sql, i == 0 ? " AND (position('\\x" : " OR position('\\x");
            for (size_t k = 0; k < detail->attrs_with[i].n; k++) {
                hearth_buf_printf(sql, "%02x", (unsigned)(unsigned char)detail->attrs_with[i].p[k]);
            }

            hearth_buf_cstr(sql, "'::bytea IN attrs) > 0");
        }

        hearth_buf_cstr(sql, ")");
    }

    /* No sum of a time and a duration, which may be anything; times are those of the leg by now. */
    if (detail->has_end && detail->end_ns > FAR_NS && detail->end_ns < -FAR_NS) {
        hearth_buf_printf(sql, " AND duration_ns >= '%lld'::int8 - ts", (long long)detail->end_ns);
    }
}

void hearth_read_detail_hours(struct hearth_buf *sql, const struct hearth_read_detail *detail)
{
    if (!detail->some) {
        return;
    }

    /* Moments of one series come in order, so that few hours come again. */
    size_t n = 0;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < detail->n_instants; i++) {
        int64_t hour = hearth_hour_of(detail->instants[i].ts_ns);
        n += hour != last;
        last = hour;
    }

    if (n > MAX_HOURS) {
        return;
    }

    hearth_buf_cstr(sql, " AND t0 = ANY ('{");
    last = INT64_MIN;
    for (size_t i = 0; i < detail->n_instants; i++) {
        int64_t hour = hearth_hour_of(detail->instants[i].ts_ns);
        if (hour != last) {
            hearth_buf_printf(sql, "%s%lld", i == 0 ? "" : ",",
                              (long long)(hour * HEARTH_NS_PER_HOUR));
        }

        last = hour;
    }

    hearth_buf_cstr(sql, "}'::int8[])");
}
