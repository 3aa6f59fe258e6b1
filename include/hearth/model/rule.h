/*
 * rule.h -- a recording rule: selected profiles whose totals are added to counters.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 * Source:    docs/decisions/0013-recording-rules.md.
 */
#ifndef HEARTH_MODEL_RULE_H
#define HEARTH_MODEL_RULE_H

#include "hearth/model/labels.h"

struct hearth_rule {
    int64_t rule_no; /* identifies its counters; changes when the rule counts something else */
    struct hearth_str tenant, id, metric_name;
    struct hearth_str *matchers; /* selectors, ANDed */
    size_t n_matchers;
    struct hearth_str *group_by;
    size_t n_group_by;
    struct hearth_labels external; /* sorted */
    bool has_function;
    struct hearth_str
        function;       /* counts the total of this function instead of the profile's total */
    int64_t generation; /* 1 for a new rule; every change raises it */
    int64_t start_ns;
};

#endif
