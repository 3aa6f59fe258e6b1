/*
 * shown.h -- what a narrowed call may see of objects that are not series: agents, tasks, policies,
 * network data, spans, uploads, rules (private to the engine).
 *
 * An object of a service is visible if every series of the service matches the call's view: it may
 * tell about any of them. If the service has no series yet, a selector must show it by matchers on
 * service_name alone. An object that belongs to no service is not visible. An invisible object is
 * left out of lists, and is NOT_FOUND by its id, with the words for an id that does not exist; to
 * create or to change it is PERMISSION_DENIED.
 *
 * Threads: confined to the call's thread.
 */
#ifndef HEARTH_ENGINE_SHOWN_H
#define HEARTH_ENGINE_SHOWN_H

#include "hearth/base/status.h"
#include "hearth/engine/call.h"
#include "hearth/model/task.h"

/*
 * The wholly visible services, for one listing. Zero-initialised. The first call of
 * hearth_call_shows_service reads the label index, further ones do not.
 */
struct hearth_shown {
    bool is_known;
    struct hearth_str *services; /* wholly visible ones that have series; sorted, in the arena */
    size_t n;
};

/* True if a part of the tenant is hidden from the call. */
static inline bool hearth_call_is_narrow(const struct hearth_call *call)
{
    return hearth_view_is_narrow(call->view);
}

/*
 * Whether the call may see the objects of a service; an empty one is never visible. `shown` may
 * be NULL for a single look-up. Errors: those of the label index.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_shows_service(const struct hearth_call *call,
                                             struct hearth_shown *shown, struct hearth_str service,
                                             bool *ret, struct hearth_err *err);

/*
 * A task, with its service. NOT_FOUND, with one text, if there is none or the call does not see its
 * service.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_find_task(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_task *ret, struct hearth_err *err);
/* Whether the call sees a task; true without a look if it is not narrowed. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_shows_task(const struct hearth_call *call, struct hearth_str task_id,
                                          bool *ret, struct hearth_err *err);

/* The selectors that narrow the call, for a message: at most 200 bytes. In buffer. */
#define HEARTH_NARROWED_BYTES 256
const char *hearth_view_text(const struct hearth_view *view, char buffer[HEARTH_NARROWED_BYTES]);

/* PERMISSION_DENIED if the call may not create or change objects of the service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_check_service(const struct hearth_call *call,
                                             struct hearth_str service, struct hearth_err *err);
/*
 * The same for data that is parsed and pushed later, without a view: a selector must show all
 * series that the service may ever have, by matchers on service_name alone.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_check_later(const struct hearth_call *call,
                                           struct hearth_str service, struct hearth_err *err);
/* The same for objects that belong to no service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_check_whole(const struct hearth_call *call, struct hearth_err *err);

#endif
