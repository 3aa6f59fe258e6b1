/*
 * limits.h -- every limit of ingest and query, with its default; set by options, reported by name
 * when hit.
 *
 * 0 means "no limit" unless said otherwise. Immutable after start.
 * Source: the limits of Pyroscope (docs/reference/limits.md compares the defaults).
 */
#ifndef HEARTH_ENGINE_LIMITS_H
#define HEARTH_ENGINE_LIMITS_H

#include "hearth/base/compiler.h"

struct hearth_limits {
    /* X-macro: type, field, default; options.def has the flag and the help text of each. */
#define X(type, field, def) type field;
#include "hearth/engine/limits.def"
#undef X
};

void hearth_limits_init(struct hearth_limits *limits);

#endif
