/* shown.c -- which services a narrowed call may see wholly (shown.h). */
#include "common/shown.h"

#include "hearth/store/store_tasks.h"

#include "common/call_index.h"
#include "common/call_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static int compare_services(const void *a, const void *b)
{
    struct hearth_str left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left, right);
}

/* ---- services without series ---- */

/* Whether a selector matches all series of a service because of the name of the service. */
static bool names_service(const struct hearth_selector *selector, struct hearth_str service)
{
    struct hearth_label own[] = {{HEARTH_STR(HEARTH_LABEL_SERVICE_DUP), service},
                                 {HEARTH_STR(HEARTH_LABEL_SERVICE), service}};
    const struct hearth_labels labels = {own, 2}; /* sorted */

    for (size_t i = 0; i < selector->n; i++) {
        struct hearth_str name = selector->matchers[i].name;
        if (!hearth_str_eq_c(name, HEARTH_LABEL_SERVICE) &&
            !hearth_str_eq_c(name, HEARTH_LABEL_SERVICE_DUP)) {
            return false;
        }
    }

    return hearth_selector_matches(selector, &labels);
}

static enum hearth_status view_names_service(const struct hearth_call *call,
                                             struct hearth_str service, bool *ret,
                                             struct hearth_err *err)
{
    *ret = false;

    for (size_t i = 0; i < call->view->n_selectors && !*ret; i++) {
        struct hearth_selector selector;
        hearth_selector_init(&selector);
        enum hearth_status status =
            hearth_selector_parse(&selector, call->view->selectors[i], call->arena, NULL, err);
        *ret = status == HEARTH_OK && names_service(&selector, service);
        hearth_selector_release(&selector);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "a selector that narrows the credential");
            return status;
        }
    }

    return HEARTH_OK;
}

/* ---- services with series ---- */

static enum hearth_status find_shown_services(const struct hearth_call *call,
                                              struct hearth_shown *shown, struct hearth_err *err)
{
    const struct hearth_call_index *index;
    struct hearth_index_texts services = {0};

    HEARTH_TRY(hearth_call_index_lock(call, &index, err));
    enum hearth_status status =
        hearth_call_index_whole_services(index, call->arena, &services, err);
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);

    *shown = (struct hearth_shown){.is_known = true, .services = services.v, .n = services.n};

    return HEARTH_OK;
}

enum hearth_status hearth_call_shows_service(const struct hearth_call *call,
                                             struct hearth_shown *shown, struct hearth_str service,
                                             bool *ret, struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    struct hearth_shown own = {0};

    *ret = !hearth_call_is_narrow(call);
    if (*ret || service.n == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(view_names_service(call, service, ret, err));
    if (*ret) {
        return HEARTH_OK;
    }

    shown = shown == NULL ? &own : shown;
    if (!shown->is_known) {
        HEARTH_TRY(find_shown_services(call, shown, err));
    }
    *ret = shown->n > 0 &&
           bsearch(&service, shown->services, shown->n, sizeof service, compare_services) != NULL;

    return HEARTH_OK;
}

/* ---- tasks ---- */

enum hearth_status hearth_call_find_task(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_task *ret, struct hearth_err *err)
{
    bool shows;

    assert(call != NULL && ret != NULL);

    HEARTH_TRY(hearth_store_task_get(HEARTH_CALL_SCOPE(call), task_id, ret, err));
    HEARTH_TRY(hearth_call_shows_service(call, NULL, ret->service, &shows, err));

    return shows ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no task \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(task_id));
}

enum hearth_status hearth_call_shows_task(const struct hearth_call *call, struct hearth_str task_id,
                                          bool *ret, struct hearth_err *err)
{
    struct hearth_task task;

    *ret = !hearth_call_is_narrow(call);
    if (*ret) {
        return HEARTH_OK;
    }

    enum hearth_status status = hearth_call_find_task(call, task_id, &task, err);
    *ret = status == HEARTH_OK;

    return status == HEARTH_NOT_FOUND ? HEARTH_OK : status;
}

/* ---- refusals ---- */

const char *hearth_view_text(const struct hearth_view *view, char buffer[HEARTH_NARROWED_BYTES])
{
    assert(hearth_view_is_narrow(view));

    size_t n = 0;
    for (size_t i = 0; i < view->n_selectors && n < HEARTH_NARROWED_BYTES; i++) {
        int more = snprintf(buffer + n, HEARTH_NARROWED_BYTES - n, "%s" HEARTH_STR_FMT,
                            i == 0 ? "" : " or ", HEARTH_STR_ARG(view->selectors[i]));
        n += more < 0 ? HEARTH_NARROWED_BYTES : (size_t)more;
    }

    return buffer;
}

enum hearth_status hearth_call_check_service(const struct hearth_call *call,
                                             struct hearth_str service, struct hearth_err *err)
{
    bool shows;
    char text[HEARTH_NARROWED_BYTES];

    HEARTH_TRY(hearth_call_shows_service(call, NULL, service, &shows, err));

    return shows ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                               "the credential is narrowed to %s, and does not see all of service "
                               "\"" HEARTH_STR_FMT "\"",
                               hearth_view_text(call->view, text), HEARTH_STR_ARG(service));
}

enum hearth_status hearth_call_check_later(const struct hearth_call *call,
                                           struct hearth_str service, struct hearth_err *err)
{
    bool shows = !hearth_call_is_narrow(call);
    char text[HEARTH_NARROWED_BYTES];

    if (!shows) {
        HEARTH_TRY(view_names_service(call, service, &shows, err));
    }

    return shows ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                               "the credential is narrowed to %s; files and results of service "
                               "\"" HEARTH_STR_FMT "\" need one that names the service alone",
                               hearth_view_text(call->view, text), HEARTH_STR_ARG(service));
}

enum hearth_status hearth_call_check_whole(const struct hearth_call *call, struct hearth_err *err)
{
    assert(call != NULL);

    char text[HEARTH_NARROWED_BYTES];

    return !hearth_call_is_narrow(call)
               ? HEARTH_OK
               : HEARTH_FAIL(
                     err, HEARTH_PERMISSION_DENIED,
                     "the credential is narrowed to %s; this needs one for the whole tenant",
                     hearth_view_text(call->view, text));
}
