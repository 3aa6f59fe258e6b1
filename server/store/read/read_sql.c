/*
 * read_sql.c -- the one statement of a read.
 *
 * A branch is one SELECT: a leg of the plan, or one value column of it, since the column's number is
 * a literal and only that element of vals is sent. The first branch gives the generations, so that
 * a reader whose plan is out of date knows before it takes anything. All branches share five
 * parameters: the services of the plan, and the hits as runs (service, first, last) over one array
 * of series; a branch takes its slice of both.
 *
 * The plan must not depend on statistics, because every day begins with empty leaves that nobody
 * has analyzed:
 *
 * - profile has an index (series_id, ts) INCLUDE (service_id, totals), where equality on series_id
 *   and the range on ts are always index conditions: a bitmap scan (which prefetches) for rows, an
 *   index-only scan for totals;
 * - the others are keyed by service and series. With arrays for both, an index scan would look for
 *   every pair of them; so several services are a nested loop, which OFFSET 0 keeps from being
 *   planned any other way, with one service and its own series inside.
 *
 * Every branch names service_id, so that the statement can be routed when the tables are
 * distributed. Answers have as few fields as can be: each costs libpq an allocation and a copy of
 * its name for every row.
 */
#include "hearth/base/mem.h"

#include "catalog/catalog.h"
#include "pg/pg.h"
#include "read/read_internal.h"
#include "read/stored_rows.h"

#define MAX_COLUMNS     HEARTH_SERIES_MAX_TYPES
#define MAX_BRANCHES    1024
#define SQL_LIMIT_BYTES (1024 * 1024)
/* Above, segments are not looked into for series that nobody asked for: comparing would cost more. */
#define OVERLAP_SERIES 500

/* Slices of the shared arrays, counted from 1 as in SQL; n 0: nothing. */
struct slice {
    size_t first_run, n_runs, first_series, n_series;
};

/* What a list of hits became; legs of one group share their list. */
struct selection {
    const struct hearth_series_hit *hits;
    size_t n_hits;
    struct slice columns[MAX_COLUMNS];
    struct slice all; /* whatever the column */
};

struct maker {
    struct read_statement *out;
    const struct hearth_read_plan *plan;
    struct hearth_arena *arena;
    struct selection *selections;
    size_t n_selections;
    size_t *selection_of; /* [plan->n_legs] */
    int32_t *run_service, *run_first, *run_last, *series;
    size_t n_runs, n_series;
    int32_t *moment_service, *moment_series;
    int64_t *moments;
    size_t n_moments;
};

/* ---- hits to slices ---- */

static bool find_selections(struct maker *m)
{
    const struct hearth_read_plan *plan = m->plan;

    m->selections = hearth_arena_calloc(m->arena, plan->n_legs, sizeof m->selections[0]);
    m->selection_of = hearth_arena_array(m->arena, plan->n_legs, sizeof m->selection_of[0]);
    if (m->selections == NULL || m->selection_of == NULL) {
        return false;
    }

    size_t n_hits = 0;
    for (size_t i = 0; i < plan->n_legs; i++) {
        size_t s = 0;
        while (s < m->n_selections && (m->selections[s].hits != plan->legs[i].hits ||
                                       m->selections[s].n_hits != plan->legs[i].n_hits)) {
            s++;
        }

        if (s == m->n_selections) {
            m->selections[s].hits = plan->legs[i].hits;
            m->selections[s].n_hits = plan->legs[i].n_hits;
            m->n_selections++;
            n_hits += 2 * plan->legs[i].n_hits; /* by column, and all */
        }

        m->selection_of[i] = s;
    }

    m->run_service = hearth_arena_array(m->arena, n_hits, sizeof m->run_service[0]);
    m->run_first = hearth_arena_array(m->arena, n_hits, sizeof m->run_first[0]);
    m->run_last = hearth_arena_array(m->arena, n_hits, sizeof m->run_last[0]);
    m->series = hearth_arena_array(m->arena, n_hits, sizeof m->series[0]);

    return m->run_service != NULL && m->run_first != NULL && m->run_last != NULL &&
           m->series != NULL;
}

/* Append the hits of one column (-1: of any) as runs. */
static struct slice add_slice(struct maker *m, const struct selection *selection, int column)
{
    struct slice slice = {.first_run = m->n_runs + 1, .first_series = m->n_series + 1};

    for (size_t i = 0; i < selection->n_hits; i++) {
        const struct hearth_series_hit *hit = &selection->hits[i];
        bool same_service = slice.n_runs > 0 && m->run_service[m->n_runs - 1] == hit->service_id;
        bool repeated = same_service && m->series[m->n_series - 1] == hit->series_id;
        if (repeated || (column >= 0 && hit->column != column)) {
            continue;
        }

        m->series[m->n_series++] = hit->series_id;
        slice.n_series++;
        if (!same_service) {
            m->run_service[m->n_runs] = hit->service_id;
            m->run_first[m->n_runs++] = (int32_t)m->n_series;
            slice.n_runs++;
        }

        m->run_last[m->n_runs - 1] = (int32_t)m->n_series;
    }

    return slice;
}

static enum hearth_status slice_hits(struct maker *m, struct hearth_err *err)
{
    if (!find_selections(m)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the series of a read");
    }

    for (size_t s = 0; s < m->n_selections; s++) {
        struct selection *selection = &m->selections[s];
        size_t n_in[MAX_COLUMNS] = {0}, n_columns = 0, last = 0;
        for (size_t i = 0; i < selection->n_hits; i++) {
            const struct hearth_series_hit *hit = &selection->hits[i];
            if (hit->column >= MAX_COLUMNS) {
                return HEARTH_FAIL(
                    err, HEARTH_RESOURCE_EXHAUSTED,
                    "series %d has its values in column %u, queries reach %d columns",
                    (int)hit->series_id, (unsigned)hit->column, MAX_COLUMNS);
            }

            n_in[hit->column]++;
        }

        for (size_t k = 0; k < MAX_COLUMNS; k++) {
            if (n_in[k] > 0) {
                selection->columns[k] = add_slice(m, selection, (int)k);
                n_columns++;
                last = k;
            }
        }

        selection->all = n_columns == 1 ? selection->columns[last] : add_slice(m, selection, -1);
    }

    return HEARTH_OK;
}

/* ---- text ---- */

static const char *table_of(enum hearth_source source)
{
    static const char *const names[HEARTH_N_SOURCES] = {
        "profile", "profile_late", "segment", "hour_totals", "roll_10m", "roll_1h", "roll_1d",
    };
    return names[source];
}

/* The output of one branch; prefix: "" or "r." of a nested loop is not needed, names are unique. */
static void append_rows_fields(struct maker *m, const struct read_branch *branch, size_t tag)
{
    struct hearth_buf *sql = &m->out->sql;
    unsigned k = (unsigned)branch->column + 1;
    enum hearth_source source = branch->leg->source;

    long long one = (long long)((uint64_t)1 << 32 | tag);
    if (source == HEARTH_SOURCE_SEGMENT) {
        hearth_buf_printf(sql,
                          "service_id, n_bytes::int8 AS who, t0 AS at, '%lld'::int8 AS tag,"
                          " payload AS ids, NULL::bytea AS val",
                          one);
    } else if (hearth_source_length_ns(source) == 0) {
        hearth_buf_printf(sql,
                          "service_id, series_id::int8 << 32 | writer_id AS who, ts AS at,"
                          " '%lld'::int8 AS tag, ",
                          one);
        if (m->plan->detail.attrs == HEARTH_ATTRS_ALONE) {
            hearth_buf_cstr(sql, "NULL::bytea AS ids, NULL::bytea AS val");
        } else {
            hearth_buf_printf(sql, "ids, vals[%u] AS val", k);
        }
    } else {
        hearth_buf_printf(sql,
                          "service_id, series_id::int8 << 32 | writer_id AS who, t0 AS at,"
                          " n_profiles::int8 << 32 | %zu AS tag, ids, vals[%u] AS val",
                          tag, k);
    }

    /*
     * A column that is a multiple of column 0 begins with byte 1, others with 0; in blocks, the byte
     * that says "not compressed" comes before. One comparison is a third cheaper for the whole row
     * than looking at a byte.
     */
    if (m->out->field_val0 >= 0) {
        if (branch->column == 0 || source == HEARTH_SOURCE_SEGMENT) {
            hearth_buf_cstr(sql, ", NULL::bytea AS val0");
        } else if (hearth_source_length_ns(source) == 0) {
            hearth_buf_printf(sql,
                              ", CASE WHEN vals[%u] >= '\\x01'::bytea THEN vals[1] END AS val0", k);
        } else {
            hearth_buf_printf(sql,
                              ", CASE WHEN vals[%u] >= '\\x0001'::bytea AND vals[%u] <"
                              " '\\x01'::bytea THEN vals[1] END AS val0",
                              k, k);
        }
    }

    if (m->out->field_members >= 0) {
        hearth_buf_cstr(sql, hearth_source_length_ns(source) == 0 ? ", NULL::bytea AS members"
                                                                  : ", members");
    }

    hearth_read_detail_fields(sql, m->out, source != HEARTH_SOURCE_SEGMENT);
}

static void append_totals_fields(struct maker *m, const struct read_branch *branch, size_t tag)
{
    struct hearth_buf *sql = &m->out->sql;
    unsigned k = (unsigned)branch->column + 1;
    bool packed = m->out->field_packed >= 0;

    switch (branch->leg->source) {
    case HEARTH_SOURCE_SEGMENT:
        hearth_buf_printf(sql,
                          "service_id, n_bytes::int8 AS who, t0 AS at, '%zu'::int8 AS tag,"
                          " NULL::int8 AS total, payload AS p1, NULL::bytea AS p2",
                          tag);
        break;
    case HEARTH_SOURCE_TOTALS:
        hearth_buf_printf(sql,
                          "service_id, series_id::int8 AS who, t0 AS at, '%zu'::int8 AS tag,"
                          " NULL::int8 AS total, ts AS p1, vals[%u] AS p2",
                          tag, k);
        break;
    default:
        hearth_buf_printf(sql,
                          "service_id, series_id::int8%s AS who, ts AS at, '%zu'::int8 AS tag,"
                          " totals[%u] AS total%s",
                          m->out->field_no >= 0 ? " << 32 | writer_id" : "", tag, k,
                          packed ? ", NULL::bytea AS p1, NULL::bytea AS p2" : "");
        break;
    }

    hearth_read_detail_fields(sql, m->out, branch->leg->source != HEARTH_SOURCE_SEGMENT);
}

static void append_cost_fields(struct maker *m, const struct read_branch *branch, size_t tag)
{
    const char *bytes = branch->leg->source == HEARTH_SOURCE_SEGMENT ? "pg_column_size(payload)"
                        : branch->leg->source == HEARTH_SOURCE_TOTALS
                            ? "pg_column_size(ts) + pg_column_size(vals)"
                            : "pg_column_size(ids) + pg_column_size(vals)";

    hearth_buf_printf(&m->out->sql,
                      "service_id, count(*) AS who, sum(%s) AS at, '%zu'::int8 AS tag", bytes, tag);
}

/* [from, to) of the leg, on the table's time: a segment or totals begin with their hour. */
static void append_time_range(struct hearth_buf *sql, const struct hearth_read_leg *leg)
{
    bool by_hour = leg->source == HEARTH_SOURCE_SEGMENT || leg->source == HEARTH_SOURCE_TOTALS;
    const char *column = by_hour || hearth_source_length_ns(leg->source) > 0 ? "t0" : "ts";
    int64_t from_ns = leg->from_ns;

    if (by_hour) {
        int64_t rest = from_ns % HEARTH_NS_PER_HOUR;
        rest += rest < 0 ? HEARTH_NS_PER_HOUR : 0;
        from_ns = from_ns < INT64_MIN + rest ? INT64_MIN : from_ns - rest;
    }

    hearth_buf_printf(sql, " AND %s >= '%lld'::int8 AND %s < '%lld'::int8", column,
                      (long long)from_ns, column, (long long)leg->to_ns);
    bool whole_hours = from_ns == leg->from_ns && leg->to_ns % HEARTH_NS_PER_HOUR == 0;
    if (leg->source == HEARTH_SOURCE_SEGMENT && !whole_hours) {
        hearth_buf_printf(
            sql,
            " AND (ordinal < %d OR (t0 + (ordinal >> %d) * '%lld'::int8 > '%lld'::int8"
            " AND t0 + ((ordinal >> %d) - 1) * '%lld'::int8 < '%lld'::int8))",
            1 << HEARTH_SEGMENT_SLICE_BITS, HEARTH_SEGMENT_SLICE_BITS,
            (long long)HEARTH_SEGMENT_SLICE_NS, (long long)leg->from_ns, HEARTH_SEGMENT_SLICE_BITS,
            (long long)HEARTH_SEGMENT_SLICE_NS, (long long)leg->to_ns);
    }
}

static void append_series_test(struct hearth_buf *sql, const struct hearth_read_leg *leg,
                               const char *first, const char *last, bool known_few)
{
    if (leg->source != HEARTH_SOURCE_SEGMENT) {
        hearth_buf_printf(sql, " AND series_id = ANY (($4::int4[])[%s:%s])", first, last);
    } else if (known_few) {
        hearth_buf_printf(sql, " AND series_ids && ($4::int4[])[%s:%s]", first, last);
    } else {
        hearth_buf_printf(sql, " AND (%s - %s >= %d OR series_ids && ($4::int4[])[%s:%s])", last,
                          first, OVERLAP_SERIES, first, last);
    }
}

static void append_fields(struct maker *m, const struct read_branch *branch, size_t tag)
{
    switch (m->out->kind) {
    case READ_ROWS:
        append_rows_fields(m, branch, tag);
        break;
    case READ_TOTALS:
        append_totals_fields(m, branch, tag);
        break;
    case READ_COSTS:
        append_cost_fields(m, branch, tag);
        break;
    }
}

static void append_detail(struct hearth_buf *sql, const struct hearth_read_leg *leg,
                          const struct hearth_read_detail *detail)
{
    if (leg->source == HEARTH_SOURCE_SEGMENT) {
        hearth_read_detail_hours(sql, detail);
    } else if (hearth_source_length_ns(leg->source) == 0) {
        hearth_read_detail_conditions(sql, detail);
    }
}

/* Profiles that are known by series and time: each is a look in the index. */
static void append_moments(struct maker *m, const struct read_branch *branch, size_t tag)
{
    struct hearth_buf *sql = &m->out->sql;
    const struct hearth_read_detail *detail = &m->plan->detail;
    size_t first = m->n_moments + 1;

    for (size_t i = 0; i < detail->n_instants; i++) {
        const struct hearth_read_instant *at = &detail->instants[i];
        size_t n_hits;
        const struct hearth_series_hit *hits =
            hearth_read_hits_of(branch->leg, at->service_id, at->series_id, &n_hits);
        bool has_column = false;
        for (size_t h = 0; h < n_hits; h++) {
            has_column = has_column || hits[h].column == branch->column;
        }

        if (has_column && at->ts_ns >= branch->leg->from_ns && at->ts_ns < branch->leg->to_ns) {
            m->moment_service[m->n_moments] = at->service_id;
            m->moment_series[m->n_moments] = at->series_id;
            m->moments[m->n_moments++] = at->ts_ns;
        }
    }

    if (m->n_moments < first) {
        return;
    }

    hearth_buf_printf(sql,
                      " UNION ALL SELECT r.* FROM unnest(($6::int4[])[%zu:%zu],"
                      " ($7::int4[])[%zu:%zu], ($8::int8[])[%zu:%zu]) w (service, series, moment)"
                      " CROSS JOIN LATERAL (SELECT ",
                      first, m->n_moments, first, m->n_moments, first, m->n_moments);
    append_fields(m, branch, tag);
    hearth_buf_printf(sql,
                      " FROM hearth_data.%s WHERE service_id = w.service AND series_id = w.series"
                      " AND ts = w.moment",
                      table_of(branch->leg->source));
    append_detail(sql, branch->leg, detail);
    hearth_buf_cstr(sql, " OFFSET 0) r");
}

static void append_branch(struct maker *m, const struct read_branch *branch, struct slice slice)
{
    struct hearth_buf *sql = &m->out->sql;
    const struct hearth_read_leg *leg = branch->leg;
    size_t tag = (size_t)(branch - m->out->branches);
    size_t last_run = slice.first_run + slice.n_runs - 1;
    const char *group = m->out->kind == READ_COSTS ? " GROUP BY service_id" : "";
    const struct hearth_read_detail *detail = &m->plan->detail;
    if (detail->some && leg->source != HEARTH_SOURCE_SEGMENT) {
        append_moments(m, branch, tag);
        return;
    }

    if (leg->source == HEARTH_SOURCE_PROFILE || slice.n_runs == 1) {
        char first[24], last[24];
        (void)snprintf(first, sizeof first, "%zu", slice.first_series);
        (void)snprintf(last, sizeof last, "%zu", slice.first_series + slice.n_series - 1);
        hearth_buf_cstr(sql, " UNION ALL SELECT ");
        append_fields(m, branch, tag);
        hearth_buf_printf(sql,
                          " FROM hearth_data.%s WHERE service_id = ANY (($1::int4[])[%zu:%zu])",
                          table_of(leg->source), slice.first_run, last_run);
        append_series_test(sql, leg, first, last, slice.n_series < OVERLAP_SERIES);
        append_time_range(sql, leg);
        append_detail(sql, leg, detail);
        hearth_buf_cstr(sql, group);
        return;
    }

    hearth_buf_printf(sql,
                      " UNION ALL SELECT r.* FROM unnest(($1::int4[])[%zu:%zu],"
                      " ($2::int4[])[%zu:%zu], ($3::int4[])[%zu:%zu]) h (service, lo, hi)"
                      " CROSS JOIN LATERAL (SELECT ",
                      slice.first_run, last_run, slice.first_run, last_run, slice.first_run,
                      last_run);
    append_fields(m, branch, tag);
    hearth_buf_printf(sql, " FROM hearth_data.%s WHERE service_id = h.service",
                      table_of(leg->source));
    append_series_test(sql, leg, "h.lo", "h.hi", false);
    append_time_range(sql, leg);
    append_detail(sql, leg, detail);
    hearth_buf_printf(sql, "%s OFFSET 0) r", group);
}

/* The branch that everything else must agree with in its columns. */
static void append_generations(struct maker *m)
{
    struct read_statement *out = m->out;

    hearth_buf_cstr(&out->sql, "SELECT * FROM (SELECT service_id, generation AS who, 0::int8 AS at,"
                               " '-1'::int8 AS tag");
    if (out->kind == READ_ROWS) {
        hearth_buf_cstr(&out->sql, ", NULL::bytea AS ids, NULL::bytea AS val");
        hearth_buf_cstr(&out->sql, out->field_val0 >= 0 ? ", NULL::bytea AS val0" : "");
        hearth_buf_cstr(&out->sql, out->field_members >= 0 ? ", NULL::bytea AS members" : "");
        hearth_read_detail_fields(&out->sql, out, false);
    } else if (out->kind == READ_TOTALS) {
        hearth_buf_cstr(&out->sql, ", NULL::int8 AS total");
        hearth_buf_cstr(&out->sql,
                        out->field_packed >= 0 ? ", NULL::bytea AS p1, NULL::bytea AS p2" : "");
        hearth_read_detail_fields(&out->sql, out, false);
    }

    hearth_buf_cstr(&out->sql, " FROM hearth_data.roll_state WHERE service_id = ANY ($5::int4[])");
}

/* ---- the whole ---- */

/* Segments have all columns at once, and costs do not ask for one. */
static bool one_branch(const struct maker *m, const struct hearth_read_leg *leg)
{
    return m->out->kind == READ_COSTS || leg->source == HEARTH_SOURCE_SEGMENT;
}

static enum hearth_status make_branches(struct maker *m, struct hearth_err *err)
{
    struct read_statement *out = m->out;
    size_t n = 0;
    bool val0 = false, members = false, packed = false;

    out->branches = hearth_arena_array(m->arena, MAX_BRANCHES, sizeof out->branches[0]);
    if (out->branches == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a query");
    }

    for (size_t i = 0; i < m->plan->n_legs; i++) {
        const struct hearth_read_leg *leg = &m->plan->legs[i];
        const struct selection *selection = &m->selections[m->selection_of[i]];
        size_t n_columns = one_branch(m, leg) ? 1 : MAX_COLUMNS;
        packed =
            packed || leg->source == HEARTH_SOURCE_SEGMENT || leg->source == HEARTH_SOURCE_TOTALS;
        members = members || (leg->n_hits > 0 && leg->hits[0].series_id < 0);
        for (size_t k = 0; k < n_columns; k++) {
            if (leg->n_hits == 0 || (!one_branch(m, leg) && selection->columns[k].n_runs == 0)) {
                continue;
            }

            if (n == MAX_BRANCHES) {
                return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                                   "the query has more than %d parts: shorten the range or add "
                                   "label matchers",
                                   MAX_BRANCHES);
            }

            out->branches[n++] = (struct read_branch){leg, (uint16_t)k};
            val0 = val0 || k > 0;
        }
    }

    out->n_branches = n;
    const struct hearth_read_detail *detail = &m->plan->detail;
    bool of_rows = out->kind == READ_ROWS;
    int field = of_rows ? FIELD_VAL + 1 : FIELD_TOTAL + 1;
    out->field_val0 = of_rows && val0 && detail->attrs != HEARTH_ATTRS_ALONE ? field++ : -1;
    out->field_members = of_rows && members ? field++ : -1;
    out->field_packed = !of_rows && packed ? field : -1;
    field += out->field_packed >= 0 ? 2 : 0;
    out->field_no = detail->identity ? field : -1;
    field += detail->identity ? 2 : 0;
    out->field_attrs = of_rows && detail->attrs != HEARTH_ATTRS_NOT_READ ? field : -1;

    return HEARTH_OK;
}

/* Each branch has those of its column. */
static bool make_room_for_moments(struct maker *m)
{
    size_t n;

    if (!m->plan->detail.some) {
        return true;
    }

    if (__builtin_mul_overflow(m->plan->detail.n_instants, m->out->n_branches, &n)) {
        return false;
    }

    m->moment_service = hearth_arena_array(m->arena, n, sizeof m->moment_service[0]);
    m->moment_series = hearth_arena_array(m->arena, n, sizeof m->moment_series[0]);
    m->moments = hearth_arena_array(m->arena, n, sizeof m->moments[0]);

    return m->moment_service != NULL && m->moment_series != NULL && m->moments != NULL;
}

enum hearth_status hearth_read_statement_make(struct read_statement *statement, enum read_kind kind,
                                              const struct hearth_read_plan *plan,
                                              struct hearth_arena *arena, struct hearth_err *err)
{
    *statement = (struct read_statement){.kind = kind};
    hearth_buf_init(&statement->sql, SQL_LIMIT_BYTES);
    struct maker m = {.out = statement, .plan = plan, .arena = arena};
    HEARTH_TRY(slice_hits(&m, err));
    HEARTH_TRY(make_branches(&m, err));
    if (!make_room_for_moments(&m)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the moments of a read");
    }

    append_generations(&m);
    for (size_t i = 0; i < statement->n_branches; i++) {
        const struct read_branch *branch = &statement->branches[i];
        const struct selection *selection = &m.selections[m.selection_of[branch->leg - plan->legs]];
        append_branch(&m, branch,
                      one_branch(&m, branch->leg) ? selection->all
                                                  : selection->columns[branch->column]);
    }

    hearth_buf_cstr(&statement->sql, ") u");
    hearth_buf_byte(&statement->sql, '\0');
    int32_t *services = hearth_arena_array(arena, plan->state->n_services, sizeof services[0]);
    if (hearth_buf_failed(&statement->sql) || services == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the text of a query");
    }

    for (size_t i = 0; i < plan->state->n_services; i++) {
        services[i] = plan->state->services[i].service_id;
    }

    hearth_pg_params_init(&statement->params, arena);
    hearth_pg_param_i32_array(&statement->params, m.run_service, m.n_runs);
    hearth_pg_param_i32_array(&statement->params, m.run_first, m.n_runs);
    hearth_pg_param_i32_array(&statement->params, m.run_last, m.n_runs);
    hearth_pg_param_i32_array(&statement->params, m.series, m.n_series);
    hearth_pg_param_i32_array(&statement->params, services, plan->state->n_services);
    if (plan->detail.some) {
        hearth_pg_param_i32_array(&statement->params, m.moment_service, m.n_moments);
        hearth_pg_param_i32_array(&statement->params, m.moment_series, m.n_moments);
        hearth_pg_param_i64_array(&statement->params, m.moments, m.n_moments);
    }

    return HEARTH_OK;
}
