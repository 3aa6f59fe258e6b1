/* rules.c -- recording rules: validation, storage, and sums (contract: hearth/engine/rules.h). */
#include "hearth/engine/rules.h"

#include "hearth/base/budget.h"
#include "hearth/base/mem.h"
#include "hearth/selector/selector.h"
#include "hearth/store/store_rules.h"

#include "common/shown.h"
#include "select/query_internal.h"

#include <assert.h>
#include <sys/random.h>

#define MAX_ID_BYTES   64
#define MAX_TEXT_BYTES 65536 /* bytes of matchers, labels and names together */
#define MAX_LABELS     64
#define NEW_ID_LETTERS 12
/* Bytes of an evaluation that do not count in the budget of all queries. */
#define FREE_BYTES ((size_t)1 << 20)

struct hearth_rules {
    struct hearth_query_engine *engine;
    struct hearth_budget *budget;
};

/* ---- validation ---- */

static bool is_metric_name(struct hearth_str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }

    return name.n > 0;
}

static bool is_rule_id(struct hearth_str id)
{
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' &&
            c != '_') {
            return false;
        }
    }

    return id.n > 0 && id.n <= MAX_ID_BYTES;
}

/*
 * Parse all matchers into one selector; *ret_type: the value of the only equality of
 * __profile_type__.
 */
static enum hearth_status parse_rule_matchers(const struct hearth_rule *rule,
                                              struct hearth_selector *selector,
                                              struct hearth_arena *arena,
                                              struct hearth_str *ret_type, struct hearth_err *err)
{
    /* Parse the matchers. */
    for (size_t i = 0; i < rule->n_matchers; i++) {
        enum hearth_status status =
            hearth_selector_parse(selector, rule->matchers[i], arena, NULL, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "matchers[%zu]", i);
            return status;
        }
    }

    /* Exactly one of them names the profile type. */
    size_t n = 0;
    for (size_t i = 0; i < selector->n; i++) {
        const struct hearth_matcher *matcher = &selector->matchers[i];
        if (matcher->op == HEARTH_MATCH_EQ &&
            hearth_str_eq_c(matcher->name, HEARTH_LABEL_PROFILE_TYPE)) {
            *ret_type = matcher->value;
            n++;
        }
    }

    if (n != 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "matchers must contain __profile_type__=\"...\" once, not %zu times", n);
    }

    struct hearth_profile_type type;

    return hearth_profile_type_parse(*ret_type, &type, err);
}

static enum hearth_status check_rule_matchers(const struct hearth_rule *rule,
                                              struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_str type;
    struct hearth_selector selector;

    hearth_selector_init(&selector);
    enum hearth_status status = parse_rule_matchers(rule, &selector, arena, &type, err);
    hearth_selector_release(&selector);

    return status;
}

struct hearth_str hearth_rule_profile_type(const struct hearth_rule *rule,
                                           struct hearth_arena *arena)
{
    struct hearth_str type = {"", 0};
    struct hearth_selector selector;

    hearth_selector_init(&selector);
    if (parse_rule_matchers(rule, &selector, arena, &type, NULL) != HEARTH_OK) {
        type = hearth_str_n("", 0);
    }

    hearth_selector_release(&selector);

    return type;
}

static enum hearth_status check_rule_label_name(const struct hearth_rule *rule, const char *field,
                                                struct hearth_str name, struct hearth_err *err)
{
    /* Prometheus must accept the name, and no rule may use Hearth's own label. */
    if (!hearth_label_name_is_legacy(name) || hearth_str_eq_c(name, HEARTH_LABEL_NAME) ||
        hearth_str_eq_c(name, HEARTH_RULE_ID_LABEL)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s: \"" HEARTH_STR_FMT "\" cannot be the name of a metric's label",
                           field, HEARTH_STR_ARG(name));
    }

    /* Each label occurs once. */
    size_t n = 0;
    for (size_t i = 0; i < rule->n_group_by; i++) {
        n += hearth_str_eq(rule->group_by[i], name);
    }

    for (size_t i = 0; i < rule->external.n; i++) {
        n += hearth_str_eq(rule->external.v[i].name, name);
    }

    if (n > 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "label \"" HEARTH_STR_FMT "\" is given %zu times", HEARTH_STR_ARG(name),
                           n);
    }

    return HEARTH_OK;
}

static enum hearth_status check_rule_labels(const struct hearth_rule *rule, struct hearth_err *err)
{
    for (size_t i = 0; i < rule->n_group_by; i++) {
        HEARTH_TRY(check_rule_label_name(rule, "group_by", rule->group_by[i], err));
    }

    for (size_t i = 0; i < rule->external.n; i++) {
        HEARTH_TRY(check_rule_label_name(rule, "external_labels", rule->external.v[i].name, err));
    }

    return HEARTH_OK;
}

static size_t count_text_bytes(const struct hearth_rule *rule)
{
    size_t n = rule->metric_name.n + rule->function.n;

    assert(rule->matchers != NULL || rule->n_matchers == 0);

    for (size_t i = 0; i < rule->n_matchers; i++) {
        n += rule->matchers[i].n;
    }

    for (size_t i = 0; i < rule->n_group_by; i++) {
        n += rule->group_by[i].n;
    }

    for (size_t i = 0; i < rule->external.n; i++) {
        n += rule->external.v[i].name.n + rule->external.v[i].value.n;
    }

    return n;
}

static enum hearth_status check_recording_rule(const struct hearth_rule *rule,
                                               struct hearth_arena *arena, struct hearth_err *err)
{
    /* Names. */
    if (!is_rule_id(rule->id)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "id must have 1 to %d letters, digits, '-' or '_'", MAX_ID_BYTES);
    }

    if (!is_metric_name(rule->metric_name)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "metric_name \"" HEARTH_STR_FMT "\" is not a Prometheus metric name",
                           HEARTH_STR_ARG(rule->metric_name));
    }

    /* The function, if any, and the generation. */
    if (rule->has_function && rule->function.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "stacktrace_filter: the name of the function is missing");
    }

    if (rule->generation < 0 || rule->generation == INT64_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "generation is out of range");
    }

    /* Size. */
    size_t n_bytes = count_text_bytes(rule), n_labels = rule->n_group_by + rule->external.n;
    if (n_bytes > MAX_TEXT_BYTES || n_labels > MAX_LABELS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the rule has %zu labels and %zu bytes; it may have %d and %d", n_labels,
                           n_bytes, MAX_LABELS, MAX_TEXT_BYTES);
    }

    HEARTH_TRY(check_rule_labels(rule, err));

    return check_rule_matchers(rule, arena, err);
}

/* ---- stored rules ---- */

enum hearth_status hearth_rules_list(const struct hearth_call *call, struct hearth_rule **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    /* A rule belongs to no service. */
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_rules(HEARTH_CALL_SCOPE(call), ret, ret_n, err);
}

enum hearth_status hearth_rules_get(const struct hearth_call *call, struct hearth_str id,
                                    struct hearth_rule *ret, struct hearth_err *err)
{
    struct hearth_rule *rules;
    size_t n;

    assert(call != NULL && ret != NULL);

    HEARTH_TRY(hearth_rules_list(call, &rules, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq(rules[i].id, id)) {
            *ret = rules[i];
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no recording rule \"" HEARTH_STR_FMT "\"",
                       HEARTH_STR_ARG(id));
}

static enum hearth_status make_rule_id(struct hearth_rule *rule, struct hearth_arena *arena,
                                       struct hearth_err *err)
{
    unsigned char random[NEW_ID_LETTERS];
    char *id = hearth_arena_alloc(arena, NEW_ID_LETTERS);

    if (id == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes for an id");
    }

    for (size_t i = 0; i < NEW_ID_LETTERS; i++) {
        id[i] = "abcdefghijklmnopqrstuvwxyz234567"[random[i] & 31];
    }

    rule->id = hearth_str_n(id, NEW_ID_LETTERS);

    return HEARTH_OK;
}

enum hearth_status hearth_rules_put(const struct hearth_call *call, struct hearth_rule *rule,
                                    struct hearth_err *err)
{
    assert(rule != NULL);

    HEARTH_TRY(hearth_call_check_whole(call, err));
    rule->tenant = call->tenant;
    if (rule->id.n == 0) {
        HEARTH_TRY(make_rule_id(rule, call->arena, err));
    }

    hearth_labels_sort(&rule->external);
    HEARTH_TRY(check_recording_rule(rule, call->arena, err));

    struct hearth_limits limits;
    hearth_query_tenant_limits(call->engine, call->tenant, &limits);

    return hearth_store_rule_put(HEARTH_CALL_SCOPE(call), rule, limits.max_rules, err);
}

enum hearth_status hearth_rules_delete(const struct hearth_call *call, struct hearth_str id,
                                       struct hearth_err *err)
{
    HEARTH_TRY(hearth_call_check_whole(call, err));

    return hearth_store_rule_delete(HEARTH_CALL_SCOPE(call), id, err);
}

/* ---- sums ---- */

/*
 * Sum the profiles of a rule from the first millisecond of the query's range to the last, both
 * included, as a series with one point per group.
 */
static enum hearth_status sum_rule(const struct hearth_query *query, const struct hearth_rule *rule,
                                   struct hearth_timeseries **ret, size_t *ret_n,
                                   struct hearth_err *err)
{
    struct hearth_str type;
    struct hearth_selector selector;
    struct hearth_buf text;

    hearth_selector_init(&selector);
    hearth_buf_init(&text, 0);
    enum hearth_status status = parse_rule_matchers(rule, &selector, query->call.arena, &type, err);

    /* Format the selector, and query one point that ends at the end of the range. */
    if (status == HEARTH_OK) {
        hearth_selector_format(&selector, &text);

        struct hearth_query at_end = *query;
        at_end.start_ms = query->end_ms;
        const struct hearth_timeseries_spec spec = {
            .profile_type = type,
            .selector = hearth_buf_view(&text),
            .group_by = rule->group_by,
            .n_group_by = rule->n_group_by,
            /* Half a millisecond more, because the step is truncated to whole ones. */
            .step_seconds = ((double)(query->end_ms - query->start_ms) + 0.5) / 1000,
            .stacks = {.functions = &rule->function, .n_functions = rule->has_function},
            .whole_ms = true,
        };

        if (hearth_buf_failed(&text)) {
            status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a selector");
        } else {
            status = hearth_query_timeseries(&at_end, &spec, ret, ret_n, err);
        }
    }

    hearth_buf_release(&text);
    hearth_selector_release(&selector);

    return status;
}

static enum hearth_status copy_sum(const struct hearth_timeseries *series,
                                   struct hearth_arena *arena, struct hearth_rule_sum *ret,
                                   struct hearth_err *err)
{
    assert(series != NULL);

    ret->sum = series->total;
    ret->labels.n = series->labels.n;
    ret->labels.v = hearth_arena_array(arena, ret->labels.n, sizeof ret->labels.v[0]);
    for (size_t i = 0; i < ret->labels.n && ret->labels.v != NULL; i++) {
        ret->labels.v[i].name = hearth_arena_str(arena, series->labels.v[i].name);
        ret->labels.v[i].value = hearth_arena_str(arena, series->labels.v[i].value);
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status evaluate_rule(void *context, const struct hearth_rule *rule,
                                        struct hearth_rule_range range,
                                        struct hearth_cancel *cancel, struct hearth_arena *arena,
                                        struct hearth_rule_sum **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    const struct hearth_rules *rules = context;
    size_t max_bytes = (size_t)hearth_engine_limits(rules->engine)->max_query_memory_bytes;
    struct hearth_budget memory;
    struct hearth_arena scratch;

    /* The evaluation has a memory limit of its own, within the budget of all queries. */
    hearth_budget_init_part(&memory, "max-query-memory-bytes", max_bytes, FREE_BYTES,
                            rules->budget);
    hearth_arena_init(&scratch, max_bytes);
    scratch.budget = &memory;
    const struct hearth_query query = {.call = {.engine = rules->engine,
                                                .tenant = rule->tenant,
                                                .arena = &scratch,
                                                .cancel = cancel,
                                                .is_own = true},
                                       .start_ms = range.from_ns / HEARTH_NS_PER_MS,
                                       .end_ms = range.to_ns / HEARTH_NS_PER_MS - 1};

    /* Sum, and copy the sums to the caller's arena. */
    struct hearth_timeseries *series = NULL;
    size_t n = 0;
    enum hearth_status status = sum_rule(&query, rule, &series, &n, err);
    *ret = hearth_arena_array(arena, n, sizeof **ret);
    *ret_n = n;
    if (status == HEARTH_OK && *ret == NULL) {
        status = HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        status = copy_sum(&series[i], arena, &(*ret)[i], err);
    }

    hearth_arena_release(&scratch);
    hearth_budget_close(&memory);

    return status;
}

enum hearth_status hearth_rules_start(struct hearth_query_engine *engine,
                                      struct hearth_budget *budget, struct hearth_rules **ret_rules,
                                      struct hearth_err *err)
{
    struct hearth_rules *rules = hearth_mem_zalloc(sizeof *rules);

    assert(ret_rules != NULL);
    assert(engine != NULL);

    if (rules == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the recording rules");
    }

    rules->engine = engine;
    rules->budget = budget;

    const struct hearth_rule_evaluator evaluator = {
        .evaluate = evaluate_rule,
        .context = rules,
        .max_series = hearth_engine_limits(engine)->max_rule_series};
    hearth_store_set_rule_evaluator(engine->store, &evaluator);
    *ret_rules = rules;

    return HEARTH_OK;
}

void hearth_rules_free(struct hearth_rules *rules)
{
    hearth_mem_free(rules);
}
