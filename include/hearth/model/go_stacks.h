/*
 * go_stacks.h -- repair of two effects of Go's runtime on stack traces.
 *
 * Cut stacks: the runtime records only the leaf-most 64 (CPU), 32 or 128 (heap) frames. A deeper
 * stack loses its root end and appears in a flame graph as a root of its own. If another stack
 * contains the root-most HEARTH_GO_OVERLAP frames of a cut stack in a row, farther from its own
 * root, the cut stack is joined below the frames that the other stack has above them. This is a
 * guess, but a good one; of several such places, the one with the largest value is used.
 *
 * Generic functions: since Go 1.21 their names contain the type arguments as the compiler's shapes,
 * "pkg.Map[go.shape.int,go.shape.string]", which may be those of another call. They become "[...]".
 *
 * Units:   values of the tree.
 * Threads: pure.
 * Source:  issue 64528 of Go; what Pyroscope stores for such profiles.
 */
#ifndef HEARTH_MODEL_GO_STACKS_H
#define HEARTH_MODEL_GO_STACKS_H

#include "hearth/model/profile_type.h"
#include "hearth/model/stacktree.h"

#define HEARTH_GO_OVERLAP 16u

/*
 * Write the name with "[...]" in place of the text from the first "[go.shape." to the last ']' to
 * out (room for name.n bytes; not terminated). False if the name has no such part; out is then
 * untouched.
 */
bool hearth_go_name_shorten(struct hearth_str name, char *out, size_t *ret_n);

/* True if the name contains "[go.shape." and a ']' after it. */
bool hearth_go_name_is_generic(struct hearth_str name);

/* The most frames that the runtime records for a profile type; 0: stacks of it are not joined. */
uint32_t hearth_go_max_frames(const struct hearth_profile_type *type);
#define HEARTH_GO_MAX_CPU_FRAMES       64u
#define HEARTH_GO_MAX_HEAP_FRAMES      32u
#define HEARTH_GO_MAX_LATE_HEAP_FRAMES 128u /* since Go 1.23 */

/* The part of a node's self that comes from stacks that may be cut. */
struct hearth_go_cut {
    uint32_t node;
    int64_t value;
};

/*
 * Move the values of cut stacks below the places where their roots are found. The tree need not be
 * sealed; the caller seals it afterwards. The choice of places does not depend on the order of
 * nodes or cuts. Nodes without any value left are removed, so node numbers change, unless
 * *ret_n_joined is 0: the tree is then unchanged. *ret_n_joined is the number of joined stacks
 * (nodes), *ret_value their sum. Cuts without a positive value are ignored.
 *
 * Returns OK; NO_MEMORY or OUT_OF_RANGE (a sum beyond 64 bits): the tree is then unusable.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_go_stacks_join(struct hearth_stacktree *tree,
                                         const struct hearth_go_cut *cuts, size_t n_cuts,
                                         struct hearth_arena *scratch, size_t *ret_n_joined,
                                         int64_t *ret_value, struct hearth_err *err);

#endif
