#!/usr/bin/python3
"""Measure Hearth: ingest, queries, small calls, disk and memory, each beside its floor in the same run.

bench.py [--quick] [--goals [PARTS] [--beside DIR] | --api | --wall | --access | --sets 20k,200k,2m | --hard [NAMES] |
         --spans [MILLIONS] | --self-profile] [--own-recordings] [--docs] [--json FILE] [--build DIR]
bench.py intake [FILE...] [--json FILE] [--build DIR]

Tables (markdown) on stdout; --json keeps the numbers. A report, never a test: it judges nothing and fails only when it
cannot measure. CPU is that of the processes, so that a busy machine changes it little; times are medians.
Every server and database is a private one below a temporary directory, on loopback.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import textwrap
import time

from measure import ROOT, PROFILES, Running, Setting, say

PODS = 8

LABEL_QUERIES = [
    ("select", '{service_name="service-042"}', ""),
    ("values", '{service_name="service-042"}', "pod"),
    ("project", '{}', "service_name,__profile_type__"),
    ("values", '{}', "pod"),
    ("select", '{namespace="namespace-7", language="language-1", tier!="tier-2"}', ""),
    ("select", '{service_name="service-042", pod=~".*(1|3)[0-9]$"}', ""),
    ("select", '{pod=~".*[13]7$"}', ""),
]


class Bench(Setting):
    def __init__(self, options):
        super().__init__(options)
        self.rows, self.numbers = [], {}

    def make_pool(self, *arguments):
        if self.missing and not self.options.own_recordings:
            raise SystemExit(
                "bench: %s is missing, so nothing here compares with docs/benchmarks.md; --own-recordings measures with the"
                " small recordings of tests/golden, without goals" % self.missing[0])
        if self.missing and self.options.docs:
            raise SystemExit("bench: --docs writes figures of the shared recordings only; %s is missing" % self.missing[0])
        super().make_pool(*arguments)

    # ---- the table ----

    def row(self, what, value, unit, floor=None, goal="", digits=1, note=""):
        ratio = value / floor if floor else None
        goal = goal if self.has_shared else ""  # goals are those of the shared recordings
        self.rows.append(
            "| %s | %s %s%s | %s | %s | %s |"
            % (
                what,
                format(value, ",.%df" % digits),
                unit,
                " (%s)" % note if note else "",
                "%s %s" % (format(floor, ",.%df" % digits), unit) if floor else "",
                "%.2f" % ratio if ratio else "",
                goal,
            )
        )
        self.numbers[what] = {"value": value, "unit": unit, "floor": floor, "ratio": ratio, "goal": goal, "note": note}

    def print_table(self):
        print("| what | measured | floor, same run | ratio | goal |\n|---|---|---|---|---|")
        print("\n".join(self.rows))

    # ---- helpers ----

    def stages(self):
        text = self.server.http("GET", "/metrics")[2].decode()
        found = re.findall(r'hearth_ingest_cpu_seconds_total\{stage="(\w+)"\} ([\d.]+)', text)
        return {name: float(seconds) * 1e6 for name, seconds in found}, int(re.search(r"\nhearth_commit_batches_total (\d+)", text)[1])

    def target(self):
        return "127.0.0.1:%d" % self.server.port

    # ---- ingest ----

    def push(self, how, in_flight, seconds, rate=0):
        """What one push cost, in microseconds of CPU, and what the generator saw."""
        stages, batches = self.stages()
        hearthd, postgres = self.running.cpu()
        seen = self.tool("bench_load", how, self.target(), self.pool, PODS, in_flight, seconds, rate)[0]
        if seen["failed"]:
            say("%d pushes failed: %s" % (seen["failed"], seen["error"]))
        hearthd_after, postgres_after = self.running.cpu()
        stages_after, batches_after = self.stages()
        n = seen["ok"]
        seen["stages"] = {name: (us - stages.get(name, 0)) / n for name, us in stages_after.items()}
        seen["hearthd"] = (hearthd_after - hearthd) / n
        seen["postgres"] = (postgres_after - postgres) / n
        seen["cpu"] = seen["hearthd"] + seen["postgres"]
        seen["stages"]["transport"] = seen["hearthd"] - sum(seen["stages"].values())
        seen["batch"] = n / max(1, batches_after - batches)
        return seen

    def ingest(self):
        quick = self.options.quick
        rounds, seconds = (2, 4) if quick else (5, 6)
        say("warming the dictionaries")
        self.push("push", 64, 4 if quick else 8)
        floors, pushes = [], []
        for i in range(rounds):
            say("ingest, round %d of %d" % (i + 1, rounds))
            floors.append(self.tool("bench_floor", self.pool, 1)[0])
            pushes.append(self.push("push", 128, seconds))
        http = self.push("http", 16, seconds)
        self.numbers["rss under load"] = self.running.rss()

        def middle(get):
            return statistics.median(get(floor, push) for floor, push in zip(floors, pushes))

        body = floors[0]
        self.numbers["bodies"] = body
        inflate, scan = middle(lambda f, p: f["inflate_us"]), middle(lambda f, p: f["inflate_scan_us"])
        ratio = middle(lambda f, p: p["cpu"] / f["inflate_us"])
        cpu = middle(lambda f, p: p["cpu"])
        self.row("floor: inflate these bodies (libdeflate)", inflate, "us")
        self.row("floor: inflate and scan", scan, "us", inflate)
        self.row("ingest over gRPC, committed, all CPU of a profile", cpu, "us", inflate, "ratio <= 2.2",
                 note="median ratio %.2f; batches of %.0f" % (ratio, middle(lambda f, p: p["batch"])))
        self.row("the same beside inflate and scan", cpu, "us", scan)
        self.row("profiles per second and core", 1e6 / cpu, "/s", None, ">= 4,300 where inflate takes 100 us", 0,
                 note="%.0f/s acknowledged" % middle(lambda f, p: p["ok"] / p["seconds"]))
        for stage in ("transport", "inflate", "scan", "resolve", "encode", "commit"):
            self.row("- of it " + stage, middle(lambda f, p: p["stages"][stage]), "us",
                     {"inflate": inflate, "scan": scan - inflate}.get(stage))
        self.row("- of it PostgreSQL", middle(lambda f, p: p["postgres"]), "us", None, "<= 5 %",
                 note="%.1f %%" % (100 * middle(lambda f, p: p["postgres"] / p["cpu"])))
        self.row("ingest over HTTP/1.1 (Connect), all CPU of a profile", http["cpu"], "us", inflate,
                 note="transport %.1f us" % http["stages"]["transport"])
        for rate in (1000, 5000):
            say("ingest at %d/s" % rate)
            seen = self.push("push", 2000, 4 if quick else 8, rate)
            served = seen["ok"] / seen["seconds"]
            self.row("offered %s/s: acknowledged after, p99" % format(rate, ","), seen["p99_ms"], "ms", None,
                     "<= 10 ms + fsync" if rate == 5000 else "",
                     note="p50 %.1f; %.0f/s served; batches of %.1f; PostgreSQL %.1f us"
                     % (seen["p50_ms"], served, seen["batch"], seen["postgres"]))

    def disk(self):
        """Before the rows of load_store, whose profiles repeat."""
        tables = self.server.sql(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE p.relname = 'profile'), 0),"
            " coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE p.relname = 'dict_chunk'), 0)"
            " FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent"
        )[0]
        rows = int(self.server.sql("SELECT count(*) FROM hearth_data.profile")[0][0])
        profile, chunks = int(tables[0]), int(tables[1])
        self.row("bytes of a profile on disk, with index and dictionary", (profile + chunks) / rows, "B", None, "<= 1,100", 0,
                 note="%d rows; rows %.0f, dictionaries %.0f; gz body %.0f"
                 % (rows, profile / rows, chunks / rows, self.numbers["bodies"]["gz_bytes"]))

    # ---- queries ----

    def wait_for_blocks(self):
        """Until the builder, which looks every 10 s, has found nothing to sum for 25 s: goals count on blocks of closed hours."""
        last, moved = None, time.monotonic()
        while time.monotonic() - moved < 25:
            time.sleep(0.5)
            done = self.running.metric("hearth_rollup_profiles_total")
            if done != last:
                last, moved = done, time.monotonic()

    def ask(self, what, method, fields, floor=None, goal=""):
        seen = self.running.ask(method, fields, 0.4 if self.options.quick else 1.2)
        self.row(what, seen["ms"], "ms", floor, goal,
                 note="best %.1f; CPU %.1f + PostgreSQL %.1f; answer %.0f KB"
                 % (seen["best_ms"], seen["hearthd_ms"], seen["postgres_ms"], seen["bytes"] / 1024))

    def queries(self):
        import questions

        quick = self.options.quick
        now = int(time.time())
        sets = ["focus:10:86400:0:%d" % (60 if quick else 15), "wide:200:3600:0:15"]
        if not quick:
            sets.append("wide:200:86400:3600:60")
        say("loading rows for queries")
        began = time.monotonic()
        loaded = self.tool("bench_load_store", self.server.postgres_url(), self.pool, now, *sets)
        n = sum(line["rows"] for line in loaded)
        self.numbers["load_store"] = loaded
        say("%d rows in %.1f s" % (n, time.monotonic() - began))
        self.wait_for_blocks()
        self.server.sql("VACUUM (ANALYZE)")  # what autovacuum does to a closed leaf sooner or later
        focus_us = 1000 * loaded[0]["merge_ms"] / loaded[0]["rows"]
        wide_us = 1000 * loaded[1]["merge_ms"] / loaded[1]["rows"]
        step = 60 if quick else 15
        merge = questions.QUERIER + "SelectMergeStacktraces"

        def graph(service, seconds):
            return [(1, questions.CPU), (2, '{service_name="%s"}' % service), (3, 1000 * (now - seconds)), (4, 1000 * now)]

        for seconds, name, goal in ((900, "15 min", ""), (3600, "1 h", "5 ms"), (86400, "24 h", "20 ms with roll-ups")):
            rows = 10 * seconds // step
            self.ask("flame graph, 10 pods %s (%s rows)" % (name, format(rows, ",")), merge, graph("focus", seconds),
                     rows * focus_us / 1000, goal)
        for seconds, name, goal in ((900, "15 min", "20 ms"), (3600, "1 h", "40 ms with roll-ups")):
            rows = 200 * seconds // 15
            self.ask("flame graph, 200 series %s (%s rows)" % (name, format(rows, ",")), merge, graph("wide", seconds),
                     rows * wide_us / 1000, goal)
        series = questions.QUERIER + "SelectSeries"
        # The last hour, which has 48,000 rows in `wide`, is most of the third; --sets measures the goal.
        for service, seconds, name in (
            ("focus", 86400, "10 x 24 h"),
            ("wide", 3600, "200 x 1 h"),
            ("wide", 86400, "200 x 24 h"),
        ):
            if quick and (service, seconds) == ("wide", 86400):
                continue
            self.ask("SelectSeries %s, step 60 s, by pod" % name, series, graph(service, seconds) + [(5, "pod"), (6, 60.0)],
                     self.sql_sum_ms(service, now - seconds, now))

    def sql_sum_ms(self, service, start, end):
        """Floor of a time series: PostgreSQL summing the same totals for itself, nothing sent."""
        plan = "\n".join(
            row[0]
            for row in self.server.sql(
                "EXPLAIN (ANALYZE, TIMING OFF) SELECT series_id, sum(totals[2]) FROM hearth_data.profile"
                " JOIN hearth_data.service USING (service_id) WHERE name = '%s' AND ts BETWEEN %d AND %d"
                " GROUP BY series_id" % (service, start * 10**9, end * 10**9)
            )
        )
        return float(re.search(r"Execution Time: ([\d.]+) ms", plan)[1])

    def small_calls(self):
        seconds = 2 if self.options.quick else 4
        # About what such a call has on the wire, headers included.
        floor = self.tool("bench_floor_loopback", 100, 16, seconds)[0]["us"]
        for what, how, path, in_flight, goal in (
            ("Health/Check over gRPC, CPU of a call", "call", "/grpc.health.v1.Health/Check", 64, "<= 15 us"),
            ("ProfileTypes over HTTP/1.1 JSON, CPU of a call", "post", "/querier.v1.QuerierService/ProfileTypes", 16, ""),
        ):
            say(what)
            before = self.running.cpu()
            seen = self.tool("bench_load", how, self.target(), path, in_flight, seconds)[0]
            after = self.running.cpu()
            self.row(what, (after[0] - before[0]) / seen["ok"], "us", floor, goal,
                     note="%.0f/s; PostgreSQL %.1f us; p99 %.1f ms"
                     % (seen["ok"] / seen["seconds"], (after[1] - before[1]) / seen["ok"], seen["p99_ms"]))

    def label_index(self):
        say("label index of 100,000 series")
        done = subprocess.run([str(self.bin / "bench_label_index")], stdout=subprocess.PIPE, text=True)
        for line in done.stdout.splitlines():
            found = re.match(r"(\w+)\s+(\{.*\})\s+(\S*)\s+(\d+)\s+([\d.]+)\s+[\d.]+\s+([\d.]+)$", line)
            if found and (found[1], found[2], found[3]) in LABEL_QUERIES:
                self.row("label index, 100,000 series: %s %s %s" % found.group(1, 2, 3), float(found[5]), "ms", float(found[6]),
                         "<= 1 ms", 3, note="%s answers" % found[4])

    def run(self):
        self.make_pool(60 if self.options.quick else PROFILES)
        self.running = Running(self, self.directory)
        self.server = self.running.server
        time.sleep(1)
        idle = self.running.rss()
        self.ingest()
        self.row("resident memory of hearthd: idle", idle, "MiB")
        self.row("resident memory of hearthd: after ingest under load", self.numbers["rss under load"], "MiB")
        self.disk()
        self.small_calls()
        self.queries()
        self.row("resident memory of hearthd: after the queries", self.running.rss(), "MiB")
        self.label_index()
        self.server.terminate()


def classic(bench):
    bench.run()
    body = bench.numbers["bodies"]
    print("Profiles: %.1f KB gz, %.0f KB plain, %.0f samples, resampled from %s recordings; %d processors, load %.1f.\n"
          % (body["gz_bytes"] / 1000, body["raw_bytes"] / 1000, body["samples"],
             "shared" if bench.has_shared else "our own small", os.cpu_count(), os.getloadavg()[0]))
    bench.print_table()
    return bench.numbers


def keep(bench, name, title, arguments, reports):
    """Write docs/benchmarks/NAME.md when asked to."""
    if not bench.options.docs:
        return
    head = "# %s\n\nWritten by `./dev bench %s --docs`. How it is measured: [method](method.md). Why it comes out so: [notes](notes.md)." % (
        title, arguments)
    about = "%d processors, load %.1f of the last quarter of an hour; profiles resampled from shared recordings." % (
        os.cpu_count(), os.getloadavg()[2])
    path = ROOT / "docs/benchmarks" / ("%s.md" % name)
    lines = "\n\n".join([head, about, *reports]).split("\n")
    path.write_text("\n".join(line if line.startswith("|") else textwrap.fill(line, 118) for line in lines) + "\n")
    say("wrote %s" % path.name)


def whole_fleets(bench):
    import sets

    names = bench.options.sets.split(",")
    unknown = [name for name in names if name not in sets.SCALES]
    if unknown:
        raise SystemExit("bench: no set is called %s; there are %s" % (unknown[0], ", ".join(sets.SCALES)))
    numbers = {"sets": sets.run(bench, names)}
    keep(bench, "fleets", "Whole fleets", "--sets " + bench.options.sets,
         [sets.report_one(name, one) for name, one in numbers["sets"].items()])
    if bench.options.docs:
        import plots

        plots.draw(numbers["sets"])
    return numbers


def hard_data(bench):
    import hard

    numbers = hard.run(bench, [name for name in bench.options.hard.split(",") if name != "all"])
    keep(bench, "hard", "Hard data", "--hard", [hard.report(name, one) for name, one in numbers.items()])
    return {"hard": numbers}


def itself(bench):
    import self_profile

    numbers = self_profile.run(bench)
    for load, found in numbers.items():
        print("%s: %s" % (load, ", ".join("%s %.1f %%" % pair for pair in found)))
    return {"self_profile": numbers}


def every_question(bench):
    import api

    return {"api": api.run(bench)}


def second_wall(bench):
    import wall

    return {"wall": wall.run(bench)}


def callers_known(bench):
    import access

    return {"access": access.run(bench)}


def rows_of_goals(bench):
    import goals

    return goals.run(bench)


def traces_to_profiles(bench):
    import span_lookups

    return {"spans": span_lookups.run(bench, bench.options.spans)}


def decoders(bench):
    import intake

    return {"intake": intake.run(bench, bench.options.part[1:])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", metavar="intake [FILE...]", help="decoding files of profilers (intake.py) instead")
    parser.add_argument("--quick", action="store_true", help="less of everything: below 90 seconds")
    parser.add_argument("--goals", nargs="?", const="all", metavar="PARTS",
                        help="rows of the table of goals (goals.py) instead; ingest,fleet,thin,sparse: some of them")
    parser.add_argument("--beside", metavar="DIR", help="with --goals: in turns with the build in this directory")
    parser.add_argument("--sets", metavar="NAMES", help="20k,200k,2m: questions, disk and roll-ups at these sizes instead")
    parser.add_argument("--hard", nargs="?", const="all", metavar="NAMES", help="data that is hard on a store (hard.py) instead")
    parser.add_argument("--self-profile", action="store_true", help="draw hearthd by its own answers instead (needs perf)")
    parser.add_argument("--api", action="store_true", help="p50 and p99 of each question of the API instead (api.py)")
    parser.add_argument("--wall", action="store_true", help="what row-level security costs (wall.py) instead")
    parser.add_argument("--access", action="store_true", help="what authentication costs (access.py) instead")
    parser.add_argument("--spans", nargs="?", const=10, type=float, metavar="MILLIONS",
                        help="ids of spans and traces in profiles (span_lookups.py) instead; 10 million spans unless said")
    parser.add_argument("--docs", action="store_true", help="with --sets, --hard: write docs/benchmarks/*.md and the pictures")
    parser.add_argument("--own-recordings", action="store_true",
                        help="without the shared recordings: measure with small ones, which compare with nothing else")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there")
    parser.add_argument("--build", default=str(ROOT / "build-release"), metavar="DIR", help="build directory")
    chosen = parser.parse_args()
    if chosen.part and chosen.part[0] != "intake":
        parser.error("there is no part %r; there is intake" % chosen.part[0])
    bench = Bench(chosen)
    began = time.monotonic()
    measure = (
        decoders if chosen.part else rows_of_goals if chosen.goals else whole_fleets if chosen.sets
        else hard_data if chosen.hard else itself if chosen.self_profile else every_question if chosen.api
        else second_wall if chosen.wall else callers_known if chosen.access else traces_to_profiles if chosen.spans else classic
    )
    numbers = measure(bench)
    say("%.0f s" % (time.monotonic() - began))
    if bench.options.json:
        with open(bench.options.json, "w") as f:
            json.dump(numbers, f, indent=1)


if __name__ == "__main__":
    main()
