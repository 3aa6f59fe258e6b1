/*
 * flame_screen.h -- the interactive flame graph of `hearth flame`, without its terminal: keys change
 * the state, and the state is painted as rows of text. flame_terminal.c connects both to a
 * terminal; tests and benches call them directly.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_CLIENTS_FLAME_SCREEN_H
#define HEARTH_CLIENTS_FLAME_SCREEN_H

#include "flame_cells.h"

/* Keys: bytes as they were typed, and these. */
enum flame_key {
    FLAME_KEY_CONTROL_C = 3,
    FLAME_KEY_BACKSPACE = 8,
    FLAME_KEY_ENTER = 13,
    FLAME_KEY_ESCAPE = 27,
    FLAME_KEY_DELETE = 127, /* the backspace key of most terminals */
    FLAME_KEY_UP = 256,
    FLAME_KEY_DOWN,
    FLAME_KEY_LEFT,
    FLAME_KEY_RIGHT,
    FLAME_KEY_PAGE_UP,
    FLAME_KEY_PAGE_DOWN,
    FLAME_KEY_HOME,
    FLAME_KEY_END,
    FLAME_KEY_UNKNOWN,
};

/* What the headline says. Texts are borrowed. */
struct flame_facts {
    const char *selector; /* or the name of a file */
    const char *type;
    const char *range;   /* for people */
    const char *page;    /* address of the web page with the query as parameters; NULL: none */
    const char *no_page; /* why `page` is empty; NULL: it is not */
    const struct flame_sides *sides; /* of a diff; `tree` is set by the screen; NULL: no diff */
};

enum flame_view {
    FLAME_VIEW_STACKS,
    FLAME_VIEW_LEAVES,
    FLAME_VIEW_SANDWICH
};

/* A tree on the screen. */
struct flame_pane {
    const struct flame_tree *tree;
    bool grows_up;        /* the root is at the bottom, and not shown: the other pane has it */
    uint32_t zoom, at;    /* the node that fills the width; the selected one */
    uint32_t first_level; /* the shown level that is nearest to the root */
    int n_rows;           /* of the last painting */
};

#define FLAME_SEARCH_BYTES 200

struct flame_screen {
    struct flame_facts facts;
    struct flame_ink ink;
    struct flame_sides sides; /* of a diff, for the ink */
    struct flame_names names;
    bool is_folded; /* a box "other" has nodes that a search does not see */
    struct flame_tree whole, leaves, callers, callees; /* all but whole: empty until needed */
    enum flame_view view;
    uint32_t function; /* of the sandwich */
    struct flame_pane panes[2];
    int n_panes, focus;
    int width, height;
    /* search */
    bool is_typing;
    char typed[FLAME_SEARCH_BYTES + 1];
    char search[FLAME_SEARCH_BYTES + 1]; /* the one that is shown; empty: none */
    uint8_t *marks;                      /* by name */
    int64_t matched;                     /* in the whole tree */
    /* table */
    bool is_table, by_total;
    int64_t *function_self, *function_total; /* by name; NULL until needed */
    uint32_t *rows;                          /* names, sorted and filtered */
    uint32_t n_rows, row, first_row;
    /* other */
    bool is_help, is_done;
    char message[256];      /* instead of the last line, until the next key */
    char *copied;           /* the address that was copied last; NULL: none */
    struct hearth_buf sent; /* bytes for the terminal beside the rows: the clipboard */
};

/*
 * Copies what it needs of the graph, but for texts. CORRUPT for a malformed graph or one without
 * values; NO_MEMORY. Release with flame_screen_release.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_screen_init(struct flame_screen *screen,
                                     const struct hearth_flamegraph *graph,
                                     const struct flame_facts *facts, const struct flame_ink *ink,
                                     struct hearth_err *err);
void flame_screen_release(struct flame_screen *screen);

/* Changes the state; what fails is shown as a message. `is_done` is true after the last key. */
void flame_screen_key(struct flame_screen *screen, int key);
/* Appends `height` rows of `width` cells, each with an end of line. */
void flame_screen_paint(struct flame_screen *screen, int width, int height, struct hearth_buf *out);

/* ---- between flame_screen*.c ---- */

/* The address of the page with the state of the view, in `out`. */
void flame_screen_address(const struct flame_screen *screen, struct hearth_buf *out);
/* Shows a tree, which the screen owns, from its root. */
void flame_screen_show(struct flame_screen *screen, enum flame_view view,
                       const struct flame_tree *tree);
/* Shows the tree of leaves; if it is shown, that of stack traces. */
void flame_screen_show_leaves(struct flame_screen *screen);
/* Shows callers and callees of a function. */
void flame_screen_sandwich(struct flame_screen *screen, uint32_t name);
void flame_screen_open_table(struct flame_screen *screen);
/* Sort and filter the rows again, and select the first. */
void flame_screen_sort_table(struct flame_screen *screen);
void flame_screen_table_key(struct flame_screen *screen, int key);
void flame_screen_paint_table(struct flame_screen *screen, int n_rows, struct hearth_buf *out);
void flame_screen_say(struct flame_screen *screen, const char *fmt, ...) HEARTH_PRINTF(2, 3);

#endif
