/*
 * frame_table.h -- self and total of functions, lines, files and so on, by the frames of stacks
 * (private to the engine).
 *
 * The value of a stack is added to the self of its leaf frame's row, and once to the total of each
 * row that one of its frames belongs to. The table is made from sums per dictionary, with dense
 * arrays: the row of a location is found once per dictionary, at its first stack.
 *
 * Rows are in the order of their discovery, which callers must not rely on.
 *
 * Memory:  in the arena.
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_FRAME_TABLE_H
#define HEARTH_ENGINE_FRAME_TABLE_H

#include "hearth/model/dict.h"

#include "common/texts.h"
#include "select/query_internal.h"

#define HEARTH_TEXT_MIXED UINT32_MAX /* frames of the row have different texts */

/* The identity of a row, as numbers of texts. */
struct hearth_frame_row {
    uint32_t name;
    /* functions and lines only; 0: not known, MIXED: several */
    uint32_t file, mapping;
    uint32_t build_id; /* lines of one function only */
    int64_t line;
    int64_t start_line; /* of the function, for functions and lines; 0: not known */
    bool start_lines_differ;
};

struct hearth_frame_tally {
    int64_t self, total;
    uint64_t last_stack; /* number of the stack that was counted last */
};

struct hearth_frame_table {
    struct hearth_arena *arena;
    enum hearth_top_kind kind;  /* not THREAD */
    struct hearth_str function; /* the function whose lines are counted; otherwise .p is NULL */
    struct hearth_texts texts;
    struct hearth_frame_row *rows;
    struct hearth_frame_tally *tallies; /* [n_rows] */
    size_t n_rows, cap_rows, cap_tallies;
    uint32_t *row_of_text; /* for rows that one text identifies: text -> row */
    size_t cap_row_of_text;
    struct hearth_idmap by_key; /* for other rows: key -> row */
    size_t budgeted_bytes;
    uint64_t n_stacks;
    int64_t total;   /* sum of all stacks */
    int64_t counted; /* sum of the stacks with a frame that counts */
};

/*
 * `kind` says what a row is; rows of functions and lines have file and mapping as attributes. arena
 * is kept.
 */
void hearth_frame_table_init(struct hearth_frame_table *table, enum hearth_top_kind kind,
                             struct hearth_arena *arena);
/* Counts frames of one function only, by file, mapping, build id and line. The text is borrowed. */
void hearth_frame_table_init_lines(struct hearth_frame_table *table, struct hearth_str function,
                                   struct hearth_arena *arena);
void hearth_frame_table_release(struct hearth_frame_table *table);

/*
 * Adds the sums of a dictionary, which may be released afterwards. inside[node of dict->tree] is
 * true for leaves of stacks that count (stack_filter.h); NULL: all count. Errors: NO_MEMORY,
 * OUT_OF_RANGE.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_frame_table_add(struct hearth_frame_table *table,
                                          const struct hearth_dict *dict,
                                          const struct hearth_dict_sums *sums, const bool *inside,
                                          struct hearth_err *err);

#endif
