/*
 * store_rules.c -- writes and reads recording rules, and reads their counters (contract:
 * hearth/store/store_rules.h).
 */
#include "session/statements.h"
#include "tenants/rules_internal.h"

#include <assert.h>

#define NS_PER_MINUTE (60 * HEARTH_NS_PER_SEC)

/* ---- rows ---- */

/* Makes labels of texts: name, value, name, value. */
static enum hearth_status pair_labels(const struct hearth_str *texts, size_t n,
                                      struct hearth_arena *arena, struct hearth_labels *ret,
                                      struct hearth_err *err)
{
    ret->n = n / 2;
    ret->v = hearth_arena_array(arena, ret->n, sizeof ret->v[0]);
    if (ret->v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < ret->n; i++) {
        ret->v[i] = (struct hearth_label){texts[2 * i], texts[2 * i + 1]};
    }

    return HEARTH_OK;
}

enum hearth_status hearth_rule_take_labels(const PGresult *rows, int row, int column,
                                           struct hearth_arena *arena, struct hearth_labels *ret,
                                           struct hearth_err *err)
{
    assert(row >= 0 && row < PQntuples(rows));

    struct hearth_str *texts;
    size_t n;
    HEARTH_TRY(hearth_pg_str_array(rows, row, column, arena, &texts, &n, err));

    return pair_labels(texts, n, arena, ret, err);
}

void hearth_rule_param_labels(struct hearth_pg_params *params, const struct hearth_labels *labels)
{
    struct hearth_str *texts = hearth_arena_array(params->arena, 2 * labels->n, sizeof *texts);
    if (texts == NULL) {
        params->failed = true;
        return;
    }

    for (size_t i = 0; i < labels->n; i++) {
        texts[2 * i] = labels->v[i].name;
        texts[2 * i + 1] = labels->v[i].value;
    }

    hearth_pg_param_text_array(params, texts, 2 * labels->n);
}

enum hearth_status hearth_rule_take(const PGresult *rows, int row, struct hearth_arena *arena,
                                    struct hearth_rule *ret, struct hearth_err *err)
{
    assert(row >= 0 && row < PQntuples(rows) && PQnfields(rows) >= HEARTH_N_RULE_COLUMNS);

    /* Take the values and texts. */
    *ret = (struct hearth_rule){
        .rule_no = hearth_pg_i64(rows, row, 0),
        .tenant = hearth_arena_str(arena, hearth_pg_str(rows, row, 1)),
        .id = hearth_arena_str(arena, hearth_pg_str(rows, row, 2)),
        .metric_name = hearth_arena_str(arena, hearth_pg_str(rows, row, 3)),
        .has_function = hearth_pg_i32(rows, row, 7) != 0,
        .function = hearth_arena_str(arena, hearth_pg_str(rows, row, 8)),
        .generation = hearth_pg_i64(rows, row, 9),
        .start_ns = hearth_pg_i64(rows, row, 10),
    };

    /* Take the lists. */
    HEARTH_TRY(hearth_pg_str_array(rows, row, 4, arena, &ret->matchers, &ret->n_matchers, err));
    HEARTH_TRY(hearth_pg_str_array(rows, row, 5, arena, &ret->group_by, &ret->n_group_by, err));
    HEARTH_TRY(hearth_rule_take_labels(rows, row, 6, arena, &ret->external, err));

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* A rule, and its external labels as stored. */
struct rule_row {
    struct hearth_rule rule;
    struct hearth_str *external;
    size_t n_external;
};

#define RULE(kind, member) HEARTH_COLUMN(kind, struct rule_row, member)
static const struct hearth_column rule_columns[] = {
    RULE(I64, rule.rule_no),
    RULE(TEXT, rule.tenant),
    RULE(TEXT, rule.id),
    RULE(TEXT, rule.metric_name),
    HEARTH_COLUMN_LIST(TEXTS, struct rule_row, rule.matchers, rule.n_matchers),
    HEARTH_COLUMN_LIST(TEXTS, struct rule_row, rule.group_by, rule.n_group_by),
    HEARTH_COLUMN_LIST(TEXTS, struct rule_row, external, n_external),
    RULE(BOOL, rule.has_function),
    RULE(TEXT, rule.function),
    RULE(I64, rule.generation),
    RULE(I64, rule.start_ns),
};
static const struct hearth_row_type rule_rows = HEARTH_ROW_TYPE(rule_columns, struct rule_row);

/* ---- reading ---- */

enum hearth_status hearth_store_rules(const struct hearth_scope *scope, struct hearth_rule **ret,
                                      size_t *ret_n, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    struct rule_row *rows;
    size_t n;
    HEARTH_TRY(hearth_store_select(scope,
                                   "SELECT " HEARTH_RULE_COLUMNS " FROM hearth_data.recording_rule"
                                   " r WHERE r.tenant = $1 ORDER BY r.id COLLATE \"C\"",
                                   &params, &rule_rows, &rows, &n, err));

    struct hearth_rule *rules = hearth_arena_array(scope->arena, n, sizeof *rules);
    if (rules == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n; i++) {
        rules[i] = rows[i].rule;
        HEARTH_TRY(pair_labels(rows[i].external, rows[i].n_external, scope->arena,
                               &rules[i].external, err));
    }

    *ret = rules;
    *ret_n = n;

    return HEARTH_OK;
}

/* A counter, and its labels as stored. */
struct counter_row {
    struct hearth_rule_counter counter;
    struct hearth_str *labels;
    size_t n_labels;
};

static const struct hearth_column counter_columns[] = {
    HEARTH_COLUMN(I64, struct counter_row, counter.rule_no),
    HEARTH_COLUMN_LIST(TEXTS, struct counter_row, labels, n_labels),
    HEARTH_COLUMN(TEXT, struct counter_row, counter.value),
};
static const struct hearth_row_type counter_rows =
    HEARTH_ROW_TYPE(counter_columns, struct counter_row);

enum hearth_status hearth_store_rule_counters(const struct hearth_scope *scope,
                                              struct hearth_rule_counter **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    struct counter_row *rows;
    size_t n;
    HEARTH_TRY(hearth_store_select(
        scope,
        "SELECT c.rule_no, c.labels, c.value::text FROM hearth_data.rule_counter c JOIN"
        " hearth_data.recording_rule r USING (rule_no) WHERE r.tenant = $1"
        " ORDER BY c.rule_no, c.series_no",
        &params, &counter_rows, &rows, &n, err));

    struct hearth_rule_counter *counters = hearth_arena_array(scope->arena, n, sizeof *counters);
    if (counters == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n; i++) {
        counters[i] = rows[i].counter;
        HEARTH_TRY(
            pair_labels(rows[i].labels, rows[i].n_labels, scope->arena, &counters[i].labels, err));
    }

    *ret = counters;
    *ret_n = n;

    return HEARTH_OK;
}

/* ---- changing ---- */

/* Whether the lists have the same texts in the same order. */
static bool equal_texts(const struct hearth_str *a, size_t n_a, const struct hearth_str *b,
                        size_t n_b)
{
    bool same = n_a == n_b;

    for (size_t i = 0; same && i < n_a; i++) {
        same = hearth_str_eq(a[i], b[i]);
    }

    return same;
}

/* Whether the rules count the same; name and labels of the result may differ. */
static bool counts_the_same(const struct hearth_rule *a, const struct hearth_rule *b)
{
    return equal_texts(a->matchers, a->n_matchers, b->matchers, b->n_matchers) &&
           equal_texts(a->group_by, a->n_group_by, b->group_by, b->n_group_by) &&
           a->has_function == b->has_function && hearth_str_eq(a->function, b->function);
}

/* Whether the results of the rules have the same name and labels. */
static bool has_same_name(const struct hearth_rule *a, const struct hearth_rule *b)
{
    return hearth_str_eq(a->metric_name, b->metric_name) &&
           hearth_labels_cmp(&a->external, &b->external) == 0;
}

/* A stored rule. */
struct stored_rule {
    struct hearth_rule rule; /* valid if found */
    bool found;
};

/* Reads and locks the stored rule of an id. By the key (tenant, id). */
static enum hearth_status lock_stored_rule(struct hearth_transaction *transaction,
                                           struct hearth_str tenant, struct hearth_str id,
                                           struct stored_rule *ret, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, tenant);
    hearth_pg_param_text(&params, id);

    /* Read it. */
    struct rule_row row;
    HEARTH_TRY(hearth_transaction_select_one(transaction, transaction->arena,
                                             "SELECT " HEARTH_RULE_COLUMNS
                                             " FROM hearth_data.recording_rule r"
                                             " WHERE r.tenant = $1 AND r.id = $2 FOR UPDATE",
                                             &params, &rule_rows, &row, &ret->found, err));
    if (!ret->found) {
        return HEARTH_OK;
    }

    /* Make its labels. */
    ret->rule = row.rule;

    return pair_labels(row.external, row.n_external, transaction->arena, &ret->rule.external, err);
}

/* Deletes a rule with its state and counters. */
static enum hearth_status delete_rule_rows(struct hearth_transaction *transaction, int64_t rule_no,
                                           struct hearth_err *err)
{
    static const char *const statements[] = {
        "DELETE FROM hearth_data.rule_state WHERE rule_no = $1",
        "DELETE FROM hearth_data.rule_counter WHERE rule_no = $1",
        "DELETE FROM hearth_data.rule_bucket WHERE rule_no = $1",
        /* Last: without it the policies of the others hide their rows. */
        "DELETE FROM hearth_data.recording_rule WHERE rule_no = $1",
    };
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i64(&params, rule_no);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(statements); i++) {
        HEARTH_TRY(hearth_transaction_run(transaction, statements[i], &params, NULL, err));
    }

    return HEARTH_OK;
}

/* A rule to be stored, its generation already raised. */
struct rule_put {
    struct hearth_rule *rule;
    int64_t max_rules;
};

/* Fails if the tenant may not have another rule. */
static enum hearth_status check_rule_limit(const struct rule_put *put,
                                           struct hearth_transaction *transaction,
                                           struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, put->rule->tenant);

    int64_t n = 0;
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT count(*) FROM hearth_data.recording_rule WHERE tenant = $1", &params,
        &hearth_i64_rows, &n, &found, err));
    if (put->max_rules > 0 && n >= put->max_rules) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld recording rules, as many as max-rules allows",
                           (long long)n);
    }

    return HEARTH_OK;
}

/* Inserts a rule, which counts from the next whole minute on, and its state. */
static enum hearth_status insert_rule(struct hearth_rule *rule,
                                      struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    int64_t now_ns = hearth_clock_wall_ns();
    rule->start_ns = now_ns - now_ns % NS_PER_MINUTE + NS_PER_MINUTE;

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, rule->tenant);
    hearth_pg_param_text(&params, rule->id);
    hearth_pg_param_text(&params, rule->metric_name);
    hearth_pg_param_text_array(&params, rule->matchers, rule->n_matchers);
    hearth_pg_param_text_array(&params, rule->group_by, rule->n_group_by);
    hearth_rule_param_labels(&params, &rule->external);
    hearth_pg_param_i32(&params, rule->has_function);
    hearth_pg_param_text(&params, rule->function);
    hearth_pg_param_i64(&params, rule->generation);
    hearth_pg_param_i64(&params, rule->start_ns);

    /* Two statements: the policy of rule_state sees rules of earlier statements only. */
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "INSERT INTO hearth_data.recording_rule (tenant, id, metric_name, matchers, group_by,"
        " external_labels, has_function, function, generation, start_ns) VALUES ($1, $2, $3, $4,"
        " $5, $6, $7 <> 0, $8, $9, $10) RETURNING rule_no",
        &params, &hearth_i64_rows, &rule->rule_no, &found, err));

    struct hearth_pg_params state;
    hearth_pg_params_init(&state, transaction->arena);
    hearth_pg_param_i64(&state, rule->rule_no);
    hearth_pg_param_i64(&state, rule->start_ns);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.rule_state (rule_no, advanced_to, mark_done, kept_from,"
        " n_series_dropped) VALUES ($1, $2, 0, -9223372036854775808, 0)",
        &state, NULL, err);
}

/* Stores another name and labels of the result. The counters stay. */
static enum hearth_status rename_rule(struct hearth_rule *rule, const struct hearth_rule *stored,
                                      struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    rule->rule_no = stored->rule_no;
    rule->start_ns = stored->start_ns;

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i64(&params, rule->rule_no);
    hearth_pg_param_text(&params, rule->metric_name);
    hearth_rule_param_labels(&params, &rule->external);
    hearth_pg_param_i64(&params, rule->generation);

    return hearth_transaction_run(
        transaction,
        "UPDATE hearth_data.recording_rule SET metric_name = $2, external_labels = $3,"
        " generation = $4 WHERE rule_no = $1",
        &params, NULL, err);
}

/* Fails if the stored rule is not the one before. stored: NULL if no rule has the id. */
static enum hearth_status check_generation(const struct hearth_rule *rule,
                                           const struct hearth_rule *stored, struct hearth_err *err)
{
    int64_t expected = rule->generation - 1;

    if (stored == NULL && expected != 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "no recording rule \"" HEARTH_STR_FMT
                           "\" to replace; a new one has no generation",
                           HEARTH_STR_ARG(rule->id));
    }

    if (stored != NULL && expected != stored->generation) {
        return HEARTH_FAIL(err, HEARTH_ABORTED,
                           "recording rule \"" HEARTH_STR_FMT
                           "\" has generation %lld, not %lld: somebody changed it",
                           HEARTH_STR_ARG(rule->id), (long long)stored->generation,
                           (long long)expected);
    }

    return HEARTH_OK;
}

/* Stores the rule of a struct rule_put. */
static enum hearth_status put_rule(void *context, struct hearth_transaction *transaction,
                                   struct hearth_err *err)
{
    const struct rule_put *put = context;
    struct hearth_rule *rule = put->rule;
    struct stored_rule stored = {0};
    assert(rule->generation > 0);

    /* Read the stored rule, under the lock of the tenant. */
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));
    HEARTH_TRY(lock_stored_rule(transaction, rule->tenant, rule->id, &stored, err));

    /* An attempt whose COMMIT was not answered may have stored the rule. */
    bool counts_same = stored.found && counts_the_same(&stored.rule, rule);
    if (transaction->attempt > 1 && counts_same && stored.rule.generation == rule->generation &&
        has_same_name(&stored.rule, rule)) {
        rule->rule_no = stored.rule.rule_no;
        rule->start_ns = stored.rule.start_ns;
        return HEARTH_OK;
    }

    /* Rename it, replace it, or insert a new one. */
    HEARTH_TRY(check_generation(rule, stored.found ? &stored.rule : NULL, err));
    if (counts_same) {
        return rename_rule(rule, &stored.rule, transaction, err);
    }

    if (stored.found) {
        HEARTH_TRY(delete_rule_rows(transaction, stored.rule.rule_no, err));
    } else {
        HEARTH_TRY(check_rule_limit(put, transaction, err));
    }

    return insert_rule(rule, transaction, err);
}

enum hearth_status hearth_store_rule_put(const struct hearth_scope *scope, struct hearth_rule *rule,
                                         int64_t max_rules, struct hearth_err *err)
{
    assert(rule != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* The rule names its tenant. */
    struct hearth_scope of_rule = *scope;
    of_rule.tenant = rule->tenant;

    struct rule_put put = {rule, max_rules};
    rule->generation++;

    return hearth_store_in_transaction(&of_rule, put_rule, &put, err);
}

/* A rule to be deleted. */
struct rule_delete {
    struct hearth_str id;
    bool found; /* result: there was a rule */
};

/* Deletes the rule of a struct rule_delete, if it exists. */
static enum hearth_status delete_rule(void *context, struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    struct rule_delete *delete = context;
    struct stored_rule stored = {0};
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));
    HEARTH_TRY(lock_stored_rule(transaction, transaction->scope->tenant, delete->id, &stored, err));

    /* An attempt whose COMMIT was not answered may have deleted the rule. */
    delete->found = stored.found || (delete->found && transaction->attempt > 1);

    return stored.found ? delete_rule_rows(transaction, stored.rule.rule_no, err) : HEARTH_OK;
}

enum hearth_status hearth_store_rule_delete(const struct hearth_scope *scope, struct hearth_str id,
                                            struct hearth_err *err)
{
    struct rule_delete delete = {.id = id};
    HEARTH_TRY(hearth_store_in_transaction(scope, delete_rule, &delete, err));

    return delete.found
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no recording rule \"" HEARTH_STR_FMT "\"",
                             HEARTH_STR_ARG(id));
}
