"""Streams of clients (HEARTH_METHOD_COLLECT): messages as they come, in order; idle for as long as the client likes; every
kind of end. Asked of the simplest method that collects, EventService of SkyWalking's agents; both ways, of uploads."""

import gzip
import json
import queue
import threading
import time
import unittest

import grpc

import raw_h2
import server
import tasks
import wire
from agents import Instance

EVENTS = "skywalking.v3.EventService/collect"
ACCESS_LOG = "skywalking.v3.EBPFAccessLogService/collect"
UPLOAD = "skywalking.v10.PprofTask/collect"
NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nothing"
JSON = {"Content-Type": "application/json"}


def event(number, is_error=False):
    """uuid, source, name, type, message, parameters"""
    source = [(1, "shop"), (2, "shop-1")]
    return wire.encode([(1, "event-%d" % number), (2, source), (3, "Start"), (4, int(is_error)), (6, [(1, "a"), (2, "b")])])


class Sender:
    """A stream that is fed as the test goes: send(), half_close(); what came of it."""

    def __init__(self, channel, method=EVENTS, timeout=None, metadata=None, **more):
        self.queue = queue.Queue()
        self.call = channel.stream_unary("/" + method).future(
            iter(self.queue.get, None), timeout=timeout, metadata=metadata or [], wait_for_ready=False, **more
        )

    def send(self, *messages):
        for message in messages:
            self.queue.put(message)
        return self

    def half_close(self):
        self.queue.put(None)
        return self

    def answer(self, timeout=30):
        return self.call.result(timeout)

    def error(self, timeout=30):
        """(code, text); lets the thread that feeds the stream end."""
        found = self.call.exception(timeout)
        self.queue.put(None)
        assert found is not None, "the stream ended well"
        return found.code(), found.details()


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server(
            "--request-timeout", "1s", "--max-request-bytes", "64k", "--log-level", "debug", database_url=NO_DATABASE, wait=False
        )

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def value(self, name, **labels):
        return self.server.metrics().get((name, tuple(labels.items())), 0)

    def open_streams(self):
        return self.value("hearth_open_streams", method=EVENTS)

    def handled(self):
        return self.value("hearth_stream_messages_total", method=EVENTS)

    def assert_handled(self, n, since):
        server.eventually(lambda: self.handled() - since >= n, what="%d messages handled" % n)
        self.assertEqual(self.handled() - since, n)

    # ---- to the end ----

    def test_messages_are_handled_on_arrival_and_answered_at_the_end(self):
        before, errors = self.handled(), self.value("hearth_agent_events_total", type="error")
        sender = Sender(self.server.channel)
        for i in range(3):
            sender.send(event(i, is_error=i == 1))
            self.assert_handled(i + 1, before)
        self.assertFalse(sender.call.done())
        self.assertEqual(self.open_streams(), 1)
        self.assertEqual(sender.half_close().answer(), b"")
        self.assertEqual(self.value("hearth_agent_events_total", type="error") - errors, 1)
        server.eventually(lambda: self.open_streams() == 0)

    def test_a_stream_without_any_message_is_answered(self):
        before = self.handled()
        for method in (EVENTS, ACCESS_LOG):
            self.assertEqual(Sender(self.server.channel, method).half_close().answer(), b"")
        self.assertEqual(self.handled(), before)

    def test_many_messages_in_one_stream(self):
        before = self.handled()
        call = self.server.channel.stream_unary("/" + EVENTS)
        self.assertEqual(call((event(i) for i in range(10_000)), timeout=60), b"")
        self.assertEqual(self.handled() - before, 10_000)

    def test_one_line_of_the_log_describes_a_whole_stream(self):
        Sender(self.server.channel, ACCESS_LOG).send(b"", b"", b"").half_close().answer()
        lines = server.eventually(
            lambda: [l for l in self.server.log().splitlines() if ACCESS_LOG in l and "messages=3" in l]
        )
        self.assertEqual(len(lines), 1)
        self.assertIn("code=ok", lines[0])

    def test_messages_may_be_compressed(self):
        before = self.handled()
        sender = Sender(self.server.channel, compression=grpc.Compression.Gzip)
        self.assertEqual(sender.send(*[wire.encode([(5, "x" * 30_000)])] * 3).half_close().answer(), b"")
        self.assertEqual(self.handled() - before, 3)

    def test_an_idle_stream_outlives_the_deadline_of_requests(self):
        before = self.handled()
        sender = Sender(self.server.channel).send(event(1))
        silent = Sender(self.server.channel)
        time.sleep(2.5)
        self.assertFalse(sender.call.done() or silent.call.done())
        sender.send(event(2))
        self.assert_handled(2, before)
        self.assertEqual(sender.half_close().answer(), b"")
        self.assertEqual(silent.send(event(3)).half_close().answer(), b"")

    # ---- other ends ----

    def test_an_error_ends_the_stream_at_once(self):
        before = self.handled()
        sender = Sender(self.server.channel).send(event(1), b"\xff", event(2))
        code, text = sender.error()
        self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, text)
        self.assertEqual(self.handled() - before, 1)

    def test_a_message_beyond_the_limit_ends_the_stream(self):
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            sender = Sender(self.server.channel, compression=compression)
            sender.send(event(1), wire.encode([(5, "x" * 70_000)]))
            self.assertEqual(sender.error()[0], grpc.StatusCode.RESOURCE_EXHAUSTED)
        server.eventually(lambda: self.open_streams() == 0)

    def test_messages_handled_before_a_client_breaks_off_stay_stored(self):
        before = self.handled()
        lines = len(self.server.log().splitlines())
        senders = [Sender(self.server.channel).send(event(i)) for i in range(20)]
        self.assert_handled(20, before)
        for sender in senders:
            sender.call.cancel()
            sender.half_close()
        server.eventually(lambda: self.open_streams() == 0)
        self.assertEqual(self.handled() - before, 20)
        found = lambda: [l for l in self.server.log().splitlines()[lines:] if "method=" + EVENTS in l]
        server.eventually(lambda: len(found()) >= 20, what="the lines of the streams")
        ends = found()
        self.assertEqual(len(ends), 20)
        self.assertEqual({"code=canceled" in l for l in ends}, {True}, ends)

    def test_the_deadline_of_the_client_counts(self):
        sender = Sender(self.server.channel, timeout=0.5).send(event(1))
        self.assertEqual(sender.error()[0], grpc.StatusCode.DEADLINE_EXCEEDED)
        server.eventually(lambda: self.open_streams() == 0)

    def test_a_connection_that_is_cut_ends_its_streams(self):
        before = self.handled()
        with raw_h2.Connection(self.server.port) as connection:
            connection.greet()
            connection.send(raw_h2.frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, raw_h2.call_headers("/" + EVENTS)))
            half = raw_h2.message(event(1)) + raw_h2.message(event(2))[:9]
            connection.send(raw_h2.frame(raw_h2.DATA, 0, 1, half))
            self.assert_handled(1, before)
        server.eventually(lambda: self.open_streams() == 0)
        self.assertEqual(self.handled() - before, 1)

    def test_streams_are_offered_over_grpc_only(self):
        for path in (EVENTS, ACCESS_LOG):
            status, _, body = self.server.http("POST", "/" + path, b"{}", JSON)
            self.assertEqual((status, json.loads(body)["code"]), (501, "unimplemented"))
            self.assertIn("gRPC only", json.loads(body)["message"])


class ReadAhead(unittest.TestCase):
    """Messages are read while others are in work."""

    def start(self, *options):
        at = server.Server(*options, database_url=NO_DATABASE, wait=False)
        self.addCleanup(at.stop)
        return at

    def handled(self, at):
        return at.metrics().get(("hearth_stream_messages_total", (("method", EVENTS),)), 0)

    def test_reading_ahead_does_not_use_the_memory_of_messages_in_work(self):
        """A message and what it is decoded to have 400 KB; three of them do not fit together, and need not."""
        at = self.start("--push-memory-bytes", "1m")
        large = wire.encode([(5, "x" * 200_000)])
        self.assertEqual(at.channel.stream_unary("/" + EVENTS)(iter([large] * 100), timeout=60), b"")
        self.assertEqual(self.handled(at), 100)
        server.eventually(lambda: at.metrics()[("hearth_push_memory_bytes", ())] == 0, what="its memory is given back")

    def test_a_stream_that_is_never_at_an_end_leaves_others_their_turn(self):
        at = self.start("--ingest-threads", "1")
        ends = threading.Event()

        def busy():
            message = event(1)
            while not ends.is_set():
                yield message

        calls = [at.channel.stream_unary("/" + EVENTS).future(busy()) for _ in range(3)]
        server.eventually(lambda: self.handled(at) > 1000, what="streams that are busy")
        for _ in range(20):
            self.assertEqual(Sender(at.channel).send(event(2)).half_close().answer(), b"")
        ends.set()
        self.assertEqual([call.result(30) for call in calls], [b""] * 3)

    def test_nothing_is_handled_behind_an_error(self):
        """However many were read by then."""
        at = self.start()
        for n in (1, 2, 63, 64, 65, 200):
            before = self.handled(at)
            with self.assertRaises(grpc.RpcError) as raised:
                at.channel.stream_unary("/" + EVENTS)(iter([event(1)] * n + [b"\xff"] + [event(2)] * 100), timeout=30)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertEqual(self.handled(at) - before, n)
        server.eventually(lambda: at.metrics()[("hearth_push_memory_bytes", ())] == 0, what="what was read is given back")


class BothWays(unittest.TestCase):
    """PprofTask's collect: metadata are answered at once, pieces are not."""

    PIECE = wire.encode([(3, b"12345")])
    CONTINUE, FAILED = b"", b"\x08\x01"

    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def setUp(self):
        self.server = server.Server(database_url=self.cluster.url())
        self.queue = queue.Queue()
        self.service = self.id()
        self.task = tasks.create(self.server, "PPROF", service=self.service, instances=["shop-1"], events=["cpu"])
        Instance(self.server, self.service, "shop-1").query_tasks(Instance.PPROF)

    def tearDown(self):
        self.queue.put(None)
        self.server.stop()

    def metadata(self, kind=0, size=10):
        return wire.encode([(1, [(1, self.service), (2, "shop-1"), (3, self.task), (4, kind), (5, size)])])

    def open(self, *messages):
        for message in messages:
            self.queue.put(message)
        return self.server.channel.stream_stream("/" + UPLOAD)(iter(self.queue.get, None), timeout=30)

    def of(self, name):
        return self.server.metrics().get((name, (("method", UPLOAD),)), 0)

    def end(self, call):
        with self.assertRaises(grpc.RpcError) as raised:
            list(call)
        return raised.exception.code()

    def test_an_answer_arrives_while_the_stream_is_open(self):
        call = self.open(self.metadata())
        self.assertEqual(next(call), self.CONTINUE)
        self.assertTrue(call.is_active())
        self.queue.put(self.PIECE)
        server.eventually(lambda: self.of("hearth_stream_messages_total") == 2)
        self.assertEqual(self.of("hearth_open_streams"), 1)
        self.queue.put(None)
        self.assertEqual(self.end(call), grpc.StatusCode.INVALID_ARGUMENT)  # 5 of 10 bytes

    def test_finished_answers_arrive_before_an_error(self):
        call = self.open(self.metadata(1, -1), b"\xff")
        self.assertEqual(next(call), self.FAILED)
        self.assertEqual(self.end(call), grpc.StatusCode.INVALID_ARGUMENT)

    def test_a_stream_without_any_message_ends_well(self):
        self.queue.put(None)
        self.assertEqual(list(self.open()), [])

    def test_a_client_that_breaks_off_leaves_nothing_open(self):
        call = self.open(self.metadata())
        self.assertEqual(next(call), self.CONTINUE)
        call.cancel()
        server.eventually(lambda: self.of("hearth_open_streams") == 0)
        self.assertEqual(self.of("hearth_stream_messages_total"), 1)

    def test_a_stalled_upload_gives_its_memory_back(self):
        self.server.stop()
        self.server = server.Server("--request-timeout", "5s", database_url=self.cluster.url())
        events = Sender(self.server.channel).send(event(1))
        call = self.open(self.metadata())
        self.assertEqual(next(call), self.CONTINUE)
        self.queue.put(self.PIECE)
        self.assertEqual(self.end(call), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertEqual(events.half_close().answer(), b"", "what holds nothing waits for ever")

    def test_a_stop_ends_reading_ahead_at_once(self):
        call = self.open(self.metadata())
        self.assertEqual(next(call), self.CONTINUE)
        started = time.monotonic()
        self.server.process.send_signal(server.signal.SIGTERM)
        self.assertEqual(self.end(call), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.server.process.wait(30), 0)
        self.assertLess(time.monotonic() - started, 15)


class BackPressure(unittest.TestCase):
    def test_bodies_beyond_the_memory_of_pushes_end_their_streams(self):
        one = server.Server("--push-memory-bytes", "200k", database_url=NO_DATABASE, wait=False)
        quiet = Sender(one.channel).send(event(1))
        code, text = Sender(one.channel).send(wire.encode([(5, "x" * 300_000)])).error()
        self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED, "alone, it will never fit")
        self.assertIn("push-memory-bytes", text)
        self.assertEqual(quiet.send(wire.encode([(5, "x" * 20_000)])).half_close().answer(), b"")
        one.stop()

    def test_a_full_queue_ends_streams_and_others_continue(self):
        """Three streams of each connection fit its first window; 20 MB to inflate keep the one thread busy meanwhile."""
        one = server.Server("--ingest-threads", "1", "--max-queued-requests", "1", database_url=NO_DATABASE, wait=False)
        message = raw_h2.message(gzip.compress(wire.encode([(5, "x" * 20_000_000)])), compressed=True)
        frames = b"".join(
            raw_h2.frame(raw_h2.HEADERS, raw_h2.END_HEADERS, stream, raw_h2.call_headers("/" + EVENTS, ("grpc-encoding", "gzip")))
            + b"".join(raw_h2.data_frames(stream, message))
            for stream in (1, 3, 5)
        )
        connections = [raw_h2.Connection(one.port) for _ in range(14)]
        for connection in connections:
            connection.greet()
        for connection in connections:
            connection.send(frames)
        handled, refused = "hearth_stream_messages_total", "hearth_request_errors_total"

        def ended():
            found = one.metrics()
            counts = found.get((handled, (("method", EVENTS),)), 0), found.get((refused, (("code", "unavailable"),)), 0)
            # The end of a stream waits in that queue, too: some are refused behind their message.
            return counts if sum(counts) >= 42 and found[("hearth_open_streams", (("method", EVENTS),))] == 0 else None

        n_handled, n_refused = server.eventually(ended, what="42 ends")
        self.assertGreater(n_handled, 0)
        self.assertGreater(n_refused, 0)
        self.assertIn("max-queued-requests", one.log())
        for connection in connections:
            connection.socket.close()
        self.assertEqual(Sender(one.channel).send(event(1)).half_close().answer(), b"")
        one.stop()


class Stopping(unittest.TestCase):
    def test_a_stop_ends_idle_streams_at_once(self):
        one = server.Server(database_url=NO_DATABASE, wait=False)
        senders = [Sender(one.channel).send(event(i)) for i in range(50)] + [Sender(one.channel) for _ in range(50)]
        server.eventually(
            lambda: 'hearth_open_streams{method="%s"} 100' % EVENTS in one.http("GET", "/metrics")[2].decode()
        )
        started = time.monotonic()
        ended = []
        threading.Thread(target=lambda: ended.append(one.process.send_signal(server.signal.SIGTERM))).start()
        for sender in senders:
            code, text = sender.error()
            self.assertEqual(code, grpc.StatusCode.UNAVAILABLE, text)
        self.assertLess(time.monotonic() - started, 15)  # not the 20 s of shutdown-timeout
        self.assertEqual(one.process.wait(30), 0)


if __name__ == "__main__":
    unittest.main()
