"""One answer: the same questions give byte-identical bodies whatever the server did in the background meanwhile.

Asked of the same data: raw, rolled up, with sums in memory, in the middle of builds, compacted, after a restart, by a
second server, with a replica, after dump and restore. HEARTH_TEST_QUESTIONS says how many: 334, or 1,000 with
HEARTH_TEST_LONG.
"""

import os
import random
import subprocess
import threading
import unittest

import prometheus
import wire
from pprof import Profile
from questions import AVERAGE, CPU, PPROF, QUERIER, SAMPLES, SUM, TREE
from server import Cluster, Server, eventually, in_threads, now_ms, sql
from standby import Standby

QUESTIONS = int(os.environ.get("HEARTH_TEST_QUESTIONS") or ("1000" if os.environ.get("HEARTH_TEST_LONG") else "334"))
SEED = int(os.environ.get("HEARTH_TEST_SEED", "20261120"))
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
INUSE = "memory:inuse_space:bytes:space:bytes"
ALLOC = "memory:alloc_space:bytes:space:bytes"
CPU_TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
HEAP_TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
NEVER = -106751 * DAY * 1_000_000  # what the builder writes for "nothing yet"
QUICK = ["--builder-interval", "100ms", "--rollup-grace", "0", "--rollup-min-profiles", "8"]


class Data:
    """Three services over three days; what was pushed can be pushed only once, so the times are kept."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.end = now_ms() // 1000 * 1000
        self.start = self.end - 3 * DAY

    def stack(self, service):
        depth = self.random.randint(2, 6)
        return ["main"] + ["%s.f%d" % (service, self.random.randint(0, 40)) for _ in range(depth)]

    def cpu(self, service, ts):
        # Most profiles sample every 10 ms; some do not: then one column is no constant multiple of the other.
        period = 10_000_000 if self.random.random() < 0.9 else 7_000_001
        profile = Profile(CPU_TYPES, period=period, time_ns=ts * 1_000_000, duration_ns=15_000_000_000)
        for _ in range(self.random.randint(3, 12)):
            n = self.random.randint(1, 5)
            profile.add(self.stack(service), [n, n * period])
        return profile.encode()

    def heap(self, service, ts):
        profile = Profile(
            HEAP_TYPES, period_type=("space", "bytes"), period=524288, time_ns=ts * 1_000_000, duration_ns=0
        )
        for _ in range(self.random.randint(2, 8)):
            n = self.random.randint(1, 9)
            inuse = self.random.randint(0, n)
            profile.add(self.stack(service), [n, n * 64, inuse, inuse * 64])
        return profile.encode()

    def push(self, server, n, start, end, services=("api", "api", "api", "web", "batch")):
        jobs = []
        for _ in range(n):
            ts = self.random.randint(start, end)
            if self.random.random() < 0.2:
                ts = ts // (10 * MINUTE) * 10 * MINUTE  # on the edge of a bucket
            service = self.random.choice(services)
            labels = {"service_name": service, "pod": "%s-%d" % (service, self.random.randint(0, 4))}
            if self.random.random() < 0.25:
                jobs.append((self.heap(service, ts), {"__name__": "memory", **labels}))
            else:
                jobs.append((self.cpu(service, ts), {"__name__": "process_cpu", **labels}))
        parts = [jobs[i::8] for i in range(8)]
        in_threads([lambda part=part: [server.push(*job) for job in part] for part in parts])


SELECTORS = [
    '{service_name="api"}', '{service_name="api"}', '{service_name="web"}', '{service_name="batch"}', "{}",
    '{service_name="api",pod="api-1"}', '{service_name="api",pod=~"api-[12]"}', '{service_name="api",pod!="api-0"}',
    '{service_name=~"api|web"}', '{pod=~".*-3"}', '{service_name="api",pod=~".+"}', '{service_name="none"}',
]


def make_questions(n, seed, start, end):
    """[(method, request bytes)]"""
    r = random.Random(seed)
    out = []
    for _ in range(n):
        length = r.choice([5 * MINUTE, HOUR, 3 * HOUR, DAY, 2 * DAY, end - start])
        first = r.randint(start - HOUR, end - length // 2)
        unit = r.choice([1, 1, 1, 10 * MINUTE, HOUR, DAY])
        first = max(first // unit * unit, 1)
        last = first + (length // unit * unit or unit) - r.choice([0, 1, 1])
        fields = [(1, r.choice([CPU, CPU, SAMPLES, INUSE, ALLOC])), (2, r.choice(SELECTORS)), (3, first), (4, last)]
        kind = r.randint(0, 9)
        if kind < 4:
            fields += [(5, r.choice([8, 64, 8192]))] + ([(6, r.choice([TREE, PPROF]))] if r.random() < 0.4 else [])
            if r.random() < 0.15:
                fields.append((7, [(1, [(1, "main")]), (1, [(1, "api.f%d" % r.randint(0, 40))])]))
            out.append((QUERIER + "SelectMergeStacktraces", wire.encode(fields)))
        elif kind < 6:
            out.append((QUERIER + "SelectMergeProfile", wire.encode(fields)))
        else:
            fields += [(5, name) for name in r.choice([[], ["pod"], ["service_name"], ["service_name", "pod"]])]
            fields.append((6, float(r.choice([15, 60, 600, 3600, 86400]))))
            fields.append((7, r.choice([SUM, SUM, AVERAGE])))
            if r.random() < 0.1:
                fields.append((8, [(1, [(1, "main")])]))
            out.append((QUERIER + "SelectSeries", wire.encode(fields)))
    return out


class OneAnswer(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.data = Data(SEED)
        cls.url = cls.cluster.url()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def ask(self, server):
        """Every answer: (code, body)."""
        answers = [None] * len(self.questions)

        def some(first):
            for i in range(first, len(self.questions), 4):
                answers[i] = server.grpc_bytes(*self.questions[i])[0]

        in_threads([lambda first=first: some(first) for first in range(4)])
        return answers

    def check(self, server, state):
        answers = self.ask(server)
        wrong = [i for i in range(len(answers)) if answers[i] != self.answers[i]]
        if wrong:
            method, request = self.questions[wrong[0]]
            self.fail(
                "%s: %d of %d answers differ, first %s %r: %d bytes instead of %d"
                % (
                    state, len(wrong), len(answers), method, wire.decode(request), len(answers[wrong[0]]),
                    len(self.answers[wrong[0]]),
                )
            )

    def built(self, server):
        """All services are rolled up to the last whole 10 minutes, and nothing late is left."""
        edge = now_ms() // (10 * MINUTE) * 10 * MINUTE * 1_000_000
        rows = sql(
            self.url,
            "SELECT count(*) FILTER (WHERE built_to < %d), count(*), (SELECT count(*) FROM hearth_data.profile_late)"
            " FROM hearth_data.roll_state" % edge,
        )
        return rows[0] == ["0", "3", "0"]

    def compacted(self):
        rows = sql(
            self.url,
            "SELECT count(*) FROM hearth_data.roll_state WHERE compacted_to < %d"
            % ((now_ms() // HOUR - 1) * HOUR * 1_000_000),
        )
        return rows == [["0"]]

    def legs(self, server, source):
        return prometheus.value(server.metrics(), "hearth_query_legs_total", source=source)

    def sums_found(self, server):
        return prometheus.value(server.metrics(), "hearth_query_cache_total", outcome="found")

    def trees_found(self, server):
        return prometheus.value(server.metrics(), "hearth_query_cache_total", outcome="tree")

    def test_queries_have_equal_answers_in_every_state(self):
        data = self.data
        raw = Server("--builder=false", database_url=self.url)
        data.push(raw, 3000, data.start, data.end)
        data.push(raw, 1200, data.end - 30 * HOUR, data.end - 28 * HOUR, ["batch"])
        # Some come late, before anything is built: ingest puts them aside, and a query reads them there.
        sql(
            self.url,
            "INSERT INTO hearth_data.roll_state SELECT service_id, %d, %d, %d, 1"
            " FROM hearth_data.service" % ((data.end - HOUR) * 1_000_000, NEVER, NEVER),
        )
        data.push(raw, 200, data.start, data.end)
        self.assertGreater(int(sql(self.url, "SELECT count(*) FROM hearth_data.profile_late")[0][0]), 100)
        self.questions = make_questions(QUESTIONS, SEED, data.start, data.end)
        self.answers = self.ask(raw)
        self.assertGreater(sum(1 for a in self.answers if len(a) > 100), QUESTIONS // 2, "most questions have an answer")
        self.check(raw, "raw, again")
        raw.stop()

        server = Server(*QUICK, "--compaction=false", database_url=self.url)
        eventually(lambda: self.built(server), 60, what="rolling up")
        self.check(server, "rolled up")
        for source in ("roll_10m", "roll_1h", "roll_1d", "totals", "profile"):
            self.assertGreater(self.legs(server, source), 0, source)
        for totals in ("series_id = 0", "series_id > 0"):
            rows = sql(self.url, "SELECT count(*) FROM hearth_data.hour_totals WHERE " + totals)
            self.assertGreater(int(rows[0][0]), 5, "series share rows of totals, or do not: " + totals)
        kept = "SELECT count(*) FROM hearth_data.roll_10m WHERE series_id > 0"
        self.assertGreater(int(sql(self.url, kept)[0][0]), 50, "two hours have many profiles")
        absent = sql(self.url, "SELECT max(cardinality(absent)) / 4 FROM hearth_data.roll_state")
        self.assertGreater(int(absent[0][0]), 1, "before and after them, blocks are left out")
        for length in (10 * MINUTE, HOUR, DAY):
            lacking = sql(self.url, "SELECT count(*) FROM hearth_data.roll_state WHERE %d = ANY (absent)" % (length * 1_000_000))
            self.assertGreater(int(lacking[0][0]), 0, "blocks of %d ms are left out, too" % length)

        found = self.sums_found(server)
        self.check(server, "rolled up, with sums in memory")
        self.assertGreater(self.sums_found(server), found + QUESTIONS // 3)
        trees = self.trees_found(server)
        self.check(server, "rolled up, with trees in memory")
        self.assertGreater(self.trees_found(server), trees)

        stop = threading.Event()
        rebuilds = []

        def rebuild():
            while not stop.is_set():
                answer = server.connect("hearth.v1.AdminService/Rebuild", {"allServices": True, "fromMs": str(data.start + DAY)})
                rebuilds.append(answer)
                stop.wait(0.3)

        builder = threading.Thread(target=rebuild)
        builder.start()
        try:
            while builder.is_alive() and len(rebuilds) < 2:
                self.check(server, "in the middle of builds")
        finally:
            stop.set()
            builder.join()
        self.assertGreater(len(rebuilds), 1)
        eventually(lambda: self.built(server), 60, what="building again")
        self.check(server, "built again")
        server.stop()

        server = Server(*QUICK, "--compact-after", "0", database_url=self.url)
        self.check(server, "in the middle of compaction")
        eventually(self.compacted, 60, what="compaction")
        self.check(server, "compacted")
        sources = {source: self.legs(server, source) for source in ("segment", "roll_1h", "totals")}
        self.assertTrue(all(sources.values()), sources)

        # Late for hours that are compacted: read aside, then folded into new segments.
        server.stop()
        raw = Server("--builder=false", database_url=self.url)
        data.push(raw, 100, data.start, data.end - 4 * HOUR)
        self.answers = self.ask(raw)
        raw.stop()
        server = Server(*QUICK, "--compact-after", "0", database_url=self.url)
        eventually(lambda: self.built(server), 60, what="folding into segments")
        self.check(server, "late profiles folded into segments")

        server.kill9()
        server.start()
        self.check(server, "after kill -9 and a restart")

        # Its memory for sums is too small for these questions.
        second = Server(*QUICK, "--compact-after", "0", "--query-cache-bytes", "1m", database_url=self.url)
        self.check(second, "by a second server")
        self.check(second, "by a second server, with some sums in memory")
        self.assertGreater(self.sums_found(second), 0)
        second.stop()

        replica = Standby(self.cluster)
        reader = Server(
            "--builder=false", "--read-database-url", replica.url(), "--read-replica-wait", "5s", database_url=self.url
        )
        self.check(reader, "with a replica")
        served = prometheus.value(reader.metrics(), "hearth_replica_reads_total", outcome="replica")
        self.assertGreaterEqual(served, QUESTIONS)
        reader.stop()
        replica.stop()

        self.check_restored()
        server.stop()

    def check_restored(self):
        dump = os.path.join(self.cluster.directory, "dump")
        subprocess.run([Cluster.program("pg_dump"), "-Fc", "-f", dump, self.url], check=True)
        copy = Cluster(template=False)
        try:
            subprocess.run([Cluster.program("pg_restore"), "-d", copy.url(), dump], check=True)
            restored = Server("--builder=false", database_url=copy.url())
            self.check(restored, "after dump and restore")
            restored.stop()
        finally:
            copy.stop()


if __name__ == "__main__":
    unittest.main()
