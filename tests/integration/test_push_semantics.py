"""What a push keeps, changes, counts and refuses."""

import gzip
import os
import shutil
import subprocess
import time
import unittest

import prometheus
import wire
from pprof import Decoded, Profile
from questions import CPU, QUERIER
from server import PROFILES, PUSH, Cluster, RpcError, Server, eventually, now_ms

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
T = now_ms() - 300_000
START, END = T - 3_600_000, T + 3_600_000
DAY = 86_400_000
DERIVED = [
    "__name__", "__period_type__", "__period_unit__", "__profile_type__", "__service_name__", "__type__", "__unit__",
]

# Every spelling of intake.md 2.5 and pyroscope.md 3.5, with a value of each kind that clients send.
BESIDE_THE_SAMPLE = [
    ("span id", "1234567890123456789"), ("span id", 2**63 - 5), ("span_id", "00f067aa0ba902b7"), ("spanId", "00f067aa0ba902b7"),
    ("span-id", "7"), ("profile_id", "00f067aa0ba902b7"), ("local root span id", "42"), ("local root span id", -3),
    ("local_root_span_id", "00f067aa0ba902b7"), ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
    ("trace id", "4bf92f3577b34da6a3ce929d0e0e4736"), ("traceId", "4bf92f3577b34da6"), ("trace endpoint", "GET /cart"),
    ("trace_endpoint", "GET /cart"), ("thread id", 77), ("thread id", "77"), ("thread_id", "77"), ("threadid", "77"),
    ("thread native id", 78), ("os thread id", "78"), ("thread name", "worker"), ("thread_name", "worker"),
    ("end_timestamp_ns", 1_700_000_000_000_000_000), ("span_name", "checkout"),
]


def profile(**options):
    return Profile(TYPES, time_ns=T * 1_000_000, **options)


def simple():
    return profile().add(["main", "work"], [1, 10])


class PushTest(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    def push(self, profile, labels=None, id="", name="process_cpu", service=True):
        """The hearth-dropped counts of one push."""
        head = {"__name__": name} if name is not None else {}
        if service:
            head["service_name"] = self.service
        data = profile if isinstance(profile, bytes) else profile.encode()
        found = self.server.push(data, {**head, **(labels or {})}, id)
        text = found.get("hearth-dropped", "")
        return {k: int(v) for k, v in (part.split("=") for part in text.split(", "))} if text else {}

    def refused(self, part, *arguments, code="invalid_argument", **options):
        with self.assertRaises(RpcError) as caught:
            self.push(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        self.assertIn(part, caught.exception.message)

    def selector(self, more=""):
        return '{service_name="%s"%s}' % (self.service, more)

    def total(self, profile_type=CPU, more="", start=START, end=END):
        return self.server.flamegraph(profile_type, self.selector(more), start, end).total

    def own_label_names(self):
        accept = [("accept", "*/*;allow-utf8-labelnames=true")]
        names = self.server.label_names(START, END, [self.selector()], accept)
        return [name for name in names if name not in DERIVED + ["service_name"]]

    def rows(self, columns="count(*)", where="true"):
        return self.server.sql(
            "SELECT %s FROM %s JOIN hearth_data.service USING (service_id) WHERE name = '%s' AND %s"
            % (columns, PROFILES, self.service, where)
        )

    def n_rows(self, where="true"):
        return int(self.rows(where=where)[0][0])


class PushSemantics(PushTest):
    # ---- sample labels ----

    def test_text_labels_of_samples_split_series_and_series_labels_win(self):
        p = profile().add(["main", "a"], [1, 1], {"route": "/a", "pod": "sample"}).add(["main", "b"], [1, 2], {"route": "/b"})
        p.add(["main", "c"], [1, 4])
        dropped = self.push(p, {"pod": "series"})
        self.assertEqual(self.server.label_values("route", START, END, [self.selector()]), ["/a", "/b"])
        self.assertEqual(self.server.label_values("pod", START, END, [self.selector()]), ["series"])
        for route, value in (("/a", 1), ("/b", 2), ("", 4)):
            self.assertEqual(self.total(more=',route="%s"' % route), value)
        self.assertEqual(self.n_rows(), 3)
        self.assertEqual(dropped, {"reserved_labels": 1})
        self.assertEqual(len(set(r[0] for r in self.rows("writer_id || '/' || profile_no"))), 1, "one profile")

    def test_label_statistics_and_heatmap_count_a_split_profile_once(self):
        p = profile().add(["main", "a"], [1, 10], {"route": "/a"}).add(["main", "b"], [1, 20], {"route": "/b"})
        self.push(p, {"pod": "p0"})
        self.push(profile().add(["main"], [1, 5]), {"pod": "p0"})  # another one of the same moment
        asked = {"profileType": CPU, "labelSelector": self.selector(), "start": str(START), "end": str(END)}

        def statistics(label, **range):
            answer = self.server.connect("hearth.v1.QueryService/LabelStats", {"selection": {**asked, **range}, "label": label})
            return [
                tuple(v.get(k, "") for k in ("value", "count", "sum", "mean", "min", "max", "series")) for v in answer["values"]
            ]

        of_pod = [("p0", "2", "35", 17.5, "5", "30", "3")]
        self.assertEqual(statistics("pod"), of_pod)
        self.assertEqual(statistics("pod", start=str(-(1 << 63)), end=str((1 << 63) - 1)), of_pod)
        self.assertEqual(statistics("pod", start=str(T - 40 * DAY), end=str(T)), of_pod)
        self.assertEqual(
            statistics("route"),
            [("/b", "1", "20", 20, "20", "20", "1"), ("/a", "1", "10", 10, "10", "10", "1"), ("", "1", "5", 5, "5", "5", "1")],
        )
        heat = {
            "profileTypeID": CPU, "labelSelector": self.selector(), "start": str(START), "end": str(END), "step": 60,
            "queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL",
        }
        (series,) = self.server.connect(QUERIER + "SelectHeatmap", heat)["series"]
        self.assertEqual(sum(sum(slot["counts"]) for slot in series["slots"]), 2)

    def test_types_that_are_0_make_no_series_until_they_have_a_value(self):
        types = [("alloc_space", "bytes"), ("inuse_space", "bytes")]
        alloc, inuse = ("memory:%s:%s:space:bytes" % pair for pair in types)

        def push(minute, *samples):
            p = Profile(types, ("space", "bytes"), time_ns=(T + minute * 60_000) * 1_000_000)
            for stack, values, labels in samples:
                p.add(stack, values, labels)
            return self.push(p, {"pod": "p0"}, name="memory")

        def listed(more=""):
            return self.server.label_values("__profile_type__", START, END, [self.selector(more)])

        quiet = (["main", "a"], [0, 100], {}), (["main", "b"], [0, 50], {})
        self.assertEqual(push(0, *quiet), {"zero_types": 1})
        self.assertEqual(listed(), [inuse])
        self.assertEqual(self.server.label_values("__type__", START, END, [self.selector()]), ["inuse_space"])
        ids = [id for id, *_ in self.server.profile_types(START, END)]
        self.assertIn(inuse, ids)
        found = self.server.series(START, END, [self.selector()], ["__profile_type__"])
        self.assertEqual([dict(labels) for labels in found], [{"__profile_type__": inuse}])
        series = lambda id, **more: self.server.select_series(id, self.selector(), T, T + 180_000, 60, **more)
        self.assertEqual(series(alloc), [])
        self.assertEqual(self.total(alloc), 0)

        # The next one has both types. It is of the same process: the mean of what is in use is over both.
        self.assertEqual(push(1, (["main", "a"], [10, 300], {})), {})
        self.assertEqual(push(2, (["main", "a"], [7, 0], {})), {"zero_types": 1})
        self.assertEqual(listed(), [alloc, inuse])
        self.assertEqual(series(alloc), [((), [(T + 60_000, 10), (T + 120_000, 7)])])
        self.assertEqual(series(inuse), [((), [(T, 150), (T + 60_000, 300)])])
        asked = {"profileType": inuse, "labelSelector": self.selector(), "start": str(START), "end": str(END)}
        for aggregation, total in (("SUM", 450), ("MEAN", 225)):
            answer = self.server.connect(
                "hearth.v1.QueryService/Top", {"selection": {**asked, "aggregation": "AGGREGATION_" + aggregation}}
            )
            self.assertEqual(answer["total"], str(total))
            timeline = self.server.connect("hearth.v1.QueryService/FunctionTimeline", {
                "selection": {**asked, "aggregation": "AGGREGATION_" + aggregation}, "functions": ["main"], "step": 7200,
            })
            self.assertEqual([p["total"] for p in timeline["series"][0]["points"]], [str(total)])
        (stat,) = self.server.connect("hearth.v1.QueryService/LabelStats", {"selection": asked, "label": "pod"})["values"]
        self.assertEqual([stat[k] for k in ("count", "sum", "min", "max", "series")], ["2", "450", "150", "300", "1"])

        # Of each series that a profile is split into, on its own.
        split = (["main"], [5, 0], {"route": "/a"}), (["main"], [0, 6], {"route": "/b"})
        self.assertEqual(push(2, *split), {"zero_types": 2})
        self.assertEqual([listed(',route="%s"' % route) for route in ("/a", "/b")], [[alloc], [inuse]])
        self.assertEqual((self.total(alloc), self.total(inuse)), (10 + 7 + 5, 450 + 6))

        # Nothing but zeros is acknowledged, and not stored.
        n = self.n_rows()
        self.assertEqual(push(3, (["main"], [0, 0], {})), {"zero_samples": 1, "empty_profiles": 1})
        self.assertEqual(self.n_rows(), n)

    def test_numeric_labels_are_dropped_and_counted(self):
        p = profile().add(["main", "a"], [1, 1], {"bytes": 512}).add(["main", "a"], [1, 2], {"bytes": 1024})
        self.assertEqual(self.push(p), {"numeric_labels": 2, "merged_samples": 1})
        self.assertEqual(self.own_label_names(), [])
        self.assertEqual(self.total(), 3)

    def test_trace_and_thread_labels_never_become_series_labels(self):
        for key, value in BESIDE_THE_SAMPLE:
            with self.subTest((key, value)):
                p = profile().add(["main", key], [1, 1], {key: value}).add(["main"], [1, 2])
                self.assertEqual(self.push(p), {})
        self.assertEqual(self.own_label_names(), [])
        self.assertEqual(self.n_rows("attrs IS NOT NULL AND length(attrs) > 0"), len(BESIDE_THE_SAMPLE))
        self.assertEqual(self.n_rows(), len(BESIDE_THE_SAMPLE), "nothing was split")
        self.assertEqual(self.total(), 3 * len(BESIDE_THE_SAMPLE))

    def test_samples_of_one_stack_and_many_spans_are_whole_in_a_merge(self):
        p = profile()
        for span in range(20):
            p.add(["main", "a"], [1, 1], {"span_id": "%016x" % (span + 1), "route": "/x"})
        self.assertEqual(self.push(p).get("numeric_labels", 0), 0)
        self.assertEqual(self.total(more=',route="/x"'), 20)
        self.assertEqual(self.n_rows(), 1)

    def test_other_labels_of_tracers_split_series(self):
        self.push(profile().add(["main"], [1, 1], {"exception type": "KeyError", "task name": "t-1"}))
        self.assertEqual(self.own_label_names(), ["exception type", "task name"])

    # ---- samples ----

    def test_negative_zero_and_dangling_samples_are_dropped_and_counted(self):
        before = self.server.metrics()
        p = profile().add(["main", "a"], [1, 10]).add(["main", "b"], [-1, 10]).add(["main", "c"], [5, -5])
        p.add(["main", "z"], [0, 0]).add(["main", "half"], [0, 7])
        self.assertEqual(self.push(p), {"negative_samples": 2, "zero_samples": 1})
        self.assertEqual(self.total(), 17)
        self.assertEqual(self.total("process_cpu:samples:count:cpu:nanoseconds"), 1)
        data = wire.encode([
            (1, [(1, 1), (2, 2)]), (2, [(1, 1), (2, 3)]), (2, [(1, 9), (2, 4)]), (4, [(1, 1), (3, 0x1000)]),
            (6, ""), (6, "cpu"), (6, "nanoseconds"), (9, T * 1_000_000),
        ])
        self.assertEqual(self.push(data), {"dangling_samples": 1})
        after = self.server.metrics()
        for reason, n in (("negative_samples", 2), ("zero_samples", 1), ("dangling_samples", 1)):
            name = "hearth_discarded_total"
            grown = prometheus.value(after, name, reason=reason) - prometheus.value(before, name, reason=reason)
            self.assertEqual(grown, n, reason)

    def test_equal_stacks_are_summed_and_counted(self):
        p = profile()
        for value in (1, 2, 4):
            p.add(["main", "a"], [1, value])
        self.assertEqual(self.push(p), {"merged_samples": 2})
        merged = Decoded(self.server.merge_pprof(CPU, self.selector(), START, END))
        self.assertEqual([values for _, values, _ in merged.samples], [[7]])

    def test_sums_beyond_64_bits_are_an_error_and_never_a_wrong_number(self):
        for pod in "abc":
            self.push(profile().add(["main"], [1, 1 << 62]), {"pod": pod})
        merge = [(1, CPU), (2, self.selector()), (3, START), (4, END)]
        for method, fields in (
            ("SelectMergeStacktraces", merge), ("SelectMergeProfile", merge), ("SelectSeries", merge + [(6, 3600.0)]),
        ):
            with self.assertRaises(RpcError) as caught:
                self.server.call(QUERIER + method, fields)
            self.assertEqual(caught.exception.code, "out_of_range")
        self.assertEqual(self.total(more=',pod="a"'), 1 << 62)
        largest = (1 << 63) - 1
        self.refused("overflow", profile().add(["main"], [1, largest]).add(["main"], [1, largest]))
        self.refused("overflow", profile().add(["main"], [1, largest]).add(["other"], [1, largest]))

    def test_a_profile_left_without_samples_is_acknowledged_and_not_stored(self):
        self.assertEqual(self.push(profile().add(["main"], [0, 0])), {"zero_samples": 1, "empty_profiles": 1})
        self.assertEqual(self.push(profile()), {"empty_profiles": 1})
        self.assertEqual(self.n_rows(), 0)

    def test_a_sample_without_stack_is_the_roots_own(self):
        self.push(profile().add([], [1, 5]).add(["main"], [1, 6]))
        root = self.server.flamegraph(CPU, self.selector(), START, END).root
        self.assertEqual(root.plain(), ("total", 5, 11, [("main", 6, 6, [])]))

    def test_invalid_utf8_and_nul_are_replaced_and_counted(self):
        data = wire.encode([
            (1, [(1, 1), (2, 2)]), (2, [(1, 1), (2, 3)]), (4, [(1, 1), (4, [(1, 1)])]), (5, [(1, 1), (2, 3)]),
            (6, ""), (6, "cpu"), (6, "nanoseconds"), (6, b"bad\xff\xfename\x00end"), (9, T * 1_000_000),
        ])
        self.assertEqual(self.push(data), {"repaired_strings": 1})
        names = self.server.flamegraph("process_cpu:cpu:nanoseconds::", self.selector(), START, END).names
        self.assertEqual(names, ["total", "bad\ufffdname\ufffdend"])

    # ---- service and labels ----

    def services_of(self, labels):
        self.push(simple(), {**labels, "case": self.service}, service=False)
        return self.server.label_values("service_name", START, END, ['{case="%s"}' % self.service])

    def test_a_service_is_named_by_service_name_before_all(self):
        self.assertEqual(self.services_of({"service_name": "a1", "serviceName": "b1", "service": "c1"}), ["a1"])

    def test_a_service_is_named_by_service_name_in_camel_case_next(self):
        self.assertEqual(self.services_of({"SERVICE": "e2", "service": "d2", "SERVICE_NAME": "c2", "serviceName": "b2"}), ["b2"])

    def test_a_service_is_named_by_service_name_in_capitals_then(self):
        self.assertEqual(self.services_of({"SERVICE": "e3", "service": "d3", "SERVICE_NAME": "c3"}), ["c3"])

    def test_a_service_is_named_by_service_then(self):
        self.assertEqual(self.services_of({"SERVICE": "e4", "service": "d4", "serviceName": ""}), ["d4"])

    def test_a_service_is_named_by_service_in_capitals_last(self):
        self.assertEqual(self.services_of({"SERVICE": "e5"}), ["e5"])

    def test_a_service_without_a_name_is_unknown_service(self):
        self.assertEqual(self.services_of({"pod": "x"}), ["unknown_service"])
        self.assertEqual(
            self.server.label_values("__service_name__", START, END, ['{case="%s"}' % self.service]), ["unknown_service"]
        )

    def test_empty_and_derived_labels_are_left_out_and_counted(self):
        dropped = self.push(simple(), {"empty": "", "__session_id__": "s", "__delta__": "false", "__type__": "x", "kept": "k"})
        self.assertEqual(dropped, {"empty_labels": 1, "reserved_labels": 3})
        self.assertEqual(self.own_label_names(), ["kept"])

    def test_duplicate_label_names_are_refused(self):
        pairs = [(1, [(1, n), (2, v)]) for n, v in (("__name__", "process_cpu"), ("pod", "a"), ("pod", "b"))]
        request = wire.encode([(1, pairs + [(2, [(1, simple().encode())])])])
        with self.assertRaises(RpcError) as caught:
            self.server.grpc_bytes(PUSH, request)
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("duplicate label name: 'pod'", caught.exception.message)

    def test_a_profile_needs_a_label_and_a_name(self):
        self.refused("at least one label pair is required", simple(), name=None, service=False)
        self.refused("invalid metric name", simple(), name=None)
        self.refused("invalid metric name", simple(), name="")
        self.refused("invalid label name", simple(), {"": "x"})

    # ---- names ----

    def test_hyphens_spaces_and_colons_in_type_names_are_kept(self):
        types = [("wall-time", "nano seconds"), ("steps count", "steps"), ("a:b", "c:d")]
        p = Profile(types, None, time_ns=T * 1_000_000).add(["main"], [1, 2, 4])
        self.push(p, name="my-name")
        found = {t[0]: t[1:] for t in self.server.profile_types(START, END) if t[1] == "my-name"}
        self.assertIn("my-name:wall-time:nano seconds::", found)
        self.assertIn("my-name:steps count:steps::", found)
        self.assertEqual(self.total("my-name:wall-time:nano seconds::"), 1)
        self.assertEqual(self.total("my-name:steps count:steps::"), 2)
        ids = self.server.label_values("__profile_type__", START, END, [self.selector()])
        self.assertEqual(len(ids), 3)
        colon = [i for i in ids if i not in found or "wall" not in i and "steps" not in i]
        self.assertEqual(len(colon), 1, ids)
        self.assertEqual(len(colon[0].split(":")), 5, "an ID always has five parts")
        self.assertEqual(self.total(colon[0]), 4)

    def test_types_without_names_can_be_queried(self):
        self.push(Profile([("", "")], None, time_ns=T * 1_000_000).add(["main"], [3]), name="ebpf")
        self.assertEqual(self.server.label_values("__profile_type__", START, END, [self.selector()]), ["ebpf::::"])
        self.assertEqual(self.total("ebpf::::"), 3)

    def test_go_delta_profiles_get_their_plain_name(self):
        p = Profile([("alloc_space", "bytes")], ("space", "bytes"), time_ns=T * 1_000_000).add(["main"], [9])
        self.push(p, name="godeltaprof_memory")
        self.assertEqual(self.total("memory:alloc_space:bytes:space:bytes"), 9)
        self.assertEqual(self.server.label_values("__name_replaced__", START, END, [self.selector()]), ["godeltaprof_memory"])
        self.assertEqual(self.server.label_values("__name__", START, END, [self.selector()]), ["memory"])

    def test_cpu_time_of_a_wall_profile_is_wall_cpu(self):
        types = [("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")]  # as Node's SDK sends them
        p = Profile(types, ("wall", "nanoseconds"), time_ns=T * 1_000_000).add(["main"], [1, 8, 3])
        self.push(p, name="wall")
        ids = ["wall:%s:%s:wall:nanoseconds" % pair for pair in (("cpu", "nanoseconds"), ("samples", "count"), ("wall", "nanoseconds"))]
        self.assertEqual(self.server.label_values("__profile_type__", START, END, [self.selector()]), ids)
        self.assertEqual([self.total(id) for id in ids], [3, 1, 8])
        self.assertEqual(self.total("process_cpu:cpu:nanoseconds:wall:nanoseconds"), 0)

    def test_cpu_time_that_is_stored_apart_from_its_wall_profile_is_found_by_either_name(self):
        types = [("wall", "nanoseconds"), ("cpu", "nanoseconds")]
        stored, listed = ("%s:cpu:nanoseconds:wall:nanoseconds" % name for name in ("process_cpu", "wall"))
        server = Server()
        self.addCleanup(server.stop)

        def push(value):
            p = Profile(types, ("wall", "nanoseconds"), time_ns=T * 1_000_000).add(["main"], [8, value])
            server.push(p.encode(), {"__name__": "wall", "service_name": "node"})

        push(3)
        server.sql("UPDATE hearth_data.series SET fingerprint = '%032x'" % 1)
        server.sql("UPDATE hearth_data.shape SET fingerprint = '%032x', profile_types = array_replace(profile_types, '%s', '%s')"
                   % (1, listed, stored))
        server.stop()
        server.start()
        push(5)
        wall = "wall:wall:nanoseconds:wall:nanoseconds"
        self.assertEqual(server.label_values("__profile_type__", START, END, ["{}"]), [listed, wall])
        self.assertEqual(server.label_values("__name__", START, END, ["{}"]), ["wall"])
        self.assertEqual(server.flamegraph(listed, "{}", START, END).total, 3 + 5)
        self.assertEqual(server.flamegraph(wall, "{}", START, END).total, 16)
        self.assertEqual(server.flamegraph(stored, "{}", START, END).total, 3, "what is stored by that name")
        self.assertEqual(server.select_series(stored, '{service_name="node"}', START, END, 7200)[0][1][-1][1], 3)

    # ---- times ----

    def test_the_ingestion_window_is_seven_days_back_and_ten_minutes_ahead(self):
        now = now_ms()
        for ms, pod in ((now - 7 * DAY + 60_000, "old"), (now + 590_000, "new"), (now - 3 * DAY, "between")):
            p = Profile(TYPES, time_ns=ms * 1_000_000).add(["main"], [1, 1])
            self.push(p, {"pod": pod})
            self.assertEqual(self.total(more=',pod="%s"' % pod, start=ms, end=ms), 1)
        for ms in (now - 7 * DAY - 60_000, now + 660_000, 1000):
            p = Profile(TYPES, time_ns=ms * 1_000_000).add(["main"], [1, 1])
            self.refused("outside of ingestion window", p)

    def test_a_profile_without_a_time_is_stored_as_of_now(self):
        for time_ns in (0, -5):
            before = now_ms()
            self.push(Profile(TYPES, time_ns=time_ns).add(["main"], [1, 1]), {"pod": str(time_ns)})
            self.assertEqual(self.total(more=',pod="%d"' % time_ns, start=before, end=now_ms()), 1)

    def test_time_duration_and_period_are_stored(self):
        p = Profile(TYPES, period=10_000_019, time_ns=T * 1_000_000 + 123_457, duration_ns=9_876_543_210).add(["main"], [1, 1])
        self.push(p)
        self.assertEqual(
            self.rows("ts, duration_ns, period, totals"), [[str(T * 1_000_000 + 123_457), "9876543210", "10000019", "{1,1}"]]
        )

    # ---- compression and garbage ----

    def test_gzip_in_several_members_zstd_and_plain_bytes_are_read(self):
        plain = simple().encode(False)
        half = len(plain) // 2
        bodies = {
            "plain": plain,
            "gzip": gzip.compress(plain),
            "members": gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
            "empty-member": gzip.compress(b"") + gzip.compress(plain) + gzip.compress(b""),
        }
        if shutil.which("zstd"):
            bodies["zstd"] = subprocess.run(["zstd", "-c"], input=plain, capture_output=True, check=True).stdout
        else:
            # A frame of one raw block, by hand (RFC 8878): magic, single segment with a 4-byte size, last raw block.
            size = len(plain)
            block = ((size << 3) | 1).to_bytes(3, "little")
            bodies["zstd"] = b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little") + block + plain
        for form, body in bodies.items():
            with self.subTest(form):
                self.assertEqual(self.push(body, {"form": form}), {})
                self.assertEqual(self.total(more=',form="%s"' % form), 10)

    def test_garbage_is_an_invalid_argument(self):
        whole = simple().encode(False)
        packed = gzip.compress(whole)
        for what, body in {
            "nothing": b"", "text": b"hello", "zeros": bytes(100), "json": b'{"a": 1}', "cut": whole[:-20],
            "cut gzip": packed[:-10], "gzip crc": packed[:-8] + bytes(4) + packed[-4:], "gzip of text": gzip.compress(b"hello"),
            "gzip head": b"\x1f\x8b", "zstd head": b"\x28\xb5\x2f\xfd", "legacy heap": b"heap profile: 1: 2 [ 3: 4] @ heap_v2/1\n",
            "legacy contention": b"--- contention:\ncycles/second = 1\n", "legacy cpu": bytes(8) + b"\x03" + bytes(7) + bytes(24),
            "jfr": b"FLR\x00\x00\x02\x00\x00", "perf": b"PERFILE2" + bytes(96),
        }.items():
            with self.subTest(what):
                self.refused("", body)
        self.refused("heap", b"heap profile: 1: 2 [ 3: 4] @ heap_v2/1\n")
        self.push(simple())
        self.assertEqual(self.n_rows(), 1, "nothing of it was stored")

    def test_broken_references_are_an_invalid_argument(self):
        strings = [(6, ""), (6, "cpu"), (6, "ns")]
        for part, fields in (
            ("sample type", [(1, [(1, 9), (2, 2)])] + strings),
            ("string 0", [(1, [(1, 1)]), (6, "x"), (6, "cpu")]),
            ("no sample type", strings),
            ("value", [(1, [(1, 1)]), (2, [(2, ("packed", [1, 2]))])] + strings),
            ("function", [(1, [(1, 1)]), (2, [(1, 1), (2, 1)]), (4, [(1, 1), (4, [(1, 7)])])] + strings),
            ("location", [(1, [(1, 1)]), (2, [(1, 0), (2, 1)])] + strings),
        ):
            with self.subTest(part):
                self.refused(part, wire.encode(fields))

    def test_an_empty_push_is_refused(self):
        for request in (b"", wire.encode([(1, [(1, [(1, "__name__"), (2, "x")])])])):
            with self.assertRaises(RpcError) as caught:
                self.server.grpc_bytes(PUSH, request)
            self.assertEqual((caught.exception.code, caught.exception.message), ("invalid_argument", "no profiles received"))

    def test_profiles_of_one_request_fail_one_by_one(self):
        def series(pod, *bodies):
            pairs = [("__name__", "process_cpu"), ("service_name", self.service), ("pod", pod)]
            samples = [(2, [(1, body), (2, "id-%s-%d" % (pod, k))]) for k, body in enumerate(bodies)]
            return (1, [(1, [(1, n), (2, v)]) for n, v in pairs] + samples)

        good = simple().encode()
        with self.assertRaises(RpcError) as caught:
            self.server.grpc_bytes(PUSH, wire.encode([series("a", good, b"bad"), series("b", good), series("c", b"bad", good)]))
        error = caught.exception
        self.assertEqual(error.code, "invalid_argument")
        self.assertIn("push series with index 0 and id id-a-1 failed", error.message)
        for pod in "abc":
            self.assertEqual(self.total(more=',pod="%s"' % pod), 10)
        self.assertEqual(self.n_rows(), 3)

    # ---- repeated pushes ----

    def test_new_series_of_one_request_are_made_in_few_transactions(self):
        def push_all():
            body, before = simple().encode(), int(self.server.sql("SELECT version FROM hearth_data.catalog_clock")[0][0])
            head = {"__name__": "process_cpu", "service_name": self.service}
            self.server.grpc_bytes(PUSH, wire.encode([
                (1, [(1, [(1, name), (2, value)]) for name, value in {**head, "pod": "p%d" % i}.items()] + [(2, [(1, body)])])
                for i in range(200)]))
            return int(self.server.sql("SELECT version FROM hearth_data.catalog_clock")[0][0]) - before

        self.assertIn(push_all(), range(1, 6))
        self.assertEqual(self.n_rows(), 200)
        self.assertEqual(self.total(), 200 * 10)
        self.assertEqual(len(self.server.label_values("pod", START, END, [self.selector()])), 200)

        # They are known now.
        self.assertEqual(push_all(), 0)
        self.assertEqual(self.n_rows(), 400)

    def test_a_repeated_sample_id_is_acknowledged_without_a_second_row(self):
        before = prometheus.value(self.server.metrics(), "hearth_profiles_repeated_total")
        for _ in range(3):
            dropped = self.push(simple(), {"pod": "a"}, id="the-id")
        self.assertEqual(dropped, {"repeated_profiles": 1})
        self.assertEqual(self.n_rows(), 1)
        self.assertEqual(prometheus.value(self.server.metrics(), "hearth_profiles_repeated_total") - before, 2)
        self.push(simple(), {"pod": "b"}, id="the-id")
        self.assertEqual(self.n_rows(), 2, "another label set with the same ID is another profile")
        self.push(simple(), {"pod": "a"}, id="the-id", name="other_name")
        self.assertEqual(self.n_rows(), 3, "so is another name")
        self.push(simple(), {"pod": "a"}, id="another-id")
        self.assertEqual(self.n_rows(), 4)

    def test_profiles_without_sample_id_are_all_stored(self):
        for _ in range(3):
            self.push(simple())
        self.assertEqual(self.n_rows(), 3)
        self.assertEqual(self.total(), 30)

    def test_the_same_sample_id_twice_in_one_request_is_one_row(self):
        pairs = [(1, [(1, n), (2, v)]) for n, v in (("__name__", "process_cpu"), ("service_name", self.service))]
        samples = [(2, [(1, simple().encode()), (2, "twin")])] * 2
        self.server.grpc_bytes(PUSH, wire.encode([(1, pairs + samples)]))
        self.assertEqual(self.n_rows(), 1)

    def test_a_split_profile_is_repeated_as_a_whole(self):
        p = profile().add(["main"], [1, 1], {"route": "/a"}).add(["main"], [1, 2], {"route": "/b"})
        for _ in range(2):
            self.push(p, id="split")
        self.assertEqual(self.n_rows(), 2)

    def test_a_sample_id_older_than_an_hour_is_forgotten(self):
        self.push(simple(), id="old")
        self.server.sql("UPDATE hearth_data.push_id SET at = at - 3700::int8 * 1000000000")
        self.push(simple(), id="old")
        self.assertEqual(self.n_rows(), 2)

    def test_a_repeated_sample_id_is_known_after_a_restart(self):
        self.push(simple(), id="restart")
        self.assertEqual(self.server.terminate(), 0)
        self.server.start()
        self.push(simple(), id="restart")
        self.assertEqual(self.n_rows(), 1)


class SampleIdsOfTwoServers(unittest.TestCase):
    def test_a_sample_id_is_known_to_every_server_of_the_database(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        servers = [Server(database_url=cluster.url()) for _ in range(2)]
        labels = {"__name__": "process_cpu", "service_name": "twice"}
        for round in range(10):
            for server in servers[:: 1 if round % 2 else -1]:
                server.push(simple().encode(), labels, id="round-%d" % round)
        self.assertEqual(servers[0].sql("SELECT count(*) FROM " + PROFILES), [["10"]])
        for server in servers:
            self.assertEqual(server.flamegraph(CPU, "{}", START, END).total, 100)
            self.assertEqual(server.terminate(), 0)


class Limits(PushTest):
    options = (
        "--max-profile-bytes", "20k", "--max-samples", "50", "--max-sample-labels", "3", "--max-sample-types", "4",
        "--max-stack-depth", "10", "--max-symbol-bytes", "30", "--max-label-names", "8", "--max-label-name-bytes", "40",
        "--max-label-value-bytes", "80", "--max-label-sets", "5", "--reject-older-than", "1h", "--reject-newer-than", "1m",
        "--max-series", "40",
    )

    def test_a_profile_is_bounded_when_inflated(self):
        p = profile()
        p.add(["f" * 30_000], [1, 1])
        self.assertLess(len(p.encode()), 1000)
        self.refused("max-profile-bytes", p)
        self.refused("20480", p)

    def test_samples_are_bounded(self):
        p = profile()
        for k in range(51):
            p.add(["f%d" % k], [1, 1])
        self.refused("samples count limit (max-samples, actual: 51, limit: 50); raise it with --max-samples", p)
        p.samples.pop()
        self.push(p)

    def test_sample_types_are_bounded(self):
        def typed(n):
            return Profile([("t%d" % k, "count") for k in range(n)], time_ns=T * 1_000_000).add(["main"], [1] * n)

        self.refused("the profile has 5 sample types; the limit is 4; raise it with --max-sample-types", typed(5))
        self.push(typed(4))

    def test_labels_of_a_sample_are_bounded(self):
        self.push(profile().add(["main"], [1, 1], {"a": "1", "b": "2", "c": "3"}))
        self.refused("(max-sample-labels, actual: 4, limit: 3); raise it with --max-sample-labels", profile().add(["main"], [1, 1], {"a": "1", "b": "2", "c": "3", "d": "4"}))

    def test_deep_stacks_keep_their_root_end_and_are_counted(self):
        self.assertEqual(self.push(profile().add(["f%02d" % k for k in range(13)], [1, 1])), {"cut_stacks": 1, "cut_frames": 3})
        merged = Decoded(self.server.merge_pprof(CPU, self.selector(), START, END))
        (stack,) = merged.by_stack(0)
        self.assertEqual([line[0] for line in stack], ["f%02d" % k for k in reversed(range(10))])

    def test_long_symbols_keep_their_tail_and_are_counted(self):
        name = "x" * 50 + "the tail of thirty characters!"[:30]
        # The function's file name is as long: it is a symbol too.
        self.assertEqual(self.push(profile().add([name], [1, 1])), {"cut_strings": 2})
        flame = self.server.flamegraph(CPU, self.selector(), START, END)
        self.assertEqual(flame.names[1], name[-30:])

    def test_label_names_and_values_are_bounded(self):
        self.refused("has label name too long: '%s'" % ("n" * 41), simple(), {"n" * 41: "x"})
        self.refused("has label value too long", simple(), {"n": "v" * 81})
        self.push(simple(), {"n" * 40: "v" * 80})

    def test_the_number_of_labels_is_bounded(self):
        self.push(simple(), {"l%d" % k: "x" for k in range(6)})
        self.refused("has 9 label names; limit 8", simple(), {"l%d" % k: "x" for k in range(7)})

    def test_long_sample_labels_are_dropped_and_counted(self):
        self.assertEqual(self.push(profile().add(["main"], [1, 3], {"n" * 30: "v" * 30})), {})
        long = Profile(TYPES, time_ns=T * 1_000_000)
        long.add(["main"], [1, 4], {"route": "v"})
        self.push(long)
        self.assertEqual(self.total(), 7)

    def test_label_sets_beyond_the_limit_lose_their_sample_labels(self):
        p = profile()
        for k in range(9):
            p.add(["main"], [1, 1], {"request": "r%d" % k})
        dropped = self.push(p)
        self.assertIn("split_labels", dropped)
        self.assertEqual(self.total(), 9, "no value is lost")
        self.assertLessEqual(self.n_rows(), 6)

    def test_the_window_is_an_option(self):
        for ms in (now_ms() - 3_660_000, now_ms() + 90_000):
            self.refused("outside of ingestion window", Profile(TYPES, time_ns=ms * 1_000_000).add(["main"], [1, 1]))
        self.push(Profile(TYPES, time_ns=(now_ms() - 3_000_000) * 1_000_000).add(["main"], [1, 1]))


class Rates(PushTest):
    options = ("--ingest-rate-bytes", "2000", "--ingest-burst-bytes", "4000", "--multitenancy")

    def test_a_tenant_beyond_its_rate_is_refused_and_others_are_not(self):
        profile = simple().encode()
        labels = {"__name__": "process_cpu", "service_name": "s"}
        with self.assertRaises(RpcError) as caught:
            for _ in range(4000 // len(profile) + 20):
                self.server.push(profile, labels, metadata=[("x-scope-orgid", "busy")])
        self.assertEqual(caught.exception.code, "resource_exhausted")
        self.assertIn("push rate limit", caught.exception.message)
        self.server.push(profile, labels, metadata=[("x-scope-orgid", "calm")])


class LowRate(PushTest):
    options = ("--ingest-rate-bytes", "50", "--ingest-burst-bytes", "400")

    def test_a_client_that_repeats_refused_pushes_at_once_does_not_stop_its_tenant(self):
        profile = simple().encode()

        def is_taken():
            try:
                self.server.push(profile, {"__name__": "process_cpu", "service_name": "s"})
            except RpcError as refused:
                self.assertEqual(refused.code, "resource_exhausted")
                return False
            return True

        while is_taken():
            pass
        deadline = time.monotonic() + 30  # 400 bytes need 8 s
        while not is_taken():
            self.assertLess(time.monotonic(), deadline, "no push is taken any more")


class Log(unittest.TestCase):
    def test_the_log_of_postgresql_has_the_reason_for_a_batch_sent_again(self):
        server = Server("--builder=false")
        self.addCleanup(server.stop)

        def push(sample_id=""):
            labels = {"__name__": "process_cpu", "service_name": "api"}
            server.push(Profile(TYPES, time_ns=T * 10**6).add(["main"], [1, 10]).encode(), labels, sample_id)

        def errors():
            with open(os.path.join(server.directory, "data/postgres.log")) as log:
                return [line for line in log if "ERROR" in line]

        for _ in range(3):
            push("the-id")
        self.assertEqual(len(errors()), 1)
        self.assertIn("hearthd sends this batch again: ids of pushes repeat", errors()[0])

        # The builder makes the watermark.
        self.assertEqual(server.terminate(), 0)
        server.options = []
        server.start()
        eventually(lambda: server.sql("SELECT count(*) FROM hearth_data.roll_state") == [["1"]], what="a watermark")
        server.sql("UPDATE hearth_data.roll_state SET watermark = %d" % (END * 10**6))
        push()
        self.assertIn("hearthd sends this batch again: profiles are late", errors()[1])


if __name__ == "__main__":
    unittest.main()
