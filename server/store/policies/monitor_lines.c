/*
 * monitor_lines.c -- reads hearth_data.monitor_line and monitor_minute (contract:
 * hearth/store/store_policies.h).
 */
#include "hearth/store/store_policies.h"

#include "catalog/services.h"
#include "pg/pg.h"
#include "session/session.h"

#include <assert.h>

#define MS_PER_MINUTE 60000

/* A read of lines: rows of one line follow each other, by minute. */
struct line_read {
    const struct hearth_scope *scope;
    const struct hearth_monitor_filter *filter;
    struct hearth_pg_params params;
    struct hearth_arena scratch; /* for one row */
    struct hearth_monitor_line *lines;
    size_t n, cap;
    int64_t line_id;  /* of the last line */
    size_t value_cap; /* of the last line */
    size_t n_values;  /* of all lines */
};

/* Appends a line without values, with the names of the row. */
static enum hearth_status begin_line(struct line_read *read, const PGresult *row,
                                     struct hearth_err *err)
{
    assert(read->n <= read->cap);

    /* Make room in the array. */
    if (read->n == read->cap) {
        size_t cap = read->cap == 0 ? 64 : read->cap * 2;
        struct hearth_monitor_line *more =
            hearth_arena_array(read->scope->arena, cap, sizeof more[0]);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, read->scope->arena);
        }

        if (read->n > 0) {
            memcpy(more, read->lines, read->n * sizeof more[0]);
        }

        read->lines = more;
        read->cap = cap;
    }

    /* Take the names. */
    int32_t monitor = hearth_pg_i32(row, 0, 3);
    read->line_id = hearth_pg_i64(row, 0, 0);
    read->value_cap = 0;
    read->lines[read->n++] = (struct hearth_monitor_line){
        .instance = hearth_arena_str(read->scope->arena, hearth_pg_str(row, 0, 1)),
        .process = hearth_arena_str(read->scope->arena, hearth_pg_str(row, 0, 2)),
        .monitor = (enum hearth_monitor)monitor,
        .uri = hearth_arena_str(read->scope->arena, hearth_pg_str(row, 0, 4)),
    };

    return read->scope->arena->refused ? HEARTH_FAIL_ARENA(err, read->scope->arena) : HEARTH_OK;
}

/* Appends a value to the last line. */
static enum hearth_status add_line_value(struct line_read *read, struct hearth_monitor_value value,
                                         struct hearth_err *err)
{
    assert(read->n > 0);
    struct hearth_monitor_line *line = &read->lines[read->n - 1];
    assert(line->n_values <= read->value_cap);

    if (read->filter->max_values > 0 && read->n_values == read->filter->max_values) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "more than %zu values, which max-points allows: ask for less time, one"
                           " instance or one monitor",
                           read->filter->max_values);
    }

    /* Make room in the line. */
    if (line->n_values == read->value_cap) {
        size_t cap = read->value_cap == 0 ? 16 : read->value_cap * 2;
        struct hearth_monitor_value *more =
            hearth_arena_array(read->scope->arena, cap, sizeof more[0]);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, read->scope->arena);
        }

        if (line->n_values > 0) {
            memcpy(more, line->values, line->n_values * sizeof more[0]);
        }

        line->values = more;
        read->value_cap = cap;
    }

    line->values[line->n_values++] = value;
    read->n_values++;

    return HEARTH_OK;
}

/*
 * Moves the last value to its place by time. Values are nearly sorted: not if two servers took
 * them, or if a clock was set. Values of equal times keep their order.
 */
static void sort_last_value(struct hearth_monitor_line *line)
{
    assert(line->n_values > 0);

    struct hearth_monitor_value *values = line->values, last = values[line->n_values - 1];
    size_t i = line->n_values - 1;
    for (; i > 0 && values[i - 1].at_ms > last.at_ms; i--) {
        values[i] = values[i - 1];
    }

    values[i] = last;
}

/* Takes the values of one line and minute that lie within the filter's time. */
static enum hearth_status take_minute(void *context, const PGresult *row, struct hearth_err *err)
{
    struct line_read *read = context;

    /* The first minute of a line begins the line. */
    hearth_arena_reset(&read->scratch);
    if (read->n == 0 || hearth_pg_i64(row, 0, 0) != read->line_id) {
        HEARTH_TRY(begin_line(read, row, err));
    }

    /* Read the times and values. */
    int64_t minute_ms = (int64_t)hearth_pg_i32(row, 0, 5) * MS_PER_MINUTE;
    int32_t *offsets;
    double *values;
    size_t n, n_values;
    HEARTH_TRY(hearth_pg_i32_array(row, 0, 6, &read->scratch, &offsets, &n, err));
    HEARTH_TRY(hearth_pg_f64_array(row, 0, 7, &read->scratch, &values, &n_values, err));

    /* Append them. */
    for (size_t i = 0; i < n && i < n_values; i++) {
        int64_t at_ms = minute_ms + offsets[i];
        if (at_ms >= read->filter->start_ms && at_ms <= read->filter->end_ms) {
            HEARTH_TRY(add_line_value(read, (struct hearth_monitor_value){at_ms, values[i]}, err));
            sort_last_value(&read->lines[read->n - 1]);
        }
    }

    return HEARTH_OK;
}

static int32_t minute_of(int64_t ms)
{
    int64_t minute = ms < 0 ? 0 : ms / MS_PER_MINUTE;
    return minute > INT32_MAX ? INT32_MAX : (int32_t)minute;
}

/*
 * The minutes of all lines that pass the filter, by line and minute. $1 tenant, $2 fingerprint of
 * the service, $3 instance and $4 process or '', $5 bits of monitors or 0, $6 and $7 the first and
 * last minute. Served by the primary keys (service_id, line_id) and (service_id, line_id, minute).
 */
static const char SQL_LINES[] =
    "SELECT l.line_id, l.instance, l.process, l.monitor::int4, l.uri, m.minute, m.offsets, m.vals"
    " FROM hearth_data.monitor_line l JOIN hearth_data.monitor_minute m"
    " ON m.service_id = l.service_id AND m.line_id = l.line_id"
    " WHERE l.service_id = (SELECT s.service_id FROM hearth_data.service s"
    "  JOIN hearth_data.tenant t USING (tenant_id) WHERE t.name = $1 AND s.fingerprint = $2)"
    " AND ($3 = '' OR l.instance = $3) AND ($4 = '' OR l.process = $4)"
    " AND ($5 = 0 OR $5 & (1 << l.monitor) <> 0) AND m.minute >= $6 AND m.minute <= $7"
    " ORDER BY l.instance COLLATE \"C\", l.process COLLATE \"C\", l.monitor,"
    " l.uri COLLATE \"C\", l.line_id, m.minute";

static void make_line_params(const struct hearth_scope *scope,
                             const struct hearth_monitor_filter *filter,
                             struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, scope->arena);
    hearth_pg_param_text(params, scope->tenant);
    hearth_pg_param_uuid(params, hearth_service_fingerprint(filter->service));
    hearth_pg_param_text(params, filter->instance);
    hearth_pg_param_text(params, filter->process);
    hearth_pg_param_i32(params, (int32_t)filter->monitors);
    hearth_pg_param_i32(params, minute_of(filter->start_ms));
    hearth_pg_param_i32(params, minute_of(filter->end_ms));
}

static enum hearth_status stream_lines(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct line_read *read = context;
    read->n = read->n_values = 0; /* an earlier attempt may have read some */

    return hearth_pg_stream(pg, SQL_LINES, &read->params, read->scope->cancel, take_minute, read,
                            ret_fault, err);
}

/* Removes lines without values. Returns the number of lines that are left. */
static size_t drop_empty_lines(struct hearth_monitor_line *lines, size_t n)
{
    size_t n_left = 0;

    for (size_t i = 0; i < n; i++) {
        if (lines[i].n_values > 0) {
            lines[n_left++] = lines[i];
        }
    }

    return n_left;
}

enum hearth_status hearth_store_monitor_lines(const struct hearth_scope *scope,
                                              const struct hearth_monitor_filter *filter,
                                              struct hearth_monitor_line **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(scope->arena != NULL && filter->service.n > 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    struct line_read read = {.scope = scope, .filter = filter};
    make_line_params(scope, filter, &read.params);
    hearth_arena_init(&read.scratch, 0);
    enum hearth_status status = hearth_store_with_pg(scope, stream_lines, &read, err);
    hearth_arena_release(&read.scratch);
    HEARTH_TRY(status);

    *ret = read.lines;
    *ret_n = drop_empty_lines(read.lines, read.n);

    return HEARTH_OK;
}
