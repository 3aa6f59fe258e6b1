/*
 * typed_query.h -- a profile type and a selector in one text, the `query` of /pyroscope/render:
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="api"}.
 *
 * The text is any selector (selector.h). The type is its metric name, or the value of an equality
 * on __name__ or __profile_type__, if this has the five or six parts of a profile type.
 *
 * Ownership: results live in the arena or borrow from the text.
 * Errors:    as hearth_selector_parse; INVALID_ARGUMENT for two different types.
 * Threads:   pure.
 */
#ifndef HEARTH_SELECTOR_TYPED_QUERY_H
#define HEARTH_SELECTOR_TYPED_QUERY_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct hearth_typed_query {
    struct hearth_str profile_type; /* empty if the text names no type */
    struct hearth_str selector;     /* without the type; "{}" if no other matchers are left */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_typed_query_parse(struct hearth_str text, struct hearth_arena *arena,
                                            struct hearth_typed_query *ret, struct hearth_err *err);

#endif
