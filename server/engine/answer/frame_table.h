/*
 * frame_table.h -- self and total of what the frames of stacks belong to: functions, lines, files, ...
 * (private to the engine).
 *
 * A stack's value is the self of the row of its leaf frame, and once the total of each row that has a
 * frame of it, however often. Made of sums per dictionary, with dense arrays: what a location counts
 * for is found once per dictionary, at its first stack.
 *
 * Rows have the order of discovery, which is no promise.
 * Memory:  the arena's.
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_FRAME_TABLE_H
#define HEARTH_ENGINE_FRAME_TABLE_H

#include "hearth/model/dict.h"

#include "common/texts.h"
#include "select/query_internal.h"

#define HEARTH_TEXT_MIXED UINT32_MAX /* several texts */

/* What a row is, by numbers of texts. */
struct hearth_frame_row {
    uint32_t name;
    uint32_t file,
        mapping; /* of functions and lines: 0 where not known, MIXED where there are several */
    uint32_t build_id; /* of lines of a function */
    int64_t line;
};

struct hearth_frame_tally {
    int64_t self, total;
    uint64_t last_stack; /* that was counted */
};

struct hearth_frame_table {
    struct hearth_arena *arena;
    enum hearth_top_kind kind;  /* not THREAD */
    struct hearth_str function; /* of lines of a function; else .p is NULL */
    struct hearth_texts texts;
    struct hearth_frame_row *rows;
    struct hearth_frame_tally *tallies; /* of rows */
    size_t n_rows, cap_rows, cap_tallies;
    uint32_t *row_of_text; /* rows that one text identifies */
    size_t cap_row_of_text;
    struct hearth_idmap by_key; /* others */
    size_t budgeted_bytes;
    uint64_t n_stacks;
    int64_t total;   /* of all stacks */
    int64_t counted; /* of those with a frame that counts */
};

/* The arena is kept. Rows are what `kind` says; of functions, lines have file and mapping as attributes. */
void hearth_frame_table_init(struct hearth_frame_table *table, enum hearth_top_kind kind,
                             struct hearth_arena *arena);
/* Only frames of that function count, by file, mapping, build id and line. The text is borrowed. */
void hearth_frame_table_init_lines(struct hearth_frame_table *table, struct hearth_str function,
                                   struct hearth_arena *arena);
void hearth_frame_table_release(struct hearth_frame_table *table);

/*
 * Add the sums of a dictionary, which may be released afterwards. inside: of nodes of dict->tree, the leaves of
 * stacks that count (stack_filter.h); NULL: all. NO_MEMORY, OUT_OF_RANGE.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_frame_table_add(struct hearth_frame_table *table,
                                          const struct hearth_dict *dict,
                                          const struct hearth_dict_sums *sums, const bool *inside,
                                          struct hearth_err *err);

#endif
