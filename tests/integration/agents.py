"""Agents of SkyWalking, played: what they report and ask, in messages encoded by hand from the public descriptions.

Rover profiles processes from outside; Instance is a program with a language agent in it. Both talk to one server at a time
(`server`, which a test may change to another one on the same database), over gRPC as real ones do. A test that sets a
tenant sends it as X-Scope-OrgID.
"""

import base64
import hashlib
import json
import uuid

import wire


def b64(text):
    return base64.b64encode(text.encode()).decode()


def service_id(service):
    return b64(service) + ".1"


def instance_id(service, instance):
    return service_id(service) + "_" + b64(instance)


def process_id(service, instance, process):
    return hashlib.sha256((process + "_" + instance_id(service, instance)).encode()).hexdigest()


def pairs(properties):
    """{name: value} as repeated KeyStringValuePair values."""
    return [[(1, name), (2, value)] for name, value in properties.items()]


def commands(answer):
    """Decoded Commands as [(name, {argument: value})]."""
    found = []
    for raw in answer.get(1, []):
        command = wire.decode(raw)
        arguments = {}
        for pair in command.get(2, []):
            pair = wire.decode(pair)
            arguments[pair[1][0].decode()] = pair.get(2, [b""])[0].decode()
        found.append((command[1][0].decode(), arguments))
    return found


class Agent:
    def __init__(self, server, tenant=None, metadata=()):
        self.server = server
        self.metadata = list(metadata) + ([("x-scope-orgid", tenant)] if tenant else [])

    def call(self, method, fields, timeout=60):
        """One message there, one back, decoded."""
        return self.server.call(method, fields, self.metadata, timeout)

    def collect(self, method, messages, timeout=60):
        """A stream of messages (lists of fields) there, one answer back, decoded. No messages are fine, too."""
        encoded = [wire.encode(m) for m in messages]
        return wire.decode(self.server.stream_unary(method, encoded, self.metadata, timeout))

    def chat(self, method, messages, timeout=60):
        """A stream there, a stream back: the decoded answers. The next message is sent once one asks for an answer."""
        encoded = (wire.encode(m) for m in messages)
        return [wire.decode(a) for a in self.server.stream_stream(method, encoded, self.metadata, timeout)]


class Process:
    """A process as rover finds it."""

    def __init__(self, service, instance, name, labels=(), layer="K8S_SERVICE", pid=1, can_be_profiled=True,
                 properties=None, host=False):
        self.service, self.instance, self.name = service, instance, name
        self.labels, self.layer, self.pid, self.host = list(labels), layer, pid, host
        self.can_be_profiled = can_be_profiled
        self.properties = properties if properties is not None else {
            "host_ip": "10.0.0.1", "container_ip": "10.1.0.1", "pid": str(pid), "command_line": "/bin/" + name,
        }

    @property
    def process_id(self):
        return process_id(self.service, self.instance, self.name)

    def support(self):
        return {"support_ebpf_profiling": "true" if self.can_be_profiled else "false"}

    def entity(self):
        fields = [(1, self.layer), (2, self.service), (3, self.instance), (4, self.name)]
        return fields + [(5, label) for label in self.labels]

    def reported(self):
        """EBPFProcessProperties."""
        metadata = [(1, self.entity()), (2, self.pid)]
        metadata += [(3, pair) for pair in pairs({**self.properties, **self.support()})]
        return [(1 if self.host else 2, metadata)]

    def ping(self):
        """EBPFProcessPingPkg."""
        return [(1, self.entity())] + [(2, pair) for pair in pairs(self.support())]


class Rover(Agent):
    """An agent outside of the processes that it profiles. `ids`: those that the server has told, by process."""

    PROCESSES = "skywalking.v3.EBPFProcessService/"

    def __init__(self, server, tenant=None, agent_id=None, metadata=()):
        super().__init__(server, tenant, metadata)
        self.agent_id = agent_id or str(uuid.uuid4())
        self.processes = []
        self.ids = {}
        self.cursor = 0

    def report(self, *processes):
        """Report them, and look for each in the answer as rover does; those without an answer are never looked at again.
        Returns the ids in the order of the processes, None for one that was ignored."""
        self.processes += [p for p in processes if p not in self.processes]
        fields = [(1, p.reported()) for p in processes] + [(2, self.agent_id)]
        downstream = self.call(self.PROCESSES + "reportProcesses", fields).get(1, [])
        found = []
        for process in processes:
            told = next((i for i in (self.told(process, raw) for raw in downstream) if i), None)
            self.ids[process] = told
            found.append(told)
        return found

    @staticmethod
    def told(process, raw):
        """The id, if this downstream is of the process: same arm, pid and entity, labels in any order."""
        fields = wire.decode(raw)
        arm = fields.get(2 if process.host else 3)
        if not arm:
            return None
        arm = wire.decode(arm[0])
        entity = wire.decode(arm.get(2, [b""])[0])
        texts = [entity.get(n, [b""])[0].decode() for n in (1, 2, 3, 4)]
        same = (
            arm.get(1, [0])[0] == process.pid
            and texts == [process.layer, process.service, process.instance, process.name]
            and sorted(wire.texts(entity.get(5, []))) == sorted(process.labels)
        )
        return fields[1][0].decode() if same else None

    def keep_alive(self, *processes):
        """Of these, or of all that were reported and not ignored."""
        alive = processes or [p for p in self.processes if self.ids[p]]
        fields = [(1, p.ping()) for p in alive] + [(2, self.agent_id)]
        return commands(self.call(self.PROCESSES + "keepAlive", fields))

    # ---- tasks ----

    def query_tasks(self, lose_answer=False):
        """Ask once as rover does. What it would run: [{argument: value}]; its cursor passes commands of processes that it
        knows. lose_answer: the server has answered, but nothing came here."""
        answer = self.call("skywalking.v3.EBPFProfilingService/queryTasks", [(1, self.agent_id), (2, self.cursor)])
        if lose_answer:
            return []
        found = []
        for name, arguments in commands(answer):
            assert name == "EBPFProfilingTaskQuery", name
            if set(arguments["ProcessId"].split(",")) <= set(self.ids.values()):
                self.cursor = max(self.cursor, int(arguments["TaskUpdateTime"]))
                found.append(arguments)
        return found



class Instance(Agent):
    """A program with a language agent."""

    MANAGEMENT = "skywalking.v3.ManagementService/"

    def __init__(self, server, service, instance, tenant=None, layer="", metadata=()):
        super().__init__(server, tenant, metadata)
        self.service, self.instance, self.layer = service, instance, layer
        self.cursors = {}

    def report(self, properties=None):
        fields = [(1, self.service), (2, self.instance)]
        fields += [(3, pair) for pair in pairs(properties or {"OS Name": "Linux", "ipv4": "10.0.0.1"})]
        return commands(self.call(self.MANAGEMENT + "reportInstanceProperties", fields + [(4, self.layer)]))

    def keep_alive(self):
        fields = [(1, self.service), (2, self.instance), (3, self.layer)]
        return commands(self.call(self.MANAGEMENT + "keepAlive", fields))

    # ---- tasks ----

    TRACE = "skywalking.v3.ProfileTask/getProfileTaskCommands"
    ASYNC = "skywalking.v10.AsyncProfilerTask/getAsyncProfilerTaskCommands"
    PPROF = "skywalking.v10.PprofTask/getPprofTaskCommands"

    def query_tasks(self, method, lose_answer=False):
        """Ask once for tasks of a kind: [(name, {argument: value})]. The cursor of each kind is the highest CreateTime."""
        cursor = self.cursors.get(method, 0)
        answer = self.call(method, [(1, self.service), (2, self.instance), (3, cursor)])
        if lose_answer:
            return []
        found = commands(answer)
        self.cursors[method] = max([cursor] + [int(arguments["CreateTime"]) for _, arguments in found])
        return found

    def finish_task(self, task_id):
        """A trace task is done."""
        fields = [(1, self.service), (2, self.instance), (3, task_id)]
        return commands(self.call("skywalking.v3.ProfileTask/reportTaskFinish", fields))
    # ---- traces ----

    SEGMENTS = "skywalking.v3.TraceSegmentReportService/"
    SNAPSHOTS = "skywalking.v3.ProfileTask/collectSnapshot"

    def segment(self, trace_id, segment_id, spans, limited=False):
        """SegmentObject; spans: of span()."""
        fields = [(1, trace_id), (2, segment_id)] + [(3, span) for span in spans]
        return fields + [(4, self.service), (5, self.instance), (6, limited)]

    def send_segments(self, *segments):
        """As a stream."""
        return commands(self.collect(self.SEGMENTS + "collect", segments))

    def send_segments_in_sync(self, *segments):
        return commands(self.call(self.SEGMENTS + "collectInSync", [(1, segment) for segment in segments]))

    def send_snapshots(self, *snapshots):
        """Of snapshot(), as a stream."""
        return commands(self.collect(self.SNAPSHOTS, snapshots))


ENTRY, EXIT, LOCAL = 0, 1, 2


def span(span_id, name, start_ms, end_ms, parent=-1, kind=ENTRY, refs=(), peer="", layer=3, component=7001, error=False,
         tags=None, logs=()):
    """SpanObject; logs: [(ms, {key: value})]."""
    fields = [(1, span_id), (2, parent), (3, start_ms), (4, end_ms)] + [(5, ref) for ref in refs]
    fields += [(6, name), (7, peer), (8, kind), (9, layer), (10, component), (11, error)]
    fields += [(12, pair) for pair in pairs(tags or {})]
    return fields + [(13, [(1, at)] + [(2, pair) for pair in pairs(data)]) for at, data in logs]


def reference(trace_id, segment_id, span_id=0, across_threads=True, service="", instance="", endpoint="", address=""):
    """SegmentReference."""
    return [(1, int(across_threads)), (2, trace_id), (3, segment_id), (4, span_id), (5, service), (6, instance),
            (7, endpoint), (8, address)]


def snapshot(task_id, segment_id, sequence, at_ms, frames):
    """ThreadSnapshot; frames: from the root on."""
    return [(1, task_id), (2, segment_id), (3, at_ms), (4, sequence), (5, [(1, frame) for frame in frames])]


class Network:
    """What rover sends of one instance while a network task runs. An end is a process, "local" or "ip:port"."""

    METERS = "skywalking.v3.MeterReportService/collectBatch"
    LOGS = "skywalking.v3.LogReportService/collect"
    EVENTS = "skywalking.v3.SpanAttachedEventReportService/collect"

    def __init__(self, agent, service, instance):
        self.agent, self.service, self.instance = agent, service, instance

    @staticmethod
    def labels(client, server, side="client", protocol="http", ssl=False, **more):
        found = {"side": side, "protocol": protocol, "is_ssl": "true" if ssl else "false", **more}
        for role, end in (("client", client), ("server", server)):
            if isinstance(end, Process):
                found[role + "_process_id"] = end.process_id
            elif end == "local":
                found[role + "_local"] = "true"
            else:
                found[role + "_address"] = end
        return found

    @staticmethod
    def _labels(labels):
        return [(2, [(1, name), (2, value)]) for name, value in labels.items()]

    def value(self, name, value, labels):
        """MeterData"""
        return [(1, [(1, "rover_net_p_" + name)] + self._labels(labels) + [(3, float(value))])]

    def histogram(self, name, buckets, labels):
        """MeterData; {lower bound: count}"""
        buckets = [(3, [(1, float(lower)), (2, count)]) for lower, count in buckets.items()]
        return [(2, [(1, "rover_net_p_" + name)] + self._labels(labels) + buckets)]

    def flush(self, *meters, at_ms):
        """One set: who and when stand on its first element only."""
        header = [(3, self.service), (4, self.instance), (5, at_ms)]
        data = [(1, list(m) + (header if i == 0 else [])) for i, m in enumerate(meters)]
        return commands(self.agent.collect(self.METERS, [data]))

    @staticmethod
    def end(end):
        if isinstance(end, Process):
            return {"process_id": end.process_id, "local": False, "address": ""}
        return {"process_id": "", "local": end == "local", "address": "" if end == "local" else end}

    def sampled(self, trace_id, client, server, uri="/", reason="slow", latency=1, status=200, side="client",
                provider="skywalking", component="http", ssl=False, at_ms=0, **more):
        """LogData without the names of its sender."""
        body = {
            "uri": uri, "reason": reason, "latency": latency, "trace_provider": provider,
            "client_process": self.end(client), "server_process": self.end(server), "detect_point": side,
            "component": component, "ssl": ssl, "status": status, **more,
        }
        return self.log(json.dumps(body), trace_id, at_ms)

    @staticmethod
    def log(text, trace_id="", at_ms=0, kind="NET_PROFILING_SAMPLED_TRACE"):
        return [
            (1, at_ms), (5, [(1, "json"), (3, [(1, text)])]), (6, [(1, trace_id)]),
            (7, [(1, [(1, "LOG_KIND"), (2, kind)])]), (8, "K8S_SERVICE"),
        ]

    def send_logs(self, *logs):
        """One stream; service and instance stand on its first message only."""
        header = [(2, self.service), (3, self.instance)]
        return commands(self.agent.collect(self.LOGS, [list(m) + (header if i == 0 else []) for i, m in enumerate(logs)]))

    def event(self, trace_id, name, tags, start_ns=0, end_ns=0, segment_id="", span_id="", named=True, zipkin=False):
        """SpanAttachedEvent"""
        names = {"service_name": self.service, "service_instance_name": self.instance, "process_name": "p"} if named else {}
        instant = lambda ns: [(1, ns // 10**9), (2, ns % 10**9)]
        context = [(1, 1 if zipkin else 0), (2, trace_id), (3, segment_id), (4, span_id)]
        fields = [(1, instant(start_ns)), (2, name), (3, instant(end_ns))]
        return fields + [(4, pair) for pair in pairs({**tags, **names})] + [(6, context)]

    def send_events(self, *events):
        return commands(self.agent.collect(self.EVENTS, events))
