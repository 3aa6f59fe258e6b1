/* cmd_ready.c -- hearth ready: whether a server takes work, and otherwise why not. */
#include "hearth/base/clock.h"
#include "hearth/codec/json_writer.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#define PAUSE_NS (250 * HEARTH_NS_PER_MS)

/* One check. The reason is empty for a server that has nothing to say. */
static enum hearth_status check_health(struct cli *cli, bool *ret_ready, struct hearth_buf *reason)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckResponse *answer = NULL;

    reason->n = 0;
    cli->kept_notes = reason;
    enum hearth_status status =
        cli_call(cli, "grpc.health.v1.Health/Check", &request,
                 &grpc__health__v1__health_check_response__descriptor, &answer);
    cli->kept_notes = NULL;
    *ret_ready = status == HEARTH_OK &&
                 answer->status == GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;

    return status;
}

/* Checks until the server is ready or the time is over. */
static enum hearth_status wait_for_ready(struct cli *cli, int64_t wait_ns, bool *ret_ready,
                                         struct hearth_buf *reason)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int64_t end_ns = hearth_clock_mono_ns() + wait_ns;

    enum hearth_status status = check_health(cli, ret_ready, reason);
    while (!*ret_ready && hearth_clock_mono_ns() + PAUSE_NS < end_ns &&
           (status == HEARTH_OK || status == HEARTH_UNAVAILABLE ||
            status == HEARTH_DEADLINE_EXCEEDED)) {
        (void)nanosleep(&pause, NULL);
        status = check_health(cli, ret_ready, reason);
    }

    return status;
}

static void json_ready(bool is_ready, struct hearth_str reason, struct hearth_buf *out)
{
    struct hearth_json json;

    /* As /ready answers, which tells degraded from ready, too. */
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "ready");
    hearth_json_bool(&json, is_ready);
    hearth_json_key_c(&json, "degraded");
    hearth_json_bool(&json, is_ready && reason.n > 0);
    hearth_json_key_c(&json, "reasons");
    hearth_json_array(&json);
    if (reason.n > 0) {
        hearth_json_string(&json, reason);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
}

enum cli_exit cli_ready(struct cli *cli)
{
    struct hearth_buf reason, out;
    int64_t wait_ns = 0;
    bool is_ready = false;

    enum hearth_status status = HEARTH_OK;
    if (cli->wait_for != NULL) {
        status = hearth_duration_parse(hearth_str_c(cli->wait_for), &wait_ns, &cli->err);
    }
    hearth_buf_init(&reason, 0);
    if (status == HEARTH_OK) {
        status = wait_for_ready(cli, wait_ns, &is_ready, &reason);
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&reason);
        return cli_fail(cli, status);
    }

    hearth_buf_init(&out, 0);
    if (cli->output == CLI_JSON) {
        json_ready(is_ready, hearth_buf_view(&reason), &out);
    } else {
        hearth_buf_cstr(&out, !is_ready ? "not ready" : reason.n > 0 ? "ready, degraded" : "ready");
        hearth_buf_cstr(&out, reason.n > 0 ? ": " : "");
        cli_fit(hearth_buf_view(&reason), INT_MAX, false, &out);
        hearth_buf_byte(&out, '\n');
    }
    hearth_buf_release(&reason);
    enum cli_exit code = cli_print(&out);

    return code != CLI_OK || is_ready ? code : CLI_SERVER;
}
