"""Requests to every RPC and route that would show, or change, what is hidden (hidden.py), if they could.

A row of the server's tables without a row here fails test_hidden.py. A row: requests, and what they give to its three callers.
"""

import collections
import time
import urllib.parse

import agents
import otlp
import otlp_profiles
import policy_agents
import task_data
from agents import Instance, Network, Process
from hidden import CPU, POD, SERVICE, SHARED, TENANT, TWIN, WORD, based, profile
from test_ingest import form

# body: a dict is sent as Connect JSON, a list of messages by gRPC, a text is the query of a plain route with `data` as its body.
# owner: "shows" what is hidden, or "hides": its answer has nothing of it anyway; None: it is not asked, since it changes something.
# other, narrowed: what another tenant's administrator and one who is narrowed to the rest of the tenant are told.
Ask = collections.namedtuple("Ask", "body owner other narrowed data headers", defaults=("shows", "ok", "ok", None, {}))


def refused(body, other="not_found", narrowed="not_found", owner="shows", **more):
    """By the id of what is hidden: as if it did not exist."""
    return Ask(body, owner, other, narrowed, **more)


def change(body, other="not_found", narrowed="not_found", **more):
    return Ask(body, None, other, narrowed, **more)


def sent(body, **more):
    """What an agent of the hidden service sends: another tenant stores it as its own, a narrowed sender may not."""
    return Ask(body, None, "ok", "permission_denied", **more)


SELECTORS = ("{}", '{service_name="%s"}' % SERVICE, '{service_name="%s"}' % SHARED, '{team!="x"}')
QUERIER, QUERY, SPANS = "/querier.v1.QuerierService/", "/hearth.v1.QueryService/", "/hearth.v1.TraceProfileService/"
ADMIN, TASKS, ACCESS = "/hearth.v1.AdminService/", "/hearth.v1.TaskService/", "/hearth.v1.AccessService/"
PROFILES, UPLOADS, NETWORK = "/hearth.v1.ProfileService/", "/hearth.v1.UploadService/", "/hearth.v1.NetworkService/"
POLICIES, PROCESSES, RULES = "/hearth.v1.PolicyService/", "/hearth.v1.ProcessService/", "/settings.v1.RecordingRulesService/"
APPLICATIONS = "/hearth.v1.ApplicationService/"
ADHOC, SETTINGS = "/adhocprofiles.v1.AdHocProfileService/", "/settings.v1.SettingsService/"
V3, V10 = "/skywalking.v3.", "/skywalking.v10."


def exported_profile(h):
    """By OpenTelemetry's protocol, of the hidden service; its answer says what was not stored in one that is "ok"."""
    e = otlp_profiles.Exporter()
    made = e.cpu(h.now * 10**6, [e.sample(e.stack("intruder"), [5])])
    return otlp_profiles.to_proto(e.resource({"service.name": SERVICE}, made).export())


def series(h):
    """Queries of stored profiles."""
    ranged = h.times(start="start", end="end")
    whole = [{"labelSelector": s, **ranged} for s in SELECTORS]
    typed = [{"profileTypeID": CPU, **q} for q in whole]
    chosen = [{"selection": {"profileType": CPU, **q}} for q in whole]
    by_id = [{"profileType": CPU, "labelSelector": "{}", **ranged, **ids} for ids in (
        {"profileIds": [h.ids["profile"]]}, {"spanIds": [h.span]}, {"traceIds": [h.trace]})]
    named = [{"matchers": [s], **ranged} for s in SELECTORS]
    old_ids = [{"profileTypeID": CPU, "labelSelector": "{}", **ranged, **ids} for ids in (
        {"profileIdSelector": [h.ids["profile"]]}, {"traceIdSelector": [h.trace]})]

    def each(messages, **more):
        return [Ask({**m, **more}) for m in messages]

    found = [{**m, "function": f} for m in chosen[:1] for f in (WORD + "work", WORD + "sharedwork")]
    found += [{**chosen[1], "function": WORD + "work"}, {**chosen[2], "function": WORD + "sharedwork"}]
    stacks = [Ask({**q, "format": f}) for q in typed for f in ("PROFILE_FORMAT_FLAMEGRAPH", "PROFILE_FORMAT_TREE", "PROFILE_FORMAT_PPROF", "PROFILE_FORMAT_DOT")]
    with_ids = chosen + [{"selection": s} for s in by_id]
    return {
        QUERIER + "ProfileTypes": [Ask(ranged, "hides")],
        QUERIER + "LabelNames": each(named),
        QUERIER + "LabelValues": [Ask({"name": n, **q}) for q in named for n in ("service_name", "team", WORD + "label")],
        QUERIER + "Series": each(named) + each(named[:1], labelNames=["service_name", WORD + "label"]),
        QUERIER + "SelectMergeStacktraces": stacks + each(old_ids) + each(typed[:1], spanSelector=[h.span]),
        QUERIER + "SelectMergeProfile": each(typed) + each(old_ids),
        QUERIER + "SelectSeries": [Ask({**q, "step": 3600, "groupBy": ["service_name", WORD + "label"], "exemplarType": e})
                                   for q in typed for e in ("EXEMPLAR_TYPE_NONE", "EXEMPLAR_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN")],
        QUERIER + "SelectMergeSpanProfile": each(typed[:1], spanSelector=[h.span]),
        QUERIER + "SelectHeatmap": [Ask({**q, "step": 3600, "groupBy": ["team"], "queryType": "HEATMAP_QUERY_TYPE_" + k, "exemplarType": "EXEMPLAR_TYPE_" + e})
                                    for q in typed for k, e in (("INDIVIDUAL", "INDIVIDUAL"), ("SPAN", "SPAN"))],
        QUERIER + "Diff": [Ask({"left": q, "right": q}) for q in typed],
        QUERIER + "GetProfileStats": [Ask({}, "hides")],
        QUERIER + "AnalyzeQuery": [Ask({"query": CPU + s, **ranged}, "hides") for s in SELECTORS],
        QUERY + "Merge": each(with_ids) + each(chosen, format="PROFILE_FORMAT_PPROF"),
        QUERY + "Diff": [Ask({"left": m["selection"], "right": m["selection"]}) for m in with_ids],
        QUERY + "Changes": [Ask({**q, "baseStart": q["start"], "baseEnd": q["end"]}, "hides") for q in whole],
        QUERY + "Timeline": each(chosen, step=3600, groupBy=["team", "service_name"], exemplars=True),
        QUERY + "FunctionTimeline": each(chosen, functions=[WORD + "main", WORD + "sharedmain"], step=3600, groupBy=["team"]),
        QUERY + "LabelStats": each(chosen, label="team") + each(chosen, label=WORD + "label"),
        QUERY + "Top": [Ask({**m, "kind": "TOP_KIND_FUNCTION"}) for m in with_ids],
        QUERY + "Sandwich": [refused(m) for m in found],
        QUERY + "Lines": [refused(m) for m in found],
        QUERY + "Explain": [Ask({"profileType": CPU, **q, "kind": k}, "hides") for q in whole for k in ("EXPLAIN_KIND_MERGE", "EXPLAIN_KIND_TIME_SERIES")],
        SPANS + "SpanCounts": each(chosen, step=3600, groupBy=["service_name", WORD + "label"]),
        SPANS + "ListSpans": each(with_ids),
        SPANS + "TopSpans": [Ask({**m, "by": "SPANS_BY_" + by}) for m in chosen for by in ("SPAN", "TRACE", "ENDPOINT", "SPAN_NAME")],
        SPANS + "LookupSpan": [refused({"spans": [{"spanId": h.span}]}), refused({"spans": [{"service": SERVICE, "startNs": str(h.now * 10**6 - 10**9), "endNs": str(h.now * 10**6 + 10**11)}]})],
        SPANS + "LookupTrace": [refused({"traces": [{"traceId": h.trace}]})],
        SPANS + "SpanProfile": [refused({"profileType": CPU, "spanIds": [h.span], **ranged, "format": "SPAN_PROFILE_FORMAT_" + f, "children": True}) for f in ("FLAMEGRAPH", "PPROF", "TOP")]
        + [refused({"profileType": CPU, "traceIds": [h.trace]})],
        PROFILES + "ListProfiles": [Ask({"filter": {"profileType": CPU, **q}, "order": "PROFILE_ORDER_TOTAL"}) for q in whole] + [Ask({"filter": q}) for q in whole],
        PROFILES + "ProfileFacets": [Ask({"filter": q}) for q in whole],
        PROFILES + "GetProfile": [refused({"id": h.ids["profile"]})],
        PROFILES + "ReadOriginal": [refused({"id": h.ids["profile"]}, owner="hides")],
        PROFILES + "GetProfilePprof": [refused({"id": h.ids["profile"]})],
    }


def tenant(h):
    """Objects that belong to a tenant and to no service: a narrowed caller sees none of them."""
    ids, ranged, denied = h.ids, h.times(start="start", end="end"), {"narrowed": "permission_denied"}
    rule = {"id": ids["rule"], "metricName": "profiles_recorded_" + WORD + "2", "matchers": ['{__profile_type__="%s"}' % CPU], "generation": "1"}
    return {
        RULES + "GetRecordingRule": [refused({"id": ids["rule"]})],
        RULES + "ListRecordingRules": [Ask({})],
        RULES + "UpsertRecordingRule": [change(rule, **denied)],
        RULES + "DeleteRecordingRule": [change({"id": ids["rule"]}, **denied)],
        SETTINGS + "Get": [Ask({})],
        SETTINGS + "Set": [change({"setting": {"name": WORD + "setting", "value": "changed"}}, "ok", **denied)],
        SETTINGS + "Delete": [change({"name": WORD + "setting"}, "ok", **denied)],
        ADHOC + "Upload": [change({"name": "a", "profile": based(profile("a", 1, {}))}, "ok", **denied)],
        ADHOC + "Get": [refused({"id": ids["adhoc"]})],
        ADHOC + "List": [Ask({})],
        ADHOC + "Diff": [refused({"leftId": ids["adhoc"], "rightId": ids["adhoc"]})],
        UPLOADS + "CreateUpload": [change({"labels": [{"name": "service_name", "value": SERVICE}], "sizeBytes": "5"}, "ok", **denied)],
        UPLOADS + "PutPart": [change({"uploadId": ids["upload"], "part": 0, "data": based(b"x")})],
        UPLOADS + "FinishUpload": [change({"uploadId": ids["upload"]})],
        UPLOADS + "GetUpload": [refused({"uploadId": ids["upload"]})],
        UPLOADS + "ListUploads": [Ask({})],
        UPLOADS + "ReadPart": [refused({"uploadId": ids["upload"], "part": 0})],
        UPLOADS + "DeleteUpload": [change({"uploadId": ids["upload"]})],
        ADMIN + "Status": [Ask({}, "hides")],
        ADMIN + "Doctor": [Ask({}, "hides", "permission_denied", "permission_denied")],  # it concerns the whole database
        ADMIN + "GetLayout": [Ask({}, "hides", "permission_denied", "permission_denied")],  # so does it
        ADMIN + "Rebuild": [change({"serviceName": SERVICE, "fromMs": str(h.now - 1000)}, "ok", **denied)],
        ADMIN + "Erase": [Ask({"labelSelector": s, **ranged, "dryRun": True}, "hides") for s in SELECTORS]
        + [change({"labelSelector": s, **ranged, "expectedSeries": "2", "requestedBy": "a probe"}, "failed_precondition", "failed_precondition") for s in SELECTORS[1:2]],
        ADMIN + "Erasures": [Ask({})],
        ADMIN + "Usage": [Ask({}, "hides", narrowed="permission_denied")],
        ADMIN + "Disk": [Ask({})],
        ADMIN + "RecentQueries": [Ask({}, narrowed="permission_denied")],
        ADMIN + "IngestErrors": [Ask({})],
        ADMIN + "ScrapeTargets": [Ask({})],
        ADMIN + "GetRetention": [Ask({}, "hides")],
        ADMIN + "SetRetention": [change({"name": "retain-raw", "durationMs": "86400000"}, "ok", **denied)],
        ADMIN + "GetLimits": [Ask({}, "hides")],
        ADMIN + "SetLimits": [change({"changes": [{"name": "max-series", "value": "77"}]}, "ok", **denied)],
        ADMIN + "GetTenantSettings": [Ask({}, "hides")],
        ADMIN + "SetTenantSettings": [change({"gaugeAggregation": "AGGREGATION_SUM"}, "ok", **denied)],
        APPLICATIONS + "List": [Ask({})],
        APPLICATIONS + "Get": [refused({"name": SERVICE})],
        APPLICATIONS + "Set": [change({"name": SERVICE, "owner": "me"}, "ok", **denied)],
        APPLICATIONS + "Delete": [change({"name": SERVICE}, "ok")],  # what the request above has made
        APPLICATIONS + "ListRules": [Ask({})],
        APPLICATIONS + "SetRule": [change({"name": WORD + "rule", "labelSelector": "{}", "profiling": "PROFILING_ON"}, "ok", **denied)],
        APPLICATIONS + "DeleteRule": [change({"name": WORD + "rule"}, "ok", **denied)],
        ACCESS + "WhoAmI": [Ask({})],
        ACCESS + "CreateToken": [change({"name": "t", "grants": [{"tenant": TENANT, "role": "viewer"}]}, "permission_denied", "permission_denied")],
        ACCESS + "RotateToken": [change({"id": ids["token"]})],
        ACCESS + "DeleteToken": [change({"id": ids["token"]})],
        ACCESS + "ListTokens": [Ask({})],
        ACCESS + "CreateUser": [change({"name": WORD + "user", "password": "a long enough password"}, "permission_denied", "permission_denied")],
        ACCESS + "SetPassword": [change({"name": WORD + "user", "password": "a long enough password"}, "permission_denied", "permission_denied")],
        ACCESS + "DisableUser": [change({"name": WORD + "user", "disabled": True}, "permission_denied", "permission_denied")],
        ACCESS + "DeleteUser": [change({"name": WORD + "user"}, "permission_denied", "permission_denied")],
        ACCESS + "ListUsers": [Ask({}, None, "permission_denied", "permission_denied")],
        ACCESS + "EndSessions": [change({"subject": "user:" + WORD + "user"}, "permission_denied", "permission_denied")],
        ACCESS + "AddGrant": [change({"subject": "user:me", "tenant": TENANT, "role": "admin"}, "permission_denied", "permission_denied")],
        ACCESS + "DeleteGrant": [change({"id": ids["grant"]})],
        ACCESS + "ListGrants": [Ask({})],
        ACCESS + "AuditLog": [Ask({}, narrowed="permission_denied"), Ask({"tenant": TENANT}, "shows", "permission_denied", "permission_denied")],
    }


def services(h):
    """What belongs to a service: agents, tasks and their results, policies, what was captured of the network."""
    ids, ranged = h.ids, h.times(start="startMs", end="endMs")
    of_service, of_pod = {"service": SERVICE}, {"service": SERVICE, "instance": POD}
    tasks = [ids[name] for name in ("onCpu", "network", "traceTask", "pprof")]
    policy = {"service": SERVICE, "targets": [{"kind": "TASK_KIND_ON_CPU", "checkItems": [
        {"monitor": "MONITOR_KIND_HTTP_ERROR_RATE", "threshold": 1, "periodSeconds": 10, "count": 1, "uriPaths": ["/" + WORD + "uri"]}]}]}

    def denied(body):
        return change(body, "ok", "permission_denied")

    return {
        TASKS + "PrepareTask": [Ask({"service": SERVICE}, "shows", "ok", "permission_denied")],
        TASKS + "CreateTask": [denied({"kind": "TASK_KIND_ON_CPU", "durationMs": 60000, **of_service})],
        TASKS + "ListTasks": [Ask({"includeLogs": True}), Ask(of_service), Ask(of_pod)],
        TASKS + "GetTask": [refused({"taskId": t}) for t in tasks],
        TASKS + "CancelTask": [change({"taskId": t}) for t in tasks],
        TASKS + "KeepAliveTask": [change({"taskId": t}) for t in tasks],
        TASKS + "ListSchedules": [Ask({"taskId": ids["onCpu"]})],
        TASKS + "AnalyzeStacks": [refused({"scheduleIds": [ids["schedule"]]})],
        TASKS + "ListSegments": [refused({"taskId": ids["traceTask"]})],
        TASKS + "AnalyzeSegments": [Ask({"queries": [{"segmentId": ids["segment"], "range": {"startMs": str(h.now - 1000), "endMs": str(h.now + 1000)}}]})],
        TASKS + "ListUploads": [Ask({"taskId": ids["pprof"]})],
        TASKS + "GetUpload": [refused({"uploadId": ids["taskUpload"]})],
        TASKS + "AnalyzeUploads": [Ask({"taskId": ids["pprof"]})],
        TASKS + "ExportTask": [refused({"taskId": t}) for t in tasks],
        TASKS + "ImportTask": [change({"archive": based(b"nothing")}, "invalid_argument", "invalid_argument")],
        PROCESSES + "ListServices": [Ask({})],
        PROCESSES + "ListInstances": [Ask(of_service)],
        PROCESSES + "ListProcesses": [Ask(of_service), Ask(of_pod)],
        PROCESSES + "GetProcess": [refused({"processId": ids["process"]})],
        POLICIES + "SetPolicy": [denied({"policy": policy}), denied({"policy": policy, "validateOnly": True})],
        POLICIES + "GetPolicy": [refused(of_service)],
        POLICIES + "ListPolicies": [Ask({})],
        POLICIES + "DeletePolicy": [denied(of_service)],
        POLICIES + "PolicyHistory": [Ask(of_service)],
        POLICIES + "MonitoredInstances": [Ask({"kind": "TASK_KIND_ON_CPU", **of_service})],
        POLICIES + "DryRun": [Ask({"policy": policy, **ranged}, "shows", "ok", "permission_denied")],
        POLICIES + "MonitorSeries": [Ask({**of_service, **ranged})],
        NETWORK + "Topology": [Ask({**of_pod, **ranged})],
        NETWORK + "NetworkSeries": [Ask({**of_pod, **ranged})],
        NETWORK + "ListSampledRequests": [Ask({**of_pod, **ranged}), Ask({"traceId": WORD + "requesttrace"})],
        NETWORK + "GetSampledRequest": [refused({"requestId": ids["request"]})],
        NETWORK + "ListAddresses": [Ask({})],
        NETWORK + "SetAddresses": [change({"addresses": [{"address": "10.77.0.1", "name": "mine"}]}, "ok", "permission_denied")],
    }


def senders(h):
    """What agents send in the name of the hidden service, and what they ask for it."""
    ids, now = h.ids, h.now
    process, program = Process(SERVICE, POD, WORD + "app"), Instance(None, SERVICE, POD)
    network = Network(None, SERVICE, POD)
    named = [(1, SERVICE), (2, POD)]
    about = task_data.metadata(ids["onCpu"], ids["process"], now, now)
    snapshot = agents.snapshot(ids["traceTask"], ids["segment"], 9, now, ["main", "intruder"])
    segment = program.segment("t", "intruder", [agents.span(0, "/intruder", now, now + 9)])
    meter = network.value("client_write_counts_counter", 1000, network.labels(process, "10.77.0.1:80")) + [(3, SERVICE), (4, POD), (5, now)]
    report = [(1, "OS_LINUX"), (2, SERVICE), (3, POD), (4, WORD + "app"), (5, policy_agents.cause("PROCESS_CPU", 1, 2)), (6, 600), (7, [])]
    log = [*network.sampled("t", process, "10.77.0.1:80", at_ms=now), (2, SERVICE), (3, POD)]
    event = network.event("t", "intruder", {"data": "x"}, now * 10**6, now * 10**6 + 9)
    content = profile("intruder", 5, {})
    pushed = [(1, [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, SERVICE)]), (2, [(1, content)])])]
    return {
        "/push.v1.PusherService/Push": [sent([pushed])],
        "/" + otlp.EXPORT: [sent([otlp.request(({"service.name": SERVICE}, [otlp.span(otlp.new_trace())]))])],
        "/" + otlp_profiles.EXPORT: [Ask([exported_profile(h)], None)],
        V3 + "EBPFProcessService/reportProcesses": [sent([[(1, process.reported()), (2, "intruder")]])],
        V3 + "EBPFProcessService/keepAlive": [sent([[(1, process.ping()), (2, ids["agent"])]])],
        V3 + "ManagementService/reportInstanceProperties": [sent([named + [(3, [(1, "intruder"), (2, "1")])]])],
        V3 + "ManagementService/keepAlive": [sent([named])],
        V3 + "ConfigurationDiscoveryService/fetchConfigurations": [Ask([named], "hides")],
        V3 + "JVMMetricReportService/collect": [Ask([[(2, SERVICE), (3, POD)]], "hides")],
        V3 + "EventService/collect": [Ask([[(1, "u"), (2, named), (3, "intruder")]], "hides")],
        V3 + "EBPFAccessLogService/collect": [Ask([b""], "hides")],
        V3 + "EBPFProfilingService/queryTasks": [Ask([[(1, ids["agent"]), (2, 0)]]), change([[(1, h.shared_agent), (2, 0)]], "ok", "permission_denied")],
        V3 + "ProfileTask/getProfileTaskCommands": [Ask([named + [(3, 0)]], "shows", "ok", "permission_denied")],
        V3 + "ProfileTask/reportTaskFinish": [change([named + [(3, ids["traceTask"])]], "ok", "ok")],
        V10 + "AsyncProfilerTask/getAsyncProfilerTaskCommands": [Ask([named + [(3, 0)]], "hides", "ok", "permission_denied")],
        V10 + "PprofTask/getPprofTaskCommands": [Ask([[(1, SERVICE), (2, TWIN)]], "shows", "ok", "permission_denied")],
        V3 + "ContinuousProfilingService/queryPolicies": [Ask([[(1, [(1, SERVICE)])]], "shows", "ok", "permission_denied")],
        V3 + "ContinuousProfilingService/reportProfilingTask": [sent([report])],
        V3 + "MeterReportService/collect": [sent([h.monitor])],
        V3 + "MeterReportService/collectBatch": [sent([[(1, meter)]])],
        V3 + "EBPFProfilingService/collectProfilingData": [sent([task_data.on_cpu((1, 2), 1000, "read", "main-intruder", about)])],
        V3 + "ProfileTask/goProfileReport": [change(task_data.go_report(ids["traceTask"], content))],
        V10 + "PprofTask/collect": [change([[task_data.about(SERVICE, POD, ids["pprof"], 0, 5)], [(3, b"12345")]])],
        V10 + "AsyncProfilerTask/collect": [change([[task_data.about(SERVICE, POD, ids["pprof"], 0, 5)], [(3, b"12345")]])],
        V3 + "ProfileTask/collectSnapshot": [change([snapshot], "ok", "ok")],
        V3 + "TraceSegmentReportService/collect": [sent([segment])],
        V3 + "TraceSegmentReportService/collectInSync": [sent([[(1, segment)]])],
        V3 + "LogReportService/collect": [sent([log])],
        V3 + "SpanAttachedEventReportService/collect": [sent([event])],
    }


def public(h):
    """The same for everybody."""
    vcs = {"/vcs.v1.VCSService/" + m: [Ask({}, "hides", "unimplemented", "unimplemented")] for m in (
        "GithubApp", "GithubLogin", "GithubRefresh", "GetFile", "GetCommit", "GetCommits")}
    listing = [[(7, "")]]
    return {
        **vcs,
        "/grpc.health.v1.Health/Check": [Ask({}, "hides")],
        "/grpc.health.v1.Health/Watch": [Ask([b""], "hides")],
        "/version.v1.Version/Version": [Ask({}, "hides")],
        "/capabilities.v1.FeatureFlagsService/GetFeatureFlags": [Ask({}, "hides")],
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": [Ask(listing, "hides")],
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": [Ask(listing, "hides")],
    }


def routes(h):
    """{(HTTP method, path): requests}"""
    q, ids = urllib.parse.urlencode, h.ids
    ranged = {"from": h.now - 600_000, "until": h.now + 60_000}
    queries = [q({"query": CPU + s, **ranged}) for s in SELECTORS]
    in_name = "name=%s&from=%d" % (SERVICE, h.now // 1000)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(h.now / 1000))
    event = ("event", "event.json", ('{"version":"4","family":"go","start":"%s","end":"%s","tags_profiler":"service:%s"}' % (at, at, SERVICE)).encode())
    headers, body = form([event, ("cpu.pprof", "cpu.pprof", profile("intruder", 5, {}))])
    datadog = [Ask("", None, "ok", "permission_denied", body, headers)]
    ingest = [Ask(in_name, None, "ok", "permission_denied", b"a;intruder 1\n")]
    export = otlp.request(({"service.name": SERVICE}, [otlp.span(otlp.new_trace())]))
    proto = {"Content-Type": otlp.PROTO}
    upload = "id=" + ids["upload"]
    server = [Ask("", None, "permission_denied", "permission_denied")]
    everybody = [Ask("", "hides")]
    return {
        ("GET", "/pyroscope/render"): [Ask(x + f) for x in queries for f in ("", "&format=text", "&format=dot")] + [Ask(queries[0] + "&format=text&span-id=" + h.span, "shows", "not_found", "not_found")],
        ("GET", "/pyroscope/render-diff"): [Ask(q({**{"left" + k: v for k, v in sides.items()}, **{"right" + k: v for k, v in sides.items()}})) for sides in (
            {"Query": CPU + s, "From": ranged["from"], "Until": ranged["until"]} for s in SELECTORS)],
        ("GET", "/pyroscope/label-values"): [Ask(q({"label": n, **ranged})) for n in ("service_name", "team", WORD + "label")],
        ("GET", "/pyroscope/labels"): [Ask(q(ranged))],
        ("GET", "/metrics/rules"): [Ask("", "hides")],
        ("POST", "/ingest"): ingest, ("POST", "/pyroscope/ingest"): ingest, ("POST", "/api/v1/profile/ingest"): ingest,
        ("POST", "/v1/traces"): [Ask("", None, "ok", "permission_denied", export, proto)],
        ("POST", "/v1development/profiles"): [Ask("", None, data=exported_profile(h), headers=proto)],
        ("POST", "/profiling/v1/input"): datadog, ("POST", "/api/v2/profile"): datadog, ("POST", "/v1/input"): datadog,
        ("GET", "/api/v1/uploads"): [Ask(""), refused(upload)],
        ("POST", "/api/v1/uploads"): [Ask(in_name, None, "ok", "permission_denied", b"a;intruder 1\n")],
        ("POST", "/api/v1/uploads/part"): [change(upload + "&part=0", data=b"x")],
        ("POST", "/api/v1/uploads/finish"): [change(upload, data=b"")],
        ("POST", "/api/v1/uploads/delete"): [change(upload, data=b"")],
        ("GET", "/api/v1/uploads/original"): [refused(upload)],
        ("GET", "/api/v1/status/config"): server, ("GET", "/api/v1/status/config/diff"): server,
        ("GET", "/api/v1/status/config/default"): server, ("GET", "/debug/pprof/"): server,
        ("GET", "/debug/pprof/profile"): server, ("GET", "/metrics"): server,
        ("POST", "/api/v1/login"): [Ask("", "hides", "unauthenticated", "unauthenticated", b'{"user":"%suser","password":"wrong"}' % WORD.encode(), {"Content-Type": "application/json"})],
        ("GET", "/api/v1/oidc/login"): [Ask("", "hides", "unimplemented", "unimplemented")],
        ("GET", "/api/v1/oidc/callback"): [Ask("", "hides", "unimplemented", "unimplemented")],
        ("POST", "/api/v1/logout"): [Ask("", "hides", "failed_precondition", "failed_precondition", b"")],
        ("GET", "/ready"): everybody, ("GET", "/healthz"): everybody, ("GET", "/"): everybody,
        ("GET", "/api/v1/status/buildinfo"): everybody,
    }


def everything(h):
    """{(kind, path): requests}, kind as in probes.Target."""
    rpcs = {**series(h), **tenant(h), **services(h), **senders(h), **public(h)}
    return {**{("rpc", path): asks for path, asks in rpcs.items()}, **routes(h)}
