"""What a profile and a merged sample cost on the nodes of Citus, beside one PostgreSQL and the coordinator's way, in one run.

    HEARTHD=build-release/bin/hearthd HEARTH_TEST_CITUS=... /usr/bin/python3 tests/bench/nodes.py

One PostgreSQL, and databases of one, two and three nodes, run at the same time and take turns. A commit holds 10, 30, 100 or
1,000 profiles of ten services: with three nodes, three times as many are pushed at once. A query merges the profiles of ten
services, which the nodes share. CPU is that of hearthd and of sessions of PostgreSQL on all nodes. For commits, the sessions
that store profiles are counted, and through the coordinator also those between nodes; for queries, all sessions, less what
they use at rest. The coordinator's way is hearthd with --node-connections=false.
"""

import argparse
import gzip
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import wire
from citus_nodes import CITUS, WHY_NOT, Node, Nodes
from measure import process_cpu
from pprof import Profile
from questions import CPU, QUERIER
from server import PUSH, Server, in_threads, now_ms, sql

SERVICES, PODS, STACKS = 10, 100, 40
BATCHES = (10, 30, 100, 1000)
WARM, LEAST, PROFILES = 1, 4, 400  # commits before a measurement, and in it: at least so many, and profiles
QUERIES = 30
IDLE = 4  # seconds, before each round
COMMITTING = ("SELECT pid FROM pg_stat_activity WHERE query LIKE '%hearth_data.ingest_batch%'"
              " OR query LIKE 'INSERT INTO hearth_data.profile%'")
BETWEEN = " OR application_name LIKE 'citus%'"


def sessions_us(node):
    """{pid: CPU} of the sessions of hearthd and of other nodes."""
    found = {}
    for pid in node.processes()[1:]:
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                if f.read().startswith(b"postgres: hearth "):
                    found[pid] = 1e6 * process_cpu(pid)
        except OSError:  # it has just ended
            pass
    return found


def make_profiles(rng):
    """Encoded profiles, with the time that each push replaces."""
    time_ns = now_ms() * 1_000_000
    stacks = [["main.main", "net.serve"] + ["app.module%d.call%d" % (rng.randrange(40), rng.randrange(200)) for _ in range(3 + rng.randrange(20))] for _ in range(400)]
    profiles = []
    for _ in range(60):
        profile = Profile([("cpu", "nanoseconds")], time_ns=time_ns, duration_ns=15 * 10**9)
        for stack in rng.sample(stacks, STACKS):
            profile.add(stack, [10_000_000])
        profiles.append(profile.encode(compress=False))
    return profiles, wire.varint(time_ns)


def say(what, costs):
    print(what + ": " + "; ".join("%s %s" % (target.name, " ".join("%.3g" % cost for cost in row)) for target, row in costs.items()), file=sys.stderr, flush=True)


class Target:
    """A server before one PostgreSQL or before nodes; `services`, and `others` for queries: a list for each node."""

    def __init__(self, name, bench, nodes, url, services, *options):
        self.name, self.bench, self.nodes, self.url = name, bench, nodes, url
        self.services, self.others = ([of_node[from_:from_ + SERVICES] for of_node in services] for from_ in (0, SERVICES))
        self.options, self.server, self.n_pushed = options, None, 0
        self.idle = (0, 0)  # microseconds a second of hearthd and of PostgreSQL

    def start(self, *options):
        self.server = Server("--builder=false", "--query-cache-bytes=0", *self.options, *options, database_url=self.url)

    def push(self, lists, n, **labels):
        """At once a request of n profiles for each list of services: each profile is of the next service and pod, and of its own time."""
        requests = [self.request(services, n, labels) for services in lists]
        in_threads([lambda request=request: self.server.grpc_bytes(PUSH, request) for request in requests])

    def request(self, services, n, labels):
        series = []
        for i in range(n):
            self.n_pushed += 1
            name = services[i % len(services)]
            pairs = {"__name__": "process_cpu", "service_name": name, "pod": "pod-%d" % (i // len(services) % PODS), **labels}
            body = self.bench.profile(self.n_pushed)
            series.append((1, [(1, [(1, key), (2, value)]) for key, value in pairs.items()] + [(2, [(1, body)])]))
        return wire.encode(series)

    def cpu(self):
        """(hearthd, {session: CPU}) in microseconds."""
        sessions = {}
        for node in self.nodes:
            sessions.update(sessions_us(node))
        return 1e6 * process_cpu(self.server.process.pid), sessions

    def measured(self, work, of_commits=False):
        """Microseconds of hearthd and of PostgreSQL for all that `work` does."""
        (own, sessions), begin = self.cpu(), time.monotonic()
        work()
        (own_after, after), seconds = self.cpu(), time.monotonic() - begin
        committing = self.committing() if of_commits else after
        of_sessions = sum(us - sessions.get(pid, 0) for pid, us in after.items() if pid in committing)
        return own_after - own - seconds * self.idle[0], of_sessions - (0 if of_commits else seconds * self.idle[1])

    def committing(self):
        """Return the sessions that store profiles; through the coordinator also those between nodes, background work included."""
        text = COMMITTING + (BETWEEN if self.options else "")
        return {int(pid) for node in self.nodes for (pid,) in sql(node.url(), text)}

    def commits(self, n):
        """CPU of a profile in commits of n: (hearthd, PostgreSQL, profiles in a commit)."""
        times, before = max(LEAST, PROFILES // n), self.batches()
        costs = self.measured(lambda: [self.push(self.services, n) for _ in range(times)], of_commits=True)
        profiles = times * n * len(self.services)
        return [*(cost / profiles for cost in costs), profiles / (self.batches() - before)]

    def batches(self):
        return next(value for (name, _), value in self.server.metrics().items() if name == "hearth_commit_batches_total")

    def merge(self, lot):
        now = now_ms()
        question = {"profileTypeID": CPU, "labelSelector": '{lot="%d"}' % lot, "start": str(now - 3_600_000), "end": str(now)}
        return int(self.server.connect(QUERIER + "SelectMergeStacktraces", question)["flamegraph"]["total"])

    def merges(self, lot):
        """CPU of a merged sample, of `lot` profiles: (hearthd, PostgreSQL)."""
        costs = self.measured(lambda: [self.merge(lot) for _ in range(QUERIES)])
        return [cost / QUERIES / (lot * STACKS) for cost in costs]


class Bench:
    def __init__(self, chosen):
        self.rounds, self.shards = chosen.rounds, chosen.shards
        self.profiles, self.old_time = make_profiles(random.Random(7))
        self.begin_ns, self.clusters, self.targets = now_ms() * 1_000_000, [], []
        one = Node()
        self.clusters.append(one)
        self.targets.append(Target("one PostgreSQL", self, [one], one.url(), [["svc-%d" % i for i in range(2 * SERVICES)]]))
        for n in chosen.nodes:
            self.distributed(n)

    def profile(self, k):
        """Return profile k, which is a microsecond later than profile k - 1."""
        return gzip.compress(self.profiles[k % len(self.profiles)].replace(self.old_time, wire.varint(self.begin_ns + 1000 * k)), 1)

    def distributed(self, n):
        nodes = Nodes(n)
        self.clusters.append(nodes)
        nodes.sql("ALTER ROLE hearth SET citus.shard_count = %d" % (self.shards * n))
        nodes.distribute()
        of_node = self.placed(nodes)
        for name, options in (("coordinator", ["--node-connections=false"]), ("nodes", [])):
            self.targets.append(Target("%d: %s" % (n, name), self, [nodes.coordinator, *nodes.workers], nodes.url(), of_node, *options))

    def placed(self, nodes):
        """Twenty services for each node: of many, those that Citus placed there."""
        first = Target("", self, [], nodes.url(), [])
        first.start()
        first.push([["svc-%d" % i for i in range(60 * len(nodes.workers))]], 60 * len(nodes.workers))
        first.server.stop()
        found = nodes.sql("SELECT c.nodeport, s.name FROM hearth_data.service s JOIN citus_shards c ON c.shardid ="
                          " get_shard_id_for_distribution_column('hearth_data.roll_state', s.service_id) ORDER BY s.service_id")
        return [[name for port, name in found if int(port) == worker.port][:2 * SERVICES] for worker in nodes.workers]

    def rest(self):
        """Measure what idle servers use."""
        def idle(target):
            target.idle = (0, 0)
            target.idle = [us / IDLE for us in target.measured(lambda: time.sleep(IDLE))]

        in_threads([lambda target=target: idle(target) for target in self.targets])

    def turns(self, measure, argument):
        """{target: the medians of its rounds}"""
        seen = {}
        for _ in range(self.rounds):
            self.rest()
            for target in self.targets:
                seen.setdefault(target, []).append(measure(target, argument))
        return {target: [statistics.median(column) for column in zip(*rows)] for target, rows in seen.items()}

    def table(self, title, unit, head, all_costs):
        print("\n## %s\n\n| %s | %s |\n|---|%s" % (title, unit, " | ".join(head), "---|" * len(head)))
        for target in self.targets:
            cells = []
            for costs in all_costs:
                plain, mine = costs[self.targets[0]], costs[target]
                cells.append("%.3g + %.3g" % (mine[1], mine[0]) if target is self.targets[0] else
                             "%.3g + %.3g: %.2f, %.2f" % (mine[1], mine[0], mine[1] / plain[1], (mine[0] + mine[1]) / (plain[0] + plain[1])))
            print("| %s | %s |" % (target.name, " | ".join(cells)), flush=True)

    def ingest(self):
        all_costs = []
        for n in BATCHES:
            for target in self.targets:
                target.start("--commit-rows=%d" % n, "--commit-linger=1s")
            for _ in range(WARM):
                for target in self.targets:
                    target.commits(n)
            costs = self.turns(Target.commits, n)
            say("commits of %d" % n, costs)
            all_costs.append(costs)
            for target in self.targets:
                target.server.stop()
        self.table("A profile: us of PostgreSQL + hearthd, and times one PostgreSQL (PostgreSQL, both)", "profiles in a commit",
                   ["%d" % n for n in BATCHES], all_costs)

    def queries(self):
        for target in self.targets:
            target.start()
        for lot in BATCHES:
            for target in self.targets[::2]:  # one of the two servers of each database
                n = len(target.others)
                target.push([[target.others[i % n][i // n] for i in range(SERVICES)]], lot, lot=str(lot))
        for cluster in self.clusters:
            for node in [cluster] if isinstance(cluster, Node) else cluster.workers:
                sql(node.url(), "VACUUM (ANALYZE)")
        all_costs = []
        for lot in BATCHES:
            totals = {target.merge(lot) for target in self.targets}
            assert len(totals) == 1, totals
            for target in self.targets:
                target.merges(lot)
            all_costs.append(self.turns(Target.merges, lot))
            say("merges of %d" % lot, all_costs[-1])
        self.table("A merged sample: us of PostgreSQL + hearthd, and times one PostgreSQL (PostgreSQL, both)",
                   "profiles of ten services in a query", ["%d" % lot for lot in BATCHES], all_costs)
        for target in self.targets:
            target.server.stop()

    def stop(self):
        for cluster in self.clusters:
            cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shards", type=int, default=2, help="of each node")
    parser.add_argument("--no-queries", action="store_true")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3])
    chosen = parser.parse_args()
    if not CITUS:
        parser.error(WHY_NOT)
    bench = Bench(chosen)
    if not chosen.no_queries:
        bench.queries()  # first, while all databases hold the same
    bench.ingest()
    bench.stop()


if __name__ == "__main__":
    main()
