"""A filled database is distributed over two workers of Citus, and hearthd then answers as one over plain PostgreSQL does.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import subprocess
import unittest

import prometheus
import schema_dump
from citus_nodes import CITUS, DATA, WHY_NOT, Nodes, scale_out
from pprof import Profile
from questions import CPU, QUERIER
from server import HEARTHD, Cluster, RpcError, Server, eventually, now_ms, server_environment, sql

HOUR = 3_600_000
BUSY = (*schema_dump.QUICK, "--compact-after", "0")


@unittest.skipUnless(CITUS, WHY_NOT)
class Citus(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        end = now_ms() // HOUR * HOUR
        cls.start, cls.end = end - 8 * HOUR, end
        cls.plain, cls.nodes = Cluster(), Nodes()
        for one in (cls.plain, cls.nodes):
            schema_dump.fill(one, cls.start, cls.end).stop()

    @classmethod
    def tearDownClass(cls):
        cls.plain.stop()
        cls.nodes.stop()

    def refuse_while_a_server_runs(self):
        server = Server(*BUSY, database_url=self.nodes.url())
        self.assertEqual(scale_out(self.nodes.url())[::2],
                         (1, "hearthd: hearthd is running on this database; stop every server first\n"))
        server.stop()

    def plan(self):
        code, out, err = scale_out(self.nodes.url(), "--dry-run")
        self.assertEqual((code, err), (1, ""))
        self.assertIn("2 nodes may hold rows\n", out)
        self.assertEqual({line.split(":")[0] for line in out.splitlines() if " move to the nodes" in line}, set(DATA))
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM pg_dist_partition"), [["0"]])

    def kill_in_the_middle(self):
        process = subprocess.Popen(
            [HEARTHD, "scale-out", "--database-url", self.nodes.url()], stdout=subprocess.PIPE, env=server_environment()
        )
        for line in process.stdout:
            if b"rows moved" in line:
                break
        process.kill()
        process.wait()
        process.stdout.close()
        server = Server(database_url=self.nodes.url(), wait=False)
        eventually(lambda: b"is not distributed, but other data tables are" in server.http("GET", "/ready")[2], 20,
                   what="a reason that says so")
        server.stop()

    def finish(self):
        code, out, err = scale_out(self.nodes.url())
        self.assertEqual((code, err), (0, ""), out)
        self.assertEqual(scale_out(self.nodes.url(), "--dry-run")[0], 0)
        self.assertEqual(scale_out(self.nodes.url())[1].splitlines()[-1], "all data tables are distributed")

    def work(self, server):
        """Profiles after the move: late ones, and those of hours that are new. All is built and compacted again."""
        for k in range(200, 240):
            schema_dump.push(server, self.start + (k % 20) * HOUR // 3, k, id="later")
        state = (
            "SELECT (SELECT count(*) FROM hearth_data.profile_late),"
            " (SELECT count(*) FROM hearth_data.roll_state WHERE compacted_to < %d)" % ((self.end - HOUR) * 1_000_000)
        )
        eventually(lambda: server.sql(state) == [["0", "0"]], 60, what="roll-ups and compaction")

    def compare(self, servers):
        n = 0
        for method, request in schema_dump.questions(self.start, self.end - 1):
            if method.startswith(QUERIER):
                on_plain, on_nodes = (server.connect(method, request) for server in servers)
                self.assertEqual(on_plain, on_nodes, (method, request))
                n += bool(on_plain)
        self.assertGreater(n, 8)

    def look_at_the_readers(self):
        """Citus' own connections have other names."""
        readers = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'hearthd'"
        for worker in self.nodes.workers:
            self.assertEqual(sql(worker.url(), readers), [["t"]], "no query was read on this worker")

    def look_at_the_tables(self, servers):
        shards = "SELECT sum(result::int) FROM run_command_on_shards('hearth_data.segment', 'SELECT count(*) FROM %s')"
        self.assertGreater(int(self.nodes.sql(shards)[0][0]), 0)
        leaves = "SELECT sum(pg_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'hearth_data.%s'::regclass"
        for table in ("profile", "segment"):
            self.assertEqual(self.nodes.sql(leaves % table), [["0"]], "rows are left on the coordinator")

        def measured(server):
            return prometheus.value(server.metrics(), "hearth_tier_bytes", tier="segments")

        on_plain, on_nodes = (eventually(lambda: measured(server) or None, 90, what="sizes") for server in servers)
        self.assertGreater(on_nodes, on_plain / 2)

    def say_how_far_roll_ups_are_behind(self):
        """Without a builder: the age of the bucket in which the first profile of a new service lies."""
        told = []
        for one in (self.plain, self.nodes):
            server = Server(*schema_dump.QUICK, "--builder=false", database_url=one.url())
            for minutes in (150, 140):
                profile = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000).add(["main"], [1])
                server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "new"})
            told.append(int(server.connect("hearth.v1.AdminService/Status", {})["lagMs"]) / 60_000)
            server.stop()
        for minutes in told:
            self.assertTrue(139 <= minutes <= 152, told)

    def lose_a_worker(self, servers):
        """Services of the other worker answer as before, the others say why not; all answer when it is back."""
        def answer(server, service):
            cpu = {"profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service, "start": str(self.start), "end": str(self.end)}
            try:
                return server.connect(QUERIER + "SelectMergeStacktraces", cpu)
            except RpcError as error:
                self.assertEqual(error.code, "unavailable")
                return None

        names = [row[0] for row in self.nodes.sql("SELECT name FROM hearth_data.service ORDER BY service_id")]
        expected = [answer(servers[0], name) for name in names]
        self.nodes.workers[0].stop()
        found = [answer(servers[1], name) for name in names]
        self.assertEqual([one for one in found if one], [one for one, same in zip(expected, found) if same])
        self.assertGreater(found.count(None), 0)
        self.assertLess(found.count(None), len(names))
        self.nodes.workers[0].start()
        eventually(lambda: [answer(servers[1], name) for name in names] == expected, 30, what="the answers of all services")

    def refuse_required_separation_of_tenants(self):
        server = Server("--row-level-security", "require", database_url=self.nodes.url(), wait=False)
        eventually(lambda: b"but the data tables are distributed" in server.http("GET", "/ready")[2], 20, what="a reason that says so")
        server.stop()

    def test_a_filled_database_is_distributed_after_a_kill_and_answers_as_before_but_for_a_lost_worker(self):
        self.refuse_while_a_server_runs()
        self.plan()
        self.kill_in_the_middle()
        self.finish()
        servers = [Server(*BUSY, database_url=one.url()) for one in (self.plain, self.nodes)]
        self.compare(servers)
        for server in servers:
            self.work(server)
        self.compare(servers)
        self.look_at_the_readers()
        self.look_at_the_tables(servers)
        self.lose_a_worker(servers)
        for server in servers:
            server.stop()
        self.say_how_far_roll_ups_are_behind()
        self.refuse_required_separation_of_tenants()


if __name__ == "__main__":
    unittest.main()
