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
#define MAX_MEAN      1000 /* of rollup-min-profiles, rollup-min-profiles-1h */
/*
 * A block of 10 minutes of the whole service pays from so many times more profiles on, which differ
 * more. Not more than COUNTED_MEANS, so that the count suffices.
 */
#define WHOLE_MEANS 8
/*
 * Series share rows of totals if they have fewer profiles in an hour than this part of the mean
 * below which hours are left out: with more, a row of their own costs little.
 */
#define GROUP_PART 5
/* With a shorter retain-raw, hours and days would be written soon after they were left out. */
#define MIN_KEPT_NS (2 * HEARTH_NS_PER_DAY)

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

static enum hearth_tier tier_of(int64_t length_ns)
{
    return length_ns == HEARTH_BUCKET_NS     ? HEARTH_TIER_10M
           : length_ns == HEARTH_NS_PER_HOUR ? HEARTH_TIER_1H
                                             : HEARTH_TIER_1D;
}

/* Cuts the ranges at built_to_ns, and drops those that end before gone_ns[tier]. */
static void forget_ranges(struct hearth_absent_set *set, int64_t built_to_ns,
                          const int64_t gone_ns[HEARTH_N_TIERS])
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        struct hearth_absent_blocks range = set->ranges[i];
        int64_t end_ns = hearth_floor_ns(built_to_ns, range.length_ns);
        range.to_ns = range.to_ns < end_ns ? range.to_ns : end_ns;
        if (range.from_ns < range.to_ns && range.to_ns > gone_ns[tier_of(range.length_ns)]) {
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

/* ---- what retention allows ---- */

/* The time from which on data is kept, by its retention; INT64_MIN: all of it is. */
static int64_t find_kept_from(int64_t kept_ns, int64_t now_ns)
{
    return kept_ns > 0 && kept_ns < now_ns ? now_ns - kept_ns : INT64_MIN;
}

/*
 * Sets for each tier whether blocks may be left out, and the time before which neither its blocks
 * nor absent ranges of them matter (INT64_MIN: all of them do). Blocks of 10 minutes may be left
 * out if profiles are kept at least as long, so that they can answer instead. Hours and days are
 * written before their profiles are dropped; their ranges end there. Also sets buckets_from_ns,
 * hours_from_ns and profiles_from_ns.
 */
static void apply_retention(struct hearth_roll *roll, const struct hearth_retention *keep,
                            int64_t gone_ns[HEARTH_N_TIERS])
{
    const int64_t kept_ns[HEARTH_N_TIERS] = {keep->roll_10m_ns, keep->roll_1h_ns, keep->roll_1d_ns};
    int64_t now_ns = hearth_clock_wall_ns();

    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        int64_t kept = kept_ns[tier];
        bool is_long = tier != HEARTH_TIER_10M;
        roll->may_lack[tier] =
            keep->profiles_ns == 0 ||
            (is_long ? keep->profiles_ns >= MIN_KEPT_NS : kept > 0 && kept <= keep->profiles_ns);
        bool ends = kept > 0 && kept < now_ns && !(is_long && keep->profiles_ns > 0);
        gone_ns[tier] = ends ? now_ns - kept - HEARTH_NS_PER_DAY : INT64_MIN;
    }

    roll->buckets_from_ns = find_kept_from(keep->roll_10m_ns, now_ns);
    roll->hours_from_ns = find_kept_from(keep->roll_1h_ns, now_ns);
    roll->profiles_from_ns = find_kept_from(keep->profiles_ns, now_ns);
}

enum hearth_status hearth_sparse_begin(struct hearth_roll *roll, int64_t built_to_ns,
                                       struct hearth_err *err)
{
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "SELECT t.name FROM hearth_data.service s JOIN hearth_data.tenant t USING"
                   " (tenant_id) WHERE s.service_id = %" PRId32,
                   roll->service_id);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));

    /* A service that is being removed has no tenant, and keeps all blocks. */
    int64_t gone_ns[HEARTH_N_TIERS] = {INT64_MIN, INT64_MIN, INT64_MIN};
    roll->buckets_from_ns = roll->hours_from_ns = roll->profiles_from_ns = INT64_MIN;
    if (PQntuples(result) == 1) {
        struct hearth_retention keep;
        hearth_store_retention(roll->builder->store, hearth_pg_str(result, 0, 0), &keep);
        apply_retention(roll, &keep, gone_ns);
    }

    PQclear(result);
    forget_ranges(&roll->absent, built_to_ns, gone_ns);

    return HEARTH_OK;
}

/* ---- counts ---- */

/* The mean below which blocks of a tier are left out. */
static int64_t find_mean(const struct hearth_roll *roll, enum hearth_tier tier)
{
    const struct hearth_store_options *options = hearth_store_live(roll->builder->store);
    int64_t mean =
        tier == HEARTH_TIER_10M ? options->rollup_min_profiles : options->rollup_min_profiles_1h;

    return mean < MAX_MEAN ? mean : MAX_MEAN;
}

/* Profiles of a range, and the number of blocks that would sum them, of 10 minutes and longer. */
struct profile_count {
    int64_t n_profiles, n_series_blocks, n_whole_blocks;
    int64_t n_series, n_shapes;
};

/* Writes the statement that counts profiles in `profile`; $1, $2: the series, and their shapes. */
static void write_profile_count(char sql[1024], const struct hearth_roll *roll, int64_t from_ns,
                                int64_t to_ns)
{
    int64_t n_buckets = (to_ns - from_ns) / HEARTH_BUCKET_NS;
    int64_t mean = find_mean(roll, HEARTH_TIER_10M), mean_1h = find_mean(roll, HEARTH_TIER_1H);
    int64_t counted = mean * n_buckets > mean_1h ? mean * n_buckets : mean_1h;

    (void)snprintf(sql, 1024,
                   "SELECT coalesce(sum(n), 0)::int8, count(*), count(DISTINCT (shape_id, b)),"
                   " count(DISTINCT series_id), count(DISTINCT shape_id) FROM"
                   " (SELECT s.series_id, s.shape_id, q.ts / " BUCKET " AS b, count(*) AS n FROM"
                   " unnest($1::int4[], $2::int4[]) s (series_id, shape_id) CROSS JOIN LATERAL"
                   " (SELECT ts FROM hearth_data.profile p WHERE p.service_id = %" PRId32
                   " AND p.series_id = s.series_id AND p.ts >= %" PRId64 " AND p.ts < %" PRId64
                   " ORDER BY p.ts LIMIT %" PRId64 ") q GROUP BY s.series_id, s.shape_id, 3) c",
                   roll->service_id, from_ns, to_ns, COUNTED_MEANS * counted);
}

/*
 * The same for compacted hours, of the whole hour. Segments of 10 minutes say how many series they
 * have. Other segments do not: they count as if each profile lay in a block of its own, as far as
 * the range has blocks for that, and as if all profiles had one shape.
 */
static void write_segment_count(char sql[1024], const struct hearth_roll *roll, int64_t from_ns)
{
    char where[96];
    (void)snprintf(where, sizeof where, "WHERE service_id = %" PRId32 " AND t0 = %" PRId64,
                   roll->service_id, hearth_floor_ns(from_ns, HEARTH_NS_PER_HOUR));
    (void)snprintf(sql, 1024,
                   "SELECT coalesce(sum(n_rows), 0)::int8, coalesce(sum(CASE WHEN ordinal >> %d > 0"
                   " THEN cardinality(series_ids) ELSE least(n_rows, %d * cardinality(series_ids))"
                   " END), 0)::int8, coalesce(least(sum(n_rows), %d), 0)::int8, (SELECT"
                   " count(DISTINCT i) FROM hearth_data.segment, unnest(series_ids) i %s),"
                   " coalesce(least(sum(n_rows), 1), 0)::int8 FROM hearth_data.segment %s",
                   HEARTH_SEGMENT_SLICE_BITS, HEARTH_SEGMENT_SLICES, HEARTH_SEGMENT_SLICES, where,
                   where);
}

/*
 * The same by the totals that are stored, of any profiles: of a series, or of several in a row. $1,
 * $2 as above.
 */
static void write_totals_count(char sql[1024], const struct hearth_roll *roll, int64_t from_ns,
                               int64_t to_ns)
{
    char from[160];
    (void)snprintf(from, sizeof from,
                   "hearth_data.hour_totals t WHERE service_id = %" PRId32 " AND t0 >= %" PRId64
                   " AND t0 < %" PRId64,
                   roll->service_id, from_ns, to_ns);

    (void)snprintf(sql, 1024,
                   "SELECT coalesce(sum(n), 0)::int8, count(*), count(DISTINCT shape_id), count(*),"
                   " count(DISTINCT shape_id) FROM (SELECT series_id, sum(n_profiles) AS n FROM"
                   " (SELECT series_id, n_profiles FROM %s AND series_id > 0 UNION ALL SELECT"
                   " (h.v >> 32)::int4, (h.v & 4294967295)::int4 FROM (SELECT totals[i] AS v FROM"
                   " (SELECT totals, generate_series(1, cardinality(totals), cardinality(vals) + 1)"
                   " AS i FROM %s AND series_id = 0) g) h) a GROUP BY series_id) h JOIN"
                   " unnest($1::int4[], $2::int4[]) s (series_id, shape_id) USING (series_id)",
                   from, from);
}

/* Runs a statement that counts; with_series: it has parameters. */
static enum hearth_status run_count(const struct hearth_roll *roll, const char *sql,
                                    bool with_series, struct profile_count *ret,
                                    struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);

    if (with_series) {
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
    }

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, &params, NULL, &result, NULL, err));
    *ret = (struct profile_count){
        .n_profiles = hearth_pg_i64(result, 0, 0),
        .n_series_blocks = hearth_pg_i64(result, 0, 1),
        .n_whole_blocks = hearth_pg_i64(result, 0, 2),
        .n_series = hearth_pg_i64(result, 0, 3),
        .n_shapes = hearth_pg_i64(result, 0, 4),
    };
    PQclear(result);

    return HEARTH_OK;
}

/* ---- the decision ---- */

/*
 * Whether a service has had profiles in the hours from from_ns to to_ns. A service with few
 * profiles often has none for hours: its ranges go on, so that there are few. A range of hours or
 * days must not go on over blocks that are there: they would be written twice (roll_fill.c). Their
 * totals may have expired, so the catalogue is asked.
 */
static enum hearth_status had_profiles(const struct hearth_roll *roll, int64_t length_ns,
                                       int64_t from_ns, int64_t to_ns, bool *ret,
                                       struct hearth_err *err)
{
    char sql[224];
    if (length_ns > HEARTH_BUCKET_NS) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT 1 FROM hearth_data.series_hour WHERE service_id = %" PRId32
                       " AND hour >= %" PRId32 " AND hour < %" PRId32 " LIMIT 1",
                       roll->service_id, hearth_hour_of(from_ns), hearth_hour_of(to_ns));
    } else {
        (void)snprintf(sql, sizeof sql,
                       "SELECT 1 FROM hearth_data.hour_totals WHERE service_id = %" PRId32
                       " AND t0 >= %" PRId64 " AND t0 < %" PRId64 " LIMIT 1",
                       roll->service_id, hearth_floor_ns(from_ns, HEARTH_NS_PER_HOUR), to_ns);
    }

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret = PQntuples(result) > 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Makes the blocks of a range absent: the last range goes on, or another begins. */
static enum hearth_status leave_out(struct hearth_roll *roll,
                                    const struct hearth_absent_blocks *next, struct hearth_err *err)
{
    struct hearth_absent_blocks *last = find_last_range(&roll->absent, next->length_ns);
    bool apart = last == NULL || last->whole != next->whole;
    if (!apart && last->to_ns < next->from_ns) {
        HEARTH_TRY(had_profiles(roll, next->length_ns, last->to_ns, next->from_ns, &apart, err));
    }

    if (!apart) {
        last->to_ns = next->to_ns;
        return HEARTH_OK;
    }

    if (!add_range(&roll->absent, next)) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "builder",
                   "blocks of few profiles are written: the rate of profiles has changed too often",
                   "service", hearth_log_i64(roll->service_id), NULL);
    }

    return HEARTH_OK;
}

/* Decides on blocks of 10 minutes. */
static enum hearth_status decide_short(struct hearth_roll *roll, const struct profile_count *count,
                                       int64_t from_ns, int64_t to_ns, struct hearth_err *err)
{
    int64_t mean = find_mean(roll, HEARTH_TIER_10M);
    struct hearth_absent_blocks next = {HEARTH_BUCKET_NS, from_ns, to_ns, false};
    if (!roll->may_lack[HEARTH_TIER_10M] || mean <= 1) {
        return HEARTH_OK;
    }

    if (count->n_profiles > 0) {
        next.whole = count->n_profiles < WHOLE_MEANS * mean * count->n_whole_blocks;
        return count->n_profiles < mean * count->n_series_blocks ? leave_out(roll, &next, err)
                                                                 : HEARTH_OK;
    }

    /* Where there are no profiles, a range that reaches up to there goes on. */
    const struct hearth_absent_blocks *last = find_last_range(&roll->absent, HEARTH_BUCKET_NS);
    next.whole = last != NULL && last->whole;

    return last != NULL && last->to_ns == from_ns ? leave_out(roll, &next, err) : HEARTH_OK;
}

/* Decides on the blocks of an hour or a day. */
static enum hearth_status decide_long(struct hearth_roll *roll, const struct profile_count *count,
                                      int64_t length_ns, int64_t t0_ns, struct hearth_err *err)
{
    enum hearth_tier tier = tier_of(length_ns);
    int64_t mean = find_mean(roll, tier);
    const struct hearth_absent_blocks next = {length_ns, t0_ns, t0_ns + length_ns,
                                              count->n_profiles < mean * count->n_shapes};

    return roll->may_lack[tier] && count->n_profiles < mean * count->n_series
               ? leave_out(roll, &next, err)
               : HEARTH_OK;
}

/* Decides whether series share rows of the totals of an hour. */
static void decide_totals(struct hearth_roll *roll, const struct profile_count *count)
{
    int64_t mean = find_mean(roll, HEARTH_TIER_1H) / GROUP_PART;
    roll->groups_totals = count->n_series > 1 && count->n_profiles < mean * count->n_series;
}

enum hearth_status hearth_sparse_decide(struct hearth_roll *roll, int64_t from_ns, int64_t to_ns,
                                        struct hearth_err *err)
{
    assert(from_ns < to_ns);

    bool is_hour = to_ns - from_ns == HEARTH_NS_PER_HOUR && find_mean(roll, HEARTH_TIER_1H) > 1;
    bool is_short = roll->may_lack[HEARTH_TIER_10M] && find_mean(roll, HEARTH_TIER_10M) > 1;
    roll->groups_totals = false;
    if (!is_hour && !is_short) {
        return HEARTH_OK;
    }

    char sql[1024];
    bool is_compacted = from_ns < roll->compacted_to_ns;
    if (is_compacted) {
        write_segment_count(sql, roll, from_ns);
    } else {
        write_profile_count(sql, roll, from_ns, to_ns);
    }

    struct profile_count count;
    HEARTH_TRY(run_count(roll, sql, !is_compacted, &count, err));
    HEARTH_TRY(decide_short(roll, &count, from_ns, to_ns, err));
    if (!is_hour) {
        return HEARTH_OK;
    }

    decide_totals(roll, &count);

    return decide_long(roll, &count, HEARTH_NS_PER_HOUR, from_ns, err);
}

enum hearth_status hearth_sparse_decide_long(struct hearth_roll *roll, int64_t length_ns,
                                             int64_t t0_ns, struct hearth_err *err)
{
    enum hearth_tier tier = tier_of(length_ns);
    bool is_hour = length_ns == HEARTH_NS_PER_HOUR;
    if ((!roll->may_lack[tier] && !is_hour) || find_mean(roll, tier) <= 1) {
        return HEARTH_OK;
    }

    char sql[1024];
    struct profile_count count;
    write_totals_count(sql, roll, t0_ns, t0_ns + length_ns);
    HEARTH_TRY(run_count(roll, sql, true, &count, err));
    if (is_hour) {
        decide_totals(roll, &count);
    }

    return decide_long(roll, &count, length_ns, t0_ns, err);
}
