/*
 * store_rules.h -- recording rules (model/rule.h) and their counters: stored here, advanced by the
 * builder.
 *
 * An evaluator, which the layers above provide, sums every closed minute of a rule (after
 * rollup-grace) once; the sums are added to the rule's counters in one transaction that also stores
 * how far the rule has been counted. When a bucket of 10 minutes is built, and when late profiles
 * were folded into one, it is summed again, and the difference is added. Counters never decrease.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 * Source:    docs/decisions/0013-recording-rules.md.
 */
#ifndef HEARTH_STORE_RULES_H
#define HEARTH_STORE_RULES_H

#include "hearth/model/rule.h"
#include "hearth/store/store.h"

/* Sorted by id. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rules(const struct hearth_scope *scope, struct hearth_rule **ret,
                                      size_t *ret_n, struct hearth_err *err);
/*
 * Create the rule (generation 0), or replace the stored rule of its id and generation, for
 * rule->tenant; the tenant of the scope is ignored. Counting begins with the next whole minute; a
 * rule that counts the same as before keeps its counters. rule->generation, start_ns and rule_no
 * are set to the stored values. ABORTED: another generation is stored. NOT_FOUND: generation is not
 * 0, and there is no such rule. RESOURCE_EXHAUSTED: a new rule above max_rules (0: no limit).
 * arena: may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rule_put(const struct hearth_scope *scope, struct hearth_rule *rule,
                                         int64_t max_rules, struct hearth_err *err);
/* Delete the rule and its counters. NOT_FOUND. arena: may be NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rule_delete(const struct hearth_scope *scope, struct hearth_str id,
                                            struct hearth_err *err);

struct hearth_rule_counter {
    int64_t rule_no;
    struct hearth_labels labels; /* the labels of group_by that its series have */
    struct hearth_str value;     /* decimal digits */
};

/* Counters of all rules of the tenant, by rule_no and series, in one snapshot. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rule_counters(const struct hearth_scope *scope,
                                              struct hearth_rule_counter **ret, size_t *ret_n,
                                              struct hearth_err *err);

/* ---- evaluation ---- */

struct hearth_rule_sum {
    struct hearth_labels labels; /* sorted; a subset of group_by */
    int64_t sum;
};

/* from_ns <= ts < to_ns, whole milliseconds. */
struct hearth_rule_range {
    int64_t from_ns, to_ns;
};

/* Sum the profiles of a range that the rule selects. Answers live in arena. */
typedef enum hearth_status hearth_rule_evaluate_fn(void *context, const struct hearth_rule *rule,
                                                   struct hearth_rule_range range,
                                                   struct hearth_cancel *cancel,
                                                   struct hearth_arena *arena,
                                                   struct hearth_rule_sum **ret, size_t *ret_n,
                                                   struct hearth_err *err);

struct hearth_rule_evaluator {
    hearth_rule_evaluate_fn *evaluate;
    void *context;
    int64_t max_series; /* of one rule; 0: no limit */
};

/*
 * Call once, soon after _open; until then rules are not counted. The evaluator is called from the
 * builder's thread, never in a transaction; context must live until hearth_store_close has
 * returned.
 */
void hearth_store_set_rule_evaluator(struct hearth_store *store,
                                     const struct hearth_rule_evaluator *evaluator);

#endif
