/* trace_found.c -- what was found of ids, for the commands that print it. */
#include "ask.h"
#include "cli_messages.h"
#include "cmd_trace.h"

const char *cli_trace_type(const struct cli *cli, const struct cli_found *found, size_t n,
                           size_t *ret_n)
{
    const char *best = "";
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        const Hearth__V1__Lookup *lookup = found[i].lookup;
        for (size_t k = 0; k < lookup->n_types; k++) {
            const char *type = lookup->types[k]->profile_type;
            best = best[0] == '\0' ? type : cli_prefer_type(best, type);
        }
        *ret_n = lookup->n_types > *ret_n ? lookup->n_types : *ret_n;
    }
    return cli->type != NULL ? cli->type : best;
}

enum cli_exit cli_trace_fail(struct cli *cli, enum hearth_status status)
{
    static const char searched[] = "; searched: ";
    char *at = status == HEARTH_NOT_FOUND ? strstr(cli->err.msg, searched) : NULL;
    if (at != NULL) {
        *at = '\0';
    }
    enum cli_exit code = cli_fail(cli, status);
    if (at != NULL) {
        cli_say("searched", at + strlen(searched));
    }
    return code;
}
