/*
 * rules.h -- recording rules: counters made of profiles as they come.
 *
 * A rule selects series of one profile type and groups them by labels; the totals of their profiles,
 * or of one function in them, add up in a counter per group, minute by minute (store/store_rules.h).
 *
 * Ownership: answers live in the call's arena.
 * Threads:   safe.
 * Source:    settings.v1.RecordingRulesService as in docs/reference/api-clients.md;
 *            docs/decisions/0013-recording-rules.md.
 */
#ifndef HEARTH_ENGINE_RULES_H
#define HEARTH_ENGINE_RULES_H

#include "hearth/engine/query.h"
#include "hearth/model/rule.h"

/* Label of every counter: the id of its rule, so that two rules of one metric stay apart. */
#define HEARTH_RULE_ID_LABEL "profiles_rule_id"

/* By id. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_list(const struct hearth_call *call, struct hearth_rule **ret,
                                     size_t *ret_n, struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_get(const struct hearth_call *call, struct hearth_str id,
                                    struct hearth_rule *ret, struct hearth_err *err);
/*
 * Make or replace one; an empty id becomes one of our own. INVALID_ARGUMENT names what is wrong with
 * it; the rest as hearth_store_rule_put. rule->tenant is set.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_put(const struct hearth_call *call, struct hearth_rule *rule,
                                    struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_delete(const struct hearth_call *call, struct hearth_str id,
                                       struct hearth_err *err);
/* The profile type that a stored rule selects; empty when its matchers cannot be read any more. */
struct hearth_str hearth_rule_profile_type(const struct hearth_rule *rule,
                                           struct hearth_arena *arena);

/* All counters of the tenant as Prometheus text. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_write_metrics(const struct hearth_call *call,
                                              struct hearth_buf *out, struct hearth_err *err);

/* Sums rules for the builder of a store, from now on. Free it after the store has closed. */
struct hearth_rules;
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_start(struct hearth_query_engine *engine, /* kept */
                                      struct hearth_budget *budget, /* of all queries; or NULL */
                                      struct hearth_rules **ret_rules, struct hearth_err *err);
void hearth_rules_free(struct hearth_rules *rules); /* NULL-safe */

#endif
