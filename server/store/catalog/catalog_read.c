/* catalog_read.c -- the label indexes of tenants, for queries. */
#include "hearth/base/clock.h"

#include "catalog/catalog.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>

/*
 * Find the indexes of all tenants; the caller holds catalog->rw. False if one is not in memory:
 * *ret_missing is the id of its tenant.
 */
static bool find_indexes(struct hearth_catalog *catalog, const struct hearth_str *tenants, size_t n,
                         const struct hearth_label_index **ret_indexes, int32_t *ret_missing)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_tenant *found = hearth_catalog_tenant_named(catalog, tenants[i]);
        if (found != NULL && found->index == NULL) {
            *ret_missing = found->tenant_id;
            return false;
        }

        ret_indexes[i] = catalog->nothing;
        if (found != NULL) {
            atomic_store(&found->asked_mono_ns, hearth_clock_mono_ns());
            ret_indexes[i] = found->index;
        }
    }

    return true;
}

enum hearth_status hearth_store_indexes_lock(struct hearth_store *store,
                                             const struct hearth_str *tenants, size_t n,
                                             struct hearth_cancel *cancel,
                                             const struct hearth_label_index **ret_indexes,
                                             struct hearth_err *err)
{
    assert(store != NULL && tenants != NULL && n > 0 && ret_indexes != NULL);

    HEARTH_TRY(hearth_store_check_open(store, err));

    struct hearth_catalog *catalog = store->catalog;
    for (;;) {
        HEARTH_TRY(hearth_catalog_refresh(catalog, cancel, err));
        HEARTH_TRY(hearth_catalog_lock_shared(catalog, cancel, err));

        /* Return the indexes under the lock if they are in memory. */
        int32_t tenant_id = 0;
        bool partial = catalog->is_partial; /* then a later refresh loads the whole catalogue */
        if (!partial && find_indexes(catalog, tenants, n, ret_indexes, &tenant_id)) {
            return HEARTH_OK;
        }

        /* Otherwise load one, and look them up again. */
        hearth_catalog_unlock(catalog);
        if (!partial) {
            HEARTH_TRY(hearth_catalog_fetch(catalog, tenant_id, cancel, err));
        }
    }
}

enum hearth_status hearth_store_index_lock(struct hearth_store *store, struct hearth_str tenant,
                                           struct hearth_cancel *cancel,
                                           const struct hearth_label_index **ret_index,
                                           struct hearth_err *err)
{
    assert(ret_index != NULL);

    return hearth_store_indexes_lock(store, &tenant, 1, cancel, ret_index, err);
}

void hearth_store_index_unlock(struct hearth_store *store, const struct hearth_label_index *index)
{
    if (index != NULL) {
        hearth_catalog_unlock(store->catalog);
    }
}
