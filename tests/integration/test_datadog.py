"""Datadog's clients: their uploads as recorded, in every envelope that they use, and the other routes of the agent that they call.

The recorded uploads (tests/golden/datadog) get the time of the test, and are otherwise sent as they are. Their sums are those of
pprof.py and of `jfr print`.
"""

import gzip
import http.client
import json
import re
import struct
import time
import unittest

import wire
from pprof import Decoded
from server import ROOT, SHARED, Server, eventually, now_ms
from test_ingest import form

T = now_ms() - 300_000
START, END = T - 3_600_000, T + 3_600_000
INPUT = "/profiling/v1/input"
MS = 1_000_000
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
WALL = "wall:wall:nanoseconds:wall:nanoseconds"

# {client: (service, its labels, {profile type: total})}
RECORDED = {
    "go": ("shop-go", {"language": "go", "env": "prod", "version": "1.2.3", "host": "vm"}, {
        CPU: 2_260_000_000,
        "process_cpu:samples:count:cpu:nanoseconds": 226,
        "memory:alloc_objects:count:space:bytes": 3503,
        "memory:alloc_space:bytes:space:bytes": 320_891_222,
        "memory:inuse_objects:count:space:bytes": 48_487,
        "memory:inuse_space:bytes:space:bytes": 29_147_231,
        "mutex:contentions:count:contentions:count": 39,
        "mutex:delay:nanoseconds:contentions:count": 29_249_121,
        "block:contentions:count:contentions:count": 146,
        "block:delay:nanoseconds:contentions:count": 52_966_961_649,
        "goroutine:goroutine:count:goroutine:count": 25,
    }),
    "node": ("shop-node", {"language": "node", "env": "prod", "version": "1.2.3"}, {
        CPU: 295_513_746,
        WALL: 2_080_808_060,
        "wall:samples:count:wall:nanoseconds": 103,
        "memory:inuse_objects:count:space:bytes": 103_350,
        "memory:inuse_space:bytes:space:bytes": 17_951_385,
        "timeline:timeline:nanoseconds::": 2_637_690_624,
    }),
    "python": ("shop-py", {"language": "python", "env": "prod", "version": "1.2.3"}, {
        CPU: 912_685_000,
        "process_cpu:samples:count:cpu:nanoseconds": 591,
        WALL: 42_028_376_000,
        "lock:acquires:count::": 7,
        "lock:acquire_wait:nanoseconds::": 119_620_235,
        "lock:releases:count::": 7,
        "lock:hold:nanoseconds::": 63_257_802,
        "memory:alloc_objects:count:space:bytes": 46_098_686,
        "memory:alloc_space:bytes:space:bytes": 1_630_825_585,
    }),
    "java": ("shop-java", {"language": "java", "env": "prod", "version": "1.2.3", "host": "vm"}, {
        CPU: 448 * 10 * MS,
        WALL: 118 * 50 * MS,
        "memory:alloc_sample_objects:count:space:bytes": 121_827,
        "memory:live:count:objects:count": 173_501,
        "mutex:contentions:count:mutex:count": 16,
        "exceptions:exceptions:count::": 18,
    }),
}


def rfc3339(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + ".%03dZ" % (ms % 1000)


def recorded(client):
    """(headers, body) of an upload of now."""
    kind, _, body = (ROOT / "tests/golden/datadog" / (client + ".upload")).read_bytes().partition(b"\r\n")
    body = re.sub(rb'"start":"[^"]*"', b'"start":"%s"' % rfc3339(T).encode(), body)
    body = re.sub(rb'"end":"[^"]*"', b'"end":"%s"' % rfc3339(T + 10_000).encode(), body)
    return {"Content-Type": kind.decode()}, body


def lz4(data):
    """A frame with one block that is not compressed."""
    return b"\x04\x22\x4d\x18\x60\x70\x73" + struct.pack("<I", len(data) | 1 << 31) + data + bytes(4)


def cpu_profile(values=(30,)):
    """A pprof as libdatadog makes one: a sample for each value, with the labels of a span."""
    strings = ["", "cpu-time", "nanoseconds", "wall-time", "main.py", "burn", "span id", "local root span id", "thread name", "worker",
               "trace endpoint", "GET /orders", "lock name", "queue.py:7"]
    label = lambda key, text=0, number=0: [(1, key), (2, text), (3, number)]  # noqa: E731
    fields = [(1, [(1, 1), (2, 2)]), (1, [(1, 3), (2, 2)])]
    for i, value in enumerate(values):
        fields.append((2, [(1, 1), (2, value), (2, 2 * value), (3, label(6, number=100 + i)), (3, label(7, number=77)),
                           (3, label(8, 9)), (3, label(10, 11)), (3, label(12, 13))]))
    fields += [(4, [(1, 1), (4, [(1, 1), (2, 3)])]), (5, [(1, 1), (2, 5), (4, 4)])]
    return wire.encode(fields + [(6, text) for text in strings])


def event(service, **more):
    return json.dumps({"start": rfc3339(T), "end": rfc3339(T + 5000), "family": "python", "version": "4",
                       "tags_profiler": "service:%s,env:test,runtime-id:1" % service, **more}).encode()


class Datadog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    def value(self, line):
        for text in self.server.http("GET", "/metrics")[2].decode().splitlines():
            if text.startswith(line + " "):
                return float(text.rsplit(" ", 1)[1])
        return 0

    def upload(self, files, path=INPUT):
        headers, body = form(files)
        return self.server.http("POST", path, body, headers)

    def stored(self, files, path=INPUT):
        status, headers, answer = self.upload(files, path)
        self.assertEqual((status, answer, headers["content-type"]), (200, b"{}", "application/json"))
        return headers

    def total(self, profile_type=CPU, service=None, more=""):
        return self.server.flamegraph(profile_type, '{service_name="%s"%s}' % (service or self.service, more), START, END).total

    def series(self, service):
        answer = self.server.connect("querier.v1.QuerierService/Series", {
            "matchers": ['{service_name="%s"}' % service], "start": START, "end": END})
        return [{label["name"]: label["value"] for label in one["labels"]} for one in answer.get("labelsSet", [])]

    # ---- recorded uploads ----

    def test_the_uploads_of_every_client_are_stored_with_all_their_types(self):
        ignored = ['hearth_datadog_ignored_files_total{name="%s"}' % name for name in ("metrics.json", "code-provenance.json")]
        before = [self.value(line) for line in ignored]
        for client, (service, labels, totals) in RECORDED.items():
            with self.subTest(client=client):
                headers, body = recorded(client)
                status, _, answer = self.server.http("POST", INPUT, body, headers)
                self.assertEqual((status, answer), (200, b"{}"))
                for profile_type, total in totals.items():
                    self.assertEqual(self.total(profile_type, service), total, profile_type)
                series = self.series(service)
                self.assertTrue(all(labels.items() <= one.items() for one in series), series)
                known = set(labels) | {"service_name", "trace_type", "allocator_domain", "event", "operation", "gc_type", "gc_reason"}
                self.assertEqual({n for one in series for n in one if not n.startswith("__")} - known, set())
        self.assertEqual([self.value(line) - n for line, n in zip(ignored, before)], [1, 1])

    @unittest.skipUnless((SHARED / "pprof").is_dir(), "the shared profiles are not here")
    def test_recorded_profiles_of_php_and_ruby_keep_their_sums(self):
        names = {"cpu-time": CPU, "wall-time": WALL, "sample": "wall:samples:count:wall:nanoseconds",
                 "cpu-samples": "process_cpu:samples:count:cpu:nanoseconds"}
        for name in ("php-wordpress-3-sample-types-uncompressed.pprof", "ruby-cpu-container-labels-uncompressed.pprof"):
            profile, service = (SHARED / "pprof" / name).read_bytes(), name.split("-")[0]
            decoded = Decoded(profile)
            self.stored([("event", "event.json", event(service)), ("auto.pprof", "auto.pprof", profile)])
            for k, (kind, _) in enumerate(decoded.sample_types):
                self.assertEqual(self.total(names[kind], service), sum(values[k] for _, values, _ in decoded.kept()), (name, kind))

    def test_spans_threads_and_endpoints_of_samples_can_be_queried(self):
        profile = cpu_profile((30, 40))
        self.stored([("event", "event.json", event(self.service)), ("profile.pprof", "profile.pprof", profile)])
        self.assertEqual((self.total(), self.total(WALL)), (70, 140))
        selection = {"labelSelector": '{service_name="%s"}' % self.service, "profileType": CPU, "start": START, "end": END}
        rows = self.server.connect("hearth.v1.QueryService/Top", {"selection": selection, "kind": "TOP_KIND_THREAD"})["rows"]
        self.assertEqual([(row["name"], row["total"]) for row in rows], [("worker", "70")])
        rows = self.server.connect("hearth.v1.TraceProfileService/TopSpans", {"selection": selection, "by": "SPANS_BY_ENDPOINT"})["rows"]
        self.assertEqual([(row["endpoint"], row["value"]) for row in rows], [("GET /orders", "70")])
        graph = self.server.connect("querier.v1.QuerierService/SelectMergeSpanProfile", {
            "profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % self.service, "spanSelector": ["%016x" % 101],
            "start": START, "end": END})["flamegraph"]
        self.assertEqual(graph["total"], "40")
        self.assertEqual(len({one.get("lock name") for one in self.series(self.service)}), 1, "a series for each lock")

    # ---- envelopes ----

    def test_parts_may_have_any_order_and_compression_and_the_intakes_any_path(self):
        profile, wrappers = cpu_profile(), {"plain": bytes, "gzip": gzip.compress, "lz4": lz4}
        for i, path in enumerate((INPUT, "/api/v2/profile", "/v1/input")):
            for name, wrap in wrappers.items():
                for is_last in (False, True):
                    service = "%s-%s-%s-%s" % (self.service, i, name, is_last)
                    with self.subTest(service=service):
                        files = [("event", "event.json", event(service)), ("auto.pprof", "auto.pprof", wrap(profile))]
                        self.stored(files[::-1] if is_last else files, path)
                        self.assertEqual(self.total(service=service), 30)

    def test_every_other_intake_takes_lz4_frames_too(self):
        packed = lz4(cpu_profile() + wire.encode([(9, T * MS)]))
        labels = {"__name__": "process_cpu", "service_name": self.service}
        self.server.push(packed, labels)
        for name in ("", "&format=pprof"):
            status, _, answer = self.server.http("POST", "/ingest?name=%s%s&from=%d" % (self.service, name, T), packed)
            self.assertEqual(status, 200, answer)
        self.assertEqual(self.total("process_cpu:cpu-time:nanoseconds::"), 3 * 30)

    def test_a_body_in_chunks_is_read(self):
        headers, body = form([("event", "event.json", event(self.service)), ("p", "wall.pprof", cpu_profile())])
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", INPUT, iter([body[:100], body[100:]]), headers, encode_chunked=True)
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.read()), (200, b"{}"))
        connection.close()
        self.assertEqual(self.total(), 30)

    def test_fields_of_version_3_are_stored_like_the_event(self):
        self.stored([
            ("version", None, b"3"), ("family", None, b"java"), ("format", None, b"pprof"),
            ("tags[]", None, b"service:" + self.service.encode()), ("tags[]", None, b"team:web"),
            ("recording-start", None, rfc3339(T).encode()), ("recording-end", None, rfc3339(T + 9000).encode()),
            ("chunk-data", "auto.pprof", cpu_profile()),
        ])
        self.assertEqual(self.total(more=',team="web",language="java"'), 30)

    def test_labels_that_the_program_has_set_make_series(self):
        profile = cpu_profile().replace(b"lock name", b"shop area")
        files = [("event", "event.json", event(self.service, custom_attributes=["shop area"])), ("p", "p.pprof", profile)]
        self.assertNotIn("unlisted_labels", self.stored(files).get("hearth-dropped", ""))
        self.assertEqual({one.get("shop_area") for one in self.series(self.service)}, {"queue.py:7"})

    # ---- refusals ----

    def refused(self, files, *parts, status=400):
        code, _, answer = self.upload(files)
        self.assertEqual(code, status, answer)
        for part in parts:
            self.assertIn(part, json.loads(answer)["message"])

    def test_an_event_that_cannot_be_read_is_refused(self):
        profile = ("p", "p.pprof", cpu_profile())
        for text, part in (
            (b"{", "event: invalid JSON at line 1"), (b'{"start":"yesterday"}', "start: "), (b'{"tags_profiler":7}', "is not a string"),
            (b"\x1f\x8b\x08broken", "gzip stream"), (b'{"a":[0' + b",[]" * 340_000 + b"]}", "memory limit"),
        ):
            with self.subTest(text=text):
                self.refused([("event", "event.json", text), profile], part)
        self.refused([profile], 'no part "event"')
        status, _, answer = self.server.http("POST", INPUT, b"{}", {"Content-Type": "application/json"})
        self.assertEqual(status, 400, answer)

    def test_an_attachment_that_cannot_be_read_is_refused_and_logged_and_the_others_are_stored(self):
        rejected = 'hearth_rejected_profiles_total{reason="invalid_argument",client="python"}'
        before = self.value(rejected)
        files = [("event", "event.json", event(self.service)), ("a", "broken.pprof", b"\x0a\xff"), ("b", "good.pprof", cpu_profile()),
                 ("c", "cut.pprof", gzip.compress(cpu_profile())[:-9])]
        self.refused(files, 'attachment "cut.pprof": gzip stream is truncated')
        self.assertEqual(self.total(), 30)
        self.assertEqual(self.value(rejected) - before, 2)
        line = eventually(lambda: [x for x in self.server.log().splitlines() if 'part=cut.pprof' in x], what="a line in the log")[-1]
        for part in ("route=/profiling/v1/input", "client=python", "truncated"):
            self.assertIn(part, line)

        def listed():
            errors = self.server.connect("hearth.v1.AdminService/IngestErrors", {}).get("errors", [])
            return [e for e in errors if "cut.pprof" in e["message"]]

        error = eventually(listed, what="the upload among the refused ones")[0]
        self.assertEqual((error["route"], error["client"]), (INPUT, "python"))

    def test_an_application_that_is_off_is_accepted_and_dropped(self):
        self.server.connect("hearth.v1.ApplicationService/Set", {"name": self.service, "profiling": "PROFILING_OFF"})
        headers = self.stored([("event", "event.json", event(self.service)), ("p", "cpu.pprof", cpu_profile())])
        self.assertEqual(headers["hearth-dropped"], "unlisted_labels=1, application_off=2")
        self.assertEqual(self.series(self.service), [])
        eventually(lambda: any(e["code"] == "permission_denied" and "switched off" in e["message"] for e in
                               self.server.connect("hearth.v1.AdminService/IngestErrors", {}).get("errors", [])))

    def test_an_upload_without_profiles_is_accepted(self):
        headers = self.stored([("event", "event.json", event(self.service)), ("metrics.json", "metrics.json", b"[]"),
                               ("p", "empty.pprof", b""), ("q", "notes.json", b"{}")])
        self.assertEqual(headers["hearth-dropped"], "missing_profiles=1")
        self.assertGreater(self.value('hearth_datadog_ignored_files_total{name="other"}'), 0)

    def test_a_bomb_stops_at_the_limit(self):
        files = [("event", "event.json", event(self.service)), ("p", "p.pprof", gzip.compress(bytes(70 << 20)))]
        self.refused(files, "max-request-bytes", status=413)

    # ---- the other routes of the agent ----

    def test_the_agent_endpoint_announces_that_it_takes_profiles(self):
        status, headers, body = self.server.http("GET", "/info")
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        self.assertIn(INPUT, json.loads(body)["endpoints"])

    def test_traces_and_telemetry_are_answered_dropped_and_counted(self):
        before = self.value("hearth_datadog_traces_dropped_total")
        large = bytes(3 << 20)
        for path, verb, code, answer in (
            ("/v0.4/traces", "PUT", 200, b'{"rate_by_service":{}}'), ("/v0.5/traces", "POST", 200, b'{"rate_by_service":{}}'),
            ("/v0.3/traces", "PUT", 200, b"OK\n"), ("/v0.6/stats", "PUT", 200, b"{}"), ("/v0.7/config", "POST", 200, b"{}"),
            ("/telemetry/proxy/api/v2/apmtelemetry", "POST", 202, b"{}"), ("/dogstatsd/v2/proxy", "POST", 200, b"{}"),
            ("/evp_proxy/v2/api/v2/citestcycle", "POST", 202, b"{}"), ("/debugger/v1/input", "POST", 200, b"{}"),
        ):
            for body in (b"", b"\x90", large):
                with self.subTest(path=path, n=len(body)):
                    status, headers, got = self.server.http(verb, path, body, {"X-Datadog-Trace-Count": "2"})
                    self.assertEqual((status, got), (code, answer))
                    self.assertNotEqual(headers.get("connection"), "close")
        self.assertEqual(self.value("hearth_datadog_traces_dropped_total") - before, 2 * 9 * 3)
        self.assertGreaterEqual(self.value('hearth_datadog_requests_dropped_total{kind="traces"}'), 9)
        self.assertEqual(self.server.http("DELETE", "/v0.4/traces")[0], 405)


class Oracle(unittest.TestCase):
    def test_the_profile_of_this_test_has_its_stated_contents(self):
        decoded = Decoded(cpu_profile((30, 40)))
        self.assertEqual(decoded.sample_types, [("cpu-time", "nanoseconds"), ("wall-time", "nanoseconds")])
        self.assertEqual([values for _, values, _ in decoded.samples], [[30, 60], [40, 80]])


if __name__ == "__main__":
    unittest.main()
