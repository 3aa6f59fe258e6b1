"""Pushes while the database does not answer: how long they wait, and what their clients are told."""

import contextlib
import json
import os
import signal
import socket
import time
import unittest

import otlp_profiles
import prometheus
import wire
from pprof import Profile
from server import PROFILES, PUSH, RpcError, Server, Session, eventually, now_ms

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]


def request(service, id="", at_ms=None):
    profile = Profile(TYPES, time_ns=(at_ms or now_ms()) * 1_000_000).add(["main", "work"], [1, 10]).encode()
    pairs = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, service)])]
    sample = [(1, profile)] + ([(2, id)] if id else [])
    return wire.encode([(1, pairs + [(2, sample)])])


class DatabaseAway(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--request-timeout", "5s")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]
        self.server.connect_proto(PUSH, request(self.service))  # the series is known
        self.stopped, self.session = [], None

    def tearDown(self):
        self.let_go()

    def processes(self):
        """Of PostgreSQL: the postmaster and all that it has started."""
        postmaster = self.server.postmaster_pid()
        with open("/proc/%d/task/%d/children" % (postmaster, postmaster)) as children:
            return [postmaster] + [int(pid) for pid in children.read().split()]

    def hold(self):
        """From here on the database takes connections and bytes, and answers nothing."""
        self.stopped = self.processes()
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):  # a worker that has just ended
                os.kill(pid, signal.SIGSTOP)

    def hold_one(self, push):
        """Run push() and keep its transaction from going on: it may be stored, whatever comes behind it waits."""
        self.session = Session(self.server.postgres_url())
        self.session.run("BEGIN; LOCK hearth_data.ingest_batch IN EXCLUSIVE MODE")
        pushed = push()
        # The push, not housekeeping, which deletes rows of the same table soon after the start.
        eventually(lambda: self.server.sql(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INTO hearth_data.ingest_batch%'"
        ), what="the commit at the lock")
        return pushed

    def let_go(self):
        if self.session:
            self.session.run("ROLLBACK")
            self.session.close()
            self.session = None
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):  # it was about to end
                os.kill(pid, signal.SIGCONT)
        self.stopped = []

    def n_rows(self):
        found = self.server.sql(
            "SELECT count(*) FROM %s JOIN hearth_data.service USING (service_id) WHERE name = '%s'" % (PROFILES, self.service)
        )
        return int(found[0][0])

    def refused(self, headers=None, id=""):
        """The error of one push, and how long it took."""
        began = time.monotonic()
        with self.assertRaises(RpcError) as caught:
            self.server.connect_proto(PUSH, request(self.service, id), headers, timeout=60)
        return caught.exception, time.monotonic() - began

    def begin_push(self):
        """A push whose client can leave: its socket."""
        body = request(self.service)
        s = socket.create_connection(("127.0.0.1", self.server.port))
        head = "POST /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/proto\r\nContent-Length: %d\r\n\r\n"
        s.sendall((head % (PUSH, len(body))).encode() + body)
        return s

    def queued_rows(self):
        return prometheus.value(self.server.metrics(), "hearth_commit_queue_rows")

    def test_a_push_ends_at_its_deadline_and_reports_whether_it_may_be_stored(self):
        in_doubt = self.hold_one(self.begin_push)
        error, took = self.refused({"Connect-Timeout-Ms": "1500"})
        self.assertEqual((error.code, error.http_status), ("unavailable", 503))
        self.assertEqual(error.metadata["retry-after"], "1")
        self.assertIn("will not be stored", error.message)
        self.assertGreater(took, 1)
        answer = self.read_all(in_doubt)  # at request-timeout
        self.assertIn(b"503 Service Unavailable", answer)
        self.assertIn(b"may still be stored", answer)
        self.let_go()
        eventually(lambda: self.n_rows() == 2, what="the one that was in doubt")
        eventually(lambda: self.queued_rows() == 0)
        self.assertEqual(self.n_rows(), 2)

    def test_a_grpc_deadline_ends_with_unavailable_and_a_pushback(self):
        self.hold()
        for timeout in (2, 20):  # the client's; the server's
            with self.assertRaises(RpcError) as caught:
                self.server.grpc_bytes(PUSH, request(self.service), timeout=timeout)
            self.assertEqual(caught.exception.code, "unavailable", caught.exception.message)
            self.assertEqual(caught.exception.metadata["grpc-retry-pushback-ms"], "1000")
            self.assertIn("deadline", caught.exception.message)

    def test_an_upload_to_ingest_ends_at_the_request_timeout(self):
        self.hold()
        status, found, body = self.server.http(
            "POST", "/ingest?name=%s" % self.service, b"main;work 3\n", {"Content-Type": "text/plain"}, timeout=60
        )
        self.assertEqual((status, found["retry-after"]), (503, "1"), body)
        self.assertIn("deadline", json.loads(body)["message"])

    def test_a_repeated_export_by_otlp_is_stored_once(self):
        e = otlp_profiles.Exporter()
        samples = [e.sample(e.stack("work"), [1, 2], [1, 2])]
        profile = e.cpu(now_ms() * 1_000_000, samples, profileId="00112233445566778899aabbccddeeff")
        body = otlp_profiles.to_proto(e.resource({"service.name": self.service}, profile).export())

        def export():
            headers = {"Content-Type": otlp_profiles.PROTO}
            return self.server.http("POST", otlp_profiles.PATH, body, headers, timeout=60)

        self.hold()
        status, found, answer = export()
        self.assertEqual((status, found["retry-after"], wire.decode(answer)[1]), (503, "1", [14]), answer)
        self.let_go()
        for _ in range(2):
            self.assertEqual(export()[0::2], (200, b""))
        eventually(lambda: self.queued_rows() == 0)
        self.assertEqual(self.n_rows(), 2)

    def test_queued_profiles_of_a_disconnected_client_are_not_stored(self):
        in_doubt = self.hold_one(self.begin_push)
        gone = [self.begin_push() for _ in range(5)]
        eventually(lambda: self.queued_rows() == 6)
        for s in gone:
            s.close()
        eventually(lambda: self.queued_rows() == 1, what="withdrawing")
        in_doubt.close()
        self.let_go()
        eventually(lambda: self.queued_rows() == 0)
        self.assertEqual(self.n_rows(), 2)

    def test_a_repeat_with_the_same_id_adds_no_row(self):
        self.hold()
        error, _ = self.refused(id="sample-1")
        self.assertIn("may still be stored", error.message)
        self.let_go()
        self.server.connect_proto(PUSH, request(self.service, "sample-1"))
        self.assertEqual(self.n_rows(), 2)

    def test_a_stopping_server_reports_the_fate_of_its_pushes(self):
        server = Server("--shutdown-timeout", "2s", "--request-timeout", "60s")
        self.server, kept = server, self.server
        try:
            server.connect_proto(PUSH, request(self.service))
            in_doubt = self.hold_one(self.begin_push)
            queued = self.begin_push()
            eventually(lambda: self.queued_rows() == 2)
            server.process.send_signal(signal.SIGTERM)
            self.assertIn(b"may still be stored", self.read_all(in_doubt))
            self.assertIn(b"will not be stored", self.read_all(queued))
        finally:
            self.server = kept
        self.session.close()
        self.session = None
        self.assertEqual(server.process.wait(120), 0)

    @staticmethod
    def read_all(s):
        s.settimeout(60)
        data = b""
        while piece := s.recv(4096):
            data += piece
        s.close()
        return data


if __name__ == "__main__":
    unittest.main()
