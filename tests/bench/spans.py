"""What it costs to ask which spans burned it: TopSpans and SpanCounts over an hour of a service of 10 pods with 200 spans in each profile.

    HEARTHD=build-release/bin/hearthd /usr/bin/python3 tests/bench/spans.py

Beside them the floor: what PostgreSQL takes to send the attributes to a client that throws them away, and how many bytes and
numbers they are. Lookups of single spans have a bench of their own (span_lookups.py).
"""

import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import server
import wire
from measure import cluster_cpu, process_cpu
from pprof import Profile

PODS, PROFILES, SPANS, SAMPLES = 10, 240, 200, 600
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
PLACE = "feedfeed"  # in ids: eight digits of the profile's own
TIMES = 20


def make_stacks(rng):
    upper = ["main.serve%d" % i for i in range(6)]
    return [upper + ["app.module%d.call%d" % (rng.randrange(40), rng.randrange(200)) for _ in range(3 + rng.randrange(20))] for _ in range(1500)]


def make_template(rng, stacks, ts_ms):
    """A span belongs to one trace, and mostly to one endpoint; a tenth of the samples to no span."""
    profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=ts_ms * 1_000_000, duration_ns=15 * 10**9)
    spans = []
    for i in range(SPANS):
        endpoint = rng.randrange(30)
        spans.append({
            "span_id": "%s%08x" % (PLACE, i), "trace_id": "%s%08x%016x" % (PLACE, i, rng.getrandbits(64)),
            "span_name": "work %d" % (endpoint % 12), "trace endpoint": "GET /%d" % endpoint,
        })
    for _ in range(SAMPLES):
        labels = rng.choice(spans) if rng.random() < 0.9 else None
        profile.add(stacks[min(int(rng.expovariate(0.004)), 1499)], [1, 10_000_000 + rng.randrange(1000)], labels)
    return profile.encode(compress=False)


def fill(at, end):
    """Profiles are copies of a few, with other ids and times of the same length."""
    rng = random.Random(7)
    stacks = make_stacks(rng)
    templates = [make_template(rng, stacks, end) for _ in range(20)]
    old = wire.varint(end * 1_000_000)
    for k in range(PROFILES):
        for pod in range(PODS):
            new = wire.varint((end - 15_000 * (PROFILES - k) + pod) * 1_000_000)
            data = rng.choice(templates).replace(PLACE.encode(), b"%08x" % rng.getrandbits(32)).replace(old, new)
            at.push(data, {"__name__": "process_cpu", "service_name": "api", "pod": "pod-%d" % pod})


def measure(at, cluster, name, method, request):
    at.connect(method, request)
    walls = []
    own, database = process_cpu(at.process.pid), cluster_cpu(cluster.process.pid)
    for _ in range(TIMES):
        begin = time.monotonic()
        at.connect(method, request)
        walls.append(1000 * (time.monotonic() - begin))
    n = TIMES * PODS * PROFILES / 1e6
    walls.sort()
    print("%-34s p50 %6.0f ms, p95 %6.0f ms; for each profile %6.1f us hearthd, %6.1f us PostgreSQL" % (
        name, walls[TIMES // 2], walls[TIMES * 95 // 100], (process_cpu(at.process.pid) - own) / n,
        (cluster_cpu(cluster.process.pid) - database) / n), flush=True)


def floor(cluster, columns, name):
    """The columns sent to nobody, by one COPY."""
    text = "COPY (SELECT %s FROM hearth_data.profile) TO STDOUT (FORMAT binary)" % columns
    walls, before = [], cluster_cpu(cluster.process.pid)
    for _ in range(5):
        begin = time.monotonic()
        subprocess.run(["psql", "-XqAt", cluster.url(), "-c", text], stdout=subprocess.DEVNULL, check=True, env={**os.environ, "PGOPTIONS": ""})
        walls.append(1000 * (time.monotonic() - begin))
    used = (cluster_cpu(cluster.process.pid) - before) * 1e6 / 5 / (PODS * PROFILES)
    print("%-34s p50 %6.0f ms; for each profile %6.1f us PostgreSQL" % (name, sorted(walls)[2], used), flush=True)


def main():
    cluster = server.Cluster()
    at = server.Server("--builder=false", database_url=cluster.url())
    end = server.now_ms() // 1000 * 1000
    fill(at, end)
    (row,) = server.sql(cluster.url(), "SELECT count(*), sum(length(attrs)), sum(length(ids) + length(vals[1]) + length(vals[2])) FROM hearth_data.profile")
    rows, attrs, others = map(int, row)
    print("%d rows; each %.0f bytes of attributes (%d samples of %d spans), %.0f of ids and values" % (rows, attrs / rows, SAMPLES * 9 // 10, SPANS, others / rows))
    selection = {"profileType": CPU, "labelSelector": '{service_name="api"}', "start": str(end - 3_600_000), "end": str(end)}
    top, counts = "hearth.v1.TraceProfileService/TopSpans", "hearth.v1.TraceProfileService/SpanCounts"
    measure(at, cluster, "Merge of the same", "hearth.v1.QueryService/Merge", {"selection": selection, "format": "PROFILE_FORMAT_FLAMEGRAPH"})
    for by in ("SPAN", "TRACE", "ENDPOINT"):
        measure(at, cluster, "TopSpans by " + by, top, {"selection": selection, "by": "SPANS_BY_" + by})
    function = {**selection, "stacks": {"functions": ["app.module7.call7", "app.module8.call8"]}}
    measure(at, cluster, "TopSpans of two functions", top, {"selection": function})
    measure(at, cluster, "SpanCounts by minute", counts, {"selection": selection, "step": 60})
    measure(at, cluster, "SpanCounts by minute and pod", counts, {"selection": selection, "step": 60, "groupBy": ["pod"]})
    floor(cluster, "attrs", "floor: COPY of the attributes")
    floor(cluster, "attrs, ids, vals", "floor: COPY of these, ids, values")
    at.stop()
    cluster.stop()


if __name__ == "__main__":
    main()
