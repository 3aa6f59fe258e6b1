/*
 * flame_file.h -- a type of a file, or the stack traces of a query, as a tree.
 */
#ifndef HEARTH_CLIENTS_FLAME_FILE_H
#define HEARTH_CLIENTS_FLAME_FILE_H

#include "hearth/model/profile.h"
#include "hearth/model/stacktree.h"

#include "cli.h"

/* One type of a file as a sealed tree; it borrows from itself until flame_file_release. */
struct flame_file {
    struct hearth_buf plain;
    struct hearth_profile *profile;
    uint32_t type_idx; /* the type in it that the graph shows */
    struct hearth_stacktree tree;
    char *type, *range; /* in the arena of the client */
};

/*
 * Whether an argument names a file: it is no selector, and begins with a dot or a slash, ends as
 * files of profiles do (".pb.gz"), or has a dot or a slash and exists.
 */
bool flame_is_file(const char *argument);
/*
 * Reads a type out of a file: `wanted`, or NULL for CPU time or the default of the file.
 * INVALID_ARGUMENT, with what there is, if the file has no such type, and for options of a query.
 * Release in every case.
 */
HEARTH_MUST_CHECK enum hearth_status flame_file_open(struct cli *cli, const char *path,
                                                     const char *wanted, struct flame_file *ret);
void flame_file_release(struct flame_file *file);
/*
 * Asks for the stack traces of the query, all of them, and transforms them. INVALID_ARGUMENT for
 * options that do not go with transforms; NOT_FOUND if the query finds no profiles, or if no frame
 * matches --focus. Release *ret in every case.
 */
HEARTH_MUST_CHECK enum hearth_status flame_query_open(struct cli *cli, struct flame_file *ret);
/* Makes the profile that of the transformed tree, for outputs of profiles. */
HEARTH_MUST_CHECK enum hearth_status flame_file_take_tree(struct cli *cli, struct flame_file *file);
/* Says that a file has only zeroes; returns CLI_NO_DATA. */
enum cli_exit flame_file_is_empty(const char *path, const char *type);

#endif
