/*
 * rule_step.c -- advances the counters of recording rules (docs/decisions/0013-recording-rules.md).
 *
 * A rule is summed minute by minute, each minute once, and the contribution of each bucket of 10
 * minutes is stored with its counters. The transactions that build a bucket, or fold late profiles
 * into one, leave a mark. A marked bucket is summed again, up to the time that the rule has
 * reached, and its gain is added. Counters, contributions and the time that the rule has reached
 * change in one transaction, which holds the lease: a server that dies or loses the lease before
 * the commit has changed nothing.
 *
 * Sums are made outside of transactions, by the evaluator. That is correct because the data that it
 * reads only grow (deletions are not subtracted from counters), and because the marks that a sum
 * covers were committed before it.
 */
#include "hearth/base/metrics.h"

#include "build/builder.h"
#include "build/roll.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "tenants/rules_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MINUTE (60 * HEARTH_NS_PER_SEC)
#define STEP_NS       HEARTH_NS_PER_SEC
/* Limits of one read of marks: rows, and buckets summed before the rule stores its progress. */
#define MAX_MARKS   2000
#define MAX_BUCKETS 64
/* Pause between two passes over the marks. */
#define ROUNDS_OF_PAUSE  3
#define RULE_ARENA_BYTES ((size_t)256 << 20)

/* A rule to advance. */
struct work {
    struct hearth_rule rule;
    int64_t advanced_to_ns; /* minutes before it are counted */
    int64_t mark_done;      /* marks up to this id are done */
    int64_t kept_from_ns;   /* contributions of earlier buckets are deleted */
    bool is_gone;           /* the rule was removed or changed meanwhile */
};

/* One pass over all rules. */
struct pass {
    struct hearth_builder *builder;
    const struct hearth_rule_evaluator *evaluator;
    int64_t token;     /* the lease under which the sums are made */
    int64_t closed_ns; /* minutes before it are closed */
    int64_t until_mono_ns;
    int64_t newest_mark; /* the highest mark_id when the pass began */
    struct hearth_arena arena;
    struct work *works;
    size_t n;
    bool more; /* work is left */
};

/* A change of the counters of one rule, for one bucket. */
struct change {
    struct pass *pass;
    struct work *work;
    struct hearth_arena *arena;
    int64_t t0_ns;          /* begin of the bucket */
    int64_t from_ns, to_ns; /* the summed range, within the bucket */
    bool again;             /* the bucket is summed again, because of a mark */
    const struct hearth_rule_sum *sums;
    size_t n_sums;
    int64_t *counted, *delta; /* [n_series + n_sums], by number: the bucket's contribution; gain */
    size_t n_series, n_new;   /* stored counters; new counters */
    int32_t *new_series;      /* [n_sums]: indices of the sums with a new counter */
    int64_t n_dropped;        /* sums without a counter, because of max_series */
};

void hearth_store_set_rule_evaluator(struct hearth_store *store,
                                     const struct hearth_rule_evaluator *evaluator)
{
    store->rule_evaluator = *evaluator;
    atomic_store(&store->has_rule_evaluator, true);
}

static enum hearth_status run_rule_statement(struct pass *pass, const char *sql,
                                             const struct hearth_pg_params *params,
                                             PGresult **ret_rows, struct hearth_err *err)
{
    return hearth_pg_exec(&pass->builder->pg, sql, params, NULL, ret_rows, NULL, err);
}

/* ---- marks ---- */

enum hearth_status hearth_rules_mark(struct hearth_builder *builder, int32_t service_id,
                                     const int64_t *t0s_ns, size_t n, struct hearth_err *err)
{
    assert(t0s_ns != NULL || n == 0);
    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, service_id);
    hearth_pg_param_i64_array(&params, t0s_ns, n);

    /* A mark for each bucket, if the tenant of the service has rules. */
    enum hearth_status status =
        hearth_pg_exec(&builder->pg,
                       "INSERT INTO hearth_data.rule_mark (tenant, t0) SELECT t.name,"
                       " b.t0 FROM hearth_data.service s JOIN hearth_data.tenant t USING"
                       " (tenant_id), (SELECT DISTINCT unnest($2::int8[]) AS t0) b WHERE"
                       " s.service_id = $1 AND EXISTS (SELECT FROM"
                       " hearth_data.recording_rule r WHERE r.tenant = t.name)",
                       &params, NULL, NULL, NULL, err);
    hearth_arena_release(&arena);

    return status;
}

/* ---- rules to advance ---- */

/* Reads the highest mark_id; 0: there are no marks. */
static enum hearth_status read_newest_mark(struct pass *pass, struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(run_rule_statement(
        pass, "SELECT coalesce(max(mark_id), 0) FROM hearth_data.rule_mark", NULL, &rows, err));
    pass->newest_mark = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

/*
 * Lists the rules that have minutes or marks to sum. A pass begins after the rule with which the
 * last pass ended, even if that rule failed.
 */
static enum hearth_status list_works(struct pass *pass, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &pass->arena);
    hearth_pg_param_i64(&params, pass->closed_ns);
    hearth_pg_param_i64(&params, pass->newest_mark);
    hearth_pg_param_i64(&params, pass->builder->rules_after);

    PGresult *rows = NULL;
    HEARTH_TRY(run_rule_statement(
        pass,
        "SELECT " HEARTH_RULE_COLUMNS ", s.advanced_to, s.mark_done, s.kept_from FROM"
        " hearth_data.recording_rule r JOIN hearth_data.rule_state s USING (rule_no)"
        " WHERE s.advanced_to < $1 OR s.mark_done < $2"
        " ORDER BY r.rule_no <= $3, r.rule_no",
        &params, &rows, err));

    /* Take the rows. */
    pass->n = (size_t)PQntuples(rows);
    pass->works = hearth_arena_calloc(&pass->arena, pass->n, sizeof *pass->works);
    enum hearth_status status =
        pass->works == NULL ? HEARTH_FAIL_ARENA(err, &pass->arena) : HEARTH_OK;
    for (size_t i = 0; i < pass->n && status == HEARTH_OK; i++) {
        struct work *work = &pass->works[i];
        status = hearth_rule_take(rows, (int)i, &pass->arena, &work->rule, err);
        work->advanced_to_ns = hearth_pg_i64(rows, (int)i, HEARTH_N_RULE_COLUMNS);
        work->mark_done = hearth_pg_i64(rows, (int)i, HEARTH_N_RULE_COLUMNS + 1);
        work->kept_from_ns = hearth_pg_i64(rows, (int)i, HEARTH_N_RULE_COLUMNS + 2);
    }

    PQclear(rows);

    return status;
}

/* Publishes the largest lag of a rule. */
static void publish_rule_lag(const struct pass *pass)
{
    int64_t lag_ns = 0;
    for (size_t i = 0; i < pass->n; i++) {
        int64_t behind_ns = pass->closed_ns - pass->works[i].advanced_to_ns;
        lag_ns = behind_ns > lag_ns ? behind_ns : lag_ns;
    }

    hearth_metric_set(HEARTH_M_RULE_LAG, lag_ns);
}

/* ---- one change: the stored counters ---- */

/* A stored counter. */
struct known_series {
    struct hearth_labels labels;
    int32_t series_no;
};

static int compare_known(const void *left, const void *right)
{
    const struct known_series *a = left, *b = right;
    return hearth_labels_cmp(&a->labels, &b->labels);
}

/* Takes the counters from rows (series_no, labels), sorted by number, and sorts them by labels. */
static enum hearth_status take_known(struct change *change, const PGresult *rows,
                                     struct known_series **ret, struct hearth_err *err)
{
    change->n_series = (size_t)PQntuples(rows);
    struct known_series *known = hearth_arena_array(change->arena, change->n_series, sizeof *known);
    if (known == NULL) {
        return HEARTH_FAIL_ARENA(err, change->arena);
    }

    /* Take the counters; their numbers have no gaps. */
    for (size_t i = 0; i < change->n_series; i++) {
        known[i].series_no = hearth_pg_i32(rows, (int)i, 0);
        if (known[i].series_no != (int32_t)i) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "rule %" PRId64 " lacks the counter %zu",
                               change->work->rule.rule_no, i);
        }

        HEARTH_TRY(hearth_rule_take_labels(rows, (int)i, 1, change->arena, &known[i].labels, err));
    }

    /* Sort them. */
    if (change->n_series > 0) {
        qsort(known, change->n_series, sizeof *known, compare_known);
    }

    *ret = known;

    return HEARTH_OK;
}

/* Reads the counters of the rule. */
static enum hearth_status read_known(struct change *change, struct known_series **ret,
                                     struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, change->arena);
    hearth_pg_param_i64(&params, change->work->rule.rule_no);

    PGresult *rows = NULL;
    HEARTH_TRY(run_rule_statement(
        change->pass,
        "SELECT series_no, labels FROM hearth_data.rule_counter WHERE rule_no = $1"
        " ORDER BY series_no",
        &params, &rows, err));
    enum hearth_status status = take_known(change, rows, ret, err);
    PQclear(rows);

    return status;
}

/* Takes the stored contribution of the bucket. */
static enum hearth_status take_counted(struct change *change, const PGresult *rows,
                                       struct hearth_err *err)
{
    int32_t *series_nos;
    int64_t *counted;
    size_t n, n_counted;

    /* Read the numbers and values of the series. */
    HEARTH_TRY(hearth_pg_i32_array(rows, 0, 0, change->arena, &series_nos, &n, err));
    HEARTH_TRY(hearth_pg_i64_array(rows, 0, 1, change->arena, &counted, &n_counted, err));
    /* Put each value at the number of its series. */
    for (size_t i = 0; i < n; i++) {
        if (n != n_counted || series_nos[i] < 0 || (size_t)series_nos[i] >= change->n_series) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "rule %" PRId64 ": a bucket is damaged",
                               change->work->rule.rule_no);
        }

        change->counted[series_nos[i]] = counted[i];
    }

    return HEARTH_OK;
}

/* Reads the stored contribution of the bucket, if any, and allocates the arrays of the change. */
static enum hearth_status read_counted(struct change *change, struct hearth_err *err)
{
    /* Allocate the arrays. */
    size_t n = change->n_series + change->n_sums;
    change->counted = hearth_arena_calloc(change->arena, n, sizeof *change->counted);
    change->delta = hearth_arena_calloc(change->arena, n, sizeof *change->delta);
    change->new_series =
        hearth_arena_array(change->arena, change->n_sums, sizeof *change->new_series);
    if (change->counted == NULL || change->delta == NULL || change->new_series == NULL) {
        return HEARTH_FAIL_ARENA(err, change->arena);
    }

    /* Read the bucket. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, change->arena);
    hearth_pg_param_i64(&params, change->work->rule.rule_no);
    hearth_pg_param_i64(&params, change->t0_ns);

    PGresult *rows = NULL;
    HEARTH_TRY(run_rule_statement(
        change->pass,
        "SELECT series_nos, counted FROM hearth_data.rule_bucket WHERE rule_no = $1 AND"
        " t0 = $2",
        &params, &rows, err));
    enum hearth_status status = PQntuples(rows) > 0 ? take_counted(change, rows, err) : HEARTH_OK;
    PQclear(rows);

    return status;
}

/* ---- one change: the new values ---- */

/* Adds a sum to the contribution of the bucket and to the gain of its series. */
static enum hearth_status add_sum(struct change *change, size_t i, const struct known_series *known,
                                  struct hearth_err *err)
{
    assert(i < change->n_sums && change->n_new <= i);

    int64_t max_series = change->pass->evaluator->max_series;
    struct known_series key = {.labels = change->sums[i].labels};
    const struct known_series *found =
        change->n_series == 0 ? NULL
                              : bsearch(&key, known, change->n_series, sizeof key, compare_known);

    /* Find the counter. A sum above 0 without a counter gets a new one, up to max_series. */
    int64_t sum = change->sums[i].sum;
    size_t no = found != NULL ? (size_t)found->series_no : change->n_series + change->n_new;
    if (found == NULL) {
        if (sum <= 0 || (max_series > 0 && no >= (uint64_t)max_series)) {
            change->n_dropped += sum > 0;
            return HEARTH_OK;
        }

        change->new_series[change->n_new++] = (int32_t)i;
    }

    /* A bucket that is summed again gains the difference. Deleted profiles stay counted. */
    assert(no < change->n_series + change->n_new);
    int64_t gained = change->again ? sum - change->counted[no] : sum;
    if (gained <= 0) {
        return HEARTH_OK;
    }

    change->delta[no] = gained;

    return __builtin_add_overflow(change->counted[no], gained, &change->counted[no])
               ? HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                             "the sum of ten minutes of a rule exceeds 64 bits")
               : HEARTH_OK;
}

/* Inserts the new counters, with value 0. */
static enum hearth_status write_new_series(struct change *change, struct hearth_err *err)
{
    assert(change->n_new <= change->n_sums);

    for (size_t i = 0; i < change->n_new; i++) {
        struct hearth_pg_params params;
        hearth_pg_params_init(&params, change->arena);
        hearth_pg_param_i64(&params, change->work->rule.rule_no);
        hearth_pg_param_i32(&params, (int32_t)(change->n_series + i));
        hearth_rule_param_labels(&params, &change->sums[change->new_series[i]].labels);
        HEARTH_TRY(run_rule_statement(
            change->pass,
            "INSERT INTO hearth_data.rule_counter (rule_no, series_no, labels, value)"
            " VALUES ($1, $2, $3, 0)",
            &params, NULL, err));
    }

    return HEARTH_OK;
}

/*
 * Returns how many series have a value other than 0, with their numbers and values in the change's
 * arena. If memory is refused, arena->refused is set.
 */
static size_t pick_nonzero(struct change *change, const int64_t *values, int32_t **ret_nos,
                           int64_t **ret_values)
{
    size_t n_all = change->n_series + change->n_new, n = 0;
    *ret_nos = hearth_arena_array(change->arena, n_all, sizeof **ret_nos);
    *ret_values = hearth_arena_array(change->arena, n_all, sizeof **ret_values);
    for (size_t i = 0; i < n_all && *ret_nos != NULL && *ret_values != NULL; i++) {
        if (values[i] != 0) {
            (*ret_nos)[n] = (int32_t)i;
            (*ret_values)[n++] = values[i];
        }
    }

    return n;
}

/* Adds the gains to the counters, and stores the contribution of the bucket. */
static enum hearth_status write_values(struct change *change, struct hearth_err *err)
{
    int32_t *nos;
    int64_t *values;

    size_t n = pick_nonzero(change, change->delta, &nos, &values);
    if (change->arena->refused) {
        return HEARTH_FAIL_ARENA(err, change->arena);
    }

    if (n == 0) {
        return HEARTH_OK;
    }

    /* Add the gains. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, change->arena);
    hearth_pg_param_i64(&params, change->work->rule.rule_no);
    hearth_pg_param_i32_array(&params, nos, n);
    hearth_pg_param_i64_array(&params, values, n);
    HEARTH_TRY(
        run_rule_statement(change->pass,
                           "UPDATE hearth_data.rule_counter c SET value = c.value + d.delta FROM"
                           " unnest($2::int4[], $3::int8[]) AS d (series_no, delta)"
                           " WHERE c.rule_no = $1 AND c.series_no = d.series_no",
                           &params, NULL, err));

    /* Store the contribution. */
    n = pick_nonzero(change, change->counted, &nos, &values);
    hearth_pg_params_init(&params, change->arena);
    hearth_pg_param_i64(&params, change->work->rule.rule_no);
    hearth_pg_param_i64(&params, change->t0_ns);
    hearth_pg_param_i32_array(&params, nos, n);
    hearth_pg_param_i64_array(&params, values, n);

    return run_rule_statement(
        change->pass,
        "INSERT INTO hearth_data.rule_bucket (rule_no, t0, series_nos, counted) VALUES"
        " ($1, $2, $3, $4) ON CONFLICT (rule_no, t0) DO UPDATE SET series_nos ="
        " excluded.series_nos, counted = excluded.counted",
        &params, NULL, err);
}

/* Stores the time that the rule has reached, deletes buckets past the window, and commits. */
static enum hearth_status write_state(struct change *change, struct hearth_err *err)
{
    struct work *work = change->work;
    int64_t window_ns = change->pass->builder->store->options.rule_window_ns;
    int64_t advanced_to_ns = change->again ? work->advanced_to_ns : change->to_ns;

    /* Buckets before the window are not kept. */
    int64_t kept_from_ns = work->kept_from_ns, from_ns;
    if (window_ns > 0 && !__builtin_sub_overflow(advanced_to_ns, window_ns, &from_ns)) {
        from_ns = hearth_floor_ns(from_ns, HEARTH_BUCKET_NS);
        kept_from_ns = from_ns > kept_from_ns ? from_ns : kept_from_ns;
    }

    /* Store the state. */
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.rule_state SET advanced_to = %" PRId64
                   ", kept_from = %" PRId64 ", n_series_dropped = n_series_dropped + %" PRId64
                   " WHERE rule_no = %" PRId64,
                   advanced_to_ns, kept_from_ns, change->n_dropped, work->rule.rule_no);
    HEARTH_TRY(run_rule_statement(change->pass, sql, NULL, NULL, err));

    /* Delete the buckets. */
    if (kept_from_ns > work->kept_from_ns) {
        (void)snprintf(sql, sizeof sql,
                       "DELETE FROM hearth_data.rule_bucket WHERE rule_no = %" PRId64
                       " AND t0 < %" PRId64,
                       work->rule.rule_no, kept_from_ns);
        HEARTH_TRY(run_rule_statement(change->pass, sql, NULL, NULL, err));
    }

    /* Commit, then note the state in memory. */
    HEARTH_TRY(hearth_builder_commit(change->pass->builder, err));
    work->advanced_to_ns = advanced_to_ns;
    work->kept_from_ns = kept_from_ns;

    return HEARTH_OK;
}

/* ---- one change: the transaction ---- */

/*
 * Begins a transaction in which no other one can change the rule. work->is_gone: the rule was
 * removed.
 */
static enum hearth_status lock_rule(struct pass *pass, struct work *work, struct hearth_err *err)
{
    HEARTH_TRY(hearth_builder_begin(pass->builder, err));
    if (pass->builder->token != pass->token) { /* lost and won again: the sums may be old */
        return HEARTH_FAIL(err, HEARTH_ABORTED, "the lease was lost while a rule was summed");
    }

    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT 1 FROM hearth_data.recording_rule WHERE rule_no = %" PRId64 " FOR SHARE",
                   work->rule.rule_no);

    PGresult *rows = NULL;
    HEARTH_TRY(run_rule_statement(pass, sql, NULL, &rows, err));
    work->is_gone = PQntuples(rows) == 0;
    PQclear(rows);

    return HEARTH_OK;
}

/* Changes counters and state in one transaction, unless the rule is gone. */
static enum hearth_status change_in_transaction(struct change *change, struct hearth_err *err)
{
    HEARTH_TRY(lock_rule(change->pass, change->work, err));
    if (change->work->is_gone) {
        return HEARTH_OK;
    }

    if (change->n_sums > 0) {
        /* Compute the gains. */
        struct known_series *known;
        HEARTH_TRY(read_known(change, &known, err));
        HEARTH_TRY(read_counted(change, err));
        for (size_t i = 0; i < change->n_sums; i++) {
            HEARTH_TRY(add_sum(change, i, known, err));
        }

        /* Store them. */
        HEARTH_TRY(write_new_series(change, err));
        HEARTH_TRY(write_values(change, err));
    }

    return write_state(change, err);
}

/* A range of a rule, within one bucket. */
struct rule_range {
    int64_t from_ns, to_ns;
    bool again; /* the rule has counted the range before: its gain is the difference */
};

/* Sums the range, and adds the result to the counters. */
static enum hearth_status count_range(struct pass *pass, struct work *work,
                                      const struct rule_range *range, struct hearth_err *err)
{
    int64_t t0_ns = hearth_floor_ns(range->from_ns, HEARTH_BUCKET_NS);
    assert(range->from_ns < range->to_ns);

    struct hearth_arena arena;
    hearth_arena_init(&arena, RULE_ARENA_BYTES);
    struct hearth_rule_sum *sums = NULL;
    size_t n = 0;

    /* Evaluate, outside of the transaction. */
    enum hearth_status status =
        pass->evaluator->evaluate(pass->evaluator->context, &work->rule,
                                  (struct hearth_rule_range){range->from_ns, range->to_ns},
                                  pass->builder->pg.cancel, &arena, &sums, &n, err);

    /* Change the counters. */
    if (status == HEARTH_OK) {
        struct change change = {
            .pass = pass,
            .work = work,
            .arena = &arena,
            .t0_ns = t0_ns,
            .from_ns = range->from_ns,
            .to_ns = range->to_ns,
            .again = range->again,
            .sums = sums,
            .n_sums = n,
        };
        status = change_in_transaction(&change, err);
        hearth_builder_rollback(pass->builder);
        hearth_metric_add(HEARTH_M_RULE_SERIES_DROPPED, change.n_dropped);
        hearth_metric_add_label(HEARTH_M_RULE_EVALUATIONS,
                                hearth_str_c(range->again ? "again" : "minute"), 1);
    }

    hearth_arena_release(&arena);

    return status;
}

/* ---- a rule ---- */

/* Whether the rule exists and time is left. */
static bool may_continue(const struct pass *pass, const struct work *work)
{
    return !work->is_gone && hearth_clock_mono_ns() < pass->until_mono_ns;
}

/* Sums the closed minutes that are not summed, at most to the end of a bucket at a time. */
static enum hearth_status advance_rule(struct pass *pass, struct work *work, struct hearth_err *err)
{
    while (work->advanced_to_ns < pass->closed_ns && may_continue(pass, work)) {
        int64_t from_ns = work->advanced_to_ns;
        int64_t to_ns = hearth_floor_ns(from_ns, HEARTH_BUCKET_NS) + HEARTH_BUCKET_NS;
        struct rule_range range = {
            .from_ns = from_ns,
            .to_ns = to_ns < pass->closed_ns ? to_ns : pass->closed_ns,
        };
        HEARTH_TRY(count_range(pass, work, &range, err));
    }

    pass->more = pass->more || (!work->is_gone && work->advanced_to_ns < pass->closed_ns);

    return HEARTH_OK;
}

/* The buckets of the next marks of a rule. */
struct marked_buckets {
    int64_t t0s_ns[MAX_BUCKETS]; /* distinct */
    size_t n;
    int64_t upto; /* the last mark that they cover; newest_mark if no mark is left */
};

/* Reads the next marks, with at most MAX_BUCKETS distinct buckets. */
static enum hearth_status read_marks(struct pass *pass, const struct work *work,
                                     struct marked_buckets *ret, struct hearth_err *err)
{
    assert(work->mark_done < pass->newest_mark);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, work->rule.tenant);
    hearth_pg_param_i64(&params, work->mark_done);
    hearth_pg_param_i64(&params, pass->newest_mark);
    hearth_pg_param_i64(&params, MAX_MARKS);

    PGresult *rows = NULL;
    enum hearth_status status = run_rule_statement(
        pass,
        "SELECT mark_id, t0 FROM hearth_data.rule_mark WHERE tenant = $1 AND mark_id > $2"
        " AND mark_id <= $3 ORDER BY mark_id LIMIT $4",
        &params, &rows, err);
    hearth_arena_release(&arena);
    HEARTH_TRY(status);

    /* Collect the distinct buckets, until there are too many. */
    int n_rows = PQntuples(rows), row = 0;
    ret->n = 0;
    for (; row < n_rows; row++) {
        int64_t t0_ns = hearth_pg_i64(rows, row, 1);
        size_t i = 0;
        while (i < ret->n && ret->t0s_ns[i] != t0_ns) {
            i++;
        }

        if (i == MAX_BUCKETS) {
            break;
        }

        ret->t0s_ns[i] = t0_ns;
        ret->n = i == ret->n ? ret->n + 1 : ret->n;
    }

    bool all = row == n_rows && n_rows < MAX_MARKS;
    ret->upto = all ? pass->newest_mark : hearth_pg_i64(rows, row - 1, 0);
    PQclear(rows);

    return HEARTH_OK;
}

/* Sums a marked bucket again, as far as the rule has summed it before. */
static enum hearth_status count_bucket_again(struct pass *pass, struct work *work, int64_t t0_ns,
                                             struct hearth_err *err)
{
    int64_t end_ns = t0_ns + HEARTH_BUCKET_NS;
    struct rule_range range = {
        .from_ns = t0_ns > work->rule.start_ns ? t0_ns : work->rule.start_ns,
        .to_ns = end_ns < work->advanced_to_ns ? end_ns : work->advanced_to_ns,
        .again = true,
    };
    if (range.from_ns >= range.to_ns) {
        return HEARTH_OK;
    }

    /* Without its stored contribution, the gain is unknown. */
    if (t0_ns < work->kept_from_ns) {
        hearth_metric_add(HEARTH_M_RULE_TOO_LATE, 1);
        return HEARTH_OK;
    }

    return count_range(pass, work, &range, err);
}

/* Stores that the marks up to `upto` are done. */
static enum hearth_status store_marks_done(struct pass *pass, struct work *work, int64_t upto,
                                           struct hearth_err *err)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.rule_state SET mark_done = %" PRId64
                   " WHERE rule_no = %" PRId64,
                   upto, work->rule.rule_no);

    enum hearth_status status = lock_rule(pass, work, err);
    if (status == HEARTH_OK && !work->is_gone) {
        status = run_rule_statement(pass, sql, NULL, NULL, err);
        status = status == HEARTH_OK ? hearth_builder_commit(pass->builder, err) : status;
    }

    hearth_builder_rollback(pass->builder);

    return status;
}

/* Sums the buckets of the next marks again. */
static enum hearth_status count_marked_buckets(struct pass *pass, struct work *work,
                                               struct hearth_err *err)
{
    if (work->is_gone || work->mark_done >= pass->newest_mark) {
        return HEARTH_OK;
    }

    /* Read the marks. */
    struct marked_buckets marked;
    HEARTH_TRY(read_marks(pass, work, &marked, err));

    /* Sum their buckets, then store the progress. */
    for (size_t i = 0; i < marked.n && !work->is_gone; i++) {
        HEARTH_TRY(count_bucket_again(pass, work, marked.t0s_ns[i], err));
    }

    if (!work->is_gone) {
        HEARTH_TRY(store_marks_done(pass, work, marked.upto, err));
    }

    pass->more = pass->more || marked.upto < pass->newest_mark;

    return HEARTH_OK;
}

/* Deletes the marks that all rules have done. */
static enum hearth_status remove_marks(struct pass *pass, struct hearth_err *err)
{
    HEARTH_TRY(hearth_builder_begin(pass->builder, err));

    enum hearth_status status = run_rule_statement(
        pass,
        "DELETE FROM hearth_data.rule_mark WHERE mark_id <= coalesce((SELECT min(mark_done)"
        " FROM hearth_data.rule_state), 9223372036854775807)",
        NULL, NULL, err);
    status = status == HEARTH_OK ? hearth_builder_commit(pass->builder, err) : status;
    hearth_builder_rollback(pass->builder);

    return status;
}

/*
 * Advances the rules until the time is over. A rule that cannot be summed does not stop the others:
 * its marks and minutes wait.
 */
static enum hearth_status run_works(struct pass *pass, bool with_marks, struct hearth_err *err)
{
    enum hearth_status failed = HEARTH_OK;
    for (size_t i = 0; i < pass->n; i++) {
        struct work *work = &pass->works[i];
        if (hearth_clock_mono_ns() >= pass->until_mono_ns) {
            pass->more = true;
            break;
        }

        /* Advance it, and sum its marked buckets again. */
        pass->builder->rules_after = work->rule.rule_no;
        struct hearth_err failure = HEARTH_ERR_INIT;
        enum hearth_status status = advance_rule(pass, work, &failure);
        if (status == HEARTH_OK && with_marks) {
            status = count_marked_buckets(pass, work, &failure);
        }

        /* Keep the first failure. */
        if (status != HEARTH_OK && failed == HEARTH_OK) {
            failed = status;
            *err = failure;
            hearth_err_prefix(err, "rule \"" HEARTH_STR_FMT "\" of tenant \"" HEARTH_STR_FMT "\"",
                              HEARTH_STR_ARG(work->rule.id), HEARTH_STR_ARG(work->rule.tenant));
        }

        /* Without the connection or the lease, the others would fail too. */
        if (!hearth_pg_usable(&pass->builder->pg) || pass->builder->token != pass->token) {
            break;
        }
    }

    return failed;
}

/* Advances all rules once; after a pause also sums the marked buckets again. */
static enum hearth_status run_pass(struct pass *pass, struct hearth_err *err)
{
    struct hearth_builder *builder = pass->builder;

    /* List the work. */
    HEARTH_TRY(read_newest_mark(pass, err));
    HEARTH_TRY(list_works(pass, err));
    publish_rule_lag(pass);

    /*
     * A bucket of many services is built in several rounds: it is summed again after a pause, once
     * they are all built.
     */
    bool with_marks =
        pass->newest_mark > 0 && hearth_clock_mono_ns() >= builder->next_marks_mono_ns;
    HEARTH_TRY(run_works(pass, with_marks, err));

    /* All marks are done: pause, and delete them. */
    if (with_marks && !pass->more) {
        builder->next_marks_mono_ns =
            hearth_clock_mono_ns() +
            ROUNDS_OF_PAUSE * hearth_store_live(builder->store)->builder_interval_ns;
        return remove_marks(pass, err);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_step_rules(struct hearth_builder *builder, bool *ret_more,
                                     struct hearth_err *err)
{
    struct hearth_store *store = builder->store;
    if (!atomic_load(&store->has_rule_evaluator)) {
        return HEARTH_OK;
    }

    /* Advance the rules to the last closed minute. */
    int64_t closed_ns = hearth_clock_wall_ns() - store->options.rollup_grace_ns;
    struct pass pass = {
        .builder = builder,
        .evaluator = &store->rule_evaluator,
        .token = builder->token,
        .closed_ns = hearth_floor_ns(closed_ns, NS_PER_MINUTE),
        .until_mono_ns = hearth_clock_mono_ns() + STEP_NS,
    };

    hearth_arena_init(&pass.arena, RULE_ARENA_BYTES);
    enum hearth_status status = run_pass(&pass, err);
    *ret_more = status == HEARTH_OK && pass.more;
    hearth_arena_release(&pass.arena);

    return status;
}
