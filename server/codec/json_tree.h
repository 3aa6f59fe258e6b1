/*
 * json_tree.h -- a jansson tree with a memory limit and a nesting limit (private to codec).
 *
 * jansson has one allocator per process and passes it no context, so the limit is stored per
 * thread, from parse to free: both must happen on the same thread, with one tree at a time.
 */
#ifndef HEARTH_CODEC_JSON_TREE_H
#define HEARTH_CODEC_JSON_TREE_H

#include "hearth/base/status.h"

#include <jansson.h>

/*
 * Parse `text`, which must be one object, with at most max_depth levels and max_bytes of memory (0:
 * no limit). INVALID_ARGUMENT, with line and column; NO_MEMORY. Free the tree with json_tree_free.
 */
HEARTH_MUST_CHECK
enum hearth_status json_tree_parse(struct hearth_str text, unsigned max_depth, size_t max_bytes,
                                   json_t **ret_tree, struct hearth_err *err);
void json_tree_free(json_t *tree);
/* After NO_MEMORY, on the same thread: whether max_bytes was the reason. */
bool json_tree_is_over_limit(void);

#endif
