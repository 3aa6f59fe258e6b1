/*
 * read_detail.c -- additional fields of single profiles, and filters on them.
 *
 * If a plan is restricted to instants, profiles are looked up one by one (read_sql.c), and segments
 * of other hours are excluded by the statement, their other rows by hearth_read_has_instant.
 * Profile numbers and attribute texts are hints: if they are few, they become conditions of the
 * statement, so that fewer rows are sent. The engine checks the rows that it receives.
 */
#include "pg/store_state.h"
#include "read/read_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Up to these numbers, hints become conditions of the statement. */
#define MAX_HOURS      2000 /* hours of segments */
#define MAX_NUMBERS    200  /* profile numbers */
#define MAX_ATTRS_WITH 16   /* texts; each is searched in all attributes */

/* Ends below FAR_NS or above -FAR_NS give no hint: its subtraction could overflow. */
#define FAR_NS (INT64_MIN / 2)

const struct hearth_series_hit *hearth_read_hits_of(const struct hearth_read_leg *leg,
                                                    int32_t service_id, int32_t series_id,
                                                    size_t *ret_n)
{
    /* The first hit of the series. */
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

    /* The others follow it, sorted by column. */
    size_t n = 0;
    while (low + n < leg->n_hits && leg->hits[low + n].service_id == service_id &&
           leg->hits[low + n].series_id == series_id) {
        n++;
    }

    *ret_n = n;

    return leg->hits + low;
}

bool hearth_read_has_instant(const struct hearth_read_detail *detail, int32_t service_id,
                             int32_t series_id, int64_t ts_ns)
{
    assert(detail->instants != NULL || detail->n_instants == 0);

    if (!detail->some) {
        return true;
    }

    struct hearth_read_instant key = {service_id, series_id, ts_ns};

    return detail->n_instants > 0 && bsearch(&key, detail->instants, detail->n_instants, sizeof key,
                                             hearth_read_instant_compare) != NULL;
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

    /* Profile numbers. */
    if (detail->n_profile_nos > 0 && detail->n_profile_nos <= MAX_NUMBERS) {
        for (size_t i = 0; i < detail->n_profile_nos; i++) {
            hearth_buf_printf(sql, "%s%lld", i == 0 ? " AND profile_no = ANY ('{" : ",",
                              (long long)detail->profile_nos[i]);
        }

        hearth_buf_cstr(sql, "}'::int8[])");
    }

    /* Texts in attributes, in hexadecimal. */
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

    /*
     * The end. `ts + duration_ns` could overflow, because a stored duration may have any value; ts
     * is in the range of the leg.
     */
    if (detail->has_end && detail->end_ns > FAR_NS && detail->end_ns < -FAR_NS) {
        hearth_buf_printf(sql, " AND duration_ns >= '%lld'::int8 - ts", (long long)detail->end_ns);
    }
}

void hearth_read_detail_hours(struct hearth_buf *sql, const struct hearth_read_detail *detail)
{
    if (!detail->some) {
        return;
    }

    /* The instants of a series are sorted by time, so few hours are repeated. */
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

    /* An empty list excludes all segments. */
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
