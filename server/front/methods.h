/* methods.h -- the table of RPCs (methods.def), and the handlers of these and of http_routes.def. Threads: immutable. */
#ifndef HEARTH_FRONT_METHODS_H
#define HEARTH_FRONT_METHODS_H

#include "hearth/base/str.h"

struct hearth_rpc;
struct ProtobufCMessageDescriptor;

enum hearth_method_pool {
    HEARTH_POOL_INGEST,
    HEARTH_POOL_QUERY,
};

enum hearth_method_flags {
    HEARTH_METHOD_TENANT = 1u << 0, /* belongs to a tenant */
    HEARTH_METHOD_INLINE = 1u << 1, /* small ones run on the transport's thread: never blocks */
    HEARTH_METHOD_STREAM = 1u << 2, /* the server streams; gRPC only */
    /* A stream both ways, an answer for each message: its handler runs on the transport's thread for each,
     * sets rpc->answer and rpc->status, and does not end the request. */
    HEARTH_METHOD_CHAT = 1u << 3,
    /* The client streams; gRPC only. With STREAM: both do. See "Collecting" in rpc.h. */
    HEARTH_METHOD_COLLECT = 1u << 4,
    /* Of SkyWalking's agents: their token is checked, and their tenant is the option's when they name none. Its
     * family can be switched off (agent_methods.h). */
    HEARTH_METHOD_AGENT = 1u << 5,
    /* Of OpenTelemetry's protocol: switched off by options of its own; errors of its plain routes are google.rpc.Status. */
    HEARTH_METHOD_OTLP = 1u << 6,
    /* Takes profiles: what is refused is counted by reason and client. */
    HEARTH_METHOD_UPLOAD = 1u << 7,
};

struct hearth_method {
    const char *path;                                            /* "/package.Service/Method" */
    const struct ProtobufCMessageDescriptor *request, *response; /* NULL: a plain HTTP route */
    void (*handle)(struct hearth_rpc *rpc);
    enum hearth_method_pool pool;
    unsigned flags;
};

/*
 * The method of a path, or NULL. Those of skywalking.v3 are also found without the package, those of
 * push.v1 also below /api/v1/profile.
 */
const struct hearth_method *hearth_method_find(struct hearth_str path);
/* Gives methods whose messages are counted their lines in /metrics. */
void hearth_methods_declare_metrics(void);
/* True for "" (the whole server) and the name of a service of the table. */
bool hearth_service_is_known(struct hearth_str service);
/* The services of the table, each once. */
size_t hearth_service_count(void);
const char *hearth_service_name(size_t i);

/* The handlers; each ends its request exactly once. */
void hearth_svc_push(struct hearth_rpc *rpc);
void hearth_svc_otlp_traces(struct hearth_rpc *rpc);
void hearth_svc_profile_types(struct hearth_rpc *rpc);
void hearth_svc_label_names(struct hearth_rpc *rpc);
void hearth_svc_label_values(struct hearth_rpc *rpc);
void hearth_svc_series(struct hearth_rpc *rpc);
void hearth_svc_select_merge_stacktraces(struct hearth_rpc *rpc);
void hearth_svc_select_merge_profile(struct hearth_rpc *rpc);
void hearth_svc_select_series(struct hearth_rpc *rpc);
void hearth_svc_select_merge_span_profile(struct hearth_rpc *rpc);
void hearth_svc_select_heatmap(struct hearth_rpc *rpc);
void hearth_svc_diff(struct hearth_rpc *rpc);
void hearth_svc_get_profile_stats(struct hearth_rpc *rpc);
void hearth_svc_analyze_query(struct hearth_rpc *rpc);
void hearth_svc_merge(struct hearth_rpc *rpc);
void hearth_svc_diff_selections(struct hearth_rpc *rpc);
void hearth_svc_timeline(struct hearth_rpc *rpc);
void hearth_svc_function_timeline(struct hearth_rpc *rpc);
void hearth_svc_label_stats(struct hearth_rpc *rpc);
void hearth_svc_top(struct hearth_rpc *rpc);
void hearth_svc_sandwich(struct hearth_rpc *rpc);
void hearth_svc_lines(struct hearth_rpc *rpc);
void hearth_svc_explain(struct hearth_rpc *rpc);
void hearth_svc_admin_status(struct hearth_rpc *rpc);
void hearth_svc_admin_doctor(struct hearth_rpc *rpc);
void hearth_svc_admin_rebuild(struct hearth_rpc *rpc);
void hearth_svc_admin_erase(struct hearth_rpc *rpc);
void hearth_svc_admin_erasures(struct hearth_rpc *rpc);
void hearth_svc_admin_get_retention(struct hearth_rpc *rpc);
void hearth_svc_admin_set_retention(struct hearth_rpc *rpc);
void hearth_svc_admin_get_limits(struct hearth_rpc *rpc);
void hearth_svc_admin_set_limits(struct hearth_rpc *rpc);
void hearth_svc_admin_get_tenant_settings(struct hearth_rpc *rpc);
void hearth_svc_admin_set_tenant_settings(struct hearth_rpc *rpc);
void hearth_svc_settings_get(struct hearth_rpc *rpc);
void hearth_svc_settings_set(struct hearth_rpc *rpc);
void hearth_svc_settings_delete(struct hearth_rpc *rpc);
void hearth_svc_rules_get(struct hearth_rpc *rpc);
void hearth_svc_rules_list(struct hearth_rpc *rpc);
void hearth_svc_rules_upsert(struct hearth_rpc *rpc);
void hearth_svc_rules_delete(struct hearth_rpc *rpc);
void hearth_svc_adhoc_upload(struct hearth_rpc *rpc);
void hearth_svc_adhoc_get(struct hearth_rpc *rpc);
void hearth_svc_adhoc_list(struct hearth_rpc *rpc);
void hearth_svc_adhoc_diff(struct hearth_rpc *rpc);
void hearth_svc_health_check(struct hearth_rpc *rpc);
void hearth_svc_health_watch(struct hearth_rpc *rpc);
void hearth_svc_version(struct hearth_rpc *rpc);
void hearth_svc_feature_flags(struct hearth_rpc *rpc);
void hearth_svc_reflection(struct hearth_rpc *rpc);
void hearth_svc_vcs(struct hearth_rpc *rpc);
void hearth_svc_sw_fetch_configurations(struct hearth_rpc *rpc);
void hearth_svc_sw_jvm_metrics(struct hearth_rpc *rpc);
void hearth_svc_sw_events(struct hearth_rpc *rpc);
void hearth_svc_sw_access_log(struct hearth_rpc *rpc);
void hearth_svc_sw_logs(struct hearth_rpc *rpc);
void hearth_svc_sw_span_events(struct hearth_rpc *rpc);
void hearth_svc_network_topology(struct hearth_rpc *rpc);
void hearth_svc_network_series(struct hearth_rpc *rpc);
void hearth_svc_network_requests(struct hearth_rpc *rpc);
void hearth_svc_network_request(struct hearth_rpc *rpc);
void hearth_svc_network_addresses(struct hearth_rpc *rpc);
void hearth_svc_network_addresses_set(struct hearth_rpc *rpc);
void hearth_svc_list_services(struct hearth_rpc *rpc);
void hearth_svc_list_instances(struct hearth_rpc *rpc);
void hearth_svc_list_processes(struct hearth_rpc *rpc);
void hearth_svc_get_process(struct hearth_rpc *rpc);
void hearth_svc_sw_report_processes(struct hearth_rpc *rpc);
void hearth_svc_sw_processes_alive(struct hearth_rpc *rpc);
void hearth_svc_sw_instance_properties(struct hearth_rpc *rpc);
void hearth_svc_sw_instance_alive(struct hearth_rpc *rpc);
void hearth_svc_sw_ebpf_tasks(struct hearth_rpc *rpc);
void hearth_svc_sw_trace_tasks(struct hearth_rpc *rpc);
void hearth_svc_sw_trace_finished(struct hearth_rpc *rpc);
void hearth_svc_sw_async_tasks(struct hearth_rpc *rpc);
void hearth_svc_sw_pprof_tasks(struct hearth_rpc *rpc);
void hearth_svc_task_prepare(struct hearth_rpc *rpc);
void hearth_svc_task_create(struct hearth_rpc *rpc);
void hearth_svc_task_list(struct hearth_rpc *rpc);
void hearth_svc_task_get(struct hearth_rpc *rpc);
void hearth_svc_task_cancel(struct hearth_rpc *rpc);
void hearth_svc_task_keep_alive(struct hearth_rpc *rpc);
void hearth_svc_policy_set(struct hearth_rpc *rpc);
void hearth_svc_policy_get(struct hearth_rpc *rpc);
void hearth_svc_policy_list(struct hearth_rpc *rpc);
void hearth_svc_policy_delete(struct hearth_rpc *rpc);
void hearth_svc_policy_history(struct hearth_rpc *rpc);
void hearth_svc_policy_monitored(struct hearth_rpc *rpc);
void hearth_svc_policy_dry_run(struct hearth_rpc *rpc);
void hearth_svc_policy_series(struct hearth_rpc *rpc);
void hearth_svc_sw_query_policies(struct hearth_rpc *rpc);
void hearth_svc_sw_report_profiling_task(struct hearth_rpc *rpc);
void hearth_svc_sw_collect_meters(struct hearth_rpc *rpc);
void hearth_svc_sw_collect_meter_batch(struct hearth_rpc *rpc);
void hearth_svc_sw_snapshots(struct hearth_rpc *rpc);
void hearth_svc_sw_segments(struct hearth_rpc *rpc);
void hearth_svc_sw_segments_in_sync(struct hearth_rpc *rpc);
void hearth_svc_task_segments(struct hearth_rpc *rpc);
void hearth_svc_task_analyze_segments(struct hearth_rpc *rpc);

void hearth_svc_list_schedules(struct hearth_rpc *rpc);
void hearth_svc_analyze_stacks(struct hearth_rpc *rpc);
void hearth_svc_list_uploads(struct hearth_rpc *rpc);
void hearth_svc_get_upload(struct hearth_rpc *rpc);
void hearth_svc_analyze_uploads(struct hearth_rpc *rpc);
void hearth_svc_export_task(struct hearth_rpc *rpc);
void hearth_svc_import_task(struct hearth_rpc *rpc);
void hearth_svc_sw_collect_stacks(struct hearth_rpc *rpc);
void hearth_svc_sw_collect_pprof(struct hearth_rpc *rpc);
void hearth_svc_sw_collect_async_profiler(struct hearth_rpc *rpc);
void hearth_svc_sw_go_profile(struct hearth_rpc *rpc);
void hearth_svc_span_counts(struct hearth_rpc *rpc);
void hearth_svc_list_spans(struct hearth_rpc *rpc);
void hearth_svc_top_spans(struct hearth_rpc *rpc);
void hearth_svc_lookup_span(struct hearth_rpc *rpc);
void hearth_svc_lookup_trace(struct hearth_rpc *rpc);
void hearth_svc_span_profile(struct hearth_rpc *rpc);

/* Those of http_routes.def. */
void hearth_http_config(struct hearth_rpc *rpc);
void hearth_http_pprof_index(struct hearth_rpc *rpc);
void hearth_http_cpu_profile(struct hearth_rpc *rpc);
void hearth_http_render(struct hearth_rpc *rpc);
void hearth_http_render_diff(struct hearth_rpc *rpc);
void hearth_http_label_values(struct hearth_rpc *rpc);
void hearth_http_labels(struct hearth_rpc *rpc);
void hearth_http_rule_metrics(struct hearth_rpc *rpc);
void hearth_http_ingest(struct hearth_rpc *rpc);
void hearth_http_otlp_traces(struct hearth_rpc *rpc);

#endif
