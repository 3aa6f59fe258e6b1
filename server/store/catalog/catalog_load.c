/*
 * catalog_load.c -- bring the label indexes up to the database's version.
 *
 * Writers of the catalogue lock the clock row before all other rows, so versions commit in order:
 * once the clock says v, every row of version <= v is visible. A refresh reads the clock and then,
 * table by table, the rows between its own version and v; if there are no new rows, it costs one
 * round trip. A refresh that fails half-way has added rows without raising the version; the next
 * refresh adds them again, which changes nothing.
 *
 * If the clock's epoch has changed (catalog.h), or an hour of a series is read that the index has
 * removed, the whole catalogue is loaded again: all tenants with the number of their series, and
 * the rows of as many tenants as are likely to fit, the last queried ones first. Rows of tenants
 * whose index is not in memory are skipped, but their series are counted.
 */
#include "catalog/catalog_load.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>
#include <stdlib.h>

/* Estimates for choosing which tenants to load. Measured for a series: 350 to 450 bytes. */
#define SERIES_BYTES ((size_t)512)
#define TENANT_BYTES ((size_t)8192)

/* ---- version and epoch ---- */

bool hearth_catalog_went_back(struct hearth_catalog *catalog, int64_t at_least, int64_t version)
{
    if (version >= at_least) {
        return false;
    }
    hearth_series_cache_clear(catalog->series);
    atomic_store(&catalog->must_load_all, true);
    atomic_store(&catalog->newest, version - 1); /* `version` may not be committed yet */
    return true;
}

void hearth_catalog_saw_epoch(struct hearth_catalog *catalog, int64_t epoch)
{
    /*
     * First the epoch, then the cache: a thread that puts ids into the cache compares the epoch
     * afterwards (catalog_write.c).
     */
    if (atomic_exchange(&catalog->epoch, epoch) != epoch) {
        hearth_series_cache_clear(catalog->series);
    }
}

void hearth_catalog_note(struct hearth_catalog *catalog, int64_t version)
{
    int64_t newest = atomic_load(&catalog->newest);
    while (newest < version && !atomic_compare_exchange_weak(&catalog->newest, &newest, version)) {
    }
}

/* ---- loading the whole catalogue ---- */

/* A tenant whose index may be loaded. */
struct candidate {
    int32_t tenant_id;
    int64_t asked_mono_ns;
    size_t n_series;
};

static int compare_candidate_ids(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    return (a->tenant_id > b->tenant_id) - (a->tenant_id < b->tenant_id);
}

/* The last queried tenants first; of tenants without a query, the small ones first. */
static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->asked_mono_ns != b->asked_mono_ns) {
        return a->asked_mono_ns > b->asked_mono_ns ? -1 : 1;
    }

    if (a->n_series != b->n_series) {
        return a->n_series < b->n_series ? -1 : 1;
    }

    return compare_candidate_ids(left, right);
}

/* For the refreshing thread, which alone changes the list of tenants. */
static enum hearth_status list_candidates(const struct hearth_load *load,
                                          struct hearth_arena *arena, struct candidate **ret,
                                          size_t *ret_n, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL && ret_n != NULL);

    size_t n = load->catalog->n_tenants;
    struct candidate *list = hearth_arena_array(arena, n, sizeof list[0]);

    if (list == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_tenant *tenant = &load->catalog->tenants[i];
        list[i] = (struct candidate){tenant->tenant_id, atomic_load(&tenant->asked_mono_ns),
                                     tenant->n_series};
    }

    *ret = list;
    *ret_n = n;

    return HEARTH_OK;
}

/*
 * Give the tenants that are likely to fit an empty index, and list them in load->tenant_ids.
 * `asked`, sorted by id: the tenants before the load, with the times of their last queries. The
 * caller holds catalog->rw for writing.
 */
static enum hearth_status choose_tenants(struct hearth_load *load, const struct candidate *asked,
                                         size_t n_asked, struct hearth_arena *arena,
                                         struct hearth_err *err)
{
    hearth_lock_assert_held(&load->catalog->rw, HEARTH_CATALOG_RW_NAME);

    struct candidate *list = NULL;
    size_t n = 0, n_chosen = 0, n_bytes = 0;
    size_t limit = load->catalog->store->options.label_index_bytes;

    HEARTH_TRY(list_candidates(load, arena, &list, &n, err));
    int32_t *chosen = hearth_arena_array(arena, n + 1, sizeof chosen[0]);
    if (chosen == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Sort by the time of the last query. */
    for (size_t i = 0; i < n && n_asked > 0; i++) {
        const struct candidate *before =
            bsearch(&list[i], asked, n_asked, sizeof *asked, compare_candidate_ids);
        list[i].asked_mono_ns = before == NULL ? 0 : before->asked_mono_ns;
    }

    if (n > 0) {
        qsort(list, n, sizeof list[0], compare_candidates);
    }

    /* Choose tenants up to the limit. */
    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_tenant *tenant =
            hearth_catalog_tenant_of(load->catalog, list[i].tenant_id);
        size_t more = TENANT_BYTES + list[i].n_series * SERIES_BYTES;
        assert(tenant != NULL && tenant->index == NULL);
        atomic_store(&tenant->asked_mono_ns, list[i].asked_mono_ns);
        if (limit > 0 && (more > limit || n_bytes > limit - more)) {
            continue;
        }

        n_bytes += more;
        chosen[n_chosen++] = list[i].tenant_id;
        tenant->index = hearth_catalog_new_index(load->catalog);
        if (tenant->index == NULL) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the label index of a tenant");
        }
    }

    /* If no tenant fits, the list has id 0, of no tenant: an empty list means all tenants. */
    chosen[n_chosen] = 0;
    load->tenant_ids = chosen;
    load->n_tenant_ids = n_chosen == n ? 0 : n_chosen > 0 ? n_chosen : 1;

    return HEARTH_OK;
}

static enum hearth_status replace_all_rows(struct hearth_load *load, struct hearth_arena *arena,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_catalog *catalog = load->catalog;
    struct candidate *asked = NULL;
    size_t n_asked = 0;

    HEARTH_TRY(list_candidates(load, arena, &asked, &n_asked, err));
    if (n_asked > 0) {
        qsort(asked, n_asked, sizeof asked[0], compare_candidate_ids);
    }

    /* Remove all tenants from memory. */
    HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
    hearth_catalog_forget(catalog);
    catalog->is_partial = true;
    catalog->version = 0;
    hearth_catalog_unlock(catalog);
    load->from = 0;
    atomic_store(&catalog->must_load_all, false);
    (void)atomic_fetch_add(&catalog->n_starts, 1);

    /* Load all tenants, then the rows of the chosen ones. */
    HEARTH_TRY(hearth_load_tenants(load, true, ret_fault, err));
    HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
    enum hearth_status status = choose_tenants(load, asked, n_asked, arena, err);
    hearth_catalog_unlock(catalog);
    HEARTH_TRY(status);

    return hearth_load_tables(load, ret_fault, err);
}

static enum hearth_status load_all(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                   struct hearth_err *err)
{
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    HEARTH_LOG(HEARTH_LOG_DEBUG, "store", "loading the whole catalogue again", "known",
               hearth_log_i64(load->from), "found", hearth_log_i64(load->upto), "epoch",
               hearth_log_i64(load->epoch), NULL);

    /* The load may take longer than queries may: a timeout would only make it start again. */
    int64_t timeout_ms = load->pg->timeout_ms;
    load->pg->timeout_ms = 0;
    enum hearth_status status = replace_all_rows(load, &arena, ret_fault, err);
    load->pg->timeout_ms = timeout_ms;

    load->tenant_ids = NULL;
    load->n_tenant_ids = 0;
    hearth_arena_release(&arena);

    return status;
}

/* ---- the refresh ---- */

/* Load the rows of all tenants that are newer than the catalogue's version. */
static enum hearth_status load_new_rows(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    struct hearth_catalog *catalog = load->catalog;
    load->lacks_series = false;
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        catalog->tenants[i].n_more = 0; /* a refresh that failed may have counted */
    }
    HEARTH_TRY(hearth_load_tenants(load, false, ret_fault, err));
    return hearth_load_tables(load, ret_fault, err);
}

/* Add the counted series to their tenants, and set the catalogue's version. */
static enum hearth_status finish_refresh(struct hearth_load *load, struct hearth_err *err)
{
    struct hearth_catalog *catalog = load->catalog;
    bool more = catalog->is_partial;

    for (size_t i = 0; i < catalog->n_tenants && !more; i++) {
        more = catalog->tenants[i].n_more > 0;
    }

    if (more) {
        HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
        for (size_t i = 0; i < catalog->n_tenants; i++) {
            /* A load of the whole catalogue has counted them already. */
            catalog->tenants[i].n_series += load->from > 0 ? catalog->tenants[i].n_more : 0;
            catalog->tenants[i].n_more = 0;
        }
        catalog->is_partial = false;
        hearth_catalog_unlock(catalog);
    }

    catalog->version = load->upto;
    catalog->loaded_epoch = load->epoch;

    return HEARTH_OK;
}

static enum hearth_status refresh_on(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_load *load = context;
    int64_t newest = atomic_load(&load->catalog->newest);

    /* Read the clock. */
    load->pg = pg;
    load->from = load->catalog->version;
    HEARTH_TRY(hearth_load_clock(load, ret_fault, err));
    hearth_catalog_saw_epoch(load->catalog, load->epoch);

    /* Decide whether new rows are enough. */
    bool all = hearth_catalog_went_back(load->catalog, newest, load->upto) ||
               atomic_load(&load->catalog->must_load_all) ||
               (load->from > 0 && load->epoch != load->catalog->loaded_epoch) ||
               (load->from == 0 && load->upto > 0);
    hearth_catalog_note(load->catalog, load->upto);

    /* Load the rows. */
    if (!all) {
        HEARTH_TRY(hearth_load_adopt(load, ret_fault, err));
    }

    if (!all && load->upto > load->from) {
        HEARTH_TRY(load_new_rows(load, ret_fault, err));
        all = load->lacks_series;
    }

    if (all) {
        HEARTH_TRY(load_all(load, ret_fault, err));
    }

    return finish_refresh(load, err);
}

enum hearth_status hearth_catalog_load(struct hearth_catalog *catalog, struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    struct hearth_load load = {.catalog = catalog, .cancel = cancel};
    hearth_arena_init(&load.arena, 0);
    hearth_arena_init(&load.params, 0);
    enum hearth_status status =
        hearth_store_as_owner(catalog->store, cancel, refresh_on, &load, err);
    hearth_arena_release(&load.arena);
    hearth_arena_release(&load.params);

    if (load.changed) {
        hearth_metric_add(HEARTH_M_CATALOG_REFRESH, 1);
    }

    if (load.changed || catalog->is_over) {
        hearth_catalog_shrink(catalog);
    }

    return status;
}

enum hearth_status hearth_catalog_trim(struct hearth_catalog *catalog, int32_t hour,
                                       struct hearth_err *err)
{
    HEARTH_TRY(hearth_catalog_lock(catalog, NULL, err));

    for (size_t i = 0; i < catalog->n_tenants; i++) {
        if (catalog->tenants[i].index != NULL) {
            hearth_label_index_trim(catalog->tenants[i].index, hour);
        }
    }

    hearth_catalog_unlock(catalog);

    return HEARTH_OK;
}
