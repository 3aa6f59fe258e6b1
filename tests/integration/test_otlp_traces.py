"""Traces by OpenTelemetry's protocol: gRPC, HTTP with protobuf and JSON; what is kept of a span, what is left out and said."""

import base64
import gzip
import json
import time
import unittest
import zlib

import grpc

import otlp
import wire
from agents import Instance, snapshot, span as agents_span
from otlp import CLIENT, CONSUMER, ERROR, INTERNAL, JSON, MS, OK, PRODUCER, PROTO, SERVER, groups, new_span, new_trace, request, span
from server import RpcError, Server, now_ms

SHOP = {"service.name": "shop", "service.instance.id": "shop-1", "k8s.pod.name": "shop-abc", "process.pid": 7}
HOUR = 3600 * 1000 * MS


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--otlp-traces", "--multitenancy", "--agent-tenant", "anonymous", "--max-segment-spans", "50",
                            "--max-span-text-bytes", "64")
        cls.tenant = {"X-Scope-OrgID": "anonymous"}

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    # ---- asking ----

    def export(self, *resources, tenant="anonymous"):
        """Over gRPC; (rejected, why) of a partial success, else None."""
        answer, _ = self.server.grpc_bytes(otlp.EXPORT, request(*resources), [("x-scope-orgid", tenant)])
        return self.partial(answer)

    def partial(self, answer):
        found = wire.decode(answer)
        if not found:
            return None
        found = wire.decode(found[1][0])
        return found[1][0], found[2][0].decode()

    def post(self, body, content_type=PROTO, code=200, server=None, **headers):
        headers = {"Content-Type": content_type, **self.tenant, **headers}
        status, found, answer = (server or self.server).http("POST", "/v1/traces", body, headers)
        self.assertEqual(status, code, answer)
        self.assertEqual(found["content-type"], content_type if content_type in (PROTO, JSON) else JSON)
        return found, answer

    def one(self, trace):
        found = groups(self.server, trace)
        self.assertEqual(len(found), 1, found)
        return found[0], found[0]["spans"]()

    # ---- what is kept ----

    def test_fields_of_a_span_that_lead_to_profiles_are_kept(self):
        trace, root, child = new_trace(), new_span(), new_span()
        start = time.time_ns() - 5000 * MS + 123
        tags = {"http.route": "/cart/{id}", "hostname": "own", "user": "not kept", "pyroscope.profile.id": root.hex(),
                "pod": True, "cluster": 5, "namespace": ["a", 1], "service.version": {"major": 1.5, "rest": b"\x00\xff"}}
        spans = [
            span(trace, child, "SELECT", start + 3 * MS, start + 9 * MS, CLIENT, root, ERROR),
            span(trace, root, "GET /cart", start, start + 20 * MS, SERVER, b"", OK, tags),
            span(trace, None, "send", start + 4 * MS, start + 5 * MS, PRODUCER, root),
            span(trace, None, "take", start + 5 * MS, start + 6 * MS, CONSUMER, child),
            span(trace, None, "compute", start + 6 * MS, start + 7 * MS, INTERNAL, bytes(8)),
        ]
        self.assertIsNone(self.export((SHOP, spans)))
        group, stored = self.one(trace)
        self.assertEqual((group["service"], group["instance"], group["endpoint"]), ("shop", "shop-1", "GET /cart"))
        self.assertEqual((group["start"], group["duration"], group["kind"]), (start, 20 * MS, 1))
        self.assertEqual((group["flags"], group["n_spans"]), (1 | 2, 5))
        self.assertTrue(group["segment"].startswith(trace.hex()) and len(group["segment"]) == 48, group)
        number = lambda id: int.from_bytes(id, "big")
        inherited = {"k8s.pod.name": "shop-abc", "service.name": "shop"}
        self.assertEqual(stored[0], {
            "id": number(root), "parent": None, "kind": 1, "status": 1, "start": start, "end": start + 20 * MS,
            "name": "GET /cart", "tags": {
                **inherited, "cluster": "5", "hostname": "own", "namespace": '["a",1]', "pod": "true",
                "service.version": '{"major":1.5,"rest":"AP8="}', "http.route": "/cart/{id}",
                "pyroscope.profile.id": root.hex()}})
        self.assertEqual(stored[1], {
            "id": number(child), "parent": number(root), "kind": 2, "status": 2, "start": start + 3 * MS,
            "end": start + 9 * MS, "name": "SELECT", "tags": inherited})
        self.assertEqual([(s["name"], s["kind"], s["parent"]) for s in stored[2:]],
                         [("send", 3, number(root)), ("take", 4, number(child)), ("compute", 0, None)])

    def test_spans_have_the_service_and_instance_of_their_resource(self):
        trace = new_trace()
        self.assertIsNone(self.export(
            ({}, [span(trace, name="a")]),
            ({"service.name": "b", "host.name": "node", "k8s.pod.name": "pod"}, [span(trace, name="b"), span(new_trace())]),
            ({"service.name": "ä" * 600, "host.name": "node"}, [span(trace, name="c" * 100, tags={"hostname": "é" * 40})]),
        ))
        found = {g["endpoint"][:1]: g for g in groups(self.server, trace)}
        self.assertEqual((found["a"]["service"], found["a"]["instance"]), ("unknown_service", ""))
        self.assertEqual((found["b"]["service"], found["b"]["instance"]), ("b", "pod"))
        self.assertEqual((found["c"]["service"], found["c"]["instance"]), ("ä" * 512, "node"))
        cut = found["c"]["spans"]()[0]
        self.assertEqual((cut["name"], cut["tags"]["hostname"]), ("c" * 64, "é" * 32))
        self.assertIsNone(self.export(({"service.name": "b"}, [span(trace)]), tenant="other"))
        self.assertEqual(sorted(g["tenant"] for g in groups(self.server, trace)), ["anonymous"] * 3 + ["other"])

    def test_every_encoding_gives_equal_answers(self):
        spans = [span(new_trace(), name="one", tags={"pod": "x", "cluster": 7}, status=2, parent=new_span()) for _ in range(7)]
        proto = [request((SHOP, [s])) for s in spans]
        self.assertIsNone(self.export((SHOP, [spans[0]])))
        self.assertEqual(self.post(proto[1])[1], b"")
        self.assertEqual(self.post(gzip.compress(proto[2]), **{"Content-Encoding": "gzip"})[1], b"")
        self.assertEqual(self.post(zlib.compress(proto[3]), **{"Content-Encoding": "deflate"})[1], b"")
        self.assertEqual(json.loads(self.post(otlp.json_request((SHOP, [spans[4]])), JSON)[1]), {})
        in_base64 = otlp.json_request((SHOP, [spans[5]]), id_text=lambda id: base64.b64encode(id).decode())
        self.assertEqual(json.loads(self.post(gzip.compress(in_base64.encode()), JSON, **{"Content-Encoding": "gzip"})[1]), {})
        connect = json.loads(otlp.json_request((SHOP, [spans[6]])))
        connect = {"resource_spans": connect["resourceSpans"]}  # the other spelling of names, kinds by name, upper case
        as_sent = connect["resource_spans"][0]["scopeSpans"][0]["spans"][0]
        as_sent.update(kind="SPAN_KIND_SERVER", traceId=as_sent["traceId"].upper(), startTimeUnixNano=int(as_sent["startTimeUnixNano"]))
        self.assertEqual(self.server.connect(otlp.EXPORT, connect, self.tenant), {})
        for s in spans:
            group, stored = self.one(s["trace"])
            self.assertEqual((group["service"], group["start"], stored[0]["id"]), ("shop", s["start"], int.from_bytes(s["id"], "big")))
            self.assertEqual(stored[0]["tags"]["cluster"], "7")
            self.assertEqual((stored[0]["kind"], stored[0]["parent"]), (1, int.from_bytes(s["parent"], "big")))

    def test_messages_of_grpc_may_be_compressed_as_the_collector_does(self):
        for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            trace = new_trace()
            spans = [span(trace, name="n" * 60) for _ in range(40)]
            with grpc.insecure_channel("127.0.0.1:%d" % self.server.port, compression=compression) as channel:
                call = channel.unary_unary("/" + otlp.EXPORT)
                self.assertEqual(call(request((SHOP, spans)), timeout=30, metadata=[("x-scope-orgid", "anonymous")]), b"")
            self.assertEqual(self.one(trace)[0]["n_spans"], 40)

    # ---- once, and bounded ----

    def test_a_repeated_export_is_stored_once_and_never_hides_others(self):
        trace = new_trace()
        spans = [span(trace, name="n%d" % i, start=time.time_ns() - 1000 * MS + i * MS) for i in range(4)]
        for order in (spans, spans[::-1], spans):
            self.assertIsNone(self.export((SHOP, order)))
        self.assertEqual(self.one(trace)[0]["n_spans"], 4)
        self.assertIsNone(self.export((SHOP, spans[:2])))  # cut into requests otherwise
        found = groups(self.server, trace)
        self.assertEqual(sorted(g["n_spans"] for g in found), [2, 4])
        self.assertEqual(len({s["id"] for g in found for s in g["spans"]()}), 4)

    def test_many_spans_of_a_trace_are_several_rows(self):
        trace, start = new_trace(), time.time_ns() - 1000 * MS
        spans = [span(trace, name="n%d" % i, start=start + i * MS) for i in range(120)]
        self.assertIsNone(self.export((SHOP, spans)))
        found = groups(self.server, trace)
        self.assertEqual([g["n_spans"] for g in found], [50, 50, 20])
        self.assertEqual([s["name"] for g in found for s in g["spans"]()], ["n%d" % i for i in range(120)])

    def test_spans_out_of_range_are_left_out_and_wrong_ends_are_corrected(self):
        now = time.time_ns()
        kept = {"backwards": (now - 5 * MS, now - 9 * MS), "open": (now - 5 * MS, 0), "far end": (now - 5 * MS, (1 << 64) - 1)}
        out = [(now - 73 * HOUR, now), (now + HOUR, now + HOUR), (0, now), ((1 << 63) + 5, now), ((1 << 64) - 1, now), (1, 2)]
        trace = new_trace()
        spans = [span(trace, None, name, *times) for name, times in kept.items()] + [span(trace, None, "out", *t) for t in out]
        before = self.dropped("time")
        rejected, why = self.export((SHOP, spans))
        self.assertEqual((rejected, self.dropped("time") - before), (6, 6))
        self.assertEqual(why, "spans are not kept: 6 that did not begin within retain-spans or began in the future")
        stored = {s["name"]: s["end"] - s["start"] for s in self.one(trace)[1]}
        self.assertEqual((stored["backwards"], stored["open"]), (0, 0))
        self.assertTrue(0 < stored["far end"] < HOUR, stored)

    def dropped(self, reason):
        return self.server.metrics().get(("hearth_otlp_spans_dropped_total", (("reason", reason),)), 0)

    # ---- what is wrong ----

    def test_spans_without_ids_are_left_out_with_a_note(self):
        good, before = new_trace(), self.dropped("invalid")
        cases = [(good, new_span()), (good[:15], new_span()), (bytes(16), new_span()), (good, b""), (good, bytes(8)),
                 (good, new_span() + b"x")]
        spans = [span(*ids) for ids in cases] + [span(good, parent=b"abc")]
        for content_type, body in ((PROTO, request((SHOP, spans))), (JSON, otlp.json_request((SHOP, spans)))):
            _, answer = self.post(body, content_type)
            if content_type == PROTO:
                rejected, why = self.partial(answer)
            else:
                found = json.loads(answer)["partialSuccess"]
                rejected, why = int(found["rejectedSpans"]), found["errorMessage"]
            self.assertEqual(rejected, 6)
            self.assertEqual(why, "spans are not kept: 6 without valid ids (the first: resource_spans[0].scope_spans[0].spans[1]"
                                  ".trace_id has 15 bytes: 16 are needed, not all of them 0)")
        self.assertEqual(self.dropped("invalid") - before, 12)
        self.assertEqual(self.one(good)[0]["n_spans"], 1)

    def refused(self, body, content_type, code, number, *parts, **headers):
        found, answer = self.post(body, content_type, code, **headers)
        if found["content-type"] == PROTO:
            status = wire.decode(answer)
            said, message = status[1][0], status[2][0].decode()
        else:
            status = json.loads(answer)
            said, message = status["code"], status["message"]
        self.assertEqual(said, number, message)
        for part in parts:
            self.assertIn(part, message)
        return found

    def test_bad_requests_are_named_in_their_encoding(self):
        body = otlp.json_request((SHOP, [span(new_trace())]))
        where = "resourceSpans[0].scopeSpans[0].spans[0]."
        self.refused(body[:-5], JSON, 400, 3, "invalid JSON")
        self.refused(body.replace('"kind": 2', '"kind": []'), JSON, 400, 3, where + "kind: expected")
        self.refused(body.replace('"spanId": "', '"spanId": "%'), JSON, 400, 3, where + "spanId: expected an id in hexadecimal digits")
        self.refused("", JSON, 400, 3, "the JSON body is empty")
        self.refused(b"\x0a\xff", PROTO, 400, 3, "invalid protobuf")
        self.refused(b"\x1f\x8b123", PROTO, 400, 3, "gzip", **{"Content-Encoding": "gzip"})
        found = self.refused(body, "text/plain", 415, 3, '"text/plain"', PROTO, JSON)
        self.assertIn(PROTO, found["accept-post"])
        self.refused(body, JSON, 415, 3, '"br"', "zstd", **{"Content-Encoding": "br"})
        self.refused(body, JSON, 401, 16, "no org id", **{"X-Scope-OrgID": ""})
        self.assertEqual(self.server.http("GET", "/v1/traces")[0], 405)
        many = wire.encode([(2, [(1, bytes(16))])]) * 450_000  # of 10 MB; does not get better by waiting
        found = self.refused(wire.encode([(1, [(2, many)])]), PROTO, 413, 8, "max-request-bytes: send fewer at once")
        self.assertNotIn("retry-after", found)
        self.refused(b'{"resourceSpans": [' + b"{}," * 1_500_000 + b"{}]}", JSON, 413, 8, "send fewer at once")
        self.assertEqual(self.post(b"")[1], b"")  # an empty message

    def test_one_invalid_text_loses_no_spans(self):
        trace = new_trace()
        tags = {"hostname": "bad: 1234", "statement": "bad: 1234"}
        spans = [span(trace, name="good"), span(trace, name="bad: 1234", tags=tags)]
        self.assertEqual(self.post(request(({"service.name": "bad: 1234"}, spans)).replace(b"1234", b"\x00\xff\xc3z"))[1], b"")
        for id in (s["id"] for s in spans):  # two rows by JSON
            s = span(trace, id, "\0\ud83d", tags={"hostname": "\udc00 \U0001f600", "statement": "\0"})
            self.assertEqual(json.loads(self.post(otlp.json_request((SHOP, [s])), JSON)[1]), {})
        found = groups(self.server, trace)
        self.assertEqual([(g["service"], g["n_spans"]) for g in found], [("bad: ???z", 2), ("shop", 1), ("shop", 1)])
        stored = {s["name"]: s["tags"].get("hostname") for g in found for s in g["spans"]()}
        self.assertEqual(stored, {"good": None, "bad: ???z": "bad: ???z", "??": "? \U0001f600"})

    def test_many_new_services_need_few_statements(self):
        made = lambda: int(self.server.sql("SELECT version FROM hearth_data.catalog_clock")[0][0])
        before = made()
        names = ["many-%d" % i for i in range(2500)] * 2
        self.assertIsNone(self.export(*[({"service.name": name}, [span(new_trace())]) for name in names]))
        self.assertLess(made() - before, 10, "statements for thousands of services")
        stored = self.server.sql("SELECT count(DISTINCT s.name), sum(n_spans) FROM hearth_data.span_group JOIN hearth_data.service s"
                                 " USING (service_id) WHERE s.name LIKE 'many-%'")
        self.assertEqual(stored, [["2500", "5000"]])

    # ---- beside SkyWalking's ----

    def test_exported_spans_are_not_segments_of_agents(self):
        agent = Instance(self.server, "both", "both-1")
        agent.report()
        task = self.server.connect("hearth.v1.TaskService/CreateTask", {
            "kind": "TASK_KIND_TRACE", "service": "both", "endpoint": "/checkout", "durationMs": 60_000, "dumpPeriodMs": 10,
            "maxSamples": 5}, self.tenant)["task"]["taskId"]
        agent.query_tasks("skywalking.v3.ProfileTask/getProfileTaskCommands")
        trace = new_trace()
        resources = [({"service.name": "both", "service.instance.id": i}, [span(trace, name="/checkout", end=time.time_ns())])
                    for i in ("both-1", "both-2")]
        self.assertIsNone(self.export(*resources))
        instances = self.server.connect("hearth.v1.ProcessService/ListInstances", {"service": "both"}, self.tenant)["instances"]
        self.assertEqual([i["instance"] for i in instances], ["both-1"])
        self.assertEqual(len(groups(self.server, trace)), 2)
        agent.finish_task(task)
        explained = lambda: json.dumps(self.server.connect("hearth.v1.TaskService/GetTask", {"taskId": task}, self.tenant))
        self.assertNotIn("requests of /checkout", explained())
        start = now_ms()
        agent.send_segments(agent.segment(trace.hex(), "seg-" + task, [agents_span(0, "/checkout", start, start + 50)]))
        self.assertIn("1 requests of /checkout", explained())
        agent.send_snapshots(snapshot(task, "seg-" + task, 0, start, ["f"]))
        found = self.server.connect("hearth.v1.TaskService/ListSegments", {"taskId": task}, self.tenant)["segments"]
        self.assertEqual([(s["traceId"], [e["segmentId"] for e in s["spans"]]) for s in found], [(trace.hex(), ["seg-" + task])])

    # ---- options ----

    def test_the_intake_is_off_by_default_and_keeps_a_share_of_whole_traces(self):
        server = Server(database_url=self.server.postgres_url())
        try:
            spans = [span(new_trace())]
            with self.assertRaises(RpcError) as caught:
                server.grpc_bytes(otlp.EXPORT, request((SHOP, spans)))
            self.assertEqual(caught.exception.code, "unimplemented")
            self.assertIn("--otlp-traces", caught.exception.message)
            for content_type, body in ((PROTO, request((SHOP, spans))), (JSON, otlp.json_request((SHOP, spans)))):
                status, headers, answer = server.http("POST", "/v1/traces", body, {"Content-Type": content_type})
                self.assertEqual((status, headers["content-type"]), (404, content_type))
                self.assertIn(b"--otlp-traces", answer)
            server.stop()
            server.options = ["--otlp-traces", "--otlp-traces-ratio", "0.25", "--max-otlp-span-rate", "1000",
                              "--otlp-span-attributes", "mine", "--retain-spans", "1h"]
            server.start()
            self.keeps_a_part(server)
            self.refuses_too_many(server)
        finally:
            server.stop()

    def keeps_a_part(self, server):
        """The same traces whichever request or service their spans come from."""
        traces = [new_trace() for _ in range(200)]
        for service in ("part-a", "part-b"):
            body = request(({"service.name": service, "mine": "yes", "pod": "no"}, [span(t) for t in traces]))
            self.assertEqual(server.grpc_bytes(otlp.EXPORT, body)[0], b"")  # nothing was rejected
        kept = {s: {r[0] for r in server.sql(
            "SELECT encode(g.trace_id, 'hex') FROM hearth_data.span_group g JOIN hearth_data.service s USING (service_id)"
            " WHERE s.name = '%s'" % s)} for s in ("part-a", "part-b")}
        self.assertEqual(kept["part-a"], kept["part-b"])
        self.assertTrue(20 <= len(kept["part-a"]) <= 80, len(kept["part-a"]))
        dropped = server.metrics()[("hearth_otlp_spans_dropped_total", (("reason", "sampling"),))]
        self.assertEqual(dropped, 400 - 2 * len(kept["part-a"]))
        self.assertEqual(server.metrics()[("hearth_otlp_spans_total", ())], 400)
        stored = groups(server, bytes.fromhex(min(kept["part-a"])))
        self.assertEqual(stored[0]["spans"]()[0]["tags"], {"mine": "yes"})

    def refuses_too_many(self, server):
        body = request(({"service.name": "many"}, [span(new_trace(), start=time.time_ns() - 30 * 60 * 1000 * MS) for _ in range(6000)]))
        status, _, answer = server.http("POST", "/v1/traces", body, {"Content-Type": PROTO})
        self.assertEqual(status, 200, answer)
        partial = wire.decode(wire.decode(answer)[1][0])
        self.assertIn(b"beyond max-otlp-span-rate", partial[2][0])
        stored = int(server.sql("SELECT count(*) FROM hearth_data.span_group JOIN hearth_data.service s USING (service_id)"
                                " WHERE s.name = 'many'")[0][0])
        sampled = server.metrics()[("hearth_otlp_spans_dropped_total", (("reason", "sampling"),))]
        self.assertTrue(0 < stored < 1300 and partial[1][0] > 0, (stored, partial, sampled))
        old = request(({"service.name": "old"}, [span(new_trace(), start=time.time_ns() - 2 * HOUR) for _ in range(50)]))
        answer = server.grpc_bytes(otlp.EXPORT, old)[0]
        self.assertIn(b"retain-spans", wire.decode(wire.decode(answer)[1][0])[2][0])


if __name__ == "__main__":
    unittest.main()
