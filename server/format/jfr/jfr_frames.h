/*
 * jfr_frames.h -- stack traces of a chunk as locations of a profile (private to the JFR reader).
 *
 * Ownership: everything lives in the arena of the pools.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_JFR_FRAMES_H
#define HEARTH_FORMAT_JFR_FRAMES_H

#include "hearth/format/profile_builder.h"

#include "jfr/jfr_pools.h"

/* A method or native function; decoded once per chunk. */
struct jfr_method {
    struct hearth_str name;    /* package.Class.method, or the symbol */
    struct hearth_str library; /* of a native function; "" otherwise */
    bool is_decoded;
    /* The function, its mapping, and its last location in the builder that used the method last. */
    const struct hearth_profile_builder *builder;
    uint32_t function, mapping;
    uint32_t location; /* HEARTH_NO_INDEX: none yet */
    int32_t line;      /* of the location */
};

struct jfr_frames {
    struct jfr_pools *pools;
    struct jfr_method *methods; /* by index in the pool */
    uint32_t *stack;            /* scratch: locations, leaf first */
    size_t cap_stack;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_frames_init(struct jfr_frames *frames, struct jfr_pools *pools,
                                          struct hearth_err *err);

/*
 * The stack trace with an index of the pool as locations in a builder; JFR_NO_CONSTANT: one
 * location "[no stack]". *ret_locations is valid until the next call. A frame whose method is
 * missing is named "[unknown]". INVALID_ARGUMENT for a damaged constant; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_stack(struct jfr_frames *frames, uint32_t stack,
                                    struct hearth_profile_builder *builder,
                                    const uint32_t **ret_locations, uint32_t *ret_n,
                                    struct hearth_err *err);

/*
 * The name of a class or library without the numbers that differ from run to run: "Foo$$Lambda$14"
 * becomes "Foo$$Lambda_". Borrows, or is in the arena; "" if memory is refused.
 */
struct hearth_str hearth_jfr_plain_name(struct hearth_str name, struct hearth_arena *arena);

#endif
