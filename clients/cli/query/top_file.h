/*
 * top_file.h -- the table of functions of a file, or of transformed stack traces.
 */
#ifndef HEARTH_CLIENTS_TOP_FILE_H
#define HEARTH_CLIENTS_TOP_FILE_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/*
 * The table of functions of a file, or with NULL of the transformed stack traces of the query, as
 * --search, --sort and --offset choose it; in the arena. Errors of flame_file_open and _query_open.
 */
HEARTH_MUST_CHECK enum hearth_status cli_top_tree(struct cli *cli, const char *path, int64_t limit,
                                                  const char **ret_type,
                                                  Hearth__V1__TopResponse **ret);

#endif
