"""kill -9 of workers of Citus, of their coordinator and of hearthd under load: what was acknowledged is there exactly once.
The same while shards move and sessions end, with every block, packed hour and segment.

The load and the account of test_background_crash.py, on a coordinator and two workers. HEARTH_CITUS_KILLS kills (6) at
random, drawn from HEARTH_CRASH_SEED; HEARTH_CITUS_MOVES moves (4). Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus
(docs/testing.md).
"""

import collections
import os
import random
import threading
import time
import unittest

import test_background_crash
from citus_nodes import CITUS, WHY_NOT, Nodes
from server import Server, eventually, note, sql

MOVES = int(os.environ.get("HEARTH_CITUS_MOVES", "4"))
KILLS = int(os.environ.get("HEARTH_CITUS_KILLS", "6"))
KINDS = ("worker", "worker", "worker", "coordinator", "hearthd", "all_workers", "worker_and_hearthd")


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusCrash(test_background_crash.BackgroundCrash):
    cycles = KILLS

    def begin(self, embedded):
        self.random = random.Random(self.seed)
        self.cluster = Nodes()
        self.addCleanup(self.cluster.stop)
        self.cluster.distribute()
        self.server = Server(*test_background_crash.BUSY, database_url=self.cluster.url())
        self.n_killed, self.postmasters_killed = collections.Counter(), 0

    # ---- killing ----

    def kill(self, cycle):
        kind = self.random.choice(KINDS)
        getattr(self, "kill_" + kind)()
        self.n_killed[kind] += 1

    def nodes_die(self, nodes):
        for node in nodes:
            node.kill9()
            self.postmasters_killed += 1
        time.sleep(2 * self.random.random())
        for node in nodes:
            node.start()

    def kill_worker(self):
        self.nodes_die([self.random.choice(self.cluster.workers)])

    def kill_all_workers(self):
        self.nodes_die(self.cluster.workers)

    def kill_coordinator(self):
        self.nodes_die([self.cluster.coordinator])

    def kill_hearthd(self):
        self.server.kill9()
        self.server.start()
        # As if the 30 s had passed that nobody works after the death of who had the lease.
        self.server.sql("UPDATE hearth_data.lease SET expires_at = '-infinity'")

    def kill_worker_and_hearthd(self):
        self.server.kill9()
        self.kill_worker()
        self.server.start()

    # ---- counting ----

    def has_no_prepared(self):
        """Acknowledged profiles are visible when Citus has ended what a kill left prepared."""
        prepared = "SELECT count(*) FROM pg_prepared_xacts"
        return all(sql(node.url(), prepared) == [["0"]] for node in (self.cluster.coordinator, *self.cluster.workers))

    def check(self):
        eventually(self.has_no_prepared, 60, what="the end of prepared transactions")
        super().check()
        note("kills: %s; %d acknowledged" % (dict(self.n_killed), len(self.acknowledged)))

    def test_a_database_of_its_own(self):
        self.crash(embedded=True)
        self.check()
        self.server.stop()

    def test_the_embedded_database(self):
        self.skipTest("the embedded PostgreSQL has one node")


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusMoves(CitusCrash):
    cycles = MOVES

    def kill(self, cycle):
        """While a shard moves, connections of committers end."""
        move = threading.Thread(target=self.cluster.move_group, args=(cycle,))
        move.start()
        while move.is_alive():
            move.join(0.5 * self.random.random())
            self.end_session(self.random.choice(self.cluster.workers))
        self.n_killed["moves"] += 1

    def end_session(self, worker):
        ended = ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hearthd'"
                 " AND query LIKE '%hearth_data.ingest_batch%' AND pid <> pg_backend_pid() LIMIT 1")
        self.n_killed["sessions"] += len(sql(worker.url(), ended))

    def check(self):
        written = sum(value for (name, _), value in self.server.metrics().items() if name == "hearth_rollup_blocks_total")
        note("%d blocks written while shards moved" % written)
        self.assertGreater(written, 100)
        self.assertGreater(self.n_killed["sessions"], 0)
        super().check()


if __name__ == "__main__":
    unittest.main()
