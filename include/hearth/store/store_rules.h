/*
 * store_rules.h -- recording rules and their counters: kept here, advanced by the builder.
 *
 * Every closed minute (after rollup-grace) of a rule is summed once by an evaluator, which the layers
 * above provide, and added to the rule's counters in one transaction that also says how far the rule
 * is. When a bucket of 10 minutes is built, and when late profiles were folded into one, it is summed
 * again and what it has gained is added. Counters never go down.
 *
 * Ownership: answers live in the arena given. Threads: safe.
 * Source:    docs/decisions/0013-recording-rules.md.
 */
#ifndef HEARTH_STORE_RULES_H
#define HEARTH_STORE_RULES_H

#include "hearth/model/rule.h"
#include "hearth/store/store.h"

/* By id. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rules(const struct hearth_scope *scope, struct hearth_rule **ret,
                                      size_t *ret_n, struct hearth_err *err);
/*
 * Make the rule (generation 0), or replace the one of its id and this generation. What is counted
 * begins with the minute after now; a rule that counts what it did before keeps its counters.
 * rule->generation, start_ns and rule_no are set to what is stored. ABORTED: another generation is
 * stored. NOT_FOUND: generation is not 0, and there is no such rule. RESOURCE_EXHAUSTED: a new one
 * beyond max_rules (0: no limit).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rule_put(const struct hearth_scope *scope, struct hearth_rule *rule,
                                         int64_t max_rules, struct hearth_err *err);
/* With its counters. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rule_delete(const struct hearth_scope *scope, struct hearth_str id,
                                            struct hearth_err *err);

struct hearth_rule_counter {
    int64_t rule_no;
    struct hearth_labels labels; /* those of group_by that its series have */
    struct hearth_str value;     /* decimal digits */
};

/* Of all rules of the tenant, by rule_no and series, as of one moment. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rule_counters(const struct hearth_scope *scope,
                                              struct hearth_rule_counter **ret, size_t *ret_n,
                                              struct hearth_err *err);

/* ---- evaluation ---- */

struct hearth_rule_sum {
    struct hearth_labels labels; /* sorted, a part of group_by */
    int64_t sum;
};

/* The sums of what the rule selects with from_ns <= ts < to_ns (whole milliseconds), in arena. */
typedef enum hearth_status
hearth_rule_evaluate_fn(void *context, const struct hearth_rule *rule, int64_t from_ns,
                        int64_t to_ns, struct hearth_cancel *cancel, struct hearth_arena *arena,
                        struct hearth_rule_sum **ret, size_t *ret_n, struct hearth_err *err);

struct hearth_rule_evaluator {
    hearth_rule_evaluate_fn *evaluate;
    void *context;
    int64_t max_series; /* of one rule; 0: no limit */
};

/*
 * Once, soon after _open; until then rules wait. Called from the builder's thread, never in a
 * transaction; context must live until hearth_store_close has returned.
 */
void hearth_store_set_rule_evaluator(struct hearth_store *store,
                                     const struct hearth_rule_evaluator *evaluator);

#endif
