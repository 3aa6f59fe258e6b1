/*
 * catalog_join.c -- loading the label index of one tenant for a query, next to the refreshes of all
 * others (catalog.h, "Residence").
 */
#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"
#include "hearth/base/sync.h"

#include "catalog/catalog.h"
#include "catalog/catalog_load.h"
#include "session/session.h"

#include <assert.h>

/* ---- loading, by the thread of the query ---- */

static enum hearth_status load_join_on(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_load *load = context;
    load->pg = pg;
    load->from = 0;
    hearth_label_index_free(load->into); /* of an attempt whose connection was lost */
    load->into = hearth_catalog_new_index(load->catalog);
    if (load->into == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the label index of a tenant");
    }

    HEARTH_TRY(hearth_load_clock(load, ret_fault, err));

    return hearth_load_tables(load, ret_fault, err);
}

/* Load join->index and its version. */
static enum hearth_status load_join(struct hearth_catalog *catalog,
                                    struct hearth_catalog_join *join, struct hearth_cancel *cancel,
                                    struct hearth_err *err)
{
    assert(join->index == NULL);

    struct hearth_load load = {
        .catalog = catalog, .cancel = cancel, .tenant_ids = &join->tenant_id, .n_tenant_ids = 1};
    hearth_arena_init(&load.arena, 0);
    hearth_arena_init(&load.params, 0);
    join->n_starts = atomic_load(&catalog->n_starts);
    enum hearth_status status =
        hearth_store_as_owner(catalog->store, cancel, load_join_on, &load, err);
    hearth_arena_release(&load.arena);
    hearth_arena_release(&load.params);

    join->version = load.upto;
    join->epoch = load.epoch;
    if (status == HEARTH_OK) {
        join->index = load.into;
    } else {
        hearth_label_index_free(load.into);
    }

    return status;
}

/* ---- fetching ---- */

/* The caller holds catalog->refresh. NULL: no thread loads the tenant. */
static struct hearth_catalog_join *find_join(const struct hearth_catalog *catalog,
                                             int32_t tenant_id)
{
    hearth_mutex_assert_held(&catalog->refresh);

    struct hearth_catalog_join *join = catalog->joins;
    while (join != NULL && join->tenant_id != tenant_id) {
        join = join->next;
    }
    return join;
}

/* Wait until no thread loads the tenant. The caller holds catalog->refresh. */
static enum hearth_status wait_for_join(struct hearth_catalog *catalog, int32_t tenant_id,
                                        struct hearth_cancel *cancel, struct hearth_err *err)
{
    hearth_mutex_assert_held(&catalog->refresh);

    enum hearth_status status = HEARTH_OK;
    while (status == HEARTH_OK && find_join(catalog, tenant_id) != NULL) {
        (void)hearth_mutex_wait_until(&catalog->refresh, &catalog->refreshed,
                                      hearth_clock_mono_ns() + HEARTH_CATALOG_WAIT_STEP_NS);
        status = hearth_cancel_check(cancel, err);
    }
    return status;
}

static void end_join(struct hearth_catalog *catalog, struct hearth_catalog_join *join)
{
    hearth_mutex_lock(&catalog->refresh);
    struct hearth_catalog_join **at = &catalog->joins;
    while (*at != join) {
        at = &(*at)->next;
        assert(*at != NULL);
    }

    *at = join->next;
    (void)pthread_cond_broadcast(&catalog->refreshed);
    hearth_mutex_unlock(&catalog->refresh);

    hearth_label_index_free(join->index); /* no refresh has taken it */
}

enum hearth_status hearth_catalog_fetch(struct hearth_catalog *catalog, int32_t tenant_id,
                                        struct hearth_cancel *cancel, struct hearth_err *err)
{
    struct hearth_catalog_join join = {.tenant_id = tenant_id};

    /* Begin, or wait for the thread that loads the tenant. */
    hearth_mutex_lock(&catalog->refresh);
    bool others = find_join(catalog, tenant_id) != NULL;
    enum hearth_status status = HEARTH_OK;
    if (others) {
        status = wait_for_join(catalog, tenant_id, cancel, err);
    } else {
        join.next = catalog->joins;
        catalog->joins = &join;
    }

    hearth_mutex_unlock(&catalog->refresh);
    if (others) {
        return status;
    }

    /* Load without the lock, into a join that no other thread sees. */
    struct hearth_catalog_join loaded = {.tenant_id = tenant_id};
    status = load_join(catalog, &loaded, cancel, err);

    /* Offer the index to a refresh. */
    if (status == HEARTH_OK) {
        hearth_metric_add(HEARTH_M_INDEX_LOADED, 1);
        hearth_mutex_lock(&catalog->refresh);
        loaded.next = join.next;
        join = loaded;
        hearth_mutex_unlock(&catalog->refresh);
        status = hearth_catalog_refresh(catalog, cancel, err);
    }

    end_join(catalog, &join);

    return status;
}
