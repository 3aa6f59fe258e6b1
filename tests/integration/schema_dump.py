#!/usr/bin/python3
"""Make tests/golden/schemas/NNNN.sql.gz and NNNN.json: a database at the newest migration, with a little of everything in it.

Run it once for each released schema, before a later migration joins it; test_upgrade.py restores the dump, migrates it
and asks the questions of the JSON file again. NNNN is the number of the newest file in sql/.
"""

import base64
import gzip
import json
import pathlib
import subprocess
import time

import agents
import directing_data
import otlp
import task_data
from agents import Instance
from contract import PUSHED
from pprof import Profile
from questions import CPU, QUERIER
from server import HEARTH, ROOT, Cluster, Server, eventually, now_ms, server_environment, sql, temporary_directory
from tasks import create
from test_access import PASSWORD, AccessServer

HOUR = 3_600_000
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
SCHEMAS = ROOT / "tests/golden/schemas"
QUICK = ("--builder-interval", "100ms", "--rollup-grace", "0", "--otlp-traces", "--keep-originals=push",
         "--rollup-min-profiles-1h=0")
ITEM = {"monitor": "MONITOR_KIND_PROCESS_CPU", "threshold": "75", "period_seconds": 10, "count": 3}
POLICY = {"policy": {"service": "s1", "targets": [{"kind": "TASK_KIND_ON_CPU", "check_items": [ITEM]}]}}
RULE = {"metricName": "cost", "matchers": ['{__profile_type__="%s"}' % CPU, '{service_name="s1"}'], "groupBy": ["pod"]}


def push(server, ms, k, id="id"):
    """k: of which service, pod and function."""
    labels = {"__name__": "process_cpu", "service_name": "s%d" % (k % 3), "pod": "p%d" % (k % 7), "zone": "z\u00fc"}
    profile = Profile(TYPES, time_ns=ms * 1_000_000).add(["main", "f%d" % (k % 11), "g%d" % k], [k + 1, (k + 1) * 10_000_000])
    server.push(profile.encode(), labels, id="%s-%d" % (id, k))


def fill(cluster, start, end):
    """Rows of most tables: summed hours and compacted ones, late and fresh profiles, what people and agents keep."""
    server = Server(*QUICK, "--compact-after", "0", database_url=cluster.url())
    for k in range(60):
        push(server, start + k * HOUR // 10, k)
    server.connect("hearth.v1.PolicyService/SetPolicy", POLICY)
    server.connect("settings.v1.SettingsService/Set", {"setting": {"name": "pluginSettings", "value": '{"a":1}', "modifiedAt": "5000"}})
    server.connect("settings.v1.RecordingRulesService/UpsertRecordingRule", RULE)
    adhoc = Profile(TYPES).add(["main", "adhoc"], [1, 1]).encode()
    server.connect("adhocprofiles.v1.AdHocProfileService/Upload", {"name": "a.pb", "profile": base64.b64encode(adhoc).decode()})
    create(server, service="s1")
    uncompacted = "SELECT count(*) FROM hearth_data.roll_state WHERE compacted_to < %d" % ((start + 5 * HOUR) * 1_000_000)
    eventually(lambda: server.sql(uncompacted) == [["0"]], 60, what="compaction")
    server.stop()

    fill_rest(cluster, end)
    server = Server(*QUICK, "--builder=false", database_url=cluster.url())
    for k in range(60, 80):
        push(server, start + k * HOUR // 20, k)
    for labels, after_ms, profile in PUSHED:
        server.push(profile((end - 60_000 + after_ms) * 1_000_000).encode(), {"__name__": "process_cpu", **labels})
    # Its tombstone stays, because no server does background work any more.
    erase = {"labelSelector": '{gone="1"}', "start": "0", "end": str(now_ms()), "requestedBy": "the dump"}
    server.connect("hearth.v1.AdminService/Erase", {**erase, "expectedSeries": "1"})
    return server


def fill_agents(server):
    """What agents report and are told: policies, metrics, traffic, tasks and their results."""
    directing_data.fill_policy(server, hours=0.03)
    directing_data.fill_network(server)
    directing_data.fill_stacks(server)
    directing_data.fill_snapshots(server)
    directing_data.fill_upload(server)
    agent = Instance(server, "go", "pod-2")
    agent.report({"language": "go"})
    task = create(server, "TRACE", service="go")
    agent.query_tasks(Instance.TRACE)
    at = now_ms()
    agent.send_segments(agent.segment("trace-2", "segment-2", [agents.span(0, "/pay", at, at + 400)]))
    profile = Profile(TYPES, time_ns=at * 1_000_000).add(["main", "pay"], [1, 10_000_000], {"traceSegmentID": "segment-2"})
    task_data.collect(server, task_data.go_report(task, profile.encode()), task_data.GO)
    agent.finish_task(task)


def fill_spans(server):
    """Spans, and profiles that name them."""
    trace, id = otlp.new_trace(), otlp.new_span()
    found = otlp.request(({"service.name": "s1"}, [otlp.span(trace, id, "/pay", tags={"http.route": "/pay"})]))
    server.grpc_bytes(otlp.EXPORT, found)
    profile = Profile(TYPES, time_ns=now_ms() * 1_000_000).add(["main"], [1, 10_000_000], {"span_id": id.hex(), "trace_id": trace.hex()})
    server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "s1"})


def fill_people(server, end):
    """What people set, upload and delete, and what was refused."""
    server.connect("hearth.v1.AdminService/SetTenantSettings", {"gaugeAggregation": "AGGREGATION_MEAN"})
    server.connect("hearth.v1.ApplicationService/Set", {"name": "s9", "profiling": "PROFILING_OFF"})
    server.connect("hearth.v1.ApplicationService/SetRule", {"name": "test", "labelSelector": '{env="test"}', "profiling": "PROFILING_OFF"})
    server.http("POST", "/ingest?format=pprof&name=app", b"\x0a\xff\xff\xff\x0fdamaged")
    path = pathlib.Path(server.directory, "upload.pb")
    path.write_bytes(Profile(TYPES, time_ns=now_ms() * 1_000_000).add(["main", "uploaded"], [1, 1]).encode())
    subprocess.run(
        [HEARTH, "uploads", "create", path, "--label", "service_name=up", "--wait", "--url", "http://127.0.0.1:%d" % server.port],
        check=True, env=server_environment(), stdout=subprocess.DEVNULL,
    )
    # Two days ago, for the sums of a day; fill() deletes one of the series again.
    for k in (300, 301, 302):
        push(server, end - 55 * HOUR, k, "day")
    server.push(Profile(TYPES, time_ns=(end - 55 * HOUR) * 1_000_000).add(["gone"], [1, 1]).encode(),
                {"__name__": "process_cpu", "service_name": "s0", "gone": "1"})
    wait_for_rows(server, "roll_1d")


def fill_rest(cluster, end):
    """The tables that profiles alone leave empty."""
    targets = pathlib.Path(temporary_directory(), "targets.yaml")
    targets.write_text("scrape_configs: [{job_name: itself, static_configs: [{targets: ['127.0.0.1:1']}]}]\n")
    server = Server(*QUICK, "--scrape-config", str(targets), database_url=cluster.url())
    fill_agents(server)
    fill_spans(server)
    fill_people(server, end)
    wait_for_rows(server, "span_index", "span_group", "ingest_error", "scrape_target")
    eventually(lambda: counts_by_rule(server), 200, what="the first minute that the recording rule counts")
    server.stop()

    # Callers with names.
    hearth = AccessServer(*QUICK, database_url=cluster.url())
    hearth.must("CreateUser", {"name": "alice", "password": PASSWORD})
    hearth.must("AddGrant", {"subject": "user:alice", "tenant": "anonymous", "role": "viewer"})
    hearth.token(("anonymous", "viewer", '{service_name="s1"}'))
    status, _, _ = hearth.post("/api/v1/login", {"user": "alice", "password": PASSWORD}, {})
    assert status == 200, status
    hearth.stop()


def has_rows(server, table):
    return server.sql("SELECT count(*) > 0 FROM hearth_data." + table) == [["t"]]


def wait_for_rows(server, *tables):
    for table in tables:
        eventually(lambda: has_rows(server, table), 60, what=table)


def counts_by_rule(server):
    """A rule begins with the minute after it was made."""
    push(server, now_ms(), 400, "rule-%d" % now_ms())
    time.sleep(5)
    return has_rows(server, "rule_counter") and has_rows(server, "rule_bucket")


def questions(start, end):
    whole = {"start": str(start), "end": str(end)}
    for selector in ("{}", '{service_name="s1"}', '{pod=~"p[1-3]"}'):
        cpu = {"profileTypeID": CPU, "labelSelector": selector, **whole}
        yield QUERIER + "SelectMergeStacktraces", cpu
        yield QUERIER + "SelectSeries", {**cpu, "step": 3600, "groupBy": ["pod"]}
        yield QUERIER + "Series", {"matchers": [selector], **whole}
    yield QUERIER + "ProfileTypes", whole
    yield QUERIER + "LabelValues", {"name": "pod", **whole}
    yield "hearth.v1.PolicyService/GetPolicy", {"service": "s1"}
    yield "settings.v1.SettingsService/Get", {}
    yield "settings.v1.RecordingRulesService/ListRecordingRules", {}
    yield "adhocprofiles.v1.AdHocProfileService/List", {}


def dump(cluster):
    done = subprocess.run(
        [cluster.program("pg_dump"), "-n", "hearth_data", "-n", "hearth", "--no-owner", "--no-acl", cluster.url()],
        capture_output=True, text=True, check=True,
    )
    # Older psql do not know these lines.
    kept = [line for line in done.stdout.splitlines(True) if not line.startswith(("\\restrict", "\\unrestrict"))]
    return "".join(kept).encode()


def empty_tables(cluster):
    rows = sql(
        cluster.url(),
        "SELECT relname FROM pg_class WHERE relnamespace = 'hearth_data'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT relispartition AND (xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS c FROM %s', oid::regclass),"
        " false, true, '')))[1]::text = '0' ORDER BY 1",
    )
    return [row[0] for row in rows]


def main():
    # Whole hours that are over: nothing that a test pushes later belongs to them.
    end = now_ms() // HOUR * HOUR
    start = end - 8 * HOUR
    cluster = Cluster()
    server = fill(cluster, start, end)
    asked = [
        {"method": method, "request": request, "answer": server.connect(method, request)}
        for method, request in questions(start, end - 1)
    ]
    server.stop()
    number = int(sql(cluster.url(), "SELECT max(number) FROM hearth_data.migration")[0][0])
    lines = [json.dumps(one, sort_keys=True) for one in asked]
    SCHEMAS.mkdir(parents=True, exist_ok=True)
    (SCHEMAS / ("%04d.sql.gz" % number)).write_bytes(gzip.compress(dump(cluster), 9, mtime=0))
    (SCHEMAS / ("%04d.json" % number)).write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print("migration %04d; tables without rows: %s" % (number, " ".join(empty_tables(cluster))))
    cluster.stop()


if __name__ == "__main__":
    main()
