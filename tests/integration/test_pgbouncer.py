"""hearthd with PgBouncer in transaction mode between it and PostgreSQL, and fewer server connections than clients."""

import os
import random
import shutil
import subprocess
import time
import unittest

import prometheus
from pprof import Profile
from questions import CPU
from server import Cluster, RpcError, Server, Session, eventually, in_threads, now_ms, sql

MINUTE, HOUR = 60_000, 3_600_000
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
CONFIG = """[databases]
* = host={directory} port={port} user=hearth
[pgbouncer]
listen_addr =
unix_socket_dir = {directory}/pool
unix_socket_mode = 0777
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
query_wait_timeout = 30
logfile = {directory}/pool/log
pidfile = {directory}/pool/pid
{more}
"""


class Pooler:
    """PgBouncer before a Cluster."""

    def __init__(self, cluster, size, more=""):
        self.directory = cluster.directory
        pool = os.path.join(self.directory, "pool")
        os.makedirs(pool, exist_ok=True)
        self.config = os.path.join(pool, "config")
        with open(self.config, "w") as out:
            out.write(CONFIG.format(directory=self.directory, port=getattr(cluster, "port", 5432), size=size, more=more))
        if cluster.as_user:
            shutil.chown(pool, "postgres", "postgres")
        self.as_user = cluster.as_user
        self.process = None
        self.start()

    def start(self):
        program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        assert program, "pgbouncer is not installed"
        self.process = subprocess.Popen(
            [*self.as_user, program, "-q", self.config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
        )
        eventually(lambda: os.path.exists(self.directory + "/pool/.s.PGSQL.6432"), 20)

    def url(self, database="postgres"):
        return "host=%s/pool port=6432 user=hearth dbname=%s" % (self.directory, database)

    def stop(self):
        self.process.kill()
        self.process.wait()


def one(ns, name, value=1):
    return Profile(TYPES, time_ns=ns).add(["main", name], [1, value]).encode()


class PgBouncer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.pooler = Pooler(cls.cluster, size=4)
        # Two servers, each with more connections than the pool has.
        options = ["--builder-interval", "200ms", "--rollup-grace", "1ms", "--committers", "2", "--rollup-min-profiles-1h=0"]
        cls.servers = in_threads([lambda: Server(*options, database_url=cls.pooler.url())] * 2)
        cls.plain = Server("--builder=false", database_url=cls.cluster.url())

    @classmethod
    def tearDownClass(cls):
        cls.plain.stop()
        for server in cls.servers:
            server.stop()
        cls.pooler.stop()
        cls.cluster.stop()

    def ask(self, server, selector, start, end):
        return (
            server.merge_pprof(CPU, selector, start, end),
            server.stacktraces(CPU, selector, start, end),
            server.select_series(CPU, selector, start, end, 60, ["pod"]),
            server.series(start, end, [selector]),
        )

    def test_migrations_ran_once_through_the_pool(self):
        rows = sql(self.cluster.url(), "SELECT count(*), count(DISTINCT number) FROM hearth_data.migration")
        self.assertEqual(rows[0][0], rows[0][1])
        for server in self.servers:
            self.assertNotIn("level=error", server.log())

    def test_many_clients_push_and_query_through_the_pool(self):
        start = now_ms()
        def client(number):
            pick = random.Random(number)
            for k in range(40):
                server = self.servers[pick.randrange(2)]
                name = "f%d-%d" % (number, k)
                labels = {"__name__": "process_cpu", "service_name": "load-%d" % (k % 3), "pod": "p%d" % number}
                server.push(one(now_ms() * 1_000_000, name), labels)
                reader = self.servers[pick.randrange(2)]
                found = reader.flamegraph(CPU, '{pod="p%d"}' % number, start - MINUTE, now_ms() + 1000)
                self.assertIn(name, found.functions())
        in_threads([lambda n=n: client(n) for n in range(12)])
        end = now_ms() + 1000
        answers = [self.ask(s, '{service_name=~"load-.*"}', start - MINUTE, end) for s in (*self.servers, self.plain)]
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(answers[1], answers[2])
        self.assertEqual(self.plain.flamegraph(CPU, '{service_name=~"load-.*"}', start - MINUTE, end).total, 480)

    def test_the_builder_works_through_the_pool(self):
        """Also while a stranger's transaction stays open on a server connection of its own."""
        base = (now_ms() - 3 * HOUR) // HOUR * HOUR
        labels = {"__name__": "process_cpu", "service_name": "rolled"}
        for k in range(24):
            self.servers[k % 2].push(one((base + k * 5 * MINUTE + 1) * 1_000_000, "g%d" % (k % 5), k + 1), {**labels, "pod": "p%d" % (k % 2)})
        selector = '{service_name="rolled"}'
        before = self.ask(self.plain, selector, base, base + 2 * HOUR)
        stranger = Session(self.cluster.url())
        stranger.run("BEGIN; CREATE TABLE stranger (); SELECT txid_current()")
        service = "SELECT s.service_id FROM hearth_data.service s WHERE s.name = 'rolled'"
        try:
            eventually(
                lambda: sql(self.cluster.url(), "SELECT count(*) FROM hearth_data.roll_1h WHERE service_id = (%s)" % service)[0][0] != "0",
                60, what="blocks of an hour",
            )
        finally:
            stranger.run("ROLLBACK")
            stranger.close()
        for server in (*self.servers, self.plain):
            self.assertEqual(self.ask(server, selector, base, base + 2 * HOUR), before)
        # Late ones are folded in.
        self.servers[0].push(one((base + 7 * MINUTE) * 1_000_000, "late", 100), {**labels, "pod": "p0"})
        for server in (*self.servers, self.plain):
            self.assertEqual(server.flamegraph(CPU, selector, base, base + 2 * HOUR).total, 24 * 25 // 2 + 100)
        leases = sql(self.cluster.url(), "SELECT count(*) FROM hearth_data.lease WHERE expires_at > now()")
        self.assertEqual(leases, [["1"]])

    def test_only_direct_connections_prepare_statements(self):
        labels = {"__name__": "process_cpu", "service_name": "prepared"}
        for k, server in enumerate((*self.servers, self.plain)):
            server.push(one(now_ms() * 1_000_000, "p%d" % k), labels)
        stored = [
            [prometheus.value(server.metrics(), "hearth_commit_batches_%stotal" % name) for name in ("", "prepared_")]
            for server in (*self.servers, self.plain)
        ]
        self.assertTrue(all(batches > 0 for batches, _ in stored), stored)
        self.assertEqual([prepared > 0 for _, prepared in stored], [False, False, True])

    def test_no_session_keeps_state(self):
        for what in ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", "SELECT count(*) FROM pg_prepared_statements"):
            eventually(lambda: sql(self.pooler.url(), what) == [["0"]], 20, what="no lock or statement left behind")
        self.assertEqual(sql(self.pooler.url(), "SHOW client_connection_check_interval"), [["0"]])

    def test_a_pooler_that_restarts_is_survived(self):
        labels = {"__name__": "process_cpu", "service_name": "restart"}
        start, pushed = now_ms(), 0
        server = self.servers[0]
        for round in range(3):
            self.pooler.stop()
            with self.assertRaises(RpcError) as caught:
                server.merge_pprof(CPU, "{}", start, now_ms())
            self.assertEqual(caught.exception.code, "unavailable")
            self.pooler.start()
            eventually(lambda: server.http("GET", "/ready")[0] == 200, 30, what="ready again")
            eventually(lambda: self.try_push(server, labels, pushed), 30, what="a push")
            pushed += 1
            self.assertEqual(server.flamegraph(CPU, '{service_name="restart"}', start, now_ms() + 1000).total, pushed)

    def try_push(self, server, labels, number):
        try:
            server.push(one(now_ms() * 1_000_000, "r%d" % number), labels, id="restart-%d" % number)
            return True
        except RpcError as error:
            self.assertEqual(error.code, "unavailable")
            return False

    def test_cancelled_queries_end_in_postgresql_too(self):
        # A database without a builder, whose statements would wait for the lock as well.
        sql(self.cluster.url(), "CREATE DATABASE alone")
        server = Server("--builder=false", database_url=self.pooler.url("alone"))
        self.addCleanup(server.stop)
        lock = Session(self.cluster.url("alone"))
        labels = {"__name__": "process_cpu", "service_name": "cancel"}
        server.push(one(now_ms() * 1_000_000, "c"), labels)
        lock.run("BEGIN; LOCK TABLE hearth_data.profile, hearth_data.profile_late")
        try:
            began = time.monotonic()
            with self.assertRaises(RpcError) as caught:
                server.call(
                    "querier.v1.QuerierService/SelectMergeStacktraces",
                    [(1, CPU), (2, '{service_name="cancel"}'), (3, now_ms() - HOUR), (4, now_ms() + 1000)], timeout=1,
                )
            self.assertEqual(caught.exception.code, "deadline_exceeded")
            self.assertLess(time.monotonic() - began, 25)
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'alone' AND wait_event_type = 'Lock'"
            eventually(lambda: sql(self.cluster.url(), waiting) == [["0"]], 20, what="the statement's end")
        finally:
            lock.run("ROLLBACK")
            lock.close()
        self.assertEqual(server.flamegraph(CPU, '{service_name="cancel"}', now_ms() - HOUR, now_ms() + 1000).total, 1)


if __name__ == "__main__":
    unittest.main()
