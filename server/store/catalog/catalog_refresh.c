/*
 * catalog_refresh.c -- which refresh serves which callers.
 *
 * A caller must see all profiles that were acknowledged before its call. So a refresh serves it
 * only if the refresh started after the call: refreshes are numbered, and a caller waits for a
 * number above that of the last one started. If no thread is refreshing, a waiting caller runs the
 * refresh for all that wait.
 */
#include "hearth/base/clock.h"

#include "catalog/catalog.h"
#include "session/session.h"

#include <assert.h>

/*
 * Run a refresh for all waiting callers. The caller holds catalog->refresh, which is released
 * during the refresh.
 */
static enum hearth_status lead_refresh(struct hearth_catalog *catalog, struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    hearth_mutex_assert_held(&catalog->refresh);
    assert(!catalog->refreshing);

    /* Load, without the lock. */
    uint64_t number = ++catalog->n_started;
    catalog->refreshing = true;
    hearth_mutex_unlock(&catalog->refresh);
    struct hearth_err failure = HEARTH_ERR_INIT;
    enum hearth_status status = hearth_catalog_load(catalog, cancel, &failure);
    hearth_mutex_lock(&catalog->refresh);

    /* Tell the result to the waiting callers. */
    assert(catalog->refreshing && catalog->n_started == number);
    catalog->refreshing = false;
    if (status == HEARTH_OK) {
        catalog->n_done = number;
    } else if (status != HEARTH_CANCELLED && status != HEARTH_DEADLINE_EXCEEDED) {
        /*
         * A failure that is not the end of this request ends the waiting calls too: each of them
         * would fail in the same way, one after the other.
         */
        catalog->n_failed = number;
        catalog->failed_err = failure;
    }

    if (status != HEARTH_OK && err != NULL) {
        *err = failure;
    }

    (void)pthread_cond_broadcast(&catalog->refreshed);

    return status;
}

enum hearth_status hearth_catalog_refresh(struct hearth_catalog *catalog,
                                          struct hearth_cancel *cancel, struct hearth_err *err)
{
    assert(catalog != NULL);

    enum hearth_status status = HEARTH_OK;
    hearth_mutex_lock(&catalog->refresh);
    uint64_t want = catalog->n_started + 1;
    while (status == HEARTH_OK && catalog->n_done < want) {
        if (catalog->n_failed >= want) {
            status = catalog->failed_err.status;
            if (err != NULL) {
                *err = catalog->failed_err;
            }
        } else if (!catalog->refreshing) {
            status = lead_refresh(catalog, cancel, err);
        } else {
            (void)hearth_mutex_wait_until(&catalog->refresh, &catalog->refreshed,
                                          hearth_clock_mono_ns() + HEARTH_CATALOG_WAIT_STEP_NS);
            status = hearth_cancel_check(cancel, err);
        }
    }

    hearth_mutex_unlock(&catalog->refresh);

    return status;
}
