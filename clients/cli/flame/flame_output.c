/* flame_output.c -- which writer makes the file that -o names, and what the file says about its graph. */
#include "flame_output.h"

#include "hearth/model/dot_text.h"
#include "hearth/model/flame_text.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli_messages.h"
#include "text.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

bool flame_output_is_chosen(const struct cli *cli)
{
    return cli->output >= CLI_HTML && cli->output <= CLI_FLAME;
}

const char *flame_output_file_title(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

char *flame_output_range(struct cli *cli, int64_t from_ms, int64_t to_ms)
{
    char from[32], to[32], zone[32] = "";
    time_t seconds = (time_t)(to_ms / 1000);
    struct tm tm;

    cli_time(from_ms, from);
    cli_time(to_ms, to);
    if (localtime_r(&seconds, &tm) != NULL) {
        (void)strftime(zone, sizeof zone, "%Z", &tm);
    }
    return hearth_arena_printf(&cli->arena, "%s to %s %s", from, to, zone);
}

void flame_output_query_facts(struct cli *cli, const char *selector, const char *type,
                              struct flame_export_facts *ret)
{
    *ret = (struct flame_export_facts){
        .title = selector,
        .type = type,
        .range = flame_output_range(cli, cli->from_ms, cli->to_ms),
        .unit = cli_type_unit(type),
    };
}

enum hearth_status flame_output_take_names(struct cli *cli, char **texts, size_t n,
                                           struct hearth_str **ret)
{
    struct hearth_str *names = hearth_arena_array(&cli->arena, n, sizeof *names);

    if (names == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = hearth_str_c(texts[i]);
    }
    *ret = names;

    return HEARTH_OK;
}

enum hearth_status flame_output_take_levels(struct cli *cli, Querier__V1__Level **in, size_t n,
                                            struct hearth_flame_level **ret)
{
    struct hearth_flame_level *levels = hearth_arena_calloc(&cli->arena, n, sizeof *levels);

    if (levels == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        levels[i] = (struct hearth_flame_level){.values = in[i]->values, .n = in[i]->n_values};
    }
    *ret = levels;

    return HEARTH_OK;
}

enum hearth_status flame_output_text(struct cli *cli, const struct hearth_flamegraph *graph,
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

enum hearth_status flame_output_json(struct cli *cli, const struct hearth_flamegraph *graph,
                                     struct hearth_buf *out)
{
    struct hearth_arena *arena = &cli->arena;
    Querier__V1__FlameGraph answer = QUERIER__V1__FLAME_GRAPH__INIT;
    Querier__V1__Level *levels = hearth_arena_calloc(arena, graph->n_levels, sizeof *levels);

    answer.names = hearth_arena_calloc(arena, graph->n_names, sizeof *answer.names);
    answer.levels = hearth_arena_calloc(arena, graph->n_levels, sizeof *answer.levels);
    for (size_t i = 0; !arena->refused && i < graph->n_names; i++) {
        answer.names[i] = hearth_arena_strndup(arena, graph->names[i].p, graph->names[i].n);
    }
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(&cli->err, arena);
    }
    for (size_t i = 0; i < graph->n_levels; i++) {
        querier__v1__level__init(&levels[i]);
        levels[i].n_values = graph->levels[i].n;
        levels[i].values = graph->levels[i].values;
        answer.levels[i] = &levels[i];
    }
    answer.n_names = graph->n_names;
    answer.n_levels = graph->n_levels;
    answer.total = graph->total;
    answer.max_self = graph->max_self;
    hearth_pb_to_json(&answer.base, out);
    hearth_buf_byte(out, '\n');

    return HEARTH_OK;
}

/* Saves what a writer made, or says why it could not. */
static enum cli_exit save_output(struct cli *cli, enum hearth_status status, struct hearth_buf *out)
{
    if (status == HEARTH_OK && hearth_buf_failed(out)) {
        status = HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the output");
    }
    enum cli_exit code = status == HEARTH_OK ? cli_save(cli->output_file, hearth_buf_view(out), "")
                                             : cli_fail(cli, status);
    hearth_buf_release(out);

    return code;
}

static enum cli_exit write_export_output(struct cli *cli, const struct flame_export *graph)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    switch (cli->output) {
    case CLI_SVG:
        flame_export_svg(graph, &out);
        break;
    case CLI_SPEEDSCOPE:
        flame_export_speedscope(graph, &out);
        break;
    default:
        flame_export_html(graph, &out);
        break;
    }

    return save_output(cli, HEARTH_OK, &out);
}

enum cli_exit flame_output_graph(struct cli *cli, const struct hearth_flamegraph *graph,
                                 const struct flame_export_facts *facts)
{
    struct flame_export read;
    struct hearth_buf out;

    assert(flame_output_is_chosen(cli));
    if (cli->output == CLI_FLAME) {
        hearth_buf_init(&out, 0);
        return save_output(cli, flame_output_text(cli, graph, facts->unit, &out), &out);
    }

    enum hearth_status status = flame_export_read(graph, facts, &cli->arena, &read, &cli->err);
    return status == HEARTH_OK ? write_export_output(cli, &read) : cli_fail(cli, status);
}

/* Writes the calls of a tree, as a server does for a query. */
static enum cli_exit save_call_graph(struct cli *cli, const struct hearth_stacktree *tree,
                                     const struct flame_export_facts *facts)
{
    int64_t max_functions = cli->max_nodes > 0 ? cli->max_nodes : HEARTH_DOT_FUNCTIONS;
    struct hearth_call_graph graph;
    struct hearth_buf out;
    char note[128];

    enum hearth_status status =
        hearth_dot_select(tree, max_functions, &cli->arena, &graph, &cli->err);
    if (status == HEARTH_OK && graph.n_nodes == 0) {
        return CLI_NO_DATA;
    }
    hearth_buf_init(&out, 0);
    if (status == HEARTH_OK) {
        hearth_dot_write(&graph, hearth_str_c(facts->type), facts->unit, &out);
        (void)snprintf(note, sizeof note, "%zu of %zu functions are shown; --max-nodes shows more",
                       graph.n_nodes, graph.n_functions);
    }
    if (status == HEARTH_OK && graph.n_nodes < graph.n_functions) {
        cli_say("note", note);
    }

    return save_output(cli, status, &out);
}

enum cli_exit flame_output_tree(struct cli *cli, const struct hearth_stacktree *tree,
                                const struct flame_export_facts *facts)
{
    struct hearth_flamegraph graph;

    if (cli->output == CLI_DOT) {
        return save_call_graph(cli, tree, facts);
    }
    enum hearth_status status =
        hearth_flamegraph_make(tree, cli->max_nodes, &cli->arena, &graph, &cli->err);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    return graph.total > 0 ? flame_output_graph(cli, &graph, facts) : CLI_NO_DATA;
}

enum cli_exit flame_output_profile(struct cli *cli, const struct hearth_profile *profile,
                                   const struct flame_export_facts *facts)
{
    struct hearth_stacktree tree;

    hearth_stacktree_init(&tree, &cli->arena);
    enum hearth_status status = hearth_stacktree_add_shown(&tree, profile, 0, &cli->err);
    if (status == HEARTH_OK && hearth_stacktree_root(&tree) == HEARTH_NO_NODE) {
        status = HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    if (status == HEARTH_OK) {
        status = hearth_stacktree_seal(&tree, &cli->err);
    }
    enum cli_exit code =
        status == HEARTH_OK ? flame_output_tree(cli, &tree, facts) : cli_fail(cli, status);
    hearth_stacktree_release(&tree);

    return code;
}

/* The q of all nodes, in the arena. *ret is NULL if the server did not judge. */
static enum hearth_status gather_q(struct cli *cli, const struct hearth_flame_diff *diff,
                                   const Hearth__V1__DiffNoise *noise, const float **ret)
{
    size_t n = 0, at = 0;

    *ret = NULL;
    for (size_t l = 0; l < diff->n_levels; l++) {
        n += diff->levels[l].n / 7;
    }
    if (noise == NULL || noise->n_levels == 0) {
        return HEARTH_OK;
    }

    float *q = hearth_arena_array(&cli->arena, n, sizeof *q);
    if (q == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t l = 0; l < noise->n_levels; l++) {
        size_t n_q = noise->levels[l]->n_q;
        if (n_q > n - at) {
            break;
        }
        memcpy(q + at, noise->levels[l]->q, n_q * sizeof *q);
        at += n_q;
    }
    if (at != n) {
        return HEARTH_FAIL(&cli->err, HEARTH_CORRUPT,
                           "the server judged other frames than it sent");
    }
    *ret = q;

    return HEARTH_OK;
}

/* How noise was judged, or why it was not; in the arena. */
static const char *noise_sentence(struct cli *cli, const Hearth__V1__DiffNoise *noise)
{
    if (noise == NULL) {
        return "Noise is not known";
    }
    if (noise->method == HEARTH__V1__NOISE_METHOD__NOISE_METHOD_UNSPECIFIED) {
        return hearth_arena_printf(&cli->arena, "Noise is not known: %s", noise->reason);
    }
    return hearth_arena_printf(
        &cli->arena,
        "%lld of %lld functions with at least 0.1 %% of a side changed beyond noise%s%s",
        (long long)noise->changed_functions, (long long)noise->judged_functions,
        noise->reason[0] != '\0' ? "; " : "", noise->reason);
}

enum hearth_status flame_output_read_diff(struct cli *cli,
                                          const Querier__V1__FlameGraphDiff *answer,
                                          const Hearth__V1__DiffNoise *noise,
                                          const struct flame_export_facts *facts,
                                          struct flame_export *ret)
{
    struct hearth_flame_diff diff = {.n_names = answer->n_names, .n_levels = answer->n_levels};
    struct flame_export_facts said = *facts;
    const float *q = NULL;

    HEARTH_TRY(flame_output_take_names(cli, answer->names, answer->n_names, &diff.names));
    HEARTH_TRY(flame_output_take_levels(cli, answer->levels, answer->n_levels, &diff.levels));
    HEARTH_TRY(gather_q(cli, &diff, noise, &q));
    said.noise = noise_sentence(cli, noise);

    return flame_export_read_diff(&diff, q, &said, &cli->arena, ret, &cli->err);
}

enum cli_exit flame_output_diff(struct cli *cli, const struct flame_export *diff)
{
    assert(diff->n_sides == 2);

    return write_export_output(cli, diff);
}
