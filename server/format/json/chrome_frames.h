/* chrome_frames.h -- call frames of V8, and the profile they are part of (private to this room). */
#ifndef HEARTH_FORMAT_CHROME_FRAMES_H
#define HEARTH_FORMAT_CHROME_FRAMES_H

#include "hearth/codec/json_reader.h"

#include "json/call_tree.h"

/* A profile that is being read. */
struct chrome_profile {
    const struct hearth_pprof_limits *limits;
    struct hearth_arena *arena;
    struct hearth_profile_builder *builder;
    struct call_tree tree;
    uint32_t root; /* the location "(root)", of values that no frame has */
};

/* NO_MEMORY. Release it in any case. */
HEARTH_MUST_CHECK
enum hearth_status hearth_chrome_init(struct chrome_profile *p,
                                      const struct hearth_pprof_limits *limits,
                                      struct hearth_arena *arena, struct hearth_err *err);
void hearth_chrome_release(struct chrome_profile *p);

/*
 * The location of the callFrame that comes next; HEARTH_NO_INDEX for "(root)", and after a fault of
 * the reader.
 */
uint32_t hearth_chrome_frame(struct chrome_profile *p, struct hearth_json_reader *r);

/* Writes the tree as samples of a profile whose types were added; applies the limits. */
HEARTH_MUST_CHECK
enum hearth_status hearth_chrome_finish(struct chrome_profile *p, struct hearth_profile *ret,
                                        struct hearth_pprof_notes *notes, struct hearth_err *err);

#endif
