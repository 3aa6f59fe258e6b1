/* cmd_functions.c -- top, sandwich, lines: the tables of hearth.v1, computed by the server. */
#include "cmd_functions.h"

#include "hearth/model/frame_name.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "flame_file.h"
#include "listing.h"
#include "text.h"
#include "top_file.h"
#include "why.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define QUERY     "hearth.v1.QueryService/"
#define TOP_HEAD  41 /* columns before the name of a function in a sandwich */
#define SIDE_HEAD 20 /* the same of its callers and callees */

static const char *const g_sorts[] = {NULL, "self", "total", "name"};

/* The number of a name; 0 without one. */
static int find_name(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 1; name != NULL && i < n; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (int)i;
        }
    }
    return 0;
}

static void print_values(int64_t self, int64_t total, int64_t whole, const char *unit,
                         struct hearth_buf *out)
{
    char a[48], b[48], self_share[32], total_share[32];
    cli_value((double)self, hearth_str_c(unit), a);
    cli_value((double)total, hearth_str_c(unit), b);
    cli_percent((double)self, (double)whole, false, self_share);
    cli_percent((double)total, (double)whole, false, total_share);
    hearth_buf_printf(out, "%*s %7s %*s %7s  ", hearth_human_width(a, 10), a, self_share,
                      hearth_human_width(b, 10), b, total_share);
}

static void print_top_head(const char *what, struct hearth_buf *out)
{
    hearth_buf_printf(out, "%10s %7s %10s %7s  %s\n", "self", "%", "total", "%", what);
}

/* "total: 110 ms", "total: 286 samples": a count has its unit, or the sample type that is counted. */
static void put_whole(int64_t whole, const char *unit, const char *type, struct hearth_buf *out)
{
    struct hearth_str of = hearth_str_c(unit);
    char text[48];

    hearth_buf_cstr(out, "total: ");
    if (hearth_str_eq_c(of, "nanoseconds") || hearth_str_eq_c(of, "bytes")) {
        cli_value((double)whole, of, text);
        hearth_buf_cstr(out, text);
    } else {
        struct hearth_str noun = hearth_str_eq_c(of, "count") ? cli_type_name(type) : of;
        cli_count(whole, text);
        hearth_buf_printf(out, "%s%s", text, noun.n > 0 ? " " : "");
        cli_fit(noun, 60, false, out);
    }
    hearth_buf_byte(out, '\n');
}

static void add_values(struct cli_listing *list, int64_t self, int64_t total, int64_t whole)
{
    cli_list_number(list, self);
    cli_list_share(list, (double)self, (double)whole);
    cli_list_number(list, total);
    cli_list_share(list, (double)total, (double)whole);
    cli_list_str(list, list->unit);
}

/* What lines have left for a name after `used` columns. */
static int name_width(const struct cli *cli, int used)
{
    return cli->width - used > 12 ? cli->width - used : 12;
}

/* ---- top ---- */

static void add_top(const struct cli *cli, const Hearth__V1__TopResponse *answer, const char *kind,
                    const char *type, struct cli_listing *list)
{
    bool has_lines = strcmp(kind, "line") == 0;

    list->unit = hearth_str_c(answer->unit);
    list->last_head = kind;
    for (size_t i = 0; i < answer->n_rows; i++) {
        const Hearth__V1__TopRow *row = answer->rows[i];
        struct hearth_buf location;
        add_values(list, row->self, row->total, answer->total);
        cli_list_text(list, kind);
        hearth_buf_init(&location, 0);
        if (has_lines) {
            hearth_buf_printf(&location, "%s:%lld", row->file, (long long)row->line);
        }
        cli_list_take(list, &location);
        cli_list_text(list, row->name);
    }

    int64_t shown = cli->offset + (int64_t)answer->n_rows;
    if (cli->offset > 0 || shown < answer->row_count) {
        hearth_buf_printf(
            &list->foot, "rows %lld to %lld of %lld; --limit and --offset show others\n",
            (long long)cli->offset + 1, (long long)shown, (long long)answer->row_count);
    }
    put_whole(answer->total, answer->unit, type, &list->foot);
}

enum hearth_status cli_draw_top(struct cli *cli, const Hearth__V1__TopResponse *answer,
                                const char *kind, struct hearth_buf *out)
{
    struct cli_listing list;

    cli_list_begin_like(cli, "top", &list);
    add_top(cli, answer, kind, "", &list);
    return cli_list_put(&list, out);
}

static enum hearth_status ask_top(struct cli *cli, int kind, int64_t limit, const char **ret_type,
                                  Hearth__V1__TopResponse **ret)
{
    Hearth__V1__TopRequest request;
    Hearth__V1__Selection selection;
    int sort = find_name(cli->sort, g_sorts, HEARTH_ARRAY_LEN(g_sorts));

    hearth__v1__top_request__init(&request);
    HEARTH_TRY(cli_selection(cli, 0, &selection));
    request.selection = &selection;
    request.kind = (Hearth__V1__TopKind)kind;
    request.sort = (Hearth__V1__TopSort)sort;
    request.search = cli_field(cli, cli->search == NULL ? "" : cli->search);
    request.limit = limit;
    request.offset = cli->offset;
    HEARTH_TRY(cli_call(cli, QUERY "Top", &request, &hearth__v1__top_response__descriptor, ret));
    cli_say_aggregation(&selection, (*ret)->aggregation);
    *ret_type = selection.profile_type;

    return HEARTH_OK;
}

enum cli_exit cli_top(struct cli *cli)
{
    const char *type = "";
    Hearth__V1__TopResponse *answer = NULL;
    int kind = find_name(cli->by_kind, cli_row_kinds, CLI_ROW_KINDS);
    int64_t limit = cli->has_limit ? cli->limit : cli_is_table(cli) ? 30 : INT64_MAX;
    bool is_file = cli->n_args > 0 && flame_is_file(cli->args[0]);

    kind = kind == 0 ? 1 : kind;
    if (is_file && kind != 1) {
        return cli_usage("top FILE has rows of functions: --by-kind is for queries");
    }
    if (cli->transforms.n > 0 && kind != 1) {
        return cli_usage("transformed stack traces have rows of functions: leave out --by-kind or "
                         "the transforms");
    }
    bool is_tree = is_file || cli->transforms.n > 0;
    enum hearth_status status =
        is_tree ? cli_top_tree(cli, is_file ? cli->args[0] : NULL, limit, &type, &answer)
                : ask_top(cli, kind, limit, &type, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (is_file && answer->total == 0) {
        return flame_file_is_empty(cli->args[0], type);
    }
    if (answer->total > 0 && answer->n_rows == 0) {
        (void)fprintf(stderr, "hearth: %s%sno row is left by --search and --offset\n",
                      is_file ? cli->args[0] : "", is_file ? ": " : "");
        return CLI_NO_DATA;
    }
    if (answer->total == 0 || answer->n_rows == 0) {
        return cli_no_data(cli);
    }
    struct cli_listing list;
    cli_list_begin_like(cli, "top", &list);
    add_top(cli, answer, cli_row_kinds[kind], type, &list);

    return cli_list_end(&list, &answer->base);
}

/* ---- sandwich ---- */

struct side_node {
    const Hearth__V1__SandwichNode *of;
    uint32_t number; /* its place in the answer */
    int depth;
};

static int compare_side_nodes(const void *left, const void *right)
{
    const Hearth__V1__SandwichNode *a = ((const struct side_node *)left)->of;
    const Hearth__V1__SandwichNode *b = ((const struct side_node *)right)->of;

    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }

    return a->total != b->total ? (a->total < b->total) - (a->total > b->total)
                                : strcmp(a->name, b->name);
}

/* Sorts nodes by parent, then the heaviest first. n_below[p + 1] is the number of children of p. */
static enum hearth_status sort_side(struct cli *cli, Hearth__V1__SandwichNode *const *nodes,
                                    size_t n, struct side_node *sorted, uint32_t *n_below)
{
    for (size_t i = 0; i < n; i++) {
        int32_t parent = nodes[i]->parent;
        if (parent >= (int64_t)i || (parent < 0) != (i == 0)) {
            return HEARTH_FAIL(&cli->err, HEARTH_INTERNAL, "the server sent a malformed tree");
        }
        sorted[i] = (struct side_node){.of = nodes[i], .number = (uint32_t)i};
        if (i > 0) {
            n_below[parent + 1]++;
        }
    }
    if (n > 0) {
        qsort(sorted, n, sizeof sorted[0], compare_side_nodes);
    }

    return HEARTH_OK;
}

/* The nodes of a side in the order in which they are printed: those below a node follow it. */
static enum hearth_status order_side(struct cli *cli, Hearth__V1__SandwichNode *const *nodes,
                                     size_t n, struct side_node **ret)
{
    struct side_node *sorted = hearth_arena_array(&cli->arena, n, sizeof sorted[0]);
    struct side_node *ordered = hearth_arena_array(&cli->arena, n, sizeof ordered[0]);
    uint32_t *begin = hearth_arena_calloc(&cli->arena, n + 1, sizeof begin[0]);
    uint32_t *waiting = hearth_arena_array(&cli->arena, n, sizeof waiting[0]);
    size_t n_waiting = 0, n_ordered = 0;

    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    HEARTH_TRY(sort_side(cli, nodes, n, sorted, begin));

    /* The root stands first, so the children of node p begin after it and those of nodes before. */
    for (size_t p = 0; p < n; p++) {
        begin[p + 1] += begin[p];
    }
    if (n > 0) {
        waiting[n_waiting++] = 0;
    }
    while (n_waiting > 0) {
        const struct side_node *node = &sorted[waiting[--n_waiting]];
        ordered[n_ordered++] = *node;
        for (uint32_t i = begin[node->number + 1]; i > begin[node->number]; i--) {
            sorted[i].depth = node->depth + 1;
            waiting[n_waiting++] = i;
        }
    }
    *ret = ordered;

    return HEARTH_OK;
}

static enum hearth_status print_side(struct cli *cli, const char *title,
                                     Hearth__V1__SandwichNode *const *nodes, size_t n,
                                     const Hearth__V1__SandwichResponse *answer,
                                     struct hearth_buf *out)
{
    struct side_node *ordered;
    size_t left_out = 0;

    HEARTH_TRY(order_side(cli, nodes, n, &ordered));
    hearth_buf_printf(out, "\n%s\n", title);
    for (size_t i = 1; i < n; i++) {
        const Hearth__V1__SandwichNode *node = ordered[i].of;
        char value[48], share[32];
        if ((double)node->total < (double)answer->total * cli->min_percent / 100.0) {
            left_out++;
            continue;
        }
        cli_value((double)node->total, hearth_str_c(answer->unit), value);
        cli_percent((double)node->total, (double)answer->total, false, share);
        hearth_buf_printf(out, "%*s %7s  %*s", hearth_human_width(value, 10), value, share,
                          2 * (ordered[i].depth - 1), "");
        cli_fit(hearth_frame_shown(hearth_str_c(node->name)),
                name_width(cli, SIDE_HEAD + 2 * (ordered[i].depth - 1)), false, out);
        hearth_buf_byte(out, '\n');
    }
    if (n <= 1) {
        hearth_buf_cstr(out, "        none\n");
    }
    if (left_out > 0) {
        hearth_buf_printf(out, "%zu below %.3g%% left out (--min-percent)\n", left_out,
                          cli->min_percent);
    }

    return HEARTH_OK;
}

enum cli_exit cli_sandwich(struct cli *cli)
{
    Hearth__V1__SandwichRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__SandwichResponse *answer = NULL;

    hearth__v1__sandwich_request__init(&request);
    enum hearth_status status = cli_selection(cli, 1, &selection);
    request.selection = &selection;
    request.function = cli_field(cli, cli->args[0]);
    request.max_nodes = cli->max_nodes;
    if (status == HEARTH_OK) {
        status = cli_read_go_stacks(cli, &request.go_stacks);
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERY "Sandwich", &request,
                          &hearth__v1__sandwich_response__descriptor, &answer);
        status = status == HEARTH_NOT_FOUND
                     ? cli_fail_no_function(cli, &selection, request.function)
                     : status;
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_say_aggregation(&selection, answer->aggregation);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    print_top_head("function", &out);
    print_values(answer->self, answer->total, answer->whole, answer->unit, &out);
    cli_fit(hearth_str_c(request.function), name_width(cli, TOP_HEAD), false, &out);
    hearth_buf_byte(&out, '\n');
    status = print_side(cli, "callers; below each, its own callers", answer->callers,
                        answer->n_callers, answer, &out);
    if (status == HEARTH_OK) {
        status = print_side(cli, "callees; below each, its own callees", answer->callees,
                            answer->n_callees, answer, &out);
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli_print_answer(cli, &answer->base, &out);
}

/* ---- lines ---- */

static void add_source_line(struct cli_listing *list, const Hearth__V1__Line *line,
                            const Hearth__V1__LinesResponse *answer)
{
    struct hearth_buf place;

    add_values(list, line->self, line->total, answer->total);
    cli_list_text(list, line->mapping);
    cli_list_text(list, line->build_id);
    hearth_buf_init(&place, 0);
    hearth_buf_str(&place, hearth_frame_shown(hearth_str_c(line->file)));
    if (line->line > 0) {
        hearth_buf_printf(&place, ":%lld", (long long)line->line);
    }
    cli_list_take(list, &place);
}

enum cli_exit cli_lines(struct cli *cli)
{
    Hearth__V1__LinesRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__LinesResponse *answer = NULL;

    hearth__v1__lines_request__init(&request);
    enum hearth_status status = cli_selection(cli, 1, &selection);
    request.selection = &selection;
    request.function = cli_field(cli, cli->args[0]);
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERY "Lines", &request, &hearth__v1__lines_response__descriptor,
                          &answer);
        status = status == HEARTH_NOT_FOUND
                     ? cli_fail_no_function(cli, &selection, request.function)
                     : status;
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_say_aggregation(&selection, answer->aggregation);
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.unit = hearth_str_c(answer->unit);
    for (size_t i = 0; i < answer->n_lines; i++) {
        add_source_line(&list, answer->lines[i], answer);
    }
    for (size_t i = 0; i < answer->n_sources; i++) {
        for (size_t k = 0; k < answer->sources[i]->n_labels; k++) {
            const Types__V1__LabelPair *label = answer->sources[i]->labels[k];
            hearth_buf_cstr(&list.foot, k == 0 ? "source: " : ", ");
            cli_fit(hearth_str_c(label->name), INT_MAX, false, &list.foot);
            hearth_buf_byte(&list.foot, '=');
            cli_fit(hearth_str_c(label->value), INT_MAX, false, &list.foot);
        }
        hearth_buf_byte(&list.foot, '\n');
    }
    put_whole(answer->total, answer->unit, selection.profile_type, &list.foot);

    return cli_list_end(&list, &answer->base);
}
