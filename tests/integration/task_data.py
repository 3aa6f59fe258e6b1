"""What agents send for tasks, by hand (wire.py), and what Hearth says of it.

Numbers of the agents' public protocol: EBPFProfilingData 1 task, 2 onCPU, 3 offCPU; EBPFProfilingTaskMetadata 1 taskId,
2 processId, 3 profilingStartTime, 4 currentTime; EBPFProfilingStackMetadata 1 stackType, 2 stackId, 3 stackSymbols;
EBPFOnCPUProfiling 1 stacks, 2 dumpCount; EBPFOffCPUProfiling 1 stacks, 2 switchCount, 3 duration; GoProfileData 1 taskId,
2 payload, 3 isLast; PprofData, AsyncProfilerData 1 metadata, 2 errorMessage, 3 content; their metadata 1 service,
2 serviceInstance, 3 taskId, 4 type, 5 contentSize; their answers 1 status.
"""

import base64
import hashlib
import queue
import struct

import grpc

import wire

STACKS = "skywalking.v3.EBPFProfilingService/collectProfilingData"
GO = "skywalking.v3.ProfileTask/goProfileReport"
PPROF = "skywalking.v10.PprofTask/collect"
ASYNC = "skywalking.v10.AsyncProfilerTask/collect"
TASKS = "hearth.v1.TaskService/"


def process_id(service, instance, process):
    name = base64.b64encode
    whole = "%s.1_%s" % (name(service.encode()).decode(), name(instance.encode()).decode())
    return hashlib.sha256(("%s_%s" % (process, whole)).encode()).hexdigest()


def schedule_id(task, process, start):
    return hashlib.sha256(("%s_%s_%d" % (task, process, start)).encode()).hexdigest()


def metadata(task, process, start, now):
    return (1, [(1, task), (2, process), (3, start), (4, now)])


def stacks(ids, kernel="", user=""):
    """Root first, as people read; sent leaf first. The agent's numbers: (kernel, user)."""
    out = []
    if kernel:
        out.append((1, [(1, 0), (2, ids[0])] + [(3, s) for s in reversed(kernel.split("-"))]))
    if user:
        out.append((1, [(1, 1), (2, ids[1])] + [(3, s) for s in reversed(user.split("-"))]))
    return out


def on_cpu(ids, count, kernel="", user="", task=None):
    return wire.encode(([task] if task else []) + [(2, stacks(ids, kernel, user) + [(2, count)])])


def off_cpu(ids, switches, duration, kernel="", user="", task=None):
    return wire.encode(([task] if task else []) + [(3, stacks(ids, kernel, user) + [(2, switches), (3, duration)])])


def collect(server, messages, method=STACKS, timeout=60):
    """One stream to its end; grpc.RpcError otherwise."""
    return server.channel.stream_unary("/" + method)(iter(messages), timeout=timeout)


class Upload:
    """A stream both ways, fed as the test goes."""

    def __init__(self, server, method):
        self.queue = queue.Queue()
        self.call = server.channel.stream_stream("/" + method)(iter(self.queue.get, None), timeout=60)

    def send(self, fields):
        self.queue.put(wire.encode(fields))
        return self

    def answer(self):
        return wire.decode(next(self.call)).get(1, [0])[0]

    def end(self):
        self.queue.put(None)
        return [wire.decode(m).get(1, [0])[0] for m in self.call]

    def error(self):
        try:
            self.end()
        except grpc.RpcError as error:
            self.queue.put(None)
            return error.code(), error.details()
        raise AssertionError("the upload ended well")


def about(service, instance, task, kind=0, size=0):
    return (1, [(1, service), (2, instance), (3, task), (4, kind), (5, size)])


def upload(server, method, service, instance, task, content, piece=1 << 20):
    """As agents do it: metadata, their answer, the content in pieces."""
    stream = Upload(server, method).send([about(service, instance, task, 0, len(content))])
    status = stream.answer()
    if status == 0:
        for at in range(0, len(content), piece):
            stream.send([(3, content[at : at + piece])])
    stream.end()
    return status


def jfr(*payloads):
    """A recording without samples: a chunk for each payload, which is an event of an unknown type."""
    names = [b"root", b"metadata"]
    metadata = bytes([0, 0, 0, 0, len(names)]) + b"".join(bytes([3, len(n)]) + n for n in names) + bytes([0, 0, 1, 1, 0, 0])
    metadata = bytes([len(metadata) + 1]) + metadata

    def event(payload):
        body = bytes([99]) + payload
        for n in range(1, 10):  # the size counts its own bytes
            size = wire.varint(len(body) + n)
            if len(size) == n:
                return size + body
        raise AssertionError("no size fits")

    def chunk(payload):
        body = metadata + event(payload)
        return struct.pack(">4sHHQQQQQQQI", b"FLR\0", 2, 1, 68 + len(body), 68, 68, 0, 0, 0, 10**9, 1) + body

    return b"".join(map(chunk, payloads))


def moved_jfr(recording, at_ms):
    """The recording with all chunks beginning at that time."""
    out, at = b"", 0
    while at < len(recording):
        size = int.from_bytes(recording[at + 8 : at + 16], "big")
        out += recording[at : at + 32] + (at_ms * 1_000_000).to_bytes(8, "big") + recording[at + 40 : at + size]
        at += size
    return out


def go_report(task, content, piece=1000):
    pieces = [content[at : at + piece] for at in range(0, len(content), piece)]
    return [wire.encode([(1, task), (2, p), (3, i == len(pieces) - 1)]) for i, p in enumerate(pieces)]


def trees(answer):
    """AnalyzeStacks: {root-first ((symbol, is of the kernel), ..): value of its own}."""
    out = {}
    for tree in answer.get("trees", []):
        paths, totals, below = {}, {}, {}
        for e in tree["elements"]:
            parent = e.get("parentId", 0)
            frame = (e["symbol"], e["stackType"] == "STACK_TYPE_KERNEL")
            paths[e["id"]] = paths.get(parent, ()) + (frame,)
            totals[e["id"]] = int(e["total"])
            below[parent] = below.get(parent, 0) + int(e["total"])
        for i, path in paths.items():
            value = totals[i] - below.get(i, 0)
            if value:
                out[path] = out.get(path, 0) + value
    return out


def names(found):
    """The same without the space."""
    out = {}
    for path, value in found.items():
        key = tuple(symbol for symbol, _ in path)
        out[key] = out.get(key, 0) + value
    return out
