/*
 * roll_range.c -- sums the stored profiles of a range, an hour or a day (contract: roll.h).
 *
 * A day is the sum of its hours. The hours that are absent are summed from their profiles, which
 * are stored by hour: so the sums of many series grow at the same time, hour after hour, and the
 * series are taken in slices.
 */
#include "build/roll.h"
#include "pg/pg.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define HOURS_OF_DAY 24
/* Series whose day is summed at the same time; each slice reads the profiles of the day again. */
#define SLICE_SERIES ((size_t)1000)
/* Limit of the memory of these sums; beyond it they are written as parts. */
#define SLICE_BYTES ((size_t)256 << 20)

/* ---- a range within an hour ---- */

/* A pass over the rows of a range: it sums series until the roll is full. */
struct sum_pass {
    struct hearth_roll *roll;
    bool has_series;   /* false: series_id is the last series of the pass before */
    bool full;         /* true: the other rows are left to the next pass */
    int32_t series_id; /* the last summed series */
    int32_t skip_to;   /* series up to this one were summed by earlier passes; 0: the first pass */
};

/* Adds a row to the roll; rows are sorted by series. A full roll ignores all further series. */
static enum hearth_status sum_stored_row(void *context, const struct hearth_stored_row *row,
                                         struct hearth_err *err)
{
    struct sum_pass *pass = context;

    /* Skip the series of earlier and later passes. */
    if (pass->full || row->series_id <= pass->skip_to) {
        return HEARTH_OK;
    }

    if (pass->has_series && row->series_id != pass->series_id && hearth_roll_is_full(pass->roll)) {
        pass->full = true;
        return HEARTH_OK;
    }

    pass->has_series = true;
    pass->series_id = row->series_id;

    return hearth_roll_add(pass->roll, row, err);
}

/* Blocks are sent between the passes: COPY cannot run while rows are received. */
enum hearth_status hearth_roll_rows(struct hearth_roll *roll, int64_t from_ns, int64_t to_ns,
                                    struct hearth_err *err)
{
    assert(from_ns < to_ns);

    const struct hearth_stored_range range = {roll->service_id, roll->compacted_to_ns, from_ns,
                                              to_ns};
    struct sum_pass pass = {.roll = roll};
    do {
        pass.skip_to = pass.series_id;
        pass.full = false;
        pass.has_series = false;
        HEARTH_TRY(hearth_stored_rows_read(&roll->builder->pg, roll->builder->inflater, &range,
                                           sum_stored_row, &pass, err));
        HEARTH_TRY(hearth_roll_end_series(roll, err));
        HEARTH_TRY(hearth_roll_send(roll, err));
    } while (pass.full);

    return hearth_roll_end(roll, err);
}

/* ---- an hour ---- */

enum hearth_status hearth_roll_hour_rows(struct hearth_roll *roll, int64_t hour_ns, bool whole,
                                         struct hearth_err *err)
{
    int64_t from_ns = roll->from_ns, to_ns = roll->to_ns;
    roll->from_ns = hour_ns;
    roll->to_ns = hour_ns + HEARTH_NS_PER_HOUR;
    roll->scope = whole ? HEARTH_ROLL_HOURS : HEARTH_ROLL_HOURS_OF_SERIES;
    enum hearth_status status = hearth_roll_rows(roll, roll->from_ns, roll->to_ns, err);
    roll->from_ns = from_ns;
    roll->to_ns = to_ns;
    roll->scope = HEARTH_ROLL_ALL;

    return status;
}

enum hearth_status hearth_roll_hour(struct hearth_roll *roll, int64_t hour_ns,
                                    struct hearth_err *err)
{
    int64_t end_ns = hour_ns + HEARTH_NS_PER_HOUR;
    const struct hearth_absent_set *absent = &roll->absent;
    bool again = hearth_absent_set_meets(absent, HEARTH_BUCKET_NS, false, hour_ns, end_ns);
    bool whole = hearth_absent_set_meets(absent, HEARTH_BUCKET_NS, true, hour_ns, end_ns);
    bool lacks_series = hearth_absent_set_meets(absent, HEARTH_NS_PER_HOUR, false, hour_ns, end_ns);
    if (hearth_absent_set_meets(absent, HEARTH_NS_PER_HOUR, true, hour_ns, end_ns)) {
        return HEARTH_OK; /* series lack the hour, too */
    }

    /* Its first blocks may have expired while it was built. */
    whole = whole || (hour_ns < roll->buckets_from_ns && hour_ns >= roll->profiles_from_ns);
    if (!whole) {
        HEARTH_TRY(hearth_roll_up(
            roll, HEARTH_TIER_1H, hour_ns,
            again || lacks_series ? HEARTH_ROLL_UP_SERVICE : HEARTH_ROLL_UP_ALL, err));
    }

    return whole || (again && !lacks_series) ? hearth_roll_hour_rows(roll, hour_ns, whole, err)
                                             : HEARTH_OK;
}

/* ---- a day ---- */

/* The sums of a day of some series, which grow hour by hour. */
struct day_pass {
    struct hearth_roll *roll;
    int64_t day_ns;
    bool series, whole; /* whose sums are wanted in the present hour */
    int32_t first_id, last_id;
    struct hearth_roll_set sums; /* of series */
    size_t at;                   /* the sum of the last row, if any */
    size_t n_bytes;              /* of the sums */
};

/* Writes the sums of the slice. Their memory is kept for the next slice. */
static enum hearth_status put_day_sums(struct day_pass *pass, struct hearth_err *err)
{
    for (size_t i = 0; i < pass->sums.n; i++) {
        hearth_block_sums_list(&pass->sums.sums[i].sums);
        HEARTH_TRY(hearth_roll_put(pass->roll, HEARTH_TIER_1D, &pass->sums.sums[i], err));
    }

    hearth_roll_set_clear(&pass->sums);
    pass->at = 0;

    return HEARTH_OK;
}

/* Writes the sums as parts before they are complete, and frees their memory. */
static enum hearth_status shed_day_sums(struct day_pass *pass, struct hearth_err *err)
{
    HEARTH_TRY(put_day_sums(pass, err));
    hearth_roll_set_release(&pass->sums);
    pass->n_bytes = 0;
    pass->roll->part++;

    return HEARTH_OK;
}

/* The sum of a key in a set, or NULL. Rows come by series: the search goes on from the last one. */
static struct hearth_roll_sum *find_next_sum(struct day_pass *pass, int32_t series_id,
                                             int32_t writer_id)
{
    for (size_t k = 0; k < pass->sums.n; k++) {
        size_t i = (pass->at + k) % pass->sums.n;
        struct hearth_roll_sum *sum = &pass->sums.sums[i];
        if (sum->series_id == series_id && sum->writer_id == writer_id) {
            pass->at = i;
            return sum;
        }
    }

    return NULL;
}

/* Adds a row to a sum; a sum that would exceed 64 bits is written as a part first. */
static enum hearth_status add_row_to_sum(struct day_pass *pass, struct hearth_roll_sum *sum,
                                         const struct hearth_stored_row *row,
                                         struct hearth_err *err)
{
    if (!hearth_roll_fits(sum, row->totals)) {
        HEARTH_TRY(hearth_roll_put(pass->roll, HEARTH_TIER_1D, sum, err));
        hearth_roll_sum_clear(sum);
        pass->roll->part++;
    }

    size_t before = sum->sums.n_bytes;
    HEARTH_TRY(hearth_block_sums_add(&sum->sums, row->ids, row->vals, row->totals, 1, err));
    pass->n_bytes += sum->sums.n_bytes - before;

    return HEARTH_OK;
}

static enum hearth_status add_row_to_series(struct day_pass *pass,
                                            const struct hearth_stored_row *row,
                                            struct hearth_err *err)
{
    struct hearth_roll_sum *sum = find_next_sum(pass, row->series_id, row->writer_id);
    if (sum == NULL || sum->sums.n_types != row->n_types) {
        sum = hearth_roll_find(pass->roll, &pass->sums, row->series_id, pass->day_ns,
                               row->writer_id, row->n_types, err);
    }

    if (sum == NULL) {
        return err->status;
    }

    HEARTH_TRY(add_row_to_sum(pass, sum, row, err));
    size_t max = pass->roll->builder->max_sum_bytes;

    return pass->n_bytes > (max > 0 ? max : SLICE_BYTES) ? shed_day_sums(pass, err) : HEARTH_OK;
}

/* Adds a row to the sum of its shape in the whole service. */
static enum hearth_status add_row_to_service(struct day_pass *pass,
                                             const struct hearth_stored_row *row,
                                             struct hearth_err *err)
{
    int32_t shape_id = hearth_roll_shape_of(pass->roll, row->series_id);
    if (shape_id == 0) {
        return HEARTH_OK;
    }

    struct hearth_roll_sum *sum =
        hearth_roll_find(pass->roll, &pass->roll->service[HEARTH_TIER_1D], -shape_id, pass->day_ns,
                         row->writer_id, row->n_types, err);
    if (sum == NULL) {
        return err->status;
    }

    HEARTH_TRY(add_row_to_sum(pass, sum, row, err));

    return hearth_roll_add_members(sum, &row->series_id, 1)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the members of a block");
}

/* A hearth_stored_row_fn. */
static enum hearth_status sum_day_row(void *context, const struct hearth_stored_row *row,
                                      struct hearth_err *err)
{
    struct day_pass *pass = context;
    if (row->series_id < pass->first_id || row->series_id > pass->last_id) {
        return HEARTH_OK;
    }

    if (pass->series) {
        HEARTH_TRY(add_row_to_series(pass, row, err));
    }

    return pass->whole ? add_row_to_service(pass, row, err) : HEARTH_OK;
}

/* The hours of a day that have profiles. */
struct day_hours {
    int64_t v_ns[HOURS_OF_DAY];
    size_t n;
};

/* The catalogue knows them as long as any roll-up is kept; totals of hours may have expired. */
static enum hearth_status list_hours(const struct hearth_roll *roll, int64_t day_ns,
                                     struct day_hours *ret, struct hearth_err *err)
{
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "SELECT DISTINCT hour FROM hearth_data.series_hour WHERE service_id = %" PRId32
                   " AND hour >= %" PRId32 " AND hour < %" PRId32 " ORDER BY 1",
                   roll->service_id, hearth_hour_of(day_ns),
                   hearth_hour_of(day_ns + HEARTH_NS_PER_DAY));
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));

    ret->n = 0;
    for (int i = 0; i < PQntuples(result) && ret->n < HOURS_OF_DAY; i++) {
        ret->v_ns[ret->n++] = hearth_pg_i32(result, i, 0) * HEARTH_NS_PER_HOUR;
    }
    PQclear(result);

    return HEARTH_OK;
}

/* What of an hour is summed from profiles for its day. */
static bool find_wanted(const struct hearth_roll *roll, int64_t hour_ns,
                        enum hearth_roll_whose whose, bool from_profiles, struct day_pass *pass)
{
    const struct hearth_absent_set *absent = &roll->absent;
    int64_t end_ns = hour_ns + HEARTH_NS_PER_HOUR;

    pass->series = whose != HEARTH_ROLL_UP_SERVICE &&
                   (from_profiles ||
                    hearth_absent_set_meets(absent, HEARTH_NS_PER_HOUR, false, hour_ns, end_ns));
    pass->whole = whose != HEARTH_ROLL_UP_SERIES &&
                  (from_profiles ||
                   hearth_absent_set_meets(absent, HEARTH_NS_PER_HOUR, true, hour_ns, end_ns));

    return pass->series || pass->whole;
}

/* Sums the hours of a slice of series, [pass->first_id, pass->last_id]. */
static enum hearth_status sum_slice(struct day_pass *pass, const struct day_hours *hours,
                                    enum hearth_roll_whose whose, bool from_profiles,
                                    struct hearth_err *err)
{
    struct hearth_roll *roll = pass->roll;

    for (size_t i = 0; i < hours->n; i++) {
        const struct hearth_stored_range range = {roll->service_id, roll->compacted_to_ns,
                                                  hours->v_ns[i],
                                                  hours->v_ns[i] + HEARTH_NS_PER_HOUR};
        if (find_wanted(roll, hours->v_ns[i], whose, from_profiles, pass)) {
            HEARTH_TRY(hearth_stored_rows_read(&roll->builder->pg, roll->builder->inflater, &range,
                                               sum_day_row, pass, err));
        }
    }

    HEARTH_TRY(put_day_sums(pass, err));

    return hearth_roll_send(roll, err);
}

enum hearth_status hearth_roll_day(struct hearth_roll *roll, int64_t day_ns,
                                   enum hearth_roll_whose whose, bool from_profiles,
                                   struct hearth_err *err)
{
    if (!from_profiles) {
        HEARTH_TRY(hearth_roll_up(roll, HEARTH_TIER_1D, day_ns, whose, err));
        if (!hearth_absent_set_meets(&roll->absent, HEARTH_NS_PER_HOUR,
                                     whose == HEARTH_ROLL_UP_SERVICE, day_ns,
                                     day_ns + HEARTH_NS_PER_DAY)) {
            return HEARTH_OK;
        }
    }

    struct day_hours hours;
    HEARTH_TRY(list_hours(roll, day_ns, &hours, err));

    /* Sum the profiles as another part, a slice of the series at a time. */
    roll->part++;
    struct day_pass pass = {.roll = roll, .day_ns = day_ns};
    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; i < roll->n_shapes && status == HEARTH_OK; i += SLICE_SERIES) {
        size_t end = i + SLICE_SERIES < roll->n_shapes ? i + SLICE_SERIES : roll->n_shapes;
        pass.first_id = roll->shapes[i].series_id;
        pass.last_id = roll->shapes[end - 1].series_id;
        status = sum_slice(&pass, &hours, whose, from_profiles, err);
    }
    hearth_roll_set_release(&pass.sums);
    HEARTH_TRY(status);
    HEARTH_TRY(hearth_roll_end(roll, err));

    /* One part of those of the hours and of the profiles. */
    roll->part++;
    const struct hearth_roll_keys keys = {.from_ns = day_ns, .to_ns = day_ns};

    return hearth_roll_merge_parts(roll, HEARTH_TIER_1D, &keys, 1, err);
}
