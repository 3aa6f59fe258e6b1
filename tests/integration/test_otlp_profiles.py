"""Profiles by OpenTelemetry's protocol: gRPC and HTTP, protobuf and JSON; what is stored, and what is left out and said."""

import gzip
import json
import struct
import time
import unittest

import grpc

import wire
from otlp_profiles import EXPORT, JSON, PATH, PROTO, Exporter, to_json, to_proto, zstd
from server import ROOT, SHARED, RpcError, Server, eventually

T = time.time_ns() - 300_000_000_000
START, END = T // 1_000_000 - 3_600_000, T // 1_000_000 + 3_600_000
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
PERIOD = 50_000_000
SEEDS = ROOT / "tests/fuzz/corpus/otlp_profiles"


class Profiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-request-bytes", "4m", "--max-samples", "1000", "--max-label-names", "12",
                            "--max-stack-frames", "2000")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    # ---- sending and asking ----

    def post(self, body, content_type=PROTO, code=200, **headers):
        headers = {"Content-Type": content_type, **headers}
        status, found, answer = self.server.http("POST", PATH, body, headers)
        self.assertEqual(status, code, answer)
        self.assertEqual(found["content-type"], content_type if content_type in (PROTO, JSON) else JSON)
        return answer

    def partial(self, answer):
        """(rejected profiles, why) of an answer in protobuf; None: all is stored."""
        found = wire.decode(answer)
        if not found:
            return None
        found = wire.decode(found[1][0])
        return found.get(1, [0])[0], found[2][0].decode()

    def refused(self, body, content_type=PROTO, code=400, **headers):
        """The message of google.rpc.Status in the encoding of the request."""
        answer = self.post(body, content_type, code, **headers)
        if content_type == PROTO:
            found = wire.decode(answer)
            return found[1][0], found[2][0].decode()
        found = json.loads(answer)
        return found["code"], found["message"]

    def one(self, service=None, timestamps=2, **more):
        """An export of one profile with one sample."""
        e = Exporter()
        stamps = [T + i for i in range(timestamps)]
        profile = e.cpu(T, [e.sample(e.stack("work", "main"), timestamps=stamps)], **more)
        return e.resource({"service.name": service or self.service, "host.name": "h1"}, profile).export()

    def graph(self, service=None, kind=CPU, more=""):
        return self.server.flamegraph(kind, '{service_name="%s"%s}' % (service or self.service, more), START, END)

    # ---- what is stored ----

    def test_every_transport_and_encoding_stores_equal_profiles(self):
        export = self.one()
        proto, as_json = to_proto(export), to_json(export)
        for _ in range(2):
            self.assertIsNone(self.partial(self.post(proto)))
        self.assertEqual(self.post(gzip.compress(proto), **{"Content-Encoding": "gzip"}), b"")
        self.assertEqual(self.post(zstd(proto), **{"Content-Encoding": "zstd"}), b"")
        self.assertEqual(json.loads(self.post(as_json, JSON)), {})
        self.assertEqual(json.loads(self.post(gzip.compress(as_json), JSON, **{"Content-Encoding": "gzip"})), {})
        self.assertEqual(json.loads(self.post(zstd(as_json), JSON, **{"Content-Encoding": "zstd"})), {})
        self.assertEqual(self.server.grpc_bytes(EXPORT, proto)[0], b"")
        self.assertEqual(self.server.connect(EXPORT, export), {})
        self.assertEqual(self.server.connect_proto(EXPORT, proto)[0], b"")
        with grpc.insecure_channel("127.0.0.1:%d" % self.server.port, compression=grpc.Compression.Gzip) as channel:
            self.assertEqual(channel.unary_unary("/" + EXPORT)(proto, timeout=30), b"")
        graph = self.graph()
        self.assertEqual(graph.total, 11 * 2 * PERIOD)
        self.assertEqual(graph.names[1:], ["main", "work"])
        self.assertEqual(self.graph(more=',"host.name"="h1"').total, graph.total)

    def test_an_export_keeps_its_values_types_and_services(self):
        e, mine = Exporter(), self.service
        stack = e.stack("wait", "main")
        off_cpu = {"sampleType": e.type("off_cpu", "nanoseconds"), "timeUnixNano": str(T),
                   "samples": [e.sample(stack, [5, 7], [T, T + 1]), e.sample(stack, [30])]}
        heap = {"sampleType": e.type("inuse_space", "bytes"), "timeUnixNano": str(T), "samples": [e.sample(stack, [4096])]}
        mixed = e.cpu(T, [e.sample(stack, timestamps=[T]), e.sample(stack, [3], attributes={"service.name": mine + "-2"})])
        e.resource({"service.name": mine}, off_cpu, heap, mixed)
        e.resource({"process.executable.name": mine}, e.cpu(T, [e.sample(stack, [2])]))
        self.assertIsNone(self.partial(self.post(to_proto(e.export()))))
        self.assertEqual(self.graph(kind="off_cpu:off_cpu:nanoseconds::").total, 42)
        self.assertEqual(self.graph(kind="memory:inuse_space:bytes::").total, 4096)
        self.assertEqual(self.graph().total, PERIOD)
        self.assertEqual(self.graph(mine + "-2").total, 3 * PERIOD)
        self.assertEqual(self.graph("unknown_service:" + mine).total, 2 * PERIOD)

    def test_samples_are_found_by_their_span_and_thread(self):
        e = Exporter()
        trace, span = "0102030405060708090a0b0c0d0e0f10", "a1a2a3a4a5a6a7a8"
        stack = e.stack("work", "main")
        samples = [e.sample(stack, [2], link=e.link(trace, span), attributes={"thread.name": "worker", "thread.id": 12}),
                   e.sample(stack, [1], attributes={"thread.name": "other"})]
        export = e.resource({"service.name": self.service}, e.cpu(T, samples)).export()
        self.assertEqual(json.loads(self.post(to_json(export), JSON)), {})
        selector = '{service_name="%s"}' % self.service
        self.assertEqual(self.server.flamegraph(CPU, selector, START, END, spans=[span]).total, 2 * PERIOD)
        self.assertEqual(self.server.flamegraph(CPU, selector, START, END, traces=[trace]).total, 2 * PERIOD)
        rows = self.server.connect("hearth.v1.QueryService/Top", {
            "selection": {"labelSelector": selector, "profileType": CPU, "start": START, "end": END},
            "kind": "TOP_KIND_THREAD"})["rows"]
        self.assertEqual({row["name"].split(" ")[0]: int(row["total"]) for row in rows},
                         {"worker": 2 * PERIOD, "other": PERIOD})
        self.assertEqual(len(self.server.series(START, END, [selector])), 1)

    def test_native_frames_keep_their_address_and_build_id(self):
        e = Exporter()
        stack = e.stack(e.native("/usr/lib/libx.so", "b1d", 0x1abc), "main")
        export = e.resource({"service.name": self.service}, e.cpu(T, [e.sample(stack, [1])])).export()
        self.assertEqual(self.post(to_proto(export)), b"")
        self.assertEqual(self.graph().names[1:], ["main", "libx.so+0xabc"])
        selector = '{service_name="%s"}' % self.service
        raw = wire.decode(self.server.merge_pprof(CPU, selector, START, END))
        texts = wire.texts(raw[6])
        mapping = [wire.decode(m) for m in raw[3]]
        self.assertIn(("/usr/lib/libx.so", "b1d"), [(texts[m[5][0]], texts[m.get(6, [0])[0]]) for m in mapping if 5 in m])
        self.assertIn(0x1ABC, [wire.decode(location).get(3, [0])[0] for location in raw[4]])

    def test_a_profile_with_an_id_is_stored_once(self):
        export = self.one(profileId="00112233445566778899aabbccddeeff")
        for body, kind in ((to_proto(export), PROTO), (to_proto(export), PROTO), (to_json(export), JSON)):
            self.post(body, kind)
        self.assertEqual(self.graph().total, 2 * PERIOD)

    def test_a_profile_without_a_time_has_that_of_its_first_timestamp(self):
        export = self.one()
        del export["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["timeUnixNano"]
        self.post(to_proto(export))
        at = T // 1_000_000
        self.assertEqual(self.server.flamegraph(CPU, '{service_name="%s"}' % self.service, at - 1, at + 1).total, 2 * PERIOD)

    def test_exports_of_pyroscopes_java_agent_need_no_service_name(self):
        now, expected = struct.pack("<Q", T), 0
        for seed, factor in (("java_agent", 1), ("async_profiler", 10_000_000)):  # nanoseconds; samples
            body = profile = (SEEDS / seed).read_bytes()
            for number in (1, 2, 2):  # resource, scope, profile
                profile = wire.decode(profile)[number][0]
            recorded = struct.pack("<d", wire.decode(profile)[3][0])
            self.assertEqual(body.count(recorded), 1)
            expected += factor * sum(wire.decode(sample)[4][0] for sample in wire.decode(profile)[2])
            self.post(gzip.compress(body.replace(recorded, now)), **{"Content-Encoding": "gzip"})
        graph = self.server.flamegraph(CPU, '{service_name="unknown_service"}', START, END)
        self.assertEqual(graph.total, expected)
        self.assertIn("Burn.burn", graph.names)
        self.assertIn("Burn2.burn", graph.names)

    # ---- what is left out ----

    def test_samples_and_profiles_are_left_out_by_themselves_and_explained(self):
        e = Exporter()
        stack = e.stack("work")
        good = e.cpu(T, [e.sample(stack, [2]), e.sample(99, [1])])
        too_old = e.cpu(T - 10**18, [e.sample(stack, [1])])
        no_type = {"timeUnixNano": str(T), "samples": [e.sample(stack, [1])]}
        export = e.resource({"service.name": self.service}, good, too_old, no_type).export()
        expected = (2, "2 of 3 profiles and 1 samples of others are not stored; the first: resource_profiles[0]."
                       "scope_profiles[0].profiles[0].samples[1].stack_index is 99; the stack_table has 2 entries")
        self.assertEqual(self.partial(self.post(to_proto(export))), expected)
        self.assertEqual(self.partial(self.server.grpc_bytes(EXPORT, to_proto(export))[0]), expected)
        answer = json.loads(self.post(to_json(export), JSON))["partialSuccess"]
        self.assertEqual((answer["rejectedProfiles"], answer["errorMessage"]), ("2", expected[1]))
        self.assertEqual(self.graph().total, 3 * 2 * PERIOD)

    def test_the_reason_of_the_engine_is_shown_and_stored(self):
        export = self.one()
        attributes = export["resourceProfiles"][0]["resource"]["attributes"]
        attributes += [{"key": "label%d" % i, "value": {"stringValue": "x"}} for i in range(12)]
        rejected, why = self.partial(self.post(to_proto(export)))
        self.assertEqual(rejected, 1)
        self.assertIn("limit 12; raise it with --max-label-names", why)

        def remembered():
            answer = self.server.connect("hearth.v1.AdminService/IngestErrors", {})
            return [error for error in answer.get("errors", []) if "--max-label-names" in error["message"]]

        error, = eventually(remembered)
        self.assertEqual((error["route"], error["code"]), (PATH, "invalid_argument"))

    def test_samples_that_repeat_a_large_stack_too_often_reject_their_profile(self):
        e = Exporter()
        large, small = e.stack(*["f%d" % i for i in range(30)]), e.stack("work")
        absurd = e.cpu(T, [e.sample(large, [1]) for _ in range(100)])
        good = e.cpu(T, [e.sample(small, [2])])
        export = e.resource({"service.name": self.service}, absurd, good).export()
        rejected, why = self.partial(self.post(to_proto(export)))
        self.assertEqual(rejected, 1)
        self.assertIn("the stacks of the samples have 3000 frames in sum; the limit is 2000; raise it with --max-stack-frames", why)
        self.assertEqual(self.graph().total, 2 * PERIOD)

    def test_dropped_attributes_are_counted(self):
        export = self.one()
        attributes = export["resourceProfiles"][0]["resource"]["attributes"]
        attributes += [{"key": "long", "value": {"stringValue": "x" * 3000}}, {"key": "__x__", "value": {"stringValue": "y"}}]
        _, headers, _ = self.server.http("POST", PATH, to_proto(export), {"Content-Type": PROTO})
        self.assertEqual(headers["hearth-dropped"], "long_labels=1, reserved_labels=1")
        self.assertEqual(self.graph().total, 2 * PERIOD)

    # ---- what is refused ----

    def test_older_layouts_are_refused_with_the_versions_that_work(self):
        old = (SEEDS / "old_1_9").read_bytes()
        code, why = self.refused(old)
        self.assertEqual(code, 3)
        self.assertIn("layout of opentelemetry-proto 1.8 or 1.9; read is the one of 1.10 and later", why)
        with self.assertRaises(RpcError) as raised:
            self.server.grpc_bytes(EXPORT, old)
        self.assertEqual((raised.exception.code, raised.exception.message), ("invalid_argument", why))
        self.assertIn("1.4 to 1.7", self.refused((SEEDS / "old_1_4").read_bytes())[1])

    def test_faults_have_the_statuses_of_the_protocol(self):
        proto = to_proto(self.one())
        self.assertEqual(self.refused(b"\xff" * 9)[0], 3)
        self.assertIn("not an export of profiles", self.refused(proto[:-3])[1])
        self.assertIn("resourceProfiles", self.refused(b'{"resourceProfiles": 5}', JSON)[1])
        self.refused(b"x", "text/plain", 415)
        self.refused(proto, PROTO, 415, **{"Content-Encoding": "br"})
        large = to_proto(Exporter().resource({"x": "y" * (5 << 20)}).export())
        self.assertIn("max-request-bytes", self.refused(large, PROTO, 413)[1])
        self.assertIn("max-request-bytes", self.refused(gzip.compress(large), PROTO, 413, **{"Content-Encoding": "gzip"})[1])
        with self.assertRaises(RpcError) as raised:
            self.server.grpc_bytes(EXPORT, large)
        self.assertEqual(raised.exception.code, "resource_exhausted")
        self.assertEqual(self.post(b""), b"")  # nothing to store

    # ---- recorded exports ----

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_recorded_exports_have_the_totals_of_their_manifest(self):
        expected = {line.split("\t")[0]: json.loads(line.split("\t")[-1])
                    for line in (SHARED / "MANIFEST.tsv").read_text().splitlines() if line.startswith("otlp/")}
        name = "otlp/ebpf-profiler-current-schema.jsonl"
        for encode, kind in ((to_json, JSON), (to_proto, PROTO)):
            for line in (SHARED / name).read_text().splitlines():
                export = json.loads(line)
                for profile in export["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]:
                    profile["timeUnixNano"] = str(T)
                export["resourceProfiles"][0]["resource"]["attributes"].append(
                    {"key": "service.name", "value": {"stringValue": self.service}})
                self.assertIn(self.post(encode(export), kind), (b"", b"{}"))
        graph = self.graph()
        self.assertEqual(graph.total, 2 * expected[name]["timestamps"] * PERIOD)
        self.assertTrue(any(n.startswith("libc.so.6+0x") for n in graph.names))
        self.assertIn("1.8 or 1.9", self.refused((SHARED / "otlp/ebpf-profiler-sep2025-schema.binpb").read_bytes())[1])


class Rate(unittest.TestCase):
    def test_an_exporter_beyond_the_rate_is_told_to_retry_by_both_transports(self):
        server = Server("--ingest-rate-bytes", "10")
        self.addCleanup(server.stop)
        e = Exporter()
        body = to_proto(e.resource({}, e.cpu(T, [e.sample(e.stack("work"), [1])])).export())
        status, headers, answer = server.http("POST", PATH, body, {"Content-Type": PROTO})
        self.assertEqual((status, headers["retry-after"]), (429, "1"), answer)
        with self.assertRaises(RpcError) as raised:
            server.grpc_bytes(EXPORT, body)
        self.assertEqual(raised.exception.code, "unavailable")
        self.assertIn("ingest-rate-bytes", raised.exception.message)
        self.assertEqual(raised.exception.metadata["grpc-retry-pushback-ms"], "1000")


if __name__ == "__main__":
    unittest.main()
