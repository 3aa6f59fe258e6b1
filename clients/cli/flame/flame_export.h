/*
 * flame_export.h -- a flame graph, or the difference of two, as a file: an interactive HTML page, an
 * SVG picture, speedscope's JSON, a call graph for Graphviz.
 *
 * Names and texts are untrusted: each writer escapes them as its format demands.
 *
 * Threads: pure.
 */
#ifndef HEARTH_CLIENTS_FLAME_EXPORT_H
#define HEARTH_CLIENTS_FLAME_EXPORT_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/flame_diff.h"

/* What a file says about its graph. Texts are borrowed; NULL: nothing. */
struct flame_export_facts {
    const char *title; /* the selector, or the name of a file */
    const char *type;  /* profile type */
    const char *range; /* for people */
    struct hearth_str unit;
    const char *sides[2]; /* of a diff: what its base and its other side are */
    const char *noise;    /* of a diff: a sentence on how noise was judged, or why it was not */
};

/*
 * Nodes are numbered level by level from 0, the root, and within a level from left to right: a
 * parent precedes its children. A node of a diff may be 0 on one side.
 */
struct flame_export {
    struct flame_export_facts facts;
    const struct hearth_str *names; /* [0]: the root's */
    uint32_t n_names, n_nodes;
    size_t n_levels;
    int n_sides; /* 2: a diff, [0] is the base */
    uint32_t *parent, *name;
    int64_t *total[2], *self[2];
    const float *q;     /* of a diff, by node; NULL: noise is not known */
    int64_t n_left_out; /* nodes without a box of their own, as far as they were counted */
};

/* A change is beyond noise if its q is at most this (hearth/v1/query.proto). */
#define FLAME_EXPORT_BEYOND_Q 0.05F

/*
 * Read the levels of a graph, or of a diff with its q by node (NULL: noise is not known), into
 * arrays of the arena. Names and q are borrowed. `parents` of a diff are not read.
 *
 * CORRUPT if a node has no name, a negative value, or does not lie within a node of the level above;
 * NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_export_read(const struct hearth_flamegraph *graph,
                                     const struct flame_export_facts *facts,
                                     struct hearth_arena *arena, struct flame_export *ret,
                                     struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status flame_export_read_diff(const struct hearth_flame_diff *diff, const float *q,
                                          const struct flame_export_facts *facts,
                                          struct hearth_arena *arena, struct flame_export *ret,
                                          struct hearth_err *err);

/* Append the page of clients/viewer with the graph in it. Writers leave failures to the buffer. */
void flame_export_html(const struct flame_export *graph, struct hearth_buf *out);
/*
 * Append a file of speedscope: a weighted sample for each node with a self, of a diff a profile for
 * each side.
 * Source: https://www.speedscope.app/file-format-schema.json
 */
void flame_export_speedscope(const struct flame_export *graph, struct hearth_buf *out);
/*
 * Append a picture of FLAME_EXPORT_SVG_WIDTH pixels and at most FLAME_EXPORT_SVG_LEVELS levels, with
 * a title for each box, light or dark as the viewer prefers. Neighbours narrower than half a pixel
 * are one grey box. No script, no reference to another file.
 * Source: SVG 1.1; Media Queries Level 5, prefers-color-scheme.
 */
#define FLAME_EXPORT_SVG_WIDTH  1200
#define FLAME_EXPORT_SVG_LEVELS 256
void flame_export_svg(const struct flame_export *graph, struct hearth_buf *out);

#endif
