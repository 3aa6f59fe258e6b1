"""What stack traces of agents cost: CPU of hearthd and of PostgreSQL for each, next to the same stack traces pushed as pprof; and how
long 100,000 of them take to be analysed.

    HEARTHD=build-release/bin/hearthd /usr/bin/python3 tests/bench/task_stacks.py

An agent has 20 processes; each flush brings 200 stack traces of each, 30 frames deep, a third with 8 of the kernel.
"""

import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import server
import task_data as agent
import wire
from agents import Process, Rover
from measure import cluster_cpu, process_cpu
from pprof import Profile

PROCESSES, STACKS, FLUSHES = 20, 200, 25


def make_stacks(seed):
    """(kernel, user, count), root first with dashes; stacks of one process share their upper frames."""
    rng = random.Random(seed)
    upper = ["main.package.function%d" % rng.randrange(400) for _ in range(18)]
    found = []
    for i in range(STACKS):
        user = upper[: 8 + rng.randrange(10)]
        user += ["app.module%d.Class%d.method%d" % (rng.randrange(40), rng.randrange(60), rng.randrange(50)) for _ in range(30 - len(user))]
        kernel = ["kernel_function_%d" % rng.randrange(300) for _ in range(8)] if i % 3 == 0 else []
        found.append(("-".join(kernel), "-".join(user), 1 + rng.randrange(20)))
    return found


class Meter:
    def __init__(self, at, cluster):
        self.at, self.cluster = at, cluster

    def run(self, name, n, call):
        own, database, begin = process_cpu(self.at.process.pid), cluster_cpu(self.cluster.process.pid), time.monotonic()
        call()
        own = process_cpu(self.at.process.pid) - own
        database = cluster_cpu(self.cluster.process.pid) - database
        seconds = time.monotonic() - begin
        print("%-28s %8.0f a second and core (%.1f us hearthd, %.1f us PostgreSQL each; %.1f s)" % (
            name, n / (own + database), 1e6 * own / n, 1e6 * database / n, seconds), flush=True)


def main():
    cluster = server.Cluster()
    at = server.Server(database_url=cluster.url())
    meter = Meter(at, cluster)
    processes = [Process("service-%d" % (p % 5), "pod-%d" % p, "app") for p in range(PROCESSES)]
    Rover(at).report(*processes)
    stacks = [make_stacks(p) for p in range(PROCESSES)]
    now = server.now_ms()
    start = now - 200_000
    n = PROCESSES * STACKS * FLUSHES

    def messages(flush, off):
        out = []
        for p, process in enumerate(processes):
            for i, (kernel, user, count) in enumerate(stacks[p]):
                task = agent.metadata("off" if off else "on", process.process_id, start, now - 5000 * flush) if i == 0 else None
                if off:
                    out.append(agent.off_cpu((i, i), count, count * 1000, kernel, user, task))
                else:
                    out.append(agent.on_cpu((i, i), count, kernel, user, task))
        return out

    def push(flush):
        out = []
        for p, process in enumerate(processes):
            profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=(now - 5000 * flush) * 10**6)
            for kernel, user, count in stacks[p]:
                profile.add(user.split("-") + (kernel.split("-") if kernel else []), [count, count * 9_000_000])
            out.append((profile.encode(), {"__name__": "process_cpu", "service_name": "pushed-%d" % (p % 5), "instance": "pod-%d" % p}))
        return out

    on, off, pushed = ([make(f) for f in range(FLUSHES)] for make in (lambda f: messages(f, False), lambda f: messages(f, True), push))
    # The first of each brings new symbols.
    agent.collect(at, on.pop())
    agent.collect(at, off.pop())
    for profile in pushed.pop():
        at.push(*profile)
    n = n // FLUSHES * (FLUSHES - 1)
    meter.run("on-CPU", n, lambda: [agent.collect(at, m) for m in on])
    meter.run("off-CPU", n, lambda: [agent.collect(at, m) for m in off])
    meter.run("the same pushed as pprof", n, lambda: [at.push(*p) for f in pushed for p in f])
    meter.run("on-CPU, delivered again", n, lambda: [agent.collect(at, m) for m in on])
    runs = at.connect(agent.TASKS + "ListSchedules", {"taskId": "on"})["schedules"]
    request = {"scheduleIds": [r["scheduleId"] for r in runs]}
    stored = int(at.sql("SELECT sum(n_records) FROM hearth_data.task_stack_chunk WHERE kind = 1")[0][0])
    size = int(at.sql("SELECT sum(length(payload)) FROM hearth_data.task_stack_chunk WHERE kind = 1")[0][0])
    times = []
    for _ in range(7):
        begin = time.monotonic()
        at.connect_proto(agent.TASKS + "AnalyzeStacks", wire.encode([(1, r) for r in request["scheduleIds"]]))
        times.append(time.monotonic() - begin)
    print("analysis of %d records (%.1f bytes each, stored): %.0f ms" % (stored, size / stored, 1000 * sorted(times)[3]))
    at.stop()
    cluster.stop()


if __name__ == "__main__":
    main()
