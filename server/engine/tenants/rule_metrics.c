/* rule_metrics.c -- counters of recording rules as Prometheus text. */
#include "hearth/engine/rules.h"
#include "hearth/store/store_rules.h"

#include "select/query_internal.h"

#include <stdlib.h>

/* Metrics of one name come together; the counters of a rule in the order of their series. */
struct line {
    const struct hearth_rule *rule;
    const struct hearth_rule_counter *counter;
    size_t order;
};

static int compare_lines(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    int c = hearth_str_cmp(a->rule->metric_name, b->rule->metric_name);
    return c != 0 ? c : (a->order > b->order) - (a->order < b->order);
}

/* As a label's value, or (quotes are left alone) as help. */
static void write_escaped(struct hearth_str text, bool is_help, struct hearth_buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\n') {
            hearth_buf_cstr(out, "\\n");
            continue;
        }
        if (c == '\\' || (c == '"' && !is_help)) {
            hearth_buf_byte(out, '\\');
        }
        hearth_buf_byte(out, (unsigned char)c);
    }
}

static void write_label(struct hearth_str name, struct hearth_str value, struct hearth_buf *out)
{
    hearth_buf_byte(out, ',');
    hearth_buf_str(out, name);
    hearth_buf_cstr(out, "=\"");
    write_escaped(value, false, out);
    hearth_buf_byte(out, '"');
}

static void write_line(const struct line *line, struct hearth_buf *out)
{
    hearth_buf_str(out, line->rule->metric_name);
    hearth_buf_cstr(out, "{" HEARTH_RULE_ID_LABEL "=\"");
    hearth_buf_str(out, line->rule->id);
    hearth_buf_byte(out, '"');
    for (size_t i = 0; i < line->counter->labels.n; i++) {
        write_label(line->counter->labels.v[i].name, line->counter->labels.v[i].value, out);
    }
    for (size_t i = 0; i < line->rule->external.n; i++) {
        write_label(line->rule->external.v[i].name, line->rule->external.v[i].value, out);
    }
    hearth_buf_cstr(out, "} ");
    hearth_buf_str(out, line->counter->value);
    hearth_buf_byte(out, '\n');
}

static void write_head(const struct hearth_rule *rule, struct hearth_arena *arena,
                       struct hearth_buf *out)
{
    struct hearth_str type = hearth_rule_profile_type(rule, arena);
    hearth_buf_cstr(out, "# HELP ");
    hearth_buf_str(out, rule->metric_name);
    hearth_buf_cstr(out, rule->has_function ? " Total of a function in profiles of type "
                                            : " Total of profiles of type ");
    write_escaped(type, true, out);
    hearth_buf_cstr(out, "\n# TYPE ");
    hearth_buf_str(out, rule->metric_name);
    hearth_buf_cstr(out, " counter\n");
}

static const struct hearth_rule *find_rule(const struct hearth_rule *rules, size_t n,
                                           int64_t rule_no)
{
    for (size_t i = 0; i < n; i++) {
        if (rules[i].rule_no == rule_no) {
            return &rules[i];
        }
    }
    return NULL;
}

enum hearth_status hearth_rules_write_metrics(const struct hearth_call *call,
                                              struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_rule_counter *counters;
    struct hearth_rule *rules;
    size_t n_counters, n_rules, n = 0;
    HEARTH_TRY(hearth_store_rule_counters(HEARTH_CALL_SCOPE(call), &counters, &n_counters, err));
    HEARTH_TRY(hearth_rules_list(call, &rules, &n_rules, err));
    struct line *lines = hearth_arena_array(call->arena, n_counters, sizeof *lines);
    if (lines == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }
    for (size_t i = 0; i < n_counters; i++) {
        const struct hearth_rule *rule = find_rule(rules, n_rules, counters[i].rule_no);
        if (rule != NULL) { /* it may have been removed in between */
            lines[n] = (struct line){rule, &counters[i], n};
            n++;
        }
    }
    if (n > 0) {
        qsort(lines, n, sizeof *lines, compare_lines);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !hearth_str_eq(lines[i - 1].rule->metric_name, lines[i].rule->metric_name)) {
            write_head(lines[i].rule, call->arena, out);
        }
        write_line(&lines[i], out);
    }
    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the counters of rules")
               : HEARTH_OK;
}
