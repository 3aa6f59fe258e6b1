/*
 * functions.c -- the exact tables: functions, lines, files, ...; and the lines of one function.
 *
 * From the sums per dictionary, so nothing that a flame graph would cut is missing.
 */
#include "hearth/base/mem.h"
#include "hearth/selector/pattern.h"

#include "answer/frame_table.h"
#include "answer/threads.h"
#include "select/stack_filter.h"

#include <stdlib.h>

/* Everything selected, in the table. */
static enum hearth_status fill_table(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec,
                                     struct hearth_frame_table *table, struct hearth_err *err)
{
    struct hearth_sums sums;
    struct hearth_stack_mask mask;
    struct hearth_store *store = query->call.engine->store;
    hearth_stack_mask_init(&mask, &spec->stacks, table->arena);
    enum hearth_status status = hearth_query_sum(query, spec, &sums, err);
    for (size_t i = 0; status == HEARTH_OK && i < sums.n_dicts; i++) {
        const struct hearth_dict_sums *part = &sums.dicts[i];
        const struct hearth_dict *dict;
        status = hearth_store_read_dict(store, part->service_id, part->day, part->writer_id,
                                        part->bound, query->call.cancel, &dict, err);
        if (status != HEARTH_OK) {
            break;
        }
        const bool *inside;
        status = hearth_stack_mask_of(&mask, dict->tree, &inside, err);
        if (status == HEARTH_OK) {
            status = hearth_frame_table_add(table, dict, part, inside, err);
        }
        hearth_store_read_dict_release(store, dict);
    }
    hearth_sums_release(&sums);
    hearth_stack_mask_release(&mask);
    return status;
}

static struct hearth_str text_of(const struct hearth_frame_table *table, uint32_t text)
{
    return text == 0 || text == HEARTH_TEXT_MIXED ? HEARTH_STR("") : table->texts.v[text];
}

/* ---- top ---- */

static int by_name_then_line(const struct hearth_top_row *a, const struct hearth_top_row *b)
{
    int order = hearth_str_cmp(a->name, b->name);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/* Numbers go first, then the other number, then the name, which no two rows of a line share. */
static int compare_rows(const void *left, const void *right, void *top_ptr)
{
    const struct hearth_top_row *a = left, *b = right;
    const struct hearth_top_spec *top = top_ptr;
    int sign = top->reverse ? -1 : 1;
    if (top->sort == HEARTH_TOP_BY_NAME) {
        return sign * by_name_then_line(a, b);
    }
    int self = (a->self < b->self) - (a->self > b->self);
    int total = (a->total < b->total) - (a->total > b->total);
    int first = top->sort == HEARTH_TOP_BY_SELF ? self : total;
    int second = top->sort == HEARTH_TOP_BY_SELF ? total : self;
    return first != 0 ? sign * first : second != 0 ? sign * second : by_name_then_line(a, b);
}

static enum hearth_status copy_texts(struct hearth_arena *arena, struct hearth_top_row *row,
                                     struct hearth_err *err)
{
    row->name = hearth_arena_str(arena, row->name);
    row->file = hearth_arena_str(arena, row->file);
    row->module = hearth_arena_str(arena, row->module);
    return row->name.p == NULL || row->file.p == NULL || row->module.p == NULL
               ? HEARTH_FAIL_ARENA(err, arena)
               : HEARTH_OK;
}

/* rows[n] is sorted, and its page copied to the answer. */
static enum hearth_status answer_page(const struct hearth_query *query,
                                      const struct hearth_top_spec *top,
                                      struct hearth_top_row *rows, size_t n, struct hearth_top *ret,
                                      struct hearth_err *err)
{
    if (n > 0) {
        qsort_r(rows, n, sizeof rows[0], compare_rows, (void *)(uintptr_t)top);
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
        HEARTH_TRY(copy_texts(query->call.arena, &ret->rows[ret->n_rows], err));
    }
    return HEARTH_OK;
}

static enum hearth_status
top_of_frames(const struct hearth_query *query, const struct hearth_merge_spec *spec,
              const struct hearth_top_spec *top, const struct hearth_pattern *search,
              struct hearth_frame_table *table, struct hearth_top *ret, struct hearth_err *err)
{
    HEARTH_TRY(fill_table(query, spec, table, err));
    struct hearth_top_row *rows = hearth_arena_array(table->arena, table->n_rows, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, table->arena);
    }
    size_t n = 0;
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct hearth_frame_row *row = &table->rows[i];
        struct hearth_str name = text_of(table, row->name);
        if (search == NULL || hearth_pattern_occurs(search, name)) {
            rows[n++] = (struct hearth_top_row){
                .name = name,
                .file = text_of(table, row->file),
                .module = text_of(table, row->mapping),
                .line = row->line,
                .self = table->tallies[i].self,
                .total = table->tallies[i].total,
            };
        }
    }
    ret->total = table->total;
    return answer_page(query, top, rows, n, ret, err);
}

static enum hearth_status
top_of_threads(const struct hearth_query *query, const struct hearth_merge_spec *spec,
               const struct hearth_top_spec *top, const struct hearth_pattern *search,
               struct hearth_arena *scratch, struct hearth_top *ret, struct hearth_err *err)
{
    struct hearth_top_row *rows;
    size_t n_rows, n = 0;
    HEARTH_TRY(hearth_query_threads(query, spec, scratch, &rows, &n_rows, &ret->total, err));
    for (size_t i = 0; i < n_rows; i++) {
        if (search == NULL || hearth_pattern_occurs(search, rows[i].name)) {
            rows[n++] = rows[i];
        }
    }
    return answer_page(query, top, rows, n, ret, err);
}

enum hearth_status hearth_query_top(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    const struct hearth_top_spec *top, struct hearth_top *ret,
                                    struct hearth_err *err)
{
    *ret = (struct hearth_top){0};
    if (top->limit < 0 || top->offset < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %lld is negative",
                           top->limit < 0 ? "limit" : "offset",
                           (long long)(top->limit < 0 ? top->limit : top->offset));
    }
    struct hearth_pattern *search = NULL;
    if (top->search.n > 0) {
        HEARTH_TRY(hearth_pattern_new(top->search, "search", &search, err));
    }
    struct hearth_arena scratch;
    enum hearth_status status;
    hearth_arena_init_like(&scratch, query->call.arena);
    if (top->kind == HEARTH_TOP_THREAD) {
        status = top_of_threads(query, spec, top, search, &scratch, ret, err);
    } else {
        struct hearth_frame_table table;
        hearth_frame_table_init(&table, top->kind, &scratch);
        status = top_of_frames(query, spec, top, search, &table, ret, err);
        hearth_frame_table_release(&table);
    }
    hearth_arena_release(&scratch);
    hearth_pattern_free(search);
    return status;
}

/* ---- lines ---- */

static int by_file_mapping_line(const void *left, const void *right)
{
    const struct hearth_line_total *a = left, *b = right;
    int order = hearth_str_cmp(a->file, b->file);
    order = order != 0 ? order : hearth_str_cmp(a->mapping, b->mapping);
    order = order != 0 ? order : (a->line > b->line) - (a->line < b->line);
    return order != 0 ? order : hearth_str_cmp(a->build_id, b->build_id);
}

static enum hearth_status answer_lines(const struct hearth_frame_table *table,
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
            .file = hearth_arena_str(arena, text_of(table, row->file)),
            .mapping = hearth_arena_str(arena, text_of(table, row->mapping)),
            .build_id = hearth_arena_str(arena, text_of(table, row->build_id)),
            .line = row->line,
            .self = table->tallies[i].self,
            .total = table->tallies[i].total,
        };
        if (line->file.p == NULL || line->mapping.p == NULL || line->build_id.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        ret->self += line->self; /* parts of the total, which fits */
    }
    ret->n_lines = table->n_rows;
    ret->total = table->counted;
    qsort(ret->lines, ret->n_lines, sizeof ret->lines[0], by_file_mapping_line);
    return HEARTH_OK;
}

/* {__profile_type__="..."} */
static enum hearth_status type_selector(struct hearth_str profile_type, struct hearth_arena *arena,
                                        struct hearth_str *ret, struct hearth_err *err)
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

/* Where the selected series say that their source lies. */
static enum hearth_status find_sources(const struct hearth_query *query,
                                       const struct hearth_merge_spec *spec,
                                       struct hearth_lines *ret, struct hearth_err *err)
{
    static const struct hearth_str names[] = {
        {"service_git_ref", 15}, {"service_repository", 18}, {"service_root_path", 17}};
    struct hearth_str selectors[2] = {spec->selector};
    struct hearth_labels *sets;
    size_t n;
    HEARTH_TRY(type_selector(spec->profile_type, query->call.arena, &selectors[1], err));
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
    *ret = (struct hearth_lines){0};
    struct hearth_arena scratch;
    struct hearth_frame_table table;
    hearth_arena_init_like(&scratch, query->call.arena);
    hearth_frame_table_init_lines(&table, function, &scratch);
    enum hearth_status status = fill_table(query, spec, &table, err);
    if (status == HEARTH_OK && table.n_rows == 0) {
        status = HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                             "no selected stack trace contains the function \"" HEARTH_STR_FMT "\"",
                             HEARTH_STR_ARG(function));
    }
    if (status == HEARTH_OK) {
        status = answer_lines(&table, query->call.arena, ret, err);
    }
    hearth_frame_table_release(&table);
    hearth_arena_release(&scratch);
    return status == HEARTH_OK ? find_sources(query, spec, ret, err) : status;
}
