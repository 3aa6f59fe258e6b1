"""What it costs that agents ask for tasks, and how soon all of them are told of one.

    HEARTHD=build-release/bin/hearthd /usr/bin/python3 tests/bench/polls.py

A thousand agents of processes ask every 10 s, spread evenly, in turn one of two servers; so do a thousand instances every 20 s, for trace
tasks. Then a task is made for all: from then on, the time between an agent's next question and its command, and how often it ran.
"""

import heapq
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import tasks
from agents import Instance, Process, Rover
from measure import cluster_cpu, process_cpu
from server import Cluster, Server

AGENTS, SECONDS, THREADS = 1000, 30, 8


class Fleet:
    """Agents that ask when it is their time. `took`: of each answer (kind, sent, answered, commands)."""

    def __init__(self, servers):
        self.servers, self.took, self.stop = servers, [], threading.Event()
        self.rovers = [Rover(servers[n % 2]) for n in range(AGENTS)]
        for n, rover in enumerate(self.rovers):
            rover.report(Process("service-%d" % (n % 10), "host-%d" % n, "p", ["k8s-service"]))
        self.instances = [Instance(servers[n % 2], "service-%d" % (n % 10), "instance-%d" % n) for n in range(AGENTS)]
        for instance in self.instances:
            instance.report()

    def ask(self, kind, n):
        agent = (self.rovers if kind == "process" else self.instances)[n]
        agent.server = self.servers[0] if agent.server is self.servers[1] else self.servers[1]
        sent = time.monotonic()
        found = agent.query_tasks() if kind == "process" else [a for _, a in agent.query_tasks(Instance.TRACE)]
        self.took.append((kind, n, sent, time.monotonic(), [c["TaskId"] for c in found]))

    def run(self, part):
        """A thread's part of the agents, each at its own time."""
        begin = time.monotonic()
        due = [(begin + 10 * n / AGENTS, 10, "process", n) for n in range(part, AGENTS, THREADS)]
        due += [(begin + 20 * n / AGENTS, 20, "instance", n) for n in range(part, AGENTS, THREADS)]
        heapq.heapify(due)
        while not self.stop.is_set():
            at, each, kind, n = heapq.heappop(due)
            time.sleep(max(0, at - time.monotonic()))
            self.ask(kind, n)
            heapq.heappush(due, (at + each, each, kind, n))

    def __enter__(self):
        self.threads = [threading.Thread(target=self.run, args=(part,)) for part in range(THREADS)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *of_error):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    cluster = Cluster()
    servers = [Server(database_url=cluster.url()) for _ in range(2)]
    with Fleet(servers) as fleet:
        time.sleep(22)  # all have asked once, and were noted
        at = [sum(process_cpu(s.process.pid) for s in servers), cluster_cpu(cluster.process.pid), len(fleet.took)]
        lsn = servers[0].sql("SELECT pg_current_wal_insert_lsn()")[0][0]
        time.sleep(SECONDS)
        n = len(fleet.took) - at[2]
        own = sum(process_cpu(s.process.pid) for s in servers) - at[0]
        database = cluster_cpu(cluster.process.pid) - at[1]
        wal = float(servers[0].sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s')" % lsn)[0][0])
        times = [1000 * (answered - sent) for _, _, sent, answered, _ in fleet.took[-n:]]
        print("%d polls in %d s: %.2f ms hearthd, %.2f ms PostgreSQL, %.0f B WAL each; %.1f ms from end to end, 99 %%: %.1f" % (
            n, SECONDS, 1000 * own / n, 1000 * database / n, wal / n, percentile(times, 0.5), percentile(times, 0.99)))
        ids, made = {}, {}
        for s in range(10):
            ids["process", s] = tasks.create(servers[0], service="service-%d" % s, durationMs=5 * tasks.MINUTE)
            made["process", s] = time.monotonic()
            ids["instance", s] = tasks.create(servers[1], kind="TRACE", service="service-%d" % s, durationMs=5 * tasks.MINUTE)
            made["instance", s] = time.monotonic()
        time.sleep(45)  # two rounds of all
    missed, runs, first = 0, {}, []
    for kind, n, sent, answered, found in fleet.took:
        task = ids[kind, n % 10]
        if sent >= made[kind, n % 10] and (kind, n) not in runs:
            missed += task not in found
            first.append(1000 * (answered - sent))
        if task in found:
            runs[kind, n] = runs.get((kind, n), 0) + 1
    print("told: %d of %d agents, %d more than once, %d not at their first question after the task was made" % (
        len(runs), 2 * AGENTS, sum(r > 1 for r in runs.values()), missed))
    print("that question took %.1f ms, 99 %%: %.1f, at most %.1f" % (percentile(first, 0.5), percentile(first, 0.99), max(first)))
    for server in servers:
        server.stop()
    cluster.stop()


if __name__ == "__main__":
    main()
