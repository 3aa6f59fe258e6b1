/*
 * auth_options.h -- options about who may call, and from where (private to app).
 *
 * Errors: INVALID_ARGUMENT names the option.
 */
#ifndef HEARTH_APP_AUTH_OPTIONS_H
#define HEARTH_APP_AUTH_OPTIONS_H

#include "hearth/app/config.h"

/* Parse `auth`, and copy options to those of front and access. */
HEARTH_MUST_CHECK
enum hearth_status hearth_auth_read_options(struct hearth_config *config, struct hearth_err *err);

/* Check that each listener can do what its ways to authenticate need. After _read_options. */
HEARTH_MUST_CHECK
enum hearth_status hearth_auth_check_addresses(const struct hearth_config *config,
                                               struct hearth_err *err);

/* True if a listener authenticates its callers. */
bool hearth_auth_asks_who_calls(const struct hearth_config *config);

/* Log the listeners on which others can read tokens and passwords. */
void hearth_auth_warn_of_clear_credentials(const struct hearth_config *config);

#endif
