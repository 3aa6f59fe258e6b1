"""bench.py --goals [PARTS] [--beside BUILD]: every row of the table "Goals" of docs/benchmarks.md.

With --beside, a second server runs from that build directory, on databases that its own programs loaded, and each figure is
measured in turns with it: first there, then here. Figures are medians of rounds; CPU is hearthd's + PostgreSQL's.
"""

import argparse
import os
import re
import shutil
import statistics
import time

import hard
import sets
from measure import Running, process_cpu, say

PARTS = ("ingest", "fleet", "thin", "sparse")
SPARSE = {60: 1, 600: 10, 3600: 10}  # a profile in so many seconds: services of ten pods
NEW, CLIENTS = 200, 8  # series of a push that are new, pushes at a time
DURABLE = "SELECT pg_logical_emit_message(true, 'floor', 'x')"  # a transaction that logs a message, and nothing else
SUMS = "SELECT count(*) FROM (SELECT series_id, sum(totals[2]) FROM hearth_data.profile GROUP BY service_id, series_id) AS s"


def middle(rounds, key):
    return statistics.median(one[key] for one in rounds)


def pss_mib(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return int(re.search(r"Pss:\s+(\d+)", f.read()).group(1)) / 1024


class Goals:
    def __init__(self, bench):
        self.quick = bench.options.quick
        self.rounds = 3 if self.quick else 5
        self.sides = {"here": bench}
        if bench.options.beside:
            other = argparse.Namespace(**{**vars(bench.options), "build": bench.options.beside})
            self.sides = {"beside": type(bench)(other), "here": bench}
        self.rows, self.numbers = [], {}
        self.parts = PARTS if bench.options.goals == "all" else bench.options.goals.split(",")
        if set(self.parts) - set(PARTS):
            raise SystemExit("bench: --goals knows the parts %s" % ", ".join(PARTS))

    # ---- turns ----

    def turns(self, measure, rounds=None):
        """{side: [what each round measured]}: the sides in turn."""
        seen = {name: [] for name in self.sides}
        for _ in range(rounds or self.rounds):
            for name in self.sides:
                seen[name].append(measure(name))
        return seen

    def together(self, work):
        """{side: what work(side) returned}, of all sides at the same time: nothing is measured meanwhile."""
        in_threads = self.sides["here"].server_module.in_threads
        return dict(zip(self.sides, in_threads([lambda name=name: work(name) for name in self.sides])))

    def row(self, what, seen, show, goal, floor=None):
        """show, floor: of the rounds of a side, as text; the floor is that of this build."""
        load = os.getloadavg()[0]
        floor = floor(seen["here"]) if floor else ""
        shown = [show(seen[name]) for name in self.sides]
        self.rows.append("| %s |" % " | ".join([what, *shown, floor, goal, "%.1f" % load]))
        self.numbers[what] = {"rounds": seen, "shown": dict(zip(self.sides, shown)), "floor": floor, "goal": goal, "load": load}
        say("%s: %s; floor %s" % (what, " -> ".join(shown), floor))

    def both(self, key, digits=1, unit="ms"):
        """CPU of hearthd + PostgreSQL of the questions under `key`."""
        form = "%%.%df + %%.%df %s" % (digits, digits, unit)
        return lambda rounds: form % tuple(
            statistics.median(one[key][part] for one in rounds) for part in ("hearthd_ms", "postgres_ms"))

    # ---- ingest: pushes of the pool ----

    def ingest(self):
        for side in self.sides.values():
            side.running = Running(side, side.directory)
            side.server = side.running.server
        time.sleep(12)
        new = {name: pss_mib(side.server.process.pid) for name, side in self.sides.items()}
        for side in self.sides.values():
            side.push("push", 64, 4)  # dictionaries

        def saturated(name):
            side = self.sides[name]
            return {**side.tool("bench_floor", side.pool, 1)[0], **side.push("push", 128, 3 if self.quick else 6)}

        def ratio(rounds, over):
            return statistics.median(one["cpu"] / one[over] for one in rounds)

        self.row("ingest, saturated: all CPU over inflate / over inflate and scan", self.turns(saturated),
                 lambda r: "%.2f / %.2f (%.0f us, batches of %.0f)" % (
                     ratio(r, "inflate_us"), ratio(r, "inflate_scan_us"), middle(r, "cpu"), middle(r, "batch")),
                 "2.0 / 1.4", lambda r: "%.0f / %.0f us" % (middle(r, "inflate_us"), middle(r, "inflate_scan_us")))
        seen = self.numbers["ingest, saturated: all CPU over inflate / over inflate and scan"]["rounds"]
        self.row("PostgreSQL's part of it", seen, lambda r: "%.1f %%" % (
            100 * statistics.median(one["postgres"] / one["cpu"] for one in r)), "5 %")

        def offered(rate, in_flight, seconds):
            def measure(name):
                side = self.sides[name]
                return {"durable_us": self.backend_us(side.server, DURABLE, 100, min(rate, 140)),
                        **side.push("push", in_flight, seconds, rate)}
            return measure

        self.row("1,000/s offered: PostgreSQL of a profile, p99", self.turns(offered(1000, 2000, 4 if self.quick else 8)),
                 lambda r: "%.0f us in batches of %.1f, p99 %.1f ms (best %.1f)" % (
                     middle(r, "postgres"), middle(r, "batch"), middle(r, "p99_ms"), min(one["p99_ms"] for one in r)),
                 "60 us, 15 ms", lambda r: "%.0f us a transaction, 140 a second" % middle(r, "durable_us"))
        self.row("20/s: CPU of a profile, p99", self.turns(offered(20, 64, 5 if self.quick else 10)),
                 lambda r: "%.2f + %.2f ms, p99 %.1f ms (best %.1f)" % (
                     middle(r, "hearthd") / 1000, middle(r, "postgres") / 1000, middle(r, "p99_ms"), min(one["p99_ms"] for one in r)),
                 "1.0 ms, 25 ms", lambda r: "%.2f ms a transaction" % (middle(r, "durable_us") / 1000))
        self.new_series()
        time.sleep(13)
        self.row("idle after ingest: PSS", self.turns(
            lambda name: {"pss": pss_mib(self.sides[name].server.process.pid), "new": new[name]}, 1),
            lambda r: "%.0f MiB" % r[0]["pss"], "80 MB", lambda r: "%.0f MiB new" % r[0]["new"])
        for side in self.sides.values():
            side.server.terminate()

    def backend_us(self, server, statement, n, rate=1000):
        """Microseconds of CPU of the backend for a statement, of which `rate` begin in a second, if it keeps up."""
        session = self.sides["here"].server_module.Session(server.postgres_url())
        pid = int(session.run("SELECT pg_backend_pid()")[0])
        session.run(statement)
        before, due = process_cpu(pid), time.monotonic()
        for _ in range(n):
            due += 1 / rate
            time.sleep(max(0, due - time.monotonic()))
            session.run(statement)
        used = process_cpu(pid) - before
        session.close()
        return 1e6 * used / n

    def new_series(self):
        import pprof
        import wire

        runs = iter(range(1000))
        for side in self.sides.values():
            side.server.sql("ANALYZE")  # autovacuum may do so at any time, and the service of the new series is not there yet

        def request(run, client, push, body):
            labels = [("__name__", "process_cpu"), ("service_name", "bulk"), ("namespace", "n"), ("region", "eu")]
            return wire.encode([(1, [(1, [(1, name), (2, value)]) for name, value in
                                     [*labels, ("pod", "pod-%d-%d-%d-%d" % (run, client, push, k))]] + [(2, [(1, body)])])
                                for k in range(NEW)])

        def pushed(name, run):
            """CPU of a series in microseconds, and the longest push in seconds."""
            body = pprof.Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=time.time_ns())
            for k in range(20):
                body.add(["main", "f%d" % k], [1, 10_000_000])
            side, walls = self.sides[name], []
            requests = [[request(run, client, push, body.encode()) for push in range(4)] for client in range(CLIENTS)]

            def client(mine):
                for one in mine:
                    began = time.monotonic()
                    side.server.grpc_bytes(side.server_module.PUSH, one)
                    walls.append(time.monotonic() - began)

            before = side.running.cpu()
            side.server_module.in_threads([lambda mine=mine: client(mine) for mine in requests])
            used = [(b - a) / (CLIENTS * 4 * NEW) / 1000 for a, b in zip(before, side.running.cpu())]
            return {"hearthd_ms": used[0], "postgres_ms": used[1]}, max(walls)

        def bulk(name):
            run = next(runs)
            new, longest = pushed(name, run)
            return {"new": new, "longest": longest, "known": pushed(name, run)[0]}

        self.row("a new series in bulk; the longest push of 200", self.turns(bulk),
                 lambda r: "%s; %.2f s" % (self.both("new", 3)(r), max(one["longest"] for one in r)), "0.1 ms; 1 s",
                 lambda r: self.both("known", 3)(r) + " known ones")

    # ---- a fleet: 10 pods for 7 days, 200 for 24 hours ----

    def start(self, what, streams, step, *options):
        def one(name):
            side = self.sides[name]
            fleet = sets.Fleet(side, "%s, %s" % (what, name), side.pool, streams, step, {})
            fleet.directory = side.server_module.temporary_directory()
            fleet.running = Running(side, fleet.directory, *sets.OPTIONS, "--builder=false", *options)
            fleet.load()
            fleet.raw = fleet.sizes()
            return fleet

        self.fleets = self.together(one)

    def roll_up(self):
        def one(name):
            fleet = self.fleets[name]
            if not fleet.enter("rolled", fleet.is_rolled, "close", "hearth_rollup_profiles_total"):
                raise SystemExit("bench: the roll-ups of %s are not built" % fleet.name)
            fleet.running.server.sql("VACUUM (ANALYZE)")

        self.together(one)

    def stop(self):
        for fleet in self.fleets.values():
            fleet.running.server.terminate()
            shutil.rmtree(fleet.directory, ignore_errors=True)

    def ask(self, name, question):
        fleet = self.fleets[name]
        return fleet.running.ask(*sets.fields(question, fleet.end), seconds=0.5)

    def restart(self, *options):
        self.together(lambda name: self.fleets[name].running.restart(*sets.OPTIONS, "--compaction=false", *options))

    def fleet(self):
        day, week = (sets.merge(sets.PODS10, seconds, 10) for seconds in (sets.DAY, 7 * sets.DAY))
        export = {**week, "method": "querier.v1.QuerierService/SelectMergeProfile"}
        scale = sets.SCALES["200k" if self.quick else "2m"]
        self.start("fleet", sets.streams(scale)[:4], 15 * scale)
        self.row("bytes of a hot profile, without dictionaries", self.turns(
            lambda name: {"bytes": self.fleets[name].raw["profile"] / self.fleets[name].n_rows}, 1),
            lambda r: "%.0f" % r[0]["bytes"], "1,050")
        self.roll_up()
        self.restart()

        def first(name):
            fleet = self.fleets[name]
            fleet.running.restart(*sets.OPTIONS, "--compaction=false")
            before = fleet.running.cpu()
            ms = fleet.running.ask_once(*sets.fields(week, fleet.end))
            used = [(b - a) / 1000 for a, b in zip(before, fleet.running.cpu())]
            return {"ms": ms, "first": {"hearthd_ms": used[0], "postgres_ms": used[1]}}

        started = self.turns(first)
        kept = self.turns(lambda name: {"day": self.ask(name, day), "week": self.ask(name, week), "pprof": self.ask(name, export)})

        def lines(name):
            return {"one": self.ask(name, sets.series(sets.PODS200, sets.DAY, 200, 60)),
                    "pods": self.ask(name, sets.series(sets.PODS200, sets.DAY, 200, 60, ("pod",)))}

        self.row("SelectSeries 200 x 24 h, 60 s: one group / by pod", self.turns(lines),
                 lambda r: "%s / %s" % (self.both("one")(r), self.both("pods")(r)), "15 ms")
        time.sleep(13)
        self.row("idle after queries: PSS", self.turns(
            lambda name: {"pss": pss_mib(self.fleets[name].running.server.process.pid)}, 1),
            lambda r: "%.0f MiB" % r[0]["pss"], "80 MB")
        self.restart("--query-cache-bytes=0")
        plain = self.turns(lambda name: {"day": self.ask(name, day), "week": self.ask(name, week), "pprof": self.ask(name, export)})
        fleet = self.fleets["here"]
        floor = fleet.floor("rolled", "focus", 0, fleet.plan(*sets.fields(day, fleet.end)))

        def dearer(rounds):
            return "%.2f" % statistics.median(
                sum(one["pprof"][part] for part in ("hearthd_ms", "postgres_ms"))
                / sum(one["week"][part] for part in ("hearthd_ms", "postgres_ms")) for one in rounds)

        self.row("flame graph of 24 h, 10 pods, nothing kept", plain, self.both("day"), "12 ms", lambda r: "%.1f ms" % floor)
        self.row("the same again", kept, self.both("day"), "5 ms")
        self.row("pprof of 7 days over the flame graph: nothing kept / sums kept", {
            name: [*zip(plain[name], kept[name])] for name in self.sides},
            lambda r: "%s / %s (%s : %s)" % (dearer([a for a, _ in r]), dearer([b for _, b in r]),
                                             self.both("pprof")([a for a, _ in r]), self.both("week")([a for a, _ in r])), "1.5")
        self.row("first flame graph over 7 days after a restart", started,
                 lambda r: "%s, %.0f ms" % (self.both("first")(r), middle(r, "ms")), "100 ms",
                 lambda r: self.both("week")(plain["here"]) + " warm")
        self.stop()

    # ---- 100,000 series with a profile each ----

    def thin(self):
        import questions
        import wire

        self.start("thin", hard.SERIES_STREAMS, 600, "--max-query-memory-bytes=2g")
        everything = '{namespace="production"}'
        by_pod, by_service = (sets.series(everything, sets.HOUR, 0, 60, (label,)) for label in ("pod", "service_name"))

        def labels(name):
            fleet = self.fleets[name]
            fields = [(3, 1000 * (fleet.end - sets.HOUR)), (4, 1000 * fleet.end)]
            if not hasattr(fleet, "n_sets"):
                answer = fleet.running.server.grpc_bytes(questions.QUERIER + "Series", wire.encode(fields))[0]
                fleet.n_sets = len(wire.decode(answer)[2])
            return fleet.running.ask(questions.QUERIER + "Series", fields, seconds=0.5)

        def each(seen, n):
            return {part: 1000 * seen[part] / n for part in ("hearthd_ms", "postgres_ms")}

        n = self.fleets["here"].n_rows
        self.row("SelectSeries by pod / by service, 100,000 thin series", self.turns(lambda name: {
            "pod": each(self.ask(name, by_pod), n), "service": each(self.ask(name, by_service), n)}),
            lambda r: "%s / %s" % (self.both("pod", 2, "us")(r), self.both("service", 2, "us")(r)), "1.5 us",
            lambda r: "%.2f us" % (self.backend_us(self.fleets["here"].running.server, SUMS, 5) / n))
        self.row("Series, all labels", self.turns(lambda name: {"set": each(labels(name), self.fleets[name].n_sets)}),
                 self.both("set", 2, "us"), "2.5 us")
        self.stop()

    # ---- a profile in a minute, ten, an hour ----

    def sparse(self):
        def measure(name):
            sizes = self.fleets[name].sizes()
            tables = {table: 100 * sizes[table] / sizes["profile"] for table in ("roll_10m", "roll_1h", "roll_1d", "hour_totals")}
            return {**tables, "all": sum(tables.values())}

        for step, services in SPARSE.items():
            streams = ["sparse-%d:%s:%d:0:%d:%d" % (i, pods, 2 * sets.DAY, gap, 8 + i) for i in range(services)
                       for pods, gap in (("production:10", step), ("canary:1", 40 * step))]
            self.start("sparse", streams, step)
            self.roll_up()
            self.row("roll-ups over profiles, a profile in %s s" % format(step, ","), self.turns(measure, 1),
                     lambda r: "%.0f %% (10 min %.0f, hour %.0f, day %.0f, totals %.0f)" % tuple(
                         r[0][key] for key in ("all", "roll_10m", "roll_1h", "roll_1d", "hour_totals")), "30 %")
            self.stop()

    def run(self):
        first = next(iter(self.sides.values()))
        first.make_pool(60 if self.quick else 240)
        for side in self.sides.values():
            side.pool = first.pool
        for part in self.parts:
            getattr(self, part)()
        head = ["goal", *self.sides, "floor", "to reach", "load"]
        print("| %s |\n|%s\n%s" % (" | ".join(head), "---|" * len(head), "\n".join(self.rows)))
        return {"goals": self.numbers}


def run(bench):
    return Goals(bench).run()
