"""Many streams at once, as a fleet of agents has them: hundreds that are quiet, dozens that send, clients that are killed,
a server that stops. Run with a port and a number it is such a client: streams that send without end."""

import os
import subprocess
import sys
import threading
import time
import unittest

import grpc

import server
from test_streams import EVENTS, NO_DATABASE, Sender, event

IDLE, SENDING = 200, 50
MB = 1 << 20


def own_connection(port):
    return grpc.insecure_channel("127.0.0.1:%d" % port, options=[("grpc.use_local_subchannel_pool", 1)])


def send_without_end(port, n):
    channel = own_connection(port)

    def messages():
        while True:
            yield event(1)
            time.sleep(0.01)

    calls = [channel.stream_unary("/" + EVENTS).future(messages()) for _ in range(n)]
    codes = {call.exception().code() for call in calls}
    os._exit(0 if codes == {grpc.StatusCode.UNAVAILABLE} else 1)  # the messages' threads never end


class Stress(unittest.TestCase):
    def setUp(self):
        self.server = server.Server("--log-level", "debug", database_url=NO_DATABASE, wait=False)
        self.channels = [own_connection(self.server.port) for _ in range(4)]

    def tearDown(self):
        for channel in self.channels:
            channel.close()
        self.server.stop()

    def value(self, name, *labels):
        return self.server.metrics().get((name, labels), 0)

    def open_streams(self):
        return self.value("hearth_open_streams", ("method", EVENTS))

    def handled(self):
        return self.value("hearth_stream_messages_total", ("method", EVENTS))

    def rss(self):
        with open("/proc/%d/status" % self.server.process.pid) as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))

    def clients(self, n):
        command = [sys.executable, __file__, str(self.server.port), str(n)]
        clients = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
        self.addCleanup(lambda: [c.kill() for c in clients])
        return clients

    def test_a_fleet_of_streams_is_quiet_sends_is_killed_and_is_drained(self):
        before = self.rss()
        large = event(1) + b"\x2a\xa0\x8d\x06" + b"x" * 100_000  # message = 5, 100,000 bytes
        idle = [Sender(self.channels[i % 4]).send(large) for i in range(IDLE)]
        server.eventually(lambda: self.handled() == IDLE, what="a large message of each")
        server.eventually(lambda: self.value("hearth_push_memory_bytes") == 0, what="their memory is given back")
        # Some 16 KB of gRPC's for each stream, and what the heap keeps; not the 20 MB of their messages.
        self.assertLess((self.rss() - before) / MB, 40 * server.MEMORY_FACTOR)

        clients = self.clients(SENDING // 2)
        server.eventually(lambda: self.open_streams() == IDLE + SENDING, what="those that send")
        handled = self.handled()
        server.eventually(lambda: self.handled() > handled + 500, what="what they send")
        for client in clients:
            client.kill()
            client.wait()
        server.eventually(lambda: self.open_streams() == IDLE, what="the end of what killed clients had open")
        self.assertFalse([s for s in idle if s.call.done()])

        sending = self.clients(SENDING // 2)
        server.eventually(lambda: self.open_streams() == IDLE + SENDING, what="those that send again")
        started = time.monotonic()
        self.server.process.send_signal(server.signal.SIGTERM)
        for sender in idle:
            code, text = sender.error()
            self.assertEqual(code, grpc.StatusCode.UNAVAILABLE, text)
        for client in sending:
            self.assertEqual(client.wait(30), 0, "all of its streams ended with unavailable")
        self.assertEqual(self.server.process.wait(30), 0)
        self.assertLess(time.monotonic() - started, 15)  # not the 20 s of shutdown-timeout

    def test_messages_are_handled_in_the_order_in_which_they_are_sent(self):
        """The 7,001st cannot be read: what was handled are the 7,000 before it."""
        call = self.channels[0].stream_unary("/" + EVENTS)
        with self.assertRaises(grpc.RpcError) as raised:
            call((b"\xff" if i == 7_000 else event(i) for i in range(10_000)), timeout=60)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.handled(), 7_000)

    def test_streams_without_messages_begin_and_end(self):
        def some(channel):
            call = channel.stream_unary("/" + EVENTS)
            for _ in range(100):
                self.assertEqual(call(iter([]), timeout=30), b"")

        server.in_threads([lambda c=channel: some(c) for channel in self.channels])
        self.assertEqual((self.handled(), self.open_streams()), (0, 0))

    def test_clients_that_break_off_at_any_moment_leave_nothing_open(self):
        def some(channel, seed):
            for i in range(100):
                sender = Sender(channel).send(*[event(n) for n in range((i + seed) % 3)])
                if i % 2:
                    time.sleep(0.001 * (i % 7))
                sender.call.cancel()
                sender.half_close()

        server.in_threads([lambda c=c, i=i: some(c, i) for i, c in enumerate(self.channels)])
        server.eventually(lambda: self.open_streams() == 0)
        ends = [line for line in self.server.log().splitlines() if "method=" + EVENTS in line]
        self.assertGreater(len(ends), 0)  # some never come to the server
        # A run at the end of what was broken off would have been an answer.
        self.assertEqual([line for line in ends if "code=canceled" not in line], [])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        threading.Timer(60, os._exit, [2]).start()
        send_without_end(int(sys.argv[1]), int(sys.argv[2]))
    else:
        unittest.main()
