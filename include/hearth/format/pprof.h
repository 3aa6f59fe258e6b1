/*
 * pprof.h -- pprof's profile.proto: a one-pass scanner into flat arrays, and a writer.
 *
 * Accepted: plain (inflated) bytes; packed and unpacked repeated fields; fields in any order, and
 * references before their targets; arbitrary ids, with a fast path for 1..n. If a singular field is
 * repeated, the last one is used. Unknown fields are skipped. A string table without any string
 * counts as one empty string. drop_frames, keep_frames and the columns of lines are not stored.
 *
 * Checked: every length, index and id. INVALID_ARGUMENT, naming the fault and its place: string
 * index out of range, location or function id 0, repeated id, unknown function id of a line, a
 * sample whose number of values differs from the number of sample types, a first string that is not
 * empty, no sample type, a group, a known field of the wrong wire type. Input that is not pprof is
 * recognised and named: legacy text ("heap profile:", "--- contention", ...), legacy binary CPU
 * profiles, compressed bytes, perf.data, JFR, JSON.
 *
 * Repaired: a location id in a sample without such a location becomes HEARTH_NO_INDEX (ingest drops
 * and counts such samples); so does an unknown mapping id. In every string, each run of bytes that
 * are not UTF-8, or are NUL, becomes one U+FFFD.
 *
 * Threads: pure.
 * Source: google/pprof proto/profile.proto field numbers and doc/README.md.
 */
#ifndef HEARTH_FORMAT_PPROF_H
#define HEARTH_FORMAT_PPROF_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/profile.h"

/* 0: no limit (the arena's byte limit always holds). */
struct hearth_pprof_limits {
    uint32_t max_samples;
    uint32_t max_sample_labels; /* per sample */
    uint32_t max_types;
    uint32_t max_depth;        /* locations per stack; deeper stacks lose their leaf end */
    uint32_t max_string_bytes; /* longer strings are truncated and keep their end */
    uint32_t max_entries;      /* of all tables together: strings, functions, locations, ... */
    uint32_t max_frames;       /* of all stacks together, as they are stored */
    size_t max_memory;         /* for decoding; 16 times the plain bytes if that is more */
    /* not a limit: a function with id 0 gets its position, 1 to n, as its id */
    bool number_functions;
    /*
     * not a limit: use neither instructions that some processors lack nor the readers of messages
     * in their usual form; the result is the same
     */
    bool portable;
};

/* Counts of changes to a profile that was accepted. */
struct hearth_pprof_notes {
    uint64_t stacks_cut, frames_cut, strings_cut, strings_repaired;
};

/*
 * Decode. Arrays are in the arena; texts borrow from `bytes`, repaired texts from the arena. Input
 * of 4 GiB or more is refused. After a failure *ret_profile must not be used. Returns OK;
 * INVALID_ARGUMENT; RESOURCE_EXHAUSTED for one of `limits` (the message has the actual value and
 * the limit); NO_MEMORY. A profile without samples is OK.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_pprof_decode(struct hearth_str bytes, const struct hearth_pprof_limits *limits,
                    struct hearth_arena *arena, struct hearth_profile *ret_profile,
                    struct hearth_pprof_notes *ret_notes, struct hearth_err *err);

/*
 * Append the wire form: ids are index + 1, integers are packed, string_table[0] is "". Samples
 * whose values are all 0 are written, too. HEARTH_NO_INDEX becomes 0. The encoded bytes decode to
 * the same profile, unless a stack contains HEARTH_NO_INDEX: the decoder refuses its location id 0.
 */
void hearth_pprof_encode(const struct hearth_profile *profile, struct hearth_buf *out);

#endif
