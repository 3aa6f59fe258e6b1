"""Traces of hearthd's own requests: what a receiver of OTLP gets, and what happens when it is not there."""

import http.server
import struct
import threading
import time
import unittest

import pprof
import prometheus
import server
import wire
from questions import QUERIER

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SERVER_KIND, INTERNAL_KIND, ERROR = 2, 1, 2


class Receiver:
    """POST /v1/traces: keeps the spans, as dicts."""

    def __init__(self):
        self.spans, self.resources = [], []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
                receiver.take(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/v1/traces" % self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @staticmethod
    def pairs(values):
        """KeyValue: 1 key, 2 value; AnyValue: 1 text."""
        found = {}
        for pair in map(wire.decode, values):
            found[pair[1][0].decode()] = wire.decode(pair[2][0])[1][0].decode()
        return found

    @staticmethod
    def time(decoded):
        """wire.py reads 64 fixed bits as a double."""
        return int.from_bytes(struct.pack("<d", decoded), "little")

    def take(self, body):
        """Span: 1 trace, 2 id, 4 parent, 5 name, 6 kind, 7 start, 8 end, 9 attributes, 15 status."""
        for of_resource in map(wire.decode, wire.decode(body)[1]):
            self.resources.append(self.pairs(wire.decode(of_resource[1][0])[1]))
            for scope in map(wire.decode, of_resource[2]):
                for span in map(wire.decode, scope[2]):
                    status = wire.decode(span[15][0]) if 15 in span else {}
                    self.spans.append({
                        "trace": span[1][0].hex(), "id": span[2][0].hex(), "parent": span.get(4, [b""])[0].hex(),
                        "name": span[5][0].decode(), "kind": span[6][0], "start": self.time(span[7][0]), "end": self.time(span[8][0]),
                        "status": status.get(3, [0])[0], **self.pairs(span.get(9, [])),
                    })

    def find(self, **wanted):
        return [span for span in list(self.spans) if all(span.get(key) == value for key, value in wanted.items())]

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class OwnTraces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def start(self, url, *options):
        running = server.Server("--trace-otlp-url", url, *options, database_url=self.cluster.url())
        self.addCleanup(running.stop)
        return running

    def ask(self, running, **headers):
        now = server.now_ms()
        fields = {"start": str(now - 60000), "end": str(now), "profile_typeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                  "label_selector": "{}"}
        return running.connect(QUERIER + "SelectMergeStacktraces", fields, headers)

    def test_a_receiver_gets_requests_with_their_steps(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        running = self.start(receiver.url)
        profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
        profile.add(["main"], [1])
        before_ns = time.time_ns()
        running.push(profile.encode(), {"__name__": "process_cpu", "service_name": "shop"})
        self.ask(running, **{"traceparent": "00-%s-%s-01" % (TRACE, SPAN), "x-request-id": "shop-7"})
        (query,) = server.eventually(lambda: receiver.find(trace=TRACE, kind=SERVER_KIND))

        # The query is a child of the caller's span.
        self.assertEqual(query["parent"], SPAN)
        self.assertEqual((query["name"], query["hearth.code"]), (QUERIER + "SelectMergeStacktraces", "ok"))
        self.assertEqual((query["hearth.request_id"], query["hearth.tenant"]), ("shop-7", "anonymous"))
        self.assertTrue(before_ns - 10**9 < query["start"] < query["end"] < time.time_ns() + 10**9, query)

        # Its steps lie within it; one is a statement.
        steps = receiver.find(trace=TRACE, kind=INTERNAL_KIND)
        self.assertLessEqual({"wait for a thread", "postgres", "encode the answer"}, {step["name"] for step in steps})
        for step in steps:
            self.assertEqual(step["parent"], query["id"])
            self.assertTrue(query["start"] <= step["start"] <= step["end"] <= query["end"], (step, query))
        self.assertEqual(len({span["id"] for span in receiver.spans}), len(receiver.spans))

        # The push began a trace of its own.
        (push,) = receiver.find(name=server.PUSH)
        self.assertEqual((push["parent"], len(push["trace"])), ("", 32))
        self.assertEqual(receiver.resources[0]["service.name"], "hearthd")

    def test_a_caller_that_does_not_record_is_not_recorded(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        running = self.start(receiver.url, "--trace-one-in", "1000000")
        self.ask(running)
        self.ask(running, traceparent="00-%s-%s-00" % (TRACE, SPAN))
        self.ask(running, traceparent="00-%s-%s-01" % (TRACE[::-1], SPAN))
        server.eventually(lambda: receiver.find(trace=TRACE[::-1], kind=SERVER_KIND))
        self.assertEqual(len([span for span in receiver.spans if span["kind"] == SERVER_KIND]), 1)

    def test_without_a_receiver_requests_go_on_and_spans_are_counted(self):
        running = self.start("http://127.0.0.1:1/v1/traces")
        for _ in range(5):
            self.ask(running)

        def failed():
            return prometheus.value(running.metrics(), "hearth_own_spans_total", outcome="failed")

        server.eventually(lambda: failed() >= 5)
        self.assertEqual(running.log().count("spans of own requests could not be sent"), 1)

    def test_a_hearthd_can_be_its_own_receiver(self):
        receiving = server.Server("--otlp-traces", database_url=self.cluster.url())
        self.addCleanup(receiving.stop)
        running = self.start("http://127.0.0.1:%d/v1/traces" % receiving.port)
        self.ask(running)
        server.eventually(lambda: prometheus.value(running.metrics(), "hearth_own_spans_total", outcome="sent") >= 1)
        self.assertGreaterEqual(prometheus.value(receiving.metrics(), "hearth_otlp_spans_total"), 1)

    def test_a_url_of_another_kind_is_refused(self):
        with self.assertRaises(AssertionError) as refused:
            server.Server("--trace-otlp-url", "localhost:4317")
        self.assertIn('trace-otlp-url \\"localhost:4317\\" does not begin with http:// or https://', str(refused.exception))


if __name__ == "__main__":
    unittest.main()
