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

/* Metadata of a flame graph; the texts are borrowed until it is written. */
struct hearth_flamebearer_about {
    struct hearth_str name;       /* shown as a title */
    struct hearth_str type, unit; /* sample type and unit, such as "cpu" and "nanoseconds" */
};

/* Parts of the JSON in the order in which they are written. */
enum hearth_flamebearer_part {
    HEARTH_FLAMEBEARER_HEAD,
    HEARTH_FLAMEBEARER_NAMES,
    HEARTH_FLAMEBEARER_LEVELS,
    HEARTH_FLAMEBEARER_TAIL,
    HEARTH_FLAMEBEARER_DONE,
};

/* A flame graph while it is written; keeps the names and levels of its graph. */
struct hearth_flamebearer {
    struct hearth_flamebearer_about about;
    const struct hearth_str *names;
    const struct hearth_flame_level *levels;
    size_t n_names, n_levels;
    int64_t total, max_self, left_total, right_total;
    bool is_double;

    /* Position of the writer: its part, and the next name, level and value of the level. */
    enum hearth_flamebearer_part part;
    size_t name, level, value;
};

/* A writer at its start; the names and levels of the graph must outlive it. */
struct hearth_flamebearer hearth_flamebearer_single(const struct hearth_flamegraph *graph,
                                                    const struct hearth_flamebearer_about *about);
struct hearth_flamebearer hearth_flamebearer_double(const struct hearth_flame_diff *diff,
                                                    const struct hearth_flamebearer_about *about);

/*
 * Writes the next members (version, flamebearer, metadata; for a diff leftTicks and rightTicks) of
 * an object that the caller has opened: at least n_bytes of text, or the rest.
 * False: the graph is complete. It stops early if json->out has failed.
 */
bool hearth_flamebearer_more(struct hearth_flamebearer *bearer, size_t n_bytes,
                             struct hearth_json *json);

#endif
