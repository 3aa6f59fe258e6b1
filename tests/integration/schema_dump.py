#!/usr/bin/python3
"""Make tests/golden/schemas/NNNN.sql.gz and NNNN.json: a database at the newest migration, with a little of everything in it.

Run it once for each released schema, before a later migration joins it; test_upgrade.py restores the dump, migrates it
and asks the questions of the JSON file again. NNNN is the number of the newest file in sql/.
"""

import base64
import gzip
import json
import subprocess

from contract import PUSHED
from pprof import Profile
from questions import CPU, QUERIER
from server import ROOT, Cluster, Server, eventually, now_ms, sql
from tasks import create

HOUR = 3_600_000
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
SCHEMAS = ROOT / "tests/golden/schemas"
QUICK = ("--builder-interval", "100ms", "--rollup-grace", "0", "--otlp-traces", "--keep-originals=push")
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

    server = Server(*QUICK, "--builder=false", database_url=cluster.url())
    for k in range(60, 80):
        push(server, start + k * HOUR // 20, k)
    for labels, after_ms, profile in PUSHED:
        server.push(profile((end - 60_000 + after_ms) * 1_000_000).encode(), {"__name__": "process_cpu", **labels})
    return server


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
    empty = sql(
        cluster.url(),
        "SELECT relname FROM pg_class WHERE relnamespace = 'hearth_data'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT relispartition AND (xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS c FROM %s', oid::regclass),"
        " false, true, '')))[1]::text = '0' ORDER BY 1",
    )
    print("migration %04d; tables without rows: %s" % (number, " ".join(row[0] for row in empty)))
    cluster.stop()


if __name__ == "__main__":
    main()
