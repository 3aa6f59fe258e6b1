/*
 * psql_url.h -- gives psql a database URL without showing its password: other users see arguments.
 *
 * Threads:   not thread-safe (environment).
 * Source:    PostgreSQL 15 documentation, chapter 34.1.1 (connection URIs) and 34.15 (PGPASSWORD).
 */
#ifndef HEARTH_CLIENTS_PSQL_URL_H
#define HEARTH_CLIENTS_PSQL_URL_H

#include "hearth/base/arena.h"
#include "hearth/base/secret.h"
#include "hearth/base/status.h"

/*
 * The URL without its password, in the arena; the password is put into PGPASSWORD, which psql
 * inherits. A password in another form than postgresql://user:password@host is INVALID_ARGUMENT.
 */
HEARTH_MUST_CHECK
enum hearth_status cli_psql_url(const struct hearth_secret *url, struct hearth_arena *arena,
                                const char **ret, struct hearth_err *err);

#endif
