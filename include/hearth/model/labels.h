/*
 * labels.h -- label sets: sorted names with values, their text form and fingerprint.
 *
 * A set is an array sorted by name (byte order), names distinct, no empty values. Text is borrowed.
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_LABELS_H
#define HEARTH_MODEL_LABELS_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"

struct hearth_label {
    struct hearth_str name, value;
};

struct hearth_labels {
    struct hearth_label *v;
    size_t n;
};

/* Label names that Hearth derives or treats specially. */
#define HEARTH_LABEL_NAME         "__name__"
#define HEARTH_LABEL_PROFILE_TYPE "__profile_type__"
#define HEARTH_LABEL_TYPE         "__type__"
#define HEARTH_LABEL_UNIT         "__unit__"
#define HEARTH_LABEL_PERIOD_TYPE  "__period_type__"
#define HEARTH_LABEL_PERIOD_UNIT  "__period_unit__"
#define HEARTH_LABEL_SERVICE      "service_name"
#define HEARTH_LABEL_SERVICE_DUP  "__service_name__"

/* Sort by name; equal names keep their order (so that a caller can find duplicates). */
void hearth_labels_sort(struct hearth_labels *labels);
/* The value, or {NULL, 0} when absent. Binary search. */
struct hearth_str hearth_labels_get(const struct hearth_labels *labels, struct hearth_str name);
/* <0, 0, >0 by (name, value) pairs in order; a prefix is smaller. */
int hearth_labels_cmp(const struct hearth_labels *a, const struct hearth_labels *b);
/*
 * Stable (stored): XXH3-128 with seed 0 over names and values in order, each after its length as a
 * varint (a set longer than 4 KB: over blocks that start with the digest of the one before). Never
 * fails.
 */
struct hearth_hash128 hearth_labels_fingerprint(const struct hearth_labels *labels);
/*
 * {a="b", c="d"} with quoting as in selectors; for messages, at most max_bytes ("..." marks a cut;
 * 0: no limit).
 */
void hearth_labels_format(const struct hearth_labels *labels, size_t max_bytes,
                          struct hearth_buf *out);
/* [a-zA-Z_][a-zA-Z0-9_]*: the names every client can show. */
bool hearth_label_name_is_legacy(struct hearth_str name);

#endif
