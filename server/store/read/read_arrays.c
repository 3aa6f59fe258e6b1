/*
 * read_arrays.c -- totals of profiles in arrays, many in one row (contract: read_internal.h).
 *
 * For each row of a result, libpq allocates memory three times and copies the names of all columns,
 * which takes longer than all else that a total costs. So totals of profiles come in arrays: a
 * nested loop over ranges of ids, or over pieces of the list of series. All profiles of a row are
 * in memory at the same time, in PostgreSQL and in hearthd, so their number needs a bound.
 */
#include "read/read_internal.h"

/* The number of ids of a range whose profiles share a row; each has few (read_id_range.c). */
#define IDS_OF_ARRAY 8192
/*
 * The longest leg whose listed series are read in arrays: the time after the last closed 10
 * minutes, and a margin. A row has 36 bytes for each profile of HEARTH_READ_SERIES_OF_ARRAY series.
 * If these series had all of 2,000 profiles a second, their row would take 130 MB.
 */
#define MAX_LEG_NS (INT64_C(1800) * HEARTH_NS_PER_SEC)

bool hearth_read_in_pieces(const struct hearth_read_leg *leg)
{
    int64_t length_ns;

    return leg->source == HEARTH_SOURCE_PROFILE &&
           !__builtin_sub_overflow(leg->to_ns, leg->from_ns, &length_ns) && length_ns <= MAX_LEG_NS;
}

/*
 * A total that is missing is -1, because series that are not selected may have fewer columns. Ids
 * of a range are int8, because the one after the last may not fit.
 */
void hearth_read_arrays_from(struct hearth_buf *sql, const struct read_branch *branch, size_t tag)
{
    hearth_buf_printf(sql,
                      " UNION ALL SELECT %s, 0::int8, 0::int8, '%zu'::int8, NULL::int8, a.* FROM ",
                      branch->services != NULL ? "0" : "h.service", tag);
    if (branch->services != NULL) {
        hearth_buf_printf(sql, "generate_series(%d::int8, %d::int8, %d) g (id)",
                          (int)branch->first_id, (int)branch->last_id, IDS_OF_ARRAY);
    } else {
        const struct read_runs *pieces = &branch->pieces;
        hearth_buf_printf(sql,
                          "unnest(($1::int4[])[%zu:%zu], ($2::int4[])[%zu:%zu],"
                          " ($3::int4[])[%zu:%zu]) h (service, lo, hi)",
                          pieces->first, pieces->last, pieces->first, pieces->last, pieces->first,
                          pieces->last);
    }

    hearth_buf_printf(sql,
                      " CROSS JOIN LATERAL (SELECT array_send(array_agg(series_id::int8) ||"
                      " array_agg(ts)), array_send(array_agg(coalesce(totals[%u], -1))) FROM ",
                      (unsigned)branch->column + 1);
}

void hearth_read_arrays_where(struct hearth_buf *sql, const struct read_branch *branch,
                              const struct read_runs *runs)
{
    if (branch->services != NULL) {
        hearth_buf_printf(sql,
                          " WHERE service_id = ANY (($1::int4[])[%zu:%zu]) AND series_id BETWEEN"
                          " g.id AND least(g.id + %d, %d)",
                          runs->first, runs->last, IDS_OF_ARRAY - 1, (int)branch->last_id);
    } else {
        hearth_buf_cstr(sql, " WHERE service_id = h.service AND series_id = ANY"
                             " (($4::int4[])[h.lo:h.hi])");
    }
}
