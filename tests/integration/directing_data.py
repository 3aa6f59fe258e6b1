"""What agents report while they are directed, for tests and pictures of the web page: a service with a policy and its
metrics, an instance with peers, tasks with results. Names are some that a page must not mistake for markup."""

import agents
import policy_agents
import task_data
import tasks
from agents import Instance, Network, Process, Rover
from pprof import Profile
from server import now_ms

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
HOSTILE = "<img src=x onerror='window.hacked=1'>" + "x" * 300
CPU = {"monitor": "MONITOR_KIND_PROCESS_CPU", "threshold": "80", "periodSeconds": 10, "count": 3}
ERRORS = {"monitor": "MONITOR_KIND_HTTP_ERROR_RATE", "threshold": "5", "periodSeconds": 20, "count": 4,
          "uriPaths": ["/buy", "/pay"]}


def set_policy(server, service, on_cpu, network=(), by=""):
    rules = {"TASK_KIND_ON_CPU": on_cpu, "TASK_KIND_NETWORK": network}
    targets = [{"kind": kind, "checkItems": list(items)} for kind, items in rules.items() if items]
    policy = {"service": service, "targets": targets, "modifiedBy": by}
    server.connect("hearth.v1.PolicyService/SetPolicy", {"policy": policy})


def fill_policy(server, hours=1, service="shop"):
    """A policy with two rules, metrics of each 5 s, and one task that it started. CPU peaks three times an hour."""
    set_policy(server, service, [CPU], by="ada")
    set_policy(server, service, [CPU], [ERRORS], by="bob")
    watched = {"pod-1": (("app", 45, 50), ("<b>proxy</b>", 12, 0)), "pod-2": (("app", 15, 50),)}
    named = [(pod, name) for pod, processes in watched.items() for name, _, _ in processes]
    Rover(server).report(*[Process(service, pod, name) for pod, name in named])
    end = now_ms() // (5 * SECOND) * 5 * SECOND
    n = int(hours * 720)
    sets = []
    for i in range(n):
        for k, (instance, processes) in enumerate(watched.items()):
            made = []
            for process, base, peak in processes:
                value = base + (i * 7919 + base) % 13 - 6 + 10 * ((i // 90) % 3)
                value += peak if (i + 37 * k) % 240 < 6 else 0
                head = (service, instance, end - (n - i) * 5 * SECOND)
                labels = {"process_name": process, "layer": "OS_LINUX"}
                made.append((1, policy_agents.meter("rover_con_p_process_cpu", value, labels, *head)))
            sets.append(made)
    for i in range(0, len(sets), 2000):
        policy_agents.send_meters(server, sets[i:i + 2000])
    return policy_agents.report_task(server, service, "pod-1", "app", [policy_agents.cause("PROCESS_CPU", 80, 97.526)])


def fill_network(server, peers=2, service="shop", instance="pod-1"):
    """An instance with so many peers, its traffic of the last minutes, and sampled requests."""
    rover = Rover(server)
    app, proxy = Process(service, instance, "app"), Process(service, instance, "proxy", pid=2)
    rover.report(app, proxy)
    name = lambda i: HOSTILE if i == 1 else "peer-%02d.cluster.local" % i
    addresses = [{"address": "10.0.0.%d" % i, "name": name(i)} for i in range(1, peers + 1)]
    server.connect("hearth.v1.NetworkService/SetAddresses", {"addresses": addresses})
    network = Network(rover, service, instance)
    now = now_ms()
    for minutes in range(1, 10):
        meters = []
        for i in range(1, peers + 1):
            is_client = i % 3 != 0
            side, address = ("client", "10.0.0.%d:80" % i) if is_client else ("server", "10.0.0.%d:5000" % i)
            process = (app, proxy)[i % 2]
            ends = (process, address) if is_client else (address, process)
            labels = network.labels(*ends, side, ("http", "unknown")[i % 2], i % 4 == 0)
            count = 10 + (i * 7 + minutes * 3) % 23
            meters += [
                network.value("%s_write_counts_counter" % side, count, labels),
                network.value("%s_write_bytes_counter" % side, count * 1000 * i, labels),
                network.value("%s_read_bytes_counter" % side, count * 300 * i, labels),
                network.value("http1_%s_duration_avg" % side, 20 + count, labels),
                network.value("http1_response_status_counter", count, {**labels, "code": "200"}),
                network.histogram("http1_%s_duration_histogram" % side, {0: 50, 50: 25, 100: 24, 500: 1}, labels),
            ]
        meters.append(network.value("client_write_counts_counter", 5, network.labels(proxy, app)))
        network.flush(*meters, at_ms=now - minutes * MINUTE)
    sampled = [("/slow?token=sesame&x=1", "slow", 812.5, 200), ("/buy", "status_5xx", 96, 503),
               (HOSTILE, "status_4xx", 20, 404)]
    for i, facts in enumerate(sampled):
        network.send_logs(network.sampled("trace-%d" % i, proxy, "10.0.0.1:80", *facts, at_ms=now - 2 * MINUTE))
    body = ("POST /pay HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer secret\r\n\r\n"
            "{\"item\": \"<script>window.hacked=1</script>\"}")
    begin = (now - MINUTE) * 10**6
    captured = {"data_content": body, "data_size": "1KiB"}
    network.send_events(
        network.event("trace-0", "HTTP Request Sampling", captured, begin, begin + 2 * 10**8),
        network.event("trace-0", "Syscall write", {"package_size": "1024"}, begin, begin + 10**7),
    )


def fill_stacks(server, service="shop", kind="ON_CPU"):
    """A running task whose process has sent stack traces; its id."""
    rover = Rover(server)
    app = Process(service, "pod-1", "app")
    rover.report(app)
    task_id = tasks.create(server, kind, service=service)
    rover.query_tasks()
    begin = now_ms() - 20 * SECOND
    for k in range(3):
        flush = task_data.metadata(task_id, app.process_id, begin, begin + 5 * SECOND * (k + 1))
        task_data.collect(server, [
            task_data.on_cpu((1, 2), 30 + k, "sys_read-vfs_read", "main-serve-json.encode", flush),
            task_data.on_cpu((0, 3), 20, user="main-serve-render.<b>template</b>"),
            task_data.on_cpu((0, 4), 7, user="main-parse"),
        ])
    return task_id


def fill_snapshots(server, service="cart"):
    """A task with thread snapshots of a slow request; its id."""
    instance = Instance(server, service, "pod-9")
    instance.report()
    task_id = tasks.create(server, "TRACE", service=service)
    instance.query_tasks(Instance.TRACE)
    at = now_ms() - 30 * SECOND
    query = agents.span(1, "SELECT * FROM <i>orders</i>", at + 50, at + 250, parent=0, kind=agents.EXIT)
    spans = [agents.span(0, "/pay", at, at + 400), query]
    instance.send_segments(instance.segment("trace-9", "segment-9", spans))
    frames = lambda i: ["Thread.run", "Pay.handle", "Db.query" if 3 <= i < 12 else "Json.write"]
    instance.send_snapshots(*[agents.snapshot(task_id, "segment-9", i, at + 20 * i, frames(i)) for i in range(20)])
    return task_id


def fill_upload(server, service="cart"):
    """A pprof task with one file; its id."""
    instance = Instance(server, service, "pod-9")
    instance.report({"OS Name": "Linux", "language": "go"})
    task_id = tasks.create(server, "PPROF", service=service, instances=["pod-9"], events=["heap"])
    instance.query_tasks(Instance.PPROF)
    profile = Profile([("inuse_objects", "count"), ("inuse_space", "bytes")], time_ns=now_ms() * 1_000_000)
    for i, stack in enumerate((["main", "cache.fill"], ["main", "json.decode"], ["main", "cache.fill", "grow"])):
        profile.add(stack, [3 + i, (i + 1) << 20])
    task_data.upload(server, task_data.PPROF, service, "pod-9", task_id, profile.encode())
    return task_id
