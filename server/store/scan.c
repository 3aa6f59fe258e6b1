/*
 * scan.c -- rows of profiles: one statement, one snapshot, streamed.
 *
 * A hit names a value column, and a statement has one leg for each distinct column; the column's
 * number is a literal, so a leg sends only that element of vals. All legs share four parameters:
 * the services, the series of all legs one after the other (a leg takes its slice), and the range.
 *
 * The plan must not depend on statistics, because every day begins with an empty leaf that nobody
 * has analyzed. With the index (series_id, ts) INCLUDE (service_id, totals), equality on series_id
 * and the range on ts are always index conditions: a bitmap scan (which prefetches) for rows, an
 * index-only scan for totals. Every leg names service_id, so that the statement can be routed when
 * the tables are distributed.
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "catalog.h"

#define MAX_COLUMNS     HEARTH_SERIES_MAX_TYPES
#define SQL_LIMIT_BYTES (64 * 1024)

/* One question while it runs. */
struct scan {
    struct hearth_buf sql;
    struct hearth_pg_params params;
    struct hearth_arena arena;
    struct hearth_cancel *cancel;
    hearth_pg_row_fn *on_row;
    hearth_read_row_fn *visit_row;
    hearth_read_total_fn *visit_total;
    void *context;
    bool has_val0, has_column; /* of the answer */
    uint16_t column;           /* of all rows, unless has_column */
    int64_t n_rows, n_bytes;
};

/* Which series of the hits belong to which column. */
struct legs {
    size_t n_series[MAX_COLUMNS]; /* 0: no leg */
    size_t n_legs;
    int32_t *series;   /* by column, then as in the hits */
    int32_t *services; /* distinct */
    size_t n_services;
};

/*
 * Answers have as few columns as can be: each costs libpq an allocation and a copy of its name for
 * every row. Rows are (service_id, series_id and writer_id in one int8, ts, ids, vals[k]), then
 * vals[0] when a leg may need it, then k when there are several legs; totals are (service_id,
 * series_id, ts, totals[k]), then k likewise.
 *
 * A column that is a multiple of column 0 begins with byte 1, others with 0: one comparison, a
 * third cheaper for the whole row than looking at the byte.
 */
static const char LEG_ROWS[] =
    "SELECT service_id, series_id::int8 << 32 | writer_id, ts, ids, vals[%u]";
static const char LEG_VAL0[] = ", CASE WHEN vals[%u] >= '\\x01'::bytea THEN vals[1] END";
static const char LEG_TOTALS[] = "SELECT service_id, series_id, ts, totals[%u]";
static const char LEG_WHERE[] = " FROM hearth_data.profile WHERE service_id = ANY ($1)"
                                " AND series_id = ANY (($2::int4[])[%zu:%zu])"
                                " AND ts BETWEEN $3 AND $4";

/* ---- the statement ---- */

static enum hearth_status sort_into_legs(const struct hearth_series_hit *hits,
                                         size_t n_hits,
                                         struct hearth_arena *arena,
                                         struct legs *legs,
                                         struct hearth_err *err)
{
    *legs = (struct legs){0};
    legs->series = hearth_arena_array(arena, n_hits, sizeof *legs->series);
    legs->services = hearth_arena_array(arena, n_hits, sizeof *legs->services);
    if (legs->series == NULL || legs->services == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read %zu series", n_hits);
    }
    for (size_t i = 0; i < n_hits; i++) {
        if (hits[i].column >= MAX_COLUMNS) {
            return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                               "series %d has its values in column %u, queries reach %d columns",
                               (int)hits[i].series_id, (unsigned)hits[i].column, MAX_COLUMNS);
        }
        legs->n_series[hits[i].column]++;
        /* Hits are sorted by service. */
        if (i == 0 || hits[i].service_id != hits[i - 1].service_id) {
            legs->services[legs->n_services++] = hits[i].service_id;
        }
    }
    size_t next[MAX_COLUMNS], at = 0;
    for (size_t k = 0; k < MAX_COLUMNS; k++) {
        next[k] = at;
        at += legs->n_series[k];
        legs->n_legs += legs->n_series[k] > 0;
    }
    for (size_t i = 0; i < n_hits; i++) {
        legs->series[next[hits[i].column]++] = hits[i].series_id;
    }
    return HEARTH_OK;
}

static void append_leg(struct scan *scan, const struct legs *legs, unsigned column)
{
    hearth_buf_printf(&scan->sql, scan->visit_total != NULL ? LEG_TOTALS : LEG_ROWS, column + 1);
    if (scan->has_val0) {
        hearth_buf_printf(&scan->sql, column == 0 ? ", NULL::bytea" : LEG_VAL0, column + 1);
    }
    if (legs->n_legs > 1) {
        hearth_buf_printf(&scan->sql, ", %u", column);
    } else {
        scan->column = (uint16_t)column;
    }
    scan->has_column = legs->n_legs > 1;
}

static enum hearth_status build(struct scan *scan,
                                const struct hearth_series_hit *hits,
                                size_t n_hits,
                                int64_t from_ns,
                                int64_t to_ns,
                                struct hearth_err *err)
{
    struct legs legs;
    HEARTH_TRY(sort_into_legs(hits, n_hits, &scan->arena, &legs, err));
    scan->has_val0 = scan->visit_row != NULL && legs.n_series[0] < n_hits;
    size_t at = 0;
    hearth_buf_cstr(&scan->sql, "SELECT * FROM (");
    for (unsigned k = 0; k < MAX_COLUMNS; k++) {
        if (legs.n_series[k] == 0) {
            continue;
        }
        hearth_buf_cstr(&scan->sql, at == 0 ? "" : " UNION ALL ");
        append_leg(scan, &legs, k);
        hearth_buf_printf(&scan->sql, LEG_WHERE, at + 1, at + legs.n_series[k]);
        at += legs.n_series[k];
    }
    hearth_buf_cstr(&scan->sql, ") u");
    hearth_buf_byte(&scan->sql, '\0');
    hearth_pg_params_init(&scan->params, &scan->arena);
    hearth_pg_param_i32_array(&scan->params, legs.services, legs.n_services);
    hearth_pg_param_i32_array(&scan->params, legs.series, n_hits);
    hearth_pg_param_i64(&scan->params, from_ns);
    hearth_pg_param_i64(&scan->params, to_ns);
    if (hearth_buf_failed(&scan->sql)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the text of a query");
    }
    return HEARTH_OK;
}

/* ---- rows ---- */

static uint16_t column_of(const struct scan *scan, const PGresult *result, int field)
{
    return scan->has_column ? (uint16_t)hearth_pg_i32(result, 0, field) : scan->column;
}

static enum hearth_status take_row(void *context, const PGresult *result, struct hearth_err *err)
{
    struct scan *scan = context;
    int64_t series_and_writer = hearth_pg_i64(result, 0, 1);
    struct hearth_read_row row = {
        .service_id = hearth_pg_i32(result, 0, 0),
        .series_id = (int32_t)(series_and_writer >> 32),
        .writer_id = (int32_t)(series_and_writer & INT32_MAX),
        .column = column_of(scan, result, scan->has_val0 ? 6 : 5),
        .ts_ns = hearth_pg_i64(result, 0, 2),
        .ids = hearth_pg_str(result, 0, 3),
        .val = hearth_pg_str(result, 0, 4),
    };
    row.is_column0 = row.column == 0;
    if (scan->has_val0) {
        row.val0 = hearth_pg_str(result, 0, 5);
    }
    scan->n_rows++;
    scan->n_bytes += (int64_t)(row.ids.n + row.val.n + row.val0.n);
    if (row.val.p == NULL) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a profile of series %d at %lld lacks value column %u",
                           (int)row.series_id, (long long)row.ts_ns, (unsigned)row.column);
    }
    return scan->visit_row(scan->context, &row, err);
}

static enum hearth_status take_total(void *context, const PGresult *result, struct hearth_err *err)
{
    struct scan *scan = context;
    struct hearth_read_total total = {
        .service_id = hearth_pg_i32(result, 0, 0),
        .series_id = hearth_pg_i32(result, 0, 1),
        .column = column_of(scan, result, 4),
        .ts_ns = hearth_pg_i64(result, 0, 2),
    };
    scan->n_rows++;
    scan->n_bytes += (int64_t)sizeof total.total;
    if (hearth_pg_is_null(result, 0, 3)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a profile of series %d at %lld lacks the total of column %u",
                           (int)total.series_id, (long long)total.ts_ns, (unsigned)total.column);
    }
    total.total = hearth_pg_i64(result, 0, 3);
    return scan->visit_total(scan->context, &total, err);
}

static enum hearth_status scan_on(void *context,
                                  struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault,
                                  struct hearth_err *err)
{
    struct scan *scan = context;
    enum hearth_status status = hearth_pg_stream(pg, scan->sql.p, &scan->params, scan->cancel,
                                                 scan->on_row, scan, ret_fault, err);
    if (scan->n_rows > 0) {
        *ret_fault = HEARTH_PG_FAULT_OTHER; /* a second run would deliver rows twice */
    }
    return status;
}

static enum hearth_status run_scan(struct hearth_store *store,
                                   struct scan *scan,
                                   const struct hearth_series_hit *hits,
                                   size_t n_hits,
                                   int64_t from_ns,
                                   int64_t to_ns,
                                   struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    if (n_hits == 0 || from_ns > to_ns) {
        return HEARTH_OK;
    }
    hearth_arena_init(&scan->arena, 0);
    hearth_buf_init(&scan->sql, SQL_LIMIT_BYTES);
    enum hearth_status status = build(scan, hits, n_hits, from_ns, to_ns, err);
    if (status == HEARTH_OK) {
        status = hearth_store_read_with_pg(store, scan->cancel, scan_on, scan, err);
    }
    hearth_metric_add(HEARTH_M_QUERY_ROWS, scan->n_rows);
    hearth_metric_add(HEARTH_M_QUERY_BYTES, scan->n_bytes);
    hearth_buf_release(&scan->sql);
    hearth_arena_release(&scan->arena);
    return status;
}

/* ---- the public face ---- */

enum hearth_status hearth_store_scan(struct hearth_store *store,
                                     const struct hearth_series_hit *hits,
                                     size_t n_hits,
                                     int64_t from_ns,
                                     int64_t to_ns,
                                     struct hearth_cancel *cancel,
                                     hearth_read_row_fn *visit,
                                     void *context,
                                     struct hearth_err *err)
{
    struct scan scan = {
        .cancel = cancel, .on_row = take_row, .visit_row = visit, .context = context};
    return run_scan(store, &scan, hits, n_hits, from_ns, to_ns, err);
}

enum hearth_status hearth_store_scan_totals(struct hearth_store *store,
                                            const struct hearth_series_hit *hits,
                                            size_t n_hits,
                                            int64_t from_ns,
                                            int64_t to_ns,
                                            struct hearth_cancel *cancel,
                                            hearth_read_total_fn *visit,
                                            void *context,
                                            struct hearth_err *err)
{
    struct scan scan = {
        .cancel = cancel, .on_row = take_total, .visit_total = visit, .context = context};
    return run_scan(store, &scan, hits, n_hits, from_ns, to_ns, err);
}
