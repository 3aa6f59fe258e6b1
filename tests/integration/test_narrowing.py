"""Every question narrowed by rows of tables: against a count of single samples, before and after roll-up."""

import collections
import gzip
import os
import random
import re
import unittest
import urllib.parse

from pprof import Profile
from questions import CPU
from server import ROOT, SHARED, RpcError, Server, eventually, note
from test_functions import END, HOUR, KINDS, QUERY, SECOND, START, T, Oracle, frames_of, number, random_location
from test_shared_data import at_time

SEED = int(os.environ.get("HEARTH_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
N_CONDITIONS = int(os.environ.get("HEARTH_TEST_QUESTIONS", "25"))
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
THREADS = [{}, {"thread name": "worker-1"}, {"thread name": "worker-2"}, {"thread id": 77}]
SPANS = [{}, {}, {"span_id": "%016x" % 1}, {"span_id": "%016x" % 2}]
FIELDS = {"names": "names", "without": "without", "regex": "regex", "without_regex": "withoutRegex"}
STEP = 600


def random_profile(rng, locations, ms):
    p = Profile(TYPES, time_ns=ms * 1_000_000)
    for _ in range(rng.randint(3, 12)):
        stack = [rng.choice(locations) for _ in range(rng.randint(1, 5))]
        n = rng.randint(1, 9)
        p.samples.append((stack, [n, n * 10_000_000], {**rng.choice(THREADS), **rng.choice(SPANS)}))
    return p


class Sample(collections.namedtuple("Sample", "profile frames value thread span")):
    """One sample, its frames leaf first."""

    def rows(self, kind):
        """The names of the rows of a table that it is counted in."""
        if kind == "THREAD":
            return {self.thread}
        keys = {f.key(kind) for f in self.frames}
        return {"%s:%d" % key for key in keys} if kind == "LINE" else keys

    def passes(self, conditions):
        return all(self.meets(condition) for condition in conditions)

    def meets(self, condition):
        rows = self.rows(condition["kind"])
        if condition.get("names") and not rows & set(condition["names"]):
            return False
        if rows & set(condition.get("without", [])):
            return False
        if condition.get("regex") and not any(re.search(condition["regex"], row) for row in rows):
            return False
        return not (condition.get("without_regex") and any(re.search(condition["without_regex"], row) for row in rows))


def wire_rows(conditions):
    """Conditions as the field stacks.rows."""
    out = []
    for condition in conditions:
        row = {FIELDS[k]: v for k, v in condition.items() if k != "kind"}
        out.append({"kind": "TOP_KIND_" + condition["kind"], **row})
    return {"rows": out}


def paths_of(flame):
    """{names, root first: self} of a flame graph in JSON."""
    out, parents = {}, []
    for level in flame["levels"]:
        values, end, nodes = [int(v) for v in level["values"]], 0, []
        for delta, total, own, name in zip(*[iter(values)] * 4):
            start = end + delta
            end = start + total
            above = [path for first, last, path in parents if first <= start and end <= last]
            path = above[0] + (flame["names"][name],) if above else ()
            nodes.append((start, end, path))
            if own:
                out[path] = own
        parents = nodes
    return out


class Narrowing(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        note("seed %d" % SEED)
        cls.random = rng = random.Random(SEED)
        cls.server = Server("--builder-interval", "100ms", "--rollup-grace", "0", "--rollup-min-profiles-1h", "0")
        locations = [random_location(rng) for _ in range(25)]
        cls.profiles = [random_profile(rng, locations, T - HOUR // 2 + k * 97 * SECOND) for k in range(40)]
        for k, p in enumerate(cls.profiles):
            cls.server.push(p.encode(), {"__name__": "process_cpu", "service_name": "shop", "pod": "pod-%d" % (k % 3)})
        cls.samples = []
        for p in cls.profiles:
            for stack, values, labels in p.samples:
                thread = labels.get("thread name") or str(labels.get("thread id", ""))
                cls.samples.append(Sample(p, frames_of(stack), values[1], thread, labels.get("span_id", "")))
        cls.questions = [cls.random_conditions() for _ in range(N_CONDITIONS)]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def random_conditions(cls):
        """One to three conditions that some samples meet and some do not."""
        rng = cls.random
        while True:
            out = []
            for _ in range(rng.choice([1, 1, 2, 3])):
                condition = {"kind": rng.choice(KINDS)}
                names = sorted({row for s in cls.samples for row in s.rows(condition["kind"])})
                for field in rng.sample(list(FIELDS), rng.choice([1, 1, 1, 2])):
                    some = rng.sample(names, min(len(names), rng.randint(1, 2)))
                    condition[field] = some if field in ("names", "without") else "^" + re.escape(some[0][:3])
                out.append(condition)
            n = sum(s.passes(out) for s in cls.samples)
            if 0 < n < len(cls.samples):
                return out

    def selection(self, conditions, **more):
        stacks = wire_rows(conditions)
        return {"profileType": CPU, "labelSelector": '{service_name="shop"}', "start": START, "end": END, "stacks": stacks, **more}

    def cases(self):
        """[(a subtest, conditions, the samples that meet them)]"""
        return [
            (self.subTest(seed=SEED, conditions=conditions), conditions, [s for s in self.samples if s.passes(conditions)])
            for conditions in self.questions
        ]

    @staticmethod
    def oracle(samples):
        out = Oracle([])
        out.samples = [(s.frames, s.value, s.thread) for s in samples]
        return out

    def ask(self, method, message):
        return self.server.connect(QUERY + method, message)

    # ---- the answers ----

    def test_conditions_narrow_tables(self):
        for case, conditions, samples in self.cases():
            with case:
                for kind in KINDS:
                    answer = self.ask("Top", {"selection": self.selection(conditions), "kind": "TOP_KIND_" + kind, "limit": 10000})
                    found = {}
                    for row in answer.get("rows", []):
                        name = row.get("name", "")
                        key = (name, number(row, "line")) if kind == "LINE" else name
                        found[key] = (number(row, "self"), number(row, "total"))
                    expected = self.oracle(samples)
                    self.assertEqual((found, number(answer, "total")), (expected.table(kind), expected.total()), kind)

    def test_conditions_narrow_flame_graphs_and_merged_profiles(self):
        for case, conditions, samples in self.cases():
            with case:
                expected = collections.Counter()
                for s in samples:
                    expected[tuple(f.name for f in reversed(s.frames))] += s.value
                flame = self.ask("Merge", {"selection": self.selection(conditions), "maxNodes": 100_000})["flamegraph"]
                self.assertEqual(paths_of(flame), expected)
                message = {"selection": self.selection(conditions), "format": "PROFILE_FORMAT_PPROF"}
                merged = self.ask("Merge", message)["pprof"]["profile"]["sample"]
                self.assertEqual(sum(int(s["value"][0]) for s in merged), sum(expected.values()))

    def test_conditions_narrow_both_sides_of_a_diff(self):
        for case, conditions, samples in self.cases():
            with case:
                message = {"left": self.selection([]), "right": self.selection(conditions)}
                flame = self.ask("Diff", message)["flamegraph"]
                totals = number(flame, "leftTicks"), number(flame, "rightTicks")
                self.assertEqual(totals, (sum(s.value for s in self.samples), sum(s.value for s in samples)))

    def test_conditions_narrow_sandwiches_and_lines(self):
        for case, conditions, samples in self.cases():
            with case:
                function = self.random.choice([f.name for f in self.random.choice(samples).frames])
                with_it = [s for s in samples if any(f.name == function for f in s.frames)]
                total = sum(s.value for s in with_it)
                flat = sum(s.value for s in with_it if s.frames[0].name == function)
                message = {"selection": self.selection(conditions), "function": function}
                for method in ("Sandwich", "Lines"):
                    answer = self.ask(method, message)
                    self.assertEqual((number(answer, "self"), number(answer, "total")), (flat, total), method)

    def points(self, samples):
        """{t: value} in the buckets of a timeline."""
        out = collections.Counter()
        for s in samples:
            ms = s.profile.time_ns // 1_000_000 - START
            out[START + -(-ms // (STEP * SECOND)) * STEP * SECOND] += s.value
        return out

    def test_conditions_narrow_timelines(self):
        for case, conditions, samples in self.cases():
            with case:
                answer = self.ask("Timeline", {"selection": self.selection(conditions), "step": STEP})
                points = answer["series"][0]["points"]
                self.assertEqual({number(p, "timestamp"): p["value"] for p in points}, self.points(samples))

    def test_conditions_narrow_functions_over_time(self):
        for case, conditions, samples in self.cases():
            with case:
                for step in (STEP, 3600):
                    message = {"selection": self.selection(conditions), "functions": ["main.main"], "step": step}
                    answer = self.ask("FunctionTimeline", message)
                    points = answer["series"][0]["points"]
                    of = [s for s in samples if any(f.name == "main.main" for f in s.frames)]
                    self.assertEqual(sum(number(p, "total") for p in points), sum(s.value for s in of))
                    if step == STEP:
                        found = {number(p, "timestamp"): number(p, "total") for p in points if number(p, "total")}
                        self.assertEqual(found, self.points(of))

    def test_conditions_narrow_lists_of_spans(self):
        for case, conditions, samples in self.cases():
            with case:
                message = {"selection": self.selection(conditions), "limit": 100}
                answer = self.server.connect("hearth.v1.TraceProfileService/TopSpans", message)
                expected = collections.Counter()
                for s in samples:
                    expected[s.span] += s.value
                del expected[""]
                found = {row["spanId"]: number(row, "value") for row in answer.get("rows", [])}
                self.assertEqual(found, +expected)
                self.assertEqual(number(answer, "total"), sum(s.value for s in samples))

    def test_conditions_narrow_the_samples_of_a_span(self):
        for case, conditions, samples in self.cases():
            with case:
                message = {"selection": self.selection(conditions, spanIds=["%016x" % 1])}
                flame = self.ask("Merge", message)["flamegraph"]
                self.assertEqual(number(flame, "total"), sum(s.value for s in samples if s.span == "%016x" % 1))

    def test_conditions_narrow_the_profiles_of_spans(self):
        span = "%016x" % 1
        for case, conditions, samples in self.cases():
            with case:
                message = {"profileType": CPU, "spanIds": [span], "labelSelector": '{service_name="shop"}', "start": START,
                           "end": END, "stacks": wire_rows(conditions)}
                item = self.server.connect("hearth.v1.TraceProfileService/SpanProfile", message)["profiles"][0]
                self.assertEqual(number(item, "total"), sum(s.value for s in samples if s.span == span))

    def test_conditions_without_matches_give_0_and_wrong_ones_are_refused(self):
        def ask(*rows):
            return self.ask("Top", {"selection": {**self.selection([]), "stacks": {"rows": [*rows]}}})

        self.assertEqual(number(ask({"kind": "TOP_KIND_CLASS", "names": ["no.such.Class"]}), "total"), 0)
        self.assertEqual(number(ask({"kind": "TOP_KIND_THREAD", "names": ["nobody"]}), "total"), 0)
        for rows, pattern in (
            ([{"kind": "TOP_KIND_CLASS"}], r"^stacks.rows\[0\] has no condition"),
            ([{"names": ["a"]}, {"kind": "TOP_KIND_THREAD", "regex": "("}], r"^stacks.rows\[1\].regex: bad"),
            ([{"names": ["a"]}] * 17, "^stacks.rows: 17 conditions, at most 16"), ([{"kind": 99, "names": ["a"]}], "kind 99"),
        ):
            with self.assertRaises(RpcError) as caught:
                ask(*rows)
            self.assertEqual(caught.exception.code, "invalid_argument")
            self.assertRegex(caught.exception.message, pattern)

    def test_a_plan_reads_single_profiles_for_threads_alone(self):
        def sources(*rows, **more):
            message = {"profileType": CPU, "labelSelector": '{service_name="shop"}', "start": START, "end": END, **more}
            answer = self.ask("Explain", {**message, "stacks": {"rows": [*rows]}})
            return {total["source"] for total in answer["totals"] if number(total, "rows") > 0}

        rolled = {"SOURCE_ROLL_10M", "SOURCE_ROLL_1H"}
        eventually(lambda: sources() <= rolled, 30, what="rolling up")
        self.assertLessEqual(sources({"kind": "TOP_KIND_CLASS", "names": ["main.Cart"]}), rolled)
        self.assertFalse(sources({"kind": "TOP_KIND_THREAD", "names": ["worker-1"]}) & rolled)
        with self.assertRaises(RpcError) as caught:
            sources(callSite=["main"])
        self.assertRegex(caught.exception.message, "call_site and stacks are both set")

    def test_means_of_gauges_count_every_scrape(self):
        """Four scrapes of two processes; a scrape without a sample of the thread counts as 0."""
        values = {"a": [12, 0, 4, 8], "b": [0, 0, 0, 40]}
        for pod, of in values.items():
            for k, value in enumerate(of):
                p = Profile([("inuse_space", "bytes")], ("space", "bytes"), 1, (T + (k + 1) * SECOND) * 1_000_000)
                p.samples.append(([(("rest", "r.c", 1),)], [100], {}))
                p.samples.append(([(("work", "w.c", 1),)], [1000], {"thread name": "other"}))
                if value:
                    p.samples.append(([(("work", "w.c", 1),)], [value], {"thread name": "main"}))
                self.server.push(p.encode(), {"__name__": "memory", "service_name": "gauge", "pod": pod})
        for conditions, expected in (
            ({"names": ["main"]}, 24 // 4 + 40 // 4), ({"without": ["main"]}, 2 * 1100), ({"names": [""]}, 2 * 100),
            ({"without": ["", "other"]}, 16), ({"regex": "^o"}, 2 * 1000),
        ):
            with self.subTest(conditions):
                selection = {**self.selection([]), "profileType": "memory:inuse_space:bytes:space:bytes",
                             "labelSelector": '{service_name="gauge"}', "aggregation": "AGGREGATION_MEAN",
                             "stacks": {"rows": [{"kind": "TOP_KIND_THREAD", **conditions}]}}
                flame = self.ask("Merge", {"selection": selection})["flamegraph"]
                self.assertEqual(number(flame, "total"), expected)
                function = "rest" if conditions.get("names") == [""] else "work"
                message = {"selection": selection, "functions": [function], "step": 3600}
                points = self.ask("FunctionTimeline", message)["series"][0]["points"]
                of_function = expected - 200 if conditions.get("without") == ["main"] else expected
                self.assertEqual(sum(number(p, "total") for p in points), of_function)


class Recorded(unittest.TestCase):
    """Profiles of real programs: each row of each table, included and excluded."""

    RECORDINGS = ["tests/golden/jfr/work.jfr.gz"]
    PROFILES = ["tests/golden/pprof/go-cpu-labels.pb.gz", "tests/golden/pprof/go-heap.pb.gz"]
    SHARED_RECORDINGS = ["jfr/asprof-kafka-cpu.jfr.gz", "jfr/dd-agent-3-chunks.jfr", "jfr/jdk21.jfr"]
    SHARED_PROFILES = [
        "pprof/ebpf-native-thread-labels.pb.gz", "pprof/php-wordpress-3-sample-types-uncompressed.pprof",
        "pprof/rust-cpu-pprof-rs-uncompressed.pb", "pprof/ruby-cpu-container-labels-uncompressed.pprof",
        "pprof/go-cpu-gdu-v2.pb.gz",
    ]

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-profile-bytes", "16m")
        for path in [ROOT / p for p in cls.PROFILES] + [SHARED / p for p in cls.SHARED_PROFILES if (SHARED / p).is_file()]:
            data = at_time(path.read_bytes(), T * 1_000_000)
            cls.server.push(data, {"__name__": "recorded", "service_name": path.name})
        for path in [ROOT / p for p in cls.RECORDINGS] + [SHARED / p for p in cls.SHARED_RECORDINGS if (SHARED / p).is_file()]:
            data = path.read_bytes()
            arguments = {"name": path.name, "from": T // 1000, "until": T // 1000 + 10, "format": "jfr"}
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            status, _, answer = cls.server.http("POST", "/ingest?" + urllib.parse.urlencode(arguments), data)
            assert status == 200, answer

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def top(self, kind, selection, **stacks):
        rows = {"rows": [{"kind": "TOP_KIND_" + kind, **stacks}]} if stacks else {}
        message = {"selection": {**selection, "stacks": rows}, "kind": "TOP_KIND_" + kind, "limit": 6, "sort": "TOP_SORT_TOTAL"}
        return self.server.connect(QUERY + "Top", message)

    def selections(self):
        """One of each service and type, with the sum as aggregation."""
        asked = {"start": START, "end": END}
        for series in self.server.connect("querier.v1.QuerierService/Series", asked)["labelsSet"]:
            labels = {pair["name"]: pair["value"] for pair in series["labels"]}
            selector = '{service_name="%s"}' % labels["service_name"]
            yield {"profileType": labels["__profile_type__"], "labelSelector": selector, "aggregation": "AGGREGATION_SUM", **asked}

    def test_each_row_narrows_to_its_total_and_without_it_to_the_rest(self):
        tried, seen = collections.Counter(), set()
        for selection in self.selections():
            key = selection["profileType"], selection["labelSelector"]
            if key in seen:
                continue
            seen.add(key)
            for kind in KINDS:
                whole = self.top(kind, selection)
                for row in whole.get("rows", []):
                    name, total = row.get("name", ""), number(row, "total")
                    name += ":%d" % number(row, "line") if kind == "LINE" else ""
                    with self.subTest(selection=selection, kind=kind, name=name):
                        found = self.top(kind, selection, names=[name])
                        same = {r.get("name", ""): number(r, "total") for r in found["rows"] if r.get("line") == row.get("line")}
                        self.assertEqual((number(found, "total"), same[row.get("name", "")]), (total, total))
                        rest = self.top(kind, selection, without=[name])
                        self.assertEqual(number(rest, "total"), number(whole, "total") - total)
                        tried[kind] += 1
        self.assertTrue(all(tried[kind] >= 4 for kind in KINDS), tried)

    def test_threads_of_a_java_program_have_their_own_flame_graphs(self):
        selection = {"profileType": CPU, "labelSelector": '{service_name="work.jfr.gz"}', "start": START, "end": END}
        rows = self.top("THREAD", selection)["rows"]
        self.assertGreater(len(rows), 1)
        graphs = collections.Counter()
        for row in rows:
            stacks = {"rows": [{"kind": "TOP_KIND_THREAD", "names": [row.get("name", "")]}]}
            flame = self.server.connect(QUERY + "Merge", {"selection": {**selection, "stacks": stacks}})["flamegraph"]
            graphs.update(paths_of(flame))
        whole = self.server.connect(QUERY + "Merge", {"selection": selection})["flamegraph"]
        self.assertEqual(graphs, paths_of(whole))


if __name__ == "__main__":
    unittest.main()
