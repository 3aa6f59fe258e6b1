"""Requests that cross the end of the server: each is answered, or the client learns that it may try elsewhere."""

import collections
import http.client
import threading
import unittest

import grpc

import server
import wire

CHECK = "/grpc.health.v1.Health/Check"
NAMES = server.QUERIER + "LabelNames"
RANGE = wire.encode([(2, 1000), (3, 2000)])
CHANNELS, IN_FLIGHT = 6, 40


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


if __name__ == "__main__":
    unittest.main(verbosity=2)
