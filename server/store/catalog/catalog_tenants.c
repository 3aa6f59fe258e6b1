/*
 * catalog_tenants.c -- the known tenants, and which of them have their label index in memory.
 *
 * The tenant whose last query is the oldest is evicted first. A tenant that was queried within the
 * last second stays: so the query that had an index loaded can use it, and a few tenants larger
 * than the limit do not evict each other between two queries of one page.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "catalog/catalog.h"
#include "pg/store_state.h"

#include <assert.h>

#define LEAST_BYTES ((size_t)1 << 20) /* limit of one tenant at least */
/* An index stays this long after a query; the latter while all take twice the limit. */
#define MIN_STAY_NS  HEARTH_NS_PER_SEC
#define HARD_STAY_NS (100 * HEARTH_NS_PER_MS)

/* ---- known tenants ---- */

static struct hearth_hash128 hash_tenant_name(struct hearth_str name)
{
    return hearth_hash128(name.p, name.n, hearth_hash_process_seed());
}

static struct hearth_hash128 hash_tenant_id(int32_t tenant_id)
{
    return hearth_hash128(&tenant_id, sizeof tenant_id, 0);
}

void hearth_catalog_forget(struct hearth_catalog *catalog)
{
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        hearth_label_index_free(catalog->tenants[i].index);
        hearth_mem_freep(&catalog->tenants[i].name.p);
    }
    catalog->n_tenants = 0;
    hearth_idmap_reset(&catalog->by_name);
    hearth_idmap_reset(&catalog->by_id);
}

struct hearth_catalog_tenant *hearth_catalog_tenant_of(const struct hearth_catalog *catalog,
                                                       int32_t tenant_id)
{
    hearth_lock_assert_held(&catalog->rw, HEARTH_CATALOG_RW_NAME);

    uint32_t at = hearth_idmap_find(&catalog->by_id, hash_tenant_id(tenant_id));
    assert(at == HEARTH_IDMAP_NONE || at < catalog->n_tenants);

    return at == HEARTH_IDMAP_NONE ? NULL : &catalog->tenants[at];
}

struct hearth_catalog_tenant *hearth_catalog_tenant_named(const struct hearth_catalog *catalog,
                                                          struct hearth_str name)
{
    hearth_lock_assert_held(&catalog->rw, HEARTH_CATALOG_RW_NAME);

    uint32_t at = hearth_idmap_find(&catalog->by_name, hash_tenant_name(name));
    if (at == HEARTH_IDMAP_NONE || at >= catalog->n_tenants ||
        !hearth_str_eq(catalog->tenants[at].name, name)) {
        return NULL;
    }

    return &catalog->tenants[at];
}

struct hearth_label_index *hearth_catalog_new_index(const struct hearth_catalog *catalog)
{
    struct hearth_label_index *index = hearth_label_index_new();
    size_t limit = catalog->store->options.label_index_bytes;
    if (index != NULL && limit > 0) {
        hearth_label_index_set_limit(index, limit < LEAST_BYTES ? LEAST_BYTES : limit);
    }
    return index;
}

enum hearth_status hearth_catalog_add_tenant(struct hearth_catalog *catalog, int32_t tenant_id,
                                             struct hearth_str name, struct hearth_err *err)
{
    if (hearth_catalog_tenant_of(catalog, tenant_id) != NULL) {
        return HEARTH_OK;
    }

    /* Make the tenant. */
    size_t n = catalog->n_tenants;
    struct hearth_catalog_tenant tenant = {
        .tenant_id = tenant_id,
        .name = {hearth_mem_strndup(name.p, name.n), name.n},
        .index = hearth_catalog_new_index(catalog),
    };

    /* Add it to the list and to both maps. */
    bool inserted = false;
    bool ok = tenant.name.p != NULL && tenant.index != NULL && n < UINT32_MAX - 1 &&
              hearth_mem_grow(&catalog->tenants, &catalog->cap_tenants, n + 1,
                              sizeof catalog->tenants[0]);
    if (ok) {
        catalog->tenants[n] = tenant;
        ok = hearth_idmap_intern(&catalog->by_name, hash_tenant_name(name), (uint32_t)n,
                                 &inserted) != HEARTH_IDMAP_NONE &&
             hearth_idmap_intern(&catalog->by_id, hash_tenant_id(tenant_id), (uint32_t)n,
                                 &inserted) != HEARTH_IDMAP_NONE;
    }

    if (!ok) {
        hearth_label_index_free(tenant.index);
        hearth_mem_freep(&tenant.name.p);
        /* The tenant may be in one of the two maps: load the whole catalogue again. */
        hearth_catalog_forget(catalog);
        catalog->is_partial = true;
        atomic_store(&catalog->must_load_all, true);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the label index of a tenant");
    }

    catalog->n_tenants++;

    return HEARTH_OK;
}

/* The index knows the number, unless it is cut or not in memory. */
static size_t count_tenant_series(const struct hearth_catalog_tenant *tenant)
{
    size_t n = tenant->index == NULL ? 0 : hearth_label_index_series(tenant->index);
    bool is_whole = tenant->index != NULL && !hearth_label_index_is_cut(tenant->index);
    return is_whole || n > tenant->n_series ? n : tenant->n_series;
}

size_t hearth_catalog_count_series(struct hearth_catalog *catalog, int32_t tenant_id)
{
    hearth_lock_check(&catalog->rw, HEARTH_RANK_CATALOG, HEARTH_CATALOG_RW_NAME);
    (void)pthread_rwlock_rdlock(&catalog->rw);
    hearth_lock_acquired(&catalog->rw, HEARTH_RANK_CATALOG, HEARTH_CATALOG_RW_NAME);

    const struct hearth_catalog_tenant *tenant = hearth_catalog_tenant_of(catalog, tenant_id);
    size_t n = tenant == NULL ? 0 : count_tenant_series(tenant);
    hearth_catalog_unlock(catalog);

    return n;
}

/* ---- eviction ---- */

/*
 * Publish the sizes of the indexes and return their bytes. Only the refreshing thread changes
 * indexes, so it reads them without the lock.
 */
static size_t publish_index_sizes(const struct hearth_catalog *catalog)
{
    size_t n_series = 0, n_bytes = 0, n_indexes = 0;
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        const struct hearth_catalog_tenant *tenant = &catalog->tenants[i];
        n_series += count_tenant_series(tenant);
        if (tenant->index != NULL) {
            n_indexes++;
            n_bytes += hearth_label_index_bytes(tenant->index);
        }
    }

    hearth_metric_set(HEARTH_M_CATALOG_SERIES, (int64_t)n_series);
    hearth_metric_set(HEARTH_M_INDEX_TENANTS, (int64_t)n_indexes);
    hearth_metric_set(HEARTH_M_INDEX_BYTES, (int64_t)n_bytes);

    return n_bytes;
}

/* Return the tenant with the oldest last query before the time, if it has an index. */
static struct hearth_catalog_tenant *find_oldest_query(const struct hearth_catalog *catalog,
                                                       int64_t before_mono_ns)
{
    struct hearth_catalog_tenant *found = NULL;
    int64_t first = before_mono_ns;

    for (size_t i = 0; i < catalog->n_tenants; i++) {
        struct hearth_catalog_tenant *tenant = &catalog->tenants[i];
        int64_t asked = atomic_load(&tenant->asked_mono_ns);
        if (tenant->index != NULL && asked < first) {
            found = tenant;
            first = asked;
        }
    }

    return found;
}

/*
 * Answers of queries have a note about a cut index. The log tells the operator, once per tenant; it
 * is the only sign for recording rules.
 */
static void log_cut_indexes(struct hearth_catalog *catalog)
{
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        struct hearth_catalog_tenant *tenant = &catalog->tenants[i];
        if (!tenant->is_told && tenant->index != NULL && hearth_label_index_is_cut(tenant->index)) {
            tenant->is_told = true;
            HEARTH_LOG(HEARTH_LOG_WARN, "store",
                       "a tenant has more series than fit into label-index-bytes: answers and "
                       "recording rules lack the others",
                       "tenant", tenant->name.p, NULL);
        }
    }
}

void hearth_catalog_shrink(struct hearth_catalog *catalog)
{
    log_cut_indexes(catalog);
    size_t limit = catalog->store->options.label_index_bytes;
    size_t n_bytes = publish_index_sizes(catalog);
    int64_t now = hearth_clock_mono_ns();
    bool any = false;

    while (limit > 0 && n_bytes > limit) {
        hearth_lock_check(&catalog->rw, HEARTH_RANK_CATALOG, HEARTH_CATALOG_RW_NAME);
        (void)pthread_rwlock_wrlock(&catalog->rw);
        hearth_lock_acquired(&catalog->rw, HEARTH_RANK_CATALOG, HEARTH_CATALOG_RW_NAME);

        /* Take an index out, under the lock. */
        int64_t stay_ns = n_bytes / 2 > limit ? HARD_STAY_NS : MIN_STAY_NS;
        struct hearth_catalog_tenant *tenant = find_oldest_query(catalog, now - stay_ns);
        struct hearth_label_index *index = NULL;
        if (tenant != NULL) {
            index = tenant->index;
            tenant->n_series = count_tenant_series(tenant);
            tenant->index = NULL;
        }
        hearth_catalog_unlock(catalog);
        if (index == NULL) {
            break;
        }

        /* Free it without the lock. */
        size_t n_freed = hearth_label_index_bytes(index);
        n_bytes -= n_freed < n_bytes ? n_freed : n_bytes;
        hearth_label_index_free(index);
        hearth_metric_add(HEARTH_M_INDEX_EVICTED, 1);
        any = true;
    }

    catalog->is_over = limit > 0 && (any ? publish_index_sizes(catalog) : n_bytes) > limit;
}
