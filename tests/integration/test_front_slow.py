"""Clients that are slow on purpose: they are cut, and meanwhile everybody else is served."""

import resource
import socket
import threading
import time
import unittest

import grpc

import prometheus
import raw_h2
import server
import wire
from pprof import Profile
from questions import CPU
from raw_h2 import call_headers, frame

CHECK = "/grpc.health.v1.Health/Check"
MAX_CONNECTIONS = 200
DIALS_A_ROUND = 50  # a decent client shares the processor with them, and must get to its first bytes meanwhile
GREETING = raw_h2.PREFACE + frame(raw_h2.SETTINGS, 0, 0) + frame(raw_h2.SETTINGS, raw_h2.ACK, 0)
PUSH_HEAD = ("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\n" % server.PUSH).encode()

# What a client begins with; then it brings a byte at a time.
SLOW = {
    "a request line": b"G",
    "a head": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a second head": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a body": PUSH_HEAD + b"Content-Length: 100000\r\n\r\n",
    "a chunk": PUSH_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n",
    "a preface": raw_h2.PREFACE[:10],
    "a first frame": raw_h2.PREFACE + b"\0\0",
    "a frame of headers": GREETING + frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, call_headers(CHECK))[:50],
    "a message":
        GREETING + frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, call_headers("/" + server.PUSH))
        + b"\0\1\0\0\0\0\0\0\1" + raw_h2.message(bytes(251))[:20],
}


class SlowClients:
    """Each sends a byte a time until it is cut, then begins again if it shall."""

    def __init__(self, port, beginnings, again):
        self.port, self.again, self.n_cut, self.ends = port, again, 0, False
        self.beginnings = beginnings
        self.sockets = [self.dial(beginning) for beginning in beginnings]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def dial(self, beginning):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=50)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock.sendall(beginning)
        except OSError:  # refused already
            pass
        sock.setblocking(False)
        return sock

    def run(self):
        while not self.ends:
            n_dialled = 0
            for i, sock in enumerate(self.sockets):
                try:
                    if sock is not None:
                        sock.send(b"x")
                except BlockingIOError:
                    pass
                except OSError:
                    self.n_cut += 1
                    sock.close()
                    self.sockets[i] = None
                if self.sockets[i] is None and self.again and n_dialled < DIALS_A_ROUND:
                    n_dialled += 1
                    self.sockets[i] = self.dial(self.beginnings[i])
            time.sleep(0.2)

    def stop(self):
        self.ends = True
        self.thread.join()
        for sock in self.sockets:
            if sock is not None:
                sock.close()


class FrontSlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 4096 <= hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
        cls.server = server.Server("--head-timeout", "2s", "--max-connections", str(MAX_CONNECTIONS))

    @classmethod
    def tearDownClass(cls):
        status = cls.server.terminate()
        log = cls.server.log()
        assert status == 0, "hearthd ended with %s:\n%s" % (status, log[-5000:])
        assert "Sanitizer" not in log, log[-5000:]

    def connections(self, label):
        text = self.server.http("GET", "/metrics")[2].decode()
        prefix = 'hearth_connections_total{protocol="%s"} ' % label
        return next((int(line[len(prefix):]) for line in text.splitlines() if line.startswith(prefix)), 0)

    def fresh_check(self):
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel("127.0.0.1:%d" % self.server.port, options=options) as channel:
            return wire.decode(channel.unary_unary(CHECK)(b"", timeout=50))

    def test_requests_that_arrive_byte_by_byte_are_cut(self):
        before = self.connections("slow")
        slow = SlowClients(self.server.port, list(SLOW.values()), again=False)
        try:
            server.eventually(lambda: slow.n_cut == len(SLOW), what="all slow clients cut")
        except AssertionError:
            left = [name for name, sock in zip(SLOW, slow.sockets) if sock is not None]
            raise AssertionError("not cut: %s" % left) from None
        finally:
            slow.stop()
        # What has not said yet which protocol it is has a timeout of its own, and gRPC closes what is no frame.
        self.assertGreaterEqual(self.connections("slow") - before, len(SLOW) - 3)
        self.assertIn("slower than head-timeout and min-body-rate allow", self.server.log())

    def test_slow_clients_do_not_lock_others_out(self):
        good = socket.create_connection(("127.0.0.1", self.server.port), timeout=50)
        self.ask(good)
        kinds = list(SLOW.values())
        crowd = [kinds[i % len(kinds)] for i in range(3 * MAX_CONNECTIONS)]
        slow = SlowClients(self.server.port, crowd, again=True)
        try:
            for _ in range(20):
                self.assertEqual(self.server.http("GET", "/healthz", timeout=50)[0], 200)
                self.assertEqual(self.fresh_check()[1], [1])
                self.ask(good)
                time.sleep(0.2)
            self.assertGreater(slow.n_cut, MAX_CONNECTIONS)
        finally:
            slow.stop()
            good.close()
        self.assertGreater(self.connections("displaced"), 0)

    def ask(self, sock):
        sock.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while b"ready" not in answer:
            more = sock.recv(65536)
            self.assertNotEqual(more, b"")
            answer += more

    def test_a_waiting_client_is_not_cut(self):
        before = self.connections("slow"), self.connections("displaced")
        idle = socket.create_connection(("127.0.0.1", self.server.port), timeout=50)
        self.ask(idle)
        fast = socket.create_connection(("127.0.0.1", self.server.port), timeout=50)
        n = 40000
        fast.sendall(PUSH_HEAD + b"Content-Length: %d\r\n\r\n" % n)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.keepalive_time_ms", 10000)]
        with grpc.insecure_channel("127.0.0.1:%d" % self.server.port, options=options) as channel:
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
            self.assertEqual(next(watch), b"\x08\x01")
            quiet = threading.Event()

            collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect").future(silence(quiet))
            # Three times the timeout, in which the body of the fast one goes on at its own pace.
            for at in range(0, n, n // 20):
                fast.sendall(bytes(n // 20))
                time.sleep(0.3)
            self.assertTrue(watch.is_active())
            self.assertFalse(collect.done())
            quiet.set()
            collect.result(timeout=50)
            watch.cancel()
        self.ask(idle)
        idle.close()
        self.assertIn(b"HTTP/1.1 ", fast.recv(65536))
        fast.close()
        self.assertEqual((self.connections("slow"), self.connections("displaced")), before)


class FrontWaits(unittest.TestCase):
    """Calls whose clients do not go on: HTTP/2 keeps them open as long as the client answers pings."""

    def start(self, *options):
        it = server.Server("--head-timeout", "2s", "--request-timeout", "2s", *options)
        self.addCleanup(it.stop)
        return it

    def open_calls(self, it, method, window, *frames_behind):
        """A connection with 50 calls of the method, each with the frames; and when it was opened."""
        connection = raw_h2.Connection(it.port, timeout=60)
        self.addCleanup(connection.socket.close)
        connection.greet((4, window))
        for stream in range(1, 100, 2):
            connection.send(frame(raw_h2.HEADERS, raw_h2.END_HEADERS, stream, call_headers(method)))
            connection.send(b"".join(frame(kind, flags, stream, body) for kind, flags, body in frames_behind))
        return connection, time.monotonic()

    def ended_calls(self, connection):
        """The streams that the server ended, until none of the 50 is left."""
        ended = set()
        while len(ended) < 50:
            got = connection.read_frame()
            self.assertIsNotNone(got, "the connection was closed")
            kind, flags, stream, _ = got
            if kind == raw_h2.SETTINGS and not flags & raw_h2.ACK:
                connection.send(frame(raw_h2.SETTINGS, raw_h2.ACK, 0))
            if kind == raw_h2.RST_STREAM or (kind == raw_h2.HEADERS and flags & raw_h2.END_STREAM):
                ended.add(stream)
        return ended

    def test_calls_whose_message_never_comes_are_ended_after_request_timeout(self):
        it = self.start()
        for method in ("/" + server.QUERIER + "LabelNames", "/" + server.PUSH, "/grpc.health.v1.Health/Watch"):
            with self.subTest(method):
                connection, since = self.open_calls(it, method, 65535)
                self.assertEqual(len(self.ended_calls(connection)), 50)
                self.assertGreater(time.monotonic() - since, 1.5)
        self.assertIn("sent no message within request-timeout", it.log())

    def test_answers_that_are_not_taken_are_dropped_and_their_memory_is_given_back(self):
        it = self.start("--min-body-rate", "1000000")
        it.push(profile(), {"__name__": "process_cpu", "service_name": "large"})
        question = wire.encode([
            (1, CPU), (2, '{service_name="large"}'), (3, server.now_ms() - 3_600_000), (4, server.now_ms() + 1000),
            (5, 1_048_576),
        ])
        method = server.QUERIER + "SelectMergeStacktraces"
        self.assertGreater(len(it.grpc_bytes(method, question)[0]), 100_000)
        memory = lambda: prometheus.value(it.metrics(), "hearth_query_memory_bytes")
        connection, _ = self.open_calls(
            it, "/" + method, 0, (raw_h2.DATA, raw_h2.END_STREAM, raw_h2.message(question)))
        server.eventually(lambda: memory() > 1_000_000, what="answers that wait for their client")
        self.assertEqual(len(self.ended_calls(connection)), 50)
        server.eventually(lambda: memory() == 0, what="their memory is given back")
        self.assertTrue(it.grpc_bytes(method, question)[0])
        self.assertIn("took the answer more slowly than min-body-rate", it.log())


def profile():
    p = Profile([("samples", "count"), ("cpu", "nanoseconds")])
    for i in range(5000):
        p.add(["main", "group%d" % (i % 100), "function%d" % i], [1, 1 + i])
    return p.encode()


def silence(quiet):
    """A stream that says nothing until it ends."""
    quiet.wait()
    return
    yield


if __name__ == "__main__":
    unittest.main(verbosity=2)
