/* monitor_lines.c -- reading hearth_data.monitor_line and monitor_minute (contract: hearth/store/store_policies.h). */
#include "hearth/store/store_policies.h"

#include "catalog/services.h"
#include "pg/pg.h"
#include "pg/session.h"

#define MS_PER_MINUTE 60000

struct reading {
    struct hearth_str tenant;
    const struct hearth_monitor_filter *filter;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_arena scratch; /* of a row */
    struct hearth_monitor_line *lines;
    size_t n, cap;
    int64_t line_id; /* of the last line */
    size_t value_cap, n_values;
};

static enum hearth_status begin_line(struct reading *reading, const PGresult *row,
                                     struct hearth_err *err)
{
    if (reading->n == reading->cap) {
        size_t cap = reading->cap == 0 ? 64 : reading->cap * 2;
        struct hearth_monitor_line *more = hearth_arena_array(reading->arena, cap, sizeof more[0]);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, reading->arena);
        }
        if (reading->n > 0) {
            memcpy(more, reading->lines, reading->n * sizeof more[0]);
        }
        reading->lines = more;
        reading->cap = cap;
    }
    int32_t monitor = hearth_pg_i32(row, 0, 3);
    reading->line_id = hearth_pg_i64(row, 0, 0);
    reading->value_cap = 0;
    reading->lines[reading->n++] = (struct hearth_monitor_line){
        .instance = hearth_arena_str(reading->arena, hearth_pg_str(row, 0, 1)),
        .process = hearth_arena_str(reading->arena, hearth_pg_str(row, 0, 2)),
        .monitor = (enum hearth_monitor)monitor,
        .uri = hearth_arena_str(reading->arena, hearth_pg_str(row, 0, 4)),
    };
    return reading->arena->refused ? HEARTH_FAIL_ARENA(err, reading->arena) : HEARTH_OK;
}

static enum hearth_status add_value(struct reading *reading, struct hearth_monitor_value value,
                                    struct hearth_err *err)
{
    struct hearth_monitor_line *line = &reading->lines[reading->n - 1];
    if (reading->filter->max_values > 0 && reading->n_values == reading->filter->max_values) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "more than %zu values, which max-points allows: ask for less time, one"
                           " instance or one monitor",
                           reading->filter->max_values);
    }
    if (line->n_values == reading->value_cap) {
        size_t cap = reading->value_cap == 0 ? 16 : reading->value_cap * 2;
        struct hearth_monitor_value *more = hearth_arena_array(reading->arena, cap, sizeof more[0]);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, reading->arena);
        }
        if (line->n_values > 0) {
            memcpy(more, line->values, line->n_values * sizeof more[0]);
        }
        line->values = more;
        reading->value_cap = cap;
    }
    line->values[line->n_values++] = value;
    reading->n_values++;
    return HEARTH_OK;
}

/* Values come nearly in order: of two servers, or of a clock that was set, not quite. Equal times keep their order. */
static void sort_in(struct hearth_monitor_line *line)
{
    struct hearth_monitor_value *values = line->values, last = values[line->n_values - 1];
    size_t i = line->n_values - 1;
    for (; i > 0 && values[i - 1].at_ms > last.at_ms; i--) {
        values[i] = values[i - 1];
    }
    values[i] = last;
}

static enum hearth_status take_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct reading *reading = context;
    hearth_arena_reset(&reading->scratch);
    if (reading->n == 0 || hearth_pg_i64(row, 0, 0) != reading->line_id) {
        HEARTH_TRY(begin_line(reading, row, err));
    }
    int64_t minute_ms = (int64_t)hearth_pg_i32(row, 0, 5) * MS_PER_MINUTE;
    int32_t *offsets;
    double *values;
    size_t n, n_values;
    HEARTH_TRY(hearth_pg_i32_array(row, 0, 6, &reading->scratch, &offsets, &n, err));
    HEARTH_TRY(hearth_pg_f64_array(row, 0, 7, &reading->scratch, &values, &n_values, err));
    for (size_t i = 0; i < n && i < n_values; i++) {
        int64_t at_ms = minute_ms + offsets[i];
        if (at_ms >= reading->filter->start_ms && at_ms <= reading->filter->end_ms) {
            HEARTH_TRY(add_value(reading, (struct hearth_monitor_value){at_ms, values[i]}, err));
            sort_in(&reading->lines[reading->n - 1]);
        }
    }
    return HEARTH_OK;
}

static int32_t minute_of(int64_t ms)
{
    int64_t minute = ms < 0 ? 0 : ms / MS_PER_MINUTE;
    return minute > INT32_MAX ? INT32_MAX : (int32_t)minute;
}

static enum hearth_status read_lines(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct reading *reading = context;
    const struct hearth_monitor_filter *filter = reading->filter;
    reading->n = reading->n_values = 0;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, reading->arena);
    hearth_pg_param_text(&params, reading->tenant);
    hearth_pg_param_uuid(&params, hearth_service_fingerprint(filter->service));
    hearth_pg_param_text(&params, filter->instance);
    hearth_pg_param_text(&params, filter->process);
    hearth_pg_param_i32(&params, (int32_t)filter->monitors);
    hearth_pg_param_i32(&params, minute_of(filter->start_ms));
    hearth_pg_param_i32(&params, minute_of(filter->end_ms));
    return hearth_pg_stream(
        pg,
        "SELECT l.line_id, l.instance, l.process, l.monitor::int4, l.uri, m.minute, m.offsets,"
        " m.vals FROM hearth_data.monitor_line l JOIN hearth_data.monitor_minute m ON"
        " m.service_id = l.service_id AND m.line_id = l.line_id WHERE l.service_id = (SELECT"
        " s.service_id FROM hearth_data.service s JOIN hearth_data.tenant t USING (tenant_id)"
        " WHERE t.name = $1 AND s.fingerprint = $2) AND ($3 = '' OR l.instance = $3) AND ($4 = '' "
        "OR"
        " l.process = $4) AND ($5 = 0 OR $5 & (1 << l.monitor) <> 0) AND m.minute >= $6 AND"
        " m.minute <= $7 ORDER BY l.instance COLLATE \"C\", l.process COLLATE \"C\", l.monitor,"
        " l.uri COLLATE \"C\", l.line_id, m.minute",
        &params, reading->cancel, take_row, reading, ret_fault, err);
}

enum hearth_status hearth_store_monitor_lines(const struct hearth_scope *scope,
                                              const struct hearth_monitor_filter *filter,
                                              struct hearth_monitor_line **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct reading reading = {
        .tenant = scope->tenant, .filter = filter, .cancel = scope->cancel, .arena = scope->arena};
    hearth_arena_init(&reading.scratch, 0);
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, read_lines, &reading, err);
    hearth_arena_release(&reading.scratch);
    HEARTH_TRY(status);
    /* Lines whose row has no value in the range are not of the answer. */
    size_t n = 0;
    for (size_t i = 0; i < reading.n; i++) {
        if (reading.lines[i].n_values > 0) {
            reading.lines[n++] = reading.lines[i];
        }
    }
    *ret = reading.lines;
    *ret_n = n;
    return HEARTH_OK;
}
