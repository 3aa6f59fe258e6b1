"""Requests whose end is in doubt: each is refused, and nothing behind it is read as a request of its own."""

import re
import socket
import unittest

import server

NAMES = server.QUERIER + "LabelNames"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
START = b"POST /" + NAMES.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHUNKS = b"2\r\n{}\r\n0\r\n\r\n"


def fields(*lines, body=b"{}"):
    return START + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


# What is sent, and the first digits of the only answer.
REFUSED = {
    # A path that is read up to its NUL.
    "a NUL in the path": (b"GET /healthz%00 HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
    # Two lengths.
    "two different lengths": (fields(b"Content-Length: 2", b"Content-Length: 40"), b"400"),
    "two different lengths, the long one first": (fields(b"Content-Length: 40", b"Content-Length: 2"), b"400"),
    "the same length twice": (fields(b"Content-Length: 2", b"Content-Length: 2"), b"400"),
    "a second length that is no number": (fields(b"Content-Length: 2", b"Content-Length: x"), b"400"),
    "a list of lengths": (fields(b"Content-Length: 2, 2"), b"400"),
    "a list of different lengths": (fields(b"Content-Length: 2,40"), b"400"),
    # A length that is read in more than one way.
    "a negative length": (fields(b"Content-Length: -2"), b"400"),
    "a length with a sign": (fields(b"Content-Length: +2"), b"400"),
    "a hexadecimal length": (fields(b"Content-Length: 0x2"), b"400"),
    "a length with a blank inside": (fields(b"Content-Length: 2 2"), b"400"),
    "a length with letters behind it": (fields(b"Content-Length: 2a"), b"400"),
    "a quoted length": (fields(b'Content-Length: "2"'), b"400"),
    "an empty length": (fields(b"Content-Length:"), b"400"),
    "a length beyond 64 bits": (fields(b"Content-Length: 18446744073709551618"), b"413"),
    "a length with a NUL byte behind it": (fields(b"Content-Length: 2\x0040"), b"400"),
    "a length with a vertical tab before it": (fields(b"Content-Length: \x0b2"), b"400"),
    # A length and chunks.
    "a length and chunks": (fields(b"Content-Length: 2", b"Transfer-Encoding: chunked", body=CHUNKS), b"400"),
    "chunks and a length": (fields(b"Transfer-Encoding: chunked", b"Content-Length: 2", body=CHUNKS), b"400"),
    "chunks, and a length of nothing": (fields(b"Content-Length: 0", b"Transfer-Encoding: chunked", body=CHUNKS), b"400"),
    # Names that are almost names.
    "a blank before the colon of the length": (fields(b"Content-Length : 2"), b"400"),
    "a tab before the colon of the length": (fields(b"Content-Length\t: 2"), b"400"),
    "a blank before the colon of the coding, beside a length":
        (fields(b"Content-Length: 2", b"Transfer-Encoding : chunked"), b"400"),
    "a tab before the colon of the coding, beside a length":
        (fields(b"Content-Length: 2", b"Transfer-Encoding\t: chunked"), b"400"),
    "a blank before the colon of any name": (fields(b"X-Any : y", b"Content-Length: 2"), b"400"),
    "a blank inside a name": (fields(b"Content-Length: 2", b"Transfer Encoding: chunked"), b"400"),
    "a NUL byte in a name": (fields(b"Content-Length: 2", b"Transfer-Encoding\x00: chunked"), b"400"),
    "a control byte in a name": (fields(b"Content-Length: 2", b"\x01Transfer-Encoding: chunked"), b"400"),
    "a form feed at the end of a name": (fields(b"Content-Length: 2", b"Transfer-Encoding\x0c: chunked"), b"400"),
    "a byte above 127 in a name": (fields(b"Content-Length: 2", b"Transfer-Encoding\xa0: chunked"), b"400"),
    "a quote before a name": (fields(b"Content-Length: 2", b'"Transfer-Encoding: chunked'), b"400"),
    "an empty name": (fields(b"Content-Length: 2", b": chunked"), b"400"),
    "a line without a colon": (fields(b"Content-Length: 2", b"Transfer-Encoding"), b"400"),
    # Folded lines: what is behind the fold is part of the name for some.
    "a blank before the first name": (START.replace(b"Host", b" Host", 1) + b"Content-Length: 2\r\n\r\n{}", b"400"),
    "a folded length": (fields(b"Content-Length: 2", b" 2"), b"400"),
    "a folded coding": (fields(b"Content-Length: 2", b"Transfer-Encoding:", b" chunked"), b"400"),
    "a length behind a fold": (fields(b"Content: 2", b" -Length"), b"400"),
    "a coding inside a folded value": (fields(b"Content-Length: 2", b"X-Any: y", b" Transfer-Encoding: chunked"), b"400"),
    "a fold by a tab": (fields(b"Content-Length: 2", b"X-Any: y", b"\tz"), b"400"),
    # Ends of lines.
    "a bare LF behind a field": (fields(b"Content-Length: 2\nTransfer-Encoding: chunked"), b"400"),
    "a bare LF that hides a coding": (fields(b"Content-Length: 2", b"X-Any: y\nTransfer-Encoding: chunked"), b"400"),
    "a bare CR that hides a coding": (fields(b"Content-Length: 2", b"X-Any: y\rTransfer-Encoding: chunked"), b"400"),
    "a bare CR behind a coding": (fields(b"Transfer-Encoding: chunked\r", body=CHUNKS), b"400"),
    "a bare LF behind the request line": (START.replace(b"\r\n", b"\n", 1) + b"Content-Length: 2\r\n\r\n{}", b"400"),
    "a bare LF as the empty line": (START + b"Content-Length: 2\r\n\n{}", b"400"),
    "bare LFs at the end of the head": (START + b"Content-Length: 2\n\n{}", b"400"),
    "a NUL byte that hides a coding": (fields(b"Content-Length: 2", b"X-Any: y\0\0Transfer-Encoding: chunked"), b"400"),
    "two NUL bytes that look like the end of a line": (fields(b"X-Any: y\0\0Content-Length: 40"), b"400"),
    # Codings.
    "an unknown coding": (fields(b"Transfer-Encoding: gzip"), b"501"),
    "an unknown coding before chunks": (fields(b"Transfer-Encoding: gzip, chunked", body=CHUNKS), b"501"),
    "an unknown coding behind chunks": (fields(b"Transfer-Encoding: chunked, identity", body=CHUNKS), b"501"),
    "an unknown coding beside a length": (fields(b"Content-Length: 2", b"Transfer-Encoding: xchunked"), b"501"),
    "identity": (fields(b"Transfer-Encoding: identity", b"Content-Length: 2"), b"501"),
    "chunks twice": (fields(b"Transfer-Encoding: chunked, chunked", body=CHUNKS), b"400"),
    "chunks in two fields": (fields(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNKS), b"400"),
    "chunks, then an unknown coding, in two fields":
        (fields(b"Transfer-Encoding: chunked", b"Transfer-Encoding: x", body=CHUNKS), b"501"),
    "an empty coding": (fields(b"Transfer-Encoding:", b"Content-Length: 2"), b"400"),
    "a quoted coding": (fields(b'Transfer-Encoding: "chunked"', body=CHUNKS), b"400"),
    "a coding with a parameter": (fields(b"Transfer-Encoding: chunked;a=b", body=CHUNKS), b"400"),
    "a vertical tab before a coding": (fields(b"Transfer-Encoding: \x0bchunked", body=CHUNKS), b"400"),
    "a blank behind a coding": (fields(b"Transfer-Encoding: chunked ", body=CHUNKS), b"400"),
    "chunks by HTTP/1.0": (fields(b"Transfer-Encoding: chunked", body=CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0"), b"400"),
    # Chunks.
    "a chunk size with a prefix": (fields(b"Transfer-Encoding: chunked", body=b"0x2\r\n{}\r\n0\r\n\r\n"), b"400"),
    "a chunk size with a sign": (fields(b"Transfer-Encoding: chunked", body=b"+2\r\n{}\r\n0\r\n\r\n"), b"400"),
    "a negative chunk size": (fields(b"Transfer-Encoding: chunked", body=b"-2\r\n{}\r\n0\r\n\r\n"), b"400"),
    "a blank before a chunk size": (fields(b"Transfer-Encoding: chunked", body=b" 2\r\n{}\r\n0\r\n\r\n"), b"400"),
    "a blank behind a chunk size": (fields(b"Transfer-Encoding: chunked", body=b"2 \r\n{}\r\n0\r\n\r\n"), b"400"),
    "an empty chunk size": (fields(b"Transfer-Encoding: chunked", body=b"\r\n{}\r\n0\r\n\r\n"), b"400"),
    "a chunk size beyond 64 bits":
        (fields(b"Transfer-Encoding: chunked", body=b"10000000000000002\r\n{}\r\n0\r\n\r\n"), b"413"),
    "a chunk longer than its size": (fields(b"Transfer-Encoding: chunked", body=b"1\r\n{}\r\n0\r\n\r\n"), b"400"),
    "a bare CR behind a chunk": (fields(b"Transfer-Encoding: chunked", body=b"2\r\n{}\r0\r\n\r\n"), b"400"),
    # The rest of the head.
    "two hosts": (fields(b"Host: y", b"Content-Length: 2"), b"400"),
    "no host": (fields(b"Content-Length: 2").replace(b"Host: x\r\n", b""), b"400"),
    "a blank in the target": (fields(b"Content-Length: 2").replace(b" HTTP", b" x HTTP"), b"400"),
    "a request without a version": (b"GET /healthz\r\nHost: x\r\n\r\n", b"400"),
    "two blanks behind the method": (fields(b"Content-Length: 2").replace(b"POST ", b"POST  "), b"400"),
    "a NUL byte in the target": (fields(b"Content-Length: 2").replace(b"/" + NAMES.encode(), b"/healthz\0/x"), b"400"),
    "a bare CR in the target": (fields(b"Content-Length: 2").replace(b"/" + NAMES.encode(), b"/a\rb"), b"400"),
}

TAKEN = {
    "a length": fields(b"Content-Length: 2"),
    "a length in other letters": fields(b"cONTENT-lENGTH: 2"),
    "a length without a blank": fields(b"Content-Length:2"),
    "a length behind blanks": fields(b"Content-Length: \t 2"),
    "a length with zeros before it": fields(b"Content-Length: 0002"),
    "chunks": fields(b"Transfer-Encoding: chunked", body=CHUNKS),
    "chunks in other letters": fields(b"transfer-encoding:CHUNKED", body=CHUNKS),
    "chunks with an extension": fields(b"Transfer-Encoding: chunked", body=b"2;a=b\r\n{}\r\n0\r\n\r\n"),
    "chunks with trailers": fields(b"Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\nContent-Length: 9\r\n\r\n"),
    "empty values and long ones": fields(b"X-Empty:", b"X-Blank: ", b"X-Long: " + 3000 * b"y", b"Content-Length: 2"),
    "bytes above 127 in a value": fields(b"X-Any: caf\xe9\t\xc3\xa9", b"Content-Length: 2"),
    "cookies and arguments": fields(b"Cookie: a=b; c=d", b"Content-Length: 2").replace(b" HTTP", b"?x=%41&y=b HTTP", 1),
    "an escaped target": fields(b"Content-Length: 2").replace(b"/querier", b"/%71uerier"),
    "an empty line before the request": b"\r\n" + fields(b"Content-Length: 2"),
}


def read_all(sock):
    out = b""
    try:
        while more := sock.recv(65536):
            out += more
    except ConnectionError:
        pass
    return out


class Smuggling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0

    def exchange(self, pieces):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for piece in pieces:
                    sock.sendall(piece)
                sock.shutdown(socket.SHUT_WR)
            except OSError:  # refused before all of it was sent
                pass
            return read_all(sock)

    def check_refused(self, name, answer, status):
        self.assertEqual(answer[:12], b"HTTP/1.1 " + status, (name, answer[:300]))
        # The library answers a Content-Length that is no number itself, with the head of its answer twice.
        self.assertEqual(set(re.findall(rb"HTTP/1\.1 (\d+)", answer)), {status}, (name, answer))
        self.assertLessEqual(answer.count(b"HTTP/1.1 "), 2 if b"wrong value" in answer or b"too large" in answer else 1)
        self.assertIn(b"connection: close", answer.lower(), name)

    def test_doubtful_requests_are_refused_and_hide_no_other_request(self):
        for name, (request, status) in REFUSED.items():
            with self.subTest(name):
                self.check_refused(name, self.exchange([request + HIDDEN]), status)

    def test_doubtful_requests_are_refused_in_pieces_and_after_another_request(self):
        first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        for name, (request, status) in REFUSED.items():
            with self.subTest(name):
                answer = self.exchange([bytes([byte]) for byte in request] + [HIDDEN])
                self.check_refused(name, answer, status)
                answer = self.exchange([first + request + HIDDEN])
                self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer[:100])
                self.check_refused(name, answer[answer.index(b"ok\n") + 3:], status)

    def test_correct_requests_and_the_next_ones_are_answered(self):
        for name, request in TAKEN.items():
            with self.subTest(name):
                answer = self.exchange([request + HIDDEN])
                self.assertEqual(answer.count(b"HTTP/1.1 "), 2, (name, answer))
                self.assertIn(b"HTTP/1.1 404", answer, name)
                # The range is missing, which only a request that was read can tell.
                self.assertNotIn(b"HTTP/1.1 501", answer, name)

    def test_an_unknown_transfer_coding_is_refused_at_once(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as sock:
            sock.sendall(fields(b"Transfer-Encoding: gzip", body=b""))
            # The connection is still open for writing: nobody waits for a body that has no end.
            answer = read_all(sock)
        self.assertTrue(answer.startswith(b"HTTP/1.1 501"), answer[:100])
        self.assertIn(b"chunked is the only one supported", answer)


if __name__ == "__main__":
    unittest.main(verbosity=2)
