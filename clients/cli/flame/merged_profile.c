/* merged_profile.c -- merged profiles as pprof, collapsed stacks, JSON and pictures. */
#include "merged_profile.h"

#include "hearth/codec/compress.h"
#include "hearth/format/collapsed.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "flame_output.h"
#include "text.h"
#include "why.h"

#include <stdio.h>

enum hearth_status cli_ask_merged(struct cli *cli, const char **ret_type,
                                  struct hearth_str *ret_wire, struct hearth_profile *ret_profile)
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

enum cli_exit cli_put_merged(struct cli *cli)
{
    const char *type;
    struct hearth_str wire;
    struct hearth_profile profile;
    enum hearth_status status = cli_ask_merged(cli, &type, &wire, &profile);
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
