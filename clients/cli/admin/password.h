/*
 * password.h -- a new password of a user.
 */
#ifndef HEARTH_CLIENTS_PASSWORD_H
#define HEARTH_CLIENTS_PASSWORD_H

#include "cli.h"

/* A new password, in the arena: of --password-file, or typed twice on the terminal without echo.
 * INVALID_ARGUMENT without a terminal; FAILED_PRECONDITION if the two differ. */
HEARTH_MUST_CHECK enum hearth_status cli_new_password(struct cli *cli, char **ret);

#endif
