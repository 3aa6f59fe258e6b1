/* budget.c -- counts bytes against a shared limit. */
#include "hearth/base/budget.h"

#include <assert.h>

void hearth_budget_init(struct hearth_budget *budget, const char *option, size_t limit_bytes)
{
    hearth_budget_init_part(budget, option, limit_bytes, 0, NULL);
    budget->is_part = false;
}

void hearth_budget_init_part(struct hearth_budget *part, const char *option, size_t limit_bytes,
                             size_t free_bytes, struct hearth_budget *parent)
{
    assert(option != NULL);

    part->option = option;
    atomic_init(&part->limit_bytes, limit_bytes);
    part->free_bytes = free_bytes;
    part->parent = parent;
    part->is_part = true;
    part->peak_bytes = 0;
    part->refused_by = NULL;
    atomic_init(&part->used_bytes, 0);
}

void hearth_budget_init_share(struct hearth_budget *share, const char *option, size_t limit_bytes,
                              struct hearth_budget *parent)
{
    hearth_budget_init_part(share, option, limit_bytes, 0, parent);
    share->is_part = false;
}

/* Size of the latest refusal on this thread; 0: none since it was last read. */
static _Thread_local size_t g_refused_bytes;
static _Thread_local const struct hearth_budget *g_refused_by; /* the budget of that refusal */

size_t hearth_budget_refused_bytes(void)
{
    size_t n_bytes = g_refused_bytes;
    g_refused_bytes = 0;
    return n_bytes;
}

void hearth_budget_refused_beside(size_t n_bytes)
{
    g_refused_bytes += g_refused_bytes > 0 ? n_bytes : 0;
}

/* The bytes that a part which holds n_bytes has charged to its parent. */
static size_t count_owed_bytes(const struct hearth_budget *part, size_t n_bytes)
{
    return n_bytes > part->free_bytes ? n_bytes - part->free_bytes : 0;
}

static bool take_shared(struct hearth_budget *budget, size_t n_bytes)
{
    size_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    size_t limit = atomic_load_explicit(&budget->limit_bytes, memory_order_relaxed);
    limit = limit == 0 ? SIZE_MAX : limit;

    do {
        if (n_bytes > limit || used > limit - n_bytes) {
            g_refused_bytes = n_bytes;
            g_refused_by = budget;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used, used + n_bytes,
                                                    memory_order_relaxed, memory_order_relaxed));

    return true;
}

static void note_peak(struct hearth_budget *budget)
{
    if (budget->is_part) {
        size_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
        budget->peak_bytes = used > budget->peak_bytes ? used : budget->peak_bytes;
    }
}

bool hearth_budget_take(struct hearth_budget *budget, size_t n_bytes)
{
    if (budget == NULL || n_bytes == 0) {
        return true;
    }

    if (!take_shared(budget, n_bytes)) {
        if (budget->is_part) { /* others are used by several threads */
            budget->refused_by = budget;
        }
        return false;
    }

    if (budget->parent == NULL) {
        note_peak(budget);
        return true;
    }

    /* There is room in this budget; its parents must have room for the bytes beyond the free ones.
     * A share has no free bytes, so it owes all n_bytes. */
    size_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    size_t owed = budget->free_bytes == 0
                      ? n_bytes
                      : count_owed_bytes(budget, used) - count_owed_bytes(budget, used - n_bytes);
    if (!hearth_budget_take(budget->parent, owed)) {
        if (budget->is_part) {
            budget->refused_by = g_refused_by;
        }
        (void)atomic_fetch_sub_explicit(&budget->used_bytes, n_bytes, memory_order_relaxed);
        return false;
    }

    note_peak(budget);
    return true;
}

void hearth_budget_give(struct hearth_budget *budget, size_t n_bytes)
{
    if (budget == NULL || n_bytes == 0) {
        return;
    }

    size_t used = atomic_fetch_sub_explicit(&budget->used_bytes, n_bytes, memory_order_relaxed);
    HEARTH_ASSERT(used >= n_bytes);
    if (budget->parent != NULL) {
        hearth_budget_give(budget->parent, budget->free_bytes == 0
                                               ? n_bytes
                                               : count_owed_bytes(budget, used) -
                                                     count_owed_bytes(budget, used - n_bytes));
    }
}

void hearth_budget_settle(struct hearth_budget *part)
{
    size_t used = atomic_load_explicit(&part->used_bytes, memory_order_relaxed);

    /* used_bytes minus the bytes charged already: at most the free bytes. */
    size_t not_owed = used - count_owed_bytes(part, used);
    assert(part->is_part || used == 0);

    part->free_bytes = 0;
    for (struct hearth_budget *up = part->parent; up != NULL; up = up->parent) {
        (void)atomic_fetch_add_explicit(&up->used_bytes, not_owed, memory_order_relaxed);
    }
}

void hearth_budget_close(struct hearth_budget *part)
{
    hearth_budget_give(part, atomic_load_explicit(&part->used_bytes, memory_order_relaxed));
}

void hearth_budget_explain(const struct hearth_budget *budget, struct hearth_err *err,
                           const char *file, uint32_t line)
{
    assert(budget != NULL);

    /* The budget whose limit was hit; of a part that refused nothing so far, the part. */
    const struct hearth_budget *full =
        budget->is_part && budget->refused_by != NULL ? budget->refused_by : budget;
    size_t limit = atomic_load(&full->limit_bytes);

    if (full->is_part) {
        hearth_err_set(
            err, HEARTH_NO_MEMORY, file, line,
            "the query needs more than %s (%zu): shorten the range or add label matchers",
            full->option, limit);
        return;
    }

    hearth_err_set(err, HEARTH_NO_MEMORY, file, line,
                   "all running requests%s together need more than %s (%zu): retry later, or "
                   "request less",
                   full->parent != NULL ? " of the tenant" : "", full->option, limit);
}
