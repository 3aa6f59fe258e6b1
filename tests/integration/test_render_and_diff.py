"""Two sides and pictures: Diff, DOT, GetProfileStats, AnalyzeQuery and Pyroscope's plain HTTP, with exact values."""

import json
import random
import re
import shutil
import subprocess
import unittest
import urllib.parse

import wire
from pprof import Profile
from questions import CPU, DOT, QUERIER, SAMPLES
from server import RpcError, Server, eventually, now_ms

SECOND = 1000
HOUR = 3600 * SECOND
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]

# Ten minutes ago, at a whole 15 seconds.
T = now_ms() // (15 * SECOND) * 15 * SECOND - 600 * SECOND
START, END = T - 60 * SECOND, T + 60 * SECOND


def profile(ms, stacks):
    """stacks: [("a;b", cpu)]"""
    p = Profile(TYPES, time_ns=ms * 1_000_000)
    for stack, value in stacks:
        p.add(stack.split(";"), [1, value])
    return p.encode()


LEFT = [("main;read", 30), ("main;parse;alloc", 10), ("main", 5), ("gc", 7)]
RIGHT = [("main;read", 10), ("main;write", 20), ("main;parse;alloc", 40), ("gc", 1)]
BOTH = [
    [0, 52, 0, 0, 71, 0, "total"],
    [0, 7, 7, 0, 1, 1, "gc", 0, 45, 5, 0, 70, 0, "main"],
    [12, 10, 0, 1, 40, 0, "parse", 0, 30, 30, 0, 10, 10, "read", 0, 0, 0, 0, 20, 20, "write"],
    [12, 10, 10, 1, 40, 40, "alloc"],
]


class FlameDiff:
    """FlameGraphDiff: 1 names, 2 levels {1 packed values}, 3 total, 4 max_self, 5 left ticks, 6 right ticks."""

    def __init__(self, data):
        f = wire.decode(data)
        names = wire.texts(f.get(1, []))
        self.names = names
        self.levels = []
        for raw in f.get(2, []):
            values = wire.ints(wire.decode(raw).get(1, []))
            assert len(values) % 7 == 0, values
            self.levels.append([names[v] if i % 7 == 6 else v for i, v in enumerate(values)])
        self.total, self.max_self, self.left, self.right = (wire.signed(f.get(n, [0])[-1]) for n in (3, 4, 5, 6))


class Naive:
    """Two lists of stacks as nodes {name: node}, drawn by recursion."""

    def __init__(self, name=""):
        self.name, self.own, self.total, self.kids = name, [0, 0], [0, 0], {}

    def add(self, path, side, value):
        node = self
        node.total[side] += value
        for name in path:
            node = node.kids.setdefault(name, Naive(name))
            node.total[side] += value
        node.own[side] += value

    def below(self):
        for kid in self.kids.values():
            yield max(kid.total)
            yield from kid.below()

    def levels(self, max_nodes):
        sizes = sorted(self.below(), reverse=True)
        bound = sizes[max_nodes - 1] if 0 < max_nodes < len(sizes) else 0
        out, ends = [], []

        def draw(node, depth, x):
            if depth == len(out):
                out.append([])
                ends.append([0, 0])
            for side in (0, 1):
                out[depth] += [x[side] - ends[depth][side], node.total[side], node.own[side]]
                ends[depth][side] = x[side] + node.total[side]
            out[depth].append(node.name or "total")
            x = [x[side] + node.own[side] for side in (0, 1)]
            other = Naive("other")
            for name in sorted(node.kids, key=str.encode):
                kid = node.kids[name]
                if max(kid.total) < bound or name == "other":
                    other.own = other.total = [other.total[side] + kid.total[side] for side in (0, 1)]
                else:
                    draw(kid, depth + 1, x)
                    x = [x[side] + kid.total[side] for side in (0, 1)]
            if any(other.total):
                draw(other, depth + 1, x)

        draw(self, 0, [0, 0])
        return out


def read_dot(text):
    """({name: (self, total)}, {(from, to): (value, dashed)}) of a call graph."""
    quoted = r'"((?:[^"\\]|\\.)*)"'
    names, nodes, edges = {}, {}, {}
    lines = text.split("\n")
    assert lines[0].startswith('digraph "') and lines[-2:] == ["}", ""], lines
    for line in lines[1:-2]:
        node = re.fullmatch(r"  (n\d+) \[label=%s, self=(\d+), total=(\d+), .*\];" % quoted, line)
        edge = re.fullmatch(r"  (n\d+) -> (n\d+) \[label=%s, value=(\d+), .*\];" % quoted, line)
        if node:
            name = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], node[2]).split("\n")[0]
            names[node[1]] = name
            nodes[name] = (int(node[3]), int(node[4]))
        elif edge:
            edges[names[edge[1]], names[edge[2]]] = (int(edge[4]), "style=dashed" in line)
        else:
            assert re.fullmatch(r"  (graph|node|edge) \[.*\];", line), line
    return nodes, edges


class RenderAndDiff(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = s = Server("--builder=false")
        cls.push("left", profile(T, LEFT))
        cls.push("right", profile(T, RIGHT))
        cls.push("quotes", profile(T, [('operator"" _km;C:\\new', 3)]))
        for k, (group, value) in enumerate((("a", 100), ("b", 20), ("a", 3), (None, 4000))):
            labels = {"group": group} if group else {}
            cls.push("timed", profile(T + 15 * SECOND * k, [("f", value)]), **labels)
        cls.push("timed", profile(T + 15 * SECOND, [("f", 1)]), group="a")
        s.push(
            Profile([("inuse_space", "bytes")], ("space", "bytes"), 1, T * 1_000_000).add(["new"], [64]).encode(),
            {"__name__": "memory", "service_name": "left"},
        )

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def push(cls, service, data, **labels):
        cls.server.push(data, {"__name__": "process_cpu", "service_name": service, **labels})

    @staticmethod
    def side(selector, start=START, end=END, profile_type=CPU, max_nodes=None, more=()):
        fields = [(1, profile_type), (2, selector), (3, start), (4, end)]
        return fields + ([(5, max_nodes)] if max_nodes is not None else []) + list(more)

    def diff(self, left, right):
        return FlameDiff(self.server.call(QUERIER + "Diff", [(1, left), (2, right)])[1][-1])

    def get(self, path, expect=200, **arguments):
        url = "/pyroscope/" + path + "?" + urllib.parse.urlencode(arguments, doseq=True)
        status, headers, body = self.server.http("GET", url)
        self.assertEqual(status, expect, body)
        return headers, body

    def get_json(self, path, **arguments):
        headers, body = self.get(path, **arguments)
        self.assertEqual(headers["content-type"], "application/json")
        return json.loads(body)

    def refused(self, call, code, *parts):
        with self.assertRaises(RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        for part in parts:
            self.assertIn(part, caught.exception.message)

    # ---- Diff ----

    def test_two_sides_are_aligned_by_name(self):
        d = self.diff(self.side('{service_name="left"}'), self.side('{service_name="right"}'))
        self.assertEqual(d.levels, BOTH)
        self.assertEqual((d.total, d.max_self, d.left, d.right), (123, 40, 52, 71))
        self.assertEqual(d.names[0], "total")

    def test_json_spells_the_ticks_as_clients_read_them(self):
        side = {"profileTypeID": CPU, "labelSelector": '{service_name="left"}', "start": START, "end": END}
        answer = self.server.connect(
            QUERIER + "Diff", {"left": side, "right": {**side, "labelSelector": '{service_name="right"}'}}
        )["flamegraph"]
        self.assertEqual((answer["leftTicks"], answer["rightTicks"], answer["total"]), ("52", "71", "123"))
        self.assertEqual(len(answer["levels"]), 4)

    def test_the_larger_max_nodes_and_the_larger_side_decide_the_cut(self):
        for numbers in ((2, 1), (1, 2), (2, None)):
            d = self.diff(
                self.side('{service_name="left"}', max_nodes=numbers[0]),
                self.side('{service_name="right"}', max_nodes=numbers[1]),
            )
            # max(left, right): main 70, parse 40, alloc 40, read 30, write 20, gc 7: ties at 40 stay.
            self.assertEqual(
                d.levels,
                [
                    BOTH[0],
                    [0, 45, 5, 0, 70, 0, "main", 0, 7, 7, 0, 1, 1, "other"],
                    [5, 10, 0, 0, 40, 0, "parse", 0, 30, 30, 0, 30, 30, "other"],
                    [5, 10, 10, 0, 40, 40, "alloc"],
                ],
            )

    def test_a_cut_is_noted(self):
        fields = [(1, self.side('{service_name="left"}', max_nodes=2)), (2, self.side('{service_name="right"}'))]
        _, metadata = self.server.grpc_bytes(QUERIER + "Diff", wire.encode(fields))
        self.assertIn('2 frames of the left and 3 of the right are folded into "other" (max_nodes 2)', metadata["hearth-note"])
        headers, _ = self.get("render", query=CPU + '{service_name="right"}', format="dot", maxNodes="2", **{"from": str(START)})
        self.assertIn("4 of 6 functions and 0 calls are not shown", headers["hearth-note"])

    def test_a_note_reports_that_a_gauge_is_summed(self):
        query = "memory:inuse_space:bytes:space:bytes{}"
        headers, body = self.get("render", query=query, **{"from": str(START), "until": str(END)})
        self.assertEqual((headers["hearth-aggregation"], json.loads(body)["flamebearer"]["numTicks"]), ("sum", 64))
        self.assertNotIn("hearth-aggregation", self.get("render", query=CPU + "{}", **{"from": str(START)})[0])

    def test_ranges_types_and_call_sites_are_those_of_each_side(self):
        before = self.side('{service_name="right"}', T - 50 * SECOND, T - SECOND)
        d = self.diff(self.side('{service_name="left"}'), before)
        self.assertEqual((d.left, d.right), (52, 0))
        d = self.diff(self.side('{service_name="left"}'), self.side('{service_name="left"}', profile_type=SAMPLES))
        self.assertEqual((d.left, d.right), (52, 4))
        site = (7, [(1, [(1, "main")]), (1, [(1, "read")])])
        d = self.diff(self.side('{service_name="left"}', more=[site]), self.side('{service_name="right"}', more=[(6, 4)]))
        self.assertEqual((d.left, d.right), (30, 71))

    def test_a_side_may_be_a_single_profile_or_a_span(self):
        for value, span in ((5, "00000000000000aa"), (7, "00000000000000bb")):
            p = Profile(TYPES, time_ns=(T + value) * 1_000_000).add(["f"], [1, value], {"span_id": span})
            self.push("spans", p.encode())
        everything = {"profileTypeID": CPU, "labelSelector": '{service_name="spans"}', "start": START, "end": END}
        point = self.server.connect(
            QUERIER + "SelectSeries", {**everything, "step": 60, "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}
        )["series"][0]["points"][0]
        self.assertEqual((point["value"], point["exemplars"][0]["value"]), (12, "7"))
        for part, total in (
            ({"profileIdSelector": [point["exemplars"][0]["profileId"]]}, "7"), ({"spanSelector": ["00000000000000aa"]}, "5"),
        ):
            answer = self.server.connect(QUERIER + "Diff", {"left": everything, "right": {**everything, **part}})["flamegraph"]
            self.assertEqual((answer["leftTicks"], answer["rightTicks"]), ("12", total))

    def test_two_empty_sides_are_one_box_of_zeros(self):
        nobody = self.side('{service_name="nobody"}')
        d = self.diff(nobody, nobody)
        self.assertEqual((d.names, d.levels, d.total), (["total"], [[0, 0, 0, 0, 0, 0, "total"]], 0))

    def test_errors_name_the_side_of_the_mistake(self):
        good = self.side('{service_name="left"}')
        ask = lambda fields: lambda: self.server.call(QUERIER + "Diff", fields)
        self.refused(ask([(2, good)]), "invalid_argument", "left: ")
        self.refused(ask([(1, good)]), "invalid_argument", "right: ")
        self.refused(ask([]), "invalid_argument", "left: ")
        self.refused(ask([(1, good), (2, self.side("{a=")), ]), "invalid_argument", "right: selector")
        self.refused(ask([(1, self.side("{}", profile_type="cpu")), (2, good)]), "invalid_argument", "left: ")
        self.refused(ask([(1, good), (2, self.side("{}", 5000, 4000))]), "invalid_argument", "right: ", "after end time")
        self.refused(ask([(1, good), (2, self.side("{}", more=[(8, "nope")]))]), "invalid_argument", "right: profile_id_selector")
        self.refused(ask([(1, self.side("{}", max_nodes=-1)), (2, good)]), "invalid_argument", "left: max flamegraph")
        self.refused(ask([(1, good), (2, self.side("{}", max_nodes=1 << 40))]), "invalid_argument", "right: ", "greater than allowed")

    def test_random_sides_agree_with_a_naive_drawing(self):
        rng = random.Random(4)
        names = ["a", "b", "other", "github.com/x/y", "github.com/x/z", "total", "ä", "zz"]
        for round_no in range(6):
            tree = Naive()
            for side in (0, 1):
                stacks = {}
                for _ in range(rng.randrange(1, 40)):
                    path = tuple(rng.choice(names) for _ in range(rng.randrange(1, 7)))
                    stacks[path] = stacks.get(path, 0) + rng.randrange(1, 30)
                for path, value in stacks.items():
                    tree.add(path, side, value)
                self.push("random%d" % side, profile(T, [(";".join(p), v) for p, v in stacks.items()]), round=str(round_no))
            for max_nodes in (1, 5, 20, 1000):
                sides = [
                    self.side('{service_name="random%d", round="%d"}' % (side, round_no), max_nodes=max_nodes)
                    for side in (0, 1)
                ]
                d = self.diff(*sides)
                self.assertEqual(d.levels, tree.levels(max_nodes), (round_no, max_nodes))
                self.assertEqual([d.left, d.right], tree.total)

    # ---- DOT ----

    def dot(self, selector, max_nodes=None):
        answer = self.server.stacktraces(CPU, selector, START, END, max_nodes=max_nodes, format=DOT)
        return answer.get(3, [b""])[-1].decode()

    def test_a_call_graph_has_exact_values(self):
        nodes, edges = read_dot(self.dot('{service_name="right"}'))
        self.assertEqual(
            nodes,
            {"main": (0, 70), "alloc": (40, 40), "parse": (0, 40), "write": (20, 20), "read": (10, 10), "gc": (1, 1)},
        )
        self.assertEqual(
            edges,
            {
                ("main", "parse"): (40, False), ("parse", "alloc"): (40, False),
                ("main", "write"): (20, False), ("main", "read"): (10, False),
            },
        )

    def test_hidden_functions_leave_dashed_calls(self):
        nodes, edges = read_dot(self.dot('{service_name="right"}', 2))
        self.assertEqual((set(nodes), edges), ({"main", "alloc"}, {("main", "alloc"): (40, True)}))

    def test_no_profiles_are_no_call_graph(self):
        self.assertEqual(self.dot('{service_name="nobody"}'), "")
        headers, body = self.get("render", query=CPU + '{service_name="nobody"}', format="dot", **{"from": "now-1h"})
        self.assertEqual((body, headers["content-type"]), (b"", "text/plain; charset=utf-8"))

    def test_names_are_quoted_and_graphviz_reads_them(self):
        text = self.dot('{service_name="quotes"}')
        self.assertEqual(set(read_dot(text)[0]), {'operator"" _km', "C:\\new"})
        if shutil.which("dot"):
            done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("C:\\new", done.stdout)

    # ---- what there is, and what is read ----

    def test_stats_are_of_the_tenant_and_to_the_millisecond(self):
        own = Server("--multitenancy", "--builder=false", "--max-flamegraph-nodes=50", "--default-flamegraph-nodes=20")
        try:
            stats = lambda tenant: own.connect(QUERIER + "GetProfileStats", {}, {"X-Scope-OrgID": tenant})
            self.assertEqual(stats("empty"), {})
            base = now_ms() // HOUR * HOUR
            times = [base - 30 * 60 * SECOND - 123, base - 17, base - 30 * 60 * SECOND, base - 5 * 60 * SECOND]
            for ms in times:
                own.push(
                    profile(ms, [("f", 1)]), {"__name__": "process_cpu", "service_name": "s%d" % (ms % 7)},
                    metadata=[("x-scope-orgid", "one")],
                )
            self.assertEqual(
                stats("one"),
                {"dataIngested": True, "oldestProfileTime": str(min(times)), "newestProfileTime": str(max(times))},
            )
            just_now = now_ms() - 5
            own.push(
                profile(just_now, [("f", 1)]), {"__name__": "x", "service_name": "y"}, metadata=[("x-scope-orgid", "one")]
            )
            self.assertEqual(stats("one")["newestProfileTime"], str(just_now))
            # A call graph's own default is within what is allowed.
            everything = {"profileTypeID": CPU, "labelSelector": "{}", "start": base - HOUR, "end": just_now, "format": "PROFILE_FORMAT_DOT"}
            answer = own.connect(QUERIER + "SelectMergeStacktraces", everything, {"X-Scope-OrgID": "one"})
            self.assertEqual(read_dot(answer["dot"])[0], {"f": (4, 4)})
            # The same when the oldest hour is read from packed totals.
            own.terminate()
            own.options = ["--multitenancy", "--builder-interval=200ms", "--rollup-grace=0"]
            own.start()
            eventually(
                lambda: own.sql("SELECT count(*) FROM hearth_data.hour_totals WHERE t0 = %d" % ((base - HOUR) * 10**6)) != [["0"]],
                90, what="totals of the oldest hour",
            )
            self.assertEqual(stats("one")["oldestProfileTime"], str(min(times)))
            self.assertEqual(stats("two"), {})
            self.assertEqual(stats("one|two")["oldestProfileTime"], str(min(times)))
        finally:
            own.stop()

    def analyze(self, query):
        return self.server.connect(QUERIER + "AnalyzeQuery", {"start": START, "end": END, "query": query})

    def test_a_query_is_analyzed_by_source(self):
        for query in (CPU + '{service_name="timed"}', '{service_name="timed", __profile_type__="%s"}' % CPU):
            answer = self.analyze(query)
            by_source = {scope["componentType"]: scope for scope in answer["queryScopes"]}
            self.assertEqual(int(by_source["profile"]["profileCount"]), 5)
            self.assertEqual(int(by_source["profile"]["seriesCount"]), 3)
            self.assertGreater(int(by_source["profile"]["profileBytes"]), 100)
            self.assertEqual(answer["queryImpact"]["totalQueriedSeries"], "3")
            self.assertEqual(
                int(answer["queryImpact"]["totalBytesInTimeRange"]),
                sum(int(scope.get("profileBytes", 0)) for scope in answer["queryScopes"]),
            )
        # Without a type all three are asked, cpu, samples and inuse_space.
        answer = self.analyze('{service_name="left"}')
        self.assertEqual(answer["queryImpact"]["totalQueriedSeries"], "3")
        self.assertEqual(self.analyze('{service_name="nobody"}').get("queryScopes", []), [])
        self.refused(lambda: self.analyze(""), "invalid_argument")
        self.refused(lambda: self.server.connect(QUERIER + "AnalyzeQuery", {"query": CPU}), "invalid_argument", "time range")

    # ---- render ----

    def test_render_is_the_flame_graph_with_its_timeline(self):
        got = self.get_json(
            "render", query=CPU + '{service_name="left"}', until=str(END), **{"from": str(START), "max-nodes": "100"}
        )
        flame = got["flamebearer"]
        self.assertEqual(got["version"], 1)
        self.assertEqual((flame["numTicks"], flame["maxSelf"]), (52, 30))
        names = flame["names"]
        self.assertEqual(
            [[names[v] if i % 4 == 3 else v for i, v in enumerate(level)] for level in flame["levels"]],
            [
                [0, 52, 0, "total"], [0, 7, 7, "gc", 0, 45, 5, "main"], [12, 10, 0, "parse", 0, 30, 30, "read"],
                [12, 10, 10, "alloc"],
            ],
        )
        self.assertEqual(
            got["metadata"],
            {"format": "single", "spyName": "", "sampleRate": 1000000000, "units": "samples", "name": "cpu"},
        )
        # Buckets end at START, START + 15 s, ...: T is the fifth.
        self.assertEqual(
            got["timeline"],
            {
                "startTime": START // 1000 // 15 * 15, "samples": [0, 0, 0, 0, 52, 0, 0, 0, 0], "durationDelta": 15,
                "watermarks": None,
            },
        )
        self.assertEqual((got["groups"], got["heatmap"]), (None, None))

    def test_units_follow_the_type(self):
        for profile_type, units, rate in ((SAMPLES, "objects", 100), ("memory:inuse_space:bytes:space:bytes", "bytes", 100)):
            got = self.get_json("render", query=profile_type + '{service_name="left"}', **{"from": str(START), "until": str(END)})
            self.assertEqual((got["metadata"]["units"], got["metadata"]["sampleRate"]), (units, rate))

    def test_groups_have_a_timeline_each(self):
        ask = {"query": CPU + '{service_name="timed"}', "from": str(T // 1000), "until": str(T // 1000 + 45)}
        plain = self.get_json("render", **ask)
        self.assertEqual(plain["timeline"]["samples"], [100, 21, 3, 4000])
        got = self.get_json("render", groupBy=["group", "service_name"], **ask)
        self.assertEqual(got["timeline"], {**plain["timeline"], "samples": [0, 0, 0, 0]}, "of several groups")
        self.assertEqual({line["startTime"] for line in got["groups"].values()}, {plain["timeline"]["startTime"]})
        self.assertEqual(
            {group: line["samples"] for group, line in got["groups"].items()},
            {"a": [100, 1, 3, 0], "b": [0, 20, 0, 0], "*": [0, 0, 0, 4000]},
        )
        self.assertEqual(self.get_json("render", groupBy="", **ask), plain)
        mean = self.get_json("render", aggregation="avg", **ask)
        self.assertEqual(mean["timeline"]["samples"], [100, 11, 3, 4000])  # 10.5 is rounded
        odd = self.get_json("render", aggregation="median", **ask)
        self.assertEqual(odd["timeline"]["samples"], plain["timeline"]["samples"])

    def test_a_timeline_begins_at_a_whole_step_and_is_zeros_without_data(self):
        base = T // 1000 // 15 * 15
        for start, end, n in ((base, base + 30, 3), (base + 1, base + 31, 3), (base + 14, base + 44, 3), (base + 14, base + 43, 2)):
            got = self.get_json("render", query=CPU + '{service_name="nobody"}', until=str(end), **{"from": str(start)})
            self.assertEqual(
                got["timeline"], {"startTime": base, "samples": [0] * n, "durationDelta": 15, "watermarks": None}
            )
            self.assertEqual(got["flamebearer"]["numTicks"], 0)

    def test_steps_follow_the_ladder(self):
        for hours, step in ((1, 15), (6, 15), (8, 20), (12, 30), (24, 60), (168, 300), (720, 1800), (8760, 21600)):
            got = self.get_json(
                "render", query=CPU + '{service_name="timed"}', until=str(END), **{"from": str(END - hours * HOUR)}
            )["timeline"]
            self.assertEqual((got["durationDelta"], len(got["samples"])), (step, hours * 3600 // step + 1))
            self.assertEqual(sum(got["samples"]), 4124)

    def test_times_are_read_in_all_their_forms(self):
        query = CPU + '{service_name="left"}'
        for start, end in (
            (T - 1000, T + 1000), (T // 1000 - 1, T // 1000 + 1), ((T - 1) * 1000, (T + 1) * 1000),
            ((T - 1) * 10**6, (T + 1) * 10**6), ("now-20min", "now"), ("now-1mon", ""), ("now-1h", None),
        ):
            arguments = {"query": query, "from": str(start)}
            if end is not None:
                arguments["until"] = str(end)
            self.assertEqual(self.get_json("render", **arguments)["flamebearer"]["numTicks"], 52, (start, end))
        headers, body = self.get("render", query=query, **{"from": "yesterday", "until": "now"})
        self.assertEqual(json.loads(body)["flamebearer"]["numTicks"], 0)
        self.assertIn('from "yesterday" is not a time', headers["hearth-note"])
        for forged in ("now\nhearth-note: all is well", "now\r\nX: y"):  # one argument is one note
            headers, _ = self.get("render", query=query, **{"from": forged, "until": "now"})
            self.assertEqual(headers["hearth-note"], 'from "now..." is not a time: now is used')

    def test_unsupported_parameters_of_render_are_an_error_in_json(self):
        good = CPU + "{}"
        for arguments, part in (
            ({}, "query is required"), ({"query": ""}, "query is required"), ({"query": "{}"}, "profile type"),
            ({"query": "process_cpu{}"}, "profile type"), ({"query": CPU + "{a="}, "query: "),
            ({"query": good, "from": "0"}, "missing time range"), ({"query": good, "until": "0"}, "missing time range"),
            ({"query": good, "from": "now", "until": "now-1h"}, "after end time"),
            ({"query": good, "max-nodes": "-1"}, "max flamegraph"), ({"query": good, "maxNodes": str(1 << 40)}, "greater than"),
        ):
            headers, body = self.get("render", expect=400, **arguments)
            self.assertEqual(headers["content-type"], "application/json")
            error = json.loads(body)
            self.assertEqual(error["code"], "invalid_argument", arguments)
            self.assertIn(part, error["message"])
        for ignored in ("0", "many", ""):
            self.get("render", query=good, maxNodes=ignored)

    def test_max_nodes_cuts_render_and_its_call_graph(self):
        ask = {"query": CPU + '{service_name="right"}', "from": str(START), "until": str(END), "max-nodes": "2"}
        self.assertIn("other", self.get_json("render", **ask)["flamebearer"]["names"])
        headers, body = self.get("render", format="dot", **ask)
        self.assertEqual(headers["content-type"], "text/plain; charset=utf-8")
        self.assertEqual(set(read_dot(body.decode())[0]), {"main", "alloc"})

    def test_render_diff_has_seven_values_a_box(self):
        ask = {}
        for side in ("left", "right"):
            ask.update({side + "Query": CPU + '{service_name="%s"}' % side, side + "From": str(START), side + "Until": str(END)})
        got = self.get_json("render-diff", **ask)
        names = got["flamebearer"]["names"]
        levels = [[names[v] if i % 7 == 6 else v for i, v in enumerate(level)] for level in got["flamebearer"]["levels"]]
        self.assertEqual(levels, BOTH)
        self.assertEqual((got["leftTicks"], got["rightTicks"], got["metadata"]["format"]), (52, 71, "double"))
        self.assertEqual(got["flamebearer"]["numTicks"], 123)
        for changes, part in (
            ({"rightQuery": SAMPLES + "{}"}, "same profile type"), ({"leftQuery": ""}, "leftQuery is required"),
            ({"rightFrom": "0"}, "right: missing time range"), ({"rightQuery": "{"}, "rightQuery: "),
        ):
            body = self.get("render-diff", expect=400, **{**ask, **changes})[1]
            self.assertIn(part, json.loads(body)["message"])

    # ---- labels ----

    def test_labels_and_their_values_are_arrays(self):
        self.assertEqual(
            self.get_json("label-values", label="__name__"),
            sorted([CPU, SAMPLES, "memory:inuse_space:bytes:space:bytes"]),
        )
        self.assertLessEqual({"left", "right", "timed"}, set(self.get_json("label-values", label="service_name")))
        self.assertEqual(self.get_json("label-values", label="group", query=CPU + '{service_name="timed"}'), ["a", "b"])
        self.assertEqual(
            self.get_json("label-values", label="service_name", query="memory:inuse_space:bytes:space:bytes"), ["left"]
        )
        self.assertEqual(self.get_json("label-values", label="group", **{"from": "now-30d", "until": "now-29d"}), [])
        names = self.get_json("labels")
        self.assertEqual(names, sorted(names))
        self.assertLessEqual({"__profile_type__", "group", "service_name"}, set(names))
        self.assertEqual("label is required", json.loads(self.get("label-values", expect=400)[1])["message"])

    def test_other_methods_are_refused(self):
        for path in ("render", "render-diff", "label-values", "labels"):
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                status, headers, _ = self.server.http(method, "/pyroscope/" + path, b"")
                self.assertEqual((status, headers.get("allow")), (405, "GET, HEAD"), (method, path))


if __name__ == "__main__":
    unittest.main()
