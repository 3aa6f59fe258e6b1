#!/usr/bin/python3
"""Mixed load for a long time, in pieces: does memory grow, does background work keep up, is everything stored once?

soak.py --for 10m [--state DIR] [--rate N]   run a piece; DIR keeps the database and the account between pieces
soak.py --report DIR [--svg FILE]            judge all pieces

One hearthd with its own PostgreSQL: profiles as pprof in batches, collapsed stacks, JFR and OTLP; spans; tasks and
policies with agents; queries; roll-ups, compaction 10 minutes after each hour, and retention, to which the first piece
gives profiles of three days ago. The rate is given in profiles a second, or half of what ten seconds of batches without
a pause reach at the start of the first piece. Every 30 s a line is added to DIR/course.tsv, and the sums by service and
ten minutes are compared with what was acknowledged at the end of each piece (DIR/checks.tsv).
"""

import argparse
import json
import os
import pathlib
import re
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "integration"), str(ROOT / "tests" / "bench")]

import load
import questions
from measure import cluster_cpu, process_cpu, resident_mib
from server import Server, now_ms, temporary_directory

LOOK_SECONDS = 30
DAY_MS = 86_400_000
# The cache of sums fills for three quarters of an hour otherwise, which looks like a leak.
OPTIONS = ["--compact-after", "10m", "--retain-raw", "2d", "--otlp-traces", "--query-cache-bytes", "4m"]
UNITS = {"s": 1, "m": 60, "h": 3600}
COURSE = (
    "at piece seconds hearthd_mib postgres_mib backends lag_s late_rows queued_rows acknowledged stored spans tasks policies"
    " queries query_p99_ms errors builder_errors compacted_rows disk_mb hearthd_cpu_s postgres_cpu_s load heap_mib"
).split()
CHECKS = "piece at entries acknowledged lost doubled wrong_sums spans spans_stored".split()


def say(text):
    print("soak: " + text, file=sys.stderr, flush=True)


def seconds_of(text):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError("%r is no time such as 90s, 10m or 2h" % text)
    return float(found[1]) * UNITS[found[2]]


def append(path, columns, row):
    """A line of a TSV, which begins with its columns. Older lines have no value in columns that are new."""
    new = not path.exists()
    if not new:
        lines = path.read_text().splitlines()
        lacking = len(columns) - len(lines[0].split("\t"))
        if lacking:
            path.write_text("\n".join(["\t".join(columns)] + [line + "\t" * lacking for line in lines[1:]]) + "\n")
    with open(path, "a") as out:
        if new:
            out.write("\t".join(columns) + "\n")
        out.write("\t".join("%g" % row[c] if isinstance(row[c], float) else str(row[c]) for c in columns) + "\n")


def private_mib(pids):
    """Memory that the processes do not share, so that PostgreSQL's buffers are not counted."""
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += int(re.search(r"Pss_Anon:\s+(\d+)", f.read()).group(1))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1024


class Soak:
    def __init__(self, options):
        self.options = options
        self.state = pathlib.Path(options.state)
        self.state.mkdir(parents=True, exist_ok=True)
        self.state.chmod(0o755)
        self.kept = {"piece": 0, "rate": options.rate, "spans": 0, "entries": []}
        if (self.state / "account.json").exists():
            self.kept.update(json.loads((self.state / "account.json").read_text()))
        self.kept["rate"] = options.rate or self.kept["rate"]
        self.ledger = load.Ledger(self.kept["entries"])
        self.stopping, self.abandoned = threading.Event(), threading.Event()
        load.Pusher.make_variants()

    # ---- the rate, and profiles for retention ----

    def push_freely(self, seconds, age_ms=0, pushers=4):
        """Profiles a second that so many pushers reach without a pause; they are not in the account."""
        self.stopping.clear()
        clients = [load.Pusher(self, 0, age_ms) for _ in range(pushers)]
        for client in clients:
            client.ledger = load.Ledger()
            client.start()
        self.stopping.wait(seconds)
        self.stopping.set()
        for client in clients:
            client.join()
        self.stopping.clear()
        return sum(client.ledger.profiles() for client in clients) / seconds

    def prepare(self):
        """Before the first piece: the rate, and profiles whose retention has passed."""
        if not self.kept["rate"]:
            self.server = Server(*OPTIONS, directory=temporary_directory())
            reached = self.push_freely(10)
            self.server.stop()
            self.kept["rate"] = max(1, int(reached / 2))
            say("%.0f profiles/s without a pause; half of it: %d" % (reached, self.kept["rate"]))
        self.server = Server("--otlp-traces", directory=str(self.state))
        self.push_freely(2, age_ms=3 * DAY_MS, pushers=1)
        self.server.stop()

    # ---- a piece ----

    def clients(self):
        pushers = 2
        pause = pushers * load.BATCH / self.kept["rate"]
        return [
            *(load.Pusher(self, pause) for _ in range(pushers)), load.Texts(self, 1), load.Recordings(self, 10),
            load.Exports(self, 1), load.Spans(self, 0.5), load.Tasks(self, 5), load.Policies(self, 5),
            load.Queries(self, 0.5), load.Queries(self, 0.5),
        ]

    def of_kind(self, kind):
        return [client for client in self.running if isinstance(client, kind)]

    def look(self):
        """A line of the course."""
        metrics = self.server.metrics()
        value = lambda name: sum(v for (found, _), v in metrics.items() if found == name)
        children = pathlib.Path("/proc/%d/task/%d/children" % (self.postmaster, self.postmaster)).read_text().split()
        queries = self.of_kind(load.Queries)
        waits = sorted(wait for client in queries for wait in client.seconds)
        for client in self.running:
            client.seconds.clear()
        return {
            "at": int(time.time()), "piece": self.kept["piece"], "seconds": round(time.monotonic() - self.began, 1),
            "hearthd_mib": resident_mib(self.server.process.pid), "heap_mib": value("hearth_heap_used_bytes") / 2**20,
            "postgres_mib": private_mib([self.postmaster, *map(int, children)]), "backends": len(children),
            "lag_s": value("hearth_rollup_lag_seconds"),
            "late_rows": int(self.server.sql("SELECT count(*) FROM hearth_data.profile_late")[0][0]),
            "queued_rows": value("hearth_commit_queue_rows"),
            "acknowledged": self.ledger.profiles() - self.acknowledged_before,
            "stored": value("hearth_profiles_stored_total"), "spans": self.n_spans(),
            "tasks": sum(client.n_tasks for client in self.of_kind(load.Tasks)),
            "policies": sum(len(client.rover.triggers) for client in self.of_kind(load.Policies)),
            "queries": sum(client.n_done for client in queries),
            "query_p99_ms": 1000 * waits[int(0.99 * (len(waits) - 1))] if waits else 0.0,
            "errors": sum(sum(client.errors.values()) for client in self.running),
            "builder_errors": value("hearth_builder_errors_total"),
            "compacted_rows": value("hearth_compacted_rows_total"), "disk_mb": value("hearth_disk_bytes") / 1e6,
            "hearthd_cpu_s": process_cpu(self.server.process.pid), "postgres_cpu_s": cluster_cpu(self.postmaster),
            "load": os.getloadavg()[0],
        }

    def n_spans(self):
        return sum(client.n_spans for client in self.of_kind(load.Spans))

    def save(self):
        kept = {**self.kept, "entries": self.ledger.entries(), "spans": self.spans_before + self.n_spans()}
        new = self.state / "account.json.new"
        new.write_text(json.dumps(kept))
        new.rename(self.state / "account.json")

    def run(self):
        if not self.kept["piece"]:
            self.prepare()
        self.kept["piece"] += 1
        self.server = Server(*OPTIONS, directory=str(self.state))
        self.postmaster = self.server.postmaster_pid()
        self.acknowledged_before, self.spans_before = self.ledger.profiles(), self.kept["spans"]
        self.began = time.monotonic()
        self.running = self.clients()
        for client in self.running:
            client.start()
        say("piece %d: %s profiles/s for %.0f s" % (self.kept["piece"], self.kept["rate"], self.options.seconds))
        try:
            while time.monotonic() - self.began < self.options.seconds:
                time.sleep(min(LOOK_SECONDS, max(0, self.began + self.options.seconds - time.monotonic())))
                append(self.state / "course.tsv", COURSE, self.look())
                self.save()
        except (KeyboardInterrupt, SystemExit):
            say("the piece ends early")
        return self.end()

    def end(self):
        """Stops the clients, then counts."""
        self.stopping.set()
        deadline = time.monotonic() + 120
        for client in self.running:
            client.join(max(0, deadline - time.monotonic()))
        self.abandoned.set()
        self.save()
        with open(self.state / "errors.txt", "a") as out:
            for client in self.running:
                for text, n in client.errors.items():
                    out.write("piece %d: %d times %s\n" % (self.kept["piece"], n, text))
        check = self.check()
        append(self.state / "checks.tsv", CHECKS, check)
        say("piece %(piece)d: %(acknowledged)d acknowledged, %(lost)d lost, %(doubled)d doubled" % check)
        self.server.stop()
        return 1 if check["lost"] or check["doubled"] or check["wrong_sums"] else 0

    # ---- counting ----

    def stored(self, profile_type, start, end):
        """{(service, start of ten minutes): sum}; a point of the answer stands at the end of its ten minutes."""
        step = load.BUCKET_MS
        found = self.server.select_series(profile_type, '{service_name=~"soak-.*"}', start, end, step // 1000, ["service_name"])
        return {(dict(labels)["service_name"], at - step): int(value) for labels, points in found for at, value in points if value}

    def check(self):
        """The account against the answers of the server, and the spans against their rows."""
        oldest = now_ms() - 2 * DAY_MS
        mine = {key: entry for key, entry in self.ledger.sums.items() if key[1] >= oldest}
        start, end = min(at for _, at in mine), max(at for _, at in mine) + load.BUCKET_MS
        nanoseconds = self.stored(questions.CPU, start, end)
        samples = self.stored(questions.SAMPLES, start, end)
        lost = doubled = wrong = 0
        services = {service for service, _ in mine}
        for key in {*mine, *(key for key in nanoseconds if key[0] in services)}:
            n, ns = mine.get(key, (0, 0))
            found_ns = nanoseconds.get(key, 0)
            if key[0] in load.NANOSECONDS:
                found = found_ns / load.NANOSECONDS[key[0]]
            else:
                found = samples.get(key, 0) / load.SAMPLES
            lost, doubled = lost + max(0, n - found), doubled + max(0, found - n)
            wrong += ns != found_ns
        spans_stored = int(self.server.sql("SELECT coalesce(sum(n_spans), 0) FROM hearth_data.span_group")[0][0])
        return {
            "piece": self.kept["piece"], "at": int(time.time()), "entries": len(mine),
            "acknowledged": sum(n for n, _ in mine.values()), "lost": round(lost), "doubled": round(doubled),
            "wrong_sums": wrong, "spans": self.spans_before + self.n_spans(), "spans_stored": spans_stored,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--for", dest="seconds", type=seconds_of, metavar="TIME", help="length of the piece: 90s, 10m, 2h")
    what.add_argument("--report", metavar="DIR")
    parser.add_argument("--state", default="/tmp/hearth-soak", metavar="DIR")
    parser.add_argument("--rate", type=float, help="pushed profiles a second; other clients add about two")
    parser.add_argument("--svg", metavar="FILE", help="with --report: draw the course")
    options = parser.parse_args()
    if options.report:
        import soak_report

        return soak_report.report(pathlib.Path(options.report), options.svg)
    return Soak(options).run()


if __name__ == "__main__":
    sys.exit(main())
