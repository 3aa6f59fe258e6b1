/*
 * budget.h -- bytes of memory that many share, and the part that one of them has.
 *
 * Arenas and buffers that have a budget ask it before they take memory and give back what they free.
 * A part (of one query) has a limit of its own and asks its parent for all beyond its first
 * `free_bytes`: so small questions are answered while large ones hold everything else.
 *
 * Ownership: a budget outlives what was taken from it; a part is closed before its parent goes.
 * Threads:   a budget that is nobody's part is safe; a part is used by one thread at a time.
 */
#ifndef HEARTH_BASE_BUDGET_H
#define HEARTH_BASE_BUDGET_H

#include "hearth/base/status.h"

#include <stdatomic.h>

struct hearth_budget {
    const char *option; /* static: the name of the limit in messages */
    size_t limit_bytes; /* 0: none */
    size_t free_bytes;
    struct hearth_budget *parent;
    _Atomic size_t used_bytes;
    size_t peak_bytes; /* of a part: the most it held */
    bool is_part;
    bool parent_refused; /* of a part: the latest refusal was the parent's */
};

/* option: static. limit_bytes 0: no limit. */
void hearth_budget_init(struct hearth_budget *budget, const char *option, size_t limit_bytes);
void hearth_budget_init_part(struct hearth_budget *part, const char *option, size_t limit_bytes,
                             size_t free_bytes, struct hearth_budget *parent);
/* From now on the parent counts the free bytes, too, whether it has room or not. */
void hearth_budget_settle(struct hearth_budget *part);
/* Give the parent back whatever the part still holds. */
void hearth_budget_close(struct hearth_budget *part);

/* All or nothing. NULL is a budget without limits. */
HEARTH_MUST_CHECK bool hearth_budget_take(struct hearth_budget *budget, size_t n_bytes);
void hearth_budget_give(struct hearth_budget *budget, size_t n_bytes);

/*
 * The size that this thread was refused last, and what it held beside, as said with _beside; 0: nothing since the latest
 * call. Who knows all that a request holds can tell a request that will never fit from one that others left no room.
 */
size_t hearth_budget_refused_bytes(void);
/* Memory of the same request that is released before its refusal is judged. */
void hearth_budget_refused_beside(size_t n_bytes);

/* What a refusal of this budget means, as the message of a NO_MEMORY. */
void hearth_budget_explain(const struct hearth_budget *budget, struct hearth_err *err,
                           const char *file, uint32_t line);
#define HEARTH_FAIL_BUDGET(err, budget) \
    (hearth_budget_explain((budget), (err), __FILE__, (uint32_t)__LINE__), HEARTH_NO_MEMORY)

#endif
