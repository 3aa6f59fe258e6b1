/*
 * json_tree.h -- a jansson tree under a memory limit and a nesting limit. Private to codec.
 *
 * jansson takes one allocator per process and tells it no context, so the limit is kept per thread,
 * for the time between parse and free: both on the same thread, one tree at a time.
 */
#ifndef HEARTH_CODEC_JSON_TREE_H
#define HEARTH_CODEC_JSON_TREE_H

#include "hearth/base/status.h"

#include <jansson.h>

/*
 * Parse `text`, which must hold one object. At most max_depth levels and max_bytes of memory (0: no
 * limit). INVALID_ARGUMENT names line and column; NO_MEMORY. Free with json_tree_free.
 */
HEARTH_MUST_CHECK
enum hearth_status json_tree_parse(struct hearth_str text, unsigned max_depth, size_t max_bytes,
                                   json_t **ret_tree, struct hearth_err *err);
void json_tree_free(json_t *tree);

#endif
