/*
 * stack_trees.h -- the two binary trees of stacks that old agents send: "trie" and "tree".
 *
 * Both are nodes depth first, all numbers unsigned varints:
 *     trie   length and bytes of a piece of text, value, number of children. The pieces on the way
 *            from the root are "root;child;leaf", cut anywhere; the value is that stack's.
 *     tree   length and bytes of a frame's name, self value, number of children. A root without a
 *            name is not a frame.
 *
 * Limits:  nesting of HEARTH_STACK_TREE_MAX_DEPTH; a trie may spell out at most sixteen times its
 *          own size, or 64 MiB, whatever is more; else the arena's.
 * Threads: pure.
 * Errors:  INVALID_ARGUMENT: cut, bytes behind the tree, too deep, no stack with a value;
 *          OUT_OF_RANGE: values above 63 bits; NO_MEMORY.
 * Source:  docs/api.md, "Ingest".
 */
#ifndef HEARTH_FORMAT_STACK_TREES_H
#define HEARTH_FORMAT_STACK_TREES_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

#define HEARTH_STACK_TREE_MAX_DEPTH 4096u

/* type and unit name the one sample type. */
HEARTH_MUST_CHECK
enum hearth_status hearth_trie_decode(struct hearth_str bytes, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_decode(struct hearth_str bytes, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err);

#endif
