"""Three sizes of one fleet, in each state that background work brings data into: `./dev bench --sets 20k,200k,2m`.

The fleet (storage design, section 1): `focus`, 10 pods for 7 days; `wide`, 200 pods for 24 hours; 1,790 other series for the
last hour, in 30 services. At 2 million profiles each pod is profiled every 15 s, at 200 and 20 thousand ten and a hundred
times as seldom: the questions and the number of series stay, the rows they read grow. `focus` and `wide` have a canary
in another namespace, profiled a fortieth as often: without it, "all pods of the namespace" would be the whole service.

States, each entered by a restart with other options, and waited for:
  raw        no builder: every profile is a row
  rolled     blocks and packed totals are built; rows are what they were
  compacted  all closed hours are segments
"""

import re
import shutil
import time

from measure import Running, say

SCALES = {"20k": 100, "200k": 10, "2m": 1}
DAY, HOUR, MINUTE = 86400, 3600, 60
MERGE = "querier.v1.QuerierService/SelectMergeStacktraces"
SERIES = "querier.v1.QuerierService/SelectSeries"
EXPLAIN = "hearth.v1.QueryService/Explain"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
OFFSET = 137  # seconds before the end of the data at which questions end, so that nothing is aligned to a block
OPTIONS = ("--retain-raw=30d", "--retain-10m=30d")
STATES = {
    "raw": ("--builder=false",),
    "rolled": ("--compaction=false", "--builder-interval=1s"),
    "compacted": ("--builder-interval=1s", "--compact-after=1m"),
}
TABLES = ("profile", "profile_late", "segment", "dict_chunk", "roll_10m", "roll_1h", "roll_1d", "hour_totals", "series_hour")

PODS10, PODS200 = '{service_name="focus", namespace="production"}', '{service_name="wide", namespace="production"}'


def merge(selector, seconds, pods, goal=None, profile_type=CPU):
    """A flame graph. pods: how many send a profile each step, for the number of profiles that it sums."""
    return {"method": MERGE, "selector": selector, "seconds": seconds, "pods": pods, "goal": goal, "type": profile_type}


def series(selector, seconds, pods, step, by=(), goal=None, profile_type=CPU):
    return {**merge(selector, seconds, pods, goal, profile_type), "method": SERIES, "step": step, "by": by}


QUESTIONS = {
    "10 pods, 15 min": merge(PODS10, 15 * MINUTE, 10),
    "10 pods, 1 h": merge(PODS10, HOUR, 10, 5),
    "10 pods, 24 h": merge(PODS10, DAY, 10, 20),
    "10 pods, 7 d": merge(PODS10, 7 * DAY, 10, 40),
    "200 series, 15 min": merge(PODS200, 15 * MINUTE, 200, 20),
    "200 series, 1 h": merge(PODS200, HOUR, 200, 40),
    "200 series, 24 h": merge(PODS200, DAY, 200, 300),
    "service of 10 pods, 7 d": merge('{service_name="focus"}', 7 * DAY, 10, 10),
    "service of 200 pods, 24 h": merge('{service_name="wide"}', DAY, 200, 20),
    "SelectSeries 200 x 24 h, 60 s": series(PODS200, DAY, 200, 60, goal=15),
    "the same, a line per pod": series(PODS200, DAY, 200, 60, ("pod",)),
    "SelectSeries 10 x 7 d, 10 min": series(PODS10, 7 * DAY, 10, 600, goal=5),
}
COLD = ("10 pods, 1 h", "200 series, 1 h", "10 pods, 7 d", "service of 10 pods, 7 d", "SelectSeries 10 x 7 d, 10 min")


def streams(scale):
    """Arguments of bench_load_set."""
    step = 15 * scale
    out = [
        "focus:production:10:%d:0:%d:8" % (7 * DAY, step),
        "focus:canary:1:%d:0:%d:8" % (7 * DAY, 40 * step),
        "wide:production:200:%d:0:%d:9" % (DAY, step),
        "wide:canary:1:%d:0:%d:9" % (DAY, 40 * step),
    ]
    for i in range(30):
        out.append("background-%02d:production:%d:%d:0:%d:%d" % (i, 60 if i < 29 else 50, HOUR, step, i))
    return out


def fields(question, end):
    out = [
        (1, question["type"]), (2, question["selector"]),
        (3, 1000 * (end - OFFSET - question["seconds"])), (4, 1000 * (end - OFFSET)),
    ]
    if question["method"] == SERIES:
        out += [(5, name) for name in question["by"]] + [(6, float(question["step"]))]
    return question["method"], out


class Fleet:
    """Profiles in a database of their own, asked in each state."""

    def __init__(self, setting, name, pool, streams, step, questions, cold=()):
        self.setting, self.name, self.pool, self.streams, self.step = setting, name, pool, streams, step
        self.questions, self.cold = questions, cold
        self.numbers = {"step": step, "states": {}}
        self.block_us = {}

    def run(self, ingest=None):
        """ingest(fleet): what is measured on the new server before the profiles are loaded."""
        began = time.monotonic()
        self.directory = self.setting.server_module.temporary_directory()
        self.running = Running(self.setting, self.directory, *OPTIONS, *STATES["raw"])
        self.numbers["rss_idle"] = self.running.rss()
        if ingest:
            ingest(self)
            self.running.server.terminate()
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = self.setting.server_module.temporary_directory()
            self.running = Running(self.setting, self.directory, *OPTIONS, *STATES["raw"])
        self.load()
        self.state("raw")
        if self.enter("rolled", self.is_rolled, "close", "hearth_rollup_profiles_total"):
            self.state("rolled")
            if self.enter("compacted", self.is_compacted, "compact", "hearth_compacted_rows_total"):
                self.state("compacted")
        self.compare()
        self.running.server.terminate()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.numbers["seconds"] = time.monotonic() - began
        say("%s: %.0f s in all" % (self.name, self.numbers["seconds"]))
        return self.numbers

    # ---- data ----

    def load(self):
        self.end = int(time.time()) // 600 * 600
        began = time.monotonic()
        loaded = self.setting.tool("bench_load_set", self.running.server.postgres_url(), self.pool, self.end, *self.streams)
        seconds = time.monotonic() - began
        self.n_rows = sum(line["rows"] for line in loaded)
        self.n_samples = sum(line["samples"] for line in loaded)
        self.floor_us = {line["service"]: line["merge_us"] for line in loaded if line["namespace"] == "production"}
        self.n_services = len(self.floor_us)
        self.numbers.update(
            rows=self.n_rows, samples=self.n_samples, load_seconds=seconds,
            column_bytes=sum(line["bytes"] for line in loaded) / self.n_rows,
            stacks={line["service"]: line["stacks"] for line in loaded},
        )
        say("%s: %d profiles, %.0f M samples, loaded in %.0f s" % (self.name, self.n_rows, self.n_samples / 1e6, seconds))

    def sizes(self):
        """Bytes of tables with their leaves; of profile without its indexes as well."""
        found = self.running.server.sql(
            "SELECT coalesce(p.relname, c.relname), sum(pg_total_relation_size(c.oid)), sum(pg_indexes_size(c.oid))"
            " FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent"
            " WHERE c.relkind = 'r' AND c.relnamespace = 'hearth_data'::regnamespace GROUP BY 1"
        )
        sizes = {name: int(total) for name, total, _ in found}
        sizes["profile indexes"] = sum(int(index) for name, _, index in found if name == "profile")
        return sizes

    # ---- states ----

    def is_rolled(self):
        done = self.running.metric("hearth_rollup_profiles_total") or 0
        services = int(self.running.server.sql("SELECT count(*) FROM hearth_data.roll_state WHERE built_to >= %d" %
                                               (self.end * 10**9))[0][0])
        return done, services >= self.n_services and (self.running.metric("hearth_rollup_lag_seconds") or 0) == 0

    def is_compacted(self):
        done = self.running.metric("hearth_compacted_rows_total") or 0
        hour = self.end // HOUR * HOUR
        waiting = self.running.server.sql("SELECT count(*) FROM hearth_data.roll_state WHERE compacted_to < %d" % (hour * 10**9))
        return done, int(waiting[0][0]) == 0 and done > 0

    def enter(self, name, condition, step, counter):
        """Restart in the state, wait until it is reached; what that cost. False when nothing moves for three minutes."""
        say("%s: waiting for state %s" % (self.name, name))
        time.sleep(max(0, self.end + 62 - time.time()))  # the grace of the last bucket
        self.running.restart(*OPTIONS, *STATES[name])
        before, began = self.running.cpu(), time.monotonic()
        last, moved, reached = -1, began, False
        while not reached:
            time.sleep(0.2)
            done, reached = condition()
            if done != last:
                last, moved = done, time.monotonic()
            if time.monotonic() - moved > 180:
                say("%s: state %s is not reached; %d rows are done; hearthd says:\n%s"
                    % (self.name, name, done, self.running.server.log()[-2000:]))
                return False
        seconds = time.monotonic() - began
        after = self.running.cpu()
        n = self.running.metric(counter) or 1
        self.numbers["to " + name] = {
            "seconds": seconds, "rows": n,
            "builder_us": (self.running.metric("hearth_builder_cpu_seconds_total", step=step) or 0) * 1e6 / n,
            "hearthd_us": (after[0] - before[0]) / n, "postgres_us": (after[1] - before[1]) / n,
            "rss": self.running.rss(),
        }
        return True

    def state(self, name):
        say("%s: measuring state %s" % (self.name, name))
        self.running.server.sql("VACUUM (ANALYZE)")  # what autovacuum does to a closed leaf sooner or later
        numbers = {"sizes": self.sizes(), "questions": {}, "cold": {}}
        for name_of, question in self.questions.items():
            method, request = fields(question, self.end)
            one = self.running.ask(method, request, seconds=0.6, least=3)
            one["profiles"] = question["pods"] * question["seconds"] // self.step
            one["goal"] = question["goal"]
            service = re.search('service_name="([^"]+)"', question["selector"])
            one["plan"] = self.plan(method, request)
            if method == MERGE and service:
                one["floor_ms"] = self.floor(name, service[1], one["profiles"], one["plan"])
            numbers["questions"][name_of] = one
        numbers["rss"] = self.running.rss()
        options = (*OPTIONS, "--builder=false")
        for question in self.cold:
            self.running.restart(*options, evict=True)
            numbers["cold"][question] = self.running.ask_once(*fields(self.questions[question], self.end))
        began = time.monotonic()
        self.running.restart(*options)
        numbers["restart_seconds"] = time.monotonic() - began
        numbers["rss_idle"] = self.running.rss()
        self.numbers["states"][name] = numbers

    def floor(self, state, service, profiles, plan):
        """Milliseconds to merge what the plan reads, if it all lay in memory; without a plan: every profile."""
        if state == "raw" or not plan:
            return profiles * self.floor_us[service] / 1000
        if (state, service) not in self.block_us:
            found = self.setting.tool("bench_floor_blocks", self.running.server.postgres_url(), service)
            self.block_us[state, service] = {
                (line["table"], line["whole"]): line["unpack_us"] + line["merge_us"] for line in found
            }
            self.numbers.setdefault("blocks", {})[service] = found
        blocks = self.block_us[state, service]
        us = sum(leg["rows"] * blocks.get((leg["source"], leg["whole"]), 0) for leg in plan)
        rows = profiles if any(leg["source"] == "segment" for leg in plan) else sum(
            leg["rows"] for leg in plan if leg["source"] in ("profile", "late"))
        if any(leg["source"] == "segment" for leg in plan) and any(leg["source"].startswith("roll") for leg in plan):
            rows = None  # profiles within segments are not counted by the plan
        return None if rows is None else (us + rows * self.floor_us[service]) / 1000

    def plan(self, method, request):
        """What is read, leg by leg, by Explain; None where the server has no answer."""
        import wire

        asked = [pair for pair in request if pair[0] <= 4] + [(5, 2 if method == SERIES else 1)]
        asked += [(6, 60.0)] if method == SERIES else []
        try:
            answer = self.running.server.call(EXPLAIN, asked)
        except self.setting.server_module.RpcError:
            return None
        legs = [wire.decode(raw) for raw in answer.get(5, [])]
        return [
            {"source": SOURCES[leg[1][0]], "whole": bool(leg.get(2, [0])[0]), "rows": leg.get(7, [0])[0],
             "bytes": leg.get(8, [0])[0]}
            for leg in legs
        ]

    def compare(self):
        """The same question has one answer in all states."""
        for question in self.questions:
            digests = {state: n["questions"][question]["digest"] for state, n in self.numbers["states"].items()}
            if len(set(digests.values())) > 1:
                say("%s: ANSWERS DIFFER: %s: %s" % (self.name, question, digests))
                self.numbers.setdefault("differ", []).append(question)


SOURCES = ("?", "profile", "late", "segment", "hour_totals", "roll_10m", "roll_1h", "roll_1d")


# ---- the report ----

def number(value, digits=1):
    return "" if value is None else format(value, ",.%df" % (digits if value < 100 else 0))


def table(head, rows):
    lines = ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head))]
    return "\n".join(lines + ["| %s |" % " | ".join(row) for row in rows])


def report_one(name, one):
    """Markdown of everything measured of one fleet."""
    states, out = one["states"], []
    questions = states["raw"]["questions"]
    out.append("### %s: %s profiles, %.0f M samples" % (name, format(one["rows"], ","), one["samples"] / 1e6))
    rows = []
    for question, first in questions.items():
        row = [question, format(first["profiles"], ",")]
        for n in states.values():
            q = n["questions"][question]
            row += ["%s (%s + %s)" % (number(q["ms"]), number(q["hearthd_ms"]), number(q["postgres_ms"])),
                    number(q.get("floor_ms"))]
        rows.append(row + [str(first["goal"] or "")])
    heads = [head for state in states for head in (state, "floor")]
    out.append(table(["query, warm: ms (CPU of hearthd + PostgreSQL)", "profiles", *heads, "goal at 2m"], rows))
    rows = [[question, state, ", ".join("%s%s %s" % (leg["source"], " of the service" if leg["whole"] else "", format(leg["rows"], ","))
                                        for leg in n["questions"][question]["plan"])]
            for question in questions for state, n in states.items() if state != "raw" and n["questions"][question].get("plan")]
    if rows:
        out.append(table(["query", "state", "reads"], rows))
    blocks = [(service, line) for service, lines in one.get("blocks", {}).items() for line in lines if line["blocks"] > 0]
    if blocks:
        out.append(table(["block", "bytes stored", "plain", "us to unpack", "to merge"],
                         [["%s, %s%s" % (service, line["table"], ", whole service" if line["whole"] else ""),
                           number(line["stored"]), number(line["plain"]), number(line["unpack_us"]), number(line["merge_us"])]
                          for service, line in blocks]))
    cold = states["raw"]["cold"]
    if cold:
        out.append(table(["after eviction, first query: ms", *states],
                         [[question] + [number(n["cold"][question]) for n in states.values()] for question in cold]))
    out.append(table(["bytes of a profile", *states],
                     [[t] + [number(n["sizes"].get(t, 0) / one["rows"]) for n in states.values()]
                      for t in (*TABLES, "profile indexes")]))
    rows = []
    for step in ("rolled", "compacted"):
        found = one.get("to " + step)
        if found:
            rows.append([step, number(found["seconds"]), format(int(found["rows"]), ","), number(found["builder_us"]),
                         number(found["hearthd_us"]), number(found["postgres_us"]), number(found["rss"], 0)])
    if rows:
        out.append(table(["to state", "s", "profiles", "builder CPU us a profile", "hearthd", "PostgreSQL", "RSS MiB"], rows))
    out.append("Memory of hearthd, MiB: new %.0f; %s." % (
        one["rss_idle"], "; ".join("%s: idle %.0f, after the queries %.0f, ready after a restart in %.1f s"
                                  % (s, n["rss_idle"], n["rss"], n["restart_seconds"]) for s, n in states.items())))
    differ = one.get("differ")
    out.append("Answers that differ between states: %s." % (", ".join(differ) if differ else "none"))
    return "\n\n".join(out)


def run(setting, names):
    setting.make_pool()
    numbers = {}
    for name in names:
        scale = SCALES[name]
        numbers[name] = Fleet(setting, name, setting.pool, streams(scale), 15 * scale, QUESTIONS, COLD).run()
        print(report_one(name, numbers[name]) + "\n", flush=True)
    return numbers
