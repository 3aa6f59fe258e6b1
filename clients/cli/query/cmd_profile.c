/* cmd_profile.c -- `query profile` and `query go-pgo`. */
#include "hearth/model/profile_type.h"

#include "cli_messages.h"
#include "merged_profile.h"
#include "why.h"

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
    enum hearth_status status = cli_ask_merged(cli, &type, &wire, &profile);
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

    return cli_put_merged(cli);
}
