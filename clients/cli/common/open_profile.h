/*
 * open_profile.h -- files of profiles, in every format that servers take.
 */
#ifndef HEARTH_CLIENTS_OPEN_PROFILE_H
#define HEARTH_CLIENTS_OPEN_PROFILE_H

#include "hearth/format/profile_file.h"

#include "cli.h"

/* Appends all of a file, "-": of standard input, to a buffer, whose limit it may not exceed.
 * INVALID_ARGUMENT if it cannot be read, or is larger. */
HEARTH_MUST_CHECK enum hearth_status cli_read_file(struct cli *cli, const char *path,
                                                   struct hearth_buf *out);
/*
 * Decodes the profiles of a file, which are at least one; they borrow from `plain`, which the caller
 * has initialised and releases, and which has room for a time at its end. INVALID_ARGUMENT if the
 * file cannot be read or has no profile.
 */
HEARTH_MUST_CHECK
enum hearth_status cli_open_profile(struct cli *cli, const char *path, struct hearth_buf *plain,
                                    struct hearth_file_profiles *ret);

#endif
