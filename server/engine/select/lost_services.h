/*
 * lost_services.h -- leaves the services of lost nodes out of a selection (private to the engine).
 *
 *     kept = the selection without them      hearth_lost_leave_out
 *     read kept
 *     if that fails for a node that is lost  hearth_lost_retry: leave it out, too, and read again
 *     otherwise                              hearth_lost_done
 *
 * A call without `partial` leaves out nothing.
 *
 * Threads: a call belongs to one thread.
 */
#ifndef HEARTH_ENGINE_LOST_SERVICES_H
#define HEARTH_ENGINE_LOST_SERVICES_H

#include "select/planned.h"

/*
 * *ret_kept: the selection, whose arrays it may share; its own ones are in the arena of the call.
 * UNAVAILABLE: nothing is left; the message names the node.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_lost_leave_out(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_selection *ret_kept, struct hearth_err *err);

/* True after a read of `kept` failed because of a node that is to be left out, too. */
HEARTH_MUST_CHECK
bool hearth_lost_retry(const struct hearth_query *query, const struct hearth_selection *kept,
                       enum hearth_status status);

/* After a read of `kept` has succeeded. */
void hearth_lost_done(const struct hearth_query *query, const struct hearth_selection *kept);

#endif
