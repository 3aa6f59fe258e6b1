/* roll_sparse.c -- decides which blocks are left out (contract: roll_sparse.h). */
#include "build/roll_sparse.h"

#include "hearth/base/log.h"
#include "hearth/store/background.h"

#include "build/roll.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "read/absent_blocks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Profiles of a series that are counted, in multiples of the wanted mean: more change nothing. */
#define COUNTED_MEANS 8
#define MAX_MEAN      1000 /* of rollup-min-profiles */
/*
 * A block of the whole service pays from so many times more profiles on, which differ more. Not
 * more than COUNTED_MEANS, so that the count suffices.
 */
#define WHOLE_MEANS 8

#define BUCKET "600000000000"

/* ---- the set ---- */

enum hearth_status hearth_absent_set_take(const PGresult *result, int row, int field,
                                          struct hearth_absent_set *ret, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_service_state state = {0};
    HEARTH_TRY(hearth_absent_blocks_take(result, row, field, &arena, &state, err));
    assert(state.n_absent <= HEARTH_ARRAY_LEN(ret->ranges));

    ret->n = state.n_absent;
    for (size_t i = 0; i < ret->n; i++) {
        ret->ranges[i] = state.absent[i];
    }

    return HEARTH_OK;
}

bool hearth_absent_set_param(struct hearth_pg_params *params, struct hearth_arena *arena,
                             const struct hearth_absent_set *set)
{
    int64_t *numbers = hearth_arena_array(arena, 4 * set->n + 1, sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }

    for (size_t i = 0; i < set->n; i++) {
        numbers[4 * i] = set->ranges[i].length_ns;
        numbers[4 * i + 1] = set->ranges[i].from_ns;
        numbers[4 * i + 2] = set->ranges[i].to_ns;
        numbers[4 * i + 3] = hearth_absent_blocks_flags(&set->ranges[i]);
    }

    hearth_pg_param_i64_array(params, numbers, 4 * set->n);

    return true;
}

bool hearth_absent_set_meets(const struct hearth_absent_set *set, int64_t length_ns, bool whole,
                             int64_t from_ns, int64_t to_ns)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct hearth_absent_blocks *range = &set->ranges[i];
        if (range->length_ns == length_ns && (range->whole || !whole) && range->from_ns < to_ns &&
            range->to_ns > from_ns) {
            return true;
        }
    }

    return false;
}

int64_t hearth_absent_set_first_long(const struct hearth_absent_set *set, int64_t built_to_ns)
{
    int64_t first_ns = INT64_MAX;
    for (size_t i = 0; i < set->n; i++) {
        const struct hearth_absent_blocks *range = &set->ranges[i];
        if (range->length_ns > HEARTH_BUCKET_NS && range->from_ns < built_to_ns) {
            first_ns = range->from_ns < first_ns ? range->from_ns : first_ns;
        }
    }

    return first_ns;
}

void hearth_absent_set_cut_long(struct hearth_absent_set *set, int64_t end_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        struct hearth_absent_blocks range = set->ranges[i];
        if (range.length_ns > HEARTH_BUCKET_NS && range.from_ns < end_ns) {
            range.from_ns = end_ns;
        }

        if (range.from_ns < range.to_ns) {
            set->ranges[n++] = range;
        }
    }

    set->n = n;
}

/* Cuts the ranges at built_to_ns, and drops those that end before gone_ns. */
static void forget_ranges(struct hearth_absent_set *set, int64_t built_to_ns, int64_t gone_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        struct hearth_absent_blocks range = set->ranges[i];
        int64_t end_ns = hearth_floor_ns(built_to_ns, range.length_ns);
        range.to_ns = range.to_ns < end_ns ? range.to_ns : end_ns;
        if (range.from_ns < range.to_ns && range.to_ns > gone_ns) {
            set->ranges[n++] = range;
        }
    }

    set->n = n;
}

/* Return the last range of blocks of this length, or NULL if the service has no such range. */
static struct hearth_absent_blocks *find_last_range(struct hearth_absent_set *set,
                                                    int64_t length_ns)
{
    struct hearth_absent_blocks *last = NULL;
    for (size_t i = 0; i < set->n; i++) {
        last = set->ranges[i].length_ns == length_ns ? &set->ranges[i] : last;
    }

    return last;
}

/* Adds a range after the others of its length. False: there are too many. */
static bool add_range(struct hearth_absent_set *set, const struct hearth_absent_blocks *range)
{
    if (set->n == HEARTH_MAX_ABSENT) {
        return false;
    }

    size_t at = set->n;
    while (at > 0 && set->ranges[at - 1].length_ns > range->length_ns) {
        set->ranges[at] = set->ranges[at - 1];
        at--;
    }

    set->ranges[at] = *range;
    set->n++;

    return true;
}

/* ---- the decision ---- */

/*
 * Set *ret_gone_ns to the time before which neither blocks of 10 minutes nor absent ranges of them
 * matter, or to INT64_MIN if all of them do. Set *ret_may to whether profiles are kept at least as
 * long as these blocks, so that they can answer instead.
 */
static enum hearth_status find_retention(struct hearth_roll *roll, int64_t *ret_gone_ns,
                                         bool *ret_may, struct hearth_err *err)
{
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "SELECT t.name FROM hearth_data.service s JOIN hearth_data.tenant t USING"
                   " (tenant_id) WHERE s.service_id = %" PRId32,
                   roll->service_id);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));

    /* A service that is being removed has no tenant, and keeps all blocks. */
    *ret_gone_ns = INT64_MIN;
    *ret_may = PQntuples(result) == 1;
    if (*ret_may) {
        struct hearth_retention keep;
        hearth_store_retention(roll->builder->store, hearth_pg_str(result, 0, 0), &keep);
        int64_t kept_ns = keep.roll_10m_ns, now_ns = hearth_clock_wall_ns();
        *ret_may = keep.profiles_ns == 0 || (kept_ns > 0 && kept_ns <= keep.profiles_ns);
        if (kept_ns > 0 && kept_ns < now_ns) {
            *ret_gone_ns = now_ns - kept_ns - HEARTH_NS_PER_DAY;
        }
    }

    PQclear(result);

    return HEARTH_OK;
}

/* Profiles of a range, and the number of blocks that would sum them. */
struct profile_count {
    int64_t n_profiles, n_series_blocks, n_whole_blocks;
};

/* Writes the statement that counts profiles in `profile`; $1, $2: the series, and their shapes. */
static void write_profile_count(char sql[1024], const struct hearth_roll *roll,
                                const struct hearth_sparse_range *range, int64_t min_profiles)
{
    int64_t n_buckets = (range->to_ns - range->from_ns) / HEARTH_BUCKET_NS;
    (void)snprintf(sql, 1024,
                   "SELECT coalesce(sum(n), 0)::int8, count(*), count(DISTINCT (shape_id, b)) FROM"
                   " (SELECT s.shape_id, q.ts / " BUCKET " AS b, count(*) AS n FROM"
                   " unnest($1::int4[], $2::int4[]) s (series_id, shape_id) CROSS JOIN LATERAL"
                   " (SELECT ts FROM hearth_data.profile p WHERE p.service_id = %" PRId32
                   " AND p.series_id = s.series_id AND p.ts >= %" PRId64 " AND p.ts < %" PRId64
                   " ORDER BY p.ts LIMIT %" PRId64 ") q GROUP BY s.series_id, s.shape_id, 2) c",
                   roll->service_id, range->from_ns, range->to_ns,
                   COUNTED_MEANS * min_profiles * n_buckets);
}

/*
 * The same for compacted hours, of the whole hour. Segments of 10 minutes say how many series they
 * have. Other segments do not: they count as if each profile lay in a block of its own, as far as
 * the range has blocks for that, and as if all profiles had one shape.
 */
static void write_segment_count(char sql[1024], const struct hearth_roll *roll,
                                const struct hearth_sparse_range *range)
{
    (void)snprintf(sql, 1024,
                   "SELECT coalesce(sum(n_rows), 0)::int8, coalesce(sum(CASE WHEN ordinal >> %d > 0"
                   " THEN cardinality(series_ids) ELSE least(n_rows, %d * cardinality(series_ids))"
                   " END), 0)::int8, coalesce(least(sum(n_rows), %d), 0)::int8 FROM"
                   " hearth_data.segment WHERE"
                   " service_id = %" PRId32 " AND t0 = %" PRId64,
                   HEARTH_SEGMENT_SLICE_BITS, HEARTH_SEGMENT_SLICES, HEARTH_SEGMENT_SLICES,
                   roll->service_id, hearth_floor_ns(range->from_ns, HEARTH_NS_PER_HOUR));
}

static enum hearth_status count_profiles(const struct hearth_roll *roll,
                                         const struct hearth_sparse_range *range,
                                         int64_t min_profiles, struct profile_count *ret,
                                         struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);

    char sql[1024];
    if (range->from_ns < range->compacted_to_ns) {
        write_segment_count(sql, roll, range);
    } else {
        int32_t *series = hearth_arena_array(&arena, roll->n_shapes, sizeof *series);
        int32_t *shapes = hearth_arena_array(&arena, roll->n_shapes, sizeof *shapes);
        if (series == NULL || shapes == NULL) {
            return HEARTH_FAIL_ARENA(err, &arena);
        }

        for (size_t i = 0; i < roll->n_shapes; i++) {
            series[i] = roll->shapes[i].series_id;
            shapes[i] = roll->shapes[i].shape_id;
        }

        hearth_pg_param_i32_array(&params, series, roll->n_shapes);
        hearth_pg_param_i32_array(&params, shapes, roll->n_shapes);
        write_profile_count(sql, roll, range, min_profiles);
    }

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, &params, NULL, &result, NULL, err));
    ret->n_profiles = hearth_pg_i64(result, 0, 0);
    ret->n_series_blocks = hearth_pg_i64(result, 0, 1);
    ret->n_whole_blocks = hearth_pg_i64(result, 0, 2);
    PQclear(result);

    return HEARTH_OK;
}

/*
 * Whether a service has had profiles in the hours from from_ns to to_ns, by their totals. A service
 * with few profiles often has none for hours: its ranges go on, so that there are few.
 */
static enum hearth_status had_profiles(const struct hearth_roll *roll, int64_t from_ns,
                                       int64_t to_ns, bool *ret, struct hearth_err *err)
{
    char sql[224];
    (void)snprintf(sql, sizeof sql,
                   "SELECT 1 FROM hearth_data.hour_totals WHERE service_id = %" PRId32
                   " AND t0 >= %" PRId64 " AND t0 < %" PRId64 " LIMIT 1",
                   roll->service_id, hearth_floor_ns(from_ns, HEARTH_NS_PER_HOUR), to_ns);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret = PQntuples(result) > 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Makes blocks of 10 minutes absent in the range: the last range goes on, or another begins. */
static enum hearth_status leave_out(struct hearth_roll *roll,
                                    const struct hearth_sparse_range *range, bool whole,
                                    struct hearth_err *err)
{
    struct hearth_absent_blocks *last = find_last_range(&roll->absent, HEARTH_BUCKET_NS);
    bool apart = last == NULL || last->whole != whole;
    if (!apart && last->to_ns < range->from_ns) {
        HEARTH_TRY(had_profiles(roll, last->to_ns, range->from_ns, &apart, err));
    }

    if (!apart) {
        last->to_ns = range->to_ns;
        return HEARTH_OK;
    }

    const struct hearth_absent_blocks next = {HEARTH_BUCKET_NS, range->from_ns, range->to_ns,
                                              whole};
    if (!add_range(&roll->absent, &next)) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "builder",
                   "blocks of few profiles are written: the rate of profiles has changed too often",
                   "service", hearth_log_i64(roll->service_id), NULL);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_sparse_decide(struct hearth_roll *roll,
                                        const struct hearth_sparse_range *range,
                                        struct hearth_err *err)
{
    assert(range->from_ns < range->to_ns && range->built_to_ns <= range->from_ns);

    int64_t min_profiles = hearth_store_live(roll->builder->store)->rollup_min_profiles;
    min_profiles = min_profiles < MAX_MEAN ? min_profiles : MAX_MEAN;
    int64_t gone_ns;
    bool may;
    HEARTH_TRY(find_retention(roll, &gone_ns, &may, err));
    forget_ranges(&roll->absent, range->built_to_ns, gone_ns);
    if (!may || min_profiles <= 1) {
        return HEARTH_OK;
    }

    struct profile_count count;
    HEARTH_TRY(count_profiles(roll, range, min_profiles, &count, err));
    if (count.n_profiles > 0) {
        bool few = count.n_profiles < min_profiles * count.n_series_blocks;
        bool whole = count.n_profiles < WHOLE_MEANS * min_profiles * count.n_whole_blocks;
        return few ? leave_out(roll, range, whole, err) : HEARTH_OK;
    }

    /* Where there are no profiles, a range that reaches up to there goes on. */
    const struct hearth_absent_blocks *last = find_last_range(&roll->absent, HEARTH_BUCKET_NS);
    return last != NULL && last->to_ns == range->from_ns ? leave_out(roll, range, last->whole, err)
                                                         : HEARTH_OK;
}
