"""Large answers in JSON are made while they are sent: the same bytes, in bounded memory, for readers of any patience."""

import gzip
import http.client
import json
import re
import socket
import struct
import time
import unittest
import urllib.parse

import prometheus
import wire
from questions import CPU, QUERIER, FlameGraph
from server import Cluster, Server, eventually, now_ms

MERGE = QUERIER + "SelectMergeStacktraces"
GROUPS, FUNCTIONS, STACKS = 700, 60_000, 210_000  # each stack is another pair of a group and a function
NODES = 1 + GROUPS + STACKS  # without the root
# Of one question: less than the answer's message and its JSON at once, more than the message.
QUERY_BYTES = 56 << 20


def profile():
    """main -> group -> function, with long names; by hand, because there are many."""
    names = ["main"] + ["group%d" % i for i in range(GROUPS)] + ["function_%d_%s" % (i, "x" * 200) for i in range(FUNCTIONS)]
    out = [wire.encode([(1, [(1, 1), (2, 2)])])]
    varints = [wire.varint(i) for i in range(len(names) + 1)]
    for i in range(STACKS):
        ids = varints[2 + GROUPS + i % FUNCTIONS] + varints[2 + i % GROUPS] + varints[1]
        value = wire.varint(i + 1)
        body = b"\x0a" + varints[len(ids)] + ids + b"\x12" + varints[len(value)] + value
        out.append(b"\x12" + varints[len(body)] + body)
    for i, name in enumerate(names):
        out.append(wire.encode([(4, [(1, i + 1), (4, [(1, i + 1)])]), (5, [(1, i + 1), (2, i + 3)])]))
    out.append(wire.encode([(6, text) for text in ["", "cpu", "nanoseconds"] + names]))
    out.append(wire.encode([(9, now_ms() * 1_000_000), (11, [(1, 1), (2, 2)]), (12, 1)]))
    return gzip.compress(b"".join(out), 1)


class Reader:
    """A client that sends one question and reads when it is told to."""

    def __init__(self, port, question, head=""):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        body = json.dumps(question).encode()
        self.socket.sendall(
            ("POST /%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
             % (MERGE, head, len(body))).encode() + body
        )

    def head(self):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.socket.recv(100)
            assert piece, "the connection ended in the head: %r" % data
            data += piece
        return data.split(b"\r\n\r\n")[0].decode()

    def close(self):
        self.socket.close()


class LargeAnswers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.server = Server(
            "--query-threads", "1", "--max-query-memory-bytes", str(QUERY_BYTES), database_url=cls.cluster.url()
        )
        cls.server.push(profile(), {"__name__": "process_cpu", "service_name": "large"})
        start, end = now_ms() - 600_000, now_ms() + 60_000
        selector = '{service_name="large"}'
        cls.question = {
            "profileTypeID": CPU, "labelSelector": selector, "start": start, "end": end, "maxNodes": 1_048_576,
        }
        request = wire.encode([(1, CPU), (2, selector), (3, start), (4, end), (5, 1_048_576)])
        cls.expected = FlameGraph(wire.decode(cls.server.grpc_bytes(MERGE, request)[0])[1][0])

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    def ask(self, **headers):
        headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.server.http("POST", "/" + MERGE, json.dumps(self.question), headers)

    def assert_is_the_graph(self, body):
        graph = json.loads(body)["flamegraph"]
        self.assertEqual(graph["names"], self.expected.names)
        self.assertEqual([[int(v) for v in level["values"]] for level in graph["levels"]], self.expected.levels)
        self.assertEqual((int(graph["total"]), int(graph["maxSelf"])), (self.expected.total, self.expected.max_self))

    def memory(self):
        return prometheus.value(self.server.metrics(), "hearth_query_memory_bytes")

    def held(self, n_answers):
        """The gauge is set now and then: what it says once so many answers wait to be read."""
        return eventually(lambda: self.memory() > n_answers * 30_000_000 and self.memory(), what="answers that wait")

    def rss(self):
        with open("/proc/%d/status" % self.server.process.pid) as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) << 10

    def assert_idle(self):
        eventually(lambda: self.memory() == 0, what="all memory is given back")

    def test_json_in_pieces_is_the_answer_of_grpc(self):
        self.assertEqual(sum(len(level) for level in self.expected.levels) // 4, NODES + 1)
        status, headers, body = self.ask()
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        self.assertEqual(headers["transfer-encoding"], "chunked")
        self.assertNotIn("content-length", headers)
        self.assertGreater(len(body), 15_000_000)
        self.assert_is_the_graph(body)
        self.assert_idle()

    def test_gzip_is_made_of_the_same_pieces(self):
        status, headers, packed = self.ask(Accept_Encoding="gzip")
        self.assertEqual((status, headers["content-encoding"], headers["vary"]), (200, "gzip", "Accept-Encoding"))
        self.assertEqual(int(headers["content-length"]), len(packed))
        self.assertLess(len(packed), 4_000_000)
        self.assert_is_the_graph(gzip.decompress(packed))
        self.assert_idle()

    def test_a_form_that_needs_its_length_first_does_not_fit_where_pieces_do(self):
        body = json.dumps(self.question).encode()
        status, _, answer = self.server.http(
            "POST", "/" + MERGE, struct.pack(">BI", 0, len(body)) + body, {"Content-Type": "application/grpc-web+json"}
        )
        self.assertEqual(status, 200)
        self.assertIn(b"grpc-status: 8\r\n", answer[:200])
        self.assertIn(b"max-query-memory-bytes", answer)
        self.assertEqual(self.ask()[0], 200)
        self.assert_idle()

    def test_small_answers_are_whole(self):
        small = {**self.question, "maxNodes": 100}
        status, headers, body = self.server.http("POST", "/" + MERGE, json.dumps(small), {"Content-Type": "application/json"})
        self.assertEqual((status, int(headers["content-length"])), (200, len(body)))
        self.assertNotIn("transfer-encoding", headers)

    def test_a_reader_that_pauses_holds_no_thread_and_little_memory(self):
        readers = [Reader(self.server.port, self.question) for _ in range(3)]
        try:
            for reader in readers:
                self.assertIn("200 OK", reader.head())
            self.held(3)
            before = self.rss()
            # The only thread for questions is free.
            self.assertEqual(self.server.label_values("service_name", self.question["start"], self.question["end"]), ["large"])
            n_read = 0
            while n_read < 10_000_000:
                piece = readers[0].socket.recv(1 << 20)
                self.assertTrue(piece)
                n_read += len(piece)
            self.assertLess(self.held(3), 3 * 40_000_000)
            self.assertLess(self.rss() - before, 6 << 20, "memory does not grow with what was sent")
        finally:
            for reader in readers:
                reader.close()
        self.assert_idle()

    def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(self):
        for n_before in (0, 1, 5_000_000):
            reader = Reader(self.server.port, self.question)
            reader.head()
            n_read = 0
            while n_read < n_before:
                n_read += len(reader.socket.recv(1 << 16))
            self.held(1)
            reader.close()
            self.assert_idle()
        with_gzip = Reader(self.server.port, self.question, "Accept-Encoding: gzip\r\n")
        time.sleep(0.05)  # anywhere in its work
        with_gzip.close()
        self.assert_idle()
        self.assertEqual(self.ask()[0], 200)

    def test_http_1_0_reads_to_the_end_of_the_connection(self):
        body = json.dumps(self.question).encode()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as old:
            old.sendall(b"POST /%s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                        % (MERGE.encode(), len(body)) + body)
            answer = b"".join(iter(lambda: old.recv(1 << 16), b""))
        head, _, text = answer.partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head.lower())
        self.assert_is_the_graph(text)

    def test_a_connection_is_used_again_after_an_answer_in_pieces(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            sizes = []
            for _ in range(2):
                connection.request("POST", "/" + MERGE, json.dumps(self.question), {"Content-Type": "application/json"})
                sizes.append(len(connection.getresponse().read()))
                self.assertIsNotNone(connection.sock)
            self.assertEqual(sizes[0], sizes[1])
        finally:
            connection.close()

    def test_render_is_in_pieces_too(self):
        arguments = urllib.parse.urlencode({
            "query": CPU + '{service_name="large"}', "from": str(self.question["start"]),
            "until": str(self.question["end"]), "max-nodes": "1048576", "groupBy": "service_name",
        })
        status, headers, body = self.server.http("GET", "/pyroscope/render?" + arguments)
        self.assertEqual((status, headers["transfer-encoding"]), (200, "chunked"))
        answer = json.loads(body)
        self.assertEqual(answer["flamebearer"]["names"], self.expected.names)
        self.assertEqual(answer["flamebearer"]["levels"], self.expected.levels)
        self.assertEqual(answer["flamebearer"]["numTicks"], self.expected.total)
        self.assertEqual(sum(answer["timeline"]["samples"]), self.expected.total)
        self.assertEqual(sum(answer["groups"]["large"]["samples"]), self.expected.total)
        status, headers, packed = self.server.http("GET", "/pyroscope/render?" + arguments, headers={"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["content-encoding"]), (200, "gzip"))
        self.assertEqual(json.loads(gzip.decompress(packed)), answer)

    def test_a_server_that_stops_does_not_wait_for_a_reader_that_pauses(self):
        stopping = Server("--shutdown-timeout", "1s", database_url=self.cluster.url())
        reader = Reader(stopping.port, self.question)
        try:
            reader.head()
            self.assertEqual(stopping.terminate(), 0)
        finally:
            reader.close()


if __name__ == "__main__":
    unittest.main()
