/*
 * cmd_flame.c -- a flame graph as text: on a terminal rows of coloured cells, root at the top;
 * elsewhere an indented tree with bars.
 */
#include "hearth/model/flame_text.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The answer as the graph that flame_tree.h and flame_text.h read; texts are borrowed. */
static enum hearth_status read_flame_answer(struct cli *cli, const Querier__V1__FlameGraph *graph,
                                            struct hearth_flamegraph *ret)
{
    struct hearth_flamegraph plain = {
        .n_names = graph->n_names, .n_levels = graph->n_levels, .total = graph->total};

    plain.names = hearth_arena_array(&cli->arena, graph->n_names, sizeof *plain.names);
    plain.levels = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof *plain.levels);
    if (plain.names == NULL || plain.levels == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < graph->n_names; i++) {
        plain.names[i] = hearth_str_c(graph->names[i]);
    }
    for (size_t i = 0; i < graph->n_levels; i++) {
        plain.levels[i].values = graph->levels[i]->values;
        plain.levels[i].n = graph->levels[i]->n_values;
    }
    *ret = plain;

    return HEARTH_OK;
}

/* ---- the tree ---- */

static enum hearth_status print_tree(struct cli *cli, const struct hearth_flamegraph *graph,
                                     struct hearth_str unit, struct hearth_buf *out)
{
    struct hearth_flame_text how = {
        .unit = unit,
        .min_percent = cli->min_percent,
        .option = "--min-percent",
        .name_width = cli->width > 80 ? cli->width - 37 : 60,
    };
    return hearth_flame_text_write(graph, &how, &cli->arena, out, &cli->err);
}

/* ---- the picture ---- */

void cli_flame_ink(const struct cli *cli, struct hearth_str unit, struct flame_ink *ret)
{
    (void)setlocale(LC_CTYPE, "");
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
    cli_flame_ink(cli, unit, &ink);

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

enum hearth_status cli_draw_flame(struct cli *cli, const Querier__V1__FlameGraph *graph,
                                  struct hearth_str unit, struct hearth_buf *out)
{
    struct hearth_flamegraph plain;

    HEARTH_TRY(read_flame_answer(cli, graph, &plain));
    return cli->color ? paint_picture(cli, &plain, unit, out) : print_tree(cli, &plain, unit, out);
}

static enum hearth_status ask_flame(struct cli *cli, const char **ret_type,
                                    Querier__V1__FlameGraph **ret_graph)
{
    Hearth__V1__MergeRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__MergeResponse *answer;
    hearth__v1__merge_request__init(&request);
    HEARTH_TRY(cli_selection(cli, 0, &selection));
    request.selection = &selection;
    request.max_nodes = cli->max_nodes;
    HEARTH_TRY(cli_read_go_stacks(cli, &request.go_stacks));
    HEARTH_TRY(cli_call(cli, "hearth.v1.QueryService/Merge", &request,
                        &hearth__v1__merge_response__descriptor, &answer));
    cli_say_aggregation(&selection, answer->aggregation);
    *ret_type = selection.profile_type;
    *ret_graph = answer->flamegraph;
    return HEARTH_OK;
}

enum cli_exit cli_flame(struct cli *cli)
{
    const char *type = NULL;
    Querier__V1__FlameGraph *graph = NULL;

    if (cli->output != CLI_TABLE && cli->output != CLI_JSON) {
        return cli_usage(
            "flame supports -o table and -o json; query profile supports pprof and collapsed");
    }
    enum hearth_status status = ask_flame(cli, &type, &graph);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (graph == NULL || graph->total == 0 || graph->n_levels == 0 ||
        graph->levels[0]->n_values < 4) {
        return cli_no_data(cli);
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
        status = cli_draw_flame(cli, graph, parts.sample_unit, &out);
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli_print(&out);
}
