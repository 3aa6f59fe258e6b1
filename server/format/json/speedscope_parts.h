/*
 * speedscope_parts.h -- the profiles in a file of speedscope, as they are read (private to this
 * room).
 *
 *   speedscope.c          the file: its tables, the heads of its profiles, one profile of each kind
 *   speedscope_samples.c  profiles of samples
 *   speedscope_events.c   profiles of events
 *
 * "Part" is one of the profiles of the file: several become one profile.
 */
#ifndef HEARTH_FORMAT_SPEEDSCOPE_PARTS_H
#define HEARTH_FORMAT_SPEEDSCOPE_PARTS_H

#include "hearth/codec/json_reader.h"

#include "json/call_tree.h"

enum unit_kind {
    KIND_TIME,
    KIND_BYTES,
    KIND_COUNT,
    N_KINDS
};

struct speedscope_unit {
    const char *name;
    enum unit_kind kind;
    int64_t factor; /* to nanoseconds, bytes or counts */
};

/* The heads of a part, and the indices of its tables in the text; 0: it has none. */
struct speedscope_part {
    struct hearth_str name;
    const struct speedscope_unit *unit;
    size_t samples_at, weights_at, events_at;
    int64_t start, end; /* in the unit of the kind */
    uint32_t idx;
    bool is_evented;
};

/* The state of one reading of a file. */
struct speedscope_pass {
    const struct hearth_pprof_limits *limits;
    struct hearth_arena *arena;
    struct hearth_str text;
    size_t frames_at; /* index in the text; 0: absent */
    struct speedscope_part *parts;
    size_t n_parts, cap_parts;
    bool has_parts;
    struct hearth_json_reader samples, weights, events; /* of the part that is read */
    struct hearth_sample_label label;                   /* of all its samples, if n_labels is 1 */
    uint32_t n_labels;
    enum unit_kind kind;
    struct hearth_profile_builder *builder;
    struct call_tree tree; /* of one part with events */
    uint32_t *locations;   /* of the frames */
    size_t n_locations, cap_locations;
    uint32_t *stack; /* locations, root first */
    size_t cap_stack;
    uint32_t no_stack; /* location */
    int64_t duration_ns;
    struct hearth_pprof_notes notes;
};

/* The location of the frame whose index comes next; 0 after a fault. */
uint32_t hearth_speedscope_frame(const struct speedscope_pass *pass, struct hearth_json_reader *r);

/* Add a part to the builder of the pass. Errors: as hearth_speedscope_decode. */
HEARTH_MUST_CHECK
enum hearth_status hearth_speedscope_samples(struct speedscope_pass *pass,
                                             struct speedscope_part *part, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_speedscope_events(struct speedscope_pass *pass,
                                            struct speedscope_part *part, struct hearth_err *err);

#endif
