/*
 * jfr_context.h -- the labels of contexts that Pyroscope's Java agent sends beside a recording
 * (private to the JFR reader).
 *
 * Ownership: texts borrow from the snapshot's bytes; tables live in an arena.
 * Threads:   immutable after reading.
 * Source:    LabelsSnapshot of pyroscope-java: map<int64, Context> contexts = 1; map<int64, string>
 *            strings = 2; Context: map<int64, int64> labels = 1, ids of strings.
 */
#ifndef HEARTH_FORMAT_JFR_CONTEXT_H
#define HEARTH_FORMAT_JFR_CONTEXT_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct jfr_string {
    uint64_t id;
    struct hearth_str text;
};

struct jfr_context_label {
    uint64_t context, key, value; /* ids */
};

struct jfr_contexts {
    struct jfr_string *strings;       /* sorted by id */
    struct jfr_context_label *labels; /* sorted by context */
    size_t n_strings, cap_strings, n_labels, cap_labels;
};

/* Reads a snapshot; empty bytes have no contexts. INVALID_ARGUMENT, NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_contexts_read(struct hearth_str bytes, struct hearth_arena *arena,
                                            struct jfr_contexts *ret, struct hearth_err *err);

/* The labels of a context; *ret_n 0: none. */
const struct jfr_context_label *hearth_jfr_context_labels(const struct jfr_contexts *contexts,
                                                          uint64_t context, size_t *ret_n);
/* The string with an id; "" if there is none. */
struct hearth_str hearth_jfr_context_string(const struct jfr_contexts *contexts, uint64_t id);

#endif
