"""OpenTelemetry's traces, played: requests of its protocol by hand from the public description, in both encodings; and stored
spans, read from their bytes (server/model/agents/spans.c)."""

import ctypes
import json
import os
import time

import wire

EXPORT = "opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTO, JSON = "application/x-protobuf", "application/json"
INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = range(1, 6)
OK, ERROR = 1, 2
MS = 1_000_000


def new_trace():
    return os.urandom(16)


def new_span():
    return os.urandom(8)


def any_value(value):
    if isinstance(value, bool):
        return [(2, value)]
    if isinstance(value, int):
        return [(3, value)]
    if isinstance(value, float):
        return [(4, value)]
    if isinstance(value, bytes):
        return [(7, value)]
    if isinstance(value, list):
        return [(5, [(1, any_value(v)) for v in value])]
    if isinstance(value, dict):
        return [(6, attributes(1, value))]
    return [(1, value)]


def attributes(number, values):
    return [(number, [(1, key), (2, any_value(value))]) for key, value in values.items()]


def span(trace, span_id=None, name="work", start=None, end=None, kind=SERVER, parent=b"", status=0, tags=None):
    """As a dict that both encodings are made from; times in nanoseconds, now by default."""
    start = time.time_ns() - 50 * MS if start is None else start
    return {"trace": trace, "id": new_span() if span_id is None else span_id, "name": name, "start": start, "kind": kind,
            "end": start + 10 * MS if end is None else end, "parent": parent, "status": status, "tags": tags or {}}


def span_fields(s):
    """With an event and a link, of which nothing is kept."""
    fields = [(1, s["trace"]), (2, s["id"]), (3, "vendor=1"), (5, s["name"]), (6, s["kind"]), (7, ("fixed64", s["start"])),
              (8, ("fixed64", s["end"])), *attributes(9, s["tags"]),
              (11, [(1, ("fixed64", s["start"])), (2, "an event"), *attributes(3, {"hostname": "of the event"})]),
              (13, [(1, new_trace()), (2, new_span())]), (15, [(2, "why"), (3, s["status"])])]
    return fields + ([(4, s["parent"])] if s["parent"] else [])


def request(*resources):
    """Of (resource attributes, spans), in protobuf."""
    return wire.encode([
        (1, [(1, attributes(1, values)), (2, [(1, [(1, "a library")]), *[(2, span_fields(s)) for s in spans]])])
        for values, spans in resources
    ])


def json_value(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [json_value(v) for v in value]}}
    return {"stringValue": value}


def json_attributes(values):
    return [{"key": key, "value": json_value(value)} for key, value in values.items()]


def json_span(s, id_text=bytes.hex):
    return {"traceId": id_text(s["trace"]), "spanId": id_text(s["id"]), "parentSpanId": id_text(s["parent"]), "name": s["name"],
            "kind": s["kind"], "startTimeUnixNano": str(s["start"]), "endTimeUnixNano": str(s["end"]),
            "attributes": json_attributes(s["tags"]), "status": {"code": s["status"]}, "unknownToUs": {"a": [1]}}


def json_request(*resources, id_text=bytes.hex):
    return json.dumps({"resourceSpans": [
        {"resource": {"attributes": json_attributes(values)}, "scopeSpans": [{"spans": [json_span(s, id_text) for s in spans]}]}
        for values, spans in resources
    ]})


# ---- what was stored ----


def inflated(frame):
    """By the library that hearthd is linked with, too: Python has none for zstd."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    n = zstd.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
    out = ctypes.create_string_buffer(n)
    assert zstd.ZSTD_decompress(out, ctypes.c_size_t(n), frame, ctypes.c_size_t(len(frame))) == n
    return out.raw


class Packed:
    def __init__(self, data):
        self.data, self.at = inflated(data[1:]) if data[0] == 1 else data[1:], 0

    def number(self):
        value, self.at = wire.read_varint(self.data, self.at)
        return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def wrapped(self, base):
        """A difference of 64-bit numbers put back, as unsigned."""
        return (base + self.signed()) & (1 << 64) - 1

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n : self.at]


def unpack(data, start_at):
    """[{id, parent, kind, status, start, end, name, tags}] of a row's spans."""
    packed = Packed(data)
    assert packed.number() == 1
    texts = [""] + [packed.bytes(packed.number()).decode() for _ in range(packed.number())]
    text = lambda: texts[packed.number()]
    unit = 1_000_000 if packed.number() else 1
    spans, before = [], 0
    for _ in range(packed.number()):
        flags, found = packed.number(), {}
        found["id"] = before = packed.wrapped(before)
        found["parent"] = packed.wrapped(before) if flags & 1 else None
        found["kind"], found["status"] = flags >> 3 & 7, flags >> 6
        found["start"] = start_at + packed.signed() * unit
        found["end"] = found["start"] + packed.signed() * unit
        found["name"], found["tags"] = text(), {}
        assert text() == "" and packed.signed() == 0 and packed.signed() == 0  # peer, layer, component
        if flags & 4:
            assert packed.number() == 0  # references
            found["tags"] = {text(): text() for _ in range(packed.number())}
            assert packed.number() == 0  # logs
        spans.append(found)
    assert packed.at == len(packed.data)
    return spans


def groups(server, trace):
    """Rows of a trace by service and start, as dicts with their spans."""
    rows = server.sql(
        "SELECT s.name, g.instance, g.start_at, g.duration, g.kind, g.flags, g.endpoint, g.n_spans, encode(g.segment_id, 'hex'),"
        " encode(g.spans, 'hex'), t.name FROM hearth_data.span_group g JOIN hearth_data.service s USING (service_id) JOIN"
        " hearth_data.tenant t USING (tenant_id) WHERE g.trace_id = '\\x%s' ORDER BY s.name, g.start_at, g.segment_id" % trace.hex()
    )
    return [
        {"service": r[0], "instance": r[1], "start": int(r[2]), "duration": int(r[3]), "kind": int(r[4]), "flags": int(r[5]),
         "endpoint": r[6], "n_spans": int(r[7]), "segment": r[8], "tenant": r[10],
         "spans": lambda r=r: unpack(bytes.fromhex(r[9]), int(r[2]))}
        for r in rows
    ]
