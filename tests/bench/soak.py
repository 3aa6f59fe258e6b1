#!/usr/bin/python3
"""Mixed load for a long time: does memory grow, does background work keep up?

soak.py [--minutes 60] [--rate 600] [--json FILE] [--build DIR]

One hearthd with its own PostgreSQL, defaults but for --compact-after. bench_load pushes at a steady rate (pods of ten
services, each push with the time of its making); three askers put flame graphs, time series and label questions, one
after the other with a pause; every ten seconds memory, lag, late rows, queue and disk are looked at. The table has the
slope of memory over the last two thirds, by least squares: what is left when caches have filled.
"""

import argparse
import json
import random
import statistics
import subprocess
import threading
import time

from measure import ROOT, Running, Setting, resident_mib, say

EACH_SECONDS = 10
OPTIONS = ("--compact-after=10m",)


def slope_per_hour(samples, key):
    """Least squares over (seconds, value) of the last two thirds, per hour."""
    last = samples[len(samples) // 3 :]
    if len(last) < 3:
        return 0.0
    x = [s["seconds"] / 3600 for s in last]
    y = [s[key] for s in last]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


class Soak(Setting):
    def __init__(self, options):
        super().__init__(options)
        self.stop = threading.Event()
        self.asked, self.failed = [], []

    def ask(self, seed):
        import questions

        r = random.Random(seed)
        server = self.running.server
        while not self.stop.is_set():
            now = int(time.time() * 1000)
            length = r.choice([900, 900, 3600, 3600, 4 * 3600]) * 1000
            service = '{service_name="bench-%02d"}' % r.randint(0, 9) if r.random() < 0.8 else "{}"
            start = time.monotonic()
            try:
                kind = r.randint(0, 5)
                if kind < 3:
                    server.stacktraces(questions.CPU, service, now - length, now)
                elif kind < 5:
                    server.select_series(questions.CPU, service, now - length, now, 15, ["pod"] if kind == 4 else [])
                else:
                    server.label_values("pod", now - length, now, [service])
                self.asked.append(1000 * (time.monotonic() - start))
            except Exception as error:
                self.failed.append(str(error))
            self.stop.wait(0.2)

    def look(self, began):
        running = self.running
        hearthd, postgres = running.cpu()
        return {
            "seconds": round(time.monotonic() - began, 1),
            "rss": running.rss(),
            "postgres_rss": resident_mib(running.postmaster, "VmHWM"),
            "stored": running.metric("hearth_profiles_stored_total") or 0,
            "lag_s": running.metric("hearth_rollup_lag_seconds") or 0,
            "late": (running.metric("hearth_late_rows_total") or 0) - (running.metric("hearth_folded_rows_total") or 0),
            "queued": running.metric("hearth_commit_queue_rows") or 0,
            "disk_mb": (running.metric("hearth_disk_bytes") or 0) / 1e6,
            "builder_errors": running.metric("hearth_builder_errors_total") or 0,
            "hearthd_cpu_s": hearthd / 1e6,
            "postgres_cpu_s": postgres / 1e6,
        }

    def run(self):
        minutes = self.options.minutes
        self.make_pool()
        self.running = Running(self, self.directory, *OPTIONS)
        load = subprocess.Popen(
            [
                str(self.bin / "bench_load"), "push", "127.0.0.1:%d" % self.running.server.port, self.pool,
                str(self.options.pods), "256", str(60 * minutes), str(self.options.rate),
            ],
            stdout=subprocess.PIPE, text=True,
        )
        askers = [threading.Thread(target=self.ask, args=(seed,)) for seed in range(3)]
        for asker in askers:
            asker.start()
        samples, began = [], time.monotonic()
        while load.poll() is None:
            samples.append(self.look(began))
            if len(samples) % 30 == 0:
                say("%(seconds).0f s: %(rss).0f MiB, %(stored).0f profiles, lag %(lag_s).0f s" % samples[-1])
            time.sleep(EACH_SECONDS)
        self.stop.set()
        for asker in askers:
            asker.join()
        samples.append(self.look(began))
        seen = [json.loads(line) for line in load.stdout if line.startswith("{")][0]
        self.running.server.terminate()
        return samples, seen

    def report(self, samples, seen):
        last = samples[-1]
        asked = sorted(self.asked)
        print("| over %d min | |\n|---|---|" % self.options.minutes)
        for name, value in (
            ("profiles acknowledged", "%s (%.0f/s; %d failed)" % (format(seen["ok"], ","), seen["ok"] / seen["seconds"], seen["failed"])),
            ("acknowledged after, p50 / p99", "%.1f / %.1f ms" % (seen["p50_ms"], seen["p99_ms"])),
            ("questions answered", "%s (%d failed); median %.1f ms, p99 %.1f ms"
             % (format(len(asked), ","), len(self.failed), statistics.median(asked), asked[int(len(asked) * 0.99)])),
            ("CPU: hearthd / PostgreSQL", "%.2f / %.2f cores"
             % (last["hearthd_cpu_s"] / last["seconds"], last["postgres_cpu_s"] / last["seconds"])),
            ("resident memory of hearthd: at the end, highest", "%.0f, %.0f MiB" % (last["rss"], max(s["rss"] for s in samples))),
            ("its slope over the last two thirds", "%+.1f MiB/h" % slope_per_hour(samples, "rss")),
            ("roll-up lag: highest", "%.0f s" % max(s["lag_s"] for s in samples)),
            ("late rows waiting: highest", "%.0f" % max(s["late"] for s in samples)),
            ("rows queued for a commit: highest", "%.0f" % max(s["queued"] for s in samples)),
            ("disk at the end", "%.0f MB, %.0f B a profile" % (last["disk_mb"], 1e6 * last["disk_mb"] / max(1, last["stored"]))),
            ("builder steps that failed", "%.0f" % last["builder_errors"]),
        ):
            print("| %s | %s |" % (name, value))
        for error in sorted(set(self.failed))[:5]:
            say("a question failed: " + error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=600, help="profiles per second")
    parser.add_argument("--pods", type=int, default=8, help="of each of the ten services")
    parser.add_argument("--json")
    parser.add_argument("--build", default=str(ROOT / "build-release"))
    soak = Soak(parser.parse_args())
    samples, seen = soak.run()
    soak.report(samples, seen)
    if soak.options.json:
        with open(soak.options.json, "w") as out:
            json.dump({"samples": samples, "load": seen}, out)


if __name__ == "__main__":
    main()
