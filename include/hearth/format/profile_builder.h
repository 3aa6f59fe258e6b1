/*
 * profile_builder.h -- builds a hearth_profile from stacks, for text formats and merges.
 *
 * Strings, functions, locations and samples are interned by content: if a stack is added twice with
 * equal labels, its values are summed. Bytes of strings that are not UTF-8, or are NUL, become
 * U+FFFD.
 *
 * Limits:    the arena's byte limit; it also applies, separately, to the builder's maps.
 * Ownership: tables and the finished profile live in the arena; added text is copied.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_PROFILE_BUILDER_H
#define HEARTH_FORMAT_PROFILE_BUILDER_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

struct hearth_profile_builder;

/* The builder keeps the arena, which must outlive it. NULL if memory is refused. */
struct hearth_profile_builder *hearth_profile_builder_new(struct hearth_arena *arena);
/* Limits the frames of all stacks together, from now on; 0, as at first: no limit. */
void hearth_profile_builder_limit(struct hearth_profile_builder *builder, uint32_t max_frames);
void hearth_profile_builder_free(struct hearth_profile_builder *builder);

/* The functions that add something return its index, or HEARTH_NO_INDEX if memory is refused. */
uint32_t hearth_profile_builder_string(struct hearth_profile_builder *b, struct hearth_str text);
uint32_t hearth_profile_builder_mapping(struct hearth_profile_builder *b,
                                        const struct hearth_mapping *mapping);
uint32_t hearth_profile_builder_function(struct hearth_profile_builder *b,
                                         const struct hearth_function *function);
/* Uses mapping, address and folded flag of `location`; its lines are lines[0..n_lines). */
uint32_t hearth_profile_builder_location(struct hearth_profile_builder *b,
                                         const struct hearth_location *location,
                                         const struct hearth_line *lines, uint32_t n_lines);
/* Add all types before the first sample. */
uint32_t hearth_profile_builder_type(struct hearth_profile_builder *b, struct hearth_str type,
                                     struct hearth_str unit);
/*
 * locations: indices, leaf first; values: one per type, added to those of an equal stack.
 * OUT_OF_RANGE if a sum overflows, RESOURCE_EXHAUSTED for the limit of frames; the builder is then
 * unchanged.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_builder_sample(struct hearth_profile_builder *b,
                                                 const uint32_t *locations, uint32_t n_locations,
                                                 const int64_t *values, struct hearth_err *err);
/*
 * The same for a sample with labels: equal stacks are merged only if their labels are equal, too,
 * in the same order. Indices of strings of the labels are the builder's.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_builder_labelled_sample(struct hearth_profile_builder *b,
                                                          const uint32_t *locations,
                                                          uint32_t n_locations,
                                                          const struct hearth_sample_label *labels,
                                                          uint32_t n_labels, const int64_t *values,
                                                          struct hearth_err *err);
/* The index of the sample that the last successful call of _sample added, or found. */
uint32_t hearth_profile_builder_last_sample(const struct hearth_profile_builder *b);
/* Adds to the values of a sample. OUT_OF_RANGE if a sum overflows; nothing is added then. */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_builder_add(struct hearth_profile_builder *b, uint32_t sample,
                                              const int64_t *values, struct hearth_err *err);
/*
 * The profile, valid as long as the arena. The caller sets time, duration and period. Nothing may
 * be added to the builder afterwards: its tables are those of the profile.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_builder_finish(struct hearth_profile_builder *b,
                                                 struct hearth_profile *ret_profile,
                                                 struct hearth_err *err);

#endif
