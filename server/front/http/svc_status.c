/* svc_status.c -- GET /api/v1/status/config: the configuration of this process. */
#include "handlers.h"
#include "http/http_call.h"
#include "rpc/front_internal.h"

void hearth_http_config(struct hearth_rpc *rpc)
{
    const struct hearth_front_options *options = &rpc->front->options;
    struct hearth_str path = hearth_str_c(rpc->method->path);

    if (options->write_config == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                                        "this server does not offer its configuration"));
        return;
    }

    options->write_config(options->hooks_context,
                          hearth_str_ends(path, HEARTH_STR("/diff")) ? HEARTH_FRONT_CONFIG_DIFF
                          : hearth_str_ends(path, HEARTH_STR("/default"))
                              ? HEARTH_FRONT_CONFIG_DEFAULT
                              : HEARTH_FRONT_CONFIG_ALL,
                          &rpc->packed);
    rpc->http->answer_type = "text/plain; charset=utf-8";
    hearth_rpc_end(rpc, HEARTH_OK);
}
