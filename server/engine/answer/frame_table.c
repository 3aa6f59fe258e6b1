/* frame_table.c -- adds sums of stacks to a table by the rows of their frames. */
#include "answer/frame_table.h"

#include "hearth/base/budget.h"

#include "select/frame_parts.h"

#include <assert.h>

/* Values of row_of_location besides numbers of rows. */
#define UNSEEN   UINT32_MAX
#define MANY     (UINT32_MAX - 1) /* the location has several lines: see row_of_line */
#define NO_ROW   (UINT32_MAX - 2) /* the location does not count */
#define MAX_ROWS (UINT32_MAX - 3)

void hearth_frame_table_init(struct hearth_frame_table *table, enum hearth_top_kind kind,
                             struct hearth_arena *arena)
{
    HEARTH_ASSERT(kind != HEARTH_TOP_THREAD);
    *table = (struct hearth_frame_table){.arena = arena, .kind = kind};
    hearth_texts_init(&table->texts, arena);
    hearth_idmap_init(&table->by_key);
}

void hearth_frame_table_init_lines(struct hearth_frame_table *table, struct hearth_str function,
                                   struct hearth_arena *arena)
{
    assert(table != NULL && arena != NULL);

    hearth_frame_table_init(table, HEARTH_TOP_LINE, arena);
    table->function = hearth_frame_shown(function);
}

void hearth_frame_table_release(struct hearth_frame_table *table)
{
    hearth_texts_release(&table->texts);
    hearth_idmap_release(&table->by_key);
    hearth_budget_give(table->arena->budget, table->budgeted_bytes);
    hearth_frame_table_init(table, table->kind, table->arena);
}

/* ---- rows of frames ---- */

/* The dictionary that is being added. Elements of the arrays are UNSEEN until they are needed. */
struct table_addition {
    struct hearth_frame_table *table;
    const struct hearth_dict *dict;
    struct hearth_arena *scratch;
    uint32_t *row_of_location, *row_of_line;
    uint32_t *text_of_string;
    uint32_t
        *text_of_function; /* text of its row, for kinds where the function alone determines it */
};

static uint32_t *make_unseen_array(struct hearth_arena *arena, size_t n)
{
    uint32_t *array = hearth_arena_array(arena, n, sizeof array[0]);
    if (array != NULL) {
        memset(array, 0xff, n * sizeof array[0]);
    }
    return array;
}

/*
 * Finds the number of a string's text; HEARTH_IDMAP_NONE, which is UNSEEN, if memory was refused.
 */
static uint32_t text_of_string(struct table_addition *a, uint32_t string)
{
    uint32_t *text = &a->text_of_string[string];
    if (*text == UNSEEN) {
        *text = hearth_texts_id(&a->table->texts, a->dict->strings[string]);
    }
    return *text;
}

static uint32_t find_file_text(struct table_addition *a, const struct hearth_dict_frame *frame)
{
    return text_of_string(
        a, frame->function == HEARTH_NO_INDEX ? 0 : a->dict->functions[frame->function].filename);
}

static uint32_t find_mapping_text(struct table_addition *a, const struct hearth_dict_frame *frame)
{
    const struct hearth_mapping *mapping = hearth_dict_frame_mapping(a->dict, frame);
    return text_of_string(a, mapping == NULL ? 0 : mapping->filename);
}

/* The text that a function alone determines: its class, package or directory. */
static uint32_t derive_function_text(struct table_addition *a, uint32_t function)
{
    uint32_t *text = &a->text_of_function[function];
    if (*text != UNSEEN) {
        return *text;
    }

    char *room = hearth_arena_alloc(a->scratch, hearth_dict_function_bytes(a->dict, function));
    if (room == NULL) {
        return UNSEEN;
    }

    *text = hearth_texts_id(&a->table->texts,
                            hearth_dict_function_row(a->dict, function, a->table->kind, room));
    return *text;
}

/* Whether the function of a frame has a name. */
static bool has_function_name(const struct table_addition *a, const struct hearth_dict_frame *frame)
{
    return frame->function != HEARTH_NO_INDEX && a->dict->functions[frame->function].name != 0;
}

/* The text that identifies the row of a frame, for kinds that one text identifies. */
static uint32_t find_row_text(struct table_addition *a, const struct hearth_dict_frame *frame)
{
    char out[HEARTH_FRAME_NAME_BYTES];
    uint32_t text = 0;

    switch (a->table->kind) {
    case HEARTH_TOP_FUNCTION:
    case HEARTH_TOP_LINE:
        return has_function_name(a, frame)
                   ? text_of_string(a, a->dict->functions[frame->function].name)
                   : hearth_texts_id(&a->table->texts, hearth_dict_frame_name(a->dict, frame, out));
    case HEARTH_TOP_FILE:
        return find_file_text(a, frame);
    case HEARTH_TOP_DIRECTORY:
    case HEARTH_TOP_CLASS:
    case HEARTH_TOP_PACKAGE:
        text = frame->function == HEARTH_NO_INDEX
                   ? hearth_texts_id(&a->table->texts, HEARTH_STR(""))
                   : derive_function_text(a, frame->function);
        break;
    case HEARTH_TOP_FRAME_KIND:
        return hearth_texts_id(&a->table->texts, hearth_dict_frame_kind(a->dict, frame));
    case HEARTH_TOP_MODULE:
    case HEARTH_TOP_THREAD:
        return find_mapping_text(a, frame);
    }

    if (text == 0 && a->table->kind == HEARTH_TOP_PACKAGE &&
        frame->location->mapping != HEARTH_NO_INDEX) {
        /* If the package is not known, the library stands for it. */
        return hearth_texts_id(&a->table->texts, hearth_dict_frame_library(a->dict, frame));
    }

    return text;
}

/* ---- rows ---- */

/* Adds a row. UNSEEN: memory was refused. */
static uint32_t add_table_row(struct hearth_frame_table *table, const struct hearth_frame_row *row)
{
    if (table->n_rows >= MAX_ROWS ||
        !hearth_arena_grow(table->arena, &table->rows, &table->cap_rows, table->n_rows + 1,
                           sizeof table->rows[0]) ||
        !hearth_arena_grow(table->arena, &table->tallies, &table->cap_tallies, table->n_rows + 1,
                           sizeof table->tallies[0])) {
        return UNSEEN;
    }

    table->rows[table->n_rows] = *row;
    table->tallies[table->n_rows] = (struct hearth_frame_tally){0};
    return (uint32_t)table->n_rows++;
}

/* Finds or adds the row of a text. */
static uint32_t find_row_by_text(struct hearth_frame_table *table,
                                 const struct hearth_frame_row *row)
{
    size_t cap = table->cap_row_of_text;

    if (!hearth_arena_grow(table->arena, &table->row_of_text, &table->cap_row_of_text,
                           table->texts.n, sizeof table->row_of_text[0])) {
        return UNSEEN;
    }

    if (table->cap_row_of_text > cap) {
        memset(table->row_of_text + cap, 0xff,
               (table->cap_row_of_text - cap) * sizeof table->row_of_text[0]);
    }

    uint32_t *at = &table->row_of_text[row->name];
    if (*at == UNSEEN) {
        *at = add_table_row(table, row);
    }

    return *at;
}

/* Finds or adds the row of a line. */
static uint32_t find_row_by_key(struct hearth_frame_table *table,
                                const struct hearth_frame_row *row)
{
    bool inserted;
    bool of_function = table->function.p != NULL;
    uint64_t key[3] = {(uint64_t)row->line, (uint64_t)row->name << 32, 0};

    if (of_function) {
        key[1] = (uint64_t)row->file << 32 | row->mapping;
        key[2] = row->build_id;
    }

    struct hearth_hash128 hash = hearth_hash128(key, sizeof key, hearth_hash_process_seed());
    uint32_t at = hearth_idmap_intern(&table->by_key, hash, (uint32_t)table->n_rows, &inserted);
    if (at == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&table->by_key, table->arena, &table->budgeted_bytes) ||
        (inserted && add_table_row(table, row) == UNSEEN)) {
        return UNSEEN;
    }

    return at;
}

/* Combines an attribute over the frames of a row; unknown values are ignored. */
static void note_row_attribute(uint32_t *attribute, uint32_t text)
{
    if (*attribute == 0) {
        *attribute = text;
    } else if (text != 0 && *attribute != text) {
        *attribute = HEARTH_TEXT_MIXED;
    }
}

/* The same for the first line of the function; 0 is unknown. */
static void note_start_line(const struct table_addition *a, const struct hearth_dict_frame *frame,
                            struct hearth_frame_row *row)
{
    int64_t start =
        frame->function == HEARTH_NO_INDEX ? 0 : a->dict->functions[frame->function].start_line;

    row->start_lines_differ =
        row->start_lines_differ || (start != 0 && row->start_line != 0 && row->start_line != start);
    row->start_line = row->start_line == 0 ? start : row->start_line;
}

static bool is_wanted_function(const struct table_addition *a,
                               const struct hearth_dict_frame *frame)
{
    char out[HEARTH_FRAME_NAME_BYTES];
    return a->table->function.p == NULL ||
           hearth_str_eq(hearth_dict_frame_name(a->dict, frame, out), a->table->function);
}

/* The row of a frame, or NO_ROW. UNSEEN: memory was refused. */
static uint32_t find_row_of_frame(struct table_addition *a, const struct hearth_dict_frame *frame)
{
    struct hearth_frame_table *table = a->table;

    if (!is_wanted_function(a, frame)) {
        return NO_ROW;
    }

    struct hearth_frame_row row = {.name = find_row_text(a, frame)};
    if (row.name == UNSEEN) {
        return UNSEEN;
    }

    if (table->kind != HEARTH_TOP_FUNCTION && table->kind != HEARTH_TOP_LINE) {
        return find_row_by_text(table, &row);
    }

    /* Functions and lines have attributes; rows of one function's lines are identified by them. */
    row.file = find_file_text(a, frame);
    row.mapping = find_mapping_text(a, frame);
    if (row.file == UNSEEN || row.mapping == UNSEEN) {
        return UNSEEN;
    }

    row.line = table->kind == HEARTH_TOP_LINE ? frame->line : 0;
    if (table->function.p != NULL) {
        const struct hearth_mapping *mapping = hearth_dict_frame_mapping(a->dict, frame);
        row.build_id = text_of_string(a, mapping == NULL ? 0 : mapping->build_id);
        uint32_t line = row.build_id == UNSEEN ? UNSEEN : find_row_by_key(table, &row);
        if (line != UNSEEN) {
            note_start_line(a, frame, &table->rows[line]);
        }
        return line;
    }

    uint32_t at = table->kind == HEARTH_TOP_LINE ? find_row_by_key(table, &row)
                                                 : find_row_by_text(table, &row);
    if (at != UNSEEN) {
        note_row_attribute(&table->rows[at].file, row.file);
        note_row_attribute(&table->rows[at].mapping, row.mapping);
        note_start_line(a, frame, &table->rows[at]);
    }

    return at;
}

/* The row of a location, MANY or NO_ROW. UNSEEN: memory was refused. */
static uint32_t find_location_row(struct table_addition *a, uint32_t index)
{
    const struct hearth_location *location = &a->dict->locations[index];
    uint32_t all = NO_ROW;

    if (location->n_lines == 0) {
        const struct hearth_dict_frame frame = hearth_dict_frame_at(a->dict, location, 0);
        all = find_row_of_frame(a, &frame);
    }

    for (uint32_t i = 0; i < location->n_lines; i++) {
        uint32_t at = location->first_line + i;
        const struct hearth_dict_frame frame = hearth_dict_frame_at(a->dict, location, i);
        uint32_t row = find_row_of_frame(a, &frame);
        if (row == UNSEEN) {
            return UNSEEN;
        }
        a->row_of_line[at] = row;
        all = location->n_lines == 1 ? row : row != NO_ROW ? MANY : all;
    }

    a->row_of_location[index] = all;
    return all;
}

/* ---- counting ---- */

struct stack_counter {
    struct hearth_frame_tally *tallies;
    int64_t value;
    uint64_t stack;
    bool overflow, counts; /* counts: a frame of the stack has a row */
};

static inline void count_stack_frame(struct stack_counter *c, uint32_t row, bool is_leaf)
{
    if (row == NO_ROW) {
        return;
    }

    struct hearth_frame_tally *tally = &c->tallies[row];
    c->counts = true;
    if (is_leaf) {
        c->overflow |= __builtin_add_overflow(tally->self, c->value, &tally->self);
    }

    if (tally->last_stack != c->stack) {
        tally->last_stack = c->stack;
        c->overflow |= __builtin_add_overflow(tally->total, c->value, &tally->total);
    }
}

/* Counts the frames of one stack. A row's total counts it once, its self if it is the leaf's. */
static enum hearth_status add_stack_to_table(struct table_addition *a, uint32_t stack,
                                             int64_t value, struct hearth_err *err)
{
    struct hearth_frame_table *table = a->table;
    const struct hearth_dict *dict = a->dict;
    uint32_t first = dict->stack_first[stack], end = dict->stack_first[stack + 1];
    struct stack_counter c = {.value = value, .stack = ++table->n_stacks};

    for (uint32_t i = first; i < end; i++) {
        uint32_t location = dict->stack_locs[i];
        uint32_t row = a->row_of_location[location];
        if (HEARTH_UNLIKELY(row == UNSEEN)) {
            row = find_location_row(a, location);
            if (row == UNSEEN) {
                return HEARTH_FAIL_ARENA(err, table->arena);
            }
        }

        c.tallies = table->tallies; /* adding a row may have moved it */
        if (HEARTH_LIKELY(row != MANY)) {
            count_stack_frame(&c, row, i == first);
            continue;
        }
        const struct hearth_location *many = &dict->locations[location];
        for (uint32_t l = 0; l < many->n_lines; l++) {
            count_stack_frame(&c, a->row_of_line[many->first_line + l], i == first && l == 0);
        }
    }

    c.overflow |= __builtin_add_overflow(table->total, value, &table->total);
    if (c.counts) {
        c.overflow |= __builtin_add_overflow(table->counted, value, &table->counted);
    }

    return c.overflow ? HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the table exceeds 64 bits")
                      : HEARTH_OK;
}

enum hearth_status hearth_frame_table_add(struct hearth_frame_table *table,
                                          const struct hearth_dict *dict,
                                          const struct hearth_dict_sums *sums, const bool *inside,
                                          struct hearth_err *err)
{
    struct hearth_arena scratch;

    hearth_arena_init_like(&scratch, table->arena);

    struct table_addition a = {
        .table = table,
        .dict = dict,
        .scratch = &scratch,
        .row_of_location = make_unseen_array(&scratch, dict->n_locations),
        .row_of_line = make_unseen_array(&scratch, dict->n_lines),
        .text_of_string = make_unseen_array(&scratch, dict->n_strings),
        .text_of_function = make_unseen_array(&scratch, dict->n_functions),
    };

    enum hearth_status status = HEARTH_OK;
    if (scratch.refused) {
        status = HEARTH_FAIL_ARENA(err, &scratch);
    }

    /* Only stacks with a value that pass the filter count. */
    for (uint32_t s = 0; status == HEARTH_OK && s < sums->bound; s++) {
        if (sums->acc[s] != 0 && (inside == NULL || inside[dict->stack_node[s]])) {
            status = add_stack_to_table(&a, s, sums->acc[s], err);
        }
    }

    hearth_arena_release(&scratch);
    return status;
}
