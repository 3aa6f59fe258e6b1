/*
 * budget.h -- a shared limit for bytes of memory, and parts of it for single queries.
 *
 * Arenas and buffers with a budget take bytes from it before they allocate and give them back when
 * they free. A part (the budget of one query) has its own limit and takes all bytes beyond its
 * first `free_bytes` from its parent, too: so small queries are answered while large ones hold the
 * rest. Between a part and the whole there may be a *share*: the budget of all queries of a tenant,
 * whose bytes are charged to the whole, too.
 *
 * A zeroed struct is a part that holds nothing: settle and close have no effect on it.
 *
 * Ownership: a budget outlives all memory taken from it; a part is closed before its parent ends.
 * Threads:   whole budgets and shares are safe; a part is used by one thread at a time.
 */
#ifndef HEARTH_BASE_BUDGET_H
#define HEARTH_BASE_BUDGET_H

#include "hearth/base/status.h"

#include <stdatomic.h>

struct hearth_budget {
    const char *option;         /* name of the limit in messages; static */
    _Atomic size_t limit_bytes; /* 0: no limit */
    size_t free_bytes;          /* part: bytes that are not charged to the parent */
    struct hearth_budget *parent;
    _Atomic size_t used_bytes;
    size_t peak_bytes; /* part: largest value of used_bytes so far */
    bool is_part;
    const struct hearth_budget *refused_by; /* part: the budget whose limit was hit last, or NULL */
};

/* option: static. limit_bytes 0: no limit. */
void hearth_budget_init(struct hearth_budget *budget, const char *option, size_t limit_bytes);
void hearth_budget_init_part(struct hearth_budget *part, const char *option, size_t limit_bytes,
                             size_t free_bytes, struct hearth_budget *parent);
/* A share of `parent`. limit_bytes may change later. */
void hearth_budget_init_share(struct hearth_budget *share, const char *option, size_t limit_bytes,
                              struct hearth_budget *parent);
/*
 * Charge the free bytes to the parent as well, from now on and even if this exceeds the parent's
 * limit.
 */
void hearth_budget_settle(struct hearth_budget *part);
/* Give back to the parent all bytes that the part still holds. */
void hearth_budget_close(struct hearth_budget *part);

/* Take all n_bytes, or none and return false. A NULL budget has no limit. */
HEARTH_MUST_CHECK bool hearth_budget_take(struct hearth_budget *budget, size_t n_bytes);
void hearth_budget_give(struct hearth_budget *budget, size_t n_bytes);

/*
 * The size of the latest refusal on this thread since the previous call, plus the bytes added to it
 * by hearth_budget_refused_beside; 0 if there was no refusal. A caller that knows the limit can
 * tell a request that will never fit from one for which other requests left too little room.
 */
size_t hearth_budget_refused_bytes(void);
/*
 * Add to the latest refusal memory of the same request that is released before the caller evaluates
 * the refusal. No effect without a refusal.
 */
void hearth_budget_refused_beside(size_t n_bytes);

/* Set `err` to NO_MEMORY with a message that explains a refusal by this budget. */
void hearth_budget_explain(const struct hearth_budget *budget, struct hearth_err *err,
                           const char *file, uint32_t line);
#define HEARTH_FAIL_BUDGET(err, budget) \
    (hearth_budget_explain((budget), (err), __FILE__, (uint32_t)__LINE__), HEARTH_NO_MEMORY)

#endif
