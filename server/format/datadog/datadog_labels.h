/*
 * datadog_labels.h -- keeps those labels of samples that make few series (private to this room).
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_DATADOG_LABELS_H
#define HEARTH_FORMAT_DATADOG_LABELS_H

#include "hearth/format/datadog_profile.h"

/*
 * Keeps attributes, labels with these custom keys and those of datadog_labels.def; the latter two
 * get names that every client can display. Others are dropped and counted. The labels are changed
 * in place; the table of strings is copied, with room for n_more_strings of the caller.
 *
 * False: no memory.
 */
HEARTH_MUST_CHECK bool hearth_datadog_labels_filter(struct hearth_profile *profile,
                                                    const struct hearth_str *custom_keys,
                                                    size_t n_custom_keys, size_t n_more_strings,
                                                    struct hearth_arena *arena,
                                                    struct hearth_datadog_notes *notes);

#endif
