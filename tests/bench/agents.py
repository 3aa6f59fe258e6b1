"""What agents that report processes cost: CPU of hearthd and of PostgreSQL, statements and WAL of a report or a keep-alive.

    HEARTHD=build-release/bin/hearthd /usr/bin/python3 tests/bench/agents.py

Each agent has 100 processes, as on one node of Kubernetes. `quiet`: within 10 s of the last ping. `due`: later than that, so times
of last pings are written. `first`: processes that nobody knows yet.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import wire
from agents import Process, Rover
from measure import cluster_cpu, process_cpu
from server import Cluster, Server

PER_AGENT, AGENTS, ROUNDS = 100, 50, 6
LABELS = ["k8s-service", "mesh-application"]


def statements(cluster, server, call):
    """How many statements PostgreSQL ran for it, by its own log."""
    server.sql("ALTER SYSTEM SET log_statement = 'all'")
    server.sql("SELECT pg_reload_conf()")
    time.sleep(1)
    log = pathlib.Path(cluster.directory, "log")
    begin = log.stat().st_size
    call()
    time.sleep(0.2)
    text = log.read_bytes()[begin:].decode(errors="replace")
    server.sql("ALTER SYSTEM RESET log_statement")
    server.sql("SELECT pg_reload_conf()")
    return sum("hearth_data." in line or "COMMIT" in line or "BEGIN" in line for line in text.splitlines() if "LOG:" in line)


def measure(name, server, cluster, rounds, before, call, n_calls):
    own = database = seconds = wal = 0.0
    for i in range(rounds):
        before(i)
        at = [process_cpu(server.process.pid), cluster_cpu(cluster.process.pid), time.monotonic()]
        lsn = server.sql("SELECT pg_current_wal_insert_lsn()")[0][0]
        call(i)
        wal += float(server.sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s')" % lsn)[0][0])
        own += process_cpu(server.process.pid) - at[0]
        database += cluster_cpu(cluster.process.pid) - at[1]
        seconds += time.monotonic() - at[2]
    n = rounds * n_calls
    print("%-18s %6.2f ms hearthd  %6.2f ms PostgreSQL  %6.2f ms from end to end  %7.0f B WAL" % (
        name, 1000 * own / n, 1000 * database / n, 1000 * seconds / n, wal / n))


def main():
    cluster = Cluster()
    server = Server("--retain-agents", "7d", database_url=cluster.url())
    rovers = []
    for a in range(AGENTS):
        rover = Rover(server)
        rover.of = [Process("service-%d" % (p % 10), "pod-%d-%d" % (a, p // 2), "process-%d" % p, LABELS, pid=p + 1)
                    for p in range(PER_AGENT)]
        rover.reported = wire.encode([(1, p.reported()) for p in rover.of] + [(2, rover.agent_id)])
        rover.ping = wire.encode([(1, p.ping()) for p in rover.of] + [(2, rover.agent_id)])
        rovers.append(rover)

    def all_of(method, what):
        def call(i):
            for rover in rovers:
                server.grpc_bytes(Rover.PROCESSES + method, getattr(rover, what))
        return call

    def age(i):
        server.sql("UPDATE hearth_data.process SET first_seen = 1, last_seen = last_seen - 20000")
        server.sql("UPDATE hearth_data.instance SET first_seen = 1, last_seen = last_seen - 20000")
        server.sql("VACUUM hearth_data.process, hearth_data.instance")
        server.sql("CHECKPOINT")

    def nothing(i):
        pass

    print("%d agents with %d processes each; of one call:" % (AGENTS, PER_AGENT))
    measure("first report", server, cluster, 1, nothing, all_of("reportProcesses", "reported"), AGENTS)
    measure("quiet keep-alive", server, cluster, ROUNDS, nothing, all_of("keepAlive", "ping"), AGENTS)
    measure("due keep-alive", server, cluster, ROUNDS, age, all_of("keepAlive", "ping"), AGENTS)
    measure("due report", server, cluster, ROUNDS, age, all_of("reportProcesses", "reported"), AGENTS)
    age(0)
    one = lambda method, what: lambda: server.grpc_bytes(Rover.PROCESSES + method, getattr(rovers[0], what))
    print("statements: due keep-alive %d, quiet %d" % tuple(
        statements(cluster, server, one("keepAlive", "ping")) for _ in range(2)))
    new = Process("service-new", "pod-new", "process", LABELS)
    print("statements: first report %d" % statements(cluster, server, lambda: rovers[0].report(new)))
    server.stop()
    cluster.stop()


if __name__ == "__main__":
    main()
