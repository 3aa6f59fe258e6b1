/*
 * rules.h -- recording rules: counters computed from incoming profiles.
 *
 * A rule selects series of one profile type and groups them by labels. The totals of their
 * profiles, or of one function in them, are summed in a counter per group, minute by minute
 * (store/store_rules.h).
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

/* A label of every counter: the id of its rule, which distinguishes rules of the same metric. */
#define HEARTH_RULE_ID_LABEL "profiles_rule_id"

/* All rules of the tenant, sorted by id. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_list(const struct hearth_call *call, struct hearth_rule **ret,
                                     size_t *ret_n, struct hearth_err *err);
/* One rule. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_get(const struct hearth_call *call, struct hearth_str id,
                                    struct hearth_rule *ret, struct hearth_err *err);
/*
 * Create or replace a rule; an empty id is replaced by a generated one, and rule->tenant is set.
 * INVALID_ARGUMENT names the error in the rule; further errors as of hearth_store_rule_put.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_put(const struct hearth_call *call, struct hearth_rule *rule,
                                    struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_delete(const struct hearth_call *call, struct hearth_str id,
                                       struct hearth_err *err);
/* The profile type that a stored rule selects; empty if its matchers cannot be parsed any more. */
struct hearth_str hearth_rule_profile_type(const struct hearth_rule *rule,
                                           struct hearth_arena *arena);

/* Append all counters of the tenant as Prometheus text. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_write_metrics(const struct hearth_call *call,
                                              struct hearth_buf *out, struct hearth_err *err);

/* Evaluate rules for the builder of the store, from now on. Free it after the store has closed. */
struct hearth_rules;
HEARTH_MUST_CHECK
enum hearth_status hearth_rules_start(struct hearth_query_engine *engine, /* kept */
                                      struct hearth_budget *budget, /* of all queries; or NULL */
                                      struct hearth_rules **ret_rules, struct hearth_err *err);
void hearth_rules_free(struct hearth_rules *rules); /* NULL-safe */

#endif
