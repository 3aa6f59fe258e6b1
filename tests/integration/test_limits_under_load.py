"""A database that does not keep up, clients that go away: refused with a hint, recovered from, cancelled."""

import contextlib
import http.client
import json
import socket
import threading
import time
import unittest

import grpc

import prometheus
import wire
from pprof import Profile
from questions import CPU
from server import PUSH, QUERIER, Cluster, RpcError, Server, Session, eventually, in_threads, now_ms

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
LABELS = {"__name__": "process_cpu", "service_name": "s"}
QUEUE_ROWS = 5


def one(value=1):
    return Profile(TYPES).add(["main"], [1, value]).encode()


def push_request(profile, labels=LABELS):
    pairs = [(1, [(1, n), (2, v)]) for n, v in labels.items()]
    return wire.encode([(1, pairs + [(2, [(1, profile)])])])


class UnderLoad(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        # Without background work: it reads the tables that these tests lock, whenever ten minutes end.
        cls.server = Server("--max-queue-rows", str(QUEUE_ROWS), "--builder=false", database_url=cls.cluster.url())
        cls.server.push(one(), LABELS)  # the series is known: only the commit needs the database

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    def queued(self):
        return prometheus.value(self.server.metrics(), "hearth_commit_queue_rows")

    def total(self):
        return self.server.flamegraph(CPU, "{}", now_ms() - 3_600_000, now_ms() + 1000).total

    def fill(self):
        """Pushes that wait for their commit; the threads and their results."""
        results = []

        def push():
            try:
                self.server.grpc_bytes(PUSH, push_request(one()), timeout=60)
                results.append("ok")
            except RpcError as error:
                results.append(error.code)

        threads = [threading.Thread(target=push) for _ in range(QUEUE_ROWS)]
        for thread in threads:
            thread.start()
        eventually(lambda: self.queued() == QUEUE_ROWS, what="a full queue")
        return threads, results

    # ---- back-pressure ----

    def test_a_full_queue_is_unavailable_with_a_hint_and_ends_with_the_pause(self):
        before = self.total()
        with self.server.paused_database():
            threads, results = self.fill()
            with self.assertRaises(RpcError) as caught:
                self.server.grpc_bytes(PUSH, push_request(one()))
            self.assertEqual(caught.exception.code, "unavailable")
            self.assertIn("max-queue-rows 5", caught.exception.message)
            self.assertGreater(int(caught.exception.metadata["grpc-retry-pushback-ms"]), 0)
            status, headers, body = self.server.http(
                "POST", "/" + PUSH, push_request(one()), {"Content-Type": "application/proto"}
            )
            self.assertEqual(status, 503)
            self.assertGreater(int(headers["retry-after"]), 0)
            self.assertEqual(json.loads(body)["code"], "unavailable")
            # It lives and says so meanwhile.
            self.assertEqual(self.server.http("GET", "/healthz")[0], 200)
            self.assertEqual(results, [], "nobody was answered before the commit")
        for thread in threads:
            thread.join(60)
        self.assertEqual(results, ["ok"] * QUEUE_ROWS)
        self.server.push(one(), LABELS)
        self.assertEqual(self.total() - before, QUEUE_ROWS + 1, "what was refused is not stored")
        self.assertEqual(self.queued(), 0)

    def test_a_push_whose_client_gave_up_is_stored_at_most_once(self):
        before = self.total()
        with self.server.paused_database():
            with self.assertRaises(RpcError) as caught:
                self.server.grpc_bytes(PUSH, push_request(one(1)), timeout=0.5)
        # The server answers shortly before the deadline; on a slow machine gRPC's own timer is first.
        self.assertIn(caught.exception.code, ("unavailable", "deadline_exceeded"))
        eventually(lambda: self.queued() == 0, what="an empty queue")
        is_ruled_out = "nothing of it will be stored" in str(caught.exception)
        self.assertIn(self.total() - before, (0,) if is_ruled_out else (0, 1))

    def test_a_burst_beyond_the_queue_loses_nothing_it_acknowledged(self):
        before = self.total()
        counts = {"ok": 0, "unavailable": 0}
        lock = threading.Lock()

        def burst():
            for _ in range(40):
                try:
                    self.server.grpc_bytes(PUSH, push_request(one()))
                    code = "ok"
                except RpcError as error:
                    code = error.code
                with lock:
                    counts[code] += 1

        in_threads([burst] * 12)
        self.assertEqual(sum(counts.values()), 480)
        self.assertEqual(self.total() - before, counts["ok"])

    # ---- cancellation ----

    def running(self):
        """Statements of hearthd that read profiles or wait to."""
        return self.server.sql(
            "SELECT pid, query FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid()"
            " AND query LIKE '%hearth_data.profile%' AND query NOT LIKE 'LOCK%' AND backend_type = 'client backend'"
        )

    @contextlib.contextmanager
    def locked_profiles(self):
        session = Session(self.cluster.url())
        session.run("BEGIN; LOCK TABLE hearth_data.profile IN ACCESS EXCLUSIVE MODE")
        try:
            yield
        finally:
            session.close()

    def merge_request(self):
        return wire.encode([(1, CPU), (2, "{}"), (3, now_ms() - 3_600_000), (4, now_ms())])

    def test_a_grpc_client_that_cancels_leaves_no_query_behind(self):
        with self.locked_profiles():
            call = self.server.channel.unary_unary("/" + QUERIER + "SelectMergeProfile").future(self.merge_request(), timeout=60)
            eventually(self.running, what="the query runs")
            call.cancel()
            eventually(lambda: not self.running(), 10, what="the query ends")
        self.total()

    def test_a_grpc_client_that_dies_leaves_no_query_behind(self):
        with self.locked_profiles():
            channel = grpc.insecure_channel("127.0.0.1:%d" % self.server.port, [("grpc.use_local_subchannel_pool", 1)])
            call = channel.unary_unary("/" + QUERIER + "SelectMergeStacktraces").future(self.merge_request(), timeout=60)
            eventually(self.running, what="the query runs")
            channel.close()
            eventually(lambda: not self.running(), 10, what="the query ends")
            self.assertTrue(call.done())
        self.total()

    def test_an_http_client_that_disconnects_leaves_no_query_behind(self):
        with self.locked_profiles():
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
            connection.request(
                "POST", "/" + QUERIER + "SelectMergeProfile", self.merge_request(), {"Content-Type": "application/proto"}
            )
            eventually(self.running, what="the query runs")
            connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
            eventually(lambda: not self.running(), 10, what="the query ends")
        self.total()

    def test_a_deadline_ends_the_query_in_the_database_too(self):
        with self.locked_profiles():
            start = time.monotonic()
            with self.assertRaises(RpcError) as caught:
                self.server.grpc_bytes(QUERIER + "SelectMergeProfile", self.merge_request(), timeout=1)
            self.assertEqual(caught.exception.code, "deadline_exceeded")
            status, _, body = self.server.http(
                "POST", "/" + QUERIER + "SelectMergeProfile", self.merge_request(),
                {"Content-Type": "application/proto", "Connect-Timeout-Ms": "700"},
            )
            self.assertEqual((status, json.loads(body)["code"]), (504, "deadline_exceeded"))
            self.assertLess(time.monotonic() - start, 40)
            eventually(lambda: not self.running(), 10, what="the query ends")
        self.total()

    def test_readers_that_wait_do_not_stop_other_requests(self):
        with self.locked_profiles():
            calls = [
                self.server.channel.unary_unary("/" + QUERIER + "SelectMergeProfile").future(self.merge_request(), timeout=30)
                for _ in range(2)
            ]
            eventually(lambda: len(self.running()) == 2, what="the queries run")
            self.assertEqual(self.server.http("GET", "/ready")[0], 200)
            self.assertEqual(self.server.label_values("service_name", now_ms() - 3_600_000, now_ms()), ["s"])
        for call in calls:
            self.assertTrue(call.result(timeout=30))


if __name__ == "__main__":
    unittest.main()
