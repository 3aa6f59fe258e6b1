"""What hostile, broken and plain unlucky clients do to the port, and that the next decent client does not notice."""

import collections
import gzip
import os
import random
import re
import resource
import select
import socket
import struct
import threading
import time
import unittest
import zlib

import grpc

import raw_h2
import server
import wire
from raw_h2 import Connection, call_headers, frame

CHECK = "grpc.health.v1.Health/Check"
NAMES = server.QUERIER + "LabelNames"
MAX_REQUEST = 8 << 20
MB = 1 << 20


def request_bytes(path, body=b"", content_type="application/proto", extra="", version="1.1"):
    head = "POST /%s HTTP/%s\r\nHost: x\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n"
    return (head % (path, version, content_type, extra, len(body))).encode() + body


def read_all(sock):
    out = b""
    try:
        while True:
            more = sock.recv(65536)
            if not more:
                return out
            out += more
    except ConnectionError:
        return out


def read_responses(sock, n):
    """n responses with Content-Length, as (status, body)."""
    out, buffer = [], b""
    while len(out) < n:
        while b"\r\n\r\n" not in buffer:
            more = sock.recv(65536)
            assert more, "closed after %d of %d responses" % (len(out), n)
            buffer += more
        head, buffer = buffer.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        size = next(int(l.split(b":")[1]) for l in lines if l.lower().startswith(b"content-length:"))
        while len(buffer) < size:
            more = sock.recv(65536)
            assert more, "cut body"
            buffer += more
        out.append((int(lines[0].split()[1]), buffer[:size]))
        buffer = buffer[size:]
    return out


# Limits of a process are set from outside: of another user's that is not permitted.
ROOT = ("--user", "root") if os.getuid() == 0 else ()


class FrontAbuse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 6000 <= hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
        cls.server = server.Server(
            *ROOT,
            "--first-bytes-timeout", "1s",
            "--http-idle-timeout", "3s",
            "--max-request-bytes", "8m",
            "--grpc-memory-quota", "256m",
        )

    @classmethod
    def tearDownClass(cls):
        status = cls.server.terminate()
        log = cls.server.log()
        # A leak, found by LeakSanitizer at the end, is an exit status, too.
        assert status == 0, "hearthd ended with %s:\n%s" % (status, log[-5000:])
        assert "Sanitizer" not in log, log[-5000:]

    def tearDown(self):
        """Whatever was done: both protocols still answer, at once."""
        self.assertIsNone(self.server.process.poll(), self.server.log()[-3000:])
        self.assertEqual(self.server.http("GET", "/healthz", timeout=25)[0], 200)
        self.assertEqual(wire.decode(self.fresh_check())[1], [1])

    # ---- helpers ----

    def dial(self, timeout=50):
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=timeout)

    def fresh_check(self):
        """A health check over a new gRPC connection."""
        with grpc.insecure_channel(
            "127.0.0.1:%d" % self.server.port, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            return channel.unary_unary("/" + CHECK)(b"", timeout=50)

    def rss(self):
        with open("/proc/%d/status" % self.server.process.pid) as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))

    def assert_rss_below(self, limit):
        self.assertLess(self.rss() / MB, limit / MB * server.MEMORY_FACTOR)

    def descriptors(self):
        """Of each kind, without connections to PostgreSQL, by Unix sockets: those come when work needs them, and stay."""
        with open("/proc/net/unix") as sockets:
            unix = {"socket:[%s]" % line.split()[6] for line in list(sockets)[1:]}
        directory, found = "/proc/%d/fd" % self.server.process.pid, collections.Counter()
        for name in os.listdir(directory):
            try:
                target = os.readlink(directory + "/" + name)
            except FileNotFoundError:  # closed just now
                continue
            if target not in unix:
                found[re.sub("[0-9]+", "", target)] += 1
        return found

    def assert_descriptors_return_to(self, before):
        deadline = time.monotonic() + 100
        while (now := self.descriptors()).total() > before.total() + 5 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertLessEqual(now.total(), before.total() + 5, (before, now))

    def connections_metric(self, protocol):
        text = self.server.http("GET", "/metrics")[2].decode()
        prefix = 'hearth_connections_total{protocol="%s"} ' % protocol
        return next((int(l[len(prefix):]) for l in text.splitlines() if l.startswith(prefix)), 0)

    # ---- first bytes ----

    def test_half_open_connections_and_those_with_half_a_request_are_closed(self):
        before = self.connections_metric("idle")
        socks = [self.dial() for _ in range(40)]
        for sock in socks[20:]:
            sock.sendall(b"PRI")
        started = time.monotonic()
        for sock in socks:
            self.assertEqual(read_all(sock), b"")
            sock.close()
        self.assertLess(time.monotonic() - started, 40)
        self.assertEqual(self.connections_metric("idle") - before, 40)

    def test_slow_first_bytes_still_reach_grpc(self):
        with Connection(self.server.port) as connection:
            for byte in raw_h2.PREFACE[:6]:
                connection.send(bytes([byte]))
                time.sleep(0.05)
            connection.send(raw_h2.PREFACE[6:] + frame(raw_h2.SETTINGS, 0, 0))
            self.assertEqual(connection.read_frame()[0], raw_h2.SETTINGS)

    def test_slow_first_bytes_still_reach_http(self):
        with self.dial() as sock:
            for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n":
                sock.sendall(bytes([byte]))
                time.sleep(0.005)
            self.assertEqual(read_responses(sock, 1)[0][0], 200)

    def test_garbage_is_answered_or_closed(self):
        random.seed(4040)
        for _ in range(5):
            socks = [self.dial() for _ in range(40)]  # each may take as long as a timeout: together
            for sock in socks:
                sock.sendall(random.choice([b"", b"PRI ", b"PRI * HTTP/2.0\r\n", b"GET "]) + random.randbytes(300))
                sock.shutdown(socket.SHUT_WR)
            for sock in socks:
                with sock:
                    read_all(sock)

    def test_a_tls_hello_is_not_waited_for(self):
        with self.dial() as sock:
            sock.sendall(bytes.fromhex("16030100c5010000c10303") + bytes(194))
            sock.settimeout(20)
            try:
                self.assertEqual(sock.recv(1), b"")
            except ConnectionResetError:
                pass

    # ---- many connections ----

    def test_four_thousand_connections_are_served(self):
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 4600:
            self.skipTest("fewer than 4,600 descriptors allowed here")
        socks = []
        try:
            for _ in range(4000):
                socks.append(self.dial())
                socks[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            for sock in socks:
                self.assertEqual(read_responses(sock, 1)[0][0], 200)
            self.assertEqual(wire.decode(self.fresh_check())[1], [1])
            self.assert_rss_below(600 * MB)
        finally:
            for sock in socks:
                sock.close()

    def test_service_returns_after_descriptor_exhaustion(self):
        pid = self.server.process.pid
        old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = max(int(name) for name in os.listdir("/proc/%d/fd" % pid))
        before = self.connections_metric("refused")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 12, old[1]))
        try:
            started = os.times().elapsed, self.cpu_seconds()
            socks = [self.dial() for _ in range(200)]
            for sock in socks:
                sock.sendall(b"G")
            time.sleep(1)
            # Neither does the listener spin.
            self.assertLess(self.cpu_seconds() - started[1], 0.7 * server.MEMORY_FACTOR)
            for sock in socks:
                sock.close()
            time.sleep(0.2)
            for _ in range(3):
                self.assertEqual(self.server.http("GET", "/healthz", timeout=25)[0], 200)
                self.fresh_check()
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
        self.assertGreater(self.connections_metric("refused"), before)

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.server.process.pid) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_short_connections_leave_nothing_behind(self):
        self.fresh_check()
        time.sleep(0.5)
        before = self.descriptors()
        for i in range(600):
            with self.dial() as sock:
                sock.sendall([b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", raw_h2.PREFACE, b"P"][i % 3])
        self.assert_descriptors_return_to(before)

    # ---- bombs and oversize ----

    @staticmethod
    def bomb(size, kind="gzip"):
        """Zeros; compressed once, because a block that ends in a full flush may be repeated."""
        piece = 64 * MB
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = packer.compress(bytes(piece)) + packer.flush(zlib.Z_FULL_FLUSH)
        body = block * (size // piece) + packer.flush()
        if kind == "deflate":  # zlib's format: Adler-32 of zeros is 1 and their number
            return b"\x78\xda" + body + struct.pack(">HH", size % 65521, 1)
        crc = 0
        for _ in range(size // piece):
            crc = zlib.crc32(bytes(piece), crc)
        return gzip.compress(b"")[:10] + body + struct.pack("<II", crc, size)

    def test_the_bombs_have_their_stated_sizes(self):
        self.assertEqual(gzip.decompress(self.bomb(128 * MB)), bytes(128 * MB))
        self.assertEqual(zlib.decompress(self.bomb(128 * MB, "deflate")), bytes(128 * MB))

    def test_a_gzip_bomb_over_http_is_refused_at_the_cap(self):
        bomb = self.bomb(1024 * MB)
        self.assertLess(len(bomb), 2 * MB)
        before = self.rss()
        for _ in range(3):
            status, headers, body = self.server.http(
                "POST", "/" + server.PUSH, bomb, {"Content-Type": "application/proto", "Content-Encoding": "gzip"}
            )
            self.assertEqual(status, 413)
            self.assertIn(b"resource_exhausted", body)
        self.assertLess(self.rss() - before, 80 * MB * server.MEMORY_FACTOR)

    def grpc_bomb(self, encoding):
        body = raw_h2.message(self.bomb(1024 * MB, encoding), compressed=True)
        with Connection(self.server.port, timeout=30) as connection:
            connection.greet()
            connection.send(
                frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, call_headers("/" + NAMES, ("grpc-encoding", encoding)))
            )
            window = 65535
            frames = raw_h2.data_frames(1, body)
            while frames:
                while window < 16384:
                    got = connection.read_frame()
                    self.assertIsNotNone(got)
                    kind, flags, stream, payload = got
                    if kind == raw_h2.WINDOW_UPDATE and stream == 0:
                        window += struct.unpack(">I", payload)[0]
                    elif kind == raw_h2.SETTINGS and not flags & raw_h2.ACK:
                        connection.send(frame(raw_h2.SETTINGS, raw_h2.ACK, 0))
                    elif kind == raw_h2.PING and not flags & raw_h2.ACK:
                        connection.send(frame(raw_h2.PING, raw_h2.ACK, 0, payload))
                window -= len(frames[0]) - 9
                connection.send(frames.pop(0))
            return b"".join(payload for _, _, _, payload in connection.read_until_end(1))

    def test_a_gzip_bomb_over_grpc_is_refused_at_the_cap(self):
        before = self.rss()
        for encoding in ("gzip", "deflate"):
            answer = self.grpc_bomb(encoding)
            self.assertIn(b"grpc-status\x018", answer)
            self.assertIn(b"max-request-bytes", answer)
        self.assertLess(self.rss() - before, 80 * MB * server.MEMORY_FACTOR)

    def test_an_announced_oversize_body_is_refused_before_it_is_read(self):
        with self.dial() as sock:
            head = "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Length: %d\r\n\r\n"
            sock.sendall((head % (server.PUSH, 1 << 40)).encode())
            answer = read_all(sock)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer[:200])
        self.assertIn(b"resource_exhausted", answer)

    def test_a_client_that_sends_all_of_an_oversize_body_still_gets_the_answer(self):
        body = bytes(MAX_REQUEST + MB)
        for _ in range(30):
            with self.dial() as sock:
                sock.sendall(request_bytes(server.PUSH, body))  # as a client would that reads only when it has sent
                answer = read_all(sock)
            self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer[:200])
            self.assertTrue(answer.endswith(b"}"), answer)

    def test_an_oversize_body_is_not_read_for_ever(self):
        sent = 0
        with self.dial() as sock:
            sock.sendall(request_bytes(server.PUSH)[:-4].replace(b"Length: 0", b"Length: 9000000000") + b"\r\n\r\n")
            with self.assertRaises(ConnectionError):
                while sent < 2048 * MB:
                    sock.sendall(bytes(MB))
                    sent += MB
        self.assertLess(sent, 1024 * MB)

    def test_a_chunked_oversize_body_is_not_read_for_ever(self):
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        sent = 0
        with self.dial() as sock:
            sock.sendall(
                ("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n" % server.PUSH).encode()
            )
            try:
                while sent < 2048 * MB:
                    sock.sendall(chunk)
                    sent += len(chunk)
            except ConnectionError:
                pass
        self.assertLess(sent, 1024 * MB)

    def test_a_client_that_sends_a_chunked_body_without_end_is_told_why_it_is_refused(self):
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        for path, status, text in (
            (server.PUSH, b"413", b"max-request-bytes"), ("ingest?name=x", b"413", b"max-request-bytes"),
            ("nothing", b"404", b"not found"),
        ):
            with self.subTest(path), self.dial() as sock:
                head = "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nTransfer-Encoding: chunked\r\n\r\n"
                sock.sendall((head % path).encode())
                answer, sent = b"", 0
                while b"\r\n\r\n" not in answer and sent < 128 * MB:  # as curl does: it looks for an answer as it sends
                    sock.sendall(chunk)
                    sent += len(chunk)
                    if select.select([sock], [], [], 0)[0]:
                        answer += sock.recv(65536)
                answer += read_all(sock)
                self.assertEqual(answer[:12], b"HTTP/1.1 " + status, answer[:200])
                self.assertIn(text, answer)
                self.assertIn(b"connection: close", answer.lower())
                self.assertLess(sent, 128 * MB)

    def test_a_chunked_body_just_over_the_cap_gets_its_answer(self):
        body = bytes(MAX_REQUEST + 100)
        chunks = b"".join(
            b"%x\r\n%s\r\n" % (len(body[at : at + 65536]), body[at : at + 65536]) for at in range(0, len(body), 65536)
        )
        with self.dial() as sock:
            sock.sendall(
                ("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n" % server.PUSH).encode() + chunks + b"0\r\n\r\n"
            )
            status, answer = read_responses(sock, 1)[0]
        self.assertEqual(status, 413)
        self.assertIn(b"max-request-bytes", answer)

    def test_an_oversize_grpc_message_is_refused(self):
        with self.assertRaises(server.RpcError) as raised:
            self.server.grpc_bytes(server.PUSH, bytes(MAX_REQUEST + 1))
        self.assertEqual(raised.exception.code, "resource_exhausted")

    def test_a_lying_content_length_allocates_nothing(self):
        before = self.rss()
        socks = [self.dial() for _ in range(300)]
        for sock in socks:
            sock.sendall(request_bytes(server.PUSH, b"")[:-4].replace(b"Length: 0", b"Length: 8000000") + b"\r\n\r\nx")
        time.sleep(0.5)
        self.assertLess(self.rss() - before, 150 * MB * server.MEMORY_FACTOR)
        for sock in socks:
            sock.close()

    # ---- headers ----

    def test_a_header_flood_over_http_ends_early(self):
        sent = 0
        with self.dial() as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
            try:
                while sent < 20 * MB:
                    sock.sendall(b"X-Flood: " + b"y" * 1000 + b"\r\n")
                    sent += 1011
            except ConnectionError:
                pass
            self.assertLess(sent, 10 * MB)

    def test_header_floods_over_grpc_end_the_call_or_the_connection(self):
        with Connection(self.server.port) as connection:
            connection.greet()
            # The limit holds from the moment on that a client has acknowledged it.
            self.assertEqual(connection.read_frame()[0], raw_h2.SETTINGS)
            connection.send(frame(raw_h2.SETTINGS, raw_h2.ACK, 0))
            block = call_headers("/" + CHECK, *[("x-%d" % i, "y" * 1000) for i in range(200)])
            parts = [block[at : at + 16000] for at in range(0, len(block), 16000)]
            connection.send(frame(raw_h2.HEADERS, 0, 1, parts[0]))
            for part in parts[1:-1]:
                connection.send(frame(raw_h2.CONTINUATION, 0, 1, part))
            connection.send(frame(raw_h2.CONTINUATION, raw_h2.END_HEADERS, 1, parts[-1]))
            connection.send(frame(raw_h2.DATA, raw_h2.END_STREAM, 1, raw_h2.message(b"")))
            answer = b"".join(payload for _, _, _, payload in connection.read_until_end(1))
            self.assertNotIn(b"grpc-status\x010", answer)

    def continuation_flood(self, part, beside):
        """Bytes sent until the server cut the connection, and the peak of its memory."""
        peak = sent = n = 0
        # gRPC stops reading for a while when its quota of memory is used; on a busy machine for 20 seconds.
        with Connection(self.server.port, timeout=50) as connection:
            connection.greet()
            connection.send(frame(raw_h2.HEADERS, 0, 1, call_headers("/" + CHECK)))
            try:
                while sent < 1024 * MB:
                    connection.send(part)
                    sent += len(part)
                    n += 1
                    if n % 500 == 0:
                        peak = max(peak, self.rss())
                        beside()
            except (ConnectionError, socket.timeout):
                pass
        return sent, peak

    def test_continuation_floods_are_cut(self):
        """gRPC 1.51 would hold all of it, acknowledged settings or not."""
        slowest = [0]

        def others_are_served():
            started = time.monotonic()
            self.assertEqual(self.server.http("GET", "/healthz", timeout=50)[0], 200)
            slowest[0] = max(slowest[0], time.monotonic() - started)

        before = self.connections_metric("cut")
        for part in (raw_h2.header("x", "y" * 16000), b"".join(raw_h2.header("x%d" % i, "y" * 10) for i in range(900))):
            for _ in range(3):
                sent, peak = self.continuation_flood(frame(raw_h2.CONTINUATION, 0, 1, part), others_are_served)
                self.assertLess(sent, 900 * MB)
                self.assertLess(peak, 700 * MB * server.MEMORY_FACTOR)
        self.assertLess(slowest[0], 15)
        self.assertEqual(self.connections_metric("cut") - before, 6)
        # And the memory is given back.
        deadline = time.monotonic() + 50
        while self.rss() > 300 * MB * server.MEMORY_FACTOR and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assert_rss_below(300 * MB)

    def answer(self, connection, got, window):
        """What a client owes to a frame: credit counted, settings applied and acknowledged, pings answered."""
        self.assertIsNotNone(got)
        kind, flags, stream, payload = got
        self.assertNotIn(kind, (raw_h2.RST_STREAM, raw_h2.GOAWAY), payload)
        if kind == raw_h2.WINDOW_UPDATE:
            window[stream] += struct.unpack(">I", payload)[0]
        elif kind == raw_h2.PING and not flags & raw_h2.ACK:
            connection.send(frame(raw_h2.PING, raw_h2.ACK, 0, payload))
        elif kind == raw_h2.SETTINGS and not flags & raw_h2.ACK:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == 4:  # INITIAL_WINDOW_SIZE also changes calls that are open
                    window[1] += value - self.first_window
                    self.first_window = value
            connection.send(frame(raw_h2.SETTINGS, raw_h2.ACK, 0))

    first_window = 65535

    def test_a_large_message_is_not_mistaken_for_a_flood(self):
        before = self.connections_metric("cut")
        with Connection(self.server.port, timeout=100) as connection:
            connection.greet()
            body = raw_h2.message(wire.encode([(2, 1), (3, 2), (1, "{}" + " " * 6000000)]))
            connection.send(frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, call_headers("/" + NAMES)))
            window = {0: 65535, 1: 65535}  # of the connection, of the call
            for i, data in enumerate(raw_h2.data_frames(1, body)):
                while min(window.values()) < len(data):
                    self.answer(connection, connection.read_frame(), window)
                window = {stream: left - (len(data) - 9) for stream, left in window.items()}
                connection.send(data)
                if i % 40 == 0:  # the guard looks ten times a second, and shall see it often on its way
                    time.sleep(0.12)
            answer = b"".join(payload for _, _, _, payload in connection.read_until_end(1))
            self.assertIn(b"grpc-status", answer)
        self.assertEqual(self.connections_metric("cut"), before)

    # ---- nesting ----

    def test_nested_json_is_refused(self):
        for body in (b'{"a":' * 100000, b"[" * 100000, b'{"series":[' + b"[" * 50000):
            status, _, answer = self.server.http(
                "POST", "/" + server.PUSH, body, {"Content-Type": "application/json"}
            )
            self.assertEqual(status, 400, answer)

    def test_nested_protobuf_is_refused(self):
        groups = wire.varint(100 << 3 | 3) * 100000
        message = b""
        for _ in range(3000):
            message = wire.encode([(1, message)])
        for body in (groups, message, wire.encode([(7, message)])):
            status, _, answer = self.server.http(
                "POST", "/" + NAMES, body, {"Content-Type": "application/proto"}
            )
            self.assertEqual(status, 400, answer)
            with self.assertRaises(server.RpcError) as raised:
                self.server.grpc_bytes(NAMES, body)
            self.assertEqual(raised.exception.code, "invalid_argument")

    # ---- framing ----

    def test_rapid_reset_is_survived(self):
        with Connection(self.server.port, timeout=30) as connection:
            connection.greet()
            headers = call_headers("/" + NAMES)
            try:
                for i in range(20000):
                    stream = 2 * i + 1
                    connection.send(
                        frame(raw_h2.HEADERS, raw_h2.END_HEADERS, stream, headers)
                        + frame(raw_h2.RST_STREAM, 0, stream, struct.pack(">I", 8))
                    )
            except ConnectionError:
                pass
        self.assert_rss_below(600 * MB)

    @server.unless_sanitized("what was freed is kept; there is nothing to give back")
    def test_a_rapid_reset_from_many_connections_gives_its_memory_back(self):
        pair = frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 0, call_headers("/" + NAMES))[9:]
        pieces = [
            b"".join(
                frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 2 * i + 1, pair)
                + frame(raw_h2.RST_STREAM, 0, 2 * i + 1, struct.pack(">I", 8))
                for i in range(first, first + 40)
            )
            for first in range(0, 10000, 40)
        ]
        before, stop = self.rss(), time.monotonic() + 15

        def flood():
            with Connection(self.server.port, timeout=40) as connection:
                connection.greet()
                try:
                    for piece in pieces:
                        connection.send(piece)
                        if time.monotonic() > stop:
                            return
                    connection.send(frame(raw_h2.PING, 0, 0, bytes(8)))
                    while (got := connection.read_frame()) and got[:2] != (raw_h2.PING, raw_h2.ACK):
                        pass
                except OSError:
                    pass

        threads = [threading.Thread(target=flood) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.eventually(lambda: self.rss() < before + 90 * MB * server.MEMORY_FACTOR, 20, what="memory given back")

    def test_a_call_without_a_whole_message_is_an_error(self):
        for body in (b"", b"\x00\x00", raw_h2.message(b"xyz")[:-1]):
            with Connection(self.server.port) as connection:
                connection.greet()
                connection.send(
                    frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, call_headers("/" + NAMES))
                    + frame(raw_h2.DATA, raw_h2.END_STREAM, 1, body)
                )
                answer = b"".join(payload for _, _, _, payload in connection.read_until_end(1))
                self.assertNotIn(b"grpc-status\x010", answer)

    def test_both_length_and_chunks_are_refused(self):
        with self.dial() as sock:
            sock.sendall(
                ("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                 % NAMES).encode()
            )
            answer = read_all(sock)
        self.assertTrue(answer.startswith(b"HTTP/1.1 400"), answer[:100])
        self.assertEqual(answer.count(b"HTTP/1.1"), 1)

    def test_bad_heads_get_400_or_are_closed(self):
        for head in (
            b"GET /healthz HTTP/1.1\r\n\r\n",  # no Host
            b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
            b"GET\r\n\r\n",
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ):
            with self.dial() as sock:
                sock.sendall(head)
                sock.shutdown(socket.SHUT_WR)
                answer = read_all(sock)
                self.assertNotIn(b" 200 ", answer[:20], head)

    # ---- decent but rare ----

    def test_pipelined_requests_are_answered_in_order(self):
        body = b'{"service":"x"}'
        requests = b"".join(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" if i % 3 == 0
            else request_bytes(CHECK, b"{}", "application/json") if i % 3 == 1
            else request_bytes(NAMES, b"{", "application/json")
            for i in range(90)
        )
        with self.dial() as sock:
            sock.sendall(requests)
            for i, (status, answer) in enumerate(read_responses(sock, 90)):
                self.assertEqual(status, [200, 200, 400][i % 3], body)
                self.assertIn([b"ok", b"SERVING", b"invalid_argument"][i % 3], answer)

    def test_chunked_bodies_are_taken(self):
        with self.dial() as sock:
            sock.sendall(
                ("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n" % CHECK).encode()
            )
            self.assertEqual(read_responses(sock, 1), [(200, b'{"status":"SERVING"}')])

    def test_http_1_0_closes_after_the_answer(self):
        with self.dial() as sock:
            sock.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            answer = read_all(sock)
        self.assertIn(b" 200 ", answer[:20])
        self.assertTrue(answer.endswith(b"\r\n\r\nok\n"))

    def test_head_has_the_length_but_no_body(self):
        with self.dial() as sock:
            sock.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = read_all(sock)
        self.assertIn(b"Content-Length: 3", answer)
        self.assertTrue(answer.endswith(b"\r\n\r\n"))

    def test_a_client_may_close_its_side_and_still_read_the_answer(self):
        with self.dial() as sock:
            sock.sendall(request_bytes(CHECK, b"{}", "application/json"))
            sock.shutdown(socket.SHUT_WR)
            self.assertIn(b"SERVING", read_all(sock))

    # ---- clients that die ----

    def test_killed_clients_leave_nothing_behind(self):
        self.fresh_check()
        time.sleep(0.5)
        before = self.descriptors()
        random.seed(1)

        def one_after_another():
            for _ in range(60):
                with self.dial() as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    whole = request_bytes(server.PUSH, bytes(20000))
                    sock.sendall(whole[: random.randrange(1, len(whole))])
                with Connection(self.server.port) as connection:
                    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.greet()
                    connection.send(
                        frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, call_headers("/" + server.PUSH))
                        + frame(raw_h2.DATA, 0, 1, raw_h2.message(bytes(30000))[: random.randrange(1, 16000)])
                    )

        threads = [threading.Thread(target=one_after_another) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assert_descriptors_return_to(before)

    def test_idle_http_connections_are_closed(self):
        with self.dial() as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_responses(sock, 1)[0][0], 200)
            started = time.monotonic()
            self.assertEqual(sock.recv(1), b"")
            self.assertGreater(time.monotonic() - started, 1.5)

    def test_an_open_grpc_stream_is_not_cut_for_idleness(self):
        watch = self.server.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        self.assertEqual(next(watch), b"\x08\x01")
        time.sleep(4)  # longer than every timeout of this server
        self.assertTrue(watch.is_active())
        watch.cancel()


class FrontLimits(unittest.TestCase):
    def test_over_max_connections_new_ones_are_closed_and_old_ones_served(self):
        small = server.Server("--max-connections", "40")
        try:
            socks = []

            def ask(some):  # connections without a request for ten seconds would make room
                for sock in some:
                    sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertEqual(read_responses(sock, 1)[0][0], 200)

            # Each asks at once: a busy server may still count the connection that waited for its start, and cuts those
            # without a request to make room for the fortieth.
            for _ in range(40):
                socks.append(socket.create_connection(("127.0.0.1", small.port), timeout=25))
                ask(socks[-1:])
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", small.port), timeout=25) as sock:
                    try:
                        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                    except ConnectionError:
                        pass
                    self.assertEqual(read_all(sock), b"")
                ask(socks)
            # Health checks have a reserve, and all who were there are as they were.
            self.assertEqual(small.http("GET", "/healthz", timeout=25)[0], 200)
            ask(socks)
            for sock in socks:
                sock.close()
            deadline = time.monotonic() + 25
            while True:
                try:
                    self.assertEqual(small.http("GET", "/metrics", timeout=25)[0], 200)
                    break
                except OSError:
                    self.assertLess(time.monotonic(), deadline)
        finally:
            self.assertEqual(small.terminate(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
