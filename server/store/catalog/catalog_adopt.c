/*
 * catalog_adopt.c -- the refreshing thread takes the indexes that queries have loaded (catalog.h,
 * "Residence").
 */
#include "hearth/base/clock.h"
#include "hearth/base/sync.h"

#include "catalog/catalog.h"
#include "catalog/catalog_load.h"

#include <assert.h>

/*
 * Add the rows that the join lacks up to the catalogue's version, and give its index to the tenant.
 * Otherwise join->index stays set.
 */
static enum hearth_status adopt_join(struct hearth_load *load, struct hearth_catalog_join *join,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(join->index != NULL);

    struct hearth_catalog *catalog = load->catalog;
    if (join->epoch != load->epoch || join->n_starts != atomic_load(&catalog->n_starts)) {
        return HEARTH_OK;
    }

    /* Add the missing rows. */
    if (join->version < catalog->version) {
        struct hearth_load missed = *load;
        missed.from = join->version;
        missed.upto = catalog->version;
        missed.into = join->index;
        missed.tenant_ids = &join->tenant_id;
        missed.n_tenant_ids = 1;
        enum hearth_status status = hearth_load_tables(&missed, ret_fault, err);
        load->arena = missed.arena;
        load->params = missed.params;
        HEARTH_TRY(status);
    }

    /* Hand the index over. */
    HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
    struct hearth_catalog_tenant *tenant = hearth_catalog_tenant_of(catalog, join->tenant_id);
    if (tenant != NULL && tenant->index == NULL) {
        tenant->index = join->index;
        join->index = NULL;
        atomic_store(&tenant->asked_mono_ns, hearth_clock_mono_ns());
        load->changed = true;
    }

    hearth_catalog_unlock(catalog);

    return HEARTH_OK;
}

/* Copy a join whose index is loaded, and take the index out of it. False: no index is loaded. */
static bool take_join(struct hearth_catalog *catalog, struct hearth_catalog_join *ret)
{
    hearth_mutex_lock(&catalog->refresh);
    struct hearth_catalog_join *join = catalog->joins;
    while (join != NULL && join->index == NULL) {
        join = join->next;
    }

    if (join != NULL) {
        *ret = *join;
        join->index = NULL;
    }

    hearth_mutex_unlock(&catalog->refresh);

    return join != NULL;
}

enum hearth_status hearth_load_adopt(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
{
    struct hearth_catalog_join join;
    enum hearth_status status = HEARTH_OK;
    while (status == HEARTH_OK && take_join(load->catalog, &join)) {
        status = adopt_join(load, &join, ret_fault, err);
        hearth_label_index_free(join.index); /* not adopted: its query loads it again */
    }
    return status;
}
