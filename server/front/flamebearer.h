/*
 * flamebearer.h -- flame graphs as the JSON of Pyroscope's plain HTTP ("flamebearer"): /pyroscope/render,
 * /render-diff and ad hoc profiles. Levels are those of the RPCs.
 *
 * Threads: pure. Source: docs/api.md.
 */
#ifndef HEARTH_FRONT_FLAMEBEARER_H
#define HEARTH_FRONT_FLAMEBEARER_H

#include "hearth/codec/json_writer.h"
#include "hearth/engine/query.h"

struct hearth_flamebearer_about {
    struct hearth_str name;       /* shown as a title */
    struct hearth_str type, unit; /* of the values: "cpu", "nanoseconds" */
};

/* The members version, flamebearer and metadata of an object that the caller has opened. */
void hearth_flamebearer_single(struct hearth_json *json,
                               const struct hearth_flamegraph *graph,
                               const struct hearth_flamebearer_about *about);
void hearth_flamebearer_double(struct hearth_json *json,
                               const struct hearth_flame_diff *diff,
                               const struct hearth_flamebearer_about *about);

#endif
