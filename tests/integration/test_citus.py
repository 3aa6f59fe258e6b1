"""A filled database is distributed over two workers of Citus, and hearthd then answers as one over plain PostgreSQL does.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.parse

import prometheus
import schema_dump
import wire
from citus_nodes import CITUS, DATA, WHY_NOT, Nodes, scale_out
from pprof import Profile
from questions import CPU, QUERIER
from server import HEARTH, HEARTHD, Cluster, RpcError, Server, eventually, now_ms, server_environment, sql

HOUR = 3_600_000
BUSY = (*schema_dump.QUICK, "--compact-after", "0")


def hearth(server, *arguments):
    return subprocess.run([HEARTH, *arguments, "--url", "http://127.0.0.1:%d" % server.port], capture_output=True, text=True,
                          env=server_environment())


@unittest.skipUnless(CITUS, WHY_NOT)
class Citus(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        end = now_ms() // HOUR * HOUR
        cls.start, cls.end = end - 8 * HOUR, end
        # The last moment of a question: at the full hour, plans would count series that one database has and the other had
        # an hour later, if the next hour began while they were filled.
        cls.last = end - 1
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
        self.sampled = self.sample(server)
        server.stop()

    def sample(self, server):
        """The digest of answers that an operator compares before and after."""
        done = hearth(server, "admin", "scale-out", "--digest", "--from", str(self.start // 1000), "--to", str(self.end // 1000))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"sample: [1-9]\d* of \d+ flame graphs of a service and type, digest [0-9a-f]{32}\n")
        return (done.stdout + done.stderr).split("sample: ")[1]

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
        for method, request in schema_dump.questions(self.start, self.last):
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
            cpu = {"profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service, "start": str(self.start), "end": str(self.last)}
            try:
                return server.connect(QUERIER + "SelectMergeStacktraces", cpu)
            except RpcError as error:
                self.assertEqual(error.code, "unavailable")
                return None

        names = [row[0] for row in self.nodes.sql("SELECT name FROM hearth_data.service ORDER BY service_id")]
        expected = [answer(servers[0], name) for name in names]
        worker, where = self.nodes.workers[0], "127.0.0.1:%d" % self.nodes.workers[0].port
        worker.stop()
        found = [answer(servers[1], name) for name in names]
        self.assertEqual([one for one in found if one], [one for one, same in zip(expected, found) if same])
        self.assertGreater(found.count(None), 0)
        self.assertLess(found.count(None), len(names))

        lost = [name for name, one in zip(names, found) if one is None]
        self.leave_out(servers, names, lost, where)
        worker.start()
        eventually(lambda: [answer(servers[1], name) for name in names] == expected, 30, what="the answers of all services")
        self.assertEqual(self.note_of(servers[1], "{}"), "")
        self.fall_silent(servers[1], worker, where)

    def ask(self, selector):
        return {"profileTypeID": CPU, "labelSelector": selector, "start": str(self.start), "end": str(self.last)}

    def note_of(self, server, selector):
        """The first note of a flame graph."""
        status, headers, body = server.http("POST", "/" + QUERIER + "SelectMergeStacktraces", json.dumps(self.ask(selector)),
                                            {"Content-Type": "application/json"})
        self.assertEqual(status, 200, body)
        return urllib.parse.unquote(headers.get("hearth-note", ""))

    def leave_out(self, servers, names, lost, where):
        """Questions about services of both workers: the answer is that about the others, and a note names what it lacks."""
        rest = '{service_name!~"%s"}' % "|".join(lost)
        note = "partial: the node %s does not answer; the answer lacks " % where
        told = self.note_of(servers[1], "{}")
        self.assertTrue(told.startswith(note), told)
        self.assertEqual(set(told[len(note):].split(", ")), set(lost))
        self.assertEqual(self.note_of(servers[1], rest), "")

        # By Connect, for each kind of query; both sides of a diff lack the same.
        for method, request in schema_dump.questions(self.start, self.last):
            if method.startswith(QUERIER) and request.get("labelSelector") == "{}":
                on_plain, on_nodes = servers[0].connect(method, {**request, "labelSelector": rest}), servers[1].connect(method, request)
                self.assertEqual(on_plain, on_nodes, method)
        sides = [{**self.ask(selector), "maxNodes": 100} for selector in ("{}", rest)]
        full, left = (servers[n].connect(QUERIER + "Diff", {"left": side, "right": sides[1]}) for n, side in ((1, sides[0]), (0, sides[1])))
        self.assertEqual(full, left)

        # By gRPC, in trailing metadata.
        request = wire.encode([(1, CPU), (2, "{}"), (3, self.start), (4, self.last)])
        _, metadata = servers[1].grpc_bytes(QUERIER + "SelectMergeProfile", request)
        self.assertEqual(metadata["hearth-note"], told)

        # By the client: a note on standard error, and exit code 0 as with other notes.
        time = ["--from", str(self.start // 1000), "--to", str(self.last // 1000)]
        done = hearth(servers[1], "query", "top", "{}", "--type", CPU, *time)
        self.assertEqual((done.returncode, "note: " + told in done.stderr), (0, True), done.stderr)
        only = hearth(servers[1], "query", "top", '{service_name="%s"}' % lost[0], "--type", CPU, *time)
        self.assertNotEqual(only.returncode, 0)
        self.assertIn(where, only.stderr)

        # A plan leaves out the same; /ready and the metrics know.
        plan = [server.connect("hearth.v1.QueryService/Explain", {
            "profileType": CPU, "labelSelector": selector, "start": str(self.start), "end": str(self.last),
            "kind": "QUESTION_KIND_MERGE"}) for server, selector in ((servers[1], "{}"), (servers[0], rest))]
        self.assertEqual(*[(one["services"], one["series"]) for one in plan], msg=json.dumps([told, plan]))
        self.assertRegex(servers[1].http("GET", "/ready")[2].decode(), "on node %s wait, and queries lack them: .*Connection refused" % where)
        self.assertGreater(prometheus.value(servers[1].metrics(), "hearth_query_partial_answers_total"), 3)

    def fall_silent(self, server, worker, where):
        """A worker that is stopped takes connections and does not answer: as a network that swallows packets."""
        self.assertEqual(self.note_of(server, "{}"), "")
        worker.signal(signal.SIGSTOP)
        try:
            said = b"on node %s wait, and queries lack them: it is silent" % where.encode()
            eventually(lambda: said in server.http("GET", "/ready")[2], 30, what="a node that is found silent")
            began = time.monotonic()
            self.assertIn("partial: the node %s" % where, self.note_of(server, "{}"))
            self.assertLess(time.monotonic() - began, 3, "no query waits for a node that is known to be silent")
        finally:
            worker.signal(signal.SIGCONT)
        eventually(lambda: self.note_of(server, "{}") == "", 30, what="the node")

    def look_at_the_statements(self):
        """A query of all services asks the coordinator for no profile, and workers for tables of shards only."""
        nodes = [self.nodes.coordinator, *self.nodes.workers]
        for node in nodes:
            sql(node.url(), "ALTER SYSTEM SET log_statement = 'all'")
            sql(node.url(), "SELECT pg_reload_conf()")
        server = Server("--builder=false", "--query-cache-bytes", "0", database_url=self.nodes.url())
        server.connect(QUERIER + "SelectMergeStacktraces", self.ask("{}"))  # dictionaries are in memory afterwards
        paths = [os.path.join(node.directory, "log") for node in nodes]
        logs = [(path, os.path.getsize(path)) for path in paths]
        for method in ("SelectMergeStacktraces", "SelectSeries"):
            server.connect(QUERIER + method, {**self.ask("{}"), "step": 60})
        server.stop()
        data = re.compile(r"FROM hearth_data\.(roll_state|tombstone|profile|profile_late|segment|hour_totals|roll_1\w)(_\d+)?\b")
        read = []
        for path, size in logs:
            with open(path, encoding="utf-8") as log:
                log.seek(size)
                read.append([shard for line in log if "service_id = ANY" in line for _, shard in data.findall(line)])
        self.assertEqual(read[0], [], "the coordinator was asked")
        for of_worker in read[1:]:
            self.assertGreater(len(of_worker), 4)
            self.assertNotIn("", of_worker, "a distributed table was read")
        for node in nodes:
            sql(node.url(), "ALTER SYSTEM RESET log_statement")
            sql(node.url(), "SELECT pg_reload_conf()")

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
        self.assertEqual(self.sample(servers[1]), self.sampled)
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
        self.look_at_the_statements()
        self.refuse_required_separation_of_tenants()


if __name__ == "__main__":
    unittest.main()
