/* cmd_access.h -- what the commands for tokens, users, grants and the audit log share. */
#ifndef HEARTH_CLIENTS_CMD_ACCESS_H
#define HEARTH_CLIENTS_CMD_ACCESS_H

#include "hearth/pb/hearth/v1/access.pb-c.h"

#include "cli.h"
#include "listing.h"

#define CLI_ACCESS "hearth.v1.AccessService/"

/*
 * A grant for a request; `selector` may be NULL. Its tenant is that of --tenant or HEARTH_TENANT if
 * `tenant` is NULL, otherwise anonymous, the only one of a server without --multitenancy.
 */
HEARTH_MUST_CHECK enum hearth_status cli_make_grant(struct cli *cli, const char *tenant,
                                                    const char *selector, const char *role,
                                                    Hearth__V1__Grant *ret);
/* Appends "ingest in shop", "admin in all tenants", "viewer in shop, only {team="x"}": exact texts, as they came from the server. */
void cli_put_grant(const Hearth__V1__Grant *grant, struct hearth_buf *out);
/* Adds grants, separated by semicolons, as a text. */
void cli_list_grants(struct cli_listing *list, Hearth__V1__Grant *const *grants, size_t n);
/* A subject: "user:NAME" for a name without a kind. In the arena, NULL if that is full. */
char *cli_subject(struct cli *cli, const char *text);
/* Prints a line for people, or the answer as JSON. */
HEARTH_PRINTF(3, 4)
enum cli_exit cli_print_done(struct cli *cli, const ProtobufCMessage *answer, const char *fmt, ...);

#endif
