/* store_rules.c -- recording rules as rows, and what their counters say (contract: hearth/store/store_rules.h). */
#include "pg/pg.h"
#include "pg/session.h"
#include "tenants/rules_internal.h"

#define NS_PER_MINUTE (60 * HEARTH_NS_PER_SEC)

/* ---- rows ---- */

enum hearth_status hearth_rule_take_labels(const PGresult *rows, int row, int column,
                                           struct hearth_arena *arena, struct hearth_labels *ret,
                                           struct hearth_err *err)
{
    struct hearth_str *texts;
    size_t n;
    HEARTH_TRY(hearth_pg_str_array(rows, row, column, arena, &texts, &n, err));
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
    HEARTH_TRY(hearth_pg_str_array(rows, row, 4, arena, &ret->matchers, &ret->n_matchers, err));
    HEARTH_TRY(hearth_pg_str_array(rows, row, 5, arena, &ret->group_by, &ret->n_group_by, err));
    HEARTH_TRY(hearth_rule_take_labels(rows, row, 6, arena, &ret->external, err));
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

struct question {
    struct hearth_str tenant, id;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    int64_t max_rules;
    struct hearth_rule *rule; /* to be put */
    int n_attempts;
    bool found;
    /* The answer. */
    struct hearth_rule *rules;
    struct hearth_rule_counter *counters;
    size_t n;
};

/* ---- listing ---- */

static enum hearth_status list_rules(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT " HEARTH_RULE_COLUMNS " FROM hearth_data.recording_rule r"
                              " WHERE r.tenant = $1 ORDER BY r.id COLLATE \"C\"",
                              &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->rules = hearth_arena_array(question->arena, question->n, sizeof *question->rules);
    enum hearth_status status =
        question->rules == NULL ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
    for (size_t i = 0; i < question->n && status == HEARTH_OK; i++) {
        status = hearth_rule_take(rows, (int)i, question->arena, &question->rules[i], err);
    }
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_rules(const struct hearth_scope *scope, struct hearth_rule **ret,
                                      size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_rules, &question, err));
    *ret = question.rules;
    *ret_n = question.n;
    return HEARTH_OK;
}

static enum hearth_status list_counters(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT c.rule_no, c.labels, c.value::text FROM hearth_data.rule_counter c JOIN"
        " hearth_data.recording_rule r USING (rule_no) WHERE r.tenant = $1"
        " ORDER BY c.rule_no, c.series_no",
        &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->counters =
        hearth_arena_array(question->arena, question->n, sizeof *question->counters);
    enum hearth_status status =
        question->counters == NULL ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
    for (size_t i = 0; i < question->n && status == HEARTH_OK; i++) {
        struct hearth_rule_counter *counter = &question->counters[i];
        counter->rule_no = hearth_pg_i64(rows, (int)i, 0);
        counter->value = hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 2));
        if (counter->value.p == NULL) {
            status = HEARTH_FAIL_ARENA(err, question->arena);
        } else {
            status =
                hearth_rule_take_labels(rows, (int)i, 1, question->arena, &counter->labels, err);
        }
    }
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_rule_counters(const struct hearth_scope *scope,
                                              struct hearth_rule_counter **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_counters, &question, err));
    *ret = question.counters;
    *ret_n = question.n;
    return HEARTH_OK;
}

/* ---- changing ---- */

static bool same_texts(const struct hearth_str *a, size_t n_a, const struct hearth_str *b,
                       size_t n_b)
{
    bool same = n_a == n_b;
    for (size_t i = 0; same && i < n_a; i++) {
        same = hearth_str_eq(a[i], b[i]);
    }
    return same;
}

/* They count the same, whatever it is called. */
static bool counts_the_same(const struct hearth_rule *a, const struct hearth_rule *b)
{
    return same_texts(a->matchers, a->n_matchers, b->matchers, b->n_matchers) &&
           same_texts(a->group_by, a->n_group_by, b->group_by, b->n_group_by) &&
           a->has_function == b->has_function && hearth_str_eq(a->function, b->function);
}

static bool is_called_the_same(const struct hearth_rule *a, const struct hearth_rule *b)
{
    return hearth_str_eq(a->metric_name, b->metric_name) &&
           hearth_labels_cmp(&a->external, &b->external) == 0;
}

/* The stored rule of that id; question->n 0: none. */
static enum hearth_status find_rule(struct question *question, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text(&params, question->id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT " HEARTH_RULE_COLUMNS " FROM hearth_data.recording_rule r"
                              " WHERE r.tenant = $1 AND r.id = $2 FOR UPDATE",
                              &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->rules = hearth_arena_array(question->arena, 1, sizeof *question->rules);
    enum hearth_status status =
        question->rules == NULL ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
    if (status == HEARTH_OK && question->n > 0) {
        status = hearth_rule_take(rows, 0, question->arena, question->rules, err);
    }
    PQclear(rows);
    return status;
}

static enum hearth_status remove_rule(struct question *question, int64_t rule_no,
                                      struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    static const char *const STATEMENTS[] = {
        "DELETE FROM hearth_data.recording_rule WHERE rule_no = $1",
        "DELETE FROM hearth_data.rule_state WHERE rule_no = $1",
        "DELETE FROM hearth_data.rule_counter WHERE rule_no = $1",
        "DELETE FROM hearth_data.rule_bucket WHERE rule_no = $1",
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(STATEMENTS); i++) {
        struct hearth_pg_params params;
        hearth_pg_params_init(&params, question->arena);
        hearth_pg_param_i64(&params, rule_no);
        HEARTH_TRY(
            hearth_pg_exec(pg, STATEMENTS[i], &params, question->cancel, NULL, ret_fault, err));
    }
    return HEARTH_OK;
}

static enum hearth_status check_count(struct question *question, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT count(*) FROM hearth_data.recording_rule WHERE tenant = $1",
                              &params, question->cancel, &rows, ret_fault, err));
    int64_t n = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);
    if (question->max_rules > 0 && n >= question->max_rules) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld recording rules, as many as max-rules allows",
                           (long long)n);
    }
    return HEARTH_OK;
}

static enum hearth_status insert_rule(struct question *question, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_rule *rule = question->rule;
    int64_t now_ns = hearth_clock_wall_ns();
    rule->start_ns = now_ns - now_ns % NS_PER_MINUTE + NS_PER_MINUTE;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
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
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "WITH r AS (INSERT INTO hearth_data.recording_rule (tenant, id, metric_name,"
        " matchers, group_by, external_labels, has_function, function, generation,"
        " start_ns) VALUES ($1, $2, $3, $4, $5, $6, $7 <> 0, $8, $9, $10) RETURNING"
        " rule_no, start_ns) INSERT INTO hearth_data.rule_state (rule_no, advanced_to,"
        " mark_done, kept_from, n_series_dropped) SELECT rule_no, start_ns, 0,"
        " -9223372036854775808, 0 FROM r RETURNING rule_no",
        &params, question->cancel, &rows, ret_fault, err));
    rule->rule_no = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status rename_rule(struct question *question, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_rule *rule = question->rule;
    rule->rule_no = question->rules->rule_no;
    rule->start_ns = question->rules->start_ns;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_i64(&params, rule->rule_no);
    hearth_pg_param_text(&params, rule->metric_name);
    hearth_rule_param_labels(&params, &rule->external);
    hearth_pg_param_i64(&params, rule->generation);
    return hearth_pg_exec(
        pg,
        "UPDATE hearth_data.recording_rule SET metric_name = $2, external_labels = $3,"
        " generation = $4 WHERE rule_no = $1",
        &params, question->cancel, NULL, ret_fault, err);
}

/* An attempt whose COMMIT went unanswered may have done it. */
static bool is_done_already(const struct question *question)
{
    return question->n_attempts > 1 && question->n > 0 &&
           question->rules->generation == question->rule->generation &&
           counts_the_same(question->rules, question->rule) &&
           is_called_the_same(question->rules, question->rule);
}

static enum hearth_status check_generation(const struct question *question, struct hearth_err *err)
{
    int64_t said = question->rule->generation - 1;
    if (question->n == 0 && said != 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "no recording rule \"" HEARTH_STR_FMT
                           "\" to replace; a new one has no generation",
                           HEARTH_STR_ARG(question->id));
    }
    if (question->n > 0 && said != question->rules->generation) {
        return HEARTH_FAIL(err, HEARTH_ABORTED,
                           "recording rule \"" HEARTH_STR_FMT
                           "\" has generation %lld, not %lld: somebody changed it",
                           HEARTH_STR_ARG(question->id), (long long)question->rules->generation,
                           (long long)said);
    }
    return HEARTH_OK;
}

static enum hearth_status put_in_transaction(struct question *question, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_tenant_begin(pg, question->tenant, question->cancel, ret_fault, err));
    HEARTH_TRY(find_rule(question, pg, ret_fault, err));
    if (is_done_already(question)) {
        question->rule->rule_no = question->rules->rule_no;
        question->rule->start_ns = question->rules->start_ns;
        return HEARTH_OK;
    }
    HEARTH_TRY(check_generation(question, err));
    if (question->n > 0 && counts_the_same(question->rules, question->rule)) {
        HEARTH_TRY(rename_rule(question, pg, ret_fault, err));
    } else {
        if (question->n > 0) {
            HEARTH_TRY(remove_rule(question, question->rules->rule_no, pg, ret_fault, err));
        } else {
            HEARTH_TRY(check_count(question, pg, ret_fault, err));
        }
        HEARTH_TRY(insert_rule(question, pg, ret_fault, err));
    }
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status put_rule(void *context, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    question->n_attempts++;
    enum hearth_status status = put_in_transaction(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_rule_put(const struct hearth_scope *scope, struct hearth_rule *rule,
                                         int64_t max_rules, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = rule->tenant,
                                .id = rule->id,
                                .rule = rule,
                                .max_rules = max_rules,
                                .cancel = scope->cancel,
                                .arena = &arena};
    rule->generation++;
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, put_rule, &question, err);
    hearth_arena_release(&arena);
    return status;
}

static enum hearth_status delete_in_transaction(struct question *question, struct hearth_pg *pg,
                                                enum hearth_pg_fault *ret_fault,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_tenant_begin(pg, question->tenant, question->cancel, ret_fault, err));
    HEARTH_TRY(find_rule(question, pg, ret_fault, err));
    question->found = question->n > 0 || (question->found && question->n_attempts > 1);
    if (question->n == 0) {
        return HEARTH_OK;
    }
    HEARTH_TRY(remove_rule(question, question->rules->rule_no, pg, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status delete_rule(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    question->n_attempts++;
    enum hearth_status status = delete_in_transaction(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_rule_delete(const struct hearth_scope *scope, struct hearth_str id,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {
        .tenant = scope->tenant, .id = id, .cancel = scope->cancel, .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, delete_rule, &question, err);
    hearth_arena_release(&arena);
    HEARTH_TRY(status);
    return question.found
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no recording rule \"" HEARTH_STR_FMT "\"",
                             HEARTH_STR_ARG(id));
}
