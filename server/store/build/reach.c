/*
 * reach.c -- how far back profiles reach: from which day on roll-ups can be built again.
 *
 * A day may have a leaf and lie within its retention, and yet its profiles are gone: the retention
 * may have been raised after they were deleted, and a late profile makes a leaf again. So for each
 * series and hour, or day, that has roll-ups, one profile is searched.
 */
#include "build/reach.h"

#include "hearth/base/clock.h"
#include "hearth/store/background.h"

#include "build/roll.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>

#define HOUR "3600000000000"
#define DAY  "86400000000000"

/*
 * The begin of the last block without profiles; NULL if all blocks have some. $1: the service, $2:
 * the begin of the first block that is checked. Sums are not compared: a rebuild mends wrong sums.
 *   summed     blocks of series, by the primary keys (service_id, series_id, t0); several series
 *              share a row of totals with series_id 0 (build/roll_totals.c)
 *   compacted  series in segments, by the primary key (service_id, t0); held: their hours and days
 *   last       one probe of profile_series_ts (series_id, ts) for each block not in segments
 */
static const char REACH_SQL[] =
    "WITH r AS (SELECT built_to / " HOUR " * " HOUR " AS end_ts, compacted_to FROM"
    " hearth_data.roll_state WHERE service_id = $1),"
    " summed AS (SELECT t0, series_id, " HOUR " AS length FROM hearth_data.hour_totals"
    " WHERE service_id = $1 AND t0 >= $2 AND series_id > 0"
    " UNION SELECT t0, (totals[i] >> 32)::int4, " HOUR " FROM (SELECT t0, totals,"
    " generate_series(1, cardinality(totals), cardinality(vals) + 1) AS i FROM"
    " hearth_data.hour_totals WHERE service_id = $1 AND t0 >= $2 AND series_id = 0) g"
    " UNION SELECT t0 / " HOUR " * " HOUR ", series_id, " HOUR " FROM hearth_data.roll_10m"
    " WHERE service_id = $1 AND series_id > 0 AND t0 >= $2"
    " UNION SELECT t0, series_id, " HOUR " FROM hearth_data.roll_1h"
    " WHERE service_id = $1 AND series_id > 0 AND t0 >= $2"
    " UNION SELECT t0, series_id, " DAY " FROM hearth_data.roll_1d"
    " WHERE service_id = $1 AND series_id > 0 AND t0 >= $2),"
    " compacted AS (SELECT t0, unnest(series_ids) AS series_id FROM hearth_data.segment"
    " WHERE service_id = $1 AND t0 >= $2 AND t0 < (SELECT compacted_to FROM r)),"
    " held AS (SELECT t0, series_id, " HOUR " AS length FROM compacted UNION"
    " SELECT t0 / " DAY " * " DAY ", series_id, " DAY " FROM compacted)"
    " SELECT max(s.t0) FROM summed s WHERE s.t0 + s.length <= (SELECT end_ts FROM r)"
    " AND NOT EXISTS (SELECT 1 FROM held h WHERE h.t0 = s.t0 AND h.series_id = s.series_id"
    " AND h.length = s.length)"
    /* A deletion removes profiles first, blocks later. */
    " AND NOT EXISTS (SELECT 1 FROM hearth_data.tombstone t WHERE t.service_id = $1"
    " AND t.from_ts < s.t0 + s.length AND t.to_ts >= s.t0 AND s.series_id = ANY (t.series_ids))"
    /* One probe of the index for each block. */
    " AND (SELECT true FROM hearth_data.profile p WHERE p.service_id = $1"
    " AND p.series_id = s.series_id AND p.ts >= greatest(s.t0, (SELECT compacted_to FROM r))"
    " AND p.ts < s.t0 + s.length LIMIT 1) IS NULL";

enum hearth_status hearth_profiles_reach(struct hearth_store *store, struct hearth_pg *pg,
                                         struct hearth_str tenant, int64_t *ret_ns,
                                         struct hearth_err *err)
{
    /* The first day that has a leaf. */
    int32_t day;
    bool found;
    HEARTH_TRY(
        hearth_partitions_next_day(pg, "'profile', 'segment'", INT32_MIN, &day, &found, err));
    if (!found) {
        *ret_ns = INT64_MAX;
        return HEARTH_OK;
    }

    *ret_ns = day * HEARTH_NS_PER_DAY;

    /* The day in which the retention ends may have lost some of its profiles. */
    struct hearth_retention retention;
    hearth_store_retention(store, tenant, &retention);
    int64_t now_ns = hearth_clock_wall_ns();
    if (retention.profiles_ns > 0 && retention.profiles_ns < now_ns) {
        int64_t whole_ns = (hearth_day_of(now_ns - retention.profiles_ns) + 1) * HEARTH_NS_PER_DAY;
        *ret_ns = whole_ns > *ret_ns ? whole_ns : *ret_ns;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_profiles_check_reach(struct hearth_pg *pg, int32_t service_id,
                                               int64_t from_ns, int64_t *reach_ns,
                                               enum hearth_pg_fault *ret_fault,
                                               struct hearth_err *err)
{
    assert(*reach_ns == INT64_MAX || *reach_ns % HEARTH_NS_PER_DAY == 0);

    struct hearth_arena arena;
    struct hearth_pg_params params;
    PGresult *result = NULL;
    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, service_id);
    hearth_pg_param_i64(&params, hearth_floor_ns(from_ns, HEARTH_NS_PER_DAY));

    enum hearth_status status =
        hearth_pg_exec(pg, REACH_SQL, &params, NULL, &result, ret_fault, err);
    if (status == HEARTH_OK && !hearth_pg_is_null(result, 0, 0)) {
        int64_t whole_ns = (hearth_day_of(hearth_pg_i64(result, 0, 0)) + 1) * HEARTH_NS_PER_DAY;
        *reach_ns = whole_ns > *reach_ns ? whole_ns : *reach_ns;
    }
    PQclear(result);
    hearth_arena_release(&arena);

    return status;
}
