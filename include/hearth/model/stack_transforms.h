/*
 * stack_transforms.h -- changes of a tree of stack traces that a reader asks for, by names of
 * functions. The web page applies the same ones (clients/web/src/flame/transforms.ts);
 * clients/web/test/transforms.txt has cases that the tests of both read.
 *
 *   focus            the outermost calls of a function become children of the root; stack traces
 *                    without it are left out
 *   hide             its frames vanish; their self becomes that of their caller
 *   recursion        its inner calls become its outermost one: f, g, f, h is f, h
 *   package          calls within one package (frame_package.h) become a frame with its name
 *
 * Only focus changes the total of the tree.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_STACK_TRANSFORMS_H
#define HEARTH_MODEL_STACK_TRANSFORMS_H

#include "hearth/model/stacktree.h"

enum hearth_transform_kind {
    HEARTH_TRANSFORM_FOCUS,
    HEARTH_TRANSFORM_HIDE,
    HEARTH_TRANSFORM_RECURSION,
    HEARTH_TRANSFORM_PACKAGE,
};

struct hearth_transform {
    enum hearth_transform_kind kind;
    struct hearth_str name; /* of the function, or of the package */
    /* focus, hide: which functions are meant instead of the one with that name; NULL: that one */
    bool (*is_meant)(const void *context, struct hearth_str name);
    const void *context;
};

/*
 * Apply one transform to a sealed tree. *ret is another one in `arena`, sealed and without nodes
 * whose total is 0; release it with hearth_stacktree_release, also after a failure. *ret_n_frames
 * is the number of nodes whose name is meant. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_transform(const struct hearth_stacktree *tree,
                                              const struct hearth_transform *transform,
                                              struct hearth_arena *arena,
                                              struct hearth_stacktree *ret, size_t *ret_n_frames,
                                              struct hearth_err *err);

#endif
