/*
 * functions.c -- exact tables of functions, lines, files and so on; and the lines of one function.
 *
 * They are made from the sums per dictionary, so they are never truncated as flame graphs are.
 */
#include "hearth/base/mem.h"
#include "hearth/selector/pattern.h"

#include "answer/frame_table.h"
#include "answer/threads.h"
#include "select/stack_filter.h"

#include <assert.h>
#include <stdlib.h>

/* A table of frames, and the frames that a call site selects. */
struct frame_fill {
    struct hearth_frame_table *table;
    struct hearth_stack_mask mask;
};

static enum hearth_status add_dict_frames(void *context, const struct hearth_dict *dict,
                                          const struct hearth_dict_sums *sums,
                                          struct hearth_err *err)
{
    struct frame_fill *fill = context;
    const bool *inside;

    HEARTH_TRY(hearth_stack_mask_of(&fill->mask, dict->tree, &inside, err));

    return hearth_frame_table_add(fill->table, dict, sums, inside, err);
}

/* Sums everything selected, and adds it to the table. */
static enum hearth_status fill_frame_table(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           struct hearth_frame_table *table, struct hearth_err *err)
{
    struct frame_fill fill = {.table = table};
    struct hearth_sums sums;

    hearth_stack_mask_init(&fill.mask, &spec->stacks, table->arena);
    hearth_sums_init(&sums, query, NULL);

    /* Dictionaries are read after the scan, one at a time. */
    enum hearth_status status = hearth_query_sum(query, spec, &sums, err);
    if (status == HEARTH_OK) {
        status = hearth_sums_visit(query, &spec->stacks, &sums, add_dict_frames, &fill, err);
    }

    hearth_sums_release(&sums);
    hearth_stack_mask_release(&fill.mask);

    return status;
}

/* A text of the table; empty if it is not known or frames differ. */
static struct hearth_str find_row_text_or_empty(const struct hearth_frame_table *table,
                                                uint32_t text)
{
    return text == 0 || text == HEARTH_TEXT_MIXED ? HEARTH_STR("") : table->texts.v[text];
}

static int64_t find_start_line_or_0(const struct hearth_frame_row *row)
{
    return row->start_lines_differ ? 0 : row->start_line;
}

/* ---- top ---- */

/* One query of a table. */
struct top_run {
    const struct hearth_query *query;
    const struct hearth_merge_spec *spec;
    const struct hearth_top_spec *top;
    struct hearth_pattern *search; /* NULL: all names */
    struct hearth_top *ret;
};

static int compare_names_then_lines(const struct hearth_top_row *a, const struct hearth_top_row *b)
{
    int order = hearth_str_cmp(a->name, b->name);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/*
 * Sorts by the wanted number, then the other number, then the name, which differs for rows of equal
 * lines.
 */
static int compare_top_rows(const void *left, const void *right, void *top_ptr)
{
    const struct hearth_top_row *a = left, *b = right;
    const struct hearth_top_spec *top = top_ptr;
    int sign = top->reverse ? -1 : 1;

    if (top->sort == HEARTH_TOP_BY_NAME) {
        return sign * compare_names_then_lines(a, b);
    }

    int self = (a->self < b->self) - (a->self > b->self);
    int total = (a->total < b->total) - (a->total > b->total);
    int first = top->sort == HEARTH_TOP_BY_SELF ? self : total;
    int second = top->sort == HEARTH_TOP_BY_SELF ? total : self;

    return first != 0 ? sign * first : second != 0 ? sign * second : compare_names_then_lines(a, b);
}

static enum hearth_status copy_row_texts(struct hearth_arena *arena, struct hearth_top_row *row,
                                         struct hearth_err *err)
{
    row->name = hearth_arena_str(arena, row->name);
    row->file = hearth_arena_str(arena, row->file);
    row->module = hearth_arena_str(arena, row->module);
    return row->name.p == NULL || row->file.p == NULL || row->module.p == NULL
               ? HEARTH_FAIL_ARENA(err, arena)
               : HEARTH_OK;
}

/* Sorts rows[n], and copies the wanted page to the answer. */
static enum hearth_status write_top_page(const struct top_run *run, struct hearth_top_row *rows,
                                         size_t n, struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    const struct hearth_top_spec *top = run->top;
    struct hearth_top *ret = run->ret;

    assert(top->offset >= 0 && top->limit >= 0);

    if (n > 0) {
        qsort_r(rows, n, sizeof rows[0], compare_top_rows, (void *)(uintptr_t)top);
    }

    size_t from = (uint64_t)top->offset < n ? (size_t)top->offset : n;
    size_t n_page = (uint64_t)top->limit < n - from ? (size_t)top->limit : n - from;
    ret->n_all = (int64_t)n;
    ret->rows = hearth_arena_array(query->call.arena, n_page, sizeof rows[0]);
    if (ret->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    for (; ret->n_rows < n_page; ret->n_rows++) {
        ret->rows[ret->n_rows] = rows[from + ret->n_rows];
        HEARTH_TRY(copy_row_texts(query->call.arena, &ret->rows[ret->n_rows], err));
    }

    return HEARTH_OK;
}

static enum hearth_status find_top_frames(const struct top_run *run,
                                          struct hearth_frame_table *table, struct hearth_err *err)
{
    HEARTH_TRY(fill_frame_table(run->query, run->spec, table, err));
    struct hearth_top_row *rows = hearth_arena_array(table->arena, table->n_rows, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, table->arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct hearth_frame_row *row = &table->rows[i];
        struct hearth_str name = find_row_text_or_empty(table, row->name);
        if (run->search == NULL || hearth_pattern_occurs(run->search, name)) {
            rows[n++] = (struct hearth_top_row){
                .name = name,
                .file = find_row_text_or_empty(table, row->file),
                .module = find_row_text_or_empty(table, row->mapping),
                .line = row->line,
                .self = table->tallies[i].self,
                .total = table->tallies[i].total,
                .start_line = find_start_line_or_0(row),
            };
        }
    }

    run->ret->total = table->total;
    return write_top_page(run, rows, n, err);
}

static enum hearth_status find_top_threads(const struct top_run *run, struct hearth_arena *scratch,
                                           struct hearth_err *err)
{
    struct hearth_top_row *rows;
    size_t n_rows, n = 0;

    HEARTH_TRY(hearth_query_threads(run->query, run->spec, scratch, &rows, &n_rows,
                                    &run->ret->total, err));
    for (size_t i = 0; i < n_rows; i++) {
        if (run->search == NULL || hearth_pattern_occurs(run->search, rows[i].name)) {
            rows[n++] = rows[i];
        }
    }

    return write_top_page(run, rows, n, err);
}

enum hearth_status hearth_query_top(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    const struct hearth_top_spec *top, struct hearth_top *ret,
                                    struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    *ret = (struct hearth_top){0};
    if (top->limit < 0 || top->offset < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %lld is negative",
                           top->limit < 0 ? "limit" : "offset",
                           (long long)(top->limit < 0 ? top->limit : top->offset));
    }

    struct top_run run = {.query = query, .spec = spec, .top = top, .ret = ret};
    if (top->search.n > 0) {
        HEARTH_TRY(hearth_pattern_new(top->search, "search", &run.search, err));
    }

    struct hearth_arena scratch;
    enum hearth_status status;
    hearth_arena_init_like(&scratch, query->call.arena);
    if (top->kind == HEARTH_TOP_THREAD) {
        status = find_top_threads(&run, &scratch, err);
    } else {
        struct hearth_frame_table table;
        hearth_frame_table_init(&table, top->kind, &scratch);
        status = find_top_frames(&run, &table, err);
        hearth_frame_table_release(&table);
    }

    hearth_arena_release(&scratch);
    hearth_pattern_free(run.search);
    return status;
}

/* ---- lines ---- */

static int compare_line_totals(const void *left, const void *right)
{
    const struct hearth_line_total *a = left, *b = right;
    int order = hearth_str_cmp(a->file, b->file);
    order = order != 0 ? order : hearth_str_cmp(a->mapping, b->mapping);
    order = order != 0 ? order : (a->line > b->line) - (a->line < b->line);
    return order != 0 ? order : hearth_str_cmp(a->build_id, b->build_id);
}

/* Writes the lines of the function, sorted. */
static enum hearth_status write_lines(const struct hearth_frame_table *table,
                                      struct hearth_arena *arena, struct hearth_lines *ret,
                                      struct hearth_err *err)
{
    ret->lines = hearth_arena_array(arena, table->n_rows, sizeof ret->lines[0]);
    if (ret->lines == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < table->n_rows; i++) {
        const struct hearth_frame_row *row = &table->rows[i];
        struct hearth_line_total *line = &ret->lines[i];
        *line = (struct hearth_line_total){
            .file = hearth_arena_str(arena, find_row_text_or_empty(table, row->file)),
            .mapping = hearth_arena_str(arena, find_row_text_or_empty(table, row->mapping)),
            .build_id = hearth_arena_str(arena, find_row_text_or_empty(table, row->build_id)),
            .line = row->line,
            .self = table->tallies[i].self,
            .total = table->tallies[i].total,
            .start_line = find_start_line_or_0(row),
        };
        if (line->file.p == NULL || line->mapping.p == NULL || line->build_id.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        ret->self += line->self; /* selfs are parts of the total, which fits */
    }

    ret->n_lines = table->n_rows;
    ret->total = table->counted;
    qsort(ret->lines, ret->n_lines, sizeof ret->lines[0], compare_line_totals);

    return HEARTH_OK;
}

/* Makes the selector {__profile_type__="..."}. */
static enum hearth_status make_type_selector(struct hearth_str profile_type,
                                             struct hearth_arena *arena, struct hearth_str *ret,
                                             struct hearth_err *err)
{
    struct hearth_profile_type type;

    HEARTH_TRY(hearth_profile_type_parse(profile_type, &type, err));

    struct hearth_buf id, text;
    hearth_buf_init(&id, 0);
    hearth_buf_init(&text, 0);
    hearth_profile_type_format(&type, &id);

    hearth_buf_str(&text, HEARTH_STR("{" HEARTH_LABEL_PROFILE_TYPE "=\""));
    for (size_t i = 0; i < id.n; i++) {
        if (id.p[i] == '"' || id.p[i] == '\\') {
            hearth_buf_byte(&text, '\\');
        }
        hearth_buf_byte(&text, (uint8_t)id.p[i]);
    }

    hearth_buf_str(&text, HEARTH_STR("\"}"));

    bool failed = hearth_buf_failed(&id) || hearth_buf_failed(&text);
    *ret = failed ? (struct hearth_str){0} : hearth_arena_str(arena, hearth_buf_view(&text));
    hearth_buf_release(&id);
    hearth_buf_release(&text);

    return ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Finds the labels of the selected series that tell where their source code is. */
static enum hearth_status find_line_sources(const struct hearth_query *query,
                                            const struct hearth_merge_spec *spec,
                                            struct hearth_lines *ret, struct hearth_err *err)
{
    static const struct hearth_str names[] = {
        {"service_git_ref", 15}, {"service_repository", 18}, {"service_root_path", 17}};
    struct hearth_str selectors[2] = {spec->selector};
    struct hearth_labels *sets;
    size_t n;

    HEARTH_TRY(make_type_selector(spec->profile_type, query->call.arena, &selectors[1], err));

    const struct hearth_label_request request = {
        .selectors = selectors,
        .n_selectors = HEARTH_ARRAY_LEN(selectors),
        .names = names,
        .n_names = HEARTH_ARRAY_LEN(names),
    };
    HEARTH_TRY(hearth_query_series(query, &request, &sets, &n, err));
    ret->sources = sets;
    for (size_t i = 0; i < n; i++) {
        if (sets[i].n > 0) {
            sets[ret->n_sources++] = sets[i];
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_query_lines(const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec,
                                      struct hearth_str function, struct hearth_lines *ret,
                                      struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    *ret = (struct hearth_lines){0};
    struct hearth_arena scratch;
    struct hearth_frame_table table;

    hearth_arena_init_like(&scratch, query->call.arena);
    hearth_frame_table_init_lines(&table, function, &scratch);
    enum hearth_status status = fill_frame_table(query, spec, &table, err);
    if (status == HEARTH_OK && table.n_rows == 0) {
        status = HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                             "no selected stack trace contains the function \"" HEARTH_STR_FMT "\"",
                             HEARTH_STR_ARG(function));
    }

    if (status == HEARTH_OK) {
        status = write_lines(&table, query->call.arena, ret, err);
    }

    hearth_frame_table_release(&table);
    hearth_arena_release(&scratch);
    return status == HEARTH_OK ? find_line_sources(query, spec, ret, err) : status;
}
