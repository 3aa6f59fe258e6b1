"""gRPC over HTTP/1.1, as Go's default transport speaks it on http://: chunks, and the status in trailers behind them."""

import gzip
import socket
import unittest

import server
import wire
from test_transports import NAMES, RANGE, frame, frames, server_profile

LONG_NAMES = {"__name__": "process_cpu", **{"a_rather_long_label_%03d" % i: "x" for i in range(50)}}
MAX_REQUEST = 1 << 20


def chunks(body, size):
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Client:
    """One connection; answers are read by the letter."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, path, body, in_chunks=0, version="1.1", kind="application/grpc", **headers):
        framing = {"Transfer-Encoding": "chunked"} if in_chunks else {"Content-Length": len(body)}
        lines = {"Host": "x", "Content-Type": kind, "TE": "trailers", **framing}
        lines.update((name.replace("_", "-"), value) for name, value in headers.items())
        head = "POST %s HTTP/%s\r\n" % (path, version) + "".join("%s: %s\r\n" % line for line in lines.items())
        self.socket.sendall(head.encode() + b"\r\n" + (chunks(body, in_chunks) if in_chunks else body))

    def fields(self):
        found = []
        while (line := self.file.readline()) != b"\r\n":
            assert line.endswith(b"\r\n"), line
            name, value = line[:-2].decode().split(": ", 1)
            found.append((name.lower(), value))
        return dict(found)

    def read(self):
        """(status, headers, body, trailers)"""
        status = int(self.file.readline().split()[1])
        headers, body = self.fields(), b""
        if "content-length" in headers:
            return status, headers, self.file.read(int(headers["content-length"])), {}
        assert headers["transfer-encoding"] == "chunked", headers
        while size := int(self.file.readline(), 16):
            body += self.file.read(size)
            assert self.file.read(2) == b"\r\n"
        return status, headers, body, self.fields()


class GrpcHttp1(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--max-request-bytes", str(MAX_REQUEST))
        cls.server.push(server_profile(), LONG_NAMES)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0

    def ask(self, path, body, client=None, **how):
        if client is None:
            with Client(self.server.port) as client:
                return self.ask(path, body, client, **how)
        client.send(path, body, **how)
        status, headers, answer, trailers = client.read()
        self.assertEqual((status, headers["content-type"]), (200, how.get("kind", "application/grpc")))
        self.assertEqual(headers["trailer"], "grpc-status, grpc-message")
        return frames(answer), trailers, headers

    def assert_fails(self, status, part, path, body, **how):
        messages, trailers, _ = self.ask(path, body, **how)
        self.assertEqual((messages, trailers["grpc-status"]), ([], str(status)), trailers)
        self.assertIn(part, trailers["grpc-message"])
        return trailers

    def test_the_message_arrives_in_chunks_followed_by_the_status(self):
        expected, _ = self.server.connect_proto(NAMES[1:], RANGE)
        for how in ({}, {"in_chunks": 3}, {"kind": "application/grpc+proto"}, {"grpc_timeout": "10S"}):
            messages, trailers, _ = self.ask(NAMES, frame(RANGE), **how)
            self.assertEqual((messages, trailers), ([(0, expected)], {"grpc-status": "0"}), how)

    def test_a_connection_carries_one_call_after_the_other(self):
        with Client(self.server.port) as client:
            for _ in range(3):
                self.assertEqual(self.ask(NAMES, frame(RANGE), client, in_chunks=100)[1], {"grpc-status": "0"})
                self.assertEqual(self.ask(NAMES, frame(b"\xff"), client)[1]["grpc-status"], "3")

    def test_messages_are_compressed_both_ways(self):
        plain, _, headers = self.ask(NAMES, frame(gzip.compress(RANGE), 1), grpc_encoding="gzip")
        self.assertEqual(plain[0][0], 0)
        self.assertNotIn("grpc-encoding", headers)
        packed, trailers, headers = self.ask(NAMES, frame(RANGE), grpc_accept_encoding="gzip")
        self.assertEqual((packed[0][0], headers["grpc-encoding"], trailers), (1, "gzip", {"grpc-status": "0"}))
        self.assertEqual(gzip.decompress(packed[0][1]), plain[0][1])

    def test_errors_are_trailers_behind_an_empty_body(self):
        self.assert_fails(3, "protobuf", NAMES, frame(b"\xff"))
        self.assert_fails(3, "no whole message", NAMES, b"")
        self.assert_fails(12, "second message", NAMES, frame(RANGE) * 2)
        self.assert_fails(12, "gzip, deflate, identity", NAMES, frame(RANGE), grpc_encoding="br")
        self.assert_fails(4, "timed out", NAMES, frame(RANGE), grpc_timeout="0m")
        self.assert_fails(12, "gRPC only", "/grpc.health.v1.Health/Watch", frame(b""))
        self.assert_fails(8, "max-request-bytes", NAMES, frame(bytes(MAX_REQUEST)), in_chunks=60000)
        self.assert_fails(3, "%C3%A9", NAMES, frame(wire.encode([(1, "é{"), (2, 1), (3, 2)])))

    def test_a_profile_is_pushed_and_found(self):
        labels = [wire.encode([(1, k), (2, v)]) for k, v in {"__name__": "process_cpu", "service_name": "by_http1"}.items()]
        body = wire.encode([(1, wire.encode([*((1, label) for label in labels), (2, wire.encode([(1, server_profile())]))]))])
        messages, trailers, _ = self.ask("/" + server.PUSH, frame(body), in_chunks=500)
        self.assertEqual((messages, trailers["grpc-status"]), ([(0, b"")], "0"), trailers)
        query = wire.encode([(1, "service_name"), (3, 1), (4, 1 << 42)])
        messages, _, _ = self.ask("/" + server.QUERIER + "LabelValues", frame(query))
        self.assertIn("by_http1", wire.texts(wire.decode(messages[0][1]).get(1, [])))

    def test_without_chunks_there_are_no_trailers(self):
        with Client(self.server.port) as client:
            client.send(NAMES, frame(RANGE), version="1.0")
            status, _, body, _ = client.read()
        self.assertEqual(status, 505)
        self.assertIn(b"HTTP/1.1", body)


if __name__ == "__main__":
    unittest.main(verbosity=2)
