"""Requests that cross the end of the server: each is answered, or the client learns that it may try elsewhere."""

import collections
import contextlib
import http.client
import resource
import signal
import socket
import threading
import time
import unittest

import grpc

import raw_h2
import server
import wire
from raw_h2 import call_headers, frame

CHECK = "/grpc.health.v1.Health/Check"
NAMES = server.QUERIER + "LabelNames"
RANGE = wire.encode([(2, 1000), (3, 2000)])
CHANNELS, IN_FLIGHT = 6, 40
IDLE = 2000


class Caller:
    """Keeps IN_FLIGHT calls under way until one of them says that there is no server any more."""

    def __init__(self, port, method, body):
        self.channel = grpc.insecure_channel(
            "127.0.0.1:%d" % port, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        )
        self.call = self.channel.unary_unary(method)
        self.body, self.codes, self.lock = body, collections.Counter(), threading.Lock()
        self.n_open, self.is_over, self.done = 0, False, threading.Event()

    def start(self):
        for _ in range(IN_FLIGHT):
            self.next()

    def next(self):
        with self.lock:
            self.n_open += 1
        self.call.future(self.body, timeout=100).add_done_callback(self.note)

    def note(self, future):
        details = "" if future.code() is grpc.StatusCode.OK else future.details()
        with self.lock:
            self.codes[future.code(), details] += 1
            self.n_open -= 1
            self.is_over = self.is_over or future.code() is not grpc.StatusCode.OK
            if self.is_over:
                if self.n_open == 0:
                    self.done.set()
                return
        self.next()


class FrontStop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 2 * IDLE <= hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (2 * IDLE, hard))

    def setUp(self):
        self.server = server.Server()

    def tearDown(self):
        self.server.kill()

    def test_calls_that_cross_the_end_are_answered_or_unavailable(self):
        callers = [Caller(self.server.port, *((CHECK, b"") if i % 2 else ("/" + NAMES, RANGE))) for i in range(CHANNELS)]
        for caller in callers:
            caller.start()
        server.eventually(lambda: all(sum(c.codes.values()) > 200 for c in callers), what="calls under way")
        self.assertEqual(self.server.terminate(), 0)
        codes = collections.Counter()
        for caller in callers:
            self.assertTrue(caller.done.wait(100))
            caller.channel.close()
            codes += caller.codes
        others = {key: n for key, n in codes.items() if key[0] not in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE)}
        self.assertEqual(others, {}, codes)

    def test_http_requests_that_cross_the_end_are_told_that_the_server_stops(self):
        answers, ends = collections.Counter(), threading.Event()

        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=100)
            while not ends.is_set():
                try:
                    connection.request("POST", "/" + NAMES, RANGE, {"Content-Type": "application/proto"})
                    response = connection.getresponse()
                    body = response.read()
                except (OSError, http.client.HTTPException):
                    return  # the connection has ended
                answers[response.status] += 1
                if response.status != 200:
                    answers[body.decode()] += 1

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        server.eventually(lambda: answers[200] > 200, what="requests under way")
        self.assertEqual(self.server.terminate(), 0)
        ends.set()
        for thread in threads:
            thread.join()
        self.assertLessEqual(set(answers), {200, 503, '{"code":"unavailable","message":"the server is stopping"}'}, answers)

    def test_requests_of_connections_that_were_idle_are_answered_or_refused_until_the_end(self):
        """Each is the first for a while of its connection, so they reach the server at every moment of the stop."""
        first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        head = "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" % NAMES
        socks = []
        for _ in range(IDLE):
            socks.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=100))
            self.addCleanup(socks[-1].close)
            socks[-1].sendall(first)
            self.assertIn(b" 200 ", socks[-1].recv(65536))

        self.server.process.send_signal(signal.SIGTERM)
        answers = collections.Counter()
        for sock in socks:
            if self.server.process.poll() is not None:
                break
            try:
                sock.sendall(head.encode())
            except OSError:  # the connection has ended
                continue
            time.sleep(0.0005)
        self.server.process.wait(100)
        self.server.stop()
        for sock in socks:
            try:
                answer = sock.recv(65536)
            except OSError:
                continue
            answers[answer[9:12], b"the server is stopping" in answer] += 1 if answer else 0
        answers = {kind for kind, n in answers.items() if n > 0}
        self.assertLessEqual(answers, {(b"400", False), (b"503", True)})  # the range is missing
        self.assertNotIn("Sanitizer", self.server.log())

    def test_messages_of_calls_that_began_before_the_stop_may_come_at_any_moment_of_it(self):
        calls = [2 * i + 1 for i in range(250)]
        connections = [raw_h2.Connection(self.server.port, timeout=100) for _ in range(40)]
        for connection in connections:
            self.addCleanup(connection.socket.close)
            connection.greet()
            connection.send(b"".join(
                frame(raw_h2.HEADERS, raw_h2.END_HEADERS, call, call_headers("/" + NAMES)) for call in calls))
        # The server has read what came before a ping when it answers that.
        for connection in connections:
            connection.send(frame(raw_h2.PING, 0, 0, bytes(8)))
            while connection.read_frame()[:2] != (raw_h2.PING, raw_h2.ACK):
                pass

        self.server.process.send_signal(signal.SIGTERM)
        for call in calls:
            for connection in connections:
                with contextlib.suppress(OSError):  # it has ended
                    connection.send(frame(raw_h2.DATA, raw_h2.END_STREAM, call, raw_h2.message(b"")))
        self.server.process.wait(100)
        self.server.stop()
        self.assertNotIn("Sanitizer", self.server.log())


if __name__ == "__main__":
    unittest.main(verbosity=2)
