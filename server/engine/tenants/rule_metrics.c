/* rule_metrics.c -- counters of recording rules as Prometheus text. */
#include "hearth/engine/rules.h"
#include "hearth/store/store_rules.h"

#include "select/query_internal.h"

#include <assert.h>
#include <stdlib.h>

/* A counter with its rule, sorted by the metric's name, then in the order of the series. */
struct counter_line {
    const struct hearth_rule *rule;
    const struct hearth_rule_counter *counter;
    size_t order;
};

static int compare_counter_lines(const void *left, const void *right)
{
    const struct counter_line *a = left, *b = right;
    int c = hearth_str_cmp(a->rule->metric_name, b->rule->metric_name);
    return c != 0 ? c : (a->order > b->order) - (a->order < b->order);
}

/* Write a text escaped as a label's value, or as help, where quotes stay. */
static void write_escaped_text(struct hearth_str text, bool is_help, struct hearth_buf *out)
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

static void write_counter_label(struct hearth_str name, struct hearth_str value,
                                struct hearth_buf *out)
{
    hearth_buf_byte(out, ',');
    hearth_buf_str(out, name);
    hearth_buf_cstr(out, "=\"");
    write_escaped_text(value, false, out);
    hearth_buf_byte(out, '"');
}

static void write_counter(const struct counter_line *line, struct hearth_buf *out)
{
    assert(line->rule != NULL && line->counter != NULL);

    hearth_buf_str(out, line->rule->metric_name);
    hearth_buf_cstr(out, "{" HEARTH_RULE_ID_LABEL "=\"");
    hearth_buf_str(out, line->rule->id);
    hearth_buf_byte(out, '"');

    /* Labels of the group, then those of the rule. */
    for (size_t i = 0; i < line->counter->labels.n; i++) {
        write_counter_label(line->counter->labels.v[i].name, line->counter->labels.v[i].value, out);
    }

    for (size_t i = 0; i < line->rule->external.n; i++) {
        write_counter_label(line->rule->external.v[i].name, line->rule->external.v[i].value, out);
    }

    hearth_buf_cstr(out, "} ");
    hearth_buf_str(out, line->counter->value);
    hearth_buf_byte(out, '\n');
}

static void write_metric_head(const struct hearth_rule *rule, struct hearth_arena *arena,
                              struct hearth_buf *out)
{
    struct hearth_str type = hearth_rule_profile_type(rule, arena);

    hearth_buf_cstr(out, "# HELP ");
    hearth_buf_str(out, rule->metric_name);
    hearth_buf_cstr(out, rule->has_function ? " Total of a function in profiles of type "
                                            : " Total of profiles of type ");
    write_escaped_text(type, true, out);
    hearth_buf_cstr(out, "\n# TYPE ");
    hearth_buf_str(out, rule->metric_name);
    hearth_buf_cstr(out, " counter\n");
}

static const struct hearth_rule *find_rule_by_number(const struct hearth_rule *rules, size_t n,
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

    /* Read counters and rules. */
    HEARTH_TRY(hearth_store_rule_counters(HEARTH_CALL_SCOPE(call), &counters, &n_counters, err));
    HEARTH_TRY(hearth_rules_list(call, &rules, &n_rules, err));
    struct counter_line *lines = hearth_arena_array(call->arena, n_counters, sizeof *lines);
    if (lines == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Join them. */
    for (size_t i = 0; i < n_counters; i++) {
        const struct hearth_rule *rule = find_rule_by_number(rules, n_rules, counters[i].rule_no);
        if (rule != NULL) { /* the rule may have been deleted in between */
            lines[n] = (struct counter_line){rule, &counters[i], n};
            n++;
        }
    }

    /* Write them, each metric under its head. */
    if (n > 0) {
        qsort(lines, n, sizeof *lines, compare_counter_lines);
    }

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !hearth_str_eq(lines[i - 1].rule->metric_name, lines[i].rule->metric_name)) {
            write_metric_head(lines[i].rule, call->arena, out);
        }
        write_counter(&lines[i], out);
    }

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the counters of rules")
               : HEARTH_OK;
}
