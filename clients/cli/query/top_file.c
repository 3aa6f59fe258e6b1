/* top_file.c -- the table of functions of a file or of transformed stack traces, as the server would send it. */
#include "top_file.h"

#include "hearth/selector/pattern.h"

#include "flame_file.h"
#include "text.h"

#include <stdlib.h>

/* Rows of a file that match --search; texts are the tree's. */
struct file_table {
    const struct hearth_stacktree *tree;
    struct hearth_function_total *rows;
    size_t n;
};

static int compare_names(const void *left, const void *right, void *context)
{
    const struct hearth_function_total *a = left, *b = right;
    const struct file_table *table = context;

    return hearth_str_cmp(table->tree->names[a->name], table->tree->names[b->name]);
}

static int compare_totals(const void *left, const void *right, void *context)
{
    const struct hearth_function_total *a = left, *b = right;

    return a->total != b->total ? (a->total < b->total) - (a->total > b->total)
           : a->self != b->self ? (a->self < b->self) - (a->self > b->self)
                                : compare_names(left, right, context);
}

/* Keeps the rows that match --search, and sorts them by --sort. */
static enum hearth_status choose_rows(struct cli *cli, struct file_table *table)
{
    struct hearth_pattern *pattern = NULL;
    size_t n = 0;

    HEARTH_TRY(
        hearth_stacktree_functions(table->tree, &cli->arena, &table->rows, &table->n, &cli->err));
    if (cli->search != NULL) {
        HEARTH_TRY(hearth_pattern_new(hearth_str_c(cli->search), "--search", &pattern, &cli->err));
    }
    for (size_t i = 0; i < table->n; i++) {
        if (pattern == NULL ||
            hearth_pattern_occurs(pattern, table->tree->names[table->rows[i].name])) {
            table->rows[n++] = table->rows[i];
        }
    }
    hearth_pattern_free(pattern);
    table->n = n;

    /* They are sorted by self already. */
    bool by_total = cli->sort != NULL && strcmp(cli->sort, "total") == 0;
    bool by_name = cli->sort != NULL && strcmp(cli->sort, "name") == 0;
    if (n > 1 && (by_total || by_name)) {
        qsort_r(table->rows, n, sizeof table->rows[0], by_total ? compare_totals : compare_names,
                table);
    }

    return HEARTH_OK;
}

/* The page of the table that --offset and --limit choose. */
static enum hearth_status fill_answer(struct cli *cli, const struct file_table *table,
                                      int64_t limit, Hearth__V1__TopResponse *answer)
{
    size_t first = (size_t)cli->offset < table->n ? (size_t)cli->offset : table->n;
    size_t n = table->n - first < (size_t)limit ? table->n - first : (size_t)limit;

    answer->rows = hearth_arena_array(&cli->arena, n, sizeof(Hearth__V1__TopRow *));
    for (size_t i = 0; answer->rows != NULL && i < n; i++) {
        const struct hearth_function_total *from = &table->rows[first + i];
        struct hearth_str name = table->tree->names[from->name];
        Hearth__V1__TopRow *row = hearth_arena_alloc(&cli->arena, sizeof *row);
        if (row == NULL) {
            break;
        }
        hearth__v1__top_row__init(row);
        row->name = hearth_arena_strndup(&cli->arena, name.p, name.n);
        row->self = from->self;
        row->total = from->total;
        answer->rows[i] = row;
    }
    answer->n_rows = n;
    answer->row_count = (int64_t)table->n;

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

enum hearth_status cli_top_tree(struct cli *cli, const char *path, int64_t limit,
                                const char **ret_type, Hearth__V1__TopResponse **ret)
{
    struct flame_file file;
    Hearth__V1__TopResponse *answer = hearth_arena_alloc(&cli->arena, sizeof *answer);

    if (answer == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    hearth__v1__top_response__init(answer);
    enum hearth_status status =
        path == NULL ? flame_query_open(cli, &file) : flame_file_open(cli, path, cli->type, &file);
    if (status == HEARTH_OK) {
        struct file_table table = {.tree = &file.tree};
        struct hearth_str unit = cli_type_unit(file.type);
        answer->total = file.tree.nodes[0].total;
        answer->unit = hearth_arena_strndup(&cli->arena, unit.p, unit.n);
        status = choose_rows(cli, &table);
        if (status == HEARTH_OK) {
            status = fill_answer(cli, &table, limit, answer);
        }
    }
    *ret_type = file.type;
    *ret = answer;
    flame_file_release(&file);

    return status;
}
