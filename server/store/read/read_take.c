/*
 * read_take.c -- the rows of a read's statement: profiles, blocks, segments, totals and costs
 * (contract: read_run.h).
 *
 * Rows that the database cannot exclude cheaply are skipped here: rows under a tombstone, and rows
 * that `profile` still holds although they are compacted.
 */
#include "hearth/base/mem.h"
#include "hearth/model/block.h"
#include "hearth/model/segment.h"

#include "pg/pg.h"
#include "read/read_run.h"

#include <assert.h>
#include <stdlib.h>

/* ---- state of services ---- */

static enum hearth_status fail_aborted(int32_t service_id, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_ABORTED,
                       "background work on service %d came between plan and read", (int)service_id);
}

static const struct hearth_service_state *find_service_state(const struct read *read,
                                                             int32_t service_id)
{
    const struct hearth_read_state *state = read->plan->state;

    return bsearch(&service_id, state->services, state->n_services, sizeof state->services[0],
                   hearth_compare_i32);
}

enum hearth_status hearth_read_fail_moved(struct read *read, struct hearth_err *err)
{
    read->is_stale = true;
    return HEARTH_FAIL(err, HEARTH_ABORTED, "a shard has moved between plan and read");
}

/* Compare a generation of the database with the plan's, or the number of shards with the part's. */
static enum hearth_status take_generation(struct read *read, const PGresult *result,
                                          struct hearth_err *err)
{
    if (hearth_pg_i64(result, 0, FIELD_TAG) == TAG_SHARDS) {
        read->has_shards = read->part != NULL &&
                           (size_t)hearth_pg_i32(result, 0, FIELD_SERVICE) == read->part->n_shards;
        return read->has_shards ? HEARTH_OK : hearth_read_fail_moved(read, err);
    }

    int32_t service_id = hearth_pg_i32(result, 0, FIELD_SERVICE);
    const struct hearth_service_state *state = find_service_state(read, service_id);

    if (state == NULL || state->generation != hearth_pg_i64(result, 0, FIELD_WHO)) {
        return fail_aborted(service_id, err);
    }

    read->n_current += state->generation != 0;

    return HEARTH_OK;
}

enum hearth_status hearth_read_check_generations(struct read *read, struct hearth_err *err)
{
    if (read->part != NULL && !read->has_shards) {
        return hearth_read_fail_moved(read, err);
    }

    /* Which service it is, is not known: the message names the first. */
    return read->n_current == read->n_expected
               ? HEARTH_OK
               : fail_aborted(read->now->state->services[0].service_id, err);
}

/* Set the state and the tombstones of the service of a row. */
static void find_service(struct read *read, int32_t service_id)
{
    if (read->service != NULL && read->service->service_id == service_id) {
        return;
    }

    const struct hearth_read_state *state = read->plan->state;
    read->service = find_service_state(read, service_id);

    /* Tombstones are sorted by service. */
    size_t i = 0;
    while (i < state->n_tombstones && state->tombstones[i].service_id < service_id) {
        i++;
    }

    read->tombstones = state->tombstones + i;
    read->n_tombstones = 0;
    while (i < state->n_tombstones && state->tombstones[i].service_id == service_id) {
        read->n_tombstones++;
        i++;
    }
}

static bool has_tombstone(const struct read *read, int32_t series_id, int64_t ts_ns)
{
    for (size_t i = 0; i < read->n_tombstones; i++) {
        const struct hearth_tombstone *t = &read->tombstones[i];
        if (t->from_ns <= ts_ns && ts_ns <= t->to_ns && t->n_series > 0 &&
            bsearch(&series_id, t->series_ids, t->n_series, sizeof t->series_ids[0],
                    hearth_compare_i32) != NULL) {
            return true;
        }
    }

    return false;
}

/* False: the profile is deleted, or it is read from its segment instead. */
static bool is_profile_valid(struct read *read, enum hearth_source source, int32_t service,
                             int32_t series, int64_t ts_ns)
{
    assert(hearth_source_length_ns(source) == 0);

    find_service(read, service);
    if (source == HEARTH_SOURCE_PROFILE && read->service != NULL &&
        ts_ns < read->service->compacted_to_ns) {
        return false;
    }

    return read->n_tombstones == 0 || !has_tombstone(read, series, ts_ns);
}

/* ---- common parts of rows ---- */

static enum hearth_status ensure_inflater(struct read *read, struct hearth_err *err)
{
    if (read->inflater == NULL) {
        read->inflater = hearth_inflater_new();
    }

    return read->inflater != NULL
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to decompress stored profiles");
}

static enum hearth_status find_branch(const struct read *read, const PGresult *result,
                                      const struct read_branch **ret, struct hearth_err *err)
{
    size_t i = (size_t)(hearth_pg_i64(result, 0, FIELD_TAG) & INT32_MAX);
    if (i >= read->statement.n_branches) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the database returned a row of branch %zu of a statement with %zu", i,
                           read->statement.n_branches);
    }

    *ret = &read->statement.branches[i];

    return HEARTH_OK;
}

/* ---- segments ---- */

/* Visit one value column of a row of a segment. */
static enum hearth_status visit_segment_row(struct read *read,
                                            const struct hearth_stored_row *stored,
                                            const struct hearth_series_hit *hit,
                                            struct hearth_err *err)
{
    assert(hit->series_id == stored->series_id);

    uint32_t k = hit->column;
    if (k >= stored->n_types) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a profile of series %d at %lld lacks value column %u",
                           (int)stored->series_id, (long long)stored->ts_ns, (unsigned)k);
    }

    read->n_rows++;

    /* As a total. */
    if (read->visit_total != NULL) {
        struct hearth_read_total total = {
            .service_id = hit->service_id,
            .series_id = stored->series_id,
            .column = hit->column,
            .ts_ns = stored->ts_ns,
            .total = stored->totals[k],
            .writer_id = stored->writer_id,
            .profile_no = stored->profile_no,
            .duration_ns = stored->duration_ns,
        };
        return read->visit_total(read->context, &total, err);
    }

    /* As a row. */
    struct hearth_read_row row = {
        .service_id = hit->service_id,
        .series_id = stored->series_id,
        .writer_id = stored->writer_id,
        .column = hit->column,
        .ts_ns = stored->ts_ns,
        .is_column0 = k == 0,
        .ids = stored->ids,
        .val = stored->vals[k],
        .source = HEARTH_SOURCE_SEGMENT,
        .n_profiles = 1,
        .profile_no = stored->profile_no,
        .duration_ns = stored->duration_ns,
        .attrs = stored->attrs,
    };
    if (k > 0 && hearth_columns_is_multiple(row.val)) {
        row.val0 = stored->vals[0];
    }

    return read->visit_row(read->context, &row, err);
}

/* Visit the rows of a segment, whose payload is in field `field`. */
static enum hearth_status visit_segment(struct read *read, const PGresult *result,
                                        const struct hearth_read_leg *leg, int field,
                                        struct hearth_err *err)
{
    assert(leg->source == HEARTH_SOURCE_SEGMENT);
    assert(field >= FIELD_IDS);

    /* Unpack it. */
    int32_t service_id = hearth_pg_i32(result, 0, FIELD_SERVICE);
    int64_t n_bytes = hearth_pg_i64(result, 0, FIELD_WHO);
    struct hearth_str payload = hearth_pg_str(result, 0, field);
    if (n_bytes < 0 || (uint64_t)n_bytes > HEARTH_READ_UNPACKED_BYTES || payload.p == NULL) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a segment of service %d claims %lld bytes",
                           (int)service_id, (long long)n_bytes);
    }

    HEARTH_TRY(ensure_inflater(read, err));
    hearth_buf_reset(&read->ids);
    hearth_arena_reset(&read->rows);
    HEARTH_TRY(hearth_inflate(read->inflater, HEARTH_COMPRESSION_ZSTD, payload, (size_t)n_bytes,
                              &read->ids, err));

    struct hearth_stored_row *rows;
    size_t n_rows, n_hits = 0;
    HEARTH_TRY(
        hearth_segment_decode(hearth_buf_view(&read->ids), &read->rows, &rows, &n_rows, err));
    read->n_bytes += (int64_t)payload.n;

    /* Visit the rows of requested series, times and instants. */
    const struct hearth_series_hit *hits = NULL;
    const struct hearth_read_detail *detail = &read->plan->detail;
    for (size_t i = 0; i < n_rows; i++) {
        const struct hearth_stored_row *row = &rows[i];
        if (i == 0 || row->series_id != rows[i - 1].series_id) {
            hits = hearth_read_hits_of(leg, service_id, row->series_id, &n_hits);
        }

        if (n_hits == 0 || row->ts_ns < leg->from_ns || row->ts_ns >= leg->to_ns ||
            (detail->attrs == HEARTH_ATTRS_ALONE && row->attrs.p == NULL) ||
            !is_profile_valid(read, HEARTH_SOURCE_SEGMENT, service_id, row->series_id,
                              row->ts_ns) ||
            !hearth_read_has_instant(detail, service_id, row->series_id, row->ts_ns)) {
            continue;
        }

        for (size_t h = 0; h < n_hits; h++) {
            HEARTH_TRY(visit_segment_row(read, row, &hits[h], err));
        }
    }

    return HEARTH_OK;
}

/* ---- rows ---- */

/* Unpack one column of a block into `scratch`; NULL remains NULL. */
static enum hearth_status unpack_column(struct read *read, struct hearth_buf *scratch,
                                        struct hearth_str *column, struct hearth_err *err)
{
    if (column->p == NULL) {
        return HEARTH_OK;
    }

    hearth_buf_reset(scratch);
    return hearth_unpack(read->inflater, *column, HEARTH_READ_UNPACKED_BYTES, scratch, column, err);
}

static enum hearth_status unpack_block(struct read *read, struct hearth_read_row *row,
                                       struct hearth_err *err)
{
    HEARTH_TRY(ensure_inflater(read, err));

    enum hearth_status status = unpack_column(read, &read->ids, &row->ids, err);
    status = status == HEARTH_OK ? unpack_column(read, &read->val, &row->val, err) : status;
    status = status == HEARTH_OK ? unpack_column(read, &read->val0, &row->val0, err) : status;
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "block of series %d at %lld", (int)row->series_id,
                          (long long)row->ts_ns);
    }

    return status;
}

/* Set the members of a row that the statement has only on request. */
static void take_optional_fields(const struct read *read, const PGresult *result,
                                 struct hearth_read_row *row)
{
    if (read->statement.field_val0 >= 0) {
        row->val0 = hearth_pg_str(result, 0, read->statement.field_val0);
    }

    if (read->statement.field_members >= 0) {
        row->members = hearth_pg_str(result, 0, read->statement.field_members);
    }

    if (read->statement.field_no >= 0) {
        row->profile_no = hearth_pg_i64(result, 0, read->statement.field_no);
        row->duration_ns = hearth_pg_i64(result, 0, read->statement.field_no + 1);
    }

    if (read->statement.field_attrs >= 0) {
        row->attrs = hearth_pg_str(result, 0, read->statement.field_attrs);
    }
}

enum hearth_status hearth_read_take_row(void *context, const PGresult *result,
                                        struct hearth_err *err)
{
    struct read *read = context;

    /* Generations and segments. */
    int64_t tag = hearth_pg_i64(result, 0, FIELD_TAG);
    if (tag < 0) {
        return take_generation(read, result, err);
    }

    const struct read_branch *branch;
    HEARTH_TRY(find_branch(read, result, &branch, err));
    enum hearth_source source = branch->leg->source;
    if (source == HEARTH_SOURCE_SEGMENT) {
        return visit_segment(read, result, branch->leg, FIELD_IDS, err);
    }

    /* A profile, or a block. */
    int64_t who = hearth_pg_i64(result, 0, FIELD_WHO);
    struct hearth_read_row row = {
        .service_id = hearth_pg_i32(result, 0, FIELD_SERVICE),
        .series_id = (int32_t)(who >> 32),
        .writer_id = (int32_t)(who & INT32_MAX),
        .column = branch->column,
        .ts_ns = hearth_pg_i64(result, 0, FIELD_TIME),
        .is_column0 = branch->column == 0,
        .ids = hearth_pg_str(result, 0, FIELD_IDS),
        .val = hearth_pg_str(result, 0, FIELD_VAL),
        .source = (int)source,
        .n_profiles = tag >> 32,
    };
    take_optional_fields(read, result, &row);

    read->n_rows++;
    read->n_bytes += (int64_t)(row.ids.n + row.val.n + row.val0.n + row.attrs.n);
    if (row.val.p == NULL && read->plan->detail.attrs != HEARTH_ATTRS_ALONE) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a profile of series %d at %lld lacks value column %u",
                           (int)row.series_id, (long long)row.ts_ns, (unsigned)row.column);
    }

    if (hearth_source_length_ns(source) > 0) {
        HEARTH_TRY(unpack_block(read, &row, err));
    } else if (!is_profile_valid(read, source, row.service_id, row.series_id, row.ts_ns)) {
        return HEARTH_OK;
    }

    return read->visit_row(read->context, &row, err);
}

/* ---- totals ---- */

/* Visit totals of a series, with ascending times. */
static enum hearth_status visit_series_totals(struct read *read,
                                              const struct hearth_read_totals *totals,
                                              struct hearth_err *err)
{
    if (read->visit_totals != NULL) {
        return read->visit_totals(read->context, totals, err);
    }

    struct hearth_read_total total = {
        .service_id = totals->service_id, .series_id = totals->series_id, .column = totals->column};

    for (size_t i = 0; i < totals->n; i++) {
        total.ts_ns = totals->ts_ns[i];
        total.total = totals->totals[i];
        HEARTH_TRY(read->visit_total(read->context, &total, err));
    }

    return HEARTH_OK;
}

static enum hearth_status visit_packed_totals(void *context, const int64_t *ts_ns,
                                              const int64_t *values, size_t n,
                                              struct hearth_err *err)
{
    struct read *read = context;
    const struct hearth_read_leg *leg = read->branch->leg;
    size_t from = 0;

    /* The hours at the edges of the leg reach over it. */
    while (from < n && ts_ns[from] < leg->from_ns) {
        from++;
    }

    while (n > from && ts_ns[n - 1] >= leg->to_ns) {
        n--;
    }

    if (from == n) {
        return HEARTH_OK;
    }

    const struct hearth_read_totals totals = {.service_id = read->service_id,
                                              .series_id = read->series_id,
                                              .column = read->branch->column,
                                              .ts_ns = ts_ns + from,
                                              .totals = values + from,
                                              .n = n - from};

    return visit_series_totals(read, &totals, err);
}

/* Visit the totals of the current series of a group, if it is selected. */
static enum hearth_status visit_group_series(struct read *read,
                                             const struct hearth_totals_group *group,
                                             struct hearth_str val, int64_t t0_ns,
                                             struct hearth_err *err)
{
    const struct read_branch *branch = read->branch;
    size_t n_hits;
    const struct hearth_series_hit *hits =
        hearth_read_hits_of(branch->leg, read->service_id, group->series_id, &n_hits);

    for (size_t i = 0; i < n_hits; i++) {
        if (hits[i].column == branch->column) {
            read->series_id = group->series_id;
            return hearth_totals_read(group->series_ts, val, t0_ns, visit_packed_totals, read, err);
        }
    }

    return HEARTH_OK;
}

/* Visit the selected series of a row that has the totals of several. */
static enum hearth_status visit_totals_group(struct read *read, struct hearth_str ts,
                                             struct hearth_str val, int64_t t0_ns,
                                             struct hearth_err *err)
{
    struct hearth_totals_group group = {.ts = ts, .val = val};
    bool has = true;

    HEARTH_TRY(hearth_totals_group_next(&group, &has, err));
    while (has) {
        HEARTH_TRY(visit_group_series(read, &group, group.series_val, t0_ns, err));
        HEARTH_TRY(hearth_totals_group_next(&group, &has, err));
    }

    return HEARTH_OK;
}

/*
 * The same, of series with one profile each: the field is the column `totals`, which has of each
 * series one number, then its values (build/roll_totals.c).
 */
static enum hearth_status visit_single_totals(struct read *read, const PGresult *result, int field,
                                              struct hearth_str ts, int64_t t0_ns,
                                              struct hearth_err *err)
{
    int64_t *numbers;
    size_t n, n_series = 0;
    hearth_arena_reset(&read->rows);
    HEARTH_TRY(hearth_pg_i64_array(result, 0, field, &read->rows, &numbers, &n, err));

    /* Count the series: so many times there is a value of each type. */
    struct hearth_totals_group group = {.ts = ts};
    bool has = true;
    HEARTH_TRY(hearth_totals_group_next(&group, &has, err));
    for (; has; n_series++) {
        HEARTH_TRY(hearth_totals_group_next(&group, &has, err));
    }

    size_t step = n_series == 0 ? 0 : n / n_series, column = read->branch->column;
    if (step < column + 2 || n % n_series != 0) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "%zu series at %lld share %zu numbers", n_series,
                           (long long)t0_ns, n);
    }

    group = (struct hearth_totals_group){.ts = ts};
    for (size_t i = 0; i < n_series; i++) {
        char value[HEARTH_TOTALS_ONE_BYTES];
        size_t n_bytes = hearth_totals_pack_one(numbers[i * step + 1 + column], value);
        HEARTH_TRY(hearth_totals_group_next(&group, &has, err));
        HEARTH_TRY(visit_group_series(read, &group, hearth_str_n(value, n_bytes), t0_ns, err));
    }

    return HEARTH_OK;
}

/* Visit the totals of an hour, of one series or of several. */
static enum hearth_status take_packed_totals(struct read *read, const PGresult *result,
                                             int64_t t0_ns, struct hearth_err *err)
{
    assert(read->statement.field_packed >= 0);

    struct hearth_str ts = hearth_pg_str(result, 0, read->statement.field_packed);
    struct hearth_str val = hearth_pg_str(result, 0, read->statement.field_packed + 1);

    read->n_bytes += (int64_t)(ts.n + val.n);
    if (val.p == NULL && read->series_id == 0) {
        return HEARTH_OK; /* its series have fewer types: none of them is selected */
    }

    if (ts.p == NULL || val.p == NULL) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the totals of series %d from %lld on lack column %u",
                           (int)read->series_id, (long long)t0_ns, (unsigned)read->branch->column);
    }

    if (read->series_id != 0) {
        return hearth_totals_read(ts, val, t0_ns, visit_packed_totals, read, err);
    }

    /* Where each series has one profile, the statement returns 1 here, and the column `totals`. */
    return hearth_pg_is_null(result, 0, FIELD_TOTAL)
               ? visit_totals_group(read, ts, val, t0_ns, err)
               : visit_single_totals(read, result, read->statement.field_packed + 1, ts, t0_ns,
                                     err);
}

static enum hearth_status fail_no_total(const struct read *read, int32_t series_id, int64_t ts_ns,
                                        struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT,
                       "a profile of series %d at %lld lacks the total of column %u",
                       (int)series_id, (long long)ts_ns, (unsigned)read->branch->column);
}

/* The arrays of a row: series, times and totals of n profiles. */
struct many_totals {
    const int64_t *ids, *times, *totals;
    size_t n;
};

static enum hearth_status take_arrays(struct read *read, const PGresult *result,
                                      struct many_totals *ret, struct hearth_err *err)
{
    int field = read->statement.field_packed;
    int64_t *ids_and_times, *totals;
    size_t n, n_totals;

    hearth_arena_reset(&read->rows);
    HEARTH_TRY(hearth_pg_i64_array(result, 0, field, &read->rows, &ids_and_times, &n, err));
    HEARTH_TRY(hearth_pg_i64_array(result, 0, field + 1, &read->rows, &totals, &n_totals, err));
    if (n != 2 * n_totals) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "%zu totals have %zu series and times", n_totals,
                           n);
    }

    *ret = (struct many_totals){ids_and_times, ids_and_times + n_totals, totals, n_totals};

    return HEARTH_OK;
}

/* Whether total i follows the one before it: it is of the same series, and not earlier. */
static bool continues_run(const struct many_totals *many, size_t i)
{
    return many->ids[i] == many->ids[i - 1] && many->times[i] >= many->times[i - 1];
}

/*
 * Visit the totals from *at on that are of one series, by ascending time, and valid; or pass one
 * that is not valid. *at: the first that remains.
 */
static enum hearth_status visit_run(struct read *read, const struct many_totals *many,
                                    int32_t service_id, size_t *at, struct hearth_err *err)
{
    size_t first = *at, i = first;
    int32_t series_id = (int32_t)many->ids[first];

    while (i < many->n && (i == first || continues_run(many, i)) &&
           is_profile_valid(read, HEARTH_SOURCE_PROFILE, service_id, series_id, many->times[i])) {
        if (many->totals[i] < 0) {
            return fail_no_total(read, series_id, many->times[i], err);
        }
        i++;
    }

    *at = i > first ? i : first + 1;
    if (i == first) {
        return HEARTH_OK;
    }

    const struct hearth_read_totals totals = {.service_id = service_id,
                                              .series_id = series_id,
                                              .column = read->branch->column,
                                              .ts_ns = many->times + first,
                                              .totals = many->totals + first,
                                              .n = i - first};
    read->n_rows += (int64_t)totals.n;
    read->n_bytes += (int64_t)(totals.n * sizeof totals.totals[0]);

    return visit_series_totals(read, &totals, err);
}

/* Visit the totals of a row in arrays, those of a series together. */
static enum hearth_status take_many_totals(struct read *read, const PGresult *result,
                                           struct hearth_err *err)
{
    const struct read_branch *branch = read->branch;
    struct many_totals many;

    HEARTH_TRY(take_arrays(read, result, &many, err));
    for (size_t i = 0; i < many.n;) {
        int32_t service_id = branch->services == NULL
                                 ? hearth_pg_i32(result, 0, FIELD_SERVICE)
                                 : hearth_branch_service(branch, (int32_t)many.ids[i]);
        if (service_id == 0) { /* a range of ids has others, too */
            i++;
        } else {
            HEARTH_TRY(visit_run(read, &many, service_id, &i, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_read_take_total(void *context, const PGresult *result,
                                          struct hearth_err *err)
{
    struct read *read = context;

    /* Generations and segments. */
    if (hearth_pg_i64(result, 0, FIELD_TAG) < 0) {
        return take_generation(read, result, err);
    }

    HEARTH_TRY(find_branch(read, result, &read->branch, err));
    enum hearth_source source = read->branch->leg->source;
    if (source == HEARTH_SOURCE_SEGMENT) {
        return visit_segment(read, result, read->branch->leg, read->statement.field_packed, err);
    }

    if (read->branch->in_arrays) {
        return take_many_totals(read, result, err);
    }

    /* Totals of an hour. */
    int64_t who = hearth_pg_i64(result, 0, FIELD_WHO);
    bool identity = read->statement.field_no >= 0;
    if (!hearth_branch_wants(read->branch, (int32_t)(identity ? who >> 32 : who))) {
        return HEARTH_OK; /* a range of ids has others, too */
    }

    read->service_id = hearth_pg_i32(result, 0, FIELD_SERVICE);
    read->series_id = (int32_t)(identity ? who >> 32 : who);
    read->n_rows++;
    int64_t at_ns = hearth_pg_i64(result, 0, FIELD_TIME);
    if (source == HEARTH_SOURCE_TOTALS) {
        return take_packed_totals(read, result, at_ns, err);
    }

    /* The total of a profile. */
    if (hearth_pg_is_null(result, 0, FIELD_TOTAL)) {
        return fail_no_total(read, read->series_id, at_ns, err);
    }

    struct hearth_read_total total = {
        .service_id = read->service_id,
        .series_id = read->series_id,
        .column = read->branch->column,
        .ts_ns = at_ns,
        .total = hearth_pg_i64(result, 0, FIELD_TOTAL),
    };
    if (identity) {
        total.writer_id = (int32_t)(who & INT32_MAX);
        total.profile_no = hearth_pg_i64(result, 0, read->statement.field_no);
        total.duration_ns = hearth_pg_i64(result, 0, read->statement.field_no + 1);
    }

    read->n_bytes += (int64_t)sizeof total.total;

    return is_profile_valid(read, source, total.service_id, total.series_id, at_ns)
               ? read->visit_total(read->context, &total, err)
               : HEARTH_OK;
}

/* ---- costs ---- */

enum hearth_status hearth_read_take_cost(void *context, const PGresult *result,
                                         struct hearth_err *err)
{
    struct read *read = context;

    if (hearth_pg_i64(result, 0, FIELD_TAG) < 0) {
        return take_generation(read, result, err);
    }

    const struct read_branch *branch;
    HEARTH_TRY(find_branch(read, result, &branch, err));
    size_t leg = (size_t)(branch->leg - read->now->legs) % read->plan->n_legs;
    struct hearth_leg_cost *cost = &read->costs[leg];
    if (__builtin_add_overflow(cost->n_rows, hearth_pg_i64(result, 0, FIELD_WHO), &cost->n_rows) ||
        __builtin_add_overflow(cost->n_bytes, hearth_pg_i64(result, 0, FIELD_TIME),
                               &cost->n_bytes)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the cost of a plan exceeds 64 bits");
    }

    read->n_rows++;

    return HEARTH_OK;
}
