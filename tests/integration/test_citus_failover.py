"""A worker of Citus is killed and its standby promoted: hearthd finds it, and what was acknowledged is there exactly once.

The way of docs/how-to/scale-out.md. HEARTH_FAILOVERS promotions (2; 10 with HEARTH_TEST_LONG), as in test_failover.py.
Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import random
import time
import unittest

import test_lost_commits
from citus_nodes import CITUS, WHY_NOT, Nodes, Standby
from failover_load import KILLS, FailoverLoad
from server import RpcError, Server, Session, eventually, in_threads, note, now_ms, sql
from standby import follow

LOAD_SECONDS = 1.0


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusFailover(FailoverLoad):
    n_services = 5  # on both workers

    def setUp(self):
        self.nodes = Nodes()
        self.addCleanup(self.nodes.stop)
        self.nodes.distribute()
        self.primary = self.nodes.workers[0]
        self.standby = Standby(self.primary)
        self.addCleanup(self.standby.stop)
        self.nodes.sql("SELECT citus_add_secondary_node('127.0.0.1', %d, '127.0.0.1', %d)" % (self.standby.port, self.primary.port))

    def moved(self, port, to):
        return "SELECT citus_update_node(nodeid, %s) FROM pg_dist_node WHERE nodeport = %d" % (to, port)

    def services(self, worker):
        """Names of services that have profiles on a worker."""
        placed = ("SELECT DISTINCT s.name FROM hearth_data.profile JOIN hearth_data.service s USING (service_id) JOIN citus_shards c"
                  " ON c.shardid = get_shard_id_for_distribution_column('hearth_data.roll_state', service_id) WHERE c.nodeport = %d")
        return {row[0] for row in self.nodes.sql(placed % worker.port)}

    def promote(self):
        """Citus takes no two nodes of one address, so the standby gets another one for a moment."""
        old, new = self.primary.port, self.standby.port
        sql(self.standby.url(), "SELECT pg_promote()")
        self.nodes.sql("BEGIN; %s; %s; %s; COMMIT" % (
            self.moved(new, "'changing', 1"), self.moved(old, "'127.0.0.1', %d, force => true" % new), self.moved(1, "'127.0.0.1', %d" % old)))
        self.primary, self.standby = self.standby, self.primary
        self.nodes.workers[0] = self.primary

    def test_with_synchronous_replication_of_a_worker_nothing_acknowledged_is_lost_when_its_standby_is_promoted(self):
        for node in (self.primary, self.standby):
            sql(node.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
            sql(node.url(), "SELECT pg_reload_conf()")
        self.begin(self.nodes.url())
        pauses = []
        for _ in range(KILLS):
            self.wait_for_state("sync")
            self.progress()
            for worker in self.nodes.workers:
                self.assertGreater(len(self.services(worker)), 0)
            time.sleep(LOAD_SECONDS * random.random())
            self.primary.kill9()
            killed = time.monotonic()
            self.promote()
            # Commits of the new primary wait for a standby.
            follow(self.standby, self.primary)
            self.progress()
            pauses.append(time.monotonic() - killed)
        self.assertEqual(self.finish("synchronous", set(), pauses), set())

    def test_a_promotion_is_noticed_within_seconds_while_a_statement_of_housekeeping_waits(self):
        server = Server("--builder=false", database_url=self.nodes.url())
        self.addCleanup(server.kill)
        lock = Session(self.nodes.url())
        self.addCleanup(lock.close)
        lock.run("BEGIN; LOCK TABLE hearth_data.application_clock")
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM hearth_data.application_clock%'"
        eventually(lambda: self.nodes.sql(waits) == [["1"]], 30, what="a statement that waits")
        self.primary.kill9()
        killed = time.monotonic()
        self.promote()
        eventually(lambda: "hearthd begins again" in server.log(), 20, what="another beginning")
        seconds = time.monotonic() - killed
        note("noticed %.1f s after the kill" % seconds)
        self.assertLess(seconds, 30)  # the statement waits for 60 s
        lock.run("ROLLBACK")
        server.wait_ready()
        server.stop()

    def push_until_stored(self, part):
        while True:
            try:
                return test_lost_commits.push(self.servers[0], part)
            except RpcError as error:
                self.assertIn(error.code, ("unavailable", "deadline_exceeded"))

    def test_a_promoted_standby_of_a_worker_that_lacks_commits_gets_no_rows_that_rely_on_them(self):
        self.start, self.servers = now_ms(), in_threads([lambda: Server("--builder=false", database_url=self.nodes.url())] * 2)
        check = test_lost_commits.LostCommits.check
        test_lost_commits.push(self.servers[0], "kept")
        check(self, ["kept"])
        end = sql(self.primary.url(), "SELECT pg_current_wal_flush_lsn()")[0][0]
        eventually(lambda: sql(self.standby.url(), "SELECT pg_last_wal_replay_lsn() >= '%s'" % end) == [["t"]], 30, what="the replay")
        self.standby.stop()
        test_lost_commits.push(self.servers[0], "lost")
        check(self, ["kept", "lost"])
        for worker in self.nodes.workers:
            self.assertEqual({name[:4] for name in self.services(worker)}, {"kept", "lost"})

        # The client pushes what was lost again, from before hearthd can know of the promotion.
        self.primary.kill9()
        self.standby.start()
        in_threads([lambda: self.push_until_stored("lost"), self.promote])
        for server in self.servers:
            eventually(lambda: "hearthd begins again" in server.log(), 30, what="another beginning")
            self.assertIn("a standby was promoted", server.log())
            server.wait_ready()
        self.push_until_stored("lost")
        check(self, ["kept", "lost"])
        for server in self.servers:
            server.stop()


if __name__ == "__main__":
    unittest.main()
