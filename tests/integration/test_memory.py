"""Memory that many share: what does not fit is refused with the option's name, and afterwards all is as before."""

import functools
import gzip
import json
import socket
import threading
import unittest

import prometheus
import wire
from pprof import Profile
from questions import CPU, QUERIER
from server import PUSH, Cluster, RpcError, Server, eventually, in_threads, now_ms

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
MERGE = QUERIER + "SelectMergeStacktraces"
STACKS = 30_000


@functools.lru_cache(None)  # a large one takes a second
def profile(n_stacks):
    p = Profile(TYPES)
    for i in range(n_stacks):
        p.add(["main", "group%d" % (i % 100), "function%d" % i], [1, 1 + i])
    return p.encode()


def labels(service):
    return {"__name__": "process_cpu", "service_name": service}


def merge(service, max_nodes=1_048_576):
    selector = '{service_name="%s"}' % service
    return wire.encode([(1, CPU), (2, selector), (3, now_ms() - 3_600_000), (4, now_ms() + 1000), (5, max_nodes)])


def push_request(data, service):
    pairs = [(1, [(1, n), (2, v)]) for n, v in labels(service).items()]
    return wire.encode([(1, pairs + [(2, [(1, data)])])])


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def start(self, *options):
        server = Server(*options, database_url=self.cluster.url())
        self.addCleanup(server.stop)
        return server

    def gauge(self, server, name):
        return prometheus.value(server.metrics(), name)

    def refused(self, server, method, request, option):
        with self.assertRaises(RpcError) as caught:
            server.grpc_bytes(method, request)
        self.assertIn(option, caught.exception.message)
        return caught.exception.code

    def test_a_query_that_all_queries_have_no_memory_for_is_refused_by_name_and_small_ones_are_answered(self):
        server = self.start("--queries-memory-bytes", "1m")
        server.push(profile(STACKS), labels("large"))
        server.push(profile(10), labels("small"))
        code = self.refused(server, MERGE, merge("large"), "queries-memory-bytes")
        self.assertEqual(code, "resource_exhausted")
        status, _, body = server.http("POST", "/" + MERGE, merge("large"), {"Content-Type": "application/proto"})
        self.assertEqual((status, json.loads(body)["code"]), (429, "resource_exhausted"))
        self.assertTrue(server.grpc_bytes(MERGE, merge("small"))[0])
        self.assertIn("large", server.label_values("service_name", now_ms() - 3_600_000, now_ms() + 1000))
        eventually(lambda: self.gauge(server, "hearth_query_memory_bytes") == 0, what="all memory is given back")

    def test_the_limit_of_one_query_is_named_where_it_is_the_one(self):
        server = self.start("--max-query-memory-bytes", "1m")
        server.push(profile(STACKS), labels("large"))
        self.assertEqual(self.refused(server, MERGE, merge("large"), "max-query-memory-bytes"), "resource_exhausted")

    def test_the_points_of_a_timeline_count_as_memory_of_its_query(self):
        # Hour by hour, so that what waits of one hour is small beside the points of all.
        small, large = self.start("--max-query-memory-bytes", "6m"), self.start()
        start, end = now_ms() - 24 * 3_600_000, now_ms()
        for hour in range(24):
            p = Profile(TYPES, time_ns=(start + hour * 3_600_000 + 1_800_000) * 1_000_000)
            for user in range(1000):
                p.add(["main"], [1, 1], {"user": "u%d" % user})
            large.push(p.encode(), labels("timeline"))
        question = {
            "selection": {"profileType": CPU, "labelSelector": '{service_name="timeline"}', "start": start, "end": end},
            "functions": ["main"], "step": 60, "groupBy": ["user"],
        }
        method = "hearth.v1.QueryService/FunctionTimeline"
        self.assertEqual(sum(len(s["points"]) for s in large.connect(method, question)["series"]), 24_000)
        with self.assertRaises(RpcError) as caught:
            small.connect(method, question)
        self.assertEqual(caught.exception.code, "resource_exhausted")
        self.assertIn("max-query-memory-bytes", caught.exception.message)

    def test_many_large_queries_at_once_are_answered_or_refused_and_then_each_is_answered(self):
        server = self.start("--queries-memory-bytes", "24m", "--query-threads", "12", "--readers", "12")
        server.push(profile(STACKS), labels("large"))
        expected = len(server.grpc_bytes(MERGE, merge("large"))[0])
        counts, lock = {"ok": 0, "refused": 0}, threading.Lock()

        def ask():
            # Until both have happened: how many meet is the machine's business.
            for n in range(60):
                if n >= 6 and counts["ok"] > 0 and counts["refused"] > 0:
                    break
                try:
                    self.assertEqual(len(server.grpc_bytes(MERGE, merge("large"))[0]), expected)
                    what = "ok"
                except RpcError as error:
                    self.assertEqual(error.code, "resource_exhausted")
                    self.assertIn("queries-memory-bytes", error.message)
                    what = "refused"
                with lock:
                    counts[what] += 1

        in_threads([ask] * 12)
        self.assertGreater(counts["ok"], 0)
        self.assertGreater(counts["refused"], 0)
        self.assertEqual(len(server.grpc_bytes(MERGE, merge("large"))[0]), expected)
        eventually(lambda: self.gauge(server, "hearth_query_memory_bytes") == 0, what="all memory is given back")

    def test_waiting_bodies_share_a_limit_and_are_freed_when_their_clients_disconnect(self):
        server = self.start("--push-memory-bytes", "5m")
        data = b"x" * 2_000_000  # nobody gets to look at it
        server.push(profile(10), labels("s"))
        head = "POST /%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/proto\r\nContent-Length: 4800000\r\n\r\n" % PUSH
        held = socket.create_connection(("127.0.0.1", server.port))
        self.addCleanup(held.close)
        held.sendall(head.encode() + b"\0" * 2_200_000)
        eventually(lambda: self.gauge(server, "hearth_push_memory_bytes") > 3_000_000, what="a body that is held")
        self.assertEqual(self.refused(server, PUSH, push_request(data, "s"), "push-memory-bytes"), "unavailable")
        with socket.create_connection(("127.0.0.1", server.port)) as late:
            late.sendall(head.encode())  # told before it sends its body
            answer = b"".join(iter(lambda: late.recv(4096), b"")).decode()
        self.assertTrue(answer.startswith("HTTP/1.1 503 "), answer)
        self.assertIn("push-memory-bytes", answer)
        self.assertIn("retry-after: 1", answer.lower())
        self.assertTrue(server.label_values("service_name", now_ms() - 3_600_000, now_ms() + 1000), "questions go on")
        held.close()
        eventually(lambda: self.gauge(server, "hearth_push_memory_bytes") < 1_000_000, what="its memory is given back")
        server.push(profile(10), labels("s"))

    def test_a_profile_that_can_never_be_decoded_is_refused_for_good_by_name(self):
        server = self.start("--push-memory-bytes", "4m")
        request = push_request(profile(STACKS), "s")
        # The memory of a request may be given back just after its answer: until then, others are told to come again.
        for path, headers, data, wanted in (
            ("/" + PUSH, {"Content-Type": "application/proto"}, request, 400),
            ("/ingest?name=s", {}, profile(STACKS), 422),
        ):
            ask = lambda: server.http("POST", path, data, headers)
            status, found, body = eventually(lambda: (lambda it: it[0] != 503 and it)(ask()), what="an answer for good")
            self.assertEqual(status, wanted, body)
            self.assertIn(b"push-memory-bytes", body)
            self.assertNotIn("retry-after", found)
        code = lambda: self.refused(server, PUSH, request, "push-memory-bytes")
        self.assertEqual(eventually(lambda: (lambda it: it != "unavailable" and it)(code())), "invalid_argument")
        server.push(profile(10), labels("s"))

    def test_a_body_that_can_never_be_held_is_refused_for_good_by_name(self):
        server = self.start("--push-memory-bytes", "1m")
        large = b"x" * 1_500_000
        for path, kind in (("/" + PUSH, "application/proto"), ("/ingest?name=s", "text/plain")):
            with self.subTest(path=path), socket.create_connection(("127.0.0.1", server.port)) as client:
                head = "POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: %s\r\nContent-Length: 1500000\r\n\r\n" % (path, kind)
                client.sendall(head.encode())  # told before it sends its body
                answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
                self.assertTrue(answer.startswith("HTTP/1.1 413 "), answer)
                self.assertIn("push-memory-bytes", answer)
                self.assertNotIn("retry-after", answer.lower())
            with self.subTest(path=path, body="gzip"):
                headers = {"Content-Type": kind, "Content-Encoding": "gzip"}
                status, found, answer = server.http("POST", path, gzip.compress(push_request(large, "s")), headers)
                self.assertEqual(status, 413, answer)
                self.assertIn(b"push-memory-bytes", answer)
                self.assertNotIn("retry-after", found)
        self.assertEqual(self.refused(server, PUSH, push_request(large, "s"), "push-memory-bytes"), "resource_exhausted")
        server.push(profile(10), labels("s"))
        eventually(lambda: self.gauge(server, "hearth_push_memory_bytes") < 1_000_000, what="its memory is given back")

    def test_label_indexes_that_do_not_fit_are_loaded_for_a_query_of_their_tenant(self):
        server = self.start("--multitenancy", "--label-index-bytes", "1")
        tenants = ["t%d" % i for i in range(4)]
        for tenant in tenants:
            server.push(profile(3), labels("of-" + tenant), metadata=[("x-scope-orgid", tenant)])

        def values(tenant):
            return server.label_values(
                "service_name", now_ms() - 3_600_000, now_ms() + 1000, metadata=[("x-scope-orgid", tenant)]
            )

        loads = self.gauge(server, "hearth_label_index_loads_total")
        eventually(lambda: values("nobody") == [] and self.gauge(server, "hearth_label_index_tenants") == 0, pause=0.3,
                   what="nothing is in memory")
        for tenant in tenants:
            self.assertEqual(values(tenant), ["of-" + tenant])
        self.assertGreaterEqual(self.gauge(server, "hearth_label_index_loads_total") - loads, len(tenants))

    def test_sample_types_are_bounded_like_the_values_of_labels(self):
        server = self.start()
        for types in ([("x" * 3000, "count")], [("alloc", "u" * 65_000)], [("a" * 1500, "u" * 1500)]):
            data = Profile(types, time_ns=now_ms() * 1_000_000).add(["main"], [1]).encode()
            self.assertEqual(self.refused(server, PUSH, push_request(data, "s"), "max-label-value-bytes"), "invalid_argument")
        server.push(profile(3), labels("s"))

    def test_a_tenant_whose_index_does_not_fit_gets_a_cut_answer_with_a_note(self):
        server = self.start("--label-index-bytes", "1m")
        for i in range(12):  # 64 types of 2 kB: 256 kB of index each
            types = [("%02d-%02d-" % (i, k) + "t" * 1900, "count") for k in range(64)]
            data = Profile(types, time_ns=now_ms() * 1_000_000).add(["main"], [1] * 64).encode()
            self.assertLess(len(gzip.compress(data)), 5000)
            server.push(data, labels("s%d" % i))
        self.assertLess(self.gauge(server, "hearth_label_index_bytes"), 1 << 20)
        start, end = now_ms() - 3_600_000, now_ms() + 1000
        request = wire.encode([(1, start), (2, end)])
        for method, asked in (("ProfileTypes", request), ("Series", wire.encode([(3, start), (4, end)]))):
            answer, found = server.grpc_bytes(QUERIER + method, asked)
            self.assertGreater(len(answer), 1000)
            self.assertIn("label-index-bytes", found["hearth-note"])
        self.assertLess(self.gauge(server, "hearth_label_index_bytes"), 1 << 20)
        # The operator is told, too, once.
        eventually(lambda: "more series than fit into label-index-bytes" in server.log(), what="the line in the log")
        self.assertEqual(server.log().count("more series than fit into label-index-bytes"), 1)

        # Also after the index was loaded as a whole; and pushes go on.
        server.push(profile(3), labels("s"))
        server.terminate()
        server.start()
        answer, found = server.grpc_bytes(QUERIER + "ProfileTypes", request)
        self.assertIn("label-index-bytes", found["hearth-note"])
        self.assertLess(self.gauge(server, "hearth_label_index_bytes"), 1 << 20)


if __name__ == "__main__":
    unittest.main()
