/* svc_policies.h -- what the files of hearth.v1.PolicyService share. Threads: pure. */
#ifndef HEARTH_FRONT_SVC_POLICIES_H
#define HEARTH_FRONT_SVC_POLICIES_H

#include "hearth/engine/policies.h"
#include "hearth/pb/hearth/v1/policies.pb-c.h"

struct hearth_rpc;

/* Service, targets and modified_by, in the request's arena. INVALID_ARGUMENT without a policy. */
HEARTH_MUST_CHECK
enum hearth_status hearth_rpc_read_policy(struct hearth_rpc *rpc, const Hearth__V1__Policy *in,
                                          struct hearth_policy *ret);

#endif
