/*
 * cmd_flame.c -- a flame graph as text: on a terminal rows of coloured cells, root at the top;
 * elsewhere an indented tree with bars.
 */
#include "hearth/base/hash.h"
#include "hearth/model/flame_text.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

#include <stdio.h>

/* Node k of a level: absolute x, total, self, name. */
struct cell {
    int64_t x, total, self;
    const char *name;
};

struct picture {
    const Querier__V1__FlameGraph *graph;
    struct cell **levels;
    size_t *n_cells;
    struct hearth_str unit;
};

static enum hearth_status read_levels(struct cli *cli, struct picture *p)
{
    const Querier__V1__FlameGraph *graph = p->graph;

    p->levels = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof p->levels[0]);
    p->n_cells = hearth_arena_calloc(&cli->arena, graph->n_levels, sizeof p->n_cells[0]);
    if (p->levels == NULL || p->n_cells == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t l = 0; l < graph->n_levels; l++) {
        const Querier__V1__Level *level = graph->levels[l];
        p->n_cells[l] = level->n_values / 4;
        p->levels[l] = hearth_arena_array(&cli->arena, p->n_cells[l], sizeof(struct cell));
        if (p->levels[l] == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        int64_t end = 0;
        for (size_t i = 0; i < p->n_cells[l]; i++) {
            const int64_t *v = level->values + 4 * i;
            if (v[3] < 0 || (uint64_t)v[3] >= graph->n_names) {
                return HEARTH_FAIL(&cli->err, HEARTH_INTERNAL,
                                   "the server sent a malformed flame graph");
            }
            p->levels[l][i] = (struct cell){end + v[0], v[1], v[2], graph->names[v[3]]};
            end += v[0] + v[1];
        }
    }

    return HEARTH_OK;
}

/* ---- the tree ---- */

static enum hearth_status print_tree(struct cli *cli, const struct picture *p,
                                     struct hearth_buf *out)
{
    const Querier__V1__FlameGraph *graph = p->graph;
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
    struct hearth_flame_text how = {
        .unit = p->unit,
        .min_percent = cli->min_percent,
        .option = "--min-percent",
        .name_width = cli->width > 80 ? cli->width - 37 : 60,
    };
    return hearth_flame_text_write(&plain, &how, &cli->arena, out, &cli->err);
}

/* ---- the picture ---- */

/* A stable colour per package: what stands before the last separator of the name. */
static unsigned name_color(const char *name)
{
    static const unsigned char warm[] = {130, 131, 136, 137, 166, 167,
                                         172, 173, 208, 209, 214, 215};
    size_t n = strlen(name);
    size_t cut = n;
    for (size_t i = 0; i < n; i++) {
        cut = name[i] == '.' || name[i] == '/' || name[i] == ':' || name[i] == '_' ? i : cut;
    }
    return warm[hearth_hash64(name, cut, 0) % sizeof warm];
}

/* Without the directories of a package path, which would fill a narrow cell: web.(*Handler).Run. */
static const char *short_name(const char *name)
{
    const char *from = name;
    for (const char *at = name; *at != '\0' && *at != '(' && *at != ' ' && *at != '<'; at++) {
        from = *at == '/' && at[1] != '\0' ? at + 1 : from;
    }
    return from;
}

static void paint_flame_level(const struct cli *cli, const struct picture *p, size_t level,
                              struct hearth_buf *out)
{
    double scale = (double)cli->width / (double)p->graph->total;
    int at = 0;

    for (size_t i = 0; i < p->n_cells[level]; i++) {
        const struct cell *cell = &p->levels[level][i];
        int from = (int)((double)cell->x * scale + 0.5);
        int to = (int)((double)(cell->x + cell->total) * scale + 0.5);
        if (to <= from || from < at) {
            continue;
        }
        for (; at < from; at++) {
            hearth_buf_byte(out, ' ');
        }
        hearth_buf_printf(out, "\033[48;5;%um\033[38;5;16m",
                          level == 0 ? 250u : name_color(cell->name));
        hearth_buf_cstr(out, to - from > 1 ? "▏" : "");
        cli_fit(hearth_str_c(short_name(cell->name)), to - from > 1 ? to - from - 1 : to - from,
                true, out);
        hearth_buf_cstr(out, "\033[0m");
        at = to;
    }
    hearth_buf_byte(out, '\n');
}

static void paint_flame(const struct cli *cli, const struct picture *p, struct hearth_buf *out)
{
    char total[48];
    cli_value((double)p->graph->total, p->unit, total);

    for (size_t level = 0; level < p->graph->n_levels; level++) {
        bool visible = false;
        for (size_t i = 0; i < p->n_cells[level]; i++) {
            visible = visible || (double)p->levels[level][i].total * cli->width >=
                                     (double)p->graph->total * 0.5;
        }
        if (!visible) {
            hearth_buf_printf(out, "%zu deeper levels are narrower than a cell\n",
                              p->graph->n_levels - level);
            break;
        }
        paint_flame_level(cli, p, level, out);
    }
    hearth_buf_printf(out, "total: %s\n", total);
}

enum hearth_status cli_draw_flame(struct cli *cli, const Querier__V1__FlameGraph *graph,
                                  struct hearth_str unit, struct hearth_buf *out)
{
    struct picture p = {.graph = graph, .unit = unit};
    if (!cli->color) {
        return print_tree(cli, &p, out);
    }
    HEARTH_TRY(read_levels(cli, &p));
    paint_flame(cli, &p, out);
    return HEARTH_OK;
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
