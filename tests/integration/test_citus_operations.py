"""What operators do with a database that is distributed over nodes of Citus: nodes fail and are added, sizes are looked at.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import collections
import json
import os
import re
import signal
import subprocess
import threading
import time
import unittest
import urllib.parse

import prometheus
import schema_dump
from citus_nodes import CITUS, DATA, WHY_NOT, Nodes, free_port, scale_out
from pprof import Profile
from questions import CPU, QUERIER
from server import HEARTH, Cluster, RpcError, Server, eventually, in_threads, note, now_ms, server_environment, sql

MINUTE = 60_000
MOVE_MINUTES = int(os.environ.get("HEARTH_CITUS_MOVE_MINUTES", "0"))  # a shard moves in each of them


def cpu_of(at_ms, value):
    return Profile([("cpu", "nanoseconds")], time_ns=at_ms * 1_000_000).add(["main"], [value]).encode()


def total(server, services, start, end):
    """Of services by a regular expression."""
    cpu = {"profileTypeID": CPU, "labelSelector": '{service_name=~"%s"}' % services, "start": str(start), "end": str(end)}
    answer = server.connect(QUERIER + "SelectMergeStacktraces", cpu)
    return int(answer.get("flamegraph", {}).get("total", 0))


def hearth(server, *option):
    """What `hearth admin scale-out` says, also beside an empty table."""
    done = subprocess.run(
        [HEARTH, "admin", "scale-out", *option, "--url", "http://127.0.0.1:%d" % server.port], capture_output=True, text=True,
        env=server_environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


class OnePostgresql(unittest.TestCase):
    def test_the_client_names_shards_to_move_the_command_for_it_and_missing_conditions(self):
        server = Server()
        self.assertIn("one PostgreSQL holds everything; --dry-run shows what would move to nodes", hearth(server))
        tables = json.loads(hearth(server, "--dry-run", "-o", "json"))["tables"]
        self.assertEqual({table["table"] for table in tables}, set(DATA))
        self.assertFalse(any(table.get("distributed") for table in tables))
        self.assertTrue(all(int(table["moveSeconds"]) > 0 for table in tables), tables)
        plan = hearth(server, "--dry-run")
        self.assertIn("the database lacks the extension citus", plan)
        self.assertIn("  hearthd scale-out --database-url URL\n", plan)
        server.stop()


    def test_the_digest_of_a_sample_of_answers_changes_only_with_a_new_profile(self):
        server = Server()
        at = now_ms() - 30 * MINUTE
        for k in range(3):
            server.push(cpu_of(at, k + 1), {"__name__": "process_cpu", "service_name": "sample-%d" % k})
        first = hearth(server, "--digest")
        self.assertRegex(first, r"sample: 3 of 3 flame graphs of a service and type, digest [0-9a-f]{32}\n")
        again = first.split("hearth admin scale-out ")[1].splitlines()[0].split()

        def digest(*option):
            return hearth(server, *option).split("digest ")[1][:32]

        same = digest(*again)
        self.assertIn(same, first)
        server.push(cpu_of(at, 1), {"__name__": "process_cpu", "service_name": "sample-2"})
        self.assertNotEqual(digest(*again), same)
        self.assertEqual(digest("--dry-run", *again), digest(*again))
        server.stop()


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusOperations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        cls.nodes.distribute()

    @classmethod
    def tearDownClass(cls):
        cls.nodes.stop()

    def shard_row(self, service):
        """The shard and the worker of the only row of a service in `profile`."""
        id = self.nodes.sql("SELECT service_id FROM hearth_data.service WHERE name = '%s'" % service)[0][0]
        shard = self.nodes.sql("SELECT tableoid::regclass::text FROM hearth_data.profile WHERE service_id = " + id)[0][0]
        place = "SELECT nodeport FROM citus_shards WHERE shardid = get_shard_id_for_distribution_column('hearth_data.profile', %s) LIMIT 1"
        port = int(self.nodes.sql(place % id)[0][0])
        return id, shard, next(worker for worker in self.nodes.workers if worker.port == port)

    def test_roll_ups_wait_for_a_commit_that_is_only_prepared_on_a_worker(self):
        at = now_ms() - 150 * MINUTE
        labels = {"__name__": "process_cpu", "service_name": "prepared"}
        server = Server(*schema_dump.QUICK, "--builder=false", database_url=self.nodes.url())
        server.push(cpu_of(at, 1), labels)
        server.stop()

        # As COMMIT PREPARED leaves it that did not reach the worker. No coordinator has the number 99, so none ends it.
        id, shard, worker = self.shard_row("prepared")
        sql(worker.url(), "SET citus.enable_manual_changes_to_shards = on; BEGIN; INSERT INTO %s SELECT * FROM %s WHERE"
            " service_id = %s; PREPARE TRANSACTION 'citus_99_1_1_1'" % (shard, shard, id))
        server = Server(*schema_dump.QUICK, database_url=self.nodes.url())
        raised = "SELECT watermark FROM hearth_data.roll_state WHERE service_id = %s AND watermark > %d000000" % (id, at)
        eventually(lambda: self.nodes.sql(raised), 30, what="a new watermark")
        time.sleep(3)
        built = "SELECT count(*) FROM hearth_data.hour_totals WHERE service_id = " + id
        self.assertEqual(self.nodes.sql(built), [["0"]])

        sql(worker.url(), "COMMIT PREPARED 'citus_99_1_1_1'")
        eventually(lambda: self.nodes.sql(built) != [["0"]], 30, what="roll-ups")
        start = at // (10 * MINUTE) * 10 * MINUTE
        self.assertEqual(total(server, "prepared", start, start + 10 * MINUTE - 1), 2)
        server.stop()

    def checks(self, server):
        found = server.connect("hearth.v1.AdminService/Doctor", {})["checks"]
        return {check["name"]: check for check in found if check["name"].startswith(("nodes", "citus", "connections"))}

    def test_the_doctor_knows_the_nodes_and_one_that_is_down_and_a_commit_that_was_left_prepared(self):
        server = Server(*schema_dump.QUICK, database_url=self.nodes.url())
        found = self.checks(server)
        # Servers of tests before may still count as running.
        others = [check["verdict"] for name, check in found.items() if "connections" not in name]
        self.assertEqual(set(others), {"VERDICT_OK"}, found)
        n = len(self.nodes.workers) + 1
        self.assertEqual(found["nodes"]["found"], "answers (%d nodes)" % n)
        self.assertIn("13 of 13 data tables are distributed", found["citus"]["found"])
        self.assertRegex(found["nodes: versions"]["found"], r"PostgreSQL 15\.\d+, Citus 1\d")

        nodes = json.loads(hearth(server, "-o", "json"))["nodes"]
        self.assertEqual([node["name"] for node in nodes], ["127.0.0.1:%d" % one.port for one in (self.nodes.coordinator, *self.nodes.workers)])
        holding = [node for node in nodes if int(node.get("shards", 0)) > 0]
        self.assertTrue(holding and all(int(node.get("bytes", 0)) > 0 for node in holding), nodes)
        self.assertIn("13 of 13 tables are distributed", hearth(server))
        self.assertIn("all tables that grow are distributed", hearth(server, "--dry-run"))

        # 100 connections are too few for a server with 60 readers.
        self.assertRegex(found["nodes: max_connections"]["found"], r"hearthd can need \d+ of 97 connections \(")
        many = Server("--readers", "60", "--builder=false", database_url=self.nodes.url())
        found = self.checks(many)
        full = found["nodes: max_connections"]
        self.assertEqual(full["verdict"], "VERDICT_ADVICE", full)
        self.assertRegex(full["found"], r"hearthd can need \d{3,} of 97 connections \(%d of %d nodes\)" % (n, n))
        # The first node is the coordinator, of which both checks say the same.
        needed = "hearthd can need (\\d+) of"
        self.assertEqual(re.findall(needed, full["found"]), re.findall(needed, found["connections"]["found"]))
        many.stop()

        worker = self.nodes.workers[0]
        sql(worker.url(), "BEGIN; CREATE TABLE public.left_behind (); PREPARE TRANSACTION 'citus_99_2_2_2'")
        found = self.checks(server)["nodes: prepared transactions"]
        self.assertEqual(found["verdict"], "VERDICT_OK", "it is young")
        sql(worker.url(), "ROLLBACK PREPARED 'citus_99_2_2_2'")

        worker.stop()
        found = self.checks(server)["nodes"]
        self.assertEqual(found["verdict"], "VERDICT_WRONG")
        self.assertIn("127.0.0.1:%d: failed to connect" % worker.port, found["found"])
        self.assertIn("1 of %d nodes" % n, found["found"])
        self.assertRegex(hearth(server), r"127\.0\.0\.1:%d .* failed to connect" % worker.port)
        worker.start()
        eventually(lambda: self.checks(server)["nodes"]["verdict"] == "VERDICT_OK", 30, what="the node")
        server.stop()

    def test_a_node_that_only_hearthd_cannot_reach_is_named_with_the_way_out_and_queries_go_through_the_coordinator(self):
        server = Server("--builder=false", database_url=self.nodes.url())
        names = ["cut-%d" % k for k in range(8)]
        for name in names:
            server.push(cpu_of(now_ms(), 1), {"__name__": "process_cpu", "service_name": name})
        server.stop()

        worker = self.nodes.workers[0]
        known, own = "127.0.0.1:%d" % worker.port, "127.0.0.1:%d" % free_port()
        server = Server("--builder=false", "--node-addresses", "%s=%s" % (known, own), database_url=self.nodes.url())

        def says():
            status, _, text = server.http("GET", "/ready")
            return status == 200 and b"on node %s wait: hearthd cannot reach it, the coordinator can (--node-addresses)" % known.encode() in text

        eventually(says, 20, what="a word about it before any push")
        check = self.checks(server)["nodes: reached by this hearthd"]
        self.assertEqual(check["verdict"], "VERDICT_WRONG")
        self.assertIn("1 of 2 nodes; not %s, which Citus has at %s, for " % (own, known), check["found"])
        self.assertIn("--node-addresses", check["advice"])
        self.assertEqual(prometheus.value(server.metrics(), "hearth_nodes_away"), 1)
        self.assertEqual([total(server, name, now_ms() - 30 * MINUTE, now_ms()) for name in names], [1] * len(names))
        server.stop()

        # The log and the doctor name the entry without effect, and only that one.
        own = "db-9:5432=127.0.0.1:1,%s=%s" % (known, known)
        server = Server("--builder=false", "--node-addresses", own, database_url=self.nodes.url())
        self.assertIn('node-addresses names a node that has no shards" name=db-9:5432', server.log())
        check = self.checks(server)["nodes: node-addresses"]
        self.assertEqual((check["verdict"], check["found"]), ("VERDICT_ADVICE", "1 name a node that has no shards: db-9:5432"))
        server.stop()
        server = Server("--builder=false", "--node-addresses", own, "--node-connections=false", database_url=self.nodes.url())
        self.assertIn('node-addresses is not used" reason="node-connections is false"', server.log())
        self.assertEqual(self.checks(server)["nodes: node-addresses"]["found"], "not used: node-connections is false")
        self.assertIn("restart every hearthd", self.checks(server)["nodes: reached by this hearthd"]["advice"])
        server.stop()

        server = Server("--node-addresses", "db-1", database_url=self.nodes.url(), wait=False)
        said = b'node-addresses has "db-1": it is a list of at most 64 NAME:PORT=HOST:PORT'
        eventually(lambda: said in server.http("GET", "/ready")[2], 20, what="a reason that shows it")
        server.stop()

    def test_a_query_that_runs_while_a_node_falls_silent_is_partial_long_before_its_deadline(self):
        server = Server("--builder=false", database_url=self.nodes.url())
        names = ["silent-%d" % k for k in range(8)]
        for name in names:
            server.push(cpu_of(now_ms(), 1), {"__name__": "process_cpu", "service_name": name})
        worker, lost = self.nodes.workers[0], []
        for name in names:
            if self.shard_row(name)[2] is worker:
                lost.append(name)
        self.assertTrue(0 < len(lost) < len(names), lost)

        def ask(selector):
            began, body = time.monotonic(), {"profileTypeID": CPU, "labelSelector": selector, "start": now_ms() - 600_000, "end": now_ms() + 600_000}
            status, headers, text = server.http("POST", "/" + QUERIER + "SelectMergeStacktraces", json.dumps(body), {"Content-Type": "application/json"}, 55)
            return status, urllib.parse.unquote(headers.get("hearth-note", "")), text, time.monotonic() - began

        # The connections are open, and a backend that is stopped takes a statement.
        whole, own = '{service_name=~"silent-.*"}', '{service_name="%s"}' % lost[0]
        self.assertEqual([ask(selector)[0] for selector in (whole, own)], [200, 200])
        worker.signal(signal.SIGSTOP)
        try:
            (status, note_of, text, took), (own_status, _, own_text, own_took) = in_threads([lambda: ask(whole), lambda: ask(own)])
        finally:
            worker.signal(signal.SIGCONT)
        note("a query of both nodes took %.1f s, one of the silent node %.1f s" % (took, own_took))
        self.assertEqual(status, 200, text)
        self.assertIn("partial: the node 127.0.0.1:%d does not answer" % worker.port, note_of)
        self.assertEqual(json.loads(text)["flamegraph"]["total"], str(len(names) - len(lost)))
        self.assertEqual(own_status, 503, own_text)
        self.assertIn(b"127.0.0.1:%d" % worker.port, own_text)
        self.assertLess(max(took, own_took), 25)
        eventually(lambda: ask(whole)[1] == "", 30, what="the node")
        server.stop()

    def test_the_disk_of_services_counts_the_tables_of_all_nodes(self):
        server = Server("--builder=false", database_url=self.nodes.url())  # no watermark, so no profile is late
        self.addCleanup(server.stop)
        for service in ("large", "small"):
            for k in range(30 if service == "large" else 1):
                server.push(cpu_of(now_ms() - k * 1000, k + 1), {"__name__": "process_cpu", "service_name": service})
        disk = server.connect("hearth.v1.AdminService/Disk", {})
        bytes = {one["serviceName"]: int(one.get("profiles", 0)) for one in disk["services"]}
        sizes = "SELECT sum(size) FROM citus_shard_sizes() z JOIN pg_dist_shard d ON d.shardid = z.shard_id WHERE d.logicalrelid::text LIKE '%.profile\\_2%'"
        on_nodes = int(self.nodes.sql(sizes)[0][0])
        self.assertGreater(bytes["large"], 10 * bytes["small"])
        self.assertAlmostEqual(sum(bytes.values()) / on_nodes, 1, delta=0.2, msg="the coordinator has empty tables, too")

    def test_a_quota_of_disk_trips_by_the_bytes_on_the_nodes_and_not_before(self):
        server = Server("--builder=false", database_url=self.nodes.url())
        server.push(cpu_of(now_ms(), 1), {"__name__": "process_cpu", "service_name": "quota"})
        server.stop()
        sizes = "SELECT (SELECT sum(size) FROM citus_shard_sizes()), (SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE"
        sizes += " relnamespace = 'hearth_data'::regnamespace AND relkind IN ('r', 'p'))"
        on_nodes, on_coordinator = (int(cell) for cell in self.nodes.sql(sizes)[0])
        self.assertGreater(on_nodes, 0)

        def state(quota):
            """Whether a push is accepted when the first measurement has been made; and what /ready says."""
            server = Server("--builder=false", "--max-disk-bytes", str(quota), database_url=self.nodes.url())
            eventually(lambda: prometheus.value(server.metrics(), "hearth_disk_bytes") or None, 60, what="a measurement")
            try:
                server.push(cpu_of(now_ms(), 1), {"__name__": "process_cpu", "service_name": "quota"})
                refused = ""
            except RpcError as error:
                refused = str(error)
            ready = server.http("GET", "/ready")[2].decode()
            server.stop()
            return refused, ready

        self.assertEqual(state(2 * (on_coordinator + on_nodes))[0], "")
        # More than the coordinator has, so only the bytes on the nodes exceed it.
        refused, ready = state(on_coordinator + on_nodes // 2)
        self.assertIn("more than max-disk-bytes", refused)
        self.assertIn("more than max-disk-bytes", ready)

    def test_undo_or_a_dump_returns_to_one_postgresql(self):
        """The last test in order of names: tables are not distributed after it."""
        server = Server(*schema_dump.QUICK, database_url=self.nodes.url())
        begin = now_ms()
        for k in range(12):
            server.push(cpu_of(begin - k * 30 * MINUTE, k + 1), {"__name__": "process_cpu", "service_name": "back"})

        def answer(server):
            return total(server, "back", begin - 600 * MINUTE, now_ms())

        self.assertEqual(answer(server), 78)
        server.stop()

        fresh = Cluster()
        Server(database_url=fresh.url()).stop()
        one, dump = Cluster(template=False), os.path.join(self.nodes.coordinator.directory, "dump")
        subprocess.run(["pg_dump", "-Fc", "-n", "hearth", "-n", "hearth_data", "-f", dump, self.nodes.url()], check=True)
        subprocess.run(["pg_restore", "-d", one.url(), dump], check=True)
        server = Server(database_url=one.url())
        self.assertEqual(answer(server), 78)
        server.stop()
        one.stop()

        code, out, err = scale_out(self.nodes.url(), "--undo")
        self.assertEqual((code, err), (0, ""), out)
        self.assertEqual({line.split(":")[0] for line in out.splitlines() if " rows moved to the coordinator" in line}, set(DATA))
        self.assertEqual(scale_out(self.nodes.url(), "--undo")[::2], (0, ""))
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM pg_dist_partition"), [["0"]])

        # Tenants are separated by the same policies as in a new database, and rows need no identity.
        for what in (
            "SELECT tablename, policyname, permissive, roles, cmd, qual, with_check FROM pg_policies ORDER BY 1, 2",
            "SELECT relname, relrowsecurity, relreplident FROM pg_class WHERE relnamespace = 'hearth_data'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1",
        ):
            self.assertEqual(self.nodes.sql(what), sql(fresh.url(), what))
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM pg_class WHERE relreplident = 'f'"), [["0"]])
        server = Server(*schema_dump.QUICK, "--row-level-security", "require", database_url=self.nodes.url())
        self.assertEqual(answer(server), 78)
        server.push(cpu_of(begin, 22), {"__name__": "process_cpu", "service_name": "back"})
        self.assertEqual(answer(server), 100)
        self.assertIn("no table is distributed", hearth(server))
        server.stop()
        fresh.stop()

    def starts_rebalancing(self):
        """Citus refuses it while hearthd makes partitions, as half a minute after a start."""
        try:
            return self.nodes.sql("SELECT citus_rebalance_start()")
        except AssertionError as error:
            if "could not acquire the lock required to rebalance" in str(error):
                return None
            raise

    def rebalance(self):
        """Move shards to an empty third worker, and then one group of shards after the other there and back. Returns the number of moves."""
        self.nodes.add_worker()
        eventually(self.starts_rebalancing, 60, 0.5, "the beginning of the rebalancing")
        eventually(lambda: self.nodes.sql("SELECT count(*) FROM pg_dist_background_job WHERE state NOT IN ('finished')") == [["0"]],
                   240, 0.5, "the end of the rebalancing")
        moved = int(self.nodes.sql("SELECT count(*) FROM pg_dist_background_task WHERE status = 'done'")[0][0])
        for k in range(4):
            self.nodes.move_group(k)
        for k in range(MOVE_MINUTES):
            began = time.monotonic()
            self.nodes.move_group(k)
            time.sleep(max(0, began + 60 - time.monotonic()))
        return moved + 4 + MOVE_MINUTES

    def log_statements(self, what):
        for worker in self.nodes.workers:
            sql(worker.url(), "ALTER SYSTEM " + what)
            sql(worker.url(), "SELECT pg_reload_conf()")

    def test_a_query_that_is_repeated_is_prepared_on_the_nodes_and_answered_after_its_shards_have_moved(self):
        at = now_ms() - 30 * MINUTE
        server = Server("--builder=false", "--query-cache-bytes", "0", database_url=self.nodes.url())
        self.addCleanup(server.kill)
        marks = [os.path.getsize(os.path.join(worker.directory, "log")) for worker in self.nodes.workers]
        expected = 0
        self.log_statements("SET log_min_duration_statement = 0")
        for _ in range(3):
            for k in range(5):
                server.push(cpu_of(at + expected, 1), {"__name__": "process_cpu", "service_name": "again-%d" % k})
                expected += 1
            for _ in range(5):
                self.assertEqual(total(server, "again-.*", at, now_ms()), expected)
            if expected < 15:  # there, and back
                self.nodes.move_group(0)
                self.nodes.move_group(1)
        self.log_statements("RESET log_min_duration_statement")
        logged = ""
        for worker, mark in zip(self.nodes.workers, marks):
            with open(os.path.join(worker.directory, "log")) as log:
                log.seek(mark)
                logged += log.read()
        # The names of tables are new after a move, so the first queries then are not prepared.
        self.assertGreater(len(re.findall(r"execute hearth_\d+: SELECT \* FROM \(SELECT service_id, watermark", logged)), 0)
        self.assertGreater(len(re.findall(r"execute hearth_\d+: SELECT \* FROM \(SELECT count", logged)), 0)
        self.assertGreater(len(re.findall(r"execute hearth_\d+: SELECT", logged)), 3)
        server.stop()

    def test_shards_move_to_a_new_worker_while_profiles_are_pushed_and_none_is_lost_or_doubled(self):
        self.assertEqual(self.nodes.sql(
            "SELECT count(*) FROM pg_class c JOIN pg_dist_partition p ON p.logicalrelid = c.oid WHERE relreplident <> 'f' AND NOT EXISTS"
            " (SELECT 1 FROM pg_index WHERE indrelid = c.oid AND indisprimary)"), [["0"]])
        server = Server(*schema_dump.QUICK, "--compact-after", "0", database_url=self.nodes.url())
        self.addCleanup(server.stop)
        begin, done, sums = now_ms(), threading.Event(), [collections.Counter() for _ in range(3)]

        def push(thread):
            """Until all moves are made: fresh profiles, and late ones of hours that are rolled up meanwhile. The same again until it is stored."""
            k = 0
            while not done.is_set():
                service, at = "moving-%d" % ((k + thread) % 10), begin - (k % 40) * 5 * MINUTE
                while True:
                    try:
                        server.push(cpu_of(at, k + 1), {"__name__": "process_cpu", "service_name": service}, id="%d-%d" % (thread, k))
                        break
                    except RpcError:
                        refused[0] += 1
                sums[thread][service] += k + 1
                k += 1
            return k

        refused = [0]

        def move():
            try:
                return self.rebalance()
            finally:
                done.set()

        moves, *pushed = in_threads([move] + [lambda i=i: push(i) for i in range(3)])
        sent = sum(sums, collections.Counter())
        note("%d moves, %d profiles in %d s, %d refused and repeated"
             % (moves, sum(pushed), (now_ms() - begin) // 1000, refused[0]))
        shards, left = (prometheus.value(server.metrics(), "hearth_commit_batches_shards%s_total" % which) for which in ("", "_left"))
        note("%d commits named tables of shards, %d more were repeated because a shard had moved" % (shards, left))
        self.assertGreater(shards, 100)
        self.assertGreater(moves, 4)
        self.assertGreater(sum(pushed), 100)

        def totals():
            return {service: total(server, service, begin - 300 * MINUTE, now_ms()) for service in sent}

        self.assertEqual(totals(), sent)
        left = "SELECT (SELECT count(*) FROM hearth_data.profile_late), (SELECT count(*) FROM hearth_data.roll_state WHERE built_to < %d)"
        eventually(lambda: self.nodes.sql(left % ((begin // (10 * MINUTE)) * 10 * MINUTE * 1_000_000)) == [["0", "0"]], 90, what="roll-ups")
        self.assertEqual(totals(), sent)

        # Aligned, so that roll-ups answer; the same from profiles only.
        start, end = (begin - 240 * MINUTE) // (60 * MINUTE) * 60 * MINUTE, begin // (10 * MINUTE) * 10 * MINUTE
        rolled = {service: total(server, service, start, end - 1) for service in sent}
        server.terminate()
        server.options = ["--builder=false"]
        server.start()
        server.connect("hearth.v1.AdminService/Rebuild", {"allServices": True, "fromMs": str(start)})
        self.assertEqual({service: total(server, service, start, end - 1) for service in sent}, rolled)


if __name__ == "__main__":
    unittest.main()
