/* policies_internal.h -- what the files about policies share (private to the engine). Threads: safe. */
#ifndef HEARTH_ENGINE_POLICIES_INTERNAL_H
#define HEARTH_ENGINE_POLICIES_INTERNAL_H

#include "hearth/engine/policies.h"

#include "query_internal.h"

/* Tasks that policies started within the window, the latest first. kind 0, service empty: all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_triggers(const struct hearth_query *query,
                                          struct hearth_str service,
                                          enum hearth_policy_kind kind,
                                          struct hearth_task **ret,
                                          size_t *ret_n,
                                          struct hearth_err *err);
/* The query's range, the last hour where it does not say; INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_range(const struct hearth_query *query,
                                       int64_t *ret_start_ms,
                                       int64_t *ret_end_ms,
                                       struct hearth_err *err);

#endif
