/*
 * admin.c -- deletion by selector, retention, rebuilding, state (contract: hearth/engine/admin.h).
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/store/background.h"
#include "hearth/store/store.h"

#include "common/call_index.h"
#include "common/call_internal.h"
#include "common/shown.h"
#include "tenants/admin_internal.h"

#include <assert.h>

#define MAX_MS       (INT64_MAX / HEARTH_NS_PER_MS)
#define ABOUT_NOW_NS (120 * HEARTH_NS_PER_SEC)

enum hearth_status hearth_admin_new(struct hearth_store *store, struct hearth_admin **ret_admin,
                                    struct hearth_err *err)
{
    struct hearth_admin *admin = hearth_mem_zalloc(sizeof *admin);

    assert(ret_admin != NULL);

    if (admin == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the administration's state");
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

/*
 * Refuse matchers of profile types: a stored profile has all its types, and is deleted as a whole.
 */
static enum hearth_status check_erase_matchers(const struct hearth_selector *selector,
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
                    "a deletion cannot select by profile type (%s): profiles are deleted with "
                    "all their types",
                    of_type[k]);
            }
        }
    }

    return HEARTH_OK;
}

/* A range of time, and the series of a selector in it. */
struct selected_series {
    int64_t from_ns, to_ns;
    struct hearth_series_hit *hits; /* sorted by service, series and column */
    size_t n;
    struct hearth_index_texts whole_services; /* of a narrowed call: those that it sees wholly */
};

/*
 * Keep the series of which all columns were selected: a profile is deleted with all its types, so a
 * view that shows some types only does not permit it.
 */
static void keep_whole_series(struct selected_series *selected)
{
    struct hearth_series_hit *hits = selected->hits;
    size_t n = 0;

    for (size_t i = 0, end; i < selected->n; i = end) {
        for (end = i; end < selected->n && hits[end].series_id == hits[i].series_id; end++) {
        }
        for (size_t k = i; end - i == hits[i].n_types && k < end; k++) {
            hits[n++] = hits[k];
        }
    }

    selected->n = n;
}

/* Set the hits of ret, whose range is given. */
static enum hearth_status select_admin_series(const struct hearth_call *call,
                                              const struct hearth_selector *selector,
                                              struct selected_series *ret, struct hearth_err *err)
{
    const struct hearth_call_index *index = NULL;
    enum hearth_status status;

    assert(ret->from_ns <= ret->to_ns);

    HEARTH_TRY(hearth_call_index_lock(call, &index, err));

    if (hearth_call_index_is_cut(index)) { /* a partial deletion would look complete */
        status = HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "not all series of the tenant fit into memory, so a selector would"
                             " miss some; raise label-index-bytes");
    } else {
        const struct hearth_index_filter filter = {selector, ret->from_ns, ret->to_ns};
        struct hearth_series_hits hits = {0};
        status = hearth_call_index_select(index, &filter, call->arena, &hits, err);
        ret->hits = hits.v;
        ret->n = hits.n;
        keep_whole_series(ret);
        if (status == HEARTH_OK && hearth_call_is_narrow(call)) {
            status =
                hearth_call_index_whole_services(index, call->arena, &ret->whole_services, err);
        }
    }

    hearth_call_index_unlock(index);

    return status;
}

static void count_erased_series(const struct selected_series *selected,
                                struct hearth_admin_erased *ret)
{
    const struct hearth_series_hit *hits = selected->hits;

    for (size_t i = 0; i < selected->n; i++) {
        bool same_service = i > 0 && hits[i - 1].service_id == hits[i].service_id;
        ret->n_services += !same_service;
        ret->n_series += !same_service || hits[i - 1].series_id != hits[i].series_id;
    }
}

/*
 * The end of the range to delete. The label index keeps hours. If a range that ends about now left
 * its last hour, label queries would still find the labels of the deleted profiles; so it is
 * extended to the end of the hour.
 */
static int64_t extend_erase_end(int64_t to_ms)
{
    if (to_ms >= MAX_MS) {
        return INT64_MAX;
    }

    int64_t to_ns = to_ms * HEARTH_NS_PER_MS + HEARTH_NS_PER_MS - 1;
    int64_t now_ns = hearth_clock_wall_ns();
    bool about_now = to_ns >= now_ns - ABOUT_NOW_NS && to_ns <= now_ns + ABOUT_NOW_NS;

    return about_now ? to_ns - to_ns % HEARTH_NS_PER_HOUR + HEARTH_NS_PER_HOUR - 1 : to_ns;
}

static enum hearth_status erase_selected(const struct hearth_call *call,
                                         const struct hearth_admin_erase *what,
                                         struct hearth_selector *selector,
                                         struct hearth_admin_erased *ret, struct hearth_err *err)
{
    enum hearth_status status =
        hearth_selector_parse(selector, what->selector, call->arena, NULL, err);

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "selector");
        return status;
    }

    HEARTH_TRY(check_erase_matchers(selector, err));

    /* Find the series. */
    struct selected_series selected = {
        .from_ns = (what->from_ms > MAX_MS ? MAX_MS : what->from_ms) * HEARTH_NS_PER_MS,
        .to_ns = extend_erase_end(what->to_ms),
    };
    HEARTH_TRY(select_admin_series(call, selector, &selected, err));

    /* Delete their profiles. */
    count_erased_series(&selected, ret);
    if (what->only_count || selected.n == 0) {
        return HEARTH_OK;
    }

    const struct hearth_erase_request request = {
        .hits = selected.hits,
        .n_hits = selected.n,
        .from_ns = selected.from_ns,
        .to_ns = selected.to_ns,
        .selector = what->selector,
        .requested_by = what->requested_by,
        .whole_services = hearth_call_is_narrow(call) ? &selected.whole_services : NULL};

    return hearth_store_erase(call->engine->store, call->tenant, &request, &ret->erasure_id, err);
}

enum hearth_status hearth_admin_erase(const struct hearth_call *call,
                                      const struct hearth_admin_erase *what,
                                      struct hearth_admin_erased *ret, struct hearth_err *err)
{
    assert(call != NULL && what != NULL && ret != NULL);

    *ret = (struct hearth_admin_erased){0};
    if (what->from_ms < 0 || what->from_ms > what->to_ms) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the range to delete must not begin before 1970, nor end before it begins");
    }

    struct hearth_selector selector;
    hearth_selector_init(&selector);
    enum hearth_status status = erase_selected(call, what, &selector, ret, err);
    hearth_selector_release(&selector);

    return status;
}

enum hearth_status hearth_admin_erasures(const struct hearth_call *call,
                                         struct hearth_erasure **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    assert(call != NULL && ret != NULL && ret_n != NULL);

    /* Their selectors and numbers tell about series that a narrowed call does not see. */
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_erasures(call->engine->store, call->tenant, call->arena, ret, ret_n, err);
}

/* ---- retention ---- */

void hearth_admin_retention(struct hearth_admin *admin, struct hearth_str tenant,
                            struct hearth_retention *ret)
{
    hearth_store_retention(admin->store, tenant, ret);
}

enum hearth_status hearth_admin_retention_set(const struct hearth_call *call,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_call_check_whole(call, err));

    return hearth_store_retention_set(call->engine->store, call->tenant, name, value_ns, err);
}

/* ---- roll-ups ---- */

/* Find the service with the name, if it has profiles. */
static enum hearth_status find_rebuild_service(const struct hearth_call *call,
                                               struct hearth_str name, int32_t *ret_service_id,
                                               struct hearth_err *err)
{
    struct selected_series selected = {.from_ns = 0, .to_ns = INT64_MAX};
    struct hearth_selector selector;

    /* Select the series of the service. */
    hearth_selector_init(&selector);
    enum hearth_status status = hearth_selector_add(&selector, HEARTH_STR(HEARTH_LABEL_SERVICE),
                                                    HEARTH_MATCH_EQ, name, call->arena, err);
    if (status == HEARTH_OK) {
        status = select_admin_series(call, &selector, &selected, err);
    }

    hearth_selector_release(&selector);
    HEARTH_TRY(status);

    /* Any of them tells its id. */
    if (selected.n == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no service \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(name));
    }

    *ret_service_id = selected.hits[0].service_id;

    return HEARTH_OK;
}

enum hearth_status hearth_admin_rebuild(const struct hearth_call *call,
                                        struct hearth_str service_name, int64_t from_ms,
                                        struct hearth_err *err)
{
    int32_t service_id = 0;

    if (from_ms < 0 || from_ms > MAX_MS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "from_ms, the start of the rebuild, is out of range");
    }

    if (service_name.n > 0) {
        HEARTH_TRY(hearth_call_check_service(call, service_name, err));
        HEARTH_TRY(find_rebuild_service(call, service_name, &service_id, err));
    } else {
        HEARTH_TRY(hearth_call_check_whole(call, err));
    }

    return hearth_store_rebuild(call->engine->store, call->tenant, service_id,
                                from_ms * HEARTH_NS_PER_MS, err);
}

/* ---- state ---- */

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

enum hearth_status hearth_admin_layout(struct hearth_admin *admin, struct hearth_arena *arena,
                                       struct hearth_node_layout *ret, struct hearth_err *err)
{
    return hearth_store_node_layout(admin->store, arena, ret, err);
}
