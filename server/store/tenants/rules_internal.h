/*
 * rules_internal.h -- takes recording rules from rows; shared by store_rules.c and rule_step.c
 * (private to the store).
 *
 * Threads: safe, each call with its own arena.
 */
#ifndef HEARTH_STORE_RULES_INTERNAL_H
#define HEARTH_STORE_RULES_INTERNAL_H

#include "hearth/store/store_rules.h"

#include "pg/pg.h"

/* The columns of a rule `r`, which hearth_rule_take reads. */
#define HEARTH_RULE_COLUMNS                                                                \
    "r.rule_no, r.tenant, r.id, r.metric_name, r.matchers, r.group_by, r.external_labels," \
    " r.has_function::int4, r.function, r.generation, r.start_ns"
#define HEARTH_N_RULE_COLUMNS 11

/* Take a rule from the first HEARTH_N_RULE_COLUMNS columns of a row; texts are in arena. */
HEARTH_MUST_CHECK enum hearth_status hearth_rule_take(const PGresult *rows, int row,
                                                      struct hearth_arena *arena,
                                                      struct hearth_rule *ret,
                                                      struct hearth_err *err);

/* Take labels from a text[] of name, value, name, value; texts are in arena. */
HEARTH_MUST_CHECK enum hearth_status hearth_rule_take_labels(const PGresult *rows, int row,
                                                             int column, struct hearth_arena *arena,
                                                             struct hearth_labels *ret,
                                                             struct hearth_err *err);
/* Add such an array as a parameter. If memory is refused, params->failed is set. */
void hearth_rule_param_labels(struct hearth_pg_params *params, const struct hearth_labels *labels);

#endif
