/*
 * catalog_write.c -- resolve series to ids: from memory, or by a catalogue write that all waiting
 * callers share.
 *
 * Callers with new series or hours queue requests. If no thread is writing, a waiting caller leads:
 * it takes the queued requests up to a limit, writes them in one transaction, sets their results
 * and wakes all callers; one of those that are not done leads next. So the number of transactions
 * does not grow with the number of callers, and the database has one writer per server (because of
 * the clock row's lock, one over all servers).
 */
#include "hearth/base/mem.h"

#include "catalog/catalog.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>

/* Bounds the transaction, which holds the clock's lock: new series of all servers wait for it. */
#define GROUP_MAX_ITEMS 4096

struct hearth_catalog_request {
    struct hearth_catalog_item *items;
    size_t n;
    struct hearth_catalog_request *next;
    bool done;
    enum hearth_status status;
    struct hearth_err err;
};

/* ---- leading ---- */

/*
 * Unlink the first requests of the queue: at least one, then as many as fit into one transaction.
 * The caller holds catalog->writers; the queue is not empty.
 */
static struct hearth_catalog_request *take_request_group(struct hearth_catalog *catalog,
                                                         size_t *ret_n_items)
{
    hearth_mutex_assert_held(&catalog->writers);

    assert(catalog->first != NULL && catalog->last != NULL);

    struct hearth_catalog_request *group = catalog->first;
    struct hearth_catalog_request *end = group;
    size_t n = group->n;
    while (end->next != NULL && n + end->next->n <= GROUP_MAX_ITEMS) {
        end = end->next;
        n += end->n;
    }

    catalog->first = end->next;
    if (catalog->first == NULL) {
        catalog->last = NULL;
    }

    end->next = NULL;
    *ret_n_items = n;

    return group;
}

static void cache_written_series(struct hearth_catalog *catalog,
                                 const struct hearth_catalog_request *request)
{
    for (size_t i = 0; i < request->n; i++) {
        const struct hearth_catalog_item *item = &request->items[i];
        hearth_series_cache_put(catalog->series, item->cache_key, item->hour, item->ids);
        if (atomic_load(&catalog->epoch) != item->epoch) {
            hearth_series_cache_clear(catalog->series); /* series were deleted since the write */
        }
    }
}

/* Create the series and hours of all requests in the list. n_items: the sum of their items. */
static enum hearth_status insert_group(struct hearth_catalog *catalog,
                                       const struct hearth_catalog_request *group, size_t n_items,
                                       struct hearth_err *err)
{
    struct hearth_catalog_item **items =
        hearth_mem_calloc(n_items, sizeof(struct hearth_catalog_item *));
    if (items == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to write new series");
    }

    size_t n = 0;
    for (const struct hearth_catalog_request *r = group; r != NULL; r = r->next) {
        for (size_t i = 0; i < r->n; i++) {
            items[n++] = &r->items[i];
        }
    }
    assert(n == n_items);

    enum hearth_status status = hearth_catalog_insert(catalog, items, n, err);
    hearth_mem_free(items);

    return status;
}

static void write_group(struct hearth_catalog *catalog, struct hearth_catalog_request *group,
                        size_t n_items)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = insert_group(catalog, group, n_items, &err);

    /* The database refused perhaps only one of several requests: write each by itself. */
    bool alone = status != HEARTH_OK && status != HEARTH_UNAVAILABLE && group->next != NULL;
    for (struct hearth_catalog_request *r = group; r != NULL; r = r->next) {
        if (alone) {
            struct hearth_catalog_request one = {.items = r->items, .n = r->n};
            r->err = (struct hearth_err)HEARTH_ERR_INIT;
            r->status = insert_group(catalog, &one, r->n, &r->err);
        } else {
            r->status = status;
            r->err = err;
        }

        if (r->status == HEARTH_OK) {
            cache_written_series(catalog, r);
        }
    }
}

/* Write the first requests. The caller holds catalog->writers, which is released meanwhile. */
static void lead_write(struct hearth_catalog *catalog)
{
    hearth_mutex_assert_held(&catalog->writers);
    assert(!catalog->writing);

    /* Write, without the lock. */
    size_t n_items = 0;
    struct hearth_catalog_request *group = take_request_group(catalog, &n_items);

    catalog->writing = true;
    hearth_mutex_unlock(&catalog->writers);
    write_group(catalog, group, n_items);
    hearth_mutex_lock(&catalog->writers);

    /* End the requests: from now on their memory may be gone. */
    catalog->writing = false;
    while (group != NULL) {
        struct hearth_catalog_request *next = group->next;
        group->done = true;
        group = next;
    }

    (void)pthread_cond_broadcast(&catalog->written);
}

static enum hearth_status queue_and_write_items(struct hearth_catalog *catalog,
                                                struct hearth_catalog_item *items, size_t n,
                                                struct hearth_err *err)
{
    assert(n > 0);

    /* Append a request to the queue. */
    struct hearth_catalog_request request = {.items = items, .n = n};
    hearth_mutex_lock(&catalog->writers);
    if (catalog->last == NULL) {
        catalog->first = &request;
    } else {
        catalog->last->next = &request;
    }

    catalog->last = &request;

    /* Wait until it is done, or lead. */
    while (!request.done) {
        if (catalog->writing) {
            hearth_mutex_wait(&catalog->writers, &catalog->written);
        } else {
            lead_write(catalog); /* perhaps a group without this request */
        }
    }

    hearth_mutex_unlock(&catalog->writers);
    if (request.status != HEARTH_OK && err != NULL) {
        *err = request.err;
    }

    return request.status;
}

/* ---- public functions ---- */

/* A row that no label index accepts would stop the refreshes of all servers: refuse it. */
static enum hearth_status check_new_series(const struct hearth_series_key *series,
                                           struct hearth_err *err)
{
    bool ok = series->service_name.n > 0 && series->n_types > 0 &&
              series->n_types <= HEARTH_SERIES_MAX_TYPES &&
              series->labels.n <= HEARTH_SERIES_MAX_LABELS;
    for (size_t i = 0; i < series->n_types && ok; i++) {
        ok = series->type_ids[i].n > 0 && hearth_str_utf8_valid(series->type_ids[i]);
    }

    const struct hearth_label *labels = series->labels.v;
    for (size_t i = 0; i < series->labels.n && ok; i++) {
        ok = labels[i].name.n > 0 && labels[i].value.n > 0 &&
             hearth_str_utf8_valid(labels[i].name) && hearth_str_utf8_valid(labels[i].value) &&
             (i == 0 || hearth_str_cmp(labels[i - 1].name, labels[i].name) < 0);
    }

    if (ok && hearth_str_utf8_valid(series->service_name)) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(
        err, HEARTH_INVALID_ARGUMENT,
        "a series of service \"" HEARTH_STR_FMT "\" cannot be stored: it needs 1 to %d "
        "profile types and at most %d labels, sorted and distinct, all of them UTF-8 "
        "and not empty",
        HEARTH_STR_ARG(series->service_name), HEARTH_SERIES_MAX_TYPES, HEARTH_SERIES_MAX_LABELS);
}

bool hearth_store_knows_series(struct hearth_store *store, struct hearth_str tenant,
                               const struct hearth_series_key *keys, size_t n, int64_t ts_ns,
                               struct hearth_series_ref *ret_refs)
{
    assert(store != NULL && (n == 0 || (keys != NULL && ret_refs != NULL)));

    if (hearth_store_check_writable(store, NULL) != HEARTH_OK) {
        return false;
    }

    int32_t hour = hearth_hour_of(ts_ns);
    for (size_t i = 0; i < n; i++) {
        struct hearth_hash128 key;
        struct hearth_series_ids ids = {0};
        if (hearth_series_cache_key(tenant, &keys[i], &key, NULL) != HEARTH_OK ||
            hearth_series_cache_find(store->catalog->series, key, hour, &ids) !=
                HEARTH_SERIES_KNOWN) {
            return false;
        }
        ret_refs[i] = ids.ref;
    }

    return true;
}

enum hearth_status hearth_store_resolve_series(struct hearth_store *store, struct hearth_str tenant,
                                               const struct hearth_series_key *keys, size_t n,
                                               int64_t ts_ns, struct hearth_series_ref *ret_refs,
                                               struct hearth_err *err)
{
    assert(store != NULL && (n == 0 || (keys != NULL && ret_refs != NULL)));

    HEARTH_TRY(hearth_store_check_writable(store, err));

    /* Look all series up in memory. */
    struct hearth_catalog *catalog = store->catalog;
    int32_t hour = hearth_hour_of(ts_ns);
    int64_t epoch = atomic_load(&catalog->epoch); /* before the look-ups */
    HEARTH_CLEANUP(hearth_mem_freep) struct hearth_catalog_item *items = NULL;
    size_t n_items = 0;
    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_item item = {
            .tenant = tenant, .series = &keys[i], .hour = hour, .epoch = epoch};
        HEARTH_TRY(hearth_series_cache_key(tenant, &keys[i], &item.cache_key, err));
        enum hearth_series_known known =
            hearth_series_cache_find(catalog->series, item.cache_key, hour, &item.ids);
        ret_refs[i] = item.ids.ref;
        if (known == HEARTH_SERIES_KNOWN) {
            continue;
        }

        /* Note the unknown ones. */
        HEARTH_TRY(check_new_series(&keys[i], err));
        if (items == NULL && (items = hearth_mem_calloc(n - i, sizeof *items)) == NULL) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to write new series");
        }
        item.has_ids = known == HEARTH_SERIES_NEW_HOUR;
        items[n_items++] = item;
    }

    if (n_items == 0) {
        return HEARTH_OK;
    }

    /* Write them. */
    HEARTH_TRY(queue_and_write_items(catalog, items, n_items, err));
    for (size_t i = 0; i < n_items; i++) {
        ret_refs[items[i].series - keys] = items[i].ids.ref;
    }

    return HEARTH_OK;
}
