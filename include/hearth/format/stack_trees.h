/*
 * stack_trees.h -- reads the two binary trees of stacks that old agents send: "trie" and "tree".
 *
 * Both are sequences of nodes, depth first; all numbers are unsigned varints:
 *     trie   length and bytes of a piece of text, value, number of children. The pieces on the path
 *            from the root form "root;child;leaf", divided anywhere; the value belongs to that
 *            stack.
 *     tree   length and bytes of a frame's name, self value, number of children. A root without a
 *            name is not a frame.
 *
 * Limits:  nesting of HEARTH_STACK_TREE_MAX_DEPTH; the stacks of a trie may expand to sixteen times
 *          its size or to 64 MiB, whichever is more; otherwise the arena's limit.
 * Threads: pure.
 * Errors:  INVALID_ARGUMENT: truncated, bytes after the tree, too deep, no stack with a value;
 *          OUT_OF_RANGE: a value above 63 bits; NO_MEMORY.
 * Source:  docs/reference/api-push.md, "Ingest".
 */
#ifndef HEARTH_FORMAT_STACK_TREES_H
#define HEARTH_FORMAT_STACK_TREES_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

#define HEARTH_STACK_TREE_MAX_DEPTH 4096u

/* type and unit name the only sample type. */
HEARTH_MUST_CHECK
enum hearth_status hearth_trie_decode(struct hearth_str bytes, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_decode(struct hearth_str bytes, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err);

#endif
