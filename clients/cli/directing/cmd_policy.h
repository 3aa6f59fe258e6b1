/* cmd_policy.h -- what the commands `hearth policy ...` share. */
#ifndef HEARTH_CLIENTS_CMD_POLICY_H
#define HEARTH_CLIENTS_CMD_POLICY_H

#include "hearth/model/policy_rule.h"
#include "hearth/pb/hearth/v1/policies.pb-c.h"

#include "cli.h"
#include "listing.h"

#define CLI_POLICIES "hearth.v1.PolicyService/"

/* The policy of -f for a service, ready to be sent. */
HEARTH_MUST_CHECK enum hearth_status cli_policy_from_file(struct cli *cli, const char *service,
                                                          Hearth__V1__Policy **ret);

#endif
