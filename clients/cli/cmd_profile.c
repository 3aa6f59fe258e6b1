/* cmd_profile.c -- merged profiles: as pprof, collapsed, JSON, and the exact table of functions. */
#include "hearth/codec/compress.h"
#include "hearth/codec/json_writer.h"
#include "hearth/format/collapsed.h"
#include "hearth/model/stacktree.h"

#include "cli.h"

#include <errno.h>
#include <stdio.h>

static enum hearth_status ask(struct cli *cli,
                              const char **ret_type,
                              struct hearth_str *ret_wire,
                              struct hearth_profile *ret_profile)
{
    const char *selector;
    HEARTH_TRY(cli_selector(cli, 0, &selector));
    HEARTH_TRY(cli_resolve_range(cli));
    HEARTH_TRY(cli_profile_type(cli, selector, ret_type));
    return cli_ask_profile(cli, *ret_type, selector, ret_wire, ret_profile);
}

static enum cli_exit save_pprof(struct cli *cli, struct hearth_str wire, uint32_t n_samples)
{
    struct hearth_buf packed;
    hearth_buf_init(&packed, 0);
    enum hearth_status status = hearth_gzip(wire, 6, &packed, &cli->err);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    FILE *file = fopen(cli->output_file, "wbe");
    bool ok = file != NULL && fwrite(packed.p, 1, packed.n, file) == packed.n;
    int saved = errno;
    if (file != NULL && fclose(file) != 0) {
        ok = false;
    }
    if (!ok) {
        (void)fprintf(stderr, "hearth: cannot write %s: %s\n", cli->output_file,
                      strerrordesc_np(saved));
    } else {
        (void)fprintf(stderr, "wrote %s: %u stacks, %zu bytes\n", cli->output_file, n_samples,
                      packed.n);
    }
    hearth_buf_release(&packed);
    return ok ? CLI_OK : CLI_FAILED;
}

static void print_top(const struct cli *cli,
                      const struct hearth_stacktree *tree,
                      const struct hearth_function_total *rows,
                      size_t n,
                      struct hearth_str unit,
                      struct hearth_buf *out)
{
    int64_t total = tree->nodes[0].total;
    size_t limit = cli->has_limit ? (size_t)cli->limit : 30;
    char self[48], sum[48];
    cli_value((double)total, unit, sum);
    hearth_buf_printf(out, "%10s %7s %10s %7s  function\n", "self", "%", "total", "%");
    for (size_t i = 0; i < n && i < limit; i++) {
        cli_value((double)rows[i].self, unit, self);
        cli_value((double)rows[i].total, unit, sum);
        hearth_buf_printf(out, "%10s %6.2f%% %10s %6.2f%%  ", self,
                          100.0 * (double)rows[i].self / (double)total, sum,
                          100.0 * (double)rows[i].total / (double)total);
        cli_fit(tree->names[rows[i].name], cli->width > 60 ? cli->width - 42 : 40, false, out);
        hearth_buf_byte(out, '\n');
    }
    cli_value((double)total, unit, sum);
    if (n > limit) {
        hearth_buf_printf(out, "%zu of %zu functions shown; --limit shows more\n", limit, n);
    }
    hearth_buf_printf(out, "total: %s\n", sum);
}

static void json_top(const struct hearth_stacktree *tree,
                     const struct hearth_function_total *rows,
                     size_t n,
                     const char *type,
                     struct hearth_buf *out)
{
    struct hearth_json json;
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "profileTypeID");
    hearth_json_string_c(&json, type);
    hearth_json_key_c(&json, "total");
    hearth_json_i64_string(&json, tree->nodes[0].total);
    hearth_json_key_c(&json, "functions");
    hearth_json_array(&json);
    for (size_t i = 0; i < n; i++) {
        hearth_json_object(&json);
        hearth_json_key_c(&json, "name");
        hearth_json_string(&json, tree->names[rows[i].name]);
        hearth_json_key_c(&json, "self");
        hearth_json_i64_string(&json, rows[i].self);
        hearth_json_key_c(&json, "total");
        hearth_json_i64_string(&json, rows[i].total);
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
}

enum cli_exit cli_top(struct cli *cli)
{
    const char *type = NULL;
    struct hearth_str wire;
    struct hearth_profile profile;
    if (cli->output != CLI_TABLE && cli->output != CLI_JSON) {
        return cli_usage("query top prints table or json");
    }
    enum hearth_status status = ask(cli, &type, &wire, &profile);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (profile.n_samples == 0) {
        return cli_no_data(cli);
    }
    struct hearth_stacktree tree;
    struct hearth_function_total *rows = NULL;
    size_t n = 0;
    struct hearth_profile_type parts;
    hearth_stacktree_init(&tree, &cli->arena);
    status = hearth_stacktree_add_profile(&tree, &profile, 0, &cli->err);
    if (status == HEARTH_OK) {
        status = hearth_stacktree_seal(&tree, &cli->err);
    }
    if (status == HEARTH_OK) {
        status = hearth_stacktree_functions(&tree, &cli->arena, &rows, &n, &cli->err);
    }
    if (status == HEARTH_OK) {
        status = hearth_profile_type_parse(hearth_str_c(type), &parts, &cli->err);
    }
    enum cli_exit code = CLI_OK;
    if (status != HEARTH_OK) {
        code = cli_fail(cli, status);
    } else {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        if (cli->output == CLI_JSON) {
            json_top(&tree, rows, cli->has_limit && (size_t)cli->limit < n ? (size_t)cli->limit : n,
                     type, &out);
        } else {
            print_top(cli, &tree, rows, n, parts.sample_unit, &out);
        }
        code = cli_print(&out);
    }
    hearth_stacktree_release(&tree);
    return code;
}

enum cli_exit cli_profile(struct cli *cli)
{
    if (cli->output == CLI_TABLE) {
        return cli_top(cli);
    }
    const char *type;
    struct hearth_str wire;
    struct hearth_profile profile;
    enum hearth_status status = ask(cli, &type, &wire, &profile);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (profile.n_samples == 0) {
        return cli_no_data(cli);
    }
    if (cli->output == CLI_PPROF) {
        return save_pprof(cli, wire, profile.n_samples);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_COLLAPSED) {
        hearth_collapsed_encode(&profile, 0, &out);
        return cli_print(&out);
    }
    struct ProtobufCMessage *message;
    status =
        hearth_pb_unpack(&google__v1__profile__descriptor, wire, &cli->arena, &message, &cli->err);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth_pb_to_json(message, &out);
    hearth_buf_byte(&out, '\n');
    return cli_print(&out);
}
