/*
 * jfr_samples.h -- from the events of chunks to samples of profiles (private to the JFR reader).
 *
 * Within a chunk, equal samples are summed by the keys of their constants, without decoding
 * anything. At the end of the chunk, each distinct sample is added to the profile of its family,
 * with its stack trace and labels.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_FORMAT_JFR_SAMPLES_H
#define HEARTH_FORMAT_JFR_SAMPLES_H

#include "hearth/format/jfr.h"

#include "jfr/jfr_context.h"
#include "jfr/jfr_frames.h"

#define JFR_MAX_COLUMNS 6

enum jfr_family_id {
#define FAMILY(id, name, period_type, period_unit, superseded_by) JFR_FAMILY_##id,
#define COLUMN(family, index, type, unit)
#define EVENT(name, family, condition, count, value, source, slot, weight)
#include "jfr/jfr_events.def"
#undef FAMILY
#undef COLUMN
#undef EVENT
    JFR_N_FAMILIES,
};
_Static_assert(JFR_N_FAMILIES <= HEARTH_JFR_MAX_PROFILES, "each family is a profile");

/* Settings that events depend on. A chunk inherits those of the chunk before it. */
struct jfr_settings {
    int64_t cpu_interval_ns, wall_interval_ns; /* 0: not known */
    bool is_wall;                              /* async-profiler samples wall time */
    bool is_default;      /* its interval is 0, which means 10 ms, of wall time 50 ms */
    bool is_wall_default; /* its interval of wall time beside the event is 0, which means 50 ms */
    struct hearth_str event; /* see jfr.h; in the arena of the profiles */
};

/* The clock of a chunk. */
struct jfr_clock {
    int64_t start_ns, duration_ns; /* start: since the epoch */
    uint64_t ticks_per_second;
};

struct jfr_sampler {
    const struct hearth_jfr_options *options;
    struct hearth_arena *arena; /* of the profiles */
    struct jfr_contexts contexts;
    struct jfr_settings settings;
    struct hearth_profile_builder *builders[JFR_N_FAMILIES]; /* NULL: no sample so far */
};

/* Reads the snapshot of labels. Release the sampler in any case. */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_sampler_init(struct jfr_sampler *sampler,
                                           const struct hearth_jfr_options *options,
                                           struct hearth_arena *arena, struct hearth_err *err);
void hearth_jfr_sampler_release(struct jfr_sampler *sampler);

/*
 * Adds the samples of a chunk, whose constants are in `pools`. scratch: memory for this call.
 * Errors: as hearth_jfr_decode.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_sample_chunk(struct jfr_sampler *sampler, struct jfr_pools *pools,
                                           const struct jfr_clock *clock,
                                           struct hearth_arena *scratch, struct hearth_err *err);

/* Makes the profiles, without time and duration. */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_finish(struct jfr_sampler *sampler, struct hearth_jfr_recording *ret,
                                     struct hearth_err *err);

/* Takes the settings in an event of type jdk.ActiveSetting, or in that of Datadog. */
void hearth_jfr_apply_settings(struct jfr_sampler *sampler, const struct jfr_pools *pools,
                               const struct jfr_values *values);

/* Calls visit for each event of a chunk, after its header; stops at an error. c: after the type. */
typedef enum hearth_status jfr_visit_fn(void *context, uint64_t type_id, struct jfr_cursor c,
                                        struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_visit_events(struct hearth_str chunk, jfr_visit_fn *visit,
                                           void *context, struct hearth_err *err);

#endif
