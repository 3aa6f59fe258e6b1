"""Profiles by OpenTelemetry's protocol, played: an export is written as its JSON, and translated to protobuf by a table of
the public field numbers."""

import ctypes
import json

import wire

EXPORT = "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
PATH = "/v1development/profiles"
PROTO, JSON = "application/x-protobuf", "application/json"

# Name in JSON: number, then the message, int, fixed64, text or bytes.
MESSAGES = {
    "Export": {"resourceProfiles": (1, "ResourceProfiles"), "dictionary": (2, "Dictionary")},
    "ResourceProfiles": {"resource": (1, "Resource"), "scopeProfiles": (2, "ScopeProfiles"), "schemaUrl": (3, "text")},
    "Resource": {"attributes": (1, "KeyValue")},
    "ScopeProfiles": {"scope": (1, "Scope"), "profiles": (2, "Profile"), "schemaUrl": (3, "text")},
    "Scope": {"name": (1, "text"), "version": (2, "text"), "attributes": (3, "KeyValue")},
    "KeyValue": {"key": (1, "text"), "value": (2, "AnyValue"), "keyStrindex": (3, "int")},
    "AnyValue": {"stringValue": (1, "text"), "boolValue": (2, "int"), "intValue": (3, "int"), "stringValueStrindex": (8, "int")},
    "Profile": {"sampleType": (1, "ValueType"), "samples": (2, "Sample"), "timeUnixNano": (3, "fixed64"),
                "durationNano": (4, "int"), "periodType": (5, "ValueType"), "period": (6, "int"), "profileId": (7, "bytes"),
                "attributeIndices": (11, "int")},
    "ValueType": {"typeStrindex": (1, "int"), "unitStrindex": (2, "int")},
    "Sample": {"stackIndex": (1, "int"), "attributeIndices": (2, "int"), "linkIndex": (3, "int"), "values": (4, "int"),
               "timestampsUnixNano": (5, "fixed64")},
    "Dictionary": {"mappingTable": (1, "Mapping"), "locationTable": (2, "Location"), "functionTable": (3, "Function"),
                   "linkTable": (4, "Link"), "stringTable": (5, "text"), "attributeTable": (6, "Attribute"),
                   "stackTable": (7, "Stack")},
    "Mapping": {"memoryStart": (1, "int"), "memoryLimit": (2, "int"), "fileOffset": (3, "int"), "filenameStrindex": (4, "int"),
                "attributeIndices": (5, "int")},
    "Location": {"mappingIndex": (1, "int"), "address": (2, "int"), "lines": (3, "Line"), "attributeIndices": (4, "int")},
    "Line": {"functionIndex": (1, "int"), "line": (2, "int"), "column": (3, "int")},
    "Function": {"nameStrindex": (1, "int"), "systemNameStrindex": (2, "int"), "filenameStrindex": (3, "int"),
                 "startLine": (4, "int")},
    "Link": {"traceId": (1, "bytes"), "spanId": (2, "bytes")},
    "Attribute": {"keyStrindex": (1, "int"), "value": (2, "AnyValue"), "unitStrindex": (3, "int")},
    "Stack": {"locationIndices": (1, "int")},
}


def one(value, kind):
    if kind == "int":
        return int(value)
    if kind == "fixed64":
        return "fixed64", int(value)
    if kind == "bytes":
        return bytes.fromhex(value)
    return value if kind == "text" else fields(value, kind)


def fields(message, kind):
    out = []
    for name, value in message.items():
        number, of = MESSAGES[kind][name]
        if isinstance(value, list) and of == "int":
            out.append((number, ("packed", [int(v) for v in value])))
        else:
            out += [(number, one(v, of)) for v in (value if isinstance(value, list) else [value])]
    return out


def to_proto(export):
    return wire.encode(fields(export, "Export"))


def to_json(export):
    return json.dumps(export).encode()


def zstd(data):
    """By the library that hearthd is linked with: Python has none."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(library.ZSTD_compressBound(ctypes.c_size_t(len(data))))
    n = library.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:n]


class Exporter:
    """An export that grows: functions and attributes go to the dictionary, profiles to their resources."""

    def __init__(self):
        empty = {}
        self.tables = {"mappingTable": [empty], "locationTable": [empty], "functionTable": [empty], "linkTable": [empty],
                       "stringTable": [""], "attributeTable": [empty], "stackTable": [empty]}
        self.resources = []

    def entry(self, table, value):
        """The index of a value, which is added if it is new."""
        entries = self.tables[table]
        if value not in entries:
            entries.append(value)
        return entries.index(value)

    def text(self, text):
        return self.entry("stringTable", text)

    def attribute(self, key, value):
        of = {"intValue": str(value)} if isinstance(value, int) else {"stringValueStrindex": self.text(value)}
        return self.entry("attributeTable", {"keyStrindex": self.text(key), "value": of})

    def link(self, trace, span):
        return self.entry("linkTable", {"traceId": trace, "spanId": span})

    def frame(self, name):
        function = self.entry("functionTable", {"nameStrindex": self.text(name)})
        return self.entry("locationTable", {"lines": [{"functionIndex": function, "line": "7"}]})

    def native(self, filename, build_id, address):
        """A frame without symbols."""
        mapping = self.entry("mappingTable", {
            "memoryStart": "4096", "memoryLimit": "65536", "filenameStrindex": self.text(filename),
            "attributeIndices": [self.attribute("process.executable.build_id.gnu", build_id)]})
        return self.entry("locationTable", {"mappingIndex": mapping, "address": str(address)})

    def stack(self, *frames):
        """Of names or places of native frames, leaf first."""
        frames = [self.frame(f) if isinstance(f, str) else f for f in frames]
        return self.entry("stackTable", {"locationIndices": frames})

    def type(self, name, unit):
        return {"typeStrindex": self.text(name), "unitStrindex": self.text(unit)}

    def sample(self, stack, values=(), timestamps=(), attributes=None, link=0):
        return {"stackIndex": stack, "values": [str(v) for v in values], "timestampsUnixNano": [str(t) for t in timestamps],
                "attributeIndices": [self.attribute(k, v) for k, v in (attributes or {}).items()], "linkIndex": link}

    def cpu(self, time_ns, samples, period=50_000_000, **more):
        """What the eBPF profiler sends: counts of samples, with a period of CPU time."""
        return {"sampleType": self.type("samples", "count"), "periodType": self.type("cpu", "nanoseconds"),
                "period": str(period), "timeUnixNano": str(time_ns), "durationNano": "5000000000", "samples": samples, **more}

    def resource(self, attributes, *profiles):
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        self.resources.append({"resource": {"attributes": attributes},
                               "scopeProfiles": [{"scope": {"name": "a profiler"}, "profiles": list(profiles)}]})
        return self

    def export(self):
        return {"resourceProfiles": self.resources, "dictionary": self.tables}
