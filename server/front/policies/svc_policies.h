/*
 * svc_policies.h -- functions that the files of hearth.v1.PolicyService share (private to the
 * front). Threads: confined to the request.
 */
#ifndef HEARTH_FRONT_SVC_POLICIES_H
#define HEARTH_FRONT_SVC_POLICIES_H

#include "hearth/engine/policies.h"
#include "hearth/pb/hearth/v1/policies.pb-c.h"

struct hearth_rpc;

/*
 * Read service, targets and modified_by. Arrays are in the request's arena; texts borrow from `in`.
 * Errors: INVALID_ARGUMENT if `in` is NULL; the arena's error when it is full.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_read_policy(struct hearth_rpc *rpc, const Hearth__V1__Policy *in,
                                          struct hearth_policy *ret);

#endif
