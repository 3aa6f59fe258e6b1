"""What hearthd says of itself: OpenMetrics with exemplars, names of requests in answers and in the log."""

import json
import re
import shlex
import socket
import time
import unittest

import agents
import pprof
import prometheus
import server
import wire

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3"
LABELS = server.QUERIER + "LabelNames"
RANGE = {"start": "1", "end": "1000"}


class OwnMetrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--log-level", "debug")
        cls.addClassCleanup(cls.server.stop)

    def openmetrics(self):
        status, headers, body = self.server.http("GET", "/metrics", headers={"Accept": OPENMETRICS})
        self.assertEqual(status, 200)
        self.assertEqual(headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        return body.decode()

    def ask(self, **headers):
        """A query over Connect; the headers of its answer."""
        headers = {"Content-Type": "application/json", **headers}
        status, found, body = self.server.http("POST", "/" + LABELS, json.dumps(RANGE), headers)
        self.assertEqual(status, 200, body)
        return found

    def log_line(self, request_id):
        """The line of the request; it is written before the answer is sent."""
        for line in self.server.log().splitlines():
            if "request_id=" in line:
                fields = dict(word.split("=", 1) for word in shlex.split(line))
                if fields["request_id"] == request_id:
                    return fields
        self.fail("no line of the log has the request id %s" % request_id)

    def test_metrics_are_offered_as_openmetrics_with_exemplars(self):
        self.ask(traceparent="00-%s-%s-01" % (TRACE, SPAN))
        text = self.openmetrics()
        self.assertTrue(text.endswith("\n# EOF\n"))

        # The bucket that the request fell into names its trace.
        found = re.findall(r'^hearth_request_seconds_bucket\{method="%s",le="[0-9.]+"\} \d+ # (.*)$' % LABELS, text, re.M)
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r'^\{trace_id="%s"\} \d+\.\d{9} \d+\.\d{9}$' % TRACE)

        # A family has one type and one name; a counter's samples have its name and _total.
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        self.assertEqual(len(types), len(re.findall("^# TYPE ", text, re.M)))
        names = set(re.findall(r"^(\w+)", text, re.M))
        for family, kind in types.items():
            suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(kind, [""])
            for suffix in suffixes:
                self.assertFalse(family.endswith("_total"), family)
                if any(name.startswith(family) for name in names):
                    self.assertTrue(family + suffix in names or kind == "counter", family + suffix)

    def test_plain_prometheus_text_stays_the_default(self):
        status, headers, body = self.server.http("GET", "/metrics")
        self.assertEqual(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        prometheus.parse(body.decode())

    def test_a_failure_is_counted_by_method_and_code(self):
        before = prometheus.value(self.server.metrics(), "hearth_method_errors_total", method=LABELS, code="invalid_argument")
        with self.assertRaises(server.RpcError):
            self.server.connect(LABELS, {"start": "1000", "end": "0"})
        after = prometheus.value(self.server.metrics(), "hearth_method_errors_total", method=LABELS, code="invalid_argument")
        self.assertEqual(after - before, 1)

    def test_the_steps_of_a_push_have_times(self):
        names = [("hearth_ingest_stage_seconds_count", "stage", stage) for stage in ("inflate", "scan", "resolve", "encode")]
        names.append(("hearth_thread_wait_seconds_count", "pool", "ingest"))
        counts = lambda: [prometheus.value(metrics, name, **{key: of}) for name, key, of in names]
        metrics = self.server.metrics()
        before, commits = counts(), prometheus.value(metrics, "hearth_commit_seconds_count")
        profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns()).add(["main"], [1]).encode()
        for _ in range(3):
            self.server.push(profile, {"__name__": "process_cpu", "service_name": "steps"})
        metrics = self.server.metrics()
        self.assertEqual([after - n for after, n in zip(counts(), before)], [3] * len(names))
        self.assertEqual(prometheus.value(metrics, "hearth_commit_seconds_count") - commits, 3)
        waited = prometheus.value(metrics, "hearth_thread_wait_seconds_sum", pool="ingest")
        self.assertTrue(0 <= waited < 60, waited)

    def test_a_message_of_an_old_stream_has_not_waited_for_a_thread_since_the_stream_began(self):
        waited = lambda: prometheus.value(self.server.metrics(), "hearth_thread_wait_seconds_sum", pool="ingest")
        instance = agents.Instance(self.server, "old", "pod-1")

        def messages():
            for n in range(4):
                time.sleep(0.5)
                now = server.now_ms()
                yield wire.encode(instance.segment("trace-%d" % n, "segment-%d" % n, [agents.span(0, "GET /", now - 5, now)]))

        before = waited()
        self.server.stream_unary("skywalking.v3.TraceSegmentReportService/collect", messages())
        self.assertLess(waited() - before, 2)  # the ages of the stream at its messages are 0.5, 1, 1.5 and 2 s

    def test_the_time_in_which_a_body_comes_slowly_is_no_wait_for_a_thread_and_no_latency(self):
        def seconds():
            metrics = self.server.metrics()
            took = prometheus.value(metrics, "hearth_request_seconds_sum", method=LABELS)
            return took + prometheus.value(metrics, "hearth_thread_wait_seconds_sum", pool="query")

        self.ask()  # until then the method has no line
        body = json.dumps(RANGE).encode()
        head = "POST /%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        before = seconds()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as connection:
            connection.sendall((head % (LABELS, len(body))).encode() + body[:1])
            time.sleep(3)
            connection.sendall(body[1:])
            self.assertIn(b" 200 ", connection.recv(4096))
        self.assertLess(seconds() - before, 2)
        latest = self.server.connect("hearth.v1.AdminService/RecentQueries", {})["queries"][0]
        self.assertEqual(latest["method"], "/" + LABELS)
        self.assertLess(int(latest["tookUs"]), 2_000_000)

    def test_the_cpu_time_of_one_profile_in_eight_counts_for_all(self):
        stages = lambda: {
            dict(labels)["stage"]: n for (name, labels), n in self.server.metrics().items() if name == "hearth_ingest_cpu_seconds_total"
        }
        before = stages()
        profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
        for i in range(500):
            profile.add(["main", "f%d" % i], [1])
        labels = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, "cpu")])]
        samples = [(2, [(1, profile.encode())])] * 200  # none of them is measured once in 4e11 runs
        self.server.grpc_bytes(server.PUSH, wire.encode([(1, labels + samples)]))
        after = stages()
        spent = {stage: after[stage] - before[stage] for stage in after}
        self.assertTrue(all(n > 0 for n in spent.values()), spent)
        self.assertLess(sum(spent.values()), prometheus.value(self.server.metrics(), "process_cpu_seconds_total"))

    def test_tiers_add_up_to_the_disk(self):
        samples = server.eventually(
            lambda: (lambda m: m if prometheus.value(m, "hearth_disk_bytes") > 0 else None)(self.server.metrics())
        )
        tiers = {dict(labels)["tier"]: n for (name, labels), n in samples.items() if name == "hearth_tier_bytes"}
        self.assertEqual(sum(tiers.values()), prometheus.value(samples, "hearth_disk_bytes"))
        self.assertTrue(all(n > 0 for n in tiers.values()), tiers)

    def test_a_request_id_is_answered_logged_and_listed(self):
        # The client's, over HTTP; its trace is logged with it.
        found = self.ask(**{"X-Request-Id": "shop-42", "traceparent": "00-%s-%s-00" % (TRACE, SPAN)})
        self.assertEqual(found["x-request-id"], "shop-42")
        line = self.log_line("shop-42")
        self.assertEqual((line["method"], line["trace_id"], line["component"]), (LABELS, TRACE, "front"))

        # The client's, over gRPC, of a call that fails.
        with self.assertRaises(server.RpcError) as failed:
            self.server.grpc_bytes(LABELS, b"\xff", [("x-request-id", "shop-43")])
        self.assertEqual(failed.exception.metadata["x-request-id"], "shop-43")
        self.assertNotEqual(self.log_line("shop-43")["error"], "")

        # One that the server makes.
        made = self.ask()
        self.assertRegex(made["x-request-id"], "^[0-9a-f]{32}$")
        self.log_line(made["x-request-id"])
        queries = self.server.connect("hearth.v1.AdminService/RecentQueries", {})["queries"]
        self.assertIn(made["x-request-id"], [query["requestId"] for query in queries])

    def test_an_absurd_request_id_is_replaced(self):
        for absurd in ["x" * 65, 'a"b', "two words"]:
            found = self.ask(**{"X-Request-Id": absurd})
            self.assertRegex(found["x-request-id"], "^[0-9a-f]{32}$")


if __name__ == "__main__":
    unittest.main()
