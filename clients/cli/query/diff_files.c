/*
 * diff_files.c -- compares two files on this machine (contract: diff_rows.h).
 *
 * The answer is the message that the server would send for the same profiles, so that all that
 * follows is one path.
 */
#include "hearth/model/flame_diff.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli_call.h"
#include "diff_rows.h"
#include "flame_file.h"
#include "text.h"

#define NO_NOISE "a file has no slices of time and no series to estimate it from"

static Querier__V1__Level *pack_level(struct cli *cli, const struct hearth_flame_level *level)
{
    Querier__V1__Level *ret = hearth_arena_alloc(&cli->arena, sizeof *ret);

    if (ret != NULL) {
        querier__v1__level__init(ret);
        ret->values = level->values;
        ret->n_values = level->n;
    }

    return ret;
}

/* The graph as a message, in the arena; NULL: memory was refused. Borrows the levels. */
static Querier__V1__FlameGraphDiff *pack_graph(struct cli *cli,
                                               const struct hearth_flame_diff *graph)
{
    Querier__V1__FlameGraphDiff *ret = hearth_arena_alloc(&cli->arena, sizeof *ret);
    char **names = hearth_arena_array(&cli->arena, graph->n_names, sizeof names[0]);
    Querier__V1__Level **levels =
        hearth_arena_array(&cli->arena, graph->n_levels, sizeof(Querier__V1__Level *));

    if (ret == NULL || names == NULL || levels == NULL) {
        return NULL;
    }
    querier__v1__flame_graph_diff__init(ret);
    for (size_t i = 0; i < graph->n_names; i++) {
        names[i] = hearth_arena_strndup(&cli->arena, graph->names[i].p, graph->names[i].n);
    }
    for (size_t i = 0; i < graph->n_levels; i++) {
        levels[i] = pack_level(cli, &graph->levels[i]);
    }
    ret->names = names;
    ret->n_names = graph->n_names;
    ret->levels = levels;
    ret->n_levels = graph->n_levels;
    ret->total = graph->total;
    ret->max_self = graph->max_self;
    ret->leftticks = graph->left_total;
    ret->rightticks = graph->right_total;

    return cli->arena.refused ? NULL : ret;
}

static enum hearth_status compare_files(struct cli *cli, const struct flame_file files[2],
                                        Hearth__V1__DiffResponse **ret)
{
    struct hearth_flame_diff graph;

    HEARTH_TRY(hearth_flame_diff_make(&files[0].tree, &files[1].tree, cli->max_nodes, &cli->arena,
                                      &graph, &cli->err));
    Hearth__V1__DiffResponse *answer = hearth_arena_alloc(&cli->arena, sizeof *answer);
    Hearth__V1__DiffNoise *noise = hearth_arena_alloc(&cli->arena, sizeof *noise);
    Querier__V1__FlameGraphDiff *packed = pack_graph(cli, &graph);
    if (answer == NULL || noise == NULL || packed == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    hearth__v1__diff_noise__init(noise);
    noise->reason = cli_field(cli, NO_NOISE);
    hearth__v1__diff_response__init(answer);
    answer->flamegraph = packed;
    answer->noise = noise;
    struct hearth_str unit = cli_type_unit(files[0].type);
    answer->unit = hearth_arena_strndup(&cli->arena, unit.p, unit.n);
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    *ret = answer;

    return HEARTH_OK;
}

enum hearth_status diff_ask_files(struct cli *cli, const char **ret_type,
                                  Hearth__V1__DiffResponse **ret)
{
    struct flame_file files[2];

    /* The second file has to have the type of the first. */
    enum hearth_status status = flame_file_open(cli, cli->args[0], cli->type, &files[0]);
    if (status == HEARTH_OK) {
        status = flame_file_open(cli, cli->args[1], files[0].type, &files[1]);
        if (status == HEARTH_OK) {
            status = compare_files(cli, files, ret);
        }
        flame_file_release(&files[1]);
    }
    *ret_type = files[0].type;
    flame_file_release(&files[0]);

    return status;
}
