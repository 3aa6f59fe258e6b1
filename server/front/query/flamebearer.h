/*
 * flamebearer.h -- flame graphs as the JSON of Pyroscope's plain HTTP ("flamebearer"):
 * /pyroscope/render, /render-diff and ad hoc profiles. Levels are those of the RPCs.
 *
 * Threads: pure. Source: docs/reference/api-querier.md.
 */
#ifndef HEARTH_FRONT_FLAMEBEARER_H
#define HEARTH_FRONT_FLAMEBEARER_H

#include "hearth/codec/json_writer.h"
#include "hearth/engine/query.h"

struct hearth_flamebearer_about {
    struct hearth_str name;       /* shown as a title */
    struct hearth_str type, unit; /* of the values: "cpu", "nanoseconds" */
};

enum hearth_flamebearer_part {
    HEARTH_FLAMEBEARER_HEAD,
    HEARTH_FLAMEBEARER_NAMES,
    HEARTH_FLAMEBEARER_LEVELS,
    HEARTH_FLAMEBEARER_TAIL,
    HEARTH_FLAMEBEARER_DONE,
};

/* One that is being written; borrows what it was made of. */
struct hearth_flamebearer {
    struct hearth_flamebearer_about about;
    const struct hearth_str *names;
    const struct hearth_flame_level *levels;
    size_t n_names, n_levels;
    int64_t total, max_self, left_total, right_total;
    bool is_double;
    /* What comes next. */
    enum hearth_flamebearer_part part;
    size_t name, level, value;
};

struct hearth_flamebearer hearth_flamebearer_single(const struct hearth_flamegraph *graph,
                                                    const struct hearth_flamebearer_about *about);
struct hearth_flamebearer hearth_flamebearer_double(const struct hearth_flame_diff *diff,
                                                    const struct hearth_flamebearer_about *about);

/*
 * The members version, flamebearer and metadata of an object that the caller has opened: n_bytes of
 * text or a little more, or what is left. False: that was the end.
 */
bool hearth_flamebearer_more(struct hearth_flamebearer *bearer, size_t n_bytes,
                             struct hearth_json *json);

#endif
