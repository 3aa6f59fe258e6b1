"""Data that is hard on a profile store: `./dev bench --hard`.

Each case has a pool of its own, is pushed through the whole of ingest once with an empty dictionary and once with a full
one, then loaded as 10 pods for 24 hours (or what its line says) and asked in each state, as the sets are.

  plain     for comparison: one service of the sets
  heap      four values a sample (allocated, in use; objects, bytes), all of them stored
  churn     a deployment every hour: each build has a build id, so no stack of one is a stack of another
  stacks    100,000 different stacks in one service
  series    100,000 series, a profile each: 10 services of 10,000 pods
  minute    10,000 pods at one profile a minute, for an hour
"""

import statistics
import time

import sets
from measure import ROOT, say

HEAP = "memory:inuse_space:bytes:space:bytes"
ALLOCATED = "memory:alloc_space:bytes:space:bytes"
HEAP_SEEDS = (["pprof/go-heap-banyandb-35k-samples.pb.gz"], ["tests/golden/pprof/go-heap.pb.gz"])


def day_of(profile_type=sets.CPU, more=()):
    """Ten pods of service `s` for a day."""
    pods = '{service_name="s", namespace="production"}'
    return {
        "10 pods, 1 h": sets.merge(pods, sets.HOUR, 10, profile_type=profile_type),
        "10 pods, 24 h": sets.merge(pods, sets.DAY, 10, profile_type=profile_type),
        "service, 24 h": sets.merge('{service_name="s"}', sets.DAY, 10, profile_type=profile_type),
        "SelectSeries 24 h, 60 s": sets.series(pods, sets.DAY, 10, 60, profile_type=profile_type),
        **dict(more),
    }


DAY_STREAMS = ["s:production:10:86400:0:15:0", "s:canary:1:86400:0:600:0"]
SERIES_STREAMS = ["many-%d:production:10000:600:0:600:%d" % (i, i) for i in range(10)]
MINUTE_STREAMS = ["many-%d:production:1000:3600:0:60:%d" % (i, i) for i in range(10)]


class Hard:
    def __init__(self, setting):
        self.setting = setting

    def pool(self, *arguments, seeds=None):
        path = self.setting.pool + "-hard"
        self.setting.tool("bench_make_pool", path, *arguments, *(seeds or self.setting.seeds[3:] or self.setting.seeds))
        return path

    def heap_seeds(self):
        shared, own = HEAP_SEEDS
        path = self.setting.server_module.SHARED / shared[0]
        return [path] if path.exists() else [ROOT / own[0]]

    # ---- ingest ----

    def push(self, fleet, pods, calls):
        """CPU of a profile in microseconds."""
        running = fleet.running
        hearthd, postgres = running.cpu()
        stacks = running.metric("hearth_dictionary_stacks_total") or 0
        seen = self.setting.tool("bench_load", "push", "127.0.0.1:%d" % running.server.port, fleet.pool, pods, 128, 120, 0, calls)[0]
        after = running.cpu()
        if seen["failed"]:
            say("%d pushes failed: %s" % (seen["failed"], seen["error"]))
        n = max(1, seen["ok"])
        return {
            "n": n, "hearthd_us": (after[0] - hearthd) / n, "postgres_us": (after[1] - postgres) / n,
            "new_stacks": (running.metric("hearth_dictionary_stacks_total") or 0) - stacks,
        }

    def ingest(self, pods, calls):
        def measure(fleet):
            fleet.numbers["ingest"] = {
                "first": self.push(fleet, pods, calls), "again": self.push(fleet, pods, calls),
                "dictionary_bytes": fleet.running.metric("hearth_dictionary_bytes"), "rss": fleet.running.rss(),
                "series": fleet.running.metric("hearth_catalog_series"),
                "chunk_bytes": fleet.sizes().get("dict_chunk", 0),
            }

        return measure

    def steady(self, fleet):
        """10,000 pods at one profile a minute: 167 profiles a second, for 20 seconds."""
        running = fleet.running
        self.push(fleet, 1000, 2000)  # dictionaries
        hearthd, postgres = running.cpu()
        seen = self.setting.tool("bench_load", "push", "127.0.0.1:%d" % running.server.port, fleet.pool, 1000, 2000, 20, 10000 / 60)[0]
        after = running.cpu()
        fleet.numbers["steady"] = {
            "served": seen["ok"] / seen["seconds"], "p50_ms": seen["p50_ms"], "p99_ms": seen["p99_ms"],
            "hearthd_us": (after[0] - hearthd) / seen["ok"], "postgres_us": (after[1] - postgres) / seen["ok"],
        }

    # ---- questions about labels ----

    def labels(self, fleet, running):
        """Milliseconds of questions about the labels of 100,000 series, each as a client waits for it."""
        now = fleet.end
        range_ms = (1000 * (now - 3600), 1000 * now)
        s = running.server
        questions = {
            "label values: pod, of one service": lambda: s.label_values("pod", *range_ms, ['{service_name="many-3"}']),
            "label values: service_name": lambda: s.label_values("service_name", *range_ms),
            "label values: pod, all 100,000": lambda: s.label_values("pod", *range_ms),
            "label names of one service": lambda: s.label_names(*range_ms, ['{service_name="many-3"}']),
            "series of 10 pods by regular expression": lambda: s.series(*range_ms, ['{service_name="many-3", pod=~".*-0100."}']),
            "profile types": lambda: s.profile_types(*range_ms),
        }
        out = {}
        for name, ask in questions.items():
            ask()
            walls = []
            for _ in range(15):
                began = time.monotonic()
                ask()
                walls.append(1000 * (time.monotonic() - began))
            out[name] = statistics.median(walls)
        return out

    # ---- cases ----

    def cases(self):
        one = '{service_name="many-3"}'
        return {
            "plain": lambda: (self.pool(1, 960), DAY_STREAMS, 15, day_of(), self.ingest(8, 960)),
            "heap": lambda: (
                self.pool(1, 480, "--heap", seeds=self.heap_seeds()), DAY_STREAMS, 15,
                day_of(HEAP, {"10 pods, 24 h, allocated": sets.merge('{service_name="s", namespace="production"}', sets.DAY, 10,
                                                                    profile_type=ALLOCATED)}),
                self.ingest(8, 480)),
            "churn": lambda: (self.pool(1, 960, "--builds", 24), DAY_STREAMS, 15, day_of(), self.ingest(8, 960)),
            "stacks": lambda: (self.pool(1, 1600, "--stacks", 100000), DAY_STREAMS, 15, day_of(), self.ingest(8, 1600)),
            "series": lambda: (
                self.pool(10, 60), SERIES_STREAMS, 600,
                {
                    "10,000 series, 10 min": sets.merge('{service_name="many-3", namespace="production"}', 600, 10000),
                    "one pod of 100,000": sets.merge('{pod="many-3-production-00042"}', 600, 1),
                    "SelectSeries, 10,000 series": sets.series(one, 600, 10000, 60),
                },
                self.ingest(10000, 20000)),
            "minute": lambda: (
                self.pool(10, 60), MINUTE_STREAMS, 60,
                {
                    "one pod, 1 h": sets.merge('{pod="many-3-production-00042"}', sets.HOUR, 1),
                    "1,000 pods, 15 min": sets.merge(one, 15 * sets.MINUTE, 1000),
                    "1,000 pods, 1 h": sets.merge(one, sets.HOUR, 1000),
                    "999 of 1,000 pods, 1 h": sets.merge('{service_name="many-3", pod!="many-3-production-00042"}', sets.HOUR, 999),
                    "10,000 pods, 1 h": sets.merge('{namespace="production"}', sets.HOUR, 10000),
                    "SelectSeries 10,000 pods, 1 h, 60 s": sets.series('{namespace="production"}', sets.HOUR, 10000, 60),
                },
                self.steady),
        }

    def run(self, names):
        numbers = {}
        for name, make in self.cases().items():
            if names and name not in names:
                continue
            pool, streams, step, questions, ingest = make()
            fleet = HardFleet(self.setting, name, pool, streams, step, questions)
            fleet.labels = self.labels if name == "series" else None
            numbers[name] = fleet.run(ingest)
            print(report(name, numbers[name]) + "\n", flush=True)
        return numbers


class HardFleet(sets.Fleet):
    labels = None

    def state(self, name):
        super().state(name)
        if self.labels:
            self.numbers["states"][name]["labels"] = self.labels(self, self.running)


def report(name, one):
    out = [sets.report_one(name, one)]
    ingest = one.get("ingest")
    if ingest:
        rows = [[what, format(seen["n"], ","), sets.number(seen["hearthd_us"]), sets.number(seen["postgres_us"]),
                 format(int(seen["new_stacks"]), ",")]
                for what, seen in (("new stacks", ingest["first"]), ("known stacks", ingest["again"]))]
        out.append(sets.table(["ingest over gRPC", "profiles", "hearthd us a profile", "PostgreSQL", "stacks added"], rows))
        out.append("Dictionary: %.1f MiB in memory, %.1f MiB on disk; %d series; hearthd %.0f MiB." % (
            (ingest["dictionary_bytes"] or 0) / 2**20, ingest["chunk_bytes"] / 2**20, ingest["series"] or 0, ingest["rss"]))
    steady = one.get("steady")
    if steady:
        out.append("At 167 profiles/s: %.0f/s served, acknowledged after %.1f ms (p50), %.1f ms (p99); hearthd %.0f us, "
                   "PostgreSQL %.0f us a profile." % tuple(steady[k] for k in ("served", "p50_ms", "p99_ms", "hearthd_us", "postgres_us")))
    labels = [(state, n["labels"]) for state, n in one["states"].items() if "labels" in n]
    if labels:
        out.append(sets.table(["labels of 100,000 series: ms", *(state for state, _ in labels)],
                              [[question] + [sets.number(n[question], 2) for _, n in labels] for question in labels[0][1]]))
    return "\n\n".join(out)


def run(setting, names):
    return Hard(setting).run(names)
