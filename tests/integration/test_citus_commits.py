"""Where Citus distributes the tables, profiles are committed on the node that owns their service; a node that dies hurts only these.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import collections
import os
import threading
import time
import unittest

import otlp
import schema_dump
import wire
from citus_nodes import CITUS, WHY_NOT, Nodes
from pprof import Profile
from questions import CPU, QUERIER
from server import PUSH, RpcError, Server, eventually, in_threads, note, now_ms, sql
from test_pgbouncer import Pooler

MINUTE = 60_000
SERVICES = ["svc-%d" % i for i in range(10)]
NEW = ["new-%d" % i for i in range(6)]
DEADLINE = 2  # seconds for a push


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusCommits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        cls.nodes.distribute()

    @classmethod
    def tearDownClass(cls):
        cls.nodes.stop()

    def push(self, server, service, value, id, days_ago=0):
        profile = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - days_ago * 24 * 60 * MINUTE) * 1_000_000).add(["main", "f%d" % (value % 50)], [value])
        labels = [(1, [(1, name), (2, text)]) for name, text in (("__name__", "process_cpu"), ("service_name", service))]
        request = wire.encode([(1, labels + [(2, [(1, profile.encode()), (2, id)])])])
        server.grpc_bytes(PUSH, request, timeout=DEADLINE)

    def total(self, server, service):
        cpu = {"profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service, "start": str(now_ms() - 30 * MINUTE), "end": str(now_ms())}
        return int(server.connect(QUERIER + "SelectMergeStacktraces", cpu).get("flamegraph", {}).get("total", 0))

    def is_stored(self, server, service):
        try:
            self.push(server, service, 5, "new")
            return True
        except RpcError:
            return False

    def export(self, server, service, trace):
        """A request with a new span."""
        server.grpc_bytes(otlp.EXPORT, otlp.request(({"service.name": service}, [otlp.span(trace)])), timeout=DEADLINE)

    def stored_spans(self, begin="span-"):
        """{service: number of spans} of services whose name begins so."""
        rows = self.nodes.sql("SELECT service_id, sum(n_spans) FROM hearth_data.span_group GROUP BY service_id")
        names = dict(self.nodes.sql("SELECT service_id, name FROM hearth_data.service WHERE name LIKE '%s%%'" % begin))
        return {names[id]: int(n) for id, n in rows if id in names}

    def services_of(self, worker):
        place = ("SELECT v.name FROM hearth_data.service v JOIN citus_shards c ON c.shardid ="
                 " get_shard_id_for_distribution_column('hearth_data.roll_state', v.service_id) WHERE c.nodeport = %d")
        return {row[0] for row in self.nodes.sql(place % worker.port)}

    def sessions(self, node):
        """How many connections of hearthd have committed profiles on a node."""
        last = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hearthd' AND query LIKE '%INTO hearth_data.ingest_batch%'"
        return int(sql(node.url(), last)[0][0])

    def test_each_node_stores_the_profiles_of_its_services_and_nothing_is_prepared(self):
        server = Server("--builder=false", database_url=self.nodes.url())
        services = ["placed-%d" % i for i in range(10)]
        for k, service in enumerate(services):
            self.push(server, service, k + 1, "first")
        self.assertEqual([self.sessions(node) for node in [self.nodes.coordinator, *self.nodes.workers]], [0, 1, 1])
        self.assertEqual([self.total(server, service) for service in services], list(range(1, 11)))
        for worker in self.nodes.workers:  # who begins a two-phase commit keeps a row of it for a while
            self.assertEqual(sql(worker.url(), "SELECT count(*) FROM pg_dist_transaction"), [["0"]])
        server.stop()

    def test_only_workers_without_a_pooler_are_sent_prepared_statements(self):
        pooled, direct = self.nodes.workers
        pooler = Pooler(pooled, 1)
        self.addCleanup(pooler.stop)
        address = "127.0.0.1:%d=%s/pool:6432" % (pooled.port, pooled.directory)
        server = Server("--builder=false", "--node-addresses", address, database_url=self.nodes.url())
        services = ["pooled-%d" % i for i in range(10)]
        for k, service in enumerate(services):
            self.push(server, service, k + 1, "first")
        executed = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%EXECUTE hearth_shard_%'"
        self.assertEqual([sql(node.url(), executed) for node in (pooled, direct)], [[["0"]], [["1"]]])
        self.assertEqual(sql(pooler.url(), "SELECT count(*) FROM pg_prepared_statements"), [["0"]])
        self.assertEqual([self.total(server, service) for service in services], list(range(1, 11)))
        server.stop()

    def test_profiles_of_known_series_are_stored_while_the_coordinator_is_down(self):
        server = Server("--builder=false", database_url=self.nodes.url())
        services = ["known-%d" % i for i in range(6)]
        for service in services:
            self.push(server, service, 1, "first")
        self.nodes.coordinator.stop()
        for k in range(20):
            for service in services:
                self.push(server, service, 1, "down-%d" % k)
        self.assertIn("waiting for the database", server.http("GET", "/ready")[2].decode())
        self.nodes.coordinator.start()
        server.wait_ready()
        self.assertEqual([self.total(server, service) for service in services], [21] * len(services))
        server.stop()

    def test_spans_of_services_on_other_nodes_are_stored_while_a_worker_is_dead(self):
        server = Server(*schema_dump.QUICK, database_url=self.nodes.url())
        services = ["span-%d" % i for i in range(10)]
        for service in services:
            self.export(server, service, otlp.new_trace())
        dead = self.nodes.workers[0]
        lost = self.services_of(dead) & set(services)
        self.assertTrue(0 < len(lost) < len(services), lost)
        self.assertEqual(self.stored_spans(), {service: 1 for service in services})

        # As it dies, and while it is known to be dead: one request after the other, so none waits for another's node.
        dead.kill9()
        refused, slowest, traces = collections.Counter(), 0, {}
        for k in range(3):
            for service in services:
                traces[service, k], began = otlp.new_trace(), time.monotonic()
                try:
                    self.export(server, service, traces[service, k])
                    slowest = max(slowest, time.monotonic() - began)
                except RpcError as error:
                    self.assertIn(error.code, ("unavailable", "deadline_exceeded"))
                    refused[service] += 1
        self.assertEqual(refused, {service: 3 for service in lost})
        note("the slowest request of spans of services on the other node: %.2f s" % slowest)

        # A request with spans of both is refused as a whole, and stored once when it is repeated.
        both = otlp.request(*[({"service.name": service}, [otlp.span(otlp.new_trace())]) for service in services])
        with self.assertRaises(RpcError):
            server.grpc_bytes(otlp.EXPORT, both, timeout=DEADLINE)
        dead.start()
        eventually(lambda: self.is_exported(server, both), 30, what="a node that is back")
        for service, k in traces:
            if service in lost:
                self.export(server, service, traces[service, k])
        stored = self.stored_spans()
        for service in services:  # what was refused may be stored, too
            low, high = (5, 5) if service not in lost else (5, 8)
            self.assertTrue(low <= stored[service] <= high, stored)
        for service, k in traces:
            rows = self.nodes.sql("SELECT 1 FROM hearth_data.span_group WHERE trace_id = '\\x%s'" % traces[service, k].hex())
            self.assertTrue(rows, (service, k))
        server.stop()

    def test_a_node_stores_spans_of_several_shards_without_a_two_phase_commit(self):
        server = Server("--builder=false", "--otlp-traces", database_url=self.nodes.url())
        begun = lambda: [sql(worker.url(), "SELECT count(*) FROM pg_dist_transaction") for worker in self.nodes.workers]
        eventually(lambda: begun() == [[["0"]], [["0"]]], 30, what="the end of earlier commits")
        services = ["sharded-%d" % i for i in range(10)]
        request = otlp.request(*[({"service.name": service}, [otlp.span(otlp.new_trace())]) for service in services])
        server.grpc_bytes(otlp.EXPORT, request, timeout=DEADLINE)
        self.assertEqual(begun(), [[["0"]], [["0"]]])
        self.assertEqual(self.stored_spans("sharded-"), dict.fromkeys(services, 1))
        server.stop()

    def test_a_day_whose_partitions_cannot_be_made_names_the_dead_worker_and_others_are_stored(self):
        server = Server("--builder=false", "--commit-linger", "300ms", "--commit-rows", "100", database_url=self.nodes.url())
        services = ["day-%d" % i for i in range(8)]
        for service in services:
            self.push(server, service, 1, "first")
        dead = self.nodes.workers[0]
        lost = self.services_of(dead) & set(services)
        others = [service for service in services if service not in lost]
        self.assertTrue(lost and others, lost)
        tomorrow = time.strftime("hearth_data.profile_%Y%m%d", time.gmtime(time.time() + 24 * 3600))
        self.nodes.sql("DROP TABLE " + tomorrow)  # as if the worker was dead since yesterday
        dead.kill9()

        def push_old(service):
            with self.assertRaises(RpcError) as caught:
                self.push(server, service, 1, "old", days_ago=3)
            return caught.exception

        for round in range(2):  # before the server knows of the death, and after; both days in one batch of the other node
            calls = [lambda s=s: push_old(s) for s in others] + [lambda s=s: self.push(server, s, 1, "day-%d" % round) for s in others]
            for error in in_threads(calls)[: len(others)]:
                self.assertEqual(error.code, "unavailable", error)
                self.assertIn("can be made while the node 127.0.0.1:%d does not answer" % dead.port, str(error))

        # A server that starts now has the leaves of today, and says what it lacks until the worker is back.
        second = Server("--builder=false", database_url=self.nodes.url())
        self.push(second, others[0], 1, "second")
        self.assertIn("tomorrow's partitions were not made", second.log())
        dead.start()
        eventually(lambda: self.nodes.sql("SELECT to_regclass('%s')" % tomorrow) != [[""]], 60, what="tomorrow's partition")
        second.stop()
        for service in services:
            eventually(lambda: self.is_stored_of_day(server, service, 3), 30, what="a partition of an older day")
        server.stop()

    def is_stored_of_day(self, server, service, days_ago):
        try:
            self.push(server, service, 1, "old", days_ago=days_ago)
            return True
        except RpcError:
            return False

    def is_exported(self, server, request):
        try:
            server.grpc_bytes(otlp.EXPORT, request, timeout=20)
            return True
        except RpcError:
            return False

    def test_a_worker_that_is_killed_under_load_hurts_its_own_services_only_and_nothing_is_lost_or_doubled(self):
        server = Server(*schema_dump.QUICK, database_url=self.nodes.url())
        for service in SERVICES:
            self.push(server, service, 1, "load")
        dead = self.nodes.workers[0]
        lost = self.services_of(dead) & set(SERVICES)
        self.assertTrue(0 < len(lost) < len(SERVICES), lost)

        done, is_down = threading.Event(), threading.Event()
        sent, acknowledged, slowest = collections.Counter(), collections.Counter(), {}
        refused, reasons, new = collections.Counter(), collections.Counter(), {}

        def load(service):
            """The same profile again until it is stored."""
            k = 0
            while not done.is_set():
                k += 1
                while True:
                    began, down = time.monotonic(), is_down.is_set()
                    try:
                        self.push(server, service, k, "%d-%d" % (os.getpid(), k))
                        break
                    except RpcError as error:
                        refused[service] += 1
                        reasons[error.code] += 1
                    finally:
                        took = time.monotonic() - began
                        if down and is_down.is_set():
                            slowest[service] = max(took, slowest.get(service, 0))
                sent[service] += k
                acknowledged[service] += down and is_down.is_set()

        def lose():
            try:
                time.sleep(3)
                dead.kill9()
                is_down.set()
                time.sleep(8)
                why = server.http("GET", "/ready")[2].decode()
                new.update(zip(NEW, in_threads([lambda name=name: self.is_stored(server, name) for name in NEW])))
                is_down.clear()
                dead.start()
                time.sleep(3)
                return why
            finally:
                done.set()

        why = in_threads([lose] + [lambda s=s: load(s) for s in SERVICES])[0]
        self.assertIn("profiles of services on node 127.0.0.1:%d wait" % dead.port, why)
        others = [service for service in SERVICES if service not in lost]
        note("acknowledged while a worker was down: %s; refused: %s" % (dict(acknowledged), dict(refused)))
        note("the slowest of others: %.2f s, of its own %.2f s" % (max(slowest[s] for s in others), max(slowest[s] for s in lost)))
        for service in others:
            self.assertEqual(refused[service], 0)
            self.assertGreater(acknowledged[service], 20)
        for service in lost:
            self.assertEqual(acknowledged[service], 0)
            self.assertLess(slowest[service], DEADLINE + 1)
        self.assertLessEqual(set(reasons), {"unavailable", "deadline_exceeded"})
        self.assertGreater(reasons["unavailable"], 0)
        lost_new = self.services_of(dead) & set(NEW)
        self.assertEqual(new, {name: name not in lost_new for name in NEW})
        expected = {service: sent[service] + 1 for service in SERVICES}
        self.assertEqual({service: self.total(server, service) for service in SERVICES}, expected)
        eventually(lambda: b"wait" not in server.http("GET", "/ready")[2], 20, what="a node that is back")
        server.stop()

        # As another server reads it, whose memory has nothing of this.
        server = Server("--builder=false", database_url=self.nodes.url())
        self.assertEqual({service: self.total(server, service) for service in SERVICES}, expected)
        server.stop()


if __name__ == "__main__":
    unittest.main()
