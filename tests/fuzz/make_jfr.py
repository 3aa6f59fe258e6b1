#!/usr/bin/env python3
"""Make the seeds corpus/jfr/made_*: recordings of a few hundred bytes, which mutate better than real ones.

    make_jfr.py

Each recording declares only the fields that it uses. Format: jdk.jfr.internal of OpenJDK, version 2.1 of chunks.
"""

import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus" / "jfr"
START_NS = 1_700_000_000_000_000_000
HEADER_BYTES = 68

# Types by name: id and fields, each with its type; "*": a key of a pool, "[": an array.
STRING, INT, LONG, FLOAT, DOUBLE, BOOL = range(20, 26)
PRIMITIVES = {
    "java.lang.String": STRING, "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE, "boolean": BOOL,
}
STACK, FRAME, METHOD, CLASS, SYMBOL, THREAD, STATE = range(30, 37)
POOLS = {
    "jdk.types.StackTrace": (STACK, [("truncated", BOOL, ""), ("frames", FRAME, "[")]),
    "jdk.types.StackFrame": (FRAME, [("method", METHOD, "*"), ("lineNumber", INT, ""), ("bytecodeIndex", INT, "")]),
    "jdk.types.Method": (METHOD, [("type", CLASS, "*"), ("name", SYMBOL, "*"), ("descriptor", SYMBOL, "*")]),
    "java.lang.Class": (CLASS, [("name", SYMBOL, "*")]),
    "jdk.types.Symbol": (SYMBOL, [("string", STRING, "")]),
    "java.lang.Thread": (THREAD, [("osName", STRING, ""), ("osThreadId", LONG, ""), ("javaName", STRING, ""),
                                  ("javaThreadId", LONG, "")]),
    "jdk.types.ThreadState": (STATE, [("name", STRING, "")]),
}


def number(n):
    """Seven bits a byte, the lowest first; the ninth byte has eight."""
    out = b""
    for _ in range(8):
        if n < 0x80:
            return out + bytes([n])
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def text(value):
    """A text in the encoding of its type: None, str as UTF-8, bytes as Latin-1, a list as UTF-16, an int as a key."""
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return b"\2" + number(value)
    if isinstance(value, bytes):
        return b"\5" + number(len(value)) + value
    if isinstance(value, list):
        return b"\4" + number(len(value)) + b"".join(map(number, value))
    return b"\1" if value == "" else b"\3" + number(len(value.encode())) + value.encode()


def event(kind, body):
    size = len(number(kind)) + len(body) + 1
    return (number(size) if size < 0x80 else number(size + 1)) + number(kind) + body


def element(name, attributes=(), children=()):
    return (name, attributes, children)


def metadata(types):
    strings = []

    def key(value):
        if value not in strings:
            strings.append(value)
        return number(strings.index(value))

    def write(node):
        name, attributes, children = node
        out = key(name) + number(len(attributes))
        for attribute, value in attributes:
            out += key(attribute) + key(value)
        return out + number(len(children)) + b"".join(map(write, children))

    classes = []
    for name, (kind, fields) in types.items():
        children = [
            element("field", [("name", field), ("class", str(of))] + ([("constantPool", "true")] if how == "*" else [])
                    + ([("dimension", "1")] if how == "[" else []))
            for field, of, how in fields
        ]
        classes.append(element("class", [("name", name), ("id", str(kind))], children))
    tree = write(element("root", (), [element("metadata", (), classes), element("region", [("locale", "en")])]))
    return event(0, number(0) + number(0) + number(1) + number(len(strings)) + b"".join(map(text, strings)) + tree)


def value_of(kind, value):
    if kind == STRING:
        return text(value)
    if kind == FLOAT:
        return struct.pack(">f", value)
    if kind == DOUBLE:
        return struct.pack(">d", value)
    return number(value)


def checkpoint(names, encoding):
    """A stack trace of two frames, whose names have this encoding, a cut one without any, and one of an unknown method; two
    threads; two states; a constant text."""
    frames = number(2) + b"".join(number(n) for n in (1, 12, 0, 2, 0, 3))
    pools = [
        (STACK, [(1, b"\0" + frames), (2, b"\1" + number(0)), (3, b"\0" + number(1) + number(77) + b"\0\0")]),
        (METHOD, [(1, number(1) + number(2) + number(3)), (2, number(9) + number(4) + number(0))]),
        (CLASS, [(1, number(1))]),
        (SYMBOL, [(i + 1, text(encoding(name))) for i, name in enumerate(names)]),
        (THREAD, [(1, text("main") + number(77) + text(encoding("worker")) + number(1)),
                  (2, text(None) + number(0) + text("") + number(0))]),
        (STATE, [(1, text("STATE_RUNNABLE")), (2, text("STATE_SLEEPING"))]),
        (STRING, [(1, text(encoding("GET /cart")))]),
    ]
    body = number(0) + number(0) + number(0) + b"\1" + number(len(pools))
    for kind, constants in pools:
        body += number(kind) + number(len(constants)) + b"".join(number(key) + value for key, value in constants)
    return event(1, body)


def recording(events, names=("shop/Cart", "total", "(I)V", "run"), encoding=lambda name: name):
    """events: (name, [(field, type, how, value)...])."""
    types = {name: (kind, []) for name, kind in PRIMITIVES.items()} | dict(POOLS)
    bodies = b""
    for i, (name, fields) in enumerate(events):
        kind = types.setdefault(name, (100 + i, [field[:3] for field in fields]))[0]
        bodies += event(kind, b"".join(value_of(INT if how == "*" else of, value) for _, of, how, value in fields))
    constants, about = checkpoint(names, encoding), metadata(types)
    size = HEADER_BYTES + len(bodies) + len(constants) + len(about)
    header = b"FLR\0" + struct.pack(">HH", 2, 1)
    header += struct.pack(">qqq", size, HEADER_BYTES + len(bodies), size - len(about))
    header += struct.pack(">qqqqI", START_NS, 10_000_000_000, 0, 1_000_000_000, 1)
    return header + bodies + constants + about


def sample(name, *fields, state=1, stack=1):
    return (name, [("startTime", LONG, "", 5), ("sampledThread", THREAD, "*", 1), ("eventThread", THREAD, "*", 1),
                   ("stackTrace", STACK, "*", stack), ("state", STATE, "*", state), *fields])


def setting(kind, name, value):
    return ("jdk.ActiveSetting", [("startTime", LONG, "", 1), ("id", LONG, "", kind), ("name", STRING, "", name),
                                  ("value", STRING, "", value)])


def spans():
    ids = [("spanId", LONG, "", 0xB7), ("localRootSpanId", LONG, "", 0xB6), ("traceIdHi", LONG, "", 7),
           ("traceIdLo", LONG, "", 8)]
    endpoint = ("datadog.Endpoint", [("localRootSpanId", LONG, "", 0xB6), ("endpoint", STRING, "", "GET /cart")])
    by_key = ("datadog.Endpoint", [("localRootSpanId", LONG, "", 0xB6), ("endpoint", STRING, "*", 1)])
    config = ("datadog.DatadogProfilerConfig", [("cpuInterval", LONG, "", 10), ("wallInterval", LONG, "", 50)])
    sampled = [sample("datadog.ExecutionSample", *ids, ("weight", LONG, "", 2)),
               sample("datadog.MethodSample", *ids, ("weight", LONG, "", 3)),
               sample("datadog.ObjectSample", ("size", LONG, "", 64), ("weight", FLOAT, "", 1.5)),
               sample("datadog.HeapLiveObject", ("size", LONG, "", 64), ("weight", DOUBLE, "", 2.5)),
               sample("datadog.ExceptionSample")]
    return {"endpoint": recording([config, *sampled, endpoint]), "endpoint_key": recording([config, *sampled, by_key])}


def io():
    names = ["jdk.FileRead", "jdk.FileWrite", "jdk.SocketRead", "jdk.SocketWrite", "jdk.JavaMonitorEnter",
             "jdk.ThreadPark", "jdk.JavaMonitorWait"]
    return recording([sample(name, ("duration", LONG, "", 900), ("bytesRead", LONG, "", 10),
                             ("bytesWritten", LONG, "", 20)) for name in names])


def memory():
    sizes = [("tlabSize", LONG, "", 100), ("allocationSize", LONG, "", 16), ("weight", LONG, "", 17), ("size", LONG, "", 9)]
    names = ["jdk.ObjectAllocationInNewTLAB", "jdk.ObjectAllocationOutsideTLAB", "jdk.ObjectAllocationSample",
             "profiler.LiveObject", "profiler.Malloc", "jdk.JavaExceptionThrow", "jdk.JavaErrorThrow"]
    return recording([sample(name, *sizes) for name in names])


def field(tag, value):
    """A field of protobuf: a number, or bytes with their length."""
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    return number(tag << 3 | 2) + number(len(value)) + value


def odd_labels():
    """Messages of Pyroscope's agent with several labels, in any order, with unknown fields, and damaged ones."""
    def context(key, *labels):
        entries = [field(1, field(1, name) + field(2, value)) for name, value in labels]
        return field(1, field(1, key) + field(2, b"".join(entries) + field(7, 1)) + field(7, 1))

    texts = b"".join(field(2, field(1, key) + field(2, b"t%d" % key)) for key in (4, 3, 2, 1))
    many = [context(9, (1, 2)), context(5, (3, 4), (1, 2)), *(context(key, (1, 4)) for key in range(1, 5))]
    return {
        "many": b"".join(many) + texts + field(7, 1),
        "cut_entry": field(1, b"\x08"),
        "cut_label": field(1, field(1, 5) + field(2, b"\x0a\x09")),
        "cut_label_entry": field(1, field(1, 5) + field(2, field(1, b"\x08"))),
        "cut_text": field(2, b"\x08\x01\x12\x09a"),
        "cut": b"\x0a\x09",
    }


def main():
    contexts = [("contextId", LONG, "", 5), ("spanId", LONG, "", 3), ("spanName", LONG, "", 2)]
    cpu = [sample("jdk.ExecutionSample", *contexts), sample("jdk.NativeMethodSample")]
    wall = sample("profiler.WallClockSample", ("samples", INT, "", 4), state=2)
    # Numbers of one run, which become an underscore.
    generated = ("a/$$Lambda$14/0x00007f8b12345678", "run$$FastClassByCGLIB$$1a2b3c4d", "GeneratedMethodAccessor12",
                 "jdk/LambdaForm$MH+0x00007f0c34007a08/1790421142", "a/$$Lambda+0x00007f8b.123", "$Proxy7", "libjni-0a1b2c3d4e.so")
    # A message of Pyroscope's agent: context 5 has the label a=b, as texts 1 and 2.
    labels = bytes([10, 10, 8, 5, 18, 6, 10, 4, 8, 1, 16, 2, 18, 5, 8, 2, 18, 1]) + b"b" + bytes([18, 5, 8, 1, 18, 1]) + b"a"
    seeds = {
        "cpu": recording([setting(100, "event", "cpu"), setting(100, "interval", "10000000"), *cpu]),
        "period": recording([cpu[0], setting(100, "period", "20 ms"), setting(100, "interval", "0"),
                             setting(100, "wall", "0")]),
        "wall": recording([setting(100, "event", "wall"), setting(100, "wall", "50000000"), cpu[0], wall]),
        "memory": memory(),
        "io": io(),
        "latin1": recording(cpu, encoding=lambda name: (name + "\xe4").encode("latin-1")),
        "utf16": recording(cpu, encoding=lambda name: [ord(c) for c in name] + [0xE4, 0x20AC, 0xD83D, 0xDE00, 0xDE00, 0xD83D]),
        "constant_texts": recording([cpu[0], setting(100, 1, 1)], encoding=lambda name: name),
        "stacks": recording([sample("jdk.ExecutionSample", stack=stack) for stack in (2, 3)]),
        "native": recording(cpu, ("libc.so.6", "read", "()L;", "write")),
        "labels": recording(cpu) + b"labels" + labels,
        **{"labels_" + name: recording(cpu) + b"labels" + message for name, message in odd_labels().items()},
        **spans(),
        **{"class_%d" % i: recording(cpu, (name, "run", "()V", "run")) for i, name in enumerate(generated)},
    }
    for name, seed in seeds.items():
        (CORPUS / ("made_" + name)).write_bytes(seed)


if __name__ == "__main__":
    main()
