/*
 * pprof.h -- pprof's profile.proto: a one-pass scanner into flat arrays, and a writer.
 *
 * The scanner reads plain (inflated) bytes, packed and unpacked repeated fields, any field order,
 * ids arbitrary (a fast path for 1..n), references before what they refer to. Of a single field
 * that comes twice the last one counts; unknown fields are skipped. It checks every length, index
 * and id: string indices out of range, a location or function id 0, an id given twice, a sample
 * whose number of values differs from the number of sample types, a first string that is not empty,
 * no sample type at all, a group, a known field of the wrong wire type are INVALID_ARGUMENT naming
 * what and where. A sample's location id that no location has becomes HEARTH_NO_INDEX (ingest drops
 * and counts such samples); so does a mapping id; a line whose function id is unknown is
 * INVALID_ARGUMENT. Invalid UTF-8 in a string that is a type, unit, label key or label value is
 * replaced by U+FFFD; other strings (symbols) likewise, so that every string is valid UTF-8 without
 * NUL. Each run of invalid bytes becomes one U+FFFD. A string table without any string counts as
 * one empty string. drop_frames, keep_frames and the column of a line are not kept. Recognises what
 * is not pprof: legacy text ("heap profile:", "--- contention", ...), legacy binary CPU profiles,
 * what is still compressed, perf.data, JFR, JSON, and says so.
 *
 * Threads: pure; a struct hearth_pprof_limits is read only.
 * Source: google/pprof proto/profile.proto field numbers and doc/README.md.
 */
#ifndef HEARTH_FORMAT_PPROF_H
#define HEARTH_FORMAT_PPROF_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/profile.h"

/* Each 0: no limit of its own (the arena's byte limit always holds). */
struct hearth_pprof_limits {
    uint32_t max_samples;
    uint32_t max_sample_labels; /* of one sample */
    uint32_t max_types;
    uint32_t max_depth; /* locations of a stack; deeper ones are cut, keeping the root-most */
    uint32_t max_string_bytes; /* longer strings are cut, keeping the tail */
    bool number_functions; /* not a limit: a function of id 0 gets its place, 1 to n, as its id */
};

/* What was changed without refusing. */
struct hearth_pprof_notes {
    uint64_t stacks_cut, frames_cut, strings_cut, strings_repaired;
};

/*
 * Decode. Output arrays in arena, texts borrow from `bytes` (repaired texts from arena). Inputs are
 * below 4 GiB. On failure *ret_profile is not to be used. Returns OK; INVALID_ARGUMENT;
 * RESOURCE_EXHAUSTED for a limit of `limits` (the message has actual and limit); NO_MEMORY. A
 * profile with no samples is OK.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_pprof_decode(struct hearth_str bytes, const struct hearth_pprof_limits *limits,
                    struct hearth_arena *arena, struct hearth_profile *ret_profile,
                    struct hearth_pprof_notes *ret_notes, struct hearth_err *err);

/*
 * Append the wire form: ids are index + 1, integers packed, string_table[0] "". Samples without any
 * non-zero value are written too. Indices that are HEARTH_NO_INDEX become 0. What was encoded
 * decodes to the same profile, unless a stack has a location that is HEARTH_NO_INDEX: that one is
 * refused as location id 0.
 */
void hearth_pprof_encode(const struct hearth_profile *profile, struct hearth_buf *out);

#endif
