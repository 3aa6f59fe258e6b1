#!/usr/bin/python3
"""How much a tenant that floods a server slows a quiet one.

Tenant "noisy" has limits: a rate of pushes and one query at a time. It offers ten times that rate, and keeps ten clients
busy with long queries. Tenant "quiet" pushes a profile and asks a small query, one after the other. Seconds with and
without the flood alternate, so that a machine that becomes slower meanwhile slows both. Prints a line of JSON: the quiet
tenant's latencies in both states, what became of the flood, and the memory of hearthd.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import sys
import threading
import time

import measure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import server
from pprof import Profile

RATE = 200_000
QUERY = "/querier.v1.QuerierService/SelectMergeStacktraces"
PUSH = "/push.v1.PusherService/Push"


def profile(n_stacks, seed):
    made = Profile([("cpu", "nanoseconds")], time_ns=server.now_ms() * 1_000_000)
    for i in range(n_stacks):
        made.add(["main", "step%d" % (i % 50), "leaf%d_%d" % (i, seed % 7)], [1 + i])
    return made.encode()


def push_body(n_stacks, seed):
    import base64

    return json.dumps({"series": [{"labels": [{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": "api"}],
                                   "samples": [{"rawProfile": base64.b64encode(profile(n_stacks, seed)).decode()}]}]})


def query_body():
    return json.dumps({"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": '{service_name="api"}',
                       "start": server.now_ms() - 3_600_000, "end": server.now_ms() + 60_000})


class Client:
    def __init__(self, port, tenant):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {"Content-Type": "application/json", "X-Scope-OrgID": tenant}

    def post(self, path, body):
        """(status, seconds)"""
        began = time.monotonic()
        self.connection.request("POST", path, body, self.headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, time.monotonic() - began


def flood(port, active, ends, counts, is_impatient):
    """Ten times the rate in pushes from four threads; long queries from ten. It has the least priority, as its clients would run
    on machines of their own."""
    os.nice(19)
    body = push_body(400, 1)
    pause = 4 * len(profile(400, 1)) / (10 * RATE)
    lock = threading.Lock()

    def count(kind, status):
        with lock:
            counts["%s %d" % (kind, status)] = counts.get("%s %d" % (kind, status), 0) + 1

    def run(kind):
        client = Client(port, "noisy")
        while not ends.is_set():
            if not active.wait(0.5):
                continue
            began = time.monotonic()
            status = client.post(PUSH, body)[0] if kind == "push" else client.post(QUERY, query_body())[0]
            count(kind, status)
            least = pause if kind == "push" else 1 if status != 200 and not is_impatient else 0  # as Retry-After says
            time.sleep(max(0, least - (time.monotonic() - began)))

    threads = [threading.Thread(target=run, args=(kind,)) for kind in ["push"] * 4 + ["query"] * 10]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--profiles", type=int, default=1500, help="of the noisy tenant, which its queries read")
    parser.add_argument("--impatient", action="store_true", help="refused queries are sent again at once, whatever Retry-After says")
    options = parser.parse_args()
    one = server.Server("--multitenancy", "--builder=false", "--ingest-burst-bytes=1m")
    noisy, quiet = Client(one.port, "noisy"), Client(one.port, "quiet")
    for i in range(options.profiles):
        noisy.post(PUSH, push_body(400, i))
    for i in range(20):
        quiet.post(PUSH, push_body(100, i))
    long_ms = [noisy.post(QUERY, query_body())[1] * 1000 for _ in range(5)]
    one.connect("hearth.v1.AdminService/SetLimits", {"changes": [
        {"name": "ingest-rate-bytes", "value": str(RATE)}, {"name": "max-queries", "value": "1"},
        {"name": "max-queued-queries", "value": "4"}]}, {"X-Scope-OrgID": "noisy"})

    # Seconds with and without the flood alternate.
    manager = multiprocessing.Manager()
    counts, active, ends = manager.dict(), multiprocessing.Event(), multiprocessing.Event()
    process = multiprocessing.Process(target=flood, args=(one.port, active, ends, counts, options.impatient))
    process.start()
    seen = {(state, kind): [] for state in ("quiet", "flood") for kind in ("push", "query")}
    rss = {"quiet": 0.0, "flood": 0.0}
    for _ in range(options.rounds):
        for state in ("quiet", "flood"):
            (active.set if state == "flood" else active.clear)()
            time.sleep(1)
            until = time.monotonic() + options.seconds
            while time.monotonic() < until:
                for kind, path, body in (("push", PUSH, push_body(100, 3)), ("query", QUERY, query_body())):
                    status, seconds = quiet.post(path, body)
                    assert status == 200, status
                    seen[state, kind].append(seconds)
                time.sleep(0.02)
            rss[state] = max(rss[state], measure.resident_mib(one.process.pid))
    ends.set()
    active.set()
    process.join()

    result = {"noisy_query_alone_ms": round(sorted(long_ms)[2], 1), "flood": dict(counts), "rss_mib": rss}
    for kind in ("push", "query"):
        for state in ("quiet", "flood"):
            values = seen[state, kind]
            result["%s_%s" % (kind, state)] = {"n": len(values), "p50_ms": round(percentile(values, 50), 2), "p99_ms": round(percentile(values, 99), 2)}
        result[kind + "_p99_ratio"] = round(percentile(seen["flood", kind], 99) / percentile(seen["quiet", kind], 99), 2)
    usage = one.connect("hearth.v1.AdminService/Usage", {}, {"X-Scope-OrgID": "noisy"})
    result["refused"] = {u["limit"]: int(u["refused"]) for u in usage["limits"] if u.get("refused")}
    one.stop()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
