/*
 * typed_query.h -- a profile type and a selector in one text, as clients of /pyroscope/render write
 * them: process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="api"}.
 *
 * Any selector (selector.h); the type is its metric name, or an equality of __name__ or
 * __profile_type__, if that has the five or six parts of a profile type.
 *
 * Ownership: texts in the arena, or borrowed from the text.
 * Errors:    as of hearth_selector_parse; INVALID_ARGUMENT for two different types.
 * Threads:   pure.
 */
#ifndef HEARTH_QUERY_TYPED_QUERY_H
#define HEARTH_QUERY_TYPED_QUERY_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct hearth_typed_query {
    struct hearth_str profile_type; /* empty: none is named */
    struct hearth_str selector;     /* without the type; "{}" when nothing else is said */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_typed_query_parse(struct hearth_str text, struct hearth_arena *arena,
                                            struct hearth_typed_query *ret, struct hearth_err *err);

#endif
