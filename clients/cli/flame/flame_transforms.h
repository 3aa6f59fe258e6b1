/*
 * flame_transforms.h -- transforms of stack traces: --focus, --hide and the --collapse options.
 */
#ifndef HEARTH_CLIENTS_FLAME_TRANSFORMS_H
#define HEARTH_CLIENTS_FLAME_TRANSFORMS_H

#include "hearth/model/stacktree.h"

#include "cli.h"

/* Adds a transform of an option. Returns false if its value is empty, or if there are too many. */
bool cli_add_transform(struct cli *cli, const char *flag, const char *name);
/*
 * Replaces a sealed tree by the one that the options make of it; says which of them no frame
 * matches. NOT_FOUND if --focus leaves nothing; INVALID_ARGUMENT for a wrong regular expression.
 */
HEARTH_MUST_CHECK enum hearth_status flame_transform_tree(struct cli *cli,
                                                          struct hearth_stacktree *tree);
/* Appends them to the address of a page. False: the page has no words for them. */
HEARTH_MUST_CHECK bool flame_put_transforms(const struct cli *cli, struct hearth_buf *link);

#endif
