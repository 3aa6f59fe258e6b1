/*
 * go_stacks.h -- two things that Go's runtime does to stack traces, undone for people who look at them.
 *
 * Cut stacks: the runtime records the leaf-most 64 (CPU), 32 or 128 (heap) frames. What is deeper lacks
 * its root, and stands in a flame graph as a root of its own. Where another stack has the root-most
 * HEARTH_GO_OVERLAP frames of a cut one in a row, further from its own root, the cut one is put below
 * what the other has above them. That is a guess, though a good one: with several such places, the one
 * that most of the values pass through is taken.
 *
 * Generic functions: since Go 1.21 a name has type arguments by the shapes that the compiler made,
 * "pkg.Map[go.shape.int,go.shape.string]", which may be those of another call. They become "[...]".
 *
 * Units:   values of the tree.
 * Threads: pure.
 * Source:  issue 64528 of Go; what Pyroscope stores of such profiles.
 */
#ifndef HEARTH_MODEL_GO_STACKS_H
#define HEARTH_MODEL_GO_STACKS_H

#include "hearth/model/profile_type.h"
#include "hearth/model/stacktree.h"

#define HEARTH_GO_OVERLAP 16u

/*
 * A name with "[...]" from the first "[go.shape." to the last ']', in out (room for name.n bytes), which
 * need not be terminated. False: it has none, and nothing is written.
 */
bool hearth_go_name_shorten(struct hearth_str name, char *out, size_t *ret_n);

/* It has a "[go.shape." with a ']' somewhere behind. */
bool hearth_go_name_is_generic(struct hearth_str name);

/* Frames that the runtime records at most of such profiles; 0: of others, which are not joined. */
uint32_t hearth_go_max_frames(const struct hearth_profile_type *type);
#define HEARTH_GO_MAX_CPU_FRAMES       64u
#define HEARTH_GO_MAX_HEAP_FRAMES      32u
#define HEARTH_GO_MAX_LATE_HEAP_FRAMES 128u /* since Go 1.23 */

/* What a node's self has of stacks that may be cut. */
struct hearth_go_cut {
    uint32_t node;
    int64_t value;
};

/*
 * Move the values of cut stacks to where their roots are found. The tree need not be sealed, and has to
 * be afterwards. Which place is taken does not depend on the order of nodes or cuts. Nodes that lose
 * all that is below them are removed, so node numbers mean nothing afterwards; with *ret_n_joined 0 the
 * tree is as it was. *ret_n_joined is the number of stacks (nodes) that were joined, *ret_value what they
 * come to. Cuts without a positive value are ignored.
 *
 * Returns OK; NO_MEMORY and OUT_OF_RANGE (a sum beyond 64 bits) leave the tree unusable.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_go_stacks_join(struct hearth_stacktree *tree,
                                         const struct hearth_go_cut *cuts, size_t n_cuts,
                                         struct hearth_arena *scratch, size_t *ret_n_joined,
                                         int64_t *ret_value, struct hearth_err *err);

#endif
