/*
 * policies_internal.h -- declarations shared by the files about policies (private to the engine).
 * Threads: safe.
 */
#ifndef HEARTH_ENGINE_POLICIES_INTERNAL_H
#define HEARTH_ENGINE_POLICIES_INTERNAL_H

#include "hearth/engine/policies.h"
#include "hearth/store/store_policies.h"

#include "select/query_internal.h"

/* Count the tasks that policies started within the window. service empty: all services. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_triggers(const struct hearth_call *call, struct hearth_str service,
                                          bool by_process, struct hearth_trigger_count **ret,
                                          size_t *ret_n, struct hearth_err *err);
/* The query's range; an open end means now, an open start an hour before. INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_range(const struct hearth_query *query, int64_t *ret_start_ms,
                                       int64_t *ret_end_ms, struct hearth_err *err);

#endif
