/* cmd_profile.c -- merged profiles: as pprof, collapsed, JSON, and the exact table of functions. */
#include "hearth/codec/compress.h"
#include "hearth/format/collapsed.h"
#include "hearth/model/profile_type.h"

#include "cli.h"
#include "flame_output.h"

#include <stdio.h>

static enum hearth_status ask_merged(struct cli *cli, const char **ret_type,
                                     struct hearth_str *ret_wire,
                                     struct hearth_profile *ret_profile)
{
    Hearth__V1__Selection selection;
    HEARTH_TRY(cli_selection(cli, 0, &selection));
    *ret_type = selection.profile_type;
    return cli_ask_profile(cli, &selection, ret_wire, ret_profile);
}

enum cli_exit cli_save_pprof(struct cli *cli, struct hearth_str wire, uint32_t n_samples)
{
    struct hearth_buf packed;

    hearth_buf_init(&packed, 0);
    enum hearth_status status = hearth_gzip(wire, 6, &packed, &cli->err);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    char what[64];
    (void)snprintf(what, sizeof what, "%u stacks, ", n_samples);
    enum cli_exit code = cli_save(cli->output_file, hearth_buf_view(&packed), what);
    hearth_buf_release(&packed);

    return code;
}

/* Whether Go's compiler takes the type: samples or time of a processor. */
static bool is_pgo_type(const char *type)
{
    struct hearth_profile_type parts;

    return hearth_profile_type_parse(hearth_str_c(type), &parts, NULL) == HEARTH_OK &&
           ((hearth_str_eq_c(parts.sample_type, "samples") &&
             hearth_str_eq_c(parts.sample_unit, "count")) ||
            (hearth_str_eq_c(parts.sample_type, "cpu") &&
             hearth_str_eq_c(parts.sample_unit, "nanoseconds")));
}

enum cli_exit cli_go_pgo(struct cli *cli)
{
    const char *type;
    struct hearth_str wire;
    struct hearth_profile profile;

    if (cli->keep_locations > UINT32_MAX) {
        return cli_usage("--keep-locations is too large");
    }
    cli->is_for_pgo = true;
    if (cli->output_file == NULL) {
        cli->output_file = "default.pgo"; /* which `go build` finds beside package main */
    }
    enum hearth_status status = ask_merged(cli, &type, &wire, &profile);
    if (status == HEARTH_OK && !is_pgo_type(type)) {
        status = HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                             "%.200s is no CPU profile, which Go's compiler needs; choose one with "
                             "--type",
                             type);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    return profile.n_samples == 0 ? cli_no_data(cli) : cli_save_pprof(cli, wire, profile.n_samples);
}

enum cli_exit cli_profile(struct cli *cli)
{
    if (cli->output == CLI_TABLE) {
        return cli_top(cli);
    }
    if (cli->output == CLI_JSON && cli->transforms.n > 0) {
        return cli_usage("query profile -o json has the stored stack traces; hearth flame -o json "
                         "has transformed ones");
    }
    if (cli->output == CLI_DOT || cli->transforms.n > 0) {
        return cli_flame(cli);
    }
    const char *type;
    struct hearth_str wire;
    struct hearth_profile profile;
    enum hearth_status status = ask_merged(cli, &type, &wire, &profile);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (profile.n_samples == 0) {
        return cli_no_data(cli);
    }
    if (cli->output == CLI_PPROF) {
        return cli_save_pprof(cli, wire, profile.n_samples);
    }
    if (flame_output_is_chosen(cli)) {
        struct flame_export_facts facts;
        flame_output_query_facts(cli, cli->selector, type, &facts);
        return flame_output_profile(cli, &profile, &facts);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_COLLAPSED) {
        hearth_collapsed_encode(&profile, 0, &out);
        return cli_print_exact(&out);
    }
    struct ProtobufCMessage *message;
    status =
        hearth_pb_unpack(&google__v1__profile__descriptor, wire, &cli->arena, &message, &cli->err);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    return cli_print_answer(cli, message, &out);
}
