/* datadog_names.h -- names of tags as names of labels (private to this room). Threads: pure. */
#ifndef HEARTH_FORMAT_DATADOG_NAMES_H
#define HEARTH_FORMAT_DATADOG_NAMES_H

#include "hearth/base/arena.h"

/*
 * A name that every client can display: characters other than ASCII letters, digits and '_' become
 * '_', one for each byte; a first digit gets one before it. The name is returned as it is if it
 * is one already; otherwise in the arena, with p NULL if memory is refused.
 */
struct hearth_str hearth_datadog_label_name(struct hearth_str name, struct hearth_arena *arena);

#endif
