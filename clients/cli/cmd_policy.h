/* cmd_policy.h -- what the commands `hearth policy ...` share. */
#ifndef HEARTH_CLIENTS_CMD_POLICY_H
#define HEARTH_CLIENTS_CMD_POLICY_H

#include "hearth/model/policy_rule.h"
#include "hearth/pb/hearth/v1/policies.pb-c.h"

#include "cli.h"

#define CLI_POLICIES "hearth.v1.PolicyService/"

/* cmd_policy_past.c; cli->args begin after the word. */
cli_command_fn cli_policy_dry_run, cli_policy_monitored, cli_policy_series;

/* The policy of -f for a service, ready to be sent. */
HEARTH_MUST_CHECK enum hearth_status cli_policy_from_file(struct cli *cli, const char *service,
                                                          Hearth__V1__Policy **ret);

#endif
