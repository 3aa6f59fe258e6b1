"""Tables of functions, sandwich, lines, filters of stacks: against a count of single samples, before and after roll-up."""

import collections
import os
import random
import re
import unittest

import wire
from pprof import Decoded, Profile
from questions import CPU, QUERIER
from server import RpcError, Server, eventually, now_ms

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
QUERY = "hearth.v1.QueryService/"
SECOND, HOUR = 1000, 3_600_000
# Three hours ago: all of it can be rolled up.
T = now_ms() // HOUR * HOUR - 3 * HOUR
START, END = T - HOUR, T + HOUR
KINDS = ["FUNCTION", "LINE", "FILE", "DIRECTORY", "CLASS", "PACKAGE", "MODULE", "THREAD", "FRAME_KIND"]
APP, LIBC = "/app/bin/shop", "/lib/libc.so.6"

FUNCTIONS = [
    ("main.main", "/src/shop/main.go"), ("main.(*Cart).Add", "/src/shop/cart.go"), ("main.Cart.Total", "/src/shop/cart.go"),
    ("net/http.(*conn).serve", "/go/net/http/server.go"), ("runtime.mallocgc", "/go/runtime/malloc.go"),
    ("std::vector<int>::push_back(int&&)", "vector.h"), ("memcpy", ""), ("main.main", "/src/shop/other.go"),
]
CLASSES = {
    "main.(*Cart).Add": "main.Cart", "main.Cart.Total": "main.Cart", "net/http.(*conn).serve": "net/http.conn",
    "std::vector<int>::push_back(int&&)": "std::vector",
}
PACKAGES = {"main.main": "main", "main.(*Cart).Add": "main", "main.Cart.Total": "main", "net/http.(*conn).serve": "net/http",
            "runtime.mallocgc": "runtime"}


KINDS_OF_CODE = {**{name: "go" for name in PACKAGES}, "std::vector<int>::push_back(int&&)": "native"}


def random_location(rng):
    if rng.random() < 0.1:
        return ("0x%x" % (16 * rng.randint(1, 3)), LIBC)  # outside of the range of every mapping
    lines = tuple(rng.choice(FUNCTIONS) + (rng.randint(1, 3),) for _ in range(rng.choice([1, 1, 1, 1, 2, 3])))
    return lines + rng.choice([(), (APP,), (APP,), (LIBC,)])


def random_profile(rng, locations, ms):
    p = Profile(TYPES, time_ns=ms * 1_000_000)
    for _ in range(rng.randint(3, 12)):
        stack = [rng.choice(locations) for _ in range(rng.randint(1, 8))]
        labels = rng.choice([{}, {"thread name": "worker-1"}, {"thread name": "worker-2"}, {"thread id": 77}])
        n = rng.randint(1, 9)
        p.samples.append((stack, [n, n * 10_000_000], labels))
    return p


class Frame(collections.namedtuple("Frame", "name file line mapping address")):
    """A frame of a sample as the tables see it."""

    def key(self, kind):
        return {
            "FUNCTION": self.name, "LINE": (self.name, self.line), "FILE": self.file,
            "DIRECTORY": os.path.dirname(self.file), "CLASS": CLASSES.get(self.name, ""),
            "PACKAGE": PACKAGES.get(self.name, "") or os.path.basename(self.mapping), "MODULE": self.mapping,
            "FRAME_KIND": KINDS_OF_CODE.get(self.name, "native" if self.mapping else ""),
        }[kind]


def frames_of(stack):
    """Leaf first."""
    out = []
    for location in stack:
        if isinstance(location[0], str):
            # Where a mapping was loaded goes with its addresses; the name says the base name of the file.
            out.append(Frame("%s+%s" % (os.path.basename(location[1]), location[0]), "", 0, location[1], True))
            continue
        mapping = location[-1] if isinstance(location[-1], str) else ""
        out += [Frame(name, file, line, mapping, False) for name, file, line in Profile.frames(location)]
    return out


class Oracle:
    """Samples one by one: (frames leaf first, value, thread)."""

    def __init__(self, profiles):
        self.samples = []
        for p in profiles:
            for stack, values, labels in p.samples:
                thread = labels.get("thread name") or str(labels.get("thread id", ""))
                self.samples.append((frames_of(stack), values[1], thread))

    def where(self, passes):
        out = Oracle([])
        out.samples = [s for s in self.samples if passes([f.name for f in reversed(s[0])])]
        return out

    def total(self):
        return sum(value for _, value, _ in self.samples)

    def table(self, kind):
        """{key: (self, total)}"""
        flat, cum = collections.Counter(), collections.Counter()
        for frames, value, thread in self.samples:
            keys = [thread] if kind == "THREAD" else [f.key(kind) for f in frames]
            flat[keys[0]] += value
            for key in set(keys):
                cum[key] += value
        return {key: (flat[key], cum[key]) for key in cum}

    def attribute(self, name, field):
        """The file or mapping of a function, where there is one only."""
        found = {getattr(f, field) for frames, _, _ in self.samples for f in frames if f.name == name} - {""}
        return found.pop() if len(found) == 1 else ""


def number(message, field):
    return int(message.get(field, 0))


def path_sums(nodes):
    """{path from the function: (self, total)} of one side of a sandwich."""
    paths, out = [], {}
    for k, node in enumerate(nodes):
        parent = node.get("parent", 0)
        assert parent < k
        paths.append((paths[parent] if parent >= 0 else ()) + (node["name"],))
        out[paths[-1]] = (number(node, "self"), number(node, "total"))
    assert len(out) == len(nodes)
    return out


class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rng = random.Random(20261120)
        cls.server = s = Server("--builder-interval", "100ms", "--rollup-grace", "0", "--rollup-min-profiles-1h", "0")
        locations = [random_location(rng) for _ in range(25)]
        cls.profiles = [random_profile(rng, locations, T - HOUR // 2 + k * 97 * SECOND) for k in range(40)]
        for k, p in enumerate(cls.profiles):
            labels = {"__name__": "process_cpu", "service_name": "shop", "pod": "pod-%d" % (k % 3)}
            if k % 3:
                labels["service_repository"] = "github.com/x/shop"
                labels["service_git_ref"] = "v%d" % (k % 3)
            s.push(p.encode(), labels)
        s.push(Profile(TYPES, time_ns=T * 1_000_000).add(["idle"], [0, 0]).encode(), {"__name__": "process_cpu", "service_name": "none"})
        cls.oracle = Oracle(cls.profiles)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @staticmethod
    def selection(selector='{service_name="shop"}', **more):
        return {"profileType": CPU, "labelSelector": selector, "start": START, "end": END, **more}

    def top(self, kind="FUNCTION", selection=None, **more):
        return self.server.connect(
            QUERY + "Top", {"selection": selection or self.selection(), "kind": "TOP_KIND_" + kind, "limit": 10000, **more}
        )

    def table(self, kind, selection=None):
        answer = self.top(kind, selection)
        out = {}
        for row in answer.get("rows", []):
            name = row.get("name", "")
            out[(name, number(row, "line")) if kind == "LINE" else name] = (number(row, "self"), number(row, "total"))
        self.assertEqual(len(out), len(answer.get("rows", [])), "rows are distinct")
        self.assertEqual(number(answer, "rowCount"), len(out))
        return out, number(answer, "total")

    def assert_refused(self, code, pattern, method, message):
        with self.assertRaises(RpcError) as caught:
            self.server.connect(QUERY + method, message)
        self.assertEqual(caught.exception.code, code)
        self.assertRegex(caught.exception.message, pattern)

    # ---- tables ----

    def test_tables_of_every_kind_have_the_sums_of_the_samples(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.assertEqual(self.table(kind), (self.oracle.table(kind), self.oracle.total()))

    def test_functions_have_file_and_module_where_there_is_one(self):
        rows = self.top()["rows"]
        for row in rows:
            self.assertEqual(row.get("file", ""), self.oracle.attribute(row["name"], "file"), row)
            self.assertEqual(row.get("module", ""), self.oracle.attribute(row["name"], "mapping"), row)
        self.assertEqual({r["name"]: r.get("file") for r in rows}["runtime.mallocgc"], "/go/runtime/malloc.go")
        self.assertEqual({r["name"]: r.get("file") for r in rows}["main.main"], None)

    def test_functions_and_lines_have_the_first_line_of_the_function_where_there_is_one(self):
        for k, start in enumerate((10, 20, 0)):
            p = Profile(TYPES, time_ns=(T + k * SECOND) * 1_000_000)
            p.start_lines = {("same", "a.c"): 7, ("two", "b.c"): start}
            p.samples.append(([(("same", "a.c", 9),), (("two", "b.c", 30), ("none", "c.c", 1))], [1, 10], {}))
            self.server.push(p.encode(), {"__name__": "process_cpu", "service_name": "starts"})
        selection = self.selection('{service_name="starts"}')
        expected = {"same": 7, "two": 0, "none": 0}
        for kind in ("FUNCTION", "LINE"):
            rows = self.top(kind, selection)["rows"]
            self.assertEqual({r["name"]: number(r, "startLine") for r in rows}, expected)
        self.assertEqual({number(r, "startLine") for r in self.top("FILE", selection)["rows"]}, {0})
        for function, start in expected.items():
            answer = self.server.connect(QUERY + "Lines", {"selection": selection, "function": function})
            self.assertEqual([number(line, "startLine") for line in answer["lines"]], [start])

    def test_the_answer_has_unit_and_aggregation(self):
        answer = self.top()
        self.assertEqual((answer["unit"], answer["aggregation"]), ("nanoseconds", "AGGREGATION_SUM"))

    def test_rows_are_sorted_and_paged(self):
        table = self.oracle.table("FUNCTION")

        def names(**more):
            return [row["name"] for row in self.top(**more)["rows"]]

        by_self = sorted(table, key=lambda name: (-table[name][0], -table[name][1], name))
        by_total = sorted(table, key=lambda name: (-table[name][1], -table[name][0], name))
        self.assertEqual(names(), by_self)
        self.assertEqual(names(sort="TOP_SORT_TOTAL"), by_total)
        self.assertEqual(names(sort="TOP_SORT_NAME"), sorted(table, reverse=False))
        self.assertEqual(names(sort="TOP_SORT_NAME", reverse=True), sorted(table, reverse=True))
        self.assertEqual(names(reverse=True)[-1], by_self[0])
        self.assertEqual(names(limit=2, offset=3), by_self[3:5])
        answer = self.top(limit=2, offset=1000)
        self.assertEqual((answer.get("rows", []), number(answer, "rowCount")), ([], len(table)))

    def test_a_search_is_an_unanchored_regular_expression_over_names(self):
        table = self.oracle.table("FUNCTION")
        answer = self.top(search="^main\\.|mem")
        self.assertEqual({r["name"] for r in answer["rows"]}, {n for n in table if re.search("^main\\.|mem", n)})
        self.assertEqual(number(answer, "total"), self.oracle.total())
        self.assertNotIn("rows", self.top(search="no such"))

    def test_nothing_selected_is_an_empty_table(self):
        answer = self.top(selection=self.selection('{service_name="nobody"}'))
        self.assertEqual((answer.get("rows", []), number(answer, "total")), ([], 0))
        self.assertEqual(self.table("THREAD", self.selection('{service_name="none"}')), ({}, 0))

    def test_impossible_queries_are_refused_by_name(self):
        for more, pattern in (
            ({"search": "a("}, "^search: bad regular expression: missing \\)"), ({"limit": -1}, "^limit -1 is negative"),
            ({"offset": -7}, "^offset -7 is negative"), ({"kind": 99}, "^kind 99 is not known"),
            ({"sort": 99}, "^sort 99 is not known"),
        ):
            self.assert_refused("invalid_argument", pattern, "Top", {"selection": self.selection(), **more})
        self.assert_refused("invalid_argument", "^selection is missing", "Top", {})
        self.assert_refused("invalid_argument", "profile type", "Top", {"selection": {**self.selection(), "profileType": "cpu"}})
        self.assert_refused(
            "invalid_argument", "^stacks.regex: bad", "Top", {"selection": self.selection(stacks={"regex": "("})}
        )
        self.assert_refused(
            "invalid_argument", "span_ids", "Top", {"selection": self.selection(spanIds=["a1", "0"])}
        )
        self.assert_refused(
            "invalid_argument", "trace_ids", "Top", {"selection": self.selection(traceIds=[""])}
        )

    # ---- filters ----

    def test_filters_of_stacks_narrow_every_table(self):
        names = ["main.main", "runtime.mallocgc"]
        root = self.oracle.samples[0][0][-1].name
        cases = [
            ({"callSite": [root]}, lambda path: path[:1] == [root]),
            ({"functions": names}, lambda path: any(n in path for n in names)),
            ({"functions": names, "allFunctions": True}, lambda path: all(n in path for n in names)),
            ({"without": ["memcpy"]}, lambda path: "memcpy" not in path),
            ({"regex": "Cart|^net"}, lambda path: any("Cart" in n or n.startswith("net") for n in path)),
            ({"withoutRegex": "push_back"}, lambda path: not any("push_back" in n for n in path)),
            ({"regex": "Cart", "without": ["memcpy"], "functions": names},
             lambda path: any("Cart" in n for n in path) and "memcpy" not in path and any(n in path for n in names)),
        ]
        for stacks, passes in cases:
            oracle = self.oracle.where(passes)
            self.assertTrue(0 < oracle.total() < self.oracle.total(), stacks)
            for kind in ("FUNCTION", "MODULE", "THREAD"):
                with self.subTest(stacks=stacks, kind=kind):
                    self.assertEqual(self.table(kind, self.selection(stacks=stacks)), (oracle.table(kind), oracle.total()))

    # ---- sandwich ----

    def sandwich(self, function, **more):
        return self.server.connect(QUERY + "Sandwich", {"selection": self.selection(), "function": function, **more})

    def test_a_sandwich_shows_the_frames_above_and_below_each_sample(self):
        for function in ("main.main", "memcpy", "runtime.mallocgc"):
            flat, total, callers, callees = 0, 0, collections.Counter(), collections.Counter()
            callers_self, callees_self = collections.Counter(), collections.Counter()
            for frames, value, _ in self.oracle.samples:
                path = [f.name for f in reversed(frames)]
                if function not in path:
                    continue
                first, last = path.index(function), len(path) - 1 - path[::-1].index(function)
                up, down = tuple(reversed(path[: first + 1])), tuple(path[last:])
                for counter, at_end, side in ((callers, callers_self, up), (callees, callees_self, down)):
                    at_end[side] += value
                    for k in range(len(side)):
                        counter[side[: k + 1]] += value
                total += value
                flat += value if path[-1] == function else 0
            answer = self.sandwich(function)
            with self.subTest(function):
                self.assertEqual(path_sums(answer["callers"]), {p: (callers_self[p], callers[p]) for p in callers})
                self.assertEqual(path_sums(answer["callees"]), {p: (callees_self[p], callees[p]) for p in callees})
                self.assertEqual((number(answer, "self"), number(answer, "total")), (flat, total))
                self.assertEqual(number(answer, "whole"), self.oracle.total())
                row = self.oracle.table("FUNCTION")[function]
                self.assertEqual((flat, total), row)

    def test_a_cut_sandwich_keeps_the_largest_and_all_values(self):
        whole, cut = self.sandwich("main.main"), self.sandwich("main.main", maxNodes=4)
        for side in ("callers", "callees"):
            kept = [node for node in cut[side] if node["name"] != "other"]
            totals = sorted((number(n, "total") for n in whole[side]), reverse=True)
            self.assertEqual(sorted((number(n, "total") for n in kept), reverse=True), totals[: len(kept)])
            self.assertGreaterEqual(len(kept), 4)
            self.assertEqual(sum(number(n, "self") for n in cut[side]), number(cut, "total"))
            self.assertLess(len(cut[side]), len(whole[side]))

    def test_a_cut_sandwich_is_reported(self):
        message = wire.encode([(1, [(1, CPU), (2, '{service_name="shop"}'), (3, START), (4, END)]), (2, "main.main"), (3, 4)])
        _, metadata = self.server.grpc_bytes(QUERY + "Sandwich", message)
        self.assertRegex(
            metadata["hearth-note"], r"^[0-9]+ callers and callees are folded into .other. \(max_nodes 4 of each side\): ask for more"
        )

    def test_an_unknown_function_is_not_found(self):
        message = {"selection": self.selection(), "function": "no such"}
        for method in ("Sandwich", "Lines"):
            self.assert_refused("not_found", 'contains the function "no such"', method, message)
            self.assert_refused("invalid_argument", "^function is required", method, {"selection": self.selection()})

    # ---- lines ----

    def test_lines_show_where_a_function_spends_its_time(self):
        flat, cum, total = collections.Counter(), collections.Counter(), 0
        for frames, value, _ in self.oracle.samples:
            keys = [(f.file, f.mapping, f.line) if f.name == "main.main" else None for f in frames]
            if keys[0]:
                flat[keys[0]] += value
            for key in set(keys) - {None}:
                cum[key] += value
            total += value if any(keys) else 0
        answer = self.server.connect(QUERY + "Lines", {"selection": self.selection(), "function": "main.main"})
        found = [
            ((r["file"], r.get("mapping", ""), number(r, "line")), (number(r, "self"), number(r, "total"))) for r in answer["lines"]
        ]
        self.assertEqual(found, sorted((key, (flat[key], cum[key])) for key in cum))
        for row in answer["lines"]:
            self.assertEqual(row.get("buildId", ""), "id of " + row["mapping"] if "mapping" in row else "")
        self.assertEqual((number(answer, "self"), number(answer, "total")), (sum(flat.values()), total))
        sources = [{p["name"]: p["value"] for p in s["labels"]} for s in answer["sources"]]
        self.assertEqual(
            sources, [{"service_git_ref": "v%d" % k, "service_repository": "github.com/x/shop"} for k in (1, 2)]
        )

    # ---- profile-guided optimisation ----

    def pgo(self, keep=0, aggregate=False, max_nodes=None):
        pgo = [(1, keep), (2, int(aggregate))]
        fields = [(1, CPU), (2, '{service_name="shop"}'), (3, START), (4, END), (6, [(2, pgo)])]
        if max_nodes:
            fields.append((5, max_nodes))
        answer, _ = self.server.grpc_bytes(QUERIER + "SelectMergeProfile", wire.encode(fields))
        return Decoded(answer).by_stack(0)

    def pgo_oracle(self, keep=0, aggregate=False):
        out = collections.Counter()
        for p in self.profiles:
            for stack, values, _ in p.samples:
                frames = []
                for k, location in enumerate(stack[: keep or None]):
                    if isinstance(location[0], str):
                        frames.append((location[0], location[1], None))
                        continue
                    lines = Profile.frames(location)
                    if k == 0 and aggregate:
                        lines[0] = lines[0][:2] + (0,)
                    frames += lines
                out[tuple(frames)] += values[1]
        return dict(out)

    def test_go_pgo_keeps_leaf_locations_and_draws_callees_together(self):
        for keep, aggregate in ((0, False), (1, False), (2, True), (5, True), (0, True)):
            with self.subTest(keep=keep, aggregate=aggregate):
                self.assertEqual(self.pgo(keep, aggregate), self.pgo_oracle(keep, aggregate))
        self.assertLess(len(self.pgo(2, True)), len(self.pgo(2)))
        self.assertEqual(self.pgo(3, max_nodes=1), self.pgo_oracle(3), "nothing is cut")

    # ---- any state of storage ----

    def ask_everything(self):
        """Bodies as they come."""
        out = []
        for kind in KINDS:
            for stacks in ({}, {"regex": "Cart", "without": ["memcpy"]}):
                message = {"selection": self.selection(stacks=stacks), "kind": "TOP_KIND_" + kind, "sort": "TOP_SORT_TOTAL"}
                out.append(self.server.connect(QUERY + "Top", message))
        for function in ("main.main", "memcpy"):
            out.append(self.sandwich(function, maxNodes=6))
            out.append(self.server.connect(QUERY + "Lines", {"selection": self.selection(), "function": function}))
        return out

    def sources(self):
        plan = self.server.connect(
            QUERY + "Explain", {"profileType": CPU, "labelSelector": '{service_name="shop"}', "start": START, "end": END}
        )
        return {total["source"] for total in plan["totals"] if number(total, "rows") > 0}

    def test_answers_do_not_change_when_profiles_are_rolled_up(self):
        before = self.ask_everything()
        eventually(lambda: self.sources() <= {"SOURCE_ROLL_10M", "SOURCE_ROLL_1H"}, 30, what="rolling up")
        self.assertEqual(self.ask_everything(), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
