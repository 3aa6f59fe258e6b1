"""HTTP/2 frames by hand, for what no decent client sends: floods, resets, lies in the framing."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name, value):
    """Literal without indexing, no Huffman."""
    out = b"\x00"
    for text in (name, value):
        text = text if isinstance(text, bytes) else text.encode()
        if len(text) < 127:
            out += bytes([len(text)])
        else:
            rest = len(text) - 127
            out += b"\x7f"
            while rest >= 128:
                out += bytes([rest & 127 | 128])
                rest >>= 7
            out += bytes([rest])
        out += text
    return out


def call_headers(path, *more):
    pairs = [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
        ("te", "trailers"), ("content-type", "application/grpc"), *more,
    ]
    return b"".join(header(name, value) for name, value in pairs)


class Connection:
    def __init__(self, port, timeout=10):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def greet(self, *settings):
        payload = b"".join(struct.pack(">HI", key, value) for key, value in settings)
        self.send(PREFACE + frame(SETTINGS, 0, 0, payload))

    def read_frame(self):
        """(kind, flags, stream, payload); None when the server closed."""
        while True:
            if len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + size:
                    kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
                    payload, self.buffer = self.buffer[9 : 9 + size], self.buffer[9 + size :]
                    return kind, flags, stream & 0x7FFFFFFF, payload
            try:
                more = self.socket.recv(65536)
            except ConnectionError:
                return None
            if not more:
                return None
            self.buffer += more

    def read_until_end(self, stream=None):
        """Frames until END_STREAM or RST_STREAM of `stream`, GOAWAY, or the end; acknowledges SETTINGS."""
        frames = []
        while True:
            got = self.read_frame()
            if got is None:
                return frames
            frames.append(got)
            kind, flags, number, _ = got
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            if kind == GOAWAY:
                return frames
            if number == stream and (kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM)):
                return frames


def message(body, compressed=False):
    """The length-prefixed message of gRPC."""
    return struct.pack(">BI", int(compressed), len(body)) + body


def data_frames(stream, body, size=16384):
    """DATA frames with END_STREAM on the last; the caller minds flow control."""
    out = []
    for at in range(0, len(body), size) or [0]:
        last = at + size >= len(body)
        out.append(frame(DATA, END_STREAM if last else 0, stream, body[at : at + size]))
    return out
