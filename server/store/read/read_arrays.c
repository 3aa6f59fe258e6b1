/*
 * read_arrays.c -- totals of profiles in arrays, many in one row (contract: read_internal.h).
 *
 * For each row of a result, libpq allocates memory three times and copies the names of all columns,
 * which takes longer than all else that a total costs. So totals of profiles come in arrays: a
 * nested loop over ranges of ids, or over pieces of the list of series. PostgreSQL makes arrays of
 * all totals of one of these, and sends slices of them as rows: libpq keeps the room of the largest
 * row that a connection has received.
 */
#include "read/read_internal.h"

/* The most profiles of a row. Each has 36 bytes, so that a row takes 144 KiB. */
#define PROFILES_OF_ROW 4096
/* The number of ids of a range whose profiles share arrays; each has few (read_id_range.c). */
#define IDS_OF_ARRAY 8192
/*
 * The longest leg whose listed series are read in arrays: the time after the last closed 10
 * minutes, and a margin. The arrays in PostgreSQL have 24 bytes for each profile of
 * HEARTH_READ_SERIES_OF_ARRAY series. If these had all of 2,000 profiles a second, they would take
 * 86 MB.
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
                      " CROSS JOIN LATERAL (SELECT array_send(ids[i:i+%d] || times[i:i+%d]),"
                      " array_send(totals[i:i+%d]) FROM (SELECT count(*) n,"
                      " array_agg(series_id::int8) ids, array_agg(ts) times,"
                      " array_agg(coalesce(totals[%u], -1)) totals FROM ",
                      PROFILES_OF_ROW - 1, PROFILES_OF_ROW - 1, PROFILES_OF_ROW - 1,
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

void hearth_read_arrays_end(struct hearth_buf *sql)
{
    hearth_buf_printf(sql, ") t, generate_series(1, n, %d) i) a", PROFILES_OF_ROW);
}
