/*
 * row_rules.h -- what the conditions of a filter say about the name of a table's row (private to
 * the engine; filter.h: struct hearth_row_filter).
 *
 * The answer for a name is a set of flags. The flags of a sample are those of all its rows
 * together, and hearth_row_flags_pass tells whether it passes. Each name is judged once; later
 * calls cost one look-up.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_ROW_RULES_H
#define HEARTH_ENGINE_ROW_RULES_H

#include "hearth/base/arena.h"
#include "hearth/base/hash.h"
#include "hearth/engine/filter.h"

struct hearth_pattern;

#define HEARTH_ROW_BARRED UINT64_C(1) /* a row is excluded; further bits: conditions that hold */

struct hearth_row_rules {
    const struct hearth_row_filter *filters[HEARTH_ROW_FILTERS_MAX]; /* borrowed */
    struct hearth_pattern *regex[HEARTH_ROW_FILTERS_MAX], *without[HEARTH_ROW_FILTERS_MAX];
    size_t n;
    uint32_t kinds;            /* bits 1 << enum hearth_top_kind */
    uint64_t required;         /* flags of a sample that passes; it also lacks HEARTH_ROW_BARRED */
    struct hearth_idmap named; /* kind and name in a filter -> index of flags */
    struct hearth_idmap known; /* kind and name that was judged -> index of flags */
    uint64_t *flags;           /* in the arena */
    size_t n_flags, cap_flags;
    size_t named_bytes, known_bytes; /* charged to the arena's budget */
    bool full;                       /* memory was refused: no more names are remembered */
    struct hearth_arena arena;
};

static inline bool hearth_row_flags_pass(const struct hearth_row_rules *rules, uint64_t flags)
{
    return (flags & (rules->required | HEARTH_ROW_BARRED)) == rules->required;
}

static inline bool hearth_row_rules_have(const struct hearth_row_rules *rules,
                                         enum hearth_top_kind kind)
{
    return (rules->kinds >> kind & 1) != 0;
}

/*
 * Prepares the conditions of a filter on threads, or those on all other rows; `like` has the limits
 * for memory. Release the rules in any case. Errors: INVALID_ARGUMENT names the field, for an
 * invalid regular expression or too many conditions; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_rules_init(struct hearth_row_rules *rules,
                                         const struct hearth_stack_filter *filter, bool of_threads,
                                         const struct hearth_arena *like, struct hearth_err *err);
void hearth_row_rules_release(struct hearth_row_rules *rules);

/* The flags of a row of the table `kind`; 0 if no condition is about that table. */
uint64_t hearth_row_rules_flags(struct hearth_row_rules *rules, enum hearth_top_kind kind,
                                struct hearth_str name);

#endif
