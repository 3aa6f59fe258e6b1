"""An agent that follows policies: it asks for them, looks at its processes each second, checks each 5 s by its own
rule, reports metrics, and what it starts. Time is given to it, so that minutes pass at once.

The rule is a second implementation, of the public description: a list of slots for each monitor, one for each second."""

import json

import wire

QUERY_POLICIES = "skywalking.v3.ContinuousProfilingService/queryPolicies"
REPORT_TASK = "skywalking.v3.ContinuousProfilingService/reportProfilingTask"
COLLECT_BATCH = "skywalking.v3.MeterReportService/collectBatch"
COLLECT = "skywalking.v3.MeterReportService/collect"

# skywalking.v3.ContinuousProfilingTriggeredMonitorType
MONITORS = ["PROCESS_CPU", "PROCESS_THREAD_COUNT", "SYSTEM_LOAD", "HTTP_ERROR_RATE", "HTTP_AVG_RESPONSE_TIME"]
TARGETS = {"ON_CPU": 7, "OFF_CPU": 8, "NETWORK": 9}
SILENCE_MS = 20 * 60 * 1000


def commands(fields):
    """Commands -> [(name, {key: value})]"""
    found = []
    for command in fields.get(1, []):
        command = wire.decode(command)
        args = [wire.decode(arg) for arg in command.get(2, [])]
        found.append((command[1][0].decode(), {a[1][0].decode(): a.get(2, [b""])[0].decode() for a in args}))
    return found


def query_policies(to, uuids):
    """uuids: {service: uuid of what the agent has}; the entries of the answer, [] when there is no command."""
    found = commands(to.call(QUERY_POLICIES, [(1, [(1, service), (2, uuid)]) for service, uuid in uuids.items()]))
    if not found:
        return []
    ((name, args),) = found
    assert name == "ContinuousProfilingPolicyQuery", name
    assert sorted(args) == ["SerialNumber", "ServiceWithPolicyJSON"], args
    return json.loads(args["ServiceWithPolicyJSON"])


def cause(monitor, threshold, current, uri=None, is_regex=False):
    kind = MONITORS.index(monitor)
    if uri is None:
        return [(1, kind), (2, [(1, float(threshold)), (2, float(current))])]
    named = [(1 if is_regex else 2, uri)] if uri else []
    return [(1, kind), (3, named + [(3, float(threshold)), (4, float(current))])]


def report_task(to, service, instance, process, causes, target="ON_CPU", duration=600, uris=()):
    """The id of the task."""
    arm = [] if target is None else [(TARGETS[target], [(1, uri) for uri in uris])]
    ((name, args),) = commands(
        to.call(
            REPORT_TASK,
            [(1, "OS_LINUX"), (2, service), (3, instance), (4, process)] + [(5, c) for c in causes] + [(6, duration)] + arm,
        )
    )
    assert name == "ContinuousProfilingReportTask", name
    assert sorted(args) == ["SerialNumber", "TaskId"], args
    return args["TaskId"]


def meter(name, value, labels, service="", instance="", at_ms=0):
    """MeterData with a single value"""
    single = [(1, name)] + [(2, [(1, k), (2, v)]) for k, v in labels.items()] + [(3, float(value))]
    return [(1, single), (3, service), (4, instance), (5, at_ms)]


def send_meters(to, sets, method=COLLECT_BATCH):
    """One stream: each set is a message."""
    call = to.channel.stream_unary("/" + method)
    return call(iter([wire.encode(s) for s in sets]), timeout=60)


class Watched:
    """A process with its slots: {key: {second: value}}, key (monitor, uri)."""

    def __init__(self, service, instance, name, labels=()):
        self.service, self.instance, self.name, self.labels = service, instance, name, labels
        self.slots = {}
        self.flushed = {}


class PolicyRover:
    def __init__(self, to, processes):
        self.to = to
        self.processes = processes
        self.policies = {}  # service -> (uuid, {target: {monitor: item}})
        self.started = {}  # (target, process or instance) -> ms
        self.triggers = []  # (target, instance, process, at_ms, task id)

    def poll(self):
        services = {p.service for p in self.processes}
        answer = query_policies(self.to, {s: self.policies.get(s, ("", {}))[0] for s in services})
        for entry in answer:
            self.policies[entry["ServiceName"]] = (entry["UUID"], entry.get("Profiling", {}))
        return answer

    def items(self, process):
        for target, items in self.policies.get(process.service, ("", {}))[1].items():
            for monitor, item in items.items():
                yield target, monitor, item

    def uris(self, monitor, item):
        if not monitor.startswith("HTTP"):
            return [""]
        return item.get("URIList") or [item.get("URIRegex") or "global"]

    def look(self, second, values):
        """values: {(process name, monitor, uri): value} of this second, of what happened in it."""
        for process in self.processes:
            for _, monitor, item in self.items(process):
                for uri in self.uris(monitor, item):
                    value = values.get((process.name, monitor, uri))
                    if value is not None:
                        process.slots.setdefault((monitor, uri), {})[second] = value

    def period(self, process, monitor, item):
        if monitor.startswith("HTTP"):
            return item["Period"]
        return max(i["Period"] for _, m, i in self.items(process) if m == monitor)

    def check(self, at_ms):
        """Report metrics, and what comes true."""
        second = at_ms // 1000
        sets = {}
        for process in self.processes:
            done = set()
            for _, monitor, item in self.items(process):
                for uri in self.uris(monitor, item):
                    if (monitor, uri) in done:
                        continue
                    done.add((monitor, uri))
                    sets.setdefault((process.service, process.instance), []).extend(
                        self.meters(process, monitor, uri, second, at_ms)
                    )
        if any(sets.values()):
            send_meters(self.to, [[(1, m) for m in s] for s in sets.values() if s])
        self.trigger(second, at_ms)

    def meters(self, process, monitor, uri, second, at_ms):
        slots = process.slots.get((monitor, uri), {})
        labels = {"process_name": process.name, "layer": "OS_LINUX"}
        if uri:
            labels["uri"] = uri
            since = process.flushed.get((monitor, uri), 0)
            values = [slots[s] for s in sorted(slots, reverse=True) if since < s <= second]
        else:
            values = [slots[max(slots)]] if slots and max(slots) == second else []
        if slots:
            process.flushed[monitor, uri] = second
        name = "rover_con_p_" + monitor.lower()
        return [meter(name, v, labels, process.service, process.instance, at_ms) for v in values]

    def trigger(self, second, at_ms):
        found = {}
        for process in self.processes:
            for target, monitor, item in self.items(process):
                key = process.instance if target == "NETWORK" else (process.instance, process.name)
                if at_ms - self.started.get((target, key), -SILENCE_MS - 1) <= SILENCE_MS:
                    continue
                for uri in self.uris(monitor, item):
                    slots = process.slots.get((monitor, uri), {})
                    window = range(second - self.period(process, monitor, item) + 1, second + 1)
                    matching = [slots[s] for s in window if s in slots and slots[s] >= float(item["Threshold"])]
                    if len(matching) >= item["Count"]:
                        found.setdefault((target, key), {}).setdefault(process, []).append((monitor, uri, item, matching[0]))
        for (target, key), processes in found.items():
            main = min(processes, key=lambda p: ("mesh-application" not in p.labels, "k8s-service" not in p.labels))
            causes = [
                cause(monitor, item["Threshold"], current, None if not uri else "" if uri == "global" else uri, "URIRegex" in item)
                for monitor, uri, item, current in processes[main]
            ]
            task_id = report_task(self.to, main.service, main.instance, main.name, causes, target)
            self.started[target, key] = at_ms
            self.triggers.append((target, main.instance, main.name, at_ms, task_id))
