/*
 * labels.h -- label sets: names with values, their text form and fingerprint.
 *
 * A set is an array sorted by name (byte order) with distinct names and no empty values. Text is
 * borrowed. Threads: pure.
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
/* The tenant of a series, in queries of several tenants only. */
#define HEARTH_LABEL_TENANT "__tenant_id__"

/* Sort by name. Equal names keep their order, so that a caller can find duplicates. */
void hearth_labels_sort(struct hearth_labels *labels);
/* The value of `name`, or {NULL, 0} if absent. Binary search: labels must be sorted. */
struct hearth_str hearth_labels_get(const struct hearth_labels *labels, struct hearth_str name);
/* Compare (name, value) pairs in order; <0, 0 or >0; a prefix is smaller. */
int hearth_labels_cmp(const struct hearth_labels *a, const struct hearth_labels *b);
/*
 * Stable fingerprint (stored): XXH3-128 with seed 0 over names and values in order, each preceded
 * by its length as a varint. A set longer than 4 KB is hashed in blocks; each block starts with the
 * digest of the previous one. Never fails.
 */
struct hearth_hash128 hearth_labels_fingerprint(const struct hearth_labels *labels);
/*
 * Append {a="b", c="d"}, quoted as in selectors. For messages: at most max_bytes, "..." marks the
 * cut; 0: no limit.
 */
void hearth_labels_format(const struct hearth_labels *labels, size_t max_bytes,
                          struct hearth_buf *out);
/* True for [a-zA-Z_][a-zA-Z0-9_]*, which every client can display. */
bool hearth_label_name_is_legacy(struct hearth_str name);

#endif
