/*
 * svc_sw_meters.c -- skywalking.v3.MeterReportService: metrics of policies and of network profiling
 * that eBPF agents send. Metrics of language agents are accepted and not stored.
 *
 * A stream of `collect` is one set, whose first message names the service, the instance and the
 * time; each message is handled when it arrives. Each message of `collectBatch` is one set.
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/engine/meters.h"
#include "hearth/pb/skywalking/v3/meter.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

#include <assert.h>
#include <math.h>

#define KEPT_PREFIX "rover_"

/* ---- messages ---- */

static enum hearth_status check_meter_text(struct hearth_rpc *rpc, const char *what,
                                           const char *option, struct hearth_str text,
                                           int64_t max_bytes)
{
    if (max_bytes > 0 && text.n > (size_t)max_bytes) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "%s of a meter has %zu bytes, more than the %lld that %s allows", what,
                           text.n, (long long)max_bytes, option);
    }

    return HEARTH_OK;
}

static enum hearth_status read_meter_labels(struct hearth_rpc *rpc,
                                            const struct hearth_limits *limits,
                                            Skywalking__V3__Label *const *in, size_t n,
                                            struct hearth_meter *ret)
{
    if (limits->max_sample_labels > 0 && n > (size_t)limits->max_sample_labels) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "a meter has %zu labels, more than the %lld that max-sample-labels"
                           " allows",
                           n, (long long)limits->max_sample_labels);
    }

    ret->labels = hearth_arena_array(&rpc->arena, n, sizeof ret->labels[0]);
    ret->n_labels = n;
    if (ret->labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        ret->labels[i] =
            (struct hearth_label){hearth_str_c(in[i]->name), hearth_str_c(in[i]->value)};
        HEARTH_TRY(check_meter_text(rpc, "the name of a label", "max-label-name-bytes",
                                    ret->labels[i].name, limits->max_label_name_bytes));
        HEARTH_TRY(check_meter_text(rpc, "the value of a label", "max-label-value-bytes",
                                    ret->labels[i].value, limits->max_label_value_bytes));
    }

    return HEARTH_OK;
}

static enum hearth_status read_buckets(struct hearth_rpc *rpc,
                                       const Skywalking__V3__MeterHistogram *in,
                                       struct hearth_meter *ret)
{
    ret->buckets = hearth_arena_array(&rpc->arena, in->n_values, sizeof ret->buckets[0]);
    ret->n_buckets = in->n_values;
    if (ret->buckets == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_values; i++) {
        const Skywalking__V3__MeterBucketValue *bucket = in->values[i];
        if (!bucket->isnegativeinfinity && !isfinite(bucket->bucket)) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                               "bucket %zu of meter \"%s\" is not a finite number", i + 1,
                               in->name);
        }

        ret->buckets[i] = (struct hearth_meter_bucket){
            bucket->isnegativeinfinity ? -(double)INFINITY : bucket->bucket, bucket->count};
    }

    return HEARTH_OK;
}

static const char *get_meter_name(const Skywalking__V3__MeterData *in)
{
    switch (in->metric_case) {
    case SKYWALKING__V3__METER_DATA__METRIC_SINGLE_VALUE:
        return in->singlevalue->name;
    case SKYWALKING__V3__METER_DATA__METRIC_HISTOGRAM:
        return in->histogram->name;
    default:
        return "";
    }
}

static enum hearth_status read_meter(struct hearth_rpc *rpc, const struct hearth_limits *limits,
                                     const Skywalking__V3__MeterData *in, struct hearth_meter *ret)
{
    *ret = (struct hearth_meter){.name = hearth_str_c(get_meter_name(in))};
    HEARTH_TRY(check_meter_text(rpc, "the name", "max-label-name-bytes", ret->name,
                                limits->max_label_name_bytes));

    if (in->metric_case == SKYWALKING__V3__METER_DATA__METRIC_HISTOGRAM) {
        HEARTH_TRY(
            read_meter_labels(rpc, limits, in->histogram->labels, in->histogram->n_labels, ret));
        return read_buckets(rpc, in->histogram, ret);
    }

    if (!isfinite(in->singlevalue->value)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "the value of meter \"%s\" is not a finite number",
                           in->singlevalue->name);
    }

    ret->value = in->singlevalue->value;

    return read_meter_labels(rpc, limits, in->singlevalue->labels, in->singlevalue->n_labels, ret);
}

/* ---- sets ---- */

static enum hearth_status take_meters(struct hearth_rpc *rpc, struct hearth_meter_set *set,
                                      Skywalking__V3__MeterData *const *in, size_t n)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_limits limits;

    hearth_query_tenant_limits(rpc->front->query, call.tenant, &limits);
    if (limits.max_meters > 0 && n > (size_t)limits.max_meters) {
        return HEARTH_FAIL(&rpc->err, HEARTH_RESOURCE_EXHAUSTED,
                           "a set has %zu meters, more than the %lld that max-meters allows", n,
                           (long long)limits.max_meters);
    }

    set->meters = hearth_arena_array(&rpc->arena, n, sizeof set->meters[0]);
    if (set->meters == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    set->n_meters = 0;

    for (size_t i = 0; i < n; i++) {
        if (hearth_str_starts(hearth_str_c(get_meter_name(in[i])), HEARTH_STR(KEPT_PREFIX))) {
            HEARTH_TRY(read_meter(rpc, &limits, in[i], &set->meters[set->n_meters++]));
        }
    }

    size_t n_monitors = 0, n_network = 0;
    if (set->n_meters > 0) {
        HEARTH_TRY(hearth_monitors_take(&call, set, &n_monitors, &rpc->err));
        HEARTH_TRY(hearth_network_take(&call, set, &n_network, &rpc->err));
    }

    /* Each meter belongs to monitors, to the network, or is dropped. */
    assert(n_monitors + n_network <= n);
    hearth_metric_add_label(HEARTH_M_AGENT_METERS, HEARTH_STR("monitors"), (int64_t)n_monitors);
    hearth_metric_add_label(HEARTH_M_AGENT_METERS, HEARTH_STR("network"), (int64_t)n_network);
    hearth_metric_add_label(HEARTH_M_AGENT_METERS, HEARTH_STR("dropped"),
                            (int64_t)(n - n_monitors - n_network));

    return HEARTH_OK;
}

static enum hearth_status take_batch(struct hearth_rpc *rpc,
                                     const Skywalking__V3__MeterDataCollection *in)
{
    struct hearth_meter_set set = {0};

    if (in->n_meterdata > 0) {
        set.service = hearth_str_c(in->meterdata[0]->service);
        set.instance = hearth_str_c(in->meterdata[0]->serviceinstance);
        set.at_ms = in->meterdata[0]->timestamp;
    }

    return take_meters(rpc, &set, in->meterdata, in->n_meterdata);
}

void hearth_svc_sw_collect_meter_batch(struct hearth_rpc *rpc)
{
    const Skywalking__V3__MeterDataCollection *in =
        (const Skywalking__V3__MeterDataCollection *)rpc->request;

    hearth_rpc_finish_run(rpc, in == NULL ? HEARTH_OK : take_batch(rpc, in));
}

/* ---- one set for a stream ---- */

/* The service, the instance and the time that the first message of a stream named. */
struct header {
    int64_t at_ms;
    size_t service_n, instance_n;
    char text[]; /* service, then instance; not terminated */
};

/* A message that names a service replaces the header. */
static enum hearth_status keep_meter_header(struct hearth_rpc *rpc,
                                            const Skywalking__V3__MeterData *in)
{
    struct hearth_str service = hearth_str_c(in->service);
    struct hearth_str instance = hearth_str_c(in->serviceinstance);

    if (service.n == 0) {
        return HEARTH_OK;
    }

    struct hearth_limits limits;
    hearth_query_tenant_limits(rpc->front->query, hearth_rpc_tenant(rpc), &limits);
    HEARTH_TRY(check_meter_text(rpc, "the service", "max-label-value-bytes", service,
                                limits.max_label_value_bytes));
    HEARTH_TRY(check_meter_text(rpc, "the instance", "max-label-value-bytes", instance,
                                limits.max_label_value_bytes));

    struct header *header = hearth_mem_alloc(sizeof *header + service.n + instance.n);
    if (header == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "cannot allocate the head of a stream");
    }

    header->at_ms = in->timestamp;
    header->service_n = service.n;
    header->instance_n = instance.n;
    memcpy(header->text, service.p, service.n);

    if (instance.n > 0) {
        memcpy(header->text + service.n, instance.p, instance.n);
    }

    hearth_mem_free(rpc->session);
    rpc->session = header;
    rpc->free_session = hearth_mem_free;

    return HEARTH_OK;
}

static enum hearth_status take_meter(struct hearth_rpc *rpc, Skywalking__V3__MeterData *in)
{
    HEARTH_TRY(keep_meter_header(rpc, in));

    const struct header *header = rpc->session;
    struct hearth_meter_set set = {0};
    assert(header == NULL || header->service_n > 0);

    if (header != NULL) {
        set.service = hearth_str_n(header->text, header->service_n);
        set.instance = hearth_str_n(header->text + header->service_n, header->instance_n);
        set.at_ms = header->at_ms;
    }

    return take_meters(rpc, &set, &in, 1);
}

void hearth_svc_sw_collect_meters(struct hearth_rpc *rpc)
{
    Skywalking__V3__MeterData *in =
        (Skywalking__V3__MeterData *)(uintptr_t)(const void *)rpc->request;

    hearth_rpc_finish_run(rpc, in == NULL ? HEARTH_OK : take_meter(rpc, in));
}
