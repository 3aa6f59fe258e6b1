/*
 * cmd_probe.c -- hearth probe: pushes a small known profile, asks for it, and compares.
 *
 * All probes of a machine are one series, and one family of symbols: a store does not grow by more
 * than the profiles. Their time and values tell them apart. They stay as long as other profiles.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/codec/json_writer.h"
#include "hearth/format/collapsed.h"
#include "hearth/format/pprof.h"
#include "hearth/pb/push/v1/push.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "text.h"

#include <stdio.h>
#include <unistd.h>

#define PROBE_SERVICE "hearth-probe"
#define PROBE_NAME    "hearth_probe"
#define PROBE_TYPE    PROBE_NAME ":samples:count::"
#define N_SEEDS       1000000

struct probe {
    int64_t at_ms;  /* time of the profile */
    char sent[160]; /* as collapsed stacks, sorted */
    char host[65];  /* a label */
    double push_ms, query_ms;
};

static void plan_probe(struct cli *cli, struct probe *ret)
{
    int64_t seed = cli->now_ns / 1000 % N_SEEDS;

    *ret = (struct probe){.at_ms = cli->now_ns / HEARTH_NS_PER_MS};
    (void)snprintf(ret->sent, sizeof ret->sent, "probe;ask %lld\nprobe;push %lld\n",
                   (long long)(seed + 1), (long long)(N_SEEDS + seed));

    /* It stands in a selector. */
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (gethostname(ret->host, sizeof ret->host - 1) != 0 || ret->host[0] == '\0' ||
        ret->host[strspn(ret->host, plain)] != '\0') {
        (void)snprintf(ret->host, sizeof ret->host, "unknown");
    }
}

/* ---- push ---- */

static enum hearth_status encode_probe(struct cli *cli, const struct probe *probe,
                                       struct hearth_buf *ret)
{
    struct hearth_profile profile;
    struct hearth_buf wire;

    HEARTH_TRY(hearth_collapsed_decode(hearth_str_c(probe->sent), HEARTH_STR("samples"),
                                       HEARTH_STR("count"), 1, &cli->arena, &profile, &cli->err));
    profile.time_ns = probe->at_ms * HEARTH_NS_PER_MS;
    hearth_buf_init(&wire, 0);
    hearth_pprof_encode(&profile, &wire);
    enum hearth_status status = hearth_gzip(hearth_buf_view(&wire), 6, ret, &cli->err);
    hearth_buf_release(&wire);

    return status;
}

static enum hearth_status push_probe(struct cli *cli, const struct probe *probe)
{
    Push__V1__RawSample sample = PUSH__V1__RAW_SAMPLE__INIT, *samples[] = {&sample};
    Push__V1__RawProfileSeries one = PUSH__V1__RAW_PROFILE_SERIES__INIT, *series[] = {&one};
    Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
    Push__V1__PushResponse *answer;
    struct hearth_buf packed;
    const char *own[] = {"__name__=" PROBE_NAME, "service_name=" PROBE_SERVICE,
                         hearth_arena_printf(&cli->arena, "host=%s", probe->host)};

    HEARTH_TRY(cli_label_pairs(cli, own, HEARTH_ARRAY_LEN(own), &one.labels, &one.n_labels));
    hearth_buf_init(&packed, 0);
    enum hearth_status status = encode_probe(cli, probe, &packed);
    if (status == HEARTH_OK) {
        sample.raw_profile = (ProtobufCBinaryData){packed.n, (uint8_t *)packed.p};
        one.samples = samples;
        one.n_samples = 1;
        request.series = series;
        request.n_series = 1;
        status = cli_call(cli, "push.v1.PusherService/Push", &request,
                          &push__v1__push_response__descriptor, &answer);
    }
    hearth_buf_release(&packed);

    return status;
}

/* ---- query ---- */

/* ABORTED: the answer is not what was pushed. */
static enum hearth_status ask_probe(struct cli *cli, const struct probe *probe)
{
    Hearth__V1__Selection selection = HEARTH__V1__SELECTION__INIT;
    struct hearth_profile profile;
    struct hearth_str wire;
    struct hearth_buf text;

    selection.profile_type = cli_field(cli, PROBE_TYPE);
    selection.label_selector = hearth_arena_printf(
        &cli->arena, "{service_name=\"" PROBE_SERVICE "\",host=\"%s\"}", probe->host);
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    selection.start = selection.end = probe->at_ms;
    HEARTH_TRY(cli_ask_profile(cli, &selection, &wire, &profile));
    if (profile.n_samples == 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_ABORTED,
                           "the profile was acknowledged, but a query does not find it");
    }

    hearth_buf_init(&text, 0);
    hearth_collapsed_encode(&profile, 0, &text);
    bool is_same = hearth_str_eq_c(hearth_buf_view(&text), probe->sent);
    hearth_buf_release(&text);

    return is_same ? HEARTH_OK
                   : HEARTH_FAIL(&cli->err, HEARTH_ABORTED,
                                 "the answer differs from the profile that was pushed");
}

/* ---- the command ---- */

static enum hearth_status run_probe(struct cli *cli, struct probe *probe)
{
    int64_t start_ns = hearth_clock_mono_ns();
    enum hearth_status status = push_probe(cli, probe);

    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "push");
        return status;
    }
    int64_t pushed_ns = hearth_clock_mono_ns();
    status = ask_probe(cli, probe);
    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "query");
        return status;
    }
    probe->push_ms = (double)(pushed_ns - start_ns) / (double)HEARTH_NS_PER_MS;
    probe->query_ms = (double)(hearth_clock_mono_ns() - pushed_ns) / (double)HEARTH_NS_PER_MS;

    return HEARTH_OK;
}

enum cli_exit cli_probe(struct cli *cli)
{
    struct probe probe;

    plan_probe(cli, &probe);
    enum hearth_status status = run_probe(cli, &probe);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_JSON) {
        struct hearth_json json;
        hearth_json_init(&json, &out);
        hearth_json_object(&json);
        hearth_json_key_c(&json, "pushMs");
        hearth_json_double(&json, probe.push_ms);
        hearth_json_key_c(&json, "queryMs");
        hearth_json_double(&json, probe.query_ms);
        hearth_json_object_end(&json);
        hearth_buf_byte(&out, '\n');
    } else {
        hearth_buf_printf(&out,
                          "push   %8.1f ms  acknowledged\nquery  %8.1f ms  the same profile\n",
                          probe.push_ms, probe.query_ms);
    }

    return cli_print(&out);
}
