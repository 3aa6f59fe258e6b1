"""Random questions about random and recorded profiles, answered by the server and by oracle.py: equal to the unit.

HEARTH_TEST_SEED repeats a run, HEARTH_TEST_QUESTIONS is how many of each kind (25).
"""

import collections
import os
import pathlib
import random
import re
import unittest

import oracle
import wire
from pprof import Decoded, Profile
from questions import AVERAGE, CPU, PPROF, SAMPLES, SUM, TREE, FlameGraph
from server import ROOT, SHARED, Server, in_threads, note, now_ms
from test_shared_data import at_time, go_top, needs_go

QUESTIONS = int(os.environ.get("HEARTH_TEST_QUESTIONS", "25"))
SEED = int(os.environ.get("HEARTH_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
ALLOC = "memory:alloc_space:bytes:space:bytes"
INUSE = "memory:inuse_space:bytes:space:bytes"
CPU_TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
HEAP_TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
MINUTE = 60_000

# Recorded, small enough to be asked often, from the tree and from beside it.
RECORDED = ["tests/golden/pprof/go-cpu-labels.pb.gz", "tests/golden/pprof/go-heap.pb.gz"]
SHARED_FILES = [
    "pprof/go-cpu-fib-3s.pb.gz", "pprof/go-cpu-merge-a.pb.gz", "pprof/go-cpu-merge-b.pb.gz", "pprof/go-cpu-gdu-v2.pb.gz",
]


def shared_files():
    return [SHARED / name for name in SHARED_FILES if (SHARED / name).is_file()]


class Fleet:
    """Pushes profiles and keeps what was pushed."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        self.taken, self.jobs = [], []
        self.end = now_ms() // 1000 * 1000 - 2 * MINUTE
        self.start = self.end - 20 * MINUTE

    def lines(self, service):
        r = self.random
        name = "%s.f%d" % (service, r.randint(0, 12)) if r.random() < 0.8 else r.choice(["libc_read", "été", "operator()<T>", ""])
        return (name, "%s.c" % name[:6], r.randint(1, 4))

    def location(self, service):
        r = self.random
        if r.random() < 0.07:
            return ("0x%x" % (1 << 32 | r.randint(1, 3) << 12), "/usr/lib/libz.so")
        return tuple(self.lines(service) for _ in range(2 if r.random() < 0.15 else 1))

    def profile(self, service, heap):
        r = self.random
        # Whole milliseconds: how finer times are cut is test_main_job's.
        ts = r.randint(self.start, self.end) * 1_000_000
        p = Profile(HEAP_TYPES, ("space", "bytes"), 524288, ts) if heap else Profile(CPU_TYPES, time_ns=ts)
        trunks = [[self.location(service) for _ in range(r.randint(0, 5))] for _ in range(3)]
        for _ in range(r.randint(1, 14)):
            stack = [self.location(service) for _ in range(r.randint(1, 4))] + r.choice(trunks) + [(("main", "main.c", 7),)]
            values = [r.choice([0, 1, 3, 1000, 1 << 40]) + r.randint(0, 9) for _ in p.sample_types]
            values[0] = -1 if r.random() < 0.03 else values[0]
            labels = {}
            if service == "web" and r.random() < 0.5:
                labels["route"] = r.choice(["/a", "/b"])
            if r.random() < 0.3:
                labels["span_id"] = "%016x" % r.randint(1, 5)
            if r.random() < 0.3:
                labels["trace_id"] = "%032x" % r.randint(1, 3)
            if r.random() < 0.4:
                labels["thread_name"] = r.choice(["main", "worker-1", "worker-2"])
            p.samples.append((stack, values, labels))
        return p.encode(False)

    def add(self, data, labels):
        self.jobs.append((data, labels))
        self.taken += oracle.take(len(self.jobs), Decoded(data), labels)

    def add_random(self, n):
        for _ in range(n):
            service = self.random.choice(["api", "api", "web", "batch"])
            heap = self.random.random() < 0.3
            labels = {"__name__": "memory" if heap else "process_cpu", "service_name": service}
            labels["pod"] = "%s-%d" % (service, self.random.randint(0, 3))
            if self.random.random() < 0.6:
                labels["zone"] = self.random.choice(["east", "west"])
            self.add(self.profile(service, heap), labels)

    def add_recorded(self, paths):
        for i, path in enumerate(paths):
            data = at_time(pathlib.Path(path).read_bytes(), (self.start + i) * 1_000_000)
            self.add(data, {"__name__": "recorded", "service_name": "recorded-%d" % (i % 2), "file": os.path.basename(path)})

    def push(self):
        parts = [self.jobs[i::4] for i in range(4)]
        in_threads([lambda part=part: [self.server.push(*job) for job in part] for part in parts])

    def type_ids(self):
        return sorted({t for p in self.taken for t in p.type_ids()})

    # ---- random questions ----

    def matchers(self):
        M, r = oracle.Matcher, self.random
        choices = [
            [], [], [M("service_name", "=", "api")], [M("service_name", "=", "web")], [M("service_name", "!=", "api")],
            [M("pod", "=~", "(api|web)-[12]")], [M("zone", "=", "")], [M("zone", "!=", "")], [M("zone", "=~", "e.*|")],
            [M("route", "=", "/a")], [M("service_name", "=~", "api|batch"), M("pod", "!~", ".*-0")],
            [M("service_name", "=~", "recorded.*")], [M("no_such", "=", "x")],
        ]
        return r.choice(choices)

    def range(self):
        r = self.random
        if r.random() < 0.3:
            return self.start, self.end
        a, b = sorted((r.randint(self.start, self.end), r.randint(self.start, self.end)))
        return a, b

    def type_id(self):
        return self.random.choice([CPU, CPU, SAMPLES, ALLOC, INUSE] + self.type_ids())

    def call_site(self, asked):
        """None, or the beginning of some stack trace, or of none."""
        r = self.random
        stacks = sorted(asked.by_names())
        if r.random() < 0.6 or not stacks:
            return ()
        names = r.choice(stacks)
        return names[: r.randint(1, len(names))] if r.random() < 0.9 else ("nobody",)


class Oracle(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        note("seed %d" % SEED)
        cls.server = Server("--repair-go-stacks=false")  # test_go_stacks has the oracle of repaired ones
        cls.fleet = Fleet(cls.server, SEED)
        cls.fleet.add_random(150)
        cls.fleet.add_recorded([ROOT / name for name in RECORDED] + shared_files())
        cls.fleet.push()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def questions(self, sites=True):
        """[(what the question selects, its arguments, its matchers, call site)]"""
        fleet, out, answered = self.fleet, [], 0
        # Some more where chance leaves too many without an answer.
        while len(out) < QUESTIONS or answered <= QUESTIONS // 4:
            type_id, matchers, (start, end) = fleet.type_id(), fleet.matchers(), fleet.range()
            site = fleet.call_site(oracle.Asked(fleet.taken, type_id, matchers, start, end)) if sites else ()
            asked = oracle.Asked(fleet.taken, type_id, matchers, start, end, oracle.Stacks(call_site=site))
            out.append((asked, (type_id, oracle.selector(matchers), start, end), matchers, site))
            answered += asked.total() > 0
            self.assertLess(len(out), 20 * QUESTIONS, "most questions select something")
        return out

    def each(self, questions, *more):
        """Of one question: its subtest."""
        rows = [vars(row) for row in questions[4]] if len(questions) > 4 else []
        return self.subTest(seed=SEED, question=questions[1], call_site=questions[3], rows=rows, more=more)

    def max_nodes(self):
        return self.fleet.random.choice([None, 1, 2, 3, 5, 8, 13, 21, 34, 100, 1048576])

    def test_flame_graphs_have_the_levels_of_the_oracle(self):
        for question in self.questions():
            asked, arguments, _, site = question
            max_nodes = self.max_nodes()
            with self.each(question, max_nodes):
                flame = FlameGraph(self.server.stacktraces(*arguments, max_nodes=max_nodes, call_site=site)[1][-1])
                tree = oracle.truncated(oracle.tree_of(asked.by_names()), max_nodes or 8192)
                found = [
                    [tuple(level[k : k + 3]) + (flame.names[level[k + 3]],) for k in range(0, len(level), 4)]
                    for level in flame.levels
                ]
                self.assertEqual(found, oracle.levels_of(tree))
                self.assertEqual((flame.total, flame.max_self), (asked.total(), oracle.largest_self(tree)))

    def test_trees_have_the_bytes_of_the_oracle(self):
        for question in self.questions():
            asked, arguments, _, site = question
            max_nodes = self.max_nodes()
            with self.each(question, max_nodes):
                answer = self.server.stacktraces(*arguments, max_nodes=max_nodes, format=TREE, call_site=site)
                tree = oracle.truncated(oracle.tree_of(asked.by_names()), max_nodes or 8192)
                self.assertEqual(answer.get(2, [b""])[-1], oracle.tree_bytes(tree))

    def test_merged_pprof_has_the_stacks_of_the_oracle(self):
        for question in self.questions():
            asked, arguments, _, site = question
            with self.each(question):
                answer = self.server.stacktraces(*arguments, format=PPROF, call_site=site)
                merged = Decoded(wire.decode(answer[5][-1])[1][-1])
                self.assertEqual(merged.by_stack(0), asked.by_locations())
                if not site:
                    self.assertEqual(Decoded(self.server.merge_pprof(*arguments)).by_stack(0), asked.by_locations())

    def test_a_truncated_pprof_has_the_stacks_of_the_oracle(self):
        for question in self.questions(sites=False):
            asked, arguments, _, _ = question
            max_nodes = self.max_nodes() or 3
            with self.each(question, max_nodes):
                found = {}
                for locations, values, _ in Decoded(self.server.merge_pprof(*arguments, max_nodes=max_nodes)).samples:
                    names = oracle.names_of(locations)
                    found[names] = found.get(names, 0) + values[0]
                self.assertEqual(found, oracle.cut_stacks(asked, max_nodes))

    def test_series_have_the_points_of_the_oracle(self):
        r = self.fleet.random
        for question in self.questions():
            asked, (type_id, text, start, end), matchers, site = question
            step = r.choice([1000, 1500, 15_000, 60_000, 600_000, 3_600_000])
            group_by = r.choice([(), ("pod",), ("zone",), ("service_name", "zone"), ("route", "pod"), ("no_such",)])
            limit = r.choice([0, 0, 1, 2])
            # The mean of profiles of several label sets each would need a rule that nobody gave.
            average = r.random() < 0.3 and not any("route" in p.labels for p, *_ in asked.rows)
            with self.each(question, step, group_by, limit, average):
                expected = oracle.series_of(
                    self.fleet.taken, type_id, matchers, start, end, step, group_by, average,
                    oracle.Stacks(call_site=site), limit,
                )
                found = self.server.select_series(
                    type_id, text, start, end, step / 1000, group_by, AVERAGE if average else SUM, limit or None, site
                )
                self.assertEqual(found, expected)

    def test_spans_and_traces_have_their_own_samples(self):
        r = self.fleet.random
        for question in self.questions():
            _, arguments, matchers, site = question
            spans, traces = [], []
            if r.random() < 0.5:
                spans = ["%016x" % n for n in r.sample(range(1, 8), 2)]
            else:
                traces = ["%032x" % r.randint(1, 4)]
            type_id, _, start, end = arguments
            with self.each(question, spans, traces):
                stacks = oracle.Stacks(call_site=site)
                asked = oracle.Asked(self.fleet.taken, type_id, matchers, start, end, stacks, spans, traces)
                answer = self.server.stacktraces(*arguments, format=PPROF, call_site=site, spans=spans, traces=traces)
                merged = Decoded(wire.decode(answer[5][-1])[1][-1])
                self.assertEqual(merged.by_stack(0), asked.by_locations())

    def test_heatmaps_have_the_grid_of_the_oracle(self):
        r = self.fleet.random
        for question in self.questions(sites=False):
            asked, (type_id, text, start, end), _, _ = question
            if start == end:
                continue
            step = r.choice([1000, 7000, 60_000, 3_600_000])
            group_by, spans, limit = r.choice([(), ("pod",), ("zone",)]), r.random() < 0.4, r.choice([0, 0, 1])
            with self.each(question, step, group_by, spans, limit):
                found = self.server.heatmap(type_id, text, start, end, step / 1000, group_by, spans, limit, exemplars=True)
                plain = [(labels, [slot[:3] for slot in slots]) for labels, slots in found]
                self.assertEqual(plain, oracle.heatmap_of(asked, start, end, step, group_by, spans, limit))
                for _, slots in found:
                    for _, _, counts, exemplars in slots:
                        self.assertEqual(len(exemplars), sum(n > 0 for n in counts), "an exemplar for each cell with points")

    def test_the_id_of_an_exemplar_selects_its_profile(self):
        tried = 0
        for question in self.questions(sites=False):
            _, (type_id, text, start, end), matchers, _ = question
            if start == end or tried >= 40:
                continue
            for _, slots in self.server.heatmap(type_id, text, start, end, 60, exemplars=True)[:1]:
                for ts, profile, _, value, labels, _ in slots[0][3]:
                    with self.each(question, profile):
                        tried += 1
                        flame = FlameGraph(self.server.stacktraces(type_id, text, start, end, profiles=[profile])[1][-1])
                        self.assertEqual(flame.total, value)
                        of = oracle.Asked(self.fleet.taken, type_id, matchers, ts, ts)
                        numbers = {p.number for p, *_ in of.rows}
                        totals = [oracle.Asked(self.fleet.taken, type_id, matchers, ts, ts, numbers={n}).total() for n in numbers]
                        self.assertIn(value, totals)
        self.assertGreater(tried, 10)

    # ---- hearth.v1 ----

    def narrowed(self):
        """Questions with a fifth member: conditions on rows of tables, mostly none."""
        r, out = self.fleet.random, []
        for asked, arguments, matchers, site in self.questions():
            rows = []
            for _ in range(r.choice([0, 0, 1, 1, 2]) if asked.rows else 0):
                kind = r.choice([oracle.FUNCTION, oracle.LINE, oracle.FILE, oracle.DIRECTORY, oracle.THREAD])
                names = sorted({n for row in r.choices(asked.rows, k=3) for n in oracle.rows_of(kind, row[2], row[3])})
                field = r.choice(["names", "without", "regex", "without_regex"])
                some = r.sample(names, min(len(names), 2))
                rows.append(oracle.Rows(kind, **{field: some if "regex" not in field else "^" + re.escape(some[0])}))
            type_id, _, start, end = arguments
            stacks = oracle.Stacks(call_site=site, rows=rows)
            out.append((oracle.Asked(self.fleet.taken, type_id, matchers, start, end, stacks), arguments, matchers, site, rows))
        return out

    def own(self, method, question, fields):
        """A question of hearth.v1, whose first field is the selection: 5 is the filter of stack traces, 1 call sites."""
        _, arguments, _, site, *rows = question
        stacks = [(1, name) for name in site] + [(7, row.fields()) for row in (rows[0] if rows else [])]
        selection = list(enumerate(arguments, 1)) + [(5, stacks), (9, 1)]
        return self.server.call("hearth.v1.QueryService/" + method, [(1, selection)] + fields)

    @staticmethod
    def numbers(message, *fields):
        f = wire.decode(message)
        return tuple(wire.signed(f.get(n, [0])[-1]) for n in fields)

    def test_top_has_the_rows_of_the_oracle(self):
        frames = {
            1: lambda line: oracle.shown(oracle.frame_name(line)),
            2: lambda line: (oracle.shown(oracle.frame_name(line)), line[2]),
        }
        for question in self.narrowed():
            asked = question[0]
            kind = self.fleet.random.choice(list(frames))
            with self.each(question, kind):
                expected = {k: v for k, v in oracle.top_of(asked, frames[kind]).items() if v[1] and k is not None}
                answer = self.own("Top", question, [(2, kind), (6, 1 << 20)])
                found = {}
                for raw in answer.get(1, []):
                    f = wire.decode(raw)
                    name = f.get(1, [b""])[-1].decode()
                    key = name if kind == 1 else (name, f.get(5, [0])[-1])
                    self.assertNotIn(key, found, "a row is there once")
                    found[key] = self.numbers(raw, 2, 3)
                self.assertEqual(self.plain(found), self.plain(expected))
                self.assertEqual(wire.signed(answer.get(3, [0])[-1]), asked.total())

    def test_flame_graphs_and_totals_over_time_narrowed_by_rows_are_those_of_the_oracle(self):
        for question in self.narrowed():
            asked, (type_id, _, start, end), matchers, site, rows = question
            step = self.fleet.random.choice([15_000, 600_000])
            with self.each(question, step):
                flame = FlameGraph(self.own("Merge", question, [(3, 1 << 20)])[1][-1])
                levels = [[tuple(v[k : k + 3]) + (flame.names[v[k + 3]],) for k in range(0, len(v), 4)] for v in flame.levels]
                shown = collections.Counter()
                for names, value in asked.by_names().items():
                    shown[tuple(map(oracle.shown, names))] += value
                self.assertEqual(levels, oracle.levels_of(oracle.truncated(oracle.tree_of(shown), 0)))
                answer = self.own("Timeline", question, [(2, step / 1000)])
                found = sum(f.get(1, [0.0])[-1] for s in answer.get(1, []) for f in map(wire.decode, wire.decode(s).get(2, [])))
                stacks = oracle.Stacks(call_site=site, rows=rows)
                expected = oracle.series_of(self.fleet.taken, type_id, matchers, start, end, step, stacks=stacks)
                self.assertEqual(found, sum(value for _, points in expected for _, value in points))

    @staticmethod
    def plain(rows):
        """Without what has no function: an address may have several rows."""
        out = {}
        for key, value in rows.items():
            name = key if isinstance(key, str) else key[0]
            if not oracle.is_address(name):
                out[key] = value
        return out

    def test_a_sandwich_has_the_trees_of_the_oracle(self):
        for question in self.narrowed():
            asked = question[0]
            names = sorted({n for stack in asked.by_names() for n in stack})
            if not names:
                continue
            function = self.fleet.random.choice(names)
            with self.each(question, function):
                answer = self.own("Sandwich", question, [(2, oracle.shown(function)), (3, 1 << 20)])
                own, total, callers, callees = oracle.sandwich_of(asked, function)
                found = tuple(wire.signed(answer.get(n, [0])[-1]) for n in (1, 2, 5))
                self.assertEqual(found, (own, total, asked.total()))
                for field, tree in ((3, callers), (4, callees)):
                    nodes, paths = [wire.decode(raw) for raw in answer.get(field, [])], []
                    for f in nodes:
                        parent = wire.signed(f.get(2, [0])[-1])
                        path = (paths[parent] if parent >= 0 else ()) + (f.get(1, [b""])[-1].decode(),)
                        paths.append(path)
                    totals = {path: wire.signed(f.get(4, [0])[-1]) for path, f in zip(paths, nodes)}
                    expected = oracle.totals_by_path(tree).items()
                    self.assertEqual(totals, {tuple(map(oracle.shown, path)): total for path, total in expected})

    def test_lines_are_those_of_the_oracle(self):
        for question in self.narrowed():
            asked = question[0]
            names = sorted({n for stack in asked.by_names() for n in stack if not oracle.is_address(n)})
            if not names:
                continue
            function = self.fleet.random.choice(names)
            with self.each(question, function):
                answer = self.own("Lines", question, [(2, oracle.shown(function))])
                found = {}
                for raw in answer.get(1, []):
                    f = wire.decode(raw)
                    key = (f.get(4, [b""])[-1].decode(), f.get(1, [0])[-1])
                    before = found.get(key, (0, 0))
                    found[key] = tuple(a + b for a, b in zip(before, self.numbers(raw, 2, 3)))
                self.assertEqual(found, {k: v for k, v in oracle.lines_of(asked, function).items() if v[1]})

    def test_functions_over_time_have_the_points_of_the_oracle(self):
        for question in self.narrowed():
            asked, (type_id, _, start, end), matchers, site, rows = question
            names = sorted({n for stack in asked.by_names() for n in stack})
            if not names:
                continue
            function, step = self.fleet.random.choice(names), self.fleet.random.choice([15_000, 60_000, 3_600_000])
            with self.each(question, function, step):
                answer = self.own("FunctionTimeline", question, [(2, oracle.shown(function)), (3, step / 1000)])
                found = {}
                for series in answer.get(1, []):
                    for raw in wire.decode(series).get(3, []):
                        t, own, total = self.numbers(raw, 1, 2, 3)
                        if total:
                            found[t] = (own, total)
                wide = oracle.Asked(
                    self.fleet.taken, type_id, matchers, start - step, end, oracle.Stacks(call_site=site, rows=rows))
                expected = {}
                for profile, value, locations, _ in wide.rows:
                    stack = oracle.names_of(locations)
                    t = oracle.point_of(profile.time_ns // 1_000_000, start, end, step)
                    if t is not None and value and function in stack:
                        own, total = expected.get(t, (0, 0))
                        expected[t] = (own + (value if stack[-1] == function else 0), total + value)
                self.assertEqual(found, expected)

    def test_label_stats_are_those_of_the_oracle(self):
        for question in self.questions(sites=False):
            _, (type_id, _, start, end), matchers, _ = question
            label = self.fleet.random.choice(["pod", "zone", "service_name", "route"])
            with self.each(question, label):
                answer = self.own("LabelStats", question, [(2, label)])
                found = {}
                for raw in answer.get(1, []):
                    f = wire.decode(raw)
                    count, total, largest, least = self.numbers(raw, 2, 3, 6, 7)
                    mean, deviation = (round(f.get(n, [0.0])[-1] / 1e6, 3) for n in (4, 5))
                    found[f.get(1, [b""])[-1].decode()] = (count, total, mean, deviation, largest, least)
                expected = oracle.label_stats_of(self.fleet.taken, type_id, matchers, label, start, end)
                expected = {k: (n, s, round(m / 1e6, 3), round(d / 1e6, 3), a, b) for k, (n, s, m, d, a, b) in expected.items()}
                self.assertEqual(found, expected)

    def test_diffs_have_the_tuples_of_the_oracle(self):
        for question in self.questions(sites=False):
            left, (type_id, *one), _, _ = question
            matchers, (start, end) = self.fleet.matchers(), self.fleet.range()
            right = oracle.Asked(self.fleet.taken, type_id, matchers, start, end)
            other = (type_id, oracle.selector(matchers), start, end)
            nodes = (self.max_nodes(), self.max_nodes())
            with self.each(question, other, nodes):
                found = self.server.diff((type_id, *one), other, nodes)
                largest = max(n or 0 for n in nodes) or 8192
                levels, own = oracle.diff_of(left.by_names(), right.by_names(), largest)
                self.assertEqual(found, (levels, left.total() + right.total(), own, left.total(), right.total()))

    @needs_go
    def test_go_tool_pprof_sums_the_merged_profile_as_the_oracle(self):
        work = []
        for asked, arguments, *_ in self.questions(sites=False):
            kind, unit = arguments[0].split(":")[1:3]
            # go prints values as floats and cuts large ones.
            if 0 < asked.total() < 1 << 50 and len(work) < 8:
                work.append((asked, self.server.merge_pprof(*arguments), kind, {"nanoseconds": "ns", "bytes": "B"}.get(unit, unit)))
        self.assertTrue(work)
        for asked, data, kind, unit in work:
            expected = oracle.top_of(asked, lambda line: line[0] or "<unknown>")
            found = go_top(data, kind, unit, "-functions")
            self.assertEqual({n: v for n, v in found.items() if v != (0, 0) and not n.startswith("[") and not oracle.is_address(n)},
                             {n: v for n, v in expected.items() if v != (0, 0) and not oracle.is_address(n)})


if not shared_files():
    note("no shared data at %s: recorded profiles are those of the tree alone" % SHARED)

if __name__ == "__main__":
    unittest.main()
