"""bench.py --api: each question of the API at 1 h, 24 h and 7 d: p50 and p99 beside its floor, what JSON costs, small
calls per second of one core.

One service of ten pods with a profile a minute each, raw, then rolled up. Floors: of merges, what merging all profiles of the
range takes in memory; of time series, PostgreSQL summing the totals; of metadata, a call that answers at once.
"""

import http.client
import json
import time

from measure import Running, say

HOUR, DAY = 3600, 86400
STEP, PODS = 60, 10
RANGES = [("1 h", HOUR), ("24 h", DAY), ("7 d", 7 * DAY)]
SELECTOR = '{service_name="focus"}'


class Api:
    def __init__(self, bench):
        self.bench, self.quick = bench, bench.options.quick
        self.ranges = RANGES[:2] if self.quick else RANGES
        self.seconds = 0.4 if self.quick else 3.0
        self.numbers = {}

    def questions(self, end, seconds):
        """{name: (method, wire fields)}"""
        import questions

        asked = [(1, questions.CPU), (2, SELECTOR), (3, 1000 * (end - seconds)), (4, 1000 * end)]
        metadata = [(3, 1000 * (end - seconds)), (4, 1000 * end)]
        querier, own = questions.QUERIER, "hearth.v1.QueryService/"
        return {
            "SelectMergeStacktraces": (querier + "SelectMergeStacktraces", asked),
            "SelectMergeProfile": (querier + "SelectMergeProfile", asked),
            "SelectSeries by pod": (querier + "SelectSeries", asked + [(5, "pod"), (6, float(max(15, seconds // 240)))]),
            "Top": (own + "Top", [(1, asked)]),
            "Series": (querier + "Series", [(2, "service_name"), (2, "__profile_type__")] + metadata),
            "LabelValues": (querier + "LabelValues", [(1, "pod"), (2, SELECTOR)] + metadata),
        }

    def floor(self, name, end, seconds):
        if name == "SelectSeries by pod":
            return self.bench.sql_sum_ms("focus", end - seconds, end)
        if name in ("Series", "LabelValues"):
            return self.call_ms
        return PODS * seconds / STEP * self.merge_us / 1000

    def wait_for_roll_ups(self, running, end):
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            built = running.server.sql("SELECT count(*) FROM hearth_data.roll_state WHERE built_to < %d" % ((end - 700) * 10**9))
            known = running.server.sql("SELECT count(*) FROM hearth_data.roll_state")
            if known[0][0] != "0" and built[0][0] == "0" and not running.metric("hearth_rollup_lag_seconds"):
                return
            time.sleep(0.5)
        raise SystemExit("bench: the roll-ups are not built within ten minutes")

    def measure(self, running, state, end):
        rows = []
        for label, seconds in self.ranges:
            for name, (method, fields) in self.questions(end, seconds).items():
                seen = running.ask(method, fields, self.seconds)
                floor = self.floor(name, end, seconds)
                self.numbers["%s, %s, %s" % (name, label, state)] = {**seen, "floor_ms": floor}
                rows.append("| %s | %s | %.2f | %.2f | %.2f + %.2f | %.1f | %.2f | %.2f |" % (
                    name, label, seen["ms"], seen["p99_ms"], seen["hearthd_ms"], seen["postgres_ms"], seen["bytes"] / 1024,
                    floor, seen["ms"] / floor if floor else 0))
        head = "| question | range | p50 ms | p99 ms | CPU + PostgreSQL ms | answer KB | floor ms | p50 / floor |\n|---|---|---|---|---|---|---|---|"
        return "## %s\n\n%s\n%s\n" % (state, head, "\n".join(rows))

    def json_codec(self, running, end):
        """The same flame graph as JSON and as protobuf: the difference in CPU is what JSON costs."""
        import questions
        import wire

        start = 1000 * (end - DAY)
        method = "/" + questions.QUERIER + "SelectMergeStacktraces"
        proto = wire.encode([(1, questions.CPU), (2, SELECTOR), (3, start), (4, 1000 * end), (5, 1048576)])
        text = json.dumps({"profileTypeID": questions.CPU, "labelSelector": SELECTOR, "start": start, "end": 1000 * end, "maxNodes": 1048576})
        cost = {}
        for kind, body in (("proto", proto), ("json", text)):
            connection = http.client.HTTPConnection("127.0.0.1", running.server.port)
            n, size, began, before = 0, 0, time.monotonic(), running.cpu()
            while n < 5 or time.monotonic() - began < self.seconds:
                connection.request("POST", method, body, {"Content-Type": "application/" + kind})
                size, n = len(connection.getresponse().read()), n + 1
            cost[kind] = ((running.cpu()[0] - before[0]) / n, size)
            connection.close()
        us = cost["json"][0] - cost["proto"][0]
        rate = cost["json"][1] / us if us > 0 else 0
        self.numbers["json"] = {"MB/s": rate, "bytes": cost["json"][1], "us": us}
        return "JSON of a flame graph: %.0f MB/s of one core (%.0f KB; protobuf has %.0f KB, whose own cost is in both)." % (
            rate, cost["json"][1] / 1024, cost["proto"][1] / 1024)

    def small(self, running):
        out = []
        for how, path, in_flight in (
            ("call", "/grpc.health.v1.Health/Check", 64), ("post", "/querier.v1.QuerierService/ProfileTypes", 16),
            ("post", "/version.v1.Version/Version", 16),
        ):
            before = running.cpu()
            seen = self.bench.tool("bench_load", how, self.bench.target(), path, in_flight, 2 if self.quick else 4)[0]
            us = (running.cpu()[0] - before[0]) / seen["ok"]
            self.numbers["small " + path] = {"us": us, "per_core": 1e6 / us, "p99_ms": seen["p99_ms"]}
            way = "gRPC" if how == "call" else "HTTP/1.1 JSON"
            out.append("| %s over %s | %.1f | %.0f | %.2f |" % (path.rsplit("/", 1)[1], way, us, 1e6 / us, seen["p99_ms"]))
        return "| small call | CPU us | per second and core | p99 ms |\n|---|---|---|---|\n" + "\n".join(out) + "\n"

    def run(self):
        bench = self.bench
        bench.make_pool(60 if self.quick else 240)
        running = Running(bench, bench.directory, "--builder=false")
        bench.running, bench.server = running, running.server
        self.call_ms = running.ask("grpc.health.v1.Health/Check", [], self.seconds)["ms"]
        end = int(time.time()) // 600 * 600
        say("loading %s of profiles" % self.ranges[-1][0])
        loaded = bench.tool(
            "bench_load_store", running.server.postgres_url(), bench.pool, end, "focus:%d:%d:0:%d" % (PODS, self.ranges[-1][1], STEP)
        )
        self.merge_us = 1000 * loaded[0]["merge_ms"] / loaded[0]["rows"]
        self.numbers["loaded"] = loaded
        running.server.sql("VACUUM (ANALYZE)")
        say("raw")
        reports = [self.measure(running, "raw", end)]
        running.restart()
        say("waiting for the roll-ups")
        self.wait_for_roll_ups(running, end)
        running.server.sql("VACUUM (ANALYZE)")
        reports.append(self.measure(running, "rolled up", end))
        reports += [self.json_codec(running, end), "", self.small(running)]
        running.server.terminate()
        print("\n".join(reports))
        return self.numbers


def run(bench):
    return Api(bench).run()
