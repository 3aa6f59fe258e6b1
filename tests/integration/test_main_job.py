"""The main job: push profiles, ask every question, restart, ask again."""

import base64
import gzip
import json
import unittest

import wire
from pprof import Decoded, Profile
from questions import AVERAGE, CPU, FlameGraph, PPROF, SAMPLES, TREE, read_series
from server import PUSH, QUERIER, RpcError, Server, now_ms

SECOND = 1000
MEMORY = "memory:alloc_space:bytes:space:bytes"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
MEMORY_TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]

# Ten minutes ago: whole windows of time lie between it and now.
T = now_ms() // SECOND * SECOND - 600 * SECOND
START, END = T - 60 * SECOND, T + 60 * SECOND


def shop(ms):
    p = Profile(TYPES, time_ns=ms * 1_000_000, duration_ns=10_000_000_000)
    p.add(["main", "handle", "query"], [3, 30])
    p.add(["main", "handle"], [1, 10])
    p.add(["main", "gc"], [2, 20])
    p.add(["main", "fib", "fib", "fib"], [4, 40])
    p.add(["main", "fib"], [1, 10])
    return p


SHOP_TREE = (
    "total", 0, 110, [("main", 0, 110, [
        ("fib", 10, 50, [("fib", 0, 40, [("fib", 40, 40, [])])]),
        ("gc", 20, 20, []),
        ("handle", 10, 40, [("query", 30, 30, [])]),
    ])],
)


def memory(ms):
    p = Profile(MEMORY_TYPES, ("space", "bytes"), 524288, ms * 1_000_000)
    p.add(["main", "alloc"], [10, 1000, 1, 100])
    p.add(["main", "cache"], [20, 3000, 0, 0])
    return p


def located(ms):
    """Inlined lines, the same function at two lines, an unsymbolised address."""
    p = Profile(TYPES, time_ns=ms * 1_000_000)
    main = (("main", "main.c", 9),)
    inlined = (("inner", "inner.h", 3), ("outer", "outer.c", 40))
    p.samples.append(([inlined, main], [1, 100], {}))
    p.samples.append(([(("outer", "outer.c", 41),), main], [1, 200], {}))
    p.samples.append(([("0x100001000", "/usr/lib/libz.so"), main], [1, 300], {}))
    p.samples.append(([("0x100002000", "/usr/lib/libz.so"), main], [1, 400], {}))
    return p


def timed(ms, value):
    return Profile(TYPES, time_ns=int(ms * 1_000_000)).add(["main"], [1, value])


def wide(ms):
    """a(100: a1 60, a2 30, a3 10), b 50, c 5."""
    p = Profile(TYPES, time_ns=ms * 1_000_000)
    for stack, value in ((["a", "a1"], 60), (["a", "a2"], 30), (["a", "a3"], 10), (["b"], 50), (["c"], 5)):
        p.add(stack, [1, value])
    return p


def names_other(ms):
    p = Profile(TYPES, time_ns=ms * 1_000_000)
    return p.add(["zebra"], [1, 1]).add(["other", "below"], [1, 2]).add(["apple"], [1, 4])


class MainJob(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = s = Server()
        s.push(shop(T).encode(), cls.labels("shop", via="grpc", pod="a", version="1"))
        cls.push_connect_proto(shop(T).encode(), cls.labels("shop", via="connect-proto", pod="b"))
        cls.push_connect_json(shop(T).encode(), cls.labels("shop", via="connect-json", pod="c"))
        cls.push_connect_proto(shop(T).encode(False), cls.labels("shop", via="gzip-body", pod="d"), compress=True)
        s.push(memory(T).encode(), {"__name__": "memory", "service_name": "shop", "pod": "a"})
        s.push(located(T).encode(), cls.labels("located"))
        s.push(wide(T).encode(), cls.labels("wide"))
        s.push(names_other(T).encode(), cls.labels("other"))
        s.push(shop(T).encode(), cls.labels("utf8", **{"process.runtime.name": "cpython", "ünï": "çode"}))
        cls.push_edges()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @staticmethod
    def labels(service, **more):
        return {"__name__": "process_cpu", "service_name": service, **more}

    @classmethod
    def push_connect_proto(cls, profile, labels, compress=False):
        series = [(1, [(1, n), (2, v)]) for n, v in labels.items()] + [(2, [(1, profile), (2, "an-id-" + labels["via"])])]
        body = wire.encode([(1, series)])
        headers = {}
        if compress:
            body, headers = gzip.compress(body), {"Content-Encoding": "gzip"}
        answer, found = cls.server.connect_proto(PUSH, body, headers)
        assert answer == b"" and found["content-type"] == "application/proto", (answer, found)

    @classmethod
    def push_connect_json(cls, profile, labels):
        series = {
            "labels": [{"name": n, "value": v} for n, v in labels.items()],
            "samples": [{"rawProfile": base64.b64encode(profile).decode(), "ID": "an-id"}],
            "unknownToThisServer": {"x": [1, 2]},
        }
        assert cls.server.connect(PUSH, {"series": [series]}) == {}

    @classmethod
    def push_edges(cls):
        """Powers of two, so that a sum says which profiles are in it."""
        step = 10 * SECOND
        cls.edges = [
            (T - step - 1, 1), (T - step, 2), (T, 4), (T + 0.999999, 8), (T + 1, 16), (T + step, 32),
            (T + step + 1, 64), (T + 2 * step, 128), (T + 2 * step + 0.999999, 256), (T + 2 * step + 1, 512),
            (T + 2 * step + 5000, 1024),
        ]
        for ms, value in cls.edges:
            cls.server.push(timed(ms, value).encode(), cls.labels("edges"))
        for group, zone, values in (("g1", "east", (100, 300)), ("g2", "west", (500,)), ("g3", "east", (100,)), ("g4", None, (7,))):
            for k, value in enumerate(values):
                labels = cls.labels("groups", group=group)
                if zone:
                    labels["zone"] = zone
                cls.server.push(timed(T + k, value).encode(), labels)

    def flame(self, selector, profile_type=CPU, **options):
        return self.server.flamegraph(profile_type, selector, START, END, **options)

    def merged(self, selector, profile_type=CPU, **options):
        return Decoded(self.server.merge_pprof(profile_type, selector, START, END, **options))

    # ---- the same profile, whichever way it came ----

    def test_every_way_of_pushing_stores_an_equal_profile(self):
        for via in ("grpc", "connect-proto", "connect-json", "gzip-body"):
            with self.subTest(via):
                self.assertEqual(self.flame('{via="%s"}' % via).root.plain(), SHOP_TREE)

    def test_merging_series_sums_them(self):
        self.assertEqual(self.flame('{service_name="shop"}').total, 4 * 110)
        self.assertEqual(self.flame('{service_name="shop",pod=~"a|b"}').total, 2 * 110)

    # ---- types, labels, series ----

    def test_profile_types_are_split_into_their_parts_and_sorted(self):
        found = self.server.profile_types(START, END)
        expected = [
            ("memory:alloc_objects:count:space:bytes", "memory", "alloc_objects", "count", "space", "bytes"),
            ("memory:alloc_space:bytes:space:bytes", "memory", "alloc_space", "bytes", "space", "bytes"),
            ("memory:inuse_objects:count:space:bytes", "memory", "inuse_objects", "count", "space", "bytes"),
            ("memory:inuse_space:bytes:space:bytes", "memory", "inuse_space", "bytes", "space", "bytes"),
            (CPU, "process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"),
            (SAMPLES, "process_cpu", "samples", "count", "cpu", "nanoseconds"),
        ]
        self.assertEqual(found, expected)

    def test_profile_types_without_a_range_are_those_of_the_last_hour(self):
        self.assertEqual(len(self.server.profile_types(0, 0)), 6)

    def test_profile_types_of_1970_are_an_empty_answer(self):
        self.assertEqual(self.server.profile_types(1000, 4000), [])

    def test_label_names_include_the_derived_ones_sorted(self):
        derived = [
            "__name__", "__period_type__", "__period_unit__", "__profile_type__", "__service_name__", "__type__", "__unit__",
        ]
        self.assertEqual(
            self.server.label_names(START, END), derived + ["group", "pod", "service_name", "version", "via", "zone"]
        )
        self.assertEqual(self.server.label_names(START, END, ['{service_name="wide"}']), derived + ["service_name"])

    def test_names_beyond_ascii_are_sent_only_if_the_client_accepts_them(self):
        selector = ['{service_name="utf8"}']
        names = self.server.label_names(START, END, selector)
        self.assertFalse(any("." in name or not name.isascii() for name in names), names)
        accept = [("accept", "*/*;allow-utf8-labelnames=true")]
        names = self.server.label_names(START, END, selector, accept)
        self.assertIn("process.runtime.name", names)
        self.assertIn("ünï", names)
        self.assertEqual(self.server.label_values("ünï", START, END), ["çode"])
        self.assertEqual(self.flame('{"process.runtime.name"="cpython"}').total, 110)

    def test_label_values_are_sorted_and_obey_all_matchers_together(self):
        self.assertEqual(self.server.label_values("pod", START, END), ["a", "b", "c", "d"])
        self.assertEqual(self.server.label_values("pod", START, END, ['{pod!="a"}', '{via=~"connect.*"}']), ["b", "c"])
        self.assertEqual(self.server.label_values("pod", START, END, ['{pod="a"}', '{pod="b"}']), [])
        self.assertEqual(self.server.label_values("pod", T - 7200 * SECOND, T - 3700 * SECOND), [])
        self.assertEqual(self.server.label_values("no_such", START, END), [])

    def test_label_values_require_a_label_name(self):
        with self.assertRaises(RpcError) as caught:
            self.server.label_values("", START, END)
        self.assertEqual((caught.exception.code, caught.exception.message), ("invalid_argument", "name is required"))

    def test_series_are_projected_distinct_and_sorted(self):
        found = self.server.series(START, END, ['{service_name=~"shop|wide"}'], ["__profile_type__", "service_name"])
        expected = [
            (("__profile_type__", t), ("service_name", "shop"))
            for t in (
                "memory:alloc_objects:count:space:bytes", "memory:alloc_space:bytes:space:bytes",
                "memory:inuse_objects:count:space:bytes", "memory:inuse_space:bytes:space:bytes",
            )
        ]
        for t in (CPU, SAMPLES):
            expected += [(("__profile_type__", t), ("service_name", service)) for service in ("shop", "wide")]
        self.assertEqual(found, expected)

    def test_series_without_names_carry_all_labels(self):
        found = self.server.series(START, END, ['{pod="a",__name__="process_cpu"}'])
        self.assertEqual(len(found), 2)
        self.assertEqual(
            dict(found[0]),
            {
                "__name__": "process_cpu", "__period_type__": "cpu", "__period_unit__": "nanoseconds",
                "__profile_type__": CPU, "__service_name__": "shop", "__type__": "cpu", "__unit__": "nanoseconds",
                "pod": "a", "service_name": "shop", "version": "1", "via": "grpc",
            },
        )

    def test_series_with_none_of_the_names_are_one_empty_set_if_any_series_has_one(self):
        self.assertEqual(self.server.series(START, END, ['{service_name="wide"}'], ["pod"]), [()])
        self.assertEqual(self.server.series(START, END, ['{service_name="wide"}'], ["no_such"]), [])
        self.assertEqual(
            self.server.series(START, END, ['{service_name="groups"}'], ["zone"]), [(), (("zone", "east"),), (("zone", "west"),)]
        )

    # ---- flame graphs ----

    def test_a_flame_graph_has_deltas_sorted_siblings_and_the_root_total(self):
        flame = self.flame('{via="grpc"}')
        self.assertEqual(flame.names[0], "total")
        self.assertEqual(flame.levels[0][:3], [0, 110, 0])
        self.assertEqual(flame.root.plain(), SHOP_TREE)
        self.assertEqual((flame.total, flame.max_self), (110, 40))
        by_name = {name: k for k, name in enumerate(flame.names)}
        self.assertEqual(len(by_name), len(flame.names), "a name is there once")
        self.assertEqual(
            flame.levels[2],
            [0, 50, 10, by_name["fib"], 0, 20, 20, by_name["gc"], 0, 40, 10, by_name["handle"]],
        )
        # The first child starts behind its parent's self; query lies 20 + 10 behind the end of the second fib.
        self.assertEqual(flame.levels[3], [10, 40, 0, by_name["fib"], 30, 30, 30, by_name["query"]])

    def test_a_recursive_function_counts_once_in_its_total(self):
        expected = {"main": (0, 110), "handle": (10, 40), "query": (30, 30), "gc": (20, 20), "fib": (50, 50)}
        self.assertEqual(self.flame('{via="grpc"}').functions(), expected)
        self.assertEqual(self.merged('{via="grpc"}').by_function(0), expected)

    def test_each_sample_type_has_its_own_values(self):
        self.assertEqual(self.flame('{via="grpc"}', SAMPLES).total, 11)
        self.assertEqual(self.flame('{pod="a"}', MEMORY).functions(), {"main": (0, 4000), "alloc": (1000, 1000), "cache": (3000, 3000)})
        inuse = self.flame('{pod="a"}', "memory:inuse_space:bytes:space:bytes")
        self.assertEqual(inuse.functions(), {"main": (0, 100), "alloc": (100, 100)})

    def test_the_tree_format_holds_the_values_of_the_flame_graph(self):
        tree = self.server.tree(CPU, '{via="grpc"}', START, END)
        self.assertEqual((tree.name, tree.self_value), ("", 0))

        def sort(node):
            return (node.name, node.self_value, node.total, sorted(sort(c) for c in node.children))

        self.assertEqual([sort(c) for c in tree.children], SHOP_TREE[3])
        main = tree.children[0]
        self.assertEqual([c.name for c in main.children], ["handle", "gc", "fib"], "siblings come in descending order")

    def test_the_pprof_format_equals_select_merge_profile(self):
        answer = self.server.stacktraces(CPU, '{via="grpc"}', START, END, format=PPROF)
        self.assertNotIn(1, answer)
        profile = Decoded(wire.decode(answer[5][-1])[1][-1])
        merged = self.merged('{via="grpc"}')
        self.assertEqual(profile.by_stack(0), merged.by_stack(0))
        self.assertEqual(profile.totals(), [110])

    def test_an_unknown_format_is_answered_as_a_flame_graph(self):
        answer = self.server.stacktraces(CPU, '{via="grpc"}', START, END, format=77)
        self.assertEqual(FlameGraph(answer[1][-1]).root.plain(), SHOP_TREE)

    def test_a_call_site_keeps_whole_stacks_that_begin_with_it(self):
        flame = self.flame('{via="grpc"}', call_site=["main", "fib"])
        self.assertEqual(flame.root.plain(), ("total", 0, 50, [("main", 0, 50, [SHOP_TREE[3][0][3][0]])]))
        self.assertEqual(self.flame('{via="grpc"}', call_site=["fib"]).total, 0)

    def test_no_data_is_a_flame_graph_of_nothing(self):
        for selector in ('{service_name="nobody"}', '{service_name="shop",pod="z"}'):
            answer = self.server.stacktraces(CPU, selector, START, END)
            flame = FlameGraph(answer[1][-1])
            self.assertEqual((flame.names, flame.levels, flame.total, flame.max_self), (["total"], [[0, 0, 0, 0]], 0, 0))
            self.assertEqual(self.server.stacktraces(CPU, selector, START, END, format=TREE), {})
            pprof = self.server.stacktraces(CPU, selector, START, END, format=PPROF)
            self.assertIn(5, pprof, "the profile is there")
            self.assertEqual(wire.decode(pprof[5][-1]), {1: [b""]})
            self.assertEqual(self.server.merge_pprof(CPU, selector, START, END), b"")
            self.assertEqual(self.server.select_series(CPU, selector, START, END, 10), [])
        self.assertEqual(self.server.connect(QUERIER + "SelectMergeProfile", self.json(CPU, '{service_name="nobody"}')), {})

    # ---- truncation ----

    def test_a_small_max_nodes_sums_what_it_drops_into_other(self):
        expected = (
            "total", 0, 155,
            [("a", 0, 100, [("a1", 60, 60, []), ("other", 40, 40, [])]), ("b", 50, 50, []), ("other", 5, 5, [])],
        )
        self.assertEqual(self.flame('{service_name="wide"}', max_nodes=3).root.plain(), expected)
        self.assertEqual(self.flame('{service_name="wide"}', max_nodes=6).count(), 6)
        tree = self.server.tree(CPU, '{service_name="wide"}', START, END, max_nodes=3)
        self.assertEqual(sorted((c.name, c.total) for c in tree.children), [("a", 100), ("b", 50), ("other", 5)])

    def test_ties_are_kept_beyond_max_nodes(self):
        # The five largest totals are 100, 60, 50, 30, 10; the four largest end with 30.
        flame = self.flame('{service_name="wide"}', max_nodes=4)
        self.assertEqual([c.name for c in flame.root.children[0].children], ["a1", "a2", "other"])

    def test_a_truncated_profile_gets_leaf_stubs_named_other(self):
        merged = self.merged('{service_name="wide"}', max_nodes=3)
        self.assertEqual(merged.totals(), [155])
        by_names = {tuple(line[0] for line in stack): value for stack, value in merged.by_stack(0).items()}
        self.assertEqual(by_names, {("a1", "a"): 60, ("other", "a"): 40, ("b",): 50, ("other",): 5})

    def test_a_function_named_other_is_folded_and_stands_last(self):
        root = self.flame('{service_name="other"}').root
        self.assertEqual([c.plain() for c in root.children], [("apple", 4, 4, []), ("zebra", 1, 1, []), ("other", 2, 2, [])])

    # ---- pprof out ----

    def test_a_merged_profile_has_the_head_that_clients_expect(self):
        merged = self.merged('{via="grpc"}')
        self.assertEqual(merged.strings[0], "")
        self.assertEqual(merged.sample_types, [("cpu", "nanoseconds")])
        self.assertEqual((merged.default_type, merged.period_type), ("cpu", ("cpu", "nanoseconds")))
        self.assertEqual((merged.time_ns, merged.duration_ns, merged.period), (END * 1_000_000, 0, 1_000_000_000))
        self.assertFalse(any(labels for _, _, labels in merged.samples))
        self.assertEqual(self.merged('{pod="a"}', MEMORY).period, 524288)

    def test_stacks_keep_lines_files_and_addresses(self):
        pushed = Decoded(located(T).encode())
        merged = self.merged('{service_name="located"}')
        self.assertEqual(merged.by_stack(0), pushed.by_stack(1))
        self.assertEqual(len(merged.samples), 4)
        self.assertEqual(merged.by_function(0, by_line=True), pushed.by_function(1, by_line=True))
        flame = self.flame('{service_name="located"}')
        self.assertEqual(flame.functions()["outer"], (200, 300))

    def test_equal_stacks_of_several_series_are_one_sample(self):
        merged = self.merged('{service_name="shop",via!=""}')
        self.assertEqual(len(merged.samples), 5)
        self.assertEqual(merged.totals(), [440])

    # ---- time series ----

    def test_a_point_sums_the_step_before_it_and_the_first_also_its_left_edge(self):
        found = self.server.select_series(CPU, '{service_name="edges"}', T, T + 25 * SECOND, 10)
        self.assertEqual(
            found,
            [((), [(T, 2 + 4 + 8), (T + 10 * SECOND, 16 + 32), (T + 20 * SECOND, 64 + 128 + 256)])],
        )

    def test_a_series_ends_as_a_merge_does_with_the_first_nanosecond_of_its_end(self):
        selector = '{service_name="edges"}'
        for start, end, total in ((T, T, 4), (T, T + 20 * SECOND, 4 + 8 + 16 + 32 + 64 + 128)):
            found = self.server.select_series(CPU, selector, start, end, 10)
            before_start = 2  # at start - step, which belongs to the first point
            self.assertEqual(sum(v for _, points in found for _, v in points), before_start + total)
            self.assertEqual(self.server.flamegraph(CPU, selector, start, end).total, total)
        self.assertEqual(
            self.server.select_series(CPU, selector, T, T + 20 * SECOND, 10)[0][1][-1], (T + 20 * SECOND, 64 + 128)
        )
        for step in (10, 1200):
            asked = {"profileType": CPU, "labelSelector": selector, "start": str(T), "end": str(T)}
            (series,) = self.server.connect(
                "hearth.v1.QueryService/FunctionTimeline", {"selection": asked, "functions": ["main"], "step": step}
            )["series"]
            before = 2 if step == 10 else 3  # up to start - step
            self.assertEqual([point["total"] for point in series["points"]], [str(before + 4)])

    def test_empty_steps_emit_no_point(self):
        found = self.server.select_series(CPU, '{service_name="edges"}', T - 30 * SECOND, T + 30 * SECOND, 1)
        times = [t for t, _ in found[0][1]]
        self.assertEqual(
            times,
            [T - 10 * SECOND, T, T + SECOND, T + 10 * SECOND, T + 11 * SECOND, T + 20 * SECOND, T + 21 * SECOND, T + 25 * SECOND],
        )
        self.assertEqual(sum(v for _, v in found[0][1]), 2047)

    def test_groups_are_ordered_by_sum_then_labels(self):
        ask = (CPU, '{service_name="groups"}', T, T + 10 * SECOND, 10)
        by_group = self.server.select_series(*ask, group_by=["group"])
        self.assertEqual(
            [(labels, sum(v for _, v in points)) for labels, points in by_group],
            [((("group", "g2"),), 500), ((("group", "g1"),), 400), ((("group", "g3"),), 100), ((("group", "g4"),), 7)],
        )
        by_zone = self.server.select_series(*ask, group_by=["zone"])
        self.assertEqual(
            [(labels, sum(v for _, v in points)) for labels, points in by_zone],
            [((("zone", "east"),), 500), ((("zone", "west"),), 500), ((), 7)],
        )
        self.assertEqual(self.server.select_series(*ask, group_by=["zone"], limit=1), by_zone[:1])
        self.assertEqual(self.server.select_series(*ask, group_by=["group"], limit=2), by_group[:2])
        self.assertEqual(self.server.select_series(*ask, group_by=["no_such"])[0][0], ())

    def test_average_is_the_mean_of_the_profiles_in_a_step(self):
        ask = (CPU, '{service_name="groups"}', T, T + 10 * SECOND, 10)
        found = self.server.select_series(*ask, group_by=["group"], aggregation=AVERAGE)
        self.assertEqual(
            found,
            [
                ((("group", "g2"),), [(T, 500.0)]), ((("group", "g1"),), [(T, 100.0), (T + 10 * SECOND, 300.0)]),
                ((("group", "g3"),), [(T, 100.0)]), ((("group", "g4"),), [(T, 7.0)]),
            ],
        )
        found = self.server.select_series(
            CPU, '{service_name="groups",group="g1"}', T + 10 * SECOND, T + 10 * SECOND, 10, aggregation=AVERAGE
        )
        self.assertEqual(found, [((), [(T + 10 * SECOND, 200.0)])])

    def test_a_series_of_one_call_site_counts_its_stacks_alone(self):
        found = self.server.select_series(CPU, '{via="grpc"}', T, T + SECOND, 1, call_site=["main", "fib"])
        self.assertEqual(found, [((), [(T, 50.0)])])

    # ---- what is refused ----

    def refused(self, part, method, fields):
        with self.assertRaises(RpcError, msg=(method, fields)) as caught:
            self.server.call(QUERIER + method, fields)
        self.assertEqual(caught.exception.code, "invalid_argument", (method, fields, caught.exception.message))
        self.assertIn(part, caught.exception.message)

    @staticmethod
    def ranged(start, end, step=1.0):
        merge = [(1, CPU), (2, "{}"), (3, start), (4, end)]
        return [
            ("LabelNames", [(2, start), (3, end)]), ("LabelValues", [(1, "pod"), (3, start), (4, end)]),
            ("Series", [(3, start), (4, end)]), ("SelectMergeStacktraces", merge), ("SelectMergeProfile", merge),
            ("SelectSeries", merge + [(6, step)]),
        ]

    def test_a_missing_or_reversed_range_is_refused_everywhere(self):
        for start, end, part in (
            (0, END, "missing time range in the query"), (START, 0, "missing time range in the query"),
            (END, START, "query start time is after end time"),
        ):
            for method, fields in self.ranged(start, end) + [("ProfileTypes", [(1, start), (2, end)])]:
                self.refused(part, method, fields)
        for method, fields in self.ranged(T, T):
            self.server.call(QUERIER + method, fields)  # equal ends are a range

    def test_an_empty_or_broken_selector_is_refused(self):
        for selector in ("", "{", '{a="b"', '{a=~"("}', "{a=b}"):
            merge = [(1, CPU), (2, selector), (3, START), (4, END)]
            for method, fields in (
                ("SelectMergeStacktraces", merge), ("SelectMergeProfile", merge), ("SelectSeries", merge + [(6, 1.0)]),
                ("LabelNames", [(1, selector), (2, START), (3, END)]), ("Series", [(1, selector), (3, START), (4, END)]),
                ("LabelValues", [(1, "pod"), (2, selector), (3, START), (4, END)]),
            ):
                self.refused("", method, fields)

    def test_a_profile_type_has_five_parts_or_six(self):
        for bad in ("", "cpu", "a:b:c:d", "a:b:c:d:e:f:g"):
            merge = [(1, bad), (2, "{}"), (3, START), (4, END)]
            for method, fields in (
                ("SelectMergeStacktraces", merge), ("SelectMergeProfile", merge), ("SelectSeries", merge + [(6, 1.0)]),
            ):
                self.refused("of the form <name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>", method, fields)
        self.assertEqual(self.flame('{via="grpc"}', CPU + ":delta").total, 110)

    def test_a_step_is_at_least_a_millisecond(self):
        for step in (0.0, -1.0, 0.0009, float("nan")):
            self.refused("step must be >= 1ms", "SelectSeries", [(1, CPU), (2, "{}"), (3, START), (4, END), (6, step)])

    def test_ranges_and_steps_at_the_ends_of_64_bits_are_answered(self):
        first, last = -(1 << 63), (1 << 63) - 1
        everything = [("wide", 155), ("located", 1000)]
        for start, end in ((1, last), (first, last), (first, END), (START, 1 << 62)):
            for service, total in everything:
                selector = '{service_name="%s"}' % service
                self.assertEqual(self.server.flamegraph(CPU, selector, start, end).total, total)
                self.assertEqual(Decoded(self.server.merge_pprof(CPU, selector, start, end)).totals(), [total])
                for step in (86400.0 * 365, 9e9, 9.3e9, 9e11):
                    found = self.server.select_series(CPU, selector, start, end, step)
                    self.assertLessEqual(sum(v for _, points in found for _, v in points), total)
            self.assertIn("pod", self.server.label_names(start, end))
        found = self.server.select_series(CPU, '{service_name="wide"}', first, last, 3600.0 * 24 * 365)
        self.assertEqual(sum(v for _, points in found for _, v in points), 155)
        for step in (1e12, float("inf"), float("-inf")):
            self.refused("step", "SelectSeries", [(1, CPU), (2, "{}"), (3, START), (4, END), (6, step)])

    def test_max_nodes_has_bounds(self):
        merge = [(1, CPU), (2, "{}"), (3, START), (4, END)]
        for n in (-1, 1048577):
            self.refused("max flamegraph nodes limit", "SelectMergeStacktraces", merge + [(5, n)])
        self.assertEqual(self.flame('{via="grpc"}', max_nodes=0).root.plain(), SHOP_TREE)
        self.assertEqual(self.flame('{via="grpc"}', max_nodes=1048576).root.plain(), SHOP_TREE)

    # ---- JSON ----

    @staticmethod
    def json(profile_type, selector, **more):
        return {"profileTypeID": profile_type, "labelSelector": selector, "start": START, "end": str(END), **more}

    def test_json_is_canonical_proto3(self):
        answer = self.server.connect(QUERIER + "SelectMergeStacktraces", self.json(CPU, '{via="grpc"}', maxNodes="0"))
        self.assertEqual(list(answer), ["flamegraph"])
        flame = answer["flamegraph"]
        self.assertEqual((flame["total"], flame["maxSelf"], flame["names"][0]), ("110", "40", "total"))
        self.assertEqual(flame["levels"][0]["values"], ["0", "110", "0", "0"])
        answer = self.server.connect(
            QUERIER + "SelectSeries",
            {
                "profile_typeID": CPU, "label_selector": '{service_name="groups"}', "start": T, "end": T, "step": 1,
                "group_by": ["group"], "aggregation": "TIME_SERIES_AGGREGATION_TYPE_AVERAGE", "limit": "1", "future": None,
            },
        )
        self.assertEqual(
            answer, {"series": [{"labels": [{"name": "group", "value": "g2"}], "points": [{"value": 500, "timestamp": str(T)}]}]}
        )
        tree = self.server.connect(QUERIER + "SelectMergeStacktraces", self.json(CPU, '{via="grpc"}', format="PROFILE_FORMAT_TREE"))
        self.assertTrue(base64.b64decode(tree["tree"]))
        types = self.server.connect(QUERIER + "ProfileTypes", {})
        self.assertEqual(types["profileTypes"][-1]["ID"], SAMPLES)
        self.assertEqual(types["profileTypes"][-1]["sampleType"], "samples")

    def test_json_of_a_wrong_type_is_refused(self):
        for message in ({"start": "abc"}, {"start": 1.5, "end": 2}, {"start": []}, [], "x"):
            with self.assertRaises(RpcError, msg=message) as caught:
                self.server.connect(QUERIER + "LabelNames", message)
            self.assertEqual((caught.exception.code, caught.exception.http_status), ("invalid_argument", 400))

    def test_errors_are_json_even_for_protobuf_requests(self):
        status, headers, body = self.server.http(
            "POST", "/" + QUERIER + "LabelNames", b"", {"Content-Type": "application/proto"}
        )
        self.assertEqual((status, headers["content-type"]), (400, "application/json"))
        self.assertEqual(json.loads(body), {"code": "invalid_argument", "message": "missing time range in the query"})

    # ---- restart ----

    def answers(self):
        """Every question whose answer has a defined order, as bytes; merged profiles by content."""
        out = {}
        for method, fields in self.ranged(START, END, 10.0) + [("ProfileTypes", [(1, START), (2, END)])]:
            if method not in ("SelectMergeProfile",):
                out[method] = self.server.grpc_bytes(QUERIER + method, wire.encode(fields))[0]
        for service in ("shop", "located", "wide", "other", "edges"):
            merge = [(1, CPU), (2, '{service_name="%s"}' % service), (3, START), (4, END)]
            for number in (0, TREE):
                fields = merge + [(6, number)]
                out[service, number] = self.server.grpc_bytes(QUERIER + "SelectMergeStacktraces", wire.encode(fields))[0]
            out[service, "pprof"] = Decoded(self.server.merge_pprof(CPU, merge[1][1], START, END)).by_stack(0)
        fields = self.ranged(START, END, 1.0)[-1][1] + [(5, "service_name"), (5, "pod")]
        out["groups"] = self.server.grpc_bytes(QUERIER + "SelectSeries", wire.encode(fields))[0]
        self.assertTrue(read_series(wire.decode(out["groups"])))
        out["json"] = self.server.connect(QUERIER + "SelectMergeStacktraces", self.json(CPU, '{service_name="shop"}'))
        return out

    def test_answers_after_a_restart_are_equal_byte_for_byte(self):
        before = self.answers()
        self.assertEqual(self.server.terminate(), 0)
        self.server.start()
        after = self.answers()
        self.assertEqual(sorted(map(str, before)), sorted(map(str, after)))
        for question in before:
            self.assertEqual(before[question], after[question], question)


class CutPprof(unittest.TestCase):
    def test_a_merged_profile_is_cut_like_a_flame_graph_if_the_option_says_so(self):
        server = Server("--flamegraph-nodes-on-pprof", "--default-flamegraph-nodes", "3")
        self.addCleanup(server.stop)
        server.push(wide(T).encode(), {"__name__": "process_cpu", "service_name": "wide"})
        merged = Decoded(server.merge_pprof(CPU, '{service_name="wide"}', START, END))
        by_names = {tuple(line[0] for line in stack): value for stack, value in merged.by_stack(0).items()}
        self.assertEqual(by_names, {("a1", "a"): 60, ("other", "a"): 40, ("b",): 50, ("other",): 5})
        whole = Decoded(server.merge_pprof(CPU, '{service_name="wide"}', START, END, max_nodes=100))
        self.assertEqual(whole.totals(), [155])
        self.assertNotIn(("other",), {tuple(line[0] for line in stack) for stack in whole.by_stack(0)})


if __name__ == "__main__":
    unittest.main()
