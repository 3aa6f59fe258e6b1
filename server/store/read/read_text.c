/*
 * read_text.c -- the branches of a read's statement as SQL (contract: read_make.h; an example and
 * the reasons for their form: read_sql.c).
 */
#include "read/read_make.h"
#include "read/stored_rows.h"

#include <assert.h>

/* With more series, segments are sent without a test of their series, which would cost more. */
#define OVERLAP_SERIES 500

void hearth_read_append_table(const struct read_maker *m, struct hearth_buf *sql,
                              const struct hearth_read_leg *leg)
{
    size_t shard = 0;
    assert((unsigned)leg->source < HEARTH_N_SOURCES);

    if (m->part != NULL) {
        shard = (size_t)(leg - m->plan->legs) / (m->plan->n_legs / m->part->n_shards);
    }

    hearth_shard_name(sql, leg->source, m->part == NULL ? NULL : &m->part->shards[shard]);
}

/* Append the select list of one branch of rows: the order of enum in read_internal.h. */
static void append_rows_fields(struct read_maker *m, const struct read_branch *branch, size_t tag)
{
    struct hearth_buf *sql = &m->out->sql;
    unsigned k = (unsigned)branch->column + 1;
    enum hearth_source source = branch->leg->source;

    /* The fields that all branches have. */
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
     * Column 0, if the column is a multiple of it: then the column begins with byte 1, otherwise
     * with 0; in blocks after a byte that says "not compressed". One comparison of the whole column
     * is a third cheaper per row than extracting the byte.
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

    /* Fields on request. */
    if (m->out->field_members >= 0) {
        hearth_buf_cstr(sql, hearth_source_length_ns(source) == 0 ? ", NULL::bytea AS members"
                                                                  : ", members");
    }

    hearth_read_detail_fields(sql, m->out, source != HEARTH_SOURCE_SEGMENT);
}

/* Append the select list of one branch of totals. */
static void append_totals_fields(struct read_maker *m, const struct read_branch *branch, size_t tag)
{
    struct hearth_buf *sql = &m->out->sql;
    unsigned k = (unsigned)branch->column + 1;
    bool packed = m->out->field_packed >= 0;

    switch (branch->leg->source) {
    case HEARTH_SOURCE_SEGMENT:
        /* Heads have all that totals need; segments of older servers have none. */
        hearth_buf_printf(sql,
                          "service_id, n_bytes::int8 AS who, t0 AS at, '%zu'::int8 AS tag,"
                          " NULL::int8 AS total, %s AS p1, NULL::bytea AS p2",
                          tag,
                          m->plan->detail.attrs == HEARTH_ATTRS_NOT_READ
                              ? "coalesce(heads, payload)"
                              : "payload");
        break;
    case HEARTH_SOURCE_TOTALS:
        hearth_buf_printf(sql,
                          "service_id, series_id::int8 AS who, t0 AS at, '%zu'::int8 AS tag,"
                          " CASE WHEN series_id = 0 AND vals[%u] = ''::bytea THEN 1::int8 END AS"
                          " total, ts AS p1, CASE WHEN series_id = 0 AND vals[%u] = ''::bytea THEN"
                          " array_send(totals) ELSE vals[%u] END AS p2",
                          tag, k, k, k);
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

/* Append the select list of one branch of costs. */
static void append_cost_fields(struct read_maker *m, const struct read_branch *branch, size_t tag)
{
    const char *bytes = branch->leg->source == HEARTH_SOURCE_SEGMENT ? "pg_column_size(payload)"
                        : branch->leg->source == HEARTH_SOURCE_TOTALS
                            ? "pg_column_size(ts) + pg_column_size(vals)"
                            : "pg_column_size(ids) + pg_column_size(vals)";

    hearth_buf_printf(&m->out->sql,
                      "service_id, count(*) AS who, sum(%s) AS at, '%zu'::int8 AS tag", bytes, tag);
}

/* Append a comparison with a time. */
static void append_time(struct read_maker *m, const char *comparison, int64_t ns)
{
    if (m->times == NULL) {
        hearth_buf_printf(&m->out->sql, " %s '%lld'::int8", comparison, (long long)ns);
        return;
    }

    assert(m->n_times < READ_TIMES_OF_BRANCH * m->out->n_branches);
    m->times[m->n_times++] = ns;
    hearth_buf_printf(&m->out->sql, " %s ($%d::int8[])[%zu]", comparison,
                      m->plan->detail.some ? 9 : 6, m->n_times);
}

/*
 * Append the condition on the table's time: [from_ns, to_ns) of the leg; for tables by hour, all
 * hours that overlap it.
 */
static void append_time_range(struct read_maker *m, const struct hearth_read_leg *leg)
{
    struct hearth_buf *sql = &m->out->sql;
    bool by_hour = leg->source == HEARTH_SOURCE_SEGMENT || leg->source == HEARTH_SOURCE_TOTALS;
    const char *column = by_hour || hearth_source_length_ns(leg->source) > 0 ? "t0" : "ts";
    int64_t from_ns = leg->from_ns;

    /* Round down to the hour. */
    if (by_hour) {
        int64_t rest = from_ns % HEARTH_NS_PER_HOUR;
        rest += rest < 0 ? HEARTH_NS_PER_HOUR : 0;
        from_ns = from_ns < INT64_MIN + rest ? INT64_MIN : from_ns - rest;
    }

    hearth_buf_printf(sql, " AND %s", column);
    append_time(m, ">=", from_ns);
    hearth_buf_printf(sql, " AND %s", column);
    append_time(m, "<", leg->to_ns);

    /* Exclude slices of an hour (HEARTH_SEGMENT_SLICE_BITS) that lie outside. */
    bool whole_hours = from_ns == leg->from_ns && leg->to_ns % HEARTH_NS_PER_HOUR == 0;
    if (leg->source == HEARTH_SOURCE_SEGMENT && !whole_hours) {
        hearth_buf_printf(sql, " AND (ordinal < %d OR (t0 + (ordinal >> %d) * '%lld'::int8",
                          1 << HEARTH_SEGMENT_SLICE_BITS, HEARTH_SEGMENT_SLICE_BITS,
                          (long long)HEARTH_SEGMENT_SLICE_NS);
        append_time(m, ">", leg->from_ns);
        hearth_buf_printf(sql, " AND t0 + ((ordinal >> %d) - 1) * '%lld'::int8",
                          HEARTH_SEGMENT_SLICE_BITS, (long long)HEARTH_SEGMENT_SLICE_NS);
        append_time(m, "<", leg->to_ns);
        hearth_buf_cstr(sql, "))");
    }
}

/*
 * Append the condition on series: `first` and `last` are expressions, indexes into $4. known_few:
 * they are fewer than OVERLAP_SERIES, otherwise the statement counts them.
 */
static void append_series_test(struct hearth_buf *sql, const struct hearth_read_leg *leg,
                               const char *first, const char *last, bool known_few)
{
    if (leg->source == HEARTH_SOURCE_TOTALS) {
        /* Rows with series_id 0 have several series, of which totals has the first and the last. */
        hearth_buf_printf(sql,
                          " AND series_id = ANY (($4::int4[])[%s:%s] || 0) AND (series_id > 0 OR"
                          " (totals[1] >> 32 <= ($4::int4[])[%s] AND totals[cardinality(totals) -"
                          " cardinality(vals)] >> 32 >= ($4::int4[])[%s]))",
                          first, last, last, first);
    } else if (leg->source != HEARTH_SOURCE_SEGMENT) {
        hearth_buf_printf(sql, " AND series_id = ANY (($4::int4[])[%s:%s])", first, last);
    } else if (known_few) {
        hearth_buf_printf(sql, " AND series_ids && ($4::int4[])[%s:%s]", first, last);
    } else {
        hearth_buf_printf(sql, " AND (%s - %s >= %d OR series_ids && ($4::int4[])[%s:%s])", last,
                          first, OVERLAP_SERIES, first, last);
    }
}

/*
 * Append the services of a lateral query once more, as a slice of a parameter: Citus then asks only
 * the nodes that own them. One PostgreSQL needs no such condition.
 */
static void append_owners(struct read_maker *m, const char *parameter, size_t first, size_t last)
{
    if (m->is_distributed) {
        hearth_buf_printf(&m->out->sql, " AND service_id = ANY ((%s::int4[])[%zu:%zu])", parameter,
                          first, last);
    }
}

static void append_fields(struct read_maker *m, const struct read_branch *branch, size_t tag)
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

/* Costs are sums of a service. */
static const char *group_of(const struct read_maker *m)
{
    return m->out->kind == READ_COSTS ? " GROUP BY service_id" : "";
}

/* The end of a lateral query: one PostgreSQL plans it as it stands. */
static const char *fence_of(const struct read_maker *m)
{
    return m->is_distributed ? "" : " OFFSET 0";
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

/*
 * Append a branch of profiles that are known by series and time: each is one look-up in the index.
 * A leg without such instants gets no SELECT.
 */
static void append_instants(struct read_maker *m, const struct read_branch *branch, size_t tag)
{
    struct hearth_buf *sql = &m->out->sql;
    const struct hearth_read_detail *detail = &m->plan->detail;
    size_t first = m->n_instants + 1;

    /* The instants of the leg's series, column and range. */
    for (size_t i = 0; i < detail->n_instants; i++) {
        const struct hearth_read_instant *at = &detail->instants[i];
        size_t n_hits;
        const struct hearth_series_hit *hits =
            hearth_read_hits_of(branch->leg, at->service_id, at->series_id, &n_hits);
        bool has_column = m->out->kind == READ_COSTS && n_hits > 0; /* of all columns */
        for (size_t h = 0; h < n_hits; h++) {
            has_column = has_column || hits[h].column == branch->column;
        }

        if (has_column && at->ts_ns >= branch->leg->from_ns && at->ts_ns < branch->leg->to_ns) {
            m->instant_service[m->n_instants] = at->service_id;
            m->instant_series[m->n_instants] = at->series_id;
            m->instants[m->n_instants++] = at->ts_ns;
        }
    }

    if (m->n_instants < first) {
        return;
    }

    /* A nested loop over them. */
    hearth_buf_printf(sql,
                      " UNION ALL SELECT r.* FROM unnest(($6::int4[])[%zu:%zu],"
                      " ($7::int4[])[%zu:%zu], ($8::int8[])[%zu:%zu]) w (service, series, instant)"
                      " CROSS JOIN LATERAL (SELECT ",
                      first, m->n_instants, first, m->n_instants, first, m->n_instants);
    append_fields(m, branch, tag);
    hearth_buf_cstr(sql, " FROM ");
    hearth_read_append_table(m, sql, branch->leg);
    hearth_buf_cstr(sql, " WHERE service_id = w.service AND series_id = w.series"
                         " AND ts = w.instant");
    append_owners(m, "$6", first, m->n_instants);
    append_detail(sql, branch->leg, detail);
    hearth_buf_printf(sql, "%s%s) r", group_of(m), fence_of(m));
}

/* Append the condition on series of a plain SELECT: the range of their ids, or a slice of $4. */
static void append_series(struct read_maker *m, const struct read_branch *branch,
                          struct read_slice slice)
{
    if (branch->services != NULL) {
        hearth_buf_printf(&m->out->sql, " AND series_id BETWEEN %d AND %d", (int)branch->first_id,
                          (int)branch->last_id);
        return;
    }

    char first[24], last[24];
    (void)snprintf(first, sizeof first, "%zu", slice.first_series);
    (void)snprintf(last, sizeof last, "%zu", slice.first_series + slice.n_series - 1);
    append_series_test(&m->out->sql, branch->leg, first, last, slice.n_series < OVERLAP_SERIES);
    m->lists_series = true;
}

/* Append a branch of totals in arrays. */
static void append_arrays(struct read_maker *m, const struct read_branch *branch,
                          struct read_slice slice)
{
    struct hearth_buf *sql = &m->out->sql;
    const struct read_runs runs = {slice.first_run, slice.first_run + slice.n_runs - 1};

    assert(m->out->field_packed >= 0);
    hearth_read_arrays_from(sql, branch, (size_t)(branch - m->out->branches));
    hearth_read_append_table(m, sql, branch->leg);
    hearth_read_arrays_where(sql, branch, &runs);
    m->lists_series = m->lists_series || branch->services == NULL;
    append_time_range(m, branch->leg);
    append_detail(sql, branch->leg, &m->plan->detail);
    hearth_read_arrays_end(sql);
}

void hearth_read_append_branch(struct read_maker *m, const struct read_branch *branch,
                               struct read_slice slice)
{
    struct hearth_buf *sql = &m->out->sql;
    const struct hearth_read_leg *leg = branch->leg;
    size_t tag = (size_t)(branch - m->out->branches);
    size_t last_run = slice.first_run + slice.n_runs - 1;
    const struct hearth_read_detail *detail = &m->plan->detail;
    assert(tag < m->out->n_branches);
    assert(slice.n_runs > 0 && slice.n_series >= slice.n_runs);

    if (detail->some && leg->source != HEARTH_SOURCE_SEGMENT) {
        append_instants(m, branch, tag);
        return;
    }

    if (branch->in_arrays) {
        append_arrays(m, branch, slice);
        return;
    }

    /* The index of profile begins with the series; or there is only one service: a plain SELECT. */
    if (leg->source == HEARTH_SOURCE_PROFILE || slice.n_runs == 1) {
        hearth_buf_cstr(sql, " UNION ALL SELECT ");
        append_fields(m, branch, tag);
        hearth_buf_cstr(sql, " FROM ");
        hearth_read_append_table(m, sql, leg);
        hearth_buf_printf(sql, " WHERE service_id = ANY (($1::int4[])[%zu:%zu])", slice.first_run,
                          last_run);
        append_series(m, branch, slice);
        append_time_range(m, leg);
        append_detail(sql, leg, detail);
        hearth_buf_cstr(sql, group_of(m));
        return;
    }

    /* Several services: a nested loop. */
    hearth_buf_printf(sql,
                      " UNION ALL SELECT r.* FROM unnest(($1::int4[])[%zu:%zu],"
                      " ($2::int4[])[%zu:%zu], ($3::int4[])[%zu:%zu]) h (service, lo, hi)"
                      " CROSS JOIN LATERAL (SELECT ",
                      slice.first_run, last_run, slice.first_run, last_run, slice.first_run,
                      last_run);
    append_fields(m, branch, tag);
    hearth_buf_cstr(sql, " FROM ");
    hearth_read_append_table(m, sql, leg);
    hearth_buf_cstr(sql, " WHERE service_id = h.service");
    append_owners(m, "$1", slice.first_run, last_run);
    append_series_test(sql, leg, "h.lo", "h.hi", false);
    m->lists_series = true;
    append_time_range(m, leg);
    append_detail(sql, leg, detail);
    hearth_buf_printf(sql, "%s%s) r", group_of(m), fence_of(m));
}

/* Append NULL for each field that branches have after the first four. */
static void append_no_values(struct read_maker *m)
{
    struct read_statement *out = m->out;

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
}

/* Append the generations of a shard, or of all. */
static void append_generations_of(struct read_maker *m, const struct hearth_shard *shard)
{
    struct hearth_buf *sql = &m->out->sql;

    hearth_buf_printf(sql, "SELECT service_id, generation AS who, 0::int8 AS at, '%d'::int8 AS tag",
                      TAG_GENERATION);
    append_no_values(m);
    hearth_buf_cstr(sql, " FROM ");
    hearth_shard_name(sql, HEARTH_SHARD_ROLL_STATE, shard);
    hearth_buf_cstr(sql, " WHERE service_id = ANY ($5::int4[])");
}

void hearth_read_append_generations(struct read_maker *m)
{
    struct hearth_buf *sql = &m->out->sql;

    hearth_buf_cstr(sql, "SELECT * FROM (");
    if (m->part == NULL) {
        append_generations_of(m, NULL);
        return;
    }

    hearth_buf_printf(sql,
                      "SELECT count(*)::int4 AS service_id, 0::int8 AS who, 0::int8 AS at,"
                      " '%d'::int8 AS tag",
                      TAG_SHARDS);
    append_no_values(m);
    hearth_node_part_count(sql, m->part);
    for (size_t i = 0; i < m->part->n_shards; i++) {
        hearth_buf_cstr(sql, " UNION ALL ");
        append_generations_of(m, &m->part->shards[i]);
    }
}
