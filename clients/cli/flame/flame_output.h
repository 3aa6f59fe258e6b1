/*
 * flame_output.h -- answers of commands as the files of flame_export.h: -o html, svg, speedscope and dot, and
 * -o flame, the text tree.
 */
#ifndef HEARTH_CLIENTS_FLAME_OUTPUT_H
#define HEARTH_CLIENTS_FLAME_OUTPUT_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"
#include "flame_export.h"

/* Whether -o names one of these outputs. */
bool flame_output_is_chosen(const struct cli *cli);

/* The selector, type and range of a query, in the arena. */
void flame_output_query_facts(struct cli *cli, const char *selector, const char *type,
                              struct flame_export_facts *ret);
/* The name of a file without its path, which says where its reader keeps it. Borrows. */
const char *flame_output_file_title(const char *path);
/* "11-20 10:36:00 to 11-20 11:36:00 CET", in the arena. */
char *flame_output_range(struct cli *cli, int64_t from_ms, int64_t to_ms);

/* The names and levels of an answer as those of the model, in the arena; texts and values are borrowed. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status flame_output_take_names(struct cli *cli, char **texts, size_t n,
                                           struct hearth_str **ret);
HEARTH_MUST_CHECK
enum hearth_status flame_output_take_levels(struct cli *cli, Querier__V1__Level **in, size_t n,
                                            struct hearth_flame_level **ret);

/* Appends the text tree of a graph with total > 0. */
HEARTH_MUST_CHECK
enum hearth_status flame_output_text(struct cli *cli, const struct hearth_flamegraph *graph,
                                     struct hearth_str unit, struct hearth_buf *out);

/* Writes a graph with total > 0 as -o says, but for dot. */
enum cli_exit flame_output_graph(struct cli *cli, const struct hearth_flamegraph *graph,
                                 const struct flame_export_facts *facts);
/* Writes the first type of a profile, with at most --max-nodes nodes. CLI_NO_DATA if it has no samples. */
enum cli_exit flame_output_profile(struct cli *cli, const struct hearth_profile *profile,
                                   const struct flame_export_facts *facts);
/* Appends the JSON of a graph, a FlameGraph of querier.v1 as servers answer it, and a line feed. */
HEARTH_MUST_CHECK
enum hearth_status flame_output_json(struct cli *cli, const struct hearth_flamegraph *graph,
                                     struct hearth_buf *out);
/* Writes a sealed tree, with at most --max-nodes nodes. */
enum cli_exit flame_output_tree(struct cli *cli, const struct hearth_stacktree *tree,
                                const struct flame_export_facts *facts);
/*
 * Reads the answer to a diff into arrays of the arena; names and texts are borrowed, and facts->noise is replaced. `noise`
 * may be NULL. CORRUPT if one of them is malformed; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_output_read_diff(struct cli *cli,
                                          const Querier__V1__FlameGraphDiff *answer,
                                          const Hearth__V1__DiffNoise *noise,
                                          const struct flame_export_facts *facts,
                                          struct flame_export *ret);
/* Writes a diff as -o html, svg or speedscope says. The facts need both sides. */
enum cli_exit flame_output_diff(struct cli *cli, const struct flame_export *diff);

#endif
