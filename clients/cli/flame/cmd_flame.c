/*
 * cmd_flame.c -- a flame graph: on a terminal the interactive screen, or rows of coloured cells,
 * root at the top; elsewhere an indented tree with bars.
 */
#include "cmd_flame.h"

#include "hearth/format/collapsed.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile_type.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "flame_file.h"
#include "flame_output.h"
#include "flame_terminal.h"
#include "flame_transforms.h"
#include "merged_profile.h"
#include "page_link.h"
#include "text.h"
#include "why.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The answer as the graph that flame_tree.h and flame_text.h read; texts are borrowed. */
static enum hearth_status read_flame_answer(struct cli *cli, const Querier__V1__FlameGraph *graph,
                                            struct hearth_flamegraph *ret)
{
    *ret = (struct hearth_flamegraph){
        .n_names = graph->n_names, .n_levels = graph->n_levels, .total = graph->total};

    HEARTH_TRY(flame_output_take_names(cli, graph->names, graph->n_names, &ret->names));
    return flame_output_take_levels(cli, graph->levels, graph->n_levels, &ret->levels);
}

/* ---- the picture ---- */

/* What flame graphs look like on this terminal: colours, locale, --min-percent. */
static void choose_flame_ink(const struct cli *cli, struct hearth_str unit, struct flame_ink *ret)
{
    *ret = (struct flame_ink){
        .colors =
            cli->color ? flame_colors_of(getenv("TERM"), getenv("COLORTERM")) : FLAME_MONOCHROME,
        .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .unit = unit,
        .min_percent = cli->min_percent,
    };
}

static enum hearth_status paint_picture(struct cli *cli, const struct hearth_flamegraph *graph,
                                        struct hearth_str unit, struct hearth_buf *out)
{
    struct flame_names names = {0};
    struct flame_tree tree = {0};
    struct flame_ink ink;

    HEARTH_TRY(flame_tree_read(graph, &tree, &cli->err));
    enum hearth_status status = flame_names_init(&names, graph, &cli->err);
    choose_flame_ink(cli, unit, &ink);
    ink.total = tree.n > 0 ? tree.total[0] : 0;

    /* The first level without a box ends the picture: deeper ones are no wider. */
    for (uint32_t level = 0; status == HEARTH_OK && level < tree.n_levels; level++) {
        size_t before = out->n;
        if (flame_paint_level(&tree, &names, 0, level, HEARTH_NO_NODE, cli->width, &ink, out) ==
            0) {
            out->n = before;
            hearth_buf_printf(out,
                              "%u deeper levels are narrower than a cell or below --min-percent\n",
                              tree.n_levels - level);
            break;
        }
        hearth_buf_byte(out, '\n');
    }

    char total[48];
    cli_value((double)graph->total, unit, total);
    hearth_buf_printf(out, "total: %s\n", total);
    flame_names_release(&names);
    flame_tree_release(&tree);

    return status;
}

static enum hearth_status draw_graph(struct cli *cli, const struct hearth_flamegraph *graph,
                                     struct hearth_str unit, struct hearth_buf *out)
{
    return cli->color ? paint_picture(cli, graph, unit, out)
                      : flame_output_text(cli, graph, unit, out);
}

enum hearth_status cli_draw_flame(struct cli *cli, const Querier__V1__FlameGraph *graph,
                                  struct hearth_str unit, struct hearth_buf *out)
{
    struct hearth_flamegraph plain;

    HEARTH_TRY(read_flame_answer(cli, graph, &plain));
    return draw_graph(cli, &plain, unit, out);
}

static enum hearth_status ask_flame(struct cli *cli, const char **ret_selector,
                                    const char **ret_type, Hearth__V1__MergeResponse **ret)
{
    Hearth__V1__MergeRequest request;
    Hearth__V1__Selection selection;

    hearth__v1__merge_request__init(&request);
    HEARTH_TRY(cli_selection(cli, 0, &selection));
    request.selection = &selection;
    request.max_nodes = cli->max_nodes;
    request.format = cli->output == CLI_DOT
                         ? QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_DOT
                         : QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_FLAMEGRAPH;
    HEARTH_TRY(cli_read_go_stacks(cli, &request.go_stacks));
    HEARTH_TRY(cli_call(cli, "hearth.v1.QueryService/Merge", &request,
                        &hearth__v1__merge_response__descriptor, ret));
    cli_say_aggregation(&selection, (*ret)->aggregation);
    *ret_selector = selection.label_selector;
    *ret_type = selection.profile_type;

    return HEARTH_OK;
}

/* ---- the screen ---- */

/* The address of the web page; NULL, and the reason, if no page shows the same. */
static const char *page_address(struct cli *cli, const struct flame_facts *facts,
                                const char **ret_reason)
{
    const struct page_query query = {facts->selector, facts->type, cli->from_ms, cli->to_ms};
    struct hearth_buf out;

    *ret_reason = "the page cannot show these filters";
    if (cli_is_beyond_page(cli)) {
        return NULL;
    }
    hearth_buf_init(&out, 0);
    page_link_query(cli->url, "profile", &query, &out);
    bool is_said = flame_put_transforms(cli, &out);
    const char *address = is_said ? hearth_arena_strndup(&cli->arena, out.p, out.n) : NULL;
    hearth_buf_release(&out);

    return address;
}

enum cli_exit cli_choose_screen(const struct cli *cli, bool *ret_is_screen)
{
    const char *term = getenv("TERM");
    bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && term != NULL &&
                       term[0] != '\0' && strcmp(term, "dumb") != 0;

    *ret_is_screen = false;
    if (cli->interactive && cli->no_interactive) {
        return cli_usage("--interactive and --no-interactive exclude each other");
    }
    if (cli->interactive && cli->output != CLI_TABLE) {
        return cli_usage("--interactive is for -o table");
    }
    if (cli->interactive && !is_terminal) {
        return cli_usage("--interactive needs a terminal as standard input and output, and TERM");
    }
    *ret_is_screen = cli->interactive || (!cli->no_interactive && is_terminal && cli->color &&
                                          cli->output == CLI_TABLE);

    return CLI_OK;
}

enum hearth_status cli_run_screen(struct cli *cli, const struct hearth_flamegraph *graph,
                                  const struct flame_facts *facts, struct hearth_str unit,
                                  struct hearth_buf *out)
{
    struct flame_screen *screen = hearth_arena_zalloc(&cli->arena, sizeof *screen);
    struct flame_ink ink;

    if (screen == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    choose_flame_ink(cli, unit, &ink);
    HEARTH_TRY(flame_screen_init(screen, graph, facts, &ink, &cli->err));
    enum hearth_status status = flame_terminal_run(screen, &cli->err);
    if (screen->copied != NULL) {
        hearth_buf_printf(out, "%s\n", screen->copied);
    }
    flame_screen_release(screen);

    return status;
}

static enum hearth_status open_screen(struct cli *cli, const Querier__V1__FlameGraph *answer,
                                      const char *selector, const char *type,
                                      struct hearth_str unit, struct hearth_buf *out)
{
    struct flame_facts facts = {.selector = selector, .type = type};
    struct hearth_flamegraph graph;

    facts.page = page_address(cli, &facts, &facts.no_page);
    facts.range = flame_output_range(cli, cli->from_ms, cli->to_ms);
    HEARTH_TRY(read_flame_answer(cli, answer, &graph));
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    return cli_run_screen(cli, &graph, &facts, unit, out);
}

/* Writes a tree, or its profile, as the file that -o names. */
static enum cli_exit save_tree(struct cli *cli, const char *title, struct flame_file *file)
{
    struct hearth_buf out;

    if (flame_output_is_chosen(cli)) {
        const struct flame_export_facts facts = {
            .title = title,
            .type = file->type,
            .range = file->range,
            .unit = cli_type_unit(file->type),
        };
        return flame_output_tree(cli, &file->tree, &facts);
    }

    enum hearth_status status = cli->transforms.n > 0 ? flame_file_take_tree(cli, file) : HEARTH_OK;
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_COLLAPSED) {
        hearth_collapsed_encode(file->profile, file->type_idx, &out);
        return cli_print(&out);
    }
    hearth_pprof_encode(file->profile, &out);
    enum cli_exit code = cli_save_pprof(cli, hearth_buf_view(&out), file->profile->n_samples);
    hearth_buf_release(&out);

    return code;
}

/* Shows a tree as a picture, as text or on the screen. */
static enum hearth_status draw_tree(struct cli *cli, const struct flame_file *file,
                                    const struct flame_facts *facts, bool is_screen,
                                    struct hearth_buf *out)
{
    struct hearth_str unit = cli_type_unit(file->type);
    struct hearth_flamegraph graph;

    HEARTH_TRY(hearth_flamegraph_make(&file->tree, cli->max_nodes, &cli->arena, &graph, &cli->err));
    if (cli->output == CLI_JSON) {
        return flame_output_json(cli, &graph, out);
    }
    return is_screen ? cli_run_screen(cli, &graph, facts, unit, out)
                     : draw_graph(cli, &graph, unit, out);
}

/* Puts out a tree of a file or of a query, and releases it. `title` is of saved files. */
static enum cli_exit show_tree(struct cli *cli, struct flame_file *file, const char *title,
                               const struct flame_facts *facts, bool is_screen)
{
    struct hearth_buf out;

    if (cli->output != CLI_TABLE && cli->output != CLI_JSON) {
        enum cli_exit code = save_tree(cli, title, file);
        flame_file_release(file);
        return code;
    }

    hearth_buf_init(&out, 0);
    enum hearth_status status = draw_tree(cli, file, facts, is_screen, &out);
    flame_file_release(file);
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli_print(&out);
}

static enum cli_exit show_file(struct cli *cli, const char *path, bool is_screen)
{
    struct flame_file file;
    enum hearth_status status = flame_file_open(cli, path, cli->type, &file);

    if (status != HEARTH_OK || file.tree.nodes[0].total == 0) {
        enum cli_exit code =
            status != HEARTH_OK ? cli_fail(cli, status) : flame_file_is_empty(path, file.type);
        flame_file_release(&file);
        return code;
    }
    const struct flame_facts facts = {.selector = path,
                                      .type = file.type,
                                      .range = file.range,
                                      .no_page = "a file has no page; hearth upload stores it"};

    return show_tree(cli, &file, flame_output_file_title(path), &facts, is_screen);
}

/* The stack traces of a query, transformed. */
static enum cli_exit show_transformed(struct cli *cli, bool is_screen)
{
    struct flame_file file;
    enum hearth_status status = flame_query_open(cli, &file);

    if (status != HEARTH_OK) {
        flame_file_release(&file);
        return cli_fail(cli, status);
    }
    struct flame_facts facts = {.selector = cli->selector, .type = file.type, .range = file.range};
    facts.page = page_address(cli, &facts, &facts.no_page);

    return show_tree(cli, &file, cli->selector, &facts, is_screen);
}

/* Writes the answer as the file that -o names. */
static enum cli_exit save_answer(struct cli *cli, const Querier__V1__FlameGraph *answer,
                                 const char *selector, const char *type)
{
    struct hearth_flamegraph graph;
    struct flame_export_facts facts;
    enum hearth_status status = read_flame_answer(cli, answer, &graph);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    flame_output_query_facts(cli, selector, type, &facts);
    return flame_output_graph(cli, &graph, &facts);
}

enum cli_exit cli_flame(struct cli *cli)
{
    const char *selector = NULL, *type = NULL;
    bool is_screen;
    Hearth__V1__MergeResponse *answer = NULL;

    enum cli_exit code = cli_choose_screen(cli, &is_screen);
    if (code != CLI_OK) {
        return code;
    }
    if (cli->n_args > 0 && flame_is_file(cli->args[0])) {
        return show_file(cli, cli->args[0], is_screen);
    }
    if (cli->transforms.n > 0) {
        return show_transformed(cli, is_screen);
    }
    if (cli->output == CLI_PPROF || cli->output == CLI_COLLAPSED) {
        if (cli->go_stacks != NULL) {
            return cli_usage("--go-stacks is for flame graphs: -o pprof and -o collapsed have the "
                             "stored stack traces");
        }
        return cli_put_merged(cli);
    }
    enum hearth_status status = ask_flame(cli, &selector, &type, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    const Querier__V1__FlameGraph *graph = answer->flamegraph;
    if (cli->output == CLI_DOT) {
        return answer->dot[0] == '\0' ? cli_no_data(cli)
                                      : cli_save(cli->output_file, hearth_str_c(answer->dot), "");
    }
    if (graph == NULL || graph->total == 0 || graph->n_levels == 0 ||
        graph->levels[0]->n_values < 4) {
        return cli_no_data(cli);
    }
    if (flame_output_is_chosen(cli)) {
        return save_answer(cli, graph, selector, type);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_JSON) {
        hearth_pb_to_json(&graph->base, &out);
        hearth_buf_byte(&out, '\n');
        return cli_print(&out);
    }
    struct hearth_profile_type parts;
    status = hearth_profile_type_parse(hearth_str_c(type), &parts, &cli->err);
    if (status == HEARTH_OK) {
        status = is_screen ? open_screen(cli, graph, selector, type, parts.sample_unit, &out)
                           : cli_draw_flame(cli, graph, parts.sample_unit, &out);
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli_print(&out);
}
