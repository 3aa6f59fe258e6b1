/*
 * flame_cells.h -- the boxes of flame graphs in the cells of a terminal: colours, names, rows.
 *
 * Texts follow the locale (LC_CTYPE): cells are counted by wcwidth, and bytes or characters that
 * have no cell of their own in it, control characters above all, become '?'.
 *
 * Threads: pure.
 */
#ifndef HEARTH_CLIENTS_FLAME_CELLS_H
#define HEARTH_CLIENTS_FLAME_CELLS_H

#include "flame_tree.h"

enum flame_colors {
    FLAME_MONOCHROME,
    FLAME_16_COLORS,
    FLAME_256_COLORS,
    FLAME_TRUE_COLOR,
};

/* A change is beyond noise if its q is at most this (hearth/v1/query.proto). */
#define FLAME_BEYOND_Q 0.05

/*
 * The sides of a diff: 0 the base, 1 what is compared with it. The trees of the screen have the sum
 * of both sides, each scaled to the larger one. Arrays are borrowed.
 */
struct flame_sides {
    double whole[2]; /* totals of the sides */
    bool has_noise;  /* false: every q is 0 */
    const struct flame_tree *tree;
    const int64_t *total[2]; /* by node of `tree` */
    const double *q;         /* likewise; 1: not judged */
    /* By name, for other trees. */
    const int64_t *function_self[2], *function_total[2];
    const double *function_q; /* of the total */
};

/* How a node changed, as shares of the sides. */
struct flame_change {
    double base, now, q;
};

/* What rows look like. */
struct flame_ink {
    enum flame_colors colors;
    bool is_utf8;                    /* block characters and ellipses may be used */
    struct hearth_str unit;          /* of values */
    int64_t total;                   /* the value that is 100 % */
    double min_percent;              /* boxes with a smaller share of the zoomed node are omitted */
    const uint8_t *marks;            /* by name: what a search matched; NULL: no search */
    const struct flame_sides *sides; /* colours are those of a diff; NULL: of packages */
};

/* The colours that the terminal has, by the variables TERM and COLORTERM (either may be NULL). */
enum flame_colors flame_colors_of(const char *term, const char *color_term);

/* The change of a node of any tree; trees other than that of the sides use the changes of functions. */
struct flame_change flame_change_of(const struct flame_sides *sides, const struct flame_tree *tree,
                                    uint32_t node);
/* The change of a function, in its self or its total. */
struct flame_change flame_function_change(const struct flame_sides *sides, uint32_t name,
                                          bool is_total);
/*
 * Append the colour of a change by the ratio of its shares: blue less, grey about the same or
 * within noise, orange to red more.
 */
void flame_append_change_color(const struct flame_change *change, enum flame_colors colors,
                               struct hearth_buf *out);

/* hearth_human_value for the screen: "us" where no other characters than those of ASCII are shown. */
void flame_value(double value, const struct flame_ink *ink, char out[48]);
/* Append at most `width` cells of a text, with an ellipsis if it is cut. Returns the cells. */
int flame_fit(struct hearth_str text, int width, bool is_utf8, struct hearth_buf *out);
/* As flame_fit, and spaces up to `width`. */
void flame_fit_padded(struct hearth_str text, int width, bool is_utf8, struct hearth_buf *out);

/*
 * The cells [*ret_from, *ret_to) of a node in a row of `width` cells for the zoomed node. False if
 * it has none, or is smaller than min_percent.
 */
bool flame_box(const struct flame_tree *tree, uint32_t zoom, uint32_t node, int width,
               const struct flame_ink *ink, int *ret_from, int *ret_to);
/*
 * Append a level as a row of exactly `width` cells, without an end of line. `zoom` fills the row;
 * levels above it show its ancestors. `selected`: HEARTH_NO_NODE if none. Returns the boxes.
 */
int flame_paint_level(const struct flame_tree *tree, const struct flame_names *names, uint32_t zoom,
                      uint32_t level, uint32_t selected, int width, const struct flame_ink *ink,
                      struct hearth_buf *out);

#endif
