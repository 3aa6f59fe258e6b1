/*
 * tenant_use.c -- entries of tenants in a hash table, least recently used first in a list.
 *
 * The last minute is twelve sums of five seconds, of which the current one is not complete.
 */
#include "hearth/engine/tenant_use.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "common/call_internal.h"

#include <assert.h>

#define N_BUCKETS     1024u /* a power of two */
#define N_STEPS       12
#define STEP_NS       (5 * HEARTH_NS_PER_SEC)
#define MEMORY_OPTION "max-tenant-query-memory-bytes"

struct hearth_tenant_use {
    uint64_t hash;
    struct hearth_tenant_use *next_in_bucket;
    struct hearth_tenant_use *older, *newer; /* by their latest use */
    size_t n_holders;
    struct hearth_budget memory;
    int64_t since_ms;
    int64_t total[HEARTH_N_USES];
    int64_t steps[N_STEPS][HEARTH_N_USES];
    int64_t step; /* number of the current step since the start of the clock */
    bool has_label;
    size_t n_name;
    char name[];
};

struct hearth_tenant_uses {
    struct hearth_tenant_uses_options options;
    struct hearth_mutex lock; /* guards the rest */
    struct hearth_tenant_use *buckets[N_BUCKETS];
    struct hearth_tenant_use *oldest, *newest;
    struct hearth_tenant_use *other; /* of tenants without an entry; not in the table */
    size_t n, n_labels;
};

const struct hearth_use_kind hearth_use_kinds[HEARTH_N_USES] = {
#define U(id, name, ...) [HEARTH_USE_##id] = {name, false},
#define R(id, name, ...) [HEARTH_USE_##id] = {name, true},
#include "hearth/engine/tenant_use.def"
};

/* ---- entries ---- */

static struct hearth_tenant_use *make_use(struct hearth_tenant_uses *uses, struct hearth_str tenant,
                                          uint64_t hash)
{
    struct hearth_tenant_use *use = hearth_mem_zalloc(sizeof *use + tenant.n);
    if (use == NULL) {
        return NULL;
    }

    use->hash = hash;
    use->since_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    use->n_name = tenant.n;
    if (tenant.n > 0) {
        memcpy(use->name, tenant.p, tenant.n);
    }
    hearth_budget_init_share(&use->memory, MEMORY_OPTION, uses->options.tenant_query_memory_bytes,
                             uses->options.query_memory);

    return use;
}

static struct hearth_str name_of_use(const struct hearth_tenant_use *use)
{
    return hearth_str_n(use->name, use->n_name);
}

static void unlink_use(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use)
{
    *(use->older == NULL ? &uses->oldest : &use->older->newer) = use->newer;
    *(use->newer == NULL ? &uses->newest : &use->newer->older) = use->older;
}

static void link_newest_use(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use)
{
    use->newer = NULL;
    use->older = uses->newest;
    *(uses->newest == NULL ? &uses->oldest : &uses->newest->newer) = use;
    uses->newest = use;
}

static void forget_use(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use)
{
    struct hearth_tenant_use **at = &uses->buckets[use->hash % N_BUCKETS];

    assert(use->n_holders == 0);
    while (*at != use) {
        at = &(*at)->next_in_bucket;
    }
    *at = use->next_in_bucket;
    unlink_use(uses, use);
    uses->n--;
    hearth_mem_free(use);
}

/* The caller holds the lock. NULL: the tenant has no entry. */
static struct hearth_tenant_use *find_use(const struct hearth_tenant_uses *uses,
                                          struct hearth_str tenant, uint64_t hash)
{
    struct hearth_tenant_use *use = uses->buckets[hash % N_BUCKETS];

    hearth_mutex_assert_held(&uses->lock);
    while (use != NULL && (use->hash != hash || !hearth_str_eq(name_of_use(use), tenant))) {
        use = use->next_in_bucket;
    }

    return use;
}

static struct hearth_tenant_use *add_use(struct hearth_tenant_uses *uses, struct hearth_str tenant,
                                         uint64_t hash)
{
    /* Entries that are held may not leave; few are, and they are used often. */
    struct hearth_tenant_use *oldest = uses->oldest;
    for (int i = 0; i < 8 && oldest != NULL && oldest->n_holders > 0; i++) {
        oldest = oldest->newer;
    }
    if (uses->n >= HEARTH_MAX_TENANT_USES) {
        if (oldest == NULL || oldest->n_holders > 0) {
            return uses->other;
        }
        forget_use(uses, oldest);
    }

    struct hearth_tenant_use *use = make_use(uses, tenant, hash);
    if (use == NULL) {
        return uses->other;
    }

    use->has_label = uses->n_labels < uses->options.n_labels;
    uses->n_labels += use->has_label;
    use->next_in_bucket = uses->buckets[hash % N_BUCKETS];
    uses->buckets[hash % N_BUCKETS] = use;
    link_newest_use(uses, use);
    uses->n++;

    return use;
}

static uint64_t hash_tenant(struct hearth_str tenant)
{
    return hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed());
}

/* The caller holds the lock. */
static struct hearth_tenant_use *find_or_add_use(struct hearth_tenant_uses *uses,
                                                 struct hearth_str tenant)
{
    uint64_t hash = hash_tenant(tenant);
    struct hearth_tenant_use *use = find_use(uses, tenant, hash);

    if (use == NULL) {
        return add_use(uses, tenant, hash);
    }
    if (use != uses->newest) {
        unlink_use(uses, use);
        link_newest_use(uses, use);
    }

    return use;
}

/* ---- life ---- */

enum hearth_status hearth_tenant_uses_new(const struct hearth_tenant_uses_options *options,
                                          struct hearth_tenant_uses **ret_uses,
                                          struct hearth_err *err)
{
    struct hearth_tenant_uses *uses = hearth_mem_zalloc(sizeof *uses);
    if (uses != NULL) {
        uses->options = *options;
        uses->other = make_use(uses, HEARTH_STR("other"), 0);
    }

    if (uses == NULL || uses->other == NULL) {
        hearth_mem_free(uses);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the table of tenants");
    }

    hearth_mutex_init(&uses->lock, HEARTH_RANK_TENANT_USES, "tenant_uses.lock");
    *ret_uses = uses;

    return HEARTH_OK;
}

void hearth_tenant_uses_free(struct hearth_tenant_uses *uses)
{
    if (uses == NULL) {
        return;
    }
    while (uses->oldest != NULL) {
        forget_use(uses, uses->oldest);
    }
    hearth_mem_free(uses->other);
    hearth_mutex_destroy(&uses->lock);
    hearth_mem_free(uses);
}

struct hearth_tenant_use *hearth_tenant_use_take(struct hearth_tenant_uses *uses,
                                                 struct hearth_str tenant)
{
    if (uses == NULL) {
        return NULL;
    }
    hearth_mutex_lock(&uses->lock);
    struct hearth_tenant_use *use = find_or_add_use(uses, tenant);
    use->n_holders++;
    hearth_mutex_unlock(&uses->lock);
    return use;
}

void hearth_tenant_use_give(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use)
{
    if (use == NULL) {
        return;
    }
    hearth_mutex_lock(&uses->lock);
    assert(use->n_holders > 0);
    use->n_holders--;
    hearth_mutex_unlock(&uses->lock);
}

struct hearth_budget *hearth_tenant_use_memory(const struct hearth_tenant_uses *uses,
                                               struct hearth_tenant_use *use, size_t limit_bytes)
{
    atomic_store(&use->memory.limit_bytes,
                 limit_bytes > 0 ? limit_bytes : uses->options.tenant_query_memory_bytes);
    return &use->memory;
}

/* ---- counting ---- */

/* Empty the steps between the latest use and now. The caller holds the lock. */
static void enter_step(struct hearth_tenant_use *use, int64_t step)
{
    if (step - use->step >= N_STEPS) {
        memset(use->steps, 0, sizeof use->steps);
    } else {
        for (int64_t i = use->step + 1; i <= step; i++) {
            memset(use->steps[i % N_STEPS], 0, sizeof use->steps[0]);
        }
    }
    use->step = step > use->step ? step : use->step;
}

/* The caller holds the lock. */
static void count_use(const struct hearth_tenant_uses *uses, struct hearth_tenant_use *use,
                      enum hearth_use what, int64_t n)
{
    hearth_mutex_assert_held(&uses->lock);
    assert(what < HEARTH_N_USES && n >= 0);

    enter_step(use, hearth_clock_mono_ns() / STEP_NS);
    use->total[what] += n;
    use->steps[use->step % N_STEPS][what] += n;
    if (uses->options.n_labels == 0) {
        return;
    }

    static const enum hearth_metric metrics[] = {
        [HEARTH_USE_INGEST_BYTES] = HEARTH_M_TENANT_BYTES,
        [HEARTH_USE_PROFILES] = HEARTH_M_TENANT_PROFILES,
        [HEARTH_USE_QUERIES] = HEARTH_M_TENANT_QUERIES,
        [HEARTH_USE_QUERY_NS] = HEARTH_M_TENANT_QUERY_NS,
    };
    hearth_metric_add_label(hearth_use_kinds[what].is_refusal ? HEARTH_M_TENANT_REFUSALS
                                                              : metrics[what],
                            use->has_label ? name_of_use(use) : HEARTH_STR("other"), n);
}

void hearth_tenant_use_add(struct hearth_tenant_uses *uses, struct hearth_tenant_use *use,
                           enum hearth_use what, int64_t n)
{
    if (use == NULL) {
        return;
    }
    hearth_mutex_lock(&uses->lock);
    count_use(uses, use, what, n);
    hearth_mutex_unlock(&uses->lock);
}

void hearth_tenant_use_count(struct hearth_tenant_uses *uses, struct hearth_str tenant,
                             enum hearth_use what, int64_t n)
{
    if (uses == NULL) {
        return;
    }
    hearth_mutex_lock(&uses->lock);
    count_use(uses, find_or_add_use(uses, tenant), what, n);
    hearth_mutex_unlock(&uses->lock);
}

void hearth_tenant_usage_read(struct hearth_tenant_uses *uses, struct hearth_str tenant,
                              struct hearth_tenant_usage *ret)
{
    *ret =
        (struct hearth_tenant_usage){.query_memory_limit = uses->options.tenant_query_memory_bytes};

    hearth_mutex_lock(&uses->lock);
    struct hearth_tenant_use *use = find_use(uses, tenant, hash_tenant(tenant));
    if (use != NULL) {
        enter_step(use, hearth_clock_mono_ns() / STEP_NS);
        for (size_t i = 0; i < HEARTH_N_USES; i++) {
            ret->counts[i].total = use->total[i];
            for (size_t k = 0; k < N_STEPS; k++) {
                ret->counts[i].minute += use->steps[k][i];
            }
        }

        ret->since_ms = use->since_ms;
        ret->query_memory_bytes = atomic_load(&use->memory.used_bytes);
        ret->query_memory_limit = atomic_load(&use->memory.limit_bytes);
    }

    hearth_mutex_unlock(&uses->lock);
}
