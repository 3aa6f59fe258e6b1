"""Stacks that Go's runtime cut and generic names: as they are stored, and repaired; where which is the default."""

import collections
import gzip
import json
import random
import unittest
import urllib.parse

import oracle
from pprof import Decoded, Profile
from questions import CPU, DOT
from server import SHARED, RpcError, Server, note, now_ms
from test_cli import OK, USAGE, hearth
from test_shared_data import at_time

QUERY = "hearth.v1.QueryService/"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
SECOND = 1000
T = now_ms() // SECOND * SECOND - 60 * SECOND
START, END = T - 60 * SECOND, T + 60 * SECOND
SEED = random.randrange(1 << 32)
SHAPES = ["go.shape.int", "go.shape.string", "go.shape.struct { X []uint8 }"]


def line(name):
    return (name, "/src/%s" % ("asm_amd64.s" if name == "runtime.goexit" else "app.go"), 7)


def locations_of(rng, names):
    """Leaf-first locations of root-first names; now and then a frame is inlined into the one that calls it."""
    out = []
    for name in reversed(names):
        if out and rng.random() < 0.2 and len(out[-1]) == 1:
            out[-1] = out[-1] + (line(name),)
        else:
            out.append((line(name),))
    return out


def random_profile(rng, n_stacks):
    """Walks through a program of many levels, with recursion; what is deeper than 64 frames lacks its root."""
    p = Profile(TYPES, time_ns=T * 1_000_000)
    for _ in range(n_stacks):
        names = ["runtime.goexit", rng.choice(["main.main", "app.worker"])]
        trunk = rng.choice("ab")
        for level in range(rng.randint(1, 95)):
            branch = trunk if level < 30 else rng.choice("aaab")
            name = "app.f%d%s" % (level, branch)
            names.append(name + "[%s].run" % rng.choice(SHAPES) if level % 7 == 0 else name)
        if rng.random() < 0.2:
            names += ["app.walk"] * rng.randint(1, 70)
        p.samples.append((locations_of(rng, names[-64:]), [1, rng.randint(1, 9)], {}))
    return p


def stacks_of(data, k, limit):
    """[(root-first names, value, cut)] of a profile; the runtime's limit of heap profiles follows from what is there."""
    kept = [(locations, values[k]) for locations, values, _ in Decoded(data).kept() if values[k]]
    if limit == 32 and any(len(locations) > 32 for locations, _ in kept):
        limit = 128
    out = collections.Counter()
    for locations, value in kept:
        out[oracle.names_of(locations), bool(limit and locations) and oracle.is_cut(locations, limit)] += value
    return [(names, value, cut) for (names, cut), value in out.items()]


class GoStacks(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-samples", "10000000")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def push(self, service, data, name="process_cpu"):
        self.server.push(data, {"__name__": name, "service_name": service})
        return '{service_name="%s"}' % service

    def merge(self, selector, profile_type=CPU, **more):
        """The flame graph of hearth.v1, as FlameGraph of querier.v1 has it: [levels of (name, total)]."""
        selection = {"profileType": profile_type, "labelSelector": selector, "start": START, "end": END}
        graph = self.server.connect(QUERY + "Merge", {"selection": selection, "maxNodes": 1048576, **more})["flamegraph"]
        return [[(graph["names"][int(v[k + 3])], int(v[k + 1])) for k in range(0, len(v), 4)]
                for v in (level["values"] for level in graph["levels"])]

    def flame(self, selector, profile_type=CPU, **more):
        graph = self.server.flamegraph(profile_type, selector, START, END, max_nodes=1048576, **more)
        return [[(graph.names[v[k + 3]], v[k + 1]) for k in range(0, len(v), 4)] for v in graph.levels]

    @staticmethod
    def levels(stacks):
        """What a flame graph of {names: value} is."""
        tree = oracle.truncated(oracle.tree_of(collections.Counter(stacks)), 1048576)
        return [[(box[3], box[1]) for box in level] for level in oracle.levels_of(tree)]

    # ---- what is repaired ----

    def test_random_programs_are_repaired_as_the_oracle_does_it(self):
        joined_of_all = 0
        for i in range(6):
            rng = random.Random(SEED + i)
            with self.subTest(seed=SEED + i):
                data = random_profile(rng, [5, 40, 150][i % 3]).encode()
                selector = self.push("random%d" % i, data)
                stacks = stacks_of(data, 1, 64)
                stored = collections.Counter()
                for names, value, _ in stacks:
                    stored[names] += value
                repaired, joined = oracle.repaired(stacks)
                joined_of_all += joined
                self.assertEqual(self.flame(selector), self.levels(repaired))
                self.assertEqual(self.merge(selector, goStacks="GO_STACKS_REPAIRED"), self.levels(repaired))
                self.assertEqual(self.merge(selector), self.levels(stored))

                # Filters are asked of what is shown.
                for site in sorted({names[:2] for names in repaired})[:8]:
                    inside = {names: value for names, value in repaired.items() if names[:2] == site}
                    self.assertEqual(self.flame(selector, call_site=site), self.levels(inside))
        self.assertGreater(joined_of_all, 0, "no stack was joined (seed %d)" % SEED)

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_recorded_programs_are_repaired_as_the_oracle_does_it(self):
        joined_of_all, generic = 0, False
        for path in sorted(SHARED.glob("pprof/go-*")):
            data = path.read_bytes()
            if len(data) > 400_000:
                continue  # the oracle would take its time
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            decoded = Decoded(data)
            for k, (kind, unit) in enumerate(decoded.sample_types):
                limit = 64 if kind == "cpu" else 32 if kind.startswith(("alloc_", "inuse_")) else 0
                if not limit:
                    continue
                with self.subTest(path.name, kind=kind):
                    selector = self.push(path.name, gzip.compress(at_time(data, T * 1_000_000), 1), "recorded")
                    profile_type = "recorded:%s:%s:%s:%s" % (kind, unit, *decoded.period_type)
                    stacks = stacks_of(data, k, limit)
                    generic = generic or any("[go.shape." in name for names, _, _ in stacks for name in names)
                    repaired, joined = oracle.repaired(stacks)
                    joined_of_all += joined
                    self.assertTrue(self.flame(selector, profile_type) == self.levels(repaired), "the flame graphs differ")
                break
        self.assertGreater(joined_of_all, 100)
        self.assertTrue(generic)

    # ---- where ----

    @classmethod
    def small(cls):
        """Two stacks that overlap in 17 frames; the deeper one has lost main.main and runtime.goexit."""
        if not hasattr(cls, "_small"):
            deep = ["app.f%d" % i for i in range(62)]
            p = Profile(TYPES, time_ns=T * 1_000_000)
            for stack, value in ((["runtime.goexit", "main.main"] + deep[:20], 1),
                                 (deep + ["app.G[go.shape.int]", "app.leaf"], 2)):
                p.samples.append(([(line(name),) for name in reversed(stack)], [1, value], {}))
            cls._small = '{service_name="small"}'
            cls.server.push(p.encode(), {"__name__": "process_cpu", "service_name": "small"})
        return cls._small

    def roots(self, levels):
        return [name for name, _ in levels[1]]

    def get(self, path, **arguments):
        status, headers, body = self.server.http("GET", "/pyroscope/%s?%s" % (path, urllib.parse.urlencode(arguments)))
        self.assertEqual(status, 200, body)
        return headers, body.decode()

    def test_flame_graphs_of_pyroscopes_api_are_repaired_with_a_note(self):
        selector = self.small()
        self.assertEqual(self.roots(self.flame(selector)), ["runtime.goexit"])
        self.assertEqual(self.flame(selector)[65], [("app.G[...]", 2)])
        tree = self.server.tree(CPU, selector, START, END)
        self.assertEqual([child.name for child in tree.children], ["runtime.goexit"])
        side = (CPU, selector, START, END)
        self.assertEqual([box[6] for box in self.server.diff(side, side)[0][1]], ["runtime.goexit"])
        dot = self.server.stacktraces(CPU, selector, START, END, format=DOT)[3][-1].decode()
        self.assertNotIn("go.shape", dot)
        headers, _ = self.get("render", query=CPU + selector, **{"from": str(START), "until": str(END)})
        self.assertIn("1 stack traces", headers["hearth-note"])
        self.assertIn("repair-go-stacks", headers["hearth-note"])

    def test_filters_find_generic_functions_by_either_name(self):
        p = Profile(TYPES, time_ns=T * 1_000_000)
        for stack, value in ((["main.main", "app.G[go.shape.int]", "app.x"], 1), (["main.main", "app.G[go.shape.string]"], 2),
                             (["main.main", "app.x"], 4)):
            p.samples.append(([(line(name),) for name in reversed(stack)], [1, value], {}))
        selector = self.push("either", p.encode())

        def total(**stacks):
            selection = {"profileType": CPU, "labelSelector": selector, "start": START, "end": END, "stacks": stacks}
            return int(self.server.connect(QUERY + "Top", {"selection": selection}).get("total", 0))

        self.assertEqual(total(functions=["app.G[...]"]), 3)
        self.assertEqual(total(functions=["app.G[go.shape.int]"]), 1)
        self.assertEqual(total(functions=["app.G[...]", "app.x"], allFunctions=True), 1)
        self.assertEqual(total(without=["app.G[...]"]), 4)
        self.assertEqual(total(callSite=["main.main", "app.G[...]"]), 3)
        self.assertEqual(total(callSite=["main.main", "app.G[go.shape.string]"]), 2)
        self.assertEqual(total(regex=r"^app\.G\[\.\.\.\]$"), 3)
        self.assertEqual(total(withoutRegex="shape"), 4)

    def test_render_accepts_both_values_of_go_stacks(self):
        ask = {"query": CPU + self.small(), "from": str(START), "until": str(END)}
        for value, roots in (("", 1), ("repaired", 1), ("stored", 2)):
            bearer = json.loads(self.get("render", **ask, **({"go-stacks": value} if value else {}))[1])["flamebearer"]
            self.assertEqual(len(bearer["levels"][1]) // 4, roots, value)
        sides = {"%s%s" % (side, name): ask[key] for side in ("left", "right")
                 for name, key in (("Query", "query"), ("From", "from"), ("Until", "until"))}
        bearer = json.loads(self.get("render-diff", **sides, **{"go-stacks": "stored"})[1])["flamebearer"]
        self.assertEqual(len(bearer["levels"][1]) // 7, 2)
        status, _, body = self.server.http("GET", "/pyroscope/render?" + urllib.parse.urlencode({**ask, "go-stacks": "x"}))
        self.assertEqual(status, 400)
        self.assertIn(b"go-stacks is stored or repaired", body)

    def test_exports_are_as_stored(self):
        selector = self.small()
        for data in (
            self.server.merge_pprof(CPU, selector, START, END),
            self.server.merge_pprof(CPU, selector, START, END, max_nodes=1000),
        ):
            stacks = sorted(len(stack) for stack in Decoded(data).by_stack(0))
            self.assertEqual(stacks, [22, 64])
            self.assertTrue(any(frame[0] == "app.G[go.shape.int]" for stack in Decoded(data).by_stack(0) for frame in stack))
        selection = {"profileType": CPU, "labelSelector": selector, "start": START, "end": END}
        with self.assertRaises(RpcError) as refused:
            self.server.connect(QUERY + "Merge", {
                "selection": selection, "format": "PROFILE_FORMAT_PPROF", "goStacks": "GO_STACKS_REPAIRED"})
        self.assertEqual(refused.exception.code, "invalid_argument")

    def test_answers_of_hearths_own_api_are_as_stored_unless_repair_is_requested(self):
        selection = {"profileType": CPU, "labelSelector": self.small(), "start": START, "end": END}
        for value, roots in ((None, 2), ("GO_STACKS_STORED", 2), ("GO_STACKS_REPAIRED", 1)):
            more = {"goStacks": value} if value else {}
            self.assertEqual(len(self.merge(self.small(), **more)[1]), roots)
            graph = self.server.connect(QUERY + "Diff", {"left": selection, "right": selection, **more})["flamegraph"]
            self.assertEqual(len(graph["levels"][1]["values"]) // 7, roots)
            callers = self.server.connect(
                QUERY + "Sandwich", {"selection": selection, "function": "app.leaf", **more})["callers"]
            self.assertEqual("main.main" in [node["name"] for node in callers], roots == 1)
        for bad in (7, -1):
            with self.assertRaises(RpcError) as refused:
                self.merge(self.small(), goStacks=bad)
            self.assertEqual(refused.exception.code, "invalid_argument")

    def test_the_client_accepts_both_values_of_go_stacks(self):
        env = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}
        for command in (["flame"], ["diff"], ["sandwich", "app.leaf"]):
            for value, repaired in (("stored", False), ("repaired", True), (None, False)):
                options = ["--go-stacks", value] if value else []
                done = hearth(*command, self.small(), "--type", CPU, "--min-percent", "0", *options, env=env)
                self.assertEqual(done.code, OK, done.err)
                self.assertEqual("app.G[...]" in done.out, repaired, (command, value))
                self.assertEqual("go.shape" in done.out, not repaired, (command, value))
        for command in ("top %s --go-stacks repaired", "query profile %s -o collapsed --go-stacks repaired",
                        "flame %s --go-stacks mended"):
            done = hearth(*[word.replace("%s", self.small()) for word in command.split()], "--type", CPU, env=env)
            self.assertEqual(done.code, USAGE, command)
            self.assertIn("--go-stacks", done.err)

    def test_an_option_leaves_flame_graphs_as_stored(self):
        server = Server("--repair-go-stacks=false")
        try:
            deep = ["app.G[go.shape.int]"] + ["app.f%d" % i for i in range(3)]
            p = Profile(TYPES, time_ns=T * 1_000_000)
            p.samples.append(([(line(name),) for name in reversed(deep)], [1, 2], {}))
            server.push(p.encode(), {"__name__": "process_cpu", "service_name": "small"})
            graph = server.flamegraph(CPU, '{service_name="small"}', START, END)
            self.assertIn("app.G[go.shape.int]", graph.names)
        finally:
            server.stop()


if __name__ == "__main__":
    note("seed %d" % SEED)
    unittest.main()
