/* cmd_trace.h -- what the files of `hearth trace` share. */
#ifndef HEARTH_CLIENTS_CLI_CMD_TRACE_H
#define HEARTH_CLIENTS_CLI_CMD_TRACE_H

#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "cli.h"

#define CLI_TRACES "hearth.v1.TraceProfileService/"

enum cli_id_of {
    CLI_OF_TRACE,
    CLI_OF_SPAN,
    CLI_OF_ROOT,
    CLI_OF_WINDOW, /* no id was given */
};

/* What was found of one id; `lookup` is there, its certainty may say that nothing was. */
struct cli_found {
    enum cli_id_of of;
    Hearth__V1__Lookup *lookup;
};

/* ---- trace_found.c ---- */

/* The type of --type, else the preferred one (cli_prefer_type), else "". *ret_n: the number of types. */
const char *cli_trace_type(const struct cli *cli, const struct cli_found *found, size_t n,
                           size_t *ret_n);

/* As cli_fail; where was looked has a line of its own. */
enum cli_exit cli_trace_fail(struct cli *cli, enum hearth_status status);

/* ---- cmd_trace_text.c ---- */

/* Append all that is known, and the command that asks further. */
HEARTH_MUST_CHECK enum hearth_status cli_trace_print(struct cli *cli, const struct cli_found *found,
                                                     struct hearth_buf *out);

/* ---- cmd_trace_profile.c ---- */

/* Whether -o names an output that has stack traces, and holds one profile. */
bool cli_trace_wants_stacks(const struct cli *cli);
/* --flame, --top, or an output that only profiles have. */
bool cli_trace_wants_profile(const struct cli *cli);
/* The merged stack traces of what was found. */
enum cli_exit cli_trace_profile(struct cli *cli, const struct cli_found *found, size_t n);

#endif
