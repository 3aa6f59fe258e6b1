"""kill -9 while background work is busy: what was acknowledged is there exactly once, by every way to read it.

Profiles of the last two days come all the time, most of them late, and rebuilds are asked for, while hearthd, PostgreSQL's
postmaster and its backends are killed in turn: HEARTH_BACKGROUND_CRASH_CYCLES times (4) with a database of its own, and
as often with the embedded one. Each profile has a stack of its own.
"""

import collections
import http.client
import os
import random
import signal
import threading
import time
import unittest

import prometheus
import test_crash
import wire
from pprof import Decoded, Profile
from questions import CPU
from server import Cluster, RpcError, Server, eventually, note, now_ms

CYCLES = int(os.environ.get("HEARTH_BACKGROUND_CRASH_CYCLES", "4"))
SEED = int(os.environ.get("HEARTH_CRASH_SEED", time.time_ns() % 1_000_000))
BUSY = ["--builder-interval", "100ms", "--rollup-grace", "0", "--compact-after", "0", "--commit-linger", "2ms",
        "--rollup-min-profiles-1h", "4"]
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MS = 1_000_000
PERIOD = 10_000_000
PUSHERS, SERVICES = 6, 8
TIERS = {"roll_10m": 10 * MINUTE, "roll_1h": HOUR, "roll_1d": DAY}

One = collections.namedtuple("One", "service pusher part ts value cpu")


class Pusher(test_crash.Pusher):
    """Remembers what it pushed: {name: One}."""

    def __init__(self, number, target, seed):
        super().__init__(number, target)
        self.random = random.Random(seed * 100 + number)
        self.pushed = {}

    def request(self, name):
        n = len(self.pushed)
        ts = now_ms()
        if self.random.random() < 0.8:
            ts = self.random.randint(ts - 2 * DAY, ts)
        value = self.random.randint(1, 1000)
        cpu = value * PERIOD + (self.random.randint(0, 3) if self.random.random() < 0.1 else 0)
        # Services and series begin one after the other: their first profiles are not late, however old they are.
        service = "s%d" % self.random.randint(0, min(n // 30, SERVICES - 1))
        one = self.pushed[name] = One(service, str(self.number), str(min(n // 50, 3)), ts, value, cpu)
        labels = {"__name__": "process_cpu", "service_name": service, "pusher": one.pusher, "part": one.part}
        profile = Profile(test_crash.TYPES, period=PERIOD, time_ns=ts * MS).add(["main", name], [value, cpu]).encode()
        sample = [(1, profile)] + ([(2, name)] if self.repeats else [])
        return wire.encode([(1, [(1, [(1, k), (2, v)]) for k, v in labels.items()] + [(2, sample)])])

    def push(self, request):
        time.sleep(0.01)
        return super().push(request)

    def account(self, names):
        return {name: self.pushed[name] for name in names}


class Rebuilder(threading.Thread):
    """Asks for rebuilds of what is surely there."""

    def __init__(self, test, seed):
        super().__init__(daemon=True)
        self.test, self.random = test, random.Random(seed)
        self.n_done, self.unexpected = 0, collections.Counter()
        self.stopping = threading.Event()

    def ask(self):
        known = [p.pushed[name] for p in self.test.pushers for name in list(p.acknowledged)]
        if not known:
            return
        one = self.random.choice(known)
        try:
            self.test.server.connect(
                "hearth.v1.AdminService/Rebuild", {"serviceName": one.service, "fromMs": str(one.ts)}, timeout=10
            )
            self.n_done += 1
        except RpcError as error:
            if error.code not in ("unavailable", "deadline_exceeded", "canceled"):
                self.unexpected[str(error)] += 1
        except (OSError, http.client.HTTPException):
            pass

    def run(self):
        while not self.stopping.wait(self.random.random() * 0.6):
            self.ask()


class BackgroundCrash(unittest.TestCase):
    maxDiff = 3000
    cycles, seed = CYCLES, SEED

    # ---- killing ----

    def begin(self, embedded):
        self.random = random.Random(self.seed)
        self.cluster = None if embedded else Cluster()
        self.server = Server(*BUSY, database_url=None if embedded else self.cluster.url())
        self.postmasters_killed = 0

    def postmaster_dies(self):
        self.postmasters_killed += 1
        if self.cluster is None:
            try:
                os.kill(self.server.postmaster_pid(), signal.SIGKILL)
            except ProcessLookupError:
                pass
            return
        self.cluster.process.kill()
        self.cluster.process.wait()

        def again():
            """Until the last backend of the old one has noticed, a new one refuses to start."""
            try:
                self.cluster.start()
                return True
            except AssertionError:
                return False

        eventually(again, 60, what="PostgreSQL")

    def kill_hearthd(self):
        self.server.kill9()
        if self.random.random() < 0.5:
            self.postmaster_dies()
        self.server.start()
        # As if the 30 s had passed that nobody works after the death of who had the lease.
        self.server.sql("UPDATE hearth_data.lease SET expires_at = '-infinity'")

    def kill_postmaster(self):
        eventually(self.backends, 60, what="a backend")
        self.postmaster_dies()

    def backends(self):
        try:
            rows = self.server.sql(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        except AssertionError:
            return None
        return [int(row[0]) for row in rows]

    def kill_backend(self):
        try:
            os.kill(self.random.choice(eventually(self.backends, 60, what="a backend")), signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill(self, cycle):
        kills = (self.kill_hearthd, self.kill_backend, self.kill_postmaster, self.kill_backend)
        kills[cycle % len(kills)]()

    def target(self, number):
        """The server that a pusher talks to."""
        return self.server

    def crash(self, embedded):
        self.begin(embedded)
        self.pushers = [Pusher(k, self.target(k), self.seed) for k in range(PUSHERS)]
        rebuilder = Rebuilder(self, self.seed)
        threads = self.pushers + [rebuilder]
        for thread in threads:
            thread.start()
        for cycle in range(self.cycles):
            test_crash.progress(self.pushers)
            time.sleep(0.8 * self.random.random())
            self.kill(cycle)
        test_crash.progress(self.pushers)
        for thread in threads:
            thread.stopping.set()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.server.wait_ready()
        self.assertFalse(rebuilder.unexpected)
        self.assertFalse(sum((p.unexpected for p in self.pushers), collections.Counter()))
        self.acknowledged, self.doubtful = {}, {}
        for pusher in self.pushers:
            self.acknowledged.update(pusher.account(pusher.acknowledged))
            self.doubtful.update(pusher.account(pusher.doubtful))
        self.n_rebuilds = rebuilder.n_done

    # ---- checking ----

    def settled(self):
        """All is built, folded and, but for the last hour or two, compacted."""
        state = self.server.sql(
            "SELECT (SELECT count(*) FROM hearth_data.roll_state WHERE built_to < watermark OR compacted_to < %d),"
            " (SELECT count(*) FROM hearth_data.profile_late)" % ((now_ms() // HOUR - 1) * HOUR * MS)
        )
        return state == [["0", "0"]]

    def answers(self):
        """({name: nanoseconds}, {(service, pusher, part): nanoseconds}, total of the flame graph)"""
        start, end = now_ms() - 3 * DAY, now_ms() + MINUTE
        merged = Decoded(self.server.merge_pprof(CPU, "{}", start, end)).by_stack(0)
        by = ["service_name", "pusher", "part"]
        series = {}
        for labels, points in self.server.select_series(CPU, "{}", start, end, 600, by):
            labels = dict(labels)
            series[tuple(labels[name] for name in by)] = int(sum(value for _, value in points))
        return (
            {stack[0][0]: value for stack, value in merged.items()}, series,
            self.server.flamegraph(CPU, "{}", start, end, max_nodes=64).total,
        )

    def check_answers(self, state):
        """Against the account; what was in doubt may be there, once."""
        counted, series, total = self.answers()
        self.assertEqual({n for n in self.acknowledged if n not in counted}, set(), "lost, " + state)
        pushed = {**self.acknowledged, **self.doubtful}
        self.assertEqual({n: v for n, v in counted.items() if n not in pushed or v != pushed[n].cpu}, {}, "wrong, " + state)
        by_series = collections.Counter()
        for name in counted:
            one = pushed[name]
            by_series[one.service, one.pusher, one.part] += one.cpu
        self.assertEqual(series, dict(by_series), state)
        self.assertEqual(total, sum(counted.values()), state)
        return {name: pushed[name] for name in counted}

    def rows(self, text):
        return [tuple(int(cell) for cell in row) for row in self.server.sql(text)]

    def check_tables(self, stored):
        """Every block, packed hour and segment has what the profiles of its time add up to."""
        ids = {}
        services = {}
        for service, pusher, part, service_id, series_id in self.server.sql(
            "SELECT service, labels->>'pusher', labels->>'part', service_id, series_id FROM hearth.series"
        ):
            ids[service, pusher, part] = (int(service_id), int(series_id))
            services[service] = int(service_id)
        state = {r[0]: r[1:] for r in self.rows("SELECT service_id, built_to, compacted_to FROM hearth_data.roll_state")}

        # Blocks that would sum few profiles: (length, begin, end, flags; 1: those of the whole service are absent, too).
        numbers = self.server.sql("SELECT service_id, array_to_string(absent, ' ') FROM hearth_data.roll_state")
        absent = {int(id): [tuple(map(int, text.split()[i:i + 4])) for i in range(0, len(text.split()), 4)] for id, text in numbers}

        def is_absent(one, length, whole):
            ranges = absent[services[one.service]]
            return any(n == length * MS and a <= one.ts * MS < b and (flags & 1 or not whole) for n, a, b, flags in ranges)

        def sums(length, key, until, of, whole=False):
            out = collections.defaultdict(lambda: [0, 0, 0])
            for one in stored.values():
                if of == "blocks" and is_absent(one, length, whole):
                    continue
                t0 = one.ts // length * length * MS
                if t0 + (length * MS if of == "blocks" else 0) <= until(one) and (of == "blocks" or one.ts * MS < until(one)):
                    for i, more in enumerate((1, one.value, one.cpu)):
                        out[key(one) + (t0,)][i] += more
            return {k: tuple(v) for k, v in out.items()}

        series = lambda one: ids[one.service, one.pusher, one.part]
        service = lambda one: (services[one.service],)
        built = lambda one: state[services[one.service]][0]
        compacted = lambda one: state[services[one.service]][1]
        block = (
            "SELECT service_id, %s t0, sum(n_profiles), sum(totals[1]), sum(totals[2]) FROM hearth_data.%s"
            " WHERE series_id %s 0 GROUP BY %s"
        )
        for table, length in TIERS.items():
            found = {r[:3]: r[3:] for r in self.rows(block % ("series_id,", table, ">", "1, 2, 3"))}
            self.assertEqual(found, sums(length, series, built, "blocks"), table)
            found = {r[:2]: r[2:] for r in self.rows(block % ("", table, "<", "1, 2"))}
            self.assertEqual(found, sums(length, service, built, "blocks", whole=True), table + " of whole services")
        found = self.rows(
            "SELECT service_id, series_id, t0, sum(n) FROM (SELECT service_id, series_id, t0, n_profiles AS n FROM"
            " hearth_data.hour_totals WHERE series_id > 0 UNION ALL SELECT service_id, (totals[i] >> 32)::int4, t0,"
            " (totals[i] & 4294967295)::int4 FROM hearth_data.hour_totals, generate_series(1, cardinality(totals),"
            " cardinality(vals) + 1) i WHERE series_id = 0) h GROUP BY 1, 2, 3"
        )
        self.assertEqual({r[:3]: r[3] for r in found}, {k: v[0] for k, v in sums(HOUR, series, built, "rows").items()})
        found = self.rows("SELECT service_id, t0, sum(n_rows) FROM hearth_data.segment GROUP BY 1, 2")
        in_segments = {k: v[0] for k, v in sums(HOUR, service, compacted, "rows").items()}
        self.assertEqual({r[:2]: r[2] for r in found}, in_segments)
        self.assertEqual(
            self.rows(
                "SELECT count(*), count(DISTINCT writer_id || ':' || profile_no) FROM hearth_data.profile JOIN"
                " hearth_data.roll_state USING (service_id) WHERE ts >= compacted_to"
            ),
            [(len(stored) - sum(in_segments.values()),) * 2],
        )
        self.assertEqual(self.rows("SELECT count(*) FROM hearth_data.profile_late"), [(0,)])
        return sum(in_segments.values())

    def restart(self, *options):
        self.assertEqual(self.server.terminate(), 0)
        self.server.options = [*BUSY, *options]
        self.server.start()

    def check(self):
        eventually(self.settled, 90, what="the end of background work")
        self.check_answers("rolled up and compacted")
        # Queries read blocks of ten minutes in the last hour only, where few profiles may have made none.
        (n_10m,) = self.rows("SELECT count(*) FROM hearth_data.roll_10m WHERE t0 >= %d" % (now_ms() // HOUR * HOUR * MS))[0]
        self.restart("--builder=false")
        stored = self.check_answers("after a restart")
        metrics = self.server.metrics()
        for source in ["roll_10m"] * (n_10m > 0) + ["roll_1h", "roll_1d", "segment"]:
            self.assertGreater(prometheus.value(metrics, "hearth_query_legs_total", source=source), 0, source)
        n_compacted = self.check_tables(stored)
        self.assertGreater(n_compacted, len(stored) // 2)
        # Without blocks, and without a builder, only the profiles themselves can be read.
        oldest = min(one.ts for one in stored.values())
        self.server.connect("hearth.v1.AdminService/Rebuild", {"allServices": True, "fromMs": str(oldest)})
        for table in [*TIERS, "hour_totals"]:
            self.assertEqual(self.rows("SELECT count(*) FROM hearth_data." + table), [(0,)])
        self.assertEqual(self.check_answers("profiles only"), stored)
        self.restart()
        eventually(self.settled, 90, what="building again")
        self.assertEqual(self.check_answers("built again"), stored)
        note(
            "%d cycles (%d of the postmaster), seed %d: %d profiles, %d compacted, %d in doubt, %d rebuilds"
            % (self.cycles, self.postmasters_killed, self.seed, len(stored), n_compacted, len(self.doubtful), self.n_rebuilds)
        )

    def test_a_database_of_its_own(self):
        self.crash(embedded=False)
        self.check()
        self.server.stop()
        self.cluster.stop()

    def test_the_embedded_database(self):
        self.crash(embedded=True)
        self.check()
        self.server.stop()


if __name__ == "__main__":
    unittest.main()
