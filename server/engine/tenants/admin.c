/* admin.c -- deletion by selector, retention, rebuilding, looking: what the store does, in the words
 * of those who ask. */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/selector/selector.h"
#include "hearth/store/background.h"
#include "hearth/store/store.h"

#include "tenants/admin_internal.h"

#define MAX_MS       (INT64_MAX / HEARTH_NS_PER_MS)
#define ABOUT_NOW_NS (120 * HEARTH_NS_PER_SEC)

enum hearth_status hearth_admin_new(struct hearth_store *store, struct hearth_admin **ret_admin,
                                    struct hearth_err *err)
{
    struct hearth_admin *admin = hearth_mem_zalloc(sizeof *admin);
    if (admin == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the admin's part");
    }
    admin->store = store;
    *ret_admin = admin;
    return HEARTH_OK;
}

void hearth_admin_free(struct hearth_admin *admin)
{
    hearth_mem_free(admin);
}

/* ---- deletion ---- */

/* A stored profile has all its types: one of them cannot be taken out. */
static enum hearth_status check_matchers(const struct hearth_selector *selector,
                                         struct hearth_err *err)
{
    static const char *const of_type[] = {HEARTH_LABEL_NAME,        HEARTH_LABEL_PROFILE_TYPE,
                                          HEARTH_LABEL_TYPE,        HEARTH_LABEL_UNIT,
                                          HEARTH_LABEL_PERIOD_TYPE, HEARTH_LABEL_PERIOD_UNIT};
    for (size_t i = 0; i < selector->n; i++) {
        for (size_t k = 0; k < HEARTH_ARRAY_LEN(of_type); k++) {
            if (hearth_str_eq_c(selector->matchers[i].name, of_type[k])) {
                return HEARTH_FAIL(
                    err, HEARTH_INVALID_ARGUMENT,
                    "a deletion cannot choose by profile type (%s): profiles go with "
                    "all their types",
                    of_type[k]);
            }
        }
    }
    return HEARTH_OK;
}

static enum hearth_status select_series(struct hearth_admin *admin, struct hearth_str tenant,
                                        const struct hearth_selector *selector, int64_t from_ns,
                                        int64_t to_ns, struct hearth_cancel *cancel,
                                        struct hearth_arena *arena,
                                        struct hearth_series_hit **ret_hits, size_t *ret_n,
                                        struct hearth_err *err)
{
    const struct hearth_label_index *index = NULL;
    HEARTH_TRY(hearth_store_index_lock(admin->store, tenant, cancel, &index, err));
    enum hearth_status status;
    if (hearth_label_index_is_cut(index)) { /* half a deletion would look like a whole one */
        status = HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "not all series of the tenant fit into memory (label-index-bytes), so "
                             "that a selector would miss some");
    } else {
        status =
            hearth_label_index_select(index, selector, from_ns, to_ns, arena, ret_hits, ret_n, err);
    }
    hearth_store_index_unlock(admin->store, index);
    return status;
}

/* Hits are by (service, series, column). */
static void count_series(const struct hearth_series_hit *hits, size_t n,
                         struct hearth_admin_erased *ret)
{
    for (size_t i = 0; i < n; i++) {
        bool same_service = i > 0 && hits[i - 1].service_id == hits[i].service_id;
        ret->n_services += !same_service;
        ret->n_series += !same_service || hits[i - 1].series_id != hits[i].series_id;
    }
}

/*
 * Labels are known by the hour. A range that ends about now would leave its last hour, and with it
 * the label that somebody wants gone, for label queries to find: so it ends with that hour.
 */
static int64_t end_of_range(int64_t to_ms)
{
    if (to_ms >= MAX_MS) {
        return INT64_MAX;
    }
    int64_t to_ns = to_ms * HEARTH_NS_PER_MS + HEARTH_NS_PER_MS - 1;
    int64_t now_ns = hearth_clock_wall_ns();
    bool about_now = to_ns >= now_ns - ABOUT_NOW_NS && to_ns <= now_ns + ABOUT_NOW_NS;
    return about_now ? to_ns - to_ns % HEARTH_NS_PER_HOUR + HEARTH_NS_PER_HOUR - 1 : to_ns;
}

static enum hearth_status erase(struct hearth_admin *admin, const struct hearth_admin_erase *what,
                                struct hearth_selector *selector, struct hearth_cancel *cancel,
                                struct hearth_arena *arena, struct hearth_admin_erased *ret,
                                struct hearth_err *err)
{
    enum hearth_status status = hearth_selector_parse(selector, what->selector, arena, NULL, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "selector");
        return status;
    }
    HEARTH_TRY(check_matchers(selector, err));
    int64_t from_ns = (what->from_ms > MAX_MS ? MAX_MS : what->from_ms) * HEARTH_NS_PER_MS;
    int64_t to_ns = end_of_range(what->to_ms);
    struct hearth_series_hit *hits = NULL;
    size_t n = 0;
    HEARTH_TRY(select_series(admin, what->tenant, selector, from_ns, to_ns, cancel, arena, &hits,
                             &n, err));
    count_series(hits, n, ret);
    if (what->only_count || n == 0) {
        return HEARTH_OK;
    }
    return hearth_store_erase(admin->store, what->tenant, hits, n, what->selector,
                              what->requested_by, from_ns, to_ns, &ret->erasure_id, err);
}

enum hearth_status hearth_admin_erase(struct hearth_admin *admin,
                                      const struct hearth_admin_erase *what,
                                      struct hearth_cancel *cancel, struct hearth_arena *arena,
                                      struct hearth_admin_erased *ret, struct hearth_err *err)
{
    *ret = (struct hearth_admin_erased){0};
    if (what->from_ms < 0 || what->from_ms > what->to_ms) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the range to delete must not begin before 1970, nor end before it begins");
    }
    struct hearth_selector selector;
    hearth_selector_init(&selector);
    enum hearth_status status = erase(admin, what, &selector, cancel, arena, ret, err);
    hearth_selector_release(&selector);
    return status;
}

enum hearth_status hearth_admin_erasures(struct hearth_admin *admin, struct hearth_str tenant,
                                         struct hearth_arena *arena, struct hearth_erasure **ret,
                                         size_t *ret_n, struct hearth_err *err)
{
    return hearth_store_erasures(admin->store, tenant, arena, ret, ret_n, err);
}

/* ---- retention ---- */

void hearth_admin_retention(struct hearth_admin *admin, struct hearth_str tenant,
                            struct hearth_retention *ret)
{
    hearth_store_retention(admin->store, tenant, ret);
}

enum hearth_status hearth_admin_retention_set(struct hearth_admin *admin, struct hearth_str tenant,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err)
{
    return hearth_store_retention_set(admin->store, tenant, name, value_ns, err);
}

/* ---- roll-ups ---- */

/* The service of that name that has profiles. */
static enum hearth_status find_service(struct hearth_admin *admin, struct hearth_str tenant,
                                       struct hearth_str name, struct hearth_cancel *cancel,
                                       struct hearth_arena *arena, int32_t *ret_service_id,
                                       struct hearth_err *err)
{
    struct hearth_selector selector;
    struct hearth_series_hit *hits = NULL;
    size_t n = 0;
    hearth_selector_init(&selector);
    enum hearth_status status = hearth_selector_add(&selector, HEARTH_STR(HEARTH_LABEL_SERVICE),
                                                    HEARTH_MATCH_EQ, name, arena, err);
    if (status == HEARTH_OK) {
        status =
            select_series(admin, tenant, &selector, 0, INT64_MAX, cancel, arena, &hits, &n, err);
    }
    hearth_selector_release(&selector);
    HEARTH_TRY(status);
    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no service \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(name));
    }
    *ret_service_id = hits[0].service_id;
    return HEARTH_OK;
}

enum hearth_status hearth_admin_rebuild(struct hearth_admin *admin, struct hearth_str tenant,
                                        struct hearth_str service_name, int64_t from_ms,
                                        struct hearth_cancel *cancel, struct hearth_arena *arena,
                                        struct hearth_err *err)
{
    int32_t service_id = 0;
    if (from_ms < 0 || from_ms > MAX_MS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the time to build again from is out of range");
    }
    if (service_name.n > 0) {
        HEARTH_TRY(find_service(admin, tenant, service_name, cancel, arena, &service_id, err));
    }
    return hearth_store_rebuild(admin->store, tenant, service_id, from_ms * HEARTH_NS_PER_MS, err);
}

/* ---- looking ---- */

enum hearth_status hearth_admin_state(struct hearth_admin *admin, struct hearth_arena *arena,
                                      struct hearth_background_state *ret, struct hearth_err *err)
{
    return hearth_store_background_state(admin->store, arena, ret, err);
}

enum hearth_status hearth_admin_doctor(struct hearth_admin *admin, struct hearth_arena *arena,
                                       struct hearth_check **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    return hearth_store_doctor(admin->store, arena, ret, ret_n, err);
}
