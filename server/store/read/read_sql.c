/*
 * read_sql.c -- the one statement of a read.
 *
 * The statement is a UNION ALL of branches. The first branch selects the generations, so that a
 * reader with an outdated plan notices it before it takes any row. Each other branch is one SELECT:
 * of a leg of the plan, or of one value column of a leg, because the column's number is a literal
 * and only that element of vals is sent. An example, with a leg of one service and column 0:
 *
 *     SELECT * FROM (SELECT service_id, generation AS who, .. FROM hearth_data.roll_state
 *         WHERE service_id = ANY ($5)
 *       UNION ALL SELECT service_id, .., ids, vals[1] AS val FROM hearth_data.profile
 *         WHERE service_id = ANY ($1[1:1]) AND series_id = ANY ($4[1:3]) AND ts >= $6[1] AND ..
 *       UNION ALL ..) u
 *
 * All branches share these parameters, and use slices of the first four:
 *
 *     $1, $2, $3  runs: a service, and the first and last index of its series in $4
 *     $4          series
 *     $5          services of the plan
 *     $6, $7, $8  service, series and time of instants, only if the plan is restricted to instants
 *     last        times: each is an element, so that the text is the same for other times and can
 *                 be prepared. Where the tables are distributed, times are literals: Citus plans.
 *
 * PostgreSQL's plan must not depend on statistics, because each day begins with empty leaves
 * without statistics:
 *
 * - profile has an index (series_id, ts) INCLUDE (service_id, totals), where equality on series_id
 *   and the range on ts are always index conditions: a bitmap scan (which prefetches) for rows, an
 *   index-only scan for totals.
 *   Where the leaf is small beside the number of series, totals are read by a range of ids
 *   (read_id_range.c): then any plan is cheap. Totals of a bounded number of profiles come in
 *   arrays (read_arrays.c): a nested loop, with the same conditions inside.
 * - The other tables are keyed by service and series. With arrays for both, an index scan would
 *   search each pair. So several services are a nested loop with one service and its own series
 *   inside; OFFSET 0 prevents any other plan. Distributed tables allow no OFFSET there: the nodes
 *   choose the plan.
 *
 * On a node that has the rows of several shards, each leg has a branch for each shard, which names
 * its table (read/node_parts.h). The tables are not distributed then. One more branch counts the
 * shards that the node has.
 *
 * Each branch names service_id, so that the statement can be routed when the tables are
 * distributed. Rows have as few fields as possible: for each field of each row, libpq allocates
 * memory and copies the name.
 */
#include "pg/pg.h"
#include "read/read_make.h"

#include <assert.h>

#define MAX_BRANCHES    1024
#define SQL_LIMIT_BYTES (1024 * 1024)
/*
 * A statement is prepared if it has at most these branches and bytes, and seems to read at most
 * these rows, if a profile comes each PROFILE_EACH_NS: to plan it is a part of its cost then.
 */
#define MAX_REPEATED_BRANCHES 32
#define MAX_REPEATED_BYTES    16384
#define MAX_REPEATED_ROWS     25000
#define PROFILE_EACH_NS       (10 * HEARTH_NS_PER_SEC)
/* A plan for all times has all leaves, and locks them each time: with more, it costs more. */
#define MAX_REPEATED_LEAVES "64"

/* ---- hits to slices ---- */

/* Whether totals of profiles may come in arrays. Arrays have no identity. */
static bool may_come_in_arrays(const struct read_maker *m)
{
    const struct hearth_read_detail *detail = &m->plan->detail;

    return m->out->kind == READ_TOTALS && m->leaves != NULL && m->leaves->in_arrays &&
           !detail->identity && !detail->some;
}

/* True if hits are sorted by (service_id, series_id, column), as read.h demands. */
HEARTH_UNUSED static bool are_hits_sorted(const struct hearth_read_leg *leg)
{
    for (size_t i = 1; i < leg->n_hits; i++) {
        const struct hearth_series_hit *a = &leg->hits[i - 1], *b = &leg->hits[i];
        bool in_order = a->service_id != b->service_id ? a->service_id < b->service_id
                        : a->series_id != b->series_id ? a->series_id < b->series_id
                                                       : a->column <= b->column;
        if (!in_order) {
            return false;
        }
    }

    return true;
}

/* List the distinct lists of hits, and allocate the arrays for their slices. */
static bool find_selections(struct read_maker *m)
{
    const struct hearth_read_plan *plan = m->plan;

    m->selections = hearth_arena_calloc(m->arena, plan->n_legs, sizeof m->selections[0]);
    m->selection_of = hearth_arena_array(m->arena, plan->n_legs, sizeof m->selection_of[0]);
    if (m->selections == NULL || m->selection_of == NULL) {
        return false;
    }

    /* The selection of each leg. */
    size_t n_hits = 0;
    for (size_t i = 0; i < plan->n_legs; i++) {
        size_t s = 0;
        while (s < m->n_selections && (m->selections[s].hits != plan->legs[i].hits ||
                                       m->selections[s].n_hits != plan->legs[i].n_hits)) {
            s++;
        }

        if (s == m->n_selections) {
            assert(are_hits_sorted(&plan->legs[i]));
            m->selections[s].hits = plan->legs[i].hits;
            m->selections[s].n_hits = plan->legs[i].n_hits;
            m->n_selections++;
            n_hits += 3 * plan->legs[i].n_hits; /* slices of columns, of all columns, pieces */
        }

        m->selection_of[i] = s;
        m->selections[s].in_pieces |=
            may_come_in_arrays(m) && hearth_read_in_pieces(&plan->legs[i]);
    }

    /* The parameters. */
    m->cap_runs = n_hits;
    m->run_service = hearth_arena_array(m->arena, n_hits, sizeof m->run_service[0]);
    m->run_first = hearth_arena_array(m->arena, n_hits, sizeof m->run_first[0]);
    m->run_last = hearth_arena_array(m->arena, n_hits, sizeof m->run_last[0]);
    m->series = hearth_arena_array(m->arena, n_hits, sizeof m->series[0]);

    return m->run_service != NULL && m->run_first != NULL && m->run_last != NULL &&
           m->series != NULL;
}

/* Append the hits of one column (-1: of all columns) as runs. */
static struct read_slice add_slice(struct read_maker *m, const struct read_selection *selection,
                                   int column)
{
    struct read_slice slice = {.first_run = m->n_runs + 1, .first_series = m->n_series + 1};

    for (size_t i = 0; i < selection->n_hits; i++) {
        const struct hearth_series_hit *hit = &selection->hits[i];
        bool same_service = slice.n_runs > 0 && m->run_service[m->n_runs - 1] == hit->service_id;
        bool repeated = same_service && m->series[m->n_series - 1] == hit->series_id;
        if (repeated || (column >= 0 && hit->column != column)) {
            continue;
        }

        assert(m->n_series < m->cap_runs && m->n_runs < m->cap_runs);
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

/* Append the runs of a slice again, in pieces of few series. */
static struct read_runs add_pieces(struct read_maker *m, struct read_slice slice)
{
    const int32_t n = HEARTH_READ_SERIES_OF_ARRAY;
    struct read_runs pieces = {.first = m->n_runs + 1};

    for (size_t run = slice.first_run - 1; run < slice.first_run - 1 + slice.n_runs; run++) {
        int32_t last = m->run_last[run];
        for (int32_t first = m->run_first[run]; first <= last; first += n) {
            assert(m->n_runs < m->cap_runs);
            m->run_service[m->n_runs] = m->run_service[run];
            m->run_first[m->n_runs] = first;
            m->run_last[m->n_runs++] = last - first < n ? last : first + n - 1;
        }
    }

    pieces.last = m->n_runs;

    return pieces;
}

static enum hearth_status slice_hits(struct read_maker *m, struct hearth_err *err)
{
    if (!find_selections(m)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the series of a read");
    }

    for (size_t s = 0; s < m->n_selections; s++) {
        struct read_selection *selection = &m->selections[s];

        /* Count the hits of each column. */
        size_t n_in[READ_MAX_COLUMNS] = {0}, n_columns = 0, last = 0;
        for (size_t i = 0; i < selection->n_hits; i++) {
            const struct hearth_series_hit *hit = &selection->hits[i];
            if (hit->column >= READ_MAX_COLUMNS) {
                return HEARTH_FAIL(
                    err, HEARTH_RESOURCE_EXHAUSTED,
                    "series %d has its values in column %u, but queries read only the first %d "
                    "columns",
                    (int)hit->series_id, (unsigned)hit->column, READ_MAX_COLUMNS);
            }

            n_in[hit->column]++;
        }

        /* Make their slices; a single column shares its slice with all columns. */
        for (size_t k = 0; k < READ_MAX_COLUMNS; k++) {
            if (n_in[k] > 0) {
                selection->columns[k] = add_slice(m, selection, (int)k);
                if (selection->in_pieces) {
                    selection->pieces[k] = add_pieces(m, selection->columns[k]);
                }
                n_columns++;
                last = k;
            }
        }

        selection->all = n_columns == 1 ? selection->columns[last] : add_slice(m, selection, -1);
    }

    return HEARTH_OK;
}

/* ---- branches ---- */

/* True if a leg has one branch for all columns: segments contain all, costs select none. */
static bool has_one_branch(const struct read_maker *m, const struct hearth_read_leg *leg)
{
    return m->out->kind == READ_COSTS || leg->source == HEARTH_SOURCE_SEGMENT;
}

/* The optional fields of the statement in their order, after the fields that all branches have. */
static void number_fields(const struct read_maker *m, bool val0, bool members, bool packed)
{
    struct read_statement *out = m->out;
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
}

/*
 * Decide which branches of totals read a range of ids, and which come in arrays. Returns whether
 * one comes in arrays.
 */
static bool choose_forms(struct read_maker *m)
{
    bool any = false;

    if (m->leaves == NULL || m->out->kind != READ_TOTALS) {
        return false;
    }

    for (size_t i = 0; i < m->out->n_branches; i++) {
        struct read_branch *branch = &m->out->branches[i];
        size_t leg = (size_t)(branch->leg - m->plan->legs);
        int64_t leaf_bytes = m->leaves->bytes == NULL ? INT64_MAX : m->leaves->bytes[leg];
        if (!hearth_read_by_id_range(branch, leaf_bytes, m->arena)) {
            branch->in_arrays = hearth_read_in_pieces(branch->leg);
            branch->pieces = m->selections[m->selection_of[leg]].pieces[branch->column];
        }

        branch->in_arrays = branch->in_arrays && may_come_in_arrays(m);
        any = any || branch->in_arrays;
    }

    return any;
}

static enum hearth_status make_branches(struct read_maker *m, struct hearth_err *err)
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
        const struct read_selection *selection = &m->selections[m->selection_of[i]];
        size_t n_columns = has_one_branch(m, leg) ? 1 : READ_MAX_COLUMNS;
        packed =
            packed || leg->source == HEARTH_SOURCE_SEGMENT || leg->source == HEARTH_SOURCE_TOTALS;
        members = members || (leg->n_hits > 0 && leg->hits[0].series_id < 0);

        for (size_t k = 0; k < n_columns; k++) {
            if (leg->n_hits == 0 ||
                (!has_one_branch(m, leg) && selection->columns[k].n_runs == 0)) {
                continue;
            }

            if (n == MAX_BRANCHES) {
                return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                                   "the query has more than %d parts: shorten the range or add "
                                   "label matchers",
                                   MAX_BRANCHES);
            }

            out->branches[n++] = (struct read_branch){.leg = leg, .column = (uint16_t)k};
            val0 = val0 || k > 0;
        }
    }

    out->n_branches = n;
    packed = choose_forms(m) || packed;
    number_fields(m, val0, members, packed);

    return HEARTH_OK;
}

/* ---- parameters ---- */

/* Allocate $6 to $8: each branch may add all instants. */
static bool make_instant_arrays(struct read_maker *m)
{
    size_t n;

    if (!m->plan->detail.some) {
        return true;
    }

    if (__builtin_mul_overflow(m->plan->detail.n_instants, m->out->n_branches, &n)) {
        return false;
    }

    m->instant_service = hearth_arena_array(m->arena, n, sizeof m->instant_service[0]);
    m->instant_series = hearth_arena_array(m->arena, n, sizeof m->instant_series[0]);
    m->instants = hearth_arena_array(m->arena, n, sizeof m->instants[0]);

    return m->instant_service != NULL && m->instant_series != NULL && m->instants != NULL;
}

/* Allocate the last parameter. */
static bool make_times(struct read_maker *m)
{
    if (m->is_distributed) {
        return true;
    }

    m->times =
        hearth_arena_array(m->arena, m->out->n_branches * READ_TIMES_OF_BRANCH, sizeof m->times[0]);

    return m->times != NULL;
}

static bool add_read_params(struct read_maker *m)
{
    struct hearth_pg_params *params = &m->out->params;
    const struct hearth_read_state *state = m->plan->state;

    int32_t *services = hearth_arena_array(m->arena, state->n_services, sizeof services[0]);
    if (services == NULL) {
        return false;
    }

    for (size_t i = 0; i < state->n_services; i++) {
        services[i] = state->services[i].service_id;
    }

    hearth_pg_params_init(params, m->arena);
    hearth_pg_param_i32_array(params, m->run_service, m->n_runs);
    hearth_pg_param_i32_array(params, m->run_first, m->n_runs);
    hearth_pg_param_i32_array(params, m->run_last, m->n_runs);
    hearth_pg_param_i32_array(params, m->series, m->lists_series ? m->n_series : 0);
    hearth_pg_param_i32_array(params, services, state->n_services);
    if (m->plan->detail.some) {
        hearth_pg_param_i32_array(params, m->instant_service, m->n_instants);
        hearth_pg_param_i32_array(params, m->instant_series, m->n_instants);
        hearth_pg_param_i64_array(params, m->instants, m->n_instants);
    }
    if (m->times != NULL) {
        hearth_pg_param_i64_array(params, m->times, m->n_times);
    }

    return true;
}

/* ---- preparing ---- */

/* The rows of a leg, if a profile comes each PROFILE_EACH_NS; there are few late ones. */
static int64_t guess_rows(const struct hearth_read_leg *leg)
{
    int64_t unit_ns = hearth_source_length_ns(leg->source), range_ns, n;
    if (leg->source == HEARTH_SOURCE_LATE || leg->n_hits == 0) {
        return 0;
    }

    unit_ns = leg->source == HEARTH_SOURCE_TOTALS ? HEARTH_NS_PER_HOUR
              : unit_ns > 0                       ? unit_ns
                                                  : PROFILE_EACH_NS;

    return __builtin_sub_overflow(leg->to_ns, leg->from_ns, &range_ns) ||
                   __builtin_mul_overflow(range_ns / unit_ns + 1, (int64_t)leg->n_hits, &n) ||
                   n > MAX_REPEATED_ROWS
               ? MAX_REPEATED_ROWS + 1
               : n;
}

/* Whether another query is likely to have the same text, and planning it is a part of its cost. */
static bool is_repeated(const struct read_maker *m)
{
    const struct hearth_read_detail *detail = &m->plan->detail;
    const struct read_statement *out = m->out;
    int64_t n_rows = 0;
    bool has_range = false;

    if (m->times == NULL || out->kind == READ_COSTS || detail->some || detail->has_end ||
        detail->n_profile_nos > 0 || detail->n_attrs_with > 0 ||
        out->n_branches > MAX_REPEATED_BRANCHES || out->sql.n > MAX_REPEATED_BYTES) {
        return false;
    }

    for (size_t i = 0; i < out->n_branches; i++) {
        has_range = has_range || out->branches[i].services != NULL;
    }
    for (size_t i = 0; i < m->plan->n_legs && n_rows <= MAX_REPEATED_ROWS; i++) {
        n_rows += guess_rows(&m->plan->legs[i]);
    }

    return !has_range && n_rows <= MAX_REPEATED_ROWS;
}

/* Let the statement be prepared, unless its tables have too many leaves. */
static bool allow_preparing(struct read_maker *m)
{
    struct hearth_buf sql;
    struct hearth_pg_params *params = &m->out->params;
    if (!is_repeated(m)) {
        return true;
    }

    hearth_buf_init(&sql, 2 * MAX_REPEATED_BYTES);
    hearth_buf_cstr(&sql, "SELECT count(*) <= " MAX_REPEATED_LEAVES " FROM unnest('{");
    for (size_t i = 0; i < m->out->n_branches; i++) {
        hearth_buf_cstr(&sql, i == 0 ? "" : ",");
        hearth_read_append_table(m, &sql, m->out->branches[i].leg);
    }
    hearth_buf_cstr(&sql, "}'::regclass[]) t JOIN pg_catalog.pg_inherits i ON i.inhparent = t");
    hearth_buf_byte(&sql, '\0');

    char *text = hearth_buf_failed(&sql) ? NULL : hearth_arena_alloc(m->arena, sql.n);
    if (text != NULL) {
        memcpy(text, sql.p, sql.n);
        params->one_plan_if = text;
        params->is_repeated = true;
    }
    hearth_buf_release(&sql);

    return text != NULL;
}

enum hearth_status hearth_read_statement_make(struct read_statement *statement, enum read_kind kind,
                                              const struct hearth_read_plan *plan,
                                              bool is_distributed,
                                              const struct hearth_node_part *part,
                                              const struct read_leaves *leaves,
                                              struct hearth_arena *arena, struct hearth_err *err)
{
    assert(plan->n_legs > 0 && plan->state != NULL);
    assert(part == NULL || (part->n_shards > 0 && plan->n_legs % part->n_shards == 0));

    *statement = (struct read_statement){.kind = kind};
    hearth_buf_init(&statement->sql, SQL_LIMIT_BYTES);
    struct read_maker m = {.out = statement,
                           .plan = plan,
                           .arena = arena,
                           .is_distributed = is_distributed && part == NULL,
                           .part = part,
                           .leaves = leaves};

    /* Decide on slices and branches. */
    HEARTH_TRY(slice_hits(&m, err));
    HEARTH_TRY(make_branches(&m, err));
    if (!make_instant_arrays(&m) || !make_times(&m)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the times of a read");
    }

    /* Write the text. */
    hearth_read_append_generations(&m);
    for (size_t i = 0; i < statement->n_branches; i++) {
        const struct read_branch *branch = &statement->branches[i];
        const struct read_selection *selection =
            &m.selections[m.selection_of[branch->leg - plan->legs]];
        hearth_read_append_branch(
            &m, branch,
            has_one_branch(&m, branch->leg) ? selection->all : selection->columns[branch->column]);
    }

    hearth_buf_cstr(&statement->sql, ") u");
    hearth_buf_byte(&statement->sql, '\0');

    /* Add the parameters, which hearth_read_append_branch has completed. */
    if (hearth_buf_failed(&statement->sql) || !add_read_params(&m) || !allow_preparing(&m)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the text of a query");
    }

    return HEARTH_OK;
}
